from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import BatchView, look
from recipes_orchestration.errors import LibraryError, PlaceError, SourceError
from recipes_orchestration.stages import stages_of

from .archive import Archive, draw_page, find_pages, make_archive

pytestmark = pytest.mark.usefixtures("restored_path")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return make_archive(tmp_path / "project", [f"a/p{n}.png" for n in range(1, 13)])


@pytest.fixture
def engine(archive: Archive) -> Iterator[Engine]:
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        yield engine


def run(engine: Engine, batch: str = "a/0001", recipe: str = "measure") -> BatchView:
    found = engine.project.recipe(recipe)
    for stage in stages_of(found):
        run_stage(engine, stage, batch)
    return look(engine, found, batch)


def test_every_page_lands_at_every_step(engine: Engine):
    view = run(engine)
    assert {name: step.landed for name, step in view.steps.items()} == {"size": 12, "area": 12}


def test_a_landed_batch_computes_nothing_when_run_again(archive: Archive, engine: Engine):
    run(engine)
    before = archive.ran()
    run(engine)
    assert archive.ran() == before


def test_each_worker_loads_a_model_once(archive: Archive, engine: Engine):
    run(engine)
    workers = [line.split("\t")[0] for line in archive.loads()]
    assert len(workers) == len(set(workers)) <= 2


def test_the_results_of_an_ended_task_are_one_file_a_step(engine: Engine):
    run(engine)
    files = sorted(Path(engine.project.library).rglob("*.parquet"))
    assert [file.parent.parent.parent.name for file in files] == ["area", "size"]


def test_a_page_that_always_fails_is_held_with_the_words_of_the_step(
    archive: Archive, engine: Engine
):
    archive.draw(["b/good.png", "b/fails.png"])
    find_pages(engine)
    view = run(engine, "b/0001")
    assert [(held.page_id, held.words) for held in view.steps["area"].held] == [
        ("b/fails.png", "ValueError: this page has no area")
    ]
    assert archive.ran()["area", "b/fails.png"] == engine.project.limits.tries


def test_a_page_whose_step_kills_its_worker_is_held_and_the_others_land(
    archive: Archive, engine: Engine
):
    archive.draw([f"b/{n}.png" for n in range(6)] + ["b/kills.png"])
    find_pages(engine)
    view = run(engine, "b/0001")
    assert view.steps["area"].landed == 6
    assert "worker process ended" in view.steps["area"].held[0].words


def test_a_page_that_hangs_is_held_and_the_others_land(tmp_path: Path):
    archive = make_archive(
        tmp_path / "slow",
        ["a/1.png", "a/2.png", "a/hangs.png"],
        limits={"page_timeout": 1, "tries": 1},
    )
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        view = run(engine)
    assert view.steps["area"].landed == 2
    assert "longer than 1 s" in view.steps["area"].held[0].words


def test_an_unreadable_page_is_held_at_once_and_at_every_step_behind(
    archive: Archive, engine: Engine
):
    archive.draw(["b/good.png"])
    good = (archive.pages / "b/good.png").read_bytes()
    (archive.pages / "b/broken.png").write_bytes(good[: len(good) // 2])
    find_pages(engine)
    view = run(engine, "b/0001")
    assert [held.page_id for step in view.steps.values() for held in step.held] == [
        "b/broken.png"
    ] * 2
    assert archive.ran("area") == {("area", "b/good.png"): 1}


def test_a_held_page_that_is_mended_lands(archive: Archive, engine: Engine):
    archive.draw(["b/good.png"])
    (archive.pages / "b/broken.png").write_bytes(b"")
    find_pages(engine)
    assert len(run(engine, "b/0001").steps["area"].held) == 1
    archive.draw(["b/broken.png"])
    find_pages(engine)
    assert run(engine, "b/0001").steps["area"].landed == 2


def test_equal_pages_are_computed_once_and_land_for_each(archive: Archive, engine: Engine):
    for name in ("b/one.png", "b/two.png", "c/three.png"):
        (archive.pages / name).parent.mkdir(exist_ok=True)
        shutil.copy(archive.pages / "a/p1.png", archive.pages / name)
    find_pages(engine)
    for batch in ("a/0001", "b/0001", "c/0001"):
        view = run(engine, batch)
        assert all(step.settled() and step.landed == step.pages for step in view.steps.values())
    computed = [page for _, page in archive.ran("area")]
    assert [
        page for page in computed if page in ("a/p1.png", "b/one.png", "b/two.png", "c/three.png")
    ] == ["a/p1.png"]


def test_a_changed_parameter_recomputes_its_step_and_what_needs_it(
    archive: Archive, engine: Engine
):
    run(engine)
    recipe = archive.folder / "recipes" / "measure.yaml"
    recipe.write_text(recipe.read_text().replace("params: {}", "params: {other: 1}"))
    with open_engine(archive.project()) as changed:
        run(changed)
    assert set(archive.ran().values()) == {2}


def test_a_change_of_the_last_step_leaves_the_first_alone(archive: Archive, engine: Engine):
    run(engine)
    recipe = archive.folder / "recipes" / "measure.yaml"
    recipe.write_text(
        recipe.read_text().replace("needs: [size]", "needs: [size], params: {new: 1}")
    )
    with open_engine(archive.project()) as changed:
        run(changed)
    assert set(archive.ran("size").values()) == {1}
    assert set(archive.ran("area").values()) == {2}


def test_a_changed_page_recomputes_itself_alone(archive: Archive, engine: Engine):
    run(engine)
    archive.draw(["a/p3.png"], shade=1)
    find_pages(engine)
    run(engine)
    assert {page for (_, page), times in archive.ran().items() if times == 2} == {"a/p3.png"}


def test_new_pages_make_a_new_batch(archive: Archive, engine: Engine):
    run(engine)
    archive.draw(["a/p0.png"])
    found = find_pages(engine)
    assert list(found.batches) == ["a/0002"]
    assert run(engine, "a/0002").steps["area"].landed == 1


def test_a_page_that_is_gone_no_longer_counts_and_its_results_are_kept(
    archive: Archive, engine: Engine
):
    run(engine)
    (archive.pages / "a/p12.png").unlink()
    find_pages(engine)
    view = run(engine)
    assert view.steps["area"].pages == 11
    assert len(engine.library.landed("measure", "area", "a/0001")) == 12


def test_a_moved_library_still_counts_as_landed(archive: Archive, engine: Engine):
    run(engine)
    moved = archive.folder.parent / "elsewhere"
    shutil.move(engine.project.library, moved)
    project = archive.folder / "project.yaml"
    project.write_text(project.read_text() + f"library: {moved}\n")
    before = archive.ran()
    with open_engine(archive.project()) as again:
        assert run(again).steps["area"].landed == 12
    assert archive.ran() == before


def test_a_step_whose_model_cannot_be_loaded_blames_no_page(archive: Archive):
    steps = archive.folder / "counting_steps.py"
    steps.write_text(
        steps.read_text().replace(
            "note(LOADED", 'raise RuntimeError("no weights")\n    note(LOADED'
        )
    )
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        with pytest.raises(PlaceError, match="could not be set up: RuntimeError: no weights"):
            run(engine)
        assert engine.ledger.holds.held() == []
        assert engine.ledger.tasks.open() == []


def test_pages_are_handed_together_to_an_operation_that_likes_it(tmp_path: Path):
    archive = make_archive(tmp_path / "many", [f"a/{n}.png" for n in range(20)])
    recipe = archive.folder / "recipes" / "measure.yaml"
    recipe.write_text(recipe.read_text() + '  - {name: many, run: "counting_steps:together"}\n')
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        view = run(engine)
    assert view.steps["many"].landed == 20
    assert archive.ran("together") == {("together", "8"): 2, ("together", "4"): 1}


def test_only_the_wanted_step_is_run(archive: Archive, engine: Engine):
    stage = stages_of(engine.project.recipe("measure"))[0]
    run_stage(engine, stage, "a/0001", ["size"])
    assert archive.ran("area") == {}
    run_stage(engine, stage, "a/0001", ["area"])
    assert set(archive.ran().values()) == {1}


def test_a_page_of_equal_bytes_in_memory_twice_is_no_surprise(archive: Archive, engine: Engine):
    draw_page(archive.pages / "b/x.png", "same")
    draw_page(archive.pages / "c/x.png", "same")
    find_pages(engine)
    run(engine, "b/0001")
    run(engine, "c/0001")
    rows = engine.library.table("measure", "size", "c/0001").to_pylist()
    assert [row["page_id"] for row in rows] == ["c/x.png"]


ODD = """
import os
import sys

print("loaded")


def exits(page, context):
    print("from a step")
    os.write(1, b"past Python")
    raise SystemExit(3)


def interrupts(page, context):
    raise KeyboardInterrupt


def odd_names(page, context):
    return {1: "a", "1": "b"}


def fine(page, context):
    return 1
"""


def with_odd_steps(folder: Path, *steps: str) -> Archive:
    archive = make_archive(folder, ["a/1.png", "a/2.png"], limits={"tries": 1})
    (archive.folder / "odd_steps.py").write_text(ODD)
    lines = "".join(f'  - {{name: {step}, run: "odd_steps:{step}"}}\n' for step in steps)
    (archive.folder / "recipes" / "odd.yaml").write_text(
        f"recipe: odd\nsource: letters\nsteps:\n{lines}"
    )
    return archive


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("exits", "SystemExit: 3"),
        ("interrupts", "KeyboardInterrupt"),
        ("odd_names", "a name in it is not a text"),
    ],
)
def test_whatever_a_step_does_belongs_to_the_page(tmp_path: Path, step: str, words: str):
    archive = with_odd_steps(tmp_path / "odd", step, "fine")
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        view = run(engine, "a/0001", "odd")
    assert view.steps["fine"].landed == 2
    assert all(words in held.words for held in view.steps[step].held)
    assert len(view.steps[step].held) == 2


def test_what_modules_and_steps_print_stays_out_of_standard_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    archive = with_odd_steps(tmp_path / "odd", "exits")
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        run(engine, "a/0001", "odd")
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "from a step" in captured.err


def test_a_page_held_by_two_steps_of_their_own_has_both_reasons(tmp_path: Path):
    archive = with_odd_steps(tmp_path / "odd", "exits", "odd_names")
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        view = run(engine, "a/0001", "odd")
    causes = [held.cause for step in view.steps.values() for held in step.held]
    assert sorted(causes) == ["exits", "exits", "odd_names", "odd_names"]


def test_a_source_that_goes_away_in_the_middle_holds_no_page(archive: Archive, engine: Engine):
    shutil.move(archive.pages, archive.folder / "away")
    with pytest.raises(SourceError, match="pages"):
        run(engine)
    assert engine.ledger.holds.held() == []
    assert engine.ledger.tasks.open() == []
    shutil.move(archive.folder / "away", archive.pages)
    assert run(engine).steps["area"].landed == 12


def test_a_file_that_was_away_is_tried_again_by_the_next_run(archive: Archive, engine: Engine):
    (archive.pages / "a/p3.png").rename(archive.folder / "p3.png")
    assert [held.page_id for held in run(engine).steps["size"].held] == ["a/p3.png"]
    (archive.folder / "p3.png").rename(archive.pages / "a/p3.png")
    assert run(engine).steps["area"].landed == 12


def test_a_library_that_is_a_file_is_refused(archive: Archive):
    (archive.folder / "library").write_text("")
    with pytest.raises(LibraryError, match="is a file"), open_engine(archive.project()):
        pass

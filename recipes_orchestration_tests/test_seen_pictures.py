"""`image` of a step that asks no model: the picture that it sees, the same in every place."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from recipes_orchestration.pages.page import Page
from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.places.task_folders.packaging import Packaging
from recipes_orchestration.places.task_folders.returned import Expected, read_returned
from recipes_orchestration.project import Project, load_project
from recipes_orchestration.recipe import Recipe, Step
from recipes_orchestration.runner.run_pages import Setting, run_pages
from recipes_orchestration.steps.seen import seen_page
from recipes_orchestration.yaml_files import ConfigErrors

from .packed_work import jpeg, spec_of, tiff, works_of

PROJECT = "name: archive\nsources: {letters: {root: pages}}\n"
HEAD = "recipe: letters\nsource: letters\nsteps:\n"
SEEN = """
import hashlib

def seen(page, context):
    return {"size": page.image.size, "file": page.file, "mode": page.image.mode,
            "pixels": hashlib.sha256(page.image.tobytes()).hexdigest(),
            "data": hashlib.sha256(page.data).hexdigest()}
"""
SMALL = {"max_side": 200, "format": "jpeg", "quality": 70, "grey": True}
Load = Callable[[str], Project]
TASK = f"a-{'0' * 32}"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None) -> Load:
    monkeypatch.chdir(tmp_path)

    def loaded(steps: str) -> Project:
        (tmp_path / "recipes").mkdir(exist_ok=True)
        (tmp_path / "project.yaml").write_text(PROJECT)
        (tmp_path / "recipes" / "letters.yaml").write_text(HEAD + steps)
        return load_project(tmp_path)

    return loaded


def step_of(load: Load, line: str) -> Step:
    return load(f"  - {{name: lines, {line}}}\n").recipes["letters"].steps[0]


def page(data: bytes) -> Page:
    return Page("p", "0" * 64, "p", None, lambda: data)


def test_the_picture_is_of_the_size_and_colour_that_is_asked_for():
    seen = seen_page(page(jpeg(1, (800, 400))), SMALL)
    assert (seen.image.size, seen.image.mode) == ((200, 100), "L")


def test_a_page_without_settings_is_itself():
    whole = page(jpeg(1))
    assert seen_page(whole, None) is whole


def test_no_provider_bounds_the_file():
    stream = io.BytesIO()
    Image.effect_noise((2500, 2500), 100).save(stream, "PNG")
    seen = seen_page(page(stream.getvalue()), {"max_side": 2400, "format": "png"})
    assert len(seen.data) > 3_750_000
    assert seen.image.size == (2400, 2400)


def test_the_settings_are_kept_beside_the_params_with_their_defaults(load: Load):
    step = step_of(load, "run: lines, image: {max_side: 900}")
    assert step.params == {}
    assert step.image == {"max_side": 900, "format": None, "quality": 85, "grey": False}


def test_a_step_without_settings_sees_the_page_as_it_is(load: Load):
    assert step_of(load, "run: lines").image is None


def test_the_picture_is_part_of_what_makes_a_result_the_same():
    def fingerprint(**more: object) -> str:
        step = replace(Step("lines", "lines", "1"), **more)  # pyright: ignore[reportArgumentType]
        return Recipe("letters", "letters", (step,)).fingerprint("lines")

    made = [fingerprint(), fingerprint(image={"max_side": 900}), fingerprint(image={"grey": True})]
    assert len(set(made)) == 3


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            "  - {name: text, run: text, image: {grey: true}}\n",
            'recipes/letters.yaml:4: step "text": found the key "image", but text does not look at '
            "the picture; take it away",
        ),
        (
            "  - {name: lines, run: lines, image: none}\n",
            'recipes/letters.yaml:4: step "lines": image: found none, but the step is sent '
            "nothing; take it away, or write max_side, format, quality, grey",
        ),
        (
            "  - {name: lines, run: lines, image: {max_side: 900}}\n"
            "  - {name: read, run: read, needs: [lines]}\n",
            'recipes/letters.yaml:5: step "read": image: found the page as it is, but '
            '"lines" finds the lines on a picture of max_side 900; write the same max_side for '
            "both",
        ),
        (
            "  - {name: lines, run: lines, image: {grey: true}}\n"
            "  - {name: read, run: read, needs: [lines], image: {max_side: 900}}\n",
            'recipes/letters.yaml:5: step "read": image: found a picture of max_side 900, but '
            '"lines" finds the lines on a picture of max_side 2000; write the same max_side for '
            "both",
        ),
    ],
)
def test_a_mistake_names_its_line_and_what_is_allowed(load: Load, steps: str, message: str):
    with pytest.raises(ConfigErrors) as caught:
        load(steps)
    assert [str(each) for each in caught.value.mistakes] == [message]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("{max_side: 100}", "200"),
        ("{format: gif}", "jpeg"),
        ("{quality: 0}", "1"),
        ("{side: 900}", "max_side"),
        ("7", "max_side"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(load: Load, image: str, words: str):
    with pytest.raises(ConfigErrors) as caught:
        load(f"  - {{name: lines, run: lines, image: {image}}}\n")
    mistake = caught.value.mistakes[0]
    assert str(mistake).startswith('recipes/letters.yaml:4: step "lines": image')
    assert words in str(mistake)


def test_lines_and_read_may_differ_in_colour(load: Load):
    load(
        "  - {name: lines, run: lines, image: {max_side: 900, grey: true}}\n"
        "  - {name: read, run: read, needs: [lines], image: {max_side: 900}}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("others", [(), (None,)], ids=["made here", "made over there"])
def test_a_step_sees_the_same_here_and_on_a_far_side(
    tmp_path: Path, restored_path: None, others: tuple[None, ...]
):
    """With another step on the whole page, the original goes and the runner makes the picture."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "look.py").write_text(SEEN)
    steps = tuple(
        Step(f"s{number}", "look:seen", "1", image=image)
        for number, image in enumerate((SMALL, *others))
    )
    files = {
        "large.jpg": jpeg(1, (800, 400)),
        "fits.jpg": jpeg(2, (100, 60)),
        "two.tif": tiff(3, 4),
    }
    works = works_of(tmp_path / "scans", files, [step.name for step in steps])
    spec = spec_of(tmp_path / "scans", works, steps, str(tmp_path / "project"))
    with Packaging(tmp_path / "batch", workers=1) as packaging:
        folder = packaging.write(TASK, packaging.pack(spec))
    command = [sys.executable, "-m", "recipes_orchestration.runner.main", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    returned = read_returned(folder / "out", Expected.of_spec(TASK, spec))
    there = {(o.page_id, o.step): o.value for chunk in returned.chunks() for o in chunk}
    setting = Setting(steps, SourceReader(str(tmp_path / "scans")), spec.import_path, 10**8)
    here = {(o.page_id, o.step): o.value for work in works for o in run_pages(setting, [work])}
    assert returned.complete
    assert len(there) == len(here) == 4 * len(steps)
    for key, value in here.items():
        seen = {**value, "size": list(value["size"])}
        if key[0].startswith("two.tif") and key[1] == "s1":
            # A page inside a file that goes alone has the same pixels in other bytes.
            seen["data"] = there[key]["data"]
        assert there[key] == seen

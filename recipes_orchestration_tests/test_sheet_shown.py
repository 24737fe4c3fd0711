"""The sheet where people see it: `recipes plan`, the question of `recipes run`, Dagster's asset."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.sheet_assets import GROUP, sheet_key
from recipes_orchestration.rehearsal import Rehearsal

from .archive import Archive, environment, find_pages, make_archive
from .cloud_archive import CloudArchive, read_step
from .cloud_landing import cloud
from .command_runs import command, recipes

pytestmark = pytest.mark.usefixtures("restored_path")


@pytest.fixture
def local(tmp_path: Path) -> Archive:
    archive = make_archive(tmp_path / "project", [f"a/{n}.png" for n in range(3)])
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    return archive


@pytest.fixture
def letters(tmp_path: Path, rehearsal: Rehearsal) -> CloudArchive:
    return cloud(tmp_path / "project", rehearsal, "anthropic", 4)


def test_plan_shows_the_sheet_of_a_step_at_a_provider(letters: CloudArchive) -> None:
    ran = recipes(letters, "plan", "letters")
    assert ran.code == 0
    assert "batch $" in ran.out
    assert "claude-sonnet-4-6" in ran.out
    assert "It costs about $" in ran.out
    assert "nothing has landed yet" in ran.out


def test_plan_gives_the_sheet_as_json(letters: CloudArchive) -> None:
    document = recipes(letters, "plan", "letters", "--json").document
    (stage,) = document["sheet"]["stages"]
    assert (stage["pages"], stage["batches"], stage["tasks"], stage["reused"]) == (4, 1, 1, 0)
    assert (stage["place"], stage["model"]) == ("anthropic", "claude-sonnet-4-6")
    usd = {name: Decimal(value) for name, value in stage["usd"].items()}
    assert 0 < usd["low"] <= usd["mid"] <= usd["high"]
    assert stage["usd"] == stage["batch_usd"] == document["sheet"]["usd"]
    assert Decimal(stage["plain_usd"]["mid"]) == pytest.approx(2 * usd["mid"])


def test_plan_works_where_no_key_is_set(
    letters: CloudArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert recipes(letters, "plan", "letters").code == 0


def test_work_on_this_machine_has_a_time_and_no_price(local: Archive) -> None:
    assert recipes(local, "run", "measure", "--no-dagster").code == 0
    local.draw(["b/new.png"])
    recipes(local, "discover", "--no-dagster")
    sheet = recipes(local, "plan", "measure", "--json").document["sheet"]
    (stage,) = sheet["stages"]
    assert sheet["usd"] is None
    assert stage["seconds"] == stage["local_seconds"] > 0
    assert (stage["pages"], stage["tasks"]) == (1, 1)


def at_a_terminal(archive: Archive, answer: str, *arguments: str) -> tuple[int, str]:
    """Runs a command whose input and output are a terminal, and answers it."""
    ours, theirs = pty.openpty()
    said: list[bytes] = []

    def listen() -> None:
        with suppress(OSError):
            while data := os.read(ours, 65_536):
                said.append(data)

    try:
        process = subprocess.Popen(
            command(*arguments, "--project", str(archive.folder)),
            env=environment(archive, TERM="dumb", COLUMNS="200"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        listener = threading.Thread(target=listen)
        listener.start()
        os.write(ours, answer.encode())
        code = process.wait(120)
    finally:
        os.close(theirs)
    listener.join(10)
    os.close(ours)
    return code, b"".join(said).decode()


@pytest.mark.slow
def test_run_asks_before_it_sends_anything(letters: CloudArchive, rehearsal: Rehearsal) -> None:
    run = ("run", "letters", "--no-dagster")
    code, said = at_a_terminal(letters, "\n", *run)
    assert code == 0
    assert "It costs about $" in said
    assert "Go on? [y/N]" in said
    assert "Nothing was run." in said
    assert not rehearsal.counts("anthropic")["requests"]
    code, said = at_a_terminal(letters, "y\n", *run)
    assert code == 0, said
    assert len(rehearsal.counts("anthropic")["requests"]) == 4


@pytest.mark.slow
def test_run_asks_nothing_with_yes_or_when_nothing_is_to_do(letters: CloudArchive) -> None:
    code, said = at_a_terminal(letters, "n\n", "run", "letters", "--no-dagster", "--yes")
    assert code == 0, said
    assert "Go on?" not in said
    code, said = at_a_terminal(letters, "n\n", "run", "letters", "--no-dagster")
    assert code == 0
    assert "Go on?" not in said


@pytest.mark.slow
def test_work_on_this_machine_goes_on_without_an_answer(local: Archive) -> None:
    code, said = at_a_terminal(local, "\n", "run", "measure", "--no-dagster")
    assert code == 0, said
    assert "Go on? [Y/n]" in said
    assert local.ran()["size", "a/0.png"] == 1


def test_the_sheet_is_an_asset_that_sends_nothing(
    letters: CloudArchive, rehearsal: Rehearsal
) -> None:
    defs = project_definitions(letters.project())
    key = sheet_key(letters.project().recipe("letters"))
    node = defs.resolve_asset_graph().get(key)
    assert (node.group_name, node.is_partitioned) == (GROUP, False)
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[key],
            run_config={"ops": {node.assets_def.op.name: {"config": {"folder": "a"}}}},
        )
        assert result.success
        event = instance.get_latest_materialization_event(key)
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert "claude-sonnet-4-6" in str(metadata["sheet"].value)
    assert metadata["pages"].value == 4
    assert metadata["usd_low"].value < metadata["usd"].value <= metadata["usd_high"].value  # type: ignore[operator]
    assert not rehearsal.counts("anthropic")["requests"]


def test_a_step_may_be_named_sheet(tmp_path: Path, rehearsal: Rehearsal) -> None:
    step = {**read_step("anthropic"), "name": "sheet"}
    archive = cloud(tmp_path, rehearsal, "anthropic", 1, steps=[step])
    defs = project_definitions(archive.project())
    dg.Definitions.validate_loadable(defs)
    assert sheet_key(archive.project().recipe("letters")).path[-1] == "the_sheet"

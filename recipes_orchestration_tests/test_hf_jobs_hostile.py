"""What comes back from a job is not trusted: the rehearsed hub holds what nobody sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.rehearsal import HUB, Rehearsal
from recipes_orchestration.runner.task_folder import encode_line

from .hub_archive import (
    DATASET,
    RUNNER,
    advance_to_rest,
    creates,
    far_files,
    hub_archive,
    sent,
    until,
)
from .job_archive import BATCH, first_stage, run_all, values_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

# Runs the real runner, then does to its task folder what a test wants.
EVIL = """
import json, pathlib, subprocess, sys
folder = pathlib.Path(sys.argv[1])
code = subprocess.call([sys.executable, *{runner!r}.split()[1:], str(folder)])
out = folder / "out"
{evil}
sys.exit(code)
"""


def evil_runner(folder: Path, evil: str) -> str:
    path = folder / "evil.py"
    path.write_text(EVIL.format(runner=RUNNER, evil=evil))
    return f"python3 {path}"


def out_folder(hub: Rehearsal) -> str:
    """Where the results of the only task lie."""
    until(lambda: far_files(hub, "/out/outcome.json"))
    until(lambda: all(job.ended is not None for job in hub.hub.jobs.values()))
    (outcome,) = far_files(hub, "/out/outcome.json")
    return outcome.removesuffix("/outcome.json")


def told(engine: Engine) -> list[str]:
    """What the far side tells of its work, as it is heard."""
    words: list[str] = []
    engine.on_report = lambda _, report: words.extend(each.words for each in report.messages)
    return words


def test_a_file_too_many_is_left_there_and_said(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, pages=2)
    with archive.engine() as engine:
        sent(engine)
        hub.hub.put(DATASET, f"{out_folder(hub)}/miner.sh", b"#!/bin/sh")
        words = told(engine)
        advance_to_rest(engine)
        assert len(values_of(engine)) == 2
    assert "Left in the store: files that were not asked for (1)." in words
    assert list(archive.folder.rglob("miner.sh")) == []


def test_a_path_that_leads_out_of_the_folder_is_written_nowhere(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, pages=2)
    with archive.engine() as engine:
        sent(engine)
        hub.hub.put(DATASET, f"{out_folder(hub)}/../../../../escaped.txt", b"out")
        advance_to_rest(engine)
        assert len(values_of(engine)) == 2
    assert list(tmp_path.rglob("escaped.txt")) == []


def test_a_result_of_a_page_that_was_not_sent_does_not_land(hub: Rehearsal, tmp_path: Path):
    stranger = encode_line({"page": "b/9.png", "step": "size", "seconds": 1, "value": {"w": 1}})
    evil = f"""
with (out / "results.jsonl").open("ab") as stream:
    stream.write({stranger!r})
(out / "outcome.json").unlink()
"""
    archive = hub_archive(tmp_path, hub, pages=2, runner=evil_runner(tmp_path, evil))
    with archive.engine() as engine:
        sent(engine)
        words = told(engine)
        advance_to_rest(engine)
        assert sorted(values_of(engine, "size")) == ["a/0.png", "a/1.png"]
    assert "results of pages or steps that were not sent (1)" in words[-1]


def test_results_that_are_not_those_of_the_outcome_do_not_land(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, pages=2)
    with archive.engine() as engine:
        sent(engine)
        path = f"{out_folder(hub)}/results.jsonl"
        whole = hub.hub.read(DATASET, path)
        hub.hub.put(DATASET, path, whole[: len(whole) // 2])
        stage = first_stage(engine)
        seen = advance(engine, stage, BATCH)
        assert (seen.landed, seen.open) == (0, 1)
        hub.hub.put(DATASET, path, whole)
        engine.fetch_again.clear()
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert creates(hub) == 1


def test_an_outcome_that_says_nothing_true_takes_nothing_away(hub: Rehearsal, tmp_path: Path):
    lie = json.dumps({"format": 1, "complete": True, "pages": "all", "results": []})
    evil = f'(out / "outcome.json").write_text({lie!r})'
    archive = hub_archive(tmp_path, hub, pages=2, runner=evil_runner(tmp_path, evil))
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert hub.counts(HUB)["creates"] == 1

"""The command line over a step at a provider: it sends all, waits, and takes open batches up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recipes_orchestration.rehearsal import Rehearsal, Script

from .archive import environment
from .cloud_archive import CloudArchive, make_cloud_archive


def recipes(archive: CloudArchive, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "recipes_orchestration.cli", *arguments],
        env=environment(archive, DAGSTER_HOME=str(archive.folder / "home")),
        capture_output=True,
        text=True,
        timeout=120,
    )


def start_run(archive: CloudArchive) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "recipes_orchestration.cli", "run", "letters", "--no-dagster"],
        env=environment(archive),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_batches(rehearsal: Rehearsal, number: int) -> None:
    until = time.monotonic() + 60
    while len(rehearsal.counts("anthropic")["batches"]) < number:
        assert time.monotonic() < until, "the batches were never sent"
        time.sleep(0.1)


@pytest.mark.slow
def test_all_page_batches_are_sent_before_the_first_is_waited_for(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, pages=6, batch_size=2)
    rehearsal.script("anthropic", Script(never_ends=True))
    process = start_run(archive)
    try:
        wait_for_batches(rehearsal, 3)
        rehearsal.finish("anthropic")
        told, _ = process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert "3 page batches wait for anthropic: msgbatch_" in told
    assert set(rehearsal.counts("anthropic")["requests"].values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_is_taken_up_by_the_next_one(
    tmp_path: Path, rehearsal: Rehearsal, end: signal.Signals
) -> None:
    archive = make_cloud_archive(tmp_path, pages=4)
    rehearsal.script("anthropic", Script(never_ends=True))
    process = start_run(archive)
    try:
        wait_for_batches(rehearsal, 1)
        time.sleep(2)
        process.send_signal(end)
        process.communicate(timeout=60)
    finally:
        process.kill()
    rehearsal.finish("anthropic")
    told = recipes(archive, "run", "letters", "--no-dagster")
    assert told.returncode == 0, told.stderr
    counts = rehearsal.counts("anthropic")
    assert len(counts["batches"]) == 1
    assert set(counts["requests"].values()) == {1}


@pytest.mark.slow
def test_now_asks_by_plain_calls(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = make_cloud_archive(tmp_path, pages=3)
    told = recipes(archive, "run", "letters", "--now", "--no-dagster")
    assert told.returncode == 0, told.stderr
    counts = rehearsal.counts("anthropic")
    assert (counts["plain"], counts["batches"]) == (3, [])
    spend = json.loads(recipes(archive, "spend", "--json").stdout)
    assert [row["price"] for row in spend["rows"]] == ["plain"]


@pytest.mark.slow
def test_a_place_without_credit_is_told_paused_and_resumed(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, pages=3)
    rehearsal.script("anthropic", Script(refuse_create="credit"))
    told = recipes(archive, "run", "letters", "--no-dagster")
    assert told.returncode != 0
    assert "credit" in told.stderr + told.stdout
    assert "recipes resume anthropic" in told.stderr + told.stdout
    assert "Traceback" not in told.stderr
    assert "anthropic is paused" in recipes(archive, "tasks").stdout
    rehearsal.script("anthropic", Script())
    assert "takes work again" in recipes(archive, "resume", "anthropic").stdout
    assert recipes(archive, "run", "letters", "--no-dagster").returncode == 0


@pytest.mark.slow
def test_the_doctor_says_whether_the_provider_takes_the_key(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_cloud_archive(tmp_path, pages=1)
    assert "place anthropic: it answers and takes the key" in recipes(archive, "doctor").stdout
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-bad-key")
    told = recipes(archive, "doctor")
    assert told.returncode == 1
    assert "WRONG  place anthropic" in told.stdout
    assert "a-bad-key" not in told.stdout + told.stderr

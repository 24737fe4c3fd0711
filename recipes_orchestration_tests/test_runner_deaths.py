"""Workers and runners that die or hang: each page comes to its end exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.task_folder import OUT, OUTCOME, RESULTS

from .task_folders import AREA, SIZE, TaskFolder, make_task, values_of

FATAL = {"exit.png": "exit code 5", "segv.png": "signal 11"}


@pytest.mark.parametrize("page", list(FATAL))
def test_a_page_that_kills_the_worker_fails_and_the_rest_goes_on(tmp_path: Path, page: str):
    pages = ["1.png", page, "3.png"]
    task = make_task(tmp_path, pages)
    task.run()
    expected = values_of(pages)
    expected[page, "size"] = "died"
    del expected[page, "area"]
    assert task.results() == expected
    [failed] = [each for each in task.entries() if each.failed]
    assert FATAL[page] in failed.words
    assert task.outcome()["restarts"] == 1
    # Each page was tried once, and each step's model loaded once a worker.
    assert [line[1] for line in task.seen() if line[0] == "size"] == pages
    assert [step["model_loads"] for step in task.outcome()["steps"]] == [2, 1]


def test_a_page_that_takes_too_long_is_ended_and_the_rest_goes_on(tmp_path: Path):
    pages = ["1.png", "hang.png", "3.png"]
    task = make_task(tmp_path, pages, page_timeout=1.5)
    task.run()
    assert task.results()["hang.png", "size"] == "timeout"
    assert task.results()["3.png", "area"] == {"area": 84}
    [failed] = [each for each in task.entries() if each.failed]
    assert failed.words == "The page took longer than 1.5 s (limit page_timeout)."
    assert 1.5 <= failed.seconds < 30


def test_of_several_pages_at_once_the_one_that_kills_is_found(tmp_path: Path):
    pages = [*[f"{n}.png" for n in range(5)], "exit.png", "7.png", "8.png", "9.png"]
    task = make_task(tmp_path, pages, steps=[Step("wide", "own_steps:wide", "1")])
    task.run()
    results = task.results()
    assert results.pop(("exit.png", "wide")) == "died"
    assert len(results) == 8
    assert all(isinstance(value, dict) for value in results.values())
    assert task.outcome()["restarts"] == 2


@pytest.mark.slow
def test_a_machine_that_kills_every_page_is_given_up(tmp_path: Path):
    pages = [f"exit{n}.png" for n in range(30)]
    task = make_task(tmp_path, pages, steps=[SIZE])
    words = task.run(3)
    assert "20 pages one after another ended the worker" in words
    outcome = task.outcome()
    assert outcome["complete"] is False
    assert outcome["failure"] in words
    assert [outcome["steps"][0][name] for name in ("failed", "left")] == [20, 10]


def test_a_model_that_kills_the_worker_is_no_pages_fault(tmp_path: Path):
    task = make_task(
        tmp_path, ["1.png"], steps=[replace(SIZE, params={"name": "one", "die_loading": True})]
    )
    words = task.run(3)
    assert "ended 3 times while it loaded the model of 'size'" in words
    assert "exit code 9" in words
    assert task.results() == {}
    assert len(task.seen()) == 3


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def slow_task(root: Path, count: int) -> tuple[TaskFolder, list[str]]:
    pages = [f"{n}.png" for n in range(count)]
    steps = [replace(each, params={**each.params, "sleep": 0.01}) for each in (SIZE, AREA)]
    return make_task(root, pages, steps=steps), pages


@pytest.mark.slow
def test_a_runner_killed_at_any_moment_goes_on_when_it_is_run_again(tmp_path: Path):
    """Killed with its worker, alone, or with a line half-written, until it comes to its end."""
    chance = random.Random(20261130)
    task, pages = slow_task(tmp_path, 300)
    kills = 0
    while kills < 40:
        with task.start() as runner:
            with suppress(subprocess.TimeoutExpired):
                runner.communicate(timeout=chance.uniform(0.5, 2.0))
            if runner.returncode == 0:
                break
            victims = [runner.pid]
            if chance.random() < 0.5:
                victims += children(runner.pid)
            for each in victims:
                kill(each)
            runner.communicate()
        kills += 1
        if (task.path / OUT / OUTCOME).exists():  # killed when all was done
            assert task.outcome()["complete"]
            break
        path = task.path / OUT / RESULTS
        if path.exists() and chance.random() < 0.3:
            with path.open("r+b") as stream:
                stream.truncate(max(0, path.stat().st_size - chance.randrange(60)))
    task.run()
    assert kills >= 3
    assert task.results() == values_of(pages)
    assert task.outcome()["complete"]


@pytest.mark.slow
def test_a_worker_killed_at_any_moment_costs_at_most_the_page_it_was_at(tmp_path: Path):
    chance = random.Random(4)
    task, pages = slow_task(tmp_path, 150)
    kills = 0
    with task.start() as runner:
        while runner.poll() is None:
            time.sleep(chance.uniform(0.3, 1.2))
            for each in children(runner.pid):
                kill(each)
                kills += 1
        _, errors = runner.communicate()
    results = task.results()
    died = [page for (page, _), value in results.items() if value == "died"]
    expected = values_of(pages)
    if runner.returncode == 0:
        assert task.outcome()["complete"]
        for page in pages:
            assert (page, "size") in results
            assert ((page, "area") in results) == (results[page, "size"] != "died")
    else:  # it was killed too often before a page was begun
        assert b"while it" in errors
    assert len(died) <= kills
    for key, value in results.items():
        assert value in ("died", expected[key])

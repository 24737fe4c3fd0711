from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.ledger.pages import FoundPage

from . import ledger_rivals as rivals


def killed(work: Callable[..., None], *arguments: Any) -> bool:
    """Runs the work in a process of its own; whether that was killed before it was through."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@pytest.mark.slow
def test_eight_processes_open_a_fresh_ledger_at_once(ledger_url: str) -> None:
    answers = rivals.race(8, rivals.open_and_write, ledger_url)
    assert all(isinstance(answer, int) for answer in answers), answers
    assert max(answers) == 8


@pytest.mark.slow
def test_of_rivals_for_overlapping_keys_exactly_one_wins(ledger: Ledger, ledger_url: str) -> None:
    answers = rivals.race(4, rivals.claim, ledger_url, 15)
    assert [sum(turn) for turn in zip(*answers, strict=True)] == [1] * 15
    tasks = ledger.tasks.open()
    assert len(tasks) == 15
    for task in tasks:
        number = task.owner.removeprefix("rival ")
        keys = [*(f"{task.attempt}-{number}-{key}" for key in range(50)), f"{task.attempt}-common"]
        assert ledger.tasks.claimed(keys) == dict.fromkeys(keys, task.id)
    losers = [f"{turn}-{n}-0" for turn in range(15) for n in range(4) if not answers[n][turn]]
    assert ledger.tasks.claimed(losers) == {}


@pytest.mark.slow
def test_of_rivals_for_a_name_exactly_one_wins(ledger: Ledger, ledger_url: str) -> None:
    answers = rivals.race(4, rivals.claim_a_name, ledger_url, 15)
    assert [sum(turn) for turn in zip(*answers, strict=True)] == [1] * 15
    assert len(ledger.tasks.open()) == 15


@pytest.mark.slow
def test_of_thieves_exactly_one_gets_the_task(ledger: Ledger, ledger_url: str) -> None:
    tasks: list[tuple[str, datetime | None]] = []
    for number in range(15):
        task = ledger.tasks.prepare(
            f"n{number}", "r", "s", "src", "b", "local", 1, {}, [], [], "a dead process"
        )
        assert task is not None
        tasks.append((task.id, task.heartbeat_at))
    answers = rivals.race(4, rivals.steal, ledger_url, tasks)
    assert [sum(turn) for turn in zip(*answers, strict=True)] == [1] * 15


@pytest.mark.slow
def test_discoveries_at_once_cut_each_page_once(ledger: Ledger, ledger_url: str) -> None:
    answers = rivals.race(4, rivals.discover, ledger_url)
    assert sorted(map(len, answers)) == [0, 0, 0, 3]
    assert [batch.pages for batch in ledger.pages.batches("src")] == [100, 100, 100]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["record", "prepare", "landed"])
def test_a_process_killed_within_a_call_leaves_all_of_it_or_nothing(
    ledger: Ledger, ledger_url: str, method: str
) -> None:
    old = [FoundPage("a/old", "a/old", None, "x", 1, "1")]
    ledger.pages.record("src", "a", upsert=old, gone=[], new_batches=[(1, ["a/old"])])
    task = ledger.tasks.prepare("old", "r", "s", "src", "b", "local", 1, {}, [], ["k0"], "me")
    assert task is not None

    def seen() -> object:
        return (
            list(ledger.pages.iter_batches("src")),
            ledger.pages.rows_of_folder("src", "a"),
            [open_task.name for open_task in ledger.tasks.open()],
            sorted(ledger.tasks.claimed(["k0", "k1", "k2"])),
        )

    before = seen()
    statements = 0
    while killed(rivals.die_after_statements, ledger_url, statements, method):
        assert seen() == before
        statements += 1
    assert statements >= 3
    assert seen() != before


@pytest.mark.slow
def test_a_process_killed_while_migrating_leaves_nothing(ledger_url: str) -> None:
    for statements in (1, 4, 9):
        assert killed(rivals.migrate_and_die, ledger_url, statements)
    with open_ledger(ledger_url) as ledger:
        assert ledger.pages.batches("src") == []

"""What the processes do that race for the ledger; started by `test_ledger_processes.py`.

Each waits at a barrier first, so that all of them ask at the same moment.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from datetime import datetime
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.ledger.pages import FoundPage

Answer = tuple[int, Any]


def race(count: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What `work(number, wait, *arguments)` gave in each of several fresh processes."""
    spawn = multiprocessing.get_context("spawn")
    barrier, answers = spawn.Barrier(count), spawn.Queue()
    processes = [
        spawn.Process(target=_run, args=(number, barrier, answers, work, arguments))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    try:
        gathered: list[Answer] = [answers.get(timeout=120) for _ in processes]
    finally:
        for process in processes:
            process.join(10)
            process.kill()
    return [answer for _, answer in sorted(gathered)]


def _run(
    number: int,
    barrier: Barrier,
    answers: Queue[Answer],
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    try:
        answer = work(number, lambda: barrier.wait(60), *arguments)
    except Exception as error:  # noqa: BLE001 - the test shows whatever went wrong over here
        answer = f"{type(error).__name__}: {error}"
    answers.put((number, answer))


def open_and_write(number: int, wait: Callable[[], object], url: str) -> int:
    """Opens a ledger that nobody has opened yet, and writes into it at once."""
    wait()
    with open_ledger(url) as ledger:
        ledger.holds.failed("r", "s", "src", "b/0001", f"p{number}", "k", "why", "words", True)
        return len(ledger.holds.held())


def claim(number: int, wait: Callable[[], object], url: str, rounds: int) -> list[bool]:
    """In each round asks for keys that overlap with those of every rival."""
    won: list[bool] = []
    with open_ledger(url) as ledger:
        for turn in range(rounds):
            own = [f"{turn}-{number}-{key}" for key in range(50)]
            wait()
            task = ledger.tasks.prepare(
                f"task {turn} of {number}", "r", "s", "src", "b/0001", "local", turn,
                {}, [], [*own, f"{turn}-common"], f"rival {number}",
            )  # fmt: skip
            won.append(task is not None)
    return won


def claim_a_name(number: int, wait: Callable[[], object], url: str, rounds: int) -> list[bool]:
    """In each round asks for the task of the same name, with other keys than the rivals."""
    won: list[bool] = []
    with open_ledger(url) as ledger:
        for turn in range(rounds):
            wait()
            task = ledger.tasks.prepare(
                f"task {turn}", "r", "s", "src", "b/0001", "local", turn,
                {}, [], [f"{turn}-{number}"], f"rival {number}",
            )  # fmt: skip
            won.append(task is not None)
    return won


def steal(
    number: int, wait: Callable[[], object], url: str, tasks: list[tuple[str, datetime]]
) -> list[bool]:
    """Asks for each task at the same moment as the rivals."""
    won: list[bool] = []
    with open_ledger(url) as ledger:
        for task_id, heartbeat in tasks:
            wait()
            won.append(ledger.tasks.steal(task_id, f"rival {number}", heartbeat))
    return won


def discover(number: int, wait: Callable[[], object], url: str) -> list[str]:
    """Records the same three batches as the rivals."""
    ids = [f"a/{page:04}" for page in range(300)]
    found = [FoundPage(page_id, page_id, None, page_id, 1, "1") for page_id in ids]
    plan = [(batch + 1, ids[batch * 100 : batch * 100 + 100]) for batch in range(3)]
    with open_ledger(url) as ledger:
        wait()
        return ledger.pages.record("src", "a", upsert=found, gone=[], new_batches=plan)


def die_after_statements(url: str, statements: int, method: str) -> None:
    """Calls a method of the ledger and is killed before the given statement of it."""
    ledger = open_ledger(url)
    left = statements

    def count_down(*_: object) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    engine = ledger._database.engine
    event.listen(engine, "before_cursor_execute", count_down)
    event.listen(engine, "commit", count_down)
    CALLS[method](ledger)


def _record(ledger: Any) -> None:
    found = [FoundPage(f"a/{n}", f"a/{n}", None, "x", 1, "1") for n in range(30)]
    ids = [page.page_id for page in found]
    ledger.pages.record(
        "src", "a", upsert=found, gone=["a/old"], new_batches=[(2, ids[:10]), (3, ids[10:])]
    )


def _prepare(ledger: Any) -> None:
    ledger.tasks.prepare("new", "r", "s", "src", "b", "local", 1, {}, [], ["k1", "k2"], "me")


def _land(ledger: Any) -> None:
    ledger.tasks.landed(ledger.tasks.by_name("old").id)


CALLS: dict[str, Callable[[Any], None]] = {
    "record": _record,
    "prepare": _prepare,
    "landed": _land,
}


def migrate_and_die(url: str, statements: int) -> None:
    """Opens a fresh ledger and is killed before the given statement that makes a table."""
    left = statements

    def count_down(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal left
        if "CREATE" in statement or "INSERT" in statement:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    event.listen(sa.Engine, "before_cursor_execute", count_down)
    open_ledger(url)

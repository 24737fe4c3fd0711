"""How long `recipes spend` takes when many rows have landed: it sums bookings, never rows.

A project whose ledger has the bookings of a million rows landed by two recipes, 100 of them a task
(the smallest batches that are sent by themselves), and a thousand open reservations. The command
runs in a process of its own, as a person starts it: with its modules compiled, which the first run
sees to and is not counted. Median of `--rounds`; exit 1 over `--bound`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.ledger.tables import bookings, reservations, task_pages, tasks

OPEN = 1000
FORMS = (
    (),
    ("--by", "recipe", "--by", "model", "--by", "day"),
    ("--by", "day", "--csv"),
    ("letters",),
    ("--json",),
)
MODELS = ("claude-sonnet-4-6", "gpt-4.1-mini", "gemini-2.5-flash")


def write_project(folder: Path) -> None:
    (folder / "recipes").mkdir(parents=True)
    (folder / "pages").mkdir()
    project = {
        "name": "spend",
        "sources": {"letters": {"root": "pages"}},
        "spend": {"project": 1_000_000, "month": 500_000},
    }
    (folder / "project.yaml").write_text(json.dumps(project))
    step = {"name": "text", "run": "text"}
    for name in ("letters", "maps"):
        recipe = {"recipe": name, "source": "letters", "spend": 900_000, "steps": [step]}
        (folder / "recipes" / f"{name}.yaml").write_text(json.dumps(recipe))


def task(number: int, at: datetime, state: str) -> dict[str, Any]:
    return {
        "id": f"{number:032x}",
        "name": f"read-{number:032x}",
        "recipe": "letters" if number % 2 else "maps",
        "stage": "read",
        "source": "letters",
        "batch": f"f{number}/0001",
        "place": "anthropic",
        "state": state,
        "attempt": 1,
        "fingerprints": {"read": "0" * 32},
        "owner": "",
        "created_at": at,
    }


def booking(row: dict[str, Any], number: int, at: datetime) -> dict[str, Any]:
    return {
        "task_id": row["id"],
        **{name: row[name] for name in ("recipe", "batch", "place")},
        "step": "read",
        "model": MODELS[number % 3],
        "mode": "batch",
        "basis": "batch",
        "landed_usd": Decimal("0.123456789"),
        "wasted_usd": Decimal("0.001"),
        "saved_usd": Decimal("0.124456789"),
        "tokens_in": 150_000,
        "tokens_out": 40_000,
        "tokens_cached": 0,
        "lines": {"landed": 100},
        "booked_at": at,
    }


def insert_tasks(connection: sa.Connection, made: list[dict[str, Any]]) -> None:
    connection.execute(sa.insert(tasks), made)
    pages = [{"task_id": each["id"], "pages": []} for each in made]
    connection.execute(sa.insert(task_pages), pages)


def fill(url: str, rows: int) -> None:
    """Two years of tasks."""
    start = datetime.now(UTC) - timedelta(days=700)
    with open_ledger(url):
        pass
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for first in range(0, rows // 100, 1000):
            numbers = range(first, min(first + 1000, rows // 100))
            ats = {number: start + timedelta(minutes=number * 90) for number in numbers}
            made = [task(number, ats[number], "landed") for number in numbers]
            insert_tasks(connection, made)
            booked = [booking(row, n, ats[n]) for row, n in zip(made, numbers, strict=True)]
            connection.execute(sa.insert(bookings), booked)
        numbers = range(10_000_000, 10_000_000 + OPEN)
        made = [task(number, start, "open") for number in numbers]
        insert_tasks(connection, made)
        names = ("recipe", "batch", "place")
        held = [
            {
                "task_id": row["id"],
                **{name: row[name] for name in names},
                "step": "read",
                "model": MODELS[0],
                "usd": Decimal("0.5"),
                "reserved_at": start,
            }
            for row in made
        ]
        connection.execute(sa.insert(reservations), held)
    engine.dispose()


def environment(folder: Path) -> dict[str, str]:
    """Where compiled modules may be kept, whatever the shell says."""
    mine = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**mine, "RECIPES_LEDGER_URL": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def seconds_of(folder: Path, *more: str) -> tuple[float, float]:
    """Of the clock, and of the processor."""
    command = [sys.executable, "-m", "recipes_orchestration.cli", "spend", *more]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*command, "--project", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment(folder),
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bound", type=float, default=3.0)
    given = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_project(folder)
        (folder / ".recipes").mkdir()
        fill(f"sqlite:///{folder}/.recipes/ledger.db", given.rows)
        seconds_of(folder)
        for more in FORMS:
            took = [seconds_of(folder, *more) for _ in range(given.rounds)]
            median = statistics.median(seconds for seconds, _ in took)
            cpu = statistics.median(seconds for _, seconds in took)
            worst = max(worst, median)
            print(f"recipes spend {' '.join(more)}: {median:.2f} s, of the processor {cpu:.2f} s")
    load = os.getloadavg()[0]
    words = f"{given.rows:,} landed rows: {worst:.2f} s, bound {given.bound:.0f} s"
    print(f"{words}, at a load of {load:.1f} on {os.cpu_count()} processors")
    sys.exit(worst > given.bound)


if __name__ == "__main__":
    main()

"""A step that becomes dearer or slower is told of, once there is enough to compare with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from recipes_orchestration.engine.causes import find_causes
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.ledger.bookings import Booking
from recipes_orchestration.ledger.tasks import TaskRow
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import CloudArchive, make_cloud_archive, run_all
from .test_alerts import send

pytestmark = pytest.mark.usefixtures("restored_path")

CLUSTER = """\
name: test
sources: {letters: {root: pages}}
places: {cluster: {kind: slurm, scratch: /tmp/none, runner: recipes-runner}}
"""
RECIPE = """\
recipe: letters
source: letters
steps:
  - {{name: read, run: "counting_steps:size", place: {place}}}
"""


def book(engine: Engine, number: int, usd: str, lines: int, days: float) -> None:
    bill = Booking(
        *(send(engine, f"a/{number:04d}"), "letters", "read", f"a/{number:04d}", "anthropic"),
        model="m",
        mode="batch",
        basis="batch",
        landed_usd=Decimal(usd),
        wasted_usd=Decimal(0),
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        lines={"landed": lines},
        booked_at=datetime.now(UTC) - timedelta(days=days),
    )
    assert engine.ledger.bookings.book(bill)


def words_of(engine: Engine) -> list[str]:
    return [each.words for each in find_causes(engine)]


def test_a_batch_that_costs_more_a_line_than_those_before(tmp_path: Path) -> None:
    with make_cloud_archive(tmp_path, pages=1).engine() as engine:
        for number in (1, 2, 3):
            book(engine, number, "1", 100, days=2 + number)
        book(engine, 4, "5.7", 500, days=0)  # within 15 %
        assert words_of(engine) == []
        book(engine, 5, "6", 500, days=0)
        assert words_of(engine) == [
            "A task of letters/read (m, batch a/0005) cost $6.00; by the 3 before $5.00 was to be "
            "expected. See: recipes spend letters"
        ]


def test_two_bills_are_too_few_to_compare_with(tmp_path: Path) -> None:
    with make_cloud_archive(tmp_path, pages=1).engine() as engine:
        for number in (1, 2):
            book(engine, number, "1", 100, days=3)
        book(engine, 3, "9", 100, days=0)
        assert words_of(engine) == []


def report(engine: Engine, number: int, seconds: float, place: str) -> None:
    task: TaskRow | None = engine.ledger.tasks.prepare(
        *(f"read-{number}", "letters", "read", "letters", "a/0001", place, number),
        fingerprints={"read": "f"},
        pages=[],
        claims=[],
        owner="nobody/1",
    )
    assert task is not None
    engine.ledger.tasks.sent(task.id, str(number))
    facts = {"steps": [{"name": "read", "landed": 9, "seconds": {"median": seconds}}]}
    engine.ledger.tasks.reported(task.id, facts)
    engine.ledger.tasks.ended(task.id)
    engine.ledger.tasks.landed(task.id)


def archive_at(place: str, folder: Path) -> CloudArchive:
    archive = make_cloud_archive(folder, pages=1)
    if place != "anthropic":
        (archive.folder / "project.yaml").write_text(CLUSTER)
        (archive.folder / "recipes" / "letters.yaml").write_text(RECIPE.format(place=place))
    return archive


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("cluster", "at cluster"),
        ("local", "on this machine"),
        ("anthropic", "in plain calls at anthropic"),
    ],
)
def test_a_step_whose_pages_take_longer_and_longer(tmp_path: Path, place: str, where: str) -> None:
    with archive_at(place, tmp_path).engine() as engine:
        for number in range(5):
            report(engine, number, 2.0, place)
        for number in range(5, 8):
            assert words_of(engine) == []
            report(engine, number, 3.5, place)
        assert words_of(engine) == [
            f"letters/read takes 3.5 seconds a page {where} over its last 3 tasks, and took 2.0 "
            "before. See: recipes tasks letters --all"
        ]


def test_milliseconds_more_are_nothing_to_tell(tmp_path: Path) -> None:
    with archive_at("local", tmp_path).engine() as engine:
        for number in range(10):
            report(engine, number, 0.01 if number < 7 else 0.2, "local")
        assert words_of(engine) == []


def test_a_batch_that_waits_longer_at_its_provider_makes_no_step_slower(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, pages=1)
    with archive.engine() as engine:
        run_all(engine)
        assert engine.ledger.tasks.last_reports("letters", "read", "anthropic") == []

"""`recipes spend` and the sums behind it."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recipes_orchestration.cli import app
from recipes_orchestration.ledger.bookings import Booking
from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.ledger.reservations import Purse, Reservation, reserve
from recipes_orchestration.ledger.task_rows import NewTask, TaskRow

AT = datetime(2026, 11, 5, 23, 30, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path, ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a cap, whose ledger has one booked task and one that is open."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pages").mkdir()
    file = {"name": "t", "sources": {"letters": {"root": "pages"}}, "spend": {"project": 10}}
    (tmp_path / "project.yaml").write_text(json.dumps(file))
    recipe = {"recipe": "letters", "source": "letters", "steps": [{"name": "t", "run": "text"}]}
    (tmp_path / "recipes" / "letters.yaml").write_text(json.dumps(recipe))
    monkeypatch.setenv("RECIPES_LEDGER_URL", ledger_url)
    with open_ledger(ledger_url) as ledger:
        prepare(ledger, "one", Decimal(3))
        prepare(ledger, "two", Decimal("0.5"))
        ledger.bookings.book(booking(task(ledger, "one"), "1.25", "0.25"))
        ledger.tasks.landed(task(ledger, "one"))
    return tmp_path


def prepare(ledger: Ledger, name: str, usd: Decimal) -> None:
    def within(connection: object, rows: object) -> None:
        (row,) = rows  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        assert isinstance(row, TaskRow)
        held = Reservation(row.id, "letters", "read", "a/0001", "openai", "gpt", usd, AT)
        reserve(connection, [held])  # pyright: ignore[reportArgumentType]

    made = ledger.tasks.prepare_all(
        [NewTask(name, {"read": "f"}, [], [name])],
        recipe="letters",
        stage="read",
        source="letters",
        batch="a/0001",
        place="openai",
        attempt=1,
        owner="o",
        within=within,
    )
    assert made


def task(ledger: Ledger, name: str) -> str:
    row = ledger.tasks.by_name(name)
    assert row is not None
    return row.id


def booking(task_id: str, landed: str, wasted: str) -> Booking:
    return Booking(
        task_id=task_id,
        recipe="letters",
        step="read",
        batch="a/0001",
        place="openai",
        model="gpt",
        mode="batch",
        basis="batch",
        landed_usd=Decimal(landed),
        wasted_usd=Decimal(wasted),
        tokens_in=10,
        tokens_out=20,
        tokens_cached=0,
        lines={"landed": 3},
        booked_at=AT,
        saved_usd=Decimal("1.5"),
    )


def spend(project: Path, *more: str) -> str:
    done = CliRunner().invoke(app, ["spend", "--project", str(project), *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_is_reserved_booked_wasted_and_saved_is_summed_up(project: Path) -> None:
    said = json.loads(spend(project, "--json"))
    sums = {name: Decimal(value) for name, value in said.items() if name.endswith("_usd")}
    assert sums == {
        "reserved_usd": Decimal("0.5"),
        "booked_usd": Decimal("1.5"),
        "landed_usd": Decimal("1.25"),
        "wasted_usd": Decimal("0.25"),
        "saved_usd": Decimal("1.5"),
    }


def test_the_caps_are_told_with_what_is_left_of_them(project: Path) -> None:
    words = "Of the $10.00 that the project may cost $1.50 are paid, $0.50 reserved and $8.00 left."
    assert words in spend(project)


def test_the_sums_are_told_by_what_is_asked_for(project: Path) -> None:
    rows = json.loads(spend(project, "--json", "--by", "model", "--by", "day"))["rows"]
    assert [(row["model"], row["day"], row["tasks"]) for row in rows] == [("gpt", "2026-11-05", 1)]


def test_csv_has_every_sum_in_full(project: Path) -> None:
    (row, held) = csv.DictReader(io.StringIO(spend(project, "--csv")))
    assert (row["recipe"], row["price"], Decimal(row["booked_usd"])) == (
        *("letters", "batch"),
        Decimal("1.5"),
    )
    assert (held["price"], Decimal(held["reserved_usd"])) == ("reserved", Decimal("0.5"))


def test_an_unknown_key_is_refused_with_those_that_there_are(project: Path) -> None:
    done = CliRunner().invoke(app, ["spend", "--project", str(project), "--by", "week"])
    assert done.exit_code != 0


def test_what_a_step_of_a_batch_cost_is_summed_up(project: Path, ledger_url: str) -> None:
    assert project
    with open_ledger(ledger_url) as ledger:
        spent = ledger.spend.of_batch("letters", "read", "a/0001")
        assert ledger.spend.of_batch("letters", "read", "a/0002") is None
    assert spent is not None
    assert (spent.tasks, spent.tokens_in, spent.tokens_out) == (1, 10, 20)
    assert (spent.booked_usd, spent.wasted_usd) == (Decimal("1.5"), Decimal("0.25"))
    assert (spent.saved_usd, spent.reserved_usd) == (Decimal("1.5"), Decimal("0.5"))


def test_more_is_reserved_for_a_live_call_and_let_go(project: Path, ledger_url: str) -> None:
    assert project
    with open_ledger(ledger_url) as ledger:
        two = task(ledger, "two")
        more = Reservation(two, "letters", "read", "a/0001", "openai", "gpt", Decimal("0.25"), AT)

        def refuse(_: object) -> None:
            raise RuntimeError

        ledger.reservations.add(more, lambda _: None)
        with pytest.raises(RuntimeError):
            ledger.reservations.add(more, refuse)
        assert ledger.reservations.committed(Purse()).reserved == Decimal("0.75")
        ledger.reservations.lower(two, Decimal("0.2"))
        assert ledger.reservations.committed(Purse()).reserved == Decimal("0.55")


def test_a_reservation_shrinks_by_what_is_booked_and_ends_with_its_task(
    project: Path, ledger_url: str
) -> None:
    assert project
    with open_ledger(ledger_url) as ledger:
        two = task(ledger, "two")
        assert ledger.bookings.book(booking(two, "0.1", "0.1"), final=False)
        assert ledger.reservations.committed(Purse()).reserved == Decimal("0.3")
        assert ledger.bookings.book(booking(two, "0.3", "0.1"), final=False)
        assert not ledger.bookings.book(booking(two, "0.3", "0.1"), final=False)
        held = ledger.reservations.committed(Purse())
        assert (held.reserved, held.booked) == (Decimal("0.1"), Decimal("1.9"))
        ledger.tasks.dropped(two, "given up")
        assert ledger.reservations.all() == []
        assert ledger.reservations.committed(Purse()).booked == Decimal("1.9")

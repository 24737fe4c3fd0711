from __future__ import annotations

from dataclasses import replace

from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.holds import Failure

ONE = Failure("letters", "read", "archive", "a/0001", "a/1", "k1", "unreadable", "cut off", False)


def test_failures_count_until_the_page_is_held(ledger: Ledger) -> None:
    first = ledger.holds.failed(
        "letters", "read", "archive", "a/0001", "a/1", "k", "why", "w1", False
    )
    assert (first.attempts, first.held) == (1, False)
    assert ledger.holds.held() == []
    second = ledger.holds.failed(
        "letters", "read", "archive", "a/0001", "a/1", "k", "why", "w2", True
    )
    assert (second.attempts, second.held, second.words) == (2, True, "w2")
    assert second.since == first.since < second.updated_at
    assert ledger.holds.held() == [second]


def test_a_held_page_stays_held_when_it_fails_once_more(ledger: Ledger) -> None:
    ledger.holds.failed_many([replace(ONE, hold=True), ONE])
    (row,) = ledger.holds.failed_many([ONE])
    assert (row.attempts, row.held) == (3, True)


def test_many_failures_are_answered_in_their_order(ledger: Ledger) -> None:
    failures = [replace(ONE, page_id=f"a/{n}", key=f"k{n}", words=f"w{n}") for n in range(2000)]
    failures.reverse()
    rows = ledger.holds.failed_many(failures)
    assert [row.words for row in rows] == [failure.words for failure in failures]
    assert ledger.holds.failed_many([]) == []


def test_equal_pages_with_one_key_fail_apart(ledger: Ledger) -> None:
    ledger.holds.failed_many([ONE, replace(ONE, page_id="a/2", hold=True)])
    assert [row.page_id for row in ledger.holds.held()] == ["a/2"]


def test_held_pages_are_found_by_what_is_asked(ledger: Ledger) -> None:
    other = replace(ONE, recipe="other", step="lines", source="s2", batch="b/0001", page_id="b/1")
    ledger.holds.failed_many([replace(row, hold=True) for row in (ONE, other)])
    for asked in ("recipe", "step", "source", "batch", "page_id"):
        assert [
            getattr(row, asked) for row in ledger.holds.held(**{asked: getattr(other, asked)})
        ] == [getattr(other, asked)]
    assert len(ledger.holds.held()) == 2


def test_attempts_of_a_batch_hold_what_failed_and_what_waits(ledger: Ledger) -> None:
    two = replace(ONE, page_id="a/2", key="k2", hold=True)
    ledger.holds.failed_many([ONE, two, replace(ONE, batch="a/0002", page_id="a/3")])
    attempts = ledger.holds.attempts_of("letters", "archive", "a/0001")
    assert {key: row.held for key, row in attempts.items()} == {
        ("a/1", "read", "k1"): False,
        ("a/2", "read", "k2"): True,
    }


def test_clearing_forgets_holds_and_attempts(ledger: Ledger) -> None:
    rows = [replace(ONE, page_id=f"a/{n}", key=f"k{n}", hold=n > 1) for n in (1, 2, 3)]
    ledger.holds.failed_many([*rows, replace(ONE, recipe="other", hold=True)])
    assert ledger.holds.clear("letters", page_id="a/3") == 1
    assert ledger.holds.clear("letters", step="lines") == 0
    assert ledger.holds.clear("letters") == 2
    assert [row.recipe for row in ledger.holds.held()] == ["other"]
    assert ledger.holds.failed_many([ONE])[0].attempts == 1


def test_what_has_landed_has_not_failed(ledger: Ledger) -> None:
    ledger.holds.failed_many([replace(ONE, hold=True), replace(ONE, page_id="a/2", key="k2")])
    ledger.holds.landed_since(["k1", *(f"other{n}" for n in range(3000))])
    assert [key for _, _, key in ledger.holds.attempts_of("letters", "archive", "a/0001")] == ["k2"]
    ledger.holds.landed_since([])

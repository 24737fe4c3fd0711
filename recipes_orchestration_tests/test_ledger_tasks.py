from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recipes_orchestration.errors import LedgerError
from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.pages import FoundPage
from recipes_orchestration.ledger.tasks import TaskRow, TaskState


def prepare(ledger: Ledger, name: str, *claims: str, **changes: object) -> TaskRow | None:
    values: dict[str, object] = {
        "name": name,
        "recipe": "letters",
        "stage": "lines_to_embed",
        "source": "archive",
        "batch": "a/0001",
        "place": "local",
        "attempt": 1,
        "fingerprints": {"lines": "f1"},
        "pages": [("a/1", "sha1"), ("a/2", "sha2")],
        "claims": claims,
        "owner": "me",
    }
    return ledger.tasks.prepare(**{**values, **changes})  # pyright: ignore[reportArgumentType]


def prepared(ledger: Ledger, name: str, *claims: str, **changes: object) -> TaskRow:
    task = prepare(ledger, name, *claims, **changes)
    assert task is not None
    return task


def state(ledger: Ledger, task: TaskRow) -> TaskState:
    now = ledger.tasks.get(task.id)
    assert now is not None
    return now.state


def test_a_prepared_task_reads_back_as_it_was_given(ledger: Ledger) -> None:
    before = datetime.now(UTC)
    task = prepared(ledger, "n", "k1")
    assert ledger.tasks.get(task.id) == task
    assert ledger.tasks.by_name("n") == task
    assert task.state is TaskState.preparing
    assert task.pages == (("a/1", "sha1"), ("a/2", "sha2"))
    assert task.created_at.tzinfo is UTC
    assert before <= task.created_at <= datetime.now(UTC)


def test_a_task_that_is_not_there_is_none(ledger: Ledger) -> None:
    assert ledger.tasks.get("nothing") is None
    assert ledger.tasks.by_name("nothing") is None


def test_a_name_is_given_once_whatever_became_of_its_task(ledger: Ledger) -> None:
    task = prepared(ledger, "n", "k1")
    ledger.tasks.sent(task.id, "remote")
    ledger.tasks.dropped(task.id, "lost")
    assert prepare(ledger, "n", "k2") is None
    assert ledger.tasks.claimed(["k1", "k2"]) == {}


def test_a_task_that_no_place_answered_for_is_asked_again_under_its_name(ledger: Ledger) -> None:
    task = prepared(ledger, "n", "k1")
    ledger.tasks.dropped(task.id, "never sent")
    again = prepared(ledger, "n", "k1")
    assert again.id != task.id
    assert again.created_at == task.created_at
    assert ledger.tasks.get(task.id) is None


def test_the_attempts_count_those_that_were_sent(ledger: Ledger) -> None:
    task = prepared(ledger, "n", "k1")
    assert ledger.tasks.last_attempt(task.recipe, task.stage, task.batch) == task.attempt
    ledger.tasks.dropped(task.id, "never sent")
    assert ledger.tasks.last_attempt(task.recipe, task.stage, task.batch) == 0


def test_a_claim_that_is_held_refuses_the_whole_task(ledger: Ledger) -> None:
    first = prepared(ledger, "one", "k1", "k2")
    assert prepare(ledger, "two", "k0", "k2", "k9") is None
    assert ledger.tasks.by_name("two") is None
    assert ledger.tasks.claimed(["k0", "k1", "k2", "k9"]) == {"k1": first.id, "k2": first.id}
    assert ledger.tasks.free_claims(["k0", "k1", "k2"]) == {"k0"}


def test_thousands_of_claims_are_held_and_released_whole(ledger: Ledger) -> None:
    keys = [f"{number:032x}" for number in range(2500)]
    task = prepared(ledger, "n", *keys, *keys[:3])
    assert ledger.tasks.claimed(keys) == dict.fromkeys(keys, task.id)
    ledger.tasks.landed(task.id)
    assert ledger.tasks.free_claims(keys) == set(keys)


@pytest.mark.parametrize("end", ["landed", "dropped"])
def test_claims_are_free_when_the_task_is_over(ledger: Ledger, end: str) -> None:
    task = prepared(ledger, "one", "k")
    ledger.tasks.sent(task.id, "remote")
    ledger.tasks.ended(task.id)
    assert ledger.tasks.claimed(["k"]) == {"k": task.id}
    if end == "landed":
        ledger.tasks.landed(task.id)
    else:
        ledger.tasks.dropped(task.id, "forgotten by its place")
    assert state(ledger, task) == end
    assert ledger.tasks.claimed(["k"]) == {}
    assert prepare(ledger, "two", "k") is not None


def test_a_task_goes_from_state_to_state_with_its_times(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    assert ledger.tasks.sent(task.id, "remote-1")
    assert ledger.tasks.ended(task.id, "3 pages expired")
    assert ledger.tasks.landed(task.id)
    after = ledger.tasks.get(task.id)
    assert after is not None
    assert (after.state, after.remote_id, after.message) == (
        "landed",
        "remote-1",
        "3 pages expired",
    )
    assert after.sent_at is not None
    assert after.ended_at is not None
    assert after.landed_at is not None
    assert task.created_at <= after.sent_at <= after.ended_at <= after.landed_at


def test_every_step_may_be_repeated_and_none_goes_back(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    assert ledger.tasks.sent(task.id, "r")
    assert not ledger.tasks.sent(task.id, "r")
    assert ledger.tasks.ended(task.id)
    assert not ledger.tasks.ended(task.id)
    assert not ledger.tasks.sent(task.id, "r")
    assert state(ledger, task) is TaskState.ended
    assert ledger.tasks.landed(task.id)
    assert not ledger.tasks.landed(task.id)
    assert not ledger.tasks.ended(task.id)
    assert not ledger.tasks.dropped(task.id, "too late")
    assert state(ledger, task) is TaskState.landed


def test_a_second_remote_id_is_an_error_that_names_what_to_cancel(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    ledger.tasks.sent(task.id, "first")
    with pytest.raises(LedgerError, match="cancel second there"):
        ledger.tasks.sent(task.id, "second")
    dropped = prepared(ledger, "m")
    ledger.tasks.dropped(dropped.id, "stopped")
    with pytest.raises(LedgerError, match="cancel third there"):
        ledger.tasks.sent(dropped.id, "third")


def test_moving_an_unknown_task_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no task ghost"):
        ledger.tasks.landed("ghost")


def test_open_tasks_are_found_by_what_is_asked(ledger: Ledger) -> None:
    one = prepared(ledger, "one")
    two = prepared(ledger, "two", batch="a/0002", place="slurm")
    three = prepared(ledger, "three", recipe="other", stage="read")
    over = prepared(ledger, "over")
    ledger.tasks.dropped(over.id, "x")
    ledger.tasks.sent(two.id, "r")

    def names(**asked: str) -> list[str]:
        return [task.name for task in ledger.tasks.open(**asked)]

    assert names() == ["one", "two", "three"]
    assert names(recipe="letters") == ["one", "two"]
    assert names(recipe="letters", batch="a/0001") == ["one"]
    assert names(place="slurm") == ["two"]
    assert names(stage="read") == ["three"]
    assert names(place="nowhere") == []
    assert {one.id, two.id, three.id} == {task.id for task in ledger.tasks.open()}


def test_the_last_attempt_counts_every_task_that_a_place_may_have(ledger: Ledger) -> None:
    asked = ("letters", "lines_to_embed", "a/0001")
    assert ledger.tasks.last_attempt(*asked) == 0
    for attempt in (1, 3):
        task = prepared(ledger, f"n{attempt}", attempt=attempt)
        ledger.tasks.sent(task.id, f"batch_{attempt}")
        ledger.tasks.dropped(task.id, "x")
    never_sent = prepared(ledger, "n5", attempt=5)
    ledger.tasks.dropped(never_sent.id, "x")
    prepared(ledger, "elsewhere", attempt=9, batch="a/0002")
    assert ledger.tasks.last_attempt(*asked) == 3


def test_only_the_owner_keeps_a_task_alive(ledger: Ledger) -> None:
    mine, theirs = prepared(ledger, "mine"), prepared(ledger, "theirs", owner="they")
    over = prepared(ledger, "over")
    ledger.tasks.landed(over.id)
    assert ledger.tasks.beat([mine.id, theirs.id, over.id], "me") == {mine.id}
    after = ledger.tasks.get(mine.id)
    assert after is not None
    assert after.heartbeat_at is not None
    assert mine.heartbeat_at is not None
    assert after.heartbeat_at > mine.heartbeat_at
    assert ledger.tasks.get(theirs.id) == theirs


def test_a_task_is_stolen_only_when_its_heartbeat_has_not_moved(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    assert ledger.tasks.beat([task.id], "me") == {task.id}
    assert not ledger.tasks.steal(task.id, "thief", task.heartbeat_at)
    seen = ledger.tasks.get(task.id)
    assert seen is not None
    assert ledger.tasks.steal(task.id, "thief", seen.heartbeat_at)
    assert not ledger.tasks.steal(task.id, "second thief", seen.heartbeat_at)
    assert ledger.tasks.beat([task.id], "me") == set()
    assert ledger.tasks.beat([task.id], "thief") == {task.id}


def test_a_heartbeat_from_a_fast_clock_can_be_stolen_once(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    seen = task.heartbeat_at
    for hours in (5, 6):
        ahead = datetime.now(UTC) + timedelta(hours=hours)
        assert not ledger.tasks.steal(task.id, "thief", ahead)
    assert ledger.tasks.steal(task.id, "thief", seen)
    assert not ledger.tasks.steal(task.id, "other", seen)


def test_a_task_that_is_over_cannot_be_stolen(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    ledger.tasks.landed(task.id)
    assert not ledger.tasks.steal(task.id, "thief", task.heartbeat_at)


def test_the_history_of_a_page_is_every_task_it_was_in(ledger: Ledger) -> None:
    pages = [FoundPage(f"a/{n}", f"a/{n}", None, f"sha{n}", 1, "1") for n in (1, 2)]
    ledger.pages.record("archive", "a", upsert=pages, gone=[], new_batches=[(1, ["a/1", "a/2"])])
    first = prepared(ledger, "one")
    ledger.tasks.dropped(first.id, "x")
    prepared(ledger, "two", pages=[("a/2", "sha2")])
    prepared(ledger, "three", batch="a/0002")
    prepared(ledger, "four", source="another")
    assert [task.name for task in ledger.tasks.of_page("a/1")] == ["one"]
    assert [task.name for task in ledger.tasks.of_page("a/2")] == ["one", "two"]
    assert ledger.tasks.of_page("a/2", "another") == []


def test_words_from_outside_are_kept_whatever_they_hold(ledger: Ledger) -> None:
    task = prepared(ledger, "n")
    ledger.tasks.dropped(task.id, "nul \0 half \ud800 line \u2028 " + "x" * 50_000)
    after = ledger.tasks.get(task.id)
    assert after is not None
    assert after.message is not None
    assert after.message.startswith("nul \\x00 half \\ud800 line \u2028 xxx")
    assert len(after.message) < 21_000

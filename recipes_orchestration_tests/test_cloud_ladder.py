"""What is sent again after a failure, how, and when it is not: the ladder of retries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.engine.preparing import plan_work
from recipes_orchestration.engine.stopping import land_stopped, stop_tasks
from recipes_orchestration.engine.work import task_spec
from recipes_orchestration.errors import PlaceError, ProviderError
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import PROVIDERS, advance_once, read_step, run_all, stage_named
from .cloud_landing import (
    age_task,
    cloud,
    direct,
    failures,
    land_batch,
    reasons,
    rows_of,
    send_batch,
    sizes,
    until,
)

CREDIT = "Your credit balance is too low to access the API."
ACCOUNT = {
    "anthropic": CREDIT,
    "openai": "You exceeded your current quota, please check your plan and billing details.",
    "gemini": "Your prepayment credits are depleted. Please go to your billing settings.",
    "bedrock": "Your account has a payment problem: credit is used up.",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_failed_alone_goes_as_a_smaller_batch(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider)
    direct(rehearsal, provider, error_lines=4, batches=1)
    with cloud(tmp_path, rehearsal, provider, 6, place={"batch_from": 3}).engine() as engine:
        view = run_all(engine)
        assert view.steps["read"].landed == 6
        assert sizes(rehearsal, provider) == [6, 4]
        assert rehearsal.counts(provider)["plain"] == 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_few_that_failed_go_as_plain_calls(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider)
    direct(rehearsal, provider, error_lines=2, batches=1)
    with cloud(tmp_path, rehearsal, provider, 6, place={"batch_from": 3}).engine() as engine:
        view = run_all(engine)
        assert view.steps["read"].landed == 6
        assert sizes(rehearsal, provider) == [6]
        assert rehearsal.counts(provider)["plain"] == 2


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_failed_twice_is_held_with_the_words_of_the_provider(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, error_lines=2, error_message="The picture is too blurred.")
    with cloud(tmp_path, rehearsal, provider, 5).engine() as engine:
        view = run_all(engine)
        assert view.steps["read"].landed == 3
        assert sizes(rehearsal, provider) == [5, 2]
        assert len(view.steps["read"].held) == 2
        assert all("too blurred" in held.words for held in view.steps["read"].held)


@pytest.mark.parametrize(
    "fate", ["refusal_share", "truncation_share", "empty_share", "wrong_shape_share"]
)
def test_an_answer_that_is_twice_no_result_is_held(
    tmp_path: Path, rehearsal: Rehearsal, fate: str
) -> None:
    direct(rehearsal, "openai", **{fate: 1.0})
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    steps = [read_step("openai", schema=schema)]
    with cloud(tmp_path, rehearsal, "openai", 2, steps=steps).engine() as engine:
        view = run_all(engine)
        assert len(view.steps["read"].held) == 2
        assert sizes(rehearsal, "openai") == [2, 2]
        assert {row.attempts for row in failures(engine).values()} == {2}


@pytest.mark.parametrize(
    ("way", "batches", "plain", "held"),
    [("batch", [10, 7], 0, 0), ("calls", [10], 7, 0), ("hold", [10], 0, 7)],
)
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_what_expired_goes_on_as_the_project_says(
    tmp_path: Path,
    rehearsal: Rehearsal,
    provider: str,
    way: str,
    batches: list[int],
    plain: int,
    held: int,
) -> None:
    direct(rehearsal, provider)
    direct(rehearsal, provider, expire_after=3, batches=1)
    archive = cloud(tmp_path, rehearsal, provider, 10, place={"on_expired": way})
    with archive.engine() as engine:
        view = run_all(engine)
        assert sizes(rehearsal, provider) == batches
        assert rehearsal.counts(provider)["plain"] == plain
        assert len(view.steps["read"].held) == held
        assert view.steps["read"].landed == 10 - held


@pytest.mark.parametrize(
    ("way", "batches", "plain"), [("batch", [4, 4], 0), ("calls", [4], 4), ("hold", [4], 0)]
)
def test_what_failed_as_a_batch_goes_on_as_the_project_says(
    tmp_path: Path, rehearsal: Rehearsal, way: str, batches: list[int], plain: int
) -> None:
    direct(rehearsal, "openai")
    direct(rehearsal, "openai", fail_validation=True, fail_message="A bad line.", batches=1)
    archive = cloud(tmp_path, rehearsal, "openai", 4, place={"on_expired": way})
    with archive.engine() as engine:
        view = run_all(engine)
        assert sizes(rehearsal, "openai") == batches
        assert rehearsal.counts("openai")["plain"] == plain
        assert len(view.steps["read"].held) == (4 if way == "hold" else 0)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_lines_that_blame_the_account_pause_the_place(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    words = ACCOUNT[provider]
    direct(rehearsal, provider, account_error=words)
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        send_batch(engine)
        seen = advance_once(engine)
        (pause,) = engine.ledger.pauses.all()
        assert pause.place == provider
        assert words in pause.words
        assert pause.until is None
        assert seen.waiting is not None
        assert words in seen.waiting
        assert failures(engine) == {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_resumed_place_goes_on_with_all_its_pages(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider)
    direct(rehearsal, provider, account_error=ACCOUNT[provider], batches=1)
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        with pytest.raises(PlaceError, match=f"recipes resume {provider}"):
            run_all(engine)
        engine.ledger.pauses.resume(provider)
        assert run_all(engine).steps["read"].landed == 3
        assert sizes(rehearsal, provider) == [3, 3]


def test_plain_calls_that_blame_the_account_pause_the_place(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", account_error=CREDIT)
    with cloud(tmp_path, rehearsal, "anthropic", 3).engine() as engine:
        with pytest.raises(PlaceError, match="credit balance"):
            run_all(engine, now=True)
        assert failures(engine) == {}


@pytest.mark.parametrize("refusal", ["credit", "key", "model"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refused_batch_pauses_the_place_until_a_person_resumes_it(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, refusal: str
) -> None:
    direct(rehearsal, provider)
    direct(rehearsal, provider, refuse_create=refusal, batches=1)
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        assert advance_once(engine).waiting is not None
        (pause,) = engine.ledger.pauses.all()
        assert pause.until is None
        assert engine.ledger.tasks.open() == []
        assert failures(engine) == {}


@pytest.mark.parametrize("provider", ["openai"])
def test_a_full_queue_is_waited_out(tmp_path: Path, rehearsal: Rehearsal, provider: str) -> None:
    direct(rehearsal, provider, refuse_create="enqueued_tokens")
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        assert "nqueued" in (advance_once(engine).waiting or "")
        (pause,) = engine.ledger.pauses.all()
        assert pause.until is not None
        assert pause.until > datetime.now(UTC)
        direct(rehearsal, provider)
        # The time is over.
        engine.ledger.pauses.pause(provider, pause.words, datetime.now(UTC) - timedelta(seconds=1))
        assert run_all(engine).steps["read"].landed == 3


def test_a_batch_that_failed_for_a_full_queue_is_waited_out(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "openai", fail_validation=True)  # its usual words are of the queue
    with cloud(tmp_path, rehearsal, "openai", 3).engine() as engine:
        send_batch(engine)
        land_batch(engine)
        (pause,) = engine.ledger.pauses.all()
        assert "nqueued" in pause.words
        assert pause.until is not None
        assert failures(engine) == {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_overdue_batch_is_ended_and_landed(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, never_ends=True, answered_before_cancel=2)
    with cloud(tmp_path, rehearsal, provider, 5).engine() as engine:
        task = send_batch(engine)
        land_batch(engine)
        assert rehearsal.counts(provider)["cancels"] == 0
        age_task(engine, task.id, hours=26.5)
        land_batch(engine)
        assert rehearsal.counts(provider)["cancels"] == 1
        land_batch(engine)
        assert len(rows_of(engine)) == 2
        assert reasons(engine) == {"expired": 3}
        direct(rehearsal, provider)
        assert run_all(engine).steps["read"].landed == 5
        assert sizes(rehearsal, provider) == [5, 3]


def test_a_batch_that_will_not_end_waits_for_a_person(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "openai", never_ends=True, cancel_seconds=10_000)
    with cloud(tmp_path, rehearsal, "openai", 2).engine() as engine:
        task = send_batch(engine)
        age_task(engine, task.id, hours=27)
        land_batch(engine)
        age_task(engine, task.id, hours=3)
        land_batch(engine)
        assert "recipes retry letters" in (land_batch(engine).failure or "")
        assert rehearsal.counts("openai")["creates"] == 1


def test_pending_for_a_day_and_then_expired_goes_on(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "gemini")
    direct(rehearsal, "gemini", polls=2, expire_after=0, batches=1)
    with cloud(tmp_path, rehearsal, "gemini", 3).engine() as engine:
        task = send_batch(engine)
        age_task(engine, task.id, hours=24)
        assert until(engine, lambda seen: seen.at_rest).view is not None
        assert len(rows_of(engine)) == 3
        assert sizes(rehearsal, "gemini") == [3, 3]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_forgotten_batch_waits_for_a_person_and_is_then_planned_again(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider)
    direct(rehearsal, provider, forget=("*",), batches=1)
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        task = send_batch(engine)
        # The key of another account makes every batch look forgotten.
        with pytest.raises(PlaceError, match="does not know it now"):
            run_all(engine)
        assert sizes(rehearsal, provider) == [3]
        assert engine.ledger.tasks.release("letters") == 1
        assert run_all(engine).steps["read"].landed == 3
        dropped = engine.ledger.tasks.get(task.id)
        assert dropped is not None
        assert dropped.state == "dropped"
        assert sizes(rehearsal, provider) == [3, 3]


def test_a_batch_older_than_its_results_are_kept_is_planned_again(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "openai")
    direct(rehearsal, "openai", forget=("*",), batches=1)
    with cloud(tmp_path, rehearsal, "openai", 3).engine() as engine:
        age_task(engine, send_batch(engine).id, hours=30 * 24)
        assert run_all(engine).steps["read"].landed == 3
        assert sizes(rehearsal, "openai") == [3, 3]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_results_that_cannot_be_fetched_hold_the_task(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    direct(rehearsal, provider)
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        task = send_batch(engine)
        # Whatever the way to the results is, it ends in an error of the provider.
        place = engine.place(provider)
        fetch = place._provider.results  # type: ignore[attr-defined]

        def broken(_: str) -> object:
            raise ProviderError("The results are not there.")

        place._provider.results = broken  # type: ignore[attr-defined]
        monkeypatch.setattr("recipes_orchestration.engine.adopt.FETCH_PAUSE", 0.0)
        failures_seen = [advance_once(engine).failure for _ in range(6)]
        assert failures_seen[:4] == [None] * 4
        assert all(f"{task.remote_id}" in (words or "") for words in failures_seen[4:])
        with pytest.raises(PlaceError, match="recipes retry letters"):
            run_stage(engine, stage_named(engine), "a/0001", poll_seconds=0.1)
        assert rehearsal.counts(provider)["creates"] == 1
        place._provider.results = fetch  # type: ignore[attr-defined]
        assert engine.ledger.tasks.release("letters") == 1
        assert run_all(engine).steps["read"].landed == 3
        assert rehearsal.counts(provider)["creates"] == 1


def test_results_that_cannot_be_fetched_are_not_asked_for_at_once(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    with cloud(tmp_path, rehearsal, "gemini", 2).engine() as engine:
        send_batch(engine)
        direct(rehearsal, "gemini", cut_results=100)
        fetches = [(advance_once(engine), rehearsal.counts("gemini")["results"]) for _ in range(8)]
        assert fetches[0][1] == fetches[-1][1] > 0
        assert fetches[-1][0].failure is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_that_is_not_shown_yet_is_not_sent_again(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = cloud(tmp_path, rehearsal, provider, 2, place={"settle_seconds": 60})
    direct(rehearsal, provider, forget=("*",))
    with archive.engine() as engine:
        task = send_batch(engine)
        assert advance_once(engine).open == 1
        assert sizes(rehearsal, provider) == [2]
        age_task(engine, task.id, hours=1)
        land_batch(engine)
        assert sizes(rehearsal, provider) == [2]
        (waiting,) = engine.ledger.tasks.open()
        assert "does not know it now" in (waiting.held or "")


# Bedrock's results come from S3, whose server here cuts nothing off.
@pytest.mark.parametrize("provider", [each for each in PROVIDERS if each != "bedrock"])
def test_results_that_break_off_are_fetched_again(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setattr("recipes_orchestration.engine.adopt.FETCH_PAUSE", 0.1)
    direct(rehearsal, provider, cut_results=1)
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        assert run_all(engine).steps["read"].landed == 3
        assert failures(engine) == {}
        assert rehearsal.counts(provider)["creates"] == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_stopped_batch_lands_what_it_answered_and_blames_no_page(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, never_ends=True, answered_before_cancel=2)
    with cloud(tmp_path, rehearsal, provider, 5).engine() as engine:
        task = send_batch(engine)
        assert stop_tasks(engine, [task]) == []
        assert land_stopped(engine, task.id) == (True, 2)
        assert len(rows_of(engine)) == 2
        assert failures(engine) == {}
        assert sizes(rehearsal, provider) == [5]


def test_a_third_batch_waits_for_a_slot(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    archive = cloud(tmp_path, rehearsal, "anthropic", 6, place={"max_open": 1}, batch_size=2)
    with archive.engine() as engine:
        assert advance_once(engine, batch="a/0001").open == 1
        waiting = [advance_once(engine, batch=f"a/000{number}").waiting for number in (2, 3)]
        assert all("1 batches are open (max_open)" in (words or "") for words in waiting)
        assert sizes(rehearsal, "anthropic") == [2]
        rehearsal.finish("anthropic")
        assert advance_once(engine, batch="a/0001").at_rest
        assert advance_once(engine, batch="a/0002").open == 1
        assert advance_once(engine, batch="a/0003").waiting is not None
        rehearsal.finish("anthropic")
        assert advance_once(engine, batch="a/0002").at_rest
        assert advance_once(engine, batch="a/0003").open == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_body_one_byte_over_the_cap_goes_into_the_next_batch(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    with cloud(tmp_path / "one", rehearsal, provider, 4).engine() as engine:
        size = _packed_bytes(engine)
    for less, expected in ((0, [4]), (1, [3, 1])):
        rehearsal.reset()
        direct(rehearsal, provider)
        place = {"max_batch_mb": (size - less) / 1e6}
        archive = cloud(tmp_path / f"cap{less}", rehearsal, provider, 4, place=place)
        with archive.engine() as engine:
            run_all(engine)
            assert sizes(rehearsal, provider) == expected


def _packed_bytes(engine: Engine) -> int:
    """The bytes of the one batch that all pages make."""
    stage = stage_named(engine)
    view = look(engine, stage.recipe, "a/0001")
    place = engine.place(stage.place)
    ((package,),) = place.pack(task_spec(engine, stage, view, plan_work(view, ("read",))))
    size = package.content.size
    place.discard(package)
    return size

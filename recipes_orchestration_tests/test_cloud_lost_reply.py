"""A provider took a batch and its answer never came: the batch is found, and none is made twice."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from recipes_orchestration.engine.advance import Seen
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import (
    BATCH,
    PROVIDERS,
    advance_once,
    make_cloud_archive,
    run_all,
    values_of,
)
from .cloud_runner import direct

pytestmark = pytest.mark.usefixtures("restored_path")

PAGES = 5


def sizes(rehearsal: Rehearsal, provider: str) -> list[int]:
    return [batch["size"] for batch in rehearsal.counts(provider)["batches"]]


def each_sent_once(rehearsal: Rehearsal, provider: str, pages: int = PAGES) -> bool:
    counts = rehearsal.counts(provider)
    return list(counts["requests"].values()) == [1] * pages and counts["plain_requests"] == {}


def until_landed(engine: Engine, batch: str = BATCH, tries: int = 40) -> Seen:
    """Advances until nothing is left to wait for."""
    for _ in range(tries):
        seen = advance_once(engine, batch=batch)
        assert seen.failure is None
        if seen.at_rest and seen.view is not None:
            return seen
        time.sleep(0.05)
    raise AssertionError("it did not come to rest")


def send_foreign(rehearsal: Rehearsal, requests: int) -> str:
    """Somebody else's batch in the account, at Anthropic."""
    params = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "hello"}],
    }
    body = {"requests": [{"custom_id": f"other-{n}", "params": params} for n in range(requests)]}
    request = Request(
        f"{rehearsal.base_url('anthropic')}/v1/messages/batches",
        data=json.dumps(body).encode(),
        headers={"x-api-key": "k", "content-type": "application/json"},
        method="POST",
    )
    with urlopen(request) as answer:
        return json.load(answer)["id"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_lost_reply_makes_one_batch(tmp_path: Path, rehearsal: Rehearsal, provider: str) -> None:
    archive = make_cloud_archive(tmp_path, provider, PAGES, bucket=rehearsal.bucket)
    direct(rehearsal, provider, lose_reply=1)
    with archive.engine() as engine:
        assert run_all(engine).steps["read"].landed == PAGES
        assert len(engine.ledger.bookings.all()) == 1
    assert sizes(rehearsal, provider) == [PAGES]
    assert rehearsal.counts(provider)["creates"] == 1
    assert each_sent_once(rehearsal, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_lost_replies_make_two_batches_of_their_own_pages(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = make_cloud_archive(
        tmp_path, provider, 6, bucket=rehearsal.bucket, place={"max_requests": 3}
    )
    direct(rehearsal, provider, lose_reply=2)
    with archive.engine() as engine:
        assert run_all(engine).steps["read"].landed == 6
        assert len(engine.ledger.bookings.all()) == 2
        assert len(set(map(str, values_of(engine).values()))) == 6
    assert sizes(rehearsal, provider) == [3, 3]
    assert each_sent_once(rehearsal, provider, 6)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_is_sent_again_while_the_provider_may_not_show_it_yet(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_cloud_archive(
        tmp_path, provider, PAGES, bucket=rehearsal.bucket, place={"settle_seconds": 1.0}
    )
    direct(rehearsal, provider, lose_reply=1, never_ends=True)
    side = rehearsal.side(provider)
    with archive.engine() as engine:
        with monkeypatch.context() as hidden:
            hidden.setattr(side, "newest", list)
            started = time.monotonic()
            words: set[str] = set()
            while time.monotonic() - started < 0.7:
                seen = advance_once(engine)
                assert seen.open == 1
                words.add((seen.waiting or "")[:21])
                time.sleep(0.1)
        assert "It is not known wheth" in words
        while time.monotonic() - started < 1.1:
            time.sleep(0.05)
        direct(rehearsal, provider)
        rehearsal.finish(provider)
        until_landed(engine)
        assert len(values_of(engine)) == PAGES
    assert sizes(rehearsal, provider) == [PAGES]


@pytest.mark.parametrize("status", [500, 503, 529])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_create_that_failed_for_nothing_known_is_sent_again(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, status: int
) -> None:
    archive = make_cloud_archive(tmp_path, provider, PAGES, bucket=rehearsal.bucket)
    direct(rehearsal, provider, create_status=[status, status])
    with archive.engine() as engine:
        assert run_all(engine).steps["read"].landed == PAGES
    assert sizes(rehearsal, provider) == [PAGES]
    assert rehearsal.counts(provider)["creates"] == 3
    assert each_sent_once(rehearsal, provider)


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_lost_reply_to_the_upload_makes_one_batch(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = make_cloud_archive(tmp_path, provider, PAGES, bucket=rehearsal.bucket)
    direct(rehearsal, provider, lose_upload_reply=1)
    with archive.engine() as engine:
        assert run_all(engine).steps["read"].landed == PAGES
    assert sizes(rehearsal, provider) == [PAGES]
    assert each_sent_once(rehearsal, provider)


def test_a_batch_of_others_that_ended_is_not_taken_for_ours(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, "anthropic", PAGES)
    foreign = send_foreign(rehearsal, PAGES)
    rehearsal.finish("anthropic")
    direct(rehearsal, "anthropic", create_status=[500])
    with archive.engine() as engine:
        assert run_all(engine).steps["read"].landed == PAGES
        (booking,) = engine.ledger.bookings.all()
        task = engine.ledger.tasks.get(booking.task_id)
        assert task is not None
        assert task.remote_id != foreign
    assert sizes(rehearsal, "anthropic") == [PAGES, PAGES]


def test_a_batch_of_others_that_goes_on_leaves_the_doubt_until_it_ends(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, "anthropic", PAGES)
    direct(rehearsal, "anthropic", never_ends=True, batches=1)
    send_foreign(rehearsal, PAGES)
    direct(rehearsal, "anthropic", create_status=[500])
    with archive.engine() as engine:
        for _ in range(5):
            assert advance_once(engine).open == 1
        assert sizes(rehearsal, "anthropic") == [PAGES]
        assert rehearsal.counts("anthropic")["creates"] == 2
        rehearsal.finish("anthropic")
        until_landed(engine)
        assert len(values_of(engine)) == PAGES
    assert sizes(rehearsal, "anthropic") == [PAGES, PAGES]
    assert set(rehearsal.counts("anthropic")["requests"].values()) == {1}


def test_ours_is_found_beside_a_batch_of_others_of_its_size(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, "anthropic", PAGES)
    direct(rehearsal, "anthropic", never_ends=True, batches=1)
    send_foreign(rehearsal, PAGES)
    direct(rehearsal, "anthropic", lose_reply=1)
    with archive.engine() as engine:
        until_landed(engine)
        assert len(values_of(engine)) == PAGES
    assert sizes(rehearsal, "anthropic") == [PAGES, PAGES]
    assert set(rehearsal.counts("anthropic")["requests"].values()) == {1}


def test_two_batches_of_one_size_without_names_each_find_their_own(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = make_cloud_archive(tmp_path, "anthropic", 6, place={"max_requests": 3})
    direct(rehearsal, "anthropic", lose_reply=2, polls=3)
    with archive.engine() as engine:
        until_landed(engine)
        assert len(set(map(str, values_of(engine).values()))) == 6
        tasks = [engine.ledger.tasks.get(each.task_id) for each in engine.ledger.bookings.all()]
        assert len({task.remote_id for task in tasks if task is not None}) == 2
    assert sizes(rehearsal, "anthropic") == [3, 3]
    assert set(rehearsal.counts("anthropic")["requests"].values()) == {1}


def test_plain_calls_are_never_taken_for_a_batch_of_others(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_cloud_archive(tmp_path, "anthropic", PAGES)
    direct(rehearsal, "anthropic", never_ends=True, batches=1)
    send_foreign(rehearsal, PAGES)
    with archive.engine() as engine:
        place = engine.place("anthropic")
        with monkeypatch.context() as broken:

            def interrupted(*_: object) -> str:
                raise KeyboardInterrupt

            broken.setattr(place, "submit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run_all(engine, now=True)
        assert run_all(engine, now=True).steps["read"].landed == PAGES
    assert set(rehearsal.counts("anthropic")["plain_requests"].values()) == {1}

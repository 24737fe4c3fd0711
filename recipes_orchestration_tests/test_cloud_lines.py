"""Result lines as providers give them, good and bad: what lands, what fails, what is booked."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.rehearsal import Rehearsal

from .archive import find_pages
from .cloud_archive import PROVIDERS, advance_once, read_step, run_all, values_of
from .cloud_landing import (
    cloud,
    direct,
    failures,
    land_batch,
    only_booking,
    reasons,
    rows_of,
    send_batch,
)

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
SEPARATORS = "\u2028line\u2029paragraph\u0085next\r\nend"


@pytest.fixture
def landed(
    request: pytest.FixtureRequest, tmp_path: Path, rehearsal: Rehearsal
) -> Iterator[Engine]:
    """An engine after one batch of a scripted provider has landed: (provider, pages, script)."""
    provider, pages, script = request.param
    direct(rehearsal, provider, **script)
    with cloud(tmp_path, rehearsal, provider, pages).engine() as engine:
        send_batch(engine)
        land_batch(engine)
        yield engine


def each(
    pages: int, /, providers: tuple[str, ...] = PROVIDERS, **script: object
) -> pytest.MarkDecorator:
    """The fixture `landed` at each of the providers."""
    cases = [pytest.param((provider, pages, script), id=provider) for provider in providers]
    return pytest.mark.parametrize("landed", cases, indirect=True)


@each(10, expire_after=3)
def test_an_expired_batch_lands_what_it_answered(landed: Engine) -> None:
    assert len(rows_of(landed)) == 3
    assert reasons(landed) == {"expired": 7}
    assert only_booking(landed).lines == {"landed": 3, "expired": 7}


@each(9, ("openai",), output_null=True, error_message="The server had an error.")
def test_a_batch_without_an_output_file_gives_its_errors(landed: Engine) -> None:
    assert rows_of(landed) == []
    assert reasons(landed) == {"errored": 9}
    assert all("The server had an error." in row.words for row in failures(landed).values())
    assert only_booking(landed).wasted_usd == 0


@each(
    5,
    ("openai", "gemini", "bedrock"),
    fail_validation=True,
    fail_message="The input has a line that cannot be read.",
)
def test_a_batch_that_fails_as_a_whole_counts_one_attempt_of_each_page(landed: Engine) -> None:
    assert reasons(landed) == {"batch": 5}
    found = failures(landed)
    assert all("line that cannot be read" in row.words for row in found.values())
    assert all(row.attempts == 1 and not row.held for row in found.values())
    assert landed.ledger.pauses.all() == []


@each(4, ("openai",), status_400_lines=1, error_message="Invalid 'messages'.")
def test_a_line_without_error_and_with_status_400_is_an_error(landed: Engine) -> None:
    assert len(rows_of(landed)) == 3
    (failure,) = failures(landed).values()
    assert failure.reason == "errored"
    assert "Invalid 'messages'." in failure.words


@each(6, malformed=True)
def test_broken_lines_are_missing_and_the_good_ones_land(landed: Engine) -> None:
    assert len(rows_of(landed)) == 3
    assert reasons(landed) == {"missing": 3}
    booking = only_booking(landed)
    assert booking.lines == {"landed": 3, "broken": 3, "missing": 3}
    assert booking.landed_usd > 0
    assert booking.wasted_usd == 0


@each(3, unicode_separators=True)
def test_separators_of_unicode_do_not_cut_an_answer(landed: Engine) -> None:
    # The step's text has the line ends of this system; everything else is as the model wrote it.
    kept = SEPARATORS.replace("\r\n", "\n")
    values = values_of(landed)
    assert len(values) == 3
    assert all(value["text"].endswith(kept) for value in values.values())
    assert only_booking(landed).lines == {"landed": 3}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_separators_of_unicode_stay_in_json(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, unicode_separators=True)
    steps = [read_step(provider, schema=SCHEMA)]
    with cloud(tmp_path, rehearsal, provider, 2, steps=steps).engine() as engine:
        run_all(engine)
        assert all(value["title"].endswith(SEPARATORS) for value in values_of(engine).values())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_permuted_repeated_and_foreign_lines_land_on_their_own_pages(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    with cloud(tmp_path / "plain", rehearsal, provider, 7).engine() as engine:
        run_all(engine, now=True)
        expected = values_of(engine)
    direct(rehearsal, provider, permute=True, duplicate_lines=3, foreign_lines=2)
    with cloud(tmp_path / "batch", rehearsal, provider, 7).engine() as engine:
        run_all(engine)
        assert values_of(engine) == expected
        assert only_booking(engine).lines == {"landed": 7, "again": 3, "foreign": 2}


@each(4, missing=3)
def test_requests_without_a_line_are_missing(landed: Engine) -> None:
    assert len(rows_of(landed)) == 1
    assert reasons(landed) == {"missing": 3}


@each(4, error_lines=2, error_message="The image cannot be read.")
def test_a_line_that_failed_keeps_the_words_of_the_provider(landed: Engine) -> None:
    assert len(rows_of(landed)) == 2
    assert reasons(landed) == {"errored": 2}
    assert all("The image cannot be read." in row.words for row in failures(landed).values())


@each(3, thinking_only=1.0)
def test_thoughts_without_an_answer_are_waste(landed: Engine) -> None:
    assert rows_of(landed) == []
    assert reasons(landed) == {"answer": 3}
    assert all("token limit" in row.words for row in failures(landed).values())
    assert only_booking(landed).wasted_usd > 0


@pytest.mark.parametrize("fate", ["refusal_share", "filtered_share", "empty_share"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refused_filtered_or_empty_answer_is_no_result(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, fate: str
) -> None:
    direct(rehearsal, provider, **{fate: 1.0})
    with cloud(tmp_path, rehearsal, provider, 2).engine() as engine:
        send_batch(engine)
        land_batch(engine)
        assert rows_of(engine) == []
        # Anthropic's filter gives an error, which costs nothing.
        errs = (provider, fate) == ("anthropic", "filtered_share")
        assert reasons(engine) == {"errored" if errs else "answer": 2}
        assert (only_booking(engine).wasted_usd > 0) is not errs


@each(2, ("gemini",), refusal_share=1.0)
def test_a_blocked_question_says_why(landed: Engine) -> None:
    assert all("PROHIBITED_CONTENT" in row.words for row in failures(landed).values())


@pytest.mark.parametrize("fate", ["truncation_share", "wrong_shape_share"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_json_that_is_cut_off_or_of_another_shape_is_no_result(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, fate: str
) -> None:
    direct(rehearsal, provider, **{fate: 1.0})
    steps = [read_step(provider, schema=SCHEMA)]
    with cloud(tmp_path, rehearsal, provider, 2, steps=steps).engine() as engine:
        send_batch(engine)
        land_batch(engine)
        assert rows_of(engine) == []
        assert reasons(engine) == {"answer": 2}
        assert only_booking(engine).wasted_usd > 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_page_path_lands(tmp_path: Path, rehearsal: Rehearsal, provider: str) -> None:
    long = "/".join(["x" * 99, "y" * 99, "z" * 96 + ".png"])
    assert len(long) == 300
    names = ["vol 1/p.0001ä.png", long, "a/ü–#%?&.png"]
    archive = cloud(tmp_path, rehearsal, provider, 1)
    archive.draw(names)
    with archive.engine() as engine:
        find_pages(engine)
        found: set[str] = set()
        for batch in engine.ledger.pages.batches("letters"):
            run_all(engine, batch.key)
            found |= set(values_of(engine, batch=batch.key))
        assert found == {"a/0000.png", *names}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_cancelled_at_the_provider_accounts_for_every_request(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, never_ends=True, cancel_lines={"output": 8, "error": 7})
    with cloud(tmp_path, rehearsal, provider, 25).engine() as engine:
        task = send_batch(engine)
        engine.place(provider).cancel(task.remote_id or "")
        land_batch(engine)
        assert len(rows_of(engine)) == 8
        found = reasons(engine)
        assert found["errored"] == 7
        assert found.get("cancelled", 0) + found.get("missing", 0) == 10
        assert sum(only_booking(engine).lines.values()) == 25


@each(3, truncation_share=1.0)
def test_the_waste_has_the_price_of_its_tokens(landed: Engine) -> None:
    booking = only_booking(landed)
    assert booking.tokens_in > 0
    assert booking.tokens_out > 0
    assert booking.landed_usd == Decimal(0)


def test_one_look_more_changes_nothing(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with cloud(tmp_path, rehearsal, "anthropic", 3).engine() as engine:
        run_all(engine)
        before = rows_of(engine)
        assert advance_once(engine).at_rest
        assert rows_of(engine) == before
        assert rehearsal.counts("anthropic")["creates"] == 1

"""What jobs of Hugging Face cost, and how their ends are read."""

from __future__ import annotations

from decimal import Decimal

import pytest
from huggingface_hub import JobInfo

from recipes_orchestration.places.hf_jobs.ends import end_of, is_over
from recipes_orchestration.places.hf_jobs.hub import Job, job_of
from recipes_orchestration.places.hf_jobs.prices import cost_of, price_of
from recipes_orchestration.runner.work import FailureKind


def a_job(stage: str, message: str = "") -> Job:
    return Job("687f", stage, message, "cpu-basic", 61.0)


@pytest.mark.parametrize(
    ("seconds", "dollars"), [(0, "0"), (1, "0.01"), (60, "0.01"), (61, "0.02"), (3600, "0.60")]
)
def test_a_minute_that_was_begun_counts_whole(seconds: float, dollars: str):
    price = price_of("t4-medium", {"t4-medium": (10_000, "minute")})
    assert cost_of(price, seconds) == Decimal(dollars)


@pytest.mark.parametrize(
    ("started", "finished", "counted", "seconds"),
    [
        (None, None, 0, 0.0),
        ("12:00:00.100", "12:00:00.900", 0, 0.8),
        ("12:00:00.100", "12:01:00.200", 60, 60.1),
        ("12:00:00.100", None, 7, 7.0),
        ("12:00:00.100", None, None, 0.001),
        ("12:00:00.100", "11:59:59.900", 0, 0.001),
    ],
)
def test_a_job_that_ran_has_run_for_more_than_the_whole_seconds_which_the_hub_counts(
    started: str | None, finished: str | None, counted: int | None, seconds: float
):
    day = "2026-11-30T"
    told = JobInfo(
        id="687f",
        owner={"id": "1", "name": "archive", "type": "user"},
        status={"stage": "COMPLETED"},
        flavor="cpu-basic",
        startedAt=started and f"{day}{started}Z",
        finishedAt=finished and f"{day}{finished}Z",
        durations={"scheduling_secs": 1, "running_secs": counted, "total_secs": counted},
    )
    assert job_of(told).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("unit", "micro"), [("second", 100), ("minute", 6000), ("hour", 360_000)])
def test_a_price_of_any_unit_is_one_of_minutes(unit: str, micro: int):
    assert cost_of(price_of("x", {"x": (micro, unit)}), 60) == Decimal("0.006")


def test_the_hub_s_own_price_wins_over_the_table():
    assert price_of("t4-small", {"t4-small": (1, "minute")}).basis == "listed"


def test_without_the_hub_s_list_the_table_is_used():
    price = price_of("t4-small", None)
    assert (cost_of(price, 3600), price.basis) == (Decimal("0.40"), "table")


@pytest.mark.parametrize("listed", [{}, {"abacus": (5, "fortnight")}, {"abacus": (-5, "minute")}])
def test_a_price_that_nobody_knows_is_said_to_be_unknown(listed: dict[str, tuple[int, str]]):
    price = price_of("abacus", listed)
    assert (price.usd, price.basis) == (0, "unknown")


@pytest.mark.parametrize(
    ("stage", "message", "kind"),
    [
        ("COMPLETED", "", FailureKind.MISSING),
        ("CANCELED", "", FailureKind.CANCELLED),
        ("DELETED", "", FailureKind.CANCELLED),
        ("ERROR", "Job timeout", FailureKind.EXPIRED),
        ("ERROR", "OOMKilled", FailureKind.MEMORY),
        ("ERROR", "Memory limit exceeded (16Gi)", FailureKind.MEMORY),
        ("ERROR", "Job failed with exit code: 137. Reason: Error", FailureKind.NODE),
        ("ERROR", "The pod was evicted", FailureKind.NODE),
        ("ERROR", "Job failed with exit code: 1. Reason: Error", None),
        ("ERROR", "", None),
    ],
)
def test_an_end_says_what_became_of_pages(stage: str, message: str, kind: FailureKind | None):
    assert end_of(a_job(stage, message)).kind is kind


def test_an_end_for_want_of_money_is_the_account_s():
    assert end_of(a_job("ERROR", "Insufficient credit balance")).account


@pytest.mark.parametrize("stage", ["SCHEDULING", "RUNNING", "UPDATING", "SOMETHING_NEW"])
def test_a_stage_that_is_no_end_goes_on(stage: str):
    assert not is_over(a_job(stage))


def test_a_job_that_is_not_known_any_more_has_no_one_to_blame():
    assert end_of(None).kind is FailureKind.NODE

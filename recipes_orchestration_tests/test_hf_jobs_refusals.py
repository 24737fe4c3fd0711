"""What the place `hf_jobs` says when the hub refuses, is not there, or asks to wait."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.errors import ConfigError, MissingExtra, ProviderError, Refused
from recipes_orchestration.places.hf_jobs import calls as hf_calls
from recipes_orchestration.places.hf_jobs.hub import Hub
from recipes_orchestration.places.hf_jobs.orders import label_of, task_place_of
from recipes_orchestration.rehearsal import HUB, HUB_TOKEN, HUB_USER, HubScript, Rehearsal

from .hub_archive import creates, hub_archive, tries_of
from .hub_fixtures import python_job
from .job_archive import BATCH, first_stage

pytestmark = pytest.mark.usefixtures("restored_path")


def waiting_of(engine: Engine) -> str:
    seen = advance(engine, first_stage(engine), BATCH)
    assert (seen.open, seen.failure) == (0, None)
    return seen.waiting or ""


@pytest.mark.parametrize(
    ("refusal", "words"), [("credit", "See the credit of rehearsal"), ("key", "the token is right")]
)
def test_a_refusal_of_the_account_pauses_the_place_and_blames_no_page(
    hub: Rehearsal, tmp_path: Path, refusal: Literal["credit", "key"], words: str
):
    hub.script(HUB, HubScript(refuse_create=refusal))
    with hub_archive(tmp_path, hub, pages=1).engine() as engine:
        assert words in waiting_of(engine)
        assert engine.ledger.pauses.of("hf_jobs") is not None
        assert tries_of(engine) == {}


def test_a_rate_limit_pauses_the_place_until_it_passes(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(refuse_create="rate"))
    with hub_archive(tmp_path, hub, pages=1).engine() as engine:
        assert waiting_of(engine)
        pause = engine.ledger.pauses.of("hf_jobs")
    assert pause is not None
    assert pause.until is not None
    assert pause.until > datetime.now(UTC)


def test_a_wrong_token_pauses_the_place_before_anything_is_sent(
    hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
    with hub_archive(tmp_path, hub, pages=1).engine() as engine:
        words = waiting_of(engine)
    assert "refused" in words
    assert "hf_of_somebody" not in words
    assert creates(hub) == 0


def test_a_namespace_of_others_pauses_the_place(hub: Rehearsal, tmp_path: Path):
    with hub_archive(tmp_path, hub, pages=1, namespace="others").engine() as engine:
        assert "what the token may do in others" in waiting_of(engine)


def test_a_hub_that_is_not_there_pauses_the_place_until_it_is(hub: Rehearsal, tmp_path: Path):
    with hub_archive(tmp_path, hub, pages=1, endpoint="http://127.0.0.1:9").engine() as engine:
        assert "could not be reached" in waiting_of(engine)
        assert tries_of(engine) == {}


def test_a_flavor_that_is_none_fails_the_run_in_the_hub_s_words(hub: Rehearsal, tmp_path: Path):
    from recipes_orchestration.errors import PlaceError

    with (
        hub_archive(tmp_path, hub, pages=1, flavor="abacus").engine() as engine,
        pytest.raises(PlaceError, match="Invalid flavor: abacus"),
    ):
        advance(engine, first_stage(engine), BATCH)


def test_a_token_that_is_not_set_is_named(
    hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("HF_TOKEN")
    with (
        hub_archive(tmp_path, hub, pages=1).engine() as engine,
        pytest.raises(ConfigError, match="HF_TOKEN, which is not set"),
    ):
        engine.place("hf_jobs")


def test_a_secret_that_is_not_set_is_named(hub: Rehearsal, tmp_path: Path):
    with (
        hub_archive(tmp_path, hub, pages=1, secrets=["NO_SUCH_KEY"]).engine() as engine,
        pytest.raises(ConfigError, match="NO_SUCH_KEY"),
    ):
        engine.place("hf_jobs")


def test_without_huggingface_hub_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    # Nothing else can be done about a package that is installed here.
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"recipes-orchestration\[huggingface\]"):
        Hub(HUB_USER, HUB_TOKEN)


def a_hub(hub: Rehearsal, token: str = HUB_TOKEN) -> Hub:
    return Hub(HUB_USER, token, hub.url)


def test_a_rate_limit_of_the_list_is_said_at_once(hub: Rehearsal):
    hub.script(HUB, HubScript(status_status=[429]))
    with pytest.raises(Refused) as refused:
        list(a_hub(hub).jobs({"recipes-project": "test"}))
    assert refused.value.account
    assert refused.value.retry_after is not None


def test_a_list_that_fails_leaves_all_as_it_is(hub: Rehearsal):
    hub.script(HUB, HubScript(status_status=[503] * 3))
    with pytest.raises(ProviderError) as failed:
        list(a_hub(hub).jobs({"recipes-project": "test"}))
    assert not isinstance(failed.value, Refused)


def test_a_long_list_of_jobs_is_read_to_its_end(hub: Rehearsal):
    hub.script(HUB, HubScript(jobs_page=2, never_starts=True))
    asking = a_hub(hub)
    made = {python_job(asking.api, "pass", labels={"recipes-project": "a"}).id for _ in range(5)}
    assert {job.id for job in asking.jobs({"recipes-project": "a"})} == made


def test_a_next_page_elsewhere_is_not_asked_for_with_the_token(hub: Rehearsal):
    # The rehearsed hub gives no such address, so the one place that reads them is asked.
    next_page = a_hub(hub)._next  # pyright: ignore[reportPrivateUsage]
    assert next_page(f"{hub.url}/api/jobs/x?cursor=1") is not None
    assert next_page("http://evil.example/api/jobs/x?cursor=1") is None


def test_a_job_that_never_was_is_none(hub: Rehearsal):
    assert a_hub(hub).job("0" * 24) is None


def test_a_job_that_is_gone_can_be_ended(hub: Rehearsal):
    a_hub(hub).cancel("0" * 24)


def test_calls_to_the_hub_have_a_time_limit(hub: Rehearsal):
    from huggingface_hub import get_session

    assert a_hub(hub)
    assert get_session().timeout.read == hf_calls.READ_SECONDS


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("size_to_area-0123456789abcdef0123456789abcdef", None),
        ("lines.and words-" + "0" * 32, "lines-and-words-"),
        ("x" * 101, "x" * 60),
    ],
)
def test_a_task_s_label_is_one_that_the_hub_takes(name: str, label: str | None):
    found = label_of(name)
    assert found == name if label is None else found.startswith(label)
    assert len(found) <= 100
    assert found.replace("-", "").replace("_", "").isalnum()


def test_names_that_differ_have_labels_that_differ():
    assert label_of("a.b") != label_of("a b")


@pytest.mark.parametrize(
    ("batch", "task"),
    [("../a", "b/0"), ("a", "b/../../c"), ("/etc", "b/0"), ("", "b/0"), ("a", ""), ("a", "b//0")],
)
def test_a_job_of_others_has_no_folder_here(batch: str, task: str):
    assert task_place_of({"RECIPES_BATCH": batch, "RECIPES_TASK": task}) is None

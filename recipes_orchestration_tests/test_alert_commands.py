"""Alerts from the command line and from the sensor's tick, and docs/alerts.md."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from pydantic import BaseModel

from recipes_orchestration.alert_settings import (
    EmailSettings,
    SlackSettings,
    SnsSettings,
    WebhookSettings,
)
from recipes_orchestration.channels import channel as channel_module
from recipes_orchestration.commands import alerting
from recipes_orchestration.engine import alerts as telling
from recipes_orchestration.ledger.alerts import AlertKind
from recipes_orchestration.orchestration import adopting
from recipes_orchestration.project import load_project
from recipes_orchestration.project_mistakes import keys_of
from recipes_orchestration.yaml_files import ConfigErrors

from .alert_receivers import Receiver, receiver
from .archive import Archive, make_archive
from .command_runs import recipes
from .waiting_runs import Bench, bench, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")

DOCS = (Path(__file__).parent.parent / "docs" / "alerts.md").read_text(encoding="utf-8")
ALERTS = "alerts: {webhook: {url_env: HOOK}}\n"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as kept:
        monkeypatch.setenv("HOOK", kept.url)
        yield kept


@pytest.fixture
def archive(tmp_path: Path, hook: Receiver) -> Archive:
    """Of its two pages one fails at the step `area`."""
    archive = make_archive(tmp_path / "project", ["a/fails.png", "a/good.png"])
    project = archive.folder / "project.yaml"
    project.write_text(project.read_text() + ALERTS)
    return archive


def test_a_run_tells_of_the_pages_that_it_leaves_to_a_person(
    archive: Archive, hook: Receiver
) -> None:
    for _ in range(2):  # the second run has nothing fresh to tell
        recipes(archive, "run", "measure", "--no-dagster")
    (post,) = hook.posts
    assert post["kind"] == "hold"
    assert post["text"].startswith("1 page is held at the step area of measure (failed). a/fails")
    listed = recipes(archive, "alerts", "--json").document
    assert [each["cause"] for each in listed["alerts"]] == ["hold/measure/area/failed"]
    assert listed["channels"] == ["webhook"]
    assert "1 page is held" in recipes(archive, "alerts").out


def test_a_channel_that_does_not_answer_does_not_hold_a_run_up(
    archive: Archive, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (telling, channel_module, alerting):
        monkeypatch.setattr(module, "SECONDS", 0.3)
    hook.delay = 60
    began = time.monotonic()
    ran = recipes(archive, "run", "measure", "--no-dagster", "--json")
    took = time.monotonic() - began
    assert took < ran.document["seconds"] + 10
    assert hook.asked == 1


def test_a_test_tells_every_channel_and_says_what_came_of_it(
    archive: Archive, hook: Receiver
) -> None:
    assert recipes(archive, "alerts", "--test").out == "webhook: told\n"
    assert hook.kinds() == ["test"]
    hook.status = 500
    ran = recipes(archive, "alerts", "--test")
    assert (ran.code, ran.out) == (1, "webhook: webhook answered 500 to an alert.\n")
    assert "s3cret" not in ran.out + ran.err


def test_a_tick_writes_each_alert_into_its_log_once(bench: Bench) -> None:
    said: list[str] = []

    class Log:
        def warning(self, msg: object, *args: object) -> None:
            said.append(str(msg) % args)

    with bench.engine() as engine:
        engine.ledger.pauses.pause("anthropic", "No credit is left.")
    for _ in range(3):
        with bench.engine() as engine:
            desk = adopting.open_desk(bench.instance, engine, adopting.BUDGET_SECONDS)
            adopting.alert(desk, Log())
    assert len(said) == 1
    assert said[0].startswith(
        "Alert: test: a place is paused. Nothing is sent to anthropic until you run: recipes "
        "resume anthropic. No credit is left. (Since "
    )


def test_a_tick_of_the_sensor_looks_for_alerts(bench: Bench) -> None:
    with bench.engine() as engine:
        engine.ledger.pauses.pause("anthropic", "No credit is left.")
    assert isinstance(bench.tick(), dg.SensorResult)
    with bench.engine() as engine:
        (alert,) = engine.ledger.alerts.open()
    assert alert.kind is AlertKind.PAUSED
    assert alert.told_at is not None


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("webhook", WebhookSettings),
        ("slack", SlackSettings),
        ("email", EmailSettings),
        ("sns", SnsSettings),
    ],
)
def test_every_key_of_a_channel_is_explained(name: str, model: type[BaseModel]) -> None:
    explained = re.findall(rf"^\| `{name}` \| `(\w+)` \|", DOCS, re.M)
    assert explained == list(keys_of(model)) or sorted(explained) == sorted(keys_of(model))


def test_every_kind_of_alert_is_explained() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| [^`\n]+ \| [^|\n]+ \|$", DOCS, re.M)) >= {
        kind.value for kind in AlertKind
    } - {"cap", "deadline"}
    assert all(f"| `{kind.value}` |" in DOCS for kind in AlertKind)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (
            'webhook: {url_env: "https://hooks.example/s3cret"}',
            "alerts.webhook.url_env: found no name of an environment variable; put the secret into "
            "the environment, and write the variable's name here, without ${}",
        ),
        (
            "email: {host: h, sender: me, to: [a@b.c]}",
            'alerts.email.sender: found "me"; allowed: a mail address such as me@example.org',
        ),
        (
            "sns: {topic: recipes}",
            'alerts.sns.topic: found "recipes"; allowed: the ARN of a topic, such as '
            "arn:aws:sns:eu-central-1:123456789012:recipes",
        ),
    ],
)
def test_a_mistake_under_alerts_is_told_without_the_secret(
    tmp_path: Path, written: str, words: str
) -> None:
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    project = archive.folder / "project.yaml"
    project.write_text(f"{project.read_text()}alerts:\n  {written}\n")
    with pytest.raises(ConfigErrors) as caught:
        load_project(archive.folder)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            "{name: text, run: text, deadline: 2h}",
            'step "text": deadline: found one at the place "local", where nothing waits elsewhere; '
            "take it away",
        ),
        (
            "{name: read, run: read, place: anthropic, model: m, deadline: soon}",
            'step "read": deadline: found "soon"; allowed: a number and m, h or d, such as 90m, '
            "26h or 2d; at most 90d",
        ),
        (
            "{name: read, run: read, place: anthropic, model: m, on_deadline: calls}",
            'step "read": on_deadline: found it without a deadline; add one, such as '
            '"deadline: 26h"',
        ),
    ],
)
def test_a_deadline_that_cannot_be_kept_is_a_mistake(tmp_path: Path, step: str, words: str) -> None:
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    recipe = f"recipe: measure\nsource: letters\nsteps:\n  - {step}\n"
    (archive.folder / "recipes" / "measure.yaml").write_text(recipe)
    with pytest.raises(ConfigErrors) as caught:
        load_project(archive.folder)
    assert words in str(caught.value)

"""A channel that is down fails no run and loses no alert, and its secrets are written nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.ledger.alerts import AlertKind
from recipes_orchestration.ledger.tables import alerts, tellings
from recipes_orchestration.orchestration import adopting

from .alert_receivers import Receiver, receiver
from .archive import Archive, make_archive
from .command_runs import Ran, recipes
from .test_alerts import earlier
from .waiting_runs import Bench, bench, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")

ALERTS = "alerts: {webhook: {url_env: HOOK, token_env: TOKEN}, slack: {url_env: HOOK}}\n"
SECRETS = ("s3cret", "t0ken")


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as kept:
        assert SECRETS[0] in kept.url
        monkeypatch.setenv("HOOK", kept.url)
        monkeypatch.setenv("TOKEN", SECRETS[1])
        yield kept


@pytest.fixture
def archive(tmp_path: Path, hook: Receiver) -> Archive:
    """Of its two pages one fails at the step `area`."""
    archive = make_archive(tmp_path / "project", ["a/fails.png", "a/good.png"])
    project = archive.folder / "project.yaml"
    project.write_text(project.read_text() + ALERTS)
    return archive


def run(archive: Archive) -> Ran:
    return recipes(archive, "run", "measure", "--no-dagster")


def later(archive: Archive, hours: float) -> None:
    with open_engine(archive.project()) as engine:
        earlier(engine.ledger, tellings.c.tried_at, timedelta(hours=hours))


def told(hook: Receiver) -> int:
    return sum(post.get("kind") == "hold" for post in hook.posts)


@pytest.mark.slow
@pytest.mark.parametrize("down", ["refuses", "fails"])
def test_a_run_ends_as_it_would_and_the_alert_is_told_when_the_channel_is_back(
    archive: Archive, hook: Receiver, monkeypatch: pytest.MonkeyPatch, down: str
) -> None:
    without = run(archive)
    if down == "fails":
        hook.status = 503
    else:
        monkeypatch.setenv("HOOK", f"http://127.0.0.1:1/?{SECRETS[0]}")
    hook.posts.clear()
    with open_engine(archive.project()) as engine:
        engine.ledger.holds.clear("measure")
        engine.ledger.alerts.keep([], AlertKind)
        earlier(engine.ledger, alerts.c.ended_at, timedelta(hours=2))
    assert run(archive).code == without.code
    assert told(hook) == 0
    hook.status = 200
    monkeypatch.setenv("HOOK", hook.url)
    later(archive, 2)
    run(archive)
    run(archive)
    assert told(hook) == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 404, 500])
def test_no_secret_is_written_anywhere(archive: Archive, hook: Receiver, status: int) -> None:
    hook.status = status
    said = [run(archive), recipes(archive, "alerts"), recipes(archive, "alerts", "--test")]
    said.append(recipes(archive, "alerts", "--json"))
    assert hook.asked > 0
    for ran in said:
        assert not [secret for secret in SECRETS if secret in ran.out + ran.err]
    written = [path.read_bytes() for path in archive.folder.rglob("*") if path.is_file()]
    assert not [secret for secret in SECRETS if any(secret.encode() in each for each in written)]


def test_a_tick_says_that_a_channel_is_down_without_its_address(
    bench: Bench, hook: Receiver
) -> None:
    hook.status = 503
    project = bench.archive.folder / "project.yaml"
    project.write_text(project.read_text() + ALERTS)
    said: list[str] = []

    class Log:
        def warning(self, msg: object, *args: object) -> None:
            said.append(str(msg) % args)

    with bench.engine() as engine:
        engine.ledger.pauses.pause("anthropic", "No credit is left.")
    with bench.engine() as engine:
        desk = adopting.open_desk(bench.instance, engine, adopting.BUDGET_SECONDS)
        adopting.alert(desk, Log())
        words = "\n".join([*said, *desk.notes])
    assert "webhook answered 503 to an alert." in words
    assert len(said) == 1  # the log is told all the same
    assert not [secret for secret in SECRETS if secret in words]

"""Keys are in the environment and nowhere else: not in files, logs, errors or the ledger."""

from __future__ import annotations

import gzip
import json
import logging
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.errors import RecipesError
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.recording import record_pages
from recipes_orchestration.providers.sdk_logs import SDK_LOGGERS
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import PROVIDERS, CloudArchive, advance_once, run_all
from .cloud_landing import cloud, direct, send_batch

VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "bedrock": "AWS_SECRET_ACCESS_KEY",
}
# One as the providers make them, one that no pattern would know for a key.
GOOD, OTHER = "sk-ant-api03-qZx7Kq0marker-AA", "qZx7Kq0marker9f3e"
BAD = "qZx7Kq0marker-bad-1f"
SECRET = "Kq0marker"

TROUBLES: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing": ({}, False),
    "calls": ({}, True),
    "refused": ({"refuse_create": "key"}, False),
    "credit": ({"refuse_create": "credit"}, False),
    "doubt": ({"create_status": (500,)}, False),
    "lines": ({"error_share": 0.3, "truncation_share": 0.3, "refusal_share": 0.3}, False),
    "status": ({"status_status": (500,)}, False),
    "echo": ({"error_share": 1.0, "error_message": f"The key {OTHER} is not known."}, True),
    "account": ({"account_error": f"Billing: the key {OTHER} has no credit balance."}, True),
}


@dataclass
class Told:
    """All that was written, printed, logged, raised or shown."""

    texts: list[str] = field(default_factory=list[str])

    def add(self, where: str, text: str) -> None:
        self.texts.append(f"{where}: {text}")

    def with_secret(self) -> list[str]:
        """Where the secret stands."""
        return [
            text[max(0, text.index(SECRET) - 300) :][:400] for text in self.texts if SECRET in text
        ]


def files(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file, its compressed content too."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".gz":
                content += gzip.decompress(content)
            yield str(path), content.decode("latin-1")


def watched(engine: Engine, provider: str, told: Told, patch: pytest.MonkeyPatch) -> None:
    """Reads the files that are there while requests are under way."""
    place: Any = engine.place(provider)

    def look(name: str) -> None:
        ask = getattr(place._provider, name)

        def asked(*given: Any) -> Any:
            for path, content in files(engine.project.folder):
                told.add(f"{path} at {name}", content)
            return ask(*given)

        patch.setattr(place._provider, name, asked)

    look("submit")
    look("result_line")


def tell(engine: Engine, told: Told) -> None:
    """What ledger and library hold, and how the engine shows itself."""
    told.add("engine", repr(engine) + repr(engine.places))
    for task in engine.ledger.tasks.open():
        told.add("task", repr(task) + json.dumps(task.sent))
    told.add("bookings", repr(engine.ledger.bookings.all()))
    told.add("pauses", repr(engine.ledger.pauses.all()))
    told.add("failures", repr(engine.ledger.holds.attempts_of("letters", "letters", "a/0001")))
    told.add("rows", repr(engine.library.table("letters", "read", "a/0001").to_pylist()))


def provoke(archive: CloudArchive, told: Told, *, now: bool, patch: pytest.MonkeyPatch) -> None:
    """Runs the recipe into its trouble."""
    with archive.engine() as engine:
        watched(engine, archive.provider, told, patch)
        try:
            if now:
                run_all(engine, now=True)
            else:
                for _ in range(5):
                    told.add("seen", repr(advance_once(engine)))
        except RecipesError as error:
            shown = traceback.TracebackException.from_exception(error, capture_locals=True)
            told.add("raised", "".join(shown.format()))
        tell(engine, told)


def set_keys(patch: pytest.MonkeyPatch, key: str) -> None:
    """Every provider gets the key; Amazon's access key id is no secret."""
    for variable in VARIABLES.values():
        patch.setenv(variable, key)
    patch.setenv("AWS_ACCESS_KEY_ID", "AKIAREHEARSALbad" if key == BAD else "AKIAREHEARSAL")
    patch.setenv("AWS_SESSION_TOKEN", f"token-{key}")


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_key_is_written_down_anywhere(
    tmp_path: Path,
    rehearsal: Rehearsal,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    provider: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    told = Told()
    for name, (script, now) in TROUBLES.items():
        if provider == "bedrock" and name in ("echo", "account"):
            continue  # nobody can repeat a secret that only signs and is never sent
        set_keys(monkeypatch, OTHER if name in ("echo", "account") else GOOD)
        rehearsal.reset()
        direct(rehearsal, provider, **script)
        archive = cloud(
            tmp_path / name, rehearsal, provider, 1 if name == "echo" else 4, limits={"tries": 1}
        )
        provoke(archive, told, now=now, patch=monkeypatch)
    for now in (True, False):
        set_keys(monkeypatch, BAD)
        rehearsal.reset()
        archive = cloud(tmp_path / f"bad-{now}", rehearsal, provider, 2)
        provoke(archive, told, now=now, patch=monkeypatch)
        with archive.engine() as engine:
            assert engine.ledger.pauses.of(provider) is not None
    for path, content in files(tmp_path):
        told.add(path, content)
    told.add("log", caplog.text)
    told.add("printed", "".join(capfd.readouterr()))
    assert told.with_secret() == []


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_the_key_of_a_variable_of_our_own_is_written_down_nowhere(
    tmp_path: Path,
    rehearsal: Rehearsal,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    provider: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    told = Told()
    monkeypatch.delenv(VARIABLES[provider])
    for key in (OTHER, BAD):
        monkeypatch.setenv("OUR_OWN_KEY", key)
        rehearsal.reset()
        archive = cloud(
            tmp_path / str(len(key)), rehearsal, provider, 3, place={"api_key_env": "OUR_OWN_KEY"}
        )
        provoke(archive, told, now=False, patch=monkeypatch)
        with archive.engine() as engine:
            paused = engine.ledger.pauses.of(provider) is not None
            assert paused is (key == BAD)
            for path, content in files(archive.folder):
                told.add(path.replace(str(archive.folder), ""), content)
    told.add("log", caplog.text)
    assert told.with_secret() == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_asking_how_a_batch_stands_logs_no_key(
    tmp_path: Path,
    rehearsal: Rehearsal,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    provider: str,
) -> None:
    set_keys(monkeypatch, OTHER)
    archive = cloud(tmp_path, rehearsal, provider, 2)
    with archive.engine() as engine:
        send_batch(engine)
    # As in a process that has sent nothing, and logs all there is.
    for name in SDK_LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)
    caplog.set_level(logging.DEBUG)
    with archive.engine() as engine:
        poll_open(engine)
    assert caplog.records
    assert SECRET not in caplog.text
    assert "Authorization" not in caplog.text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_event_of_dagster_holds_a_key(
    tmp_path: Path,
    rehearsal: Rehearsal,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
) -> None:
    told = Told()
    scripts: dict[str, dict[str, Any]] = {GOOD: {}, OTHER: {"error_share": 1.0}}
    for number, (key, script) in enumerate(scripts.items()):
        set_keys(monkeypatch, key)
        rehearsal.reset()
        direct(rehearsal, provider, **script)
        archive = cloud(tmp_path / f"run{number}", rehearsal, provider, 3, limits={"tries": 1})
        with dg.DagsterInstance.ephemeral() as instance:
            with archive.engine() as engine:
                record_pages(engine, instance, "letters", ["a/0001"])
            job = project_definitions(archive.project()).resolve_implicit_global_asset_job_def()
            result = job.execute_in_process(
                instance=instance,
                partition_key="a/0001",
                asset_selection=[step_key("letters", "read")],
                raise_on_error=False,
            )
            assert result.success is (key == GOOD)
            for entry in instance.all_logs(result.run_id):
                told.add("event", repr(entry))
            told.add("run", repr(instance.get_run_by_id(result.run_id)))
    assert any("LOGS_CAPTURED" in text or "STEP_FAILURE" in text for text in told.texts)
    assert told.with_secret() == []

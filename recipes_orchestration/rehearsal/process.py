"""The rehearsal as a process: says where it is, and serves until it is interrupted."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from ..errors import ConfigError
from .hub_script import HubScript
from .script import Script
from .server import HUB, PROVIDERS, Rehearsal, running_rehearsal, script_kind

__all__ = ["read_scripts", "rehearse"]

_SCRIPTS = TypeAdapter(dict[str, JsonValue])


def rehearse(
    providers: str = "",
    *,
    port: int = 0,
    script: str | Path | None = None,
    as_json: bool = False,
) -> None:
    """Serves the providers, named with commas between, until it is interrupted or told to end.

    Prints the lines for a shell to find it by and the addresses that direct it, or the same as
    JSON. Raises `ConfigError` for a provider or a script that cannot be, or a port that is taken.
    """
    names = _providers(providers)
    scripts = read_scripts(Path(script), names) if script else {}
    try:
        with running_rehearsal(names, scripts, port=port) as rehearsal:
            # Jobs are processes of their own: they must not outlive what runs them.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            sys.stdout.write(_as_json(rehearsal) if as_json else _told(rehearsal))
            sys.stdout.flush()
            threading.Event().wait()
    except OSError as error:
        raise ConfigError(
            f"The rehearsal cannot listen on port {port}: {error.strerror}. Give another --port."
        ) from error


def read_scripts(file: Path, providers: Sequence[str]) -> dict[str, Script | HubScript]:
    """The scripts of a JSON file, `{"openai": {...}}`. Raises `ConfigError`."""
    try:
        written = _SCRIPTS.validate_json(file.read_bytes())
        scripts = {name: script_kind(name).model_validate(each) for name, each in written.items()}
    except (OSError, ValidationError) as error:
        raise ConfigError(
            f"{file} is not a file of scripts: {error}. Write {{provider: {{...}}}} as JSON."
        ) from error
    if strange := [name for name in scripts if name not in providers]:
        raise ConfigError(f"{file} has a script for {strange[0]}, which is not rehearsed here.")
    return scripts


def _providers(names: str) -> tuple[str, ...]:
    wanted = tuple(name.strip() for name in names.split(",") if name.strip()) or _possible()
    known = (*PROVIDERS, HUB)
    if strange := [name for name in wanted if name not in known]:
        raise ConfigError(
            f"There is no provider {strange[0]} to rehearse. There are: {', '.join(known)}."
        )
    return wanted


def _possible() -> tuple[str, ...]:
    if find_spec("moto") is not None:
        return PROVIDERS
    sys.stderr.write(
        "Bedrock is left out, because its S3 needs moto: pip install 'recipes-orchestration[dev]'\n"
    )
    return tuple(name for name in PROVIDERS if name != "bedrock")


def _as_json(rehearsal: Rehearsal) -> str:
    told = {
        "url": rehearsal.url,
        "control": f"{rehearsal.url}/_rehearsal",
        "environment": rehearsal.environment(),
    }
    return json.dumps(told) + "\n"


def _told(rehearsal: Rehearsal) -> str:
    exports = [
        f"export {key}={shlex.quote(value)}" for key, value in rehearsal.environment().items()
    ]
    control = f"{rehearsal.url}/_rehearsal"
    return "\n".join(
        [
            *exports,
            f"# counts: curl {control}/counts",
            f"# a script: curl -X PUT -d {shlex.quote(json.dumps({'delay_seconds': 60}))} "
            f"{control}/PROVIDER/script",
            f"# end all batches: curl -X POST {control}/PROVIDER/finish",
            f"# forget everything: curl -X POST {control}/reset",
            "# Ctrl-C ends it.\n",
        ]
    )

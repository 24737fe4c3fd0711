"""The work of `recipes rehearse`: emulated providers, for as long as the command runs."""

from __future__ import annotations

from pathlib import Path

from ..rehearsal.process import rehearse

__all__ = ["rehearse_providers"]


def rehearse_providers(providers: str, *, port: int, script: Path | None, as_json: bool) -> None:
    """Serves until Ctrl-C; what to type to find it goes to stdout."""
    rehearse(providers, port=port, script=script, as_json=as_json)

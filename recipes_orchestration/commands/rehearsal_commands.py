"""`recipes rehearse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json

__all__ = ["register"]


def rehearse(
    providers: Annotated[
        str,
        typer.Option(
            "--providers",
            metavar="NAMES",
            help="Which, with commas between: anthropic, openai, gemini, bedrock. All by default.",
        ),
    ] = "",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="0 is any free one."),
    ] = 8055,
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="How they behave: JSON, by provider."),
    ] = None,
    json: Json = False,
) -> None:
    """Emulate the providers of cloud models on this machine, without a key; Ctrl-C ends it."""
    from .rehearsing import rehearse_providers

    rehearse_providers(providers, port=port, script=script, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(rehearse)

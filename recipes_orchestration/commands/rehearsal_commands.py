"""`recipes rehearse` and `recipes rehearse-slurm`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import Json

__all__ = ["register"]


class SlurmAction(StrEnum):
    """What is done with a Slurm of one's own."""

    UP = "up"
    DOWN = "down"
    STATUS = "status"


def rehearse(
    providers: Annotated[
        str,
        typer.Option(
            "--providers",
            metavar="NAMES",
            help="Which, with commas between: anthropic, openai, gemini, bedrock, which are the "
            "default, and hub, the Hugging Face hub.",
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


def rehearse_slurm(
    action: Annotated[
        SlurmAction,
        typer.Argument(metavar="up|down|status", help="Start it, end it, or look at it."),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where it lives; /var/lib/recipes-slurm unless another is given.",
        ),
    ] = None,
    ssh: Annotated[
        bool, typer.Option("--ssh", help="With an sshd before it, to be reached as a cluster is.")
    ] = False,
    second_factor: Annotated[
        bool, typer.Option("--second-factor", help="The sshd asks for a password after the key.")
    ] = False,
    accounting: Annotated[
        bool, typer.Option("--accounting", help="With accounts, so that sacct works.")
    ] = False,
    json: Json = False,
) -> None:
    """A real Slurm of one node on this machine, from Debian's packages, as root."""
    from .rehearsing_slurm import DEFAULT_FOLDER, end_slurm, show_slurm, start_slurm

    folder = folder or DEFAULT_FOLDER
    if action is SlurmAction.DOWN:
        end_slurm(folder, as_json=json)
    elif action is SlurmAction.STATUS:
        show_slurm(folder, as_json=json)
    else:
        login = "second-factor" if second_factor else "key" if ssh else ""
        start_slurm(folder, login=login, accounting=accounting, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (rehearse, rehearse_slurm):
        app.command()(command)

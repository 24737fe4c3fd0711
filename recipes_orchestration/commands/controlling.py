"""The work of `recipes pause`, `resume`, `stop` and `now`."""

from __future__ import annotations

import getpass
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.controls import Decision, follow_stop, hurry, pause, resume, scope_of, stop
from ..engine.engine import Engine
from ..engine.stopped import stop_words
from ..errors import NotFound
from ..ledger.controls import Scope
from ..project_mistakes import choose
from .interrupts import Stopping, stopping_in_order
from .opening import opened
from .output import Output

__all__ = ["Part", "hurry_part", "pause_part", "person", "resume_part", "stop_part"]

LONGEST_PAUSE = 60.0


@dataclass(frozen=True)
class Part:
    """A recipe or a part of it, as a person named it."""

    name: str
    folder: str | None = None
    batch: str | None = None
    step: str | None = None

    def scope(self, engine: Engine) -> Scope:
        """What it is in the project. Raises `NotFound`."""
        return scope_of(engine, self.name, self.folder or "", self.batch or "", self.step or "")


def person() -> str:
    """Who gives the command, as the system knows them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def pause_part(project: Path | None, part: Part, reason: str, *, as_json: bool) -> None:
    """Pauses it and says what is still out."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        scope = part.scope(engine)
        decided = pause(engine, scope, reason, person())
    _tell(output, scope, decided)


def resume_part(project: Path | None, part: Part, *, as_json: bool) -> None:
    """Takes back a pause or a stop; of a place, its pause."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        whole = part.folder is part.batch is part.step is None
        if whole and part.name in engine.project.places:
            from .tasks_at_places import resume_place

            resume_place(project, part.name, as_json=as_json)
            return
        if part.name not in engine.project.recipes:
            known = [*engine.project.recipes, *engine.project.places]
            raise NotFound(
                f'There is no recipe and no place "{part.name}"{choose(part.name, known)}'
            )
        scope = part.scope(engine)
        decided = resume(engine, scope)
    _tell(output, scope, decided)


def stop_part(project: Path | None, part: Part, reason: str, *, wait: bool, as_json: bool) -> None:
    """Ends what is out and follows it until its places have; Ctrl-C leaves that to the next look.

    What ends after that lands by the sensor of a running Dagster, or by the command said again.
    """
    output = Output(as_json=as_json)
    with opened(project) as engine, stopping_in_order(output.note) as stopping:
        scope = part.scope(engine)
        decided = stop(engine, scope, reason, person())
        for words in decided.unasked:
            output.note(words)
        ended = follow_stop(engine, scope)
        if wait and not ended:
            output.note(f"{decided.words}. Ctrl-C leaves it; say it again to follow it further.")
            try:
                ended = _follow(engine, scope, stopping)
            except KeyboardInterrupt:
                ended = False
        words = stop_words(engine, scope)
    _tell(output, scope, Decision(f"{words}.", decided.asked, decided.unasked), stopped=ended)


def _follow(engine: Engine, scope: Scope, stopping: Stopping) -> bool:
    pause_seconds = engine.project.limits.poll_seconds
    while not follow_stop(engine, scope):
        until = time.monotonic() + pause_seconds
        while time.monotonic() < until:
            stopping.raise_if_asked()
            time.sleep(min(0.25, max(0.0, until - time.monotonic())))
        pause_seconds = min(LONGEST_PAUSE, pause_seconds * 1.5)
    return True


def hurry_part(project: Path | None, part: Part, reason: str, *, as_json: bool) -> None:
    """Ends the open batches for plain calls; refused in words when nothing waits."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        scope = part.scope(engine)
        decided = hurry(engine, scope, reason, person())
    for words in decided.unasked:
        output.note(words)
    _tell(output, scope, decided)


def _tell(output: Output, scope: Scope, decided: Decision, **more: Any) -> None:
    output.line(decided.words)
    output.document(
        {
            "recipe": scope.recipe,
            "folder": scope.folder or None,
            "batch": scope.batch or None,
            "step": scope.step or None,
            "words": decided.words,
            "asked_to_end": decided.asked,
            "not_asked": list(decided.unasked),
            **more,
        }
    )

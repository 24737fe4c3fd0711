"""The decisions of the table of docs/control.md, given by Ada for a reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recipes_orchestration.engine.by_hand import give_value, retry, set_aside
from recipes_orchestration.engine.controls import hurry, pause, resume, scope_of, stop
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.ledger.holds import Failure
from recipes_orchestration.ledger.pages import BatchRow
from recipes_orchestration.recipe import page_key

__all__ = ["DECIDE", "ON_HELD", "do_stop", "hold_page"]

ON_HELD = ("retry", "release", "by hand")
"""Those that need a held page."""

_GIVEN = ("a reason", "Ada")


def hold_page(engine: Engine, batch: str, page_id: str) -> None:
    """The page has failed so often that it waits for a person."""
    recipe = engine.project.recipe("letters")
    ((_, page),) = engine.ledger.pages.find(page_id)
    key = page_key(recipe.fingerprint("read"), page.sha256)
    where = ("letters", "read", "letters", batch, page_id, key)
    engine.ledger.holds.failed_many([Failure(*where, "errored", "too blurred", hold=True)])


def do_stop(engine: Engine, batch: str = "", page_id: str = "") -> None:
    stop(engine, scope_of(engine, "letters", batch=batch), *_GIVEN)


def _pause(engine: Engine, batch: str, page_id: str) -> None:
    pause(engine, scope_of(engine, "letters", batch=batch), *_GIVEN)


def _resume(engine: Engine, batch: str, page_id: str) -> None:
    """Of a stop that was asked for a moment ago."""
    do_stop(engine, batch, page_id)
    resume(engine, scope_of(engine, "letters", batch=batch))


def _now(engine: Engine, batch: str, page_id: str) -> None:
    hurry(engine, scope_of(engine, "letters", batch=batch), *_GIVEN)


def _retry(engine: Engine, batch: str, page_id: str) -> None:
    recipe = engine.project.recipe("letters")
    rows: list[BatchRow] = engine.ledger.pages.batches("letters")
    retry(engine, recipe, [row for row in rows if not batch or row.key == batch], whole=not batch)


def _release(engine: Engine, batch: str, page_id: str) -> None:
    set_aside(engine, engine.project.recipe("letters"), page_id, None, "blank", "Ada")


def _by_hand(engine: Engine, batch: str, page_id: str) -> None:
    value = partial(give_value, engine, engine.project.recipe("letters"), page_id, None)
    value({"text": "Dear"}, "seen with my eyes", "Ada")


DECIDE: dict[str, Callable[[Engine, str, str], None]] = {
    "pause": _pause,
    "stop": do_stop,
    "resume": _resume,
    "now": _now,
    "retry": _retry,
    "release": _release,
    "by hand": _by_hand,
}
"""Each for a batch (all for ``""``) and the page of it that may be held."""

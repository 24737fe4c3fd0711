"""What a person decided about a recipe or a part of it: pause, stop, cancel, now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from ..pages.naming import split_batch_key
from .connection import Database, insert_into, one_at_a_time, portions
from .tables import controls
from .words import kept_words

__all__ = ["BY_NOW", "BY_STOP", "Control", "ControlBook", "ControlKind", "Scope"]


BY_STOP, BY_NOW = "stop", "now"
"""Why a task's end was asked for: a person stopped it, or wants the rest by plain calls."""


class ControlKind(StrEnum):
    """What was decided.

    `pause`: nothing is sent. `stop`: nothing is sent, and what is out is ended. `cancel`: as a
    stop, of what a run was to do that was cancelled, until a person asks for it again. `now`: what
    waits goes by plain calls, and an open batch is ended for it.
    """

    PAUSE = "pause"
    STOP = "stop"
    CANCEL = "cancel"
    NOW = "now"

    @property
    def stops(self) -> bool:
        """Whether what is out is to end, and nothing is sent until a person says so."""
        return self in (ControlKind.STOP, ControlKind.CANCEL)


@dataclass(frozen=True, slots=True)
class Scope:
    """A recipe, or the part of it that lies in a folder, is a batch, or belongs to a step.

    An empty `folder`, `batch` or `step` stands for all of them. A folder has those below it.
    """

    recipe: str
    folder: str = ""
    batch: str = ""
    step: str = ""

    def covers(self, recipe: str, batch: str, steps: Collection[str]) -> bool:
        """Whether any of these steps of the batch belongs to it."""
        return (
            self.recipe == recipe
            and self.batch in ("", batch)
            and (not self.step or self.step in steps)
            and _lies_in(_folder_of(batch), self.folder)
        )

    def holds(self, other: Scope) -> bool:
        """Whether all of the other scope lies in this one."""
        folder = _folder_of(other.batch) if other.batch else other.folder
        return (
            self.recipe == other.recipe
            and self.batch in ("", other.batch)
            and self.step in ("", other.step)
            and _lies_in(folder, self.folder)
        )

    @property
    def words(self) -> str:
        """The scope in words: `letters`, or `step read of batch a/0001 of letters`."""
        parts = [f"step {self.step}"] if self.step else []
        parts += [f"batch {self.batch}"] if self.batch else []
        parts += [f"folder {self.folder}"] if self.folder else []
        return " of ".join([*parts, self.recipe])


@dataclass(frozen=True, slots=True)
class Control:
    """One decision: `words` is the reason that was given, `by` who gave it, UTC `since` when."""

    kind: ControlKind
    scope: Scope
    words: str
    since: datetime
    by: str


_COLUMNS = (
    controls.c.kind,
    *(controls.c[name] for name in ("recipe", "folder", "batch", "step", "words", "since", "by")),
)
_SAME = [controls.c[name] for name in ("kind", "recipe", "folder", "batch", "step")]


class ControlBook:
    """What was decided and has not been taken back. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decide(
        self, kind: ControlKind, scopes: Iterable[Scope], words: str = "", by: str = ""
    ) -> None:
        """Keeps the decision for each scope; repeated, the latest reason counts.

        What stops takes back every `now` inside its scopes.
        """
        wanted = list(dict.fromkeys(scopes))
        now = datetime.now(UTC)
        rows = [
            {"kind": kind, **_named(scope), "words": kept_words(words), "since": now, "by": by}
            for scope in wanted
        ]

        def work(connection: sa.Connection) -> None:
            one_at_a_time(connection, "recipes controls")
            insert = insert_into(connection, controls)
            again = insert.on_conflict_do_update(
                index_elements=_SAME,
                set_={"words": insert.excluded.words, "by": insert.excluded.by},
            )
            connection.execute(again, rows)
            if kind.stops:
                _end(connection, (ControlKind.NOW,), wanted)

        if rows:
            self._database.write(work)

    def end(self, kinds: Collection[ControlKind], scope: Scope) -> list[Control]:
        """Takes back the decisions that lie in the scope; gives them."""

        def work(connection: sa.Connection) -> list[Control]:
            one_at_a_time(connection, "recipes controls")
            return _end(connection, kinds, [scope])

        return self._database.write(work)

    def all(self, recipe: str | None = None) -> list[Control]:
        """Every decision that holds, the oldest first."""
        query = sa.select(*_COLUMNS).order_by(controls.c.since, controls.c.id)
        if recipe is not None:
            query = query.where(controls.c.recipe == recipe)
        with self._database.reading() as connection:
            return [_control(row) for row in connection.execute(query)]

    def of_batch(self, recipe: str, batch: str) -> list[Control]:
        """Those that hold for any step of the batch, the oldest first."""
        query = (
            sa.select(*_COLUMNS)
            .where(controls.c.recipe == recipe, controls.c.batch.in_(("", batch)))
            .order_by(controls.c.since, controls.c.id)
        )
        with self._database.reading() as connection:
            found = [_control(row) for row in connection.execute(query)]
        return [each for each in found if _lies_in(_folder_of(batch), each.scope.folder)]


def _end(
    connection: sa.Connection, kinds: Collection[ControlKind], scopes: Collection[Scope]
) -> list[Control]:
    recipes = {scope.recipe for scope in scopes}
    query = sa.select(controls.c.id, *_COLUMNS).where(
        controls.c.kind.in_(list(kinds)), controls.c.recipe.in_(recipes)
    )
    if len(scopes) == 1 and (batch := next(iter(scopes)).batch):
        query = query.where(controls.c.batch == batch)
    inside = {
        row[0]: control
        for row in connection.execute(query).all()
        if any(scope.holds((control := _control(row[1:])).scope) for scope in scopes)
    }
    for portion in portions(list(inside)):
        connection.execute(sa.delete(controls).where(controls.c.id.in_(portion)))
    return list(inside.values())


def _named(scope: Scope) -> dict[str, str]:
    return {
        "recipe": scope.recipe,
        "folder": scope.folder,
        "batch": scope.batch,
        "step": scope.step,
    }


def _control(row: Sequence[Any]) -> Control:
    kind, recipe, folder, batch, step, words, since, by = row
    return Control(ControlKind(kind), Scope(recipe, folder, batch, step), words, since, by)


def _folder_of(batch: str) -> str:
    try:
        return split_batch_key(batch)[0]
    except ValueError:
        return ""


def _lies_in(folder: str, wanted: str) -> bool:
    return wanted in ("", ".", folder) or folder.startswith(f"{wanted}/")

"""Places that take nothing at the moment, with the reason in the provider's words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime

import sqlalchemy as sa

from .connection import Database, insert_into
from .tables import pauses
from .words import kept_words

__all__ = ["Pause", "PauseBook"]


@dataclass(frozen=True, slots=True)
class Pause:
    """A paused place: nothing is sent there. `until` None: until a person resumes it.

    `until_reached`: or until the place answers again, once a person has opened the connection.
    """

    place: str
    words: str
    since: datetime
    until: datetime | None
    until_reached: bool = False


_COLUMNS = tuple(pauses.c[field.name] for field in fields(Pause))


class PauseBook:
    """What is paused. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pause(
        self,
        place: str,
        words: str,
        until: datetime | None = None,
        *,
        until_reached: bool = False,
    ) -> None:
        """Pauses the place; the latest words and time count, and the first moment."""

        def work(connection: sa.Connection) -> None:
            insert = insert_into(connection, pauses)
            new = insert.excluded
            again = insert.on_conflict_do_update(
                index_elements=[pauses.c.place],
                set_={
                    "words": new.words,
                    "until": new.until,
                    "until_reached": new.until_reached,
                },
            )
            row = {
                "place": place,
                "words": kept_words(words),
                "since": datetime.now(UTC),
                "until": until,
                "until_reached": until_reached,
            }
            connection.execute(again, row)

        self._database.write(work)

    def of(self, place: str) -> Pause | None:
        """The place's pause, if it is paused now."""
        return next((pause for pause in self.all() if pause.place == place), None)

    def all(self) -> list[Pause]:
        """The pauses that hold now, by place."""
        now = datetime.now(UTC)
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(*_COLUMNS).order_by(pauses.c.place))
            found = [Pause(*row) for row in rows]
        return [pause for pause in found if pause.until is None or pause.until > now]

    def reached(self, place: str) -> bool:
        """The place has answered: a pause that waited for that is over; False when none did."""
        waiting = self.of(place)  # read first: a place that answers is asked often
        if waiting is None or not waiting.until_reached:
            return False
        end = sa.delete(pauses).where(pauses.c.place == place, pauses.c.until_reached)
        return self._database.write(lambda connection: connection.execute(end).rowcount > 0)

    def resume(self, place: str) -> bool:
        """Ends the place's pause; False when there was none."""
        end = sa.delete(pauses).where(pauses.c.place == place)
        return self._database.write(lambda connection: connection.execute(end).rowcount > 0)

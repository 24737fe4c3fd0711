"""All that a task was answered, as chunks that land one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from ...runner.work import Outcome
from ..place import Chunk, Sent
from .answering import Reading

__all__ = ["all_outcomes", "chunks"]

_CHUNK_ROWS = 5_000


def all_outcomes(reading: Reading, sent: Sent) -> Iterator[Outcome]:
    """The outcomes of all the answers that are kept, and of the calls that have none."""
    # Closed at once where a live call ends it: the error may be kept, and with it an open file.
    with closing(sent.answers.lines()) as lines:
        yield from reading.outcomes(lines)
    yield from reading.missing()


def chunks(outcomes: Iterable[Outcome]) -> Iterator[Chunk]:
    """Outcomes as chunks of bounded size; the same ones each time."""
    rows: list[Outcome] = []
    part = 1
    for outcome in outcomes:
        rows.append(outcome)
        if len(rows) >= _CHUNK_ROWS:
            yield Chunk(part, rows)
            rows, part = [], part + 1
    if rows:
        yield Chunk(part, rows)

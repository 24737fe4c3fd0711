"""The tags by which runs that wait for a place are known, in the UI and to the adopt sensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dagster._core.storage.tags import (
    AUTO_MATERIALIZE_TAG,
    AUTOMATION_CONDITION_TAG,
    BACKFILL_ID_TAG,
    PARENT_RUN_ID_TAG,
    PARTITION_NAME_TAG,
    RETRY_NUMBER_TAG,
    ROOT_RUN_ID_TAG,
    SCHEDULE_NAME_TAG,
    SENSOR_NAME_TAG,
)

from ..engine.consent import RUN_TAG

__all__ = [
    "AWAIT",
    "BACKFILL_ID_TAG",
    "CANCELLED",
    "CAP_USD",
    "CONTINUES",
    "DEATHS",
    "DEFERRING",
    "ENDED",
    "FAILURES",
    "FOR_PERSON",
    "FOR_SLOT",
    "FOR_TASKS",
    "MOST_CHARACTERS",
    "NO",
    "NOW",
    "OPEN",
    "PARENT_RUN_ID_TAG",
    "PARTITION_NAME_TAG",
    "PLACE",
    "RIVALS",
    "ROOT_RUN_ID_TAG",
    "SINCE",
    "STOPPED",
    "STOPPING",
    "TASK",
    "WAITING",
    "WORDS",
    "YES",
    "is_by_person",
    "is_now",
    "listed",
    "says_yes",
    "shown_ids",
    "tag_words",
]

AWAIT = "recipes/await"
"""On a continuation: `open` while it has to stay in the queue, `ended` once it may go."""

OPEN, ENDED = "open", "ended"

TASK = "recipes/task"
"""The remote ids of the tasks that are waited for."""

PLACE = "recipes/place"

WAITING = "recipes/waiting"
"""On a run that has nothing left to do but wait: for its tasks, for a slot at the place, or for a
person to resume what was paused.
"""

FOR_TASKS, FOR_SLOT, FOR_PERSON = "tasks", "slot", "person"

DEFERRING = "recipes/deferring"
"""On a run that ends once its continuation is queued: `yes`; `no` when it gave that up."""

YES, NO = "yes", "no"

CAP_USD = "recipes/cap_usd"
"""So many dollars must fit under the caps before the run has anything to do."""

SINCE = "recipes/since"
"""Since when a slot is waited for, UTC; kept from run to run, so that the first gets the first."""

RIVALS = "recipes/rivals"
"""The ledger's ids of other page batches' tasks that are waited for, because of equal pages."""

CONTINUES = "recipes/continues"
"""On a continuation: the run that it goes on with. A person's re-execution of it is none."""

DEATHS = "recipes/deaths"
"""How many runs before this one died without having said so."""

FAILURES = "recipes/failures"
"""How many runs before this one failed while their tasks were open."""

CANCELLED = "recipes/cancelled"
"""On a run that a person cancelled, once what it had left to do is stopped: its own id, since a
re-execution has the tags of the run before it."""

STOPPED = "recipes/stopped"
"""On a run that a person stopped: what came of the tasks it had waited for."""

WORDS = "recipes/words"
"""On the run of a decision: what came of it."""

STOPPING = "recipes/stopping"
"""On a run of the job `stop`: `yes` while tasks that it stopped are still to end, then `no`."""

NOW = "recipes/now"
"""Set by a person who waits: plain calls, whatever the number of pages."""

_BY_ITSELF = (
    AUTO_MATERIALIZE_TAG,
    AUTOMATION_CONDITION_TAG,
    SCHEDULE_NAME_TAG,
    SENSOR_NAME_TAG,
)

MOST_IDS = 3
MOST_RIVALS = 100
MOST_CHARACTERS = 200


def is_now(tags: Mapping[str, str]) -> bool:
    """Whether a person waits for the run."""
    return _is_yes(tags, NOW)


def says_yes(tags: Mapping[str, str]) -> bool:
    """Whether a person said for this run that its pages may leave."""
    return _is_yes(tags, RUN_TAG)


def _is_yes(tags: Mapping[str, str], name: str) -> bool:
    return tags.get(name, "").strip().lower() in ("true", "yes", "1")


def is_by_person(tags: Mapping[str, str]) -> bool:
    """Whether a person launched the run: no sensor, schedule or automation, and no retry did.

    A re-execution has the tags of the run before it and names that as its parent.
    """
    if RETRY_NUMBER_TAG in tags:
        return False
    parent = tags.get(PARENT_RUN_ID_TAG)
    if parent is not None:
        return tags.get(CONTINUES) != parent
    return not any(name in tags for name in _BY_ITSELF)


def listed(ids: Iterable[str]) -> str:
    """Ids as a tag's value: the first of them, for a tag has an end."""
    return ",".join(sorted(ids)[:MOST_RIVALS])


def tag_words(words: str) -> str:
    """Words as a tag's value: as many whole sentences as fit, or the first one cut off."""
    if len(words) <= MOST_CHARACTERS:
        return words
    fit, dot, _ = words[:MOST_CHARACTERS].rpartition(". ")
    return f"{fit}." if dot else f"{words[: MOST_CHARACTERS - 1]}…"


def shown_ids(ids: Iterable[str]) -> str:
    """A few remote ids as a tag's value, bounded in length; empty when there are none."""
    all_of_them = list(ids)
    few = ", ".join(all_of_them[:MOST_IDS])
    if len(few) > MOST_CHARACTERS:
        few = few[:MOST_CHARACTERS] + "…"
    more = len(all_of_them) - MOST_IDS
    return f"{few} and {more} more" if more > 0 else few

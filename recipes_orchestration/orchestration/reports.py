"""What a far side told of its work: replayed into the run's log, and shown in its metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import dagster as dg

from ..ledger.task_rows import TaskRow
from ..places.place import Report

__all__ = ["far_metadata", "replayer"]


class _Log(Protocol):
    def debug(self, msg: object, *args: object) -> None: ...
    def info(self, msg: object, *args: object) -> None: ...
    def warning(self, msg: object, *args: object) -> None: ...


def replayer(log: _Log) -> Callable[[TaskRow, Report], None]:
    """Says each message of a far side in the run's log, with the task's id at its place.

    An error over there is a warning here: whether the run fails is not for it to say.
    """
    say = {"debug": log.debug, "info": log.info}

    def replay(task: TaskRow, report: Report) -> None:
        for message in report.messages:
            say.get(message.level, log.warning)(
                "%s %s: %s", task.place, task.remote_id, message.words
            )

    return replay


def far_metadata(step: str, reports: Sequence[Mapping[str, Any]]) -> dict[str, dg.MetadataValue]:
    """Of one step of a batch, from the reports of its tasks; empty when there is none.

    Seconds a page, models loaded and what that took, and the most memory a task had.
    """
    told = [each for report in reports for each in report.get("steps", ()) if each["name"] == step]
    worked = [each["seconds"] for each in told if each["seconds"]["max"]]
    if not told:
        return {}
    metadata: dict[str, dg.MetadataValue] = {
        "model_loads": dg.MetadataValue.int(sum(each["model_loads"] for each in told)),
        "load_seconds": dg.MetadataValue.float(sum(each["load_seconds"] for each in told)),
    }
    memory = [float(each) for report in reports if (each := report.get("peak_memory_mb"))]
    if memory:
        metadata["peak_memory_mb"] = dg.MetadataValue.float(max(memory))
    if worked:
        metadata |= {
            "page_seconds_min": dg.MetadataValue.float(min(each["min"] for each in worked)),
            "page_seconds_median": dg.MetadataValue.float(
                sorted(each["median"] for each in worked)[len(worked) // 2]
            ),
            "page_seconds_max": dg.MetadataValue.float(max(each["max"] for each in worked)),
        }
    return metadata

"""What a task's runner told of its work: facts of its outcome, messages of its log. Untrusted."""

from __future__ import annotations

from collections import deque
from io import BufferedReader
from typing import Any

from ...runner.checked_json import Fields, json_of
from ...runner.journal import lines_of
from ...runner.task_folder import FORMAT
from ..place import Message
from .returned_lines import plain

__all__ = ["MOST_MESSAGES", "Told", "messages_of", "told_of"]

MOST_MESSAGES = 200
"""The last so many messages of a task are shown."""

MOST_OUTCOME_BYTES = 64 * 1024 * 1024
_LONGEST_MESSAGE_LINE = 64 * 1024
_MOST_STEPS = 1000
_MOST_VERSIONS = 50
_MOST = 10**15
_LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning"}
_WORST = "error"


class Told(dict[str, Any]):
    """The facts of a `Report`, with what decides how the task is taken.

    `complete`: the runner did all that could be done. `failure`: why the task as a whole could
    not be done. `results` are lines, bytes and hash of the results.
    """

    complete: bool = False
    failure: str | None = None
    results: tuple[int, int, str] | None = None


def told_of(data: bytes, task: str | None) -> Told:
    """An outcome out of its bytes. Raises `ValueError` for one that is not right.

    Also for the outcome of another task than `task`.
    """
    fields = Fields(json_of(data), "the outcome")
    if fields.take("format", int) != FORMAT:
        raise ValueError("it has another format")
    if task is not None and fields.take("task", str) != task:
        raise ValueError("it is of another task")
    failure = fields.maybe("failure", str)
    told = Told(
        steps=[_step(each) for each in fields.items("steps", at_most=_MOST_STEPS)],
        peak_memory_mb=fields.number("peak_memory_mb", least=0, most=_MOST),
        versions=_versions(fields.take("versions", dict)),
        restarts=fields.whole("restarts", least=0, most=_MOST),
        started=plain(fields.take("started", str))[:100],
        ended=plain(fields.take("ended", str))[:100],
    )
    told.complete = fields.take("complete", bool)
    told.failure = None if failure is None else plain(failure)
    results = Fields(fields.take("results", dict), "its results")
    told.results = (
        results.whole("lines", least=0, most=_MOST),
        results.whole("bytes", least=0, most=_MOST),
        results.take("sha256", str),
    )
    return told


def messages_of(stream: BufferedReader) -> tuple[Message, ...]:
    """The last messages of a log that `dagster_pipes` wrote; what is none is passed over."""
    last: deque[Message] = deque(maxlen=MOST_MESSAGES)
    count = 0
    for _, line in lines_of(stream, _LONGEST_MESSAGE_LINE):
        message = _message(line)
        if message is not None:
            count += 1
            last.append(message)
    if count > MOST_MESSAGES:
        last.popleft()
        left_out = count - len(last)
        last.appendleft(Message("info", f"{left_out:,} earlier messages are left out."))
    return tuple(last)


def _message(line: bytes) -> Message | None:
    try:
        fields = Fields(json_of(line), "a message")
        if fields.take("method", str) != "log":
            return None
        params = Fields(fields.take("params", dict), "a message")
        words, level = params.take("message", str), params.take("level", str)
    except ValueError:
        return None
    return Message(_LEVELS.get(level, _WORST), plain(words))


def _step(given: Any) -> dict[str, Any]:
    fields = Fields(given, "a step")
    seconds = Fields(fields.take("seconds", dict), "its seconds")
    counts = {
        name: fields.whole(name, least=0, most=_MOST)
        for name in ("landed", "failed", "left", "model_loads")
    }
    return {
        "name": plain(fields.take("name", str)),
        **counts,
        "load_seconds": fields.number("load_seconds", least=0, most=_MOST),
        "seconds": {
            name: seconds.number(name, least=0, most=_MOST)
            for name in ("min", "median", "max", "total")
        },
    }


def _versions(given: dict[Any, Any]) -> dict[str, str]:
    named = ((str(name), found) for name, found in given.items() if isinstance(found, str))
    return {plain(name)[:100]: plain(found)[:100] for name, found in sorted(named)[:_MOST_VERSIONS]}

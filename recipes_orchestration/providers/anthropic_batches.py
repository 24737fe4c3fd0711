"""Anthropic's Message Batches over HTTP.

https://platform.claude.com/docs/en/build-with-claude/batch-processing (November 2026).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InDoubt, ProviderError
from .anthropic_answers import read_result
from .batch_lists import BatchList
from .json_values import as_dict, as_text, count, tidy
from .provider import BatchState, BatchStatus, Call, Group
from .sdk_http import SaidNo, SdkHttp

__all__ = ["AROUND", "PATH", "AnthropicBatches"]

PATH = "/v1/messages/batches"
HEAD, TAIL = b'{"requests":[', b"]}"
# What a batch's body has more bytes than its lines: the last line's end is not sent.
AROUND = len(HEAD) + len(TAIL) - 1
BLOCK = 1024 * 1024
LIST_PAGE = 1000
COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


class AnthropicBatches:
    """The batches of one account."""

    def __init__(self, http: SdkHttp) -> None:
        self._http = http
        self.list = BatchList(http, PATH, "after_id", LIST_PAGE, _created, read_status)

    def create(self, group: Group, file: Path) -> str:
        """Creates a batch of the entries in the file, streamed as one JSON body."""
        with file.open("rb") as lines:
            size = os.fstat(lines.fileno()).st_size
            headers = {"content-length": str(size + AROUND), **beta_header(group)}
            batch = self._http.create(PATH, headers, content=_body(lines, size))
        id = batch.get("id")
        if not isinstance(id, str) or not id:
            raise ProviderError("Anthropic took a batch without giving its id; it is looked for.")
        return id

    def find(self, ids: Collection[str], since: datetime, known: Collection[str]) -> str | None:
        """The batch with these requests among those created since; the oldest when several fit.

        A batch has no name, and its requests are shown when it has ended. Raises `InDoubt` when
        only one that goes on has the right size.
        """
        ours = frozenset(ids)
        candidates = [
            batch
            for batch in self.list.since(since)
            if as_text(batch.get("id")) not in known and _size(batch) == len(ours)
        ]
        open_ids: list[str] = []
        for batch in reversed(candidates):
            id = as_text(batch.get("id"))
            if batch.get("processing_status") != "ended" or batch.get("archived_at"):
                open_ids.append(id)
            elif self._holds(id, ours):
                return id
        if open_ids:
            raise InDoubt(
                f"Anthropic works on {' and '.join(open_ids)}, as large as the batch whose answer "
                "was lost, and shows its requests when it has ended. Nothing is sent until then; "
                "cancel it at Anthropic if it must be sooner."
            )
        return None

    def statuses(self, ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How each stands, from the list."""
        return self.list.statuses(ids)

    def results(self, id: str) -> Iterator[bytes]:
        """The result lines; the path is ours, as an address from an answer would get the key."""
        return self._http.lines(f"{self.list.place(id)}/results")

    def cancel(self, id: str) -> None:
        """Asks to end the batch; one that has ended or is gone is no error."""
        try:
            self._http.post(f"{self.list.place(id)}/cancel")
        except SaidNo as no:
            if no.account or self.list.one(id).state is BatchState.RUNNING:
                raise

    def plain(self, call: Call) -> tuple[int, bytes]:
        """The call by itself."""
        return self._http.call(call.group.route, call.body, beta_header(call.group))

    def _holds(self, id: str, ours: frozenset[str]) -> bool:
        """Whether the results are of our requests: they are until one is not."""
        seen = False
        for raw in self.results(id):
            line = read_result(raw)
            if line is not None and line.id not in ours:
                return False
            seen = seen or line is not None
        return seen


def beta_header(group: Group) -> dict[str, str]:
    """The header that carries the betas of a call or of all calls of a batch."""
    return {"anthropic-beta": ",".join(group.betas)} if group.betas else {}


def read_status(batch: Mapping[str, Any]) -> BatchStatus:
    """How a batch stands. One that was cancelled ends as `ended` too; none fails as a whole."""
    status = as_text(batch.get("processing_status"))
    numbers = as_dict(batch.get("request_counts"))
    counts = {name: count(numbers.get(name)) for name in COUNTS}
    told = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    archived = "; archived, its results are gone" if batch.get("archived_at") else ""
    total = sum(counts.values())
    return BatchStatus(
        state=BatchState.ENDED if status == "ended" else BatchState.RUNNING,
        words=f"{tidy(status)}: {told or 'no counts'}{archived}",
        answered=total - counts["processing"],
        requests=total,
        expired=counts["expired"] > 0,
    )


def _body(lines: BinaryIO, size: int) -> Iterator[bytes]:
    """The file's lines as one JSON body: their ends, which stand nowhere else, become commas."""
    yield HEAD
    left = size - 1
    while left > 0:
        block = lines.read(min(BLOCK, left))
        if not block:
            break
        left -= len(block)
        yield block.replace(b"\n", b",")
    yield TAIL


def _size(batch: Mapping[str, Any]) -> int:
    numbers = as_dict(batch.get("request_counts"))
    return sum(count(numbers.get(name)) for name in COUNTS)


def _created(batch: Mapping[str, Any]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(as_text(batch.get("created_at")))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""What all rehearsed providers have in common: scripts, batches, counts, and spoiled replies."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .answers import Asked
from .batch import Batch
from .fates import Fate, fate_of
from .script import Script

__all__ = ["Side", "paged", "token"]

CHUNK = 128 * 1024
_NUMBERS = itertools.count(1)
_RUN = uuid.uuid4().hex
_SEQUENCES = ("create_status", "plain_status", "status_status", "results_status")
_TIMES = ("lose_reply", "lose_upload_reply", "cut_results")


def token(length: int = 24) -> str:
    """An id nobody has used."""
    return f"{next(_NUMBERS):08x}{_RUN}"[:length]


class Side(ABC):
    """One provider's side: what it was told to do, what it holds, and what was asked of it."""

    name = ""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets everything, the script too."""
        self.script = Script()
        self.batches: dict[str, Batch] = {}
        self.calls: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.plain_sent: Counter[str] = Counter()
        self._next: list[tuple[Script, int]] = []
        self._left: dict[str, list[int]] = {}
        self._times: Counter[str] = Counter()

    def routes(self) -> list[Route]:
        """Its endpoints."""
        return []

    def close(self) -> None:  # noqa: B027  most have nothing open
        """Lets go of what is open."""

    @abstractmethod
    def unauthorized(self, request: Request) -> Response | None:
        """The refusal of a request without a key, or with a bad one."""

    @abstractmethod
    def error(self, status: int) -> Response:
        """An error in the provider's own shape and words."""

    @abstractmethod
    async def looked_at(self, request: Request, batch: Batch) -> Response:
        """The batch as it stands, which is a look at it."""

    @abstractmethod
    def ended_already(self, batch: Batch) -> Response:
        """The refusal to cancel a batch that has ended."""

    def asked_for(self, request: Request) -> Batch | None:
        """The batch that a request names; None when there is none."""
        return self.found(request.path_params["id"])

    def unknown(self, request: Request) -> Response:  # noqa: ARG002
        """The refusal of a request that names no batch."""
        return self.error(404)

    def cancelling(self, request: Request, batch: Batch) -> Response:  # noqa: ARG002
        """The answer to a cancel that was accepted."""
        return JSONResponse({})

    def unreadable(self, request: Request) -> Response | None:
        """The refusal to show batches: the key's or the script's."""
        if refused := self.unauthorized(request):
            return refused
        status = self.taken("status_status")
        return None if status == 200 else self.error(status)

    async def get(self, request: Request) -> Response:
        """The endpoint that shows one batch."""
        self.calls["gets"] += 1
        if refused := self.unreadable(request):
            return refused
        batch = self.asked_for(request)
        return self.unknown(request) if batch is None else await self.looked_at(request, batch)

    async def cancel(self, request: Request) -> Response:
        """The endpoint that ends a batch early."""
        self.calls["cancels"] += 1
        if refused := self.unauthorized(request):
            return refused
        batch = self.asked_for(request)
        if batch is None:
            return self.unknown(request)
        if batch.end is not None:
            return self.ended_already(batch)
        batch.cancel()
        return self.cancelling(request, batch)

    def set_script(self, script: Script) -> None:
        """From now on; for the next batches alone when the script says so."""
        if script.batches is None:
            self.script = script
            self._next = []
        else:
            self._next.append((script, script.batches))
        for key in _SEQUENCES:
            self._left[key] = list(getattr(script, key))
        for key in _TIMES:
            self._times[key] = getattr(script, key)

    def coming_script(self) -> Script:
        """What the next batch will be made with."""
        return self._next[0][0] if self._next else self.script

    def refusal(self) -> str:
        """Why the script refuses a create, empty when it does not. One refused is one batch."""
        refusal = self.coming_script().refuse_create
        if refusal:
            self.calls["refused"] += 1
            self._count_down()
        return refusal

    def add(self, batch: Batch) -> None:
        """Keeps a batch that was accepted, with the script that is its."""
        self.batches[batch.id] = batch
        self.sent.update(batch.lines.ids)
        self._count_down()

    def _count_down(self) -> None:
        if self._next:
            script, left = self._next[0]
            self._next[:1] = [(script, left - 1)] if left > 1 else []

    def taken(self, sequence: str) -> int:
        """The next HTTP status of a sequence, 200 when there is none."""
        left = self._left.get(sequence)
        return left.pop(0) if left else 200

    def found(self, id: str) -> Batch | None:
        """The batch of an id, None when it is not known, deleted or said to be forgotten."""
        batch = self.batches.get(id)
        return None if batch is None or self.forgets(batch) else batch

    def forgets(self, batch: Batch) -> bool:
        """Whether this batch is deleted, or the script says that it is forgotten."""
        gone = {*self.script.forget, *batch.script.forget}
        return batch.deleted or batch.id in gone or "*" in gone

    def newest(self) -> list[Batch]:
        """All batches that are neither deleted nor forgotten, the newest first."""
        return [each for each in reversed(list(self.batches.values())) if not self.forgets(each)]

    def fate(self, asked: Asked) -> Fate:
        """What becomes of a plain call, which is counted."""
        self.calls["plain"] += 1
        self.plain_sent[asked.digest[:12]] += 1
        return fate_of(self.script, asked.digest)

    async def wait(self) -> None:
        """As long as a plain call takes."""
        if self.script.plain_seconds:
            await asyncio.sleep(self.script.plain_seconds)

    async def reply(self, request: Request, response: Response, script: Script) -> Response:
        """The answer to a create that was accepted: lost, late or as it is."""
        if self._uses_up("lose_reply"):
            return dropped(request)
        if script.hang_reply_seconds:
            await asyncio.sleep(script.hang_reply_seconds)
        return response

    def upload_reply(self, request: Request, response: Response) -> Response:
        """The answer to an upload: lost or as it is."""
        return dropped(request) if self._uses_up("lose_upload_reply") else response

    def stream(
        self, request: Request, lines: Iterator[bytes], script: Script, media: str
    ) -> Response:
        """Result lines as they are made, a chunk at a time, slow or cut off by the script."""
        self.calls["results"] += 1
        cut = self._uses_up("cut_results")

        async def chunks() -> AsyncIterator[bytes]:
            for chunk in _joined(lines):
                if cut:
                    yield chunk[: len(chunk) // 2]
                    await asyncio.sleep(0.05)
                    abort(request)
                    return
                yield chunk
                # Other requests get their turn; a send that need not wait gives them none.
                await asyncio.sleep(script.slow_results)

        return StreamingResponse(chunks(), media_type=media)

    def _uses_up(self, times: str) -> bool:
        used = self._times[times] > 0
        self._times[times] -= used
        return used

    def finish(self) -> int:
        """Ends all open batches at once; how many there were."""
        open_ones = [each for each in list(self.batches.values()) if each.end is None]
        for batch in open_ones:
            batch.finish()
        return len(open_ones)

    def counts(self, *, hashes: bool = False) -> dict[str, Any]:
        """What was asked of this provider. `hashes` reads every request, which takes its time."""
        batches = list(self.batches.values())
        counts: dict[str, Any] = {
            "batches": [
                {
                    "id": each.id,
                    "name": each.name,
                    "size": each.size,
                    "state": each.end or ("cancelling" if each.cancelled else "running"),
                    "reads": each.reads,
                }
                for each in batches
            ],
            "requests": dict(self.sent),
            "plain_requests": dict(self.plain_sent),
            **{key: self.calls[key] for key in _CALLS},
        }
        if hashes:
            counts["hashes"] = Counter(
                each.ask(each.lines, number).digest[:12]
                for each in batches
                for number in range(each.size)
            )
        return counts


_CALLS = (
    *("plain", "creates", "lists", "gets", "results", "cancels", "uploads", "deletes"),
    "refused",
)


def _joined(lines: Iterator[bytes]) -> Iterator[bytes]:
    chunk = bytearray()
    for line in lines:
        chunk += line
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


def abort(request: Request) -> None:
    """Closes the connection of a request without another word."""
    request.scope["rehearsal.transport"].abort()


def dropped(request: Request) -> Response:
    """No answer at all."""
    abort(request)
    return Response(status_code=500)


def paged(items: list[Batch], after: str | None, limit: int) -> list[Batch]:
    """At most `limit` of the batches that follow the one with the id `after`."""
    ids = [each.id for each in items]
    start = ids.index(after) + 1 if after in ids else 0
    return items[start : start + limit]

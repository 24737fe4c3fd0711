"""Anthropic's Messages API and Message Batches API, as docs.claude.com describes them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .anthropic_answers import (
    FILTERED,
    ask,
    asked_in,
    error_object,
    foreign_line,
    message,
    result,
)
from .batch import Batch, End, Phase, result_lines
from .bodies import Lines, TooLarge, array_lines, receive
from .fates import Fate
from .side import Side, token

__all__ = ["AnthropicSide"]

MAX_BYTES = 256 * 2**20
MAX_REQUESTS = 100_000
MAX_PLAIN_BYTES = 32 * 2**20
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_CREDIT = (
    "Your credit balance is too low to access the Anthropic API. "
    "Please go to Plans & Billing to upgrade or purchase credits."
)


class AnthropicSide(Side):
    """Anthropic."""

    name = "anthropic"

    def routes(self) -> list[Route]:
        """Its endpoints."""
        one = "/v1/messages/batches/{id}"
        return [
            Route("/v1/messages", self.plain, methods=["POST"]),
            Route("/v1/messages/batches", self.create, methods=["POST"]),
            Route("/v1/messages/batches", self.list_batches, methods=["GET"]),
            Route(one, self.get, methods=["GET"]),
            Route(one, self.delete, methods=["DELETE"]),
            Route(one + "/results", self.results, methods=["GET"]),
            Route(one + "/cancel", self.cancel, methods=["POST"]),
        ]

    async def plain(self, request: Request) -> Response:
        """POST /v1/messages."""
        try:
            body = await receive(request, MAX_PLAIN_BYTES)
        except TooLarge:
            return _error(413)
        if refused := _unauthorized(request):
            return refused
        if (status := self.taken("plain_status")) != 200:
            self.calls["refused"] += 1
            return _error(status)
        asked = asked_in(body.bytes())
        if not asked.model:
            return _error(400, "model: Field required")
        if "unknown" in asked.model:
            return _error(404, f"model: {asked.model}")
        script = self.script
        fate = self.fate(asked)
        await self.wait()
        if fate is Fate.ACCOUNT:
            return _error(400, script.account_error)
        if fate is Fate.FILTERED:
            return _error(400, FILTERED)
        if fate is Fate.ERRORED:
            return _error(500, script.error_message)
        return JSONResponse(message(asked, fate, script), headers=_headers())

    async def create(self, request: Request) -> Response:
        """POST /v1/messages/batches."""
        self.calls["creates"] += 1
        try:
            body = await receive(request, MAX_BYTES)
        except TooLarge:
            return _error(413)
        if refused := _unauthorized(request) or self._refused():
            return refused
        try:
            lines = array_lines(body, id_key=b"custom_id", body_key=b"params")
        except ValueError as error:
            return _error(400, f"{error}: Invalid request")
        if wrong := _wrong(lines):
            return _error(400, wrong)
        script = self.coming_script()
        batch = Batch(f"msgbatch_{token()}", "", lines, script, ask, ask(lines, 0).model)
        batch.details["betas"] = request.headers.get("anthropic-beta", "")
        self.add(batch)
        response = self._shown(request, batch, Phase.RUNNING)
        return await self.reply(request, response, script)

    def _refused(self) -> Response | None:
        if (status := self.taken("create_status")) != 200:
            self.calls["refused"] += 1
            return _error(status)
        answers = {
            "credit": (400, _CREDIT),
            "key": (401, ""),
            "model": (404, "model: unknown"),
            "rate": (429, ""),
            "enqueued_tokens": (
                429,
                "Your organization has reached its limit of batch requests in the processing "
                "queue. Please wait until some of them have been processed.",
            ),
        }
        refusal = self.refusal()
        return _error(*answers[refusal]) if refusal else None

    async def list_batches(self, request: Request) -> Response:
        """GET /v1/messages/batches, the newest first."""
        self.calls["lists"] += 1
        if refused := self.unreadable(request):
            return refused
        query = request.query_params
        limit = int(query.get("limit", 20))
        if not 1 <= limit <= 1000:
            return _error(400, "limit: Input should be between 1 and 1000")
        batches = self.newest()
        ids = [each.id for each in batches]
        if (before := query.get("before_id")) in ids:
            end = ids.index(str(before))
            shown, more = batches[max(0, end - limit) : end], end > limit
        else:
            after = query.get("after_id")
            start = ids.index(after) + 1 if after in ids else 0
            shown, more = batches[start : start + limit], start + limit < len(ids)
        answer = {
            "data": [self._object(request, each, each.look()) for each in shown],
            "has_more": more,
            "first_id": shown[0].id if shown else None,
            "last_id": shown[-1].id if shown else None,
        }
        return JSONResponse(answer, headers=_headers())

    async def looked_at(self, request: Request, batch: Batch) -> Response:
        """The batch; see `Side`."""
        return self._shown(request, batch, batch.look())

    def unauthorized(self, request: Request) -> Response | None:
        """Its refusal; see `Side`."""
        return _unauthorized(request)

    def error(self, status: int) -> Response:
        """An error in its words; see `Side`."""
        return _error(status)

    def ended_already(self, batch: Batch) -> Response:
        """Its refusal; see `Side`."""
        return _error(400, f"Batch {batch.id} cannot be canceled: it has already ended.")

    def unknown(self, request: Request) -> Response:
        """Its refusal; see `Side`."""
        return _unknown(request)

    def cancelling(self, request: Request, batch: Batch) -> Response:
        """The batch as it stands."""
        return self._shown(request, batch, Phase.CANCELLING)

    async def delete(self, request: Request) -> Response:
        """DELETE /v1/messages/batches/{id}; one that goes on cannot be deleted."""
        self.calls["deletes"] += 1
        if refused := _unauthorized(request):
            return refused
        batch = self.found(request.path_params["id"])
        if batch is None:
            return _unknown(request)
        if batch.look(read=False) is not Phase.ENDED:
            return _error(400, f"Batch {batch.id} cannot be deleted: it is still processing.")
        batch.deleted = True
        answer = {"id": batch.id, "type": "message_batch_deleted"}
        return JSONResponse(answer, headers=_headers())

    async def results(self, request: Request) -> Response:
        """GET /v1/messages/batches/{id}/results."""
        if refused := _unauthorized(request):
            return refused
        if (status := self.taken("results_status")) != 200:
            return _error(status)
        batch = self.found(request.path_params["id"])
        if batch is None:
            return _unknown(request)
        if batch.end is None:
            return _error(404, f"Batch {batch.id} has no available results.")

        lines = result_lines(
            batch,
            lambda number: result(batch, number),
            lambda id: foreign_line(id, batch.script),
        )
        return self.stream(request, lines, batch.script, "application/x-jsonl")

    def _shown(self, request: Request, batch: Batch, phase: Phase) -> Response:
        return JSONResponse(self._object(request, batch, phase), headers=_headers())

    def _object(self, request: Request, batch: Batch, phase: Phase) -> dict[str, Any]:
        ended = phase is Phase.ENDED
        expired, cancelled = batch.count(Fate.EXPIRED), batch.count(Fate.CANCELLED)
        errored = batch.count(Fate.ERRORED, Fate.ACCOUNT, Fate.STATUS_400, Fate.FILTERED)
        all_failed = batch.end is End.FAILED or "unknown" in batch.model
        failed = batch.size if all_failed else errored
        states = {Phase.ENDED: "ended", Phase.CANCELLING: "canceling"}
        url = (
            f"{str(request.base_url).rstrip('/')}/anthropic/v1/messages/batches/{batch.id}/results"
        )
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": states.get(phase, "in_progress"),
            "request_counts": {
                "processing": 0 if ended else batch.size,
                "succeeded": batch.size - failed - expired - cancelled if ended else 0,
                "errored": failed,
                "canceled": cancelled,
                "expired": expired,
            },
            "ended_at": _time(batch.ended),
            "created_at": _time(batch.created),
            "expires_at": _time(batch.created + timedelta(hours=24)),
            "archived_at": None,
            "cancel_initiated_at": _time(batch.cancelled),
            "results_url": url if ended else None,
        }


def _wrong(lines: Lines) -> str:
    if not len(lines):
        return "requests: List should have at least 1 item after validation, not 0"
    if len(lines) > MAX_REQUESTS:
        return f"requests: List should have at most {MAX_REQUESTS} items after validation"
    for number, id in enumerate(lines.ids):
        if not _CUSTOM_ID.match(id):
            return (
                f"requests.{number}.custom_id: "
                "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
            )
    if len(set(lines.ids)) < len(lines):
        seen: set[str] = set()
        twice = next(id for id in lines.ids if id in seen or seen.add(id))
        return f"requests: custom_id must be unique within a batch: {twice}"
    return ""


def _unauthorized(request: Request) -> Response | None:
    key = request.headers.get("x-api-key") or request.headers.get("authorization", "")
    if not key:
        return _error(401, "x-api-key header is required")
    return _error(401) if "bad" in key else None


def _unknown(request: Request) -> Response:
    return _error(404, f"Message batch {request.path_params['id']} not found.")


def _error(status: int, words: str = "") -> Response:
    headers = _headers()
    if status == 429:
        headers["retry-after"] = "0"
    return JSONResponse(error_object(status, words), status_code=status, headers=headers)


def _headers() -> dict[str, str]:
    return {"request-id": f"req_{token()}"}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")

"""Gemini's batches and plain calls, as the google-genai SDK 3.6 asks for them (v1 and v1beta)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .answers import encoded
from .batch import Batch, End, Phase, mended, result_lines
from .bodies import Body, Lines, TooLarge, file_lines, receive
from .fates import Fate
from .gemini_answers import (
    ask,
    asked_in,
    content_response,
    embedding,
    foreign_line,
    result,
)
from .gemini_errors import error, not_found, time, unauthorized
from .gemini_files import FilesSide, GeminiFile
from .side import paged, token

__all__ = ["GeminiSide"]

MAX_INLINE_BYTES = 20 * 2**20
MAX_PLAIN_BYTES = 100 * 2**20
_KEY = re.compile(rb'\{\s*"key"\s*:\s*"([^"\\]*)"')
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main."
_CREDIT = "Your prepayment credits are depleted. Please go to AI Studio to manage your billing."
_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. "
    "* Quota exceeded for metric: generativelanguage.googleapis.com/batch_enqueued_tokens"
)


class GeminiSide(FilesSide):
    """Gemini."""

    name = "gemini"

    def routes(self) -> list[Route]:
        """Its endpoints."""
        one = "/{version}/batches/{id}"
        return [
            *super().routes(),
            Route("/{version}/models/{model}:{method}", self.model_call, methods=["POST"]),
            Route("/{version}/batches", self.list_batches, methods=["GET"]),
            Route(one + ":cancel", self.cancel, methods=["POST"]),
            Route(one, self.get, methods=["GET"]),
            Route(one, self.delete, methods=["DELETE"]),
        ]

    async def model_call(self, request: Request) -> Response:
        """POST /v1beta/models/{model}:{method}: a plain call or a new batch."""
        model, method = request.path_params["model"], request.path_params["method"]
        batch = method in ("batchGenerateContent", "asyncBatchEmbedContent")
        try:
            body = await receive(request, MAX_INLINE_BYTES if batch else MAX_PLAIN_BYTES)
        except TooLarge:
            words = f"Request payload size exceeds the limit: {MAX_INLINE_BYTES} bytes."
            return error(400, words)
        if refused := unauthorized(request):
            return refused
        if batch:
            return await self._create(request, body, model, method)
        if method not in ("generateContent", "embedContent", "batchEmbedContents"):
            return error(404)
        return await self._plain(body, model, method)

    async def _plain(self, body: Body, model: str, method: str) -> Response:
        if (status := self.taken("plain_status")) != 200:
            self.calls["refused"] += 1
            return error(status)
        if "unknown" in model:
            return not_found(model, method)
        given = mended(body.bytes())
        script = self.script
        asked = asked_in(given, model)
        fate = self.fate(asked)
        await self.wait()
        if fate is Fate.ACCOUNT:
            return error(429, script.account_error)
        if fate is Fate.ERRORED:
            return error(500, script.error_message)
        if method == "generateContent":
            return JSONResponse(content_response(asked, fate, script))
        if method == "embedContent":
            values, tokens = embedding(given, fate)
            answer: dict[str, Any] = {"embedding": values}
        else:
            each = [embedding(one, fate) for one in given.get("requests", [])]
            answer = {"embeddings": [values for values, _ in each]}
            tokens = sum(tokens for _, tokens in each)
        return JSONResponse({**answer, "usageMetadata": {"promptTokenCount": tokens}})

    async def _create(self, request: Request, body: Body, model: str, method: str) -> Response:
        self.calls["creates"] += 1
        if refused := self._refused(model, method):
            return refused
        given: Any = mended(body.bytes()).get("batch") or {}
        source = given.get("inputConfig") or given.get("input_config") or {}
        inline = "requests" in source
        lines = self._lines(source)
        if lines is None:
            return error(400, "The input file does not exist or has expired.")
        if not len(lines):
            return error(400, "The batch has no requests.")
        script = self.coming_script()
        name = str(given.get("displayName", given.get("display_name", "")))
        batch = Batch(f"batches/{token()}", name, lines, script, ask, f"models/{model}")
        batch.details.update(inline=inline, embeds=method == "asyncBatchEmbedContent")
        self.add(batch)
        shown = JSONResponse(self._object(batch, None))
        return await self.reply(request, shown, script)

    def _refused(self, model: str, method: str) -> Response | None:
        if (status := self.taken("create_status")) != 200:
            self.calls["refused"] += 1
            return error(status)
        if "unknown" in model:
            return not_found(model, method)
        refusal = self.refusal()
        if refusal == "key":
            words = "API key not valid. Please pass a valid API key."
            return error(400, words, reason="API_KEY_INVALID")
        if refusal == "model":
            return not_found(model, method)
        words = {"credit": _CREDIT, "enqueued_tokens": _QUOTA, "rate": "Rate limit exceeded."}
        return error(429, words[refusal]) if refusal else None

    def _lines(self, source: Any) -> Lines | None:
        if "requests" in source:
            return _inline_lines(source["requests"].get("requests") or [])
        file = self.files.get(str(source.get("fileName", source.get("file_name"))))
        return None if file is None or file.body is None else _file_lines(file.body)

    async def list_batches(self, request: Request) -> Response:
        """GET /v1beta/batches, the newest first. Inline results are in `get` alone."""
        self.calls["lists"] += 1
        if refused := self.unreadable(request):
            return refused
        query, batches = request.query_params, self.newest()
        limit = min(int(query.get("pageSize", 50)), 1000)
        shown = paged(batches, query.get("pageToken"), limit)
        answer: dict[str, Any] = {"operations": [self._object(each, each.look()) for each in shown]}
        if shown and shown[-1].id != batches[-1].id:
            answer["nextPageToken"] = shown[-1].id
        return JSONResponse(answer)

    async def looked_at(self, request: Request, batch: Batch) -> Response:
        """The batch; see `Side`."""
        shown = self._object(batch, batch.look())
        if "output" not in shown["metadata"] or not batch.details["inline"]:
            return JSONResponse(shown)
        return self.stream(request, _inlined(shown, batch), batch.script, "application/json")

    def unauthorized(self, request: Request) -> Response | None:
        """Its refusal; see `Side`."""
        return unauthorized(request)

    def error(self, status: int) -> Response:
        """An error in its words; see `Side`."""
        return error(status)

    def ended_already(self, batch: Batch) -> Response:  # noqa: ARG002
        """Its refusal; see `Side`."""
        return error(400, "The batch has ended already.", kind="FAILED_PRECONDITION")

    async def delete(self, request: Request) -> Response:
        """DELETE /v1beta/batches/{id}."""
        self.calls["deletes"] += 1
        if refused := unauthorized(request):
            return refused
        batch = self.asked_for(request)
        if batch is None:
            return error(404)
        batch.deleted = True
        return JSONResponse({})

    def asked_for(self, request: Request) -> Batch | None:
        """The batch that a request names; see `Side`."""
        return self.found(f"batches/{request.path_params['id']}")

    def _object(self, batch: Batch, phase: Phase | None) -> dict[str, Any]:
        done = batch.end is not None
        good = batch.answered
        bad = batch.count(Fate.ERRORED, Fate.ACCOUNT, Fate.STATUS_400)
        kind = "EmbedContentBatch" if batch.details["embeds"] else "GenerateContentBatch"
        metadata = {
            "@type": _TYPE + kind,
            "name": batch.id,
            "model": batch.model,
            "displayName": batch.name,
            "createTime": time(batch.created),
            "updateTime": time(batch.ended or batch.created),
            "state": _state(batch, phase),
            "batchStats": {
                "requestCount": str(batch.size),
                "successfulRequestCount": str(good),
                "failedRequestCount": str(bad),
                "pendingRequestCount": str(batch.size - good - bad),
            },
        }
        shown: dict[str, Any] = {"name": batch.id, "metadata": metadata, "done": done}
        if not done:
            return shown
        metadata["endTime"] = time(batch.ended)
        if good or bad:
            output = {} if batch.details["inline"] else {"responsesFile": self._results(batch)}
            metadata["output"] = output
            shown["response"] = {"@type": _TYPE + kind + "Output", **output}
        elif batch.end is not End.COMPLETED:
            words = batch.script.fail_message or f"The batch {batch.end}."
            shown["error"] = {"code": 3, "message": words}
        return shown

    def _results(self, batch: Batch) -> str:
        name = f"files/batch-{batch.id.removeprefix('batches/')}"
        if not batch.details.get("results"):
            batch.details["results"] = name
            self.files[name] = GeminiFile(
                name, lines=lambda: _all_lines(batch), script=batch.script
            )
        return name


def _state(batch: Batch, phase: Phase | None) -> str:
    if batch.end is not None:
        ended = {End.COMPLETED: "SUCCEEDED"}.get(batch.end, batch.end.upper())
        return f"BATCH_STATE_{ended}"
    waits = phase is None or batch.script.expire_after == 0
    return "BATCH_STATE_PENDING" if waits else "BATCH_STATE_RUNNING"


def _all_lines(batch: Batch) -> Iterator[bytes]:
    return result_lines(
        batch, lambda number: result(batch, number), lambda id: foreign_line(batch, id)
    )


def _inlined(shown: dict[str, Any], batch: Batch) -> Iterator[bytes]:
    """The batch with its results in it, a result at a time."""
    mark = "the results come here"
    shown["metadata"]["output"] = {"inlinedResponses": {"inlinedResponses": [mark]}}
    shown.pop("response", None)
    before, after = encoded(shown).split(encoded(mark))
    yield before
    for number, line in enumerate(_all_lines(batch)):
        spoiled = batch.script.malformed and number < 3
        yield (b"," if number else b"") + (b"null" if spoiled else line)
    yield after


def _inline_lines(requests: list[Any]) -> Lines:
    raws = [to_json(each) for each in requests]
    lines, at = Lines(Body(b"".join(raws))), 0
    for number, (each, raw) in enumerate(zip(requests, raws, strict=True)):
        metadata: Any = each.get("metadata") or {}
        lines.add(str(metadata.get("key", number)), at, at + len(raw))
        at += len(raw)
    return lines


def _file_lines(body: Body) -> Lines:
    lines = Lines(body)
    for number, (start, stop) in enumerate(file_lines(body)):
        found = _KEY.match(body.bytes(start, min(stop, start + 1024)))
        id = found[1].decode() if found else mended(body.bytes(start, stop)).get("key", number)
        lines.add(str(id), start, stop)
    return lines

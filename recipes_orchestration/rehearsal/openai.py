"""OpenAI's files, batches and plain calls, as platform.openai.com describes them."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .batch import Batch, End, Phase, mended, result_lines
from .bodies import TooLarge, receive
from .fates import Fate
from .openai_answers import (
    ROUTES,
    ask,
    asked_in,
    error_line,
    foreign_line,
    output_line,
    response,
)
from .openai_errors import error, headers, seconds, unauthorized
from .openai_files import FilesSide, StoredFile, Wrong, checked_lines
from .side import paged, token

__all__ = ["OpenaiSide"]

MAX_PLAIN_BYTES = 64 * 2**20
DAY = 86_400
_ENQUEUED = (
    "Enqueued token limit reached for {model} in organization org-rehearsal. Limit: 90,000 "
    "enqueued tokens. Please try again once some in_progress batches have been completed."
)


class OpenaiSide(FilesSide):
    """OpenAI."""

    name = "openai"

    def routes(self) -> list[Route]:
        """Its endpoints."""
        batch = "/v1/batches/{id}"
        return [
            *(Route(route, self.plain, methods=["POST"]) for route in ROUTES),
            *super().routes(),
            Route("/v1/batches", self.create, methods=["POST"]),
            Route("/v1/batches", self.list_batches, methods=["GET"]),
            Route(batch, self.get, methods=["GET"]),
            Route(batch + "/cancel", self.cancel, methods=["POST"]),
        ]

    async def plain(self, request: Request) -> Response:
        """POST /v1/chat/completions, /v1/responses, /v1/embeddings."""
        try:
            body = await receive(request, MAX_PLAIN_BYTES)
        except TooLarge:
            return error(413)
        if refused := unauthorized(request):
            return refused
        if (status := self.taken("plain_status")) != 200:
            self.calls["refused"] += 1
            return error(status)
        asked = asked_in(mended(body.bytes()))
        if not asked.model:
            return error(400, "you must provide a model parameter")
        if "unknown" in asked.model:
            words = f"The model `{asked.model}` does not exist or you do not have access to it."
            return error(404, words, "model_not_found")
        script = self.script
        fate = self.fate(asked)
        await self.wait()
        if fate is Fate.ACCOUNT:
            return error(429, script.account_error, "insufficient_quota")
        if fate is Fate.ERRORED:
            return error(500, script.error_message)
        route = request.url.path.removeprefix("/openai")
        return JSONResponse(response(route, asked, fate, script), headers=headers())

    async def create(self, request: Request) -> Response:
        """POST /v1/batches."""
        self.calls["creates"] += 1
        given = mended(await request.body())
        if refused := unauthorized(request) or self._refused():
            return refused
        file = self.files.get(str(given.get("input_file_id")))
        if file is None or file.body is None:
            words = f"Invalid 'input_file_id': no such File object: {given.get('input_file_id')}"
            return error(400, words, "invalid_value", "input_file_id")
        endpoint = given.get("endpoint")
        if endpoint not in ROUTES:
            return error(400, f"Invalid value: '{endpoint}'.", "invalid_value", "endpoint")
        metadata = given.get("metadata") or {}
        if len(metadata) > 16 or any(len(str(value)) > 512 for value in metadata.values()):
            return error(400, "Invalid 'metadata'.", "invalid_value", "metadata")
        script = self.coming_script()
        lines, model, wrong = checked_lines(file, endpoint)
        batch = Batch(f"batch_{token()}", str(metadata.get("name", "")), lines, script, ask, model)
        batch.doomed = wrong is not None
        batch.details.update(endpoint=endpoint, file=file.id, metadata=metadata, wrong=wrong)
        self.add(batch)
        shown = JSONResponse(self._object(batch, None), headers=headers())
        return await self.reply(request, shown, script)

    def _refused(self) -> Response | None:
        if (status := self.taken("create_status")) != 200:
            self.calls["refused"] += 1
            return error(status)
        hard = "Billing hard limit has been reached"
        answers = {
            "credit": (400, hard, "billing_hard_limit_reached"),
            "key": (401, "Incorrect API key provided.", "invalid_api_key"),
            "model": (404, "The model `unknown` does not exist.", "model_not_found"),
            "rate": (429, "", "rate_limit_exceeded"),
            "enqueued_tokens": (429, _ENQUEUED.format(model="gpt"), "token_limit_exceeded"),
        }
        refusal = self.refusal()
        return error(*answers[refusal]) if refusal else None

    async def list_batches(self, request: Request) -> Response:
        """GET /v1/batches, the newest first."""
        self.calls["lists"] += 1
        if refused := self.unreadable(request):
            return refused
        query = request.query_params
        batches, limit = self.newest(), min(int(query.get("limit", 20)), 100)
        shown = paged(batches, query.get("after"), limit)
        answer = {
            "object": "list",
            "data": [self._object(each, each.look()) for each in shown],
            "first_id": shown[0].id if shown else None,
            "last_id": shown[-1].id if shown else None,
            "has_more": bool(shown) and shown[-1].id != batches[-1].id,
        }
        return JSONResponse(answer, headers=headers())

    async def looked_at(self, request: Request, batch: Batch) -> Response:  # noqa: ARG002
        """The batch; see `Side`."""
        return JSONResponse(self._object(batch, batch.look()), headers=headers())

    def unauthorized(self, request: Request) -> Response | None:
        """Its refusal; see `Side`."""
        return unauthorized(request)

    def error(self, status: int) -> Response:
        """An error in its words; see `Side`."""
        return error(status)

    def ended_already(self, batch: Batch) -> Response:
        """Its refusal; see `Side`."""
        return error(409, f"Cannot cancel a batch with status '{batch.end}'.")

    def unknown(self, request: Request) -> Response:
        """Its refusal; see `Side`."""
        return _no_batch(request)

    def cancelling(self, request: Request, batch: Batch) -> Response:  # noqa: ARG002
        """The batch as it stands."""
        return JSONResponse(self._object(batch, Phase.CANCELLING), headers=headers())

    def _object(self, batch: Batch, phase: Phase | None) -> dict[str, Any]:
        created = seconds(batch.created) or 0
        at = {f"{end}_at": seconds(batch.ended) if batch.end is end else None for end in End}
        status = batch.end or {Phase.CANCELLING: "cancelling", None: "validating"}.get(phase)
        output_id, error_id = self._results(batch) if batch.end else (None, None)
        good = batch.answered
        bad = batch.tally.total() - good - batch.count(Fate.CANCELLED)
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.details["endpoint"],
            "errors": _errors(batch) if batch.end is End.FAILED else None,
            "input_file_id": batch.details["file"],
            "completion_window": "24h",
            "status": status or "in_progress",
            "output_file_id": output_id,
            "error_file_id": error_id,
            "model": batch.model,
            "created_at": created,
            "in_progress_at": None if phase is None else created,
            "expires_at": created + DAY,
            "finalizing_at": at["completed_at"],
            "cancelling_at": seconds(batch.cancelled),
            **at,
            "request_counts": {
                "total": 0 if batch.end is End.FAILED else batch.size,
                "completed": good,
                "failed": bad,
            },
            "metadata": batch.details["metadata"] or None,
        }

    def _results(self, batch: Batch) -> tuple[str | None, str | None]:
        ids = batch.details.get("results")
        if ids is None:
            erred = batch.tally.total() - batch.answered - batch.count(Fate.CANCELLED)
            ids = (
                self._kept(batch, "output") if batch.answered else None,
                self._kept(batch, "error") if erred else None,
            )
            batch.details["results"] = ids
        return ids

    def _kept(self, batch: Batch, which: str) -> str:
        def output() -> Any:
            route, script = batch.details["endpoint"], batch.script
            return result_lines(
                batch,
                lambda number: output_line(batch, number),
                lambda id: foreign_line(id, route, script),
            )

        def errors() -> Any:
            return result_lines(batch, lambda number: error_line(batch, number))

        file = StoredFile(
            f"file-{token()}",
            f"{batch.id}_{which}.jsonl",
            "batch_output",
            seconds(batch.ended) or 0,
            lines=output if which == "output" else errors,
            script=batch.script,
        )
        self.files[file.id] = file
        return file.id


def _errors(batch: Batch) -> dict[str, Any]:
    usual = _ENQUEUED.format(model=batch.model)
    words = batch.script.fail_message or usual
    code = "token_limit_exceeded" if words == usual else "invalid_request"
    wrong = batch.details["wrong"] or Wrong(code, words)
    return {"object": "list", "data": [wrong.shown()]}


def _no_batch(request: Request) -> Response:
    return error(404, f"No batch found with id '{request.path_params['id']}'.")

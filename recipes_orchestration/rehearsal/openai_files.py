"""OpenAI's files: uploads as they come, and result files that are made when they are fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .batch import mended
from .bodies import Body, Lines, TooLarge, file_lines, receive
from .openai_errors import error, headers, seconds, unauthorized
from .script import Script
from .side import Side, token

__all__ = ["FilesSide", "StoredFile", "Wrong", "checked_lines"]

MAX_FILE_BYTES = 512 * 2**20
MAX_BATCH_BYTES = 200 * 2**20
MAX_REQUESTS = 50_000
_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')
_HEADER = re.compile(rb'name="([^"]*)"(?:; filename="([^"]*)")?')
# The beginning of a line as most programs write it; any other is read as JSON as a whole.
_HEAD = re.compile(
    rb'\{\s*"custom_id"\s*:\s*"([^"\\]*)"\s*,\s*"method"\s*:\s*"POST"\s*,\s*"url"\s*:\s*'
    rb'"([^"\\]*)"\s*,\s*"body"\s*:\s*\{\s*"model"\s*:\s*"([^"\\]*)"'
)


@dataclass(frozen=True)
class StoredFile:
    """A file: a part of an upload, or the result file of a batch."""

    id: str
    filename: str
    purpose: str
    created: int
    size: int = 0
    body: Body | None = None
    start: int = 0
    lines: Callable[[], Iterator[bytes]] | None = None
    script: Script | None = None

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": self.size,
            "created_at": self.created,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
            "expires_at": None,
        }

    def content(self) -> Iterator[bytes]:
        """Its bytes in parts."""
        if self.lines is not None:
            yield from self.lines()
        elif self.body is not None:
            end = self.start + self.size
            for start in range(self.start, end, 2**20):
                yield self.body.bytes(start, min(start + 2**20, end))


def uploaded(body: Body, content_type: str) -> tuple[dict[str, str], tuple[str, int, int]] | None:
    """The fields of a form, and the name, start and end of its file; None when it has none."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return None
    boundary = b"--" + found[1].encode()
    fields: dict[str, str] = {}
    file: tuple[str, int, int] | None = None
    at = body.buffer.find(boundary)
    while at >= 0:
        start = body.buffer.find(b"\r\n\r\n", at)
        end = body.buffer.find(b"\r\n" + boundary, start + 2)
        if start < 0 or end < 0:
            break
        header = _HEADER.search(body.bytes(at, start))
        if header is not None and header[2] is not None:
            file = (header[2].decode("utf-8", "replace"), start + 4, end)
        elif header is not None:
            fields[header[1].decode()] = body.bytes(start + 4, end).decode("utf-8", "replace")
        at = end + 2
    return None if file is None else (fields, file)


@dataclass(frozen=True)
class Wrong:
    """Why a file is refused as a batch: the first mistake, as the batch's errors say it."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None

    def shown(self) -> dict[str, Any]:
        """As an entry of `errors.data`."""
        return {
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "param": self.param,
        }


def checked_lines(file: StoredFile, endpoint: str) -> tuple[Lines, str, Wrong | None]:
    """The requests of a batch's file, their model, and what is wrong with the file."""
    assert file.body is not None
    lines = Lines(file.body)
    model, wrong = "", None
    if file.size > MAX_BATCH_BYTES:
        return lines, "", Wrong("file_too_large", "The batch input file is larger than 200 MB.")
    seen: set[str] = set()
    end = file.start + file.size
    for number, (start, stop) in enumerate(file_lines(file.body, file.start, end), start=1):
        id, url, line_model = _head(file.body, start, stop)
        wrong = wrong or _wrong_line(number, id, url, line_model, endpoint, model, seen)
        model = model or line_model
        seen.add(id)
        lines.add(id, start, stop)
    if not len(lines):
        wrong = Wrong("empty_file", "The input file is empty. Please ensure that it has requests.")
    if len(lines) > MAX_REQUESTS:
        words = f"The batch input file contains more than {MAX_REQUESTS} requests."
        wrong = Wrong("too_many_tasks", words)
    if "unknown" in model:
        words = f"The provided model '{model}' is not supported by the Batch API."
        wrong = Wrong("model_not_found", words, 1, "body.model")
    return lines, model, wrong


def _head(body: Body, start: int, stop: int) -> tuple[str, str, str]:
    if found := _HEAD.match(body.bytes(start, min(stop, start + 1024))):
        return found[1].decode(), found[2].decode(), found[3].decode()
    line = mended(body.bytes(start, stop))
    inner = line.get("body")
    model = inner.get("model", "") if isinstance(inner, dict) else ""
    return str(line.get("custom_id", "")), str(line.get("url", "")), str(model)


def _wrong_line(
    number: int, id: str, url: str, model: str, endpoint: str, first: str, seen: set[str]
) -> Wrong | None:
    if not url and not id:
        return Wrong("invalid_json_line", "This line is not parseable as valid JSON.", number)
    if not id:
        return Wrong("missing_required_parameter", "custom_id is missing.", number, "custom_id")
    if id in seen:
        words = f"The custom_id '{id}' for this request is a duplicate of another request."
        return Wrong("duplicate_custom_id", words + " The custom_id must be unique.", number)
    if url != endpoint:
        words = f"The URL provided for this request does not match the batch endpoint: {url}"
        return Wrong("mismatched_url", words, number, "url")
    if not model:
        return Wrong("missing_required_parameter", "model is missing.", number, "body.model")
    if first and model != first:
        words = "The model of this request does not match that of the others in this batch."
        return Wrong("mismatched_model", words, number, "body.model")
    return None


class FilesSide(Side):
    """The part of OpenAI that keeps files."""

    def reset(self) -> None:
        """Forgets everything, its files too."""
        super().reset()
        self.files: dict[str, StoredFile] = {}

    def routes(self) -> list[Route]:
        """Its endpoints."""
        file = "/v1/files/{id}"
        return [
            Route("/v1/files", self.upload, methods=["POST"]),
            Route(file, self.get_file, methods=["GET"]),
            Route(file, self.delete_file, methods=["DELETE"]),
            Route(file + "/content", self.content, methods=["GET"]),
        ]

    async def upload(self, request: Request) -> Response:
        """POST /v1/files."""
        self.calls["uploads"] += 1
        try:
            body = await receive(request, MAX_FILE_BYTES)
        except TooLarge:
            return error(413)
        if refused := unauthorized(request):
            return refused
        form = uploaded(body, request.headers.get("content-type", ""))
        if form is None or "purpose" not in form[0]:
            return error(400, "Missing required parameter: 'file' or 'purpose'.")
        fields, (filename, start, end) = form
        size, now = end - start, seconds(datetime.now(UTC))
        file = StoredFile(
            f"file-{token()}", filename, fields["purpose"], now or 0, size, body, start
        )
        self.files[file.id] = file
        return self.upload_reply(request, JSONResponse(file.shown(), headers=headers()))

    async def get_file(self, request: Request) -> Response:
        """GET /v1/files/{id}."""
        if refused := unauthorized(request):
            return refused
        file = self.files.get(request.path_params["id"])
        return _no_file(request) if file is None else JSONResponse(file.shown())

    async def delete_file(self, request: Request) -> Response:
        """DELETE /v1/files/{id}."""
        self.calls["deletes"] += 1
        if refused := unauthorized(request):
            return refused
        file = self.files.pop(request.path_params["id"], None)
        if file is None:
            return _no_file(request)
        return JSONResponse({"id": file.id, "object": "file", "deleted": True})

    async def content(self, request: Request) -> Response:
        """GET /v1/files/{id}/content."""
        if refused := unauthorized(request):
            return refused
        if (status := self.taken("results_status")) != 200:
            return error(status)
        file = self.files.get(request.path_params["id"])
        if file is None:
            return _no_file(request)
        script = file.script or self.script
        return self.stream(request, file.content(), script, "application/octet-stream")


def _no_file(request: Request) -> Response:
    return error(404, f"No such File object: {request.path_params['id']}", "", "id")

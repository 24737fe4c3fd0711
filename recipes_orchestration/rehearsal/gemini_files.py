"""Gemini's files: the resumable upload, and result files that are made when they are fetched."""

from __future__ import annotations

import base64
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from tempfile import SpooledTemporaryFile
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .batch import mended
from .bodies import IN_MEMORY, Body, TooLarge, receive
from .gemini_errors import error, time, unauthorized
from .script import Script
from .side import Side, token

__all__ = ["FilesSide", "GeminiFile"]

MAX_FILE_BYTES = 2 * 2**30
MAX_CHUNK_BYTES = 256 * 2**20


@dataclass(frozen=True)
class GeminiFile:
    """A file: uploaded, or the results of a batch, which alone can be downloaded."""

    name: str
    display_name: str = ""
    media: str = "application/jsonl"
    body: Body | None = None
    lines: Callable[[], Iterator[bytes]] | None = None
    script: Script | None = None
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def shown(self, url: str) -> dict[str, Any]:
        """As the API shows it."""
        made = self.body is None
        download = {"downloadUri": f"{url}/v1beta/{self.name}:download?alt=media"} if made else {}
        return {
            "name": self.name,
            "displayName": self.display_name,
            "mimeType": self.media,
            "sizeBytes": str(self.body.size if self.body else 0),
            "createTime": time(self.created),
            "updateTime": time(self.created),
            "expirationTime": time(self.created + timedelta(hours=48)),
            "sha256Hash": base64.b64encode(self.name.encode()).decode(),
            "uri": f"{url}/v1beta/{self.name}",
            "state": "ACTIVE",
            "source": "GENERATED" if made else "UPLOADED",
            **download,
        }


@dataclass
class _Upload:
    display_name: str
    media: str
    file: SpooledTemporaryFile[bytes]
    size: int = 0


class FilesSide(Side):
    """The part of Gemini that keeps files."""

    def reset(self) -> None:
        """Forgets everything, its files and uploads too."""
        super().reset()
        self.close()
        self.files: dict[str, GeminiFile] = {}

    def close(self) -> None:
        """Closes uploads that never came to their end."""
        for upload in getattr(self, "_uploads", {}).values():
            upload.file.close()
        self._uploads: dict[str, _Upload] = {}

    def routes(self) -> list[Route]:
        """Its endpoints."""
        one = "/{version}/files/{id}"
        return [
            Route("/upload/{version}/files", self.upload, methods=["POST"]),
            Route("/{version}/files", self.list_files, methods=["GET"]),
            Route(one + ":download", self.download, methods=["GET"]),
            Route("/download" + one + ":download", self.download, methods=["GET"]),
            Route(one, self.get_file, methods=["GET"]),
            Route(one, self.delete_file, methods=["DELETE"]),
        ]

    async def upload(self, request: Request) -> Response:
        """POST /upload/v1beta/files: the start of an upload, or a chunk of one."""
        command = request.headers.get("x-goog-upload-command", "")
        id = request.query_params.get("upload_id")
        if id is not None:
            return await self._chunk(request, id, command)
        self.calls["uploads"] += 1
        if refused := unauthorized(request):
            return refused
        if command != "start":
            return error(400, "Only resumable uploads are rehearsed.")
        if int(request.headers.get("x-goog-upload-header-content-length", 0)) > MAX_FILE_BYTES:
            return error(400, "File size exceeds the limit of 2147483648 bytes.")
        given: Any = mended(await request.body()).get("file") or {}
        id = token()
        self._uploads[id] = _Upload(
            str(given.get("displayName", given.get("display_name", ""))),
            request.headers.get("x-goog-upload-header-content-type", "application/jsonl"),
            SpooledTemporaryFile[bytes](max_size=IN_MEMORY),
        )
        url = f"{str(request.url).partition('?')[0]}?upload_id={id}&upload_protocol=resumable"
        headers = {"x-goog-upload-url": url, "x-goog-upload-status": "active"}
        return JSONResponse({}, headers=headers)

    async def _chunk(self, request: Request, id: str, command: str) -> Response:
        upload = self._uploads.get(id)
        if upload is None:
            return error(404)
        if int(request.headers.get("x-goog-upload-offset", 0)) != upload.size:
            return error(400, "The offset is not where the upload stands.")
        try:
            body = await receive(request, MAX_CHUNK_BYTES)
        except TooLarge:
            return error(413)
        upload.file.write(body.bytes())
        upload.size += body.size
        if "finalize" not in command:
            return JSONResponse({}, headers={"x-goog-upload-status": "active"})
        del self._uploads[id]
        name = f"files/{token(12)}"
        kept = GeminiFile(name, upload.display_name, upload.media, _kept(upload))
        self.files[name] = kept
        shown = JSONResponse(
            {"file": kept.shown(_url(request))}, headers={"x-goog-upload-status": "final"}
        )
        return self.upload_reply(request, shown)

    async def list_files(self, request: Request) -> Response:
        """GET /v1beta/files."""
        if refused := unauthorized(request):
            return refused
        url = _url(request)
        return JSONResponse({"files": [each.shown(url) for each in list(self.files.values())]})

    async def get_file(self, request: Request) -> Response:
        """GET /v1beta/files/{id}."""
        if refused := unauthorized(request):
            return refused
        file = self._file(request)
        return _no_file(request) if file is None else JSONResponse(file.shown(_url(request)))

    async def delete_file(self, request: Request) -> Response:
        """DELETE /v1beta/files/{id}."""
        self.calls["deletes"] += 1
        if refused := unauthorized(request):
            return refused
        file = self._file(request)
        if file is None:
            return _no_file(request)
        del self.files[file.name]
        return JSONResponse({})

    async def download(self, request: Request) -> Response:
        """GET /v1beta/files/{id}:download."""
        if refused := unauthorized(request):
            return refused
        if (status := self.taken("results_status")) != 200:
            return error(status)
        file = self._file(request)
        if file is None:
            return _no_file(request)
        if file.lines is None:
            return error(400, "Only generated files can be downloaded.")
        script = file.script or self.script
        return self.stream(request, file.lines(), script, "application/jsonl")

    def _file(self, request: Request) -> GeminiFile | None:
        return self.files.get(f"files/{request.path_params['id']}")


def _kept(upload: _Upload) -> Body:
    with upload.file as file:
        if upload.size > IN_MEMORY:
            file.flush()
            return Body(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        file.seek(0)
        return Body(file.read())


def _url(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}/gemini"


def _no_file(request: Request) -> Response:
    return error(
        403,
        f"You do not have permission to access the File {request.path_params['id']} "
        "or it may not exist.",
    )

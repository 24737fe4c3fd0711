"""A web server whose every answer is a function of the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["LOST", "AnsweringServer", "Asked", "Reply", "running_server"]


@dataclass(frozen=True)
class Asked:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """One answer; a body that is no bytes is sent as JSON. None loses the reply."""

    status: int = 200
    body: Any = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])


LOST = Reply(status=0)


@dataclass
class AnsweringServer:
    """What was asked, and who answers."""

    answer: Callable[[Asked], Reply]
    url: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])

    def paths(self, method: str = "") -> list[str]:
        return [each.path for each in self.asked if not method or each.method == method]


@contextmanager
def running_server(answer: Callable[[Asked], Reply]) -> Generator[AnsweringServer]:
    scripted = AnsweringServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            scripted.asked.append(asked)
            reply = scripted.answer(asked)
            if reply.status == 0:
                self.close_connection = True
                return
            content = (
                reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            )
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if "content-type" not in {name.lower() for name in reply.headers}:
                self.send_header("Content-Type", "application/json")
            told = reply.headers.get("Content-Length")
            if told is None:
                self.send_header("Content-Length", str(len(content)))
            # An answer that is shorter than it says breaks off.
            self.close_connection = told is not None
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scripted.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield scripted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

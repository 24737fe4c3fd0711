"""Receivers of alerts on this machine, over real HTTP and real SMTP."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Mailbox", "Receiver", "mail_server", "receiver"]


@dataclass
class Receiver:
    """What was posted to it. It answers `status`, after `delay` seconds."""

    url: str = ""
    status: int = 200
    delay: float = 0.0
    location: str | None = None
    posts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    asked: int = 0

    def kinds(self) -> list[str]:
        return [post["kind"] for post in self.posts]


@contextmanager
def receiver() -> Generator[Receiver]:
    """An HTTP server that keeps what it is sent while it answers 200."""
    kept = Receiver()
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.asked += 1
            over.wait(kept.delay)
            if kept.status == 200:
                kept.posts.append(json.loads(body))
                kept.headers.append(dict(self.headers))
            self.send_response(kept.status)
            if kept.location is not None:
                self.send_header("Location", kept.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_port}/hook?secret=s3cret"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Mailbox:
    """The mails that were handed over, and by whom to whom."""

    port: int = 0
    refuses: bool = False
    mails: list[EmailMessage] = field(default_factory=list[EmailMessage])
    recipients: list[str] = field(default_factory=list[str])
    logins: list[str] = field(default_factory=list[str])


@contextmanager
def mail_server() -> Generator[Mailbox]:
    """An SMTP server (RFC 5321) that takes every mail, without TLS."""
    box = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline():
                verb, _, rest = line.decode().strip().partition(" ")
                if verb.upper() == "EHLO":
                    self.say("250-here")
                    self.say("250 AUTH PLAIN")
                elif verb.upper() == "AUTH":
                    box.logins.append(rest)
                    self.say("235 in")
                elif verb.upper() == "RCPT":
                    box.recipients.append(rest.partition(":")[2].strip("<>"))
                    self.say("550 no such box" if box.refuses else "250 yes")
                elif verb.upper() == "DATA":
                    self.say("354 go on")
                    self.take()
                    self.say("250 taken")
                elif verb.upper() == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 yes")

        def take(self) -> None:
            lines: list[bytes] = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b"."))
            box.mails.append(message_from_bytes(b"".join(lines), policy=policy.default))

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    box.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield box
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def until(condition: Any, seconds: float = 10.0) -> None:
    """Waits for it to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)

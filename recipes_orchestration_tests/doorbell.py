"""A door at which anything that wants to leave would ring: it counts connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

__all__ = ["Doorbell", "doorbell"]


@dataclass
class Doorbell:
    """A port of this machine that takes connections and ends them."""

    port: int
    rings: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def doorbell() -> Generator[Doorbell]:
    """Counts until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        bell = Doorbell(server.getsockname()[1])

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    bell.rings += 1
                    connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield bell
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
    thread.join(5)

"""Page pictures made into files by worker processes: a page that ends its decoder ends no run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from pebble import ProcessExpired, ProcessPool

from ...errors import PageUnreadable, PlaceError, SourceError
from ...pages.source import SourceReader
from ...runner.page_bytes import page_of
from ...runner.run_pages import words_of
from ...runner.work import Failure, FailureKind, PageWork
from ...steps.seen import png_of, seen_bytes
from ..worker_pool import decoder_ended, ended_failure, worker_pool
from .page_files import PageFile, extension_of

__all__ = ["Encoders", "Encoding"]


@dataclass(frozen=True)
class Encoding:
    """A page to be made a picture file: within the settings of `image`, or else as it is.

    `part` is the path that the file is written to. `max_pixels` bounds it before it is decoded.
    """

    reader: SourceReader
    work: PageWork
    image: Mapping[str, Any] | None
    max_pixels: int
    part: str


class Encoders:
    """`workers` processes, started when the first page comes. A page has `page_timeout` seconds."""

    def __init__(self, *, workers: int, page_timeout: float) -> None:
        self.workers = workers
        self._page_timeout = page_timeout
        self._pool: ProcessPool | None = None

    def start(self, encoding: Encoding) -> Future[PageFile | Failure]:
        """Begins with a page; its result is asked for by `result`."""
        # What the steps need has nothing to do with the picture and may be large.
        plain = replace(encoding, work=replace(encoding.work, needs={}))
        try:
            return self._started().schedule(_encode, [plain], timeout=self._page_timeout)
        except RuntimeError as error:
            raise PlaceError(
                f"The processes that make page pictures could not take "
                f"{encoding.work.page_id}: {error}. Run the recipe again."
            ) from error

    def result(self, future: Future[PageFile | Failure]) -> PageFile | Failure:
        """What became of a page, waited for."""
        try:
            return future.result()
        except (TimeoutError, ProcessExpired) as error:
            return ended_failure(decoder_ended(error, self._page_timeout))

    def close(self) -> None:
        """Ends the processes."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            pool.join()

    def _started(self) -> ProcessPool:
        if self._pool is None:
            self._pool = worker_pool(self.workers)
        return self._pool


def _encode(encoding: Encoding) -> PageFile | Failure:
    try:
        data = _picture(encoding)
    except PageUnreadable as error:
        return Failure(FailureKind.UNREADABLE, str(error))
    except SourceError as error:
        return Failure(FailureKind.SOURCE, str(error))
    except Exception as error:  # noqa: BLE001  whatever a decoder raises is the page's
        return Failure(FailureKind.FAILED, words_of(error))
    with open(encoding.part, "wb") as stream:
        stream.write(data)
    digest = hashlib.sha256(data).hexdigest()
    return PageFile(f"{digest}.{extension_of(data)}", len(data), digest)


def _picture(encoding: Encoding) -> bytes:
    page = page_of(encoding.reader, encoding.work, encoding.max_pixels)
    return png_of(page) if encoding.image is None else seen_bytes(page, encoding.image)

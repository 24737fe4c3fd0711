"""Pages decoded in worker processes: one that ends or holds its decoder costs one page."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from ..errors import NoDecoder
from ..pages.page import Page
from ..pages.source import SourceReader
from ..runner.page_bytes import page_of
from ..runner.work import PageWork, TaskSpec
from .worker_pool import decoder_ended, worker_pool

__all__ = ["Decoders"]

_MOST = 4
_T = TypeVar("_T")


class Decoders:
    """Worker processes, started when the first page must be decoded. Many threads may ask."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or min(_MOST, os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None

    def page(self, spec: TaskSpec, work: PageWork) -> Page:
        """The page as a step sees it, decoded by a worker within the work's `page_timeout`."""
        apart = partial(self._made, spec, work)
        return page_of(spec.reader, work, spec.max_pixels, apart)

    def close(self) -> None:
        """Ends the processes."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            pool.join()

    def _made(
        self, spec: TaskSpec, work: PageWork, page: Page, make: Callable[..., _T], *args: Any
    ) -> _T:
        # A file of one page is at hand by now; of one of several the worker keeps what it read.
        data = page.data if work.frame is None else work.data
        plain = replace(work, needs={}, data=data)
        asked = [spec.reader, plain, spec.max_pixels, make, args]
        try:
            future = self._started().schedule(_made, asked, timeout=spec.page_timeout)
        except RuntimeError as error:
            raise NoDecoder(
                f"The processes that decode pages could not take {work.page_id}: {error}. "
                "Run the recipe again."
            ) from error
        try:
            return future.result()
        except (TimeoutError, ProcessExpired) as error:
            raise decoder_ended(error, spec.page_timeout) from None

    def _started(self) -> ProcessPool:
        with self._lock:
            if self._pool is None:
                self._pool = worker_pool(self._workers)
            return self._pool


def _made(
    reader: SourceReader,
    work: PageWork,
    max_pixels: int,
    make: Callable[..., _T],
    args: tuple[Any, ...],
) -> _T:
    return make(page_of(reader, work, max_pixels).image, *args)

"""Pools of worker processes in which one that dies or hangs costs one piece of work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

from pebble import ProcessExpired, ProcessPool

from ..errors import DecoderEnded
from ..runner.work import Failure, FailureKind

__all__ = ["decoder_ended", "ended_failure", "worker_pool"]


def worker_pool(workers: int) -> ProcessPool:
    """A pool of processes, each with its share of the cores, that end when this one is gone."""
    return ProcessPool(
        max_workers=workers,
        # Spawned, not forked: this process has threads (gRPC, SQLite) that a fork would break.
        context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=[workers],
    )


def decoder_ended(error: TimeoutError | ProcessExpired, page_timeout: float) -> DecoderEnded:
    """What it means that a worker took longer than `page_timeout` seconds for a page, or ended."""
    if isinstance(error, TimeoutError):
        words = f"Decoding the page took longer than {page_timeout:g} s (limit page_timeout)."
        return DecoderEnded(words, timed_out=True)
    words = (
        "The process that decoded this page ended "
        f"(exit code {error.exitcode}; often too little memory)."
    )
    return DecoderEnded(words, timed_out=False)


def ended_failure(ended: DecoderEnded) -> Failure:
    """The failure of the page that was decoded."""
    return Failure(FailureKind.TIMEOUT if ended.timed_out else FailureKind.DIED, str(ended))


def _start_worker(workers: int) -> None:
    """Ctrl-C in a terminal reaches the workers too: only the parent acts on it. What a step prints
    goes to standard error: standard output may be a document that a program reads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    threads = max(1, (os.cpu_count() or 1) // workers)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    threading.Thread(target=_end_with_parent, daemon=True, name="end-with-parent").start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

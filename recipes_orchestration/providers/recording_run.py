"""One run of a page's code: what it has asked, what it may be answered, and when it must stop."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..errors import NotBatchable, RecipesError, StepError
from .provider import Call

__all__ = ["Asked", "Halt", "Heard", "LiveAllowance", "LiveCall", "Permit", "Run"]

# What a request is answered in a thread that `Halt` would kill in silence: an error of the SDK's.
STOPPED_WORDS = (
    "The step's code is stopped here and nothing was sent: its first request is recorded for a "
    "batch, its page is done, or it may make no more live calls."
)
STOPPED = (
    400,
    json.dumps({"error": {"message": STOPPED_WORDS}, "message": STOPPED_WORDS}).encode(),
)


class Halt(BaseException):
    """Ends a page's code at its request. What it means is kept on the run.

    No plain exception: the SDKs would wrap it and try again, and `except Exception` in the page's
    code would swallow it.
    """


@dataclass(frozen=True)
class Asked:
    """One request as the page's code makes it.

    `refusal` says why no batch can carry it, None when one can. Where the call differs from the
    request, `restore` makes of the call's answer the body that the SDK expects, and `reduce` makes
    of the request's answer the call's.
    """

    call: Call
    refusal: str | None = None
    restore: Callable[[bytes], bytes] | None = field(default=None, repr=False)
    reduce: Callable[[bytes], bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class LiveCall:
    """A request that went to the provider by itself, with the HTTP status and body it answered."""

    call: Call
    status: int
    body: bytes = field(repr=False)


class LiveAllowance:
    """How many more requests may go live over a recorder's life; used by many threads."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self._lock = threading.Lock()
        self._taken = 0

    def take(self) -> bool:
        """Whether one more may go; it is counted."""
        with self._lock:
            if self._taken >= self.allowed:
                return False
            self._taken += 1
            return True

    def give_back(self) -> None:
        """One that was taken was not sent."""
        with self._lock:
            self._taken -= 1


Heard = Callable[[LiveCall], None]
Permit = Callable[[Call], None]
"""Called before a call goes live; what it raises ends the page's code."""


class Run:
    """One capture or replay of a page's code, shared by all clients and threads of that run.

    It lives on the clients of the run and nowhere else, so that threads and event loops which the
    code starts itself are in the same run. `answers` None captures: nothing is ever sent. After
    `end` no request is taken any more, of whichever thread.
    """

    def __init__(
        self,
        answers: Mapping[str, tuple[int, bytes]] | None,
        allowance: LiveAllowance,
        heard: Heard | None = None,
        permit: Permit | None = None,
    ) -> None:
        self._answers = answers
        self._allowance = allowance
        self._heard = heard
        self._permit = permit
        self._changed = threading.Condition()
        self._thread = threading.get_ident()
        self._ended = False
        self._sending = 0
        self.captured: Call | None = None
        self.trouble: RecipesError | None = None
        self.live: list[LiveCall] = []

    @property
    def halted(self) -> bool:
        """Whether the code was stopped at a request of its own."""
        return self.captured is not None or self.trouble is not None

    def ask(self, asked: Asked) -> tuple[int, bytes] | None:
        """The answer to a request, or None when it goes live; raises `Halt` to end the code."""
        with self._changed:
            if self._ended or self.trouble is not None:
                raise Halt
            if self._answers is None:
                self._capture(asked)
                raise Halt
            answer = self._answers.get(asked.call.id)
        if answer is None:
            return None
        status, body = answer
        if asked.restore is not None and status < 400:
            body = asked.restore(body)
        return status, body

    def _capture(self, asked: Asked) -> None:
        """Keeps the first request of the run; whatever is asked after it changes nothing."""
        if self.captured is not None:
            return
        if asked.refusal is not None:
            self.trouble = NotBatchable(asked.refusal)
        else:
            self.captured = asked.call

    @contextmanager
    def sending(self, call: Call, *, waited_for: bool) -> Generator[None]:
        """Around one request that goes live: counts it against the allowance.

        One that is `waited_for` keeps the run open until it is back. A coroutine is not: its event
        loop may never run again.
        """
        with self._changed:
            if self._ended or self._answers is None:
                raise Halt
            if not self._allowance.take():
                self.halt(
                    "The step's code made requests that are not in the batch, and the "
                    f"{self._allowance.allowed} live calls allowed for that are used up. Ask the "
                    "model once a page and always in the same words, or raise `live_calls` of the "
                    "place in project.yaml."
                )
            self._sending += waited_for
        try:
            self._ask_leave(call)
            yield
        finally:
            with self._changed:
                self._sending -= waited_for
                self._changed.notify_all()

    def _ask_leave(self, call: Call) -> None:
        if self._permit is None:
            return
        try:
            self._permit(call)
        except RecipesError as error:
            self._allowance.give_back()
            self.trouble = self.trouble or error
            raise Halt from error

    def heard(self, call: LiveCall) -> None:
        """Keeps what a live call answered, also when the code fails later: it was paid."""
        self.live.append(call)
        if self._heard is not None:
            self._heard(call)

    def halt(self, words: str) -> None:
        """Ends the code with a `StepError` of these words, whatever the code makes of it."""
        self.trouble = self.trouble or StepError(words)
        raise Halt

    def stopped(self) -> tuple[int, bytes]:
        """Raises `Halt` again where it ends the page's code, and else gives an error to answer.

        It does so in the run's own thread and in those of an executor, which hand on what they
        raise. Any other thread would only die of it, and who waits for its result would wait for
        ever: `multiprocessing.pool.ThreadPool` and workers with a queue take plain errors only.
        """
        thread = threading.current_thread()
        target = getattr(thread, "_target", None)
        executor = getattr(target, "__module__", "") == "concurrent.futures.thread"
        if executor or thread.ident == self._thread:
            raise Halt
        return STOPPED

    def end(self) -> None:
        """Takes no more requests, and waits for those under way: their answers are booked."""
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: self._sending == 0)

"""From a page to the call that asks a model about it: the one way of batches and plain calls."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from ...errors import (
    DecoderEnded,
    LibraryError,
    NoDecoder,
    NotBatchable,
    PageUnreadable,
    RecipesError,
    SourceError,
)
from ...providers.provider import Call, Provider
from ...providers.recording import Clients, Recorder
from ...recipe import Step
from ...runner.run_pages import words_of
from ...runner.work import Failure, FailureKind, Outcome, PageWork, TaskSpec
from ...steps.ask import Ready
from ...steps.registry import load_operation
from ...steps.step import Context, Operation
from ..decoders import Decoders
from ..worker_pool import ended_failure

__all__ = ["Asker"]

_THREADS = 4
# Where pages of two turns take longer, threads are worth it.
_QUICK_SECONDS = 0.005
_PAGES_A_TURN = 8
# Turns that are made ahead: bounds the requests in memory.
_AHEAD = 4


@dataclass(frozen=True)
class Asker:
    """One step at a provider: makes the calls of its pages, and runs its code again on answers."""

    step: Step
    operation: Operation
    provider: Provider
    recorder: Recorder | None
    spec: TaskSpec
    decoders: Decoders

    @classmethod
    def of(
        cls,
        spec: TaskSpec,
        step: Step,
        provider: Provider,
        new_recorder: Callable[[], Recorder],
        decoders: Decoders,
    ) -> Asker:
        """The asker of a step. Raises `StepError` when its operation cannot be loaded.

        A recorder, which loads the provider's SDK, is made for steps with code of their own alone.
        """
        if spec.import_path not in sys.path:
            sys.path.insert(0, spec.import_path)
        operation = load_operation(step.run, on_model=True)
        coded = operation.ask is None or operation.parse is None
        return cls(step, operation, provider, new_recorder() if coded else None, spec, decoders)

    def calls(self) -> Iterator[tuple[PageWork, Call | Outcome]]:
        """Each page in order with its call, or with its outcome where no call is needed.

        A page that cannot be read or asked about is a failure of its own. Raises `NotBatchable`
        when the step's code can be carried by no batch, whatever the page.
        """
        turns = _turns(self.spec.pages)
        # Threads cost more than they bring while nothing is fetched from afar or decoded.
        slow = False
        for turn in turns:
            was_slow = slow
            began = time.perf_counter()
            done = self._turn(turn)
            slow = time.perf_counter() - began > _QUICK_SECONDS * len(turn)
            yield from done
            if slow and was_slow:
                yield from self._in_threads(turns)

    def _in_threads(
        self, turns: Iterator[Sequence[PageWork]]
    ) -> Iterator[tuple[PageWork, Call | Outcome]]:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="recipes-ask") as pool:
            ahead: deque[Future[list[tuple[PageWork, Call | Outcome]]]] = deque(
                pool.submit(self._turn, turn) for turn in islice(turns, _AHEAD)
            )
            try:
                while ahead:
                    done = ahead.popleft().result()
                    ahead.extend(pool.submit(self._turn, turn) for turn in islice(turns, 1))
                    yield from done
            finally:
                for future in ahead:
                    future.cancel()

    def context(self, needs: Mapping[str, Any], clients: Clients | None = None) -> Context:
        """What the operation is given beside the page."""
        step = self.step
        return Context(step.name, step.params, needs, step.model, step.prompt, clients)

    def function(self, work: PageWork, clients: Clients) -> Any:
        """What a Python step's own code gives on the page."""
        page = self.decoders.page(self.spec, work)
        return self.operation.function(page, self.context(dict(work.needs), clients))

    def _turn(self, works: Sequence[PageWork]) -> list[tuple[PageWork, Call | Outcome]]:
        return [(work, self._call(work)) for work in works]

    def _call(self, work: PageWork) -> Call | Outcome:
        try:
            if self.operation.ask is None:
                assert self.recorder is not None
                return self.recorder.capture(partial(self.function, work))
            page = self.decoders.page(self.spec, work)
            ask = self.operation.ask(page, self.context(dict(work.needs)))
            return self.provider.call(ask, self.step.model or "")
        except Ready as ready:
            return Outcome(work.page_id, self.step.name, 0.0, value=ready.value)
        except (NotBatchable, LibraryError, NoDecoder):
            raise  # no page is to blame
        except PageUnreadable as error:
            failure = Failure(FailureKind.UNREADABLE, str(error))
        except SourceError as error:
            failure = Failure(FailureKind.SOURCE, str(error))
        except DecoderEnded as error:
            failure = ended_failure(error)
        except RecipesError as error:
            failure = Failure(FailureKind.FAILED, str(error))
        except Exception as error:  # noqa: BLE001  whatever a step raises is the page's
            failure = Failure(FailureKind.FAILED, words_of(error))
        return Outcome(work.page_id, self.step.name, 0.0, failure=failure)


def _turns(pages: Sequence[PageWork]) -> Iterator[Sequence[PageWork]]:
    for start in range(0, len(pages), _PAGES_A_TURN):
        yield pages[start : start + _PAGES_A_TURN]

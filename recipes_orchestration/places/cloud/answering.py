"""From a provider's answer lines to outcomes: the one way of batches and plain calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from ...collecting import OFTEN, RARELY, collecting_after
from ...errors import LedgerError, NoDecoder, OverCap, RecipesError, StepError
from ...providers.json_values import dump
from ...providers.prices import ModelPrices
from ...providers.provider import Group, Line, LineKind
from ...runner.run_pages import check_value, words_of
from ...runner.work import Failure, FailureKind, Outcome, PageWork, Spent
from ...steps.ask import Answer, Stop
from ..place import Bill, Sent
from .costs import Costs, free, plus
from .later_needs import LaterNeeds
from .live_answers import Kept
from .live_calls import LiveCalls
from .packing import MODE
from .questions import Asker

__all__ = ["Reading", "group_from"]

# Why the end of a task was asked for when a person decided it: no page is to blame.
_BY_A_PERSON = ("stop", "now")

_STOPS = {
    Stop.TRUNCATED: "The answer was cut off at the token limit (max_tokens).",
    Stop.REFUSED: "The model refused to answer.",
    Stop.FILTERED: "The answer was withheld by a filter of the provider.",
    Stop.EMPTY: "The model gave no answer.",
    Stop.OTHER: "The model stopped before its answer was whole.",
}


def group_from(kept: Mapping[str, Any]) -> Group:
    """The group that a task remembers."""
    return Group(kept["route"], kept["model"], tuple(kept["betas"]))


@dataclass
class Reading:
    """Reads the answer lines of one task, and adds up what they cost.

    `ended` says that no more lines will come: then a call without a line is missing, with
    `ended_words` as what the provider said of the batch, which `failed` or `expired` as a whole.
    """

    asker: Asker
    sent: Sent
    prices: Mapping[str, ModelPrices]
    live: LiveCalls
    ended: bool = True
    ended_words: str = ""
    failed: bool = False
    expired: bool = False
    _lines: Counter[str] = field(default_factory=Counter[str])
    _seen: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._group = group_from(self.sent.group)
        # Tuples of texts cost the garbage collector nothing, and most calls have one page.
        self._pages: dict[str, tuple[str] | list[str]] = {}
        for page_id, call_id in self.sent.calls.items():
            pages = self._pages.setdefault(call_id, (page_id,))
            if isinstance(pages, list):
                pages.append(page_id)
            elif pages[0] != page_id:
                self._pages[call_id] = [*pages, page_id]
        self._step = self.asker.step.name
        self._costs = self._new_costs()
        # One for all answers, as they are read one after another.
        self._known = LaterNeeds(self._needs)
        self._context = self.asker.context(self._known)

    def _new_costs(self) -> Costs:
        return Costs(self.asker.provider, self._group, self.mode, self.prices, self.sent.sent_at)

    def settle(self, lines: Iterable[bytes]) -> None:
        """Books what all the answers cost, before the step's code can ask live: see `LiveCalls`."""
        if self.asker.operation.parse is None:
            self.live.settle(self.sent, self._group, self._new_costs(), lines)

    def settle_kept(self) -> None:
        """The same of the answers that are kept."""
        with closing(self.sent.answers.lines()) as lines:
            self.settle(lines)

    @cached_property
    def works(self) -> Mapping[str, PageWork]:
        """The pages with all that is known of them; most answers are read without."""
        return {work.page_id: work for work in self.sent.spec.pages}

    @property
    def mode(self) -> str:
        """`batch` or `plain`."""
        return self.sent.group[MODE]

    def outcomes(self, lines: Iterable[bytes]) -> Iterator[Outcome]:
        """The outcomes of lines as they come: one for each page of a line's call.

        Broken lines, and lines for calls that were never sent or are there already, are counted
        and left out.
        """
        with collecting_after(RARELY if self.asker.recorder is None else OFTEN):
            yield from self._outcomes(lines)

    def _outcomes(self, lines: Iterable[bytes]) -> Iterator[Outcome]:
        provider = self.asker.provider
        for raw in lines:
            line = provider.read_line(raw)
            if line is None:
                self._lines["broken"] += 1
            elif line.id not in self._pages:
                self._lines["foreign"] += 1
            elif line.id in self._seen:
                self._lines["again"] += 1
            else:
                found = self._of_line(line)  # it is not seen when its live call cannot be paid
                self._seen.add(line.id)
                yield from found

    def missing(self) -> Iterator[Outcome]:
        """Outcomes of the calls that have no line, once the batch has ended."""
        if not self.ended:
            return
        if self.sent.stopped in _BY_A_PERSON:
            kind, words = FailureKind.STOPPED, "It was stopped before it was answered."
        elif self.expired or self.sent.stopped == "overdue":
            kind = FailureKind.EXPIRED
            words = f"The batch's time was over before it was answered. {self.ended_words}"
        elif self.failed:
            kind, words = FailureKind.BATCH, f"The batch failed as a whole. {self.ended_words}"
        else:
            kind = FailureKind.MISSING
            words = f"The batch ended without a line for it. {self.ended_words}"
        for call_id, pages in self._pages.items():
            if call_id not in self._seen:
                self._lines[kind.value] += 1
                for page_id in pages:
                    yield self._failed(page_id, Failure(kind, words.strip()))

    def bill(self) -> Bill:
        """What the lines that were read cost."""
        return self._costs.bill(self._lines)

    def _of_line(self, line: Line) -> Sequence[Outcome]:
        pages = self._pages[line.id]
        if line.kind is not LineKind.SUCCEEDED or line.response is None:
            failure = self._unanswered(line)
            self._lines[failure.kind.value] += 1
            return [self._failed(page_id, failure) for page_id in pages]
        outcomes = self._answered(line, line.response, pages)
        came_of_it = ""
        for each in outcomes:
            failure = each.failure
            if each.spent is not None:
                self._costs.add(each.spent, wasted=failure is not None)
            came_of_it = "landed" if failure is None else came_of_it or failure.kind.value
        self._lines[came_of_it] += 1
        return outcomes

    def _unanswered(self, line: Line) -> Failure:
        if line.kind is LineKind.EXPIRED or (
            line.kind is LineKind.CANCELLED and self.sent.stopped == "overdue"
        ):
            return Failure(FailureKind.EXPIRED, line.words or "The batch's time was over.")
        if line.kind is LineKind.CANCELLED:
            by_a_person = self.sent.stopped in _BY_A_PERSON
            kind = FailureKind.STOPPED if by_a_person else FailureKind.CANCELLED
            return Failure(kind, line.words or "The batch was cancelled.")
        kind = FailureKind.ACCOUNT if line.account else FailureKind.ERRORED
        return Failure(kind, line.words or "The provider gave an error without words.")

    def _answered(
        self, line: Line, response: Mapping[str, Any], pages: Sequence[str]
    ) -> list[Outcome]:
        """An outcome for each page of the call; the first that is a result carries the cost."""
        answer: Answer | None = None
        try:
            answer = self.asker.provider.answer(self._group, response)
        except StepError as error:
            if self.asker.operation.parse is not None:
                failure = Failure(FailureKind.ANSWER, str(error))
                return [self._failed(page_id, failure) for page_id in pages]
        if answer is None:
            spent = self._costs.unread(self._group)
        else:
            spent = self._costs.spent(self._group, answer)
            if (failure := self._unfinished(answer)) is not None:
                outcomes = [self._failed(page_id, failure, free(spent)) for page_id in pages]
                return _carried(spent, outcomes)
        if len(pages) == 1:
            return [self._value(line, response, answer, pages[0], spent)]
        outcomes = [self._value(line, response, answer, page, free(spent)) for page in pages]
        return _carried(spent, outcomes)

    def _unfinished(self, answer: Answer) -> Failure | None:
        """Why an answer is no result whatever it says.

        A call of a tool is an answer to code that offered the tool.
        """
        coded = self.asker.operation.parse is None
        if answer.stop is Stop.COMPLETE or (coded and answer.stop is Stop.OTHER):
            return None
        return Failure(FailureKind.ANSWER, f"{_STOPS[answer.stop]} {answer.words}".strip())

    def _value(
        self,
        line: Line,
        response: Mapping[str, Any],
        answer: Answer | None,
        page_id: str,
        spent: Spent,
    ) -> Outcome:
        """What the step makes of an answer on one page. `spent` is without its live calls."""
        heard: list[Kept] = []
        value: Any = None
        failure: Failure | None = None
        try:
            if self.asker.operation.parse is not None and answer is not None:
                self._known.page_id = page_id
                value = self.asker.operation.parse(answer, self._context)
            else:
                value = self._replayed(line, response, page_id, heard)
            check_value(value)
        except (OverCap, LedgerError, NoDecoder):
            raise  # no page is to blame: it lands when there is money, or a process, for it
        except RecipesError as error:
            failure = Failure(FailureKind.ANSWER, str(error))
        except Exception as error:  # noqa: BLE001  whatever a step makes of an answer is the page's
            failure = Failure(FailureKind.ANSWER, words_of(error))
        if heard:
            self._lines["live"] += len(heard)
            for each in heard:
                spent = spent if each.spent is None else plus(spent, each.spent)
        if failure is not None:
            return self._failed(page_id, failure, spent)
        return Outcome(page_id, self._step, 0.0, value=value, spent=spent)

    def _needs(self, page_id: str) -> Mapping[str, Any]:
        work = self.works.get(page_id)
        return {} if work is None else work.needs

    def _replayed(
        self, line: Line, response: Mapping[str, Any], page_id: str, heard: list[Kept]
    ) -> Any:
        """What the step's own code makes of an answer. `heard` is given the page's live calls."""
        work = self.works.get(page_id)
        if work is None:
            raise StepError("Its page is gone.")

        before = self.live.before(page_id)
        answers = {kept.id: (kept.call.status, kept.call.body) for kept in before}
        answers[line.id] = (200, dump(response))
        heard += before
        assert self.asker.recorder is not None
        replayed = self.asker.recorder.replay(
            partial(self.asker.function, work),
            answers,
            lambda call: heard.append(self.live.hear(page_id, call)),
            self.live.permit,
        )
        return replayed.value

    def _failed(self, page_id: str, failure: Failure, spent: Spent | None = None) -> Outcome:
        return Outcome(page_id, self._step, 0.0, failure=failure, spent=spent)


def _carried(spent: Spent, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes of one call, its cost on the first that is a result, else on the first."""
    best = next((at for at, each in enumerate(outcomes) if each.failure is None), 0)
    return [
        each._replace(spent=plus(spent, each.spent) if each.spent else spent)
        if at == best
        else each
        for at, each in enumerate(outcomes)
    ]

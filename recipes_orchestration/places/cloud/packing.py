"""Calls cut into packages that a provider takes, by their number and by their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ...providers.provider import BatchLimits, Call, Group
from ...runner.work import Failure, FailureKind, Outcome, PageWork
from ..place import Package
from .spool import SpoolPart
from .task_estimates import TaskEstimate
from .worst_cases import WorstCases

__all__ = ["MODE", "Packer", "group_of"]

MODE = "mode"
"""In the group that a task remembers: `batch` or `plain`."""


def group_of(part: SpoolPart, mode: str) -> dict[str, object]:
    """What must be remembered of a part so that its answers can be read."""
    return {**part.group._asdict(), MODE: mode}


@dataclass
class _Filling:
    """A part that is being filled, and what its calls will cost at most and likely."""

    part: SpoolPart
    worst: WorstCases | None
    estimate: TaskEstimate | None


@dataclass
class Packer:
    """Packs the calls of one step. `mode` is `batch` or `plain`; `line` writes a call as a line.

    A body that crosses the cap by one byte goes into the next part. Of a batch's parts, one that
    has fewer requests than the provider takes goes as plain calls. `worst` adds up the most that
    the calls of a group can cost; None where nobody asks. `estimate` adds up what they will likely.
    """

    step: str
    mode: str
    limits: BatchLimits
    line: Callable[[str, Call], bytes]
    new_part: Callable[[Group, int], SpoolPart]
    worst: Callable[[Group], WorstCases] | None = None
    estimate: Callable[[Group], TaskEstimate] | None = None
    _filling: dict[Group, _Filling] = field(default_factory=dict[Group, _Filling])
    _decided: list[Outcome] = field(default_factory=list[Outcome])

    def packages(self, calls: Iterable[tuple[PageWork, Call | Outcome]]) -> Iterator[Package]:
        """The packages, each as soon as it is full. Outcomes ride with the one that is next."""
        try:
            for work, call in calls:
                if isinstance(call, Outcome):
                    self._decided.append(call)
                elif (full := self._add(work, call)) is not None:
                    yield self._package(full)
            while self._filling:
                _, filling = self._filling.popitem()
                yield self._package(filling)
            if self._decided:
                yield Package(pages=(), decided=self._taken())
        finally:
            for filling in self._filling.values():
                filling.part.remove()

    def _add(self, work: PageWork, call: Call) -> _Filling | None:
        """Adds a call; gives the part that was full and made way for it."""
        call_id = call.id
        filling = self._filling.get(call.group)
        if filling is not None and filling.part.has(call_id):  # equal pages ask once
            filling.part.calls[work.page_id] = call_id
            return None
        line = self._line(call_id, call)
        if self.limits.overhead + len(line) > self.limits.max_bytes:
            self._decided.append(self._too_large(work, len(line)))
            return None
        full: _Filling | None = None
        if filling is not None and not self._fits(filling.part, len(line)):
            full, filling = self._filling.pop(call.group), None
        if filling is None:
            filling = self._filling[call.group] = self._new(call.group)
        if filling.worst is not None:
            filling.worst.add(call)
        if filling.estimate is not None:
            filling.estimate.add(call)
        filling.part.add(work.page_id, call_id, line, call.body)
        return full

    def _new(self, group: Group) -> _Filling:
        return _Filling(
            self.new_part(group, self.limits.overhead),
            None if self.worst is None else self.worst(group),
            None if self.estimate is None else self.estimate(group),
        )

    def _line(self, call_id: str, call: Call) -> bytes:
        return self.line(call_id, call) if self.mode == "batch" else call.body + b"\n"

    def _fits(self, part: SpoolPart, size: int) -> bool:
        return (
            len(part.bodies) < self.limits.max_requests
            and part.size + size <= self.limits.max_bytes
        )

    def _package(self, filling: _Filling) -> Package:
        part, worst, estimate = filling.part, filling.worst, filling.estimate
        part.finish()
        batched = self.mode == "batch" and len(part.bodies) >= self.limits.min_requests
        usd, unknown = (None, "") if worst is None else worst.usd(batch=batched)
        return Package(
            pages=tuple(part.calls),
            decided=self._taken(),
            calls=part.calls,
            slot=batched,
            group=group_of(part, "batch" if batched else "plain"),
            content=part,
            worst_usd=usd,
            worst_unknown=unknown,
            expected=None if estimate is None else estimate.expected(batch=batched),
        )

    def _taken(self) -> tuple[Outcome, ...]:
        decided, self._decided = tuple(self._decided), []
        return decided

    def _too_large(self, work: PageWork, size: int) -> Outcome:
        words = (
            f"Its request has {size:,} bytes and the provider takes {self.limits.max_bytes:,} in "
            "a batch; give the step a smaller image: {max_side: ...}."
        )
        failure = Failure(FailureKind.UNREADABLE, words)
        return Outcome(work.page_id, self.step, 0.0, failure=failure)

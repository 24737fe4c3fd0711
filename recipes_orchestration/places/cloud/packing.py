"""Calls cut into packages that a provider takes, by their number and by their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
    _worst: dict[Path, WorstCases] = field(default_factory=dict[Path, WorstCases])
    _estimates: dict[Path, TaskEstimate] = field(default_factory=dict[Path, TaskEstimate])
    _parts: dict[Group, SpoolPart] = field(default_factory=dict[Group, SpoolPart])
    _decided: list[Outcome] = field(default_factory=list[Outcome])

    def packages(self, calls: Iterable[tuple[PageWork, Call | Outcome]]) -> Iterator[Package]:
        """The packages, each as soon as it is full. Outcomes ride with the one that is next."""
        try:
            for work, call in calls:
                if isinstance(call, Outcome):
                    self._decided.append(call)
                elif (full := self._add(work, call)) is not None:
                    yield self._package(full)
            while self._parts:
                _, part = self._parts.popitem()
                yield self._package(part)
            if self._decided:
                yield Package(pages=(), decided=self._taken())
        finally:
            for part in self._parts.values():
                part.remove()

    def _add(self, work: PageWork, call: Call) -> SpoolPart | None:
        """Adds a call; gives the part that was full and made way for it."""
        call_id = call.id
        part = self._parts.get(call.group)
        line = b"" if part is not None and part.has(call_id) else self._line(call_id, call)
        if self.limits.overhead + len(line) > self.limits.max_bytes:
            self._decided.append(self._too_large(work, len(line)))
            return None
        full: SpoolPart | None = None
        if part is not None and line and not self._fits(part, len(line)):
            full, part = self._parts.pop(call.group), None
        if part is None:
            part = self._parts[call.group] = self.new_part(call.group, self.limits.overhead)
            line = line or self._line(call_id, call)
            if self.worst is not None:
                self._worst[part.path] = self.worst(call.group)
            if self.estimate is not None:
                self._estimates[part.path] = self.estimate(call.group)
        if line and self.worst is not None:
            self._worst[part.path].add(call)
        if line and self.estimate is not None:
            self._estimates[part.path].add(call)
        part.add(work.page_id, call_id, line, call.body)
        return full

    def _line(self, call_id: str, call: Call) -> bytes:
        return self.line(call_id, call) if self.mode == "batch" else call.body + b"\n"

    def _fits(self, part: SpoolPart, size: int) -> bool:
        return (
            len(part.bodies) < self.limits.max_requests
            and part.size + size <= self.limits.max_bytes
        )

    def _package(self, part: SpoolPart) -> Package:
        part.finish()
        batched = self.mode == "batch" and len(part.bodies) >= self.limits.min_requests
        worst = self._worst.pop(part.path, None)
        usd, unknown = (None, "") if worst is None else worst.usd(batch=batched)
        estimate = self._estimates.pop(part.path, None)
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

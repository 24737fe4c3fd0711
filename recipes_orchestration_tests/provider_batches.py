"""A provider's client at the rehearsal server, and small batches to send through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recipes_orchestration.providers.provider import BatchStatus, Call, Line, LineKind, Provider
from recipes_orchestration.providers.registry import open_provider
from recipes_orchestration.rehearsal import Rehearsal, running_rehearsal
from recipes_orchestration.rehearsal.script import Script
from recipes_orchestration.steps.ask import Ask, Text

KEY = "sk-test-0123456789abcdef"


@dataclass
class Bench:
    """One provider and its rehearsal, with what a test does again and again."""

    rehearsal: Rehearsal
    provider: Provider
    folder: Path
    model: str

    def script(self, **behaviour: object) -> None:
        self.rehearsal.script(self.provider.name, Script.model_validate(behaviour))

    def calls(self, count: int, words: str = "Say") -> list[Call]:
        return [
            self.provider.call(Ask((Text(f"{words} {number}"),), 100), self.model)
            for number in range(count)
        ]

    def file(self, calls: Sequence[Call]) -> Path:
        path = self.folder / f"{len(list(self.folder.iterdir()))}.jsonl"
        path.write_bytes(b"".join(self.provider.line(call.id, call) for call in calls))
        return path

    def send(self, calls: Sequence[Call], name: str = "task-1") -> str:
        ids = [call.id for call in calls]
        return self.provider.submit(name, calls[0].group, self.file(calls), ids)

    def find(
        self,
        calls: Sequence[Call],
        name: str = "task-1",
        *,
        since: datetime | None = None,
        known: Sequence[str] = (),
    ) -> str | None:
        ids = [call.id for call in calls]
        return self.provider.find(name, ids, since or datetime.now(UTC), known)

    def status(self, batch_id: str) -> BatchStatus:
        return self.provider.statuses([batch_id])[batch_id]

    def lines(self, batch_id: str) -> list[Line | None]:
        return [self.provider.read_line(line) for line in self.provider.results(batch_id)]

    def kinds(self, batch_id: str) -> dict[LineKind, int]:
        """How many lines there are of each kind."""
        return dict(Counter(line.kind for line in self.lines(batch_id) if line is not None))

    def counts(self) -> dict[str, int]:
        counts = self.rehearsal.counts(self.provider.name)
        return {key: value for key, value in counts.items() if isinstance(value, int)}

    def age(self, hours: float) -> None:
        """Makes all batches so much older."""
        for batch in self.rehearsal.side(self.provider.name).batches.values():
            batch.created -= timedelta(hours=hours)

    def batches(self) -> list[str]:
        counts = self.rehearsal.counts(self.provider.name)
        return [batch["id"] for batch in counts["batches"]]


@contextmanager
def bench(name: str, model: str, folder: Path) -> Generator[Bench]:
    with running_rehearsal((name,)) as rehearsal:
        provider = open_provider(name, base_url=rehearsal.base_url(name), api_key=KEY)
        try:
            yield Bench(rehearsal, provider, folder, model)
        finally:
            provider.close()

"""A provider that is scripted to the last answer, with what it bills: see the spend histories."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.anthropic_provider import AnthropicProvider
from recipes_orchestration.providers.provider import BatchState, BatchStatus, Group

IN, OUT = Decimal("0.0000005"), Decimal("0.0005")
"""Dollars for a token in a batch at first."""


@dataclass
class FakeBatch:
    """A batch with what its lines will say: the tokens of each answer, or how it failed."""

    id: str
    name: str
    ids: tuple[str, ...]
    answers: list[int | str] = field(default_factory=list[int | str])
    ended: bool = False
    price: Decimal = Decimal(1)

    def may_answer(self, id: str) -> bool:
        """Whether a result of that request may still come, or has come."""
        if id not in self.ids:
            return False
        answer = self.answers[self.ids.index(id)] if self.ended else 1
        return isinstance(answer, int) and answer < 100


class Killed(BaseException):
    """The process is gone: nothing of it is called any more."""


@dataclass
class World:
    """What outlives a process: the provider with its bill. `twice` are requests that it had."""

    lose: bool = False
    refuse: bool = False
    kill: str = ""
    price: Decimal = Decimal(1)
    twice: list[str] = field(default_factory=list[str])
    answers: list[int | str] = field(default_factory=list[int | str])
    batches: list[FakeBatch] = field(default_factory=list[FakeBatch])

    @property
    def billed(self) -> Decimal:
        """What all batches that have ended cost, landed or not."""
        return sum(
            (
                batch.price * (IN + OUT * tokens)
                for batch in self.batches
                if batch.ended
                for tokens in batch.answers
                if isinstance(tokens, int)
            ),
            Decimal(0),
        )

    def end(self, batch: FakeBatch) -> None:
        """Ends it: as the answers were drawn, with errors where none are left."""
        if not batch.ended:
            batch.ended = True
            batch.answers = [self.answers.pop() if self.answers else 10 for _ in batch.ids]


class FakeProvider(AnthropicProvider):
    """Anthropic's questions and answers without Anthropic: nothing real can be scripted so."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def submit(self, name: str, group: Group, file: Path, ids: Collection[str]) -> str:
        world = self._world
        if world.refuse:
            world.refuse = False
            raise Refused("Too large.", account=True, retry_after=0.0)
        sent = tuple(json.loads(line)["custom_id"] for line in file.read_bytes().splitlines())
        if world.kill == "before":
            raise Killed
        world.twice += [id for id in sent for batch in world.batches if batch.may_answer(id)]
        batch = FakeBatch(f"batch_{len(world.batches)}", name, sent, price=world.price)
        world.batches.append(batch)
        if world.kill == "after":
            raise Killed
        if world.lose:
            world.lose = False
            raise ProviderError("Its answer was lost.")
        return batch.id

    def find(
        self, name: str, ids: Collection[str], since: datetime, known: Collection[str]
    ) -> str | None:
        return next((each.id for each in self._world.batches if each.name == name), None)

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        ended = {each.id: each.ended for each in self._world.batches}
        return {
            id: BatchStatus(BatchState.ENDED if ended[id] else BatchState.RUNNING, "")
            for id in batch_ids
        }

    def results(self, batch_id: str) -> Iterator[bytes]:
        batch = next(each for each in self._world.batches if each.id == batch_id)
        for id, answer in zip(batch.ids, batch.answers, strict=True):
            yield json.dumps({"custom_id": id, "result": _result(id, answer)}).encode()

    def cancel(self, batch_id: str) -> None:
        self._world.end(next(each for each in self._world.batches if each.id == batch_id))

    def close(self) -> None:
        pass


def _result(id: str, answer: int | str) -> dict[str, Any]:
    if answer == "expired":
        return {"type": "expired"}
    if answer == "errored":
        words = {"type": "invalid_request_error", "message": "No."}
        return {"type": "errored", "error": {"type": "error", "error": words}}
    message = {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [{"type": "text", "text": id}],
        # An answer of all its tokens was cut off: billed, and no result.
        "stop_reason": "max_tokens" if answer == 100 else "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": answer},
    }
    return {"type": "succeeded", "message": message}

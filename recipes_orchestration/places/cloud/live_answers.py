"""What Python steps were answered live while a task landed, until all of it has landed."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from ...providers.provider import Call, Group
from ...providers.recording import LiveCall
from ...runner.work import Spent

__all__ = ["Kept", "LiveAnswers"]


@dataclass(frozen=True)
class Kept:
    """A live call that was answered: `id` is its call's, whose body is not kept.

    `spent` is what it cost when it was asked; None when it is no answer of a model.
    """

    id: str
    call: LiveCall
    spent: Spent | None = None


@dataclass(frozen=True)
class LiveAnswers:
    """The live answers of one task, by page, in a file of this machine.

    Landing that begins anew after a kill is answered from it and pays nothing again.
    """

    path: Path

    def of(self, page_id: str) -> Sequence[Kept]:
        """What the page's code was answered before."""
        return self._before.get(page_id, ())

    def all(self) -> Iterator[Kept]:
        """All that was answered before."""
        for kept in self._before.values():
            yield from kept

    def add(self, page_id: str, kept: Kept) -> None:
        """Keeps an answer; when this returns it outlives this process."""
        call, spent = kept.call, kept.spent
        if call.status >= 400:
            return
        line = {
            "page": page_id,
            "id": kept.id,
            "provider": call.call.provider,
            "group": call.call.group._asdict(),
            "status": call.status,
            "body": call.body.decode("latin-1"),
            "spent": None if spent is None else spent._replace(usd=_text(spent.usd)),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.path.open("ab", buffering=0) as stream:
            stream.write(json.dumps(line).encode() + b"\n")
            os.fsync(stream.fileno())

    def remove(self) -> None:
        """Deletes the file: all has landed."""
        with suppress(FileNotFoundError):
            self.path.unlink()

    @cached_property
    def _before(self) -> Mapping[str, list[Kept]]:
        found: dict[str, list[Kept]] = defaultdict(list)
        with suppress(FileNotFoundError), self.path.open("rb") as stream:
            for line in stream:
                with suppress(ValueError):  # the last one may be cut off by a kill
                    page_id, kept = _read(json.loads(line))
                    found[page_id].append(kept)
        return dict(found)


def _read(line: Mapping[str, Any]) -> tuple[str, Kept]:
    told = line["group"]
    group = Group(told["route"], told["model"], tuple(told["betas"]))
    call = Call(line["provider"], group, b"")
    answered = LiveCall(call, line["status"], line["body"].encode("latin-1"))
    spent = None if line["spent"] is None else Spent(*line["spent"])
    if spent is not None and spent.usd is not None:
        spent = spent._replace(usd=Decimal(spent.usd))
    return line["page"], Kept(line["id"], answered, spent)


def _text(usd: Decimal | None) -> Any:
    return None if usd is None else str(usd)

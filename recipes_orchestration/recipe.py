"""A recipe: named steps over one source, and the keys that say what makes a result the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

__all__ = [
    "LOCAL",
    "MANUAL",
    "NEW_PAGES",
    "Deadline",
    "Recipe",
    "Step",
    "canonical_json",
    "digest",
    "page_key",
    "page_keys",
]

LOCAL = "local"
"""The place that is this machine."""

# About 4 MB a step.
_KEYS_KNOWN = 20_000

MANUAL = "manual"
NEW_PAGES = "new_pages"


def canonical_json(value: Any) -> str:
    """The one JSON spelling of a value: names sorted, no spaces; equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@dataclass(frozen=True)
class Step:
    """One operation on one page.

    `run` is the operation's name or `module:function`, `version` that operation's version. `model`
    and `prompt` are for operations that have them. `image` says what picture of the page a step
    sees that is at no provider, None for the page as it is; at a provider it is one of `params`.
    The place is where it runs and is no part of the fingerprint.
    """

    name: str
    run: str
    version: str
    place: str = LOCAL
    needs: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    provider: str | None = None
    model: str | None = None
    prompt: str | None = None
    image: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Deadline:
    """How long a step's batch may wait at its place from its first sending on.

    `calls`: what is not answered by then goes as plain calls; otherwise it is held.
    """

    after: timedelta
    calls: bool = False


@dataclass(frozen=True)
class Recipe:
    """Named steps over one source, in an order in which each step comes after what it needs.

    `when` is `manual`, `new_pages` or a cron line. `max_held` is the share (0 to 1) of a batch's
    pages that may wait for a person while the batch goes on. `path` is the YAML file. `spend` is
    the most that its places may be paid, in dollars. `deadlines` are of those steps that have one.
    `pages_may_leave` is the recipe's own yes to sending them to its places.
    """

    name: str
    source: str
    steps: tuple[Step, ...]
    when: str = MANUAL
    max_held: float = 0.05
    description: str | None = None
    path: str | None = None
    spend: Decimal | None = None
    pages_may_leave: bool = False
    deadlines: Mapping[str, Deadline] = field(default_factory=dict[str, Deadline])

    def step(self, name: str) -> Step:
        """The step of that name; `KeyError` when the recipe has none."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def fingerprint(self, step: str) -> str:
        """What a step's result depends on besides the page: 32 hexadecimal digits.

        A hash of the operation and its version, provider and model, prompt, params and image, and
        the fingerprints of the steps it needs under the names it knows them by.
        """
        return self._fingerprints()[step]

    def _fingerprints(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for step in self.steps:
            parts: dict[str, Any] = {
                "run": step.run,
                "version": step.version,
                "provider": step.provider,
                "model": step.model,
                "prompt": step.prompt,
                "params": dict(step.params),
                "needs": {need: known[need] for need in step.needs},
            }
            # Left out where there is none: most steps see the page as it is.
            if step.image is not None:
                parts["image"] = dict(step.image)
            known[step.name] = digest(canonical_json(parts))
        return known


def page_key(fingerprint: str, sha256: str) -> str:
    """The key of one step's result on one page: 32 hexadecimal digits.

    The fingerprint holds those of the needed steps and the page is the same for all of them, so
    equal keys mean that every result the step needs has an equal key too.
    """
    # As `digest`, which a look at many pages would call a million times.
    return hashlib.sha256(f"{fingerprint}/{sha256}".encode()).hexdigest()[:32]


class _PageKeys(dict[str, str]):
    """The keys of pages at one step by their hashes, each made when it is first asked for."""

    def __init__(self, fingerprint: str) -> None:
        self._head = hashlib.sha256(f"{fingerprint}/".encode())

    def __missing__(self, sha256: str) -> str:
        if len(self) >= _KEYS_KNOWN:
            self.clear()
        hashed = self._head.copy()
        hashed.update(sha256.encode())
        key = self[sha256] = hashed.hexdigest()[:32]
        return key


@lru_cache(maxsize=8)
def page_keys(fingerprint: str) -> Callable[[str], str]:
    """What gives the `page_key` of many pages at one step, in half the time.

    Those of the last pages are remembered: a batch is looked at, sent, landed and looked at again.
    """
    return _PageKeys(fingerprint).__getitem__


def digest(text: str) -> str:
    """128 bits of the text's SHA-256 as 32 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]

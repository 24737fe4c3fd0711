"""What a step asks of a model on a cloud place, and what it is given back. No provider in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Answer", "Ask", "EmbedAsk", "Part", "Picture", "Ready", "Stop", "Text", "Usage"]


class Text(NamedTuple):
    """A piece of the question in words."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A piece of the question as an encoded image. `media_type` such as `image/jpeg`."""

    data: bytes = field(repr=False)
    media_type: str


Part: TypeAlias = Text | Picture


class Ask(NamedTuple):
    """A question to a generating model: pieces in order, and what bounds the answer.

    `schema` is the JSON schema that the answer is asked to follow; None asks for plain text.
    """

    parts: tuple[Part, ...]
    max_tokens: int
    system: str | None = None
    schema: Mapping[str, Any] | None = None
    temperature: float | None = None

    @property
    def pictures(self) -> list[bytes]:
        """The images' bytes, in order."""
        return [part.data for part in self.parts if isinstance(part, Picture)]


@dataclass(frozen=True, slots=True)
class EmbedAsk:
    """A text whose vector is asked for; `dimensions` None takes the model's own."""

    text: str
    dimensions: int | None = None


class Ready(Exception):
    """Raised by an operation's `ask` when the value is known without asking: it costs nothing.

    No failure: `value` is the step's value on the page.
    """

    def __init__(self, value: Any) -> None:
        super().__init__("the value is known without asking a model")
        self.value = value


class Stop(StrEnum):
    """Why a model stopped, as far as it decides whether its answer is a result."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"  # at the token limit, thinking included
    REFUSED = "refused"
    FILTERED = "filtered"  # by a safety filter or a guardrail, question or answer
    EMPTY = "empty"
    OTHER = "other"  # a stop that is none of these, tool calls included


class Usage(NamedTuple):
    """Tokens as the provider counted them.

    `tokens_in` counts the whole question, cached parts included; `tokens_cached` are those of it
    read from a cache, `tokens_cache_write` those written to one. `tokens_out` includes thinking.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_cache_write: int = 0


class Answer(NamedTuple):
    """What a model answered, in one shape for all providers.

    `text` is the text of a generating model without its thinking, `vector` that of an embedding
    model. `words` is the provider's own reason when `stop` is not COMPLETE. `model` is the model
    that the provider says it used, None when it does not say.
    """

    stop: Stop
    usage: Usage
    text: str = ""
    vector: tuple[float, ...] | None = None
    words: str = ""
    model: str | None = None

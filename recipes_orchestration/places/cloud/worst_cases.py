"""The most that a call of a model can cost, read off the request itself. Pure.

Text: every tokenizer that works on bytes makes at most one token of a byte, so the bytes of the
request without its pictures are a bound. Pictures: a bound for each provider, see `_picture`.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from typing import Any, cast

from PIL import Image

from ...providers.prices import ModelPrices, price_of
from ...providers.provider import Call, Group
from ...steps.ask import Usage

__all__ = ["WorstCases", "most_tokens"]

# What providers put around a question: Anthropic's longest words about tools have 804 tokens
# (platform.claude.com/docs/en/agents-and-tools/tool-use/overview, November 2026).
_AROUND = 1_000

# A shorter text is no picture that would make a difference.
_LEAST = 400
# JPEG, PNG, GIF, WebP, BMP and TIFF in base64, by itself or in a data URL.
_PICTURE = re.compile(
    rb"(?:data:[a-z/+.-]{1,40};base64,)?"
    rb"(?=[/_]9j[/_]|iVBORw0KGgo|R0lGOD|UklGR|Qk[01]|SUkq|TU0AK)"
)
# Where nearly all files say their size, in base64: a multiple of 4.
_HEAD = 65_536
_STANDARD = bytes.maketrans(b"-_", b"+/")

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_gen_len")
_SETTINGS = {
    "generationConfig": ("maxOutputTokens", "max_output_tokens"),
    "generation_config": ("maxOutputTokens", "max_output_tokens"),
    "inferenceConfig": ("maxTokens", "max_new_tokens"),
    "textGenerationConfig": ("maxTokenCount",),
}
# What lies elsewhere has a size that the request does not show.
_ELSEWHERE = frozenset(
    {
        *("file_id", "file_uri", "fileUri", "fileData", "file_data", "s3Location", "file_url"),
        *("cachedContent", "cached_content", "previous_response_id", "conversation", "container"),
    }
)


@dataclass(frozen=True, slots=True)
class _Bound:
    """At most so many tokens, or why nobody can tell."""

    tokens_in: int = 0
    tokens_out: int = 0
    unknown: str = ""


@dataclass
class WorstCases:
    """Adds up the most that the calls of one package can cost, at today's prices.

    `provider` is the place's name, `prices` are the project's own.
    """

    provider: str
    group: Group
    prices: Mapping[str, ModelPrices]
    _bounds: list[_Bound] = field(default_factory=list[_Bound])

    def add(self, call: Call) -> None:
        """Adds a call that will be asked once."""
        self._bounds.append(most_tokens(call))

    def usd(self, *, batch: bool) -> tuple[Decimal | None, str]:
        """Dollars by the batch's or the plain price; None with the reason when nobody can tell."""
        total = Decimal(0)
        for bound in self._bounds:
            if bound.unknown:
                return None, bound.unknown
            usd = self._price(bound, batch)
            if usd is None:
                model = self.group.model
                return None, f"The price of model {model} is not known: give it under prices:"
            total += usd
        return total, ""

    def _price(self, bound: _Bound, batch: bool) -> Decimal | None:
        now = datetime.now(UTC)
        prices: list[Decimal] = []
        # Tokens that are written to a cache may cost more than others.
        for written in (0, bound.tokens_in):
            usage = Usage(bound.tokens_in, bound.tokens_out, tokens_cache_write=written)
            price = price_of(
                self.provider, self.group.model, usage, now, batch=batch, overrides=self.prices
            )
            if price.usd is None:
                return None
            prices.append(price.usd)
        return max(prices)


def most_tokens(call: Call) -> _Bound:
    """The most tokens of a call's question and of its answers together."""
    text, pictures = _without_pictures(call.body)
    try:
        body = json.loads(text)
    except ValueError:
        return _Bound(unknown="A request that is no JSON may cost anything.")
    if not isinstance(body, dict):
        return _Bound(unknown="A request that is no JSON object may cost anything.")
    asked = cast("dict[str, Any]", body)
    if any(_elsewhere(asked)):
        return _Bound(
            unknown="What its request costs is not known before: it names files or answers that "
            "are not in it. Send them in the request itself"
        )
    tokens_in = len(text) + _AROUND
    tokens_in += sum(_picture(call.provider, call.group.model, size) for size in pictures)
    if "embed" in f"{call.group.route} {call.group.model}".lower():
        return _Bound(tokens_in)
    longest = _longest_answer(asked)
    if longest is None:
        return _Bound(
            unknown="What its answers may cost is not known, as they may have any length: "
            "give the request a bound such as max_tokens"
        )
    return _Bound(tokens_in, longest * _answers(asked))


def _longest_answer(body: Mapping[str, Any]) -> int | None:
    found = [body.get(name) for name in _LIMITS]
    for settings, names in _SETTINGS.items():
        inner = body.get(settings)
        if isinstance(inner, dict):
            found += [cast("dict[str, Any]", inner).get(name) for name in names]
    numbers = [each for each in found if isinstance(each, int) and each >= 0]
    return max(numbers) if numbers else None


def _answers(body: Mapping[str, Any]) -> int:
    """How many answers to one question are asked for."""
    found = [body.get("n")]
    for settings in ("generationConfig", "generation_config"):
        inner = body.get(settings)
        if isinstance(inner, dict):
            values = cast("dict[str, Any]", inner)
            found += [values.get("candidateCount"), values.get("candidate_count")]
    return max([each for each in found if isinstance(each, int)], default=1)


def _elsewhere(value: Any) -> Iterator[bool]:
    """True for each thing in the body that names what is not in it."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            for key, inner in cast("dict[str, Any]", each).items():
                if key in _ELSEWHERE and inner:
                    yield True
                if key in ("url", "image_url") and str(inner).startswith(("http", "gs:", "s3:")):
                    yield True
                todo.append(inner)
        elif isinstance(each, list):
            todo.extend(cast("list[Any]", each))


def _without_pictures(body: bytes) -> tuple[bytes, Sequence[tuple[int, int]]]:
    """The body with nothing where its pictures were, and their sizes in pixels."""
    sizes: list[tuple[int, int]] = []
    kept: list[bytes] = []
    at = start = 0
    # From quote to quote: a search by an expression takes 100 times longer.
    while (end := body.find(b'"', start)) >= 0:
        if end - start > _LEAST and (found := _PICTURE.match(body, start, end)) is not None:
            size = _size(body[found.end() : end])
            if size is not None:
                sizes.append(size)
                kept.append(body[at:start])
                at = end
        start = end + 1
    kept.append(body[at:])
    return b"".join(kept), sizes


def _size(text: bytes) -> tuple[int, int] | None:
    """The size of a picture in base64; None for what is none, which counts by its bytes."""
    for part in (text[:_HEAD], text):
        try:
            # Google's SDK writes - and _ for + and /.
            data = base64.b64decode(part.translate(_STANDARD))
            with Image.open(io.BytesIO(data)) as picture:
                return picture.size
        except (OSError, ValueError, Image.DecompressionBombError):
            continue
    return None


def _picture(provider: str, model: str, size: tuple[int, int]) -> int:
    """The most tokens that a picture of so many pixels becomes, whatever the model does with it.

    Anthropic: at most 4,784 in its larger view, else 1,568 (platform.claude.com/docs/en/
    build-with-claude/vision). OpenAI: one for each square of 32 pixels, times at most 2.46 by the
    model, or 85 and 170 for each of at most 8 tiles, of which gpt-4o-mini makes 2,833 and 5,667
    (developers.openai.com/api/docs/guides/images-vision). Gemini: at most 2,240, and 258 for each
    tile of models before 3 (ai.google.dev/gemini-api/docs/media-resolution). Read November 2026.
    Other models at Bedrock are taken to make one of 256 pixels at most.
    """
    width, height = size
    if provider == "openai":
        if "4o-mini" in model:
            return 2_833 + 8 * 5_667
        return max(1_500, ceil(ceil(width / 32) * ceil(height / 32) * 2.5))
    if provider == "gemini":
        side = max(256.0, min(768.0, min(width, height) / 1.5))
        return max(2_500, ceil(width / side) * ceil(height / side) * 258)
    if "claude" in model:
        return 5_000
    return max(5_000, ceil(width * height / 256))

"""About how many tokens a call's question has, counted from its body before it is sent. Pure."""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from .image_tokens import UNKNOWN_PICTURE, image_tokens
from .provider import Call

__all__ = ["CHARACTERS_A_TOKEN", "CallTokens", "count_call"]

CHARACTERS_A_TOKEN = 4.0
"""Of English text: https://ai.google.dev/gemini-api/docs/tokens and OpenAI's
https://help.openai.com/en/articles/4936856 (November 2026). Anthropic's glossary says 3.5; other
languages have fewer."""

# Words of the API itself, which no model is shown.
_SILENT = frozenset(
    (
        *("model", "type", "role", "id", "name", "media_type", "encoding_format", "input_type"),
        *("mimeType", "mime_type", "responseMimeType", "response_mime_type", "mediaResolution"),
        *("anthropic_version", "embedding_types"),
    )
)
# Enough base64 for the header of nearly all pictures.
_HEADER = 64 * 1024


@dataclass(frozen=True, slots=True)
class CallTokens:
    """Tokens of one question. `most_out` is what bounds the answer, None where nothing does."""

    text: int
    images: int
    most_out: int | None

    @property
    def tokens_in(self) -> int:
        """The whole question."""
        return self.text + self.images


def count_call(call: Call) -> CallTokens:
    """About the tokens of a call; a body that is no JSON object has none."""
    try:
        body: Any = json.loads(call.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return CallTokens(0, 0, None)
    counter = _Counter(call.provider, call.group.model, _resolution(body))
    counter.walk(body)
    text = int(counter.characters / CHARACTERS_A_TOKEN) + 1
    return CallTokens(text, counter.images, _most_out(call, body))


@dataclass
class _Counter:
    provider: str
    model: str
    detail: str | None
    characters: int = 0
    images: int = 0

    def walk(self, body: Any) -> None:
        left: list[Any] = [body]
        while left:
            value = left.pop()
            if isinstance(value, str):
                self.characters += len(value)
            elif isinstance(value, list):
                left.extend(value)
            elif isinstance(value, Mapping):
                picture = _picture(value)
                if picture is None:
                    left.extend(each for key, each in value.items() if key not in _SILENT)
                else:
                    self._add(*picture)

    def _add(self, data: str, detail: str | None) -> None:
        size = _size(data)
        if size is None:
            self.images += UNKNOWN_PICTURE
        else:
            self.images += image_tokens(self.provider, self.model, *size, detail or self.detail)


def _picture(block: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """The base64 of a block that is a picture, and its detail; None for any other block.

    The base64 is empty where the picture is somewhere else.
    """
    inline = block.get("inlineData", block.get("inline_data"))
    if isinstance(inline, Mapping):
        return _text(inline.get("data")), _resolution_of(block)
    if "fileData" in block or "file_data" in block:
        return "", _resolution_of(block)
    kind = block.get("type")
    if kind in ("image", "document"):
        return _text(_at(block, "source", "data")), None
    if kind == "image_url":
        return _data_url(_at(block, "image_url", "url")), _detail(block.get("image_url"))
    if kind in ("input_image", "input_file"):
        return _data_url(block.get("image_url")), _detail(block)
    image = block.get("image")
    if isinstance(image, Mapping) and "source" in image:
        return _text(_at(image, "source", "bytes")), None
    return None


def _resolution(body: Mapping[str, Any]) -> str | None:
    """Gemini's for the whole request."""
    config = body.get("generationConfig", body.get("generation_config"))
    return _resolution_of(config) if isinstance(config, Mapping) else None


def _resolution_of(value: Mapping[str, Any]) -> str | None:
    found = value.get("mediaResolution", value.get("media_resolution"))
    if isinstance(found, Mapping):
        found = found.get("level")
    return found if isinstance(found, str) else None


def _detail(value: Any) -> str | None:
    found = value.get("detail") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else None


def _data_url(url: Any) -> str:
    head, _, data = _text(url).partition(",")
    return data if head.startswith("data:") and head.endswith(";base64") else ""


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _size(data: str) -> tuple[int, int] | None:
    """Width and height of a picture in base64; None when it cannot be read."""
    for part in (data[:_HEADER], data) if len(data) > _HEADER else (data,):
        try:
            with Image.open(io.BytesIO(base64.b64decode(part))) as image:
                return image.size
        except (OSError, ValueError, binascii.Error, SyntaxError, Image.DecompressionBombError):
            continue
    return None


def _most_out(call: Call, body: Mapping[str, Any]) -> int | None:
    """The bound of the answer in tokens; 0 for a vector, which has no answer to pay."""
    if "embed" in call.group.route or any(
        key in body for key in ("inputText", "texts", "encoding_format")
    ):
        return 0
    config = body.get("generationConfig", body.get("generation_config"))
    for found in (
        *(body.get(key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")),
        _at(config, "maxOutputTokens"),
        _at(config, "max_output_tokens"),
        _at(body, "inferenceConfig", "maxTokens"),
    ):
        if isinstance(found, int) and found > 0:
            return found
    return None

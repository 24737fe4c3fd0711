"""Gemini's calls: made of a question, and as a line of a batch's file. Pure.

Shapes are those of the developer API, https://ai.google.dev/api/generate-content,
https://ai.google.dev/api/embeddings and https://ai.google.dev/gemini-api/docs/batch-api (read in
November 2026).
"""

from __future__ import annotations

from typing import Any

from ..errors import StepError
from ..steps.ask import Ask, EmbedAsk, Part, Text
from .json_values import PICTURE, dump, one_line, quoted
from .provider import Call, Group
from .words_alone import words_alone

__all__ = ["EMBED", "GENERATE", "batch_line", "embeds", "make_call"]

GENERATE = ":generateContent"
EMBED = ":embedContent"

# https://ai.google.dev/gemini-api/docs/image-understanding (November 2026)
PICTURES = frozenset({"image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"})


def embeds(group: Group) -> bool:
    """Whether the group's calls ask for vectors; a route may come without its colon."""
    return group.route.lstrip(":") == EMBED.lstrip(":")


def make_call(ask: Ask | EmbedAsk, model: str) -> Call:
    """The generateContent or embedContent call that asks it; the model is in the address."""
    if isinstance(ask, EmbedAsk):
        vector: dict[str, Any] = {"content": {"parts": [{"text": ask.text}]}}
        if ask.dimensions is not None:
            vector["outputDimensionality"] = ask.dimensions
        return Call("gemini", Group(EMBED, model), dump(vector))
    return words_alone(ask, model, _generate)


def batch_line(id: str, call: Call) -> bytes:
    """The call as a line of the batch's file, with a line end."""
    return b'{"key":%b,"request":%b}\n' % (quoted(id), one_line(call.body))


def _generate(ask: Ask, model: str) -> Call:
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [_part(part) for part in ask.parts]}]
    }
    if ask.system is not None:
        body["systemInstruction"] = {"parts": [{"text": ask.system}]}
    body["generationConfig"] = _settings(ask)
    return Call("gemini", Group(GENERATE, model), dump(body, ask.pictures))


def _settings(ask: Ask) -> dict[str, Any]:
    settings: dict[str, Any] = {"maxOutputTokens": ask.max_tokens}
    if ask.temperature is not None:
        settings["temperature"] = ask.temperature
    if ask.schema is not None:
        settings["responseMimeType"] = "application/json"
        settings["responseJsonSchema"] = dict(ask.schema)
    return settings


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    if part.media_type not in PICTURES:
        raise StepError(
            f"Gemini does not take pictures of type {part.media_type}. "
            "Set `format: jpeg`, `png` or `webp` in the step's `image`."
        )
    return {"inlineData": {"mimeType": part.media_type, "data": PICTURE}}

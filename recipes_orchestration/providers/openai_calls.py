"""OpenAI's calls: chat completions and embeddings made of a question, and batch lines. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..steps.ask import Ask, EmbedAsk, Part, Text
from .answer_schemas import openai_schema
from .json_values import PICTURE, dump, one_line, quoted
from .provider import Call, Group
from .words_alone import words_alone

__all__ = ["CHAT", "EMBEDDINGS", "RESPONSES", "batch_line", "make_call"]

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
RESPONSES = "/v1/responses"

# OpenAI's own models take `max_completion_tokens`, reasoning models nothing else. Other names are
# models of other servers with this API, and most of those know `max_tokens` only.
OWN_MODEL = re.compile(r"(?:ft:)?(?:o\d|gpt-(?!3|oss)|chatgpt-|codex-)")


@lru_cache(maxsize=64)
def _of_model(model: str) -> tuple[Group, str]:
    """The group of its chats, and what bounds an answer's tokens."""
    limit = "max_completion_tokens" if OWN_MODEL.match(model) else "max_tokens"
    return Group(CHAT, model), limit


def make_call(ask: Ask | EmbedAsk, model: str) -> Call:
    """The call that asks it."""
    if isinstance(ask, EmbedAsk):
        vector: dict[str, Any] = {"model": model, "input": ask.text, "encoding_format": "float"}
        if ask.dimensions is not None:
            vector["dimensions"] = ask.dimensions
        return Call("openai", Group(EMBEDDINGS, model), dump(vector))
    return words_alone(ask, model, _chat)


def _chat(ask: Ask, model: str) -> Call:
    group, limit = _of_model(model)
    return Call("openai", group, dump(_chat_body(ask, model, limit), ask.pictures))


def _chat_body(ask: Ask, model: str, limit: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    if ask.system is not None:
        messages.append({"role": "system", "content": ask.system})
    messages.append({"role": "user", "content": [_content(part) for part in ask.parts]})
    body: dict[str, Any] = {"model": model, limit: ask.max_tokens, "messages": messages}
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    if ask.schema is not None:
        strict = openai_schema(ask.schema)
        shape = {"name": "answer", "schema": strict or ask.schema, "strict": strict is not None}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return body


def batch_line(id: str, call: Call) -> bytes:
    """The call as a line of a batch's input file, with its line end."""
    return b'{"custom_id":%b,"method":"POST","url":%b,"body":%b}\n' % (
        quoted(id),
        _route(call.group.route),
        one_line(call.body),
    )


@lru_cache(maxsize=64)
def _route(route: str) -> bytes:
    return dump(route)


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{PICTURE}"
    return {"type": "image_url", "image_url": {"url": url}}

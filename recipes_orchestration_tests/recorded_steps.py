"""Steps of each provider as a user writes them, what the provider answers, and a server for it."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from recipes_orchestration.providers.recording import Clients, Recorder

WORDS = "Straße, naïve, 北京 \u2028 🦉"
PICTURE = bytes(range(256)) * 8
# Where the SDKs look for keys and addresses: none of it may be needed, or be taken by chance.
KEY_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_BEARER_TOKEN_BEDROCK",
)


def anthropic_answer(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }


def openai_answer(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }


def gemini_answer(text: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5},
    }


def bedrock_answer(text: str) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8},
        "metrics": {"latencyMs": 1},
    }


def ask_anthropic(client: Any, prompt: str, **more: Any) -> Any:
    message = {"role": "user", "content": prompt}
    return client.messages.create(
        model="claude-sonnet-4-6", max_tokens=100, messages=[message], **more
    )


def ask_openai(client: Any, prompt: str, **more: Any) -> Any:
    message = {"role": "user", "content": prompt}
    return client.chat.completions.create(model="gpt-5", messages=[message], **more)


def ask_gemini(client: Any, prompt: str, **more: Any) -> Any:
    return client.models.generate_content(model="gemini-2.5-flash", contents=prompt, **more)


def ask_bedrock(client: Any, prompt: str, **more: Any) -> Any:
    message = {"role": "user", "content": [{"text": prompt}]}
    return client.converse(modelId="amazon.nova-lite-v1:0", messages=[message], **more)


@dataclass(frozen=True)
class Told:
    """How one provider is asked and what it says."""

    provider: str
    ask: Callable[..., Any]
    answer: Callable[[str], dict[str, Any]]
    text: Callable[[Any], str]
    type_name: str
    keys: dict[str, str] = field(default_factory=dict)

    def step(self, prompt: str = WORDS) -> Callable[[Clients], str]:
        return lambda clients: self.text(self.ask(clients.client, prompt))

    def async_step(self, prompt: str = WORDS) -> Callable[[Clients], str]:
        async def ask(client: Any) -> str:
            return self.text(await self.ask(client, prompt))

        return lambda clients: asyncio.run(ask(clients.async_client))

    def answered(self, text: str = WORDS) -> tuple[int, bytes]:
        return 200, json.dumps(self.answer(text), ensure_ascii=False).encode()


ANTHROPIC = Told(
    "anthropic",
    ask_anthropic,
    anthropic_answer,
    lambda message: message.content[0].text,
    "anthropic.types.message.Message",
    {"ANTHROPIC_API_KEY": "sk-ant-secret"},
)
OPENAI = Told(
    "openai",
    ask_openai,
    openai_answer,
    lambda completion: completion.choices[0].message.content,
    "openai.types.chat.chat_completion.ChatCompletion",
    {"OPENAI_API_KEY": "sk-secret"},
)
GEMINI = Told(
    "gemini",
    ask_gemini,
    gemini_answer,
    lambda response: response.text,
    "google.genai.types.GenerateContentResponse",
    {"GEMINI_API_KEY": "AIza-secret"},
)
BEDROCK = Told(
    "bedrock",
    ask_bedrock,
    bedrock_answer,
    lambda response: response["output"]["message"]["content"][0]["text"],
    "builtins.dict",
    {
        "AWS_ACCESS_KEY_ID": "AKIASECRET",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "eu-west-1",
    },
)
ALL = (ANTHROPIC, OPENAI, GEMINI, BEDROCK)
OVER_HTTPX = (ANTHROPIC, OPENAI, GEMINI)


def picture_for(told: Told, client: Any) -> Any:
    encoded = base64.b64encode(PICTURE).decode()
    if told is ANTHROPIC:
        source = {"type": "base64", "media_type": "image/png", "data": encoded}
        content: Any = [{"type": "image", "source": source}]
        message = {"role": "user", "content": content}
        return client.messages.create(model="m", max_tokens=5, messages=[message])
    if told is OPENAI:
        url = {"url": f"data:image/png;base64,{encoded}"}
        message = {"role": "user", "content": [{"type": "image_url", "image_url": url}]}
        return client.chat.completions.create(model="m", messages=[message])
    if told is GEMINI:
        from google.genai import types

        part = types.Part.from_bytes(data=PICTURE, mime_type="image/png")
        return client.models.generate_content(model="m", contents=[part])
    image = {"image": {"format": "png", "source": {"bytes": PICTURE}}}
    return client.converse(modelId="m", messages=[{"role": "user", "content": [image]}])


def answers_to(
    recorder: Recorder, step: Callable[[Clients], Any], answer: tuple[int, bytes]
) -> dict[str, tuple[int, bytes]]:
    """The answers of a batch that holds the step's one request."""
    return {recorder.capture(step).id: answer}


@dataclass
class TinyProvider:
    """Answers every POST with what is next in `answers`, the last of them for ever."""

    url: str
    answers: list[tuple[int, bytes]]
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def tiny_provider(*answers: tuple[int, bytes]) -> Generator[TinyProvider]:
    """A provider over real HTTP that says what it is told to say."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                told.requests.append((self.path, headers, body))
                status, content = told.answers[0]
                if len(told.answers) > 1:
                    told.answers.pop(0)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    lock = threading.Lock()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told = TinyProvider(f"http://127.0.0.1:{server.server_port}", list(answers))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()

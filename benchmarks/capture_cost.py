"""What recording costs: processor time of each captured and each replayed request, by SDK.

    python benchmarks/capture_cost.py [--requests 1000] [--kilobytes 300]

Each request is a page's code that asks through the provider's real SDK, one client a page, with a
question of 2,000 characters and with a picture of `--kilobytes`. Nothing is sent. `bare` is the SDK
alone with one client for all pages over a transport that stops it, so the difference to it is ours.
Fails when a captured question in text takes more than 2 ms.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx2

from recipes_orchestration.providers.recording import Clients, Recorder

ALLOWED = 2.0
TEXT = "What does the page say? " * 84


class StopError(BaseException):
    """Ends a bare SDK's request where it would be sent."""


class Stop(httpx2.BaseTransport):
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:  # noqa: ARG002
        raise StopError


def ask_anthropic(client: Any, text: str, picture: bytes | None) -> Any:
    content: list[Any] = [{"type": "text", "text": text}]
    if picture:
        data = base64.b64encode(picture).decode()
        source = {"type": "base64", "media_type": "image/jpeg", "data": data}
        content.append({"type": "image", "source": source})
    message = {"role": "user", "content": content}
    return client.messages.create(model="claude-sonnet-4-6", max_tokens=4000, messages=[message])


def ask_openai(client: Any, text: str, picture: bytes | None) -> Any:
    content: list[Any] = [{"type": "text", "text": text}]
    if picture:
        url = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    message = {"role": "user", "content": content}
    return client.chat.completions.create(model="gpt-5", messages=[message])


def ask_gemini(client: Any, text: str, picture: bytes | None) -> Any:
    from google.genai import types

    parts: list[Any] = [text]
    if picture:
        parts.append(types.Part.from_bytes(data=picture, mime_type="image/jpeg"))
    return client.models.generate_content(model="gemini-2.5-flash", contents=parts)


def ask_bedrock(client: Any, text: str, picture: bytes | None) -> Any:
    content: list[Any] = [{"text": text}]
    if picture:
        content.append({"image": {"format": "jpeg", "source": {"bytes": picture}}})
    message = {"role": "user", "content": content}
    return client.converse(modelId="amazon.nova-lite-v1:0", messages=[message])


def bare_anthropic() -> Any:
    import anthropic

    return anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=Stop()))


def bare_openai() -> Any:
    import openai

    return openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=Stop()))


def bare_gemini() -> Any:
    from google import genai

    http = httpx2.Client(transport=Stop())
    options = genai.types.HttpOptions(httpx_client=http)
    return genai.Client(vertexai=False, api_key="none", http_options=options)


def bare_bedrock() -> Any:
    import boto3

    client: Any = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )

    def stop(**_: Any) -> None:
        raise StopError

    client.meta.events.register("before-call.bedrock-runtime", stop)
    return client


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [{"type": "text", "text": TEXT}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
}
GENERATED = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": TEXT}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5},
}
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8},
    "metrics": {"latencyMs": 1},
}


@dataclass(frozen=True)
class Sdk:
    provider: str
    ask: Callable[[Any, str, bytes | None], Any]
    bare: Callable[[], Any]
    answer: dict[str, Any]


SDKS = (
    Sdk("anthropic", ask_anthropic, bare_anthropic, MESSAGE),
    Sdk("openai", ask_openai, bare_openai, COMPLETION),
    Sdk("gemini", ask_gemini, bare_gemini, GENERATED),
    Sdk("bedrock", ask_bedrock, bare_bedrock, CONVERSED),
)


def milliseconds(work: Callable[[int], object], count: int) -> float:
    """Processor time of each call, after one that warms up; a busy machine changes it little."""
    work(-1)
    started = time.process_time()
    for number in range(count):
        work(number)
    return (time.process_time() - started) / count * 1e3


def measured(sdk: Sdk, requests: int, picture: bytes) -> tuple[float, float, float, float, float]:
    """Bare, captured and replayed with text; bare and captured with a picture."""
    client = sdk.bare()

    def bare(number: int, image: bytes | None = None) -> None:
        try:
            sdk.ask(client, f"{number} {TEXT}", image)
        except StopError:
            return
        raise AssertionError("the bare request was not stopped")

    def code(number: int, image: bytes | None = None) -> Callable[[Clients], Any]:
        return lambda clients: sdk.ask(clients.client, f"{number} {TEXT}", image)

    answer = (200, json.dumps(sdk.answer).encode())
    with closing(Recorder(sdk.provider, live_calls=0)) as recorder:
        answers = {recorder.capture(code(n)).id: answer for n in range(-1, requests)}
        images = max(requests // 10, 1)
        return (
            milliseconds(bare, requests),
            milliseconds(lambda n: recorder.capture(code(n)), requests),
            milliseconds(lambda n: recorder.replay(code(n), answers), requests),
            milliseconds(lambda n: bare(n, picture), images),
            milliseconds(lambda n: recorder.capture(code(n, picture)), images),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of recording and replaying requests.")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--kilobytes", type=int, default=300)
    options = parser.parse_args()
    picture = os.urandom(options.kilobytes * 1000)
    print(f"CPU ms a request; {options.requests:,} requests, pictures of {options.kilobytes} KB")
    print(f"{'':12}{'bare':>9}{'captured':>10}{'replayed':>10}{'picture':>17}{'captured':>10}")
    slowest = 0.0
    for sdk in SDKS:
        bare, captured, replayed, bare_image, image = measured(sdk, options.requests, picture)
        slowest = max(slowest, captured)
        row = f"{bare:9.2f}{captured:10.2f}{replayed:10.2f}{bare_image:17.2f}{image:10.2f}"
        print(f"{sdk.provider:12}{row}", flush=True)
    print(f"slowest capture {slowest:.2f} ms, allowed {ALLOWED:.1f} ms")
    return 0 if slowest <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())

"""Gemini and Bedrock where their SDKs are not installed."""

from __future__ import annotations

import sys

import pytest

from recipes_orchestration.errors import MissingExtra
from recipes_orchestration.providers.registry import open_provider
from recipes_orchestration.steps.ask import Ask, Text

SDKS = {"gemini": "google.genai", "bedrock": "boto3"}


@pytest.fixture(params=sorted(SDKS))
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    # None in `sys.modules` is how Python itself marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, SDKS[request.param], None)
    for name in list(sys.modules):
        if name.startswith(f"recipes_orchestration.providers.{request.param}_"):
            monkeypatch.delitem(sys.modules, name)
    return request.param


def test_calls_are_made_without_the_sdk(provider: str):
    call = open_provider(provider).call(Ask((Text("a"),), max_tokens=1), "a-model")
    assert open_provider(provider).line(call.id, call)


@pytest.mark.parametrize("method", ["statuses", "plain"])
def test_the_extra_is_named_when_the_sdk_is_needed(provider: str, method: str):
    opened = open_provider(provider)
    given = ["batches/b1"] if method == "statuses" else opened.call(Ask((Text("a"),), 1), "m")
    with pytest.raises(MissingExtra, match=rf"recipes-orchestration\[{provider}\]"):
        getattr(opened, method)(given)

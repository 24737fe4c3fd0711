"""Recorders that are closed, in an environment that holds no key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from recipes_orchestration.providers.recording import Recorder

from .recorded_steps import KEY_VARIABLES, Told

__all__ = ["no_keys", "recorder_for"]


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no address and no AWS file of the machine's own."""
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.fixture
def recorder_for(no_keys: None) -> Iterator[Callable[..., Recorder]]:
    """Makes recorders."""
    with ExitStack() as stack:

        def make(told: Told, **options: Any) -> Recorder:
            return stack.enter_context(closing(Recorder(told.provider, **options)))

        yield make

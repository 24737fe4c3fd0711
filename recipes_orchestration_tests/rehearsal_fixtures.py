"""The rehearsal server as a fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recipes_orchestration.rehearsal import Rehearsal, running_rehearsal

__all__ = ["rehearsal"]


@pytest.fixture
def rehearsal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rehearsal]:
    """All providers on one port, and the environment by which their SDKs find it."""
    with running_rehearsal() as running:
        for key, value in running.environment().items():
            monkeypatch.setenv(key, value)
        yield running

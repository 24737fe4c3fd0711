"""The rehearsal server as fixtures: one server for all tests, forgetful between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recipes_orchestration.rehearsal import Rehearsal, running_rehearsal

__all__ = ["rehearsal", "rehearsal_server"]


@pytest.fixture(scope="session")
def rehearsal_server() -> Iterator[Rehearsal]:
    """All four providers on one port. Tests take `rehearsal`, which begins empty."""
    with running_rehearsal() as running:
        yield running


@pytest.fixture
def rehearsal(rehearsal_server: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rehearsal]:
    """All four providers, and the environment by which their SDKs find them."""
    rehearsal_server.reset()
    for key, value in rehearsal_server.environment().items():
        monkeypatch.setenv(key, value)
    yield rehearsal_server
    rehearsal_server.reset()

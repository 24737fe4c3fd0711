"""A ledger on each of the two databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes_orchestration.ledger.database import Ledger, open_ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that nobody has opened yet."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 'deep' / 'ledger.sqlite'}"


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(ledger_url) as ledger:
        yield ledger

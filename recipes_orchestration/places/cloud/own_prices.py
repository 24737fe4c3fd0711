"""The project's own price of a model, kept with each task: it is billed as it was sent.

What a task can cost at most was reserved at this price, and a price in project.yaml may change
before it lands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from ...providers.prices import ModelPrices

__all__ = ["priced", "prices_of"]

PRICE = "price"


def priced(group: Mapping[str, Any], prices: Mapping[str, ModelPrices]) -> dict[str, Any]:
    """What a task remembers, with the project's price of its model; None where it has none."""
    own = prices.get(str(group["model"])) if "model" in group else None
    return {**group, PRICE: None if own is None else _texts(own)}


def _texts(own: ModelPrices) -> dict[str, str | None]:
    return {name: None if usd is None else str(usd) for name, usd in asdict(own).items()}


def prices_of(
    group: Mapping[str, Any], prices: Mapping[str, ModelPrices]
) -> Mapping[str, ModelPrices]:
    """The prices by which a task of that group is billed; `prices` are those of today."""
    if PRICE not in group:
        return prices
    kept = group[PRICE]
    if kept is None:  # the listed price held
        return {}
    values = {name: None if usd is None else Decimal(usd) for name, usd in kept.items()}
    return {group["model"]: ModelPrices(**values)}  # pyright: ignore[reportArgumentType]

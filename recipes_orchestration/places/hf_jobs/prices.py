"""What a job of Hugging Face costs: the price of its machine for each minute that it runs.

"Billing on Jobs is based on hardware usage and is computed by the minute: you get charged for every
minute the Jobs runs": https://huggingface.co/docs/hub/jobs-pricing (November 2026), where the
prices below are from too. The Hub's own list of hardware wins over them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...errors import ProviderError
from .hub import Hub

__all__ = ["LISTED", "UNKNOWN", "MinutePrice", "PriceList", "cost_of", "kept_price", "price_of"]

LISTED, TABLE, UNKNOWN = "listed", "table", "unknown"

PRICES_KEPT = 3600.0
"""Seconds."""

_PER_HOUR = {
    "cpu-basic": "0.01",
    "cpu-upgrade": "0.03",
    "cpu-xl": "1.00",
    "cpu-performance": "1.90",
    "t4-small": "0.40",
    "t4-medium": "0.60",
    "l4x1": "0.80",
    "l4x4": "3.80",
    "l40sx1": "1.80",
    "l40sx4": "8.30",
    "l40sx8": "23.50",
    "a10g-small": "1.00",
    "a10g-large": "1.50",
    "a10g-largex2": "3.00",
    "a10g-largex4": "5.00",
    "a100-large": "2.50",
    "a100x4": "10.00",
    "a100x8": "20.00",
    "h200": "5.00",
    "h200x2": "10.00",
    "h200x4": "20.00",
    "h200x8": "40.00",
    "rtx-pro-6000": "2.75",
    "rtx-pro-6000x2": "5.50",
    "rtx-pro-6000x4": "11.00",
    "rtx-pro-6000x8": "22.00",
}
_MINUTES = {"second": Decimal(1) / 60, "minute": Decimal(1), "hour": Decimal(60)}
# The ledger keeps money to the millionth of a dollar and finer; the Hub's prices are in millionths.
_EXACT = Decimal("0.00000001")


@dataclass(frozen=True)
class MinutePrice:
    """Dollars a minute. `basis` is `listed`, `table` or `unknown`, when `usd` is 0."""

    usd: Decimal
    basis: str


class PriceList:
    """The Hub's prices, asked for when they are first needed and again after `PRICES_KEPT`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._listed: dict[str, tuple[int, str]] = {}
        self._asked_at: float | None = None

    def of(self, flavor: str) -> MinutePrice:
        """What a machine costs; by the table while the Hub does not say."""
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at > PRICES_KEPT:
            self._asked_at = now
            with suppress(ProviderError):
                self._listed = self._hub.prices()
        return price_of(flavor, self._listed)

    def kept(self, flavor: str) -> dict[str, Any]:
        """What a task remembers of the price that held when it was packed."""
        price = self.of(flavor)
        return {"flavor": flavor, "minute_usd": str(price.usd), "price": price.basis}


def kept_price(group: Mapping[str, Any], flavor: str) -> MinutePrice | None:
    """The price that a task of that group was sent at, if its job ran on that machine."""
    if group.get("flavor") != flavor or group["price"] == UNKNOWN:
        return None
    return MinutePrice(Decimal(group["minute_usd"]), str(group["price"]))


def price_of(flavor: str, listed: Mapping[str, tuple[int, str]] | None) -> MinutePrice:
    """What a machine costs. `listed` are the Hub's prices in millionths of a dollar for a unit."""
    micro, unit = (listed or {}).get(flavor, (0, ""))
    if unit in _MINUTES and micro > 0:
        return MinutePrice(Decimal(micro) / 1_000_000 / _MINUTES[unit], LISTED)
    if flavor in _PER_HOUR:
        return MinutePrice(Decimal(_PER_HOUR[flavor]) / 60, TABLE)
    return MinutePrice(Decimal(0), UNKNOWN)


def cost_of(price: MinutePrice, seconds: float) -> Decimal:
    """Dollars for a job that ran so long: a minute that was begun counts whole."""
    return (price.usd * math.ceil(seconds / 60)).quantize(_EXACT)

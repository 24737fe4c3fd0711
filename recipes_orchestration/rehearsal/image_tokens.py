"""Tokens of a picture as the rehearsed providers bill it, by what their pages say.

Written for itself, from the pages, so that an estimate made elsewhere is measured against it and
not against its own rule: platform.claude.com/docs/en/build-with-claude/vision,
developers.openai.com/api/docs/guides/images-vision, ai.google.dev/gemini-api/docs/
image-understanding and media-resolution, docs.aws.amazon.com/nova/latest/userguide/
modalities-image.html (all read in November 2026).
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from PIL import Image

__all__ = ["UNREAD", "picture_tokens", "tokens_of_block"]

UNREAD = 1000
"""Of a picture that cannot be read, or lies elsewhere."""

_HEAD = 65_536
_OLD_CLAUDE = ("claude-1", "claude-2", "claude-3", "claude-instant", "claude-v")
_OLD_CLAUDE_4 = ("4-0", "4-1", "4-5", "4-6", "4-20")
# What a model's name begins with: base and tile of OpenAI's tiled models.
_OPENAI_TILES = (
    ("gpt-4o-mini", 2833, 5667),
    ("gpt-4o", 85, 170),
    ("gpt-4.1", 85, 170),
    ("gpt-4.5", 85, 170),
    ("o1", 75, 150),
    ("o3", 75, 150),
    ("computer-use-preview", 65, 129),
)
_OPENAI_FACTORS = (
    ("gpt-4.1-mini", 1.62),
    ("gpt-4.1-nano", 2.46),
    ("gpt-5-mini", 1.62),
    ("gpt-5-nano", 2.46),
    ("gpt-5.4-mini", 1.62),
    ("gpt-5.4-nano", 2.46),
    ("o4-mini", 1.72),
    ("gpt-5.2", 1.0),
)
_GEMINI_3 = {"LOW": 280, "MEDIUM": 560, "HIGH": 1120, "ULTRA_HIGH": 2240}


def tokens_of_block(provider: str, model: str, block: Mapping[str, Any]) -> int:
    """The tokens of a block or part of a request that holds a picture."""
    data, detail = _found(block)
    size = _size_of(data)
    return UNREAD if size is None else picture_tokens(provider, model, size, detail)


def picture_tokens(provider: str, model: str, size: tuple[int, int], detail: str = "") -> int:
    """The tokens of a picture of that size in pixels."""
    longer, shorter = max(size), min(size)
    if provider == "openai":
        return _openai(model, longer, shorter, detail)
    if provider == "gemini":
        return _gemini(model, longer, shorter, detail)
    if "claude" in model or provider == "anthropic":
        return _claude(model, longer, shorter)
    if "nova-2" in model:
        return 230
    return _nova(longer, shorter) if "nova" in model else UNREAD


def _claude(model: str, longer: int, shorter: int) -> int:
    old = any(name in model for name in _OLD_CLAUDE) or any(
        f"{line}-{number}" in model
        for line in ("opus", "sonnet", "haiku")
        for number in _OLD_CLAUDE_4
    )
    side, most = (1568, 1568) if old else (2576, 4784)
    for length in range(min(side, longer), 0, -1):
        tokens = math.ceil(length / 28) * math.ceil(max(1, round(shorter * length / longer)) / 28)
        if tokens <= most:
            return tokens
    return 1


def _openai(model: str, longer: int, shorter: int, detail: str) -> int:
    name = model.removeprefix("ft:")
    for known, factor in _OPENAI_FACTORS:
        if name.startswith(known):
            return math.ceil(_patches(longer, shorter, 1536, 2048, detail) * factor)
    for known, base, tile in _OPENAI_TILES:
        if name.startswith(known):
            return _tiles(longer, shorter, base, tile, detail)
    if name == "gpt-5" or name.startswith("gpt-5-"):
        return _tiles(longer, shorter, 70, 140, detail)
    if name.startswith("gpt-5.4"):
        return _patches(longer, shorter, 2500, 2048, detail)
    if name.startswith("gpt-5.5"):
        return _patches(longer, shorter, 10_000, 6000, detail)
    return _patches(longer, shorter, 30_000, 65_535, detail)


def _tiles(longer: int, shorter: int, base: int, tile: int, detail: str) -> int:
    if detail == "low":
        return base
    long, short = float(longer), float(shorter)
    if long > 2048:
        long, short = 2048.0, short * 2048 / long
    if short > 768:
        long, short = long * 768 / short, 768.0
    return base + tile * math.ceil(round(long) / 512) * math.ceil(round(short) / 512)


def _patches(longer: int, shorter: int, budget: int, side: int, detail: str) -> int:
    if detail == "low":
        budget, side = 256, 512
    long, short = float(longer), float(shorter)
    if long > side:
        long, short = float(side), short * side / long
    if math.ceil(long / 32) * math.ceil(short / 32) <= budget:
        return math.ceil(long / 32) * math.ceil(short / 32)
    factor = math.sqrt(budget * 1024 / (long * short))
    wide, high = long * factor / 32, short * factor / 32
    # Made smaller once more, so that one side has whole patches.
    again = min(max(1, math.floor(wide)) / wide, max(1, math.floor(high)) / high)
    return min(budget, math.ceil(wide * again - 1e-6) * math.ceil(high * again - 1e-6))


def _gemini(model: str, longer: int, shorter: int, detail: str) -> int:
    level = detail.removeprefix("MEDIA_RESOLUTION_")
    name = model.removeprefix("models/")
    if not name.startswith(("gemini-1", "gemini-2", "gemini-pro")):
        return _GEMINI_3.get(level, 1120)
    if level in ("LOW", "MEDIUM"):
        return 64 if level == "LOW" else 256
    if longer <= 384:
        return 258
    unit = max(1, math.floor(shorter / 1.5))
    return 258 * math.ceil(longer / unit) * math.ceil(shorter / unit)


def _nova(longer: int, shorter: int) -> int:
    pixels = longer * shorter
    if longer < 896:
        pixels = round(pixels * (896 / longer) ** 2)
    known = [(0, 0), (405, 800), (810, 1300), (1260, 1800), (1620, 2400), (1690, 2600)]
    for (less, fewer), (more, most) in pairwise(known):
        if pixels <= more * 1000:
            return round(fewer + (pixels / 1000 - less) / (more - less) * (most - fewer))
    return round(pixels * 2600 / 1_690_000)


def _found(block: Mapping[str, Any]) -> tuple[str, str]:
    """The base64 of the picture and the detail it is asked for with, either maybe empty."""
    detail = block.get("detail")
    data: Any = block.get("inlineData") or block.get("inline_data") or {}
    data = data.get("data") if isinstance(data, Mapping) else None
    if "source" in block and isinstance(block["source"], Mapping):
        data = block["source"].get("data")
    image = block.get("image")
    if isinstance(image, Mapping) and isinstance(image.get("source"), Mapping):
        data = image["source"].get("bytes")
    url = block.get("image_url")
    if isinstance(url, Mapping):
        url, detail = url.get("url"), url.get("detail")
    if isinstance(url, str):
        data = url.partition(";base64,")[2]
    resolution = block.get("mediaResolution") or block.get("media_resolution")
    if isinstance(resolution, Mapping):
        detail = resolution.get("level")
    return data if isinstance(data, str) else "", detail if isinstance(detail, str) else ""


def _size_of(data: str) -> tuple[int, int] | None:
    # Most headers are in the first part; where it is not enough all is looked at.
    for part in (data[:_HEAD], data):
        try:
            with Image.open(io.BytesIO(base64.b64decode(part))) as image:
                return image.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue
    return None

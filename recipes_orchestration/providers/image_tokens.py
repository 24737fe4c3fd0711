"""How many tokens a picture costs at each provider, by the provider's published rule. Pure.

The rules, each read in November 2026:

- Claude: https://platform.claude.com/docs/en/build-with-claude/vision and, for how pictures are
  made smaller, .../vision-coordinates. One token for each begun patch of 28 x 28 pixels. The longer
  side is at most 1,568 pixels and the picture at most 1,568 tokens; 2,576 and 4,784 from Claude 4.7
  on.
- OpenAI: https://developers.openai.com/api/docs/guides/images-vision ("Model sizing behavior",
  "Calculating costs"). Patches of 32 pixels times a factor of the model, or tiles of 512 pixels.
- Gemini: https://ai.google.dev/gemini-api/docs/image-understanding ("Token calculation") up to
  Gemini 2.5, https://ai.google.dev/gemini-api/docs/media-resolution ("Token counts") from 3 on.
- Bedrock: Claude as above. Amazon Nova:
  https://docs.aws.amazon.com/nova/latest/userguide/modalities-image.html ("Image to tokens
  conversion"), and for Nova 2 .../nova2-userguide/using-multimodal-models.html ("Image-token
  estimation"). Other models publish none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["UNKNOWN_PICTURE", "image_tokens"]

UNKNOWN_PICTURE = 1600
"""Of a picture whose size or rule is not known: about a whole picture in Claude's first tier."""


def image_tokens(
    provider: str, model: str, width: int, height: int, detail: str | None = None
) -> int:
    """The tokens of one picture of that many pixels.

    `detail` is what the request says of it: `low`, `high` or `original` at OpenAI, at Gemini
    `MEDIA_RESOLUTION_LOW` and the like; None is the model's own choice. A model that is not known
    is taken for one of its provider's latest.
    """
    rule = _RULES.get(provider)
    if rule is None or width < 1 or height < 1:
        return UNKNOWN_PICTURE
    return rule(model, width, height, detail)


# Claude

_PATCH = 28
# The latest models of each line that see in the first tier.
_FIRST_TIER = re.compile(
    r"claude-(?:[123](?:[.-]|$)|instant|v\d|(?:opus|sonnet|haiku)-4(?:-[0-6](?:[^\d]|$)|-20\d\d|$|@))"
)


def _claude(model: str, width: int, height: int, detail: str | None) -> int:  # noqa: ARG001
    side, most = (1568, 1568) if _FIRST_TIER.search(model) else (2576, 4784)

    def patches(longer: int) -> int:
        shorter = max(1, round(longer * min(width, height) / max(width, height)))
        return -(-longer // _PATCH) * -(-shorter // _PATCH)

    # The largest picture of this shape that fits both bounds.
    low, high = 1, min(side, max(width, height))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if patches(middle) <= most else (low, middle - 1)
    return patches(low)


# OpenAI


@dataclass(frozen=True)
class _Patches:
    """Patches of 32 pixels, at most `budget`, none side longer than `side`, times `factor`."""

    budget: int
    side: int
    factor: float = 1.0

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        budget, side = self.budget, self.side
        if detail == "low":
            budget, side = 256, 512
        elif detail == "high":
            budget, side = min(budget, 2500), min(side, 2048)
        elif detail == "original":
            budget, side = max(budget, 10_000), max(side, 6000)
        scale = min(1.0, side / max(width, height))
        w, h = width * scale, height * scale
        if math.ceil(w / 32) * math.ceil(h / 32) > budget:
            shrink = math.sqrt(budget * 32**2 / (w * h))
            across, down = w * shrink / 32, h * shrink / 32
            shrink *= min(max(1, int(across)) / across, max(1, int(down)) / down)
            w, h = w * shrink, h * shrink
        # Rounded, as 33 patches may come out as 33.0000001.
        across, down = math.ceil(round(w / 32, 6)), math.ceil(round(h / 32, 6))
        return math.ceil(min(across * down, budget) * self.factor)


@dataclass(frozen=True)
class _Tiles:
    """`base` tokens and `tile` for each tile of 512 pixels, the shorter side made 768."""

    base: int
    tile: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        if detail == "low":
            return self.base
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        tiles = math.ceil(round(width * scale) / 512) * math.ceil(round(height * scale) / 512)
        return self.base + self.tile * tiles


_LATEST = _Patches(30_000, 65_535)  # GPT-5.6 and later take a picture as it is

# The first that matches counts.
_OPENAI: tuple[tuple[re.Pattern[str], _Patches | _Tiles], ...] = tuple(
    (re.compile(rf"(?:ft:)?(?:{names})"), rule)
    for names, rule in (
        (r"gpt-4\.1-mini|gpt-5(?:\.4)?-mini", _Patches(1536, 2048, 1.62)),
        (r"gpt-4\.1-nano|gpt-5(?:\.4)?-nano", _Patches(1536, 2048, 2.46)),
        (r"o4-mini|codex-mini", _Patches(1536, 2048, 1.72)),
        (r"gpt-4o-mini", _Tiles(2833, 5667)),
        (r"gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-4-(?:turbo|vision)", _Tiles(85, 170)),
        (r"computer-use", _Tiles(65, 129)),
        (r"o1|o3", _Tiles(75, 150)),
        (r"gpt-5\.[23]|gpt-5(?:\.\d)?-codex", _Patches(1536, 2048)),
        (r"gpt-5\.4", _Patches(2500, 2048)),
        (r"gpt-5\.5", _Patches(10_000, 6000)),
        (r"gpt-5(?:\.1)?(?:-|$)", _Tiles(70, 140)),
    )
)


def _openai(model: str, width: int, height: int, detail: str | None) -> int:
    rule = next((rule for names, rule in _OPENAI if names.match(model)), _LATEST)
    return rule.tokens(width, height, None if detail == "auto" else detail)


# Gemini

_TILE = 258
_TILED = re.compile(r"(?:models/)?gemini-(?:pro|1|2)|(?:models/)?gemini-(?:flash|pro)-vision")
_BY_RESOLUTION = {"LOW": 280, "MEDIUM": 560, "HIGH": 1120, "ULTRA_HIGH": 2240}
_TILED_BY_RESOLUTION = {"LOW": 64, "MEDIUM": 256}


def _gemini(model: str, width: int, height: int, detail: str | None) -> int:
    level = (detail or "").upper().removeprefix("MEDIA_RESOLUTION_")
    if not _TILED.match(model):
        return _BY_RESOLUTION.get(level, 1120)
    if level in _TILED_BY_RESOLUTION:
        return _TILED_BY_RESOLUTION[level]
    if max(width, height) <= 384:
        return _TILE
    unit = max(1, int(min(width, height) / 1.5))
    return _TILE * math.ceil(width / unit) * math.ceil(height / unit)


# Bedrock

_NOVA_2 = 230
# Pixels and tokens of the page's examples: 900 x 450, 900 x 900, 1400 x 900, 1800 x 900 and
# 1300 x 1300.
_NOVA = (
    (405_000, 800),
    (810_000, 1300),
    (1_260_000, 1800),
    (1_620_000, 2400),
    (1_690_000, 2600),
)
_NOVA_LEAST = 896


def _bedrock(model: str, width: int, height: int, detail: str | None) -> int:
    if "claude" in model:
        return _claude(model, width, height, detail)
    if "nova-2" in model:
        return _NOVA_2
    return _nova(width, height) if "nova" in model else UNKNOWN_PICTURE


def _nova(width: int, height: int) -> int:
    scale = max(1.0, _NOVA_LEAST / max(width, height))
    pixels = width * height * scale**2
    if pixels >= _NOVA[-1][0]:
        return round(pixels * _NOVA[-1][1] / _NOVA[-1][0])
    before, tokens_before = 0, 0
    for at, tokens in _NOVA:
        if pixels <= at:
            share = (pixels - before) / (at - before)
            return round(tokens_before + share * (tokens - tokens_before))
        before, tokens_before = at, tokens
    return UNKNOWN_PICTURE


_RULES: dict[str, Callable[[str, int, int, str | None], int]] = {
    "anthropic": _claude,
    "openai": _openai,
    "gemini": _gemini,
    "bedrock": _bedrock,
}

"""Grey of more than 8 bits, as steps see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from recipes_orchestration.pages.pixels import to_grey_or_rgb

CHANCE = np.random.default_rng(1891)
HOLES = CHANCE.random((40, 50)) < 0.1


def scaled(values: npt.NDArray[Any], top: float) -> npt.NDArray[np.uint8]:
    return (np.clip(values, 0, None) * np.float32(255 / top)).astype(np.uint8)


@pytest.mark.parametrize(
    ("values", "top"),
    [
        pytest.param(CHANCE.integers(0, 65536, (40, 50)).astype(np.uint16), 65535, id="16 bits"),
        pytest.param(CHANCE.integers(0, 4096, (40, 50)).astype(np.uint16), 4095, id="12 in 16"),
        pytest.param(CHANCE.integers(0, 200, (40, 50)).astype(np.uint16), 255, id="8 in 16"),
        pytest.param(CHANCE.integers(-99, 2**20, (40, 50)).astype(np.int32), 2**20 - 1, id="32"),
        pytest.param(CHANCE.random((40, 50)).astype(np.float32), 1, id="up to 1"),
        pytest.param((CHANCE.random((40, 50)) * 250 - 9).astype(np.float32), 255, id="up to 255"),
        pytest.param(np.zeros((40, 50), np.uint16), 255, id="black"),
    ],
)
def test_it_is_scaled_by_the_bits_that_it_uses(values: npt.NDArray[Any], top: float):
    image = Image.fromarray(values)
    grey = to_grey_or_rgb(image)
    assert grey.mode == "L"
    assert np.array_equal(np.asarray(grey), scaled(values, top))
    turned = to_grey_or_rgb(image, min_is_white=True)
    assert np.array_equal(np.asarray(turned), 255 - scaled(values, top))


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [HOLES, np.ones_like(HOLES)], ids=["some", "all"])
def test_what_is_no_number_is_black(hole: float, where: npt.NDArray[np.bool_]):
    values = CHANCE.random((40, 50)).astype(np.float32)
    grey = to_grey_or_rgb(Image.fromarray(np.where(where, np.float32(hole), values)))
    assert np.array_equal(np.asarray(grey), scaled(np.where(where, 0, values), 1))

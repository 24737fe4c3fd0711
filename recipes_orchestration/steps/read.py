"""`read`: the text of each line that `lines` found, by rapidocr's recognizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from pydantic import Field

from ..errors import StepError
from ..pages.page import Page
from .crops import crop
from .needs import field_of_need
from .params import Params, checker, read_params
from .polygon import is_upright
from .rapid import PACKAGES, Pixels, engine
from .step import Context, step

__all__ = ["ReadParams", "read"]

# The lines, longest first, that are asked whether a page stands on its head ...
_JURY = 12
# ... and the certainty from which an answer counts; the engine's own.
_CERTAIN = 0.9


class ReadParams(Params):
    """`min_confidence`: lines read with less (0 to 1) are left out; 0 keeps all."""

    min_confidence: float = Field(default=0.0, ge=0.0, le=1.0)


def _setup(params: Mapping[str, Any]) -> Any:
    read_params("read", ReadParams, params)
    made = engine("read")
    # Each model is loaded at its first use: here, so that no page waits or fails for it.
    blank = [np.full((48, 96, 3), 255, dtype=np.uint8)]
    made.cls_and_rotate(blank)
    made.recognize_txt(blank)
    return made


@step(
    version="1 PP-OCRv6-rec-small",
    setup=_setup,
    extra="ocr",
    packages=PACKAGES,
    kinds=("python", "rapidocr"),
    check=checker("read", ReadParams),
    takes="lines",
    gives=("text", "width", "height", "lines"),
)
def read(page: Page, context: Context) -> dict[str, Any]:
    """Reads the lines: `{text, width, height, lines: [{text, bbox, polygon, confidence}]}`.

    `text` is the lines' texts in reading order with `\\n` between them, "" for a page without
    lines. A page that lies on its side or stands on its head is read as if it were turned; its
    coordinates stay those of the picture.

    Characters wrong, as benchmarks/read_quality.py counts them: English print 0.9 %, Fraktur 7 %.
    Of handwriting it gives rough text for search, not a transcription: 26 % wrong in letters of
    which some are typed, 36 % in printed registers filled in by hand, 52 % in wills.
    """
    least = read_params("read", ReadParams, context.params).min_confidence
    found = field_of_need(context, "lines", list, "lines")
    image = page.image
    if (found.get("width"), found.get("height")) != image.size:
        raise StepError(
            f"The lines of {page.page_id} were found on a picture of {found.get('width')} x "
            f"{found.get('height')} pixels, but it has {image.width} x {image.height}; run the "
            "step that finds the lines again."
        )
    lines: Sequence[Mapping[str, Any]] = found["lines"]
    read_lines = _read_all(context.model, image, lines) if lines else []
    kept = [line for line in read_lines if line["text"] and line["confidence"] >= least]
    return {
        "text": "\n".join(line["text"] for line in kept),
        "width": image.width,
        "height": image.height,
        "lines": kept,
    }


def _read_all(
    model: Any, image: Image.Image, lines: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    crops = [crop(image, line["polygon"]) for line in lines]
    upright = [is_upright(line["polygon"]) for line in lines]
    # Lines of one direction are turned together: a vote errs less than each line's own answer.
    turned = {
        direction: _on_its_head(
            model, [cut for cut, way in zip(crops, upright, strict=True) if way is direction]
        )
        for direction in (False, True)
    }
    crops = [
        np.ascontiguousarray(cut[::-1, ::-1]) if turned[way] else cut
        for cut, way in zip(crops, upright, strict=True)
    ]
    result = model.recognize_txt(crops)
    texts = [
        {
            "text": " ".join(str(words).split()),
            "bbox": line["bbox"],
            "polygon": line["polygon"],
            "confidence": round(float(confidence), 4),
        }
        for line, words, confidence in zip(lines, result.txts, result.scores, strict=True)
    ]
    most = sum(upright) * 2 > len(upright)
    return texts[::-1] if turned[most] else texts


def _on_its_head(model: Any, crops: Sequence[Pixels]) -> bool:
    """Whether most of the longest lines stand on their heads, weighed by their length."""
    jury = sorted(crops, key=lambda cut: cut.shape[1] / cut.shape[0], reverse=True)[:_JURY]
    if not jury:
        return False
    _, answers = model.cls_and_rotate(jury)
    votes = 0.0
    for cut, (label, certainty) in zip(jury, answers.cls_res, strict=True):
        weight = cut.shape[1] / cut.shape[0]
        votes += weight if label == "180" and certainty > _CERTAIN else -weight
    return votes > 0

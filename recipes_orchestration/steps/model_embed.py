"""`embed` on a cloud model: one vector for a page's text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import Field

from ..errors import StepError
from ..pages.page import Page
from .ask import Answer, EmbedAsk, Ready
from .model_questions import declared
from .needs import text_of_needs
from .params import Params
from .step import Context

__all__ = ["MOST_DIMENSIONS", "EmbedOnModelParams", "embed"]

MOST_DIMENSIONS = 20_000

# Characters of one text, as for `embed` on this machine; models take far fewer.
_LONGEST = 2_000_000


class EmbedOnModelParams(Params):
    """`dimensions` of the vector; None takes the model's own."""

    dimensions: int | None = Field(default=None, ge=1, le=MOST_DIMENSIONS)


def _ask(page: Page, context: Context, params: EmbedOnModelParams) -> EmbedAsk:  # noqa: ARG001
    text = text_of_needs(context)[:_LONGEST]
    if not text.strip():
        # Zeros as on this machine; with the model's own dimensions their number is not known.
        raise Ready(_value(context, [0.0] * (params.dimensions or 0)))
    return EmbedAsk(text, params.dimensions)


def _parse(answer: Answer, context: Context, params: EmbedOnModelParams) -> dict[str, Any]:
    vector = answer.vector
    if not vector or len(vector) > MOST_DIMENSIONS:
        raise StepError(
            f"The answer has a vector of {len(vector or ())} numbers; 1 to {MOST_DIMENSIONS:,} are "
            "allowed."
        )
    if params.dimensions is not None and len(vector) != params.dimensions:
        raise StepError(
            f"The answer has a vector of {len(vector)} numbers; {params.dimensions} were asked for."
        )
    numbers = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(numbers))
    if not math.isfinite(length):
        raise StepError("The answer's vector has something in it that is no number.")
    if length > 0:
        numbers = np.round(numbers / length, 6)
    return _value(context, numbers.tolist())


def _value(context: Context, vector: list[float]) -> dict[str, Any]:
    return {"model": str(context.model), "vector": vector}


embed = declared(
    "embed",
    version="1",
    params=EmbedOnModelParams,
    ask=_ask,
    parse=_parse,
    takes="text",
    gives=("model", "vector"),
    about="Gives a text's vector, for search by meaning.",
)

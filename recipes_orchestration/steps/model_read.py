"""`read` on a cloud model: the transcription of a page's picture."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..pages.page import Page
from ..recipe import digest
from .answers import text_of
from .ask import Answer, Ask
from .model_questions import LONGEST_MAX_TOKENS, PicturedParams, ask_model, declared
from .picture import PictureSettings
from .step import Context

__all__ = ["READ_PROMPT", "ReadOnModelParams", "read"]

READ_PROMPT = """\
Transcribe all writing on this page, printed and handwritten, exactly as it stands.

- Keep the spelling, punctuation, abbreviations and capitals of the page. Do not modernize, \
correct, translate or complete anything.
- Begin a new line wherever the page does, and leave words divided at line ends divided. Put an \
empty line between paragraphs.
- Read columns one after the other, in reading order. Write a table row by row, with " | " \
between its cells.
- Put headings, marginal notes, stamps, page numbers and catchwords where they stand in reading \
order. Leave out writing that shines through from the other side.
- Write [illegible] for what cannot be read, and put [?] after a word that you are unsure of.
- If there is no writing on the page, answer with nothing but [blank].

Answer with the transcription alone: no introduction, no comments, no Markdown, no code fence.
"""

_BLANK = "[blank]"


class ReadOnModelParams(PicturedParams):
    """A dense page of newsprint has some 6,000 tokens; `image` cannot be False here."""

    max_tokens: int = Field(default=8192, ge=1, le=LONGEST_MAX_TOKENS)
    image: PictureSettings | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


def _ask(page: Page, context: Context, params: ReadOnModelParams) -> Ask:
    # The picture is what is read, whatever else the step needs.
    pictured = params.model_copy(update={"image": params.image or PictureSettings()})
    return ask_model(page, context, context.prompt or READ_PROMPT, pictured)


def _parse(answer: Answer, context: Context, params: ReadOnModelParams) -> dict[str, Any]:  # noqa: ARG001
    text = text_of(answer)
    # Only the built-in prompt asks for this word.
    return {"text": "" if context.prompt is None and text.strip() == _BLANK else text}


read = declared(
    "read",
    version=f"1 prompt-{digest(READ_PROMPT)[:8]}",
    params=ReadOnModelParams,
    ask=_ask,
    parse=_parse,
    gives=("text",),
    about="Transcribes the page's picture: {text}.",
)

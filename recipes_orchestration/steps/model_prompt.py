"""`prompt` on a cloud model: any question about a page, answered in text or in checked JSON."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from ..errors import StepError
from ..pages.page import Page
from .answers import json_of, text_of
from .ask import Answer, Ask
from .model_questions import PicturedParams, ask_model, declared
from .step import Context

__all__ = ["PromptParams", "prompt"]


class PromptParams(PicturedParams):
    """With `schema` the answer is JSON that follows it; without one it is text."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


def _ask(page: Page, context: Context, params: PromptParams) -> Ask:
    if context.prompt is None:
        raise StepError(f"The step '{context.step}' has no prompt; write prompt: prompts/FILE.md.")
    return ask_model(page, context, context.prompt, params, schema=params.schema_)


def _parse(answer: Answer, context: Context, params: PromptParams) -> Any:  # noqa: ARG001
    if params.schema_ is None:
        return {"text": text_of(answer)}
    return json_of(answer, params.schema_)


prompt = declared(
    "prompt",
    version="1",
    params=PromptParams,
    ask=_ask,
    parse=_parse,
    about="Asks a model what the prompt file says: {text}, or JSON that follows the schema.",
)

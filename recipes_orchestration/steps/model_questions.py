"""What the operations on cloud models share: their settings, and how a question is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from ..errors import StepError
from ..pages.page import Page
from .ask import Answer, Ask, EmbedAsk, Part, Text
from .params import Params, read_params
from .picture import PictureSettings, picture_of
from .step import Context, Operation
from .template import parse_template, render

__all__ = [
    "LONGEST_MAX_TOKENS",
    "ModelParams",
    "PicturedParams",
    "ask_model",
    "declared",
    "wants_picture",
]

LONGEST_MAX_TOKENS = 1_000_000


class ModelParams(Params):
    """What bounds a model's answer. `temperature` None leaves it to the provider."""

    max_tokens: int = Field(default=4096, ge=1, le=LONGEST_MAX_TOKENS)
    temperature: float | None = Field(default=None, ge=0, le=2)


class PicturedParams(ModelParams):
    """`image` says how the page's picture is sent; False sends none, None is the default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: PictureSettings | Literal[False] | None = None


def wants_picture(image: PictureSettings | Literal[False] | None, needs: Mapping[str, Any]) -> bool:
    """Whether the page's picture is sent: where settings say so, or nothing else is known of it."""
    return image is not False and (image is not None or not needs)


def ask_model(
    page: Page,
    context: Context,
    prompt: str,
    params: ModelParams,
    *,
    schema: Mapping[str, Any] | None = None,
) -> Ask:
    """The question: the page's picture first, where it is wanted, then the prompt filled in."""
    parts: list[Part] = []
    image = params.image if isinstance(params, PicturedParams) else False
    if wants_picture(image, context.needs):
        parts.append(picture_of(page, image or PictureSettings()))
    text = render(parse_template(prompt), page.page_id, context)
    if text and not text.isspace():
        parts.append(Text(text))
    if not parts:
        raise StepError(
            f"The question of the step '{context.step}' on {page.page_id} is empty; write more "
            "into its prompt."
        )
    return Ask(tuple(parts), params.max_tokens, None, schema, params.temperature)


def declared(
    name: str,
    *,
    version: str,
    params: type[Params],
    ask: Any,
    parse: Any,
    about: str,
    takes: str | None = None,
    gives: tuple[str, ...] = (),
) -> Operation:
    """An operation that asks a model instead of computing here.

    `ask(page, context, params)` and `parse(answer, context, params)` are given the step's params
    as that model.
    """

    def function(page: Page, context: Context) -> Any:  # noqa: ARG001
        raise StepError(f"'{name}' asks a model; it runs on a provider's place only.")

    # The params that were read last, by the object they were read from: those of all of a step's
    # pages are one.
    last: list[tuple[Mapping[str, Any], Params]] = []

    def read(given: Mapping[str, Any]) -> Params:
        for known, found in last:
            if known is given:
                return found
        found = read_params(name, params, given)
        last[:] = [(given, found)]
        return found

    def asked(page: Page, context: Context) -> Ask | EmbedAsk:
        return ask(page, context, read(context.params))

    def parsed(answer: Answer, context: Context) -> Any:
        return parse(answer, context, read(context.params))

    def check(given: Mapping[str, Any]) -> None:
        read_params(name, params, given)

    return Operation(
        name=name,
        function=function,
        version=version,
        about=about,
        kinds=("ai",),
        check=check,
        takes=takes,
        gives=gives,
        ask=asked,
        parse=parsed,
    )

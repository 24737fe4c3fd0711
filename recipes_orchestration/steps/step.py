"""What a step's operation is: a function of one page, with what it may add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import StepError
from ..pages.page import Page
from .ask import Answer, Ask, EmbedAsk

__all__ = ["Context", "Operation", "step"]


NOTHING: Mapping[str, Any] = {}


class Context(NamedTuple):
    """What an operation is given beside the page.

    `params` are the step's own from the recipe, `needs` the values of the needed steps on this
    page by step name, `model` what `setup` gave. On a provider's place `model` is the model's name,
    `prompt` the text of the prompt file, and `clients` has the provider's own SDK clients, through
    which a Python step asks the model.
    """

    step: str
    params: Mapping[str, Any] = NOTHING
    needs: Mapping[str, Any] = NOTHING
    model: Any = None
    prompt: str | None = None
    clients: Any = None

    @property
    def client(self) -> Any:
        """The provider's own SDK client. Raises `StepError` on a place that has none."""
        return self._clients().client

    @property
    def async_client(self) -> Any:
        """The provider's own asynchronous SDK client. Raises `StepError` where there is none."""
        return self._clients().async_client

    def _clients(self) -> Any:
        if self.clients is None:
            raise StepError(
                f"The step '{self.step}' asks for a provider's client, but it does not run at a "
                "provider; write place: anthropic, openai, gemini or bedrock."
            )
        return self.clients


@dataclass(frozen=True)
class Operation:
    """A step function and what belongs to it.

    `function(page, context)` gives a JSON value. `version` is part of the key: change it when the
    same page would give another result. `setup(params)` loads a model, once a worker.
    `many(pages, contexts)` gives the values of several pages at once, in their order.
    `check(params)` raises `ConfigError` when the recipe gives params the operation cannot take; it
    loads nothing. `extra` names the extra of this package that the operation needs and `packages`
    the modules which that extra brings. `takes` is the field that the value of one needed step
    must have (`lines`, `text`), `gives` are the fields of its own value; both are empty when
    unknown. `about` is one sentence.

    An operation on a provider's models has `ask(page, context)`, which says what is asked or
    raises `Ready` with the value when no question is needed, and `parse(answer, context)`, which
    makes the value of a complete answer or raises `StepError` when it has the wrong shape. Both
    are pure.
    """

    name: str
    function: Callable[[Page, Context], Any]
    version: str = "1"
    setup: Callable[[Mapping[str, Any]], Any] | None = None
    many: Callable[[Sequence[Page], Sequence[Context]], Sequence[Any]] | None = None
    extra: str | None = None
    about: str = ""
    kinds: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any]], None] | None = None
    packages: tuple[str, ...] = ()
    takes: str | None = None
    gives: tuple[str, ...] = ()
    ask: Callable[[Page, Context], Ask | EmbedAsk] | None = None
    parse: Callable[[Answer, Context], Any] | None = None

    def __call__(self, page: Page, context: Context) -> Any:
        """The function itself, so that a decorated step stays callable as it was written."""
        return self.function(page, context)


def step(
    *,
    version: str = "1",
    setup: Callable[[Mapping[str, Any]], Any] | None = None,
    many: Callable[[Sequence[Page], Sequence[Context]], Sequence[Any]] | None = None,
    extra: str | None = None,
    kinds: tuple[str, ...] = (),
    check: Callable[[Mapping[str, Any]], None] | None = None,
    packages: tuple[str, ...] = (),
    takes: str | None = None,
    gives: tuple[str, ...] = (),
) -> Callable[[Callable[[Page, Context], Any]], Operation]:
    """Makes an operation of a function `(page, context) -> JSON value`.

    Not needed for a plain function; it is for one that has a version, loads a model, checks its
    params or likes several pages at once.
    """

    def decorate(function: Callable[[Page, Context], Any]) -> Operation:
        return Operation(
            name=function.__name__,
            function=function,
            version=version,
            setup=setup,
            many=many,
            extra=extra,
            about=(function.__doc__ or "").strip().partition("\n")[0],
            kinds=kinds,
            check=check,
            packages=packages,
            takes=takes,
            gives=gives,
        )

    return decorate

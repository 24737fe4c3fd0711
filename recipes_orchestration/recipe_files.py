"""What may stand in `recipes/*.yaml`."""

from __future__ import annotations

import keyword
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from croniter import croniter
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from .recipe import MANUAL, NEW_PAGES
from .steps.model_embed import MOST_DIMENSIONS
from .steps.model_questions import LONGEST_MAX_TOKENS
from .steps.picture import PictureSettings
from .yaml_files import quoted

__all__ = [
    "LONGEST_RUN",
    "MODEL_KEYS",
    "RESERVED_NAMES",
    "Name",
    "RecipeFile",
    "Settings",
    "StepFile",
]

LONGEST_RUN = 300
LONGEST_DEADLINE = timedelta(days=90)

MODEL_KEYS = ("model", "prompt", "image", "max_tokens", "schema", "temperature", "dimensions")
"""The keys of a step that say what a model is asked."""

# Names that Dagster refuses for assets' outputs, inputs and groups.
RESERVED_NAMES = frozenset(
    {
        *("context", "conf", "config", "meta", "arg_dict", "dict", "input_arg_dict"),
        *("output_arg_dict", "int", "str", "float", "bool", "input", "output", "type"),
        *keyword.kwlist,
    }
)


# Less than croniter takes: Dagster carries an older one, which knows no W, and H and R are random.
_ITEM = r"(\*|\?|l|\d+|[a-z]{3})(-(\d+|[a-z]{3}))?(/\d+)?(#\d)?"
_CRON = re.compile(rf"{_ITEM}(,{_ITEM})*( +{_ITEM}(,{_ITEM})*){{4}}", re.IGNORECASE)


def _usable(name: str) -> str:
    if name in RESERVED_NAMES:
        raise ValueError(f'found "{name}", which Dagster keeps for itself; allowed: {name}_')
    return name


def _when(value: str) -> str:
    if value in (MANUAL, NEW_PAGES):
        return value
    if _has_a_next_time(value):
        return value
    raise ValueError(
        f"found {quoted(value)}; allowed: {MANUAL}, {NEW_PAGES} or a cron line of five fields "
        '(minute hour day month weekday), such as "0 22 * * *"'
    )


def _has_a_next_time(cron: str) -> bool:
    if len(cron) > 200 or not _CRON.fullmatch(cron):
        return False
    try:
        croniter(cron, datetime(2024, 1, 1, tzinfo=UTC)).get_next()
    except (ValueError, KeyError):  # what croniter raises for fields and for dates like 30 February
        return False
    return True


Name = Annotated[
    str, Field(min_length=1, max_length=100, pattern="^[A-Za-z0-9_]+$"), AfterValidator(_usable)
]


class Settings(BaseModel):
    """Base of what stands in a project's files: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _image(value: Any) -> Any:
    """False or `none` sends no picture, which is None here; a key with nothing says neither."""
    if value is False or value == "none":
        return None
    if isinstance(value, dict):
        return value
    found = "nothing" if value is None else quoted(str(value))
    keys = ", ".join(PictureSettings.model_fields)
    raise ValueError(f"found {found}; allowed: none, or keys with values: {keys}")


def _schema(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, str) and value):
        return value
    raise ValueError(
        "found no schema; allowed: a file such as prompts/person.schema.json, or the schema's own "
        "keys with values"
    )


_HOURS = re.compile(r"(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def _hours(value: Any) -> Any:
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    length = None if found is None else timedelta(**{_UNITS[found[2]]: int(found[1])})
    if length is None or not timedelta(0) < length <= LONGEST_DEADLINE:
        shown = "nothing" if value is None else quoted(str(value))
        raise ValueError(
            f"found {shown}; allowed: a number and m, h or d, such as 90m, 26h or 2d; at most 90d"
        )
    return length


class StepFile(Settings):
    """One operation on one page."""

    name: Name = Field(description="What the step is called: letters, digits and _.")
    run: str = Field(
        min_length=1,
        max_length=LONGEST_RUN,
        description="A built-in operation, or `module:function`.",
    )
    place: str = Field(
        default="local",
        description="Where the step runs: a place, or `same` as the steps that it needs.",
    )
    needs: Annotated[tuple[Name, ...], Field(strict=False)] = Field(
        default=(), description="Steps of this recipe whose values this one is given."
    )
    params: dict[str, Any] = Field(
        default_factory=dict, description="The operation's own settings; a part of its key."
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=300,
        description="At a provider's place: the model that is asked, by the provider's name.",
    )
    prompt: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="A text file in the project folder with what the model is asked.",
    )
    image: Annotated[PictureSettings | None, BeforeValidator(_image)] = Field(
        default=None,
        description="How the page's picture is sent to a model, or seen by a step that asks none; "
        "`none` sends no picture.",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=LONGEST_MAX_TOKENS,
        description="The longest answer, in tokens, thinking included.",
    )
    schema_: Annotated[
        Any,
        BeforeValidator(_schema),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ] = Field(
        default=None,
        alias="schema",
        description="The JSON schema of the answer: a file in the project folder, or itself.",
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="By default the provider's own."
    )
    dimensions: int | None = Field(
        default=None,
        ge=1,
        le=MOST_DIMENSIONS,
        description="Of an embedding; by default the model's own.",
    )

    deadline: Annotated[
        timedelta | None,
        BeforeValidator(_hours),
        WithJsonSchema({"type": "string", "pattern": f"^{_HOURS.pattern}$"}),
    ] = Field(
        default=None,
        description="So long a batch may wait at the step's place before a person is told, such "
        "as 26h.",
    )
    on_deadline: Literal["hold", "calls"] = Field(
        default="hold",
        description="What becomes of pages that are not answered by then: held, or plain calls.",
    )


class RecipeFile(Settings):
    """`recipes/*.yaml`: named steps over one source."""

    recipe: Name = Field(description="What the recipe is called: letters, digits and _.")
    source: str = Field(description="A source of project.yaml.")
    description: str | None = Field(default=None, max_length=10_000, description="Shown in the UI.")
    when: Annotated[str, AfterValidator(_when)] = Field(
        default=MANUAL, description='manual, new_pages, or a cron line such as "0 22 * * *".'
    )
    max_held: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Share of a batch's pages that may wait for a person while it goes on.",
    )
    spend: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000_000,
        description="The most that the recipe may cost at its places, for good. Dollars.",
    )
    consent: Literal["pages_may_leave"] | None = Field(
        default=None,
        description="The recipe's yes to sending its pages to the places of its steps, for "
        "scheduled work too. Besides it, project.yaml must say `pages_may_leave: true`.",
    )
    steps: Annotated[tuple[StepFile, ...], Field(strict=False)] = Field(
        min_length=1, description="What is done with each page."
    )

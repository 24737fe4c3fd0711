"""What must hold between the steps of a recipe, and between recipes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .errors import ConfigError, StepError
from .project_files import LONGEST_RUN, StepFile
from .project_mistakes import choose
from .steps.registry import load_operation, operation_names
from .steps.step import Operation
from .yaml_files import Mistake, YamlFile, quoted

__all__ = ["Draft", "DraftStep", "check_recipe", "check_recipes", "draft_of", "in_order"]

LONGEST_REASON = 1_000  # of an operation, which may quote what it was given

T = TypeVar("T")


@dataclass(frozen=True)
class DraftStep:
    """A step as far as its file can be read: `index` is its place in the list."""

    index: int
    name: str
    run: str | None
    place: str
    needs: tuple[str, ...] = ()
    needs_known: bool = True
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Draft:
    """A recipe as far as its file can be read, so that one mistake does not hide the next."""

    file: YamlFile
    name: str
    source: str | None
    steps: tuple[DraftStep, ...]

    @property
    def names(self) -> list[str]:
        """The names of its steps."""
        return [step.name for step in self.steps]


def draft_of(file: YamlFile) -> Draft:
    """What can be read of a recipe file, leaving out what has the wrong type."""
    steps: list[DraftStep] = []
    listed = file.value.get("steps")
    for index, value in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            continue
        needs, params = value.get("needs", []), value.get("params")
        run = _text(value.get("run"))
        listed_needs: list[Any] = needs if isinstance(needs, list) else []
        steps.append(
            DraftStep(
                index,
                value["name"],
                run if run is not None and len(run) <= LONGEST_RUN else None,
                _text(value.get("place", "local")) or "local",
                tuple(need for need in listed_needs if isinstance(need, str)),
                # An unknown key may be a slip for `needs`, which then is no second mistake.
                listed_needs == needs and value.keys() <= StepFile.model_fields.keys(),
                params if isinstance(params, dict) else {},
            )
        )
    name = _text(file.value.get("recipe")) or ""
    return Draft(file, name, _text(file.value.get("source")), tuple(steps))


def check_recipes(drafts: Sequence[Draft]) -> list[Mistake]:
    """Names that two recipe files share. A file system may not tell `Letters` from `letters`."""
    mistakes: list[Mistake] = []
    first: dict[str, Draft] = {}
    for draft in drafts:
        if not draft.name:
            continue
        other = first.setdefault(draft.name.lower(), draft)
        if other is not draft:
            where = f"{other.file.path.name}:{other.file.line(('recipe',))}"
            found = f"recipe: found {quoted(draft.name)}"
            message = f"{found}, which {where} is called already; rename one"
            mistakes.append(draft.file.mistake(("recipe",), message))
    return mistakes


def check_recipe(
    draft: Draft,
    others: Iterable[Draft],
    *,
    sources: Collection[str] | None,
    places: Collection[str],
) -> list[Mistake]:
    """What is wrong in one recipe: its source, and its steps' names, places, needs and operations.

    `sources` is None when they could not be read.
    """
    file = draft.file
    mistakes: list[Mistake] = []
    if sources is not None and draft.source is not None and draft.source not in sources:
        what = f"source: found {quoted(draft.source)}{choose(draft.source, sources)}"
        mistakes.append(file.mistake(("source",), what))
    first: dict[str, DraftStep] = {}
    for step in draft.steps:
        where = ("steps", step.index)
        shown = quoted(step.name)
        other = first.setdefault(step.name.lower(), step)
        if other is not step:
            line = file.line(("steps", other.index, "name"))
            what = f"found a second step {shown}; line {line} has one already, rename one"
            mistakes.append(file.mistake((*where, "name"), what))
        if step.name == "pages" and sources is not None and draft.name in sources:
            what = f'found the step "pages"; the source "{draft.name}" has an asset of that name'
            mistakes.append(file.mistake((*where, "name"), f"{what}, rename the step"))
        if step.place not in places:
            what = f"step {shown}: place: found {quoted(step.place)}{choose(step.place, places)}"
            mistakes.append(file.mistake((*where, "place"), what))
        wrong = _needs(draft, step, list(others))
        mistakes += wrong or _takes(draft, step)
        mistakes += _operation(file, step)
    circle = _circle(draft.steps)
    if circle:
        path = " -> ".join(map(quoted, circle))
        index = next(step.index for step in draft.steps if step.name == circle[0])
        what = f"steps need one another in a circle: {path}; take one of these needs away"
        mistakes.append(file.mistake(("steps", index, "needs"), what))
    return mistakes


def in_order(steps: Sequence[T], name: Any, needs: Any) -> list[T]:
    """Steps so that each comes after what it needs, otherwise as they stand in the file.

    Steps of a circle are left out.
    """
    ordered: list[T] = []
    done: set[str] = set()
    waiting = list(steps)
    while True:
        ready = next((step for step in waiting if done.issuperset(needs(step))), None)
        if ready is None:
            return ordered
        waiting.remove(ready)
        ordered.append(ready)
        done.add(name(ready))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _needs(draft: Draft, step: DraftStep, others: Sequence[Draft]) -> list[Mistake]:
    mistakes: list[Mistake] = []
    names = [name for name in draft.names if name != step.name]
    seen: set[str] = set()
    for position, need in enumerate(step.needs):
        if need == step.name:
            what = "found itself; take it away"
        elif need in seen:
            what = f"found {quoted(need)} twice; keep one"
        elif need in names:
            seen.add(need)
            continue
        else:
            what = f"found {quoted(need)}"
            owner = next((other for other in others if _has(other, need)), None)
            if owner is not None:
                where = f"the recipe {quoted(owner.name)} ({owner.file.path.name})"
                what += f", a step of {where}; a step can need steps of its own recipe only"
            what += choose(need, names)
        where = ("steps", step.index, "needs", position)
        mistakes.append(draft.file.mistake(where, f"step {quoted(step.name)}: needs: {what}"))
    return mistakes


def _has(draft: Draft, need: str) -> bool:
    return need in draft.names or any(
        need == f"{draft.name}{mark}{name}" for mark in "/.:" for name in draft.names
    )


def _operation(file: YamlFile, step: DraftStep) -> list[Mistake]:
    if step.run is None:
        return []
    start = f"step {quoted(step.name)}: "
    where = ("steps", step.index)
    if ":" not in step.run and step.run not in operation_names():
        rest = choose(step.run, [*operation_names(), "module:function"])
        return [file.mistake((*where, "run"), f"{start}run: found {quoted(step.run)}{rest}")]
    try:
        operation = load_operation(step.run)
    except (StepError, ConfigError) as error:
        return [file.mistake((*where, "run"), f"{start}run: {_short(error)}")]
    if operation.check is not None:
        try:
            operation.check(step.params)
        except (StepError, ConfigError, ValueError) as error:
            return [file.mistake((*where, "params"), f"{start}params: {_short(error)}")]
    return []


def _short(error: Exception) -> str:
    text = str(error)
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


def _takes(draft: Draft, step: DraftStep) -> list[Mistake]:
    """A step whose operation takes a field that none of its needs gives."""
    operation = _loaded(step)
    if operation is None or operation.takes is None or not step.needs_known:
        return []
    givers: list[str] = []
    for other in draft.steps:
        given = _loaded(other)
        if other.name in step.needs and (given is None or not given.gives):
            return []  # what an operation gives may be unknown, and then it is not judged
        if given is not None and operation.takes in given.gives and other.name != step.name:
            givers.append(other.name)
    if set(givers) & set(step.needs):
        return []
    found = f"found [{', '.join(step.needs)}], but {step.run} takes {operation.takes}"
    allowed = f"one of {', '.join(givers)}" if givers else "a step that gives it; add one"
    what = f"step {quoted(step.name)}: needs: {found}; allowed: {allowed}"
    return [draft.file.mistake(("steps", step.index, "needs"), what)]


def _loaded(step: DraftStep) -> Operation | None:
    try:
        return load_operation(step.run) if step.run is not None else None
    except (StepError, ConfigError):
        return None


def _circle(steps: Sequence[DraftStep]) -> list[str]:
    """The names along one circle of needs, the first one again at the end; empty without one."""
    needs = {step.name: [need for need in step.needs if need != step.name] for step in steps}
    free = set(needs)
    for start in needs:
        path = [start]
        while path:
            follow = next((n for n in needs[path[-1]] if n in free), None)
            if follow is None:
                free.discard(path.pop())
            elif follow in path:
                return [*path[path.index(follow) :], follow]
            else:
                path.append(follow)
    return []

"""What must hold between the steps of a recipe, and between recipes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .errors import ConfigError, StepError
from .model_checks import check_model_keys
from .project_mistakes import choose
from .project_places import SAME, Places
from .recipe import LOCAL
from .recipe_drafts import Draft, DraftStep, gives_of, operation_of
from .steps.registry import BUILT_IN, ON_MODELS, load_operation, operation_names
from .yaml_files import Mistake, YamlFile, quoted

__all__ = ["check_recipe", "check_recipes"]

LONGEST_REASON = 1_000  # of an operation, which may quote what it was given


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
    places: Places,
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
        mistakes += _place(file, step, places)
        wrong = _needs(draft, step, list(others))
        mistakes += wrong or _takes(draft, step)
        mistakes += _operation(file, step)
        if step.place in places.kinds:
            mistakes += check_model_keys(draft, step)
            mistakes += _deadline(file, step)
    circle = _circle(draft.steps)
    if circle:
        path = " -> ".join(map(quoted, circle))
        index = next(step.index for step in draft.steps if step.name == circle[0])
        what = f"steps need one another in a circle: {path}; take one of these needs away"
        mistakes.append(file.mistake(("steps", index, "needs"), what))
    return mistakes


def _place(file: YamlFile, step: DraftStep, places: Places) -> list[Mistake]:
    """A place that is not there, that is told too little, or that `same` does not say."""
    start = f"step {quoted(step.name)}: place: found"
    where = ("steps", step.index, "place")
    allowed = [*places.kinds, SAME]
    if step.misplaced is not None:
        what = f"{start} {quoted(SAME)}{step.misplaced}; write its place"
        return [file.mistake(where, f"{what}{choose(SAME, places.kinds)}")]
    if not places.whole:
        return []
    if step.place not in places.kinds:
        return [file.mistake(where, f"{start} {quoted(step.place)}{choose(step.place, allowed)}")]
    if step.place in places.untold:
        what = f"{start} {quoted(step.place)}, which project.yaml tells nothing yet; write its"
        return [file.mistake(where, f"{what} settings there, under places")]
    return []


def _deadline(file: YamlFile, step: DraftStep) -> list[Mistake]:
    """A deadline where nothing waits, or plain calls where there are none."""
    written = file.value["steps"][step.index]
    start = f"step {quoted(step.name)}: "
    where = ("steps", step.index)
    if "deadline" in written and step.place == LOCAL:
        what = f"{start}deadline: found one at the place {quoted(LOCAL)}, where nothing waits"
        return [file.mistake((*where, "deadline"), f"{what} elsewhere; take it away")]
    if "on_deadline" in written and "deadline" not in written:
        what = f'{start}on_deadline: found it without a deadline; add one, such as "deadline: 26h"'
        return [file.mistake((*where, "on_deadline"), what)]
    if written.get("on_deadline") == "calls" and not step.on_model:
        what = f'{start}on_deadline: found "calls", but {step.place} takes no plain calls'
        return [file.mistake((*where, "on_deadline"), f"{what}; allowed here: hold")]
    return []


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
    if step.run is None or (step.run in ON_MODELS and step.run not in BUILT_IN):
        return []  # what is asked of a model is checked with the keys that say it
    start = f"step {quoted(step.name)}: "
    where = ("steps", step.index)
    names = operation_names(step.on_model)
    if step.on_model and step.run in BUILT_IN and step.run not in names:
        found = f"run: found {quoted(step.run)}, which asks no model"
        rest = f"allowed at {step.place}: {', '.join([*names, 'module:function'])}"
        what = f"{start}{found}; take the place away; {rest}"
        return [file.mistake((*where, "run"), what)]
    if ":" not in step.run and step.run not in names:
        rest = choose(step.run, [*names, "module:function"])
        return [file.mistake((*where, "run"), f"{start}run: found {quoted(step.run)}{rest}")]
    try:
        operation = load_operation(step.run, step.on_model)
    except (StepError, ConfigError) as error:
        return [file.mistake((*where, "run"), f"{start}run: {_short(error)}")]
    if operation.check is not None and operation.ask is None:
        try:
            operation.check({**step.params, **_settings(step)})
        except (StepError, ConfigError, ValueError) as error:
            return [file.mistake((*where, "params"), f"{start}params: {_short(error)}")]
    return []


def _settings(step: DraftStep) -> dict[str, object]:
    """Those of the keys about a model that the operation is given as params."""
    if not step.on_model:
        return {}
    return {key: value for key, value in step.keys.items() if key not in ("model", "prompt")}


def _short(error: Exception) -> str:
    text = str(error)
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


def _takes(draft: Draft, step: DraftStep) -> list[Mistake]:
    """A step whose operation takes a field that none of its needs gives."""
    operation = operation_of(step)
    if operation is None or operation.takes is None or not step.needs_known:
        return []
    givers: list[str] = []
    for other in draft.steps:
        given = gives_of(other)
        if other.name in step.needs and not given:
            return []  # what an operation gives may be unknown, and then it is not judged
        if operation.takes in given and other.name != step.name:
            givers.append(other.name)
    if set(givers) & set(step.needs):
        return []
    found = f"found [{', '.join(step.needs)}], but {step.run} takes {operation.takes}"
    allowed = f"one of {', '.join(givers)}" if givers else "a step that gives it; add one"
    what = f"step {quoted(step.name)}: needs: {found}; allowed: {allowed}"
    return [draft.file.mistake(("steps", step.index, "needs"), what)]


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

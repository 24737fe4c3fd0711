"""What holds for any recipe and any batch: keys, stages, and what is planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.engine.look import BatchView, PageState, judge_batch
from recipes_orchestration.engine.preparing import plan_work
from recipes_orchestration.ledger.holds import HoldRow
from recipes_orchestration.ledger.pages import BatchPage
from recipes_orchestration.ledger.task_rows import TaskRow, TaskState
from recipes_orchestration.recipe import Recipe, Step, page_key
from recipes_orchestration.stages import stages_of

NOW = datetime(1891, 5, 1, tzinfo=UTC)
PARTS = ("run", "version", "provider", "model", "prompt", "params")

texts = st.text(max_size=6)
params = st.dictionaries(texts, st.integers() | texts | st.booleans() | st.none(), max_size=4)
parts = st.fixed_dictionaries(
    {
        "run": texts,
        "version": texts,
        "provider": st.none() | texts,
        "model": st.none() | texts,
        "prompt": st.none() | texts,
        "params": params,
    }
)


@st.composite
def recipes(draw: st.DrawFn, places: int = 3) -> Recipe:
    """Any acyclic recipe of up to eight steps, in an order that respects the needs."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 8))):
        needs = (
            draw(st.lists(st.sampled_from([s.name for s in steps]), unique=True)) if steps else []
        )
        place = f"place{draw(st.integers(1, places))}"
        steps.append(Step(f"s{number}", f"run{number}", "1", place=place, needs=tuple(needs)))
    return Recipe(name="any", source="letters", steps=tuple(steps))


def fingerprint(given_parts: dict[str, Any], place: str = "local") -> str:
    step = Step(name="one", place=place, **given_parts)
    return Recipe(name="any", source="letters", steps=(step,)).fingerprint("one")


def spelled(given_parts: dict[str, Any]) -> str:
    """True and 1 are equal in Python but not in a recipe."""
    told = {**given_parts, "params": sorted(given_parts["params"].items())}
    return repr(sorted(told.items()))


@given(parts, parts)
def test_fingerprints_are_equal_when_and_only_when_the_parts_are(
    one: dict[str, Any], other: dict[str, Any]
):
    assert (fingerprint(one) == fingerprint(other)) == (spelled(one) == spelled(other))


@given(parts, st.sampled_from(PARTS), parts)
def test_a_change_of_one_part_alone_changes_the_fingerprint(
    one: dict[str, Any], part: str, other: dict[str, Any]
):
    changed = {**one, part: other[part]}
    assert (fingerprint(one) == fingerprint(changed)) == (spelled(one) == spelled(changed))


@given(parts, texts, texts)
def test_the_place_is_no_part_of_the_fingerprint(one: dict[str, Any], here: str, there: str):
    assert fingerprint(one, here) == fingerprint(one, there)


@given(parts)
def test_the_order_of_params_is_no_part_of_the_fingerprint(one: dict[str, Any]):
    turned = {**one, "params": dict(reversed(list(one["params"].items())))}
    assert fingerprint(one) == fingerprint(turned)


@given(recipes(), st.data())
def test_a_changed_step_changes_itself_and_all_that_need_it_and_nothing_else(
    recipe: Recipe, data: st.DataObject
):
    changed = data.draw(st.sampled_from([step.name for step in recipe.steps]))
    after = replace(
        recipe,
        steps=tuple(
            replace(step, prompt="another") if step.name == changed else step
            for step in recipe.steps
        ),
    )
    behind = {changed}
    for step in recipe.steps:
        if behind & set(step.needs):
            behind.add(step.name)
    names = {step.name for step in recipe.steps}
    assert {n for n in names if recipe.fingerprint(n) != after.fingerprint(n)} == behind


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_page_keys_are_equal_when_and_only_when_fingerprint_and_page_are(
    one: tuple[str, str], other: tuple[str, str]
):
    # As in use, both are hexadecimal: the sign between them occurs in neither.
    first, second = (tuple(t.encode().hex() for t in pair) for pair in (one, other))
    assert (page_key(*first) == page_key(*second)) == (one == other)


@given(recipes())
def test_every_step_is_in_one_stage_at_its_own_place(recipe: Recipe):
    stages = stages_of(recipe)
    inside = [step.name for stage in stages for step in stage.steps]
    assert sorted(inside) == sorted(step.name for step in recipe.steps)
    assert all(step.place == stage.place for stage in stages for step in stage.steps)
    assert len({stage.name for stage in stages}) == len(stages)


@given(recipes())
def test_no_step_comes_before_what_it_needs_and_no_stage_waits_for_a_later_one(recipe: Recipe):
    order = [step.name for stage in stages_of(recipe) for step in stage.steps]
    for step in recipe.steps:
        assert all(order.index(need) < order.index(step.name) for need in step.needs)


@given(recipes(places=1))
def test_steps_at_one_place_are_one_stage(recipe: Recipe):
    assert len(stages_of(recipe)) == 1


@dataclass(frozen=True)
class Batch:
    """A batch in any state, with what the library and the ledger say of it."""

    view: BatchView
    pages: tuple[BatchPage, ...]
    landed: dict[str, set[tuple[str, str]]]
    held: set[tuple[str, str]]
    open: set[tuple[str, str]]
    max_held: float


def page(number: int, *, problem: bool, gone: bool) -> BatchPage:
    name = f"a/p{number}.png"
    words = "It cannot be read." if problem else None
    return BatchPage(name, name, None, f"{number:064x}", words, gone)


def hold(recipe: Recipe, step: str, row: BatchPage, key: str, held: bool) -> HoldRow:
    words = "ValueError: no"
    return HoldRow(
        recipe.name, step, "letters", "a/0001", row.page_id, key, "failed", words, 1, held, NOW, NOW
    )


def task(recipe: Recipe, steps: list[str], rows: list[BatchPage]) -> TaskRow:
    return TaskRow(
        id="1",
        name="task",
        recipe=recipe.name,
        stage="stage",
        source="letters",
        batch="a/0001",
        place="local",
        state=TaskState.open,
        remote_id="r",
        attempt=1,
        fingerprints={step: recipe.fingerprint(step) for step in steps},
        pages=tuple((row.page_id, row.sha256) for row in rows),
        owner="me",
        message=None,
        created_at=NOW,
        sent_at=NOW,
        heartbeat_at=NOW,
        ended_at=None,
        landed_at=None,
    )


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    recipe = draw(recipes())
    rows = tuple(
        page(number, problem=draw(st.integers(0, 9)) == 0, gone=draw(st.integers(0, 9)) == 0)
        for number in range(draw(st.integers(0, 6)))
    )
    landed: dict[str, set[tuple[str, str]]] = {step.name: set() for step in recipe.steps}
    attempts: dict[tuple[str, str, str], HoldRow] = {}
    bias = draw(st.sampled_from([["landed"], ["landed", "held"], ["", "landed", "held", "failed"]]))
    for step in recipe.steps:
        for row in rows:
            key = page_key(recipe.fingerprint(step.name), row.sha256)
            kind = draw(st.sampled_from(bias))
            if kind == "landed":
                landed[step.name].add((row.page_id, key))
            elif kind:
                attempts[row.page_id, step.name, key] = hold(
                    recipe, step.name, row, key, kind == "held"
                )
    names = [step.name for step in recipe.steps]
    sent = draw(st.lists(st.sampled_from(names), unique=True))
    sent_rows = [row for row in rows if draw(st.booleans())]
    tasks = [task(recipe, sent, sent_rows)] if sent and sent_rows else []
    view = judge_batch(recipe, "a/0001", pages=rows, landed=landed, attempts=attempts, tasks=tasks)
    return Batch(
        view,
        rows,
        landed,
        {(step, page_id) for (page_id, step, _), row in attempts.items() if row.held},
        {(step, row.page_id) for step in sent for row in sent_rows if tasks},
        draw(st.floats(0, 1)),
    )


@given(batches())
def test_each_page_that_is_there_is_in_one_state_at_every_step(batch: Batch):
    there = {row.page_id for row in batch.pages if not row.gone}
    for name, step in batch.view.steps.items():
        assert set(step.states) == set(step.keys) == there
        landed = {pair[0] for pair in batch.landed[name]} & there
        assert {p for p, s in step.states.items() if s is PageState.LANDED} == landed
        held = [each.page_id for each in step.held]
        assert len(held) == len(set(held))
        assert {p for p, s in step.states.items() if s is PageState.HELD} == set(held)
        assert {p for s, p in batch.held if s == name and p in there} - landed <= set(held)


@given(batches())
def test_a_page_is_to_do_only_when_all_it_needs_has_landed(batch: Batch):
    for step in batch.view.steps.values():
        for page_id, state in step.states.items():
            if state is PageState.TODO:
                needs = [batch.view.steps[need].states[page_id] for need in step.step.needs]
                assert set(needs) <= {PageState.LANDED}


@given(batches())
def test_nothing_landed_held_or_open_is_planned_and_everything_to_do_is(batch: Batch):
    steps = tuple(batch.view.steps)
    planned = {(s, p) for p, chain in plan_work(batch.view, steps).items() for s in chain}
    state = {(s, p): at for s, view in batch.view.steps.items() for p, at in view.states.items()}
    assert {state[each] for each in planned} <= {PageState.TODO, PageState.WAITING}
    assert {each for each, at in state.items() if at is PageState.TODO} <= planned
    assert not planned & (batch.held | batch.open)
    assert not planned & {(s, p) for s, pairs in batch.landed.items() for p, _ in pairs}


@given(batches())
def test_a_planned_step_finds_what_it_needs_landed_or_before_it(batch: Batch):
    for page_id, chain in plan_work(batch.view, tuple(batch.view.steps)).items():
        for number, step in enumerate(chain):
            for need in batch.view.steps[step].step.needs:
                landed = batch.view.steps[need].states[page_id] is PageState.LANDED
                assert landed or need in chain[:number]


@given(batches())
def test_a_batch_at_rest_has_nothing_waiting_for_nothing(batch: Batch):
    """When nothing is planned and nothing is open, every page has landed or is held."""
    view = batch.view
    idle = not plan_work(view, tuple(view.steps))
    if idle and not any(step.count(PageState.OPEN) for step in view.steps.values()):
        assert all(step.settled() for step in view.steps.values())


@given(batches())
def test_a_step_is_complete_only_when_settled_few_held_and_something_landed(batch: Batch):
    for step in batch.view.steps.values():
        unsettled = sum(step.count(s) for s in PageState if s not in ("landed", "held"))
        allowed = ceil(batch.max_held * step.pages)
        good = unsettled == 0 and len(step.held) <= allowed and step.landed > 0
        if step.pages:
            assert step.complete(batch.max_held) == good
        else:
            assert step.complete(batch.max_held) == bool(batch.landed[step.step.name])

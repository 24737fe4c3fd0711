"""`names` and `embed` on cloud models: from a needed step's text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import StepError
from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.ask import Answer, Ask, EmbedAsk, Ready, Stop, Text, Usage
from recipes_orchestration.steps.model_names import NAMES_SCHEMA
from recipes_orchestration.steps.registry import load_operation
from recipes_orchestration.steps.step import Context

PAGE = Page("a/b.jpg", "x", "a/b.jpg", None, lambda: b"")
LETTER = "Mary Ann\nSmith met Ann in Paris.\nMary  Ann Smith left Paris; Annual report."


def context(text: str, prompt: str | None = None, **params: Any) -> Context:
    return Context(
        step="s", params=params, needs={"read": {"text": text}}, model="m", prompt=prompt
    )


def ask(run: str, given: Context) -> Any:
    operation = load_operation(run, on_model=True)
    assert operation.ask is not None
    return operation.ask(PAGE, given)


def names(text: str, *listed: tuple[str, str]) -> list[dict[str, Any]]:
    operation = load_operation("names", on_model=True)
    assert operation.parse is not None
    said = json.dumps({"names": [{"text": name, "kind": kind} for name, kind in listed]})
    answer = Answer(Stop.COMPLETE, Usage(), text=said)
    return operation.parse(answer, context(text))["names"]


def vector(numbers: tuple[float, ...] | None, **params: Any) -> Any:
    operation = load_operation("embed", on_model=True)
    assert operation.parse is not None
    answer = Answer(Stop.COMPLETE, Usage(), vector=numbers, model="m-2026")
    return operation.parse(answer, context("x", **params))


def test_names_are_asked_of_the_text_alone() -> None:
    asked = ask("names", context("Dear {Ann}"))
    assert isinstance(asked, Ask)
    [part] = asked.parts
    assert isinstance(part, Text)
    assert "<text>\nDear {Ann}\n</text>" in part.text
    assert asked.schema == NAMES_SCHEMA


def test_a_prompt_of_ones_own_replaces_the_one_of_names() -> None:
    asked = ask("names", context("Dear Ann", "Ships in {text}"))
    assert asked.parts == (Text("Ships in Dear Ann"),)


def test_every_place_of_a_name_is_found_in_order() -> None:
    found = names(LETTER, ("Paris", "place"), ("Ann", "person"), ("Mary Ann Smith", "person"))
    assert found == [
        {"text": "Mary Ann Smith", "kind": "person", "start": 0, "end": 14},
        {"text": "Ann", "kind": "person", "start": 19, "end": 22},
        {"text": "Paris", "kind": "place", "start": 26, "end": 31},
        {"text": "Mary  Ann Smith", "kind": "person", "start": 33, "end": 48},
        {"text": "Paris", "kind": "place", "start": 54, "end": 59},
    ]


@pytest.mark.parametrize("name", ["Bob", "", " ", "...", "mary", "Annua", "x" * 301])
def test_a_name_that_is_not_there_is_left_out(name: str) -> None:
    assert names(LETTER, (name, "person")) == []


def test_a_name_with_signs_is_no_pattern() -> None:
    assert [name["start"] for name in names("J. (Sr.) x J. (Sr.)", ("J. (Sr.)", "person"))] == [
        0,
        11,
    ]


def test_a_name_of_two_kinds_has_the_first() -> None:
    assert names("Paris", ("Paris", "person"), ("Paris", "place"))[0]["kind"] == "person"


def test_another_kind_is_the_wrong_shape() -> None:
    with pytest.raises(StepError, match=r"'names\.0\.kind' breaks the rule enum"):
        names("Paris", ("Paris", "town"))


def test_names_are_bounded() -> None:
    with pytest.raises(StepError, match="2,001 names; 2,000 are allowed"):
        names("x", *[(str(number), "person") for number in range(2001)])
    with pytest.raises(StepError, match="500,001 characters"):
        ask("names", context("x" * 500_001))


def test_names_of_a_crafted_answer_end() -> None:
    text = "a " * 240_000
    with pytest.raises(StepError, match="over 1,000,000 places"):
        names(text, *[(f"a b{number}", "person") for number in range(2000)])


@given(st.text(alphabet="ab \n.", max_size=40), st.lists(st.text(alphabet="ab .", max_size=5)))
def test_what_is_found_stands_there(text: str, listed: list[str]) -> None:
    found = names(text, *[(name, "person") for name in listed])
    end = 0
    for name in found:
        assert name["start"] >= end
        end = name["end"]
        there = text[name["start"] : end]
        assert " ".join(there.split()) == " ".join(name["text"].split())
        assert len(name["text"]) == len(there)


@pytest.mark.parametrize(
    ("run", "params", "value"),
    [
        ("names", {}, {"names": []}),
        ("embed", {"dimensions": 3}, {"model": "m", "vector": [0.0, 0.0, 0.0]}),
        ("embed", {}, {"model": "m", "vector": []}),
    ],
)
def test_an_empty_text_needs_no_question(run: str, params: Any, value: Any) -> None:
    with pytest.raises(Ready) as caught:
        ask(run, context(" \n", **params))
    assert caught.value.value == value


@pytest.mark.parametrize("run", ["names", "embed"])
def test_without_a_text_it_is_the_steps_failure(run: str) -> None:
    with pytest.raises(StepError, match="needs a step whose result has 'text'"):
        ask(run, Context(step="s", needs={"lines": {"lines": []}}, model="m"))


def test_embed_asks_for_the_text() -> None:
    assert ask("embed", context("Dear Ann", dimensions=256)) == EmbedAsk("Dear Ann", 256)


def test_a_vector_has_length_one_and_six_digits() -> None:
    assert vector((3.0, 4.0)) == {"model": "m", "vector": [0.6, 0.8]}
    assert vector((1.0, 1.0, 1.0))["vector"] == [0.57735] * 3


def test_a_vector_of_zeros_stays_one() -> None:
    assert vector((0.0, 0.0))["vector"] == [0.0, 0.0]


@pytest.mark.parametrize("numbers", [None, (), (math.nan, 1.0), (math.inf,), (0.0,) * 20_001])
def test_no_vector_is_no_value(numbers: tuple[float, ...] | None) -> None:
    with pytest.raises(StepError, match="The answer"):
        vector(numbers)


def test_a_vector_of_another_length_is_no_value() -> None:
    with pytest.raises(StepError, match="2 numbers; 3 were asked for"):
        vector((1.0, 2.0), dimensions=3)

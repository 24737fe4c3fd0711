"""Prompt files as templates: what may stand in braces, and that nothing else can happen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import StepError
from recipes_orchestration.steps.step import Context
from recipes_orchestration.steps.template import (
    LONGEST_PROMPT,
    Slot,
    TemplateError,
    parse_template,
    render,
)

NEEDS = {"read": {"text": "Dear {page_id}", "lines": [1, 2]}, "names": {"names": ["Ä"]}, "n": 5}


def filled(text: str, needs: dict[str, Any] = NEEDS) -> str:
    context = Context(step="s", needs=needs)
    return render(parse_template(text), "a/b.jpg", context)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("no slots", "no slots"),
        ("{page_id}", "a/b.jpg"),
        ("{text}", "Dear {page_id}"),
        ("<{read}>", "<Dear {page_id}>"),
        ("{read.lines}", "[1, 2]"),
        ("{read.text}", "Dear {page_id}"),
        ("{names}", '{"names": ["Ä"]}'),
        ("{n}", "5"),
        ("{{text}} }} {{", "{text} } {"),
        ("{{{text}}}", "{Dear {page_id}}"),
        ('{{"a": "{n}"}}', '{"a": "5"}'),
    ],
)
def test_slots_are_filled(text: str, expected: str) -> None:
    assert filled(text) == expected


def test_a_needed_step_wins_over_the_words_of_ours() -> None:
    assert filled("{text} {page_id}", {"text": {"text": "a"}, "page_id": {"x": 1}}) == 'a {"x": 1}'


@pytest.mark.parametrize(
    "text",
    [
        *("{", "}", "a } b", "{}", "{ text }", "{text", "{text!r}", "{text:>9}", "{0.a()}"),
        *("{a.b.c}", "{a[0]}", "{text.}", "{.text}", "{te xt}", "{té}", "{a\n}", "{{{", "}}}"),
    ],
)
def test_other_braces_are_refused(text: str) -> None:
    with pytest.raises(TemplateError, match=r"allowed: \{text\}, \{page_id\}, \{step\}"):
        parse_template(text)


def test_a_mistake_has_its_line() -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template("a {text}\n\nb {{ {nope!}")
    assert caught.value.line == 3


@pytest.mark.parametrize("text", ["{nope}", "{read.nope}", "{n.a}", "{page_id.x}", "{text.x}"])
def test_what_is_not_there_is_the_pages_failure(text: str) -> None:
    with pytest.raises(StepError, match=r"line 2"):
        filled(f"\n{text}")


def test_a_value_has_no_attributes() -> None:
    with pytest.raises(StepError, match="no such field"):
        filled("{read.__class__}")


def test_a_question_is_bounded() -> None:
    with pytest.raises(StepError, match="more than 2,000,000 characters"):
        filled("{text}{text}", {"read": {"text": "x" * (LONGEST_PROMPT // 2 + 1)}})


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert filled("{text}", {"read": {"text": "a\ud800"}}) == "a\ufffd"


PLAIN = st.text(max_size=20)
NAMES = st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True)
VALUES = st.text(max_size=20) | st.lists(st.integers(), max_size=3)


@given(st.lists(PLAIN | st.tuples(NAMES, VALUES), max_size=8))
def test_a_template_gives_its_texts_and_values_in_order(parts: list[Any]) -> None:
    needs = {part[0]: part[1] for part in parts if isinstance(part, tuple)}
    text = "".join(
        part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else f"{{{part[0]}}}"
        for part in parts
    )
    expected = ""
    for part in parts:
        value = part if isinstance(part, str) else needs[part[0]]
        expected += value if isinstance(value, str) else json.dumps(value)
    assert filled(text, needs) == expected


@given(st.text(alphabet="{}.ab\n", max_size=30))
def test_any_text_is_a_template_or_a_mistake_with_a_line(text: str) -> None:
    try:
        parts = parse_template(text)
    except TemplateError as error:
        line = error.line
        assert 1 <= line <= text.count("\n") + 1
        return
    again = "".join(
        str(part) if isinstance(part, Slot) else part.replace("{", "{{").replace("}", "}}")
        for part in parts
    )
    assert again == text

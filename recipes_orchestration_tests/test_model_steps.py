"""Steps on cloud models: what they ask, and what they make of an answer."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from recipes_orchestration.errors import ConfigError, StepError
from recipes_orchestration.pages.page import Page
from recipes_orchestration.recipe import digest
from recipes_orchestration.steps.answers import (
    LONGEST_ANSWER,
    json_of,
    schema_problem,
    text_of,
)
from recipes_orchestration.steps.ask import Answer, Ask, Picture, Stop, Text, Usage
from recipes_orchestration.steps.model_names import NAMES_SCHEMA
from recipes_orchestration.steps.model_read import READ_PROMPT
from recipes_orchestration.steps.registry import (
    BUILT_IN,
    ON_MODELS,
    load_operation,
    operation_names,
)
from recipes_orchestration.steps.shapes import surely
from recipes_orchestration.steps.step import Context

from .page_files import encoded, picture

JPEG = encoded(picture(), "JPEG")
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def page(data: bytes = JPEG) -> Page:
    return Page("letters/a.jpg", "x", "letters/a.jpg", None, lambda: data)


def context(prompt: str | None = "Read.", /, **given: Any) -> Context:
    needs = given.pop("needs", {})
    return Context(step="s", params=given, needs=needs, model="some-model", prompt=prompt)


def ask(run: str, given: Context) -> Any:
    operation = load_operation(run, on_model=True)
    assert operation.ask is not None
    return operation.ask(page(), given)


def parse(run: str, given: Context, text: str) -> Any:
    operation = load_operation(run, on_model=True)
    assert operation.parse is not None
    return operation.parse(answer(text), given)


def answer(text: str) -> Answer:
    return Answer(Stop.COMPLETE, Usage(10, 5), text=text)


def kinds(asked: Any) -> list[type]:
    assert isinstance(asked, Ask)
    return [type(part) for part in asked.parts]


def words(asked: Any) -> str:
    assert isinstance(asked, Ask)
    return next(part.text for part in asked.parts if isinstance(part, Text))


# prompt


def test_a_prompt_without_needs_sends_the_picture_first() -> None:
    asked = ask("prompt", context("Read {page_id}."))
    assert asked == Ask((Picture(JPEG, "image/jpeg"), Text("Read letters/a.jpg.")), 4096)


def test_a_prompt_with_needs_sends_text_alone() -> None:
    asked = ask("prompt", context("Translate: {text}", needs={"read": {"text": "Ja."}}))
    assert kinds(asked) == [Text]
    assert words(asked) == "Translate: Ja."


def test_image_settings_send_the_picture_along() -> None:
    asked = ask("prompt", context("{text}", needs={"read": {"text": "Ja."}}, image={}))
    assert kinds(asked) == [Picture, Text]


def test_image_none_sends_no_picture() -> None:
    assert kinds(ask("prompt", context("What is {page_id}?", image=False))) == [Text]


def test_settings_reach_the_question() -> None:
    settings = {"image": {"format": "png"}, "max_tokens": 7, "temperature": 0.5, "schema": PERSON}
    asked = ask("prompt", context("Read.", **settings))
    assert asked.parts[0].media_type == "image/png"
    assert (asked.max_tokens, asked.temperature, asked.schema) == (7, 0.5, PERSON)


def test_an_empty_question_is_refused() -> None:
    with pytest.raises(StepError, match=r"question of the step 's' on .* is empty"):
        ask("prompt", context("{text}", needs={"read": {"text": " "}}))


def test_a_prompt_without_a_file_is_refused() -> None:
    with pytest.raises(StepError, match="has no prompt"):
        ask("prompt", context(None))


def test_without_a_schema_the_value_is_text() -> None:
    assert parse("prompt", context(), "\n\nDear Ann,\n  yours\n\n") == {
        "text": "Dear Ann,\n  yours"
    }


def test_with_a_schema_the_value_is_the_json() -> None:
    given = context(schema=PERSON)
    assert parse("prompt", given, ' {"name": "Ann", "age": 3}\n') == {"name": "Ann", "age": 3}


@pytest.mark.parametrize("fence", ["```", "```json", "~~~", "````json "])
def test_a_code_fence_around_json_is_tolerated(fence: str) -> None:
    text = f'{fence}\n{{"name": "Ann"}}\n{fence.strip().rstrip("json")}'
    assert parse("prompt", context(schema=PERSON), text) == {"name": "Ann"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON: Expecting value"),
        ("Here it is.", "not JSON: Expecting value"),
        ('{"name": "Ann", "ag', "not JSON: Unterminated string"),
        ('{"name": "Ann"} {}', "not JSON: Extra data"),
        ('{"name": "Ann", "age": NaN}', "NaN is no JSON number"),
        ('{"name": "Ann", "age": 1e999}', "a number is too large"),
        ("[" * 100_000, "nested too deep"),
        ('{"age": 3}', "the whole lacks name"),
        ('["Ann"]', 'the whole must be of type "object"'),
        ('{"name": 5}', "'name' must be of type \"string\""),
        ('{"name": "Ann", "age": -1}', "'age' breaks the rule minimum: 0"),
        ('{"name": "Ann", "secret": 1}', "the whole has properties that the schema does not allow"),
    ],
)
def test_an_answer_of_the_wrong_shape_says_where_and_why(text: str, reason: str) -> None:
    with pytest.raises(StepError) as caught:
        parse("prompt", context(schema=PERSON), text)
    assert reason in str(caught.value)


def test_a_reason_does_not_tell_the_page() -> None:
    private = "my dear secret " * 200
    with pytest.raises(StepError) as caught:
        parse("prompt", context(schema=PERSON), json.dumps({"name": [private]}))
    assert "secret" not in str(caught.value)
    with pytest.raises(StepError) as caught:
        parse("prompt", context(schema=PERSON), private)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("schema", [{}, PERSON])
def test_answers_are_bounded(schema: dict[str, Any]) -> None:
    given = context(schema=schema) if schema else context()
    with pytest.raises(StepError, match="2,000,001 characters; 2,000,000 are allowed"):
        parse("prompt", given, "x" * (LONGEST_ANSWER + 1))


@pytest.mark.parametrize("text", ["```\n" + " " * LONGEST_ANSWER, "```\n" * 400_000])
def test_a_long_answer_is_read_in_no_time(text: str) -> None:
    started = time.process_time()
    text_of(answer(text[:LONGEST_ANSWER]))
    assert time.process_time() - started < 2


def test_what_cannot_be_stored_is_replaced() -> None:
    assert text_of(answer("a\0b\ud800c")) == "a\ufffdb\ufffdc"
    found = json_of(answer('{"a\\u0000": ["\\ud800", "\\ud83d\\ude00"]}'), {})
    assert found == {"a\ufffd": ["\ufffd", "😀"]}


# read


def test_read_sends_the_picture_and_asks_for_a_transcription() -> None:
    asked = ask("read", context(None))
    assert asked.parts == (Picture(JPEG, "image/jpeg"), Text(READ_PROMPT))
    assert asked.max_tokens == 8192


def test_a_prompt_of_ones_own_replaces_the_one_of_read() -> None:
    asked = ask("read", context("Read {old}.", needs={"old": {"text": "this"}}))
    assert kinds(asked) == [Picture, Text]
    assert words(asked) == "Read this."


def test_read_gives_text_without_a_fence() -> None:
    given = context(None)
    assert parse("read", given, "```text\nDear Ann,\n\nyours\n```\n") == {
        "text": "Dear Ann,\n\nyours"
    }
    assert parse("read", given, "a\n```\nb\n```") == {"text": "a\n```\nb\n```"}
    assert parse("read", given, "```\na\n```\nand\n```\nb\n```").get("text", "").startswith("```")


def test_a_blank_page_has_no_text() -> None:
    assert parse("read", context(None), "[blank]\n") == {"text": ""}
    assert parse("read", context("Read."), "[blank]") == {"text": "[blank]"}


# registry


def test_every_operation_on_models_asks_and_parses() -> None:
    for run in ON_MODELS:
        operation = load_operation(run, on_model=True)
        assert operation.ask is not None
        assert operation.parse is not None
        assert operation.about
    assert operation_names(on_model=True)[: len(ON_MODELS)] == ON_MODELS


def test_a_built_in_prompt_is_part_of_the_version() -> None:
    assert load_operation("read", on_model=True).version == f"1 prompt-{digest(READ_PROMPT)[:8]}"
    assert load_operation("names", on_model=True).version.startswith("1 prompt-")


def test_an_operation_on_models_never_runs_here() -> None:
    with pytest.raises(StepError, match="runs on a provider's place only"):
        load_operation("prompt", on_model=True)(page(), context())


@pytest.mark.parametrize("run", sorted(set(BUILT_IN) - set(ON_MODELS)))
def test_what_asks_no_model_is_refused_on_one(run: str) -> None:
    with pytest.raises(StepError, match=f"'{run}' asks no model"):
        load_operation(run, on_model=True)


def test_prompt_is_refused_on_this_machine() -> None:
    with pytest.raises(StepError, match="'prompt' asks a model; give the step the place"):
        load_operation("prompt")


def test_functions_are_the_same_everywhere() -> None:
    assert load_operation("posixpath:join", on_model=True).ask is None


def test_params_that_do_not_belong_are_refused() -> None:
    check = load_operation("names", on_model=True).check
    assert check is not None
    check({"max_tokens": 5})
    with pytest.raises(ConfigError, match="'schema' is not known"):
        check({"schema": {}})


# schemas


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "objekt"}, "'type' is not right"),
        ({"properties": {"a": {"minimum": "x"}}}, "'properties.a.minimum' is not right"),
        ({"$ref": "https://example.org/a.json"}, "leads outside"),
        ({"items": {"$ref": "other.json#/a"}}, "leads outside"),
        ({"$ref": "#/$defs/a"}, "leads nowhere"),
        ({"$ref": "#"}, "cannot be used"),
        ({"pattern": "("}, "pattern"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: dict[str, Any], problem: str) -> None:
    found = schema_problem(schema)
    assert found is not None
    assert problem in found


def test_schemas_that_can_be_used_have_no_problem() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    assert schema_problem(PERSON) is None
    assert schema_problem(tree) is None
    assert schema_problem({}) is None


def test_no_schema_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(Exception, match=r"example\.org"):
        json_of(answer("{}"), {"$ref": "http://example.org/schema.json"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    JSON, st.sampled_from(["{}", "```json\n{}\n```", "\n {} \n", "~~~\n{}\n~~~\n"]), st.booleans()
)
def test_json_comes_back_as_it_was(value: Any, around: str, ascii_only: bool) -> None:
    text = around.replace("{}", json.dumps(value, ensure_ascii=ascii_only, indent=1))
    clean = json.dumps(value, ensure_ascii=False).replace("\\u0000", "\ufffd")
    assert json_of(answer(text), {}) == json.loads(clean)


NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES | st.lists(TYPES, min_size=1, unique=True)})
    | st.fixed_dictionaries({"enum": st.lists(NAMES, min_size=1, unique=True)}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, unique=True),
            "additionalProperties": st.booleans(),
            "items": inner,
            "title": st.just("t"),
        },
    ),
    max_leaves=6,
)
SHAPED = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.floats(0, 2) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(SCHEMAS, SHAPED)
def test_a_quick_yes_is_never_wrong(schema: dict[str, Any], value: Any) -> None:
    quick = surely(schema)
    assert quick is not None
    if quick(value):
        assert Draft202012Validator(schema).is_valid(value)


def test_a_quick_yes_is_said_of_plain_answers() -> None:
    quick = surely(NAMES_SCHEMA)
    assert quick is not None
    assert quick({"names": [{"text": "Ann", "kind": "person"}]})
    assert surely({"type": "object", "properties": {"a": {"minimum": 1}}}) is None


@given(st.text(max_size=60) | JSON.map(json.dumps))
def test_any_answer_is_a_value_of_the_schema_or_a_step_error(text: str) -> None:
    try:
        found = json_of(answer(text), PERSON)
    except StepError:
        return
    assert set(found) <= {"name", "age"}
    assert isinstance(found["name"], str)

"""Steps on cloud models in recipe files: what becomes of their keys, and every mistake's line."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.place_settings import CLOUD_PLACES
from recipes_orchestration.project import Project, load_project
from recipes_orchestration.prompt_files import MAX_FILE_BYTES
from recipes_orchestration.providers.prices import ModelPrices
from recipes_orchestration.recipe import canonical_json, digest
from recipes_orchestration.yaml_files import ConfigErrors

PROJECT = "name: archive\nsources: {letters: {root: pages}}\n"
HEAD = "recipe: letters\nsource: letters\nsteps:\n"
READ = "  - {name: read, run: read, place: anthropic, model: m}\n"
PROMPT = "run: prompt, place: openai, model: m, prompt: prompts/a.md"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

Load = Callable[..., Project]
Messages = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None) -> Load:
    """Loads a project with these steps, from line 4 of the recipe on, and these further files."""
    monkeypatch.chdir(tmp_path)

    def loaded(steps: str, files: dict[str, str | bytes] | None = None, **more: str) -> Project:
        texts: dict[str, str | bytes] = {
            "project.yaml": PROJECT + more.get("project", ""),
            "recipes/letters.yaml": HEAD + steps,
            "prompts/a.md": "Read {page_id}.\n",
            **(files or {}),
        }
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_project(tmp_path)

    return loaded


@pytest.fixture
def messages(load: Load) -> Messages:
    def told(steps: str, files: dict[str, str | bytes] | None = None, **more: str) -> list[str]:
        with pytest.raises(ConfigErrors) as caught:
            load(steps, files, **more)
        return [str(mistake) for mistake in caught.value.mistakes]

    return told


def step_of(load: Load, line: str, files: dict[str, str | bytes] | None = None) -> Any:
    return load(f"{READ}  - {{name: x, {line}}}\n", files).recipe("letters").step("x")


# What becomes of the keys


@pytest.mark.parametrize("place", CLOUD_PLACES)
def test_a_step_of_the_issue_is_the_same_at_every_place(load: Load, place: str) -> None:
    steps = f"""\
  - name: read
    run: prompt
    place: {place}
    model: claude-sonnet-4-6
    prompt: prompts/a.md
    image: {{max_side: 2000, format: jpeg, quality: 85}}
    max_tokens: 4000
"""
    step = load(steps).recipe("letters").step("read")
    assert (step.provider, step.model, step.prompt) == (
        place,
        "claude-sonnet-4-6",
        "Read {page_id}.\n",
    )
    assert step.params == {
        "image": {"max_side": 2000, "format": "jpeg", "quality": 85},
        "max_tokens": 4000,
    }


def test_keys_become_params_of_the_same_names(load: Load) -> None:
    step = step_of(load, f"{PROMPT}, image: none, temperature: 0, schema: {json.dumps(SCHEMA)}")
    assert step.params == {"image": False, "temperature": 0.0, "schema": SCHEMA}
    step = step_of(load, "run: embed, place: gemini, model: m, needs: [read], dimensions: 256")
    assert step.params == {"dimensions": 256}


def test_a_schema_file_is_its_content(load: Load) -> None:
    line = f"{PROMPT}, schema: prompts/a.schema.json"
    step = step_of(load, line, {"prompts/a.schema.json": json.dumps(SCHEMA, indent=4)})
    assert step.params == {"schema": SCHEMA}


@pytest.mark.parametrize("written", ["none", "false", "'none'"])
def test_no_picture_may_be_written_in_several_ways(load: Load, written: str) -> None:
    assert step_of(load, f"{PROMPT}, image: {written}").params == {"image": False}


def test_a_python_step_is_given_the_keys(load: Load) -> None:
    line = "run: 'asking_steps:f', place: bedrock, model: m, prompt: prompts/a.md, max_tokens: 5"
    step = step_of(
        load,
        f"{line}, params: {{deep: true}}",
        {
            "asking_steps.py": "def f(page, context):\n    return 1\n",
            "prompts/a.md": "no {template}",
        },
    )
    assert (step.model, step.prompt) == ("m", "no {template}")
    assert step.params == {"deep": True, "max_tokens": 5}


def test_a_python_step_needs_no_model(load: Load) -> None:
    step = step_of(load, "run: 'posixpath:join', place: bedrock")
    assert (step.provider, step.model) == ("bedrock", None)


def test_an_edited_prompt_is_another_step(load: Load) -> None:
    def fingerprint(prompt: str) -> str:
        steps = f"  - {{name: x, {PROMPT}}}\n"
        return load(steps, {"prompts/a.md": prompt}).recipe("letters").fingerprint("x")

    assert fingerprint("Read.") != fingerprint("Read it.")
    assert fingerprint("a\nb\n") == fingerprint("a\r\nb\r\n") == fingerprint("\ufeffa\nb\n")


def test_steps_on_this_machine_keep_their_fingerprints(load: Load) -> None:
    recipe = load("  - {name: text, run: text}\n").recipe("letters")
    parts = {
        **{"run": "text", "version": "1", "provider": None, "model": None, "prompt": None},
        **{"params": {}, "needs": {}},
    }
    assert recipe.fingerprint("text") == digest(canonical_json(parts))


# Mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "run: prompt, prompt: prompts/a.md",
            'place: found "local", but "prompt" asks a model; allowed: anthropic, bedrock, gemini, '
            "openai",
        ),
        (
            "run: text, model: m",
            'found the key "model", but the place "local" asks no model; take it away, or write a '
            "place that does: anthropic, bedrock, gemini, openai",
        ),
        (
            "run: lines, place: openai",
            'run: found "lines", which asks no model; take the place away; allowed at openai: '
            "prompt, read, names, embed, module:function",
        ),
        (
            "run: reed, place: openai, model: m",
            'run: found "reed"; allowed: embed, module:function, names, prompt, read. Did you mean '
            '"read"?',
        ),
        (
            "run: read, place: openai",
            'the key "model" is missing; add the model that openai is to ask',
        ),
        (
            "run: prompt, place: openai, model: m",
            'the key "prompt" is missing; add a file such as prompts/read.md',
        ),
        (
            "run: embed, place: anthropic, model: m, needs: [read]",
            'place: found "anthropic", which has no embeddings; allowed: bedrock, gemini, openai',
        ),
        (
            "run: names, place: openai, model: m, needs: [read], schema: {type: object}",
            'found the key "schema", which names does not take; allowed: model, prompt, '
            "max_tokens, temperature",
        ),
        (
            "run: read, place: openai, model: m, image: none",
            "image: found none, but read reads the picture; take it away, or run: prompt",
        ),
        (
            "run: read, place: openai, model: m, params: {max_tokens: 3}",
            'params: found "max_tokens", but read has none at this place; allowed beside run: '
            "model, prompt, image, max_tokens, temperature",
        ),
        (
            "run: 'posixpath:join', place: openai, max_tokens: 3, params: {max_tokens: 4}",
            "params: found max_tokens both here and as a key; keep one",
        ),
        (
            f"{PROMPT}, image: {{max_sid: 5}}",
            'image: found the unknown key "max_sid"; allowed: format, grey, max_side, quality. Did '
            'you mean "max_side"?',
        ),
        (
            f"{PROMPT}, image: {{max_side: 9000}}",
            "image.max_side: found 9000; allowed: a whole number from 200 to 8000",
        ),
        (
            f"{PROMPT}, image: yes",
            'image: found "True"; allowed: none, or keys with values: max_side, format, quality, '
            "grey",
        ),
        (
            f"{PROMPT}, max_tokens: 0",
            "max_tokens: found 0; allowed: a whole number from 1 to 1000000",
        ),
        (
            f"{PROMPT}, temperature: 3",
            "temperature: found 3; allowed: a number from 0 to 2",
        ),
        (
            f"{PROMPT}, schema: [a]",
            "schema: found no schema; allowed: a file such as prompts/person.schema.json, or the "
            "schema's own keys with values",
        ),
        (
            f"{PROMPT}, schema: {{type: person}}",
            "schema: found no valid JSON schema: 'type' is not right: 'person' is not valid under "
            "any of the given schemas",
        ),
        (
            "run: names, place: openai, model: m",
            "needs: found [], but names takes text; allowed: one of read",
        ),
    ],
)
def test_a_mistake_says_what_to_do(messages: Messages, line: str, message: str) -> None:
    told = messages(f"{READ}  - {{name: x, {line}}}\n")
    assert told == [f'recipes/letters.yaml:5: step "x": {message}']


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("../a.md", "; allowed: a file in the project folder"),
        ("/etc/passwd", "; allowed: a file in the project folder"),
        ("link.md", "; allowed: a file in the project folder"),
        (
            "prompts/aa.md",
            ', but there is no such file; allowed: prompts/a.md. Did you mean "prompts/a.md"?',
        ),
        ("nowhere/a.md", ", but the project folder has no such file; write it"),
        ("prompts", ", which is a folder; name a file in it"),
    ],
)
def test_a_prompt_that_cannot_be_read(
    messages: Messages, tmp_path: Path, given: str, message: str
) -> None:
    outside = tmp_path.parent / "outside.md"
    outside.write_text("secret")
    (tmp_path / "link.md").symlink_to(outside)
    told = messages(f"  - {{name: x, run: read, place: openai, model: m, prompt: {given}}}\n")
    assert told == [f'recipes/letters.yaml:4: step "x": prompt: found "{given}"{message}']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", 'recipes/letters.yaml:4: step "x": prompt: "prompts/a.md" has nothing in it; write '
        "what the model is asked"),
        (b"x" * (MAX_FILE_BYTES + 1), 'recipes/letters.yaml:4: step "x": prompt: "prompts/a.md" is '
        "over 250,000 bytes; write it shorter"),
        (b"a\nb\xff", "prompts/a.md:2: found the byte 0xff; save it as UTF-8"),
        (b"a\n\n{te xt}", 'prompts/a.md:3: found "{te xt}"; allowed: {text}, {page_id}, {step} or '
        "{step.field} of a needed step, and {{ for a { of the text itself"),
        (b"a\n{rad}", 'prompts/a.md:2: found {rad}; allowed: page_id, read, text. Did you mean '
        '"read"? (step "x")'),
        (b"{read.lines}", 'prompts/a.md:1: found {read.lines}, but the step "read" has no such '
        'field; allowed: text (step "x")'),
    ],
)  # fmt: skip
def test_a_prompt_that_is_none(messages: Messages, content: bytes, message: str) -> None:
    steps = f"  - {{name: x, {PROMPT}, needs: [read]}}\n{READ}"
    assert messages(steps, {"prompts/a.md": content}) == [message]


def test_a_text_that_no_need_has(messages: Messages) -> None:
    told = messages(f"  - {{name: x, {PROMPT}}}\n", {"prompts/a.md": "{text}"})
    assert told == [
        "prompts/a.md:1: found {text}, but no needed step has a text; add one that has to "
        'needs (step "x")'
    ]


def test_fields_of_a_schema_are_not_judged(load: Load) -> None:
    steps = f"  - {{name: a, {PROMPT}, schema: {{type: object}}}}\n"
    steps += "  - {name: x, run: prompt, place: openai, model: m, prompt: b.md, needs: [a]}\n"
    load(steps, {"b.md": "{a.whatever} {text}"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"type":\n "object",}', "prompts/s.json:2: found no JSON: "),
        ("[]", "prompts/s.json:1: found no JSON object"),
        ("[" * 100_000, "prompts/s.json:1: found JSON that is nested too deep"),
        ('{"type": "x"}', "prompts/s.json:1: found no valid JSON schema: 'type' is not right"),
        (
            '{"$ref": "http://a/b"}',
            "prompts/s.json:1: found no valid JSON schema: $ref http://a/b leads",
        ),
    ],
)
def test_a_schema_file_that_is_none(messages: Messages, content: str, message: str) -> None:
    told = messages(
        f"  - {{name: x, {PROMPT}, schema: prompts/s.json}}\n", {"prompts/s.json": content}
    )
    assert len(told) == 1
    assert told[0].startswith(message)


# Prices


def test_prices_are_exact(load: Load) -> None:
    prices = (
        "prices:\n  m: {input: 0.1, output: 15, cached: 0.3, batch_share: 0.25}\n  e: {input: 1}\n"
    )
    assert load(READ, project=prices).prices == {
        "m": ModelPrices(Decimal("0.1"), Decimal(15), Decimal("0.3"), Decimal("0.25")),
        "e": ModelPrices(Decimal(1)),
    }


def test_a_mistake_in_the_prices(messages: Messages) -> None:
    told = messages(READ, project="prices:\n  m: {input: -1, outputs: 3}\n")
    assert told == [
        "project.yaml:4: prices.m.input: found -1; allowed: a number from 0 to 1000000",
        'project.yaml:4: prices.m: found the unknown key "outputs"; allowed: batch_share, cached, '
        'input, output. Did you mean "output"?',
    ]

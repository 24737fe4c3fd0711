"""A prompt that is edited while its batch is open, and steps that give the same rows either way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.look import look
from recipes_orchestration.errors import LibraryError
from recipes_orchestration.library import Library
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import MODELS, PROMPT, PROVIDERS, CloudArchive, advance_once, read_step, run_all
from .cloud_landing import cloud, direct, rows_of, send_batch, sizes

OTHER = "Say in one sentence what {page_id} is about."
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "year": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "year", "tags"],
    "additionalProperties": False,
}
EMBEDS = {
    "openai": "text-embedding-3-small",
    "gemini": "gemini-embedding-001",
    "bedrock": "amazon.titan-embed-text-v2:0",
}


def edit(archive: CloudArchive, prompt: str) -> None:
    (archive.folder / "prompts" / "read.md").write_text(prompt)


def keys(archive: CloudArchive) -> set[str]:
    """The keys of the pages by the prompt as it stands."""
    with archive.engine() as engine:
        view = look(engine, engine.project.recipe("letters"), "a/0001")
        return set(view.steps["read"].keys.values())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_prompt_edited_while_the_batch_is_open_mixes_nothing(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = cloud(tmp_path, rehearsal, provider, 3)
    direct(rehearsal, provider, never_ends=True)
    before = keys(archive)
    with archive.engine() as engine:
        send_batch(engine)
    edit(archive, OTHER)
    after = keys(archive)
    assert before.isdisjoint(after)
    with archive.engine() as engine:
        assert advance_once(engine).open == 2
        rehearsal.finish(provider)
        view = run_all(engine)
        assert view.steps["read"].landed == 3
        rows = rows_of(engine)
        assert len(rows) == 6
        first, second = (
            {row["value"] for row in rows if row["key"] in wanted} for wanted in (before, after)
        )
        assert len(first) == len(second) == 3
        assert first.isdisjoint(second)
        tasks = {row["task"]: row["key"] in before for row in rows}
        assert sorted(tasks.values()) == [False, True]
        assert sizes(rehearsal, provider) == [3, 3]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_was_sent_lands_as_the_prompt_alone_would_have_given_it(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    with cloud(tmp_path / "alone", rehearsal, provider, 2).engine() as engine:
        run_all(engine)
        alone = {(row["key"], row["value"]) for row in rows_of(engine)}
    archive = cloud(tmp_path / "edited", rehearsal, provider, 2)
    with archive.engine() as engine:
        send_batch(engine)
    edit(archive, OTHER)
    with archive.engine() as engine:
        run_all(engine)
        assert alone < {(row["key"], row["value"]) for row in rows_of(engine)}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_prompt_edited_back_finds_what_has_landed(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = cloud(tmp_path, rehearsal, provider, 2)
    with archive.engine() as engine:
        send_batch(engine)
    edit(archive, OTHER)
    with archive.engine() as engine:
        run_all(engine)
    edit(archive, PROMPT)
    with archive.engine() as engine:
        assert run_all(engine).steps["read"].landed == 2
        assert rehearsal.counts(provider)["creates"] == 2


def test_a_schema_edited_while_the_batch_is_open_checks_by_the_one_that_was_sent(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = cloud(tmp_path, rehearsal, "openai", 2, steps=[read_step("openai", schema=SCHEMA)])
    with archive.engine() as engine:
        send_batch(engine)
    archive.write_recipe([read_step("openai")])
    with archive.engine() as engine:
        run_all(engine)
        values = [json.loads(row["value"]) for row in rows_of(engine)]
        shapes = sorted(sorted(value) for value in values)
        assert shapes == [["tags", "title", "year"]] * 2 + [["text"]] * 2


def _steps(kind: str, provider: str) -> list[dict[str, Any]]:
    local = {"name": "words", "run": "counting_steps:size"}
    text = {"name": "text", "run": "counting_steps:area", "needs": ["words"]}
    model = MODELS[provider]
    at = {"place": provider, "model": model}
    match kind:
        case "image":
            return [read_step(provider, image={"max_side": 400, "format": "jpeg", "quality": 80})]
        case "read":
            return [{"name": "read", "run": "read", **at}]
        case "schema":
            return [read_step(provider, schema=SCHEMA)]
        case "names":
            return [local, text, {"name": "read", "run": "names", "needs": ["text"], **at}]
        case "template":
            return [local, text, read_step(provider, needs=["text"], prompt="prompts/text.md")]
        case _:
            at = {"place": provider, "model": EMBEDS[provider]}
            return [local, text, {"name": "read", "run": "embed", "needs": ["text"], **at}]


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        (provider, kind)
        for provider in PROVIDERS
        for kind in ("image", "read", "schema", "names", "template", "embed")
        if kind != "embed" or provider in EMBEDS  # Anthropic has no embeddings
    ],
)
def test_a_step_gives_equal_rows_either_way(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, kind: str
) -> None:
    rows = []
    for way in ("batch", "plain"):
        archive = cloud(tmp_path / way, rehearsal, provider, 3)
        (archive.folder / "prompts" / "text.md").write_text("Sum up: {text}")
        archive.write_recipe(_steps(kind, provider))
        with archive.engine() as engine:
            run_all(engine, now=way == "plain")
            modes = {booking.mode for booking in engine.ledger.bookings.all()}
            assert modes == {way}
            table = engine.library.table("letters", "read", "a/0001")
            columns = ["page_id", "key", "value", "model", "tokens_in", "tokens_out"]
            rows.append(table.select(columns).to_pylist())
    assert len(rows[0]) == 3
    assert rows[0] == rows[1]
    assert rows[0][0]["tokens_in"] > 0


def test_needed_values_that_cannot_be_read_are_no_fault_of_the_pages(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = cloud(tmp_path, rehearsal, "openai", 3)
    (archive.folder / "prompts" / "text.md").write_text("Sum up: {text}")
    archive.write_recipe(_steps("template", "openai"))
    lookup = Library.lookup

    def damaged(library: Library, recipe: str, step: str, *given: Any) -> Any:
        if step == "text":
            raise LibraryError("The library's file text.parquet cannot be read.")
        return lookup(library, recipe, step, *given)

    with archive.engine() as engine:
        with monkeypatch.context() as patch:
            patch.setattr(Library, "lookup", damaged)
            with pytest.raises(LibraryError, match=r"text\.parquet"):
                run_all(engine)
        assert engine.ledger.holds.attempts_of("letters", "pages", "a/0001") == {}
        assert run_all(engine).steps["read"].landed == 3

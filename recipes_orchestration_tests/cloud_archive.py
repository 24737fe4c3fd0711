"""A small archive with a step on a provider's model, worked on through the rehearsal server."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes_orchestration.engine.advance import Seen, advance, run_stage
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import BatchView, look
from recipes_orchestration.project import load_project
from recipes_orchestration.stages import Stage, stages_of

from .archive import STEPS, Archive, find_pages

MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-4.1-mini",
    "gemini": "gemini-2.5-flash",
    "bedrock": "anthropic.claude-3-haiku-20240307-v1:0",
}
PROVIDERS = tuple(MODELS)
PROMPT = "Read the letter {page_id} as it is written."
BATCH = "a/0001"

PYTHON_STEPS = '''

def ask_anthropic(page, context):
    """Asks Claude through its own SDK."""
    answer = context.client.messages.create(
        model=context.model, max_tokens=100, messages=[{"role": "user", "content": page.page_id}]
    )
    return {"text": answer.content[0].text}


def ask_openai(page, context):
    answer = context.client.chat.completions.create(
        model=context.model, messages=[{"role": "user", "content": page.page_id}]
    )
    return {"text": answer.choices[0].message.content}


def ask_gemini(page, context):
    answer = context.client.models.generate_content(model=context.model, contents=page.page_id)
    return {"text": answer.text}


def ask_bedrock(page, context):
    answer = context.client.converse(
        modelId=context.model, messages=[{"role": "user", "content": [{"text": page.page_id}]}]
    )
    return {"text": answer["output"]["message"]["content"][0]["text"]}


def ask_twice(page, context):
    """A second request that depends on the first answer."""
    first = ask_anthropic(page, context)
    answer = context.client.messages.create(
        model=context.model, max_tokens=50, messages=[{"role": "user", "content": first["text"]}]
    )
    return {"text": answer.content[0].text, "first": first["text"]}
'''


@dataclass(frozen=True)
class CloudArchive(Archive):
    """An archive whose recipe `letters` has the step `read` at a provider."""

    provider: str = "anthropic"

    def write_recipe(self, steps: Sequence[Mapping[str, Any]], **more: Any) -> None:
        """Replaces the recipe; JSON is YAML."""
        recipe = {
            "recipe": "letters",
            "source": "letters",
            "consent": "pages_may_leave",
            "steps": list(steps),
            **more,
        }
        (self.folder / "recipes" / "letters.yaml").write_text(json.dumps(recipe))

    def write_project(
        self,
        place: Mapping[str, Any],
        limits: Mapping[str, Any] | None = None,
        batch_size: int = 500,
        **more: Any,
    ) -> None:
        """Replaces the project's settings."""
        project = {
            "name": "test",
            "pages_may_leave": True,
            "sources": {"letters": {"root": "pages", "batch_size": batch_size}},
            "places": {"local": {"workers": 1}, self.provider: dict(place)},
            "limits": {"inline_wait": 1, "poll_seconds": 0.1, **(limits or {})},
            **more,
        }
        (self.folder / "project.yaml").write_text(json.dumps(project))

    @contextmanager
    def engine(self) -> Generator[Engine]:
        """The engine over the project as its files stand now."""
        with open_engine(load_project(self.folder)) as engine:
            yield engine


def read_step(provider: str, **more: Any) -> dict[str, Any]:
    """The step `read` by a prompt without an image."""
    return {
        "name": "read",
        "run": "prompt",
        "place": provider,
        "model": MODELS[provider],
        "prompt": "prompts/read.md",
        "image": False,
        "max_tokens": 100,
        **more,
    }


def make_cloud_archive(
    folder: Path,
    provider: str = "anthropic",
    pages: int = 5,
    *,
    place: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    bucket: str | None = None,
    batch_size: int = 500,
    steps: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> CloudArchive:
    """Pages `a/0.png` and on in one folder; batches from one page on, and no long waits."""
    for name in ("recipes", "pages", "prompts"):
        (folder / name).mkdir(parents=True)
    (folder / "prompts" / "read.md").write_text(PROMPT)
    (folder / "counting_steps.py").write_text(STEPS + PYTHON_STEPS)
    sys.modules.pop("counting_steps", None)  # that of another archive
    archive = CloudArchive(folder, provider)
    settings: dict[str, Any] = {"batch_from": 1, "settle_seconds": 0, **(place or {})}
    if provider == "bedrock":
        settings |= {"bucket": bucket, "role_arn": "arn:aws:iam::123456789012:role/batches"}
        settings = {"min_requests": 1, **settings}
    archive.write_project(settings, limits, batch_size, **more)
    archive.write_recipe(steps or [read_step(provider)])
    archive.draw([f"a/{number:04d}.png" for number in range(pages)])
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def stage_named(engine: Engine, step: str = "read") -> Stage:
    recipe = engine.project.recipe("letters")
    return next(stage for stage in stages_of(recipe) if stage.steps[0].name == step)


def advance_once(engine: Engine, step: str = "read", batch: str = BATCH, **more: Any) -> Seen:
    """One call of `advance` on the stage of a step."""
    return advance(engine, stage_named(engine, step), batch, **more)


def run_all(engine: Engine, batch: str = BATCH, *, now: bool = False) -> BatchView:
    """Every stage of the recipe to its end."""
    recipe = engine.project.recipe("letters")
    for stage in stages_of(recipe):
        run_stage(engine, stage, batch, poll_seconds=0.1, now=now)
    return look(engine, recipe, batch)


def values_of(engine: Engine, step: str = "read", batch: str = BATCH) -> dict[str, Any]:
    """The landed values by page."""
    table = engine.library.table("letters", step, batch, ["page_id", "value"])
    return {row["page_id"]: json.loads(row["value"]) for row in table.to_pylist()}

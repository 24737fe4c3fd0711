"""What one tick of the adopt sensor costs over a thousand open tasks at a provider.

    python benchmarks/adopt_tick.py [--tasks 1000] [--providers anthropic,openai,gemini,bedrock]

One page is sent to the rehearsal server as a batch; the task and its batch are then copied, as a
thousand uploads would take minutes. Timed are `poll_open` while all of them go on, and the tick at
which all have ended, which writes that down for each.

Prints seconds and calls, and ends with 1 when a tick takes more than 2 s or a call more than the
pages of the provider's list.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from PIL import Image

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.discover import discover
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.ledger.tables import task_pages, tasks
from recipes_orchestration.project import load_project
from recipes_orchestration.rehearsal import PROVIDERS, Rehearsal, Script, running_rehearsal
from recipes_orchestration.stages import stages_of

ALLOWED_SECONDS = 2.0
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4.1-mini",
    "gemini": "gemini-2.5-flash",
    "bedrock": "anthropic.claude-3-haiku-20240307-v1:0",
}
# The most batches that one page of the provider's list holds.
LIST_PAGE = {"anthropic": 1000, "openai": 100, "gemini": 100, "bedrock": 1000}
BEDROCK = "min_requests: 1, bucket: {bucket}, role_arn: arn:aws:iam::123456789012:role/batches"

PROJECT = """\
name: ticks
pages_may_leave: true
sources:
  pages: {{root: pages}}
places:
  {provider}: {{batch_from: 1, {more}}}
"""
RECIPE = """\
recipe: letters
source: pages
consent: pages_may_leave
steps:
  - {{name: read, run: prompt, place: {provider}, model: "{model}", prompt: read.md,
      image: false, max_tokens: 100}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="A tick of the adopt sensor over many tasks.")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--providers", default=",".join(PROVIDERS))
    given = parser.parse_args()
    right = True
    with running_rehearsal() as rehearsal, tempfile.TemporaryDirectory() as folder:
        os.environ.update(rehearsal.environment())
        for provider in given.providers.split(","):
            right &= measured(Path(folder) / provider, rehearsal, provider, given.tasks)
    return 0 if right else 1


def measured(folder: Path, rehearsal: Rehearsal, provider: str, count: int) -> bool:
    # Expired without an answer, so that Bedrock's side does not write a thousand results to S3.
    rehearsal.script(provider, Script(min_records=1, never_ends=True, expire_after=0))
    write_project(folder, provider, rehearsal.bucket)
    calls = -(-count // LIST_PAGE[provider])
    right = True
    with open_engine(load_project(folder)) as engine:
        send_one(engine)
        copy_tasks(engine, rehearsal, provider, count)
        for what in ("running", "ended"):
            if what == "ended":
                rehearsal.finish(provider)
            rehearsal.side(provider).calls = Counter()
            started = time.perf_counter()
            polled = poll_open(engine)
            seconds = time.perf_counter() - started
            counts = rehearsal.counts(provider)
            made = counts["lists"] + counts["gets"]
            print(f"{provider:10} {len(polled)} {what:8} {seconds:6.2f} s {made:4} calls")
            right &= seconds <= ALLOWED_SECONDS and made <= calls and len(polled) == count
    return right


def write_project(folder: Path, provider: str, bucket: str) -> None:
    for name in ("recipes", "pages"):
        (folder / name).mkdir(parents=True)
    more = BEDROCK.format(bucket=bucket) if provider == "bedrock" else "settle_seconds: 0"
    (folder / "project.yaml").write_text(PROJECT.format(provider=provider, more=more))
    recipe = RECIPE.format(provider=provider, model=MODELS[provider])
    (folder / "recipes" / "letters.yaml").write_text(recipe)
    (folder / "read.md").write_text("Read the letter {page_id}.")
    Image.new("L", (60, 40)).save(folder / "pages" / "a.png")


def send_one(engine: Engine) -> None:
    discover(engine.source("pages"), engine.ledger, batch_size=500)
    recipe = engine.project.recipe("letters")
    (batch,) = engine.ledger.pages.batches("pages")
    (stage,) = stages_of(recipe)
    advance(engine, stage, batch.key)


def copy_tasks(engine: Engine, rehearsal: Rehearsal, provider: str, count: int) -> None:
    side = rehearsal.side(provider)
    (batch,) = side.batches.values()
    ids = [f"{batch.id[:-6]}{number:06x}" for number in range(0xA00000, 0xA00000 + count - 1)]
    for id in ids:
        side.batches[id] = replace(batch, id=id, details=dict(batch.details))
    database = sa.create_engine(engine.project.ledger_url)
    with database.begin() as connection:
        row = dict(connection.execute(sa.select(tasks)).mappings().one())
        now = {"created_at": datetime.now(UTC), "sent_at": datetime.now(UTC)}
        copies = [
            {**row, **now, "id": f"{n:032x}", "name": f"{row['name']}-{n}", "remote_id": id}
            for n, id in enumerate(ids)
        ]
        connection.execute(sa.insert(tasks), copies)
        pages = dict(connection.execute(sa.select(task_pages)).mappings().one())
        of_copies = [{**pages, "task_id": copy["id"]} for copy in copies]
        connection.execute(sa.insert(task_pages), of_copies)
    database.dispose()


if __name__ == "__main__":
    sys.exit(main())

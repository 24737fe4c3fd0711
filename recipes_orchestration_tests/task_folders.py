"""Task folders made for the tests of the runner, and what came out of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.journal import Entry, entries_of
from recipes_orchestration.runner.task_folder import (
    MANIFEST,
    NEEDS,
    OUT,
    OUTCOME,
    PROGRESS,
    RESULTS,
    Manifest,
    ManifestPage,
    runner_version,
    write_manifest,
)

# Steps of a project's own. What each does is written into a file, so that tests see it.
STEPS = """
from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from recipes_orchestration.steps.step import step

SEEN = Path(os.environ["SEEN"])


def note(*words):
    with SEEN.open("a") as stream:
        stream.write("\\t".join(map(str, words)) + "\\n")


def load(params):
    note("load", params["name"], os.getpid())
    if params.get("die_loading"):
        os._exit(9)
    if params.get("cannot_load"):
        raise OSError("the weights are not there")
    return params["name"]


@step(version="1", setup=load)
def size(page, context):
    note("size", page.page_id)
    time.sleep(context.params.get("sleep", 0))
    name = page.page_id.rpartition("/")[2]
    if name.startswith("exit"):
        os._exit(5)
    if name.startswith("segv"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if name.startswith("hang"):
        time.sleep(600)
    if name.startswith("raise"):
        raise ValueError("no size")
    return {"width": page.image.width, "model": context.model}


@step(version="2", setup=load)
def area(page, context):
    note("area", page.page_id)
    time.sleep(context.params.get("sleep", 0))
    return {"area": context.needs["size"]["width"] * page.image.height}


def several(pages, contexts):
    note("many", *[page.page_id for page in pages])
    return [wide(page, context) for page, context in zip(pages, contexts)]


@step(version="1", many=several)
def wide(page, context):
    if page.page_id.startswith("exit"):
        os._exit(5)
    return {"width": page.image.width}


def long(page, context):
    return "x" * 20_000


def told(page, context):
    return {"file": page.file, "frame": page.frame, "folder": page.folder, "sha256": page.sha256}
"""

SIZE = Step("size", "own_steps:size", "1", params={"name": "one"})
AREA = Step("area", "own_steps:area", "2", needs=("size",), params={"name": "two"})


def png(width: int, height: int = 7) -> bytes:
    held = io.BytesIO()
    Image.new("L", (width, height), 200).save(held, "PNG")
    return held.getvalue()


@dataclass
class TaskFolder:
    """A batch folder with one task folder in it."""

    batch: Path

    @property
    def path(self) -> Path:
        return self.batch / "stage-1" / "0"

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST

    def start(self, **options: Any) -> subprocess.Popen[bytes]:
        """The runner as its own process."""
        return subprocess.Popen(
            [sys.executable, "-m", "recipes_orchestration.runner.main", str(self.path)]
            + [str(each) for pair in options.items() for each in (f"--{pair[0]}", pair[1])],
            env={**os.environ, "SEEN": str(self.batch / "seen")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, code: int = 0, **options: Any) -> str:
        """Runs the task to its end and gives what was said on standard error."""
        with self.start(**options) as runner:
            out, errors = runner.communicate(timeout=300)
        assert (runner.returncode, out) == (code, b""), errors.decode()
        return errors.decode()

    def seen(self) -> list[list[str]]:
        """What the steps did, in order."""
        path = self.batch / "seen"
        return (
            [line.split("\t") for line in path.read_text().split("\n")[:-1]]
            if path.exists()
            else []
        )

    def entries(self) -> list[Entry]:
        path = self.path / OUT / RESULTS
        if not path.exists():
            return []
        with path.open("rb") as stream:
            return list(entries_of(stream))

    def results(self) -> dict[tuple[str, str], Any]:
        """The value, or the kind of failure, of each page and step; each is there once."""
        entries = self.entries()
        found = {(each.page_id, each.step): each.failed or each.value for each in entries}
        assert len(found) == len(entries)
        if entries:
            size = (self.path / OUT / RESULTS).stat().st_size
            assert sum(each.size for each in entries) == size
        return found

    def outcome(self) -> dict[str, Any]:
        return json.loads((self.path / OUT / OUTCOME).read_bytes())

    def messages(self) -> list[dict[str, Any]]:
        lines = (self.path / OUT / PROGRESS).read_bytes().split(b"\n")
        return [json.loads(line) for line in lines if line]


def make_task(
    root: Path,
    pages: Sequence[str],
    *,
    steps: Sequence[Step] = (SIZE, AREA),
    needs: Mapping[tuple[str, str], Any] | None = None,
    **changes: Any,
) -> TaskFolder:
    """A task whose page number n is n pixels wide and seven high, from 10 on."""
    task = TaskFolder(root / "batch")
    (task.batch / "pages").mkdir(parents=True)
    task.path.mkdir(parents=True)
    code = task.batch / "code" / "abc"
    code.mkdir(parents=True)
    (code / "own_steps.py").write_text(STEPS)
    made: list[ManifestPage] = []
    for number, page_id in enumerate(pages, start=10):
        data = png(number)
        digest = hashlib.sha256(data).hexdigest()
        (task.batch / "pages" / f"{digest}.png").write_bytes(data)
        file = f"../../pages/{digest}.png"
        made.append(
            ManifestPage(page_id, digest, file, digest, None, tuple(step.name for step in steps))
        )
    manifest = Manifest(
        "stage-1_0", tuple(steps), tuple(made), runner_version(), code="../../code/abc"
    )
    if needs is not None:
        lines = [
            {"page_id": page, "step": step, "value": value} for (page, step), value in needs.items()
        ]
        (task.path / NEEDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
        manifest = replace(manifest, needs=True)
    write_manifest(task.path, replace(manifest, **changes))
    return task


def values_of(pages: Sequence[str]) -> dict[tuple[str, str], Any]:
    """What a task of these pages gives when no page fails."""
    found: dict[tuple[str, str], Any] = {}
    for number, page_id in enumerate(pages, start=10):
        found[page_id, "size"] = {"width": number, "model": "one"}
        found[page_id, "area"] = {"area": number * 7}
    return found

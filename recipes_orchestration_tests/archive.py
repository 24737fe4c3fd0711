"""A small project whose steps write down each time they run, so that tests can count."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from recipes_orchestration.engine.discover import Discovered, discover
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.project import Project, load_project

STEPS = '''
"""Steps that write a line for each page they run on."""

import os
import time
from pathlib import Path

from recipes_orchestration.errors import PageUnreadable
from recipes_orchestration.steps.step import step

LOG = Path(__file__).parent / "ran.log"
LOADED = Path(__file__).parent / "loaded.log"


def note(path, *words):
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, ("\\t".join(words) + "\\n").encode())
    os.close(handle)


def load(params):
    note(LOADED, str(os.getpid()), str(dict(params)))
    return {"loaded": True}


@step(version="1", setup=load)
def size(page, context):
    """The page's size in pixels."""
    time.sleep(context.params.get("sleep", 0))
    width, height = page.image.size
    note(LOG, "size", page.page_id)
    return {"width": width, "height": height}


def area(page, context):
    """Width times height, from the step before."""
    need = next(iter(context.needs.values()))
    note(LOG, "area", page.page_id)
    if "fails" in page.page_id:
        raise ValueError("this page has no area")
    if "kills" in page.page_id:
        os._exit(9)
    if "hangs" in page.page_id:
        time.sleep(60)
    return {"area": need["width"] * need["height"], "text": "text of " + page.page_id}


def many_pages(pages, contexts):
    note(LOG, "together", str(len(pages)))
    return [together(page, context) for page, context in zip(pages, contexts)]


@step(many=many_pages)
def together(page, context):
    """Likes several pages at once."""
    return {"name": page.page_id}
'''

PROJECT = """\
name: test
sources:
  letters: {{root: pages, batch_size: {batch_size}}}
places:
  local: {{workers: 2}}
limits: {limits}
"""

RECIPE = """\
recipe: measure
source: letters
when: {when}
max_held: {max_held}
steps:
  - {{name: size, run: "counting_steps:size", params: {params}}}
  - {{name: area, run: "counting_steps:area", needs: [size]}}
"""


@dataclass(frozen=True)
class Archive:
    """A project folder on disk and what its steps have written down."""

    folder: Path

    @property
    def pages(self) -> Path:
        return self.folder / "pages"

    def project(self) -> Project:
        return load_project(self.folder)

    def ran(self, step: str | None = None) -> Counter[tuple[str, str]]:
        """How often each (step, page id) was computed."""
        log = self.folder / "ran.log"
        lines = log.read_text().strip().split("\n") if log.exists() else []
        pairs = [(line.split("\t")[0], line.split("\t")[1]) for line in lines if line]
        return Counter(pair for pair in pairs if step is None or pair[0] == step)

    def loads(self) -> list[str]:
        log = self.folder / "loaded.log"
        return log.read_text().strip().split("\n") if log.exists() else []

    def draw(self, names: Sequence[str], shade: int = 0) -> None:
        """Pages that all differ: each carries its own name and shade."""
        for name in names:
            draw_page(self.pages / name, f"{name} {shade}")


def draw_page(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("L", (120, 60), 255)
    ImageDraw.Draw(image).text((4, 4), text, fill=0)
    image.save(path)


def make_archive(
    folder: Path,
    names: Sequence[str] = (),
    *,
    batch_size: int = 500,
    when: str = "manual",
    max_held: float = 0.05,
    params: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
) -> Archive:
    (folder / "recipes").mkdir(parents=True)
    (folder / "pages").mkdir()
    (folder / "counting_steps.py").write_text(STEPS)
    (folder / "project.yaml").write_text(
        PROJECT.format(batch_size=batch_size, limits=_flow(limits or {}))
    )
    (folder / "recipes" / "measure.yaml").write_text(
        RECIPE.format(when=when, max_held=max_held, params=_flow(params or {}))
    )
    archive = Archive(folder)
    archive.draw(names)
    return archive


def _flow(values: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"


def find_pages(engine: Engine, source: str = "letters") -> Discovered:
    """Discovers the source to its end."""
    return discover(
        engine.source(source),
        engine.ledger,
        batch_size=engine.project.source(source).batch_size,
    )


def environment(archive: Archive, **more: str) -> dict[str, str]:
    """The environment in which a process works on this archive."""
    return {**os.environ, "RECIPES_PROJECT": str(archive.folder), **more}

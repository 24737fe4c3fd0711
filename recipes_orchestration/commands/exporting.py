"""The work of `recipes export`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..engine.engine import Engine
from ..errors import ConfigError
from ..library.export import FORMATS, BatchPages, export
from ..pages.naming import shown
from .opening import batches_in, did_you_mean, opened, steps_named
from .output import Output, count

__all__ = ["Wanted", "export_results"]

_FILE_ENDINGS = {"jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet"}


@dataclass(frozen=True)
class Wanted:
    """What to export, how, and where to; no steps means all of them."""

    recipe: str
    steps: tuple[str, ...]
    format: str
    out: str | None
    folder: str | None = None


def export_results(project: Path | None, wanted: Wanted, *, as_json: bool) -> None:
    """Writes the landed results of the recipe as it is now and says how much there was."""
    output = Output(as_json=as_json)
    if wanted.format not in FORMATS:
        raise ConfigError(
            f"There is no format {shown(wanted.format)}{did_you_mean(wanted.format, FORMATS)} "
            f"Formats are {', '.join(FORMATS)}."
        )
    if not wanted.out:
        raise ConfigError("Say where the export goes: --out DIR_OR_URL")
    with opened(project) as engine:
        recipe = engine.project.recipe(wanted.recipe)
        if not wanted.steps:
            names = ", ".join(step.name for step in recipe.steps)
            raise ConfigError(f"Say which step's results: --step STEP, one or more of {names}.")
        steps = steps_named(recipe, wanted.steps)
        batches_in(engine, recipe.source, wanted.folder)
        done = export(
            engine.library,
            recipe,
            _batch_pages(engine, recipe.source, wanted.folder),
            steps,
            wanted.format,
            _where(wanted.out, wanted.format, f"{recipe.name}-{'-'.join(steps)}"),
            engine.project.library_storage_options if _beside(engine, wanted.out) else None,
        )
    files = wanted.format in ("text", "page-xml")
    output.line(
        f"{count(done.written, 'file' if files else 'row')} of {count(done.pages, 'page')} "
        f"written to {shown(done.out)}"
    )
    if done.missing:
        output.line(f"{count(done.missing, 'result')} not there: not landed yet, or held.")
    if done.unfit:
        output.line(f"{count(done.unfit, 'page')} left out: no lines in the step's values.")
    output.document(
        {
            "recipe": recipe.name,
            "steps": steps,
            "format": wanted.format,
            "out": done.out,
            "pages": done.pages,
            "written": done.written,
            "missing": done.missing,
            "unfit": done.unfit,
        }
    )


def _batch_pages(engine: Engine, source: str, folder: str | None) -> Iterator[BatchPages]:
    for batch, rows in engine.ledger.pages.iter_batches(source, folder):
        yield batch.key, {row.page_id: row.sha256 for row in rows if not row.gone}


def _where(out: str, format: str, name: str) -> str:
    """The file for a table: `out` itself when it looks like one, else a file in that folder."""
    ending = _FILE_ENDINGS.get(format)
    if ending is None or out.endswith(ending):
        return out
    folder = out.rstrip("/") if "://" in out else str(Path(out).expanduser())
    return f"{folder}/{name}{ending}"


def _beside(engine: Engine, out: str) -> bool:
    """Whether the export goes to a store of the library's kind, whose options then fit."""
    scheme = out.partition("://")[0]
    return "://" in out and engine.project.library.startswith(f"{scheme}://")

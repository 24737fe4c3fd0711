"""One way of `cloud_batches.py` in this process, and what it took."""

from __future__ import annotations

import resource
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from cloud_bare import BARE

__all__ = ["Figures", "one"]


@dataclass(frozen=True)
class Figures:
    """Seconds of the processor and the clock, and megabytes above the imports.

    `whole` and `whole_seconds` are those of the process, with its start and imports.
    """

    processor: float
    seconds: float
    megabytes: float
    whole: float
    whole_seconds: float


def memory(name: str) -> float:
    """Megabytes of this process: VmRSS or VmHWM."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.split("\n") if line.startswith(name))
    return int(line.split()[1]) / 1000


def processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def measured() -> Generator[list[Figures]]:
    found: list[Figures] = []
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    used, started = processor(), time.perf_counter()
    yield found
    seconds, ended = time.perf_counter() - started, processor()
    lived = time.time() - psutil.Process().create_time()
    found.append(Figures(ended - used, seconds, max(0, memory("VmHWM") - before), ended, lived))


def import_all(provider: str) -> None:
    """What either way would else import while it is timed; the SDKs do so when first used."""
    for name in ("pyarrow.parquet", "genai_prices.data", "genai_prices.data_units"):
        import_module(name)
    pa.array(["text"])  # imports pandas where that is installed
    if provider == "bedrock":
        boto3: Any = import_module("boto3")
        for service in ("s3", "bedrock", "bedrock-runtime"):
            boto3.client(service).close()
        return
    if provider == "gemini":
        import_module("google.genai")
        return
    sdk: Any = import_module(provider)
    client: Any = sdk.OpenAI() if provider == "openai" else sdk.Anthropic()
    with client:
        if provider == "openai":
            assert client.files
            assert client.batches
            assert client.chat.completions
        else:
            assert client.messages.batches


def one(way: str, provider: str, folder: Path) -> tuple[Figures, int]:
    """Figures, and how many pages have an answer in the end."""
    images = not (folder / "texts.parquet").exists()
    import_all(provider)
    if way == "bare":
        with measured() as found:
            done = BARE[provider](folder, images)
        return found[0], done
    from recipes_orchestration.engine.advance import run_stage
    from recipes_orchestration.engine.engine import open_engine
    from recipes_orchestration.project import load_project
    from recipes_orchestration.stages import stages_of

    step = f"{'captured' if way == 'captured' else 'declared'}_{provider}"
    with open_engine(load_project(folder)) as engine:
        stages = stages_of(engine.project.recipe("bench"))
        stage = next(stage for stage in stages if stage.steps[0].name == step)
        batches = [row.key for row in engine.ledger.pages.batches("pages", "box")]
        engine.place(provider)
        with measured() as found:
            views = [run_stage(engine, stage, batch) for batch in batches]
        return found[0], sum(view.steps[step].landed for view in views if view is not None)

"""Cloud batches beside bare scripts on the providers' SDKs, in one run at rehearsed providers.

    python benchmarks/cloud_batches.py [--requests 20000] [--images 500] [--rounds 3]

The rehearsal is a process of its own and answers at once. Each way is a fresh process:

- `bare`: the script of `cloud_bare.py`;
- `declared`: a step with a prompt, from nothing sent to landed by `run_stage`: ledger, answers
  kept, prices, library. Texts are a needed step's results in the library, in one batch of pages;
- `in 500s`: the same in batches of 500 pages, one provider batch each, as people have it;
- `captured`: a Python step that asks the same through the SDK, recorded and replayed;
- `rerun`: the declared step over what has landed, which must send nothing.

Of each: seconds of the processor (children too) and of the clock, without imports, and the peak of
memory above that after the imports. Ratios are medians over rounds of the ratio within the round.
`x CPU` and `x wall` are of whole processes, from their start to their end; `x work` are the same
without start and imports, and are what is judged. Ends with 1 when a declared step takes more than
2 times the bare script (pictures: 1.5), by the processor or the clock, a captured one more than
2 ms a request above it, either more than 300 MB, when batches of 500 pages take more memory for ten
times as many, or when the rerun takes 4 s.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cloud_project import make_project
from cloud_ways import Figures, one

DECLARED, PICTURES, CAPTURED = 2.0, 1.5, 2.0
ALLOWED_MB, ALLOWED_GROWTH_MB = 300.0, 25.0
ALLOWED_RERUN = 4.0


@contextmanager
def rehearsing(providers: Sequence[str]) -> Generator[dict[str, str]]:
    """A rehearsal in a process of its own, as the environment by which it is found."""
    words = [sys.executable, "-m", "recipes_orchestration.rehearsal"]
    command = [*words, "--providers", ",".join(providers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found: dict[str, str] = {}
            for line in process.stdout:
                name, _, value = line.removeprefix("export ").strip().partition("=")
                if not line.startswith("export "):
                    found["CONTROL"] = shlex.split(line)[-1].removesuffix("/counts")
                    break
                found[name] = shlex.split(value)[0]
            yield found
        finally:
            process.terminate()


@dataclass(frozen=True)
class Bench:
    """Runs the ways, each in a fresh process on a fresh copy of a project."""

    folder: Path
    environment: dict[str, str]

    def run(self, way: str, provider: str, project: str, pages: int) -> Figures:
        """`rerun` works on what the way before it left."""
        copy = self.folder / "copy"
        if way != "rerun":
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder / project, copy, copy_function=linked)
            self._control("reset", "POST")
        before = self._sent(provider)
        answered = subprocess.run(
            [sys.executable, __file__, "--way", way, provider, str(copy)],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        figures, done = json.loads(answered)
        sent = self._sent(provider) - before
        if done != pages or sent != (0 if way == "rerun" else pages):
            sys.exit(f"{way} at {provider}: {done} landed and {sent} sent instead of {pages}")
        return Figures(**figures)

    def _sent(self, provider: str) -> int:
        counts = json.loads(self._control("counts"))[provider]
        # What does not fit into a batch with enough others goes as a plain call.
        plain: int = sum(counts["plain_requests"].values())
        return plain + sum(batch["size"] for batch in counts["batches"])

    def _control(self, what: str, method: str = "GET") -> bytes:
        request = urllib.request.Request(f"{self.environment['CONTROL']}/{what}", method=method)
        with urllib.request.urlopen(request) as reply:
            return reply.read()


def linked(source: str, target: str) -> str:
    """Page files are not copied, they are only read."""
    if source.endswith(".jpg"):
        os.link(source, target)
        return target
    return shutil.copy2(source, target)


@dataclass(frozen=True)
class Bound:
    """What a way may take: times the bare script, milliseconds a request above it, seconds."""

    times: float | None = None
    milliseconds: float | None = None
    seconds: float | None = None


class Table:
    """Prints the ways of a case and remembers what was over its bound."""

    def __init__(self, bench: Bench, rounds: int) -> None:
        self.bench = bench
        self.rounds = rounds
        self.over: list[str] = []

    def case(
        self, provider: str, project: str, pages: int, ways: Mapping[str, tuple[str, Bound]]
    ) -> dict[str, float]:
        """Measures the ways by turns; gives the peak memory of each. `ways` has a project each."""
        print(f"\n{provider}, {pages:,} {project}")
        columns = ("CPU s", "wall s", "peak MB", "x CPU", "x wall", "ms CPU", "ms wall")
        columns += ("x work", "x work")
        print(f"{'':12}" + "".join(f"{column:>9}" for column in columns))
        found: dict[str, list[Figures]] = {way: [] for way in ways}
        for _ in range(self.rounds):
            for way, (folder, _bound) in ways.items():
                found[way].append(self.bench.run(way, provider, folder, pages))
        peaks: dict[str, float] = {}
        for way, (_folder, bound) in ways.items():
            peaks[way] = statistics.median(each.megabytes for each in found[way])
            self._tell(f"{provider} {pages} {way}", way, found[way], found["bare"], bound, pages)
        return peaks

    def _tell(
        self,
        name: str,
        way: str,
        found: Sequence[Figures],
        bare: Sequence[Figures],
        bound: Bound,
        pages: int,
    ) -> None:
        pairs = list(zip(found, bare, strict=True))
        median = statistics.median
        cpu, wall = median(e.processor for e in found), median(e.seconds for e in found)
        peak = median(each.megabytes for each in found)
        times = (
            median(each.whole / base.whole for each, base in pairs),
            median(each.whole_seconds / base.whole_seconds for each, base in pairs),
        )
        work = (
            median(each.processor / base.processor for each, base in pairs),
            median(each.seconds / base.seconds for each, base in pairs),
        )
        above = (
            median((each.processor - base.processor) / pages * 1e3 for each, base in pairs),
            median((each.seconds - base.seconds) / pages * 1e3 for each, base in pairs),
        )
        figures = "".join(f"{each:9.2f}" for each in (cpu, wall))
        figures += f"{peak:9.0f}" + "".join(f"{each:9.2f}" for each in (*times, *above, *work))
        broken = [
            bound.times is not None and max(work) > bound.times,
            bound.milliseconds is not None and max(above) > bound.milliseconds,
            bound.seconds is not None and wall >= bound.seconds,
            way != "bare" and peak > ALLOWED_MB,
        ]
        print(f"{way:12}{figures}{'  over' if any(broken) else ''}", flush=True)
        if any(broken):
            self.over.append(name)


def main() -> int:
    parser = argparse.ArgumentParser(description="Cloud batches beside bare scripts on the SDKs.")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--providers", default="openai,anthropic,gemini,bedrock")
    parser.add_argument("--way", nargs=3, metavar=("WAY", "PROVIDER", "FOLDER"))
    options = parser.parse_args()
    if options.way:
        way, provider, folder = options.way
        figures, done = one(way, provider, Path(folder))
        print(json.dumps((asdict(figures), done)))
        return 0
    providers = options.providers.split(",")
    with (
        tempfile.TemporaryDirectory(prefix="recipes-cloud-") as temporary,
        rehearsing(providers) as environment,
    ):
        table = Table(Bench(Path(temporary), environment), options.rounds)
        few = options.requests // 10
        for name, pages in (("", options.requests), ("few ", few)):
            for kind, size in (("texts", pages), ("in 500s", 500)):
                folder = Path(temporary) / f"{name}{kind}"
                make_project(folder, pages, images=False, batch_size=size)
        size = max(options.images, 1)
        make_project(Path(temporary) / "pictures", options.images, images=True, batch_size=size)
        for provider in providers:
            measure(table, provider, options.requests, few, options.images)
    for name in table.over:
        print(f"over its bound: {name}")
    return 1 if table.over else 0


def measure(table: Table, provider: str, requests: int, few: int, images: int) -> None:
    captured = Bound(milliseconds=CAPTURED)
    many = {
        "bare": ("texts", Bound()),
        "declared": ("texts", Bound(times=DECLARED)),
        "rerun": ("texts", Bound(seconds=ALLOWED_RERUN)),
        "in 500s": ("in 500s", Bound()),
        "captured": ("texts", captured),
    }
    large = table.case(provider, "texts", requests, many)
    small = table.case(
        provider,
        "texts",
        few,
        {
            "bare": ("few texts", Bound()),
            "declared": ("few texts", Bound()),
            "in 500s": ("few in 500s", Bound()),
            "captured": ("few texts", Bound()),
        },
    )
    for way in ("declared", "in 500s", "captured"):
        grown = large[way] - small[way]
        print(f"{way}: {grown:.0f} MB more for {requests:,} than for {few:,}")
        # A batch of pages is held as a whole, so its size is what memory depends on.
        if way == "in 500s" and grown > ALLOWED_GROWTH_MB:
            table.over.append(f"{provider}: memory grows with the requests")
    if images:
        pictures = {
            "bare": ("pictures", Bound()),
            "declared": ("pictures", Bound(times=PICTURES)),
            # The SDK itself goes through the picture's base64 several times in each of two runs.
            "captured": ("pictures", Bound()),
        }
        table.case(provider, "pictures", images, pictures)


if __name__ == "__main__":
    sys.exit(main())

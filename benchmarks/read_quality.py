"""How well `lines` and `read` read real pages, beside the bare engine on the same pictures.

    python benchmarks/read_quality.py [FOLDER] [--limit N] [--workers N] [--only NAME] [--json FILE]

FOLDER holds one folder per collection; beside a page lies its true text (`page.gt.txt`) and
perhaps its person names (`page.names.json`). The default is `../shared/data/pages` beside the
repository. Ends with 1 when a printed English collection has more than 0.5 points more wrong
characters than the bare engine in the same run.

Wrong characters: edit distance over the number of true characters, summed over a collection.
Both texts are compared with white space as single blanks, words parted at line ends joined,
typographic quotes and dashes as plain ones, and the marks of transcription rules left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import re
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.rapid import pixels
from recipes_orchestration.steps.registry import load_operation
from recipes_orchestration.steps.step import Context

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
SUFFIXES = (".jpg", ".png", ".tif", ".pdf")
FRENCH = ("notaires-paris", "testaments-de-poilus")
PRINTED_ENGLISH = ("old-books-en", "misc-print (English)")
ALLOWED_POINTS = 0.5
PLAIN = str.maketrans("‘’‚‛“”„‟‐‑‒–—―", "''''\"\"\"\"------", "^⟦⟧\u00ad")

_models: dict[tuple[str, str], Any] = {}


@dataclass(frozen=True)
class Names:
    true: int = 0
    found: int = 0
    true_met: int = 0
    found_right: int = 0


@dataclass(frozen=True)
class Score:
    """One page. Edit distances and lengths in characters, times in seconds."""

    collection: str
    page: str
    length: int
    ours: int
    bare: int
    lines_seconds: float
    read_seconds: float
    bare_seconds: float
    names_on_truth: Names | None
    names_on_read: Names | None


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    options.add_argument("--limit", type=int, help="pages of each collection")
    options.add_argument("--only", help="one collection")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--json", type=Path, help="write every page's figures there")
    given = options.parse_args()
    if not given.folder.is_dir():
        print(f"There is no folder {given.folder}; name one that holds pages.", file=sys.stderr)
        return 2
    pages = list(_pages(given.folder, given.limit, given.only))
    if not pages:
        print(f"No page in {given.folder} has a true text (.gt.txt) beside it.", file=sys.stderr)
        return 2
    scores: list[Score] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.workers, mp_context=context) as pool:
        for score in pool.map(measure, *zip(*pages, strict=True)):
            scores.append(score)
            print(f"\r{len(scores)} of {len(pages)} pages", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if given.json:
        given.json.write_text(json.dumps([asdict(score) for score in scores], indent=1))
    return report(scores)


def _pages(folder: Path, limit: int | None, only: str | None) -> Iterator[tuple[str, Path]]:
    groups: dict[str, list[Path]] = {}
    for truth in sorted(folder.rglob("*.gt.txt")):
        stem = truth.name.removesuffix(".gt.txt")
        picture = next(
            (truth.with_name(stem + suffix) for suffix in SUFFIXES
             if truth.with_name(stem + suffix).is_file()),
            None,
        )  # fmt: skip
        if picture is None:
            continue
        collection = picture.relative_to(folder).parts[0]
        if collection == "misc-print":
            language = "other" if stem == "eurotext" else "English"
            collection = f"misc-print ({language})"
        if only is None or only in collection:
            groups.setdefault(collection, []).append(picture)
    for collection, pictures in groups.items():
        # Evenly out of the whole collection, which begins with title pages.
        every = max(1, len(pictures) // limit) if limit else 1
        for picture in pictures[::every][:limit]:
            yield collection, picture


def measure(collection: str, picture: Path) -> Score:
    frame = 0 if picture.suffix == ".pdf" else None
    sha256 = hashlib.sha256(picture.read_bytes()).hexdigest()
    page = Page(picture.name, sha256, picture.name, frame, picture.read_bytes)
    stem = picture.name.removesuffix(picture.suffix)
    truth = picture.with_name(stem + ".gt.txt").read_text("utf-8")
    page.image.load()
    started = time.perf_counter()
    found = _run("lines", page)
    between = time.perf_counter()
    read = _run("read", page, {"lines": found})
    ended = time.perf_counter()
    bare_text, bare_seconds = _bare(page)
    listed = picture.with_name(stem + ".names.json")
    language = "fr" if collection in FRENCH else "en"
    persons = json.loads(listed.read_text("utf-8"))["persons"] if listed.is_file() else None
    wanted = tidy(truth)
    return Score(
        collection,
        picture.name,
        len(wanted),
        distance(wanted, tidy(read["text"])),
        distance(wanted, tidy(bare_text)),
        between - started,
        ended - between,
        bare_seconds,
        None if persons is None else _names(page, truth, persons, language),
        None if persons is None else _names(page, read["text"], persons, language),
    )


def _run(
    name: str, page: Page, needs: dict[str, Any] | None = None, language: str = ""
) -> dict[str, Any]:
    operation = load_operation(name)
    params = {"language": language} if language else {}
    if operation.setup is not None and (name, language) not in _models:
        _models[name, language] = operation.setup(params)
    return operation(page, Context(name, params, needs or {}, _models.get((name, language))))


def _bare(page: Page) -> tuple[str, float]:
    if ("bare", "") not in _models:
        from rapidocr import RapidOCR

        _models["bare", ""] = RapidOCR(
            params={
                "Global.log_level": "error",
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )
    picture = pixels(page.image)
    started = time.perf_counter()
    result = _models["bare", ""](picture)
    return "\n".join(getattr(result, "txts", None) or ()), time.perf_counter() - started


def _names(page: Page, text: str, persons: list[str], language: str) -> Names:
    value = _run("names", page, {"read": {"text": text}}, language)
    found = {tidy(name["text"]).casefold() for name in value["names"]}
    true = {tidy(name).casefold() for name in persons}
    return Names(
        len(true),
        len(found),
        sum(any(_same(name, other) for other in found) for name in true),
        sum(any(_same(name, other) for other in true) for name in found),
    )


def _same(one: str, other: str) -> bool:
    """Whether one name is the other or a part of it made of whole words."""
    return f" {one} " in f" {other} " or f" {other} " in f" {one} "


def tidy(text: str) -> str:
    # Old German umlauts carry a small e, which is the same letter.
    plain = unicodedata.normalize("NFKC", text.translate(PLAIN).replace("\u0364", "\u0308"))
    return " ".join(re.sub(r"-\s*\n\s*", "", plain).split())


def distance(one: str, other: str) -> int:
    """The edit distance, bit-parallel (Myers 1999; Hyyrö 2003): one step a character."""
    if not one:
        return len(other)
    places: dict[str, int] = {}
    for index, char in enumerate(one):
        places[char] = places.get(char, 0) | 1 << index
    full, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    plus, minus, score = full, 0, len(one)
    for char in other:
        equal = places.get(char, 0)
        vertical = equal | minus
        horizontal = (((equal & plus) + plus) ^ plus) | equal
        up = minus | (~(horizontal | plus) & full)
        down = plus & horizontal
        score += bool(up & last) - bool(down & last)
        up = ((up << 1) | 1) & full
        down = (down << 1) & full
        plus = down | (~(vertical | up) & full)
        minus = up & vertical
    return score


def report(scores: list[Score]) -> int:
    print(
        f"{'collection':24} {'pages':>5} {'wrong %':>8} {'bare %':>8} {'lines s':>8} {'read s':>7} "
        f"{'bare s':>7} {'names in truth':>16} {'names in read':>16}"
    )
    over: list[str] = []
    for collection in dict.fromkeys(score.collection for score in scores):
        own = [score for score in scores if score.collection == collection]
        length = sum(score.length for score in own) / 100 or 1
        ours = sum(score.ours for score in own) / length
        bare = sum(score.bare for score in own) / length
        print(
            f"{collection:24} {len(own):5} {ours:8.2f} {bare:8.2f} "
            f"{_mean(score.lines_seconds for score in own):8.2f} "
            f"{_mean(score.read_seconds for score in own):7.2f} "
            f"{_mean(score.bare_seconds for score in own):7.2f} "
            f"{_shown(score.names_on_truth for score in own):>16} "
            f"{_shown(score.names_on_read for score in own):>16}"
        )
        if collection in PRINTED_ENGLISH and ours > bare + ALLOWED_POINTS:
            over.append(f"{collection}: {ours:.2f} % wrong, the bare engine {bare:.2f} %")
    print("names: recall / precision in % of distinct persons; a part of a name counts as found")
    for line in over:
        print(f"More than {ALLOWED_POINTS} points over the bare engine: {line}", file=sys.stderr)
    return 1 if over else 0


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _shown(counts: Iterable[Names | None]) -> str:
    known = [count for count in counts if count is not None]
    true, found = sum(count.true for count in known), sum(count.found for count in known)
    if not true:
        return ""
    recall = 100 * sum(count.true_met for count in known) / true
    precision = 100 * sum(count.found_right for count in known) / found if found else 0.0
    return f"{recall:.0f} / {precision:.0f}"


if __name__ == "__main__":
    sys.exit(main())

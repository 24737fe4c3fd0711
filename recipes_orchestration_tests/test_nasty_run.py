"""A whole recipe over the nasty folder beside good pages: what lands, what is held, and why."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.discover import Discovered
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import PageState
from recipes_orchestration.engine.status import iter_views
from recipes_orchestration.ledger.pages import BatchPage
from recipes_orchestration.pages.naming import name_to_bytes
from recipes_orchestration.stages import stages_of

from .archive import find_pages, make_archive
from .test_nasty_pages import MAKER, PAGES, expectation

pytestmark = pytest.mark.slow

GOOD = [f"good/p{number}.png" for number in range(1, 41)]
# What a person cannot be asked to understand: names of Python's classes, addresses, numbers of C.
PROGRAMMER_WORDS = re.compile(
    r"\b\w+(Error|Exception|Warning)\b|Traceback|\[Errno|<class|0x[0-9a-f]{4}|\bPIL\b|NoneType"
)


@dataclass
class Ran:
    """`rows` are the ledger's pages and `states` how each stands at each step, by page id.

    `values` are what landed and `words` why a page is held, by step and page id. `lost` are the
    open tasks left behind and `again` the rows that a second run landed.
    """

    found: Discovered
    expected: dict[bytes, str]
    rows: dict[str, BatchPage] = field(default_factory=dict[str, BatchPage])
    states: dict[str, list[PageState]] = field(default_factory=dict[str, list[PageState]])
    values: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    words: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    complete: set[str] = field(default_factory=set[str])
    lost: int = 0
    again: list[int] = field(default_factory=list[int])

    def of_file(self, path: bytes) -> list[str]:
        """The page ids of an entry of the nasty folder."""
        return [id for id, row in self.rows.items() if name_to_bytes(row.file) == b"nasty/" + path]

    def reason(self, path: str) -> str:
        (page_id,) = self.of_file(path.encode())
        assert self.words["size", page_id] == self.words["area", page_id]
        return self.words["size", page_id]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    if not MAKER.exists():
        pytest.skip("the maker of the nasty folder lies beside the project only")
    folder = tmp_path_factory.mktemp("nasty-run")
    archive = make_archive(folder / "project", GOOD)
    expected = make_nasty(folder, archive.pages / "nasty")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RECIPES_PROJECT", "RECIPES_LEDGER_URL"):
            patch.delenv(name, raising=False)
        patch.setattr(sys, "path", list(sys.path))
        with open_engine(archive.project()) as engine:
            ran = Ran(find_pages(engine), expected)
            run_all(engine, [])
            read_back(engine, ran)
            run_all(engine, ran.again)
    return ran


def make_nasty(folder: Path, out: Path) -> dict[bytes, str]:
    base = Image.new("RGB", (850, 1200), "white")
    for line in range(40):
        ImageDraw.Draw(base).rectangle((80, 60 + line * 26, 700, 72 + line * 26), "black")
    base.save(folder / "base.png")
    subprocess.run(
        [sys.executable, MAKER, folder / "base.png", out], check=True, capture_output=True
    )
    expected: dict[bytes, str] = {}
    for line in (out / "EXPECT.tsv").read_bytes().rstrip(b"\n").split(b"\n"):
        path, _, should = line.split(b"\t")
        raw = path.decode("unicode_escape").encode("latin-1")
        expected[raw] = expectation(raw, should.decode())
    return expected


def run_all(engine: Engine, landed: list[int]) -> None:
    for batch in engine.ledger.pages.batches("letters"):
        for stage in stages_of(engine.project.recipe("measure")):
            run_stage(engine, stage, batch.key, on_landed=landed.append)


def read_back(engine: Engine, ran: Ran) -> None:
    for batch, view in iter_views(engine, engine.project.recipe("measure")):
        ran.rows.update(view.pages)
        for name, step in view.steps.items():
            for page_id, state in step.states.items():
                ran.states.setdefault(page_id, []).append(state)
            ran.words.update({(name, held.page_id): held.words for held in step.held})
            found = engine.library.values("measure", name, batch.key, list(step.keys.items()))
            ran.values.update({(name, page_id): value for (page_id, _), value in found.items()})
        if all(step.complete(0.05) for step in view.steps.values()):
            ran.complete.add(batch.key)
    ran.lost = len(engine.ledger.tasks.open())


def outcome(ran: Ran, path: bytes) -> str:
    """What became of an entry, as the words of the table; anything mixed is told as it is."""
    pages = ran.of_file(path)
    if not pages:
        return "passed over"
    states = {state for page_id in pages for state in ran.states[page_id]}
    if states == {PageState.HELD}:
        return "held"
    if states == {PageState.LANDED} and len(pages) == PAGES.get(path, 1):
        return "read"
    return f"{len(pages)} pages: {sorted(states)}"


def test_the_run_ends_and_every_page_has_landed_or_is_held(ran: Ran):
    unsettled = {
        page_id: states
        for page_id, states in ran.states.items()
        if len(states) != 2 or set(states) not in ({PageState.LANDED}, {PageState.HELD})
    }
    assert unsettled == {}
    assert ran.lost == 0
    assert ran.found.cursor is None
    assert ran.found.unlisted == ()
    assert len(ran.rows) == ran.found.new


def test_every_good_page_lands_and_its_batch_is_complete(ran: Ran):
    assert {page_id: ran.states[page_id] for page_id in GOOD} == {
        page_id: [PageState.LANDED] * 2 for page_id in GOOD
    }
    assert "good/0001" in ran.complete


def test_every_entry_of_the_table_is_accounted_for(ran: Ran):
    wrong: dict[bytes, tuple[str, str]] = {}
    right: Counter[str] = Counter()
    for path, kind in ran.expected.items():
        if kind == "note":
            continue
        # A folder is no page itself: it is gone into, or has nothing in it.
        became = outcome(ran, path)
        if became == ("passed over" if kind == "folder" else kind):
            right[kind] += 1
        else:
            wrong[path] = (kind, became)
    assert wrong == {}
    assert right == Counter(kind for kind in ran.expected.values() if kind != "note")
    assert right["read"] >= 105
    assert right["held"] >= 18
    assert right["passed over"] >= 18


def test_there_is_no_page_that_the_table_does_not_know(ran: Ran):
    files = {name_to_bytes(row.file) for row in ran.rows.values()}
    known = {b"nasty/" + path for path in ran.expected} | {name.encode() for name in GOOD}
    assert files - known == set()


def test_the_number_of_pages_of_each_kind_is_that_of_the_table(ran: Ran):
    states = Counter(states[0] for states in ran.states.values())
    read = [path for path, kind in ran.expected.items() if kind == "read"]
    assert states == {
        PageState.LANDED: len(GOOD) + sum(PAGES.get(path, 1) for path in read),
        PageState.HELD: sum(kind == "held" for kind in ran.expected.values()),
    }


def test_no_landed_result_is_empty(ran: Ran):
    landed = {page_id for page_id, states in ran.states.items() if states[0] is PageState.LANDED}
    assert {page_id for step, page_id in ran.values if step == "area"} == landed
    assert {page_id for step, page_id in ran.values if step == "size"} == landed
    for page_id in landed:
        size, area = ran.values["size", page_id], ran.values["area", page_id]
        assert area["area"] == size["width"] * size["height"] > 0, page_id


def test_each_reason_is_a_sentence_without_words_of_programmers(ran: Ran):
    assert len(ran.words) >= 2 * 18
    for (_, page_id), words in ran.words.items():
        assert len(words) > 20, page_id
        assert words[0].isupper(), (page_id, words)
        assert words.endswith("."), (page_id, words)
        assert "\n" not in words, (page_id, words)
        assert not PROGRAMMER_WORDS.search(words), (page_id, words)


def test_a_second_run_lands_nothing_and_keeps_no_bad_page_busy(ran: Ran):
    assert ran.again == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("broken/zero.jpg", "is empty (0 bytes)"),
        ("broken/truncated.jpg", "The JPEG is cut off"),
        ("broken/html-404.jpg", "is a web page (HTML), no picture"),
        ("broken/dangling.jpg", "a link to a file that is not there"),
        ("broken/zip-named.tif", "is a ZIP archive, no picture"),
        ("hard/bomb-60000x60000.png", "3,600,000,000 pixels, more than the 150,000,000"),
        ("pdf/invalid.pdf", "The PDF is damaged, cut off or empty"),
        ("pdf/encrypted-user-password.pdf", "password"),
    ],
)
def test_the_reason_says_what_is_wrong_with_the_file(ran: Ran, path: str, says: str):
    if path.encode() not in ran.expected:
        pytest.skip("the maker left this entry out: it needs a tool that is not installed")
    assert says in ran.reason(path)

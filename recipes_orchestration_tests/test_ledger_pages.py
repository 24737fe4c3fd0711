from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recipes_orchestration.errors import LedgerError
from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.ledger.pages import BatchPage, BatchRow, FoundPage, PageRow


def found(page_id: str, sha256: str | None = None, **changes: object) -> FoundPage:
    values: dict[str, object] = {
        "page_id": page_id,
        "file": page_id.partition("#")[0],
        "frame": None,
        "sha256": sha256 or f"sha of {page_id}",
        "size": 5_000_000_000,
        "stamp": "1",
        "problem": None,
    }
    return FoundPage(**{**values, **changes})  # pyright: ignore[reportArgumentType]


def record(
    ledger: Ledger,
    folder: str,
    pages: list[FoundPage],
    *batches: tuple[int, list[str]],
    gone: tuple[str, ...] = (),
    source: str = "letters",
) -> list[str]:
    return ledger.pages.record(source, folder, upsert=pages, gone=gone, new_batches=batches)


def test_a_recorded_page_comes_back_as_it_was_found(ledger: Ledger) -> None:
    page = found(
        "a/p1.pdf#0002", "ff", frame=1, problem="not a \N{LATIN SMALL LETTER E WITH ACUTE} page"
    )
    assert record(ledger, "a", [page], (1, ["a/p1.pdf#0002"])) == ["a/0001"]
    assert ledger.pages.rows_of_folder("letters", "a") == [
        PageRow(
            page_id="a/p1.pdf#0002",
            file="a/p1.pdf",
            frame=1,
            folder="a",
            batch="a/0001",
            position=0,
            sha256="ff",
            size=5_000_000_000,
            stamp="1",
            problem="not a é page",
            gone=False,
        )
    ]
    assert ledger.pages.in_batch("letters", "a/0001") == [
        BatchPage("a/p1.pdf#0002", "a/p1.pdf", 1, "ff", "not a é page", gone=False)
    ]
    assert ledger.pages.batch("letters", "a/0001") == BatchRow(
        "letters", "a/0001", "a", 1, pages=1, gone=0, problems=1
    )
    assert ledger.pages.batch("other", "a/0001") is None


def test_an_empty_ledger_answers_with_nothing(ledger: Ledger) -> None:
    assert ledger.pages.folders("letters") == []
    assert ledger.pages.batches("letters") == []
    assert ledger.pages.in_batch("letters", "a/0001") == []
    assert list(ledger.pages.iter_batches("letters")) == []
    assert list(ledger.pages.stamps_of_source("letters")) == []
    assert ledger.pages.twins([], beside=("letters", "a/0001")) == {}
    assert record(ledger, "a", []) == []


def test_pages_keep_the_order_they_were_cut_in(ledger: Ledger) -> None:
    ids = ["a/p2", "a/p10", "a/p1"]
    record(ledger, "a", [found(page_id) for page_id in sorted(ids)], (1, ids))
    assert [row.page_id for row in ledger.pages.in_batch("letters", "a/0001")] == ids
    seats = {row.page_id: row.position for row in ledger.pages.rows_of_folder("letters", "a")}
    assert [seats[page_id] for page_id in ids] == [0, 1, 2]


def test_pages_that_another_process_wrote_are_read_anew(ledger: Ledger, ledger_url: str) -> None:
    record(ledger, "a", [found("a/1"), found("a/2")], (1, ["a/1", "a/2"]))
    assert len(ledger.pages.in_batch("letters", "a/0001")) == 2
    with open_ledger(ledger_url) as other:
        record(other, "a", [found("a/1", "new bytes", stamp="2")])
        seen = [row.sha256 for row in ledger.pages.in_batch("letters", "a/0001")]
        assert "new bytes" in seen
        record(other, "a", [], gone=("a/2",))
    assert [row.gone for row in ledger.pages.in_batch("letters", "a/0001")] == [False, True]


def test_pages_that_were_written_while_they_were_read_are_read_anew(
    ledger: Ledger, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(ledger, "a", [found("a/1")], (1, ["a/1"]))
    versions = iter([True])
    scalar = sa.Connection.scalar

    def written_between(connection: sa.Connection, *given: Any, **named: Any) -> Any:
        version = scalar(connection, *given, **named)
        if next(versions, False):
            with open_ledger(ledger_url) as other:
                record(other, "a", [found("a/1", "new bytes", stamp="2")])
                monkeypatch.undo()
        return version

    monkeypatch.setattr(sa.Connection, "scalar", written_between)
    ledger.pages.in_batch("letters", "a/0001")
    assert [row.sha256 for row in ledger.pages.in_batch("letters", "a/0001")] == ["new bytes"]


def test_a_page_that_is_gone_and_back_keeps_its_batch_and_position(ledger: Ledger) -> None:
    record(ledger, "a", [found("a/1"), found("a/2")], (1, ["a/1", "a/2"]))
    record(ledger, "a", [], gone=("a/2",))
    assert [row.gone for row in ledger.pages.in_batch("letters", "a/0001")] == [False, True]
    assert ledger.pages.batches("letters") == [
        BatchRow("letters", "a/0001", "a", 1, pages=1, gone=1, problems=0)
    ]
    assert ledger.pages.stamps("letters", "a") == {"a/1": "1"}
    assert list(ledger.pages.stamps_of_source("letters")) == [("a", "a/1", "1")]
    record(ledger, "a", [found("a/2", "new bytes", stamp="2")])
    row = ledger.pages.rows_of_folder("letters", "a")[1]
    assert (row.gone, row.batch, row.position, row.sha256) == (False, "a/0001", 1, "new bytes")


def test_a_page_recorded_without_a_batch_is_cut_later(ledger: Ledger) -> None:
    record(ledger, "a", [found("a/1")])
    assert [(row.batch, row.position) for row in ledger.pages.rows_of_folder("letters", "a")] == [
        (None, None)
    ]
    assert record(ledger, "a", [found("a/2")], (1, ["a/1", "a/2"])) == ["a/0001"]
    rows = ledger.pages.rows_of_folder("letters", "a")
    assert [(row.batch, row.position) for row in rows] == [("a/0001", 0), ("a/0001", 1)]


def test_the_slower_of_two_equal_discoveries_cuts_nothing_again(ledger: Ledger) -> None:
    pages = [found("a/1"), found("a/2")]
    plan = (1, ["a/1", "a/2"])
    assert record(ledger, "a", pages, plan) == ["a/0001"]
    assert record(ledger, "a", pages, plan) == []
    assert [row.pages for row in ledger.pages.batches("letters")] == [2]


def test_pages_that_only_the_slower_discovery_saw_get_the_next_number(ledger: Ledger) -> None:
    record(ledger, "a", [found("a/1")], (1, ["a/1"]))
    assert record(ledger, "a", [found("a/1"), found("a/2")], (1, ["a/1", "a/2"])) == ["a/0002"]
    assert [row.page_id for row in ledger.pages.in_batch("letters", "a/0002")] == ["a/2"]


def test_a_batch_of_an_unknown_page_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"a/ghost.*record it"):
        record(ledger, "a", [found("a/1")], (1, ["a/1", "a/ghost"]))
    assert ledger.pages.batches("letters") == []
    assert ledger.pages.rows_of_folder("letters", "a") == []


def test_a_page_named_twice_in_one_call_is_one_page(ledger: Ledger) -> None:
    record(ledger, "a", [found("a/1", "old"), found("a/1", "new")], (1, ["a/1", "a/1"]))
    assert [row.sha256 for row in ledger.pages.in_batch("letters", "a/0001")] == ["new"]


def test_a_folder_stands_for_its_subfolders_and_for_no_neighbour(ledger: Ledger) -> None:
    for folder in (".", "a", "a/b", "a%", "ab", "A", "a/b_c", "a-b"):
        record(ledger, folder, [found(f"{folder}/1")], (1, [f"{folder}/1"]))

    def below(folder: str | None) -> list[str]:
        listed = [batch.folder for batch in ledger.pages.batches("letters", folder)]
        assert [batch.folder for batch, _ in ledger.pages.iter_batches("letters", folder)] == listed
        return listed

    assert below("a") == ["a", "a/b", "a/b_c"]
    assert below("a%") == ["a%"]
    assert below("a/b") == ["a/b"]
    assert below("A") == ["A"]
    assert below(".") == below(None)
    # bytewise on both databases
    assert below(None) == sorted([".", "a", "a/b", "a%", "ab", "A", "a/b_c", "a-b"])
    assert ledger.pages.folders("letters") == below(None)


def test_sources_do_not_see_each_other(ledger: Ledger) -> None:
    record(ledger, "a", [found("a/1")], (1, ["a/1"]), source="one")
    record(ledger, "a", [found("a/1")], (1, ["a/1"]), source="two")
    assert [source for source, _ in ledger.pages.find("a/1")] == ["one", "two"]
    assert [source for source, _ in ledger.pages.find("a/1", "two")] == ["two"]
    assert ledger.pages.find("a/1", "three") == []
    assert len(ledger.pages.batches("one")) == 1


def test_twins_are_equal_pages_in_other_batches(ledger: Ledger) -> None:
    record(ledger, "a", [found("a/1", "x"), found("a/2", "x")], (1, ["a/1"]), (2, ["a/2"]))
    record(ledger, "b", [found("b/1", "x"), found("b/2", "y")], (1, ["b/1", "b/2"]))
    record(ledger, "c", [found("c/1", "x")])  # in no batch yet
    record(ledger, "a", [found("a/1", "x")], (1, ["a/1"]), source="other")
    record(ledger, "b", [], gone=("b/1",))
    assert ledger.pages.twins(["x", "z"], beside=("letters", "a/0001")) == {
        "x": [
            ("letters", "a/0002", "a/2"),
            ("letters", "b/0001", "b/1"),
            ("other", "a/0001", "a/1"),
        ]
    }
    assert ledger.pages.twins(["y"], beside=("letters", "b/0001")) == {}


def test_batches_with_their_pages_stream_in_order(ledger: Ledger) -> None:
    expected: list[tuple[str, list[str]]] = []
    for folder in ("a", "b"):
        for number in range(1, 8):
            ids = [f"{folder}/{number:02}-{page:04}" for page in range(900)]
            record(ledger, folder, [found(page_id) for page_id in ids], (number, ids))
            expected.append((f"{folder}/{number:04}", ids))
    seen = [
        (batch.key, [row.page_id for row in rows])
        for batch, rows in ledger.pages.iter_batches("letters")
    ]
    assert seen == expected
    stamps = list(ledger.pages.stamps_of_source("letters"))
    assert stamps == [(page.partition("/")[0], page, "1") for _, ids in expected for page in ids]
    assert len(ledger.pages.stamps("letters", "b")) == 7 * 900


def test_a_file_of_several_pages_has_one_stamp(ledger: Ledger) -> None:
    pages = [found(f"a/{name}#{frame:04}") for frame in (1, 2, 3) for name in ("p.pdf", "q.pdf")]
    record(ledger, "a", pages)
    assert list(ledger.pages.stamps_of_source("letters")) == [
        ("a", "a/p.pdf", "1"),
        ("a", "a/q.pdf", "1"),
    ]


def test_the_ledger_can_be_written_while_its_stamps_are_streamed(ledger: Ledger) -> None:
    record(ledger, "a", [found(f"a/{number:05}") for number in range(5000)])
    stamps = ledger.pages.stamps_of_source("letters")
    assert next(stamps) == ("a", "a/00000", "1")
    record(ledger, "b", [found("b/1")])
    assert len(list(stamps)) in (4999, 5000)


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(names, min_size=1, max_size=5, unique=True), names)
def test_every_name_comes_back_as_it_went_in(ledger: Ledger, pages: list[str], folder: str) -> None:
    record(ledger, folder, [found(page, stamp=page) for page in pages], source=folder)
    rows = ledger.pages.rows_of_folder(folder, folder)
    assert set(pages) <= {row.page_id for row in rows}
    assert all(ledger.pages.find(page, folder)[0][1].stamp == page for page in pages)

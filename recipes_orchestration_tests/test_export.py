"""Exports say what landed, whole, and nowhere but in their folder."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import LibraryError, NotFound, RecipesError
from recipes_orchestration.library import Library, Result
from recipes_orchestration.library.export import Exported, export
from recipes_orchestration.library.export_names import PageNames
from recipes_orchestration.recipe import page_key

from .landed_results import NOON, RECIPE, all_files, batch_of, landed, lines_value, row, sha

NASTY = (
    "../../x.jpg",
    "/etc/passwd",
    "a/../../b.jpg",
    "=cmd|' /C calc'!A0.jpg",
    "a b/ü\u2028😀\uf7e9.jpg",
    "a b/tab\tnew\nline\r.png",
    'q"uo,te.jpg',
    "p.pdf#0003",
    "p.pdf#0012",
    "\x00.jpg",
    "CON/nul.tif",
    "c:\\windows\\x.jpg",
    "trailing. /dot.",
    "x" * 240 + ".jpg",
    "x" * 240 + ".png",
    "~/home.jpg",
)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_jsonl_gives_names_and_values_back_byte_for_byte(tmp_path: Path) -> None:
    values = {page: {"text": f"\u2028=1+1 of {page} \x85"} for page in NASTY}
    library = landed(tmp_path, "read", values)
    out = tmp_path / "deep" / "out.jsonl"
    done = export(library, RECIPE, [batch_of(NASTY)], ["read"], "jsonl", str(out))
    assert done == Exported(str(out), pages=len(NASTY), written=len(NASTY))
    rows = read_jsonl(out)
    assert [each["page_id"] for each in rows] == list(NASTY)
    assert {each["page_id"]: each["value"] for each in rows} == values
    # Programs that cut lines where Unicode allows it see as many lines as there are rows.
    assert len(out.read_text("utf-8").splitlines()) == len(NASTY)


def test_a_jsonl_row_has_every_column(tmp_path: Path) -> None:
    library = Library(str(tmp_path / "library"))
    page = "a b/p.jpg"
    full = row(
        page, "read", {"text": "x"}, model="m", tokens_in=3, tokens_out=4, cost_usd=Decimal("0.5")
    )
    library.land("letters", "read", "f/0001", "t1", None, [full])
    out = tmp_path / "out.jsonl"
    export(library, RECIPE, [batch_of([page])], ["read"], "jsonl", str(out))
    assert read_jsonl(out) == [
        {
            "page_id": page,
            "folder": "a b",
            "step": "read",
            "key": full.key,
            "model": "m",
            "tokens_in": 3,
            "tokens_out": 4,
            "cost_usd": "0.5",
            "seconds": 0.5,
            "task": "t1",
            "landed_at": "2026-03-01T12:00:00+00:00",
            "tokens_cached": None,
            "price": None,
            "note": None,
            "value": {"text": "x"},
        }
    ]


def test_parquet_gives_names_back_and_pandas_reads_it(tmp_path: Path) -> None:
    library = landed(tmp_path, "read", {page: {"text": page} for page in NASTY})
    out = tmp_path / "out.parquet"
    export(library, RECIPE, [batch_of(NASTY)], ["read"], "parquet", str(out))
    assert pq.read_table(out).column("page_id").to_pylist() == list(NASTY)
    frame = pd.read_parquet(out)
    assert list(frame["page_id"]) == list(NASTY)
    assert [json.loads(value)["text"] for value in frame["value"]] == list(NASTY)
    assert set(frame["step"]) == {"read"}


def test_csv_is_read_back_by_others_and_holds_no_formula(tmp_path: Path) -> None:
    starts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\n=x", "＝1", "plain", "a=b", "'q", ""]
    values = {f"{start}/p{n}.jpg": {"text": start} for n, start in enumerate(starts)}
    library = landed(tmp_path, "read", values)
    out = tmp_path / "out.csv"
    export(library, RECIPE, [batch_of(values)], ["read"], "csv", str(out))
    rows = list(csv.DictReader(io.StringIO(out.read_bytes().decode(), newline="")))
    for given_text, (page, each) in zip(starts, zip(values, rows, strict=True), strict=True):
        guard = "'" if given_text and given_text[0] in "=+-@\t\r\n＝" else ""
        assert each["text"] == guard + given_text
        assert each["page_id"] == guard + page
        assert json.loads(each["value"]) == {"text": given_text}
    for each in rows:
        assert not any(cell[:1] in tuple("=+-@\t\r") for cell in each.values() if cell)
    assert out.read_bytes().endswith(b"\r\n")
    frame = pd.read_csv(out, keep_default_na=False)
    assert list(frame["seconds"]) == [0.5] * len(starts)


@pytest.mark.parametrize("format", ["text", "page-xml"])
def test_no_page_name_leaves_the_folder_or_overwrites_another(tmp_path: Path, format: str) -> None:
    pages = [*NASTY, "P.jpg", "p.jpg", "p.JPG", "p.png", "p", "É.jpg", "E\u0301.jpg", "A/x", "a/x",
             "p.jpg.txt/inside.jpg", "p.jpg.xml/inside.jpg"]  # fmt: skip
    values = {page: lines_value(page) for page in pages}
    library = landed(tmp_path, "read", values)
    before = all_files(tmp_path)
    out = tmp_path / "one" / "two" / "out"
    done = export(library, RECIPE, [batch_of(pages)], ["read"], format, str(out))
    files = all_files(out)
    outside = set(all_files(tmp_path)) - set(before) - {f"one/two/out/{name}" for name in files}
    assert outside == set()
    assert done.written == len(files) == len(pages)
    if format == "text":
        assert sorted(files.values()) == sorted(f"{page}\n".encode() for page in pages)
    folded = {name.casefold() for name in files}
    assert len(folded) == len(files)
    for name in files:
        assert all(len(part.encode()) <= 255 and part not in ("", ".", "..")
                   for part in name.split("/"))  # fmt: skip
        assert not re.search(r'[\x00-\x1f\\:*?"<>|]', name)


def test_ordinary_text_files_mirror_the_pages(tmp_path: Path) -> None:
    pages = {"a b/p1.jpg": "One", "a b/p.pdf#0003": "Drei\n", "Über/ß.tif": "", "top.png": "x\ny"}
    library = landed(tmp_path, "read", {page: {"text": text} for page, text in pages.items()})
    out = tmp_path / "out"
    export(library, RECIPE, [batch_of(pages)], ["read"], "text", str(out))
    assert all_files(out) == {
        "a b/p1.jpg.txt": b"One\n",
        "a b/p.pdf#0003.txt": b"Drei\n",
        "Über/ß.tif.txt": b"",
        "top.png.txt": b"x\ny\n",
    }


def test_several_steps_have_a_text_file_each(tmp_path: Path) -> None:
    library = landed(tmp_path, "read", {"p.jpg": {"text": "hello"}})
    landed(tmp_path, "embed", {"p.jpg": {"model": "m", "vector": [1.0]}})
    out = tmp_path / "out"
    done = export(library, RECIPE, [batch_of(["p.jpg", "q.jpg"])], ["read", "embed"], "text",
                  str(out))  # fmt: skip
    files = all_files(out)
    assert files["p.jpg.read.txt"] == b"hello\n"
    assert json.loads(files["p.jpg.embed.txt"]) == {"model": "m", "vector": [1.0]}
    assert done == Exported(str(out), pages=2, written=2, missing=2)


@given(st.lists(st.text(min_size=1, max_size=30), max_size=12, unique=True))
def test_any_page_ids_get_distinct_paths_inside(pages: list[str]) -> None:
    pages.sort(key=lambda page: page.rpartition("/")[0])
    names = PageNames(".txt")
    paths = [names.path(page) for page in pages]
    assert len({path.casefold() for path in paths}) == len(pages)
    for path in paths:
        assert path.endswith(".txt")
        assert not {"", ".", ".."} & set(path.split("/"))
        path.encode()
        assert "\x00" not in path


def test_only_results_of_the_present_page_and_recipe_are_exported(tmp_path: Path) -> None:
    library = landed(tmp_path, "read", {"p.jpg": {"text": "now"}, "q.jpg": {"text": "q"}})
    old = Result("p.jpg", page_key(RECIPE.fingerprint("read"), "old bytes"), {"text": "before"},
                 0.1, "t0", NOON)  # fmt: skip
    library.land("letters", "read", "f/0001", "t0", None, [old])
    pages: dict[str, str | None] = {"p.jpg": sha("p.jpg"), "q.jpg": "changed", "broken.jpg": None}
    out = tmp_path / "out.jsonl"
    done = export(library, RECIPE, [("f/0001", pages)], ["read"], "jsonl", str(out))
    assert [each["value"]["text"] for each in read_jsonl(out)] == ["now"]
    assert done == Exported(str(out), pages=3, written=1, missing=2)


def test_rows_of_many_batches_and_steps_come_in_order(tmp_path: Path) -> None:
    library = Library(str(tmp_path / "library"))
    batches: list[tuple[str, dict[str, str | None]]] = []
    for number in range(1, 6):
        pages = [f"f/p{number}-{n}.jpg" for n in (2, 1, 3)]
        for step in ("read", "embed"):
            landed(tmp_path, step, dict.fromkeys(pages, step), f"f/{number:04d}")
        batches.append(batch_of(pages, f"f/{number:04d}"))
    expected = [
        (page, step) for _, pages in batches for step in ("embed", "read") for page in pages
    ]
    for format in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"out.{format}"
        done = export(library, RECIPE, iter(batches), ["embed", "read"], format, str(out))
        assert done.written == 30
        frame = {
            "jsonl": lambda path: pd.DataFrame(read_jsonl(path)),
            "csv": pd.read_csv,
            "parquet": pd.read_parquet,
        }[format](out)
        assert list(zip(frame["page_id"], frame["step"], strict=True)) == expected


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_an_export_that_fails_leaves_the_old_file_and_no_litter(
    tmp_path: Path, format: str
) -> None:
    library = landed(tmp_path, "read", {"p.jpg": {"text": "x"}})
    out = tmp_path / "exports" / "out"
    out.parent.mkdir()
    out.write_bytes(b"old")

    def batches() -> Iterator[tuple[str, dict[str, str | None]]]:
        yield batch_of(["p.jpg"])
        raise LibraryError("the ledger went away")

    with pytest.raises(LibraryError, match="went away"):
        export(library, RECIPE, batches(), ["read"], format, str(out))
    assert all_files(out.parent) == {"out": b"old"}


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_an_export_of_nothing_is_an_empty_file_of_its_format(tmp_path: Path, format: str) -> None:
    out = tmp_path / f"out.{format}"
    done = export(Library(str(tmp_path / "none")), RECIPE, [batch_of(["p"])], ["read"], format,
                  str(out))  # fmt: skip
    assert done == Exported(str(out), pages=1, missing=1)
    if format == "parquet":
        assert pq.read_table(out).num_rows == 0
    if format == "csv":
        assert out.read_bytes().startswith(b"page_id,folder,step,key,text,value,")


_fresh = itertools.count()


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_one_file_goes_to_a_url(tmp_path: Path, format: str) -> None:
    library = landed(tmp_path, "read", {"p.jpg": {"text": "x"}})
    url = f"memory://exports-{next(_fresh)}/out.{format}"
    export(library, RECIPE, [batch_of(["p.jpg"])], ["read"], format, url)
    local = tmp_path / "out"
    export(library, RECIPE, [batch_of(["p.jpg"])], ["read"], format, str(local))
    with fsspec.open(url, "rb") as stream:
        assert stream.read() == local.read_bytes()  # type: ignore[union-attr]


def test_a_folder_of_files_goes_to_a_url(tmp_path: Path) -> None:
    library = landed(tmp_path, "read", {"a/p.jpg": {"text": "x"}, "../q.jpg": {"text": "y"}})
    url = f"memory://exports-{next(_fresh)}/deep"
    export(library, RECIPE, [batch_of(["a/p.jpg", "../q.jpg"])], ["read"], "text", url)
    fs, root = fsspec.url_to_fs(url)
    assert {path.removeprefix(root): fs.cat_file(path) for path in fs.find(root)} == {
        "/a/p.jpg.txt": b"x\n",
        "/%2E%2E/q.jpg.txt": b"y\n",
    }


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    with pytest.raises(NotFound, match="no export format 'xlsx'; there are text, jsonl"):
        export(library, RECIPE, [], ["read"], "xlsx", str(tmp_path / "o"))
    with pytest.raises(NotFound, match="no step 'reed'; it has lines, read, embed"):
        export(library, RECIPE, [], ["reed"], "csv", str(tmp_path / "o"))
    with pytest.raises(RecipesError, match="at least one step"):
        export(library, RECIPE, [], [], "csv", str(tmp_path / "o"))
    with pytest.raises(LibraryError, match="is a folder"):
        export(library, RECIPE, [], ["read"], "csv", str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LibraryError, match="could not be written"):
        export(library, RECIPE, [], ["read"], "csv", str(tmp_path / "file" / "o"))


@pytest.mark.parametrize("format", ["text", "jsonl"])
def test_an_unreachable_place_is_one_sentence(tmp_path: Path, format: str) -> None:
    pytest.importorskip("s3fs")
    library = landed(tmp_path, "read", {"p.jpg": {"text": "x"}})
    options = {
        "key": "a",
        "secret": "b",
        "endpoint_url": "http://127.0.0.1:9",
        "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1},
        "skip_instance_cache": True,
    }
    with pytest.raises(LibraryError, match=r"s3://bucket/out could not be written"):
        export(library, RECIPE, [batch_of(["p.jpg"])], ["read"], format, "s3://bucket/out", options)

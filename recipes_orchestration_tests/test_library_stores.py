"""The library does the same on local disk, in memory and on S3 (a real HTTP server)."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest

from recipes_orchestration.errors import LibraryError
from recipes_orchestration.library import SCHEMA, Library, Result

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BATCH = "letters:20a/0001"
_fresh = itertools.count()


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["local", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    match request.param:
        case "local":
            return str(tmp_path / "library")
        case "memory":
            return f"memory://library-{next(_fresh)}"
        case _:
            pytest.importorskip("s3fs")
            endpoint = request.getfixturevalue("s3_endpoint")
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
            monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            import boto3

            boto3.client("s3", endpoint_url=endpoint).create_bucket(
                Bucket=(bucket := f"library-{next(_fresh)}")
            )
            return f"s3://{bucket}/some/where"


@pytest.fixture
def library(url: str) -> Library:
    return Library(url)


def result(number: int, value: Any = None, **other: Any) -> Result:
    given: dict[str, Any] = {
        "page_id": f"letters a/p{number:03d}.jpg",
        "key": f"{number:032x}",
        "value": {"text": f"page {number}"} if value is None else value,
        "seconds": 0.25,
        "task": "t1",
        "landed_at": NOON,
    }
    return Result(**{**given, **other})


def land(library: Library, *results: Result, task: str = "t1", part: int | None = None) -> None:
    library.land("letters", "read", BATCH, task, part, results)


def files(library: Library) -> list[str]:
    return list(library._store.names("letters/read/letters~20a/0001"))


def pairs(*results: Result) -> set[tuple[str, str]]:
    return {(each.page_id, each.key) for each in results}


def test_what_is_landed_is_read_back_field_by_field(library: Library) -> None:
    full = result(
        1,
        {"text": "line\u2028sep \u0085 😀 \x00 é", "n": [1, 1.5, None, True], "big": 2**60},
        model="m-1",
        tokens_in=10,
        tokens_out=2**40,
        cost_usd=Decimal("0.000000125"),
    )
    bare = result(2, None)
    land(library, full, bare)
    assert library.landed("letters", "read", BATCH) == pairs(full, bare)
    assert library.rows("letters", "read", BATCH, pairs(full, bare)) == [full, bare]
    assert library.values("letters", "read", BATCH, pairs(full)) == {
        (full.page_id, full.key): full.value
    }


@pytest.mark.parametrize("value", [None, 0, "", [], {}, "text", 1.5, False])
def test_any_json_value_is_kept(library: Library, value: Any) -> None:
    one = Result("p", "k", value, 0.0, "t", NOON)
    land(library, one)
    assert library.values("letters", "read", BATCH, {("p", "k")}) == {("p", "k"): value}


def test_an_unknown_batch_is_empty_and_not_an_error(library: Library) -> None:
    assert library.landed("letters", "read", "none/0001") == set()
    assert library.table("letters", "read", "none/0001").schema.equals(SCHEMA)
    assert library.values("letters", "read", "none/0001", {("p", "k")}) == {}
    assert list(library.batches("letters", "read")) == []
    assert library.steps("letters") == []
    library.compact("letters", "read", "none/0001")


def test_landing_twice_changes_nothing(library: Library) -> None:
    first = [result(n) for n in range(5)]
    later = [result(n, landed_at=NOON + timedelta(hours=1), seconds=9.0) for n in range(5)]
    land(library, *first, part=0)
    before = library.table("letters", "read", BATCH)
    land(library, *later, part=0)
    assert library.table("letters", "read", BATCH).equals(before)
    assert len(files(library)) == 1


def test_other_results_under_a_used_name_do_not_destroy_the_first(library: Library) -> None:
    land(library, result(1), part=0)
    land(library, result(2), part=0)
    assert library.landed("letters", "read", BATCH) == pairs(result(1), result(2))


def test_of_a_pair_landed_by_two_tasks_the_earlier_counts_whatever_the_order(
    library: Library,
) -> None:
    early = result(1, "early", task="t9", landed_at=NOON)
    late = result(1, "late", task="t1", landed_at=NOON + timedelta(microseconds=1))
    land(library, late, task="t1")
    land(library, early, task="t9")
    assert library.rows("letters", "read", BATCH, pairs(early)) == [early]
    library.compact("letters", "read", BATCH)
    assert library.rows("letters", "read", BATCH, pairs(early)) == [early]


def test_of_a_pair_landed_at_the_same_moment_the_first_task_name_counts(library: Library) -> None:
    for task in ("t3", "t1", "t2"):
        land(library, result(1, task, task=task), task=task)
    assert library.values("letters", "read", BATCH, pairs(result(1))) == {
        (result(1).page_id, result(1).key): "t1"
    }


def test_the_same_page_under_another_key_is_another_row(library: Library) -> None:
    land(library, result(1), result(1, key="f" * 32))
    assert library.table("letters", "read", BATCH).num_rows == 2


def test_compact_leaves_one_file_that_reads_the_same(library: Library) -> None:
    for part in range(7):
        land(library, *(result(n, [n] * 50) for n in range(part * 3, part * 3 + 4)), part=part)
    before = library.table("letters", "read", BATCH)
    assert len(files(library)) == 7
    library.compact("letters", "read", BATCH)
    assert len(files(library)) == 1
    assert library.table("letters", "read", BATCH).equals(before)
    library.compact("letters", "read", BATCH)
    assert library.table("letters", "read", BATCH).equals(before)


def test_landing_again_after_compact_changes_nothing_that_is_read(library: Library) -> None:
    land(library, result(1), part=0)
    land(library, result(2), part=1)
    library.compact("letters", "read", BATCH)
    before = library.table("letters", "read", BATCH)
    land(library, result(1, landed_at=NOON + timedelta(days=1)), part=0)
    assert library.table("letters", "read", BATCH).equals(before)
    library.compact("letters", "read", BATCH)
    assert library.table("letters", "read", BATCH).equals(before)


def test_columns_are_read_alone(library: Library) -> None:
    land(library, result(2), result(1))
    table = library.table("letters", "read", BATCH, ["seconds", "page_id"])
    assert table.column_names == ["seconds", "page_id"]
    assert table.column("page_id").to_pylist() == [result(1).page_id, result(2).page_id]
    with pytest.raises(LibraryError, match="no column 'pages'"):
        library.table("letters", "read", BATCH, ["pages"])


def test_batches_and_steps_are_listed_with_their_keys(library: Library) -> None:
    keys = {":2E/0001", "a/0001", "a/0001/0001", "a:20b/c/0012", "x" * 230 + "/0001",
            "/".join(["deep"] * 200) + "/0002"}  # fmt: skip
    for key in keys:
        library.land("letters", "read", key, "t1", None, [result(1)])
    library.land("letters", "lines", "a/0001", "t1", None, [result(1)])
    assert sorted(library.batches("letters", "read")) == sorted(keys)
    assert library.steps("letters") == ["lines", "read"]
    assert library.recipes() == ["letters"]
    assert [key for key in keys if library.landed("letters", "read", key)] == list(keys)


def test_a_nested_batch_is_not_part_of_the_one_above(library: Library) -> None:
    library.land("letters", "read", "a/0001", "t1", None, [result(1)])
    library.land("letters", "read", "a/0001/0001", "t1", None, [result(2)])
    assert library.landed("letters", "read", "a/0001") == pairs(result(1))
    library.compact("letters", "read", "a/0001")
    assert library.landed("letters", "read", "a/0001/0001") == pairs(result(2))


def test_landed_many_gives_every_batch_in_order(library: Library) -> None:
    keys = [f"f/{n:04d}" for n in range(1, 41)]
    for number, key in enumerate(keys[::2]):
        library.land("letters", "read", key, "t1", None, [result(number)])
    seen = list(library.landed_many("letters", ["lines", "read"], keys))
    assert [key for key, _ in seen] == keys
    assert seen == [
        (key, {step: library.landed("letters", step, key) for step in ("lines", "read")})
        for key in keys
    ]


def test_a_second_library_object_sees_what_the_first_wrote(library: Library, url: str) -> None:
    other = Library(url)
    assert other.landed("letters", "read", BATCH) == set()
    land(library, result(1))
    assert other.landed("letters", "read", BATCH) == pairs(result(1))
    assert pickle.loads(pickle.dumps(library)).landed("letters", "read", BATCH) == pairs(result(1))


def test_a_damaged_file_is_named_and_never_counts_as_landed(library: Library) -> None:
    land(library, *(result(n) for n in range(50)), part=0)
    land(library, result(99), part=1)
    folder, name = "letters/read/letters~20a/0001", files(library)[0]
    whole = bytes_of(library, folder, name)
    for cut in (0, 3, len(whole) // 2, len(whole) - 1):
        library._store.put(folder, name, writing(whole[:cut]))
        for act in (library.landed, library.table, library.compact):
            with pytest.raises(LibraryError, match=name):
                act("letters", "read", BATCH)
    library._store.remove(folder, [name])
    assert library.landed("letters", "read", BATCH) == pairs(result(99))


def test_a_parquet_file_of_someone_else_is_named(library: Library) -> None:
    import pyarrow.parquet as pq

    folder = "letters/read/letters~20a/0001"
    library._store.put(
        folder, "theirs.parquet", lambda stream: pq.write_table(pa.table({"a": [1]}), stream)
    )
    with pytest.raises(LibraryError, match=r"theirs\.parquet"):
        library.landed("letters", "read", BATCH)


def test_litter_is_not_seen(library: Library) -> None:
    land(library, result(1))
    folder = "letters/read/letters~20a/0001"
    for name in (".writing-1-aa", ".x.parquet", "notes.txt", "half.parquet.tmp", "Thumbs.db"):
        library._store.put(folder, name, writing(b"PAR1 not a table"))
    library._store.put(f"{folder}/folder.parquet", "x.txt", writing(b""))
    assert library.landed("letters", "read", BATCH) == pairs(result(1))
    assert list(library.batches("letters", "read")) == [BATCH]


def test_files_carry_what_they_are(library: Library) -> None:
    land(library, result(1), part=4)
    for _, file in library._store.files(
        "letters/read/letters~20a/0001", library._store.names("letters/read/letters~20a/0001")
    ):
        kept = file.schema_arrow.metadata
        assert kept == {
            b"recipes.recipe": b"letters",
            b"recipes.step": b"read",
            b"recipes.batch": BATCH.encode(),
            b"recipes.task": b"t1",
            b"recipes.format": b"1",
        }
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_no_results_write_no_file(library: Library) -> None:
    land(library)
    assert files(library) == []


def test_the_probe_leaves_nothing(library: Library) -> None:
    library.probe()
    assert library.recipes() == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"text": "a\ud83d"}, "U\\+D83D"),
        ({"\udc00": 1}, "U\\+DC00"),
        (math.nan, "not a JSON value"),
        ({"at": NOON}, "not a JSON value"),
        (b"bytes", "not a JSON value"),
        ("x" * 32_000_001, "32.0 MB of JSON; at most 32 MB"),
    ],
)
def test_a_value_that_cannot_be_kept_is_refused_naming_the_page(
    tmp_path: Path, value: Any, words: str
) -> None:
    library = Library(str(tmp_path))
    with pytest.raises(LibraryError, match=f"p007.jpg.*{words}"):
        land(library, result(6), result(7, value))
    assert library.landed("letters", "read", BATCH) == set()


def test_a_value_just_within_the_limit_is_kept(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    value = "é" * 15_999_999
    land(library, result(1, value))
    assert list(library.values("letters", "read", BATCH, pairs(result(1))).values()) == [value]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"page_id": "a\udcff"}, "page id"),
        ({"landed_at": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"cost_usd": Decimal("NaN")}, "do not fit|not an amount"),
        ({"cost_usd": Decimal("1e30")}, "do not fit|not an amount"),
        ({"tokens_in": 2**70}, "do not fit"),
    ],
)
def test_a_result_that_cannot_be_kept_is_refused(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    with pytest.raises(LibraryError, match=words):
        land(Library(str(tmp_path)), result(1, **other))


def test_times_are_kept_in_utc(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    east = result(1, landed_at=NOON.astimezone(timezone(timedelta(hours=5))))
    land(library, east)
    (back,) = library.rows("letters", "read", BATCH, pairs(east))
    assert back.landed_at == NOON
    assert back.landed_at.tzinfo is UTC


@pytest.mark.parametrize("url", ["nosuch://x", "s3:///"])
def test_a_url_that_cannot_be_used_is_one_sentence(url: str) -> None:
    with pytest.raises(LibraryError):
        Library(url).landed("r", "s", "a/0001")


def test_an_unreachable_store_is_a_library_error() -> None:
    pytest.importorskip("s3fs")
    library = Library(
        "s3://bucket/x",
        {"key": "a", "secret": "b", "endpoint_url": "http://127.0.0.1:9",
         "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1}},
    )  # fmt: skip
    with pytest.raises(LibraryError, match="cannot be listed"):
        library.landed("r", "s", "a/0001")
    with pytest.raises(LibraryError):
        library.land("r", "s", "a/0001", "t", None, [result(1)])


def test_credentials_in_the_url_are_not_shown() -> None:
    library = Library("memory://x", {"secret": "hunter2"})
    assert "hunter2" not in repr(library)


def bytes_of(library: Library, folder: str, name: str) -> bytes:
    store: Any = library._store
    if hasattr(store, "_fs"):
        return store._fs.cat_file(f"{store._root}/{folder}/{name}")
    return (Path(store.root) / folder / name).read_bytes()


def writing(data: bytes) -> Callable[[IO[bytes]], None]:
    def write(stream: IO[bytes]) -> None:
        stream.write(data)

    return write

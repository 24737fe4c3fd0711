"""Names of pages, folders and batches: every spelling leads back to the one thing it came from."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.pages.filetypes import is_litter, is_page_file
from recipes_orchestration.pages.naming import (
    batch_key,
    decode_folder,
    encode_folder,
    folder_of,
    folder_order,
    name_from_bytes,
    name_from_text,
    name_to_bytes,
    natural_key,
    page_id_of,
    shown,
    split_batch_key,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
RAW_NAMES = st.one_of(
    st.binary(min_size=1),
    # Characters of the very range that stands for undecodable bytes.
    st.text("a\uf77f\uf780\uf7c3\uf7a9\uf7ff\uf800é", min_size=1).map(str.encode),
)


@given(RAW_NAMES)
def test_any_bytes_become_a_valid_name_and_come_back(raw: bytes) -> None:
    name = name_from_bytes(raw)
    assert name_to_bytes(name) == raw
    assert json.loads(json.dumps(name)) == name
    assert name.encode().decode() == name


@given(RAW_NAMES, RAW_NAMES)
def test_two_files_never_share_a_name(one: bytes, other: bytes) -> None:
    assert (name_from_bytes(one) == name_from_bytes(other)) == (one == other)


@given(TEXT)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    if not re.search("[\uf780-\uf7ff]", name):
        assert name_from_bytes(name.encode()) == name


def test_a_byte_that_is_no_utf8_is_kept_and_shown_escaped() -> None:
    name = name_from_bytes(b"latin1-caf\xe9.jpg")
    assert name == "latin1-caf\uf7e9.jpg"
    assert shown(name) == "latin1-caf\\xe9.jpg"


@given(st.text(st.characters(), min_size=1))
def test_names_of_stores_that_know_only_text_come_back(text: str) -> None:
    raw = name_to_bytes(name_from_text(text))
    assert raw.decode("utf-8", "surrogatepass") == text


@given(TEXT)
def test_a_folder_comes_back_from_its_encoding(folder: str) -> None:
    encoded = encode_folder(folder)
    assert re.fullmatch(r"[-a-zA-Z0-9_:/]+", encoded)
    assert decode_folder(encoded) == folder


@given(TEXT, st.integers(1, 10**9))
def test_folder_and_number_come_back_from_a_batch_key(folder: str, number: int) -> None:
    assert split_batch_key(batch_key(folder, number)) == (folder, number)


@given(st.text(":/ab01EF2E", max_size=12))
def test_nothing_but_a_batch_key_is_taken_for_one(text: str) -> None:
    try:
        folder, number = split_batch_key(text)
    except ValueError:
        return
    assert batch_key(folder, number) == text


@pytest.mark.parametrize(
    ("folder", "number", "key"),
    [
        ("letters-1891", 1, "letters-1891/0001"),
        (".", 12, ":2E/0012"),
        ("a/0001", 2, "a/0001/0002"),
        ("box 3/é", 12345, "box:203/:C3:A9/12345"),
    ],
)
def test_batch_keys_are_spelled_so(folder: str, number: int, key: str) -> None:
    assert batch_key(folder, number) == key


@pytest.mark.parametrize(
    "key", ["", "a", "a/", "/0001", "a/1", "a/0000", "a/00012", "a:2e/0001", "a:41/0001", "é/0001"]
)
def test_a_wrong_batch_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"is not"):
        split_batch_key(key)


def test_numbers_in_names_are_sorted_as_numbers() -> None:
    names = ["p10.jpg", "p2.jpg", "P1.jpg", "p02.jpg", "p1.jpg", "p.jpg", "10.jpg", "9.jpg"]
    assert sorted(names, key=natural_key) == [
        *("9.jpg", "10.jpg", "p.jpg", "P1.jpg", "p1.jpg", "p02.jpg", "p2.jpg", "p10.jpg"),
    ]


@given(st.lists(st.text("aA0129é. ", max_size=8), unique=True), st.randoms())
def test_natural_order_does_not_depend_on_the_order_given(
    names: list[str], shuffler: random.Random
) -> None:
    other = list(names)
    shuffler.shuffle(other)
    assert sorted(names, key=natural_key) == sorted(other, key=natural_key)


def test_a_name_of_five_thousand_digits_can_be_sorted() -> None:
    long = "1" * 5000
    assert sorted([long, "2"], key=natural_key) == ["2", long]


def test_a_folder_comes_before_what_is_inside_it() -> None:
    folders = ["b", "a/b10", "a", ".", "a/b2", "a-1", "a/b2/c"]
    assert sorted(folders, key=folder_order) == [".", "a", "a/b2", "a/b2/c", "a/b10", "a-1", "b"]


def test_pages_inside_a_file_are_numbered_from_one() -> None:
    assert page_id_of("a/b.pdf", None) == "a/b.pdf"
    assert page_id_of("a/b.pdf", 2) == "a/b.pdf#0003"
    assert page_id_of("a/b.pdf", 12344) == "a/b.pdf#12345"
    assert (folder_of("a/b.pdf"), folder_of("b.pdf")) == ("a", ".")


@given(st.text(st.characters()))
def test_what_is_shown_cannot_move_colour_or_turn_text(name: str) -> None:
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", shown(name))
    shown(name).encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("new\nline.jpg", "new\\nline.jpg"),
        ("ansi-\x1b[31mred.jpg", "ansi-\\x1b[31mred.jpg"),
        ("rtl-\u202egpj.exe", "rtl-\\u202egpj.exe"),
        ("скан-лист é.jpg", "скан-лист é.jpg"),
    ],
)
def test_names_are_shown_so(name: str, expected: str) -> None:
    assert shown(name) == expected


@pytest.mark.parametrize(
    "name", ["a.jpg", "UPPER.JPG", "Mixed.JpEg", "page.jpg.", "a.tif ", "double.jpg.tif", "x.PDF"]
)
def test_page_files_are_known_by_their_extension(name: str) -> None:
    assert is_page_file(name)


@pytest.mark.parametrize("name", ["jpg", "a.txt", "a.jpg.part", "a.jpg~", "a", "", ".jpg", "a.xml"])
def test_other_files_are_no_pages(name: str) -> None:
    assert not is_page_file(name)


@pytest.mark.parametrize("name", ["._a.jpg", "~$a.jpg", "@eaDir", "__MACOSX", "#Recycle", ".git"])
def test_litter_stays_litter_even_where_hidden_files_are_taken(name: str) -> None:
    assert is_litter(name)
    assert is_litter(name, hidden=True)


def test_hidden_files_are_passed_over_unless_asked_for() -> None:
    assert is_litter(".a.jpg")
    assert not is_litter(".a.jpg", hidden=True)

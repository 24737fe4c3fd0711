from __future__ import annotations

import json
import random
import time

import pytest
from PIL import Image, ImageDraw

from recipes_orchestration.errors import PageUnreadable, StepError
from recipes_orchestration.steps.step import Context

from .drawn_pages import LETTER, drawn, page_of, read_page, run


def test_lines_are_where_they_were_drawn() -> None:
    value = run("lines", page_of(drawn(LETTER)))
    assert (value["width"], value["height"]) == (900, 620)
    assert len(value["lines"]) == len(LETTER)
    for number, line in enumerate(value["lines"]):
        x0, y0, x1, y1 = line["bbox"]
        middle = 60 + 60 * number + 16
        assert abs((y0 + y1) / 2 - middle) < 8
        assert abs(x0 - 60) < 15
        assert 0.5 < line["confidence"] <= 1
        assert [min(p[0] for p in line["polygon"]), max(p[0] for p in line["polygon"])] == [x0, x1]
    assert json.loads(json.dumps(value)) == value


def test_a_page_is_read_line_by_line() -> None:
    value = read_page(page_of(drawn(LETTER)))
    assert value["text"].split("\n") == list(LETTER)
    assert [line["text"] for line in value["lines"]] == list(LETTER)
    assert json.loads(json.dumps(value)) == value


def test_reading_twice_gives_the_same() -> None:
    page = page_of(drawn(LETTER))
    assert read_page(page) == read_page(page)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_on_its_side_or_head_is_read_in_order_with_its_own_coordinates(degrees: int) -> None:
    picture = drawn(LETTER).rotate(degrees, expand=True)
    value = read_page(page_of(picture))
    assert value["text"].split("\n") == list(LETTER)
    assert (value["width"], value["height"]) == picture.size
    for line in value["lines"]:
        assert 0 <= line["bbox"][0] < line["bbox"][2] < picture.width
        assert 0 <= line["bbox"][1] < line["bbox"][3] < picture.height


def test_a_skewed_page_is_read() -> None:
    picture = drawn(LETTER).rotate(4, Image.Resampling.BICUBIC, expand=True, fillcolor=240)
    assert read_page(page_of(picture))["text"].split("\n") == list(LETTER)


def test_a_large_page_gives_coordinates_of_the_large_picture() -> None:
    picture = drawn(LETTER).resize((3600, 2480), Image.Resampling.BICUBIC)
    value = read_page(page_of(picture))
    assert value["text"].split("\n") == list(LETTER)
    assert abs(value["lines"][-1]["bbox"][1] - 4 * 366) < 40


def test_two_columns_are_read_one_after_the_other() -> None:
    left = [
        f"left column line {number} of text" for number in ["one", "two", "three", "four", "five"]
    ]
    right = [
        f"right column line {number} of text" for number in ["six", "seven", "eight", "nine", "ten"]
    ]
    picture = drawn(right, size=(1300, 460), place=(720, 66), image=None)
    assert read_page(page_of(drawn(left, image=picture)))["text"].split("\n") == left + right


@pytest.mark.parametrize(
    "picture",
    [
        Image.new("L", (800, 1100), 255),
        Image.new("L", (800, 1100), 0),
        Image.new("RGB", (1, 1), "white"),
        Image.new("L", (1, 4000), 255),
        Image.new("L", (4000, 1), 255),
        Image.effect_noise((300, 400), 4),
    ],
    ids=["white", "black", "one pixel", "thin and tall", "thin and wide", "paper grain"],
)
def test_a_page_without_text_has_no_lines_and_an_empty_text(picture: Image.Image) -> None:
    page = page_of(picture)
    found = run("lines", page)
    assert found == {"width": picture.width, "height": picture.height, "lines": []}
    assert run("read", page, {"lines": found}) == {
        "text": "",
        "width": picture.width,
        "height": picture.height,
        "lines": [],
    }


@pytest.mark.parametrize(
    "size", [(1, 1), (2, 3), (3, 40), (40, 3), (7, 900), (900, 7), (60, 12000)]
)
def test_tiny_and_thin_pictures_of_ink_end_soon(size: tuple[int, int]) -> None:
    speckled = Image.effect_noise(size, 200)
    started = time.perf_counter()
    value = read_page(page_of(speckled))
    assert time.perf_counter() - started < 30
    assert (value["width"], value["height"]) == size


def test_a_tall_strip_is_read_whole_and_no_line_twice() -> None:
    words = [f"number {number} of the roll" for number in range(100, 160)]
    picture = drawn(words, size=(420, 60 * 60 + 100), place=(30, 40))
    assert read_page(page_of(picture))["text"].split("\n") == words


def test_a_wide_strip_is_read_in_pieces() -> None:
    picture = Image.new("L", (6000, 90), 240)
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]
    for number, word in enumerate(words):
        drawn([word], place=(100 + 750 * number, 25), image=picture)
    assert read_page(page_of(picture))["text"].split("\n") == words


def test_small_print_in_a_corner_of_a_huge_page_is_found() -> None:
    picture = drawn(LETTER, size=(7000, 6000), place=(5200, 4800))
    value = read_page(page_of(picture))
    assert value["text"].split("\n") == list(LETTER)
    assert all(line["bbox"][0] > 5000 and line["bbox"][1] > 4700 for line in value["lines"])


def test_large_print_on_a_huge_page_is_not_cut_into_pieces() -> None:
    picture = drawn(LETTER).resize((7200, 4960), Image.Resampling.BICUBIC)
    assert read_page(page_of(picture))["text"].split("\n") == list(LETTER)


def test_a_page_full_of_specks_is_bounded() -> None:
    picture = Image.new("L", (1600, 2200), 255)
    draw, chance = ImageDraw.Draw(picture), random.Random(3)
    for _ in range(4000):
        x, y = chance.randrange(1590), chance.randrange(2190)
        draw.rectangle((x, y, x + chance.randrange(9), y + chance.randrange(9)), fill=0)
    started = time.perf_counter()
    read_page(page_of(picture))
    assert time.perf_counter() - started < 60


def test_lines_read_with_less_confidence_than_asked_are_left_out() -> None:
    page = page_of(drawn(LETTER))
    needs = {"lines": run("lines", page)}
    lines = run("read", page, needs)["lines"]
    least = sorted(line["confidence"] for line in lines)[2]
    kept = run("read", page, needs, {"min_confidence": least})
    assert kept["lines"] == [line for line in lines if line["confidence"] >= least]
    assert len(kept["text"].split("\n")) == len(kept["lines"]) < len(lines)


def test_the_lines_may_come_from_a_step_of_any_name() -> None:
    page = page_of(drawn(LETTER[:2]))
    needs = {"other": {"text": "x"}, "found": run("lines", page)}
    assert run("read", page, needs)["text"].split("\n") == list(LETTER[:2])


def test_reading_without_lines_says_what_to_write_into_the_recipe() -> None:
    with pytest.raises(StepError, match=r"'read'.*'lines'.*needs: \[lines\]"):
        run("read", page_of(drawn(LETTER)), {"other": {"text": "x"}})


def test_lines_of_another_picture_are_refused() -> None:
    found = run("lines", page_of(drawn(LETTER)))
    with pytest.raises(StepError, match="900 x 620"):
        run("read", page_of(drawn(LETTER, size=(800, 600))), {"lines": found})


def test_a_broken_page_is_unreadable_and_not_without_lines() -> None:
    with pytest.raises(PageUnreadable):
        run("lines", page_of(b"\x89PNG\r\n\x1a\n and no more"))


def test_a_missing_model_is_named_and_not_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    from recipes_orchestration.steps import rapid

    monkeypatch.setitem(rapid._MODELS, "Det.model_path", "another.onnx")
    with pytest.raises(StepError, match=r"misses the model another\.onnx"):
        rapid.engine("lines")


def test_context_carries_the_step_name_into_errors() -> None:
    from recipes_orchestration.steps.needs import text_of_needs

    with pytest.raises(StepError, match="'persons' needs a step whose result has 'text'"):
        text_of_needs(Context("persons", needs={"a": {"words": 1}}))

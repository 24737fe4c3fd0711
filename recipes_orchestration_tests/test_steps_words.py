from __future__ import annotations

import io
import json
import logging
import math
import subprocess
import sys

import pytest
from PIL import Image

from recipes_orchestration.errors import PageUnreadable, StepError

from .drawn_pages import LETTER, drawn, page_of, run

PAGE = page_of(b"")


def names_in(text: str, **params: str) -> list[dict[str, object]]:
    return run("names", PAGE, {"read": {"text": text}}, params)["names"]


def test_persons_are_found_with_their_places_in_the_text() -> None:
    text = "\n".join(LETTER)
    found = names_in(text)
    assert {"Arthur Pemberton", "George Wetherby"} <= {name["text"] for name in found}
    for name in found:
        assert text[name["start"] : name["end"]] == name["text"]  # type: ignore[misc]
        assert name["kind"] == "person"


def test_a_name_over_a_line_end_is_one_name() -> None:
    text = "Yesterday I spoke with Arthur\nPemberton about the house."
    assert [name["text"] for name in names_in(text)] == ["Arthur Pemberton"]


def test_french_is_a_setting() -> None:
    text = "Monsieur Jean Moreau, notaire à Croissy, a reçu le testament."
    assert [name["text"] for name in names_in(text, language="fr")] == ["Jean Moreau"]
    assert names_in(text) != names_in(text, language="fr")


@pytest.mark.parametrize("text", ["", "  \n\n ", "12 34 -- . ;", "\x00\ufffd\u2028"])
def test_a_text_without_names_gives_an_empty_list(text: str) -> None:
    assert names_in(text) == []


def test_names_far_down_a_very_long_text_have_true_places() -> None:
    text = "nothing to see here.\n" * 6000 + "Then Mr. Arthur Pemberton came from Exeter."
    (person,) = [name for name in names_in(text) if name["text"] == "Arthur Pemberton"]
    assert text[person["start"] : person["end"]] == "Arthur Pemberton"  # type: ignore[misc]


def embedded(text: str, **params: int) -> list[float]:
    value = run("embed", PAGE, {"read": {"text": text}}, params)
    assert value["model"] == f"wordllama-l2_supercat-{len(value['vector'])}"
    assert json.loads(json.dumps(value)) == value
    return value["vector"]


def test_texts_about_the_same_are_nearer_than_others() -> None:
    def near(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(embedded(one), embedded(other), strict=True))

    assert near("The bridge must be repaired.", "Repairs to the bridge") > near(
        "The bridge must be repaired.", "A wedding in June"
    )


@pytest.mark.parametrize("size", [64, 128, 256])
def test_vectors_have_the_size_asked_for_and_length_1(size: int) -> None:
    vector = embedded("Dear Mrs. Whitcombe", dimensions=size)
    assert len(vector) == size
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-4)


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_text_has_a_vector_of_zeros(text: str) -> None:
    assert embedded(text) == [0.0] * 256


def test_a_crafted_text_of_many_megabytes_is_embedded() -> None:
    assert len(embedded("word " * 1_000_000)) == 256


def test_loading_the_model_leaves_logging_as_it_was() -> None:
    program = (
        "import logging\n"
        "from recipes_orchestration.steps.registry import load_operation\n"
        "for name in ('embed', 'lines', 'read', 'names'): load_operation(name).setup({})\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"[] {logging.WARNING}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("step", ["names", "embed"])
def test_a_step_on_words_without_a_text_says_what_to_write(step: str) -> None:
    with pytest.raises(StepError, match=r"'text'.*needs: \[read\]"):
        run(step, PAGE, {"lines": {"lines": []}})


def pdf_with_text(*pages: str) -> bytes:
    """A PDF made by hand: one line of Helvetica a page."""
    streams = [f"BT /F1 24 Tf 72 700 Td ({page}) Tj ET".encode() for page in pages]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, stream in enumerate(streams):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        ]
    body, places = b"%PDF-1.4\n", list[int]()
    for number, item in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table, len(objects) + 1, len(body))
    )


def test_the_text_of_each_pdf_page_is_its_own() -> None:
    data = pdf_with_text("Dear Mrs. Whitcombe", "Yours faithfully")
    first, second = [run("text", page_of(data, file="p.pdf", frame=frame)) for frame in (0, 1)]
    assert (first, second) == ({"text": "Dear Mrs. Whitcombe"}, {"text": "Yours faithfully"})


def test_a_scanned_pdf_and_a_picture_have_no_text_of_their_own() -> None:
    held = io.BytesIO()
    drawn(LETTER).save(held, "PDF")
    assert run("text", page_of(held.getvalue(), file="p.pdf", frame=0)) == {"text": ""}
    assert run("text", page_of(Image.new("L", (9, 9)))) == {"text": ""}


@pytest.mark.parametrize(
    ("data", "frame"),
    [(b"%PDF-1.4\n%%EOF\n", 0), (pdf_with_text("one"), 1)],
    ids=["nothing in it", "no such page"],
)
def test_a_broken_pdf_is_unreadable_and_not_empty(data: bytes, frame: int) -> None:
    with pytest.raises(PageUnreadable):
        run("text", page_of(data, file="p.pdf", frame=frame))


def test_join_puts_values_under_the_names_of_their_steps() -> None:
    needs = {"read": {"text": "x"}, "names": {"names": []}}
    assert run("join", PAGE, needs) == needs


def test_joining_nothing_says_so() -> None:
    with pytest.raises(StepError, match="joins nothing"):
        run("join", PAGE)

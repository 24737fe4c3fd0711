"""The words of the demo archive: letters, minutes and ledger leaves. Pure, by a random source."""

from __future__ import annotations

import random
import textwrap

__all__ = ["ledger_page", "letter_page", "minutes_page"]

# Characters of one line, which fit the page in the wider of the two styles.
_WIDTH = 58

_FIRST = [
    "Eleanor",
    "Arthur",
    "Margaret",
    "Henry",
    "Charlotte",
    "Edward",
    "Alice",
    "William",
    "Harriet",
    "Thomas",
    "Florence",
    "George",
    "Emily",
    "Frederick",
    "Beatrice",
    "Walter",
    "Caroline",
    "Robert",
    "Agnes",
    "Samuel",
]
_LAST = [
    "Whitcombe",
    "Pemberton",
    "Ashdown",
    "Wetherby",
    "Hargreaves",
    "Llewellyn",
    "Fairfax",
    "Thornton",
    "Blackwood",
    "Carmichael",
    "Osborne",
    "Stanhope",
    "Trevelyan",
    "Marlowe",
    "Kingsley",
    "Holloway",
    "Prescott",
    "Beaumont",
]
_PLACES = [
    "Bath",
    "Exeter",
    "Bristol",
    "Salisbury",
    "Taunton",
    "Plymouth",
    "Truro",
    "Oxford",
    "Gloucester",
    "Wells",
]
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_SENTENCES = (
    "I write from {place} to say that the parcel of books has come safely.",
    "{person} called on {day} with the papers about the house in {place}.",
    "Please tell {first} that the rent of {sum} pounds was paid.",
    "We met {person} on the road to {place}, in good health and spirits.",
    "The rain has kept us indoors since {day}, and the garden is under water.",
    "{person} and {person} were married at {place} on the {number}th of {month}.",
    "Your letter of the {number}th of {month} reached me only on {day}.",
    "The doctor from {place} thinks that {first} will be well again by {month}.",
    "I enclose a note for {person}, which you will kindly carry to {place}.",
    "The roof of the old school must be mended before the winter.",
)
_MOTIONS = (
    "{person} moved that the bridge at {place} be repaired at a cost of {sum} pounds.",
    "{person} seconded the motion, which was carried without a vote.",
    "A letter from {person} of {place} was read and laid on the table.",
    "The clerk reported that {sum} pounds had been received since {month}.",
    "{person} asked that the road to {place} be closed on {day}.",
    "It was resolved to thank {person} for the gift of books.",
)
_GOODS = (
    "coal for the school",
    "timber and nails",
    "lamp oil",
    "wages of the clerk",
    "seed corn",
    "repairs to the pump",
    "stamps and paper",
    "hire of a cart",
)


def letter_page(chance: random.Random, year: int) -> list[str]:
    """The lines of one letter; an empty one is an empty line of the page."""
    place, reader, writer = chance.choice(_PLACES), _person(chance), _person(chance)
    head = f"{place}, {chance.randint(1, 28)} {chance.choice(_MONTHS)} {year}"
    title = chance.choice(("Mr.", "Mrs.", "Miss"))
    lines = [head, "", f"Dear {title} {reader.split()[-1]},", ""]
    for _ in range(chance.randint(2, 3)):
        lines += [*_paragraph(chance, _SENTENCES, chance.randint(2, 3)), ""]
    return [*lines, "Yours faithfully,", writer]


def minutes_page(chance: random.Random, year: int, number: int) -> list[str]:
    """The lines of one page of minutes."""
    month = _MONTHS[(number - 1) % 12]
    lines = [
        "MINUTES OF THE PARISH COUNCIL",
        f"Meeting {number}, held on {chance.randint(1, 28)} {month} {year}",
        "",
        f"Present: {_person(chance)}, in the chair,",
        f"{_person(chance)} and {_person(chance)}.",
        "",
    ]
    for _ in range(3):
        lines += [*_paragraph(chance, _MOTIONS, 2), ""]
    return [*lines, f"Signed: {_person(chance)}"]


def ledger_page(chance: random.Random, year: int, number: int) -> list[str]:
    """The lines of one leaf of a ledger: date, person, goods and sum in one line."""
    month = chance.choice(_MONTHS)
    lines = [f"LEDGER OF {month.upper()} {year}", f"Leaf {number}", ""]
    for day in sorted(chance.sample(range(1, 29), 16)):
        paid = f"{chance.randint(1, 90)}.{chance.randint(10, 99)}"
        lines.append(f"{day} {month[:3]}. {_person(chance)}, {chance.choice(_GOODS)}, {paid}")
    return lines


def _person(chance: random.Random) -> str:
    return f"{chance.choice(_FIRST)} {chance.choice(_LAST)}"


def _paragraph(chance: random.Random, sentences: tuple[str, ...], count: int) -> list[str]:
    return textwrap.wrap(
        " ".join(_filled(sentence, chance) for sentence in chance.sample(sentences, count)), _WIDTH
    )


def _filled(sentence: str, chance: random.Random) -> str:
    while "{person}" in sentence:
        # Two persons of one sentence are two.
        sentence = sentence.replace("{person}", _person(chance), 1)
    return sentence.format(
        first=chance.choice(_FIRST),
        place=chance.choice(_PLACES),
        day=chance.choice(_DAYS),
        month=chance.choice(_MONTHS),
        number=chance.randint(4, 20),
        sum=chance.randint(2, 90),
    )

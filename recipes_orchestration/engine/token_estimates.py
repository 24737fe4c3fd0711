"""What a page of a step at a provider costs, estimated from the questions of a few real pages.

Tokens of the question are counted from the calls as they would be sent; where pages of the step
have landed before, the provider's own count of them corrects ours. Tokens of the answer are those
of what has landed, else the most that the call allows. Nothing is sent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from statistics import fmean, pstdev

from ..errors import RecipesError
from ..pages.naming import shown
from ..providers.call_tokens import CallTokens, count_call
from ..providers.prices import price_of
from ..providers.provider import Call
from ..stages import Stage
from ..steps.ask import Usage
from .asking import STAND_IN, Asked, ask_pages
from .engine import Engine
from .plan_samples import StepSample

__all__ = ["Money", "PageEstimate", "Spread", "estimate_pages"]

# Characters a token has differ by language: English has about 4, others down to 2.5.
_TEXT = (0.8, 1.5)
# Of a count that the provider's own counts have corrected, and of its rules for pictures.
_SURE = (0.95, 1.05)
# An answer that nothing is known of is taken for the longest that is allowed, or so much of it.
_SHORTEST = 1 / 20
_UNBOUNDED = 4096
_CORRECTION = (0.2, 5.0)


@dataclass(frozen=True)
class Spread:
    """A number with its likely bounds."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Money:
    """Dollars with their likely bounds."""

    low: Decimal
    mid: Decimal
    high: Decimal

    def times(self, number: int) -> Money:
        """So many times this."""
        return Money(self.low * number, self.mid * number, self.high * number)

    def plus(self, more: Money) -> Money:
        """Both together."""
        return Money(self.low + more.low, self.mid + more.mid, self.high + more.high)


NOTHING = Money(Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True)
class PageEstimate:
    """Of one page: tokens, and dollars in a batch and by a plain call, None when nobody knows.

    `sampled` pages were looked at. `line_bytes` is the length of a request in a batch.
    `words` say what was assumed.
    """

    sampled: int
    tokens_in: Spread | None
    tokens_out: Spread | None
    batch: Money | None
    plain: Money | None
    line_bytes: float
    words: tuple[str, ...]


def estimate_pages(engine: Engine, stage: Stage, sample: StepSample) -> PageEstimate:
    """The estimate for a stage of one step at a provider; what goes wrong is in its words."""
    try:
        asked = ask_pages(engine, stage, sample.pages())
    except RecipesError as error:
        return _unknown(str(error))
    if not asked.calls and not asked.ready:
        reason, _ = next(iter(asked.failed.most_common(1)), ("no page can be asked about", 0))
        return _unknown(f"What is asked is not known yet: {reason}")
    return _Estimator(engine, stage, sample, asked).estimate()


def _unknown(words: str) -> PageEstimate:
    return PageEstimate(0, None, None, None, None, 0.0, (words,))


@dataclass
class _Estimator:
    engine: Engine
    stage: Stage
    sample: StepSample
    asked: Asked

    def estimate(self) -> PageEstimate:
        asked, words = self.asked, list[str]()
        counts = [count_call(call) for call in asked.calls.values()]
        rows, current = self._landed_rows()
        factor = self._correction(rows) if current else None
        out = self._out(counts, [out for _, out in rows.values()], words)
        tokens_in = _questions(counts, asked.ready, factor)
        if asked.assumed:
            words.append(
                f"the text of {', '.join(map(shown, sorted(asked.assumed)))} is not there yet and "
                f"was taken to have {STAND_IN:,} characters"
            )
        if rows and not current:
            words.append("answers are taken to be as long as those of an earlier form of the step")
        if asked.failed:
            words.append(f"{asked.failed.total()} of the sampled pages cannot be asked about")
        money = [self._money(counts, tokens_in, out, batch=batch) for batch in (True, False)]
        if money[0] is None:
            words.append("no price of the model is known; give one in project.yaml: prices")
        return PageEstimate(
            sampled=len(counts) + asked.ready,
            tokens_in=tokens_in,
            tokens_out=out,
            batch=money[0],
            plain=money[1],
            line_bytes=fmean(asked.sizes) if asked.sizes else 0.0,
            words=tuple(words),
        )

    def _landed_rows(self) -> tuple[dict[tuple[str, str], tuple[int, int]], bool]:
        """Tokens in and out by (batch, page_id) of pages that were paid; whether of this form.

        Of the step as it is, where any have landed, else of what it was before.
        """
        (step,) = self.stage.steps
        now: dict[tuple[str, str], tuple[int, int]] = {}
        before: dict[tuple[str, str], tuple[int, int]] = {}
        columns = ["page_id", "key", "tokens_in", "tokens_out"]
        for batch in self.sample.batches:
            table = self.engine.library.table(self.stage.recipe.name, step.name, batch, columns)
            for page, key, tokens_in, tokens_out in zip(
                *(table.column(name).to_pylist() for name in columns), strict=True
            ):
                if tokens_in:  # a copy cost nothing
                    rows = now if (page, key) in self.sample.current else before
                    rows[batch, page] = (tokens_in, tokens_out or 0)
        return (now, True) if now else (before, False)

    def _correction(self, rows: dict[tuple[str, str], tuple[int, int]]) -> float | None:
        """By what our count of landed pages' questions must be multiplied to be the provider's."""
        known = [page for page in self.sample.landed if (page[1], page[2]) in rows]
        try:
            calls = ask_pages(self.engine, self.stage, known).calls
        except RecipesError:
            return None
        ours = sum(count_call(call).tokens_in for call in calls.values())
        theirs = sum(rows[page][0] for page in calls)
        if not ours or not theirs:
            return None
        least, most = _CORRECTION
        return min(most, max(least, theirs / ours))

    def _out(self, counts: Sequence[CallTokens], landed: Sequence[int], words: list[str]) -> Spread:
        if landed or not counts:
            return _around(landed, *_SURE)
        if any(each.most_out is None for each in counts):
            words.append(f"answers have no bound and are taken to have {_UNBOUNDED:,} tokens")
        most = fmean(_UNBOUNDED if each.most_out is None else each.most_out for each in counts)
        if most:
            words.append("nothing has landed yet, so answers are taken for the longest allowed")
        return Spread(most * _SHORTEST, most, most)

    def _money(
        self, counts: Sequence[CallTokens], tokens_in: Spread, out: Spread, *, batch: bool
    ) -> Money | None:
        """Dollars for a page: the mean, as models with tiers price each question by its length."""
        counted = sum(each.tokens_in for each in counts)
        pages = len(counts) + self.asked.ready
        at = datetime.now(UTC)
        sums: list[Decimal] = []
        for mean, answer in (
            (tokens_in.low, out.low),
            (tokens_in.mid, out.mid),
            (tokens_in.high, out.high),
        ):
            scale = mean * pages / counted if counted else 0.0
            total = Decimal(0)
            for call, each in zip(self.asked.calls.values(), counts, strict=True):
                usd = self._price(call, each.tokens_in * scale, answer, at, batch=batch)
                if usd is None:
                    return None
                total += usd
            sums.append(total / pages)
        return Money(*sums)

    def _price(
        self, call: Call, tokens_in: float, tokens_out: float, at: datetime, *, batch: bool
    ) -> Decimal | None:
        usage = Usage(tokens_in=math.ceil(tokens_in), tokens_out=math.ceil(tokens_out))
        overrides = self.engine.project.prices
        model = call.group.model
        return price_of(self.stage.place, model, usage, at, batch=batch, overrides=overrides).usd


def _questions(counts: Sequence[CallTokens], ready: int, factor: float | None) -> Spread:
    """Tokens of a question; a page that needs no question has none."""
    pages = len(counts) + ready
    text = sum(each.text for each in counts) / pages
    images = sum(each.images for each in counts) / pages
    if factor is not None:
        low, high = _SURE
        mid = (text + images) * factor
        return Spread(mid * low, mid, mid * high)
    low, high = _TEXT
    return Spread(text * low + images * _SURE[0], text + images, text * high + images * _SURE[1])


def _around(values: Sequence[int], low: float, high: float) -> Spread:
    """The mean, with bounds as wide as the values and their number make them."""
    if not values:
        return Spread(0.0, 0.0, 0.0)
    mean = fmean(values)
    error = 2 * pstdev(values) / math.sqrt(len(values))
    return Spread(max(0.0, min(mean * low, mean - error)), mean, max(mean * high, mean + error))

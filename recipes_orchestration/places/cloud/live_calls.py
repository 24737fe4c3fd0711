"""The live calls that a Python step makes while its task lands: reserved, priced and kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from ...errors import StepError
from ...providers.prices import ModelPrices, price_of
from ...providers.provider import Call, Group, LineKind, Provider
from ...providers.recording import LiveCall
from ...runner.work import Spent
from ..money import Budget
from ..place import Sent
from .costs import Costs
from .live_answers import Kept, LiveAnswers
from .worst_cases import WorstCases

__all__ = ["LiveCalls"]


@dataclass
class LiveCalls:
    """Those of one task. `prices` are the project's own as they are today.

    With a `budget` the most that a call can cost is promised before it is sent, and what it did
    cost is told once it is answered. What was never answered stays promised until the task is
    landed anew: it may be billed.
    """

    provider: Provider
    prices: Mapping[str, ModelPrices]
    kept: LiveAnswers
    budget: Budget | None = None
    _promised: dict[str, Decimal] = field(default_factory=dict[str, Decimal])

    def settle(self, sent: Sent, group: Group, costs: Costs, lines: Iterable[bytes]) -> None:
        """Tells the budget what all the task's answers cost, before a call is paid beside them.

        What they could have cost at most would else stand in the way of the calls. `lines` are all
        that the task was answered, `costs` prices them.
        """
        if self.budget is None:
            return
        left = set(sent.calls.values())
        for raw in lines:
            line = self.provider.read_line(raw)
            if line is None or line.id not in left:
                continue
            left.remove(line.id)
            if line.kind is LineKind.SUCCEEDED and line.response is not None:
                with suppress(StepError):
                    answer = self.provider.answer(group, line.response)
                    costs.add(costs.spent(group, answer), wasted=False)
        for kept in self.kept.all():
            if kept.spent is not None:
                costs.add(kept.spent, wasted=False)
        self.budget.billed(costs.bill({}))

    def before(self, page_id: str) -> Sequence[Kept]:
        """What the page's code was answered before."""
        return self.kept.of(page_id)

    def permit(self, call: Call) -> None:
        """Called before a call is sent. Raises `OverCap` when it may pass a cap, and `StepError`
        when nobody knows what it may cost and there is a cap.
        """
        if self.budget is None or not call.body:  # a list of models is free
            return
        worst = WorstCases(self.provider.name, call.group, self.prices)
        worst.add(call)
        usd, why = worst.usd(batch=False)
        if usd is None:
            raise StepError(
                "The step's code made a request that is not in the batch, and there is a cap on "
                f"what may be spent and its worst case cannot be reserved. {why}."
            )
        self.budget.promise(usd)
        self._promised[call.id] = usd

    def hear(self, page_id: str, call: LiveCall) -> Kept:
        """Called when a call is answered: it is priced and outlives this process."""
        kept = Kept(call.call.id, call, self._spent(call))
        self.kept.add(page_id, kept)
        promised = self._promised.pop(call.call.id, None)
        if self.budget is not None and promised is not None:
            paid = Decimal(0) if kept.spent is None else kept.spent.usd
            self.budget.paid(promised, promised if paid is None else paid)
        return kept

    def _spent(self, call: LiveCall) -> Spent | None:
        """What it cost; None for an error, and for what is no answer of a model."""
        if call.status >= 400:
            return None
        group = call.call.group
        try:
            answer = self.provider.answer(group, json.loads(call.body))
        except (StepError, ValueError):
            return None  # such as a list of models
        price = price_of(
            self.provider.name,
            group.model,
            answer.usage,
            datetime.now(UTC),
            batch=False,
            overrides=self.prices,
        )
        tokens_in, tokens_out, tokens_cached, _ = answer.usage
        model = answer.model or group.model
        return Spent(model, tokens_in, tokens_out, tokens_cached, price.usd, price.basis)

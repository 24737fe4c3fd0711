"""A job's cost is shared out over what landed of it, and the rest is waste, to the billionth."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.places.job_costs import LANDED, JobCost
from recipes_orchestration.runner.work import Failure, FailureKind, Outcome

FAILED = Failure(FailureKind.FAILED, "no")


def outcomes(ends: list[bool]) -> list[Outcome]:
    return [
        Outcome(str(at), "read", 0.0, value=1, failure=None if landed else FAILED)
        for at, landed in enumerate(ends)
    ]


def cost_of(ends: list[bool], usd: Decimal | None, basis: str = "listed") -> JobCost:
    lines = {LANDED: sum(ends), "failed": len(ends) - sum(ends)}
    return JobCost("t4-small", usd, basis, lines)


@given(
    ends=st.lists(st.booleans(), max_size=60),
    usd=st.decimals(0, 5000, places=8),
)
def test_the_rows_and_the_waste_are_the_bill(ends: list[bool], usd: Decimal) -> None:
    cost = cost_of(ends, usd)
    rows = [each.spent.usd for each in map(cost.shared, outcomes(ends)) if each.spent is not None]
    bill = cost.bill()
    assert len(rows) == sum(ends)
    assert sum((each or Decimal(0) for each in rows), Decimal(0)) == bill.landed_usd
    assert bill.landed_usd + bill.wasted_usd == usd
    assert min([bill.wasted_usd, *(each or Decimal(0) for each in rows)]) >= 0
    if ends and all(ends):
        assert bill.wasted_usd == 0
    if not any(ends):
        assert bill.landed_usd == 0


def test_all_outcomes_have_equal_parts() -> None:
    ends = [True, False, True]
    cost = cost_of(ends, Decimal("0.90000000"))
    spent = [cost.shared(each).spent for each in outcomes(ends)]
    assert [each and each.usd for each in spent] == [Decimal("0.3"), None, Decimal("0.3")]
    assert cost.bill().wasted_usd == Decimal("0.3")


def test_a_cost_that_nobody_knows_is_none_of_the_rows() -> None:
    cost = cost_of([True], None, "unknown")
    (landed,) = (cost.shared(each) for each in outcomes([True]))
    assert landed.spent is not None
    assert (landed.spent.usd, landed.spent.basis) == (None, "unknown")
    assert cost.bill().landed_usd == cost.bill().wasted_usd == 0

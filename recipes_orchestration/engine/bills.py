"""A place's bill of a task as it is booked in the ledger."""

from __future__ import annotations

from datetime import UTC, datetime

from ..ledger.bookings import Booking
from ..ledger.tasks import TaskRow
from ..places.place import Bill

__all__ = ["booking_of"]


def booking_of(task: TaskRow, bill: Bill) -> Booking:
    """The bill, booked at this moment under the task's first step."""
    return Booking(
        task_id=task.id,
        recipe=task.recipe,
        step=next(iter(task.fingerprints)),
        batch=task.batch,
        place=task.place,
        model=bill.model,
        mode=bill.mode,
        basis=bill.basis,
        landed_usd=bill.landed_usd,
        wasted_usd=bill.wasted_usd,
        tokens_in=bill.tokens_in,
        tokens_out=bill.tokens_out,
        tokens_cached=bill.tokens_cached,
        lines=dict(bill.lines),
        booked_at=datetime.now(UTC),
        saved_usd=bill.saved_usd,
    )

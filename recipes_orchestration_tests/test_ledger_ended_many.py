"""Many tasks ended in one transaction."""

from __future__ import annotations

from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.tasks import TaskRow, TaskState


def prepared(ledger: Ledger, name: str) -> TaskRow:
    task = ledger.tasks.prepare(
        name=name,
        recipe="letters",
        stage="read",
        source="archive",
        batch="a/0001",
        place="openai",
        attempt=1,
        fingerprints={"read": "f"},
        pages=[("a/1", "0" * 64)],
        claims=[name],
        owner="me",
    )
    assert task is not None
    return task


def test_only_those_that_go_on_are_ended_and_say_why(ledger: Ledger) -> None:
    names = ("sent", "silent", "landed", "other")
    tasks = {name: prepared(ledger, name) for name in names}
    ledger.tasks.sent(tasks["sent"].id, "batch_1")
    ledger.tasks.sent(tasks["silent"].id, "batch_2")
    ledger.tasks.landed(tasks["landed"].id)
    ledger.tasks.ended_many({tasks[name].id: name[:4] for name in names[:3] if name != "silent"})
    ledger.tasks.ended_many({tasks["silent"].id: "", "unknown": "gone"})
    ledger.tasks.ended_many({})
    rows = {name: ledger.tasks.get(task.id) for name, task in tasks.items()}
    assert {name: row and (row.state, row.message) for name, row in rows.items()} == {
        "sent": (TaskState.ended, "sent"),
        "silent": (TaskState.ended, None),
        "landed": (TaskState.landed, None),
        "other": (TaskState.preparing, None),
    }

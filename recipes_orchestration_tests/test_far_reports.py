"""What a far side told: kept in the ledger, replayed into the log, shown in the metadata."""

from __future__ import annotations

from typing import Any

from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.tasks import NewTask, TaskRow
from recipes_orchestration.orchestration.reports import far_metadata, replayer
from recipes_orchestration.places.place import Message, Report


def facts(step: str = "read", *, total: float = 6.0, loads: int = 1) -> dict[str, Any]:
    seconds = {"min": 1.0, "median": 2.0, "max": 3.0, "total": total}
    told = {"name": step, "landed": 3, "failed": 0, "left": 0, "seconds": seconds}
    return {
        "steps": [{**told, "model_loads": loads, "load_seconds": 0.5}],
        "peak_memory_mb": 120.5,
        "versions": {},
        "restarts": 0,
    }


WHOLE: Any = {"recipe": "letters", "stage": "read", "source": "s", "batch": "a/0001"}


def sent_task(ledger: Ledger, name: str, *, fingerprint: str = "f") -> TaskRow:
    rows = ledger.tasks.prepare_all(
        [NewTask(name, {"read": fingerprint}, [("a/1.png", "aa")], {name})],
        **WHOLE,
        place="cluster",
        attempt=1,
        owner="me",
        slot=True,
    )
    assert rows is not None
    ledger.tasks.sent(rows[0].id, f"1_{name}")
    return rows[0]


def landed(ledger: Ledger, task: TaskRow, told: dict[str, Any] | None) -> None:
    ledger.tasks.ended(task.id)
    if told is not None:
        ledger.tasks.reported(task.id, told)
    ledger.tasks.landed(task.id)


def test_the_last_report_of_a_stage_is_that_of_the_task_which_landed_last(ledger: Ledger):
    landed(ledger, sent_task(ledger, "one"), facts(total=1))
    landed(ledger, sent_task(ledger, "two"), facts(total=2))
    landed(ledger, sent_task(ledger, "three"), None)
    told = ledger.tasks.last_report("letters", "read", "cluster")
    assert told is not None
    assert told["steps"][0]["seconds"]["total"] == 2


def test_a_stage_that_nobody_told_of_has_no_last_report(ledger: Ledger):
    landed(ledger, sent_task(ledger, "one"), None)
    assert ledger.tasks.last_report("letters", "read", "cluster") is None


def test_reports_of_a_batch_are_those_of_the_step_as_it_is(ledger: Ledger):
    landed(ledger, sent_task(ledger, "one", fingerprint="old"), facts(total=1))
    landed(ledger, sent_task(ledger, "two"), facts(total=2))
    reports = ledger.tasks.reports("letters", "a/0001", "read", "f")
    assert [each["steps"][0]["seconds"]["total"] for each in reports] == [2]


def test_tasks_of_one_array_share_a_slot(ledger: Ledger):
    tasks = [NewTask(f"a_{number}", {"read": "f"}, [], {f"k{number}"}) for number in range(3)]
    ledger.tasks.prepare_all(
        tasks, **WHOLE, place="cluster", attempt=1, owner="me", slot=True, array="a"
    )
    assert ledger.tasks.slots_taken("cluster") == 1


def test_an_array_is_written_whole_or_not_at_all(ledger: Ledger):
    sent_task(ledger, "mine")
    taken = [NewTask("b_0", {}, [], {"free"}), NewTask("b_1", {}, [], {"mine"})]
    made = ledger.tasks.prepare_all(taken, **WHOLE, place="cluster", attempt=1, owner="you")
    assert made is None
    assert ledger.tasks.by_name("b_0") is None
    assert ledger.tasks.free_claims({"free"}) == {"free"}


def test_metadata_tell_seconds_a_page_and_model_loads_of_all_tasks():
    metadata = far_metadata("read", [facts(), facts()])
    assert metadata["model_loads"].value == 2
    assert metadata["page_seconds_median"].value == 2.0
    assert metadata["peak_memory_mb"].value == 120.5


def test_a_step_that_ran_here_has_no_metadata_of_a_far_side():
    assert far_metadata("names", [facts()]) == {}


class Log:
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def debug(self, msg: object, *args: object) -> None:
        self.said.append(("debug", str(msg) % args))

    def info(self, msg: object, *args: object) -> None:
        self.said.append(("info", str(msg) % args))

    def warning(self, msg: object, *args: object) -> None:
        self.said.append(("warning", str(msg) % args))


def test_messages_of_a_far_side_are_said_in_the_log_with_the_tasks_id(ledger: Ledger):
    log = Log()
    task = sent_task(ledger, "one")
    task = ledger.tasks.get(task.id) or task
    replayer(log)(task, Report({}, (Message("info", "loaded"), Message("error", "it broke"))))
    assert log.said == [
        ("info", "cluster 1_one: loaded"),
        ("warning", "cluster 1_one: it broke"),
    ]


def test_a_pause_until_the_place_is_reached_ends_when_it_answers(ledger: Ledger):
    ledger.pauses.pause("cluster", "type your second factor", until_reached=True)
    assert ledger.pauses.reached("cluster")
    assert ledger.pauses.of("cluster") is None


def test_a_pause_for_a_person_does_not_end_because_the_place_answers(ledger: Ledger):
    ledger.pauses.pause("openai", "no credit")
    assert not ledger.pauses.reached("openai")
    assert ledger.pauses.of("openai") is not None

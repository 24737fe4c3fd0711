"""What Slurm's commands print, and what it means. Pure."""

from __future__ import annotations

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.places.slurm.login import SlurmTask
from recipes_orchestration.places.slurm.queue import (
    Row,
    accounting_rows,
    indexes,
    pending_words,
    queue_rows,
)
from recipes_orchestration.places.slurm.refusals import job_of, submit_error
from recipes_orchestration.places.slurm.shell import Done


def test_each_element_has_a_row_by_array_and_index():
    text = "15|0|RUNNING|None|width-a\n15|1|PENDING|Priority|width-a\n\n"
    assert queue_rows(text, ["width-a"]) == {
        (15, 0): Row("width-a", "RUNNING", "None"),
        (15, 1): Row("width-a", "PENDING", "Priority"),
    }


@pytest.mark.parametrize(
    "line",
    [
        "15|0|RUNNING|None|another",  # an id that was given again
        "15|N/A|RUNNING|None|width-a",  # no array
        "15|0|RUNNING|None",
        "slurm_load_jobs error: Unable to contact slurm controller",
        "x|0|RUNNING|None|width-a",
        "",
    ],
)
def test_a_row_of_something_else_is_none_of_ours(line: str):
    assert queue_rows(line, ["width-a"]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", [3]),
        ("[2-4,6-7%2]", [2, 3, 4, 6, 7]),
        ("[0-10:5]", [0, 5, 10]),
        ("[1]", [1]),
        ("", []),
        ("N/A", []),
        ("[a-b]", []),
        ("5-2", []),
    ],
)
def test_ranges_of_indexes_are_written_out(text: str, expected: list[int]):
    assert list(indexes(text)) == expected


def test_a_hostile_range_is_bounded():
    assert sum(1 for _ in indexes("[0-999999999]")) <= 100_001


def test_accounts_show_waiting_elements_as_a_range_and_ended_ones_alone():
    text = (
        "15_0|CANCELLED by 1000|0:15|width-a|None\n"
        "15_[1-3%2]|PENDING|0:0|width-a|None\n"
        "15_2|TIMEOUT|0:0|width-a|None\n"
        "15_1|FAILED|3:0|width-a|None\n"
        "15_[0-1]|PENDING|0:0|width-a|None\n"
        "16_0|FAILED|1:0|another|None\n"
        "17|COMPLETED|0:0|width-a|None\n"
    )
    rows = accounting_rows(text, ["width-a"])
    assert {element: row.state for element, row in rows.items()} == {
        (15, 0): "CANCELLED",
        (15, 1): "FAILED",
        (15, 2): "TIMEOUT",
        (15, 3): "PENDING",
    }
    assert rows[15, 1].code == "3:0"


@pytest.mark.parametrize("state", ["COMPLETING", "SUSPENDED", "SPECIAL_EXIT", "A_LATER_WORD"])
def test_only_what_is_surely_over_is_over(state: str):
    assert not Row("width-a", state).over


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("JobHeldUser", "somebody holds it"),
        ("launch failed requeued held", "its start failed"),
        ("DependencyNeverSatisfied", "what it depends on failed"),
        ("PartitionTimeLimit", "more time than the partition gives"),
        ("PartitionConfig", "the partition never gives"),
        ("BadConstraints", "no node can give"),
        ("QOSMaxWallDurationPerJobLimit", "more than its limits allow"),
        ("AssocMaxMemPerNode", "more than its limits allow"),
    ],
)
def test_what_never_starts_says_so_and_what_to_do(reason: str, words: str):
    told = pending_words(reason)
    assert told.startswith(f"It waits in Slurm's queue and never starts by itself ({reason}): ")
    assert words in told


@pytest.mark.parametrize(
    "reason", ["Priority", "Resources", "AssocMaxJobsLimit", "QOSGrpCpuLimit", "JobArrayTaskLimit"]
)
def test_what_only_waits_says_what_for(reason: str):
    assert pending_words(reason) == f"It waits in Slurm's queue ({reason})."


@pytest.mark.parametrize(
    ("out", "job"),
    [("15\n", 15), ("15;cluster\n", 15), ("a banner\n15\n", 15), ("", None), ("no", None)],
)
def test_the_job_id_is_the_last_line(out: str, job: int | None):
    assert job_of(out) == job


FAILED = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    "words",
    [
        FAILED + "Socket timed out on send/recv operation",
        FAILED + "Unable to contact slurm controller (connect failure)",
        FAILED + "Zero Bytes were transmitted or received",
        FAILED + "Slurm temporarily unable to accept job, sleeping and retrying",
        FAILED + "Unexpected message received",
        "sbatch: error: If munged is up, restart with --num-threads=10",
        "",
    ],
)
def test_a_lost_answer_is_not_known_to_be_a_no(words: str):
    error = submit_error("cluster", Done(1, "", words))
    assert isinstance(error, ProviderError)
    assert not isinstance(error, Refused)
    assert "asked for the job by its name" in str(error)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("Invalid account or account/partition combination specified", "Change `account`"),
        ("Invalid qos specification", "Change `qos`"),
        ("Invalid partition name specified", "Change `partition`"),
        ("Invalid job array specification", "raise pages_per_task"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "Change `time`"),
        ("Invalid generic resource (gres) specification", "Change `gres`"),
        ("Memory specification can not be satisfied", "Change `mem`"),
        ("Requested node configuration is not available", "Change `cpus`, `mem` or `gres`"),
        ("User's group not permitted to use this partition", "Change `partition`"),
        ("Job violates the phase of the moon", "Change what it names"),
        ("AssocMaxWallDurationPerJobLimit", "Change what it names"),
    ],
)
def test_a_no_is_told_with_what_to_do(words: str, advice: str):
    error = submit_error("cluster", Done(1, "", FAILED + words))
    assert isinstance(error, Refused)
    assert not error.account
    assert str(error).startswith(f"cluster: Slurm does not take it: {words}. ")
    assert advice in str(error)


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: AssocMaxSubmitJobLimit\n" + FAILED + "Job violates accounting/QOS policy "
        "(job submit limit, user's size and/or time limits)",
        "sbatch: error: QOSMaxSubmitJobPerUserLimit",
        FAILED + "Job violates accounting/QOS policy (job submit limit, user's size and/or time "
        "limits)",
    ],
)
def test_a_limit_on_jobs_passes_when_some_end(words: str):
    error = submit_error("cluster", Done(1, "", words))
    assert isinstance(error, Refused)
    assert (error.account, error.retry_after) == (True, 300.0)


def test_a_login_node_without_slurm_is_said_to_be_one():
    error = submit_error("cluster", Done(127, "", "sh: 1: sbatch: not found"))
    assert isinstance(error, Refused)
    assert "there is no sbatch where the account logs in" in str(error)


def test_a_remote_id_says_where_the_task_lies():
    task = SlurmTask(15, 2, "letters-0001-ab12", "width-a")
    assert task.remote_id == "15_2/letters-0001-ab12/width-a"
    assert SlurmTask.of(task.remote_id) == task


@pytest.mark.parametrize(
    "remote_id",
    ["", "15", "15_2", "15_2/a", "15_2/../a", "15_2/a/..", "15_2/a/b/c", "x_2/a/b", "15_2/a/ b"],
)
def test_an_id_that_leads_elsewhere_is_none(remote_id: str):
    with pytest.raises(ProviderError, match="is not the id of a task"):
        SlurmTask.of(remote_id)

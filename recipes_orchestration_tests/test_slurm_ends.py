"""However a task at a real Slurm ends: what it wrote lands, and the rest says why it did not."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from recipes_orchestration.errors import Unreachable
from recipes_orchestration.places.place import Standing, State
from recipes_orchestration.rehearsal.slurm_site import SlurmSite
from recipes_orchestration.runner.task_folder import encode_line

from .slurm_tasks import STEP, Cluster, cluster, eventually, forget_all_jobs, settled


def wrote(here: Cluster, remote_id: str) -> bool:
    path = here.results_file(remote_id)
    return path.exists() and path.stat().st_size > 0


def runners_of(folder: Path) -> list[psutil.Process]:
    """The processes that work on a task folder, the runner first."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if str(folder) in line and "recipes_orchestration.runner.main" in line:
            found.append(process)
    return found


def started(here: Cluster, remote_id: str) -> None:
    """Waits until the task has written its first page and works on a slow one."""
    eventually(lambda: wrote(here, remote_id))


def test_cancelled_here_while_it_runs_it_keeps_what_it_wrote(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b-slow", "c"))
    started(here, remote_id)
    place.cancel(remote_id)
    (standing,) = settled(place, [remote_id]).values()
    assert standing == Standing(State.ENDED, "It was cancelled.")
    assert here.kinds(place, remote_id) == {"a": "landed", "b-slow": "cancelled", "c": "cancelled"}
    assert here.kinds(place, remote_id, stopped="stop")["b-slow"] == "stopped"


def test_cancelled_here_while_it_waits_it_is_over_at_once(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    place = here.place()
    ids = here.send(place, here.spec("a", "b", "c"))
    place.cancel(ids[1])
    (standing,) = settled(here.place(), ids[1:]).values()
    assert standing.state is State.ENDED
    assert here.kinds(here.place(), ids[1], stopped="stop") == {"b": "stopped", "c": "stopped"}
    assert here.place().statuses(ids[:1])[ids[0]].state is State.RUNNING


@pytest.mark.slow
def test_cancelled_by_hand_it_is_said_to_be(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=2, parallel=1)
    place = here.place()
    ids = here.send(place, here.spec("a", "b-slow", "c", "d"))
    started(here, ids[0])
    for remote_id in ids:
        slurm_site.ask("scancel", remote_id.partition("/")[0])
    # The one that waited leaves no record at all, so it is looked at twice.
    standings = settled(place, ids)
    assert [each.state for each in standings.values()] == [State.ENDED, State.ENDED]
    assert here.kinds(place, ids[0]) == {"a": "landed", "b-slow": "cancelled"}
    assert here.kinds(place, ids[1]) == {"c": "cancelled", "d": "cancelled"}


@pytest.mark.slow
def test_a_task_whose_time_is_over_keeps_what_it_wrote(slurm_site: SlurmSite, tmp_path: Path):
    # A runner that needs no time to begin: one minute is the least that Slurm gives.
    line = encode_line({"page": "a.jpg", "step": "width", "seconds": 0.1, "value": {"width": 60}})
    runner = tmp_path / "runner"
    runner.write_text(
        f"#!/bin/sh\nprintf '%s\\n' '{line.decode().strip()}' >$1/out/results.jsonl\n"
    )
    with runner.open("a") as script:
        script.write("exec sleep 300\n")
    runner.chmod(0o755)
    here = cluster(slurm_site, tmp_path, pages_per_task=9, time="00:01:00", runner=str(runner))
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b"))
    started(here, remote_id)
    (standing,) = settled(place, [remote_id]).values()
    assert standing == Standing(State.ENDED, "Its time limit was over.")
    assert here.kinds(place, remote_id) == {"a": "landed", "b": "expired"}


def test_a_task_that_is_warned_of_its_end_writes_its_outcome(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9, time="00:10:00")
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b-slow"))
    started(here, remote_id)
    # As Slurm does by itself a minute before the end: --signal=B:USR1@60.
    slurm_site.ask("scancel", "--signal=USR1", "--batch", remote_id.partition("/")[0])
    (standing,) = settled(place, [remote_id]).values()
    assert standing == Standing(State.ENDED, "Its time limit was over.")
    assert here.kinds(place, remote_id) == {"a": "landed", "b-slow": "expired"}
    assert (here.task_folder(remote_id) / "out" / "outcome.json").exists()


def test_a_killed_runner_counts_as_one_without_memory(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b-slow"))
    started(here, remote_id)
    for process in runners_of(here.task_folder(remote_id)):
        process.kill()
    (standing,) = settled(place, [remote_id]).values()
    assert standing == Standing(State.ENDED, "Its memory was not enough: it was killed.")
    assert here.kinds(place, remote_id) == {"a": "landed", "b-slow": "memory"}


def test_a_task_killed_with_its_script_counts_as_lost_with_its_node(
    slurm_site: SlurmSite, tmp_path: Path
):
    here = cluster(slurm_site, tmp_path, pages_per_task=9)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b-slow"))
    started(here, remote_id)
    (runner, *_) = runners_of(here.task_folder(remote_id))
    os.kill(runner.ppid(), signal.SIGKILL)
    (standing,) = settled(place, [remote_id]).values()
    assert standing.state is State.ENDED
    assert standing.words.startswith("It was killed: Slurm says failed")
    assert here.kinds(place, remote_id) == {"a": "landed", "b-slow": "node"}


def test_a_task_that_cannot_be_done_fails_with_the_runners_words(
    slurm_site: SlurmSite, tmp_path: Path
):
    here = cluster(slurm_site, tmp_path)
    place = here.place()
    step = replace(STEP, params={"cannot_load": True})
    (remote_id,) = here.send(place, here.spec("a", step=step))
    (standing,) = settled(place, [remote_id]).values()
    assert standing.state is State.FAILED
    assert "the weights are not there" in standing.words


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"runner": "no-such-runner"}, "The runner was not found there. Its log ends with: .*"),
        ({"modules": ("nothing/1",)}, "A module could not be loaded there. .*nothing/1"),
        ({"setup": ("echo some words >&2; exit 9",)}, "The runner ended with code 9 .*some words"),
    ],
)
def test_a_task_that_never_began_its_work_fails_with_its_log(
    slurm_site: SlurmSite, tmp_path: Path, rules: dict[str, Any], words: str
):
    here = cluster(slurm_site, tmp_path)
    place = here.place(**rules)
    (remote_id,) = here.send(place, here.spec("a"))
    (standing,) = settled(place, [remote_id]).values()
    assert standing.state is State.FAILED
    assert re.search(words, standing.words, re.DOTALL), standing.words


def test_one_that_never_starts_says_what_to_do(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a"))
    standing = place.statuses([remote_id])[remote_id]
    assert standing.state is State.RUNNING
    assert "never starts by itself (JobHeldUser): somebody holds it" in standing.words


@pytest.mark.slow
def test_one_that_left_without_a_word_is_asked_for_twice(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    (remote_id,) = here.send(here.place(), here.spec("a", "b"))
    slurm_site.ask("scancel", remote_id.partition("/")[0])
    eventually(lambda: here.jobs() == [] or "CANCELLED" in here.jobs()[0])
    forget_all_jobs(slurm_site)
    (first,) = here.place().statuses([remote_id]).values()
    assert first.state is State.RUNNING
    assert first.words.startswith("It left the queue without a word; it is looked at again in 10")
    # Another process goes on from what this one saw.
    (standing,) = settled(here.place(), [remote_id]).values()
    assert standing.state is State.ENDED
    assert here.kinds(here.place(), remote_id) == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.slow
def test_while_the_controller_is_down_nothing_has_ended(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a"))
    eventually(lambda: (here.task_folder(remote_id).parent / "started.0").exists())
    slurm_site.kill("slurmctld")
    with pytest.raises(Unreachable, match="Slurm does not answer") as unreachable:
        place.statuses([remote_id])
    assert not unreachable.value.connect
    eventually(lambda: (here.task_folder(remote_id).parent / "exit.0").exists())
    slurm_site.up()
    settled(place, [remote_id])
    assert here.kinds(place, remote_id) == {"a": "landed"}


@pytest.mark.slow
def test_a_task_outlives_the_daemon_of_its_node(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b"))
    eventually(lambda: (here.task_folder(remote_id).parent / "started.0").exists())
    slurm_site.kill("slurmd")
    eventually(lambda: (here.task_folder(remote_id).parent / "exit.0").exists())
    slurm_site.up()
    settled(place, [remote_id])
    assert here.kinds(place, remote_id) == {"a": "landed", "b": "landed"}


def test_an_id_that_slurm_gave_again_is_another_job(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a"))
    element, batch, _ = remote_id.split("/")
    older = f"{element}/{batch}/width-{'0' * 32}"
    standings = place.statuses([remote_id, older])
    assert "JobHeldUser" in standings[remote_id].words
    assert standings[older].words.startswith("It left the queue without a word")
    place.cancel(older)
    assert here.jobs() == ["0 PENDING"]


def test_a_task_whose_node_failed_keeps_what_it_wrote(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b-slow"))
    started(here, remote_id)
    (node,) = slurm_site.ask("sinfo", "-h", "-o", "%n").split()
    slurm_site.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    (standing,) = settled(place, [remote_id]).values()
    assert standing == Standing(State.ENDED, "Slurm ended it: its node failed.")
    assert here.kinds(place, remote_id) == {"a": "landed", "b-slow": "node"}
    # It comes back by itself (ReturnToService).
    eventually(lambda: "down" not in slurm_site.ask("sinfo", "-h", "-o", "%T"))


def test_an_unknown_id_is_looked_at_twice_and_has_nothing(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path)
    place = here.place()
    unknown = f"4711_0/nowhere/{here.array}"
    standings = place.statuses([unknown, "rubbish"])
    assert standings[unknown].state is State.RUNNING
    assert standings["rubbish"].state is State.UNKNOWN
    place.cancel(unknown)

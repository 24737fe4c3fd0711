"""The arguments of sbatch, and the batch script run as Slurm runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.places.slurm.script import (
    Mark,
    Rung,
    SlurmRules,
    batch_script,
    mark_of,
    sbatch_argv,
)

from .slurm_tasks import eventually

NAME = f"width-{'0' * 32}"


def options(rules: SlurmRules, indexes: list[int] | None = None, rung: int = 0) -> list[str]:
    return sbatch_argv(rules, NAME, "/scratch/b/a", indexes or [0, 1, 2], rung)


def test_the_least_that_is_asked_for():
    assert options(SlurmRules()) == [
        "sbatch",
        "--parsable",
        f"--job-name={NAME}",
        "--array=0-2",
        "--no-requeue",
        "--export=NONE",
        "--chdir=/scratch/b/a",
        "--output=/scratch/b/a/log/%A_%a.log",
    ]


def test_all_that_may_be_asked_for():
    rules = SlurmRules(
        account="hist",
        partition="gpu",
        qos="long",
        gres="gpu:1",
        time="1-12:00:00",
        mem="16G",
        cpus=4,
        parallel=3,
        extra=("--constraint=a100", "-N1"),
    )
    assert options(rules)[3] == "--array=0-2%3"
    assert options(rules)[8:] == [
        "--account=hist",
        "--partition=gpu",
        "--qos=long",
        "--gres=gpu:1",
        "--time=1-12:00:00",
        "--mem=16G",
        "--cpus-per-task=4",
        "--signal=B:USR1@60",
        "--constraint=a100",
        "-N1",
    ]


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([0], "0"), ([0, 1], "0-1"), ([0, 2, 3, 4, 7], "0,2-4,7"), (list(range(1000)), "0-999")],
)
def test_exactly_the_tasks_that_go_are_asked_for(indexes: list[int], text: str):
    assert f"--array={text}" in options(SlurmRules(), indexes)


def test_the_ladder_goes_on_from_where_it_was():
    rules = SlurmRules(time="01:00:00", mem="8G", ladder=(Rung(time="04:00:00"), Rung(mem="32G")))
    assert [rules.rung(number) for number in range(4)] == [
        Rung("01:00:00", "8G"),
        Rung("04:00:00", "8G"),
        Rung("04:00:00", "32G"),
        Rung("04:00:00", "32G"),
    ]


@pytest.mark.parametrize(
    "rules",
    [SlurmRules(), SlurmRules(time="00:05:00"), SlurmRules(time="01:00:00", extra=("--signal=9",))],
)
def test_a_short_task_is_not_warned_and_a_users_own_signal_stays(rules: SlurmRules):
    assert not any("USR1" in each for each in options(rules))


class Script:
    """The script of one task in a folder, run as Slurm does."""

    def __init__(self, folder: Path, **rules: Any) -> None:
        self.folder = folder / "array 'of"
        (self.folder / "0").mkdir(parents=True)
        self.runner = folder / "runner"
        rules = {"runner": str(self.runner), **rules}
        self.text = batch_script(SlurmRules(**rules), NAME, str(self.folder))
        self.process: subprocess.Popen[str] | None = None

    def start(self, runner: str) -> None:
        self.runner.write_text(f"#!/bin/sh\n{runner}\n")
        self.runner.chmod(0o755)
        self.process = subprocess.Popen(
            ["bash", "-c", self.text],
            env={**os.environ, "SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_JOB_ID": "15"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait(self) -> str:
        assert self.process is not None
        out, _ = self.process.communicate(timeout=120)
        return out

    def mark(self, name: str = "exit.0") -> Mark | None:
        path = self.folder / name
        return mark_of(path.read_text()) if path.exists() else None

    def code(self) -> int | None:
        mark = self.mark()
        assert mark is not None
        assert mark.job == 15
        return mark.code


@pytest.fixture
def ended() -> Iterator[list[Script]]:
    scripts: list[Script] = []
    yield scripts
    for script in scripts:
        if script.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(script.process.pid, signal.SIGKILL)
            script.process.communicate()


def test_the_runner_gets_the_task_folder_and_its_code_is_kept(tmp_path: Path, ended: list[Script]):
    script = Script(tmp_path)
    ended.append(script)
    script.start('echo "$1"; exit 3')
    assert script.wait() == f"{script.folder}/0\n"
    assert script.code() == 3
    started = script.mark("started.0")
    assert started is not None
    assert started.code is None
    assert sorted(os.listdir(script.folder)) == ["0", "exit.0", "started.0"]


@pytest.mark.parametrize(
    ("number", "why"), [(signal.SIGTERM, "term"), (signal.SIGUSR1, "time"), (signal.SIGINT, "term")]
)
def test_a_signal_reaches_the_runner_which_ends_in_its_own_time(
    tmp_path: Path, ended: list[Script], number: signal.Signals, why: str
):
    script = Script(tmp_path)
    ended.append(script)
    up = tmp_path / "up"
    ends = "trap 'sleep 0.5; echo written; exit 143' TERM"
    script.start(f"{ends}\ntouch {up}\nsleep 600 >/dev/null 2>&1 &\nwait")
    assert script.process is not None
    eventually(up.exists)
    time.sleep(0.1)
    os.kill(script.process.pid, number)
    time.sleep(0.1)
    os.kill(script.process.pid, signal.SIGTERM)
    assert "written" in script.wait()
    mark = script.mark()
    assert mark is not None
    assert (mark.code, mark.why) == (143, why)


def test_a_killed_runner_is_told_from_one_that_ended(tmp_path: Path, ended: list[Script]):
    script = Script(tmp_path)
    ended.append(script)
    script.start("kill -9 $$")
    script.wait()
    assert script.code() == 137


@pytest.mark.parametrize(
    ("rules", "code", "words"),
    [
        ({"runner": "/no/such/runner"}, 127, "recipes: there is no /no/such/runner on"),
        ({"modules": ("python/3.11",)}, 120, "the module python/3.11 could not be loaded"),
        ({"setup": ("exit 9",)}, 9, ""),
        ({"setup": ("set -e", "false")}, 1, ""),
        ({"container": "a.sif", "container_run": "no-apptainer exec"}, 127, "no-apptainer"),
    ],
)
def test_what_fails_before_the_runner_leaves_its_code(
    tmp_path: Path, ended: list[Script], rules: dict[str, Any], code: int, words: str
):
    script = Script(tmp_path, **rules)
    ended.append(script)
    script.start("exit 0")
    assert words in script.wait()
    assert script.code() == code


def test_lines_of_setup_and_modules_come_before_the_runner(tmp_path: Path, ended: list[Script]):
    script = Script(
        tmp_path,
        setup=('module() { echo module "$@"; }', "export GREETING='a b'"),
        modules=("python/3.11", "cuda"),
    )
    ended.append(script)
    script.start('echo "$GREETING"')
    assert script.wait() == "module load python/3.11\nmodule load cuda\na b\n"
    assert script.code() == 0


@pytest.mark.parametrize("run", ["apptainer exec", "apptainer exec --nv", "docker run"])
def test_a_container_sees_the_batch_folder(tmp_path: Path, ended: list[Script], run: str):
    program = tmp_path / "bin" / run.split()[0]
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    script = Script(
        tmp_path,
        setup=(f"PATH={program.parent}:$PATH",),
        container="~/images/my runner.sif",
        container_run=run,
        runner="recipes-runner",
    )
    ended.append(script)
    script.start("exit 0")
    bound = [] if run.startswith("docker") else ["--bind", str(script.folder.parent)]
    assert script.wait().split("\n")[:-1] == [
        *run.split()[1:],
        *bound,
        f"{Path.home()}/images/my runner.sif",
        "recipes-runner",
        f"{script.folder}/0",
    ]

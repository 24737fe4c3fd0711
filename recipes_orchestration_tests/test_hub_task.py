"""A task on a job whose batch folder is mounted: fetched, run, put back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recipes_orchestration.runner.hub_task import ENDED, NOT_FETCHED, NOT_PUT_BACK

from .hub_archive import until

MANIFEST = {
    "format": 1,
    "task": "lines-1",
    "steps": [
        {
            "name": "lines",
            "run": "lines",
            "version": "1",
            "place": "hf_jobs",
            "needs": [],
            "params": {},
            "provider": None,
            "model": None,
            "prompt": None,
            "image": None,
        }
    ],
    "pages": [
        {
            "page_id": "a/1.jpg",
            "sha256": "0" * 64,
            "file": "../../pages/1.jpg",
            "file_sha256": "0" * 64,
            "frame": None,
            "steps": ["lines"],
            "encoded": False,
        }
    ],
    "runner": "1",
    "max_pixels": 1000,
    "page_timeout": 600.0,
    "code": "../../code/abc",
    "needs": False,
}

# What stands for the runner: its task folder is the last argument.
WRITES = """
import pathlib, sys
folder = pathlib.Path(sys.argv[-1])
names = [path.relative_to(folder.parents[1]).as_posix() for path in folder.parents[1].rglob("*")]
(folder / "out" / "results.jsonl").write_text("\\n".join(sorted(names)))
"""
WAITS = """
import pathlib, sys, time
out = pathlib.Path(sys.argv[-1]) / "out"
with (out / "results.jsonl").open("a") as stream:
    for number in range(600):
        stream.write(f"{number}\\n")
        stream.flush()
        time.sleep(0.05)
"""


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    folder = tmp_path / "mount"
    for name in ("lines-1/0", "pages", "code/abc"):
        (folder / name).mkdir(parents=True)
    (folder / "lines-1/0/manifest.json").write_text(json.dumps(MANIFEST))
    (folder / "pages/1.jpg").write_bytes(b"one")
    (folder / "pages/other.jpg").write_bytes(b"another task's")
    (folder / "code/abc/steps.py").write_text("")
    return folder


def command(mount: Path, script: str, *more: str) -> list[str]:
    runner = mount.parent / "runner.py"
    runner.write_text(script)
    return [
        *(sys.executable, "-m", "recipes_orchestration.runner.hub_task", "--mount", str(mount)),
        *("--task", "lines-1/0", "--runner", f"{sys.executable} {runner}", *more),
    ]


def run(mount: Path, script: str, *more: str) -> int:
    return subprocess.run(command(mount, script, *more), timeout=60, check=False).returncode


def results(mount: Path) -> str:
    path = mount / "lines-1/0/out/results.jsonl"
    return path.read_text() if path.exists() else ""


def test_a_task_has_its_pages_and_its_code_and_no_others(mount: Path):
    assert run(mount, WRITES) == 0
    assert {"pages/1.jpg", "code/abc/steps.py"} <= set(results(mount).split("\n"))
    assert "pages/other.jpg" not in results(mount)


def test_the_runner_s_exit_code_is_the_job_s(mount: Path):
    assert run(mount, "import sys; sys.exit(3)") == 3


def test_a_runner_killed_by_a_signal_ends_as_a_shell_says_it(mount: Path):
    assert run(mount, "import os; os.kill(os.getpid(), 9)") == 128 + signal.SIGKILL


def test_results_are_put_back_while_the_task_runs(mount: Path):
    with subprocess.Popen(command(mount, WAITS, "--every", "0.2")) as process:
        until(lambda: results(mount).count("\n") > 2)
        process.kill()


def test_a_job_that_is_ended_puts_back_what_it_has(mount: Path):
    with subprocess.Popen(command(mount, WAITS, "--every", "0.2")) as process:
        until(lambda: results(mount))
        time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert results(mount).endswith("\n")


def test_before_its_time_is_over_a_task_is_ended_and_says_so(mount: Path):
    assert run(mount, WAITS, "--stop-after", "2") == 128 + signal.SIGTERM
    assert results(mount)
    assert json.loads((mount / "lines-1/0/out" / ENDED).read_text()) == {"why": "time"}


def test_a_rerun_goes_on_from_what_was_put_back(mount: Path):
    (mount / "lines-1/0/out").mkdir()
    (mount / "lines-1/0/out/results.jsonl").write_text("first\n")
    append = 'import sys; open(sys.argv[-1] + "/out/results.jsonl", "a").write("second\\n")'
    assert run(mount, append) == 0
    assert results(mount) == "first\nsecond\n"


def test_a_page_that_is_not_there_is_said(mount: Path):
    (mount / "pages/1.jpg").unlink()
    assert run(mount, WRITES) == NOT_FETCHED


def test_a_manifest_whose_paths_lead_out_is_refused(mount: Path):
    manifest = json.loads(json.dumps(MANIFEST))
    manifest["pages"][0]["file"] = "../../../secret"
    (mount / "lines-1/0/manifest.json").write_text(json.dumps(manifest))
    assert run(mount, WRITES) == NOT_FETCHED


def test_a_task_that_leads_out_of_the_batch_folder_is_refused(mount: Path):
    assert run(mount, WRITES, "--task", "../other/0") == 2


def test_results_that_cannot_be_put_back_are_said(mount: Path):
    (mount / "lines-1/0/out").write_text("a file where the folder is to be")
    assert run(mount, WRITES) == NOT_PUT_BACK

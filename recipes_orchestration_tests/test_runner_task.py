"""`recipes-runner` on a task folder, from its start to its end."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from recipes_orchestration.pages.decode import decode
from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.task_folder import (
    OUT,
    OUTCOME,
    RESULTS,
    WORK,
    ManifestPage,
    read_manifest,
    write_manifest,
)

from .task_folders import AREA, SIZE, TaskFolder, make_task, values_of

PAGES = ["a/1.png", "a/2.png", "a/3.png"]


def words(task: TaskFolder) -> list[list[str]]:
    """What the steps did, without process ids."""
    return [line[:2] for line in task.seen()]


def test_steps_run_one_after_another_each_model_loaded_once(tmp_path: Path):
    task = make_task(tmp_path, PAGES)
    task.run()
    assert words(task) == [
        ["load", "one"],
        *[["size", page] for page in PAGES],
        ["load", "two"],
        *[["area", page] for page in PAGES],
    ]
    assert [(step["model_loads"], step["landed"]) for step in task.outcome()["steps"]] == [
        (1, 3)
    ] * 2


def test_the_second_step_reads_the_first_ones_results(tmp_path: Path):
    task = make_task(tmp_path, PAGES)
    task.run()
    assert task.results() == values_of(PAGES)


def test_a_step_reads_results_that_were_sent(tmp_path: Path):
    sent = {(page, "size"): {"width": 100} for page in PAGES[:2]}
    task = make_task(tmp_path, PAGES, steps=[AREA], needs=sent)
    task.run()
    assert task.results() == {(page, "area"): {"area": 700} for page in PAGES[:2]}
    assert task.outcome()["steps"][0]["left"] == 1


def test_a_failed_page_skips_what_needs_it(tmp_path: Path):
    task = make_task(tmp_path, ["1.png", "raise.png", "3.png"])
    task.run()
    assert task.results()["raise.png", "size"] == "failed"
    assert ("raise.png", "area") not in task.results()
    [failed] = [each for each in task.entries() if each.failed]
    assert failed.words == "ValueError: no size"


def test_the_outcome_says_what_became_of_each_page(tmp_path: Path):
    task = make_task(tmp_path, ["1.png", "raise.png"])
    task.run()
    outcome = task.outcome()
    whole = (task.path / OUT / RESULTS).read_bytes()
    assert outcome["results"] == {
        "lines": 3,
        "bytes": len(whole),
        "sha256": hashlib.sha256(whole).hexdigest(),
    }
    assert (outcome["complete"], outcome["failure"], outcome["restarts"]) == (True, None, 0)
    assert outcome["task"] == "stage-1_0"
    assert {
        page: {step: how for step, (how, _) in steps.items()}
        for page, steps in outcome["pages"].items()
    } == {
        "1.png": {"size": "landed", "area": "landed"},
        "raise.png": {"size": "failed"},
    }
    counts = [[step[name] for name in ("landed", "failed", "left")] for step in outcome["steps"]]
    assert counts == [[1, 1, 0], [1, 0, 1]]
    assert outcome["peak_memory_mb"] > 5
    assert outcome["versions"]["python"].startswith("3.")


def test_a_rerun_does_nothing(tmp_path: Path):
    task = make_task(tmp_path, PAGES)
    task.run()
    before = {each: each.stat().st_mtime_ns for each in (task.path / OUT).iterdir()}
    task.run()
    assert len(task.seen()) == 8
    assert {each: each.stat().st_mtime_ns for each in (task.path / OUT).iterdir()} == before


def test_a_rerun_without_an_outcome_skips_what_is_written(tmp_path: Path):
    task = make_task(tmp_path, PAGES)
    task.run()
    (task.path / OUT / OUTCOME).unlink()
    path = task.path / OUT / RESULTS
    path.write_bytes(path.read_bytes()[:-5])
    task.run()
    assert words(task)[8:] == [["load", "two"], ["area", PAGES[2]]]
    assert task.results() == values_of(PAGES)
    assert task.outcome()["complete"]


def test_an_outcome_that_is_half_written_is_not_believed(tmp_path: Path):
    task = make_task(tmp_path, PAGES)
    (task.path / OUT).mkdir()
    (task.path / OUT / OUTCOME).write_text('{"complete": true, "pag')
    task.run()
    assert task.results() == values_of(PAGES)


def test_pages_with_other_bytes_than_were_sent_fail_and_the_rest_goes_on(tmp_path: Path):
    task = make_task(tmp_path, PAGES)
    files = [task.path / page.file for page in read_manifest(task.path).pages]
    files[0].write_bytes(files[1].read_bytes())
    files[2].unlink()
    task.run()
    assert task.results() == {
        (PAGES[0], "size"): "source",
        (PAGES[1], "size"): {"width": 11, "model": "one"},
        (PAGES[1], "area"): {"area": 77},
        (PAGES[2], "size"): "source",
    }
    assert "another checksum" in task.entries()[0].words


def test_a_step_sees_the_page_of_the_source(tmp_path: Path):
    """A page inside a file comes as a picture of its own, or as the whole file."""
    told = Step("told", "own_steps:told", "1")
    task = make_task(tmp_path, ["a/1.png", "b/x.pdf#0003", "b/y.pdf#0002"], steps=[told])
    manifest = read_manifest(task.path)
    one, two, three = manifest.pages
    pages = (one, replace(two, encoded=True, sha256="2" * 64), replace(three, frame=1))
    write_manifest(task.path, replace(manifest, pages=pages))
    task.run()
    assert list(task.results().values()) == [
        {"file": "a/1.png", "frame": None, "folder": "a", "sha256": one.sha256},
        {"file": "b/x.pdf", "frame": None, "folder": "b", "sha256": "2" * 64},
        {"file": "b/y.pdf", "frame": 1, "folder": "b", "sha256": three.sha256},
    ]


def test_pages_of_one_file_are_read_by_their_number(tmp_path: Path):
    held = io.BytesIO()
    made = [Image.new("L", (width, 20), 255) for width in (30, 40, 50)]
    made[0].save(held, "TIFF", save_all=True, append_images=made[1:])
    data = held.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    pages = [
        ManifestPage(
            f"x.tif#{n + 1:04d}",
            hashlib.sha256(f"{digest}#{n}".encode()).hexdigest(),
            "../../pages/x.tif",
            digest,
            n,
            ("size",),
        )
        for n in (2, 0, 1)
    ]
    task = make_task(tmp_path, [], steps=[SIZE])
    (task.batch / "pages" / "x.tif").write_bytes(data)
    write_manifest(task.path, replace(read_manifest(task.path), pages=tuple(pages)))
    task.run()
    assert [each.value["width"] for each in task.entries()] == [50, 30, 40]
    assert decode(data, frame=2).width == 50


def test_operations_for_several_pages_get_several(tmp_path: Path):
    pages = [f"{n}.png" for n in range(20)]
    task = make_task(tmp_path, pages, steps=[Step("wide", "own_steps:wide", "1")])
    task.run()
    assert [len(line) - 1 for line in task.seen()] == [8, 8, 4]
    assert [each.value["width"] for each in task.entries()] == list(range(10, 30))


def test_progress_is_told_in_messages_that_dagster_pipes_reads(tmp_path: Path):
    task = make_task(tmp_path, ["1.png", "raise.png"])
    task.run()
    messages = task.messages()
    assert [messages[0]["method"], messages[-1]["method"]] == ["opened", "closed"]
    logged = [
        (each["params"]["level"], each["params"]["message"])
        for each in messages
        if each["method"] == "log"
    ]
    assert ("WARNING", "size: raise.png: ValueError: no size") in logged
    assert any("size: model loaded in 0.0 s" in text for _, text in logged)
    assert logged[-1] == (
        "INFO",
        "size: 1 landed, 1 failed, 0 left; area: 1 landed, 0 failed, 1 left",
    )


def test_a_stopped_runner_keeps_what_is_written_and_says_so(tmp_path: Path):
    pages = [f"{n}.png" for n in range(40)]
    task = make_task(tmp_path, pages, steps=[replace(SIZE, params={"name": "one", "sleep": 0.05})])
    with task.start() as runner:
        wait_for_lines(task, 4)
        runner.send_signal(signal.SIGTERM)
        _, errors = runner.communicate(timeout=30)
    assert runner.returncode == 143
    assert b"ended by SIGTERM" in errors
    outcome = task.outcome()
    done = len(task.results())
    assert (outcome["complete"], outcome["failure"]) == (False, None)
    assert outcome["steps"][0]["left"] == 40 - done > 0
    task.run()
    assert len(task.results()) == 40
    assert task.outcome()["complete"]
    again = [line[1] for line in task.seen() if line[0] == "size"]
    assert len(again) - len(set(again)) <= 1  # the page that was in work


def test_two_runners_do_not_work_in_one_folder(tmp_path: Path):
    task = make_task(tmp_path, ["1.png", "hang.png"], steps=[SIZE])
    with task.start() as first:
        wait_for_lines(task, 1)
        assert "Another runner" in task.run(75, wait=0.3)
        assert not (task.path / OUT / OUTCOME).exists()
        first.terminate()
        first.communicate(timeout=30)
    assert first.returncode == 143
    assert len(task.seen()) == 3


def test_a_runner_that_was_taken_over_stops(tmp_path: Path):
    """As on file systems where a lock is seen on one machine only."""
    program = (
        "import sys; from pathlib import Path\n"
        "from recipes_orchestration.runner import folder_lock\n"
        "lock = folder_lock.FolderLock(Path(sys.argv[1]), beat=0.0);"
        "lock.beat(); print('held', flush=True); input();\n"
        "try: lock.beat()\n"
        "except folder_lock.FolderBusy as error: print(error)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (tmp_path / WORK / "lock").write_text("other:1:abc 5")
        assert "Another runner (other:1:abc)" in holder.communicate("\n", timeout=30)[0]


def test_without_locks_a_silent_runner_is_taken_over_and_a_living_one_not(tmp_path: Path):
    program = (
        "import errno, fcntl, sys; from pathlib import Path\n"
        "def flock(*_): raise OSError(errno.ENOSYS, 'no locks')\n"
        "fcntl.flock = flock\n"
        "from recipes_orchestration.runner import folder_lock\n"
        "try: folder_lock.FolderLock(Path(sys.argv[1]), beat=0.05); print('taken')\n"
        "except folder_lock.FolderBusy: print('busy')\n"
    )

    def attempt() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True
        )

    lock = tmp_path / WORK / "lock"
    lock.parent.mkdir()
    lock.write_text("other:1:abc 5")
    with attempt() as silent:
        assert silent.communicate(timeout=30)[0] == "taken\n"
    with attempt() as living:
        count = 0
        while living.poll() is None:
            count += 1
            lock.write_text(f"other:1:abc {count}")
            time.sleep(0.01)
        assert living.communicate()[0] == "busy\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends by itself a little later")
def test_a_worker_ends_with_its_runner_even_when_it_is_held(tmp_path: Path):
    pages = [f"{n}.png" for n in range(20)]
    task = make_task(tmp_path, pages, steps=[replace(SIZE, params={"name": "one", "sleep": 0.1})])
    with task.start() as runner:
        wait_for_lines(task, 1)
        worker = int(task.seen()[0][2])
        os.kill(worker, signal.SIGSTOP)
        runner.kill()
        runner.communicate()
        wait_for_end(worker)
    # The new one takes the lock as soon as the old one's worker has let go of it.
    task.run()
    assert len(task.results()) == 20


def wait_for_end(pid: int) -> None:
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def wait_for_lines(task: TaskFolder, count: int) -> None:
    path = task.path / OUT / RESULTS
    until = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_what_a_worker_imports_is_small(tmp_path: Path):
    """Neither the orchestration nor what it stands on is needed on a far side."""
    program = (
        "import json, sys\n"
        "from recipes_orchestration.runner import main, worker\n"
        "from recipes_orchestration.steps.registry import load_operation\n"
        "load_operation('text')\n"
        "import dagster_pipes\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    loaded = set(json.loads(out))
    assert {"recipes_orchestration", "dagster_pipes", "PIL"} <= loaded
    foreign = (
        "dagster",
        "sqlalchemy",
        "alembic",
        "pyarrow",
        "pandas",
        "numpy",
        "typer",
        "rich",
        "anthropic",
        "openai",
        "google",
        "boto3",
        "botocore",
        "huggingface_hub",
        "psutil",
        "pebble",
        "tenacity",
        "jsonschema",
    )
    assert loaded.isdisjoint(foreign)

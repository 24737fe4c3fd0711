"""Runs that share a machine do their local work one after another."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from recipes_orchestration.places.turn import local_turn

HOLDER = """
import sys, time
from pathlib import Path
from recipes_orchestration.places.turn import local_turn
with local_turn(Path(sys.argv[1]), lambda: None):
    print("mine", flush=True)
    time.sleep(600)
"""


def test_a_second_run_waits_and_says_so(tmp_path: Path) -> None:
    waits = threading.Event()
    works = threading.Event()

    def second() -> None:
        with local_turn(tmp_path, waits.set):
            works.set()

    with local_turn(tmp_path, lambda: None):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(10)
        assert not works.is_set()
    thread.join(10)
    assert works.is_set()


def test_a_killed_process_gives_its_turn_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    said: list[str] = []
    with local_turn(tmp_path, lambda: said.append("waits")):
        pass
    assert said == []

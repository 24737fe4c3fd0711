from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.runner.memory_kills import MemoryKills

TWO = "0::/system.slice/job_7\n"
ONE = "9:name=systemd:/\n4:cpu,memory:/slurm/job_7\n0::/\n"


@pytest.mark.parametrize(
    ("controllers", "file"),
    [
        (TWO, "system.slice/job_7/memory.events"),
        (ONE, "memory/slurm/job_7/memory.oom_control"),
    ],
)
def test_a_kill_for_memory_is_seen_once(tmp_path: Path, controllers: str, file: str):
    told = tmp_path / "cgroup"
    told.write_text(controllers)
    count = tmp_path / "mounted" / file
    count.parent.mkdir(parents=True)
    count.write_text("oom 9\noom_kill 4\noom_group_kill 0\n")
    kills = MemoryKills(told, tmp_path / "mounted")
    assert not kills.happened()
    count.write_text("oom 9\noom_kill 5\noom_group_kill 0\n")
    assert kills.happened()
    assert not kills.happened()


@pytest.mark.parametrize("controllers", ["", "garbage\n", TWO, "::::\n"])
def test_where_nothing_can_be_read_there_was_none(tmp_path: Path, controllers: str):
    told = tmp_path / "cgroup"
    told.write_text(controllers)
    assert not MemoryKills(told, tmp_path / "missing").happened()
    assert not MemoryKills(tmp_path / "missing", tmp_path).happened()


def test_the_control_group_of_this_process_can_be_asked():
    assert not MemoryKills().happened()

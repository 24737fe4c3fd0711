"""Tasks at a real Slurm, from the login node itself: sent, followed, landed, let go."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.errors import Refused
from recipes_orchestration.places.place import State
from recipes_orchestration.places.slurm.slurm_place import Rung
from recipes_orchestration.rehearsal.slurm_site import SlurmSite
from recipes_orchestration.runner.task_folder import encode_line
from recipes_orchestration.runner.work import FailureKind

from .slurm_tasks import cluster, forget_all_jobs, settled, sought


def files_of(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*"))


def test_an_array_gives_the_pages_of_each_of_its_tasks(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path)
    place = here.place()
    ids = here.send(place, here.spec("a", "b", "bad"))
    assert [each.rpartition("/")[2] for each in ids] == [here.array, here.array]
    assert {each.state for each in settled(place, ids).values()} == {State.ENDED}
    # Another process finds all that it needs in the ids.
    other = here.place()
    kinds: dict[str, str] = {}
    for each in ids:
        kinds |= here.kinds(other, each)
        report = other.report(each)
        assert report is not None
        assert [step["name"] for step in report.facts["steps"]] == ["width"]
        assert report.messages
    assert kinds == {"a": "landed", "b": "landed", "bad": "failed"}


def test_one_task_alone_has_the_name_of_its_array(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=10)
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b"))
    settled(place, [remote_id])
    outcomes = here.outcomes(place, remote_id)
    assert {page: each.value for page, each in outcomes.items()} == {
        "a": {"width": 60},
        "b": {"width": 61},
    }


def test_what_landed_is_forgotten_on_scratch_too(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path)
    place = here.place()
    first, second = here.send(place, here.spec("a", "b", "c"))
    settled(place, [first, second])
    here.clear(place, first)
    assert not here.task_folder(first).exists()
    assert here.kinds(place, second) == {"b": "landed", "c": "landed"}
    for _ in range(2):
        assert here.clear(place, second) == [f"{here.array}_1"]
    assert files_of(here.scratch) == ["archive", "archive/.arrays"]


def test_pages_stay_while_another_array_needs_them(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=10)
    place = here.place()
    spec = here.spec("a", "b")
    (first,) = here.send(place, spec)
    (second,) = here.send(place, spec, here.array.replace("width", "height"))
    settled(place, [first, second])
    here.clear(place, first)
    assert (here.task_folder(second).parents[1] / "pages").exists()
    here.clear(place, second)
    assert files_of(here.scratch) == ["archive", "archive/.arrays"]


def test_more_time_and_memory_go_to_pages_that_got_too_little(
    slurm_site: SlurmSite, tmp_path: Path
):
    here = cluster(
        slurm_site,
        tmp_path,
        time="00:10:00",
        ladder=(Rung(time="00:20:00"), Rung(mem="600M")),
        extra=("--hold",),
    )
    place = here.place()
    spec = here.spec("a", "b", "c")
    tried = [
        replace(page, attempts=n, failed=str(FailureKind.EXPIRED))
        for n, page in enumerate(spec.pages)
    ]
    sent: list[str] = []
    for number, group in enumerate(place.pack(replace(spec, pages=tuple(tried)))):
        assert [package.group["rung"] for package in group] == [number]
        sent += place.submit([f"{here.array[:-1]}{number}"], group)
    told = slurm_site.ask("squeue", "-h", "-o", "%l %m %j")
    assert sorted(line.split()[:2] for line in told.split("\n") if line) == [
        ["10:00", "400M"],
        ["20:00", "400M"],
        ["20:00", "600M"],
    ]


def test_a_task_is_to_be_done_within_its_time_limit(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=None, time="00:04:00")
    spec = replace(here.spec("a", "b", "c", "d", "e"), seconds_per_page=60.0)
    (group,) = here.place().pack(spec)
    assert sorted(len(package.pages) for package in group) == [2, 3]


def test_at_most_so_many_tasks_run_at_the_same_time(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, parallel=1, pages_per_task=1, extra=("--hold",))
    here.send(here.place(), here.spec("a", "b"))
    assert "ArrayTaskThrottle=1" in slurm_site.ask("scontrol", "show", "job")


def test_an_array_is_found_by_its_name_by_any_process(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path)
    place = here.place()
    assert place.find(sought(f"{here.array}_0")) is None
    ids = here.send(place, here.spec("a", "b", "c"))
    settled(place, ids)
    assert [here.place().find(sought(f"{here.array}_{n}")) for n in (0, 1)] == ids
    assert here.place().find(sought("width-" + "0" * 32 + "_0")) is None


def test_an_array_that_slurm_forgot_is_found_by_what_it_left(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path)
    ids = here.send(here.place(), here.spec("a", "b", "c"))
    settled(here.place(), ids)
    forget_all_jobs(slurm_site)
    assert here.place().find(sought(f"{here.array}_1")) == ids[1]
    assert {each.state for each in here.place().statuses(ids).values()} == {State.ENDED}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"partition": "nowhere"}, "invalid partition.*Change `partition`"),
        ({"mem": "900G"}, "Memory specification.*Change `mem`"),
        ({"gres": "gpu:9"}, r"generic resource \(gres\).*Change `gres`"),
        ({"extra": ("--no-such-option",)}, "unrecognized option.*Change `extra`"),
    ],
)
def test_what_slurm_never_takes_is_refused_with_what_to_do(
    slurm_site: SlurmSite, tmp_path: Path, rules: dict[str, Any], words: str
):
    here = cluster(slurm_site, tmp_path, **rules)
    with pytest.raises(Refused, match=words) as refused:
        here.send(here.place(), here.spec("a"))
    assert not refused.value.account
    # Slurm 22.05 keeps a row of a job that it refused for want of nodes.
    assert here.jobs() in ([], ["0 FAILED"])
    assert here.place().find(sought(here.array)) is None


def test_too_long_an_array_is_refused_with_what_to_do(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=1, extra=("--array=0-5000",))
    with pytest.raises(Refused, match=r"array specification.*raise pages_per_task"):
        here.send(here.place(), here.spec("a"))


def test_a_task_that_failed_as_a_whole_gives_what_it_wrote(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, pages_per_task=9, extra=("--hold",))
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a", "b"))
    line = encode_line({"page": "a.jpg", "step": "width", "seconds": 1.0, "value": {"width": 1}})
    here.results_file(remote_id).write_bytes(line)
    job = remote_id.partition("_")[0]
    (here.task_folder(remote_id).parent / "exit.0").write_text(f"1 {job} 3 1 2 - node\n")
    slurm_site.ask("scancel", job)
    (standing,) = settled(place, [remote_id]).values()
    assert standing.state is State.FAILED
    assert here.kinds(place, remote_id) == {"a": "landed"}


def test_scratch_that_cannot_be_made_is_refused(slurm_site: SlurmSite, tmp_path: Path):
    (tmp_path / "file").write_text("")
    here = cluster(slurm_site, tmp_path, scratch=str(tmp_path / "file" / "scratch"))
    with pytest.raises(Refused, match=r"cannot be made.*Name another one with scratch"):
        here.place().statuses([f"1_0/batch/{here.array}"])


def test_sending_the_same_again_writes_no_page_again(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    spec = here.spec("a", "b")
    (remote_id,) = here.send(here.place(), spec)
    pages = here.task_folder(remote_id).parents[1] / "pages"
    before = {each: each.stat().st_mtime_ns for each in pages.iterdir()}
    here.send(here.place(), spec, here.array.replace("width", "height"))
    assert {each: each.stat().st_mtime_ns for each in pages.iterdir()} == before
    assert len(before) == 2


def test_the_script_is_what_slurm_was_given(slurm_site: SlurmSite, tmp_path: Path):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    (remote_id,) = here.send(here.place(), here.spec("a"))
    script = here.task_folder(remote_id).parent / "script.sh"
    subprocess.run(["bash", "-n", script], check=True)
    held = tmp_path / "held.sh"
    job = remote_id.partition("_")[0]
    slurm_site.ask("scontrol", "write", "batch_script", job, str(held))
    assert held.read_text().rstrip("\n\0") == script.read_text().rstrip("\n")

"""A stage on a Slurm that keeps accounts: an element that left nothing else is known by them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .job_archive import (
    BATCH,
    Arrays,
    advance_until,
    first_stage,
    make_job_archive,
    run_all,
    slurm_place,
    values_of,
)
from .slurm_tasks import forget_all_jobs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.2)


def kill_script(below: int) -> None:
    """Kills the script of an element and all below it, so that it leaves no exit file."""
    (script,) = [
        each
        for each in psutil.Process(below).parents()
        if "slurm_script" in " ".join(each.cmdline())
    ]
    for each in [script, *script.children(recursive=True)]:
        each.kill()


def counted(engine: Engine) -> dict[str, str]:
    """The pages that failed, with what was said of it."""
    rows = engine.ledger.holds.attempts_of("letters", "letters", BATCH).values()
    return {row.page_id: row.words for row in rows}


def test_a_stage_gives_what_it_gives_here(slurm_accounting_site: SlurmSite, tmp_path: Path):
    settings = slurm_place(slurm_accounting_site, tmp_path, pages_per_task=2)
    there = make_job_archive(tmp_path / "there", settings)
    here = make_job_archive(tmp_path / "here", None)
    with there.engine() as far, here.engine() as near:
        run_all(far)
        run_all(near)
        for step in ("size", "area", "words"):
            assert values_of(far, step) == values_of(near, step)
    assert set(there.ran().values()) == {1}


def test_an_element_whose_exit_file_was_lost_is_known_by_the_accounts(
    slurm_accounting_site: SlurmSite, tmp_path: Path
):
    site = slurm_accounting_site
    settings = slurm_place(site, tmp_path, pages_per_task=1, parallel=1)
    archive = make_job_archive(tmp_path / "project", settings, ["a/1.png", "a/slow.png"])
    arrays = Arrays(site)
    with archive.engine() as engine:
        stage = first_stage(engine)
        assert len(advance(engine, stage, BATCH).remote) == 2
        until(archive.at)
        kill_script(archive.at()[0][1])
        (name,) = arrays.names

        def told() -> list[str]:
            query = ("sacct", "-n", "-X", "-P", f"--name={name}", "-o", "State")
            return site.ask(*query).split()

        until(lambda: sorted(told()) == ["COMPLETED", "FAILED"])
        for file in (tmp_path / "scratch").rglob("exit.*"):
            file.unlink()
        forget_all_jobs(site)
        assert advance_until(engine, 2)
        until(lambda: advance(engine, stage, BATCH) and counted(engine))
        ((page, words),) = counted(engine).items()
        assert page == "a/slow.png"
        assert "It was killed: Slurm says failed, 0:9." in words
        archive.go()
        assert run_all(engine).steps["area"].landed == 2
    assert set(archive.ran().values()) == {1}

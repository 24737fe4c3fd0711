"""Stages on the rehearsed hub, by the real client over real HTTP and with real processes."""

from __future__ import annotations

from pathlib import Path

from recipes_orchestration.rehearsal import HUB, Rehearsal

from .hub_archive import hub_archive
from .job_archive import make_job_archive, run_all, values_of


def test_two_steps_there_and_one_here_give_what_all_give_here(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub)
    here = make_job_archive(tmp_path / "here", None, pages=4)
    with archive.engine() as engine, here.engine() as local:
        run_all(engine)
        run_all(local)
        assert values_of(engine, "words") == values_of(local, "words")
        assert len(values_of(engine, "words")) == 4
    assert hub.counts(HUB)["creates"] == 1

"""A stage on a Slurm over ssh: what goes there, and a connection that is lost in the middle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import psutil
import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.errors import PlaceError
from recipes_orchestration.ledger.pauses import Pause
from recipes_orchestration.places.slurm import files_over_ssh, ssh_shell
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .command_runs import recipes
from .job_archive import (
    BATCH,
    Arrays,
    JobArchive,
    first_stage,
    make_job_archive,
    run_all,
    slurm_place,
    values_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

SECONDS = 120
GONE = "cluster: the connection is gone; type your second factor: recipes connect cluster"


def an_archive(site: SlurmSite, folder: Path, *names: str, **more: object) -> JobArchive:
    settings = {"kind": "slurm", **slurm_place(site, folder, **more)}
    return make_job_archive(folder / "project", settings, names, place="cluster")


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.1)


def pause_of(archive: JobArchive) -> Pause | None:
    with archive.engine() as engine:
        return engine.ledger.pauses.of("cluster")


def nothing_is_counted(archive: JobArchive) -> bool:
    with archive.engine() as engine:
        return engine.ledger.holds.attempts_of("letters", "letters", BATCH) == {}


def run(archive: JobArchive, over: Event) -> int:
    """Runs the stage at the place until the test is over; how many pages went through."""
    with archive.engine() as engine:
        stage = first_stage(engine)
        view = run_stage(engine, stage, BATCH, poll_seconds=0.2, defer=lambda _: over.is_set())
        return 0 if view is None else view.steps["area"].landed


@contextmanager
def going(archive: JobArchive) -> Generator[Future[int]]:
    """A run of the archive in a thread of its own."""
    over = Event()
    with ThreadPoolExecutor(1) as threads:
        try:
            yield threads.submit(run, archive, over)
        finally:
            over.set()


@pytest.fixture
def site(second_factor_site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> SlurmSite:
    """Its second factor is typed by a program instead of a person, where ssh asks for it."""
    monkeypatch.setenv("SSH_ASKPASS", str(second_factor_site.askpass))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    return second_factor_site


def connect(archive: JobArchive) -> None:
    told = recipes(archive, "connect", "cluster")
    assert told.code == 0, told.err


def test_a_connection_lost_in_the_middle_pauses_the_place_until_it_is_opened(
    site: SlurmSite, tmp_path: Path
):
    archive = an_archive(site, tmp_path, "a/1.png", "a/slow.png")
    connect(archive)
    arrays = Arrays(site)
    with going(archive) as landed:
        until(archive.at)
        site.drop_connections()
        until(lambda: pause_of(archive))
        pause = pause_of(archive)
        assert pause is not None
        assert (pause.words, pause.until, pause.until_reached) == (GONE, None, True)
        archive.go()
        until(lambda: site.ask("squeue", "-h", "-t", "R", "-o", "%i") == "")
        assert landed.running()
        assert nothing_is_counted(archive)
        connect(archive)
        assert landed.result(SECONDS) == 2
    assert pause_of(archive) is None
    assert nothing_is_counted(archive)
    assert set(archive.ran().values()) == {1}
    assert len(arrays) == 1


def test_a_run_that_begins_without_a_connection_sends_once_it_is_open(
    site: SlurmSite, tmp_path: Path
):
    archive = an_archive(site, tmp_path, "a/1.png", "a/2.png")
    arrays = Arrays(site)
    with going(archive) as landed:
        until(lambda: pause_of(archive))
        time.sleep(1)
        assert landed.running()
        assert len(arrays) == 0
        connect(archive)
        assert landed.result(SECONDS) == 2
    assert pause_of(archive) is None
    assert nothing_is_counted(archive)
    assert len(arrays) == 1


def test_a_connection_lost_while_sbatch_answered_is_no_reason_to_send_twice(
    site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = an_archive(site, tmp_path, "a/1.png", "a/2.png")
    connect(archive)
    arrays = Arrays(site)
    ask = ssh_shell.finished

    def lost(argv: list[str], stdin: str, timeout: float):
        done = ask(argv, stdin, timeout)
        if "--parsable" not in stdin or "--test-only" in stdin:
            return done
        site.drop_connections()
        return ssh_shell.Done(255, "", "Connection to mini closed by remote host.")

    monkeypatch.setattr(ssh_shell, "finished", lost)
    with going(archive) as landed:
        until(lambda: pause_of(archive))
        connect(archive)
        assert landed.result(SECONDS) == 2
    assert pause_of(archive) is None
    assert nothing_is_counted(archive)
    assert set(archive.ran().values()) == {1}
    assert len(arrays) == 1


def test_results_are_fetched_when_the_connection_that_was_lost_is_open_again(
    site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = an_archive(site, tmp_path, "a/1.png", "a/2.png")
    connect(archive)
    fetch = files_over_ssh.finished

    def lost_at_once(argv: list[str], stdin: str, timeout: float):
        if "--ignore-missing-args" in argv and not (tmp_path / "lost").exists():
            (tmp_path / "lost").touch()
            site.drop_connections()
        return fetch(argv, stdin, timeout)

    monkeypatch.setattr(files_over_ssh, "finished", lost_at_once)
    with going(archive) as landed:
        until(lambda: pause_of(archive))
        connect(archive)
        assert landed.result(SECONDS) == 2
    assert (tmp_path / "lost").exists()
    assert nothing_is_counted(archive)
    assert set(archive.ran().values()) == {1}


def lose_network(site: SlurmSite) -> None:
    """Ends sshd and all its connections; none can be opened in between."""
    pid = site.processes()["sshd"]
    assert pid is not None
    listener = psutil.Process(pid)
    listener.suspend()
    connections = listener.children(recursive=True)
    listener.kill()
    for each in connections:
        with suppress(psutil.NoSuchProcess):  # one may end by itself just now
            each.kill()


def test_a_network_that_was_away_needs_no_person_where_keys_suffice(
    ssh_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(ssh_site, tmp_path, "a/1.png", "a/slow.png")
    arrays = Arrays(ssh_site)
    with going(archive) as landed:
        until(archive.at)
        lose_network(ssh_site)
        archive.go()
        time.sleep(3)
        assert landed.running()
        assert pause_of(archive) is None
        ssh_site.up()
        assert landed.result(SECONDS) == 2
    assert nothing_is_counted(archive)
    assert set(archive.ran().values()) == {1}
    assert len(arrays) == 1


def test_a_stage_over_ssh_gives_what_it_gives_here(ssh_site: SlurmSite, tmp_path: Path):
    names = [f"a/{number}.png" for number in range(5)]
    there = an_archive(ssh_site, tmp_path / "there", *names, pages_per_task=2)
    here = make_job_archive(tmp_path / "here", None, names)
    with there.engine() as far, here.engine() as near:
        run_all(far)
        run_all(near)
        for step in ("size", "area", "words"):
            assert len(values_of(far, step)) == len(names)
            assert values_of(far, step) == values_of(near, step)
    assert set(there.ran().values()) == {1}
    scratch = [each for each in (tmp_path / "there" / "scratch").rglob("*") if each.is_file()]
    staged = (there.folder / ".recipes" / "tasks").rglob("*")
    assert (scratch, [each for each in staged if each.is_file()]) == ([], [])


def test_pages_that_were_sent_before_slurm_refused_are_not_sent_again(
    ssh_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    names = [f"a/{number}.png" for number in range(4)]
    archive = an_archive(ssh_site, tmp_path, *names, pages_per_task=2, partition="none")
    sent: Counter[str] = Counter()
    copy = files_over_ssh.finished

    def counted(argv: list[str], stdin: str, timeout: float):
        done = copy([*argv[:1], "--out-format=%n", *argv[1:]], stdin, timeout)
        sent.update(
            each for each in done.out.split() if each.startswith("pages/") and each[-1] != "/"
        )
        return done

    monkeypatch.setattr(files_over_ssh, "finished", counted)
    with archive.engine() as engine, pytest.raises(PlaceError, match="partition"):
        run_all(engine)
    assert len(sent) == len(names)
    settings = {"kind": "slurm", **slurm_place(ssh_site, tmp_path, pages_per_task=2)}
    archive.write_project(settings)
    with archive.engine() as engine:
        engine.ledger.pauses.resume("cluster")
        assert run_all(engine).steps["area"].landed == len(names)
    assert sent == dict.fromkeys(sent, 1)

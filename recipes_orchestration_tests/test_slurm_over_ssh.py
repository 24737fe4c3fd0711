"""A real Slurm behind a real sshd: files go there once, and a lost connection loses nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.errors import ProviderError, Unreachable
from recipes_orchestration.places.place import State
from recipes_orchestration.places.slurm import files_over_ssh, ssh_shell
from recipes_orchestration.places.slurm.ssh_shell import SshShell
from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite

from .slurm_tasks import cluster, settled, sought

GONE = "cluster: the connection is gone; type your second factor: recipes connect cluster"


def files_of(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*"))


def test_tasks_go_and_come_back_and_nothing_is_left(ssh_site: SlurmSite, tmp_path: Path):
    here = cluster(ssh_site, tmp_path, ssh=True)
    place = here.place()
    ids = here.send(place, here.spec("a", "b", "bad"))
    settled(place, ids)
    other = here.place()
    kinds = here.kinds(other, ids[0]) | here.kinds(other, ids[1])
    assert kinds == {"a": "landed", "b": "landed", "bad": "failed"}
    assert other.find(sought(f"{here.array}_1")) == ids[1]
    here.clear(other, *ids)
    assert files_of(here.scratch) == ["archive", "archive/.arrays"]
    assert files_of(tmp_path / "staging") == []


def test_a_home_folder_is_the_one_of_the_login_node(ssh_site: SlurmSite, tmp_path: Path):
    here = cluster(ssh_site, tmp_path, ssh=True, scratch="~/scratch")
    (standing,) = here.place().statuses([f"1_0/nowhere/{here.array}"]).values()
    assert standing.state is State.RUNNING
    assert (ssh_site.home / "scratch" / "archive").is_dir()


def test_slurm_is_found_where_only_a_login_knows_it(
    ssh_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As on sites that set PATH in /etc/profile.d alone."""
    here = cluster(ssh_site, tmp_path, ssh=True, extra=("--hold",))
    run = ssh_shell.finished
    asked: list[str] = []

    def poor(argv: list[str], stdin: str, timeout: float):
        asked.append(stdin)
        if len(asked) == 2:  # after ssh -G
            stdin = f"PATH={tmp_path}/bin; export PATH\n{stdin}"
        return run(argv, stdin, timeout)

    (tmp_path / "bin").mkdir()
    for command in ("bash", "sh", "mkdir", "tail"):
        path = shutil.which(command)
        assert path is not None
        (tmp_path / "bin" / command).symlink_to(path)
    monkeypatch.setattr(ssh_shell, "finished", poor)
    (remote_id,) = here.send(here.place(), here.spec("a"))
    assert here.place().statuses([remote_id])[remote_id].state is State.RUNNING


def test_pages_of_a_batch_go_once(
    ssh_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = cluster(ssh_site, tmp_path, ssh=True, extra=("--hold",))
    spec = here.spec("a", "b")
    (first,) = here.send(here.place(), spec)
    sent: list[str] = []
    run = files_over_ssh.finished

    def counting(argv: list[str], stdin: str, timeout: float):
        done = run([*argv[:1], "--out-format=%n", *argv[1:]], stdin, timeout)
        sent.extend(done.out.split())
        return done

    monkeypatch.setattr(files_over_ssh, "finished", counting)
    (second,) = here.send(here.place(), spec, here.array.replace("width", "height"))
    assert sorted(each for each in sent if not each.endswith("/")) == [
        f"{second.rpartition('/')[2]}/0/manifest.json"
    ]
    assert here.task_folder(first).parents[1] == here.task_folder(second).parents[1]


def test_cancelled_over_ssh_it_is_over(ssh_site: SlurmSite, tmp_path: Path):
    here = cluster(ssh_site, tmp_path, ssh=True, extra=("--hold",))
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a"))
    place.cancel(remote_id)
    settled(here.place(), [remote_id])
    assert here.kinds(here.place(), remote_id) == {"a": "cancelled"}


def test_a_reply_that_the_connection_lost_is_found_by_name(
    ssh_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = cluster(ssh_site, tmp_path, ssh=True)
    run = ssh_shell.finished

    def dropping(argv: list[str], stdin: str, timeout: float):
        """The connection breaks when sbatch has answered and its answer is on its way."""
        done = run(argv, stdin, timeout)
        if "sbatch" in stdin and "--parsable" in stdin:
            return ssh_shell.Done(255, "", "Connection to mini closed by remote host.")
        return done

    monkeypatch.setattr(ssh_shell, "finished", dropping)
    with pytest.raises(ProviderError, match="what it did is not known") as lost:
        here.send(here.place(), here.spec("a", "b", "c"))
    assert not isinstance(lost.value, Unreachable)
    monkeypatch.setattr(ssh_shell, "finished", run)
    ids = [here.place().find(sought(f"{here.array}_{index}")) for index in (0, 1)]
    found = [each for each in ids if each is not None]
    settled(here.place(), found)
    assert [len(here.kinds(here.place(), each)) for each in found] == [1, 2]
    assert here.jobs() == ["0 COMPLETED", "1 COMPLETED"]


def test_a_connection_that_breaks_in_an_upload_has_sent_nothing(
    ssh_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = cluster(ssh_site, tmp_path, ssh=True)
    spec = here.spec("a", "b")
    run = files_over_ssh.finished

    def broken(argv: list[str], stdin: str, timeout: float):
        ssh_site.drop_connections()
        return run([*argv, "--rsync-path=kill -9 $PPID; rsync"], stdin, timeout)

    monkeypatch.setattr(files_over_ssh, "finished", broken)
    with pytest.raises(Unreachable) as lost:
        here.send(here.place(), spec)
    assert not lost.value.connect
    monkeypatch.setattr(files_over_ssh, "finished", run)
    assert here.jobs() == []
    (remote_id,) = here.send(here.place(), spec)
    settled(here.place(), [remote_id])
    assert here.kinds(here.place(), remote_id) == {"a": "landed", "b": "landed"}


def test_without_a_second_factor_all_waits_and_then_goes_on(
    second_factor_site: SlurmSite, tmp_path: Path
):
    site = second_factor_site
    here = cluster(site, tmp_path, ssh=True, scratch=str(site.home / "scratch"))
    shell = here.shell()
    assert isinstance(shell, SshShell)
    place = here.place()
    spec = here.spec("a", "b")

    def gone(ask: Callable[[], object]) -> None:
        with pytest.raises(Unreachable) as error:
            ask()
        assert (str(error.value), error.value.connect) == (GONE, True)

    gone(lambda: here.send(place, spec))
    connect(shell, site)
    (remote_id,) = here.send(place, spec)
    site.drop_connections()
    gone(lambda: place.statuses([remote_id]))
    gone(lambda: place.find(sought(here.array)))
    gone(lambda: place.cancel(remote_id))
    gone(lambda: here.clear(place, remote_id))
    connect(shell, site)
    settled(place, [remote_id])
    site.drop_connections()
    gone(lambda: here.outcomes(place, remote_id))
    connect(shell, site)
    assert here.kinds(place, remote_id) == {"a": "landed", "b": "landed"}


def connect(shell: SshShell, site: SlurmSite) -> None:
    """As a person does, whose second factor the site's own program types."""
    subprocess.run(
        shell.connect_argv(),
        env=os.environ | {"SSH_ASKPASS": str(site.askpass), "SSH_ASKPASS_REQUIRE": "force"},
        check=True,
        timeout=20,
        stdin=subprocess.DEVNULL,
    )
    assert shell.host == HOST

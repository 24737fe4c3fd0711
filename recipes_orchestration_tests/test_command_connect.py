"""`recipes connect`: a person types the second factor once, and the place goes on by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from recipes_orchestration.commands.exits import ALL_RIGHT, UNREACHABLE, WRONG
from recipes_orchestration.errors import Unreachable
from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.places.slurm.ssh_shell import SshShell
from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite

from .archive import Archive, environment, make_archive
from .command_runs import command, recipes, start

# Runs a command on a terminal of its own, as its foreground.
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def with_places(folder: Path, **places: Mapping[str, object]) -> Archive:
    archive = make_archive(folder / "archive")
    file = archive.folder / "project.yaml"
    project = yaml.safe_load(file.read_text())
    project["places"] |= places
    file.write_text(yaml.safe_dump(project))
    return archive


def cluster_at(site: SlurmSite) -> dict[str, object]:
    return {
        "kind": "slurm",
        "host": HOST,
        "ssh_config": str(site.ssh_config),
        "scratch": str(site.home / "scratch"),
    }


def with_cluster(folder: Path, site: SlurmSite) -> Archive:
    return with_places(folder, cluster=cluster_at(site))


def shell_to(site: SlurmSite) -> SshShell:
    return SshShell("cluster", HOST, site.ssh_config)


def ledger_of(archive: Archive) -> Ledger:
    return open_ledger(archive.project().ledger_url)


@pytest.fixture
def typing(second_factor_site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> SlurmSite:
    """The site; ssh gets the second factor from a program instead of a person."""
    monkeypatch.setenv("SSH_ASKPASS", str(second_factor_site.askpass))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    return second_factor_site


def test_a_person_types_the_second_factor_in_the_terminal(
    tmp_path: Path, second_factor_site: SlurmSite
):
    archive = with_cluster(tmp_path, second_factor_site)
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *command("connect", "cluster")],
        env=environment(archive),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        shown = b""
        while not shown.endswith(b"password: "):
            shown += (got := os.read(process.stdout.fileno(), 1))
            assert got, shown
        process.stdin.write(second_factor_site.password_file.read_bytes() + b"\n")
        process.stdin.flush()
        rest = process.stdout.read().decode()
        assert process.wait(30) == ALL_RIGHT, rest
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    assert "cluster is connected: slurm" in rest
    assert shell_to(second_factor_site).run(["echo", "there"]).out == "there\n"


def test_before_it_the_place_asks_for_the_person(second_factor_site: SlurmSite):
    with pytest.raises(Unreachable, match="recipes connect cluster") as refused:
        shell_to(second_factor_site).run(["echo", "there"])
    assert refused.value.connect


def test_the_pause_of_a_lost_connection_ends(tmp_path: Path, typing: SlurmSite):
    archive = with_cluster(tmp_path, typing)
    with ledger_of(archive) as ledger:
        ledger.pauses.pause("cluster", "The connection is gone.", until_reached=True)
    told = recipes(archive, "connect", "cluster", "--json")
    assert told.code == ALL_RIGHT, told.err
    assert (told.document["opened"], told.document["resumed"]) == (True, True)
    with ledger_of(archive) as ledger:
        assert ledger.pauses.all() == []


def test_a_pause_for_another_reason_stays_and_is_told(tmp_path: Path, ssh_site: SlurmSite):
    archive = with_cluster(tmp_path, ssh_site)
    with ledger_of(archive) as ledger:
        ledger.pauses.pause("cluster", "Invalid account.")
    told = recipes(archive, "connect", "cluster")
    assert told.code == ALL_RIGHT, told.err
    assert "still paused: Invalid account. Run: recipes resume cluster" in told.out
    with ledger_of(archive) as ledger:
        assert ledger.pauses.of("cluster") is not None


def test_an_open_connection_is_not_opened_again(tmp_path: Path, typing: SlurmSite):
    archive = with_cluster(tmp_path, typing)
    assert recipes(archive, "connect", "cluster").code == ALL_RIGHT
    again = recipes(archive, "connect", "cluster", "--json")
    assert (again.code, again.document["opened"]) == (ALL_RIGHT, False)


def test_after_a_lost_connection_it_is_opened_again(tmp_path: Path, typing: SlurmSite):
    archive = with_cluster(tmp_path, typing)
    assert recipes(archive, "connect", "cluster").code == ALL_RIGHT
    typing.drop_connections()
    told = recipes(archive, "connect", "cluster", "--json")
    assert (told.code, told.document["opened"]) == (ALL_RIGHT, True)


def test_a_second_factor_that_is_not_typed_opens_nothing(
    tmp_path: Path, second_factor_site: SlurmSite
):
    archive = with_cluster(tmp_path, second_factor_site)
    with ledger_of(archive) as ledger:
        ledger.pauses.pause("cluster", "The connection is gone.", until_reached=True)
    process = start(archive, "connect", "cluster")  # in a session that has no terminal
    _, err = process.communicate(timeout=60)
    assert process.returncode == UNREACHABLE
    assert "The connection to mini was not opened: ssh ended with code 255" in err
    with ledger_of(archive) as ledger:
        assert ledger.pauses.of("cluster") is not None


def test_what_slurm_would_refuse_is_told_and_no_hindrance(tmp_path: Path, ssh_site: SlurmSite):
    archive = with_places(tmp_path, cluster=cluster_at(ssh_site) | {"partition": "gpu"})
    told = recipes(archive, "connect", "cluster")
    assert told.code == ALL_RIGHT, told.err
    assert "Change `partition` of the place" in told.out


@pytest.mark.slow  # Slurm tries for some seconds
def test_a_slurm_that_does_not_answer_is_told(tmp_path: Path, ssh_site: SlurmSite):
    archive = with_cluster(tmp_path, ssh_site)
    ssh_site.kill("slurmctld")
    told = recipes(archive, "connect", "cluster")
    assert told.code == UNREACHABLE
    assert "mini is connected, but: cluster: Slurm does not answer" in told.err


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("local", "local is not reached over a connection"),
        ("here", "here is this machine's own Slurm"),
        ("clustre", 'There is no place "clustre"'),
    ],
)
def test_a_place_without_a_connection_is_refused(tmp_path: Path, place: str, words: str):
    archive = with_places(tmp_path, here={"kind": "slurm"})
    told = recipes(archive, "connect", place)
    assert (told.code, told.out) == (WRONG, "")
    assert words in told.err

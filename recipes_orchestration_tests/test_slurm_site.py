"""The Slurm that is started for rehearsals and tests: it is real, is mended, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from recipes_orchestration.errors import ConfigError
from recipes_orchestration.rehearsal.slurm_site import (
    HOST,
    SlurmSite,
    SlurmSiteSettings,
    known_site,
    start_site,
    why_not_here,
)


def until(condition: object, seconds: float = 20) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ssh(site: SlurmSite, command: str) -> subprocess.CompletedProcess[str]:
    assert site.ssh_config is not None
    return subprocess.run(
        ["ssh", "-F", site.ssh_config, "-o", "BatchMode=yes", HOST, command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=20,
    )


def asking(site: SlurmSite) -> None:
    """Opens a master connection; the second factor is typed by the site's own program."""
    assert site.ssh_config is not None
    subprocess.run(
        ["ssh", "-F", site.ssh_config, "-M", "-fN", HOST],
        env=os.environ | {"SSH_ASKPASS": str(site.askpass), "SSH_ASKPASS_REQUIRE": "force"},
        check=True,
        timeout=20,
    )


def of_the_folder(folder: Path) -> list[str]:
    found: list[str] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(folder) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def test_four_elements_of_an_array_run_side_by_side(slurm_site: SlurmSite, tmp_path: Path):
    log = tmp_path / "log-%a"
    slurm_site.ask("sbatch", "--array=0-3", "-o", str(log), "--wrap", "sleep 300")
    until(lambda: slurm_site.ask("squeue", "-h", "-r", "-t", "RUNNING").count("\n") == 4)


def test_a_test_finds_no_job_of_the_one_before(slurm_site: SlurmSite):
    assert slurm_site.ask("squeue", "-h") == ""


@pytest.mark.slow
def test_what_was_killed_is_started_again_and_the_job_goes_on(
    slurm_site: SlurmSite, tmp_path: Path
):
    started = tmp_path / "started"
    job = f"touch {started}; sleep 300"
    number = slurm_site.ask("sbatch", "--parsable", "-o", str(tmp_path / "log"), "--wrap", job)
    until(started.exists)
    slurm_site.ask("scontrol", "update", f"jobid={number.strip()}", "comment=so that it is saved")
    time.sleep(6)  # slurmctld writes its state every five seconds
    slurm_site.kill("slurmctld")
    slurm_site.kill("slurmd")
    until(lambda: slurm_site.processes()["slurmd"] is None)
    slurm_site.up()
    assert slurm_site.ask("squeue", "-h", "-o", "%i %T") == f"{number.strip()} RUNNING\n"


@pytest.mark.slow
def test_a_controller_that_lost_its_last_jobs_gives_none_of_their_ids_again(slurm_site: SlurmSite):
    asked = ("sbatch", "--parsable", "--array=0-3", "-o", "/dev/null", "--wrap", "sleep 300")
    before = int(slurm_site.ask(*asked))
    slurm_site.kill("slurmctld")
    for name in ("job_state", "job_state.old"):
        (slurm_site.folder / "state" / name).unlink(missing_ok=True)
    slurm_site.up()
    assert int(slurm_site.ask(*asked)) > before + 3


@pytest.mark.slow
def test_accounts_are_kept_where_they_are_wanted(slurm_accounting_site: SlurmSite):
    site = slurm_accounting_site
    number = site.ask("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 3").strip()
    asked = ("sacct", "-n", "-X", "-P", "-j", number, "-o", "State,ExitCode")
    until(lambda: site.ask(*asked) == "FAILED|3:0\n")


def test_one_logs_in_with_a_key_and_finds_slurm(ssh_site: SlurmSite):
    done = ssh(ssh_site, "sinfo -h -o %R")
    assert (done.returncode, done.stdout) == (0, "debug\n")


def test_a_second_factor_keeps_batch_mode_out(second_factor_site: SlurmSite):
    done = ssh(second_factor_site, "true")
    assert done.returncode == 255
    assert "Permission denied (password)" in done.stderr


def test_behind_a_connection_with_both_factors_batch_mode_works(second_factor_site: SlurmSite):
    asking(second_factor_site)
    done = ssh(second_factor_site, "squeue --me -h; pwd")
    assert done.stdout == f"{second_factor_site.home}\n"


def test_a_dropped_connection_is_gone(second_factor_site: SlurmSite):
    asking(second_factor_site)
    second_factor_site.drop_connections()
    assert ssh(second_factor_site, "true").returncode == 255


@pytest.fixture
def folder(slurm_site: SlurmSite) -> Path:
    """A folder that all may enter, for a site of the test's own."""
    return slurm_site.folder / "another"


def test_down_leaves_neither_process_nor_job_nor_account(folder: Path, tmp_path: Path):
    site = start_site(folder, SlurmSiteSettings(login="second-factor"))
    try:
        started = tmp_path / "started"
        job = f"touch {started}; sleep 4321; echo {folder}"
        site.ask("sbatch", "--array=0-1", "-o", "/dev/null", "--wrap", job)
        until(started.exists)
        asking(site)
        site.kill("slurmctld")
    finally:
        site.down()
    until(lambda: of_the_folder(folder) == [], 5)
    assert not [p for p in psutil.process_iter(["cmdline"]) if "4321" in (p.info["cmdline"] or ())]
    assert f"rehearse-{site.ports['sshd']}:" not in Path("/etc/passwd").read_text()
    assert set(site.processes().values()) == {None}


def test_a_site_that_is_started_again_has_the_ports_its_clients_know(folder: Path):
    site = start_site(folder)
    try:
        site.down()
        assert start_site(folder).ports == site.ports
        assert known_site(folder) == site
    finally:
        site.down()


def test_a_folder_that_holds_something_else_is_left_alone(slurm_site: SlurmSite):
    with pytest.raises(ConfigError, match="holds something else"):
        start_site(slurm_site.folder / "state")


def test_a_missing_program_is_told_with_the_packages(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda name, path: None if name == "slurmd" else name)
    assert why_not_here(SlurmSiteSettings()) == (
        "Not installed: slurmd. Run: apt-get install -y --no-install-recommends slurmctld slurmd "
        "slurm-client munge slurmdbd mariadb-server openssh-server openssh-client rsync"
    )

"""Whether a cluster would take an array is known before one is sent."""

from __future__ import annotations

import pytest

from recipes_orchestration.errors import Refused, Unreachable
from recipes_orchestration.places.slurm.login import Login
from recipes_orchestration.places.slurm.script import SlurmRules
from recipes_orchestration.places.slurm.shell import LocalShell
from recipes_orchestration.places.slurm.ssh_shell import SshShell
from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite


def login(site: SlurmSite, **rules: str) -> Login:
    shell = SshShell("cluster", HOST, site.ssh_config) if site.ssh_config else LocalShell("cluster")
    given = {"scratch": str(site.home / "scratch"), **rules}
    return Login(shell, SlurmRules(**given), "test")  # pyright: ignore[reportArgumentType]


def sent_jobs(site: SlurmSite) -> set[str]:
    """Every job the site still speaks of; other tests may have sent some."""
    return set(site.ask("squeue", "-h", "-t", "all", "-o", "%A").split())


def test_a_cluster_that_would_take_it_says_when_it_would_run(ssh_site: SlurmSite):
    before = sent_jobs(ssh_site)
    told = login(ssh_site, partition="debug", time="00:30:00", mem="200M").check()
    assert told.startswith("slurm")
    assert "to start at" in told
    assert sent_jobs(ssh_site) <= before


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        ("partition", "gpu", "Invalid partition name.*Change `partition`"),
        ("mem", "900G", "Requested node configuration is not available.*Change `cpus`, `mem`"),
        ("gres", "gpu:1", "Invalid generic resource.*Change `gres`"),
    ],
)
def test_what_the_site_does_not_have_is_told_with_its_words(
    slurm_site: SlurmSite, rule: str, value: str, words: str
):
    with pytest.raises(Refused, match=words):
        login(slurm_site, **{rule: value}).check()


@pytest.mark.slow  # Slurm tries for some seconds
def test_a_slurm_that_is_down_does_not_answer(slurm_site: SlurmSite):
    slurm_site.kill("slurmctld")
    with pytest.raises(Unreachable, match="Slurm does not answer"):
        login(slurm_site).check()

"""A cluster as a place, opened from what the project says of it."""

from __future__ import annotations

from pathlib import Path

from ..job_settings import SlurmSettings
from ..places.slurm.shell import LocalShell, Shell
from ..places.slurm.slurm_place import Rung, SlurmPlace, SlurmRules
from ..places.slurm.ssh_shell import SshShell
from ..project import Project

__all__ = ["open_shell", "open_slurm_place"]


def open_slurm_place(project: Project, name: str) -> SlurmPlace:
    """The cluster of that name as a place. Opens no connection."""
    settings = _settings(project, name)
    rules = SlurmRules(
        scratch=settings.scratch,
        runner=settings.runner,
        setup=settings.setup,
        modules=settings.modules,
        container=settings.container,
        container_run=settings.container_run,
        account=settings.account,
        partition=settings.partition,
        qos=settings.qos,
        gres=settings.gres,
        time=settings.time,
        mem=settings.mem,
        cpus=settings.cpus,
        extra=settings.extra,
        parallel=settings.parallel,
        pages_per_task=settings.pages_per_task,
        task_minutes=settings.aim_seconds / 60,
        max_open=settings.max_open,
        ladder=tuple(Rung(rung.time, rung.mem) for rung in settings.ladder),
        settle_seconds=settings.settle_seconds,
    )
    return SlurmPlace(
        open_shell(project, name),
        rules,
        project=project.name,
        staging=project.folder / ".recipes" / "tasks" / name,
    )


def open_shell(project: Project, name: str) -> Shell:
    """The login node of the cluster of that name. Opens no connection."""
    settings = _settings(project, name)
    if settings.host is None:
        return LocalShell(name)
    config = settings.ssh_config
    return SshShell(name, settings.host, None if config is None else _path(project, config))


def _settings(project: Project, name: str) -> SlurmSettings:
    settings = project.places[name]
    assert isinstance(settings, SlurmSettings)
    return settings


def _path(project: Project, path: str) -> Path:
    return project.folder / Path(path).expanduser()

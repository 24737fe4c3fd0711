"""What `project.yaml` may say of the places that take jobs: a Slurm cluster, Hugging Face Jobs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from .job_values import (
    Container,
    Flavor,
    Gres,
    Host,
    HubAddress,
    HubFolder,
    HubName,
    Line,
    Memory,
    Module,
    Option,
    Scratch,
    Time,
    Variable,
    Word,
    time_seconds,
)
from .project_files import PlaceSettings, register_place
from .recipe_files import Settings

__all__ = [
    "JOB_PLACES",
    "HfJobsRung",
    "HfJobsSettings",
    "JobSettings",
    "SlurmRung",
    "SlurmSettings",
    "time_seconds",
]

JOB_PLACES = ("slurm", "hf_jobs")

# Of a task's time limit: pages differ, and models have to be loaded.
_OF_LIMIT = 0.75


class JobSettings(PlaceSettings):
    """A place that takes jobs: the runner works there on folders of pages, sent from here."""

    may_be_named: ClassVar[bool] = True

    runner: Line = Field(
        default="recipes-runner", description="The runner's command there; a path will do too."
    )
    setup: Annotated[tuple[Line, ...], Field(strict=False)] = Field(
        default=(),
        max_length=100,
        description="Lines of shell before the runner, such as one that makes it available.",
    )
    pages_per_task: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="So many pages make a task; by default worked out from earlier pages' seconds.",
    )
    task_minutes: float = Field(
        default=60.0,
        gt=0,
        le=10_080,
        description="How long a task is to take where its pages are worked out. Minutes.",
    )
    land_every: float = Field(
        default=10.0,
        gt=0,
        le=10_080,
        description="Results of ended tasks land after so long, though others still run. Minutes.",
    )


class SlurmRung(Settings):
    """What a task is given when its time or memory was not enough; what is left out stays."""

    time: Time | None = Field(default=None, description="Time limit, HH:MM:SS or D-HH:MM:SS.")
    mem: Memory | None = Field(default=None, description="Memory, such as 32G.")


class SlurmSettings(JobSettings):
    """A Slurm cluster: from its login node itself, or over OpenSSH."""

    host: Host | None = Field(
        default=None,
        description="The login node, as ssh knows it; without it this machine has Slurm.",
    )
    ssh_config: Line | None = Field(
        default=None, description="Another file than ~/.ssh/config. On this machine."
    )
    scratch: Scratch = Field(
        default="~/recipes",
        max_length=1_000,
        description="A folder on the cluster for pages and results, seen by all its nodes.",
    )
    modules: Annotated[tuple[Module, ...], Field(strict=False)] = Field(
        default=(), max_length=100, description="Loaded by `module load` before the runner."
    )
    container: Container | None = Field(
        default=None,
        description="An image that has the runner: a file on the cluster, or docker://...",
    )
    container_run: Line = Field(
        default="apptainer exec", description="The command that runs something in the container."
    )
    account: Word | None = Field(default=None, description="sbatch --account.")
    partition: Word | None = Field(default=None, description="sbatch --partition.")
    qos: Word | None = Field(default=None, description="sbatch --qos.")
    gres: Gres | None = Field(default=None, description="sbatch --gres, such as gpu:1.")
    time: Time | None = Field(
        default=None,
        description="Time limit of a task, HH:MM:SS or D-HH:MM:SS; by default the partition's.",
    )
    mem: Memory | None = Field(
        default=None, description="Memory of a task, such as 16G; by default the partition's."
    )
    cpus: int | None = Field(
        default=None, ge=1, le=4_096, description="Cores of a task; by default the partition's."
    )
    extra: Annotated[tuple[Option, ...], Field(strict=False)] = Field(
        default=(), max_length=100, description="More options of sbatch, one an entry."
    )
    parallel: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="At most so many tasks of one array at the same time; by default all.",
    )
    max_open: int = Field(
        default=2,
        ge=1,
        le=10_000,
        description="At most so many arrays in the queue or running; more wait here, in order.",
    )
    ladder: Annotated[tuple[SlurmRung, ...], Field(strict=False)] = Field(
        default=(),
        max_length=20,
        description="Time and memory of the second, third... task of pages that got too little.",
    )
    settle_seconds: float = Field(
        default=30.0,
        ge=0,
        le=3_600,
        description="So long Slurm may take to show what it accepted, or how it ended. Seconds.",
    )

    @property
    def aim_seconds(self) -> float:
        """How long a task is to take, in seconds: within its time limit, with room to spare."""
        aim = self.task_minutes * 60
        return aim if self.time is None else min(aim, time_seconds(self.time) * _OF_LIMIT)

    def rung(self, number: int) -> SlurmRung:
        """Time and memory of a task whose pages got too little `number` times before."""
        time, mem = self.time, self.mem
        for rung in self.ladder[:number]:
            time, mem = rung.time or time, rung.mem or mem
        return SlurmRung(time=time, mem=mem)


class HfJobsRung(Settings):
    """What a task is given when its time or memory was not enough; what is left out stays."""

    flavor: Flavor | None = Field(default=None, description="Another machine, such as a10g-large.")
    timeout_minutes: float | None = Field(
        default=None, gt=0, le=43_200, description="Time limit. Minutes."
    )


class HfJobsSettings(JobSettings):
    """Hugging Face Jobs; pages and results go through a bucket, or a dataset repository."""

    namespace: HubName = Field(description="The user or organization whose jobs these are.")
    image: Container = Field(
        default="python:3.12", description="The container image: of Docker Hub, or hf.co/spaces/..."
    )
    flavor: Flavor = Field(default="cpu-basic", description="The machine, such as t4-small.")
    timeout_minutes: float = Field(
        default=120.0, gt=0, le=43_200, description="Time limit of a job. Minutes."
    )
    secrets: Annotated[tuple[Variable, ...], Field(strict=False)] = Field(
        default=(),
        max_length=100,
        description="Environment variables of this machine that the job is given as secrets.",
    )
    token_env: Variable = Field(
        default="HF_TOKEN", description="The environment variable that holds the Hub's token."
    )
    endpoint: HubAddress | None = Field(default=None, description="Another address of the Hub.")
    bucket: HubFolder | None = Field(
        default=None, description="A bucket for pages and results, owner/name; mounted in the job."
    )
    dataset: HubFolder | None = Field(
        default=None, description="A dataset repository instead of a bucket, owner/name."
    )
    max_open: int = Field(
        default=4,
        ge=1,
        le=10_000,
        description="At most so many jobs at the same time; more wait here, in order.",
    )
    ladder: Annotated[tuple[HfJobsRung, ...], Field(strict=False)] = Field(
        default=(),
        max_length=20,
        description="Machine and time of the second, third... job of pages that got too little.",
    )
    settle_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3_600,
        description="So long the Hub may take to show a job that it accepted. Seconds.",
    )

    @model_validator(mode="after")
    def _one_store(self) -> Self:
        if (self.bucket is None) == (self.dataset is None):
            found = "neither bucket nor dataset" if self.bucket is None else "bucket and dataset"
            rest = "one of them, such as bucket: archive/recipes"
            raise ValueError(f"found {found}, where pages and results are to lie; allowed: {rest}")
        return self

    @property
    def aim_seconds(self) -> float:
        """How long a job is to take, in seconds: within its time limit, with room to spare."""
        return min(self.task_minutes * 60, self.timeout_minutes * 60 * _OF_LIMIT)

    def rung(self, number: int) -> HfJobsRung:
        """Machine and time of a job whose pages got too little `number` times before."""
        flavor, minutes = self.flavor, self.timeout_minutes
        for rung in self.ladder[:number]:
            flavor, minutes = rung.flavor or flavor, rung.timeout_minutes or minutes
        return HfJobsRung(flavor=flavor, timeout_minutes=minutes)


register_place("slurm", SlurmSettings)
register_place("hf_jobs", HfJobsSettings)

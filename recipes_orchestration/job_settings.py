"""What `project.yaml` may say of the places that take jobs: a Slurm cluster, Hugging Face Jobs."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from .project_files import PlaceSettings, register_place
from .recipe_files import Settings
from .yaml_files import quoted

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

_TIME = re.compile(r"(?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d)")
# What the place writes itself, or by which it finds its jobs again.
_OWN_OPTIONS = (
    *("--array", "--job-name", "--output", "--error", "--chdir", "--export", "--export-file"),
    *("--requeue", "--no-requeue", "--parsable", "--wrap", "--hold", "--wait", "--test-only"),
)
_OWN_LETTERS = ("-a", "-J", "-o", "-e", "-D", "-H", "-W")


def _form(pattern: str, allowed: str) -> AfterValidator:
    """Takes what fits the pattern whole; anything else is refused with what is allowed."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value):
            return value
        raise ValueError(f"found {quoted(value)}; allowed: {allowed}")

    return AfterValidator(check)


def time_seconds(time: str) -> int:
    """Seconds of a time limit as Slurm writes it, HH:MM:SS or D-HH:MM:SS; `ValueError` if not."""
    found = _TIME.fullmatch(time)
    if found is None:
        raise ValueError(f"found {quoted(time)}; allowed: {_TIMES}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


_TIMES = "hours, minutes and seconds, such as 02:00:00, or with days, such as 1-12:00:00"


def _time(value: str) -> str:
    if time_seconds(value) < 1:
        raise ValueError(f"found {quoted(value)}, which is no time at all; allowed: {_TIMES}")
    return value


def _option(value: str) -> str:
    name = value.partition("=")[0]
    if not re.fullmatch(r"(--[a-z][a-z0-9-]*(=\S[ -~]*)?|-[A-Za-z]\S*)", value):
        allowed = "one option of sbatch with its value, such as --constraint=a100"
        raise ValueError(f"found {quoted(value)}; allowed: {allowed}")
    if name in _OWN_OPTIONS or value[:2] in _OWN_LETTERS:
        raise ValueError(f"found {quoted(value)}, which is written for each job; take it away")
    return value


Time = Annotated[str, AfterValidator(_time)]
Memory = Annotated[
    str, _form(r"[1-9]\d{0,8}[KMGT]", "a whole number with K, M, G or T, such as 16G or 4000M")
]
Word = Annotated[
    str,
    _form(r"[A-Za-z0-9_][A-Za-z0-9_.,@+-]{0,199}", "a name of the site's, such as main"),
]
Line = Annotated[
    str, _form(r"(?=.*\S)[^\x00-\x1f\x7f]{1,2000}", "one line of text, without control characters")
]
Variable = Annotated[
    str,
    _form(
        r"[A-Za-z_][A-Za-z0-9_]{0,199}",
        "the name of an environment variable, such as HF_TOKEN, never its value",
    ),
]
Flavor = Annotated[
    str, _form(r"[a-z0-9][a-z0-9-]{0,99}", "a flavor such as cpu-upgrade, t4-small or a10g-large")
]
HubName = Annotated[
    str,
    _form(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}", "a user or an organization on the Hub, such as archive"
    ),
]
HubFolder = Annotated[
    str,
    _form(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}",
        "owner and name, such as archive/recipes",
    ),
]


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

    host: (
        Annotated[
            str,
            _form(
                r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,252}",
                "a host of your ssh_config, or user@host; nothing for this machine",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="The login node, as ssh knows it; without it this machine has Slurm.",
    )
    ssh_config: Line | None = Field(
        default=None, description="Another file than ~/.ssh/config. On this machine."
    )
    scratch: Annotated[
        str,
        _form(
            r"(/|~/)(?!.*(^|/)\.\.(/|$))[^\x00-\x1f\x7f%\\]*",
            "a path on the cluster that begins with / or ~/, without .. or %",
        ),
    ] = Field(
        default="~/recipes",
        max_length=1_000,
        description="A folder on the cluster for pages and results, seen by all its nodes.",
    )
    modules: Annotated[
        tuple[
            Annotated[
                str,
                _form(r"[A-Za-z0-9_][A-Za-z0-9_.+/@=-]{0,199}", "a module such as python/3.11.5"),
            ],
            ...,
        ],
        Field(strict=False),
    ] = Field(default=(), max_length=100, description="Loaded by `module load` before the runner.")
    container: Line | None = Field(
        default=None,
        description="An image that has the runner: a file on the cluster, or docker://...",
    )
    container_run: Line = Field(
        default="apptainer exec", description="The command that runs something in the container."
    )
    account: Word | None = Field(default=None, description="sbatch --account.")
    partition: Word | None = Field(default=None, description="sbatch --partition.")
    qos: Word | None = Field(default=None, description="sbatch --qos.")
    gres: (
        Annotated[
            str,
            _form(
                r"[A-Za-z0-9_][A-Za-z0-9_.:,()=/-]{0,199}",
                "a resource and how many, such as gpu:1 or gpu:a100:2",
            ),
        ]
        | None
    ) = Field(default=None, description="sbatch --gres, such as gpu:1.")
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
    extra: Annotated[tuple[Annotated[str, AfterValidator(_option)], ...], Field(strict=False)] = (
        Field(default=(), max_length=100, description="More options of sbatch, one an entry.")
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
    image: Line = Field(
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
    endpoint: (
        Annotated[str, _form(r"https?://[^\s/]+(/\S*)?", "an address such as https://hub.example")]
        | None
    ) = Field(default=None, description="Another address of the Hub.")
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

    def rung(self, number: int) -> HfJobsRung:
        """Machine and time of a job whose pages got too little `number` times before."""
        flavor, minutes = self.flavor, self.timeout_minutes
        for rung in self.ladder[:number]:
            flavor, minutes = rung.flavor or flavor, rung.timeout_minutes or minutes
        return HfJobsRung(flavor=flavor, timeout_minutes=minutes)


register_place("slurm", SlurmSettings)
register_place("hf_jobs", HfJobsSettings)

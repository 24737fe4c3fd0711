"""What a job is asked for: the body of `run_job`, as huggingface_hub 2.4 builds it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ["FLAVORS", "JobSpec", "JobVolume", "Labels", "hardware"]

# The client says of labels: at most 100 characters, alphanumeric, dashes and underscores
# (`update_job_labels` in its hf_api.py); a name may have dots (`_sanitize_job_name`).
_Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
Labels = dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")], _Label]

# Millionths of a dollar a minute, from huggingface.co/docs/hub/jobs-pricing (dollars an hour / 60).
FLAVORS = {
    "cpu-basic": 167,
    "cpu-upgrade": 500,
    "t4-small": 6667,
    "t4-medium": 10000,
    "l4x1": 13333,
    "l40sx1": 30000,
    "a10g-small": 16667,
    "a10g-large": 25000,
    "a100-large": 41667,
    "h200": 83333,
}


class JobVolume(BaseModel):
    """A repository that a job sees as a folder; `Volume.to_dict` in `_space_api.py`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["bucket", "model", "dataset", "space"]
    source: str
    mount_path: str = Field(alias="mountPath", pattern=r"^/.+$")
    revision: str | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    path: str | None = None


class JobSpec(BaseModel):
    """A job. What a rehearsal does not do (ports, ssh, networks) is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    command: list[str] = Field(min_length=1)
    arguments: list[str] = []
    environment: dict[str, str] = {}
    secrets: dict[str, str] = {}
    flavor: str
    timeout_seconds: int | None = Field(default=None, alias="timeoutSeconds", gt=0)
    labels: Labels = {}
    volumes: list[JobVolume] = []
    docker_image: str | None = Field(default=None, alias="dockerImage")
    space_id: str | None = Field(default=None, alias="spaceId")


def hardware() -> list[dict[str, object]]:
    """What `list_jobs_hardware` reads: each flavor with its price a minute."""
    return [
        {
            "name": name,
            "prettyName": name,
            "cpu": "2 vCPU",
            "ram": "16 GB",
            "ephemeralStorage": "50 GB",
            "accelerator": None,
            "unitCostMicroUSD": price,
            "unitCostUSD": price / 1_000_000,
            "unitLabel": "minute",
        }
        for name, price in FLAVORS.items()
    ]

"""How the rehearsed Hugging Face hub behaves: one model, read from JSON, set at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["HubScript"]


class HubScript(BaseModel):
    """What the hub does. With nothing said it runs every job at once and keeps every file.

    A job keeps the script that it was created with. Sequences of statuses, numbers of lost replies
    and patterns of files are used up by whichever request comes next.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int | None = Field(default=None, ge=1, description="Only for the next N jobs.")

    # How a job goes on.
    start_seconds: float = Field(default=0.0, ge=0, description="So long it is SCHEDULING.")
    never_starts: bool = Field(default=False, description="It is SCHEDULING until it is cancelled.")
    ends_as: Literal["", "ERROR", "CANCELED", "DELETED"] = Field(
        default="", description="It ends so without having run."
    )
    ends_message: str = Field(default="", description="The message of that end.")
    kill_at_commit: int | None = Field(
        default=None, ge=1, description="Killed hard when its Nth commit comes, which is not kept."
    )
    kill_when: str = Field(
        default="", description="Killed hard when a file of this pattern is in its folder ..."
    )
    kill_at_bytes: int = Field(default=1, ge=0, description="... with at least so many bytes.")
    kill_message: str = Field(
        default="Job failed with exit code: 137. Reason: Error",
        description="The message of a job that was killed so.",
    )
    grace_seconds: float = Field(
        default=1.0, ge=0, description="From SIGTERM to SIGKILL, when cancelled or out of time."
    )
    job_token: bool = Field(
        default=False, description="Jobs get HF_TOKEN though no secret gives it to them."
    )

    # What the server does to requests.
    refuse_create: Literal["", "credit", "key", "rate"] = ""
    create_status: Sequence[int] = Field(default=(), description="Of run_job, before acceptance.")
    lose_reply: int = Field(default=0, description="N jobs are accepted and get no answer.")
    hang_reply_seconds: float = Field(default=0.0, description="Accepted, answered after so long.")
    status_status: Sequence[int] = Field(default=(), description="Of inspect_job and list_jobs.")
    commit_status: Sequence[int] = Field(default=(), description="Of commits, before acceptance.")
    lose_commit_reply: int = Field(default=0, description="N commits are kept and get no answer.")
    download_status: Sequence[int] = Field(default=(), description="Of downloads of files.")
    lose_files: Sequence[str] = Field(
        default=(), description="For each pattern one committed file is not kept, without a word."
    )
    cut_files: Sequence[str] = Field(
        default=(), description="For each pattern one committed file is kept by half."
    )
    forget: Sequence[str] = Field(default=(), description='Job ids that answer 404; "*" is all.')
    jobs_page: int = Field(default=50, ge=1, description="Jobs in a page of list_jobs.")
    tree_page: int = Field(default=1000, ge=1, description="Entries in a page of a tree.")

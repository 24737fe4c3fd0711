"""The rehearsed Hugging Face hub: repositories and Jobs, and what a test may do to both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .hub_jobs import JobsDesk
from .hub_runs import JobRuns

__all__ = ["HubSide"]

_CALLS = (
    *("creates", "lists", "gets", "cancels", "logs"),
    *("repos", "infos", "trees", "preuploads", "commits", "files", "heads", "downloads"),
    *("spoiled", "refused"),
)


class HubSide(JobsDesk):
    """The hub. It is found at the root of its port: the client reads ids out of addresses."""

    def located(self, endpoint: str) -> None:
        """Says where it listens, which its jobs are told too."""
        self.endpoint = self.runs.endpoint = endpoint

    def reset(self) -> None:
        """Forgets everything; all jobs are killed."""
        self.close()
        self.runs = JobRuns(self._mount)
        self.runs.endpoint = self.endpoint
        self.jobs.clear()
        self.forget_script()

    def close(self) -> None:
        """Kills all jobs and removes all files; the counts stay."""
        self.runs.close()
        self.store.clear()

    def finish(self) -> int:
        """Kills all open jobs; how many there were."""
        open_ones = [each for each in list(self.jobs.values()) if each.ended is None]
        for job in open_ones:
            self.runs.end(job, "ERROR", job.script.kill_message, hard=True)
        return len(open_ones)

    def counts(self, *, hashes: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """What was asked of the hub, its jobs, and how many there were of each label."""
        return {
            "jobs": [
                {
                    "id": each.id,
                    "namespace": each.namespace,
                    "labels": each.labels,
                    "stage": each.stage,
                    "message": each.message,
                    "commits": each.commits,
                }
                for each in list(self.jobs.values())
            ],
            "labels": dict(self.labelled()),
            **{key: self.calls[key] for key in _CALLS},
        }

    def put(self, repo: str, path: str, content: bytes, *, kind: str = "dataset") -> None:
        """Commits a file behind the client's back; its path may be one that no client sends."""
        with self.lock:
            found = self.store.repos[kind, repo]
            found.commit(f"put {path}", {**found.head.files, path: self.store.keep(content)})

    def files(self, repo: str, *, kind: str = "dataset") -> Mapping[str, int]:
        """The files of a repository and their sizes in bytes, without `.gitattributes`."""
        files = self.store.repos[kind, repo].head.files
        return {path: each.size for path, each in files.items() if path != ".gitattributes"}

    def read(self, repo: str, path: str, *, kind: str = "dataset") -> bytes:
        """What is in a file of a repository."""
        return self.store.file(self.store.repos[kind, repo].head.files[path]).read_bytes()

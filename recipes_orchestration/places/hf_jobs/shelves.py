"""The two forms of `store.Shelf`: a bucket, mounted in the job, and a dataset repository.

https://huggingface.co/docs/hub/storage-buckets and /docs/hub/rate-limits (November 2026). A
repository takes 128 commits an hour, keeps all that it ever had, and needs the token in the job; a
bucket is the better one where it is to be had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import quote

from ...errors import ProviderError, Refused, Unreachable
from ...runner.hub_files import fits
from .hub import Hub, NotThere
from .store import Listed, Reach

if TYPE_CHECKING:
    from huggingface_hub import (
        BucketFile,
        CommitOperationAdd,
        CommitOperationCopy,
        CommitOperationDelete,
        RepoFile,
    )

    CommitOperation: TypeAlias = CommitOperationAdd | CommitOperationCopy | CommitOperationDelete

__all__ = ["MOUNT", "BucketShelf", "DatasetShelf"]

MOUNT = "/recipes"
"""Where a job has its batch folder."""

_File = TypeVar("_File", "RepoFile", "BucketFile")

_BLOCK = 1024 * 1024
# Seconds before a commit is tried again: those of jobs come between, and replies are lost.
_PAUSES = (0.5, 2.0)


class DatasetShelf:
    """A dataset repository: files come and go by commits."""

    def __init__(self, hub: Hub, repository: str) -> None:
        self._hub = hub
        self._id = repository

    def open(self) -> None:
        """Makes the repository, private, unless it is there."""
        with self._hub.asking(f"make the dataset {self._id}"):
            self._hub.api.create_repo(self._id, repo_type="dataset", private=True, exist_ok=True)
            private = self._hub.api.repo_info(self._id, repo_type="dataset").private
        _must_be_private(f"dataset {self._id}", private)

    def listed(self, folder: str) -> Mapping[str, Listed]:
        """The files in a folder and below it."""
        from huggingface_hub import RepoFile

        path = f"/api/datasets/{self._id}/tree/main/{quote(folder, safe='')}"
        return _listed(self._hub, path, f"list {folder} of the dataset {self._id}", RepoFile)

    def same(self, file: Path, listed: Listed) -> bool:
        """Whether a file here is the one there, by its size and the hash that the Hub keeps."""
        return fits(file, listed.entry)

    def send(self, files: Sequence[tuple[Path, str]]) -> None:
        """Commits the files. What has not changed since is left out by the client."""
        from huggingface_hub import CommitOperationAdd

        self._commit(
            lambda: [CommitOperationAdd(there, str(path)) for path, there in files],
            f"{len(files)} files of tasks",
        )

    def fetch(self, listed: Listed, to: Path) -> None:
        """Downloads a file; a redirect to another host is followed without the token."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status

        url = hf_hub_url(
            self._id, listed.path, repo_type="dataset", endpoint=self._hub.api.endpoint
        )
        with (
            self._hub.asking(f"give {listed.path} of the dataset {self._id}"),
            get_session().stream("GET", url, headers=self._hub.headers()) as response,
        ):
            hf_raise_for_status(response)
            left = listed.size
            with to.open("wb") as stream:
                for block in response.iter_bytes(_BLOCK):
                    stream.write(block)
                    left -= len(block)
                    if left < 0:
                        raise ProviderError(f"{listed.path} is longer than the Hub lists.")

    def remove(self, paths: Sequence[str]) -> None:
        """Removes the files by one commit; the repository's history keeps them."""
        from huggingface_hub import CommitOperationDelete

        self._commit(
            lambda: [CommitOperationDelete(path) for path in paths], "Tasks that have landed"
        )

    def reach(self, folder: str) -> Reach:
        """The job downloads from and commits to the repository, with the token."""
        return Reach(("--dataset", self._id, "--folder", folder), with_token=True)

    def _commit(self, operations: Callable[[], Sequence[CommitOperation]], message: str) -> None:
        """One commit. It may be made again: what has not changed is left out of it."""
        for pause in _PAUSES:
            try:
                return self._commit_once(operations(), message)
            except (Refused, Unreachable):
                raise
            except ProviderError:
                time.sleep(pause)
        return self._commit_once(operations(), message)

    def _commit_once(self, operations: Sequence[CommitOperation], message: str) -> None:
        with self._hub.asking(f"commit to the dataset {self._id}"):
            self._hub.api.create_commit(
                self._id, repo_type="dataset", operations=operations, commit_message=message
            )


class BucketShelf:
    """A bucket: files are put and removed one by one, and large ones by their chunks.

    `sync_bucket` compares sizes and times; here hashes are compared, so files are sent by
    `batch_bucket_files`.
    """

    def __init__(self, hub: Hub, bucket: str) -> None:
        self._hub = hub
        self._id = bucket

    def open(self) -> None:
        """Makes the bucket, private, unless it is there."""
        with self._hub.asking(f"make the bucket {self._id}"):
            self._hub.api.create_bucket(self._id, private=True, exist_ok=True)
            private = self._hub.api.bucket_info(self._id).private
        _must_be_private(f"bucket {self._id}", private)

    def listed(self, folder: str) -> Mapping[str, Listed]:
        """The files in a folder and below it."""
        from huggingface_hub import BucketFile

        path = f"/api/buckets/{self._id}/tree/{quote(folder, safe='')}"
        return _listed(self._hub, path, f"list {folder} of the bucket {self._id}", BucketFile)

    def same(self, file: Path, listed: Listed) -> bool:
        """Whether a file here is the one there, by its size and the hash of its chunks."""
        entry: BucketFile = listed.entry
        if file.stat().st_size != listed.size:
            return False
        return listed.size == 0 or _chunks_hash(file) == entry.xet_hash

    def send(self, files: Sequence[tuple[Path, str]]) -> None:
        """Uploads the files; those that the bucket did not take are missing from its list."""
        from huggingface_hub.errors import BucketBatchError

        with self._hub.asking(f"put files into the bucket {self._id}"):
            try:
                self._hub.api.batch_bucket_files(self._id, add=[*files])
            except BucketBatchError:
                return

    def fetch(self, listed: Listed, to: Path) -> None:
        """Downloads a file."""
        with self._hub.asking(f"give {listed.path} of the bucket {self._id}"):
            self._hub.api.download_bucket_files(self._id, [(listed.entry, to)])

    def remove(self, paths: Sequence[str]) -> None:
        """Removes the files for good."""
        with self._hub.asking(f"remove files from the bucket {self._id}"):
            self._hub.api.batch_bucket_files(self._id, delete=[*paths])

    def reach(self, folder: str) -> Reach:
        """The job has the batch folder mounted, and no other."""
        from huggingface_hub import Volume

        volume = Volume(
            type="bucket", source=self._id, mount_path=MOUNT, path=folder, read_only=False
        )
        return Reach(("--mount", MOUNT), (volume,))


def _must_be_private(what: str, private: bool | None) -> None:
    if not private:
        raise Refused(
            f"The {what} can be read by everybody, and pages would lie there. Make it private at "
            "the Hub, or name another one in project.yaml.",
            account=True,
        )


def _chunks_hash(file: Path) -> str:
    """The hash by which a bucket knows a file."""
    xet: Any = import_module("hf_xet")  # it has no types
    return str(xet.hash_files([str(file)])[0].hash)


def _listed(hub: Hub, path: str, what: str, kind: type[_File]) -> dict[str, Listed]:
    """The files of a tree, told as the client tells them; none where there is no such folder."""
    found: dict[str, Listed] = {}
    try:
        for told in hub.items(path, [("recursive", "true")], what):
            if told.get("type") == "file":
                with hub.asking(what):
                    file = kind(**told)
                    found[str(file.path)] = Listed(str(file.path), int(file.size), file)
    except NotThere:
        return {}
    return found

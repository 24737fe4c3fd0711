"""Where a task of Hugging Face Jobs finds its files: a mounted bucket, or a dataset repository.

Everything is copied to and from a disk of the machine, whole. A bucket that is mounted uploads a
file when it is closed and cannot append to one (https://github.com/huggingface/hf-mount, November
2026), and a repository takes commits: neither is a place for a file that grows.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from huggingface_hub import RepoFile

__all__ = ["FarFiles", "FilesLost", "Mounted", "Repository", "fits", "repository_files"]

# About a minute and a half in all.
TRIES = 9
BLOCK = 1024 * 1024
DOWNLOADS = 8
# No single page, manifest or journal is larger.
MAX_FILE_BYTES = 16 * 1024**3

_T = TypeVar("_T")


class FilesLost(Exception):
    """Files did not get there or back whole."""


class FarFiles(Protocol):
    """The batch folder of a task, elsewhere. Paths are relative to it."""

    def below(self, folder: str) -> list[str]:
        """The files in a folder and below it; none when there is no such folder."""
        ...

    def get(self, files: Collection[str], to: Path) -> None:
        """Copies the files to the same paths below `to`. Raises `FilesLost`."""
        ...

    def put(self, files: Collection[str], of: Path) -> None:
        """Copies the files back from below `of`. Raises `FilesLost`."""
        ...


class Mounted:
    """A batch folder that is mounted in the job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def below(self, folder: str) -> list[str]:
        """The files in a folder and below it."""
        found = sorted(path for path in (self._folder / folder).rglob("*") if path.is_file())
        return [path.relative_to(self._folder).as_posix() for path in found]

    def get(self, files: Collection[str], to: Path) -> None:
        """Copies the files, some at a time: each waits for the network."""

        def copy(file: str) -> None:
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            _trying(lambda: shutil.copyfile(self._folder / file, to / file))

        _each(copy, files)

    def put(self, files: Collection[str], of: Path) -> None:
        """Writes the files anew: what is there cannot be changed in part."""
        for file in files:
            (self._folder / file).parent.mkdir(parents=True, exist_ok=True)
            _trying(lambda file=file: shutil.copyfile(of / file, self._folder / file))


class Repository:
    """A batch folder at `root` in a dataset repository. The token is in HF_TOKEN."""

    def __init__(self, repository: str, root: str) -> None:
        from huggingface_hub import HfApi, set_client_factory

        set_client_factory(_client)
        self._api = HfApi()
        self._id = repository
        self._root = root

    def below(self, folder: str) -> list[str]:
        """The files in a folder and below it."""
        return sorted(self._listed(folder))

    def get(self, files: Collection[str], to: Path) -> None:
        """Downloads the files, some at a time, and compares each with what the list says of it."""
        listed = {
            name: file for folder in {_top(file) for file in files}
            for name, file in self._listed(folder).items()
        }  # fmt: skip
        lost = [file for file in files if file not in listed]
        if lost:
            raise FilesLost(f"{len(lost)} files are not in the repository, such as {lost[0]}")

        def load(file: str) -> None:
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            _trying(lambda: self._download(listed[file], file, to / file))

        _each(load, files)

    def put(self, files: Collection[str], of: Path) -> None:
        """Commits the files together, and again as long as the list does not show them whole."""
        _trying(lambda: self._commit(files, of))

    def _listed(self, folder: str) -> dict[str, RepoFile]:
        found = _trying(
            lambda: repository_files(self._api.list_repo_tree, self._id, f"{self._root}/{folder}")
        )
        start = len(self._root) + 1
        return {path[start:]: file for path, file in found.items()}

    def _download(self, file: RepoFile, name: str, to: Path) -> None:
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        url = hf_hub_url(
            self._id, f"{self._root}/{name}", repo_type="dataset", endpoint=self._api.endpoint
        )
        with get_session().stream("GET", url, headers=build_hf_headers()) as response:
            hf_raise_for_status(response)
            with to.open("wb") as stream:
                for block in response.iter_bytes(BLOCK):
                    stream.write(block)
        if not fits(to, file):
            raise FilesLost(f"{name} came with other bytes than the repository lists")

    def _commit(self, files: Iterable[str], of: Path) -> None:
        from huggingface_hub import CommitOperationAdd

        self._api.create_commit(
            self._id,
            repo_type="dataset",
            operations=[
                CommitOperationAdd(f"{self._root}/{file}", str(of / file)) for file in files
            ],
            commit_message=f"Results of {os.environ.get('JOB_ID', 'a job')}",
        )
        listed = {
            name: found for folder in {str(Path(file).parent) for file in files}
            for name, found in self._listed(folder).items()
        }  # fmt: skip
        lost = [file for file in files if file not in listed or not fits(of / file, listed[file])]
        if lost:
            raise FilesLost(f"the repository took {lost[0]} and does not have it")


def repository_files(
    list_tree: Callable[..., Iterable[object]], repository: str, folder: str
) -> dict[str, RepoFile]:
    """The files of a dataset repository in a folder and below it, by their paths.

    A path that is not in that folder is left out, whatever the list says.
    """
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import EntryNotFoundError

    try:
        entries = list(list_tree(repository, folder, recursive=True, repo_type="dataset"))
    except EntryNotFoundError:
        return {}
    return {
        entry.path: entry
        for entry in entries
        if isinstance(entry, RepoFile)
        and entry.path.startswith(f"{folder}/")
        and not {"", ".", ".."} & set(entry.path.split("/"))
    }


def fits(path: Path, file: RepoFile) -> bool:
    """Whether a file here is the one that a repository lists: its size and its hash.

    Large files have the SHA-256 of their bytes there, others git's hash of them.
    """
    size = path.stat().st_size
    if size != file.size or size > MAX_FILE_BYTES:
        return False
    if file.lfs is not None:
        return _hash(path, hashlib.sha256()) == file.lfs.sha256
    git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return _hash(path, git) == file.blob_id


def _client() -> Any:
    """What the calls go through: the Hub's own client has no time limit."""
    from httpx2 import Client

    return Client(follow_redirects=True, timeout=60.0)


def _hash(path: Path, digest: Any) -> str:
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _top(file: str) -> str:
    return file.partition("/")[0]


def _each(work: Callable[[str], None], files: Iterable[str]) -> None:
    with ThreadPoolExecutor(DOWNLOADS) as pool:
        for _ in pool.map(work, files):
            pass


def _trying(work: Callable[[], _T]) -> _T:
    """Again and again, longer apart: a job that gives up loses what it was paid for."""
    for attempt in range(TRIES):
        try:
            return work()
        except Exception as error:
            if attempt + 1 == TRIES or isinstance(error, FileNotFoundError):
                raise FilesLost(f"{type(error).__name__}: {error}") from error
            time.sleep(_pause(error, attempt))
    raise AssertionError


def _pause(error: Exception, attempt: int) -> float:
    """Seconds until the next try: those that the Hub asks for, at most some minutes."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
    asked = headers.get("retry-after", "")
    return min(float(asked), 300.0) if asked.isdigit() else min(0.5 * 2**attempt, 30.0)

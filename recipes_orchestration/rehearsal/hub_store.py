"""The repositories of the rehearsed hub: files by their git ids on disk, commits in memory."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

__all__ = ["Commit", "Entry", "Repo", "Store", "entries_below", "object_id"]

MAIN = "main"
_ATTRIBUTES = b"*.bin filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class Entry:
    """A file of a commit: the git id of its content, and its size in bytes."""

    oid: str
    size: int


@dataclass(frozen=True)
class Commit:
    """All files of a repository at one moment."""

    oid: str
    title: str
    files: Mapping[str, Entry]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class Repo:
    """One repository: `kind` is model, dataset or space, `id` is `namespace/name`."""

    kind: str
    id: str
    private: bool
    commits: list[Commit]

    @property
    def head(self) -> Commit:
        """Where `main` is."""
        return self.commits[-1]

    @property
    def path(self) -> str:
        """Where the hub shows it: datasets and spaces have a prefix."""
        return self.id if self.kind == "model" else f"{self.kind}s/{self.id}"

    def at(self, revision: str) -> Commit | None:
        """The commit of `main` or of a commit's id; None when there is no such."""
        if revision == MAIN:
            return self.head
        return next((each for each in self.commits if each.oid == revision), None)

    def commit(self, title: str, files: Mapping[str, Entry]) -> Commit:
        """A commit after the head, with all files that there are then."""
        commit = Commit(secrets.token_hex(20), title, dict(files))
        self.commits.append(commit)
        return commit


class Store:
    """All repositories. The contents of their files are in a temporary folder."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self._folder: Path | None = None

    def create(self, kind: str, id: str, *, private: bool) -> Repo:
        """A repository, with `.gitattributes` as the hub makes one."""
        first = {".gitattributes": self.keep(_ATTRIBUTES)}
        repo = Repo(kind, id, private, [Commit(secrets.token_hex(20), "initial commit", first)])
        self.repos[kind, id] = repo
        return repo

    def keep(self, content: bytes) -> Entry:
        """Keeps what is in a file; the same content is kept once."""
        entry = Entry(object_id(content), len(content))
        file = self.file(entry)
        if not file.exists():
            temporary = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
            temporary.write_bytes(content)
            temporary.replace(file)
        return entry

    def file(self, entry: Entry) -> Path:
        """Where the content of a file is."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rehearsal-hub-"))
        return self._folder / entry.oid

    def copy(self, commit: Commit, below: str, folder: Path) -> bool:
        """Copies the files below a path of a commit into a folder; False when there are none."""
        prefix = f"{below.strip('/')}/" if below.strip("/") else ""
        found = False
        for path, entry in commit.files.items():
            inside = path.removeprefix(prefix) if path.startswith(prefix) else ""
            if inside and ".." not in PurePosixPath(inside).parts and not inside.startswith("/"):
                target = folder / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.file(entry), target)
                found = True
        return found

    def clear(self) -> None:
        """Forgets all repositories and removes their files."""
        self.repos.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def object_id(content: bytes) -> str:
    """The id that git gives a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def entries_below(commit: Commit, below: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
    """Files and folders below a path, sorted; a folder's entry has an id of its own and no size.

    Nothing when there is no such folder.
    """
    prefix = f"{below.strip('/')}/" if below.strip("/") else ""
    folders: dict[str, Entry] = {}
    files: dict[str, Entry] = {}
    for path, entry in commit.files.items():
        if not path.startswith(prefix):
            continue
        parts = path[len(prefix) :].split("/")
        depths = range(1, len(parts)) if recursive else range(1, min(2, len(parts)))
        for depth in depths:
            name = prefix + "/".join(parts[:depth])
            folders[name] = Entry(
                hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest(), -1
            )
        if recursive or len(parts) == 1:
            files[path] = entry
    yield from sorted({**files, **folders}.items())

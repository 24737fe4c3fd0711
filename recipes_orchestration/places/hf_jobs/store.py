"""How a batch folder gets to the Hub and back: sent once, compared with what is listed there.

The Hub may say that all went well and not have a file. So nothing is believed that its list does
not show with the same size and hash: what is missing is sent again, what came otherwise is fetched
again. What the list shows already is not sent, so that a send that was cut off goes on where it was
and a repeated one sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import PlaceError, ProviderError, Refused, Unreachable

if TYPE_CHECKING:
    from huggingface_hub import Volume

__all__ = ["Fetched", "Listed", "Reach", "Shelf", "Store", "is_inside"]

# A file that is lost so often will be lost for ever.
ROUNDS = 3
# One commit or bucket call. Small files of a repository travel inside one request, in memory.
PART_FILES, PART_BYTES = 250, 32 * 1024 * 1024
MAX_FILES = 1_000_000


@dataclass(frozen=True)
class Listed:
    """A file as the Hub lists it. `entry` is the Hub's own."""

    path: str
    size: int
    entry: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Reach:
    """How a job gets to a batch folder: arguments of `runner.hub_task`, and what it is given.

    `with_token`: the job needs the Hub's token to read and write there.
    """

    arguments: tuple[str, ...]
    volumes: tuple[Volume, ...] = ()
    with_token: bool = False


class Shelf(Protocol):
    """A bucket or a repository. Paths are from its top; errors are those of `Hub`."""

    def open(self) -> None:
        """Makes it, private, unless it is there. Raises `Refused` when others can read it."""
        ...

    def listed(self, folder: str) -> Mapping[str, Listed]:
        """The files in a folder and below it, by their paths; none where there is no folder."""
        ...

    def same(self, file: Path, listed: Listed) -> bool:
        """Whether a file here has the size and the hash of the one there."""
        ...

    def send(self, files: Sequence[tuple[Path, str]]) -> None:
        """Puts files to paths there, all at once."""
        ...

    def fetch(self, listed: Listed, to: Path) -> None:
        """Writes the bytes of a file there, no more than it is listed with, to a file here."""
        ...

    def remove(self, paths: Sequence[str]) -> None:
        """Removes files that were listed."""
        ...

    def reach(self, folder: str) -> Reach:
        """How a job gets to a folder there."""
        ...


@dataclass(frozen=True)
class Fetched:
    """What came back: the files by their names, and how many lay there that nobody asked for."""

    files: Mapping[str, Path]
    strange: int = 0


class Store:
    """The folders of one project on a shelf, below `top`.

    Paths given and taken are from the project's folder there, as they are from `root` here.
    """

    def __init__(self, shelf: Shelf, top: str) -> None:
        self._shelf = shelf
        self._top = top
        self._opened = False

    def send(self, root: Path, folder: str, files: Iterable[str]) -> int:
        """Puts files of a batch folder there, given as paths from it; gives how many were sent.

        Raises `Unreachable` or `Refused` when they are not all there whole, `PlaceError` when one
        cannot be read here.
        """
        wanted = {f"{folder}/{file}": root / folder / file for file in files}
        sent = 0
        try:
            if not self._opened:
                self._shelf.open()
                self._opened = True
            for _ in range(ROUNDS):
                missing = self._missing(folder, wanted)
                if not missing:
                    return sent
                for part in _parts(missing):
                    self._shelf.send([(path, self._there(name)) for name, path in part])
                sent += len(missing)
            missing = self._missing(folder, wanted)
        except (Refused, Unreachable):
            raise
        except ProviderError as error:
            # Files went, but no job did: nothing is in doubt.
            raise Unreachable(str(error)) from error
        except OSError as error:
            raise PlaceError(
                f"What was packed in {root / folder} cannot be read: {error.strerror or error}. "
                "Run the recipe again."
            ) from error
        if missing:
            raise Unreachable(
                f"The Hub took {len(missing)} files {ROUNDS} times and does not list them as they "
                f"are, such as {missing[0][0]}. They are sent again with the next try."
            )
        return sent

    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder, by their names in it, and their sizes."""
        start = f"{self._there(folder)}/"
        return {path[len(start) :]: each.size for path, each in self._listed(folder).items()}

    def fetch(self, folder: str, names: Collection[str], to: Path, most: int) -> Fetched:
        """Brings those files of a folder that are there; none larger than `most` bytes.

        Others are left where they are and counted. Raises `ProviderError` when a file does not
        come as it is listed.
        """
        start = f"{self._there(folder)}/"
        listed = {path[len(start) :]: each for path, each in self._listed(folder).items()}
        files: dict[str, Path] = {}
        to.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in names:
            if (there := listed.get(name)) is not None:
                if there.size > most:
                    raise ProviderError(
                        f"{folder}/{name} has {there.size:,} bytes at the Hub; at most {most:,} "
                        "are fetched. Look at what the task wrote there."
                    )
                self._fetch(there, to / name)
                files[name] = to / name
        return Fetched(files, strange=len(listed.keys() - files.keys()))

    def remove(self, folder: str, *tasks: str) -> None:
        """Removes folders of tasks, and the batch folder with them when it has no other task."""
        below = self._listed(folder)
        start = self._there(folder)
        own = tuple(f"{start}/{task}/" for task in tasks)
        shared = tuple(f"{start}/{each}/" for each in ("pages", "code"))
        others = any(not path.startswith((*own, *shared)) for path in below)
        gone = [path for path in below if path.startswith(own) or not others]
        if gone:
            self._shelf.remove(gone)

    def reach(self, folder: str) -> Reach:
        """How a job gets to a batch folder there."""
        return self._shelf.reach(self._there(folder))

    def _fetch(self, there: Listed, to: Path) -> None:
        part = to.with_name(f".{to.name}.part")
        try:
            for _ in range(ROUNDS):
                self._shelf.fetch(there, part)
                if self._shelf.same(part, there):
                    part.replace(to)
                    return
        except OSError as error:
            raise PlaceError(
                f"{to} could not be written: {error.strerror or error}. Make room or mend it and "
                "run the recipe again."
            ) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        raise ProviderError(
            f"{there.path} came {ROUNDS} times with other bytes than the Hub lists."
        )

    def _missing(self, folder: str, wanted: Mapping[str, Path]) -> list[tuple[str, Path]]:
        listed = self._listed(folder)

        def is_there(name: str, path: Path) -> bool:
            there = listed.get(self._there(name))
            return there is not None and self._shelf.same(path, there)

        return [(name, path) for name, path in wanted.items() if not is_there(name, path)]

    def _listed(self, folder: str) -> dict[str, Listed]:
        """What is there, without paths that a list should not have."""
        there = self._there(folder)
        return {
            path: each
            for path, each in self._shelf.listed(there).items()
            if is_inside(path, there) and each.size >= 0
        }

    def _there(self, path: str) -> str:
        return f"{self._top}/{path}"


def is_inside(path: str, folder: str) -> bool:
    """Whether a path from outside is one of a file in the folder or below it."""
    parts = path.split("/")
    return path.startswith(f"{folder}/") and not ({"", ".", ".."} & set(parts)) and "\\" not in path


def _parts(files: Sequence[tuple[str, Path]]) -> Iterator[list[tuple[str, Path]]]:
    part: list[tuple[str, Path]] = []
    size = 0
    for name, path in files:
        more = path.stat().st_size
        if part and (len(part) >= PART_FILES or size + more > PART_BYTES):
            yield part
            part, size = [], 0
        part.append((name, path))
        size += more
    if part:
        yield part

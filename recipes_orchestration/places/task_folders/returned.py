"""A task folder that came back, read against what was sent. Nothing in it is trusted."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from itertools import chain, islice
from pathlib import Path

from ...errors import ProviderError
from ...recipe import Step
from ...runner.journal import lines_of
from ...runner.task_folder import MAX_LINE_BYTES, OUTCOME, PROGRESS, RESULTS, Manifest
from ...runner.work import Failure, Outcome, TaskSpec
from ..place import Message, Report
from .returned_lines import LeftOut, outcome_of_line
from .returned_report import MOST_OUTCOME_BYTES, Told, messages_of, told_of

__all__ = ["Expected", "Returned", "read_returned"]

CHUNK_OUTCOMES = 400
CHUNK_BYTES = 25_000_000
"""So much lands at a time at most, unless one value is larger."""

_FILES = frozenset({RESULTS, PROGRESS, OUTCOME})
_MOST_FILES = 10_000
_READ = 1 << 20
_OPEN = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True)
class Expected:
    """What a task was sent for: the steps of each page, and what each step needs.

    `task` is its name; an outcome of another one is not believed.
    """

    task: str
    pages: Mapping[str, Sequence[str]] = field(repr=False)
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> Expected:
        """By the manifest as it was written here."""
        pages = {page.page_id: page.steps for page in manifest.pages}
        return cls(manifest.task, pages, _needs(manifest.steps))

    @classmethod
    def of_spec(cls, task: str, spec: TaskSpec) -> Expected:
        """By the work that was sent as the task of that name."""
        pages = {page.page_id: page.steps for page in spec.pages}
        return cls(task, pages, _needs(spec.steps))


class Returned:
    """What came back of a task. Made by `read_returned`.

    `complete`: the runner did all that could be done. `failure` says why the task as a whole could
    not be done. Neither is known without an outcome: it was killed, or its machine is gone.
    """

    def __init__(self, out: Path, expected: Expected, told: Told | None, left_out: LeftOut) -> None:
        self._out = out
        self._expected = expected
        self._told = told
        self._files = left_out
        self._left: dict[str, dict[str, bool]] | None = None
        self.left_out = left_out
        self.complete = told is not None and told.complete
        self.failure = None if told is None else told.failure
        self.has_outcome = told is not None

    def chunks(self) -> Iterator[list[Outcome]]:
        """The outcomes, a part at a time, the same each time for the same folder.

        The first of several for a page and step counts. Raises `ProviderError` when the results
        cannot be read.
        """
        self.left_out = left_out = LeftOut(files=self._files.files, outcome=self._files.outcome)
        self._left = {page: {} for page in self._expected.pages}
        outcomes = self._outcomes(self._left, left_out)
        chunk, following = _chunk_of(outcomes, [])
        while chunk:
            yield chunk
            chunk, following = _chunk_of(outcomes, following)

    def unwritten(self, failure: Failure) -> Iterator[list[Outcome]]:
        """What did not come back, as failed for that reason, a part at a time; after `chunks`.

        Of a page's steps those that could have run: what they need is there. Those behind them
        are left to do.
        """
        assert self._left is not None, "chunks comes first"
        chunk: list[Outcome] = []
        for page_id, steps in self._expected.pages.items():
            ended = self._left[page_id]
            for step in steps:
                waits = self._expected.needs.get(step, ())
                if step not in ended and all(ended.get(n, n not in steps) for n in waits):
                    chunk.append(Outcome(page_id, step, 0.0, failure=failure))
            if len(chunk) >= CHUNK_OUTCOMES:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    def report(self) -> Report:
        """What the far side told of its work, with what was left out of it; after `chunks`."""
        messages: tuple[Message, ...] = ()
        stream = _opened(self._out, PROGRESS)
        if stream is not None:
            with stream:
                messages = messages_of(stream)
        if words := self.left_out.words():
            messages += (Message("warning", f"Not taken from what came back: {words}."),)
        return Report({} if self._told is None else dict(self._told), messages)

    def _outcomes(
        self, left: dict[str, dict[str, bool]], left_out: LeftOut
    ) -> Iterator[tuple[int, Outcome]]:
        """Outcomes of what was sent, with the lengths of their lines."""
        stream = _opened(self._out, RESULTS)
        if stream is None:
            return
        with stream:
            for _, line in lines_of(stream, MAX_LINE_BYTES):
                if not line.endswith(b"\n"):
                    # Longer than any line may be, or the end of a file that was cut off.
                    left_out.too_large += len(line) > MAX_LINE_BYTES
                    left_out.torn += len(line) <= MAX_LINE_BYTES
                    continue
                outcome = outcome_of_line(line, left_out)
                if outcome is None:
                    continue
                if outcome.step not in self._expected.pages.get(outcome.page_id, ()):
                    left_out.unknown += 1
                elif outcome.step in left[outcome.page_id]:
                    left_out.twice += 1
                else:
                    left[outcome.page_id][outcome.step] = outcome.failure is None
                    yield len(line), outcome


def _chunk_of(
    outcomes: Iterator[tuple[int, Outcome]], first: list[tuple[int, Outcome]]
) -> tuple[list[Outcome], list[tuple[int, Outcome]]]:
    """The next chunk, which begins with `first`, and what the one behind it begins with."""
    chunk: list[Outcome] = []
    size = 0
    with _no_search_for_garbage():
        for length, outcome in chain(first, outcomes):
            if chunk and (size + length > CHUNK_BYTES or len(chunk) >= CHUNK_OUTCOMES):
                return chunk, [(length, outcome)]
            chunk.append(outcome)
            size += length
    return chunk, []


@contextmanager
def _no_search_for_garbage() -> Generator[None]:
    """Values out of JSON have no circles, and looking for some takes longer than reading them."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()


def read_returned(out: Path, expected: Expected, also: Collection[str] = ()) -> Returned:
    """The folder `out` of a task, as it was fetched; `also` are further files that may lie there.

    A folder that is not there is one in which nothing was written. Raises `ProviderError` when the
    outcome says that all was done and the results are not those that it speaks of: they are to be
    fetched again, as something was lost on the way. Also when they cannot be read.
    """
    left_out = LeftOut()
    try:
        _look_around(out, also, left_out)
        told = _outcome(out, expected, left_out)
        if told is not None and told.complete and told.results is not None:
            _check(out, expected, *told.results)
    except OSError as error:
        raise ProviderError(
            f"The results of {expected.task} in {out} cannot be read: {error.strerror or error}."
        ) from error
    return Returned(out, expected, told, left_out)


def _look_around(out: Path, also: Collection[str], left_out: LeftOut) -> None:
    """Counts what nobody asked for; it is never opened."""
    if not _is_folder(out):
        left_out.files += out.is_symlink() or out.exists()
        return
    with os.scandir(out) as entries:
        for entry in islice(entries, _MOST_FILES):
            # The runner's own files on the way to their names begin with a dot.
            plain_file = entry.is_file(follow_symlinks=False)
            asked_for = entry.name in _FILES or entry.name in also
            expected = asked_for or entry.name.startswith(".")
            left_out.files += not (plain_file and expected)


def _outcome(out: Path, expected: Expected, left_out: LeftOut) -> Told | None:
    stream = _opened(out, OUTCOME)
    if stream is None:
        return None
    with stream:
        data = stream.read(MOST_OUTCOME_BYTES + 1)
    try:
        if len(data) > MOST_OUTCOME_BYTES:
            raise ValueError("it is too large")
        return told_of(data, expected.task)
    except ValueError:
        left_out.outcome += 1
        return None


def _check(out: Path, expected: Expected, lines: int, size: int, sha256: str) -> None:
    """Whether the results are those that the outcome speaks of."""
    found_lines, found_size, digest = 0, 0, hashlib.sha256()
    stream = _opened(out, RESULTS)
    if stream is not None:
        with stream:
            while data := stream.read(_READ):
                found_lines += data.count(b"\n")
                found_size += len(data)
                digest.update(data)
    if (found_lines, found_size, digest.hexdigest()) != (lines, size, sha256):
        raise ProviderError(
            f"Of the results of {expected.task}, {lines:,} lines of {size:,} bytes, "
            f"{found_lines:,} lines of {found_size:,} bytes came back, or other ones. They are "
            "fetched again."
        )


def _opened(out: Path, name: str) -> BufferedReader | None:
    """A plain file of the folder; None when there is none, or a link, pipe or folder instead."""
    if not _is_folder(out):
        return None
    try:
        descriptor = os.open(out / name, _OPEN)
    except FileNotFoundError:
        return None
    except OSError as error:
        if (out / name).is_symlink():
            return None
        raise ProviderError(f"{out / name} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return BufferedReader(FileIO(descriptor), _READ)


def _is_folder(out: Path) -> bool:
    try:
        return stat.S_ISDIR(out.lstat().st_mode)
    except OSError:
        return False


def _needs(steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    return {step.name: step.needs for step in steps}

"""Work packed into a batch folder: page files, the project's code, and a folder for each task.

The layout is that of `runner.task_folder`. Beside it lie what only this side needs (`INDEX` and
`PARTS` of `page_files`): what is to be sent are `pages/`, `code/` and the folders of arrays.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ...errors import PageUnreadable, SourceError
from ...pages.contents import Kind, kind_of
from ...runner.page_bytes import page_file
from ...runner.task_folder import (
    MANIFEST,
    NEEDS,
    OUT,
    PAGES,
    Manifest,
    ManifestPage,
    read_manifest,
    runner_version,
    write_manifest,
)
from ...runner.work import Failure, FailureKind, Outcome, PageWork, TaskSpec
from ..place import array_of
from .page_encoding import Encoders, Encoding
from .page_files import PageFile, PageFiles, folder_error
from .page_ways import Way, picture_way, reads_pdf, way_of
from .project_code import pack_code
from .task_sizes import cut, rung_of

__all__ = ["Packaging", "PackedTask", "cut", "rung_of"]

# From a task folder to its batch folder.
_UP = "../.."


@dataclass(frozen=True)
class PackedTask:
    """A part of the work whose pages lie in the batch folder.

    `pages` are those that go, `decided` the outcomes of those that cannot. `files` are the page
    files and the folder of code that the task needs, as paths from the batch folder, each once;
    `size` is how many bytes the page files have.
    """

    spec: TaskSpec = field(repr=False)
    pages: tuple[ManifestPage, ...]
    decided: tuple[Outcome, ...]
    code: str | None
    files: tuple[str, ...] = field(repr=False)
    size: int

    @property
    def page_ids(self) -> tuple[str, ...]:
        """The pages that go."""
        return tuple(page.page_id for page in self.pages)

    @property
    def calls(self) -> dict[str, str]:
        """What the ledger keeps of each page that goes: its hash."""
        return {page.page_id: page.sha256 for page in self.pages}


class Packaging:
    """Packs tasks into the batch folder `folder`; `workers` processes decode what has to be.

    Pages are handled one at a time, and a page that lies there already is not read again, but for
    one whose bytes failed it. A kill at any moment leaves nothing that is believed and not whole.
    Not for several threads at a time; several processes may pack into one folder. To be closed.
    """

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self.folder = folder
        self._workers = workers
        self._files = PageFiles(folder)
        self._encoders: Encoders | None = None
        self._codes: dict[tuple[str, ...], str | None] = {}

    def __enter__(self) -> Packaging:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes and removes what was begun; packed tasks stay."""
        if self._encoders is not None:
            self._encoders.close()
        self._files.close()

    def pack(self, spec: TaskSpec) -> PackedTask:
        """The pages of one task as files, as cut by `cut`; its folder is written by `write`.

        Pages that cannot be read or decoded become outcomes: of each step that waits for no other
        step of the task. Raises `PlaceError` when the folder cannot be written or the project has
        too much code.
        """
        code = self._code(spec)
        pages: list[ManifestPage] = []
        decided: list[Outcome] = []
        sizes: dict[str, int] = {} if code is None else {code: 0}
        for work, made in self._each(spec):
            if isinstance(made, Failure):
                decided += _outcomes(spec, work, made)
                continue
            file = f"{PAGES}/{made.file.name}"
            sizes[file] = made.file.size
            pages.append(
                ManifestPage(
                    page_id=work.page_id,
                    sha256=work.sha256,
                    file=f"{_UP}/{file}",
                    file_sha256=made.file.sha256,
                    frame=made.frame,
                    steps=work.steps,
                    encoded=made.encoded,
                )
            )
        order = {work.page_id: number for number, work in enumerate(spec.pages)}
        pages.sort(key=lambda page: order[page.page_id])
        return PackedTask(
            spec, tuple(pages), tuple(decided), code, tuple(sizes), sum(sizes.values())
        )

    def write(self, name: str, packed: PackedTask) -> Path:
        """The folder of the task of that name, `<array>/<index>` in the batch folder.

        The manifest is written last: a folder without one is no task. A folder that has the same
        one already is left as it is. Raises `PlaceError` when it cannot be written.
        """
        array, index = array_of(name)
        folder = self.folder / array / str(index)
        manifest = self._manifest(name, packed)
        try:
            if (folder / MANIFEST).exists() and read_manifest(folder) == manifest:
                return folder
            (folder / OUT).mkdir(parents=True, exist_ok=True, mode=0o700)
            if manifest.needs:
                _write_needs(folder / NEEDS, packed)
            write_manifest(folder, manifest)
        except OSError as error:
            raise folder_error(folder, error) from error
        return folder

    def _code(self, spec: TaskSpec) -> str | None:
        """Where the project's modules lie; read once for all tasks, which must run the same."""
        known = (spec.import_path, *(step.run for step in spec.steps))
        if known not in self._codes:
            beside = [spec.reader.root]
            self._codes[known] = pack_code(self.folder, spec.steps, spec.import_path, beside)
        return self._codes[known]

    def _manifest(self, name: str, packed: PackedTask) -> Manifest:
        spec = packed.spec
        going = set(packed.page_ids)
        return Manifest(
            task=name,
            steps=spec.steps,
            pages=packed.pages,
            runner=runner_version(),
            max_pixels=spec.max_pixels,
            page_timeout=spec.page_timeout,
            code=None if packed.code is None else f"{_UP}/{packed.code}",
            needs=any(_needs_of(spec, work) for work in spec.pages if work.page_id in going),
        )

    def _each(self, spec: TaskSpec) -> Iterator[tuple[PageWork, _Made | Failure]]:
        """Each page with its file or why it has none; those that are decoded come later."""
        on_pdf = {step.name for step in spec.steps if reads_pdf(step)}
        waiting: deque[tuple[PageWork, Way, str, Future[PageFile | Failure]]] = deque()
        for work in spec.pages:
            way = way_of(spec, work, on_pdf)
            made = self._plain(spec, work, way)
            if isinstance(made, Way):
                way = made
                known = self._known(work, way)
                if known is None:
                    part = self._files.part()
                    encoding = Encoding(spec.reader, work, way.image, spec.max_pixels, part)
                    encoders = self._started(spec)
                    waiting.append((work, way, part, encoders.start(encoding)))
                    if len(waiting) < 2 * encoders.workers:
                        continue
                    yield self._decoded(*waiting.popleft())
                    continue
                made = _Made(known, None, way.encoded)
            yield work, made
        while waiting:
            yield self._decoded(*waiting.popleft())

    def _plain(self, spec: TaskSpec, work: PageWork, way: Way) -> _Made | Failure | Way:
        """The file that holds the page, as it is; or the way it goes instead: as a picture."""
        if way.decoded:
            return way
        known = self._known(work, way)
        if known is not None:
            return _Made(known, work.frame, encoded=False)
        try:
            sha256, data = page_file(spec.reader, work)
        except PageUnreadable as error:
            return Failure(FailureKind.UNREADABLE, str(error))
        except SourceError as error:
            return Failure(FailureKind.SOURCE, str(error))
        if work.frame is None:
            return _Made(self._files.keep(way.made_of, data, sha256), None, encoded=False)
        if kind_of(data) is not Kind.PDF:
            return picture_way(spec, work, way.steps)
        # One file for all its pages: written with the first of them.
        file = self._files.known(sha256)
        file = file or self._files.keep(sha256, data, sha256)
        return _Made(self._files.note(way.made_of, file), work.frame, encoded=False)

    def _known(self, work: PageWork, way: Way) -> PageFile | None:
        # The runner compares hashes, so a damaged file comes back as a page whose file failed.
        return None if work.failed == FailureKind.SOURCE else self._files.known(way.made_of)

    def _decoded(
        self, work: PageWork, way: Way, part: str, future: Future[PageFile | Failure]
    ) -> tuple[PageWork, _Made | Failure]:
        assert self._encoders is not None
        file = self._encoders.result(future)
        if isinstance(file, Failure):
            Path(part).unlink(missing_ok=True)
            return work, file
        return work, _Made(self._files.take(way.made_of, part, file), None, way.encoded)

    def _started(self, spec: TaskSpec) -> Encoders:
        if self._encoders is None:
            self._encoders = Encoders(workers=self._workers, page_timeout=spec.page_timeout)
        return self._encoders


@dataclass(frozen=True)
class _Made:
    """A page's file, its `frame` there, and whether it is a picture that steps see as it is."""

    file: PageFile
    frame: int | None
    encoded: bool


def _outcomes(spec: TaskSpec, work: PageWork, failure: Failure) -> list[Outcome]:
    return [
        Outcome(page_id=work.page_id, step=step.name, seconds=0.0, failure=failure)
        for step in spec.steps
        if step.name in work.steps and not set(step.needs) & set(work.steps)
    ]


def _needs_of(spec: TaskSpec, work: PageWork) -> list[str]:
    """The steps whose landed values the page's steps need."""
    wanted = dict.fromkeys(
        need
        for step in spec.steps
        if step.name in work.steps
        for need in step.needs
        if need not in work.steps
    )
    return [need for need in wanted if need in work.needs]


def _write_needs(path: Path, packed: PackedTask) -> None:
    going = set(packed.page_ids)
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with beside.open("wb") as stream:
            for work in packed.spec.pages:
                if work.page_id not in going:
                    continue
                for need in _needs_of(packed.spec, work):
                    line = {"page_id": work.page_id, "step": need, "value": work.needs[need]}
                    stream.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise

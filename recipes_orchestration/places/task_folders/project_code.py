"""The project's own modules, copied beside the pages for steps that are `module:function`."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from uuid import uuid4

from ...errors import PlaceError
from ...recipe import Step
from ...runner.task_folder import CODE
from ..processes import this_process
from .page_files import PARTS, folder_error

__all__ = ["MAX_CODE_BYTES", "MAX_CODE_FILES", "pack_code"]

MAX_CODE_FILES = 2_000
MAX_CODE_BYTES = 20 * 1024 * 1024
"""A project with more modules, or larger ones, is to become a package of its own."""

_MAX_FOLDERS = 10_000
_PASSED_OVER = frozenset({"__pycache__", "node_modules", "library", "pages", "site-packages"})


def pack_code(
    folder: Path, steps: Iterable[Step], import_path: str, beside: Collection[str] = ()
) -> str | None:
    """Copies the project's `*.py` files into the batch folder and gives their folder there.

    Given as a path from the batch folder, named after the files' content. None when no step is a
    function of a module that lies in `import_path`: the far side has the others installed. Folders
    that are hidden, environments of Python, named `library` or `pages`, or among `beside` (such as
    the source's root) are passed over. Raises `PlaceError` when there are too many files.
    """
    root = Path(import_path)
    if not any(_lies_in(root, step.run) for step in steps):
        return None
    passed_over = {os.path.realpath(each) for each in beside if "://" not in each}
    modules = _read(root, passed_over)
    whole = hashlib.sha256()
    for name, data in sorted(modules.items()):
        whole.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    place = f"{CODE}/{whole.hexdigest()[:32]}"
    if not (folder / place).is_dir():
        try:
            _write(folder, folder / place, modules)
        except OSError as error:
            raise folder_error(folder, error) from error
    return place


def _lies_in(root: Path, run: str) -> bool:
    module, colon, _ = run.partition(":")
    top = module.partition(".")[0]
    if not colon or not top.isidentifier():
        return False
    return (root / f"{top}.py").is_file() or (root / top).is_dir()


def _read(root: Path, passed_over: Collection[str]) -> dict[str, bytes]:
    modules: dict[str, bytes] = {}
    size = 0
    for path in _module_files(root, passed_over):
        try:
            data = _bytes_of(path)
        except OSError as error:
            raise PlaceError(
                f"The project's module {path} cannot be read: {error.strerror}. The steps that "
                "are functions of the project cannot be sent without it."
            ) from error
        if data is None:
            continue
        size += len(data)
        modules[PurePosixPath(path.relative_to(root).as_posix()).as_posix()] = data
        if len(modules) > MAX_CODE_FILES or size > MAX_CODE_BYTES:
            raise PlaceError(
                f"The project folder {root} has more than {MAX_CODE_FILES:,} Python files or "
                f"{MAX_CODE_BYTES // 1024**2} MB of them. Move what the steps do not need "
                "elsewhere, or install it on the far side as a package."
            )
    return modules


def _module_files(root: Path, passed_over: Collection[str]) -> Iterator[Path]:
    for folders, (place, below, files) in enumerate(os.walk(root)):
        if folders >= _MAX_FOLDERS:
            raise PlaceError(
                f"The project folder {root} has more than {_MAX_FOLDERS:,} folders. Move what is "
                "no code of the steps elsewhere."
            )
        below[:] = sorted(
            name
            for name in below
            if name.isidentifier()
            and name not in _PASSED_OVER
            and not Path(place, name, "pyvenv.cfg").exists()
            and os.path.realpath(Path(place, name)) not in passed_over
        )
        yield from (
            Path(place, name)
            for name in sorted(files)
            if name.endswith(".py") and not name.startswith(".")
        )


def _bytes_of(path: Path) -> bytes | None:
    """The file's bytes; None for what is no regular file, or a link."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():
        return None
    descriptor = os.open(path, flags)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return stream.read(MAX_CODE_BYTES + 1)


def _write(folder: Path, place: Path, modules: dict[str, bytes]) -> None:
    """Writes all of them or none: the folder gets its name when it is whole."""
    part = folder / PARTS / f"{this_process()}~{uuid4().hex[:8]}"
    try:
        for name, data in modules.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(data)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Another process may have been faster with the same files.
        with suppress(FileExistsError):
            _rename(part, place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _rename(part: Path, place: Path) -> None:
    try:
        part.rename(place)
    except OSError as error:
        if place.is_dir():
            raise FileExistsError from error
        raise

"""The folder of a task that runs on a far side: what its files are called and what they hold.

    <batch>/pages/<sha256>.<ext>       page files, shared by all arrays of the batch
    <batch>/code/<digest>/             the project's own modules, where a step needs them
    <batch>/<array>/<index>/           the task folder: `MANIFEST`, `NEEDS`, and `OUT` with what
                                       comes back: `RESULTS`, `PROGRESS`, `OUTCOME`

Whoever packs a task writes the first, `recipes-runner` reads it and writes the last. Neither side
trusts the other: sizes are bounded, types checked, and no path leads out of the batch folder.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..errors import PlaceError
from ..recipe import Step
from .checked_json import Fields, json_of
from .run_pages import MAX_VALUE_BYTES

__all__ = [
    "CODE",
    "FORMAT",
    "MANIFEST",
    "MAX_LINE_BYTES",
    "MAX_MANIFEST_BYTES",
    "MAX_PAGES",
    "NEEDS",
    "OUT",
    "OUTCOME",
    "PAGES",
    "PROGRESS",
    "RESULTS",
    "WORK",
    "Manifest",
    "ManifestPage",
    "decode_line",
    "encode_line",
    "manifest_of",
    "path_in_batch",
    "read_manifest",
    "runner_version",
    "write_manifest",
    "write_whole",
]

FORMAT = 1
"""The version of this format; another one is refused."""

# In the batch folder.
PAGES = "pages"
CODE = "code"
# In the task folder.
MANIFEST = "manifest.json"
NEEDS = "needs.jsonl"
OUT = "out"
WORK = "work"
"""Files of the running runner that nobody else needs: its lock, and where its worker is."""
# In `OUT`.
RESULTS = "results.jsonl"
PROGRESS = "progress.jsonl"
OUTCOME = "outcome.json"

MAX_MANIFEST_BYTES = 64 * 1024 * 1024
MAX_PAGES = 100_000
MAX_STEPS = 1000
MAX_LINE_BYTES = 3 * MAX_VALUE_BYTES + 1024 * 1024
"""A journal line: a character of two bytes takes six as ASCII JSON."""

_MAX_PATH = 4096
# A task folder lies two folders below its batch folder.
_DEPTH = 2
_TASK = re.compile(r"[A-Za-z0-9._-]{1,200}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[A-Za-z0-9.+!_-]{1,100}")
_NOT_EMPTY = re.compile(r"(?s).{1,5000}")
_CRC = re.compile(rb"[0-9a-f]{8}")


@dataclass(frozen=True)
class ManifestPage:
    """A page of a task.

    `sha256` is the page's own hash, of which its keys are made; `file` is the path of its bytes
    from the task folder, `file_sha256` their hash. `frame` counts within that file and is None
    where the file is the page. `encoded`: its steps see the file as it is, whatever their `image`
    says: it was made for them. `steps` are those to run on it.
    """

    page_id: str
    sha256: str
    file: str
    file_sha256: str
    frame: int | None
    steps: tuple[str, ...]
    encoded: bool = False


@dataclass(frozen=True)
class Manifest:
    """What a task is to do. `code` is the folder of the project's modules, from the task folder.

    `page_timeout` is how long one step may take on one page, in seconds. `runner` is the version
    of this package that packed it. `needs`: landed values lie in `NEEDS`.
    """

    task: str
    steps: tuple[Step, ...]
    pages: tuple[ManifestPage, ...]
    runner: str
    max_pixels: int = 150_000_000
    page_timeout: float = 600.0
    code: str | None = None
    needs: bool = False
    format: int = FORMAT


def runner_version() -> str:
    """The version of this package here; the far side must have the same."""
    try:
        return version("recipes-orchestration")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the task folder's manifest, whole or not at all."""
    told = {
        # Not `asdict`, which copies every page's fields and takes as long as reading a page file.
        **vars(manifest),
        "steps": [vars(step) for step in manifest.steps],
        "pages": [vars(page) for page in manifest.pages],
    }
    write_whole(folder / MANIFEST, json.dumps(told, allow_nan=False).encode())


def read_manifest(folder: Path) -> Manifest:
    """The task folder's manifest. Raises `PlaceError` when it is not one, saying why."""
    path = folder / MANIFEST
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise PlaceError(
            f"The task folder {folder} cannot be read: {MANIFEST}: {error.strerror}. "
            "Send the task again."
        ) from error
    return manifest_of(data)


def manifest_of(data: bytes) -> Manifest:
    """A manifest out of its bytes. Raises `PlaceError` for anything that is not right in it."""
    try:
        return _manifest(data)
    except ValueError as error:
        raise PlaceError(
            f"The task's {MANIFEST} is not right: {error}. Send the task again."
        ) from error


def _manifest(data: bytes) -> Manifest:
    if len(data) > MAX_MANIFEST_BYTES:
        raise ValueError(f"it is larger than {MAX_MANIFEST_BYTES:,} bytes")
    fields = Fields(json_of(data), "the manifest")
    found = fields.take("format", int)
    if found != FORMAT:
        raise ValueError(
            f"its format is {found}, and recipes-orchestration {runner_version()} reads {FORMAT}"
        )
    steps = tuple(_step(each) for each in fields.items("steps", at_most=MAX_STEPS))
    names = [step.name for step in steps]
    if not names or len(set(names)) != len(names):
        raise ValueError("its steps are none, or two have one name")
    pages = tuple(_page(each, names) for each in fields.items("pages", at_most=MAX_PAGES))
    if len({page.page_id for page in pages}) != len(pages):
        raise ValueError("a page is in it twice")
    code = fields.maybe("code", str)
    return Manifest(
        task=fields.text("task", _TASK),
        steps=steps,
        pages=pages,
        runner=fields.text("runner", _VERSION),
        max_pixels=fields.whole("max_pixels", least=1, most=10**12),
        page_timeout=fields.number("page_timeout", least=0.001, most=10**7),
        code=None if code is None else path_in_batch(code),
        needs=fields.take("needs", bool),
    )


def _step(given: Any) -> Step:
    fields = Fields(given, "a step")
    return Step(
        name=fields.text("name", _NOT_EMPTY),
        run=fields.text("run", _NOT_EMPTY),
        version=fields.take("version", str),
        place=fields.take("place", str),
        needs=fields.texts("needs", at_most=MAX_STEPS),
        params=fields.take("params", dict),
        provider=fields.maybe("provider", str),
        model=fields.maybe("model", str),
        prompt=fields.maybe("prompt", str),
        image=fields.maybe("image", dict),
    )


def _page(given: Any, names: list[str]) -> ManifestPage:
    fields = Fields(given, "a page")
    steps = fields.texts("steps", at_most=MAX_STEPS)
    if not set(steps) <= set(names):
        raise ValueError("a page has a step that the task has not")
    frame = fields.maybe("frame", int)
    return ManifestPage(
        page_id=fields.text("page_id", _NOT_EMPTY),
        sha256=fields.text("sha256", _SHA256),
        file=path_in_batch(fields.take("file", str)),
        file_sha256=fields.text("file_sha256", _SHA256),
        frame=None if frame is None else fields.whole("frame", least=0, most=10**9),
        steps=steps,
        encoded=fields.take("encoded", bool),
    )


def path_in_batch(path: str) -> str:
    """The relative path of a task folder as it is; `ValueError` when it leaves the batch folder."""
    plain = posixpath.normpath(path)
    ups = plain.split("/").count("..")
    if (
        not path
        or len(path) > _MAX_PATH
        or "\0" in path
        or "\\" in path
        or path.startswith("/")
        or ups > _DEPTH
        or plain == "/".join([".."] * ups)
    ):
        raise ValueError(f"the path {path[:200]!r} leads out of its batch folder")
    return path


def encode_line(value: Mapping[str, Any]) -> bytes:
    """A journal line: the checksum of the JSON, the JSON in ASCII, and the line end.

    Raises `ValueError` for what is not JSON.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def decode_line(line: bytes) -> dict[str, Any] | None:
    """What a journal line says, given with its line end or without; None when it is damaged."""
    line = line.removesuffix(b"\n")
    crc, space, text = line[:8], line[8:9], line[9:]
    if len(line) > MAX_LINE_BYTES or space != b" " or not _CRC.fullmatch(crc):
        return None
    if zlib.crc32(text) != int(crc, 16):
        return None
    try:
        value = json_of(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def write_whole(path: Path, data: bytes) -> None:
    """Writes the file so that a reader sees all of it or none, after a crash too."""
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise

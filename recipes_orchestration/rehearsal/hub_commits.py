"""A commit at the rehearsed hub: its JSON lines read, its files kept, or not as the script says."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from pydantic_core import from_json
from starlette.responses import Response

from .bodies import Body, file_lines
from .hub_desk import Desk
from .hub_errors import error, no_entry
from .hub_store import Commit, Entry, Repo, Store

__all__ = ["Refused", "committed"]


class Refused(Exception):
    """A commit that the hub does not take; nothing of it is kept."""

    def __init__(self, response: Response) -> None:
        super().__init__("refused")
        self.response = response


def committed(desk: Desk, store: Store, repo: Repo, body: Body) -> Commit:
    """Makes the commit that the lines of a body ask for. Raises `Refused`.

    As in `_prepare_commit_payload` of huggingface_hub's `_commit_api.py`: a header, then `file`,
    `deletedFile` and `deletedFolder`. Copies come as files.
    """
    head, title = repo.head, ""
    files = dict(head.files)
    added = 0
    for start, end in file_lines(body):
        key, value = _line(body.bytes(start, end))
        if key == "header":
            title = str(value.get("summary", ""))
            if value.get("parentCommit") not in (None, head.oid):
                raise Refused(error(412))
            continue
        path = _path(value)
        if key == "file":
            added += 1
            content = _content(value)
            with desk.lock:
                content = _spoiled(desk, path, content)
            if content is not None:
                files[path] = store.keep(content)
        elif key in ("deletedFile", "deletedFolder"):
            _delete(files, path, head, folder=key == "deletedFolder")
        else:
            raise Refused(error(400, f"A rehearsal takes no {key} in a commit"))
    with desk.lock:
        if repo.head is not head:
            # Another commit came in between: what this one changed goes on top of it.
            files = _merged(head.files, files, repo.head.files)
        desk.calls["files"] += added
        return repo.commit(title, files)


def _line(line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        given = from_json(line)
        key, value = given["key"], given["value"]
    except (ValueError, TypeError, KeyError):
        raise Refused(error(400, "Invalid JSON line in a commit")) from None
    if not isinstance(key, str) or not isinstance(value, dict):
        raise Refused(error(400, "Invalid JSON line in a commit"))
    return key, value


def _path(value: dict[str, Any]) -> str:
    path = value.get("path")
    parts = path.rstrip("/").split("/") if isinstance(path, str) else [""]
    if any(part in ("", ".", "..", ".git") for part in parts):
        raise Refused(error(400, "Invalid path in a commit"))
    return "/".join(parts)


def _content(value: dict[str, Any]) -> bytes:
    content = value.get("content")
    if not isinstance(content, str):
        raise Refused(error(400, "A file without content in a commit"))
    if value.get("encoding", "utf-8") != "base64":
        return content.encode()
    try:
        return b64decode(content, validate=True)
    except binascii.Error:
        raise Refused(error(400, "A file in a commit is not base64")) from None


def _spoiled(desk: Desk, path: str, content: bytes) -> bytes | None:
    for key in ("lose_files", "cut_files"):
        patterns = desk.patterns(key)
        for number, pattern in enumerate(patterns):
            if fnmatchcase(path, pattern):
                del patterns[number]
                desk.calls["spoiled"] += 1
                return None if key == "lose_files" else content[: len(content) // 2]
    return content


def _delete(files: dict[str, Entry], path: str, head: Commit, *, folder: bool) -> None:
    gone = [each for each in files if each.startswith(f"{path}/")] if folder else [path]
    if not gone or any(each not in files for each in gone):
        raise Refused(no_entry(head.oid, f"A file with this name doesn't exist: {path}"))
    for each in gone:
        del files[each]


def _merged(
    before: Mapping[str, Entry], after: dict[str, Entry], other: Mapping[str, Entry]
) -> dict[str, Entry]:
    changed = {path: entry for path, entry in after.items() if before.get(path) != entry}
    gone = before.keys() - after.keys()
    return {**{path: each for path, each in other.items() if path not in gone}, **changed}

"""A bucket of the Hub: what huggingface_hub asks over HTTP, and hf_xet's own store in a folder.

hf_xet takes `local://` for the address of a store, so that its chunks and hashes are the real ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .answering_server import Asked, Reply, running_server

__all__ = ["BucketHub", "running_bucket_hub"]


@dataclass
class BucketHub:
    """The bucket's files by path: hash and size. `sources` are folders that files come from.

    `loses` are endings of paths that are not kept though the bucket says so, each once; `fails`
    are endings of paths that it says it did not take, each once.
    """

    sources: list[Path]
    store: Path
    url: str = ""
    private: bool = True
    made: bool = False
    files: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    loses: list[str] = field(default_factory=list[str])
    fails: list[str] = field(default_factory=list[str])
    added: list[str] = field(default_factory=list[str])

    def answer(self, asked: Asked) -> Reply:
        """What the Hub says."""
        path = urlsplit(asked.path).path
        _, _, rest = path.partition("/buckets/")
        name, _, what = rest.partition("/tree")
        if what or "tree" in path:
            return self._tree(unquote(what.strip("/")))
        if path.endswith("-token"):
            return self._token()
        if path.endswith("/batch"):
            return self._batch(asked)
        if asked.method == "HEAD":
            return self._head(unquote(path.partition("/resolve/")[2]))
        if asked.method == "POST":
            again, self.made = self.made, True
            return Reply(409 if again else 200, {"url": f"{self.url}/buckets/{name}"})
        told = {"id": name, "private": self.private, "createdAt": "2026-11-30T00:00:00.000Z"}
        return Reply(body={**told, "size": 0, "totalFiles": len(self.files)})

    def _tree(self, folder: str) -> Reply:
        return Reply(
            body=[
                {"type": "file", "path": path, "size": size, "xetHash": hash}
                for path, (hash, size) in self.files.items()
                if path.startswith(f"{folder}/")
            ]
        )

    def _token(self) -> Reply:
        expires = int(time.time()) + 3600
        address = f"local://{self.store}"
        return Reply(
            body={"casUrl": address, "accessToken": "token", "exp": expires},
            headers={
                "X-Xet-Cas-Url": address,
                "X-Xet-Access-Token": "token",
                "X-Xet-Token-Expiration": str(expires),
            },
        )

    def _batch(self, asked: Asked) -> Reply:
        failed: list[dict[str, str]] = []
        for line in filter(None, asked.body.split(b"\n")):
            told = json.loads(line)
            path = told["path"]
            if told["type"] == "deleteFile":
                del self.files[path]
            elif _taken(self.fails, path):
                failed.append({"path": path, "error": "try again"})
            else:
                self.added.append(path)
                if not _taken(self.loses, path):
                    self.files[path] = (told["xetHash"], self._size(told["xetHash"]))
        return Reply(body={"success": not failed, "failed": failed})

    def _size(self, hash: str) -> int:
        xet: Any = import_module("hf_xet")
        paths = [path for source in self.sources for path in source.rglob("*") if path.is_file()]
        return next(
            each.file_size for each in xet.hash_files([str(p) for p in paths]) if each.hash == hash
        )

    def _head(self, path: str) -> Reply:
        hash, size = self.files[path]
        return Reply(
            body=b"",
            headers={
                "X-Xet-Hash": hash,
                "X-Xet-Refresh-Route": f"{self.url}/api/buckets/x/xet-read-token",
                "X-Linked-Size": str(size),
            },
        )


def _taken(endings: list[str], path: str) -> bool:
    found = next((each for each in endings if path.endswith(each)), None)
    if found is None:
        return False
    endings.remove(found)
    return True


@contextmanager
def running_bucket_hub(source: Path, store: Path) -> Generator[BucketHub]:
    """The Hub on loopback, and its store in a folder."""
    bucket = BucketHub([source], store)
    with running_server(bucket.answer) as server:
        bucket.url = server.url
        yield bucket

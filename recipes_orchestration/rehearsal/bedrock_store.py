"""The S3 that the rehearsed Bedrock reads from and writes to: moto's server, one a process."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.request import Request, urlopen

from ..errors import MissingExtra
from .bodies import IN_MEMORY

__all__ = ["BUCKET", "KEY", "REGION", "SECRET", "Store"]

BUCKET = "rehearsal"
REGION = "us-east-1"
KEY = "rehearsalkey"
SECRET = "rehearsalsecret"  # noqa: S105  opens nothing

_lock = threading.Lock()
_servers: list[Any] = []
_stores: list[Store] = []


class Store:
    """An S3 with a bucket named `rehearsal`. What it holds is gone when the last one is closed.

    Moto keeps its buckets for the whole process and takes half a second to stop, so all
    rehearsals of a process share one server.
    """

    def __init__(self) -> None:
        with _lock:
            self.url = _server_url()
            _stores.append(self)
        self.clear()

    def clear(self) -> None:
        """Empties it, unless another rehearsal of this process uses it too."""
        with _lock:
            if len(_stores) == 1:
                _post(f"{self.url}/moto-api/reset")
        if not any(each["Name"] == BUCKET for each in self.s3.list_buckets()["Buckets"]):
            self.s3.create_bucket(Bucket=BUCKET)

    @cached_property
    def s3(self) -> Any:
        """A client for it."""
        from boto3.session import Session

        # The default session would keep an environment without region for everybody else.
        return Session().client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )

    def close(self) -> None:
        """Closes the client; moto's server stays for the next rehearsal."""
        with _lock:
            if self in _stores:
                _stores.remove(self)
                self.s3.close()

    def found(self, uri: str) -> list[tuple[str, bytes]]:
        """The objects of a URI, a file or a prefix, by name and content."""
        bucket, key = _split(uri)
        listed = self.s3.list_objects_v2(Bucket=bucket, Prefix=key).get("Contents", [])
        keys = [each["Key"] for each in listed if each["Key"].endswith(".jsonl")]
        return [
            (found.rpartition("/")[2], self.s3.get_object(Bucket=bucket, Key=found)["Body"].read())
            for found in keys
            if found == key or key.endswith("/") or not key
        ]

    def write(self, uri: str, lines: Iterator[bytes]) -> None:
        """Writes an object, through a file when it is large."""
        bucket, key = _split(uri)
        with SpooledTemporaryFile[bytes](max_size=IN_MEMORY) as file:
            for line in lines:
                file.write(line)
            file.seek(0)
            self.s3.upload_fileobj(file, bucket, key)

    def write_json(self, uri: str, value: Any) -> None:
        """Writes an object of JSON."""
        self.write(uri, iter([json.dumps(value).encode()]))


def _split(uri: str) -> tuple[str, str]:
    """The bucket and key of `s3://bucket/key`."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def _server_url() -> str:
    if not _servers:
        try:
            from moto.server import ThreadedMotoServer
        except ImportError as error:
            raise MissingExtra(
                "To rehearse Bedrock, moto's S3 is needed, which is not installed. Install it: "
                "pip install 'recipes-orchestration[dev]'"
            ) from error
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request, otherwise
        server.start()
        _servers.append(server)
    host, port = _servers[0].get_host_and_port()
    return f"http://{host}:{port}"


def _post(url: str) -> None:
    with urlopen(Request(url, method="POST"), timeout=30):  # noqa: S310  always http
        pass

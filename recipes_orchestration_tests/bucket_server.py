"""S3 by moto's server, over real HTTP."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

__all__ = ["BUCKET", "running_bucket"]

BUCKET = "archive"


@contextmanager
def running_bucket() -> Generator[tuple[str, Any]]:
    """The server's address, and a client of it; its bucket is there and empty."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="k",
        aws_secret_access_key="s",
    )
    try:
        client.create_bucket(Bucket=BUCKET)
        yield url, client
    finally:
        client.close()
        server.stop()

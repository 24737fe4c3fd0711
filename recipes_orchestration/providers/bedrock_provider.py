"""Amazon Bedrock: Converse, embeddings, and batch inference by way of S3, through boto3."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from ..steps.ask import Answer, Ask, EmbedAsk
from .bedrock_answers import read_conversed, read_invoked, read_result, result_of
from .bedrock_calls import CONVERSE, batch_line, make_call
from .provider import BatchLimits, BatchStatus, Call, Group, Line

if TYPE_CHECKING:
    from .bedrock_aws import Aws
    from .bedrock_batches import BedrockBatches

__all__ = ["BedrockProvider"]

# 50,000 records a job is the usual quota of an account, 100 the usual minimum; a file may have
# 1 GB by default. Smaller files lose less when a job expires.
# https://docs.aws.amazon.com/general/latest/gr/bedrock.html (November 2026)
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000


class BedrockProvider:
    """Bedrock in one account and region, with credentials as boto3 finds them.

    `bucket`, `prefix` and `role_arn` are needed for batches alone. `timeout` is in seconds, for one
    request. boto3 is loaded when the first request is made.
    """

    name = "bedrock"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        runtime_url: str | None = None,
        s3_url: str | None = None,
        region: str | None = None,
        bucket: str | None = None,
        prefix: str = "recipes",
        role_arn: str | None = None,
        min_requests: int = 100,
        timeout_hours: float = 24.0,
        timeout: float = 600.0,
    ) -> None:
        self.limits = BatchLimits(MAX_REQUESTS, MAX_BYTES, min_requests)
        self._urls = {"base_url": base_url, "runtime_url": runtime_url, "s3_url": s3_url}
        self._region = region
        self._timeout = timeout
        self._place = (bucket, prefix, role_arn, timeout_hours)
        self._lock = threading.Lock()
        self._aws: Aws | None = None

    def call(self, ask: Ask | EmbedAsk, model: str) -> Call:
        """The call that asks it; see `Provider`."""
        return make_call(ask, model)

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:
        """What a response says; see `Provider`."""
        return read_conversed(response) if group.route == CONVERSE else read_invoked(response)

    def line(self, id: str, call: Call) -> bytes:
        """One record of a batch's file; see `Provider`."""
        return batch_line(id, call)

    def read_line(self, line: bytes) -> Line | None:
        """What a result record says; see `Provider`."""
        return read_result(line)

    def result_line(self, id: str, status: int, response: bytes) -> bytes:
        """A plain call's response as a result record; see `Provider`."""
        return result_of(id, status, response)

    def submit(self, name: str, group: Group, file: Path, ids: Collection[str]) -> str:  # noqa: ARG002
        """Puts the file into S3 and creates a job; see `Provider`."""
        return self._batches().create(name, group, file)

    def find(
        self,
        name: str,
        ids: Collection[str],  # noqa: ARG002
        since: datetime,
        known: Collection[str],
    ) -> str | None:
        """The job of that name; see `Provider`."""
        return self._batches().find(name, since, known)

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How the jobs stand; see `Provider`."""
        return self._batches().statuses(batch_ids)

    def results(self, batch_id: str) -> Iterator[bytes]:
        """The result records, without the requests that Bedrock repeats in them."""
        return self._batches().results(batch_id)

    def cancel(self, batch_id: str) -> None:
        """Asks to stop a job; see `Provider`."""
        self._batches().cancel(batch_id)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        return self._opened().call(call)

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            aws, self._aws = self._aws, None
        if aws is not None:
            aws.close()

    def _batches(self) -> BedrockBatches:
        aws = self._opened()
        from .bedrock_batches import BedrockBatches, BedrockPlace

        return BedrockBatches(aws, BedrockPlace(*self._place))

    def _opened(self) -> Aws:
        with self._lock:
            if self._aws is None:
                try:
                    from .bedrock_aws import Aws, AwsOptions
                except ImportError:
                    raise MissingExtra(
                        "The place bedrock needs: pip install 'recipes-orchestration[bedrock]'"
                    ) from None
                self._aws = Aws(
                    AwsOptions(region=self._region, timeout=self._timeout, **self._urls)
                )
            return self._aws

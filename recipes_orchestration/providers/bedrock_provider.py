"""Amazon Bedrock: Converse, embeddings, and batch inference by way of S3, through boto3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from ..steps.ask import Answer
from .bedrock_answers import read_conversed, read_invoked, read_result, result_of
from .bedrock_calls import CONVERSE, batch_line, make_call
from .connected_provider import NamingProvider, Notation
from .provider import BatchLimits, Call, Group

if TYPE_CHECKING:
    from .bedrock_aws import Aws
    from .bedrock_batches import BedrockBatches

__all__ = ["BedrockProvider"]

# 50,000 records a job is the usual quota of an account, 100 the usual minimum; a file may have
# 1 GB by default. Smaller files lose less when a job expires.
# https://docs.aws.amazon.com/general/latest/gr/bedrock.html (November 2026)
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000


class BedrockProvider(NamingProvider["Aws"]):
    """Bedrock in one account and region, with credentials as boto3 finds them.

    `bucket`, `prefix` and `role_arn` are needed for batches alone. `timeout` is in seconds, for one
    request. boto3 is loaded when the first request is made.
    """

    name = "bedrock"
    notation = Notation(make_call, batch_line, read_result, result_of)

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
        super().__init__()
        self.limits = BatchLimits(MAX_REQUESTS, MAX_BYTES, min_requests)
        self._urls = {"base_url": base_url, "runtime_url": runtime_url, "s3_url": s3_url}
        self._region = region
        self._timeout = timeout
        self._place = (bucket, prefix, role_arn, timeout_hours)

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:
        """What a response says; see `Provider`."""
        return read_conversed(response) if group.route == CONVERSE else read_invoked(response)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        return self._connected().call(call)

    def _batches(self) -> BedrockBatches:
        aws = self._connected()
        from .bedrock_batches import BedrockBatches, BedrockPlace

        return BedrockBatches(aws, BedrockPlace(*self._place))

    def _open(self) -> Aws:
        try:
            from .bedrock_aws import Aws, AwsOptions
        except ImportError:
            raise MissingExtra(
                "The place bedrock needs: pip install 'recipes-orchestration[bedrock]'"
            ) from None
        return Aws(AwsOptions(region=self._region, timeout=self._timeout, **self._urls))

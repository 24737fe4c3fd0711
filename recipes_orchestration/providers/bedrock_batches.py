"""Bedrock's batch inference: files in S3, jobs and their states, through boto3.

https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference.html (November 2026).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from boto3.s3.transfer import TransferConfig

from ..errors import NotFound, ProviderError, Refused
from ..still_ours import still_ours
from .batch_statuses import listed_statuses
from .bedrock_answers import without_input
from .bedrock_aws import Aws, SaidNo
from .bedrock_calls import CONVERSE
from .bedrock_errors import clean, words_of_account
from .byte_lines import split_lines
from .json_values import as_dict, as_text, count
from .provider import BatchState, BatchStatus, Group

__all__ = ["BedrockBatches", "BedrockPlace", "job_name"]

PAGE = 1000
MAX_PAGES = 10_000
CHUNK = 1 << 20
# How far the clocks of this machine and of AWS may be apart; the name alone decides.
SKEW = timedelta(hours=6)
JOB = re.compile(r"(?:arn:aws[\w-]*:bedrock:[a-z0-9-]{1,20}:\d{12}:model-invocation-job/)?\w{12}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]{0,61}[A-Za-z0-9]")
ADDRESS = re.compile(r"s3://([^/]+)/(.*)")
# PartiallyCompleted: "not all of your records could be processed in time"; Expired: it "didn't
# begin before the set timeout duration", so that there is no output.
OUT_OF_TIME = frozenset({"PartiallyCompleted", "Expired"})
ENDED = OUT_OF_TIME | {"Completed", "Stopped"}


def job_name(name: str) -> str:
    """The name as a job may have it: 63 letters, digits, dots, pluses and hyphens.

    A name that cannot stand as it is ends in a hash of the whole.
    """
    if NAME.fullmatch(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:30].strip("-")
    return "-".join(filter(None, [kept, hashlib.sha256(name.encode()).hexdigest()[:32]]))


@dataclass(frozen=True)
class BedrockPlace:
    """Where in S3 files go, the role that Bedrock takes to reach them, and how long a job may run.

    Bedrock takes 24 to 168 hours.
    """

    bucket: str | None
    prefix: str
    role_arn: str | None
    timeout_hours: float

    @property
    def hours(self) -> int:
        """The timeout as Bedrock takes it."""
        return min(168, max(24, math.ceil(self.timeout_hours)))

    def key(self, *parts: str) -> str:
        """The key of an object."""
        return "/".join(filter(None, [self.prefix.strip("/"), *parts]))


class BedrockBatches:
    """The jobs of one account in one region."""

    def __init__(self, aws: Aws, place: BedrockPlace) -> None:
        self._aws = aws
        self._place = place

    def create(self, name: str, group: Group, file: Path) -> str:
        """Puts the file into S3 and creates a job of that name; gives its ARN.

        The token comes of the name, so that the same job asked for again is the same job.
        """
        place = self._place
        if not place.bucket or not place.role_arn:
            raise Refused(
                "Bedrock's batches need a bucket and a role. Set `bucket` and `role_arn` of the "
                "place bedrock in project.yaml.",
                account=True,
            )
        job = job_name(name)
        source = place.key(job, "input.jsonl")
        with self._aws.told("take the file of the batch"):
            config = TransferConfig(max_concurrency=4)
            self._aws.s3.upload_file(str(file), place.bucket, source, Config=config)
        output = f"s3://{place.bucket}/{place.key(job, 'output')}/"
        still_ours()
        with self._aws.told("create the batch", creates=True):
            made = self._aws.creating.create_model_invocation_job(
                jobName=job,
                clientRequestToken=hashlib.sha256(job.encode()).hexdigest(),
                roleArn=place.role_arn,
                modelId=group.model,
                modelInvocationType="Converse" if group.route == CONVERSE else "InvokeModel",
                timeoutDurationInHours=place.hours,
                inputDataConfig={
                    "s3InputDataConfig": {
                        "s3InputFormat": "JSONL",
                        "s3Uri": f"s3://{place.bucket}/{source}",
                    }
                },
                outputDataConfig={"s3OutputDataConfig": {"s3Uri": output}},
            )
        id = as_text(made.get("jobArn"))
        if not id:
            raise ProviderError(
                "Bedrock created a job and did not say its ARN; it is looked for by its name."
            )
        return id

    def find(self, name: str, since: datetime, known: Collection[str]) -> str | None:
        """The oldest job of that name which was submitted from `since` on."""
        job = job_name(name)
        found: dict[str, datetime] = {}
        for page in self._pages(nameContains=job, submitTimeAfter=since - SKEW):
            for summary in page:
                id = as_text(summary.get("jobArn"))
                if summary.get("jobName") == job and id and id not in known:
                    time = summary.get("submitTime")
                    found[id] = time if isinstance(time, datetime) else _LATEST
        return min(found, key=lambda id: found[id], default=None)

    def statuses(self, ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How each stands: by the list while that is cheaper than asking one by one."""
        return listed_statuses(
            ids,
            self._pages(),
            key="jobArn",
            status=_status,
            one=self._one,
            patience=lambda left: left - 1,
        )

    def results(self, id: str) -> Iterator[bytes]:
        """The records of every output file, streamed, without the requests repeated in them."""
        try:
            job = self._get(id)
        except NotFound as gone:
            raise ProviderError(f"{gone} Look for its results in S3.") from None
        output = as_dict(as_dict(job.get("outputDataConfig")).get("s3OutputDataConfig"))
        address = ADDRESS.fullmatch(as_text(output.get("s3Uri")))
        if address is None:
            raise ProviderError(f"Bedrock does not say where the results of {id} are.")
        # Each job writes into a folder of its own there, named by the end of its ARN.
        bucket, prefix = address[1], f"{address[2].rstrip('/')}/{id.rpartition('/')[2]}/"
        for key in self._keys(bucket, prefix):
            for line in split_lines(self._chunks(bucket, key)):
                yield without_input(line)

    def cancel(self, id: str) -> None:
        """Asks to stop it; one that has ended or is forgotten stays as it is."""
        try:
            with self._aws.told(f"stop {id}"):
                self._aws.jobs.stop_model_invocation_job(jobIdentifier=id)
        except ProviderError:
            if self._one(id).state is BatchState.RUNNING:
                raise

    def _one(self, id: str) -> BatchStatus:
        if not JOB.fullmatch(id):
            return BatchStatus(BatchState.FORGOTTEN, f"{id[:100]!r} is no job of Bedrock")
        try:
            return _status(self._get(id))
        except NotFound as gone:
            return BatchStatus(BatchState.FORGOTTEN, str(gone))

    def _get(self, id: str) -> Mapping[str, Any]:
        """The job. Raises `NotFound` when Bedrock says that it has none of that ARN."""
        try:
            with self._aws.told(f"show {id}"):
                return self._aws.jobs.get_model_invocation_job(jobIdentifier=id)
        except SaidNo as no:
            if no.code != "ResourceNotFoundException":
                raise
            raise NotFound(f"Bedrock does not know the job {id} any more.") from None

    def _pages(self, **query: Any) -> Iterator[list[Mapping[str, Any]]]:
        query |= {"maxResults": PAGE, "sortBy": "CreationTime", "sortOrder": "Descending"}
        for _ in range(MAX_PAGES):
            with self._aws.told("list the batches"):
                page = self._aws.jobs.list_model_invocation_jobs(**query)
            yield [as_dict(summary) for summary in page.get("invocationJobSummaries", [])]
            token = as_text(page.get("nextToken"))
            if not token or token == query.get("nextToken"):
                return
            query["nextToken"] = token

    def _keys(self, bucket: str, prefix: str) -> Iterator[str]:
        doing = f"list s3://{bucket}/{prefix}"
        query: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        while True:
            with self._aws.told(doing):
                page = self._aws.s3.list_objects_v2(**query)
            for entry in page.get("Contents", []):
                if as_text(entry.get("Key")).endswith(".jsonl.out"):
                    yield entry["Key"]
            token = page.get("NextContinuationToken")
            if not page.get("IsTruncated") or not token:
                return
            query["ContinuationToken"] = token

    def _chunks(self, bucket: str, key: str) -> Iterator[bytes]:
        doing = f"give s3://{bucket}/{key}"
        try:
            with self._aws.told(doing):
                body = self._aws.s3.get_object(Bucket=bucket, Key=key)["Body"]
        except SaidNo as no:
            if no.code == "NoSuchKey":
                return
            raise
        try:
            while True:
                with self._aws.told(doing):
                    chunk = body.read(CHUNK)
                if not chunk:
                    return
                yield chunk
        finally:
            body.close()


_LATEST = datetime.max.replace(tzinfo=UTC)


def _status(job: Mapping[str, Any]) -> BatchStatus:
    """The state of a job, from the list or by itself."""
    told, message = as_text(job.get("status")), clean(job.get("message"))
    requests, answered = job.get("totalRecordCount"), job.get("processedRecordCount")
    words = [clean(told) or "no state"]
    if requests is not None and answered is not None:
        words.append(f"{count(answered)} of {count(requests)} answered")
    state = BatchState.ENDED if told in ENDED else BatchState.RUNNING
    if told == "Failed":
        state = BatchState.ENDED if count(job.get("successRecordCount")) else BatchState.FAILED
    return BatchStatus(
        state,
        ": ".join(filter(None, [", ".join(words), message])),
        account=told == "Failed" and words_of_account(message),
        answered=None if answered is None else count(answered),
        requests=None if requests is None else count(requests),
        expired=told in OUT_OF_TIME,
    )

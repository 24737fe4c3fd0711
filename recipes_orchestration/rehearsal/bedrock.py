"""Bedrock's batch jobs and plain calls, as boto3 1.43 asks for them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .batch import Batch, End, Phase, mended, result_lines
from .bedrock_answers import ask, asked_in, foreign_line, record, response
from .bedrock_errors import BAD_TOKEN, error, time, unauthorized
from .bedrock_store import REGION, Store
from .bodies import Body, Lines, TooLarge, file_lines, receive
from .fates import Fate
from .side import Side, paged, token

__all__ = ["BedrockSide"]

MAX_PLAIN_BYTES = 25 * 2**20
_ARN = f"arn:aws:bedrock:{REGION}:123456789012:model-invocation-job/"
_MODEL = "The provided model identifier is invalid."


class BedrockSide(Side):
    """Bedrock: the control plane of batch jobs and the runtime, on one address."""

    name = "bedrock"

    def __init__(self) -> None:
        self.store = Store()
        super().__init__()
        self._writing = threading.Lock()

    def reset(self) -> None:
        """Forgets everything, and empties S3."""
        super().reset()
        self.store.clear()
        self.tokens: dict[str, Batch] = {}

    def close(self) -> None:
        """Lets go of S3."""
        self.store.close()

    def routes(self) -> list[Route]:
        """Its endpoints."""
        job = "/model-invocation-job/{id:path}"
        return [
            Route("/model/{model:path}/converse", self.converse, methods=["POST"]),
            Route("/model/{model:path}/invoke", self.invoke, methods=["POST"]),
            Route("/model-invocation-job", self.create, methods=["POST"]),
            Route("/model-invocation-jobs", self.list_batches, methods=["GET"]),
            Route(job + "/stop", self.cancel, methods=["POST"]),
            Route(job, self.get, methods=["GET"]),
        ]

    async def converse(self, request: Request) -> Response:
        """POST /model/{id}/converse."""
        return await self._plain(request, converse=True)

    async def invoke(self, request: Request) -> Response:
        """POST /model/{id}/invoke."""
        return await self._plain(request, converse=False)

    async def _plain(self, request: Request, *, converse: bool) -> Response:
        try:
            body = await receive(request, MAX_PLAIN_BYTES)
        except TooLarge:
            return error(413)
        if refused := unauthorized(request):
            return refused
        if (status := self.taken("plain_status")) != 200:
            self.calls["refused"] += 1
            return error(status)
        model = request.path_params["model"]
        if "unknown" in model:
            return error(400, _MODEL)
        script = self.script
        asked = asked_in(mended(body.bytes()), model)
        fate = self.fate(asked)
        await self.wait()
        if fate is Fate.ACCOUNT:
            return error(403, script.account_error)
        if fate is Fate.ERRORED:
            return error(500, script.error_message)
        answer = response(asked, fate, script, converse=converse)
        return JSONResponse(answer, headers={"x-amzn-requestid": token()})

    async def create(self, request: Request) -> Response:
        """POST /model-invocation-job."""
        self.calls["creates"] += 1
        given: Any = mended(await request.body())
        if refused := unauthorized(request) or self._refused(given):
            return refused
        twin = self.tokens.get(str(given.get("clientRequestToken")))
        if twin is not None:
            if twin.details["given"] != given:
                return error(409, "The client request token was used with other parameters.")
            return JSONResponse({"jobArn": twin.id})
        script = self.coming_script()
        try:
            source = given["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
            files = await run_in_threadpool(self.store.found, source)
            target = given["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"]
        except (KeyError, TypeError, self.store.s3.exceptions.ClientError) as fault:
            return error(400, f"The input or output in S3 cannot be used: {fault}")
        lines, parts = _records(files)
        batch = Batch(_ARN + token(12), given["jobName"], lines, script, ask, given["modelId"])
        converse = given.get("modelInvocationType") == "Converse"
        batch.details.update(given=given, converse=converse, parts=parts, target=target)
        batch.doomed = lines.ids == [] or len(lines) < script.min_records
        self.add(batch)
        if "clientRequestToken" in given:
            self.tokens[given["clientRequestToken"]] = batch
        return await self.reply(request, JSONResponse({"jobArn": batch.id}), script)

    def _refused(self, given: Any) -> Response | None:
        if (status := self.taken("create_status")) != 200:
            self.calls["refused"] += 1
            return error(status)
        wanted = ("jobName", "modelId", "roleArn", "inputDataConfig", "outputDataConfig")
        if missing := [key for key in wanted if key not in given]:
            return error(400, f"{missing[0]} is required.")
        if "unknown" in given["modelId"]:
            return error(400, _MODEL)
        quota = "The number of batch inference jobs or records exceeds the quota of the account."
        answers = {
            "credit": (403, "Your account has a payment problem.", "AccessDeniedException"),
            "key": (403, BAD_TOKEN, "UnrecognizedClientException"),
            "model": (400, _MODEL, ""),
            "rate": (429, "", ""),
            "enqueued_tokens": (400, quota, "ServiceQuotaExceededException"),
        }
        refusal = self.refusal()
        return error(*answers[refusal]) if refusal else None

    async def list_batches(self, request: Request) -> Response:
        """GET /model-invocation-jobs."""
        self.calls["lists"] += 1
        if refused := self.unreadable(request):
            return refused
        query = request.query_params
        jobs = [each for each in self.newest() if query.get("nameContains", "") in each.name]
        if after := query.get("submitTimeAfter"):
            jobs = [each for each in jobs if each.created > _moment(after)]
        if before := query.get("submitTimeBefore"):
            jobs = [each for each in jobs if each.created < _moment(before)]
        if query.get("sortOrder") == "Ascending":
            jobs.reverse()
        if status := query.get("statusEquals"):
            jobs = [each for each in jobs if _status(each, each.look(read=False)) == status]
        shown = paged(jobs, query.get("nextToken"), int(query.get("maxResults", 100)))
        summaries = [await run_in_threadpool(self._object, each) for each in shown]
        answer: dict[str, Any] = {"invocationJobSummaries": summaries}
        if shown and shown[-1].id != jobs[-1].id:
            answer["nextToken"] = shown[-1].id
        return JSONResponse(answer)

    async def looked_at(self, request: Request, batch: Batch) -> Response:  # noqa: ARG002
        """The batch; see `Side`."""
        return JSONResponse(await run_in_threadpool(self._object, batch))

    def unauthorized(self, request: Request) -> Response | None:
        """Its refusal; see `Side`."""
        return unauthorized(request)

    def error(self, status: int) -> Response:
        """An error in its words; see `Side`."""
        return error(status)

    def ended_already(self, batch: Batch) -> Response:  # noqa: ARG002
        """Its refusal; see `Side`."""
        return error(409)

    def asked_for(self, request: Request) -> Batch | None:
        """The batch that a request names; see `Side`."""
        return self.found(_ARN + request.path_params["id"].rpartition("/")[2])

    def _object(self, batch: Batch) -> dict[str, Any]:
        phase = batch.look()
        if batch.end is not None:
            with self._writing:
                self._write(batch)
        given, hours = batch.details["given"], 24
        hours = int(given.get("timeoutDurationInHours") or hours)
        good = batch.answered
        bad = batch.count(Fate.ERRORED, Fate.ACCOUNT, Fate.STATUS_400)
        shown = {
            "jobArn": batch.id,
            "jobName": batch.name,
            "modelId": given["modelId"],
            "clientRequestToken": given.get("clientRequestToken"),
            "roleArn": given["roleArn"],
            "status": _status(batch, phase),
            "message": _message(batch),
            "submitTime": time(batch.created),
            "lastModifiedTime": time(batch.ended or batch.created),
            "endTime": time(batch.ended),
            "inputDataConfig": given["inputDataConfig"],
            "outputDataConfig": given["outputDataConfig"],
            "timeoutDurationInHours": hours,
            "jobExpirationTime": time(batch.created + timedelta(hours=hours)),
            "modelInvocationType": "Converse" if batch.details["converse"] else "InvokeModel",
            "totalRecordCount": batch.size,
            "processedRecordCount": good + bad,
            "successRecordCount": good,
            "errorRecordCount": bad,
        }
        return {key: value for key, value in shown.items() if value is not None}

    def _write(self, batch: Batch) -> None:
        """Writes the output once, when there is any."""
        worked_on = batch.tally.total() - batch.count(Fate.EXPIRED, Fate.CANCELLED)
        if batch.details.get("written") or not worked_on:
            return
        batch.details["written"] = True
        folder = f"{batch.details['target'].rstrip('/')}/{batch.id.rpartition('/')[2]}"
        parts = batch.details["parts"]
        for name, first, last in parts:
            lines = result_lines(
                batch,
                lambda number, first=first, last=last: (
                    record(batch, number) if first <= number < last else None
                ),
                (lambda id: foreign_line(batch, id)) if first == 0 else None,
            )
            self.store.write(f"{folder}/{name}.out", lines)
        good = batch.answered
        bad = batch.count(Fate.ERRORED, Fate.ACCOUNT, Fate.STATUS_400)
        self.store.write_json(
            f"{folder}/manifest.json.out",
            {
                "totalRecordCount": batch.size,
                "processedRecordCount": good + bad,
                "successRecordCount": good,
                "errorRecordCount": bad,
                "inputTokenCount": 0,
                "outputTokenCount": 0,
            },
        )


def _records(files: list[tuple[str, bytes]]) -> tuple[Lines, list[tuple[str, int, int]]]:
    """The records of all input files, and which of them are in which file."""
    joined = Body(b"".join(content + b"\n" for _, content in files))
    lines, parts, at = Lines(joined), list[tuple[str, int, int]](), 0
    for name, content in files:
        first = len(lines)
        for start, stop in file_lines(joined, at, at + len(content)):
            id = mended(joined.bytes(start, stop)).get("recordId", f"{len(lines):011d}")
            lines.add(str(id), start, stop)
        at += len(content) + 1
        parts.append((name, first, len(lines)))
    return lines, parts


def _status(batch: Batch, phase: Phase) -> str:
    if batch.end is None:
        if phase is Phase.CANCELLING:
            return "Stopping"
        waits = batch.script.expire_after == 0
        return "Scheduled" if waits else "Validating" if batch.reads == 1 else "InProgress"
    if batch.end is End.EXPIRED:
        return "PartiallyCompleted" if batch.answered else "Expired"
    return {End.COMPLETED: "Completed", End.FAILED: "Failed"}.get(batch.end, "Stopped")


def _message(batch: Batch) -> str | None:
    if batch.end is not End.FAILED:
        return None
    if batch.script.fail_validation:
        return batch.script.fail_message or "The job failed. Check the input and try again."
    return (
        f"Batch job {batch.id} contains less records ({batch.size}) than the required minimum "
        f"of: {batch.script.min_records}"
    )


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)

"""The hub's Jobs over HTTP, as huggingface_hub 2.4 asks for them in `hf_api.py`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .hub_errors import error, no_job
from .hub_repos import ReposDesk
from .hub_runs import Job, JobRuns, seconds_between
from .hub_specs import FLAVORS, JobSpec, Labels, hardware
from .side import dropped

__all__ = ["JobsDesk"]

_KEEP_ALIVE = 30.0
_LABELS = TypeAdapter[dict[str, str]](Labels)


class JobsDesk(ReposDesk):
    """Jobs, beside the repositories that they read and write."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.runs = JobRuns(self._mount)
        super().__init__()

    def routes(self) -> list[Route]:
        """Its endpoints."""
        jobs, job = "/api/jobs/{namespace}", "/api/jobs/{namespace}/{id}"
        return [
            Route("/api/jobs/hardware", self.hardware),
            Route(jobs, self.create, methods=["POST"]),
            Route(jobs, self.list_jobs),
            Route(job, self.get),
            Route(job + "/cancel", self.cancel, methods=["POST"]),
            Route(job + "/labels", self.label, methods=["PUT"]),
            Route(job + "/logs", self.logs),
            *super().routes(),
        ]

    def _mount(self, kind: str, source: str, revision: str, path: str, folder: Path) -> bool:
        repo = self.store.repos.get((kind, source))
        commit = repo and repo.at(revision)
        return commit is not None and self.store.copy(commit, path, folder)

    def knows(self, token: str) -> bool:
        """A job's own token is good as long as the job runs."""
        return super().knows(token) or any(
            each.token == token and each.ended is None for each in self.jobs.values()
        )

    def interrupted(self, request: Request) -> Response | None:
        """A job that is killed at this commit: nothing is kept and nobody hears an answer."""
        given = request.headers.get("authorization", "").removeprefix("Bearer").strip()
        job = next((each for each in self.jobs.values() if each.token == given), None)
        if job is None:
            return None
        job.commits += 1
        if job.commits != job.script.kill_at_commit:
            return None
        self.runs.end(job, "ERROR", job.script.kill_message, hard=True)
        return dropped(request)

    async def hardware(self, request: Request) -> Response:
        """GET /api/jobs/hardware."""
        return self.unauthorized(request) or JSONResponse(hardware())

    async def create(self, request: Request) -> Response:
        """POST /api/jobs/{namespace}."""
        self.calls["creates"] += 1
        given = await self.json(request)
        refused = self._refused(request) or self.refused("create_status")
        if refused is not None:
            return refused
        if isinstance(given, Response):
            return given
        try:
            spec = JobSpec.model_validate_json(to_json(given), by_alias=True)
        except ValidationError as wrong:
            first = wrong.errors()[0]
            return error(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        if words := _impossible(spec):
            return error(400, words)
        with self.lock:
            script = self.coming_script()
            if script.refuse_create:
                self.use_script()
                self.calls["refused"] += 1
                return error({"credit": 402, "key": 401, "rate": 429}[script.refuse_create])
            job = Job(request.path_params["namespace"], spec, self.use_script())
            job.labels = dict(spec.labels)
            self.jobs[job.id] = job
            self.runs.start(job)
        if script.hang_reply_seconds:
            await asyncio.sleep(script.hang_reply_seconds)
        return self.replied(request, JSONResponse(self._shown(job)), "lose_reply")

    def _refused(self, request: Request) -> Response | None:
        return self.unauthorized(request) or self.forbidden(request.path_params["namespace"])

    async def list_jobs(self, request: Request) -> Response:
        """GET /api/jobs/{namespace}: the newest first; all labels must be there, any stage."""
        self.calls["lists"] += 1
        namespace, query = request.path_params["namespace"], request.query_params
        if refused := self._refused(request) or self.refused("status_status"):
            return refused
        labels = [each.partition("=") for each in query.getlist("label")]
        stages = query.getlist("stage")
        found = [
            each
            for each in reversed(list(self.jobs.values()))
            if each.namespace == namespace
            and not self.forgets(each)
            and (not stages or each.stage in stages)
            and all(each.labels.get(key) == value for key, _, value in labels)
        ]
        # The cursor is a job's id, because new jobs come at the beginning.
        ids = [each.id for each in found]
        start = ids.index(query["cursor"]) if query.get("cursor") in ids else 0
        size = self.script.jobs_page
        headers: dict[str, str] = {}
        if len(found) > start + size:
            path, asked = f"/api/jobs/{namespace}", query.multi_items()
            headers = self.next_page(path, asked, found[start + size].id)
        shown = [self._shown(each) for each in found[start : start + size]]
        return JSONResponse(shown, headers=headers)

    def forgets(self, job: Job) -> bool:
        """Whether the script says that the job is not found."""
        return job.id in self.script.forget or "*" in self.script.forget

    def _job(self, request: Request) -> Job | Response:
        path = request.path_params
        if refused := self._refused(request):
            return refused
        job = self.jobs.get(path["id"])
        gone = job is None or job.namespace != path["namespace"] or self.forgets(job)
        return no_job() if job is None or gone else job

    async def get(self, request: Request) -> Response:
        """GET /api/jobs/{namespace}/{id}."""
        self.calls["gets"] += 1
        if refused := self.refused("status_status"):
            return refused
        found = self._job(request)
        return found if isinstance(found, Response) else JSONResponse(self._shown(found))

    async def cancel(self, request: Request) -> Response:
        """POST /api/jobs/{namespace}/{id}/cancel; nothing happens to a job that has ended."""
        self.calls["cancels"] += 1
        found = self._job(request)
        if isinstance(found, Response):
            return found
        await run_in_threadpool(self.runs.end, found, "CANCELED")
        return JSONResponse(self._shown(found))

    async def label(self, request: Request) -> Response:
        """PUT /api/jobs/{namespace}/{id}/labels: others in place of those that there are."""
        given = await self.json(request)
        found = self._job(request)
        if isinstance(found, Response):
            return found
        if isinstance(given, Response):
            return given
        try:
            found.labels = _LABELS.validate_python(given.get("labels"))
        except ValidationError:
            return error(400, "Invalid labels")
        return JSONResponse(self._shown(found))

    async def logs(self, request: Request) -> Response:
        """GET /api/jobs/{namespace}/{id}/logs: events, until the job has ended."""
        self.calls["logs"] += 1
        found = self._job(request)
        if isinstance(found, Response):
            return found
        tail = request.query_params.get("tail", "")
        start = max(0, len(found.log) - int(tail)) if tail.isdigit() else 0
        # A client that does not follow stops at what was logged a second after this.
        headers = {"Date": formatdate(usegmt=True)}
        events = _events(found, start)
        return StreamingResponse(events, headers=headers, media_type="text/event-stream")

    def _shown(self, job: Job) -> dict[str, Any]:
        spec = job.spec
        owner = {"id": "0" * 24, "name": job.namespace, "type": "user"}
        return {
            "type": "job",
            "id": job.id,
            "createdAt": _moment(job.created),
            "startedAt": _moment(job.started),
            "finishedAt": _moment(job.ended),
            "dockerImage": spec.docker_image,
            "spaceId": spec.space_id,
            "command": spec.command,
            "arguments": spec.arguments,
            "environment": spec.environment,
            "secrets": {},  # they never come back
            "flavor": spec.flavor,
            "labels": job.labels or None,
            "volumes": [each.model_dump(by_alias=True, exclude_none=True) for each in spec.volumes],
            "timeout": spec.timeout_seconds,
            "status": {"stage": job.stage, "message": job.message},
            "durations": {
                "schedulingSecs": seconds_between(job.started and job.created, job.started),
                "runningSecs": seconds_between(job.started, job.ended),
                "totalSecs": seconds_between(job.created, job.ended),
            },
            "owner": owner,
            "initiator": owner,
        }

    def labelled(self) -> Counter[str]:
        """How many jobs there were of each `key=value`."""
        return Counter(
            f"{key}={value}" for each in self.jobs.values() for key, value in each.labels.items()
        )


def _impossible(spec: JobSpec) -> str:
    if spec.flavor not in FLAVORS:
        return f"Invalid flavor: {spec.flavor}"
    if (spec.docker_image is None) == (spec.space_id is None):
        return "Either dockerImage or spaceId is required"
    bucket = next((each.source for each in spec.volumes if each.type == "bucket"), None)
    return f"Bucket {bucket} not found" if bucket is not None else ""


def _moment(at: datetime | None) -> str | None:
    return at and at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _event(at: datetime, line: str) -> bytes:
    shown = {"data": line, "timestamp": _moment(at)}
    return b"data: " + to_json(shown) + b"\n\n"


async def _events(job: Job, start: int) -> AsyncIterator[bytes]:
    if job.started is not None:
        yield _event(job.started, f"===== Job started at {job.started:%Y-%m-%d %H:%M:%S} =====")
    at, quiet = start, 0.0
    while True:
        over = job.ended is not None
        events = b"".join(_event(*each) for each in job.log[at : at + 1000])
        at = min(at + 1000, len(job.log)) if events else at
        if events:
            yield events
            quiet = 0.0
        elif over:
            return
        else:
            await asyncio.sleep(0.05)
            quiet += 0.05
            if quiet >= _KEEP_ALIVE:
                quiet = 0.0
                yield b": keep-alive\n\n"

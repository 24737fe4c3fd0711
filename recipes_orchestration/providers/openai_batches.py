"""OpenAI's Batch API over HTTP: a file of requests, a batch of it, files of answers.

https://platform.openai.com/docs/guides/batch and the API description of openai 3.57.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import ProviderError, Refused, TakenOver
from .batch_lists import BatchList
from .json_values import as_dict, as_list, as_text, count, tidy
from .openai_lines import QUEUE_WAIT, error_words, is_account, is_queue
from .provider import BatchState, BatchStatus, Call, Group
from .sdk_http import SaidNo, SdkHttp

__all__ = ["OpenAIBatches"]

LIST_PAGE = 100
# The client's address ends in the `/v1` that a batch's `endpoint` begins with.
VERSION = "/v1"
MAX_TOLD_ERRORS = 3


class OpenAIBatches:
    """The batches of one project."""

    def __init__(self, http: SdkHttp) -> None:
        self._http = http
        self.list = BatchList(http, "/batches", "after", LIST_PAGE, _created, read_status)

    def create(self, name: str, group: Group, file: Path) -> str:
        """Uploads the file and creates a batch of it under the name.

        The upload has no retries either: the SDK would send the rest of a file half read. A file
        whose batch was refused is deleted; one whose batch is in doubt stays, `find` decides.
        """
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:100]
        with file.open("rb") as lines:
            upload = self._http.create(
                "/files",
                {"Content-Type": "multipart/form-data"},
                body={"purpose": "batch"},
                files=[("file", (f"{safe}.jsonl", lines, "application/jsonl"))],
            )
        file_id = _id(upload, "file")
        asked = {
            "completion_window": "24h",
            "endpoint": group.route.partition("?")[0],
            "input_file_id": file_id,
            "metadata": {"name": name},
        }
        try:
            return _id(self._http.create("/batches", body=asked), "batch")
        except (Refused, TakenOver):
            with contextlib.suppress(ProviderError):
                self._http.delete(f"/files/{quote(file_id, safe='')}")
            raise

    def find(self, name: str, since: datetime, known: Collection[str]) -> str | None:
        """The batch of that name among those created since; the oldest when there are several."""
        found = [
            as_text(batch.get("id"))
            for batch in self.list.since(since)
            if as_dict(batch.get("metadata")).get("name") == name
        ]
        return next((id for id in reversed(found) if id and id not in known), None)

    def statuses(self, ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How each stands, from the list."""
        return self.list.statuses(ids)

    def results(self, id: str) -> Iterator[bytes]:
        """The lines of the output file and of the error file, as far as there are such files."""
        batch = self._http.get(self.list.place(id))
        for field in ("output_file_id", "error_file_id"):
            file_id = as_text(batch.get(field))
            if file_id:
                yield from self._http.lines(f"/files/{quote(file_id, safe='')}/content")

    def cancel(self, id: str) -> None:
        """Asks to end the batch; one that has ended or is gone is no error.

        It is looked at first, as the SDK tries three times when told that it has ended (409).
        """
        if self.list.one(id).state is not BatchState.RUNNING:
            return
        try:
            self._http.post(f"{self.list.place(id)}/cancel")
        except ProviderError as error:
            account = isinstance(error, SaidNo) and error.account
            if account or self.list.one(id).state is BatchState.RUNNING:
                raise

    def plain(self, call: Call) -> tuple[int, bytes]:
        """The call by itself."""
        return self._http.call(call.group.route.removeprefix(VERSION), call.body, {})


def read_status(batch: Mapping[str, Any]) -> BatchStatus:
    """How a batch stands. A state that is not known yet counts as running."""
    status = as_text(batch.get("status"))
    counts = as_dict(batch.get("request_counts"))
    total, done = count(counts.get("total")), count(counts.get("completed"))
    failed = count(counts.get("failed"))
    errors = [as_dict(each) for each in as_list(as_dict(batch.get("errors")).get("data"))]
    told = "; ".join(error_words(each) for each in errors[:MAX_TOLD_ERRORS])
    answered = bool(batch.get("output_file_id") or batch.get("error_file_id"))
    if status in ("completed", "expired", "cancelled") or (status == "failed" and answered):
        state = BatchState.ENDED
    else:
        state = BatchState.FAILED if status == "failed" else BatchState.RUNNING
    words = f"{tidy(status)}: {done} completed and {failed} failed of {total}"
    account = state is BatchState.FAILED and any(map(is_account, errors))
    return BatchStatus(
        state=state,
        words=f"{words}: {told}" if told else words,
        account=account,
        answered=done + failed,
        requests=total or None,
        expired=status == "expired",
        retry_after=QUEUE_WAIT if account and all(map(is_queue, errors)) else None,
    )


def _id(value: Mapping[str, Any], kind: str) -> str:
    id = value.get("id")
    if not isinstance(id, str) or not id:
        raise ProviderError(f"OpenAI took a {kind} without giving its id; it is looked for.")
    return id


def _created(batch: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromtimestamp(batch["created_at"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None

"""Gemini's batch mode: files, batches and their states, through the SDK.

https://ai.google.dev/gemini-api/docs/batch-api and https://ai.google.dev/api/batch-api (November
2026): a batch is a long-running operation, whose `metadata` is the batch.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from google.genai import types

from ..errors import ProviderError, Refused
from ..still_ours import still_ours
from .batch_statuses import listed_statuses
from .byte_lines import split_lines
from .gemini_calls import embeds
from .gemini_sdk import GeminiSdk, SaidNo, check_model
from .gemini_states import batch_status
from .json_values import as_dict, as_list, as_text, dump
from .provider import BatchState, BatchStatus, Group

__all__ = ["GeminiBatches"]

PAGE = 100
MAX_PAGES = 10_000
UPLOADS = 3
CHUNK = 1 << 20
# How far the clocks of this machine and of Google may be apart. The name alone decides; this only
# bounds how far the list is read.
SKEW = timedelta(hours=6)
BATCH = re.compile(r"batches/[\w-]{1,256}")


class GeminiBatches:
    """The batches of one key."""

    def __init__(self, sdk: GeminiSdk) -> None:
        self._sdk = sdk

    def create(self, name: str, group: Group, file: Path) -> str:
        """Uploads the file and creates a batch of that display name; gives its id."""
        check_model(group.model)
        source = self._upload(name, file)
        once = self._sdk.once()
        batches = self._sdk.client.batches
        still_ours()
        with self._sdk.told("create the batch", creates=True):
            if embeds(group):
                with warnings.catch_warnings():
                    # `create_embeddings` warns that it is experimental at every call.
                    warnings.simplefilter("ignore")
                    made = batches.create_embeddings(
                        model=group.model,
                        src=types.EmbeddingsBatchJobSource(file_name=source),
                        config=types.CreateEmbeddingsBatchJobConfig(
                            display_name=name, http_options=once
                        ),
                    )
            else:
                made = batches.create(
                    model=group.model,
                    src=source,
                    config=types.CreateBatchJobConfig(display_name=name, http_options=once),
                )
        if not made.name:
            raise ProviderError(
                "Gemini created a batch and did not say its id; it is looked for by its name."
            )
        return made.name

    def find(self, name: str, since: datetime, known: Collection[str]) -> str | None:
        """The oldest batch of that display name which was created from `since` on."""
        start = since - SKEW
        found: dict[str, datetime] = {}
        for page in self._pages():
            newest: datetime | None = None
            for operation in page:
                metadata = as_dict(operation.get("metadata"))
                created = _time(metadata.get("createTime"))
                newest = max(newest or created, created)
                id = as_text(operation.get("name"))
                if metadata.get("displayName") == name and id and id not in known:
                    found[id] = created
            # The order of the list is not documented: only a page that is old as a whole ends it.
            if newest is not None and newest < start:
                break
        return min(found, key=lambda id: found[id], default=None)

    def statuses(self, ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How each stands: by the list while that is cheaper than asking one by one."""
        return listed_statuses(
            ids,
            self._pages(),
            key="name",
            status=batch_status,
            one=self._one,
            patience=lambda left: left - 1,
        )

    def results(self, id: str) -> Iterator[bytes]:
        """The lines of the responses file, by way of a temporary file, or of inlined responses."""
        operation = self._get(id)
        output = as_dict(as_dict(operation.get("metadata")).get("output"))
        output = output or as_dict(operation.get("response"))
        source = as_text(output.get("responsesFile"))
        if source:
            with tempfile.TemporaryFile() as file:
                self._download(source, file)
                file.seek(0)
                yield from split_lines(iter(lambda: file.read(CHUNK), b""))
            return
        for kind in ("inlinedResponses", "inlinedEmbedContentResponses"):
            for response in map(
                as_dict, as_list(as_dict(output.get(kind)).get("inlinedResponses"))
            ):
                row = {key: value for key, value in response.items() if key != "metadata"}
                yield dump({"key": as_dict(response.get("metadata")).get("key"), **row})

    def cancel(self, id: str) -> None:
        """Asks to end it; one that has ended or is forgotten stays as it is."""
        try:
            with self._sdk.told(f"cancel {id}"):
                self._sdk.client.batches.cancel(name=id)
        except ProviderError:
            if self._one(id).state is BatchState.RUNNING:
                raise

    def _one(self, id: str) -> BatchStatus:
        if not BATCH.fullmatch(id):
            return BatchStatus(BatchState.FORGOTTEN, f"{id[:100]!r} is no batch of Gemini")
        try:
            return batch_status(self._get(id))
        except SaidNo as no:
            if no.status != 404 or not no.known:
                raise
            return BatchStatus(BatchState.FORGOTTEN, str(no))

    def _get(self, id: str) -> Mapping[str, Any]:
        doing = f"show {id}"
        with self._sdk.told(doing) as exchange:
            self._sdk.client.batches.get(name=id)
        return self._sdk.object(exchange, doing)

    def _pages(self) -> Iterator[list[Mapping[str, Any]]]:
        doing = "list the batches"
        token: str | None = None
        for _ in range(MAX_PAGES):
            config = types.ListBatchJobsConfig(page_size=PAGE, page_token=token)
            with self._sdk.told(doing) as exchange:
                self._sdk.client.batches.list(config=config)
            page = self._sdk.object(exchange, doing)
            yield [as_dict(operation) for operation in as_list(page.get("operations"))]
            before, token = token, as_text(page.get("nextPageToken")) or None
            if token is None or token == before:
                return

    def _upload(self, name: str, file: Path) -> str:
        """Streams the file to Google, which keeps it for 48 hours; a copy more does no harm."""
        for attempt in range(UPLOADS):
            try:
                with self._sdk.told("take the file of the batch"):
                    made = self._sdk.client.files.upload(
                        file=file,
                        config=types.UploadFileConfig(
                            mime_type="application/jsonl",
                            display_name=name,
                            http_options=self._sdk.uploading(),
                        ),
                    )
            except Refused:
                raise
            except ProviderError:
                if attempt + 1 == UPLOADS:
                    raise
            else:
                if made.name:
                    return made.name
        raise ProviderError("Gemini took the batch's file and did not name it; it is sent again.")

    def _download(self, source: str, file: BinaryIO) -> None:
        """Into a file: the SDK's streaming download takes whatever can be written to."""
        try:
            with self._sdk.told(f"give {source}"):
                self._sdk.client.files.download(file=source, destination=file)  # type: ignore[arg-type]
        except SaidNo as no:
            if no.status not in (403, 404) or not no.known:
                raise
            # Google says of a file that it has deleted that there is no permission to see it.
            raise ProviderError(
                f"Gemini does not give the results in {source} any more, which it keeps for a "
                f"while only: {no}"
            ) from None


def _time(value: Any) -> datetime:
    """A time of the API; the latest there is where none can be read, so that nothing is missed."""
    try:
        moment = datetime.fromisoformat(as_text(value))
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Walks the list of a provider's batches, newest first, in pages that end in a cursor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from ..errors import ProviderError
from .batch_statuses import listed_statuses
from .json_values import as_dict, as_list, as_text
from .provider import BatchState, BatchStatus
from .sdk_http import SaidNo, SdkHttp

__all__ = ["BatchList"]

# How far a provider's clock may be off the time in its own header, and how long its answers take.
MARGIN = timedelta(minutes=2)
DAY = timedelta(days=1)
MAX_PAGES = 10_000
SHORT_PAGE = 100
# One page more without any of ours is read for so many that are still looked for.
PATIENCE = 50


@dataclass(frozen=True)
class BatchList:
    """The list at `path`; `cursor` names the parameter for the id that a page begins after.

    `page` is the most batches of one page; `created` and `status` read one batch's object.
    """

    http: SdkHttp
    path: str
    cursor: str
    page: int
    created: Callable[[Mapping[str, Any]], datetime | None]
    status: Callable[[Mapping[str, Any]], BatchStatus]

    def since(self, moment: datetime) -> Iterator[Mapping[str, Any]]:
        """The batches that were created from `moment` of this machine's clock on, newest first.

        The provider's clock is taken from its answer, so that a wrong clock here hides nothing;
        nor does one that has been put right: a moment yet to come means the last day.
        """
        for batches, date in self._pages(SHORT_PAGE):
            ahead = max(datetime.now(UTC) - date, timedelta())
            start = moment - ahead - MARGIN
            if start > date:
                start = date - DAY
            times = [self.created(batch) for batch in batches]
            for batch, time in zip(batches, times, strict=True):
                if time is None or time >= start:
                    yield batch
            if times and times[-1] is not None and times[-1] < start:
                return

    def statuses(self, ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """The status of each batch: by pages of the list while that takes fewer calls, then one
        by one.
        """
        limit = self.page if len(set(ids)) > SHORT_PAGE else SHORT_PAGE
        return listed_statuses(
            ids,
            (batches for batches, _ in self._pages(limit)),
            key="id",
            status=self.status,
            one=self.one,
            patience=lambda left: left // PATIENCE,
        )

    def one(self, id: str) -> BatchStatus:
        """The status of one batch; FORGOTTEN when the provider itself says that it has none."""
        try:
            return self.status(self.http.get(self.place(id)))
        except SaidNo as no:
            if no.status != 404 or not no.known:
                raise
            return BatchStatus(BatchState.FORGOTTEN, str(no))

    def place(self, id: str) -> str:
        """The path of one batch."""
        return f"{self.path}/{quote(id, safe='')}"

    def _pages(self, limit: int) -> Iterator[tuple[list[Mapping[str, Any]], datetime]]:
        """Each page, and what time it is: the provider's, or ours when it does not say it."""
        query: dict[str, Any] = {"limit": limit}
        for _ in range(MAX_PAGES):
            page, date = self.http.get_dated(self.path, query)
            if not isinstance(page.get("data"), list):
                raise ProviderError(
                    f"The list of batches at {self.path} has no data; it is asked for again later."
                )
            batches = [as_dict(each) for each in as_list(page["data"])]
            yield batches, date or datetime.now(UTC)
            last = as_text(batches[-1].get("id")) if batches else ""
            if page.get("has_more") is not True or not last or last == query.get(self.cursor):
                return
            query[self.cursor] = last

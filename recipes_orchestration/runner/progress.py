"""What a runner tells of its work: dagster-pipes messages in a file that comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import MissingExtra

__all__ = ["Progress"]

_EVERY_SECONDS = 30.0
_EVERY_PAGES = 50
# More than these are no longer read by anybody; the results have them all.
_MOST_FAILURES = 200


class Progress:
    """Writes messages to a file, one a line, as `dagster_pipes` forms them.

    A message that the disk does not take is left out: the work is worth more than its story.
    Raises `MissingExtra` when dagster-pipes is not installed.
    """

    def __init__(self, path: Path, task: str) -> None:
        try:
            import dagster_pipes as pipes
        except ImportError as error:
            raise MissingExtra(
                "recipes-runner needs dagster_pipes; install it with: "
                "pip install 'recipes-orchestration[runner]'."
            ) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        data: dict[str, Any] = dict.fromkeys(
            (
                "asset_keys",
                "code_version_by_asset_key",
                "provenance_by_asset_key",
                "partition_key",
                "partition_key_range",
                "partition_time_window",
                "job_name",
            )
        )
        data |= {"run_id": task, "retry_number": 0, "extras": {"task": task}}
        self._context = pipes.PipesContext(
            _params(pipes, data, path),
            pipes.PipesDefaultContextLoader(),
            pipes.PipesDefaultMessageWriter(),
        )
        self._failures = 0
        self._done = 0
        self._left = 0
        self._told = time.monotonic()

    def say(self, words: str, **facts: Any) -> None:
        """A line for the run's log, and the same as facts for its metadata."""
        self._write(lambda: self._context.log.info(words))
        if facts:
            self._write(lambda: self._context.report_custom_message(facts))

    def warn(self, words: str) -> None:
        """A line for the run's log that somebody should read."""
        self._write(lambda: self._context.log.warning(words))

    def step_begins(self, step: str, pages: int) -> None:
        """So many pages are to do."""
        self._done, self._left = 0, pages
        self._told = time.monotonic()
        self.say(f"{step}: {pages} pages to do")

    def page_ended(self, step: str, page_id: str, failed: str | None) -> None:
        """Tells of a failed page, and how far the step is, every so many pages or seconds."""
        self._done += 1
        if failed is not None:
            self._failures += 1
            if self._failures <= _MOST_FAILURES:
                self.warn(f"{step}: {page_id}: {failed}")
            elif self._failures == _MOST_FAILURES + 1:
                self.warn("Further failures are in the results and no longer told here.")
        if self._done % _EVERY_PAGES == 0 or time.monotonic() - self._told >= _EVERY_SECONDS:
            self._told = time.monotonic()
            self.say(
                f"{step}: {self._done} of {self._left} pages",
                step=step,
                done=self._done,
                pages=self._left,
            )

    def close(self, failure: str | None = None) -> None:
        """The last message; a failure is told as an error."""
        if failure is not None:
            self._write(lambda: self._context.log.error(failure))
        self._write(self._context.close)

    def _write(self, write: Callable[[], None]) -> None:
        with suppress(OSError):
            write()


def _params(pipes: Any, data: Mapping[str, Any], path: Path) -> Any:
    return pipes.PipesMappingParamsLoader(
        {
            pipes.DAGSTER_PIPES_CONTEXT_ENV_VAR: pipes.encode_param({"data": data}),
            pipes.DAGSTER_PIPES_MESSAGES_ENV_VAR: pipes.encode_param({"path": str(path)}),
        }
    )

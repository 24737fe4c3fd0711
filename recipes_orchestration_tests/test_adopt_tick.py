"""One tick over a thousand open tasks: as few calls as the provider's list takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import PROVIDERS, advance_once, make_cloud_archive
from .cloud_runner import direct
from .many_open_tasks import backlog, list_calls, timed_poll

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

TASKS = 1000


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tick_over_a_thousand_tasks_takes_no_more_calls_than_the_list(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    # Expired without an answer, so that Bedrock's side does not write a thousand results to S3.
    direct(rehearsal, provider, never_ends=True, expire_after=0)
    archive = make_cloud_archive(tmp_path, provider, 1, bucket=rehearsal.bucket)
    with archive.engine() as engine:
        advance_once(engine)
        backlog(engine, rehearsal, provider, TASKS)
        polled, seconds = timed_poll(engine)
        assert len(polled) == TASKS
        assert not any(each.ended for each in polled.values())
        counts = rehearsal.counts(provider)
        assert (counts["lists"], counts["gets"]) == (list_calls(provider, TASKS), 0)

        rehearsal.finish(provider)
        polled, ending_seconds = timed_poll(engine)
        assert all(each.ended for each in polled.values())
        counts = rehearsal.counts(provider)
        assert (counts["lists"], counts["gets"]) == (2 * list_calls(provider, TASKS), 0)
        assert {task.state for task in engine.ledger.tasks.heads()} == {"ended"}
    print(f"{provider}: {TASKS} tasks in {seconds:.2f} s; all ended in {ending_seconds:.2f} s")

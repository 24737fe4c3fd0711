"""A Python step around the whole circle: captured, sent as a batch, fetched, replayed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.providers.provider import BatchState, Call, Provider
from recipes_orchestration.providers.recording import Clients, Recorder, Replayed
from recipes_orchestration.providers.registry import open_provider
from recipes_orchestration.rehearsal import Rehearsal, Script

from .recorded_steps import ALL, GEMINI, Told, picture_for
from .rehearsal_fixtures import rehearsal, rehearsal_server

__all__ = ["rehearsal", "rehearsal_server"]

each = pytest.mark.parametrize("told", ALL, ids=lambda told: told.provider)
Step = Callable[[Clients], Any]


def opened(told: Told, rehearsal: Rehearsal) -> Provider:
    if told.provider != "bedrock":
        return open_provider(told.provider)
    role = "arn:aws:iam::111122223333:role/batch"
    return open_provider("bedrock", bucket=rehearsal.bucket, role_arn=role, min_requests=1)


def answered(
    told: Told, rehearsal: Rehearsal, calls: list[Call], folder: Path
) -> dict[str, tuple[int, bytes]]:
    """Sends the calls as one batch, and gives its lines as answers to a replay."""
    rehearsal.script(told.provider, Script(min_records=1, permute=True))
    file = folder / "requests.jsonl"
    with closing(opened(told, rehearsal)) as provider:
        file.write_bytes(b"".join(provider.line(call.id, call) for call in calls))
        batch = provider.submit("name", calls[0].group, file, [call.id for call in calls])
        until = time.monotonic() + 20
        while provider.statuses([batch])[batch].state is BatchState.RUNNING:
            assert time.monotonic() < until
            time.sleep(0.02)
        lines = [provider.read_line(line) for line in provider.results(batch)]
        return {line.id: (200, body_of(line.response)) for line in lines if line is not None}


def body_of(response: Any) -> bytes:
    return json.dumps(response, ensure_ascii=False).encode()


def circle(told: Told, rehearsal: Rehearsal, steps: list[Step], folder: Path) -> None:
    """Each step gives by its batch what it gives by a plain call."""
    with closing(Recorder(told.provider)) as recorder:
        calls = [recorder.capture(step) for step in steps]
        answers = answered(told, rehearsal, calls, folder)
        plain = [recorder.replay(step, {}).value for step in steps]
        assert [recorder.replay(step, answers) for step in steps] == [Replayed(v) for v in plain]


@each
def test_a_step_gives_by_a_batch_what_it_gives_by_plain_calls(
    told: Told, rehearsal: Rehearsal, tmp_path: Path
):
    circle(told, rehearsal, [told.step(f"page {n} ä\u2028") for n in range(5)], tmp_path)


@each
def test_a_picture_goes_round_too(told: Told, rehearsal: Rehearsal, tmp_path: Path):
    circle(told, rehearsal, [lambda c: told.text(picture_for(told, c.client))], tmp_path)


def test_geminis_vectors_go_round_too(rehearsal: Rehearsal, tmp_path: Path):
    def step(clients: Clients) -> Any:
        found = clients.client.models.embed_content(model="gemini-embedding-001", contents="Hi")
        return found.embeddings[0].values

    with closing(Recorder("gemini")) as recorder:
        answers = answered(GEMINI, rehearsal, [recorder.capture(step)], tmp_path)
        replayed = recorder.replay(step, answers)
    assert replayed.live == ()
    assert len(replayed.value) > 1

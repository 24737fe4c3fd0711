"""The rehearsal as a whole: how it is directed, counted and started, and how fast it is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from recipes_orchestration.rehearsal import Rehearsal, Script, running_rehearsal
from recipes_orchestration.rehearsal.answers import digest_of, instance
from recipes_orchestration.rehearsal.bodies import Body, array_lines, file_lines

BATCHES = "/anthropic/v1/messages/batches"
HEADERS = {"x-api-key": "any"}


def create(rehearsal: Rehearsal, count: int = 1) -> str:
    """The id of a new batch at Anthropic."""
    requests = [
        {"custom_id": f"id{n}", "params": {"model": "m", "messages": [f"page {n}"]}}
        for n in range(count)
    ]
    answer = httpx2.post(
        rehearsal.url + BATCHES, json={"requests": requests}, headers=HEADERS, timeout=30
    )
    return answer.raise_for_status().json()["id"]


def state(rehearsal: Rehearsal, id: str) -> str:
    answer = httpx2.get(f"{rehearsal.url}{BATCHES}/{id}", headers=HEADERS)
    return answer.raise_for_status().json()["processing_status"]


def control(rehearsal: Rehearsal, method: str, path: str, body: Any = None) -> httpx2.Response:
    return httpx2.request(method, f"{rehearsal.url}/_rehearsal/{path}", json=body)


def test_a_script_is_set_over_http(rehearsal: Rehearsal):
    control(rehearsal, "PUT", "anthropic/script", {"never_ends": True}).raise_for_status()
    assert state(rehearsal, create(rehearsal)) == "in_progress"


def test_what_is_no_script_is_refused(rehearsal: Rehearsal):
    answer = control(rehearsal, "PUT", "anthropic/script", {"never_end": True})
    assert answer.status_code == 400
    assert "never_end" in answer.json()["error"]
    assert control(rehearsal, "PUT", "nobody/script", {}).status_code == 404


def test_a_script_can_hold_for_the_next_batches_alone(rehearsal: Rehearsal):
    rehearsal.script("anthropic", Script(never_ends=True, batches=2))
    states = [state(rehearsal, create(rehearsal)) for _ in range(3)]
    assert states == ["in_progress", "in_progress", "ended"]


def test_a_refused_create_is_one_of_the_next_batches(rehearsal: Rehearsal):
    rehearsal.script("anthropic", Script(refuse_create="credit", batches=1))
    with pytest.raises(httpx2.HTTPStatusError):
        create(rehearsal)
    create(rehearsal)
    assert rehearsal.counts("anthropic")["refused"] == 1


def test_a_script_holds_for_its_own_provider_alone(rehearsal: Rehearsal):
    rehearsal.script("openai", Script(never_ends=True))
    assert state(rehearsal, create(rehearsal)) == "ended"


def test_open_batches_are_finished_at_once(rehearsal: Rehearsal):
    rehearsal.script("anthropic", Script(never_ends=True))
    id = create(rehearsal)
    assert control(rehearsal, "POST", "anthropic/finish").json() == {"finished": 1}
    assert state(rehearsal, id) == "ended"


def test_reset_forgets_scripts_and_batches(rehearsal: Rehearsal):
    rehearsal.script("anthropic", Script(refuse_create="key"))
    control(rehearsal, "POST", "reset").raise_for_status()
    create(rehearsal)
    assert len(rehearsal.counts("anthropic")["batches"]) == 1


def test_everything_is_counted(rehearsal: Rehearsal):
    id = create(rehearsal, 2)
    state(rehearsal, id)
    create(rehearsal, 1)
    httpx2.get(f"{rehearsal.url}{BATCHES}/{id}/results", headers=HEADERS)
    httpx2.post(f"{rehearsal.url}{BATCHES}/{id}/cancel", headers=HEADERS)
    httpx2.post(f"{rehearsal.url}/anthropic/v1/messages", headers=HEADERS, json={"model": "m"})
    counts = control(rehearsal, "GET", "counts?hashes=true").json()["anthropic"]
    assert counts == rehearsal.counts("anthropic", hashes=True)
    assert counts["requests"] == {"id0": 2, "id1": 1}
    assert sorted(counts["hashes"].values()) == [1, 2]
    assert list(counts["plain_requests"].values()) == [1]
    assert [(each["size"], each["state"]) for each in counts["batches"]] == [
        (2, "completed"),
        (1, "running"),
    ]
    assert [counts[key] for key in ("creates", "gets", "results", "cancels", "plain")] == [
        *(2, 1, 1, 1, 1)
    ]


def test_the_environment_leads_the_sdks_to_it(rehearsal: Rehearsal):
    message: Any = {"role": "user", "content": "page"}
    with anthropic.Anthropic() as one, openai.OpenAI() as other:
        assert one.messages.create(model="m", max_tokens=9, messages=[message]).content
        assert other.chat.completions.create(model="m", messages=[message]).choices
    assert [rehearsal.counts(name)["plain"] for name in ("anthropic", "openai")] == [1, 1]


def started(*options: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """The rehearsal as a process, and what it told to export."""
    command = [sys.executable, "-m", "recipes_orchestration.rehearsal", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told: dict[str, str] = {}
    for line in process.stdout:
        if line.startswith("export "):
            key, _, value = line.removeprefix("export ").strip().partition("=")
            told[key] = value
        elif line.startswith("# Ctrl-C"):
            break
    return process, told


@pytest.mark.skipif(os.name != "posix", reason="sends a signal as Ctrl-C does")
def test_it_runs_as_a_process_with_scripts_from_a_file(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"anthropic": {"plain_status": [529]}}))
    process, told = started("--providers", "anthropic", "--script", str(script))
    with process:
        url = told["ANTHROPIC_BASE_URL"] + "/v1/messages"
        headers = {"x-api-key": told["ANTHROPIC_API_KEY"]}
        codes = [
            httpx2.post(url, json={"model": "m"}, headers=headers).status_code for _ in range(2)
        ]
        process.send_signal(signal.SIGINT)
        _, trouble = process.communicate(timeout=30)
    assert (codes, process.returncode, trouble) == ([529, 200], 130, "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--providers", "nobody"), "no provider nobody"),
        (("--providers", "openai", "--script", "missing.json"), "is not a file of scripts"),
    ],
)
def test_a_wrong_start_is_told_in_a_sentence(options: tuple[str, ...], words: str):
    process, _ = started(*options)
    _, trouble = process.communicate(timeout=30)
    assert words in trouble
    assert "Traceback" not in trouble
    assert process.returncode == 1


def test_the_page_about_it_names_every_behaviour_and_no_other():
    page = (Path(__file__).parent.parent / "docs" / "rehearsal.md").read_text()
    directed = page.partition("## How it is directed")[2].partition("| address |")[0]
    told = {
        name
        for row in directed.split("\n| ")[1:]
        for name in re.findall(r"`([a-z_0-9]+)`", row.partition(" | ")[0])
    }
    assert told | {"batches"} == set(Script.model_fields)


def test_a_batch_is_cut_into_requests_by_its_brackets():
    nasty = 'quotes " and \\ and } and ]\n\u2028'
    requests: list[Any] = [
        {"custom_id": "a", "params": {"text": nasty, "inner": [{"custom_id": "no"}]}},
        {"params": {"long": "x" * 2000 + '\\"', "empty": {}}, "custom_id": "b"},
    ]
    raw = json.dumps({"other": [{"a": 1}], "requests": requests}, ensure_ascii=False)
    raw = raw.replace('"other": [{"a": 1}], ', "")
    lines = array_lines(Body(raw.encode()), id_key=b"custom_id", body_key=b"params")
    assert lines.ids == ["a", "b"]
    assert [json.loads(lines.raw(n)) for n in (0, 1)] == [each["params"] for each in requests]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"requests": [{"custom_id": "a", "params": {}',
        b'{"requests": [{"custom_id": "a"}]}',
        b'{"requests": [{"custom_id": 1, "params": {}}]}',
        b'{"requests": [{"custom_id": "a", "params": {}, "more": {}}]}',
        b'{"requests": [{"custom_id": "a", "params": {}}}',
        b'{"requests": [{"custom_id": "a',
    ],
)
def test_a_batch_that_is_broken_is_not_cut(raw: bytes):
    with pytest.raises(ValueError):
        array_lines(Body(raw), id_key=b"custom_id", body_key=b"params")


def test_lines_of_a_file_end_at_line_feeds_alone():
    raw = '{"a": "\u2028\u0085"}\r\n\n  \n{"b": 1}'.encode()
    assert [raw[start:stop].strip() for start, stop in file_lines(Body(raw))] == [
        '{"a": "\u2028\u0085"}'.encode(),
        b'{"b": 1}',
    ]


def test_equal_requests_have_equal_hashes_whatever_their_model_and_order():
    assert digest_of({"a": 1, "b": [2], "model": "x"}) == digest_of(
        {"stream": True, "b": [2], "a": 1, "model": "y"}
    )


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}}, {"a": ["word"]}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "number", "minimum": 2}}}, 2),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": ["string", "null"], "maxLength": 2}, "wo"),
        ({"allOf": [{"type": "object"}, {"properties": {"a": {"const": 1}}}]}, {"a": 1}),
        ({"type": "array", "minItems": 2, "items": {"enum": ["x"]}}, ["x", "x"]),
    ],
)
def test_an_instance_fits_its_schema(schema: Any, value: Any):
    assert instance(schema, "word") == value


def test_a_body_larger_than_the_memory_takes_goes_to_disk(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
):
    from recipes_orchestration.rehearsal import bodies

    monkeypatch.setattr(bodies, "IN_MEMORY", 1000)
    id = create(rehearsal, 500)
    assert state(rehearsal, id) == "ended"
    answer = httpx2.get(f"{rehearsal.url}{BATCHES}/{id}/results", headers=HEADERS)
    assert len(set(answer.content.split(b"\n"))) == 501


def test_twenty_thousand_requests_are_no_burden():
    with running_rehearsal(("anthropic",)) as rehearsal:
        begun = time.monotonic()
        id = create(rehearsal, 20_000)
        created = time.monotonic()
        assert state(rehearsal, id) == "ended"
        url = f"{rehearsal.url}{BATCHES}/{id}/results"
        answer = httpx2.get(url, headers=HEADERS, timeout=60)
        fetched = time.monotonic()
    assert answer.content.count(b"\n") == 20_000
    print(f"20,000 requests: created in {created - begun:.2f} s, ", end="")
    print(f"fetched in {fetched - created:.2f} s")

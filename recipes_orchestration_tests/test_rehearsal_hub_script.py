"""What goes wrong at the rehearsed hub when its script says so, and how it is directed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from recipes_orchestration.errors import ConfigError
from recipes_orchestration.rehearsal import HUB_TOKEN, HUB_USER, HubScript, Rehearsal, Script
from recipes_orchestration.rehearsal.process import read_scripts

from .hub_fixtures import REPO, python_job, until_ended

# A job that commits one file after the other, as a runner that sends what it has.
COMMITS = """
import sys
from huggingface_hub import HfApi
for number in range(int(sys.argv[2])):
    HfApi().upload_file(path_or_fileobj=str(number).encode(), path_in_repo=f"out/{number}",
                        repo_id=sys.argv[1], repo_type="dataset")
"""
WRITES = """
import pathlib, time
out = pathlib.Path("out"); out.mkdir()
for number in range(2000):
    with open(out / "results.jsonl", "a") as file: file.write(f"{number}\\n")
    time.sleep(0.01)
"""


def committing(api: HfApi, count: int) -> str:
    secrets = {"HF_TOKEN": HUB_TOKEN}
    return until_ended(api, python_job(api, COMMITS, REPO, str(count), secrets=secrets)).id


def test_a_job_commits_with_the_token_it_was_given(hub_api: HfApi, hub: Rehearsal):
    committing(hub_api, 2)
    assert hub.hub.files(REPO) == {"out/0": 1, "out/1": 1}
    assert hub.counts("hub")["jobs"][0]["commits"] == 2


def test_without_a_token_a_job_cannot_write(hub_api: HfApi, hub: Rehearsal):
    job = until_ended(hub_api, python_job(hub_api, COMMITS, REPO, "1"))
    assert job.status.stage == "ERROR"
    hub.script("hub", HubScript(job_token=True))
    job = until_ended(hub_api, python_job(hub_api, COMMITS, REPO, "1"))
    assert job.status.stage == "COMPLETED"


def test_a_job_is_killed_at_a_commit_that_is_not_kept(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(kill_at_commit=2))
    id = committing(hub_api, 3)
    job = hub_api.inspect_job(job_id=id, namespace=HUB_USER)
    assert job.status.stage == "ERROR"
    assert job.status.message == "Job failed with exit code: 137. Reason: Error"
    assert hub.hub.files(REPO) == {"out/0": 1}


def test_a_job_is_killed_in_the_middle_of_a_file(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(kill_when="results.jsonl", kill_at_bytes=20, kill_message="gone"))
    begun = time.monotonic()
    job = until_ended(hub_api, python_job(hub_api, WRITES))
    assert (job.status.stage, job.status.message) == ("ERROR", "gone")
    assert time.monotonic() - begun < 20


def test_a_job_is_there_though_its_reply_was_lost(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(lose_reply=1))
    with pytest.raises(Exception, match="disconnected"):
        python_job(hub_api, "", labels={"name": "one"})
    python_job(hub_api, "", labels={"name": "two"})
    found = list(hub_api.list_jobs(labels={"name": "one"}, namespace=HUB_USER))
    assert len(found) == 1
    assert hub.counts("hub")["labels"] == {"name=one": 1, "name=two": 1}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_job_may_be_refused_before_it_is_there(hub_api: HfApi, hub: Rehearsal, status: int):
    hub.script("hub", HubScript(create_status=[status]))
    with pytest.raises(HfHubHTTPError, match=str(status)):
        python_job(hub_api, "")
    assert hub.counts("hub")["jobs"] == []
    python_job(hub_api, "")


def test_an_account_without_credit_is_told_so(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(refuse_create="credit"))
    with pytest.raises(HfHubHTTPError, match="credit") as caught:
        python_job(hub_api, "")
    assert caught.value.response.status_code == 402


def test_a_status_read_may_fail(hub_api: HfApi, hub: Rehearsal):
    job = until_ended(hub_api, python_job(hub_api, ""))
    hub.script("hub", HubScript(status_status=[503]))
    with pytest.raises(HfHubHTTPError, match="503"):
        hub_api.inspect_job(job_id=job.id, namespace=HUB_USER)


def test_a_job_that_never_starts_lets_others_by(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(never_starts=True, jobs=1))
    never = python_job(hub_api, "")
    assert until_ended(hub_api, python_job(hub_api, "")).status.stage == "COMPLETED"
    assert hub_api.inspect_job(job_id=never.id, namespace=HUB_USER).status.stage == "SCHEDULING"
    hub_api.cancel_job(job_id=never.id, namespace=HUB_USER)
    ended = until_ended(hub_api, never)
    assert (ended.status.stage, ended.started_at) == ("CANCELED", None)


@pytest.mark.parametrize("stage", ["ERROR", "CANCELED", "DELETED"])
def test_a_job_ends_without_having_run(hub_api: HfApi, hub: Rehearsal, stage: str):
    hub.script("hub", HubScript.model_validate({"ends_as": stage, "ends_message": "no image"}))
    job = until_ended(hub_api, python_job(hub_api, "print('ran')"))
    assert (job.status.stage, job.status.message) == (stage, "no image")
    assert hub.hub.jobs[job.id].log == []


def test_open_jobs_are_killed_at_once(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(start_seconds=300))
    job = python_job(hub_api, "")
    assert hub.finish("hub") == 1
    assert until_ended(hub_api, job).status.stage == "ERROR"


def test_reset_forgets_jobs_and_files(hub_api: HfApi, hub: Rehearsal):
    python_job(hub_api, "import time; time.sleep(300)")
    hub.reset()
    assert hub.counts("hub")["jobs"] == []
    assert not hub_api.repo_exists(REPO, repo_type="dataset")


def test_a_script_is_set_over_http(hub_api: HfApi, hub: Rehearsal):
    url = f"{hub.url}/_rehearsal/hub/script"
    httpx2.put(url, json={"refuse_create": "rate"}).raise_for_status()
    with pytest.raises(HfHubHTTPError, match="429"):
        python_job(hub_api, "")
    assert httpx2.put(url, json={"polls": 1}).status_code == 400
    counts = httpx2.get(f"{hub.url}/_rehearsal/counts").raise_for_status().json()
    assert counts["hub"] == hub.counts("hub")


def test_a_script_of_another_provider_is_refused(hub: Rehearsal):
    with pytest.raises(ConfigError, match="HubScript"):
        hub.script("hub", Script())


def test_a_file_of_scripts_has_one_for_the_hub(tmp_path: Path):
    file = tmp_path / "scripts.json"
    file.write_text(json.dumps({"hub": {"lose_reply": 1}, "openai": {"polls": 2}}))
    read = read_scripts(file, ("hub", "openai"))
    assert read == {"hub": HubScript(lose_reply=1), "openai": Script(polls=2)}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal as `kill` does")
def test_jobs_end_with_the_process_that_runs_them():
    command = [sys.executable, "-m", "recipes_orchestration.rehearsal", "--providers", "hub"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("export HF_ENDPOINT=")
        api = HfApi(endpoint=url, token=HUB_TOKEN)
        code = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
        job = python_job(api, code)
        log = api.fetch_job_logs(job_id=job.id, namespace=HUB_USER, follow=True)
        pid = int(next(iter(log)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

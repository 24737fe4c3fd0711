"""Jobs of the rehearsed hub, through the real huggingface_hub client over HTTP; they really run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from huggingface_hub import HfApi, Volume
from huggingface_hub.errors import BadRequestError, HfHubHTTPError, JobNotFoundError

from recipes_orchestration.rehearsal import (
    HUB_ORGANIZATION,
    HUB_TOKEN,
    HUB_USER,
    HubScript,
    Rehearsal,
)

from .hub_fixtures import REPO, add, python_job, until_ended

SLEEP = "import time; print('begun', flush=True); time.sleep(300)"


def log(api: HfApi, id: str, tail: int | None = None) -> list[str]:
    return list(api.fetch_job_logs(job_id=id, namespace=HUB_USER, tail=tail))


def names(api: HfApi, **given: object) -> list[str]:
    found = api.list_jobs(namespace=HUB_USER, **given)  # type: ignore[arg-type]
    return [(each.labels or {})["name"] for each in found]


def wait_for_stage(api: HfApi, id: str, stage: str) -> None:
    until = time.monotonic() + 60
    while api.inspect_job(job_id=id, namespace=HUB_USER).status.stage != stage:
        assert time.monotonic() < until
        time.sleep(0.02)


def wait_for_log(api: HfApi, hub: Rehearsal, id: str) -> None:
    until = time.monotonic() + 60
    while not hub.hub.jobs[id].log:
        assert time.monotonic() < until
        time.sleep(0.02)


def until_gone(pid: int) -> None:
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "Z" not in _state(pid):
        assert time.monotonic() < until
        time.sleep(0.02)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_job_runs_its_command(hub_api: HfApi):
    job = until_ended(hub_api, python_job(hub_api, "import sys; print(sys.argv[1:])", "a b", "c"))
    assert (job.status.stage, job.status.message) == ("COMPLETED", None)
    assert log(hub_api, job.id) == ["['a b', 'c']"]
    assert job.started_at
    assert job.finished_at
    assert job.created_at
    assert job.created_at <= job.started_at <= job.finished_at
    assert job.durations
    assert job.durations.running_secs is not None


def test_a_job_has_its_environment_and_no_other(
    hub_api: HfApi, hub: Rehearsal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_OF_MINE", "mine")
    code = "import os; e = os.environ; print(e['A'], e['B'], e['JOB_ID'], e['HF_ENDPOINT']); "
    code += "print(sorted({'SECRET_OF_MINE', 'HF_TOKEN'} & e.keys()))"
    given = {"env": {"A": "1"}, "secrets": {"B": "2"}}
    job = until_ended(hub_api, python_job(hub_api, code, **given))
    assert log(hub_api, job.id) == [f"1 2 {job.id} {hub.url}", "[]"]
    assert job.environment == {"A": "1"}
    assert job.secrets == {}


def test_a_job_that_fails_says_its_exit_code(hub_api: HfApi):
    job = until_ended(hub_api, python_job(hub_api, "raise SystemExit(3)"))
    assert job.status.stage == "ERROR"
    assert job.status.message == "Job failed with exit code: 3. Reason: Error"


def test_a_command_that_is_not_there_is_an_error(hub_api: HfApi):
    job = hub_api.run_job(
        image="x", command=["no-such-command"], flavor="cpu-basic", namespace=HUB_USER
    )
    job = until_ended(hub_api, job)
    assert job.status.message == "Job failed with exit code: 127. Reason: Error"


def test_a_job_is_over_when_its_time_is(hub_api: HfApi):
    job = until_ended(hub_api, python_job(hub_api, SLEEP, timeout=1))
    assert (job.status.stage, job.status.message) == ("ERROR", "Job timeout")


def test_a_cancelled_job_ends_with_all_that_it_started(hub_api: HfApi, hub: Rehearsal):
    code = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", sys.argv[1]]).pid, flush=True)
time.sleep(300)
"""
    job = python_job(hub_api, code, "import time; time.sleep(300)")
    wait_for_log(hub_api, hub, job.id)
    hub_api.cancel_job(job_id=job.id, namespace=HUB_USER)
    assert until_ended(hub_api, job).status.stage == "CANCELED"
    until_gone(int(hub.hub.jobs[job.id].log[0][1]))


def test_a_cancelled_job_hears_of_it_first(hub_api: HfApi, hub: Rehearsal):
    code = (
        "import signal, sys; signal.signal(15, lambda *_: (print('bye', flush=True), sys.exit(1)));"
    )
    job = python_job(hub_api, code + SLEEP)
    wait_for_log(hub_api, hub, job.id)
    hub_api.cancel_job(job_id=job.id, namespace=HUB_USER)
    until_ended(hub_api, job)
    assert log(hub_api, job.id) == ["begun", "bye"]


def test_a_job_that_has_ended_is_not_cancelled(hub_api: HfApi):
    job = until_ended(hub_api, python_job(hub_api, ""))
    hub_api.cancel_job(job_id=job.id, namespace=HUB_USER)
    assert until_ended(hub_api, job).status.stage == "COMPLETED"


def test_two_run_at_a_time_in_order(hub_api: HfApi):
    jobs = [python_job(hub_api, SLEEP) for _ in range(4)]
    for job in jobs[:2]:
        wait_for_stage(hub_api, job.id, "RUNNING")
    hub_api.cancel_job(job_id=jobs[0].id, namespace=HUB_USER)
    wait_for_stage(hub_api, jobs[2].id, "RUNNING")
    found = hub_api.list_jobs(namespace=HUB_USER)
    stages = {each.id: each.status.stage for each in found}
    wanted = ["CANCELED", "RUNNING", "RUNNING", "SCHEDULING"]
    assert [stages[job.id] for job in jobs] == wanted


def test_jobs_are_found_by_labels_and_stages(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(never_starts=True))
    for name, kind in (("a", "x"), ("b", "x"), ("c", "y")):
        python_job(hub_api, "", labels={"name": name, "kind": kind, "all": "1"})
    assert names(hub_api) == ["c", "b", "a"]
    assert names(hub_api, labels={"kind": "x", "all": "1"}) == ["b", "a"]
    assert names(hub_api, labels={"kind": "x", "name": "c"}) == []
    assert names(hub_api, labels={"name": "c"}, status=["SCHEDULING", "ERROR"]) == ["c"]
    assert names(hub_api, labels={"name": "c"}, status="RUNNING") == []
    assert hub.counts("hub")["labels"]["kind=x"] == 2


def test_a_job_without_a_name_gets_one_as_a_label(hub_api: HfApi):
    job = python_job(hub_api, "", labels={"kind": "x"})
    assert job.labels
    assert job.labels["name"].startswith("python-3-12-")


def test_a_long_list_comes_by_pages(hub_api: HfApi, hub: Rehearsal):
    hub.script("hub", HubScript(ends_as="ERROR", jobs_page=2))
    for number in range(5):
        python_job(hub_api, "", labels={"name": str(number), "kind": "x"})
    assert names(hub_api, labels={"kind": "x"}) == ["4", "3", "2", "1", "0"]
    assert hub.counts("hub")["lists"] == 3


@pytest.mark.parametrize("label", ["with space", "a/b", "x" * 101])
def test_a_label_of_other_characters_is_refused(hub_api: HfApi, label: str):
    with pytest.raises(BadRequestError, match="labels"):
        python_job(hub_api, "", labels={"name": label})


def test_labels_are_replaced(hub_api: HfApi):
    job = python_job(hub_api, "", labels={"name": "a"})
    hub_api.update_job_labels(job_id=job.id, labels={"name": "b"}, namespace=HUB_USER)
    assert names(hub_api, labels={"name": "b"}) == ["b"]


def test_a_repository_is_mounted_as_a_folder(hub_api: HfApi):
    add(hub_api, {"in/1/page": b"one", "in/2/page": b"two"})
    volume = Volume(type="dataset", source=REPO, mount_path="/data", path="in", read_only=True)
    code = "import sys, os; print(open(sys.argv[1]).read(), sorted(os.listdir(os.environ['IN'])))"
    job = python_job(hub_api, code, "/data/1/page", env={"IN": "/data"}, volumes=[volume])
    assert until_ended(hub_api, job).volumes == [volume]
    assert log(hub_api, job.id) == ["one ['1', '2']"]


def test_what_cannot_be_mounted_is_an_error(hub_api: HfApi):
    volume = Volume(type="dataset", source=REPO, mount_path="/data", path="nothing")
    job = until_ended(hub_api, python_job(hub_api, "", volumes=[volume]))
    assert (job.status.stage, job.status.message) == ("ERROR", f"Failed to mount dataset {REPO}")


def test_a_bucket_cannot_be_mounted(hub_api: HfApi):
    volume = Volume(type="bucket", source=f"{HUB_USER}/bucket", mount_path="/data")
    with pytest.raises(BadRequestError, match="Bucket"):
        python_job(hub_api, "", volumes=[volume])


def test_an_unknown_job_is_not_found(hub_api: HfApi, hub: Rehearsal):
    job = until_ended(hub_api, python_job(hub_api, ""))
    hub.script("hub", HubScript(forget=[job.id]))
    for ask in (hub_api.inspect_job, hub_api.cancel_job):
        with pytest.raises(JobNotFoundError):
            ask(job_id=job.id, namespace=HUB_USER)
    assert list(hub_api.list_jobs(namespace=HUB_USER)) == []


def test_jobs_are_of_a_namespace(hub_api: HfApi):
    job = python_job(hub_api, "", namespace=HUB_ORGANIZATION)
    assert job.owner.name == HUB_ORGANIZATION
    assert list(hub_api.list_jobs(namespace=HUB_USER)) == []
    with pytest.raises(JobNotFoundError):
        hub_api.inspect_job(job_id=job.id, namespace=HUB_USER)
    with pytest.raises(HfHubHTTPError, match="403"):
        python_job(hub_api, "", namespace="others")


def test_a_wrong_token_starts_no_job(hub: Rehearsal):
    with pytest.raises(HfHubHTTPError, match="401"):
        python_job(HfApi(endpoint=hub.url, token="hf_other"), "")
    assert hub.counts("hub")["jobs"] == []


def test_an_unknown_flavor_is_refused_and_the_known_have_a_price(hub_api: HfApi):
    with pytest.raises(BadRequestError, match="flavor"):
        python_job(hub_api, "", flavor="t5")
    prices = {each.name: each for each in hub_api.list_jobs_hardware()}
    assert (prices["t4-small"].unit_cost_micro_usd, prices["t4-small"].unit_label) == (
        6667,
        "minute",
    )


def test_the_log_is_read_while_it_grows(hub_api: HfApi, hub: Rehearsal):
    job = python_job(
        hub_api, "import time\nfor n in range(3): print(n, flush=True); time.sleep(.2)"
    )
    followed = hub_api.fetch_job_logs(job_id=job.id, namespace=HUB_USER, follow=True)
    assert list(followed) == ["0", "1", "2"]
    assert log(hub_api, job.id, tail=2) == ["1", "2"]
    assert HUB_TOKEN not in str(hub.counts("hub"))

"""Bedrock's jobs over HTTP: found, asked how they stand, read and stopped."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.bedrock_batches import job_name
from recipes_orchestration.providers.provider import BatchState

from .answering_server import Asked, Reply
from .bedrock_answers_written import (
    CLIENTS,
    SINCE,
    arn,
    asking,
    clients,
    credentials,
    error,
    job,
    listing,
    query_of,
    store,
)
from .bucket_server import BUCKET

__all__ = ["clients", "credentials", "store"]

pytestmark = pytest.mark.usefixtures("clients", "credentials")


def test_a_batch_is_found_by_its_whole_name():
    answer = listing(job(3, "our-name-2"), job(2, "our-name"), job(1, "not-our-name"))
    with asking(answer) as (provider, server):
        assert provider.find("our-name", ["a"], SINCE, []) == arn(2)
        assert provider.find("no-name", ["a"], SINCE, []) is None
    query = query_of(server.asked[0])
    assert query["nameContains"] == "our-name"
    assert query["submitTimeAfter"] == "2026-11-29T06:00:00Z"


def test_a_name_that_had_to_be_changed_is_found_by_the_changed_one():
    name = "vol 1/p.0001ä.jpg" * 20
    with asking(listing(job(2, job_name(name)))) as (provider, server):
        assert provider.find(name, ["a"], SINCE, []) == arn(2)
    assert query_of(server.asked[0])["nameContains"] == job_name(name)


def test_all_pages_of_the_list_are_read():
    def answer(asked: Asked) -> Reply:
        if "nextToken" in query_of(asked):
            return Reply(body={"invocationJobSummaries": [job(1, "our-name")]})
        return Reply(body={"invocationJobSummaries": [], "nextToken": "more"})

    with asking(answer) as (provider, _):
        assert provider.find("our-name", ["a"], SINCE, []) == arn(1)


def state_of(found: dict[str, Any]) -> Any:
    with asking(lambda _: Reply(body=found)) as (provider, _):
        return provider.statuses([arn(1)])[arn(1)]


@pytest.mark.parametrize(
    "status", ["Submitted", "Validating", "Scheduled", "InProgress", "Stopping", "BrandNew"]
)
def test_a_batch_that_goes_on(status: str):
    found = state_of(job(1, status=status, totalRecordCount=10, processedRecordCount=4))
    assert found.state is BatchState.RUNNING
    assert (found.answered, found.requests) == (4, 10)
    assert found.words == f"{status}, 4 of 10 answered"


@pytest.mark.parametrize("status", ["Completed", "Stopped"])
def test_a_batch_that_has_ended(status: str):
    found = state_of(job(1, status=status))
    assert (found.state, found.expired) == (BatchState.ENDED, False)


def test_a_batch_that_ran_out_of_time_has_ended_with_some_lines():
    found = state_of(job(1, status="PartiallyCompleted"))
    assert (found.state, found.expired) == (BatchState.ENDED, True)


def test_a_batch_that_never_started_has_expired_without_lines(store: tuple[str, Any]):
    expired = job(1, "never-started", "Expired", message="It did not start in time.")
    with asking(lambda _: Reply(body=expired), store[0]) as (provider, _):
        status = provider.statuses([arn(1)])[arn(1)]
        assert (status.state, status.expired) == (BatchState.ENDED, True)
        assert list(provider.results(arn(1))) == []


def test_a_batch_that_failed_says_why():
    status = state_of(job(1, status="Failed", message="Record 3 is not valid JSON."))
    assert (status.state, status.account) == (BatchState.FAILED, False)
    assert status.words == "Failed: Record 3 is not valid JSON."


@pytest.mark.parametrize(
    "message",
    [
        "Access denied when trying to read s3://archive",
        "The number of records is below the minimum number of records required.",
        "Your account has exceeded its quota for this model.",
    ],
)
def test_a_batch_that_failed_for_the_accounts_reasons(message: str):
    assert state_of(job(1, status="Failed", message=message)).account


def test_results_of_a_forgotten_batch_are_an_error_and_not_the_accounts():
    gone = error(404, "ResourceNotFoundException")
    with asking(lambda _: gone) as (provider, _), pytest.raises(ProviderError) as caught:
        list(provider.results(arn(1)))
    assert not isinstance(caught.value, Refused)


def test_a_thousand_batches_take_one_call():
    with asking(listing(*(job(number) for number in range(1000)))) as (provider, server):
        ids = [arn(number) for number in range(1000)]
        assert provider.statuses(ids).keys() == set(ids)
        assert len(server.asked) == 1


def test_results_are_the_records_of_all_output_files(store: tuple[str, Any]):
    url, client = store
    folder = f"recipes/with-results/output/{1:012}/"
    client.put_object(
        Bucket=BUCKET, Key=f"recipes/with-results/output/{2:012}/input.jsonl.out", Body=b"other"
    )
    mark = "\u2028\u2029\x85\r\n"
    row = {"recordId": "a", "modelInput": {"x": 1}, "modelOutput": {"text": mark}}
    first = json.dumps(row, ensure_ascii=False).encode() + b"\n\xff\xfe\nnull\n"
    client.put_object(Bucket=BUCKET, Key=folder + "input.jsonl.out", Body=first)
    client.put_object(Bucket=BUCKET, Key=folder + "more.jsonl.out", Body=b'{"recordId":"b"}')
    client.put_object(Bucket=BUCKET, Key=folder + "manifest.json.out", Body=b'{"total":1}')
    done = job(1, "with-results", "PartiallyCompleted")
    with asking(lambda _: Reply(body=done), url) as (provider, _):
        lines = list(provider.results(arn(1)))
    assert json.loads(lines[0]) == {"recordId": "a", "modelOutput": {"text": mark}}
    assert lines[1:] == [b"\xff\xfe", b"null", b'{"recordId":"b"}']


def test_results_that_cannot_be_reached_are_an_error(store: tuple[str, Any]):
    done = job(1, status="Completed")
    done["outputDataConfig"] = {"s3OutputDataConfig": {"s3Uri": "s3://no-such-bucket/x/"}}
    with asking(lambda _: Reply(body=done), store[0]) as (provider, _), pytest.raises(Refused):
        list(provider.results(arn(1)))


def test_a_fetch_that_breaks_off_is_an_error():
    done = job(1, status="Completed")
    listed = (
        b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        b"<IsTruncated>false</IsTruncated><Contents><Key>a.jsonl.out</Key></Contents>"
        b"</ListBucketResult>"
    )

    def answer(asked: Asked) -> Reply:
        if "list-type" in asked.path:
            return Reply(body=listed, headers={"Content-Type": "application/xml"})
        if asked.path.startswith(f"/{BUCKET}/"):
            return Reply(body=b'{"recordId":"a"}\n{"record', headers={"Content-Length": "1000"})
        return Reply(body=done)

    with asking(answer, CLIENTS[0].server.url) as (provider, _), pytest.raises(ProviderError):
        list(provider.results(arn(1)))


def test_a_batch_is_stopped():
    with asking(lambda _: Reply()) as (provider, server):
        provider.cancel(arn(1))
        assert unquote(server.paths("POST")[0]) == f"/model-invocation-job/{arn(1)}/stop"


@pytest.mark.parametrize(
    ("refusal", "stands"),
    [
        (error(409, "ConflictException"), Reply(body=job(1, status="Completed"))),
        (error(400, "ValidationException"), Reply(body=job(1, status="Stopped"))),
        (error(404, "ResourceNotFoundException"), error(404, "ResourceNotFoundException")),
    ],
)
def test_stopping_what_has_ended_is_no_error(refusal: Reply, stands: Reply):
    with asking(lambda asked: stands if asked.method == "GET" else refusal) as (provider, _):
        provider.cancel(arn(1))


def test_a_stop_that_fails_while_the_batch_goes_on_is_an_error():
    running, refusal = Reply(body=job(1)), error(400, "ValidationException", "Not now.")
    with (
        asking(lambda asked: running if asked.method == "GET" else refusal) as (provider, _),
        pytest.raises(ProviderError, match="Not now"),
    ):
        provider.cancel(arn(1))

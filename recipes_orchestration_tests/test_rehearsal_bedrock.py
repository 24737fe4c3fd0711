"""The rehearsed Bedrock, asked through boto3 over HTTP, with moto's S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from recipes_orchestration.rehearsal import CancelLines, Rehearsal, Script

MODEL = "amazon.nova-lite-v1:0"
ROLE = "arn:aws:iam::123456789012:role/batch"
FEW = {"min_records": 1}


@pytest.fixture
def session(rehearsal: Rehearsal) -> Session:
    rehearsal.script("bedrock", Script.model_validate(FEW))
    return Session()


def opened(session: Session, service: str) -> Iterator[Any]:
    client: Any = session.client(service, config=Config(retries={"total_max_attempts": 1}))  # pyright: ignore[reportCallIssue, reportArgumentType]
    yield client
    client.close()


@pytest.fixture
def bedrock(session: Session) -> Iterator[Any]:
    yield from opened(session, "bedrock")


@pytest.fixture
def runtime(session: Session) -> Iterator[Any]:
    yield from opened(session, "bedrock-runtime")


@pytest.fixture
def s3(session: Session) -> Iterator[Any]:
    yield from opened(session, "s3")


def messages(number: int) -> Any:
    return [{"role": "user", "content": [{"text": f"page {number}"}]}]


def job(s3: Any, count: int = 3, **given: Any) -> dict[str, Any]:
    """The parameters of a job whose input lies in S3."""
    records = [
        {"recordId": f"id{n}", "modelInput": {"messages": messages(n)}} for n in range(count)
    ]
    body = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    s3.put_object(Bucket="rehearsal", Key="in/pages.jsonl", Body=body)
    return {
        "jobName": "ours-1",
        "roleArn": ROLE,
        "modelId": MODEL,
        "modelInvocationType": "Converse",
        "inputDataConfig": {"s3InputDataConfig": {"s3Uri": "s3://rehearsal/in/pages.jsonl"}},
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": "s3://rehearsal/out/"}},
        **given,
    }


def status(bedrock: Any, arn: str) -> str:
    return bedrock.get_model_invocation_job(jobIdentifier=arn)["status"]


def output(s3: Any, arn: str, name: str = "pages.jsonl.out") -> bytes:
    key = f"out/{arn.rpartition('/')[2]}/{name}"
    return s3.get_object(Bucket="rehearsal", Key=key)["Body"].read()


def records(s3: Any, arn: str) -> list[Any]:
    return [json.loads(each) for each in output(s3, arn).split(b"\n") if each]


def test_a_job_answers_as_plain_calls_do(bedrock: Any, runtime: Any, s3: Any):
    arn = bedrock.create_model_invocation_job(**job(s3))["jobArn"]
    assert status(bedrock, arn) == "Completed"
    plain = [runtime.converse(modelId=MODEL, messages=messages(n)) for n in range(3)]
    found = records(s3, arn)
    assert [each["recordId"] for each in found] == ["id0", "id1", "id2"]
    for batched, each in zip(found, plain, strict=True):
        assert batched["modelInput"]["messages"]
        assert batched["modelOutput"]["output"] == each["output"]
        assert batched["modelOutput"]["usage"] == each["usage"]
    manifest = json.loads(output(s3, arn, "manifest.json.out"))
    assert (manifest["totalRecordCount"], manifest["errorRecordCount"]) == (3, 0)


def test_invoke_model_answers_in_the_models_own_shape(runtime: Any):
    anthropic = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}
    arn = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude"
    said = runtime.invoke_model(modelId=arn, body=json.dumps(anthropic))
    assert json.loads(said["body"].read())["type"] == "message"
    titan = json.dumps({"inputText": "page", "dimensions": 8})
    said = runtime.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=titan)
    assert len(json.loads(said["body"].read())["embedding"]) == 8


def test_its_life_is_submitted_to_completed(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    rehearsal.script("bedrock", Script(polls=2, min_records=1))
    arn = bedrock.create_model_invocation_job(**job(s3))["jobArn"]
    assert [status(bedrock, arn) for _ in range(3)] == ["Validating", "InProgress", "Completed"]


def test_a_token_that_was_used_gives_the_same_job(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    given = job(s3, clientRequestToken="once")
    first, second = (bedrock.create_model_invocation_job(**given)["jobArn"] for _ in range(2))
    assert first == second
    assert len(rehearsal.counts("bedrock")["batches"]) == 1
    with pytest.raises(bedrock.exceptions.ConflictException):
        bedrock.create_model_invocation_job(**{**given, "jobName": "other"})


def test_jobs_are_found_by_name_time_and_status(bedrock: Any, s3: Any):
    for name in ("ours-1", "ours-2", "others"):
        bedrock.create_model_invocation_job(**job(s3, jobName=name))

    def names(**given: Any) -> list[str]:
        found = bedrock.list_model_invocation_jobs(**given)["invocationJobSummaries"]
        return [each["jobName"] for each in found]

    assert names(nameContains="ours") == ["ours-2", "ours-1"]
    assert names(submitTimeAfter=datetime.now(UTC) + timedelta(minutes=1)) == []
    assert len(names(submitTimeAfter=datetime.now(UTC) - timedelta(minutes=1))) == 3
    assert len(names(statusEquals="Completed")) == 3
    page = bedrock.list_model_invocation_jobs(maxResults=2)
    assert names(maxResults=2, nextToken=page["nextToken"]) == ["ours-1"]


def test_too_few_records_fail_a_job(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    rehearsal.script("bedrock", Script())
    arn = bedrock.create_model_invocation_job(**job(s3, 99))["jobArn"]
    found = bedrock.get_model_invocation_job(jobIdentifier=arn)
    assert found["status"] == "Failed"
    assert "less records (99) than the required minimum of: 100" in found["message"]


def test_errors_are_in_the_output(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    rehearsal.script("bedrock", Script(error_lines=1, error_message="Sorry", min_records=1))
    arn = bedrock.create_model_invocation_job(**job(s3))["jobArn"]
    found = bedrock.get_model_invocation_job(jobIdentifier=arn)
    assert (found["status"], found["errorRecordCount"]) == ("Completed", 1)
    assert records(s3, arn)[0]["error"] == {"errorCode": 500, "errorMessage": "Sorry"}


def test_a_job_out_of_time_is_partially_completed(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    rehearsal.script("bedrock", Script(expire_after=2, min_records=1))
    arn = bedrock.create_model_invocation_job(**job(s3))["jobArn"]
    assert status(bedrock, arn) == "PartiallyCompleted"
    assert len(records(s3, arn)) == 2


def test_a_job_that_never_began_expires_without_output(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    rehearsal.script("bedrock", Script(expire_after=0, polls=1, min_records=1))
    arn = bedrock.create_model_invocation_job(**job(s3))["jobArn"]
    assert [status(bedrock, arn) for _ in range(2)] == ["Scheduled", "Expired"]
    with pytest.raises(s3.exceptions.NoSuchKey):
        output(s3, arn)


def test_a_stopped_job_has_what_was_answered(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    lines = CancelLines(output=1, error=1)
    rehearsal.script("bedrock", Script(never_ends=True, cancel_lines=lines, min_records=1))
    arn = bedrock.create_model_invocation_job(**job(s3))["jobArn"]
    bedrock.stop_model_invocation_job(jobIdentifier=arn)
    assert status(bedrock, arn) == "Stopped"
    assert ["error" in each for each in records(s3, arn)] == [False, True]
    with pytest.raises(bedrock.exceptions.ConflictException):
        bedrock.stop_model_invocation_job(jobIdentifier=arn)


@pytest.mark.parametrize(
    ("script", "stop"),
    [
        (Script(truncation_share=1), "max_tokens"),
        (Script(thinking_only=1), "max_tokens"),
        (Script(filtered_share=1), "content_filtered"),
        (Script(refusal_share=1), "guardrail_intervened"),
        (Script(empty_share=1), "end_turn"),
    ],
)
def test_answers_that_are_none(rehearsal: Rehearsal, runtime: Any, script: Script, stop: str):
    rehearsal.script("bedrock", script)
    assert runtime.converse(modelId=MODEL, messages=messages(0))["stopReason"] == stop


def test_a_schema_is_answered_with_an_instance(runtime: Any):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    structure = {"jsonSchema": {"name": "x", "schema": json.dumps(schema)}}
    said = runtime.converse(
        modelId=MODEL,
        messages=messages(0),
        outputConfig={"textFormat": {"type": "json_schema", "structure": structure}},
    )
    assert said["output"]["message"]["content"] == [{"text": '{"n":0}'}]


def test_a_lost_reply_was_accepted_all_the_same(rehearsal: Rehearsal, bedrock: Any, s3: Any):
    rehearsal.script("bedrock", Script(lose_reply=1, min_records=1))
    given = job(s3, clientRequestToken="once")
    with pytest.raises(ConnectionClosedError):
        bedrock.create_model_invocation_job(**given)
    bedrock.create_model_invocation_job(**given)
    assert len(rehearsal.counts("bedrock")["batches"]) == 1


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ("credit", "AccessDeniedException"),
        ("enqueued_tokens", "ServiceQuotaExceededException"),
        ("key", "UnrecognizedClientException"),
        ("model", "ValidationException"),
        ("rate", "ThrottlingException"),
    ],
)
def test_a_create_is_refused(rehearsal: Rehearsal, bedrock: Any, s3: Any, refusal: Any, kind: str):
    rehearsal.script("bedrock", Script(refuse_create=refusal))
    with pytest.raises(ClientError) as refused:
        bedrock.create_model_invocation_job(**job(s3))
    assert refused.value.response["Error"]["Code"] == kind  # pyright: ignore[reportTypedDictNotRequiredAccess]


def test_an_unknown_model_and_job_and_a_bad_key_are_refused(
    session: Session, bedrock: Any, runtime: Any, s3: Any, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(runtime.exceptions.ValidationException, match="identifier is invalid"):
        runtime.converse(modelId="unknown-1", messages=messages(0))
    with pytest.raises(bedrock.exceptions.ResourceNotFoundException):
        status(bedrock, "abcdefghijkl")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "badkey")
    for client in opened(Session(), "bedrock"):
        with pytest.raises(ClientError, match="security token"):
            client.list_model_invocation_jobs()


def test_every_input_file_has_its_output_file(bedrock: Any, s3: Any):
    given = job(s3)
    more = json.dumps({"modelInput": {"messages": messages(9)}}).encode()
    s3.put_object(Bucket="rehearsal", Key="in/more.jsonl", Body=more)
    given["inputDataConfig"]["s3InputDataConfig"]["s3Uri"] = "s3://rehearsal/in/"
    arn = bedrock.create_model_invocation_job(**given)["jobArn"]
    status(bedrock, arn)
    assert len(records(s3, arn)) == 3
    assert output(s3, arn, "more.jsonl.out").count(b"\n") == 1

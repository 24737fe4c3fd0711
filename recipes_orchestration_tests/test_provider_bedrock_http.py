"""Bedrock's client over HTTP, through boto3, against answers that each test writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.bedrock_batches import job_name
from recipes_orchestration.providers.bedrock_provider import BedrockProvider
from recipes_orchestration.providers.provider import BatchState, Call, Group
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Text
from recipes_orchestration_tests.answering_server import (
    LOST,
    AnsweringServer,
    Asked,
    Reply,
    running_server,
)
from recipes_orchestration_tests.bucket_server import BUCKET, running_bucket

MODEL = "us.anthropic.claude-sonnet-4-6"
GROUP = Group("converse", MODEL)
ROLE = "arn:aws:iam::111122223333:role/batch"
SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "yes"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATHEKEYOFTHISTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "TheSecretOfThisTest")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def store() -> Generator[tuple[str, Any]]:
    with running_bucket() as (url, client):
        yield url, client


class Clients:
    """Providers of one server, kept for the tests that ask for the same: boto3 starts slowly."""

    def __init__(self, server: AnsweringServer) -> None:
        self.server = server
        self.kept: dict[str, BedrockProvider] = {}

    def provider(self, settings: dict[str, Any]) -> BedrockProvider:
        key = repr(sorted(settings.items()))
        if key not in self.kept:
            given: dict[str, Any] = {
                "base_url": self.server.url,
                "runtime_url": self.server.url,
                "bucket": BUCKET,
                "role_arn": ROLE,
                "region": "us-east-1",
                "timeout": 10.0,
            }
            self.kept[key] = BedrockProvider(**{**given, **settings})
        return self.kept[key]


CLIENTS: list[Clients] = []


@pytest.fixture(scope="module", autouse=True)
def clients() -> Generator[None]:
    with running_server(lambda _: Reply()) as server:
        CLIENTS.append(Clients(server))
        yield
        for provider in CLIENTS.pop().kept.values():
            provider.close()


@contextmanager
def asking(
    answer: Callable[[Asked], Reply], s3_url: str | None = None, **settings: Any
) -> Generator[tuple[BedrockProvider, AnsweringServer]]:
    server = CLIENTS[0].server
    server.answer = answer
    server.asked.clear()
    yield CLIENTS[0].provider({"s3_url": s3_url, **settings}), server


def error(status: int, code: str, message: str = "no") -> Reply:
    return Reply(status, {"message": message}, {"x-amzn-ErrorType": code})


def arn(number: int) -> str:
    return f"arn:aws:bedrock:us-east-1:111122223333:model-invocation-job/{number:012}"


def job(number: int, name: str = "job", status: str = "InProgress", **more: Any) -> dict[str, Any]:
    place = f"s3://{BUCKET}/recipes/{name}"
    return {
        "jobArn": arn(number),
        "jobName": name,
        "modelId": MODEL,
        "roleArn": ROLE,
        "status": status,
        "submitTime": f"2026-11-29T12:{number % 60:02}:00Z",
        "inputDataConfig": {"s3InputDataConfig": {"s3Uri": f"{place}/input.jsonl"}},
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"{place}/output/"}},
        **more,
    }


def listing(*jobs: Any) -> Callable[[Asked], Reply]:
    return lambda _: Reply(body={"invocationJobSummaries": list(jobs)})


def query_of(asked: Asked) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(asked.path).query).items()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b'{"recordId":"a","modelInput":{}}\n')
    return path


MADE = Reply(body={"jobArn": arn(1)})


def test_a_batch_is_an_object_and_a_job(file: Path, store: tuple[str, Any]):
    with asking(lambda _: MADE, store[0]) as (provider, server):
        assert provider.submit("our-name-1", GROUP, file, ["a"]) == arn(1)
    body = server.asked[0].json
    token = body.pop("clientRequestToken")
    assert body == {
        "jobName": "our-name-1",
        "roleArn": ROLE,
        "modelId": MODEL,
        "modelInvocationType": "Converse",
        "timeoutDurationInHours": 24,
        "inputDataConfig": {
            "s3InputDataConfig": {
                "s3InputFormat": "JSONL",
                "s3Uri": f"s3://{BUCKET}/recipes/our-name-1/input.jsonl",
            }
        },
        "outputDataConfig": {
            "s3OutputDataConfig": {"s3Uri": f"s3://{BUCKET}/recipes/our-name-1/output/"}
        },
    }
    assert token.isalnum()
    stored = store[1].get_object(Bucket=BUCKET, Key="recipes/our-name-1/input.jsonl")["Body"]
    with stored:
        assert stored.read() == file.read_bytes()


def test_the_same_name_has_the_same_token(file: Path, store: tuple[str, Any]):
    with asking(lambda _: MADE, store[0]) as (provider, server):
        for name in ("one", "one", "two"):
            provider.submit(name, GROUP, file, ["a"])
    tokens = [each.json["clientRequestToken"] for each in server.asked]
    assert tokens[0] == tokens[1] != tokens[2]


def test_vectors_are_a_job_of_invoke_model(file: Path, store: tuple[str, Any]):
    with asking(lambda _: MADE, store[0], timeout_hours=500, prefix="/a/b/") as (provider, server):
        provider.submit("one", Group("invoke", "amazon.titan-embed-text-v2:0"), file, ["a"])
    body = server.asked[0].json
    assert body["modelInvocationType"] == "InvokeModel"
    assert body["timeoutDurationInHours"] == 168
    assert body["inputDataConfig"]["s3InputDataConfig"]["s3Uri"].startswith(f"s3://{BUCKET}/a/b/")


@pytest.mark.parametrize(
    "name", ["vol 1/p.0001ä.jpg", "x" * 300, "-a", "a.", "日本", "a", "", "letters-1891/0001"]
)
def test_any_name_becomes_the_name_of_a_job(name: str):
    import re

    # botocore 1.43's pattern of ModelInvocationJobName.
    pattern = r"[a-zA-Z0-9]{1,63}(-*[a-zA-Z0-9\+\-\.]){0,63}"
    assert re.fullmatch(pattern, job_name(name))
    assert len(job_name(name)) <= 63
    assert job_name(name) != job_name(name + "x")


@pytest.mark.parametrize(
    "create",
    [
        error(500, "InternalServerException"),
        error(503, "ServiceUnavailableException"),
        error(409, "ConflictException"),
        LOST,
        Reply(body=b"<html>"),
        Reply(body={}),
    ],
)
def test_a_create_without_a_clear_answer_is_made_once_and_unknown(
    file: Path, store: tuple[str, Any], create: Reply
):
    with asking(lambda _: create, store[0]) as (provider, server):
        with pytest.raises(ProviderError) as caught:
            provider.submit("one", GROUP, file, ["a"])
        assert not isinstance(caught.value, Refused)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("create", "account", "wait"),
    [
        (error(400, "ValidationException", "The S3 URI is malformed."), False, None),
        (
            error(400, "ValidationException", "The provided model identifier is invalid."),
            True,
            None,
        ),
        (error(403, "AccessDeniedException"), True, None),
        (error(403, "UnrecognizedClientException"), True, None),
        (error(404, "ResourceNotFoundException"), True, None),
        (error(400, "ServiceQuotaExceededException", "too many jobs"), True, 600),
        (error(429, "ThrottlingException", "Too many requests"), True, 60),
    ],
)
def test_a_create_that_is_refused(
    file: Path, store: tuple[str, Any], create: Reply, account: bool, wait: float | None
):
    with asking(lambda _: create, store[0]) as (provider, server):
        with pytest.raises(Refused) as caught:
            provider.submit("one", GROUP, file, ["a"])
        assert len(server.asked) == 1
    assert (caught.value.account, caught.value.retry_after) == (account, wait)


def test_a_bucket_that_is_not_there_is_refused_before_a_job_is_made(
    file: Path, store: tuple[str, Any]
):
    with asking(lambda _: MADE, store[0], bucket="no-such-bucket") as (provider, server):
        with pytest.raises(Refused) as caught:
            provider.submit("one", GROUP, file, ["a"])
        assert server.asked == []
    assert caught.value.account


@pytest.mark.parametrize("missing", ["bucket", "role_arn"])
def test_without_a_bucket_or_a_role_nothing_is_sent(file: Path, missing: str):
    with asking(lambda _: MADE, **{missing: None}) as (provider, server):
        with pytest.raises(Refused, match="`bucket` and `role_arn`"):
            provider.submit("one", GROUP, file, ["a"])
        assert server.asked == []


def test_without_credentials_nothing_is_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with asking(lambda _: Reply(), timeout=9) as (provider, server):
        with pytest.raises(Refused, match="credentials") as caught:
            provider.plain(Call("bedrock", GROUP, b"{}"))
        assert server.asked == []
    assert caught.value.account


def test_a_key_is_in_no_message():
    words = "The canonical string x-amz-security-token:SECRETTOKEN of AKIATHEKEYOFTHISTEST is wrong"
    refusal = error(403, "InvalidSignatureException", words)
    with asking(lambda _: refusal) as (provider, _), pytest.raises(Refused) as caught:
        provider.plain(Call("bedrock", GROUP, b"{}"))
    assert "SECRETTOKEN" not in str(caught.value)
    assert "AKIA" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_batch_is_found_by_its_whole_name():
    answer = listing(job(3, "our-name-2"), job(2, "our-name"), job(1, "not-our-name"))
    with asking(answer) as (provider, server):
        assert provider.find("our-name", ["a"], SINCE, []) == arn(2)
        assert provider.find("no-name", ["a"], SINCE, []) is None
    query = query_of(server.asked[0])
    assert query["nameContains"] == "our-name"
    assert query["submitTimeAfter"] == "2026-11-29T06:00:00Z"


def test_the_oldest_of_a_name_wins():
    with asking(listing(job(3, "our-name"), job(2, "our-name"))) as (provider, _):
        assert provider.find("our-name", ["a"], SINCE, []) == arn(2)
        assert provider.find("our-name", ["a"], SINCE, [arn(2)]) == arn(3)


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


def test_a_batch_that_bedrock_has_forgotten():
    with asking(lambda _: error(404, "ResourceNotFoundException")) as (provider, _):
        assert provider.statuses([arn(1)])[arn(1)].state is BatchState.FORGOTTEN


def test_a_404_that_is_not_amazons_own_forgets_no_batch():
    gateway = Reply(404, b"<html>no such page</html>")
    with asking(lambda _: gateway) as (provider, _), pytest.raises(ProviderError):
        provider.statuses([arn(1)])


def test_results_of_a_forgotten_batch_are_an_error_and_not_the_accounts():
    gone = error(404, "ResourceNotFoundException")
    with asking(lambda _: gone) as (provider, _), pytest.raises(ProviderError) as caught:
        list(provider.results(arn(1)))
    assert not isinstance(caught.value, Refused)


def test_an_id_that_is_no_job_is_forgotten():
    with asking(lambda _: Reply()) as (provider, server):
        assert provider.statuses(["batch_1"])["batch_1"].state is BatchState.FORGOTTEN
        assert server.asked == []


def test_a_thousand_batches_take_one_call():
    with asking(listing(*(job(number) for number in range(1000)))) as (provider, server):
        ids = [arn(number) for number in range(1000)]
        assert provider.statuses(ids).keys() == set(ids)
        assert len(server.asked) == 1


def test_a_batch_that_the_list_does_not_name_is_asked_for():
    def answer(asked: Asked) -> Reply:
        if "model-invocation-jobs" in asked.path:
            return Reply(body={"invocationJobSummaries": [job(1), job(2)]})
        return error(404, "ResourceNotFoundException")

    with asking(answer) as (provider, _):
        statuses = provider.statuses([arn(1), arn(9), arn(2)])
    assert statuses[arn(9)].state is BatchState.FORGOTTEN
    assert statuses[arn(1)].state is BatchState.RUNNING


def test_states_are_asked_for_again_after_an_error_of_the_server():
    replies = iter([error(503, "ServiceUnavailableException"), Reply(body=job(1))])
    with asking(lambda _: next(replies)) as (provider, server):
        assert provider.statuses([arn(1)])[arn(1)].state is BatchState.RUNNING
        assert len(server.asked) == 2


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


@pytest.mark.parametrize(
    "model", [MODEL, f"arn:aws:bedrock:us-east-1:111122223333:inference-profile/{MODEL}"]
)
def test_a_plain_call_sends_the_bytes_of_the_body(model: str):
    ask = Ask((Text("x\u2028y Übung"), Picture(b"\xff\xd8", "image/jpeg")), max_tokens=10)
    with asking(lambda _: Reply(body=CONVERSED)) as (provider, server):
        call = provider.call(ask, model)
        status, body = provider.plain(call)
    assert (status, json.loads(body)) == (200, CONVERSED)
    assert server.asked[0].body == call.body
    assert unquote(server.asked[0].path) == f"/model/{model}/converse"
    assert server.asked[0].headers["content-type"] == "application/json"


def test_a_plain_vector_goes_to_its_own_route():
    answer = {"embedding": [0.5], "inputTextTokenCount": 1}
    with asking(lambda _: Reply(body=answer)) as (provider, server):
        call = provider.call(EmbedAsk("a"), "amazon.titan-embed-text-v2:0")
        assert json.loads(provider.plain(call)[1]) == answer
    assert unquote(server.paths()[0]) == "/model/amazon.titan-embed-text-v2:0/invoke"
    assert server.asked[0].body == call.body


@pytest.mark.parametrize("group", [GROUP, Group("invoke", MODEL)])
@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "ValidationException", "Could not process image"),
        error(408, "ModelTimeoutException", "took too long"),
        error(424, "ModelErrorException", "failed"),
    ],
)
def test_a_page_that_is_refused_is_an_answer(group: Group, refusal: Reply):
    with asking(lambda _: refusal) as (provider, server):
        status, body = provider.plain(Call("bedrock", group, b"{}"))
        assert len(server.asked) == 1
    assert (status, json.loads(body)) == (refusal.status, refusal.body)


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "ValidationException", "The provided model identifier is invalid."),
        error(403, "AccessDeniedException", "You don't have access to the model"),
        error(404, "ResourceNotFoundException", "gone"),
        error(400, "ServiceQuotaExceededException", "quota"),
    ],
)
def test_a_plain_call_that_the_account_is_to_blame_for(refusal: Reply):
    with asking(lambda _: refusal) as (provider, _), pytest.raises(Refused) as caught:
        provider.plain(Call("bedrock", GROUP, b"{}"))
    assert caught.value.account


def test_a_plain_call_is_made_again_after_an_error_of_the_server():
    replies = iter([error(503, "ServiceUnavailableException"), Reply(body=CONVERSED)])
    with asking(lambda _: next(replies)) as (provider, server):
        assert provider.plain(Call("bedrock", GROUP, b'{"a":1}'))[0] == 200
        assert [each.body for each in server.asked] == [b'{"a":1}'] * 2


@pytest.mark.parametrize(
    "reply",
    [
        error(503, "ServiceUnavailableException"),
        error(429, "ThrottlingException", "Too many requests"),
        LOST,
    ],
)
def test_a_plain_call_that_never_got_through_is_unknown(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
):
    from recipes_orchestration.providers import bedrock_aws

    # One try, where a test would wait for the SDK's pauses between its five.
    monkeypatch.setattr(bedrock_aws.Aws._client, "__defaults__", (1,))
    with (
        asking(lambda _: reply, timeout=8) as (provider, _),
        pytest.raises(ProviderError) as caught,
    ):
        provider.plain(Call("bedrock", GROUP, b"{}"))
    assert not isinstance(caught.value, Refused)


def test_eight_threads_get_each_its_own_answer():
    with asking(lambda asked: Reply(body={"echo": asked.json})) as (provider, _):
        calls = [Call("bedrock", GROUP, json.dumps({"n": n}).encode()) for n in range(80)]
        with ThreadPoolExecutor(8) as pool:
            answers = [json.loads(body)["echo"]["n"] for _, body in pool.map(provider.plain, calls)]
    assert answers == list(range(80))

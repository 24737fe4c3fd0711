"""What Anthropic answers: result lines, messages, and whether the account is to blame."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.anthropic_provider import AnthropicProvider
from recipes_orchestration.providers.provider import Group, Line, LineKind
from recipes_orchestration.steps.ask import Answer, Stop, Usage

PROVIDER = AnthropicProvider()
GROUP = Group("/v1/messages", "claude-sonnet-4-6")
TEXT = {"type": "text", "text": "Dear Anna"}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def message(
    content: list[Any] | None = None, stop: str = "end_turn", **more: Any
) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "model": "claude-sonnet-4-6",
        "content": [TEXT] if content is None else content,
        "stop_reason": stop,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }


def answer(content: list[Any] | None = None, stop: str = "end_turn", **more: Any) -> Answer:
    return PROVIDER.answer(GROUP, message(content, stop, **more))


def errored(kind: str, words: str, **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": words, **more}}


def read(result: Any, id: Any = "a1") -> Line | None:
    return PROVIDER.read_line(json.dumps({"custom_id": id, "result": result}).encode())


def errored_line(kind: str, words: str, **more: Any) -> Line:
    line = read({"type": "errored", "error": errored(kind, words, **more)})
    assert line is not None
    assert line.kind is LineKind.ERRORED
    return line


def test_a_complete_answer():
    assert answer() == Answer(
        Stop.COMPLETE, Usage(10, 5), text="Dear Anna", model="claude-sonnet-4-6"
    )


def test_thinking_is_no_part_of_the_text():
    assert answer([THINKING, TEXT]).text == "Dear Anna"


@pytest.mark.parametrize(
    ("content", "stop", "expected"),
    [
        ([TEXT], "stop_sequence", Stop.COMPLETE),
        ([TEXT], "max_tokens", Stop.TRUNCATED),
        ([THINKING], "max_tokens", Stop.TRUNCATED),
        ([], "max_tokens", Stop.TRUNCATED),
        ([TEXT], "model_context_window_exceeded", Stop.TRUNCATED),
        ([], "refusal", Stop.REFUSED),
        ([TEXT], "refusal", Stop.REFUSED),
        ([], "end_turn", Stop.EMPTY),
        ([{"type": "text", "text": " \n"}], "end_turn", Stop.EMPTY),
        ([THINKING], "end_turn", Stop.EMPTY),
        ([TEXT], "pause_turn", Stop.OTHER),
        ([{"type": "tool_use", "name": "search", "input": {}}], "tool_use", Stop.OTHER),
        ([TEXT], "a new reason", Stop.OTHER),
    ],
)
def test_why_a_model_stopped(content: list[Any], stop: str, expected: Stop):
    assert answer(content, stop).stop is expected


def test_a_stop_that_is_not_complete_says_why():
    details = {"type": "refusal", "category": "bio", "explanation": "No."}
    assert answer([], "refusal", stop_details=details).words == "stop_reason refusal: bio: No."


def test_the_input_of_our_tool_is_the_answer():
    use = {"type": "tool_use", "name": "answer", "input": {"name": "Müller"}}
    given = answer([use], "tool_use")
    assert (given.stop, given.text) == (Stop.COMPLETE, '{"name": "Müller"}')


def test_a_wrapped_answer_of_our_tool_is_unwrapped():
    use = {"type": "tool_use", "name": "answer_value", "input": {"value": [1, 2]}}
    assert answer([use], "tool_use").text == "[1, 2]"


def test_a_tool_that_was_cut_off_is_truncated():
    use = {"type": "tool_use", "name": "answer", "input": {"name": "Mül"}}
    assert answer([use], "max_tokens").stop is Stop.TRUNCATED


def test_tokens_from_and_to_a_cache_are_part_of_the_question():
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "output_tokens": 5,
    }
    assert answer(usage=usage).usage == Usage(1110, 5, 100, 1000)


@pytest.mark.parametrize("usage", [None, [], {"input_tokens": -4, "output_tokens": "many"}])
def test_a_usage_that_is_none_counts_nothing(usage: Any):
    assert answer(usage=usage).usage == Usage()


def test_half_a_surrogate_pair_does_not_get_into_a_text():
    line = PROVIDER.read_line(
        b'{"custom_id":"a","result":{"type":"succeeded","message":'
        b'{"content":[{"type":"text","text":"a\\ud800b"}],"stop_reason":"end_turn"}}}'
    )
    assert line is not None
    assert line.response is not None
    assert PROVIDER.answer(GROUP, line.response).text == "a\ufffdb"


@pytest.mark.parametrize("response", [{}, {"content": None}, {"content": "text"}])
def test_what_is_no_message_is_an_error(response: dict[str, Any]):
    with pytest.raises(StepError, match="no content"):
        PROVIDER.answer(GROUP, response)


@pytest.mark.parametrize("content", [[None, 3, "x", [], {}], [{"type": "text", "text": None}]])
def test_blocks_of_another_shape_are_no_text(content: list[Any]):
    assert answer(content).stop is Stop.EMPTY


def test_an_answered_line_holds_the_message():
    assert read({"type": "succeeded", "message": message()}) == Line(
        "a1", LineKind.SUCCEEDED, message()
    )


def test_an_expired_line():
    line = read({"type": "expired"})
    assert line is not None
    assert (line.kind, line.account) == (LineKind.EXPIRED, False)


def test_a_cancelled_line():
    line = read({"type": "canceled"})
    assert line is not None
    assert (line.kind, line.account) == (LineKind.CANCELLED, False)


def test_an_errored_line_keeps_the_providers_words():
    line = errored_line("invalid_request_error", "image: too large")
    assert line.words == "invalid_request_error: image: too large"
    assert not line.account


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        ("authentication_error", "invalid x-api-key"),
        ("permission_error", "Your API key does not have permission to use this resource."),
        ("billing_error", "There is an issue with your billing."),
        ("not_found_error", "model: claude-nonsense"),
        ("invalid_request_error", "You have reached your specified API usage limits."),
        ("invalid_request_error", "Your organization has been disabled."),
    ],
)
def test_errors_that_are_the_accounts(kind: str, words: str):
    assert errored_line(kind, words).account


def test_an_error_code_tells_the_account_too():
    details = {"error_code": "enforced_spend_limit_reached"}
    assert errored_line("rate_limit_error", "Slow down.", details=details).account


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("api_error", "Internal server error"),
        ("overloaded_error", "Overloaded"),
        ("rate_limit_error", "Number of requests exceeds the rate limit"),
        ("invalid_request_error", "messages: at least one message is required"),
        ("invalid_request_error", "Output blocked by content filtering policy"),
        ("not_found_error", "File not found: file_123"),
    ],
)
def test_errors_that_are_not_the_accounts(kind: str, words: str):
    assert not errored_line(kind, words).account


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b'{"custom_id":"a"',
        b'{"custom_id":"a","result":null}',
        b'{"custom_id":"a","result":{"type":"succeeded"}}',
        b'{"custom_id":"a","result":{"type":"succeeded","message":[]}}',
        b'{"custom_id":"a","result":{"type":"never heard of"}}',
        b'{"custom_id":"a","result":{"type":["succeeded"]}}',
        b'{"custom_id":7,"result":{"type":"expired"}}',
        b'{"custom_id":"","result":{"type":"expired"}}',
        b'{"custom_id":"a/../b","result":{"type":"expired"}}',
        b'{"custom_id":"a\\n","result":{"type":"expired"}}',
        b'{"result":{"type":"expired"}}',
        b'{"custom_id":"\xff\xfe","result":{"type":"expired"}}',
        b"[" * 100_000,
        b"\x00\x00\x00",
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_a_broken_line_is_none(line: bytes):
    assert PROVIDER.read_line(line) is None


@pytest.mark.parametrize("error", [None, [], {}, {"error": None}, {"error": {"message": 4}}])
def test_an_error_without_words_is_still_one(error: Any):
    line = read({"type": "errored", "error": error})
    assert line is not None
    assert line.words == "an error without words"


def test_a_line_may_end_in_a_carriage_return():
    assert PROVIDER.read_line(b'{"custom_id":"a","result":{"type":"expired"}}\r') is not None


def test_a_plain_answer_makes_the_line_of_a_batch():
    line = PROVIDER.result_line("a1", 200, json.dumps(message(), indent=1).encode())
    assert b"\n" not in line
    assert PROVIDER.read_line(line) == read({"type": "succeeded", "message": message()})


def test_a_plain_error_makes_the_line_of_a_batch():
    error = errored("invalid_request_error", "image: too large")
    line = PROVIDER.result_line("a1", 400, json.dumps(error).encode())
    assert PROVIDER.read_line(line) == read({"type": "errored", "error": error})


@pytest.mark.parametrize("body", [b"<html>", b"", b"null", b"\xff", b"[]"])
@pytest.mark.parametrize("status", [200, 400])
def test_a_plain_answer_that_is_no_json_is_an_error(status: int, body: bytes):
    line = PROVIDER.read_line(PROVIDER.result_line("a1", status, body))
    assert line is not None
    assert line.kind is LineKind.ERRORED
    assert f"HTTP status {status}" in line.words


def test_nothing_like_a_key_is_kept_of_an_errors_words():
    line = errored_line("authentication_error", "wrong key: sk-ant-api03-abcDEF_123")
    assert line.words == "authentication_error: wrong key: [key]"


def test_an_errors_words_are_one_bounded_line():
    line = errored_line("api_error", "a\n\u2028b\x1b[31m" + "c" * 10_000)
    assert line.words.startswith("api_error: a b[31mccc")
    assert len(line.words) < 700

"""A question of words alone is written in a quicker way, and to the same byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.providers import (
    anthropic_calls,
    bedrock_calls,
    gemini_calls,
    openai_calls,
    words_alone,
)
from recipes_orchestration.providers.provider import Call
from recipes_orchestration.steps.ask import Ask, Text

MODEL = "gpt-5-mini"
MAKERS = {
    module.__name__.rpartition(".")[2]: module.make_call
    for module in (anthropic_calls, bedrock_calls, gemini_calls, openai_calls)
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@given(
    text=st.text() | st.text(st.characters(categories=["Cs", "Po", "Zl", "So"])),
    max_tokens=st.integers(1, 9000),
    temperature=st.sampled_from([None, 0, 0.0, 1, 0.5]),
)
def test_the_call_is_the_same_to_the_byte(
    make: Callable[[Ask, str], Call], text: str, max_tokens: int, temperature: float | None
):
    ask = Ask((Text(text),), max_tokens, temperature=temperature)
    quick = make(ask, MODEL)
    with pytest.MonkeyPatch.context() as patch:
        # Asked as a text that is no `Text`, it is written the long way.
        patch.setattr(words_alone, "Text", type("NoText", (), {}))
        assert make(ask, MODEL) == quick

from __future__ import annotations

from typing import Any

import pytest

from recipes_orchestration.errors import ConfigError
from recipes_orchestration.steps.registry import BUILT_IN, load_operation

RIGHT: list[tuple[str, dict[str, Any]]] = [
    *[(name, {}) for name in BUILT_IN],
    ("lines", {"max_side": 960}),
    ("read", {"min_confidence": 0.5}),
    ("read", {"min_confidence": 1}),
    ("names", {"language": "fr"}),
    ("embed", {"dimensions": 64}),
]

WRONG: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("lines", {"maxside": 960}, ("'maxside' is not known", "did you mean 'max_side'")),
    ("lines", {"max_side": 10}, ("max_side: 10 given", "320")),
    ("lines", {"max_side": 100000}, ("max_side: 100000 given", "4000")),
    ("lines", {"max_side": "wide"}, ("max_side: 'wide' given", "integer")),
    ("read", {"min_confidence": 50}, ("min_confidence: 50 given", "1")),
    ("names", {"language": "de"}, ("language: 'de' given", "'en' or 'fr'")),
    ("names", {"lang": "fr"}, ("'lang' is not known", "it takes language")),
    ("embed", {"dimensions": 100}, ("dimensions: 100 given", "64")),
    ("join", {"with": "x"}, ("'with' is not known", "it takes no params")),
    ("text", {"layout": True}, ("'layout' is not known", "it takes no params")),
]


@pytest.mark.parametrize(("name", "params"), RIGHT)
def test_right_params_pass(name: str, params: dict[str, Any]) -> None:
    check = load_operation(name).check
    assert check is not None
    check(params)


@pytest.mark.parametrize(("name", "params", "words"), WRONG)
def test_wrong_params_are_named_with_what_is_allowed(
    name: str, params: dict[str, Any], words: tuple[str, ...]
) -> None:
    check = load_operation(name).check
    assert check is not None
    with pytest.raises(ConfigError) as caught:
        check(params)
    for part in (f"'{name}'", *words):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)

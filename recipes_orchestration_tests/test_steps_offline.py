from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .drawn_pages import LETTER, drawn

# No model may be fetched at run time, and nothing sent: here every connection by Python fails, and
# the home folder, where packages keep what they have fetched or are about to send, starts empty.
PROGRAM = """
import socket, sys

def refuse(*_):
    raise OSError("this test has no network")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.create_connection = socket.getaddrinfo = refuse
from pathlib import Path
from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.registry import load_operation
from recipes_orchestration.steps.step import Context

page = Page("p1.png", "0", "p1.png", None, Path(sys.argv[1]).read_bytes)
needs = {}
for name, params in (("lines", {}), ("read", {}), ("names", {}), ("embed", {}),
                     ("names", {"language": "fr"})):
    operation = load_operation(name)
    model = operation.setup(params)
    needs[name] = operation(page, Context(name, params, dict(needs), model))
print(needs["read"]["text"].count("\\n"), len(needs["embed"]["vector"]))
"""


def test_every_built_in_model_works_offline_and_leaves_the_home_folder_alone(
    tmp_path: Path,
) -> None:
    drawn(LETTER).save(tmp_path / "p1.png")
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "p1.png")],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    assert done.stdout == f"{len(LETTER) - 1} 256\n"
    assert list(home.rglob("*")) == []

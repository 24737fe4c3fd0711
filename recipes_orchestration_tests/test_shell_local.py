"""Commands on the login node itself."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from recipes_orchestration.errors import ConfigError, ProviderError, Unreachable
from recipes_orchestration.places.slurm.shell import LocalShell


def test_arguments_and_input_arrive_as_they_are():
    shell = LocalShell("cluster")
    done = shell.run(["printf", "%s|", "a b", "c'd", "*", "$HOME", ""])
    assert (done.code, done.out) == (0, "a b|c'd|*|$HOME||")
    assert shell.run(["cat"], "first\nlast").out == "first\nlast"


def test_any_exit_code_is_an_answer():
    shell = LocalShell("cluster")
    assert shell.run(["sh", "-c", "echo no >&2; exit 7"]).words == "no"
    assert shell.run(["no-such-command"]).code == 127
    assert shell.run(["sh", "-c", "exit 7"]).words == "it ended with code 7 and said nothing"


def test_commands_speak_english(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert LocalShell("cluster").run(["sh", "-c", "echo $LC_ALL $A"], env={"A": "1"}).out == "C 1\n"


def test_a_command_that_takes_too_long_is_ended_with_its_children():
    shell = LocalShell("cluster")
    with pytest.raises(ProviderError, match=r"took longer than 0\.2 s") as late:
        shell.run(["sh", "-c", "sleep 471.5 & sleep 471.5"], timeout=0.2)
    assert not isinstance(late.value, Unreachable)
    deadline = time.monotonic() + 5
    while any("471.5" in (each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"])):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_no_file_is_copied_on_the_login_node(tmp_path: Path):
    shell = LocalShell("cluster")
    shell.put(tmp_path, str(tmp_path), ["a"])
    shell.get(str(tmp_path), tmp_path, ["a"])
    with pytest.raises(ConfigError, match="is not copied"):
        shell.put(tmp_path, "/elsewhere", ["a"])


def test_a_folder_is_removed_with_what_is_in_it(tmp_path: Path):
    folder = tmp_path / "-rf a 'b"
    (folder / "c").mkdir(parents=True)
    shell = LocalShell("cluster")
    shell.remove(str(folder))
    shell.remove(str(folder))
    assert not folder.exists()

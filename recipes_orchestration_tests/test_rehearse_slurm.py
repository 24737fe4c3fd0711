"""`recipes rehearse-slurm`: a Slurm of one's own, and what a shell and a project are told of it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from recipes_orchestration.cli import app
from recipes_orchestration.commands.exits import UNREACHABLE, WRONG
from recipes_orchestration.rehearsal.slurm_site import (
    PACKAGES,
    SlurmSiteSettings,
    known_site,
    why_not_here,
)

from .command_runs import Ran


def rehearse_slurm(*arguments: str) -> Ran:
    result = CliRunner().invoke(app, ["rehearse-slurm", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder that munge may enter, for a Slurm which is down afterwards."""
    if words := why_not_here(SlurmSiteSettings(login="key")):
        pytest.skip(words)
    with tempfile.TemporaryDirectory(prefix="recipes-slurm-") as path:
        Path(path).chmod(0o755)
        yield path
        if site := known_site(Path(path)):
            site.down()


def test_what_up_prints_lets_a_shell_find_it(folder: str):
    told = rehearse_slurm("up", "--folder", folder)
    assert told.code == 0, told.err
    script = f"{told.out}\nsinfo -h -o '%R %c'"
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=30)
    assert done.stdout == "debug 4\n"


def test_what_up_prints_for_a_project_is_an_entry_that_is_right(folder: str, tmp_path: Path):
    told = rehearse_slurm("up", "--folder", folder, "--ssh")
    entry = yaml.safe_load(told.err.partition("For project.yaml:\n")[2])
    assert entry["places"]["cluster"]["host"] == "mini"
    pages = tmp_path / "pages"
    pages.mkdir()
    (tmp_path / "project.yaml").write_text(
        yaml.safe_dump({"name": "test", "sources": {"letters": {"root": "pages"}}} | entry)
    )
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "texts.yaml").write_text(
        "recipe: texts\nsource: letters\nsteps: [{name: lines, run: lines, place: cluster}]\n"
    )
    checked = CliRunner().invoke(app, ["check", "--project", str(tmp_path)])
    assert checked.exit_code == 0, checked.output


def test_status_tells_what_runs_and_down_ends_it(folder: str):
    up = rehearse_slurm("up", "--folder", folder, "--json").document
    assert up["running"]
    assert rehearse_slurm("status", "--folder", folder, "--json").document == up
    down = rehearse_slurm("down", "--folder", folder, "--json").document
    assert (down["running"], set(down["processes"].values())) == (False, {None})


def test_the_second_factor_is_told_by_its_file_alone(folder: str):
    told = rehearse_slurm("up", "--folder", folder, "--second-factor", "--json")
    password = Path(told.document["password_file"]).read_text()
    assert len(password) > 15
    assert password not in told.out


def test_a_folder_where_none_was_started_is_told(tmp_path: Path):
    told = rehearse_slurm("status", "--folder", str(tmp_path), "--json")
    assert told.code == WRONG
    assert "No Slurm was started" in json.loads(told.out)["error"]


def test_a_folder_that_munge_cannot_enter_is_told(folder: str):
    closed = Path(folder) / "closed"
    closed.mkdir(mode=0o700)
    told = rehearse_slurm("up", "--folder", str(closed / "slurm"))
    assert told.code == UNREACHABLE
    assert "the user munge cannot enter" in told.err


def test_missing_packages_are_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    told = rehearse_slurm("up", "--folder", str(tmp_path / "slurm"))
    assert told.code == WRONG
    assert told.err.count("\n") == 1
    assert f"apt-get install -y --no-install-recommends {PACKAGES}" in told.err

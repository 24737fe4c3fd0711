from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recipes_orchestration.cli import app
from recipes_orchestration.commands.exits import WORDS, exit_code_of
from recipes_orchestration.errors import LedgerError, MissingExtra, NotFound, PlaceError

from .archive import Archive, environment, make_archive
from .command_runs import command, recipes

pytestmark = pytest.mark.usefixtures("restored_path")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return make_archive(tmp_path / "project", ["a/1.png", "a/2.png", "b/1.png"])


def test_help_names_every_exit_code():
    ran = subprocess.run(command("--help"), capture_output=True, text=True, check=True)
    told = " ".join(ran.stdout.split())
    assert all(f"{code} {words}" in told for code, words in WORDS.items())


def test_neither_status_nor_help_imports_dagster(archive: Archive):
    code = (
        "import sys\n"
        "from recipes_orchestration.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'dagster'])"
    )
    for arguments in (["--help"], ["status"]):
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment(archive),
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip().split("\n")[-1] == "[]"


def test_init_writes_a_project_that_check_finds_right(tmp_path: Path):
    runner = CliRunner()
    made = runner.invoke(app, ["init", str(tmp_path / "new"), "--json"])
    assert made.exit_code == 0
    assert str(tmp_path / "new" / "project.yaml") in json.loads(made.stdout)["files"]
    checked = runner.invoke(app, ["check", "--project", str(tmp_path / "new"), "--json"])
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["recipes"]["letters"]["source"] == "letters"
    again = runner.invoke(app, ["init", str(tmp_path / "new")])
    assert again.exit_code == 2
    assert "has a project.yaml already" in again.stderr


def test_check_says_each_mistake_with_its_file_and_line(archive: Archive):
    recipe = archive.folder / "recipes" / "measure.yaml"
    recipe.write_text(recipe.read_text().replace("needs: [size]", "needs: [siez], palce: local"))
    ran = recipes(archive, "check", "--json")
    assert ran.code == 2
    assert not ran.document["ok"]
    assert {(Path(each["file"]).name, each["line"]) for each in ran.document["mistakes"]} == {
        ("measure.yaml", 7)
    }
    assert "Did you mean" in ran.err


def test_an_error_is_a_sentence_with_its_exit_code_and_one_json_document(archive: Archive):
    ran = recipes(archive, "plan", "mesure", "--json")
    assert ran.code == 2
    assert ran.document == {"error": ran.err.strip(), "exit_code": 2}
    assert "Traceback" not in ran.err


def test_an_unknown_option_is_a_wrong_command(archive: Archive):
    assert recipes(archive, "status", "--foldr", "a").code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("x"), 2),
        (MissingExtra("x"), 2),
        (PlaceError("x"), 3),
        (LedgerError("x"), 3),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: int):
    assert exit_code_of(error) == code  # pyright: ignore[reportArgumentType]


def test_a_source_that_is_not_there_ends_with_3(archive: Archive):
    archive.pages.rename(archive.folder / "elsewhere")
    ran = recipes(archive, "discover", "--no-dagster")
    assert ran.code == 3
    assert str(archive.pages) in ran.err


def test_a_ledger_that_cannot_be_opened_ends_with_3(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RECIPES_LEDGER_URL", f"sqlite:///{archive.pages}")
    ran = recipes(archive, "status")
    assert ran.code == 3
    assert ran.err.count("\n") == 1


def test_discover_counts_what_it_found_and_tells_dagster(archive: Archive):
    first = recipes(archive, "discover", "--json").document["sources"][0]
    assert (first["new"], first["files"], first["batches"], first["told"]) == (
        3,
        3,
        ["a/0001", "b/0001"],
        2,
    )
    second = recipes(archive, "discover", "letters", "--json").document["sources"][0]
    assert (second["new"], second["unchanged"], second["told"]) == (0, 3, 0)


def test_doctor_finds_a_sound_project_sound(archive: Archive):
    ran = recipes(archive, "doctor", "--json")
    assert (ran.code, ran.document["ok"]) == (0, True)
    about = {each["about"] for each in ran.document["findings"]}
    assert {"python", "library", "ledger", "dagster", "disk", "source letters"} <= about


def test_doctor_names_every_fault_and_goes_on(archive: Archive):
    archive.pages.rename(archive.folder / "elsewhere")
    (archive.folder / "library").write_text("not a folder")
    ran = recipes(archive, "doctor", "--json")
    wrong = {each["about"] for each in ran.document["findings"] if each["ok"] is False}
    assert ran.code == 1
    assert wrong == {"source letters", "library"}


def test_doctor_on_broken_files_says_what_is_broken(archive: Archive):
    (archive.folder / "project.yaml").write_text("name: [")
    ran = recipes(archive, "doctor")
    assert ran.code == 1
    assert "WRONG  project" in ran.out

"""Every mistake in a project is one message: file, line, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.project import load_project
from recipes_orchestration.yaml_files import ConfigErrors

PROJECT = """\
name: archive
sources:
  letters:
    root: pages
"""
RECIPE = """\
recipe: letters
source: letters
steps:
  - {name: lines, run: lines}
  - {name: read, run: read, needs: [lines]}
"""

Messages = Callable[..., list[str]]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None) -> Messages:
    """The messages for a project whose files differ from a valid one, with its folder left out."""
    monkeypatch.chdir(tmp_path)

    def check(project: str = PROJECT, recipe: str = RECIPE, **others: str) -> list[str]:
        files = {"project.yaml": project, "recipes/letters.yaml": recipe}
        write(tmp_path, files | {f"recipes/{name}.yaml": text for name, text in others.items()})
        with pytest.raises(ConfigErrors) as caught:
            load_project(tmp_path)
        assert str(caught.value) == "\n".join(map(str, caught.value.mistakes))
        return [str(mistake) for mistake in caught.value.mistakes]

    return check


def step(line: str) -> str:
    """The recipe with one more step, at line 6."""
    return f"{RECIPE}  - {line}\n"


def test_the_files_the_mistakes_are_made_in_are_valid(tmp_path: Path, restored_path: None) -> None:
    write(tmp_path, {"project.yaml": PROJECT, "recipes/letters.yaml": RECIPE})
    assert list(load_project(tmp_path).recipes) == ["letters"]


def test_unknown_key_at_the_top_of_a_recipe(messages: Messages) -> None:
    assert messages(recipe=RECIPE + "max_hold: 0.1\n") == [
        'recipes/letters.yaml:6: found the unknown key "max_hold"; allowed: consent, description, '
        'max_held, recipe, source, spend, steps, when. Did you mean "max_held"?'
    ]


def test_unknown_key_at_the_top_of_the_project(messages: Messages) -> None:
    assert messages(project=PROJECT + "librari: x\n") == [
        'project.yaml:5: found the unknown key "librari"; allowed: alerts, ledger, library, '
        "library_storage_options, limits, name, pages_may_leave, places, prices, sources, spend. "
        'Did you mean "library"?'
    ]


def test_unknown_key_in_a_step(messages: Messages) -> None:
    text = RECIPE + "  - name: third\n    run: text\n    neds: [read]\n"
    assert messages(recipe=text) == [
        'recipes/letters.yaml:8: step "third": found the unknown key "neds"; allowed: deadline, '
        "dimensions, image, max_tokens, model, name, needs, on_deadline, params, place, prompt, "
        'run, schema, temperature. Did you mean "needs"?'
    ]


def test_unknown_key_in_a_source(messages: Messages) -> None:
    assert messages(project=PROJECT + "    batchsize: 5\n") == [
        'project.yaml:5: source "letters": found the unknown key "batchsize"; allowed: batch_size, '
        'hidden, root, storage_options. Did you mean "batch_size"?'
    ]


def test_unknown_key_in_a_place(messages: Messages) -> None:
    assert messages(project=PROJECT + "places:\n  local:\n    worker: 2\n") == [
        'project.yaml:7: place "local": found the unknown key "worker"; allowed: workers. '
        'Did you mean "workers"?'
    ]


def test_unknown_key_in_the_limits(messages: Messages) -> None:
    assert messages(project=PROJECT + "limits: {retries: 3}\n") == [
        'project.yaml:5: limits: found the unknown key "retries"; allowed: inline_wait, '
        "land_every_pages, land_every_seconds, max_file_mb, max_pixels, page_timeout, "
        'poll_seconds, tries. Did you mean "tries"?'
    ]


def test_unknown_place_of_a_step(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, run: text, place: locall}")) == [
        'recipes/letters.yaml:6: step "x": place: found "locall"; allowed: anthropic, bedrock, '
        'gemini, hf_jobs, local, openai, same, slurm. Did you mean "local"?'
    ]


def test_unknown_place_in_the_project(messages: Messages) -> None:
    assert messages(project=PROJECT + "places:\n  slrum: {}\n") == [
        'project.yaml:6: places: found the unknown place "slrum" (a name of your own has a kind: '
        "hf_jobs or slurm); allowed: anthropic, bedrock, gemini, hf_jobs, local, openai, slurm. "
        'Did you mean "slurm"?'
    ]


def test_circle_of_needs_names_its_way(messages: Messages) -> None:
    text = RECIPE + (
        "  - {name: a, run: join, needs: [c]}\n"
        "  - {name: b, run: join, needs: [read, a]}\n"
        "  - {name: c, run: join, needs: [b]}\n"
    )
    assert messages(recipe=text) == [
        'recipes/letters.yaml:6: steps need one another in a circle: "a" -> "c" -> "b" -> "a"; '
        "take one of these needs away"
    ]


def test_step_that_needs_itself(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, run: join, needs: [read, x]}")) == [
        'recipes/letters.yaml:6: step "x": needs: found itself; take it away'
    ]


def test_need_that_is_listed_twice(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, run: join, needs: [read, read]}")) == [
        'recipes/letters.yaml:6: step "x": needs: found "read" twice; keep one'
    ]


@pytest.mark.parametrize("need", ["persons", "people/persons", "people.persons"])
def test_need_of_a_step_of_another_recipe(messages: Messages, need: str) -> None:
    people = RECIPE.replace("recipe: letters", "recipe: people").replace("read", "persons")
    people = people.replace("run: persons", "run: read")
    found = messages(recipe=step(f"{{name: x, run: join, needs: [{need!r}]}}"), people=people)
    assert (
        f'recipes/letters.yaml:6: step "x": needs: found "{need}", a step of the recipe "people" '
        "(people.yaml); a step can need steps of its own recipe only; allowed: lines, read"
    ) in found


def test_need_of_a_step_that_is_nowhere(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, run: join, needs: [raed]}")) == [
        'recipes/letters.yaml:6: step "x": needs: found "raed"; allowed: lines, read. '
        'Did you mean "read"?'
    ]


def test_step_without_a_need_that_gives_what_its_operation_takes(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, run: read}")) == [
        'recipes/letters.yaml:6: step "x": needs: found [], but read takes lines; '
        "allowed: one of lines, read"
    ]


def test_duplicate_step_name(messages: Messages) -> None:
    assert messages(recipe=step("{name: Read, run: text}")) == [
        'recipes/letters.yaml:6: found a second step "Read"; line 5 has one already, rename one'
    ]


def test_duplicate_recipe_name_over_two_files(messages: Messages) -> None:
    assert messages(other="\n" + RECIPE) == [
        'recipes/other.yaml:2: recipe: found "letters", which letters.yaml:1 is called already; '
        "rename one"
    ]


def test_duplicate_key(messages: Messages) -> None:
    assert messages(recipe=RECIPE + "source: letters\n") == [
        'recipes/letters.yaml:6: found the key "source" twice; it stands at line 2 already, '
        "keep one"
    ]


@pytest.mark.parametrize(
    "cron",
    ["0 25 * * *", "0 22 * *", "0 22 * * * *", "@daily", "hourly", "0 0 30 2 *", "0 0 * * mox", ""],
)
def test_bad_cron(messages: Messages, cron: str) -> None:
    assert messages(recipe=f'{RECIPE}when: "{cron}"\n') == [
        f'recipes/letters.yaml:6: when: found "{cron}"; allowed: manual, new_pages or a cron line '
        'of five fields (minute hour day month weekday), such as "0 22 * * *"'
    ]


def test_cron_without_quotes_that_yaml_takes_for_an_alias(messages: Messages) -> None:
    assert messages(recipe=RECIPE + "when: * 22 * * *\n") == [
        "recipes/letters.yaml:6: found a value that begins with *; put it in quotes, "
        'such as "* * * * *"'
    ]


def test_unknown_source(messages: Messages) -> None:
    assert messages(recipe=RECIPE.replace("source: letters", "source: leters")) == [
        'recipes/letters.yaml:2: source: found "leters"; allowed: letters. Did you mean "letters"?'
    ]


def test_unknown_operation(messages: Messages) -> None:
    [message] = messages(recipe=step("{name: x, run: embedd, needs: [read]}"))
    assert message.startswith('recipes/letters.yaml:6: step "x": run: found "embedd"; allowed: ')
    assert "module:function" in message
    assert message.endswith('. Did you mean "embed"?')


def test_module_that_is_not_there(messages: Messages) -> None:
    [message] = messages(recipe=step('{name: x, run: "no_such_module_1:f"}'))
    assert message.startswith('recipes/letters.yaml:6: step "x": run: The module of ')
    assert "'no_such_module_1:f'" in message
    assert "was not found" in message


def test_module_that_breaks_on_import(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "broken_steps_1.py").write_text("this is no Python\n")
    [message] = messages(recipe=step('{name: x, run: "broken_steps_1:f"}'))
    assert message.startswith('recipes/letters.yaml:6: step "x": run: The module of ')
    assert "'broken_steps_1:f'" in message
    assert "SyntaxError" in message


def test_params_that_the_operation_refuses(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "checked_steps_1.py").write_text(
        "from recipes_orchestration.errors import ConfigError\n"
        "from recipes_orchestration.steps.step import step\n"
        "def check(params):\n"
        "    raise ConfigError(f'found {sorted(params)}; allowed: nothing')\n"
        "@step(check=check)\n"
        "def f(page, context):\n"
        "    return 1\n"
    )
    text = RECIPE + '  - name: x\n    run: "checked_steps_1:f"\n    params: {colour: 1}\n'
    assert messages(recipe=text) == [
        "recipes/letters.yaml:8: step \"x\": params: found ['colour']; allowed: nothing"
    ]


def test_params_that_a_built_in_operation_refuses(messages: Messages) -> None:
    [message] = messages(recipe=step("{name: x, run: embed, needs: [read], params: {colour: 1}}"))
    assert message.startswith('recipes/letters.yaml:6: step "x": params: ')
    assert "colour" in message


def test_number_written_as_a_word(messages: Messages) -> None:
    assert messages(recipe=RECIPE + 'max_held: "five"\n') == [
        'recipes/letters.yaml:6: max_held: found "five"; allowed: a number from 0 to 1'
    ]


@pytest.mark.parametrize("share", ["1.5", "-0.1"])
def test_share_out_of_range(messages: Messages, share: str) -> None:
    assert messages(recipe=f"{RECIPE}max_held: {share}\n") == [
        f"recipes/letters.yaml:6: max_held: found {share}; allowed: a number from 0 to 1"
    ]


@pytest.mark.parametrize("size", ["0", "-3", "2.5", '"5"', "true", "100001"])
def test_batch_size_that_is_not_a_possible_whole_number(messages: Messages, size: str) -> None:
    assert messages(project=f"{PROJECT}    batch_size: {size}\n") == [
        f'project.yaml:5: source "letters": batch_size: found {size}; '
        "allowed: a whole number from 1 to 100000"
    ]


def test_missing_key_of_a_step(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, needs: [read]}")) == [
        'recipes/letters.yaml:6: step "x": the key "run" is missing; add it'
    ]


def test_missing_keys_of_both_files_are_told_together(messages: Messages) -> None:
    assert messages(project="name: x\n", recipe="recipe: letters\n") == [
        'project.yaml:1: the key "sources" is missing; add it',
        'recipes/letters.yaml:1: the key "source" is missing; add it',
        'recipes/letters.yaml:1: the key "steps" is missing; add it',
    ]


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n"])
def test_empty_file(messages: Messages, text: str) -> None:
    [message] = messages(recipe=text)
    assert message.startswith("recipes/letters.yaml:1: the file is empty; ")


@pytest.mark.parametrize(("text", "found"), [("- a\n- b\n", "a list"), ("letters\n", "one value")])
def test_file_without_keys(messages: Messages, text: str, found: str) -> None:
    assert messages(recipe=text) == [
        f"recipes/letters.yaml:1: found {found}; allowed: keys with values, such as `name: letters`"
    ]


def test_no_recipe_files(tmp_path: Path, restored_path: None) -> None:
    write(tmp_path, {"project.yaml": PROJECT})
    with pytest.raises(ConfigErrors, match=r"recipes:1: there is no recipe file \(\*\.yaml\)"):
        load_project(tmp_path)


def test_project_file_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"project\.yaml:1: there is no .* `recipes init DIR`"):
        load_project(tmp_path)


@pytest.mark.parametrize("name", ["my-step", "a b", "straße", "a/b"])
def test_step_name_with_other_characters(messages: Messages, name: str) -> None:
    assert messages(recipe=step(f"{{name: {name}, run: text}}")) == [
        f'recipes/letters.yaml:6: step "{name}": name: found "{name}"; '
        "allowed: letters a-z and A-Z, digits and _"
    ]


def test_source_name_with_other_characters(messages: Messages) -> None:
    found = messages(project=PROJECT + "  my-scans:\n    root: x\n")
    assert found == [
        'project.yaml:5: source "my-scans": found the name "my-scans"; '
        "allowed: letters a-z and A-Z, digits and _"
    ]


@pytest.mark.parametrize("name", ["config", "lambda"])
def test_name_that_dagster_keeps_for_itself(messages: Messages, name: str) -> None:
    assert messages(recipe=step(f"{{name: {name}, run: text}}")) == [
        f'recipes/letters.yaml:6: step "{name}": name: found "{name}", which Dagster keeps for '
        f"itself; allowed: {name}_"
    ]


def test_step_whose_asset_would_be_that_of_the_source(messages: Messages) -> None:
    assert messages(recipe=step("{name: pages, run: text}")) == [
        'recipes/letters.yaml:6: found the step "pages"; the source "letters" has an asset of that '
        "name, rename the step"
    ]


@pytest.mark.parametrize(
    ("written", "read_as"), [("no", "true or false"), ("On", "true or false"), ("1891", "a number")]
)
def test_text_that_yaml_reads_as_something_else(
    messages: Messages, written: str, read_as: str
) -> None:
    assert messages(recipe=step(f"{{name: {written}, run: text}}")) == [
        f'recipes/letters.yaml:6: step "{written}": name: found {written}, which YAML reads as '
        f'{read_as}; put it in quotes: "{written}"'
    ]


def test_key_that_yaml_reads_as_something_else(messages: Messages) -> None:
    assert messages(recipe=RECIPE + "on: manual\n") == [
        'recipes/letters.yaml:6: found the key on; put it in quotes: "on"'
    ]


def test_one_need_that_is_not_a_list(messages: Messages) -> None:
    assert messages(recipe=step("{name: x, run: text, needs: read}")) == [
        'recipes/letters.yaml:6: step "x": needs: found "read"; allowed: a list, such as [a, b]'
    ]


@pytest.mark.parametrize("steps", ["steps: []\n", "steps:\n"])
def test_recipe_without_steps(messages: Messages, steps: str) -> None:
    [message] = messages(recipe="recipe: letters\nsource: letters\n" + steps)
    assert message.startswith("recipes/letters.yaml:3: steps: found nothing")


def test_missing_environment_variable(messages: Messages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    text = PROJECT + "    storage_options:\n      secret: ${NO_SUCH_SECRET}\n"
    assert messages(project=text) == [
        "project.yaml:6: found ${NO_SUCH_SECRET}, but the environment has no NO_SUCH_SECRET; set it"
    ]


def test_secrets_of_the_environment_stay_out_of_messages(
    messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2" * 30)
    found = messages(project=PROJECT + "ledger: ${A_SECRET}\n    batch_size: 0\n")
    assert "hunter2" not in "".join(found)
    found = messages(project=PROJECT + "    hidden: ${A_SECRET}\nledger: ${A_SECRET}\n")
    assert found == [
        'project.yaml:5: source "letters": hidden: found "${A_SECRET}"; allowed: true or false'
    ]


def test_all_mistakes_of_a_file_are_told_at_once(messages: Messages) -> None:
    text = RECIPE.replace("run: lines", "run: linse") + "max_held: 2\nwhat: 1\n"
    found = messages(recipe=text)
    assert [message.partition(": ")[0] for message in found] == [
        "recipes/letters.yaml:4",
        "recipes/letters.yaml:6",
        "recipes/letters.yaml:7",
    ]

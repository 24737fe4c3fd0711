"""Places that take jobs in a project's files: their names, their settings, and every mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.engine.opening import open_place
from recipes_orchestration.errors import NotFound
from recipes_orchestration.job_settings import HfJobsSettings, SlurmSettings, time_seconds
from recipes_orchestration.project import Project, load_project
from recipes_orchestration.project_files import LocalSettings, PlaceSettings, register_place
from recipes_orchestration.stages import stages_of
from recipes_orchestration.yaml_files import ConfigErrors

PROJECT = "name: archive\nsources: {letters: {root: pages}}\nplaces:\n"
CLUSTER = "  cluster: {kind: slurm, host: login.uni.edu}\n"
HUB = "  hub: {kind: hf_jobs, namespace: archive, bucket: archive/pages}\n"
HEAD = "recipe: letters\nsource: letters\nsteps:\n"
READ = """\
  - {name: lines, run: lines, place: cluster}
  - {name: read, run: read, place: cluster, needs: [lines]}
"""

Load = Callable[..., Project]
Messages = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None) -> Load:
    """Loads a project with these places, from line 4 on, and steps, from line 4 of the recipe."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()

    def loaded(places: str = CLUSTER + HUB, steps: str = READ) -> Project:
        (tmp_path / "project.yaml").write_text(PROJECT + places, encoding="utf-8")
        (tmp_path / "recipes" / "letters.yaml").write_text(HEAD + steps, encoding="utf-8")
        return load_project(tmp_path)

    return loaded


@pytest.fixture
def messages(load: Load) -> Messages:
    def told(places: str = CLUSTER + HUB, steps: str = READ) -> list[str]:
        with pytest.raises(ConfigErrors) as caught:
            load(places, steps)
        return [str(mistake) for mistake in caught.value.mistakes]

    return told


def place_of(load: Load, steps: str, name: str) -> str:
    return load(steps=steps).recipe("letters").step(name).place


# Names


def test_a_place_of_ones_own_is_of_its_kind(load: Load) -> None:
    project = load()
    assert project.places["cluster"] == SlurmSettings(host="login.uni.edu")
    assert project.places["hub"] == HfJobsSettings(namespace="archive", bucket="archive/pages")
    assert [project.kind_of(name) for name in ("cluster", "hub", "local", "slurm")] == [
        *("slurm", "hf_jobs", "local", "slurm")
    ]
    assert project.recipe("letters").step("read").place == "cluster"
    assert project.recipe("letters").step("read").provider is None


def test_a_kind_is_a_place_of_its_name(load: Load) -> None:
    steps = "  - {name: text, run: text, place: slurm}\n"
    assert load("  local:\n", steps).places["slurm"] == SlurmSettings()
    project = load("  slurm: {partition: main}\n", steps)
    assert project.places["slurm"] == SlurmSettings(partition="main")
    assert load("  slurm: {kind: slurm, qos: low}\n", steps).places["slurm"] == SlurmSettings(
        qos="low"
    )


def test_two_places_may_be_of_one_kind(load: Load) -> None:
    project = load("  small: {kind: slurm, mem: 4G}\n  cluster: {kind: slurm, mem: 64G}\n")
    assert {name for name in project.places if project.takes_jobs(name)} == {
        *("small", "cluster", "slurm")
    }


def test_where_a_step_runs_is_no_part_of_its_key(load: Load) -> None:
    there = load().recipe("letters").fingerprint("read")
    here = load(steps=READ.replace("cluster", "local")).recipe("letters").fingerprint("read")
    assert there == here


def test_no_step_there_asks_for_packages_here(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    assert [stage.place for stage in stages_of(load().recipe("letters"))] == ["cluster"]


def test_a_place_is_opened_by_its_kind(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Project, str]] = []
    monkeypatch.setattr(
        "recipes_orchestration.engine.opening._openers",
        {"slurm": lambda project, name: opened.append((project, name))},
    )
    project = load()
    open_place(project, "cluster")
    assert opened == [(project, "cluster")]
    with pytest.raises(NotFound, match="no place hf_jobs; known are slurm"):
        open_place(project, "hub")


def test_another_package_may_add_a_kind_that_is_named(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(PlaceSettings):
        may_be_named = True
        queue: str

    monkeypatch.setattr("recipes_orchestration.project_files._places", {"local": LocalSettings})
    register_place("elsewhere", Elsewhere)
    project = load("  cluster: {kind: elsewhere, queue: long}\n")
    assert project.places["cluster"] == Elsewhere(queue="long")
    assert project.kind_of("cluster") == "elsewhere"


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (
            "  cluster: {kind: slrum}\n",
            'place "cluster": kind: found "slrum"; allowed: hf_jobs, slurm. Did you mean "slurm"?',
        ),
        ("  cluster: 5\n", 'place "cluster": found 5; allowed: keys with values'),
        ("  cluster: {kind: }\n", 'place "cluster": kind: found nothing; allowed: hf_jobs, slurm'),
        (
            "  cluster: {kind: anthropic}\n",
            'place "cluster": kind: found "anthropic"; allowed: hf_jobs, slurm',
        ),
        (
            "  cluster: {kind: slurm}\n  slurm: {kind: hf_jobs}\n",
            'place "slurm": kind: found "hf_jobs", but slurm is a kind itself; take the kind away, '
            "or give the place another name",
        ),
        (
            "  cluster: {host: login.uni.edu}\n",
            'places: found the unknown place "cluster" (a name of your own has a kind: hf_jobs or '
            "slurm); allowed: anthropic, bedrock, gemini, hf_jobs, local, openai, slurm",
        ),
        (
            "  cluster: {kind: slurm}\n  my-cluster: {kind: slurm}\n",
            'places: found the name "my-cluster"; allowed: letters a-z and A-Z, digits and _',
        ),
        (
            "  cluster: {kind: slurm}\n  same: {kind: slurm}\n",
            'places: found the name "same", which in a recipe is the place of the needed steps; '
            "allowed: letters a-z and A-Z, digits and _",
        ),
    ],
)
def test_names_and_kinds_that_are_refused(messages: Messages, places: str, expected: str) -> None:
    line = 3 + places.count("\n")
    assert messages(places) == [f"project.yaml:{line}: {expected}"]


def test_a_named_place_is_known_when_the_project_file_is_broken(
    messages: Messages, tmp_path: Path
) -> None:
    (mistake,) = messages("  cluster: [\n")
    assert mistake.startswith("project.yaml:")


# Settings


def test_what_a_ladder_leaves_out_stays(load: Load) -> None:
    ladder = "[{mem: 32G}, {time: 04:00:00}]"
    project = load(f"  cluster: {{kind: slurm, time: 01:00:00, mem: 8G, ladder: {ladder}}}\n")
    settings = project.places["cluster"]
    assert isinstance(settings, SlurmSettings)
    rungs = [(settings.rung(number).time, settings.rung(number).mem) for number in range(4)]
    assert rungs == [("01:00:00", "8G"), ("01:00:00", "32G"), *[("04:00:00", "32G")] * 2]


def test_a_ladder_of_machines(load: Load) -> None:
    ladder = "[{flavor: t4-small}, {timeout_minutes: 300}]"
    project = load(f"{CLUSTER}{HUB.rstrip()[:-1]}, ladder: {ladder}}}\n")
    settings = project.places["hub"]
    assert isinstance(settings, HfJobsSettings)
    rungs = [settings.rung(number) for number in range(3)]
    assert [(rung.flavor, rung.timeout_minutes) for rung in rungs] == [
        *[("cpu-basic", 120.0), ("t4-small", 120.0), ("t4-small", 300.0)]
    ]


@pytest.mark.parametrize(
    ("time", "seconds"), [("00:00:01", 1), ("02:30:00", 9000), ("100:00:00", 360_000)]
)
def test_time_limits_in_seconds(time: str, seconds: int) -> None:
    assert time_seconds(time) == seconds
    assert time_seconds(f"2-{time}") == seconds + 2 * 86_400


def test_a_task_aims_at_less_than_its_time_limit() -> None:
    assert SlurmSettings().aim_seconds == 3600
    assert SlurmSettings(time="02:00:00").aim_seconds == 3600
    assert SlurmSettings(time="00:40:00").aim_seconds == 1800
    hub = HfJobsSettings(namespace="a", bucket="a/b", timeout_minutes=20)
    assert hub.aim_seconds == 900


TIMES = "hours, minutes and seconds, such as 02:00:00, or with days, such as 1-12:00:00"
MEMORY = "a whole number with K, M, G or T, such as 16G or 4000M"
OPTION = "one option of sbatch with its value, such as --constraint=a100"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("time: '90'", f'found "90"; allowed: {TIMES}'),
        ("time: 1-00", f'found "1-00"; allowed: {TIMES}'),
        ("time: 00:90:00", f'found "00:90:00"; allowed: {TIMES}'),
        ("time: 00:00:00", f'found "00:00:00", which is no time at all; allowed: {TIMES}'),
        ("time: 90", 'time: found 90, which YAML reads as a number; put it in quotes: "90"'),
        ("mem: 16GB", f'found "16GB"; allowed: {MEMORY}'),
        ("mem: '4000'", f'found "4000"; allowed: {MEMORY}'),
        ("host: -oProxyCommand=x", "allowed: a host of your ssh_config, or user@host; nothing"),
        ("host: 'a b'", "allowed: a host of your ssh_config, or user@host; nothing"),
        ("scratch: scratch", "allowed: a path on the cluster that begins with / or ~/"),
        ("scratch: ~/../other", "allowed: a path on the cluster that begins with / or ~/"),
        ("scratch: /tmp/%u", "allowed: a path on the cluster that begins with / or ~/"),
        ("partition: 'a;b'", "allowed: a name of the site's, such as main"),
        ("gres: 'gpu 1'", "allowed: a resource and how many, such as gpu:1 or gpu:a100:2"),
        ("modules: ['a b']", "allowed: a module such as python/3.11.5"),
        ("modules: python", 'modules: found "python"; allowed: a list, such as [a, b]'),
        ('setup: ["a\\nb"]', "allowed: one line of text, without control characters"),
        ("extra: [constraint=a100]", f'found "constraint=a100"; allowed: {OPTION}'),
        ("extra: [--array=1-9]", 'found "--array=1-9", which is written for each job; take it'),
        ("extra: ['-J x']", f'found "-J x"; allowed: {OPTION}'),
        ("extra: [-Jx]", 'found "-Jx", which is written for each job; take it'),
        ("max_open: 0", "max_open: found 0; allowed: a whole number from 1 to 10000"),
        ("cpus: 1.5", "cpus: found 1.5; allowed: a whole number from 1 to 4096"),
        ("land_every: 0", "land_every: found 0; allowed: a number over 0 up to 10080"),
        ("ladder: [{memory: 4G}]", 'found the unknown key "memory"; allowed: mem, time'),
        ("ladder: [{mem: lots}]", f'ladder.0.mem: found "lots"; allowed: {MEMORY}'),
        ("nodes: 3", 'found the unknown key "nodes"; allowed: account, container, '),
    ],
)
def test_settings_of_slurm_that_are_refused(
    messages: Messages, setting: str, expected: str
) -> None:
    (mistake,) = messages(f"  cluster:\n    kind: slurm\n    {setting}\n")
    assert mistake.startswith("project.yaml:6: ")
    assert expected in mistake


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("bucket: a/b", 'place "hub": the key "namespace" is missing; add it'),
        (
            "namespace: a",
            'place "hub": found neither bucket nor dataset, where pages and results are to lie; '
            "allowed: one of them, such as bucket: archive/recipes",
        ),
        (
            "namespace: a, bucket: a/b, dataset: a/b",
            'place "hub": found bucket and dataset, where pages',
        ),
        ("namespace: a, bucket: b", 'found "b"; allowed: owner and name, such as archive/recipes'),
        ("namespace: a/b, bucket: a/b", 'found "a/b"; allowed: a user or an organization on the'),
        ("namespace: a, bucket: a/b, flavor: A10G", 'found "A10G"; allowed: a flavor such as'),
        (
            "namespace: a, bucket: a/b, secrets: [MY TOKEN]",
            'found "MY TOKEN"; allowed: the name of an environment variable, such as HF_TOKEN',
        ),
        ("namespace: a, bucket: a/b, endpoint: hub", 'found "hub"; allowed: an address such as'),
    ],
)
def test_settings_of_hf_jobs_that_are_refused(
    messages: Messages, settings: str, expected: str
) -> None:
    (mistake,) = messages(f"{CLUSTER}  hub: {{kind: hf_jobs, {settings}}}\n")
    assert mistake.startswith("project.yaml:5: ")
    assert expected in mistake


# Steps


def test_a_step_at_jobs_that_are_told_nothing(messages: Messages) -> None:
    assert messages(CLUSTER, "  - {name: text, run: text, place: hf_jobs}\n") == [
        'recipes/letters.yaml:4: step "text": place: found "hf_jobs", which project.yaml tells '
        "nothing yet; write its settings there, under places"
    ]


def test_a_step_that_asks_a_model_at_jobs(messages: Messages) -> None:
    assert messages(steps="  - {name: x, run: prompt, place: cluster}\n") == [
        'recipes/letters.yaml:4: step "x": place: found "cluster", but "prompt" asks a model; '
        "allowed: anthropic, bedrock, gemini, openai"
    ]
    assert messages(steps="  - {name: x, run: text, place: hub, model: m}\n") == [
        'recipes/letters.yaml:4: step "x": found the key "model", but the place "hub" asks no '
        "model; take it away, or write a place that does: anthropic, bedrock, gemini, openai"
    ]


def test_an_unknown_operation_at_jobs(messages: Messages) -> None:
    (mistake,) = messages(steps="  - {name: x, run: reed, place: cluster}\n")
    assert mistake.startswith('recipes/letters.yaml:4: step "x": run: found "reed"; allowed: ')
    assert mistake.endswith('. Did you mean "read"?')


@pytest.mark.parametrize("operation", ["text", "lines", "posixpath:join"])
def test_operations_that_run_at_jobs(load: Load, operation: str) -> None:
    line = f"  - {{name: x, run: '{operation}', place: hub}}\n"
    assert place_of(load, line, "x") == "hub"


def test_an_unknown_place_names_those_of_the_project(messages: Messages) -> None:
    assert messages(steps="  - {name: x, run: text, place: clustr}\n") == [
        'recipes/letters.yaml:4: step "x": place: found "clustr"; allowed: anthropic, bedrock, '
        "cluster, gemini, hf_jobs, hub, local, openai, same, slurm. "
        'Did you mean "cluster"?'
    ]


# The place of the needed steps

NAMES = "  - {name: names, run: names, place: same, needs: [read]}\n"


def test_the_same_place_is_that_of_the_needed_steps_and_is_fused(load: Load) -> None:
    recipe = load(steps=READ + NAMES).recipe("letters")
    assert [(stage.place, stage.name) for stage in stages_of(recipe)] == [
        ("cluster", "lines_to_names")
    ]


def test_the_same_place_behind_steps_here_is_here(load: Load) -> None:
    steps = READ.replace("place: cluster", "place: local")
    assert place_of(load, steps + NAMES, "names") == "local"


def test_the_same_place_follows_one_step_after_another_in_any_order(load: Load) -> None:
    embed = "  - {name: embed, run: embed, place: same, needs: [names, read]}\n"
    words = embed.replace("embed", "join").replace("names, read", "embed")
    assert place_of(load, words + embed.replace("names, ", "") + NAMES + READ, "join") == "cluster"


@pytest.mark.parametrize(
    ("steps", "line", "expected"),
    [
        (
            "  - {name: x, run: text, place: same}\n",
            4,
            'step "x": place: found "same", but the step needs no other, whose place it could '
            "have; write its place",
        ),
        (
            "  - {name: read, run: read, place: openai, model: m}\n" + NAMES,
            5,
            'step "names": place: found "same", but it needs "read" at openai, whose batches take '
            "questions only; write its place",
        ),
        (
            READ
            + "  - {name: text, run: text}\n"
            + "  - {name: both, run: join, place: same, needs: [text, read]}\n",
            7,
            'step "both": place: found "same", but it needs steps at several places: "text" at '
            'local and "read" at cluster; write its place',
        ),
    ],
)
def test_the_same_place_that_is_none(
    messages: Messages, steps: str, line: int, expected: str
) -> None:
    (mistake,) = messages(steps=steps)
    assert mistake == (
        f"recipes/letters.yaml:{line}: {expected}; allowed: anthropic, bedrock, cluster, gemini, "
        "hf_jobs, hub, local, openai, slurm"
    )


def test_a_need_that_is_not_there_is_one_mistake(messages: Messages) -> None:
    (mistake,) = messages(steps=READ + NAMES.replace("[read]", "[reed]"))
    assert 'step "names": needs: found "reed"' in mistake


def test_a_circle_of_needs_is_one_mistake(messages: Messages) -> None:
    steps = (
        "  - {name: a, run: join, place: same, needs: [b]}\n"
        "  - {name: b, run: join, place: same, needs: [a]}\n"
    )
    (mistake,) = messages(steps=steps)
    assert "steps need one another in a circle" in mistake

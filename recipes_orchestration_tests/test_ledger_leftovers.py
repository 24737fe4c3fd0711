"""What the ledger says of folders at places whose tasks are over."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import recipes_orchestration.ledger.migrations as migrations
from recipes_orchestration.ledger import leftovers
from recipes_orchestration.ledger.address import address_of
from recipes_orchestration.ledger.connection import Database
from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.ledger.tasks import NewTask, TaskRow


def prepare(
    ledger: Ledger, name: str, attempt: int = 1, *, folder: bool = True, batch: str = "a/0001"
) -> TaskRow | None:
    new = NewTask(name, {}, [], [name], {"group": {"batch": batch}}, None, folder=folder)
    made = ledger.tasks.prepare_all(
        [new],
        recipe="letters",
        stage="read",
        source="src",
        batch=batch,
        place="far",
        attempt=attempt,
        owner="me",
    )
    return made[0] if made else None


def prepared(ledger: Ledger, name: str, attempt: int = 1, *, folder: bool = True) -> TaskRow:
    task = prepare(ledger, name, attempt, folder=folder)
    assert task is not None
    return task


def landed(ledger: Ledger, name: str, *, folder: bool = True) -> TaskRow:
    task = prepared(ledger, name, folder=folder)
    ledger.tasks.sent(task.id, f"id of {name}")
    ledger.tasks.landed(task.id)
    return task


def left(ledger: Ledger) -> list[str]:
    return [each.name for each in ledger.leftovers.left("far")]


def take(ledger: Ledger, owner: str = "me") -> list[str]:
    return [each.name for each in ledger.leftovers.take(ledger.leftovers.left(), owner)]


def last_attempt(ledger: Ledger) -> int:
    return ledger.tasks.last_attempt("letters", "read", "a/0001")


def test_the_folder_of_an_open_task_is_not_left(ledger: Ledger):
    prepared(ledger, "preparing")
    ledger.tasks.sent(prepared(ledger, "sent").id, "1")
    ended = prepared(ledger, "ended")
    ledger.tasks.sent(ended.id, "2")
    ledger.tasks.ended(ended.id)
    assert left(ledger) == []


def test_the_folder_of_a_task_that_is_over_is_left_until_it_is_gone(ledger: Ledger):
    task = landed(ledger, "landed")
    dropped = prepared(ledger, "dropped")
    ledger.tasks.sent(dropped.id, "1")
    ledger.tasks.dropped(dropped.id, "it failed")
    assert left(ledger) == ["landed", "dropped"]
    ledger.leftovers.gone([task.id])
    assert left(ledger) == ["dropped"]


def test_nothing_is_left_where_a_task_has_no_folder(ledger: Ledger):
    landed(ledger, "landed", folder=False)
    assert left(ledger) == []


def test_what_was_sent_of_a_task_is_kept_while_it_may_be_sent_again(ledger: Ledger):
    ledger.tasks.dropped(prepared(ledger, "first").id, "never sent")
    prepare(ledger, "of another batch", batch="a/0002")
    assert left(ledger) == []
    prepared(ledger, "first")
    assert left(ledger) == []


def test_a_task_that_a_later_one_has_followed_is_left(ledger: Ledger):
    first = prepared(ledger, "first")
    prepared(ledger, "second", 2)
    ledger.tasks.dropped(first.id, "never sent")
    assert left(ledger) == ["first"]


def test_nobody_waits_for_ever_for_a_task_that_was_never_sent(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    ledger.tasks.dropped(prepared(ledger, "first").id, "never sent")
    monkeypatch.setattr(leftovers, "WANTED", timedelta(0))
    assert left(ledger) == ["first"]


def test_one_of_two_processes_takes_what_is_left(ledger_url: str):
    with open_ledger(ledger_url) as ledger, open_ledger(ledger_url) as other:
        landed(ledger, "landed")
        seen = other.leftovers.left()
        assert take(ledger) == ["landed"]
        assert other.leftovers.take(seen, "they") == []
        (taken,) = other.leftovers.left()
        assert (taken.going, taken.owner) == (True, "me")


def test_a_task_that_is_sent_again_meanwhile_is_not_taken(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(leftovers, "WANTED", timedelta(0))
    ledger.tasks.dropped(prepared(ledger, "first").id, "never sent")
    seen = ledger.leftovers.left()
    prepared(ledger, "first")
    assert ledger.leftovers.take(seen, "me") == []


@pytest.mark.parametrize("gone", [False, True])
def test_a_name_whose_folder_is_being_removed_is_used_no_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, gone: bool
):
    monkeypatch.setattr(leftovers, "WANTED", timedelta(0))
    first = prepared(ledger, "first")
    ledger.tasks.dropped(first.id, "never sent")
    assert last_attempt(ledger) == 0
    assert take(ledger) == ["first"]
    if gone:
        ledger.leftovers.gone([first.id])
    assert prepare(ledger, "first") is None
    assert last_attempt(ledger) == 1


def test_open_tasks_of_an_older_ledger_have_folders_where_they_are_jobs(ledger_url: str):
    make_older_ledger(ledger_url)
    with open_ledger(ledger_url) as ledger:
        folders = {task.name: task.folder for task in ledger.tasks.open()}
    assert folders == {"job": "there", "cloud": None}


def test_tasks_of_an_older_ledger_keep_their_pages_and_calls(ledger_url: str):
    make_older_ledger(ledger_url)
    with open_ledger(ledger_url) as ledger:
        kept = {task.name: (task.pages, task.calls) for task in ledger.tasks.open()}
    pages = (("a/1.png", "ff"), ("a/2.png", "fe"))
    assert kept == {"job": (pages, None), "cloud": (pages, {"a/1.png": "c1", "a/2.png": "c2"})}


def make_older_ledger(url: str) -> None:
    """A ledger of the fourth migration with two open tasks, one of them at a provider."""
    insert = sa.text(
        "INSERT INTO tasks (id, name, recipe, stage, source, batch, place, state, attempt, "
        "fingerprints, pages, owner, created_at, heartbeat_at, sent, calls) VALUES (:name, :name, "
        "'r', 's', 'src', 'b', 'far', 'open', 1, '{}', :pages, 'me', '2026-11-01 00:00:00', "
        "'2026-11-01 00:00:00', :sent, :calls)"
    )
    groups = {"job": {"batch": "a", "rung": 0}, "cloud": {"endpoint": "chat"}}

    def older(connection: sa.Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(Path(str(migrations.__file__)).parent))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
        for name, group in groups.items():
            calls = {"a/1.png": "c1", "a/2.png": "c2"} if name == "cloud" else None
            row = {
                "name": name,
                "pages": json.dumps([["a/1.png", "ff"], ["a/2.png", "fe"]]),
                "sent": json.dumps({"group": group}),
                "calls": calls and json.dumps(calls),
            }
            connection.execute(insert, row)

    database = Database(address_of(url), 10.0)
    if (file := address_of(url).sqlite_file) is not None:
        file.parent.mkdir(parents=True)
    database.write(older)
    database.close()

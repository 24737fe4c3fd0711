from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import recipes_orchestration.ledger.migrations as migrations
from recipes_orchestration.errors import LedgerError
from recipes_orchestration.ledger.address import address_of
from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.ledger.tables import SCHEMA, VERSION_TABLE, metadata

SECRET = "hush-hush:7/@?#%"


def said(work: Callable[[], object]) -> str:
    """The whole traceback of the `LedgerError` that the work raises."""
    with pytest.raises(LedgerError) as raised:
        work()
    return "".join(traceback.format_exception(raised.value))


def test_the_migrated_schema_is_that_of_the_tables(ledger: Ledger) -> None:
    with ledger._database.reading() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == SCHEMA


def test_the_newest_migration_is_the_one_the_code_knows() -> None:
    folder = Path(str(migrations.__file__)).parent
    assert ScriptDirectory(str(folder)).get_heads() == [SCHEMA]


def test_a_ledger_is_kept_when_it_is_opened_again(ledger_url: str) -> None:
    for expected in (1, 2):
        with open_ledger(ledger_url) as ledger:
            row = ledger.holds.failed("r", "s", "src", "b", "p", "k", "why", "words", False)
            assert row.attempts == expected


def test_times_are_utc_where_the_server_is_elsewhere(ledger: Ledger) -> None:
    task = ledger.tasks.prepare("n", "r", "s", "src", "b", "local", 1, {}, [], [], "me")
    assert task is not None
    assert ledger.tasks.get(task.id) == task
    assert str(task.created_at).endswith("+00:00")


def test_a_ledger_of_a_newer_version_says_so(ledger_url: str) -> None:
    with open_ledger(ledger_url) as ledger:
        ledger._database.write(
            lambda connection: connection.execute(
                sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
            )
        )
    assert "newer version" in said(lambda: open_ledger(ledger_url))


def test_the_ledger_may_share_a_database_with_dagster(postgres_url: str) -> None:
    engine = sa.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg2:"))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num text)"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('of dagster')"))
    engine.dispose()
    with open_ledger(postgres_url) as ledger:
        assert ledger.pages.folders("letters") == []


def test_a_ledger_is_not_sent_to_another_process(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match="open it there"):
        pickle.dumps(ledger)


def test_a_locked_ledger_says_what_to_do(ledger_url: str) -> None:
    with open_ledger(ledger_url) as holder, open_ledger(ledger_url, wait_seconds=0.2) as ledger:
        claim = ("n", "r", "s", "src", "b", "local", 1, {}, [], ["k"], "me")

        def hold_and_ask(connection: sa.Connection) -> str:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("LOCK TABLE claims IN ACCESS EXCLUSIVE MODE"))
            return said(lambda: ledger.tasks.prepare(*claim))

        assert "end it, and start this again" in holder._database.write(hold_and_ask)
        assert ledger.tasks.by_name("n") is None
        assert ledger.tasks.prepare(*claim) is not None


def test_a_short_lock_is_waited_out(ledger_url: str) -> None:
    with open_ledger(ledger_url) as ledger:
        assert ledger.tasks.claimed(["k"]) == {}
    hold = (
        "import sys, time, sqlalchemy as sa\n"
        "from recipes_orchestration.ledger.database import open_ledger\n"
        "def work(connection):\n"
        "    if connection.dialect.name == 'postgresql':\n"
        "        connection.execute(sa.text('LOCK TABLE claims IN ACCESS EXCLUSIVE MODE'))\n"
        "    print('held', flush=True)\n"
        "    time.sleep(0.8)\n"
        "open_ledger(sys.argv[1])._database.write(work)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, ledger_url], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder, open_ledger(ledger_url, wait_seconds=20) as ledger:
        assert holder.stdout.readline() == b"held\n"
        claim = ("n", "r", "s", "src", "b", "local", 1, {}, [], ["k"], "me")
        assert ledger.tasks.prepare(*claim) is not None
    assert holder.returncode == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "cannot be understood"),
        ("ledger.sqlite", "cannot be understood"),
        ("mysql://me:{secret}@host/db", "SQLite or PostgreSQL"),
        ("postgresql://me:{raw}@host:port/db", "cannot be understood"),
        ("postgresql://me:a@hush@127.0.0.1:1/db", "cannot be understood"),
        ("postgresql://me:hush@127.0.0.1:7%2F/db", "cannot be understood"),
        ("postgresql+nosuch://me:{secret}@host/db", "driver"),
        ("postgresql://me:{secret}@127.0.0.1:1/db", "could not be used"),
        ("postgresql://me@127.0.0.1:1/db?password={secret}", "could not be used"),
        ("postgresql://me@127.0.0.1:1/db?sslpassword={secret}", "could not be used"),
        ("postgresql://me:{secret}@127.0.0.1:1/db?nosuchoption=1", "could not be used"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
    ],
)
def test_a_url_that_leads_nowhere_is_one_message_without_its_password(url: str, words: str) -> None:
    url = url.format(secret=quote(SECRET, safe=""), raw=SECRET)
    text = said(lambda: open_ledger(url))
    assert words in text
    for spelling in ("hush", "7/@", "7%2F"):
        assert spelling not in text


def test_a_wrong_password_is_not_shown(postgres_url: str) -> None:
    right = str(sa.make_url(postgres_url).password)
    text = said(lambda: open_ledger(postgres_url.replace(right, quote(SECRET, safe=""))))
    assert "password authentication failed" in text
    assert "hush" not in text


def test_the_password_is_in_no_repr(postgres_url: str) -> None:
    password = str(sa.make_url(postgres_url).password)
    with open_ledger(postgres_url) as ledger:
        shown = [repr(ledger), str(ledger), ledger.url_shown, repr(ledger._database.engine)]
        shown += [repr(address_of(postgres_url)), repr(vars(ledger))]
        server = f"{sa.make_url(postgres_url).host}:{sa.make_url(postgres_url).port}"
        assert server in ledger.url_shown
    assert not [text for text in shown if password in text]


def test_a_database_that_cannot_hold_file_names_is_refused(
    postgres_server: object, postgres_url: str
) -> None:
    engine = sa.create_engine(
        postgres_url.replace("postgresql:", "postgresql+psycopg2:"), isolation_level="AUTOCOMMIT"
    )
    name = f"{sa.make_url(postgres_url).database}_latin"
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0"))
        text = said(lambda: open_ledger(f"{postgres_url}_latin"))
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()
    assert "LATIN1" in text
    assert "ENCODING 'UTF8'" in text


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    assert "is a folder" in said(lambda: open_ledger(f"sqlite:///{tmp_path}"))


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    text = said(lambda: open_ledger(f"sqlite:///{tmp_path}/file/ledger.sqlite"))
    assert "could not be made" in text


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    file.write_bytes(b"These are notes, and no database at all. " * 100)
    assert "not a database" in said(lambda: open_ledger(f"sqlite:///{file}"))
    assert file.read_bytes().startswith(b"These are notes")


def test_readers_are_not_held_up_by_a_writer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url) as writer, open_ledger(url, wait_seconds=0.1) as reader:
        assert writer._database.write(lambda _: reader.pages.folders("letters")) == []
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_full_disk_is_a_message(tmp_path: Path) -> None:
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:

        def fill(connection: sa.Connection) -> None:
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
            connection.exec_driver_sql("CREATE TABLE more AS SELECT randomblob(900000) AS bytes")

        assert "disk is full" in said(lambda: ledger._database.write(fill))


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    text = said(lambda: open_ledger(f"postgresql://me:{quote(SECRET, safe='')}@host/db"))
    assert "pip install 'recipes-orchestration[postgres]'" in text
    assert "hush" not in text

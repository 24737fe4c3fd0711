"""A PostgreSQL server that the tests start themselves, with a fresh database for each test."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

MISSING = (
    "PostgreSQL's `initdb` and `postgres` are not installed: install the server "
    "(apt install postgresql, brew install postgresql@16)"
)
USER = "recipes"


@dataclass(frozen=True)
class PostgresServer:
    """A server on 127.0.0.1 which asks for its password."""

    port: int
    password: str

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str) -> None:
        """Runs one statement outside of any transaction."""
        import psycopg2

        connection = psycopg2.connect(self.url("postgres"))
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
        finally:
            connection.close()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        # Debian keeps the server's programs off PATH.
        versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
        found = max((str(path) for path in versions), default=None)
    if found is None:
        pytest.skip(MISSING)
    return found


def _as_other_user(folder: Path) -> dict[str, Any]:
    """How to start a program so that PostgreSQL, which refuses root, runs too."""
    if os.geteuid() != 0:
        return {}
    names = [entry.pw_name for entry in pwd.getpwall()]
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_it_answers(server: PostgresServer, process: subprocess.Popen[Any]) -> None:
    import psycopg2

    deadline = time.monotonic() + 60
    while True:
        try:
            server.execute("SELECT 1")
            return
        except psycopg2.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the PostgreSQL server of the tests did not start") from error
            time.sleep(0.05)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's server; skips where PostgreSQL is not installed."""
    initdb, postgres = _program("initdb"), _program("postgres")
    pytest.importorskip("psycopg2", reason="the extra `postgres` is not installed")
    server = PostgresServer(_free_port(), secrets.token_urlsafe(12))
    # Not under pytest's own folder, which only its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="recipes-postgres-"))
    try:
        password_file, data = folder / "password", folder / "data"
        password_file.write_text(server.password)
        user = _as_other_user(folder)
        setup = [initdb, "-D", data, "-U", USER, "-A", "scram-sha-256", "--no-sync"]
        setup += ["--pwfile", password_file, "-E", "UTF8", "--locale=C"]
        subprocess.run(setup, check=True, capture_output=True, cwd=folder, **user)
        options = [f"port={server.port}", "listen_addresses=127.0.0.1", "fsync=off"]
        options += [f"unix_socket_directories={folder}", "timezone=Asia/Kathmandu"]
        arguments = [argument for option in options for argument in ("-c", option)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [postgres, "-D", data, *arguments], stdout=log, stderr=log, cwd=folder, **user
            )
        try:
            _wait_until_it_answers(server, process)
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # "fast": ends its clients
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a database of the test's own, with its password in it."""
    name = f"test_{secrets.token_hex(6)}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield postgres_server.url(name)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")

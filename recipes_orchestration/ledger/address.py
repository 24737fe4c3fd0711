"""The ledger's URL: what is connected to, and what of it people may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from ..errors import LedgerError

__all__ = ["Address", "address_of"]

_EXAMPLES = "sqlite:////folder/ledger.sqlite or postgresql://user@host/database"


@dataclass(frozen=True)
class Address:
    """Where the ledger is. `url` is SQLAlchemy's and hides its password when printed.

    `shown` has no secret in it; `secrets` are what must never be seen; `connect` are arguments
    for the driver that may not stand in a URL which is printed.
    """

    url: sa.URL
    shown: str
    secrets: tuple[str, ...] = field(repr=False, default=())
    connect: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])

    @property
    def sqlite_file(self) -> Path | None:
        """The database file; None on PostgreSQL."""
        if self.url.get_backend_name() != "sqlite":
            return None
        return Path(str(self.url.database))

    def without_secrets(self, text: str) -> str:
        """The text with every secret of the URL replaced by `***`."""
        for secret in self.secrets:
            for spelling in {secret, quote(secret, safe=""), quote_plus(secret)}:
                text = text.replace(spelling, "***")
        return text


def address_of(url: str) -> Address:
    """The address that a ledger URL names.

    `postgresql://` without a driver means psycopg2. Raises `LedgerError`, without the URL in it,
    when it cannot be understood: where a URL is torn apart wrongly a password may stand anywhere.
    """
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise _unclear() from None
    if backend == "sqlite":
        return _sqlite(parsed)
    if backend in ("postgresql", "postgres"):
        # With a bare @ in the password its rest would be taken, and shown, for the host.
        if url.count("@") > 1:
            raise _unclear()
        return _postgresql(parsed)
    raise LedgerError(
        f"The ledger can be on SQLite or PostgreSQL, not on {backend!r}; write its URL like "
        f"{_EXAMPLES}."
    )


def _unclear() -> LedgerError:
    return LedgerError(
        f"The ledger URL cannot be understood; write it like {_EXAMPLES}, with special "
        "characters of the password percent-encoded."
    )


def _sqlite(url: sa.URL) -> Address:
    database = url.database
    if not database or database == ":memory:" or database.startswith("file:"):
        raise LedgerError(
            "The ledger must be a file, because several processes share it; write its URL like "
            "sqlite:////folder/ledger.sqlite."
        )
    plain = sa.URL.create("sqlite", database=database)
    return Address(plain, plain.render_as_string())


def _postgresql(url: sa.URL) -> Address:
    query = dict(url.query)
    connect = {name: str(query.pop(name)) for name in ("password", "sslpassword") if name in query}
    password = connect.pop("password", None)
    if password is not None:
        url = url.set(password=password)
    driver = url.drivername if "+" in url.drivername else "postgresql+psycopg2"
    url = url.set(drivername=driver, query=query)
    shown = url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
    secrets = tuple(text for text in (url.password, *connect.values()) if text)
    return Address(url, shown, secrets, connect)

"""The ledger's tables, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa

from .column_types import Dollars, UtcTime, number, words

__all__ = [
    "SCHEMA",
    "VERSION_TABLE",
    "alerts",
    "batches",
    "bookings",
    "claims",
    "controls",
    "holds",
    "metadata",
    "pages",
    "pauses",
    "reservations",
    "runs",
    "task_pages",
    "tasks",
    "tellings",
]

SCHEMA = "0008"
"""The newest migration: the schema that this code reads and writes."""

VERSION_TABLE = "ledger_version"
"""Not alembic's default, because Dagster's storage uses that one and may share the database."""


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

batches = sa.Table(
    "batches",
    metadata,
    sa.Column("id", number(), primary_key=True),
    sa.Column("source", words(), nullable=False),
    sa.Column("key", words(), nullable=False),
    sa.Column("folder", words(), nullable=False),
    sa.Column("number", sa.Integer(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    # Goes up whenever pages of its folder are written.
    sa.Column("version", sa.Integer(), nullable=False, server_default=sa.text("0")),
    sa.UniqueConstraint("source", "key"),
    sa.UniqueConstraint("source", "folder", "number"),
)

pages = sa.Table(
    "pages",
    metadata,
    sa.Column("id", number(), primary_key=True),
    sa.Column("source", words(), nullable=False),
    sa.Column("page_id", words(), nullable=False),
    sa.Column("folder", words(), nullable=False),
    sa.Column("file", words(), nullable=False),
    sa.Column("frame", sa.Integer()),
    sa.Column("batch_id", number(), sa.ForeignKey("batches.id")),
    sa.Column("position", sa.Integer()),
    sa.Column("sha256", words(), nullable=False),
    sa.Column("size", sa.BigInteger(), nullable=False),
    sa.Column("stamp", words(), nullable=False),
    sa.Column("problem", sa.Text()),
    sa.Column("gone_at", UtcTime()),
    sa.Column("seen_at", UtcTime(), nullable=False),
    sa.Column("changed_at", UtcTime(), nullable=False),
    sa.UniqueConstraint("source", "page_id"),
    sa.Index(None, "sha256"),
    sa.Index(None, "source", "folder", "file"),
    sa.Index(None, "batch_id", "position"),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", words(), primary_key=True),
    sa.Column("name", words(), nullable=False),
    sa.Column("recipe", words(), nullable=False),
    sa.Column("stage", words(), nullable=False),
    sa.Column("source", words(), nullable=False),
    sa.Column("batch", words(), nullable=False),
    sa.Column("place", words(), nullable=False),
    sa.Column("state", words(), nullable=False),
    sa.Column("remote_id", sa.Text()),
    sa.Column("attempt", sa.Integer(), nullable=False),
    sa.Column("fingerprints", sa.JSON(), nullable=False),
    sa.Column("owner", sa.Text(), nullable=False),
    sa.Column("message", sa.Text()),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("sent_at", UtcTime()),
    sa.Column("heartbeat_at", UtcTime()),
    sa.Column("ended_at", UtcTime()),
    sa.Column("landed_at", UtcTime()),
    # What was sent, so that it lands as it was sent: the steps, and the fingerprints they needed.
    sa.Column("sent", sa.JSON()),
    sa.Column("slot", sa.Boolean(), nullable=False, server_default=sa.false()),
    sa.Column("stopped", sa.Text()),
    sa.Column("stopped_at", UtcTime()),
    sa.Column("held", sa.Text()),
    sa.Column("held_at", UtcTime()),
    sa.Column("fetches", sa.Integer(), nullable=False, server_default=sa.text("0")),
    # The group that it was sent in by one call; None when it was sent alone.
    sa.Column("array", sa.Text()),
    # What the far side told of its work, as JSON.
    sa.Column("report", sa.JSON(none_as_null=True)),
    # What it was thought to cost before it was sent.
    sa.Column("estimate_usd", Dollars()),
    # What may lie of it at its place; None where nothing does.
    sa.Column("folder", sa.Text()),
    sa.UniqueConstraint("name"),
    sa.Index(None, "state"),
    sa.Index(None, "folder", "state"),
    sa.Index(None, "recipe", "stage", "batch"),
    sa.Index(None, "source", "batch"),
)

# Beside their tasks: a row is written anew with all that is in it whenever something of it changes,
# and these are megabytes that never do.
task_pages = sa.Table(
    "task_pages",
    metadata,
    sa.Column("task_id", words(), sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("pages", sa.JSON(), nullable=False),
    # The id of each page's call in a provider's batch.
    sa.Column("calls", sa.JSON()),
)

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("key", words(), primary_key=True),
    sa.Column("task_id", words(), sa.ForeignKey("tasks.id"), nullable=False),
    sa.Index(None, "task_id"),
)

holds = sa.Table(
    "holds",
    metadata,
    sa.Column("id", number(), primary_key=True),
    sa.Column("recipe", words(), nullable=False),
    sa.Column("step", words(), nullable=False),
    sa.Column("source", words(), nullable=False),
    sa.Column("batch", words(), nullable=False),
    sa.Column("page_id", words(), nullable=False),
    sa.Column("key", words(), nullable=False),
    sa.Column("reason", sa.Text(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.Column("attempts", sa.Integer(), nullable=False),
    sa.Column("held", sa.Boolean(), nullable=False),
    sa.Column("since", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
    sa.Column("task", sa.Text()),
    sa.UniqueConstraint("recipe", "step", "source", "page_id", "key"),
    sa.Index(None, "key"),
    sa.Index(None, "recipe", "source", "batch"),
)

bookings = sa.Table(
    "bookings",
    metadata,
    sa.Column("task_id", words(), sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("recipe", words(), nullable=False),
    sa.Column("step", words(), nullable=False),
    sa.Column("batch", words(), nullable=False),
    sa.Column("place", words(), nullable=False),
    sa.Column("model", words(), nullable=False),
    sa.Column("mode", words(), nullable=False),
    sa.Column("basis", words(), nullable=False),
    sa.Column("landed_usd", Dollars(), nullable=False),
    sa.Column("wasted_usd", Dollars(), nullable=False),
    sa.Column("tokens_in", sa.BigInteger(), nullable=False),
    sa.Column("tokens_out", sa.BigInteger(), nullable=False),
    sa.Column("tokens_cached", sa.BigInteger(), nullable=False),
    sa.Column("lines", sa.JSON(), nullable=False),
    sa.Column("booked_at", UtcTime(), nullable=False),
    # What plain calls would have cost more.
    sa.Column("saved_usd", Dollars()),
    sa.Index(None, "recipe", "step"),
)

pauses = sa.Table(
    "pauses",
    metadata,
    sa.Column("place", words(), primary_key=True),
    sa.Column("words", sa.Text(), nullable=False),
    sa.Column("since", UtcTime(), nullable=False),
    sa.Column("until", UtcTime()),
    # It ends by itself as soon as the place answers again.
    sa.Column("until_reached", sa.Boolean(), nullable=False, server_default=sa.false()),
)

controls = sa.Table(
    # What a person decided. An empty folder, batch or step stands for all of them.
    "controls",
    metadata,
    sa.Column("id", number(), primary_key=True),
    sa.Column("kind", words(), nullable=False),
    sa.Column("recipe", words(), nullable=False),
    sa.Column("folder", words(), nullable=False),
    sa.Column("batch", words(), nullable=False),
    sa.Column("step", words(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.Column("since", UtcTime(), nullable=False),
    sa.Column("by", sa.Text(), nullable=False),
    sa.UniqueConstraint("kind", "recipe", "folder", "batch", "step"),
    sa.Index(None, "recipe", "batch"),
)

reservations = sa.Table(
    # The most that an open task may cost.
    "reservations",
    metadata,
    sa.Column("task_id", words(), sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("recipe", words(), nullable=False),
    sa.Column("step", words(), nullable=False),
    sa.Column("batch", words(), nullable=False),
    sa.Column("place", words(), nullable=False),
    sa.Column("model", words(), nullable=False),
    sa.Column("usd", Dollars(), nullable=False),
    sa.Column("reserved_at", UtcTime(), nullable=False),
    sa.Index(None, "recipe", "step"),
)

alerts = sa.Table(
    # One row a cause: what a person was told, and when it was over.
    "alerts",
    metadata,
    sa.Column("cause", words(), primary_key=True),
    sa.Column("kind", words(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.Column("first_at", UtcTime(), nullable=False),
    sa.Column("told_at", UtcTime()),
    sa.Column("ended_at", UtcTime()),
)

tellings = sa.Table(
    # How often a channel was told of an alert, and when it had taken it.
    "tellings",
    metadata,
    sa.Column("cause", words(), sa.ForeignKey("alerts.cause"), primary_key=True),
    sa.Column("channel", words(), primary_key=True),
    sa.Column("tries", sa.Integer(), nullable=False),
    sa.Column("tried_at", UtcTime(), nullable=False),
    sa.Column("told_at", UtcTime()),
)

runs = sa.Table(
    # Not "runs": Dagster's storage, which may share the database, has a table of that name.
    "run_beats",
    metadata,
    sa.Column("run_id", words(), primary_key=True),
    sa.Column("owner", sa.Text(), nullable=False),
    sa.Column("heartbeat_at", UtcTime(), nullable=False),
)

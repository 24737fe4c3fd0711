"""What is known of batches at providers: what was sent, what was billed, what is paused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _words(name: str) -> sa.Column[str]:
    kind = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def _time(name: str, *, null: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def upgrade() -> None:
    """Adds the columns and tables."""
    for column in (
        sa.Column("sent", sa.JSON()),
        sa.Column("calls", sa.JSON()),
        sa.Column("slot", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("stopped", sa.Text()),
        _time("stopped_at", null=True),
        sa.Column("held", sa.Text()),
        sa.Column("fetches", sa.Integer(), nullable=False, server_default=sa.text("0")),
    ):
        op.add_column("tasks", column)
    op.add_column("holds", sa.Column("task", sa.Text()))
    op.create_table(
        "bookings",
        _words("task_id"),
        _words("recipe"),
        _words("step"),
        _words("batch"),
        _words("place"),
        _words("model"),
        _words("mode"),
        _words("basis"),
        _big("landed_usd"),
        _big("wasted_usd"),
        _big("tokens_in"),
        _big("tokens_out"),
        _big("tokens_cached"),
        sa.Column("lines", sa.JSON(), nullable=False),
        _time("booked_at"),
        sa.PrimaryKeyConstraint("task_id", name="pk_bookings"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_bookings_task_id"),
    )
    op.create_index("ix_bookings_recipe_step", "bookings", ["recipe", "step"])
    op.create_table(
        "pauses",
        _words("place"),
        sa.Column("words", sa.Text(), nullable=False),
        _time("since"),
        _time("until", null=True),
        sa.PrimaryKeyConstraint("place", name="pk_pauses"),
    )
    op.create_table(
        "run_beats",
        _words("run_id"),
        sa.Column("owner", sa.Text(), nullable=False),
        _time("heartbeat_at"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_beats"),
    )

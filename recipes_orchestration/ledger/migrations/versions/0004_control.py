"""What people decide, what is promised to providers, and what was told to people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def _words(name: str) -> sa.Column[str]:
    kind = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def _time(name: str, *, null: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def upgrade() -> None:
    """Adds the columns and tables."""
    op.add_column("tasks", sa.Column("estimate_usd", sa.BigInteger()))
    op.add_column("bookings", sa.Column("saved_usd", sa.BigInteger()))
    op.create_table(
        "controls",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        _words("kind"),
        _words("recipe"),
        _words("folder"),
        _words("batch"),
        _words("step"),
        sa.Column("words", sa.Text(), nullable=False),
        _time("since"),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_controls"),
        sa.UniqueConstraint(
            *("kind", "recipe", "folder", "batch", "step"),
            name="uq_controls_kind_recipe_folder_batch_step",
        ),
    )
    op.create_index("ix_controls_recipe_batch", "controls", ["recipe", "batch"])
    op.create_table(
        "reservations",
        _words("task_id"),
        _words("recipe"),
        _words("step"),
        _words("batch"),
        _words("place"),
        _words("model"),
        sa.Column("usd", sa.BigInteger(), nullable=False),
        _time("reserved_at"),
        sa.PrimaryKeyConstraint("task_id", name="pk_reservations"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_reservations_task_id"),
    )
    op.create_index("ix_reservations_recipe_step", "reservations", ["recipe", "step"])
    op.create_table(
        "alerts",
        _words("cause"),
        _words("kind"),
        sa.Column("words", sa.Text(), nullable=False),
        _time("first_at"),
        _time("told_at", null=True),
        _time("ended_at", null=True),
        sa.PrimaryKeyConstraint("cause", name="pk_alerts"),
    )
    op.create_table(
        "tellings",
        _words("cause"),
        _words("channel"),
        sa.Column("tries", sa.Integer(), nullable=False),
        _time("tried_at"),
        _time("told_at", null=True),
        sa.PrimaryKeyConstraint("cause", "channel", name="pk_tellings"),
        sa.ForeignKeyConstraint(["cause"], ["alerts.cause"], name="fk_tellings_cause"),
    )

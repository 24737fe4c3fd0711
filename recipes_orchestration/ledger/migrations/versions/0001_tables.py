"""Pages, batches, tasks, claims and holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _words(name: str, *, null: bool = False) -> sa.Column[str]:
    kind = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=null)


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _time(name: str, *, null: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def _int(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=null)


def _number() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "batches",
        sa.Column("id", _number(), nullable=False),
        _words("source"),
        _words("key"),
        _words("folder"),
        _int("number"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
        sa.UniqueConstraint("source", "key", name="uq_batches_source_key"),
        sa.UniqueConstraint("source", "folder", "number", name="uq_batches_source_folder_number"),
    )
    op.create_table(
        "pages",
        sa.Column("id", _number(), nullable=False),
        _words("source"),
        _words("page_id"),
        _words("folder"),
        _words("file"),
        _int("frame", null=True),
        sa.Column("batch_id", _number(), nullable=True),
        _int("position", null=True),
        _words("sha256"),
        sa.Column("size", sa.BigInteger(), nullable=False),
        _words("stamp"),
        _text("problem", null=True),
        _time("gone_at", null=True),
        _time("seen_at"),
        _time("changed_at"),
        sa.PrimaryKeyConstraint("id", name="pk_pages"),
        sa.UniqueConstraint("source", "page_id", name="uq_pages_source_page_id"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_pages_batch_id"),
    )
    op.create_index("ix_pages_sha256", "pages", ["sha256"])
    op.create_index("ix_pages_source_folder_file", "pages", ["source", "folder", "file"])
    op.create_index("ix_pages_batch_id_position", "pages", ["batch_id", "position"])
    op.create_table(
        "tasks",
        _words("id"),
        _words("name"),
        _words("recipe"),
        _words("stage"),
        _words("source"),
        _words("batch"),
        _words("place"),
        _words("state"),
        _text("remote_id", null=True),
        _int("attempt"),
        sa.Column("fingerprints", sa.JSON(), nullable=False),
        sa.Column("pages", sa.JSON(), nullable=False),
        _text("owner"),
        _text("message", null=True),
        _time("created_at"),
        _time("sent_at", null=True),
        _time("heartbeat_at", null=True),
        _time("ended_at", null=True),
        _time("landed_at", null=True),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("name", name="uq_tasks_name"),
    )
    op.create_index("ix_tasks_state", "tasks", ["state"])
    op.create_index("ix_tasks_recipe_stage_batch", "tasks", ["recipe", "stage", "batch"])
    op.create_index("ix_tasks_source_batch", "tasks", ["source", "batch"])
    op.create_table(
        "claims",
        _words("key"),
        _words("task_id"),
        sa.PrimaryKeyConstraint("key", name="pk_claims"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_claims_task_id"),
    )
    op.create_index("ix_claims_task_id", "claims", ["task_id"])
    op.create_table(
        "holds",
        sa.Column("id", _number(), nullable=False),
        _words("recipe"),
        _words("step"),
        _words("source"),
        _words("batch"),
        _words("page_id"),
        _words("key"),
        _text("reason"),
        _text("words"),
        _int("attempts"),
        sa.Column("held", sa.Boolean(), nullable=False),
        _time("since"),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("id", name="pk_holds"),
        sa.UniqueConstraint(
            "recipe",
            "step",
            "source",
            "page_id",
            "key",
            name="uq_holds_recipe_step_source_page_id_key",
        ),
    )
    op.create_index("ix_holds_key", "holds", ["key"])
    op.create_index("ix_holds_recipe_source_batch", "holds", ["recipe", "source", "batch"])

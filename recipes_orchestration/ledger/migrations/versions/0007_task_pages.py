"""The pages of tasks in a table of their own: whatever else changes of a task leaves them alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


_WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Moves the two columns, as they are."""
    op.create_table(
        "task_pages",
        sa.Column("task_id", _WORDS, nullable=False),
        sa.Column("pages", sa.JSON(), nullable=False),
        sa.Column("calls", sa.JSON()),
        sa.PrimaryKeyConstraint("task_id", name="pk_task_pages"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_task_pages_task_id"),
    )
    op.execute(
        sa.text("INSERT INTO task_pages (task_id, pages, calls) SELECT id, pages, calls FROM tasks")
    )
    op.drop_column("tasks", "pages")
    op.drop_column("tasks", "calls")

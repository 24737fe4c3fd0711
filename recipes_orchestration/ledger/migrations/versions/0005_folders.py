"""What may lie of tasks at their places, so that none of it stays there for ever."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds the column; open tasks of Slurm and of Hugging Face, which have a rung, have folders."""
    op.add_column("tasks", sa.Column("folder", sa.Text()))
    op.create_index("ix_tasks_folder_state", "tasks", ["folder", "state"])
    names = ("state", "sent", "folder")
    tasks = sa.table("tasks", *(sa.column(name, sa.Text()) for name in names))
    op.execute(
        sa.update(tasks)
        .where(tasks.c.state.in_(("preparing", "open", "ended")))
        .where(sa.cast(tasks.c.sent, sa.Text()).like('%"rung"%'))
        .values(folder="there")
    )

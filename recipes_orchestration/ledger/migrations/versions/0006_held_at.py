"""Since when a task waits for a person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds the column; of tasks that are held it is not known."""
    op.add_column("tasks", sa.Column("held_at", sa.DateTime(timezone=True)))

"""What is known of jobs: the array a task was sent in, what the far side told, lost connections."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the columns."""
    op.add_column("tasks", sa.Column("array", sa.Text()))
    op.add_column("tasks", sa.Column("report", sa.JSON()))
    reached = sa.Column("until_reached", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("pauses", reached)

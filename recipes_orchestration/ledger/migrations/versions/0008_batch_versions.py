"""How often the pages of a batch were written: what was read of them before still holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Adds the column."""
    version = sa.Column("version", sa.Integer(), nullable=False, server_default=sa.text("0"))
    op.add_column("batches", version)

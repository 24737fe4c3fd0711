"""The ledger's schema over time, for alembic."""

"""The ledger: pages and batches, tasks and claims, holds."""

"""Multi-step recipes over folders of scanned pages, as partitioned Dagster assets."""

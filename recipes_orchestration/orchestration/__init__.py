"""All that imports Dagster: assets, sensors, events and the IO manager."""

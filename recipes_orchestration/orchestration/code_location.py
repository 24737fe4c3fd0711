"""A project as Dagster definitions."""

from __future__ import annotations

import warnings

import dagster as dg

from ..project import Project
from .adopting import adopt_sensor
from .assets import pages_spec, stage_assets
from .automation import automation_sensor
from .control_jobs import control_jobs
from .io_manager import PageResultsIOManager
from .sensors import discovery_sensor
from .sheet_assets import sheet_assets

__all__ = ["project_definitions"]


def project_definitions(project: Project) -> dg.Definitions:
    """Everything Dagster shows and runs of the project.

    One process runs all steps of a run: a process a step would cost seconds each and nothing is
    gained, since the work itself is done by workers or elsewhere.
    """
    with warnings.catch_warnings():
        # Checks with partitions are a preview and code references a beta: there is nothing else
        # that could name a check's batch, or lead from an asset to its recipe file.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.Definitions(
            assets=[
                *(pages_spec(name, source.root) for name, source in project.sources.items()),
                *stage_assets(project),
                *sheet_assets(project),
            ],
            sensors=[
                *(discovery_sensor(project, name) for name in project.sources),
                automation_sensor(),
                adopt_sensor(project),
            ],
            jobs=control_jobs(project),
            resources={"page_results": PageResultsIOManager(project)},
            executor=dg.in_process_executor,
        )

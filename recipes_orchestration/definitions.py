"""What Dagster loads: the project named by RECIPES_PROJECT, else the example."""

from .orchestration.code_location import project_definitions
from .project import load_project

defs = project_definitions(load_project())

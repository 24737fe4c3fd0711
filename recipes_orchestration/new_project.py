"""A new project folder that is valid at once and explains itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .errors import ConfigError
from .project_schemas import PROJECT_SCHEMA, RECIPE_SCHEMA, write_schemas

__all__ = ["init_project"]

_SCHEMAS = ".recipes/schemas"
_NEVER_KEPT = ("project.yaml", "recipes/letters.yaml")

_PROJECT = """\
# yaml-language-server: $schema={schemas}/{schema}
# What all recipes of this project share. `recipes check` says what is wrong in it.

# What the project is called in the UI.
name: {name}

# Where results land: a folder, relative to this file, or a URL such as s3://bucket/results.
library: library

# Where pages come from. Every folder below `root` that holds images, PDFs or TIFFs is taken.
sources:
  letters:
    root: pages               # a folder, relative to this file, or a URL such as s3://bucket/scans
    # batch_size: 500         # at most so many pages of one folder make a batch
    # hidden: false           # true: also files and folders whose names begin with a dot
    # storage_options:        # for s3:// and other URLs; secrets come from the environment
    #   key: ${{S3_KEY}}
    #   secret: ${{S3_SECRET}}

# Where steps run. `local` is this machine and needs no entry.
# places:
#   local:
#     workers: 2              # processes; by default one a core, at most four
#   cluster:                  # a name of yours for a Slurm cluster; its settings: docs/slurm.md
#     kind: slurm
#     host: login.uni.example # as ssh knows it
#     time: 02:00:00          # of a task
#   anthropic:                # or openai, gemini, bedrock; the key is in ANTHROPIC_API_KEY
#     batch_from: 100         # fewer pages of a step go as plain calls, at the full price

# Bounds on pages, and on what a stopped run may lose. These are the defaults.
# limits:
#   max_pixels: 150_000_000   # a larger page is held for a person
#   max_file_mb: 2000         # so is a larger file
#   page_timeout: 600         # so is a page that takes longer, in seconds
#   tries: 2                  # so is a page that failed so often
#   land_every_pages: 25      # results are written after so many pages ...
#   land_every_seconds: 30    # ... or so many seconds

# The database of what has been sent; by default a file in .recipes/. RECIPES_LEDGER_URL wins.
# ledger: postgresql://recipes:${{PG_PASSWORD}}@db.example.org/recipes
"""

_RECIPE = """\
# yaml-language-server: $schema=../{schemas}/{schema}
# Named steps over one source. Each file in recipes/ is one recipe.
recipe: letters
source: letters
when: manual            # or new_pages, or a cron line such as "0 22 * * *"
max_held: 0.05          # share of a batch's pages that may wait for a person while it goes on

# A step runs a built-in operation or `module:function`; modules in the project folder are found.
# It is given the page and the values of the steps that it needs.
steps:
  - {{name: lines, run: lines}}                    # where the lines of writing are
  - {{name: read,  run: read,  needs: [lines]}}    # what they say; rough for handwriting
  - {{name: names, run: names, needs: [read]}}     # the persons in the text
  - {{name: embed, run: embed, needs: [read]}}     # a vector for searching by meaning
  # - {{name: mine, run: "my_steps:count_words", needs: [read], params: {{min_length: 4}}}}
  # What the page says by a model on the cloud, in batches at half the price. Pages leave with two
  # yeses only: `consent: pages_may_leave` up here, and `pages_may_leave: true` in project.yaml.
  # - {{name: transcript, run: read, place: anthropic, model: claude-sonnet-4-6}}
"""

_PAGES = """\
Put folders of scanned pages here: JPEG, PNG, TIFF, WebP, JPEG 2000 or PDF.
Or let `root` in project.yaml point to where they are. This file is not a page and is passed over.
"""

_IGNORE = f"""\
.recipes/*
!{_SCHEMAS}/
.dagster/
__pycache__/
/library/
/pages/*
!/pages/README.txt
"""


def init_project(folder: Path) -> list[Path]:
    """Writes a project into a folder, which is made; gives the paths of its files.

    Raises `ConfigError`, having written nothing, when there is a project already, and when the
    folder cannot be written. Other files that are there stay as they are.
    """
    folder = folder.expanduser().resolve()
    texts = {
        "project.yaml": _PROJECT.format(
            name=_yaml_text(folder.name), schemas=_SCHEMAS, schema=PROJECT_SCHEMA
        ),
        "recipes/letters.yaml": _RECIPE.format(schemas=_SCHEMAS, schema=RECIPE_SCHEMA),
        "pages/README.txt": _PAGES,
        ".gitignore": _IGNORE,
    }
    there = next((name for name in _NEVER_KEPT if os.path.lexists(folder / name)), None)
    if there is not None:
        raise ConfigError(
            f"{folder} has a {there} already; name a folder without one, or remove it."
        )
    texts = {name: text for name, text in texts.items() if not os.path.lexists(folder / name)}
    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
        return [*(folder / name for name in texts), *write_schemas(folder / _SCHEMAS)]
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written: {error.strerror}; name a folder that you may write."
        ) from error


def _yaml_text(name: str) -> str:
    """A folder's name as a YAML text: quoted as JSON, which YAML takes, and never too long."""
    shown = "".join(c for c in name if c.isprintable())[:100]
    return json.dumps(shown or "project", ensure_ascii=False)

"""`python -m recipes_orchestration.rehearsal --port N`: the rehearsal as a process of its own."""

from __future__ import annotations

import argparse
import sys

from ..errors import RecipesError
from .process import rehearse

__all__: list[str] = []


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m recipes_orchestration.rehearsal")
    parser.add_argument("--providers", default="")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default=None, help="a file with {provider: script}")
    given = parser.parse_args()
    try:
        rehearse(given.providers, port=given.port, script=given.script)
    except RecipesError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


_main()

"""Whether Linux killed processes of this job because it used up its memory."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

__all__ = ["MemoryKills"]

_CONTROLLERS = Path("/proc/self/cgroup")
_MOUNTED = Path("/sys/fs/cgroup")
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class MemoryKills:
    """Counts the kills in this process's control group, which a job's bound of memory hangs on.

    Version 2 has the count in `memory.events`, version 1 in `memory.oom_control` (Linux,
    Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). Where neither can be read
    there never was one.
    """

    def __init__(self, controllers: Path = _CONTROLLERS, mounted: Path = _MOUNTED) -> None:
        self._files: list[Path] = []
        with suppress(OSError):
            for line in controllers.read_text().split("\n"):
                _, _, rest = line.partition(":")
                controller, _, group = rest.partition(":")
                inside = group.strip("/")
                if controller == "" and group:
                    self._files.append(mounted / inside / "memory.events")
                elif "memory" in controller.split(","):
                    self._files.append(mounted / "memory" / inside / "memory.oom_control")
        self._seen = self._count()

    def happened(self) -> bool:
        """Whether there was one since it was last asked."""
        before, self._seen = self._seen, self._count()
        return self._seen > before

    def _count(self) -> int:
        found = 0
        for file in self._files:
            with suppress(OSError, UnicodeDecodeError):
                match = _KILLS.search(file.read_text())
                found += int(match[1]) if match else 0
        return found

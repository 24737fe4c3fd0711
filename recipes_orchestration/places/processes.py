"""Names this process so that any other process of the machine can tell whether it still lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil

__all__ = ["process_lives", "this_process"]


def this_process() -> str:
    """`<machine>:<pid>:<start time>`; the start time tells it from a later one with its pid."""
    return f"{_machine()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def process_lives(token: str) -> bool | None:
    """Whether that process lives; None when it belongs to another machine or container."""
    rest, _, started = token.rpartition(":")
    machine, _, pid = rest.rpartition(":")
    if machine != _machine():
        return None
    try:
        process = psutil.Process(int(pid))
        return f"{process.create_time():.2f}" == started and (
            process.status() != psutil.STATUS_ZOMBIE
        )
    except (psutil.NoSuchProcess, ValueError):
        return False


def _machine() -> str:
    """The host and, where there are containers, the one whose pids this process can see."""
    namespace = Path("/proc/self/ns/pid")
    inside = namespace.readlink().name.strip("pid:[]") if namespace.exists() else ""
    return f"{socket.gethostname()}:{inside}"

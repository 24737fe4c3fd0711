"""Values that settings of job places are made of, refused with the forms that are allowed."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from .yaml_files import quoted

__all__ = [
    "Container",
    "Flavor",
    "Gres",
    "Host",
    "HubAddress",
    "HubFolder",
    "HubName",
    "Line",
    "Memory",
    "Module",
    "Option",
    "Scratch",
    "Time",
    "Variable",
    "Word",
    "time_seconds",
]

_TIME = re.compile(r"(?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d)")
# What the place writes itself, or by which it finds its jobs again.
_OWN_OPTIONS = (
    *("--array", "--job-name", "--output", "--error", "--chdir", "--export", "--export-file"),
    *("--requeue", "--no-requeue", "--parsable", "--wrap", "--hold", "--wait", "--test-only"),
)
_OWN_LETTERS = ("-a", "-J", "-o", "-e", "-D", "-H", "-W")


def _form(pattern: str, allowed: str) -> AfterValidator:
    """Takes what fits the pattern whole; anything else is refused with what is allowed."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value):
            return value
        raise ValueError(f"found {quoted(value)}; allowed: {allowed}")

    return AfterValidator(check)


def time_seconds(time: str) -> int:
    """Seconds of a time limit as Slurm writes it, HH:MM:SS or D-HH:MM:SS; `ValueError` if not."""
    found = _TIME.fullmatch(time)
    if found is None:
        raise ValueError(f"found {quoted(time)}; allowed: {_TIMES}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


_TIMES = "hours, minutes and seconds, such as 02:00:00, or with days, such as 1-12:00:00"


def _time(value: str) -> str:
    if time_seconds(value) < 1:
        raise ValueError(f"found {quoted(value)}, which is no time at all; allowed: {_TIMES}")
    return value


def _option(value: str) -> str:
    name = value.partition("=")[0]
    if not re.fullmatch(r"(--[a-z][a-z0-9-]*(=\S[ -~]*)?|-[A-Za-z]\S*)", value):
        allowed = "one option of sbatch with its value, such as --constraint=a100"
        raise ValueError(f"found {quoted(value)}; allowed: {allowed}")
    if name in _OWN_OPTIONS or value[:2] in _OWN_LETTERS:
        raise ValueError(f"found {quoted(value)}, which is written for each job; take it away")
    return value


Time = Annotated[str, AfterValidator(_time)]
Memory = Annotated[
    str, _form(r"[1-9]\d{0,8}[KMGT]", "a whole number with K, M, G or T, such as 16G or 4000M")
]
Word = Annotated[
    str,
    _form(r"[A-Za-z0-9_][A-Za-z0-9_.,@+-]{0,199}", "a name of the site's, such as main"),
]
Line = Annotated[
    str, _form(r"(?=.*\S)[^\x00-\x1f\x7f]{1,2000}", "one line of text, without control characters")
]
Variable = Annotated[
    str,
    _form(
        r"[A-Za-z_][A-Za-z0-9_]{0,199}",
        "the name of an environment variable, such as HF_TOKEN, never its value",
    ),
]
Flavor = Annotated[
    str, _form(r"[a-z0-9][a-z0-9-]{0,99}", "a flavor such as cpu-upgrade, t4-small or a10g-large")
]
HubName = Annotated[
    str,
    _form(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}", "a user or an organization on the Hub, such as archive"
    ),
]
HubFolder = Annotated[
    str,
    _form(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}",
        "owner and name, such as archive/recipes",
    ),
]
Option = Annotated[str, AfterValidator(_option)]
Host = Annotated[
    str,
    _form(
        r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,252}",
        "a host of your ssh_config, or user@host; nothing for this machine",
    ),
]
Scratch = Annotated[
    str,
    _form(
        r"(?!.*/\.\.(/|$))(/|~/)[^\x00-\x1f\x7f%\\]*",
        "a path on the cluster that begins with / or ~/, without .. or %",
    ),
]
Module = Annotated[
    str, _form(r"[A-Za-z0-9_][A-Za-z0-9_.+/@=-]{0,199}", "a module such as python/3.11.5")
]
Container = Annotated[
    str, _form(r"[A-Za-z0-9_/~.][!-~]{0,999}", "a path, or an address such as docker://python:3.12")
]
Gres = Annotated[
    str,
    _form(
        r"[A-Za-z0-9_][A-Za-z0-9_.:,()=/-]{0,199}",
        "a resource and how many, such as gpu:1 or gpu:a100:2",
    ),
]
HubAddress = Annotated[
    str, _form(r"https?://[^\s/]+(/\S*)?", "an address such as https://hub.example")
]

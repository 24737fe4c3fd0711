"""What goes of tasks that are over, on scratch: a script for `sh` of the login node. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from .commands import ABSENT, ARRAYS, CANCELLED
from .script import EXIT, LOGS, STARTED

__all__ = ["clear_command", "clear_input", "cleared"]


def clear_command(root: str) -> list[str]:
    """Removes the folders of tasks of `clear_input`, and what no other task needs beside them.

    Prints the number of each, from 0, of which nothing is left.
    """
    return ["sh", "-c", _CLEAR, "sh", root]


def clear_input(tasks: Iterable[tuple[str, str, int]]) -> str:
    """Batch folders, arrays and indexes as `clear_command` reads them."""
    return "".join(f"{batch} {name} {index}\n" for batch, name, index in tasks)


def cleared(text: str, count: int) -> list[int]:
    """The numbers that `clear_command` printed, of so many tasks."""
    numbers = [int(line) for line in text.split("\n") if line.isdecimal() and line.isascii()]
    return [number for number in numbers if number < count]


# A batch folder that another process is just sending into is put back: its array folder is made
# before its pages are sent. One that was taken away by somebody who was then killed is found again.
_CLEAR = f"""\
root=$1
needed() {{
  for each in "$1"/*/; do
    case $each in
    */pages/|*/code/) ;;
    */parts/) [ -z "$(ls -A "$each")" ] || return 0 ;;
    *) [ ! -d "$each" ] || return 0 ;;
    esac
  done
  return 1
}}
remove() {{
  folder=$root/$batch/$name
  rm -f -- "$root/{ARRAYS}/$name.{ABSENT}.$index"
  if [ -d "$folder" ]; then
    rm -rf -- "$folder/$index" || return 1
    for each in {EXIT} {STARTED} {CANCELLED} {ABSENT}; do rm -f -- "$folder/$each.$index"; done
    rm -f -- "$folder/{LOGS}"/*_"$index".log
    for each in "$folder"/[0-9]*/; do [ ! -d "$each" ] || return 0; done
    rm -rf -- "$folder" || return 1
  fi
  rm -f -- "$root/{ARRAYS}/$name" "$root/{ARRAYS}/.$name."* || return 1
  if [ -d "$root/$batch" ] && ! needed "$root/$batch"; then
    mv -- "$root/$batch" "$root/.gone.$batch+$$" || return 1
  fi
  for gone in "$root/.gone.$batch+"*; do
    if [ ! -d "$gone" ]; then continue; fi
    if needed "$gone" && [ ! -e "$root/$batch" ]; then
      mv -- "$gone" "$root/$batch"
    else
      rm -rf -- "$gone" || return 1
    fi
  done
}}
number=0
while read -r batch name index; do
  ! remove || echo $number
  number=$((number + 1))
done
"""

"""Reads the file of names that `python -m satview.threadtrace` writes beside its traces.

thread_trace(4) knows numbers only. `tr.xxxxxxx.names` has a line per name: `process:PID:PATH`, `thread:TID:NAME` and
`object:ADDRESS:TEXT`. Lines of any other form are passed over: the traces are read without them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_LINE = re.compile(r"(process|thread|object):([0-9]{1,18}):(.*)", re.DOTALL)
_LONGEST: Final = 4096
_NAME_LENGTH: Final = 300


@dataclass(slots=True)
class Names:
    """Names of one set, by process id and number.

    Attributes:
        processes: Path of the program by pid.
        threads: By (pid, tid); the last name given counts.
        objects: By (pid, address).
    """

    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    objects: dict[tuple[int, int], str] = field(default_factory=dict)


def read_names(path: Path, names: Names) -> None:
    """Add the names of one file; a file that cannot be read adds none."""
    try:
        with path.open("rb") as file:
            pid = -1
            while line := file.readline(_LONGEST):
                match = _LINE.fullmatch(line.decode("utf-8", "replace").rstrip("\r\n"))
                if match:
                    pid = _add(names, pid, match[1], int(match[2]), _clean(match[3]))
    except OSError:
        return


def _add(names: Names, pid: int, kind: str, number: int, text: str) -> int:
    """Note one name; return the process that the lines after it are about."""
    if kind == "process":
        names.processes[number] = text
        return number
    table = names.threads if kind == "thread" else names.objects
    table[pid, number] = text
    return pid


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:_NAME_LENGTH])

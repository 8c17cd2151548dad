"""Names of processes as rules and conditions may write them."""

from __future__ import annotations

import re
from typing import Final

from satview.store.trace import Trace

LABEL: Final = re.compile(r"(?P<name>.+)\[(?P<numbered>[0-9]{1,10})\]|pid (?P<pid>[0-9]{1,10})")  # as views show them


def process_names(trace: Trace) -> dict[str, tuple[int, ...]]:
    """Return the pids behind every process name of a trace, with and without its folders."""
    found: dict[str, list[int]] = {}
    for pid, name in zip(trace.processes.pid.tolist(), trace.processes.names, strict=True):
        for spelling in {name, name.rsplit("/", 1)[-1]} if name and pid > 0 else ():
            if pid not in found.setdefault(spelling, []):
                found[spelling].append(pid)
    return {name: tuple(pids) for name, pids in found.items()}

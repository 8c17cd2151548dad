"""The table of targets: what makes an input and what is done with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz import answers, doors, queries, readers, texts, traces, windows


@dataclass(frozen=True, slots=True)
class Target:
    """One part of the program that takes bytes from outside.

    Attributes:
        title: For the table.
        make: Returns an input.
        run: Does everything with an input, in a folder of its own; raises for what is a fault.
        limit_s: Seconds an input may take.
        unit_bytes: Bytes of what time and memory are counted per: 16 for slots, else 1.
    """

    title: str
    make: Callable[[random.Random], bytes]
    run: Callable[[bytes, Path], None]
    limit_s: float = 5.0
    unit_bytes: int = 1


TARGETS: Final = {
    "kev": Target(".kev, batch = stream = follow", traces.kev, readers.kev, unit_bytes=16),
    "printer": Target(".kev to listing and back", traces.kev, readers.printer, unit_bytes=16),
    "listing": Target("listings", traces.listing, readers.listing),
    "threads": Target("UnixWare thread traces", traces.thread_set, readers.thread_set),
    "foreign": Target("QST files and schedules of Linux", traces.foreign, readers.foreign),
    "packed": Target("compressed traces", traces.packed, readers.packed),
    "rules": Target("rule files", texts.rules, texts.run_rules),
    "expressions": Target("expressions, columns = single events", texts.expression, texts.run_expression),
    "sql": Target("queries in SQL", queries.query, queries.run_query, limit_s=15.0),
    "c": Target("export of C programs", texts.rules, texts.run_c),
    "filters": Target("filter stack, undo and redo", windows.script, windows.run_filters),
    "marks": Target("files of marks", windows.marks_file, windows.run_marks),
    "settings": Target("settings and recent files", windows.settings_file, windows.run_settings),
    "verdicts": Target("verdicts and causes", traces.kev, answers.run_verdicts, unit_bytes=16),
    "thresholds": Target("files of thresholds", answers.thresholds, answers.run_thresholds),
    "sessions": Target("sessions", doors.session_file, doors.run_session),
    "axis": Target("axis files", doors.axis_file, doors.run_axis),
    "cache": Target("files of the cache", doors.cache_seed, doors.run_cache),
    "server": Target("tools of the server", windows.script, doors.run_server, limit_s=20.0),
    "instance": Target("the socket of the instance", doors.instance_request, doors.run_instance),
    "models": Target("item models and navigation", traces.kev, windows.run_models, unit_bytes=16),
}


def input_of(name: str, seed: int, index: int) -> bytes:
    """Return an input; the same three values always give the same bytes."""
    return TARGETS[name].make(random.Random(f"{seed}/{name}/{index}"))

"""Writes the functions of a trace as stacks: folded lines for flame graph tools, or a file for speedscope.

A folded line is `process;thread;outer;inner WEIGHT`. The weight of a logged call is the CPU time of its thread, in
nanoseconds; that of a sampled stack is the number of samples. A speedscope file has both, in separate profiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from satview.answers.functions import SEPARATOR, SOURCES, function_table
from satview.base.new_file import NewFile
from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.formats.registry import source_files
from satview.store.trace import Trace

_CALLS, _SAMPLES = SOURCES
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def write_folded(trace: Trace, path: Path | str, window: TimeWindow | None) -> tuple[int, int]:
    """Write a line for each stack; return the number of lines, and of samples left out because there are logged calls.

    `path` may be `-`; `window` is as for `function_table`.

    Raises:
        UsageError: The file cannot be written.
    """
    rows = function_table(trace, window).records()
    source = _CALLS if any(row["source"] == _CALLS for row in rows) else _SAMPLES
    lines = [f"{SEPARATOR.join(_frames(row))} {_weight(row)}" for row in rows if row["source"] == source]
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write("".join(f"{line}\n" for line in lines).encode())
    return len(lines), sum(row["count"] for row in rows if row["source"] != source)


def write_speedscope(trace: Trace, path: Path | str, window: TimeWindow | None) -> tuple[int, int]:
    """Write the stacks of each thread as a profile for speedscope; return the number of stacks, and 0 samples left out.

    `path` may be `-`; `window` is as for `function_table`.

    Raises:
        UsageError: The file cannot be written.
    """
    frames: dict[tuple[str, str], int] = {}
    profiles: dict[tuple[str, str], dict[str, Any]] = {}
    rows, stack = function_table(trace, window).records(), list[int]()
    for row in rows:  # a function is followed by the functions that it calls
        is_calls = row["source"] == _CALLS
        thread = visible_line(f"{row['process']} {row['thread']}")
        profile = profiles.setdefault((thread, row["source"]), {
            "type": "sampled", "name": f"{thread}, {row['source']}", "unit": "nanoseconds" if is_calls else "none",
            "startValue": 0, "endValue": 0, "samples": [], "weights": [],
        })  # fmt: skip
        frame = frames.setdefault((row["function"], row["place"]), len(frames))
        stack = [*stack[: row["depth"]], frame]
        profile["samples"].append(stack)
        profile["weights"].append(_weight(row))
        profile["endValue"] += _weight(row)
    document = {
        "$schema": _SCHEMA,
        "exporter": "satview",
        "name": trace.path.name,
        "shared": {"frames": list(_described(frames))},
        "profiles": list(profiles.values()),
    }
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write(json.dumps(document).encode())
    return len(rows), 0


def _described(frames: dict[tuple[str, str], int]) -> Iterator[dict[str, str | int]]:
    for name, place in frames:
        file, _, line = place.rpartition(":")
        yield {"name": name, "file": file, "line": int(line)} if file else {"name": name}


def _frames(row: dict[str, Any]) -> list[str]:
    """Return the frames of a folded line, outermost first; none of them contains the separator."""
    outer = (visible_line(row[name]).replace(SEPARATOR, ":") for name in ("process", "thread"))
    return [*outer, *(visible_line(name) for name in row["stack"].split(SEPARATOR))]


def _weight(row: dict[str, Any]) -> int:
    return int(row["running_ns"] if row["source"] == _CALLS else row["count"])

"""Filters a capture here by what of its rules no option of the target's tracelogger can say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from satview.export.subset import SubsetReport, write_subset
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.rows import process_names
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.views.would_capture import why_nothing
from satview.formats.registry import open_trace
from satview.store.arguments import taught
from satview.target.request import Request


def filter_capture(
    captured: Path, request: Request, progress: Callable[[float], None],
    cancelled: Callable[[], bool] = lambda: False, tell: Callable[[SubsetReport, str], None] = lambda *_: None,
) -> bool:  # fmt: skip
    """Write what the rules of a request let pass to its file; return whether an event did.

    Args:
        captured: What came from the target.
        request: What was asked for.
        progress: Called with 0 to 1.
        cancelled: Called now and then; True stops, and no file is left behind.
        tell: Gets what was written, and why that is nothing; empty if it is something.

    Raises:
        SatviewError: The trace or the rules cannot be read, or the file cannot be written.
    """
    trace = open_trace(captured)
    rules = parse_rules(request.rules, trace.release, process_names(trace))
    load_function = request.functions_of(trace.release) if request.functions_of is not None else None
    built = build(rules, trace.release, load_function, taught=taught(trace))
    derived = TraceDerivedColumns(trace)
    selected = built.mask(trace, derived)
    written = write_subset(trace, request.path, selected, progress=progress, cancelled=cancelled)
    passes = bool(np.any(selected))
    tell(written, "" if passes else why_nothing(built, [], trace, slice(0, len(trace.events)), derived))
    return passes

"""Captures that begin once the programs are under way, so that the opening dump reports them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from satview.capture.kernel import Kernel, mode
from satview.events.spec import Release
from tests.capture.made import ALL, Traced, as_trace, finish, kernel, run


def traced_later(
    setup: Callable[[Kernel], None],
    lead_in_ms: float,
    ms: float,
    folder: Path,
    release: Release = Release.QNX_7,
    cpus: int = 1,
    modes: tuple[tuple[Any, ...], ...] = ALL,
    between: Callable[[Kernel], None] | None = None,
) -> Traced:
    """Trace a workload that has run for some milliseconds.

    Args:
        setup: Starts the programs.
        lead_in_ms: How long they run before the trace starts.
        ms: How long they are traced.
        folder: Where the file goes.
        release: Of the target.
        cpus: Of the target.
        modes: Commands before START.
        between: Called in the middle of the traced time.
    """
    made, sink = kernel(release, cpus, 5, modes=modes, skew_ns=0)
    setup(made)
    run(made, lead_in_ms)
    made.trace_event(mode("START"))
    since = made.machine.now
    run(made, ms / 2)
    if between is not None:
        between(made)
    run(made, ms / 2)
    return Traced(made, as_trace(made, finish(made, sink), folder), since, made.machine.truth)

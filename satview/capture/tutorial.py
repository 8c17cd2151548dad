"""Runs a control program of the tutorial the way the guide tells: `tracelogger -n 1 -d1` first, then the program."""

from __future__ import annotations

from pathlib import Path

from satview.capture.logger_options import LoggerOptions
from satview.capture.run import Capture, CaptureResult, run
from satview.capture.sim.threads import Body
from satview.events.spec import Release

MS = 1_000_000
DURATION_MS = 2500


def run_tutorial(main: Body, path: Path | str, cpus: int = 1, sys_release: str = "6.1.0",
                 seed: int = 1) -> CaptureResult:
    """Run a control program against `tracelogger -n 1 -d1` on a small busy system; write the trace to a file.

    Args:
        main: The program.
        path: The file.
        cpus: Of the target.
        sys_release: Of the target; the guide's listings come from 6.1.0 and 6.2.1.
        seed: Of everything that varies.
    """
    return run(Capture("small-system", seed, cpus, Release.QNX_6, DURATION_MS * MS,
                       LoggerOptions(iterations=1, is_daemon=True), main, lead_in_ns=50 * MS, sys_release=sys_release,
                       attributes=[("TRACELOGGER_ARGS", "tracelogger -n 1 -d1")]), path)

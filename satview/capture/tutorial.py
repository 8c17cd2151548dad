"""Runs a control program of the tutorial as the QNX guide does: `tracelogger -d1 -n 3 -f FILE`, then the program."""

from __future__ import annotations

import sys
from pathlib import Path

from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, CaptureResult, run
from satview.capture.sim.threads import Body
from satview.events.spec import Release

MS = 1_000_000
DURATION_MS = 2500
ITERATIONS = 3


def run_tutorial(
    main: Body, path: Path | str, cpus: int = 1, sys_release: str = "6.1.0", seed: int = 1
) -> CaptureResult:
    """Run a control program with `tracelogger -d1 -n 3` on the workload `small-system`, and write the trace to a file.

    Errors are printed on standard error, as the guide's programs do.

    Args:
        main: The function `main` of the program.
        path: The file to write.
        cpus: Number of CPUs of the target.
        sys_release: Release of the target; the guide's listings come from 6.1.0 and 6.2.1.
        seed: Random seed of the simulation.
    """
    options = LoggerOptions(iterations=ITERATIONS, is_daemon=True)
    command = f"tracelogger -d1 -n {ITERATIONS} -f {Path(path).name}"
    result = run(
        Capture(
            "small-system",
            seed,
            cpus,
            Release.QNX_6,
            DURATION_MS * MS,
            options,
            main,
            lead_in_ns=50 * MS,
            sys_release=sys_release,
            attributes=[("TRACELOGGER_ARGS", command)],
        ),
        path,
    )
    for finding in result.findings:
        sys.stderr.write(f"{finding}\n")
    return result

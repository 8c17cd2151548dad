"""Loads control programs from Python files; they are the counterparts of the C programs in the QNX guide.

Workload files are loaded the same way. An error in such a file is reported with its line number.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from satview.base.errors import SatviewError, UsageError, one_line
from satview.base.threads import Stuck, Watchdog
from satview.capture import nto
from satview.capture.buffers import CaptureError
from satview.capture.sim.machine import Machine
from satview.capture.sim.services import location_of
from satview.capture.sim.threads import Body
from satview.events.spec import Release

PATIENCE_S = 10.0  # real time that a file may run without progress


def load(path: str | Path, release: Release = Release.QNX_7) -> Body:
    """Return the function `main` of a control program: a generator of `TraceEvent(...)`, `Sleep(...)` and other calls.

    Args:
        path: The file.
        release: Release of the target, which determines the values of the names in `nto`.

    Raises:
        UsageError: The file cannot be read or run, or defines no main().
    """
    path = Path(path)
    nto.set_release(release)
    main = run_file(path, "satview_control").get("main")
    if not callable(main):
        raise UsageError(f"{path.name}: defines no main()")
    body: Body = main
    return body


def run_file(path: Path, name: str) -> dict[str, Any]:
    """Run a Python file as a module and return its global variables.

    Raises:
        UsageError: The file cannot be read, or its code raises, exits or does not end.
    """
    with locating_errors(path):
        return runpy.run_path(str(path), run_name=name)


@contextmanager
def locating_errors(path: Path, progress: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Convert exceptions raised by the code of a file to a UsageError that names file and line.

    Args:
        path: The file.
        progress: Returns a number that changes while the code makes progress; code without progress is ended.

    Raises:
        UsageError: The code does not parse, raises, exits, or runs without progress.
        SatviewError: Raised by the code; passed on unchanged.
    """
    try:
        with Watchdog(PATIENCE_S, progress):
            yield
    except SatviewError:
        raise
    except Stuck as stuck:
        raise UsageError(f"{_location(stuck, path)}: ran for {PATIENCE_S:g} s without getting anywhere") from stuck
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        raise UsageError(f"{Path(error.filename or path).name}{where}: {error.msg}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, OSError) and not _line_in(error, path):
            raise UsageError(f"{path.name}: {error.strerror or error}") from error
        raise UsageError(f"{_location(error, path)}: {one_line(error)}") from error


@contextmanager
def advancing(
    machine: Machine, name: str, patience_s: float = 0.0, is_waiting: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """End a program of the simulation that makes no progress, or the simulation if no program is at fault.

    Args:
        machine: The simulation; its clock and its number of steps measure progress.
        name: Name of the capture, for the message.
        patience_s: Maximum real time without progress; 0 = `PATIENCE_S`.
        is_waiting: Returns True while the simulation waits for the reader of its output, however long that takes.

    Raises:
        CaptureError: The simulation got stuck outside of programs.
    """
    try:
        with Watchdog(patience_s or PATIENCE_S, lambda: None if is_waiting() else machine.steps + machine.now):
            yield
    except Stuck as stuck:
        raise CaptureError(f"{name}: the simulation got no further at {location_of(stuck)} and was ended") from stuck


def _location(error: BaseException, path: Path) -> str:
    line = _line_in(error, path)
    return f"{path.name}, line {line}" if line else path.name


def _line_in(error: BaseException, path: Path) -> int:
    """Return the line number of the innermost frame of a file in an exception's traceback; 0 = no such frame."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

"""Runs Python files on the simulated target: control programs, the counterparts of the guide's C programs.

Workloads from files are loaded the same way: errors in such a file are reported with its line.
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
from satview.capture.files import CaptureError
from satview.capture.sim.machine.machine import Machine
from satview.capture.sim.parts.errors import location_of
from satview.capture.sim.parts.threads import Body
from satview.events.spec import Release

PATIENCE_S = 10.0  # real time that a file may run without progress


def load(path: str | Path, release: Release = Release.QNX_7) -> Body:
    """Return the `main` of a control program; it yields `TraceEvent(...)`, `Sleep(...)` and other calls.

    Args:
        path: The file.
        release: Release it will run on, which determines the numbers of names in `nto`.

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
    """Run a Python file as a module and return what it defines.

    Raises:
        UsageError: It cannot be read, raises, exits or does not end.
    """
    with blaming(path):
        return runpy.run_path(str(path), run_name=name)


@contextmanager
def blaming(path: Path, progress: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Raise errors in the code of a file as a UsageError that names file and line.

    Args:
        path: The file.
        progress: Returns a number that changes while the code makes progress; code without progress is ended.

    Raises:
        UsageError: The code does not parse, raises, exits, or runs without progress.
        SatviewError: As the code raised it.
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
    """End a simulation without progress. Usually one program is at fault, and only that is ended.

    Args:
        machine: It makes progress as long as its clock or its programs do.
        name: Name of the capture, for the message.
        patience_s: Real time that it may run without progress; 0 = as for files.
        is_waiting: Returns True while it waits for the reader of its output, who may take any time.

    Raises:
        CaptureError: It got stuck outside of programs.
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
    """Return the innermost line of a file that an exception passed through, 0 = none."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

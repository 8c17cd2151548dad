"""Finds workloads by name; loads workloads and control programs from Python files.

Control programs are the counterparts of the C programs in the QNX guide.
"""

from __future__ import annotations

import difflib
import importlib
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satview.base.errors import SatviewError, UsageError, one_line, reading_fault
from satview.base.threads import Stuck, Watchdog
from satview.capture import nto
from satview.capture.buffers import CaptureError
from satview.capture.sim.machine import Machine
from satview.capture.sim.services import location_of
from satview.capture.sim.threads import Body
from satview.events.spec import Release
from satview.events.wire import MAX_CPUS

if TYPE_CHECKING:
    from satview.capture.kernel import Kernel


# Loads control programs from Python files; they are the counterparts of the C programs in the QNX guide.
#
# Workload files are loaded the same way. An error in such a file is reported with its line number.


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
            raise UsageError(f"{path.name}: {reading_fault(error)}") from error
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


# Finds workloads by name, and loads workloads from Python files.


MS = 1_000_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Workload:
    """Programs to run on a simulated target.

    Attributes:
        name: Name on the command line.
        summary: Description in one line.
        setup: Starts the programs on a kernel.
        cpus: Default number of CPUs.
        duration_ns: Default simulated time, which is long enough to show the effect.
        lead_in_ns: Default simulated time before the capture; 0 = the start of the programs is captured.
        is_wide: The effect is visible only in wide events, which contain priorities and owners of mutexes.
    """

    name: str
    summary: str
    setup: Callable[[Kernel], None]
    cpus: int = 1
    duration_ns: int = 200 * MS
    lead_in_ns: int = 0
    is_wide: bool = False


# name: (module, CPUs, duration in ms, lead-in in ms, summary)
_ROWS: dict[str, tuple[str, int, int, int, str]] = {
    "two-threads": ("scheduling", 1, 40, 0, "a high and a low thread, I/O and preemption: the guide's table t1 to t9"),
    "polite": ("scheduling", 1, 40, 0, "two threads of one priority that yield to each other"),
    "client-server": ("messaging", 1, 300, 5, "clients queue up before a slow server"),
    "inversion": ("locking", 1, 200, 5, "priority inversion: a mutex without inheritance"),
    "inheritance": ("locking", 1, 200, 5, "the same three threads, with priority inheritance"),
    "deadlock": ("locking", 1, 100, 0, "two threads take two mutexes in opposite order"),
    "lost-wakeup": ("locking", 1, 300, 0, "a condition variable signalled before anybody waits"),
    "message-deadlock": ("locking", 1, 100, 0, "two servers send to each other, and a client waits behind"),
    "nested-inversion": ("locking", 1, 60, 0, "priority inversion through two servers of fixed priority"),
    "convoy": ("locking", 1, 200, 0, "five threads sleep with one mutex locked, one after the other"),
    "starvation": ("locking", 1, 450, 0, "a thread that polls keeps one of lower priority from running"),
    "partition-starvation": ("scheduling", 1, 700, 0, "a thread uses up its partition; another there starves"),
    "nested-servers": ("messaging", 2, 300, 5, "a client of a server that is itself a client, on two CPUs"),
    "interrupt-flood": ("scheduling", 2, 200, 5, "a device raises interrupts until nothing else runs"),
    "periodic": ("scheduling", 1, 500, 5, "periodic tasks with jitter; one misses its deadline"),
    "producer-consumer": ("messaging", 2, 300, 5, "a bounded queue: mutex, condition variables, semaphores"),
    "partitions": ("scheduling", 1, 1200, 5, "adaptive partitions under overload"),
    "fork-storm": ("processes", 2, 300, 5, "a shell loop starts processes that die at once"),
    "meeting-points": ("locking", 2, 200, 5, "barrier and reader/writer lock: kernel objects in 8.0"),
    "signals": ("processes", 1, 200, 5, "signals, handlers, interrupted calls, timeouts"),
    "instrumented": ("kernel_notes", 2, 60, 5, "programs that log functions, counters, phases; a guest, power, faults"),
    "every-call": ("every_call", 1, 100, 0, "every kernel call of the release, with its result and with an error"),
    "process-life": (
        "processes",
        2,
        100,
        0,
        "fork, exec, SIGCHLD, stop and continue, pulses about lost connections",
    ),
    "faults": ("processes", 1, 60, 0, "threads wait for pages, stacks and registers; faults; unblock pulses"),
    "network": ("messaging", 1, 60, 0, "virtual threads of another node, NET_SEND and NET_REPLY (up to 7.x)"),
    "kernel-notes": ("kernel_notes", 2, 60, 0, "run states, power, profile, defragmentation, security checks"),
    "virtual-machine": ("kernel_notes", 2, 60, 0, "a hypervisor with a guest on two virtual CPUs (7.x, 8.0)"),
    "small-system": ("systems", 1, 500, 20, "a development target: shell, file system, network, screen"),
    "automotive": ("systems", 4, 2000, 400, "an assistance system of a car: everything at once on 4 CPUs"),
}


_WIDE = frozenset(("inversion", "inheritance", "nested-inversion", "deadlock", "convoy", "lost-wakeup"))


def is_wide(name: str) -> bool:
    """Return whether the effect of a workload is visible only in wide events; False for a workload from a file."""
    return name in _WIDE


def names() -> list[tuple[str, str]]:
    """Return names and summaries of all workloads."""
    return [(name, row[4]) for name, row in _ROWS.items()]


def find(name: str) -> Workload:
    """Return a workload by its name or by the path of a Python file.

    A file defines `setup(kernel)`, or `main()` as the program of a single process; it may set CPUS, DURATION_MS and
    LEAD_IN_MS.

    Raises:
        UsageError: There is no such workload, or the file defines no workload.
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    row = _ROWS.get(name)
    if row is None:
        near = difflib.get_close_matches(name, _ROWS, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(_ROWS)}"
        raise UsageError(f"no workload {name!r}{hint}")
    module, cpus, duration_ms, lead_in_ms, summary = row
    code = importlib.import_module(f"satview.capture.workloads.{module}")
    setup = getattr(code, "setup_" + name.replace("-", "_"), None) or code.setup
    return Workload(name, summary, setup, cpus, duration_ms * MS, lead_in_ms * MS, is_wide(name))


def _from_file(path: Path) -> Workload:
    values = run_file(path, "satview_workload")
    setup, main = values.get("setup"), values.get("main")
    if not callable(setup):
        if not callable(main):
            raise UsageError(f"{path.name}: defines neither setup(kernel) nor main()")
        program = main

        def setup(kernel: Kernel) -> None:
            kernel.spawn(f"usr/bin/{path.stem}", program)

    def guarded(kernel: Kernel) -> None:
        with locating_errors(path, lambda: kernel.machine.now):
            setup(kernel)

    def number(name: str, default: int, minimum: int, maximum: int) -> float:
        value = values.get(name, default)
        if not isinstance(value, (int, float)) or not minimum <= value <= maximum:
            raise UsageError(f"{path.name}: {name} is {value!r:.40}, not a number from {minimum} to {maximum}")
        return value

    summary = str(values.get("__doc__") or "").strip().split("\n")[0]
    return Workload(
        path.stem,
        summary,
        guarded,
        int(number("CPUS", 1, 1, MAX_CPUS)),
        max(1, int(number("DURATION_MS", 1000, 0, DAY_MS) * MS)),
        int(number("LEAD_IN_MS", 0, 0, DAY_MS) * MS),
    )

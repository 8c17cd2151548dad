"""The process of a command: exit codes, signals, standard input and output, and debug switches."""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import logging
import os
import platform
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, BinaryIO, Final, NoReturn

from satview.base.safe_text import visible

# The end of a command: exit codes, signals, failing standard output, and internal errors.


FINE: Final = 0
COST_DATA: Final = 1
BAD_USE: Final = 2
INTERNAL: Final = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED: Final = 130
_SIGNAL_BASE: Final = 128
_FRAMES_MAX: Final = 60
_TERMINAL: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_HAS_TIMER: Final = hasattr(signal, "setitimer")  # not on Windows
_REPEAT_S: Final = 0.1  # time after which an exception of a signal that is not handled is raised again
_OUTPUT_ERRORS: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF, errno.ENXIO)


class Ended(BaseException):
    """Exception for a signal that requests the process to end, so that temporary files go; code 128 + number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.code = _SIGNAL_BASE + number
        super().__init__(number)


class OutputError(Exception):
    """Error that standard output is full or closed."""


@contextmanager
def signals_raise() -> Iterator[None]:
    """Make SIGINT raise `KeyboardInterrupt`, and SIGTERM and SIGHUP raise `Ended`, during a block.

    Python may raise the exception inside a finalizer, or in an attribute lookup of numpy, which drop every exception:
    the command would go on as if nobody had pressed Ctrl+C. So a timer raises the exception again until it is handled.
    A signal that is ignored, as under nohup, stays ignored.
    """
    raised: BaseException | None = None
    before: dict[int, Any] = {}

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal raised
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)  # only the first one counts: clean-up must not be interrupted
        raised = Ended(number) if number != signal.SIGINT else KeyboardInterrupt()
        if _HAS_TIMER:
            before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, raise_again))
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_S, _REPEAT_S)
        raise raised

    def raise_again(_number: int, _frame: FrameType | None) -> None:
        if raised is not None and not _is_handled(raised):
            raise raised

    def drop_if_raised_again(lost: sys.UnraisableHookArgs) -> None:
        # The command reports a lack of memory itself.
        if not isinstance(lost.exc_value, (KeyboardInterrupt, Ended, MemoryError)):
            hook(lost)

    hook = sys.unraisablehook
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before.update(_handled_by(end, [number for number in _numbers(_TERMINAL) if signal.getsignal(number) in usual]))
    sys.unraisablehook = drop_if_raised_again
    try:
        yield
    finally:
        if raised is not None and _HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        _restore(before)


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Yield a list of the termination signals that arrive during the block; the second one raises KeyboardInterrupt."""
    caught: list[int] = []

    def catch(signo: int, _frame: object) -> None:
        if caught:  # the second signal ends even a command that hangs
            raise KeyboardInterrupt
        caught.append(signo)

    before = _handled_by(catch, _numbers((*_TERMINAL, "SIGABRT")))
    try:
        yield caught
    finally:
        _restore(before)


def _is_handled(error: BaseException) -> bool:
    """Return whether an `except`, `finally` or `with` block is handling this error now."""
    handled = sys.exc_info()[1]
    while handled is not None and handled is not error:
        handled = handled.__context__
    return handled is error


def _numbers(names: Iterable[str]) -> list[int]:
    """Return the signal numbers of the given names; names that the system does not have are left out."""
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _handled_by(handler: Callable[[int, FrameType | None], None], numbers: Iterable[int]) -> dict[int, Any]:
    """Set the handler of signals, and return the old handlers; do nothing outside the main thread."""
    try:
        return {number: signal.signal(number, handler) for number in numbers}
    except ValueError:
        return {}


def _restore(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


class _ClosedOutput(io.TextIOBase):
    """Replaces a standard output that was closed before the process began: writing raises an error, not silence."""

    encoding = "utf-8"

    @property
    def buffer(self) -> _ClosedOutput:
        return self

    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise OutputError("it is closed")


@contextmanager
def checked_output() -> Iterator[None]:
    """Raise OutputError if writing standard output fails, in the block or in the flush after it.

    Raises:
        OutputError: The output is full or closed.
        BrokenPipeError: The reader has closed the pipe, as `head` does.
    """
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names need not fit the terminal's encoding
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        raise
    except OSError as error:
        # Writing files raises WriteError, so this error can only be that of standard output.
        if error.filename is None and error.errno in _OUTPUT_ERRORS:
            drop_output()
            raise OutputError(error.strerror or str(error)) from error
        raise
    except BaseException:
        if not _can_flush():
            drop_output()
        raise


def _can_flush() -> bool:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True


def end_process(code: int) -> NoReturn:
    """End the process with an exit code.

    If windows were shown, the functions registered with `atexit` run, and the process ends without Python's clean-up,
    which destroys types of which Qt may still have objects (a fault in PySide's retrieveMetaObject, once in 130
    pictures). All tasks have ended before, because closing a window waits for the tasks.
    """
    if "PySide6.QtWidgets" not in sys.modules:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def drop_output() -> None:
    """Discard the buffered standard output, so that Python reports no error at exit."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
        sys.stdout.flush()


def say(text: str) -> None:
    """Print a message on standard error; control characters are written as text."""
    with contextlib.suppress(OSError, ValueError):  # a terminal that is gone
        print(f"satview: {visible(text)}", file=sys.stderr)  # noqa: T201  -- the command line's own message


def internal_report(error: BaseException, doing: str, version: str) -> str:
    """Return a text about an error inside satview, for the user to copy; it is not sent anywhere."""
    frames = "".join(traceback.format_exception(error, limit=-_FRAMES_MAX))
    numpy = getattr(sys.modules.get("numpy"), "__version__", "not loaded")
    qt = getattr(sys.modules.get("PySide6"), "__version__", "not loaded")
    return (
        f"satview {version}, Python {platform.python_version()}, {platform.platform()}\n"
        f"numpy {numpy}, PySide6 {qt}\n"
        f"doing: {visible(doing)}\n\n{visible(frames)}"
    )


# Python runs signal handlers between two bytecodes. A signal that arrives just before read(2) is handled only when
# that returns, which on an idle pipe is never. So no read waits longer than this.
_WAIT_S: Final = 0.2


class _Interruptible(io.RawIOBase):
    """Reads from a file descriptor, and lets signal handlers run while it waits for data."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not select.select([self._descriptor], [], [], _WAIT_S)[0]:
            pass
        return os.readv(self._descriptor, [buffer])


def standard_input() -> BinaryIO:
    """Return a stream of the bytes of standard input, which signals can interrupt.

    Call this once per process: the stream reads ahead, so a second stream would miss bytes. On Windows, which cannot
    wait for pipes, and if standard input has no descriptor, the result is `sys.stdin.buffer`.
    """
    buffer: BinaryIO = sys.stdin.buffer
    try:
        descriptor = buffer.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return buffer
    return buffer if os.name == "nt" else io.BufferedReader(_Interruptible(descriptor))


# Named debug switches (`--debug=timing,paint`) and the timing they switch on.


SWITCHES = {
    "timing": "how long each step of a load, a filter or a frame takes",
    "paint": "every repaint of the swimlanes with its size and duration",
}
_on: set[str] = set()


def enable(names: str) -> None:
    """Switch on the debug switches of a comma-separated list; ValueError, with all switches, for other names."""
    requested = {name.strip() for name in names.split(",") if name.strip()}
    unknown = requested - SWITCHES.keys()
    if unknown:
        raise ValueError(f"no debug switch {', '.join(sorted(unknown))}; there are {', '.join(SWITCHES)}")
    if requested:
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("satview").setLevel(logging.DEBUG)
    _on.update(requested)


def is_on(name: str) -> bool:
    """Return whether a debug switch (see `SWITCHES`) is on."""
    return name in _on


@contextmanager
def timed(step: str, switch: str = "timing") -> Iterator[None]:
    """Log the duration of a block under the name `step`, if the debug switch (see `SWITCHES`) is on."""
    if switch not in _on:
        yield
        return

    start_ns = time.perf_counter_ns()
    yield
    logging.getLogger("satview").debug("%s: %.2f ms", step, (time.perf_counter_ns() - start_ns) / 1e6)

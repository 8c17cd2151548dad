"""Standard input that a signal can end, whenever it comes."""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import platform
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, BinaryIO, Final, NoReturn

from satview.base.safe_text import visible

# How a command ends: exit codes, signals, a standard output that takes no more, and errors inside satview itself.


FINE: Final = 0
COST_DATA: Final = 1
BAD_USE: Final = 2
INTERNAL: Final = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED: Final = 130
_SIGNAL_BASE: Final = 128
_FRAMES_MAX: Final = 60
_TERMINAL: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_HAS_TIMER: Final = hasattr(signal, "setitimer")  # not on Windows
_REPEAT_S: Final = 0.1  # until what a signal raised, and nobody handled, is raised again
_OUTPUT_ERRORS: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF, errno.ENXIO)


class Ended(BaseException):
    """A signal requested the process to end; raised so that temporary files go on the way out.

    Attributes:
        number: Number of the signal.
        code: Exit code, 128 and the number of the signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.code = _SIGNAL_BASE + number
        super().__init__(number)


class OutputError(Exception):
    """Standard output is full or closed."""


@contextmanager
def signals_raise() -> Iterator[None]:
    """Let SIGINT raise `KeyboardInterrupt`, SIGTERM and SIGHUP `Ended` in a block, until that ends the block.

    Python raises it wherever it is, also inside a finalizer, or in an attribute that numpy looks up while it chooses a
    loop. Those drop every exception, and the command would go on as if nobody had pressed Ctrl+C. So a timer raises it
    again unless somebody handles it by then. A signal that is ignored, as under nohup, stays ignored.
    """
    raised: BaseException | None = None
    before: dict[int, Any] = {}

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal raised
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)  # once: what cleans up must not be interrupted
        raised = Ended(number) if number != signal.SIGINT else KeyboardInterrupt()
        if _HAS_TIMER:
            before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, raise_again))
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_S, _REPEAT_S)
        raise raised

    def raise_again(_number: int, _frame: FrameType | None) -> None:
        if raised is not None and not _is_handled(raised):
            raise raised

    def drop_if_raised_again(lost: sys.UnraisableHookArgs) -> None:
        # Of a lack of memory the command says itself that it has not enough.
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
    """Collect termination signals during a block instead of ending; the second one raises KeyboardInterrupt."""
    caught: list[int] = []

    def catch(signo: int, _frame: object) -> None:
        if caught:  # somebody insists: whatever hangs is left
            raise KeyboardInterrupt
        caught.append(signo)

    before = _handled_by(catch, _numbers((*_TERMINAL, "SIGABRT")))
    try:
        yield caught
    finally:
        _restore(before)


def _is_handled(error: BaseException) -> bool:
    """Return whether an `except`, `finally` or `with` block deals with this error now."""
    handled = sys.exc_info()[1]
    while handled is not None and handled is not error:
        handled = handled.__context__
    return handled is error


def _numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of the signals that this system has."""
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _handled_by(handler: Callable[[int, FrameType | None], None], numbers: Iterable[int]) -> dict[int, Any]:
    """Give signals a handler; return the old ones. Outside the main thread the caller handles signals."""
    try:
        return {number: signal.signal(number, handler) for number in numbers}
    except ValueError:
        return {}


def _restore(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


class _ClosedOutput(io.TextIOBase):
    """Takes the position of a standard output that was closed before the process began; Python would drop its text."""

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
        OutputError: It is full or closed.
        BrokenPipeError: Its reader went away, such as `head`.
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
        # What satview writes to files raises errors of its own: this one can only be that of standard output.
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

    Where windows were shown it ends at once, after what was registered for the end has run: else Python takes its types
    apart while Qt may still have objects of them (a fault in PySide's retrieveMetaObject, once in 130 pictures).
    Closing the windows has waited for all tasks.
    """
    if "PySide6.QtWidgets" not in sys.modules:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def drop_output() -> None:
    """Send what is still buffered for standard output nowhere, so that Python does not complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
        sys.stdout.flush()


def say(text: str) -> None:
    """Print a message of satview on standard error; control characters of file names show as text."""
    with contextlib.suppress(OSError, ValueError):  # a terminal that is gone
        print(f"satview: {visible(text)}", file=sys.stderr)  # noqa: T201  -- the command line's own message


def internal_report(error: BaseException, doing: str, version: str) -> str:
    """Return a report of an error inside satview, to be copied by the user; nothing sends it anywhere.

    Args:
        error: What was raised.
        doing: The command line, or what the window did.
        version: Version of satview.
    """
    frames = "".join(traceback.format_exception(error, limit=-_FRAMES_MAX))
    numpy = getattr(sys.modules.get("numpy"), "__version__", "not loaded")
    qt = getattr(sys.modules.get("PySide6"), "__version__", "not loaded")
    return (
        f"satview {version}, Python {platform.python_version()}, {platform.platform()}\n"
        f"numpy {numpy}, PySide6 {qt}\n"
        f"doing: {visible(doing)}\n\n{visible(frames)}"
    )


# Python runs the handler of a signal between two steps of the program. One that arrives after the last step before
# read(2) is noticed when that returns, which on an idle pipe is never. So no read waits longer than this.
_WAIT_S: Final = 0.2


class _Interruptible(io.RawIOBase):
    """Reads from a file descriptor and lets signal handlers run while there is nothing to read."""

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
    """Return the bytes of standard input.

    Make one per process: it reads ahead, so another one would miss bytes. On Windows, where pipes cannot be waited
    for, and where standard input was replaced by an object without a descriptor, it is `sys.stdin.buffer`.
    """
    buffer: BinaryIO = sys.stdin.buffer
    try:
        descriptor = buffer.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return buffer
    return buffer if os.name == "nt" else io.BufferedReader(_Interruptible(descriptor))

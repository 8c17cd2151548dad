"""The process of a command: exit codes, signals, standard streams, debug switches, and child processes."""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import logging
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Final, NoReturn

from satview.base.errors import Cancelled, UsageError
from satview.base.named_files import VARIABLE as FOLDERS_VARIABLE
from satview.base.named_files import folders
from satview.base.safe_text import visible

# The process of a command: exit codes, signals, standard input and output, and debug switches.


# Exit codes, signals, and standard input and output of a command.


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
    """Exception for a signal that requests the process to end; raised so that temporary files are removed.

    Attributes:
        number: Number of the signal.
        code: Exit code: 128 + number of the signal.
    """

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
    pictures). All tasks have ended before, as closing the windows waits for them.
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
    """Return a text about an error inside satview, for the user to copy; it is not sent anywhere.

    Args:
        error: The exception.
        doing: The command line, or the action of the window.
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
    """Switch on the debug switches of a comma-separated list.

    Raises:
        ValueError: A name is no switch; the text lists all switches.
    """
    requested = {name.strip() for name in names.split(",") if name.strip()}
    unknown = requested - SWITCHES.keys()
    if unknown:
        raise ValueError(f"no debug switch {', '.join(sorted(unknown))}; there are {', '.join(SWITCHES)}")
    if requested:
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("satview").setLevel(logging.DEBUG)
    _on.update(requested)


def is_on(name: str) -> bool:
    """Return whether a switch is on."""
    return name in _on


@contextmanager
def timed(step: str, switch: str = "timing") -> Iterator[None]:
    """Log the duration of a block under the name `step`, if the switch is on."""
    if switch not in _on:
        yield
        return

    start_ns = time.perf_counter_ns()
    yield
    logging.getLogger("satview").debug("%s: %.2f ms", step, (time.perf_counter_ns() - start_ns) / 1e6)


# Starts satview in a child process that runs no code from the current folder.
#
# `python -m satview` puts the current folder first on the path of modules, so that a `numpy.py` in a folder of traces
# would be run instead of numpy. A child gets only Python's own path, and the package from which this satview was
# loaded.


_SAFE: Final = "PYTHONSAFEPATH"
# Environment variables that make Python run other code, or load its library from elsewhere.
_LEADS_TO_CODE: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONBREAKPOINT")


def child_command(function: str, *arguments: str) -> list[str]:
    """Return the command line that calls a function of satview in a new Python process.

    Args:
        function: Module and name, as in `satview.__main__:entry`; it takes no arguments.
        arguments: The elements of its `sys.argv` after the program's name.

    Raises:
        OSError: The path of the running Python is not known, as in some programs that embed it.
    """
    if not sys.executable:
        raise OSError("the Python that runs satview cannot be started again: its path is not known")
    module, name = function.split(":")
    package = Path(__file__).resolve().parents[1]
    # Load the satview that runs here, whether another one is installed or not, but no other module of its folder.
    code = (
        "import sys; from importlib.util import module_from_spec, spec_from_file_location; "
        f"spec = spec_from_file_location('satview', {str(package / '__init__.py')!r}, "
        f"submodule_search_locations=[{str(package)!r}]); "
        "sys.modules['satview'] = package = module_from_spec(spec); spec.loader.exec_module(package); "
        f"from {module} import {name}; {name}()"
    )
    return [str(Path(sys.executable).absolute()), "-P", "-c", code, *arguments]


@contextmanager
def safe_children() -> Iterator[None]:
    """Keep the current folder off the module path of every Python that is started in a block.

    `multiprocessing` needs this, as its children import their first modules before they receive this process's path.
    """
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before


def absolute_program(name: str) -> str | None:
    """Return the path of a program, found by its name in the absolute folders of PATH; None if there is none."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(folder for folder in folders if os.path.isabs(folder)))  # noqa: PTH117


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment for a child: the current one and `more`, without variables that lead to other code.

    Limits on the folders that may be read (`satview.base.named_files.only_below`) hold for the child too.
    """
    own = {name: value for name, value in os.environ.items() if name not in _LEADS_TO_CODE}
    if (limits := folders()) is not None:
        own[FOLDERS_VARIABLE] = os.pathsep.join(limits)
    return {**own, _SAFE: "1", **more}  # for what the child itself starts


_POLL_S: Final = 0.1


def run_satview(arguments: list[str], patience_s: float, is_cancelled: Callable[[], bool] = lambda: False) -> str:
    """Run a command of satview in a child process; return its standard output.

    Args:
        arguments: Arguments of the command line.
        patience_s: Time limit, after which the process is killed.
        is_cancelled: Called now and then; returns True to kill the process.

    Raises:
        UsageError: The command failed, with its last message, or took too long.
        Cancelled: `is_cancelled()` returned True.
        OSError: The process cannot be started.
    """
    end_s = time.monotonic() + patience_s
    with subprocess.Popen(  # noqa: S603  -- this very Python
        child_command("satview.__main__:entry", *arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
        env=child_environment(PYTHONIOENCODING="utf-8"), creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    ) as child:  # fmt: skip
        while True:
            try:
                printed, said = child.communicate(timeout=_POLL_S)
                break
            except subprocess.TimeoutExpired:
                if is_cancelled() or time.monotonic() > end_s:
                    child.kill()
                    child.communicate()
                    if is_cancelled():
                        raise Cancelled from None
                    raise UsageError(f"satview did not end within {patience_s:g} s") from None
    if child.returncode not in (0, 1):  # 1: data was lost to problems of the trace
        last = said.strip().splitlines()
        raise UsageError(last[-1].removeprefix("satview: ") if last else f"satview ended with {child.returncode}")
    return printed


# A picture of the window, taken by a child process: the caller needs neither Qt nor a display.


_PATIENCE_S: Final = 120


def screenshot(trace: Path, path: Path, options: list[str], size: str) -> str:
    """Write a picture of a trace, taken in a child process; return the reason if that failed, else an empty text.

    Args:
        trace: The file.
        path: The new PNG.
        options: More options of the command line, such as `--range A..B --select N`.
        size: `WxH` of the window.
    """
    arguments = [str(trace.absolute()), "--screenshot", str(path.absolute()), "--size", size, *options]
    try:
        run_satview(arguments, _PATIENCE_S)
    except (OSError, UsageError) as error:
        return str(error)
    return "" if path.exists() else "satview wrote no picture"

"""Event handlers in Python, as a program attaches them with ADDEVENTHANDLER, for captures and views.

    # two_events.py: lets two events pass in turns
    turn = 0

    def running(event):
        global turn
        if turn == 0:
            turn = 1
            return True
        return False

    def ring0(event):
        global turn
        if turn == 1:
            turn = 0
            return True
        return False

A handler is code: it runs with all rights of the user who runs satview. So a file is loaded only after the user has
named and allowed it; rule files can name handlers, but never contain them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, Final, Protocol

from satview.base.errors import UsageError, one_line
from satview.base.named_files import read_small
from satview.base.threads import Stuck, Watchdog
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.filters.external import EventContext, feature_of
from satview.filters.rules.switches import C

HANDLER_LIMIT: Final = 128  # entries of the kernel's handler table, 6.4 on
OLD_HANDLER_LIMIT: Final = 64  # of 6.1 and 6.2
HANDLER_CLASSES: Final = frozenset(
    {C.CONTROL, C.KERCALLENTER, C.KERCALLEXIT, C.INTENTER, C.INTEXIT, C.PROCESS, C.THREAD, C.VTHREAD, C.SYSTEM, C.COMM}
)


class DynamicRule(Protocol):
    """A rule that can be attached to a class or an event: an expression or a Python function."""

    def __call__(self, context: EventContext, /) -> int:
        """Return 0 to suppress the event; anything else lets it pass."""


FILE_LIMIT: Final = 1 << 20
PATIENCE_S: Final = 5.0  # time limit for the code of a file, and for one call of a handler


class HandlerEvent:
    """One event as a handler sees it; the names follow event_data_t.

    Attributes:
        header: Header word, with struct bits 0.
        data: Payload words; their number is `el_num`.
        feature_mask: 3 if pid and tid are valid, as in the kernel; else 0.
        pid, tid: The thread that the kernel tests; 0 if `feature_mask` is 0.
        time_ns: Nanoseconds since the start of the trace.
        event_class, name: Class and event as listings print them: `THREAD`, `THRUNNING`.
    """

    __slots__ = ("_book", "code", "cpu", "data", "feature_mask", "header", "pid", "tid", "time_ns")

    def __init__(self, context: EventContext, release: Release) -> None:
        self._book = catalogue(release)
        self.code, self.cpu, self.time_ns, self.header = context.code, context.cpu, context.time_ns, context.header
        self.data = context.words[: context.el_num]
        self.feature_mask, (self.pid, self.tid) = feature_of(context, release)

    @property
    def el_num(self) -> int:
        """Number of payload words."""
        return len(self.data)

    @property
    def event_class(self) -> str:
        """Class of the event as listings print it, such as `THREAD`."""
        return self._book.class_name(self.code)

    @property
    def name(self) -> str:
        """Name of the event as listings print it, such as `THRUNNING`."""
        return self._book.name(self.code)


class HandlerFile:
    """A Python file with handlers, compiled once and run again before each pass over the events."""

    def __init__(self, path: Path, code: CodeType) -> None:
        self.path, self._code = path, code
        self.watchdog = Watchdog(PATIENCE_S)
        self.namespace: dict[str, Any] = {}
        self.restart()

    def restart(self) -> None:
        """Run the file, so that its handlers start in their first state.

        Raises UsageError, with file and line, if the file raises an exception or takes too long.
        """
        self.namespace = {"__name__": "satview_handlers", "__file__": str(self.path)}
        try:
            with self.watchdog:
                exec(self._code, self.namespace)  # noqa: S102  -- the point of the file; the user said yes to it
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a file that calls sys.exit() does not end satview, but Ctrl+C does
            raise UsageError(f"{self.path.name}: {describe(error, self.path)}") from error


class FunctionRule:
    """A handler function as a dynamic rule; once it raises or takes too long, it is switched off and all events pass.

    Attributes:
        position: `file.py:function`, as rules write it.
        problem: The reason why the handler was switched off, with the line; empty while it works.
    """

    def __init__(
        self, file: HandlerFile, name: str, release: Release, report: Callable[[str], None] | None = None
    ) -> None:
        self.file, self._name, self._release, self._report = file, name, release, report
        self.position = f"{file.path.name}:{name}"
        self.problem = ""
        self.calls = 0

    def __call__(self, context: EventContext, /) -> int:
        """Call the handler and return its result, 0 to suppress the event; results of other types become 0 or 1."""
        if self.problem:
            return 1
        self.calls += 1
        try:
            with self.file.watchdog:
                result = self.file.namespace[self._name](HandlerEvent(context, self._release))
                return result if isinstance(result, int) else bool(result)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  -- as above
            self.problem = f"{self.position} was switched off: {describe(error, self.file.path)}"
            if self._report is not None:
                self._report(self.problem)
            return 1


def describe(error: BaseException, path: Path) -> str:
    """Return an exception of a handler file as one sentence, with the line of that file where it was raised."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    position = f"line {lines[-1]}: " if lines else ""
    if isinstance(error, Stuck):
        return f"{position}it ran for more than {PATIENCE_S:g} seconds"
    return f"{position}{one_line(error)}"


class Handlers:
    """Loads handlers for rules, each file only with the consent of the user.

    Args:
        allow: Called once per file with its path; True if the user lets it run.
        folder: Folder for relative names; None = the current folder.
        report: Receives the message when a handler is switched off.
    """

    def __init__(
        self,
        allow: Callable[[Path], bool],
        release: Release,
        folder: Path | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self._allow, self._release, self._folder, self._report = allow, release, folder or Path(), report
        self._files: dict[Path, HandlerFile] = {}
        self.rules: list[FunctionRule] = []

    def __call__(self, position: str) -> FunctionRule:
        """Return the handler at `position`, which rules write as `file.py:function`.

        Raises UsageError if the user did not allow the file, or the file or the function cannot be loaded.
        """
        name, _, function = position.rpartition(":")
        file = self.file(Path(name))
        if not callable(file.namespace.get(function)):
            known = sorted(key for key, value in file.namespace.items() if callable(value) and key != "__builtins__")
            raise UsageError(f"{file.path.name} has no function {function}; it has {', '.join(known) or 'none'}")
        rule = FunctionRule(file, function, self._release, self._report)
        rule.position = position
        self.rules.append(rule)
        return rule

    def file(self, name: Path) -> HandlerFile:
        """Return a file of handlers; it is loaded at the first request.

        Raises UsageError if the user did not allow the file, or it cannot be read, compiled or run.
        """
        path = (self._folder / name).resolve()
        if path not in self._files:
            if not self._allow(path):
                raise UsageError(f"{path.name} is code and was not allowed to run")
            self._files[path] = HandlerFile(path, _compiled(path))
        return self._files[path]


def _compiled(path: Path) -> CodeType:
    source = read_small(path, FILE_LIMIT, f"a file of handlers may have {FILE_LIMIT} bytes")
    try:
        return compile(source, str(path), "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{path.name}: {line}{error.args[0] if error.args else 'cannot be compiled'}") from error

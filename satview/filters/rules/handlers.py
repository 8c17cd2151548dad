"""Event handlers in Python: what a program attaches with ADDEVENTHANDLER, for capture and view alike.

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
named it and said yes; rule files can name handlers, but never bring them along.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError, one_line
from satview.base.named_files import read_small
from satview.base.threads import Stuck, Watchdog
from satview.events import naming
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT
from satview.filters.event_context import NOT_TESTED, EventContext, feature_of, tested_thread
from satview.filters.external import (
    CALL_COUNT,
    COMM_NAMES,
    OTHER_VECTOR,
    PROCESS_NAMES,
    STATE_COUNT,
    SYSTEM_COUNT,
    VECTOR_COUNT,
    ExternalClass,
    ExternalEvent,
    has_event_masks,
)
from satview.filters.rules.switches import ALL_BITS, ENOTSUP, OK, C, Switches

# The state that TraceEvent() controls, handlers included, and whether one event passes it.


HANDLER_LIMIT: Final = 128  # entries of the kernel's handler table, 6.4 on
OLD_HANDLER_LIMIT: Final = 64  # of 6.1 and 6.2
PASS_EXIT_TOO: Final = 2  # a KERCALLENTER class handler's result: the exit passes unasked
_CLASS_HANDLER_PARTS: Final = {C.KERCALL: (C.KERCALLENTER, C.KERCALLEXIT), C.INT: (C.INTENTER, C.INTEXIT)}
_CALL_PARTS: Final = (C.KERCALLENTER, C.KERCALLEXIT, C.KERCALLINT)
HANDLER_CLASSES: Final = frozenset(
    {C.CONTROL, C.KERCALLENTER, C.KERCALLEXIT, C.INTENTER, C.INTEXIT, C.PROCESS, C.THREAD, C.VTHREAD, C.SYSTEM, C.COMM}
)


class DynamicRule(Protocol):
    """What can be attached to a class or an event: an expression or a Python function."""

    def __call__(self, context: EventContext, /) -> int:
        """Return 0 to suppress the event; anything else lets it pass."""


_Plan = tuple[ExternalEvent, int, int, DynamicRule | None, DynamicRule | None]


class HandlerTable(Switches):
    """The switches, and a limited number of dynamic rules: those of classes and of events.

    Args:
        release: Which numbers apply.
        handler_limit: Entries of the handler table.

    Attributes:
        class_handlers: Dynamic rule per class.
        event_handlers: Dynamic rule per (class, event number or vector).
    """

    def __init__(self, release: Release = Release.QNX_6, handler_limit: int = HANDLER_LIMIT) -> None:
        super().__init__(release)
        self.handler_limit = handler_limit
        self.class_handlers: dict[ExternalClass, DynamicRule] = {}
        self.event_handlers: dict[tuple[ExternalClass, int], DynamicRule] = {}
        self._exit_passes: set[tuple[int, int]] = set()
        self._plans: dict[int, _Plan] = {}
        self._planned_version = -1

    # ---- handlers ------------------------------------------------------------------------------------------------

    def add_event_handler(self, external: int, event: int, handler: DynamicRule) -> int:
        """Attach a dynamic rule to one event; a second one for the same event replaces it."""
        if external == C.EMPTY:
            return OK
        key = self._handler_key(external, event)
        if key is None or (key not in self.event_handlers and self._handler_count() >= self.handler_limit):
            return ENOTSUP
        self.event_handlers[key] = handler
        return self._changed()

    def del_event_handler(self, external: int, event: int) -> int:
        """Detach the dynamic rule of one event; succeeds if there is none."""
        if external == C.EMPTY:
            return OK
        key = self._handler_key(external, event)
        if key is None:
            return ENOTSUP
        self.event_handlers.pop(key, None)
        return self._changed()

    def add_class_ev_handler(self, external: int, handler: DynamicRule) -> int:
        """Attach a dynamic rule to a class; it is called before the rule of the event."""
        if external == C.EMPTY:
            return OK
        parts = self._handler_parts(external)
        new = [part for part in parts if part not in self.class_handlers]
        if not parts or self._handler_count() + len(new) > self.handler_limit:
            return ENOTSUP
        self.class_handlers.update(dict.fromkeys(parts, handler))
        return self._changed()

    def del_class_ev_handler(self, external: int) -> int:
        """Detach the dynamic rule of a class; succeeds if there is none."""
        if external == C.EMPTY:
            return OK
        parts = self._handler_parts(external)
        for part in parts:
            self.class_handlers.pop(part, None)
        return self._changed() if parts else ENOTSUP

    def replace_handlers(self, change: Callable[[DynamicRule], DynamicRule]) -> None:
        """Put another dynamic rule in the position of each one."""
        self.class_handlers = {position: change(rule) for position, rule in self.class_handlers.items()}
        self.event_handlers = {position: change(rule) for position, rule in self.event_handlers.items()}
        self._changed()

    def remove_handlers(self, is_gone: Callable[[DynamicRule], bool]) -> None:
        """Detach every dynamic rule of which `is_gone` says so: those of a process that has died."""
        self.class_handlers = {position: rule for position, rule in self.class_handlers.items() if not is_gone(rule)}
        self.event_handlers = {position: rule for position, rule in self.event_handlers.items() if not is_gone(rule)}
        self._changed()

    def codes_at(self, external: int | None = None, event: int | None = None) -> NDArray[np.bool_]:
        """Return the codes that are on and that a handler of a class or an event is called for, bool (32768,).

        Args:
            external: The class; None = all classes, those that take no handler included.
            event: The event argument as `add_event_handler` takes it; None = the whole class.
        """
        result = np.zeros(CODE_COUNT, np.bool_)
        parts = self._handler_parts(external) if external is not None else None
        key = self._handler_key(external, event) if external is not None and event is not None else None
        for code in catalogue(self.release).codes():
            address = self.address(code)
            if parts is not None and address.external not in parts:
                continue
            if address.vector_word >= 0:
                vectors = range(OTHER_VECTOR + 1) if key is None else (key[1],)
                result[code] = any(
                    self.is_on(address, code, (*(0,) * address.vector_word, vector)) for vector in vectors
                )
            elif key is None or key[1] == address.number:
                result[code] = self.is_on(address, code)
        return result

    def _handler_count(self) -> int:
        return len(self.class_handlers) + len(self.event_handlers)

    def _handler_parts(self, external: int) -> tuple[ExternalClass, ...]:
        if external not in self.known:
            # 8.0 has INT alone, but its parts are what the slots hold.
            return ()
        external = ExternalClass(external)
        return _CLASS_HANDLER_PARTS.get(external, (external,) if external in HANDLER_CLASSES else ())

    def _handler_key(self, external: int, event: int) -> tuple[ExternalClass, int] | None:
        if external not in self.known or external not in HANDLER_CLASSES:
            return None
        external = ExternalClass(external)
        if external is C.CONTROL:
            return (external, 1) if event == 1 else None
        if has_event_masks(external, self.release):
            event = event.bit_length() - 1 if 0 < event <= ALL_BITS else -1
            limit = len(PROCESS_NAMES) if external is C.PROCESS else 31
            if external is not C.PROCESS and event not in naming.state_numbers(self.release).values():
                return None
        else:
            limit = {
                C.KERCALLENTER: CALL_COUNT,
                C.KERCALLEXIT: CALL_COUNT,
                C.INTENTER: VECTOR_COUNT,
                C.INTEXIT: VECTOR_COUNT,
                C.THREAD: STATE_COUNT,
                C.COMM: len(COMM_NAMES),
                C.SYSTEM: SYSTEM_COUNT[self.release],
            }[external]
        return (external, event) if 0 <= event < limit else None

    # ---- one event -----------------------------------------------------------------------------------------------

    def admits(self, context: EventContext) -> bool:
        """Return whether one event passes: its switch, then pid and tid, then the class's and the event's handler.

        Handlers keep state of their own, so call this once per event, in the order of the events.
        """
        return self.is_on(self.address(context.code), context.code, context.words) and self.passes_tests(context)

    def passes_tests(self, context: EventContext) -> bool:
        """Return whether an event that is switched on passes: pid and tid, then the class's and the event's handler."""
        known = self.passes_thread(context.code, tested_thread(context, self.release))
        return self.call_handlers(context) if known is None else known

    def call_handlers(self, context: EventContext) -> bool:
        """Call the class's and the event's handler for an event whose pid and tid have passed."""
        address, _, _, of_class, of_event = self._plan_of(context.code)
        if address.vector_word >= 0:
            return self.call(address, context, *self.handlers_of(address, context.words))
        return self.call(address, context, of_class, of_event)

    def passes_thread(self, event_code: int, actual: tuple[int, int]) -> bool | None:
        """Compare a pid and tid with those stored for a code; None if they pass and handlers are to be called."""
        address, pid, tid, of_class, of_event = self._plan_of(event_code)
        if pid and (pid != actual[0] or (tid and actual[1] not in (tid, NOT_TESTED))):
            return False
        if of_class is not None or of_event is not None or address.vector_word >= 0:
            return None
        return None if self._follows_calls(address.external) else True

    def _follows_calls(self, external: ExternalClass | None) -> bool:
        """Return whether `call` has to see all events of a class: an entry's handler may let its call's exit pass."""
        return external in _CALL_PARTS and C.KERCALLENTER in self.class_handlers

    def codes_with_handler(self, codes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which codes `call` has to see, bool (32768,).

        Args:
            codes: Those that occur.
        """
        table = np.zeros(CODE_COUNT, np.bool_)
        of_events = {external for external, _ in self.event_handlers}
        for code in codes.tolist():
            external = self.address(code).external
            if external is not C.KERCALLINT:
                table[code] = external in self.class_handlers or external in of_events
            table[code] |= self._follows_calls(external)
        return table

    def _plan_of(self, event_code: int) -> _Plan:
        plan = self._plans.get(event_code) if self._planned_version == self.version else None
        return plan if plan is not None else self._plan(event_code)

    def _plan(self, event_code: int) -> _Plan:
        """Return what is checked and called for the events of a code, cached until something changes."""
        if self._planned_version != self.version:
            self._planned_version, self._plans = self.version, {}
        address = self.address(event_code)
        handlers = self.handlers_of(address, ()) if address.vector_word < 0 else (None, None)
        plan = self._plans[event_code] = (address, *self.thread_test(address), *handlers)
        return plan

    def is_tested(self, event_code: int) -> bool:
        """Return whether a pid or tid is checked, or a handler called, before an event is logged."""
        address = self.address(event_code)
        external = address.external
        if external is None:
            return False
        if self._follows_calls(external) or (external is not C.KERCALLINT and external in self.class_handlers):
            return True
        if any(position[0] is external for position in self.event_handlers):
            return True
        return bool(self.thread_test(address)[0])

    def handlers_of(
        self, address: ExternalEvent, words: tuple[int, ...]
    ) -> tuple[DynamicRule | None, DynamicRule | None]:
        """Return the class's and the event's dynamic rule of one event."""
        external, number = address.external, address.number
        if external is None or external is C.KERCALLINT:  # the interrupted form has no handler of its own
            return None, None
        if address.vector_word >= 0:
            number = words[address.vector_word] if address.vector_word < len(words) else 0
        return self.class_handlers.get(external), self.event_handlers.get((external, number))

    def call(
        self, address: ExternalEvent, context: EventContext, of_class: DynamicRule | None, of_event: DynamicRule | None
    ) -> bool:
        """Call two given rules as the kernel does: the event's only if the class's lets the event pass.

        A class rule of KERCALLENTER that returns 2, while the call has no rule of its own, lets the exit of that
        call pass without a call of its handler.
        """
        if self._exit_passes and address.external in _CALL_PARTS and (context.pid, context.tid) in self._exit_passes:
            # By an entry too: the exit of the call before was off.
            self._exit_passes.discard((context.pid, context.tid))
            if address.external is C.KERCALLEXIT:
                return True
        if of_class is not None:
            result = of_class(context)
            if not result:
                return False
            if address.external is C.KERCALLENTER and of_event is None and result == PASS_EXIT_TOO:
                self._exit_passes.add((context.pid, context.tid))
        return of_event is None or bool(of_event(context))

    def forget_calls(self) -> None:
        """Forget which kernel calls wait for their exit; for a second pass over the same events."""
        self._exit_passes.clear()


FILE_LIMIT: Final = 1 << 20
PATIENCE_S: Final = 5.0  # with the code of a file, and with one call of a handler


class HandlerEvent:
    """One event as a handler sees it; the names follow event_data_t.

    Attributes:
        header: Header word, struct bits 0.
        data: Payload words, as many as `el_num` says.
        el_num: Number of payload words.
        feature_mask: 3 if pid and tid are valid, as in the kernel; else 0.
        pid, tid: The thread the kernel tests, 0 where `feature_mask` is 0.
        code: Internal class and event.
        cpu: CPU number.
        time_ns: Nanoseconds since the start of the trace.
        event_class, name: As listings print them: `THREAD`, `THRUNNING`.
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
        """Printed class."""
        return self._book.class_name(self.code)

    @property
    def name(self) -> str:
        """Name of the event."""
        return self._book.name(self.code)


class HandlerFile:
    """A Python file with handlers, compiled once and run again before each pass over the events.

    Attributes:
        path: The file.
        namespace: What it defined when it ran last.
        watchdog: Ends what does not end by itself.
    """

    def __init__(self, path: Path, code: CodeType) -> None:
        self.path, self._code = path, code
        self.watchdog = Watchdog(PATIENCE_S)
        self.namespace: dict[str, Any] = {}
        self.restart()

    def restart(self) -> None:
        """Run the file, so that its handlers begin with the state it gives them.

        Raises:
            UsageError: The file raises an exception or takes too long; names it and the line.
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
    """A handler function as a dynamic rule. Once it raises or does not come back, it is off and everything passes it.

    Attributes:
        position: `file.py:function`, as rules write it.
        file: The file it is from.
        problem: Why it was switched off, with its line; empty while it works.
        calls: How often it was called.
    """

    def __init__(
        self, file: HandlerFile, name: str, release: Release, report: Callable[[str], None] | None = None
    ) -> None:
        self.file, self._name, self._release, self._report = file, name, release, report
        self.position = f"{file.path.name}:{name}"
        self.problem = ""
        self.calls = 0

    def __call__(self, context: EventContext, /) -> int:
        """Return the handler's result: 0 to suppress the event. What is no whole number counts as true or false."""
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
    """Return an exception of a handler file as one sentence with the line of that file where it came from."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    position = f"line {lines[-1]}: " if lines else ""
    if isinstance(error, Stuck):
        return f"{position}it ran for more than {PATIENCE_S:g} seconds"
    return f"{position}{one_line(error)}"


class Handlers:
    """Loads handlers for rules, each file only after a yes.

    Args:
        allow: Called once per file with its path; True if the user lets it run.
        release: Of the trace or capture.
        folder: Where relative names are looked up; None = the current folder.
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
        """Return the handler that rules call `file.py:function`.

        Raises:
            UsageError: The user said no, or the file or the function cannot be had.
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
        """Return a file of handlers, loaded at the first request.

        Raises:
            UsageError: The user said no, or it cannot be read, compiled or run.
        """
        path = (self._folder / name).resolve()
        if path not in self._files:
            if not self._allow(path):
                raise UsageError(f"{path.name} is code and was not allowed to run")
            self._files[path] = HandlerFile(path, _compiled(path))
        return self._files[path]


def load_handlers(path: Path | str, release: Release, *, allow_code: bool) -> Handlers:
    """Load one file of handlers; the functions are had by calling the result with `file.py:function`.

    Args:
        path: The file.
        release: Of the trace or capture.
        allow_code: Has to be True: the file is run.

    Raises:
        UsageError: `allow_code` is False, or the file cannot be read, compiled or run.
    """
    path = Path(path)
    handlers = Handlers(lambda _: allow_code, release, path.parent)
    handlers.file(Path(path.name))
    return handlers


def _compiled(path: Path) -> CodeType:
    source = read_small(path, FILE_LIMIT, f"a file of handlers may have {FILE_LIMIT} bytes")
    try:
        return compile(source, str(path), "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{path.name}: {line}{error.args[0] if error.args else 'cannot be compiled'}") from error

"""Event handlers of programs: what they get, and how the kernel calls them. Source: capture side, section 3.4."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Protocol

from satview.events.spec import Release
from satview.filters.event_context import FEATURE_PID, FEATURE_TID, EventContext, feature_of, has_feature


@dataclass(slots=True)
class EventData:
    """What an event handler gets, the counterpart of `event_data_t`.

    Attributes:
        header: Header word of the event, struct bits 0.
        data_array: The user's list; filled with the payload words.
        el_num: Words filled.
        area: The user's, untouched.
        feature_mask: Bits 0 and 1: `feature` holds pid and tid.
        feature: (pid, tid).
    """

    data_array: list[int] = field(default_factory=list)
    area: Any = None
    header: int = 0
    el_num: int = 0
    feature_mask: int = 0
    feature: list[int] = field(default_factory=lambda: [0, 0])


EventHandler = Callable[[EventData], Any]
RULE_DATA = object()
"""Instead of a handler's data: the function is a dynamic rule itself, from rules that tracelogger sets."""


class HandlerHost(Protocol):
    """What runs a program's handlers: guards the kernel against what they do."""

    def call_handler(self, handler: KernelHandler) -> int:
        """Call the function of a handler whose data is filled in; return its answer."""


@dataclass(slots=True, eq=False)
class KernelHandler:
    """An attached handler of a program, as the dynamic rule that the kernel's rule set calls.

    Attributes:
        function: The program's; a generator function may yield TraceEvent() calls.
        data: The program's, filled again for each event.
        pid: Process that attached it; the handler goes with it.
        release: Decides which events have a pid and a tid.
        host: Calls the function.
    """

    function: EventHandler
    data: EventData
    pid: int
    release: Release
    host: HandlerHost

    def __call__(self, context: EventContext, /) -> int:
        """Fill in the program's data and call its function; 0 suppresses the event."""
        data, count = self.data, context.word_count or context.el_num
        data.header = context.header
        words = context.words
        data.data_array[:count] = words if len(words) == count else words[:count]
        data.el_num = count
        tested = context.tested
        if tested is not None and tested[1] >= 0 and has_feature(context.code):  # as `feature_of`, at less cost
            data.feature_mask, data.feature[:] = FEATURE_PID | FEATURE_TID, tested
        else:
            data.feature_mask, feature = feature_of(context, self.release)
            if data.feature_mask:
                data.feature[:] = feature
        return self.host.call_handler(self)


def finish(running: Generator[Any, int, Any], call: Callable[[Any], int]) -> int:
    """Run a handler that is a generator function to its end and return its answer.

    Args:
        running: What the function returned.
        call: Carries out what it yields; what it raises is raised at the `yield`.
    """
    try:
        item = next(running)
        while True:
            try:
                value = call(item)
            except OSError as error:
                item = running.throw(error)
            else:
                item = running.send(value)
    except StopIteration as end:
        return int(end.value or 0)

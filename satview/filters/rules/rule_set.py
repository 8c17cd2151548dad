"""The state that TraceEvent() controls, handlers included, and whether one event passes it.

Source: description of the capture side, sections 3.4 and 3.5 (6.4 kernel); the static part is in `switches`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.modes import Mode, mode_of
from satview.filters.derived_columns import DerivedColumns
from satview.filters.rules.evaluate import ruleset_mask
from satview.filters.rules.handler_table import HandlerTable
from satview.filters.rules.switches import ENOTSUP
from satview.store.trace import Trace


class RuleSet(HandlerTable):
    """Exactly the state that TraceEvent() controls: the switches, and a limited number of dynamic rules.

    A view applies it to the events of a trace; the simulated kernel holds one and applies it to every event.

    `apply()` takes modes by number or name, as a simulated kernel or a rule file has them; every mode is also a
    method of its own. Both return 0 or the QNX error number the kernel would give.

    Args:
        release: Which numbers apply.
        handler_limit: Entries of the handler table.

    Attributes:
        class_handlers: Dynamic rule per class.
        event_handlers: Dynamic rule per (class, event number or vector).
    """

    def copy(self) -> RuleSet:
        """Return an independent rule set in the same state; handlers are shared."""
        twin = RuleSet(self.release, self.handler_limit)
        twin.set_like(self)
        twin.class_handlers, twin.event_handlers = dict(self.class_handlers), dict(self.event_handlers)
        return twin

    def state(self) -> tuple[object, ...]:
        """Return everything that decides what passes, comparable and hashable."""
        return (
            *super().state(),
            *sorted((c, -1, id(rule)) for c, rule in self.class_handlers.items()),
            *sorted((c, e, id(rule)) for (c, e), rule in self.event_handlers.items()),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]  # mutable

    # ---- entry by mode -------------------------------------------------------------------------------------------

    def apply(self, mode: int | str, *arguments: object) -> int:
        """Carry out one mode of TraceEvent().

        Args:
            mode: Number (the argument count in its top bits is ignored) or name, `_NTO_TRACE_` in front or not.
            *arguments: What follows the mode: class, event, pid, tid as integers, a handler as a callable. More
                than the mode takes are ignored, as the `data` argument of handlers is.

        Returns:
            0, or a QNX error number; ENOTSUP for a mode that sets no filter or for missing arguments.
        """
        number = mode_of(mode)
        if number is None or number.kind != "filter" or len(arguments) < len(number.rule_arguments):
            return ENOTSUP
        method: Callable[..., int] = getattr(self, _METHODS[number])
        return method(*arguments[: len(number.rule_arguments)])

    def mask(
        self, trace: Trace, rows: NDArray[np.integer] | None = None, derived: DerivedColumns | None = None
    ) -> NDArray[np.bool_]:
        """Return which events of a trace pass, the same as `admits()` one by one in time order.

        Args:
            trace: The events.
            rows: Event rows, ascending; None = all.
            derived: Where durations and priorities come from; None = worked out from the trace.

        Returns:
            bool, shape (len(rows),) or (events,).
        """
        return ruleset_mask(self, trace, rows, derived)


_METHODS: Final = {
    Mode.ADDALLCLASSES: "add_all_classes",
    Mode.DELALLCLASSES: "del_all_classes",
    Mode.ADDCLASS: "add_class",
    Mode.DELCLASS: "del_class",
    Mode.ADDEVENT: "add_event",
    Mode.DELEVENT: "del_event",
    Mode.SETALLCLASSESFAST: "set_all_classes_fast",
    Mode.SETALLCLASSESWIDE: "set_all_classes_wide",
    Mode.SETCLASSFAST: "set_class_fast",
    Mode.SETCLASSWIDE: "set_class_wide",
    Mode.SETEVENTFAST: "set_event_fast",
    Mode.SETEVENTWIDE: "set_event_wide",
    Mode.SETCLASSPID: "set_class_pid",
    Mode.SETCLASSTID: "set_class_tid",
    Mode.SETEVENTPID: "set_event_pid",
    Mode.SETEVENTTID: "set_event_tid",
    Mode.CLRCLASSPID: "clr_class_pid",
    Mode.CLRCLASSTID: "clr_class_tid",
    Mode.CLREVENTPID: "clr_event_pid",
    Mode.CLREVENTTID: "clr_event_tid",
    Mode.ADDEVENTHANDLER: "add_event_handler",
    Mode.DELEVENTHANDLER: "del_event_handler",
    Mode.ADDCLASSEVHANDLER: "add_class_ev_handler",
    Mode.DELCLASSEVHANDLER: "del_class_ev_handler",
}

"""The classes of event lanes (kernel calls, handlers, page faults, log lines, ...), one row each.

To add a class, add a row. Classes with intervals or counters also name a function of `timeline.finders`. Menus
are built from this table, so that it imports no numpy and reads the event tables only on demand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from satview.events.wire import KER_64BIT, WireClass, code


class Owner(StrEnum):
    """Kinds of owners that the lanes of a class can have; the kind decides where the lanes are shown."""

    TRACE = "trace"
    """The trace: between the CPUs and the processes."""
    PROCESS = "process"
    """A process: also between CPUs and processes, as one lane that unfolds into one for each process."""
    CPU = "cpu"
    """A CPU: under the CPU's lane."""
    THREAD = "thread"
    """A thread: under the thread's lane."""


@dataclass(frozen=True, slots=True)
class LaneClass:
    """One class of event lanes, such as kernel calls or page faults.

    Attributes:
        name: Stable name in settings, sessions and on the command line.
        menu: Entry of the menu, with `&` before its letter.
        title: Name of its lanes.
        owner_kind: Kind of owner of its lanes.
        events: Function that returns `codes`.
        help: One sentence for menus and docs.
        text: Template for the text of an interval or moment, with arguments of the event in braces; missing ones are
            empty. `{event}` is the name of the event, `{process}` the process of the argument `pid`, else of the
            event's thread, `{timer}` the number of a timer or `timeout`.
        finder: Name of a function of `timeline.finders`; empty = the one passed to `Timeline.use_finder`.
    """

    name: str
    menu: str
    title: str
    owner_kind: Owner
    events: Callable[[], tuple[int, ...]]
    help: str
    text: str = "{event}"
    finder: str = "moments"

    @property
    def codes(self) -> tuple[int, ...]:
        """Codes of its events, without which a trace has no lanes of the class; empty = no events are required."""
        return self.events()


def _system(*numbers: int) -> Callable[[], tuple[int, ...]]:
    """Return a function that returns the codes of SYSTEM events, including those of their 64-bit forms."""

    @cache
    def codes() -> tuple[int, ...]:
        return tuple(code(WireClass.SYSTEM, number) | wide for number in numbers for wide in (0, KER_64BIT))

    return codes


def _all_of(wire_class: str, first: int = 0, stop: int = 1024) -> Callable[[], tuple[int, ...]]:
    """Return a function that returns the codes of a class with event numbers from `first` to `stop` - 1."""

    @cache
    def codes() -> tuple[int, ...]:
        return tuple(code(WireClass[wire_class], number) for number in range(first, stop))

    return codes


LANE_CLASSES: Final = (
    LaneClass("log", "Kernel &log", "kernel log", Owner.TRACE, _system(12), "Messages that the kernel logs (SLOG).",
              "{message}"),
    LaneClass("user", "&User events", "user events", Owner.TRACE, _all_of("USER"),
              "Events that programs insert, one lane per event number: moments, intervals, or counters drawn as steps.",
              finder="user_events"),
    LaneClass("security", "&Security checks", "security", Owner.TRACE, _all_of("SEC"),
              "Checks of abilities, permissions and paths.",
              "{event} {able} {name} {path} {class_name} {perm_name} {dst_name}"),
    LaneClass("paths", "&Path look-ups", "path look-ups", Owner.PROCESS, _system(2), "Path names being resolved.",
              "{pathname}{path}"),
    LaneClass("maps", "&Memory maps", "memory maps", Owner.PROCESS, _system(6, 7, 8, 21),
              "Memory being mapped and unmapped.", "{event} {len} {name}{path}"),
    LaneClass("faults", "Page &faults", "page faults", Owner.PROCESS, _system(17), "Page faults being handled.",
              "{vaddr} {object_name}"),
    LaneClass("timers", "&Timers", "timers", Owner.PROCESS, _system(18), "Timers expiring.", "{timer}"),
    LaneClass("frequency", "CPU fre&quency", "frequency", Owner.CPU, _system(15),
              "The throughput mode of a CPU, drawn as steps.", finder="frequencies"),
    LaneClass("idle", "CPU &idle modes", "idle mode", Owner.CPU, _system(15),
              "Periods in which a CPU sleeps, with the sleep mode.", "mode {mode}", "idle_modes"),
    LaneClass("handlers", "Interrupt &handlers", "handlers", Owner.CPU, _all_of("INT", 3, 8),
              "Interrupt handlers, nested ones below; in 8.0, interrupts delivered to service threads.",
              "{process} {interrupt_number}{intr_id}", "handlers"),
    LaneClass("calls", "Kernel &calls", "kernel calls", Owner.THREAD, _all_of("KER_CALL"),
              "Kernel calls of a thread from entry to exit, including the time it waits in them.", finder="calls"),
    LaneClass("functions", "Functions (flame chart) (&x)", "functions", Owner.THREAD, _system(10, 11),
              "Instrumented functions from entry to exit, with the functions they call below.", "{thisfn}",
              "functions"),
    LaneClass("guests", "Hypervisor &guests", "guest", Owner.THREAD, _all_of("QVM"),
              "Periods in which a virtual CPU runs its guest, and the events it raises.",
              "{event} {guest_ip}{intr_vector}", "guests"),
    LaneClass("activities", "&Activities", "activities", Owner.TRACE, lambda: (),
              "What is done again and again, from its trigger to its end, with its deadline; late ones in red.",
              "", ""),
)  # fmt: skip
LANE_CLASS_BY_NAME: Final = {lane_class.name: lane_class for lane_class in LANE_CLASSES}


def classes_in(text: str) -> frozenset[str]:
    """Return the names of lane classes in a comma-separated setting; unknown names are left out."""
    return frozenset(name for part in text.split(",") if (name := part.strip()) in LANE_CLASS_BY_NAME)

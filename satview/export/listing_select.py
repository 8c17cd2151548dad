"""Which events a listing shows: by class, event, thread, CPU and time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, TimeWindow
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.formats.kev.slots.batch import Batch


@dataclass(frozen=True, slots=True)
class Selection:
    """What to show; an empty set shows everything of its kind.

    Attributes:
        classes: Printed class names, any case.
        events: Event names as `Catalogue.find` takes them.
        pids: Processes.
        tids: Threads, by number within their process.
        cpus: CPUs.
        from_ns: Earliest time, nanoseconds since the first event of the trace, exactly; None = no limit.
        to_ns: Latest time, not included.
        window: The same in cycles of the trace's counter; None = no limit.
    """

    classes: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()
    tids: frozenset[int] = frozenset()
    cpus: frozenset[int] = frozenset()
    from_ns: Fraction | None = None
    to_ns: Fraction | None = None
    window: TimeWindow | None = None


@dataclass(slots=True)
class Selector:
    """A selection made ready for the events of one release."""

    selection: Selection
    names: Catalogue
    cycles_per_s: int
    _codes: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self._codes = self._code_table()

    def _code_table(self) -> NDArray[np.bool_]:
        selected = self.selection
        table = np.ones(wire.CODE_COUNT, np.bool_)
        if selected.classes:
            known = {spec.name: index for index, spec in enumerate(self.names.classes)}
            table = np.isin(self.names.class_index_of_code, [known[name] for name in self._known_classes(known)])
        if selected.events:
            events = np.zeros(wire.CODE_COUNT, np.bool_)
            for name in sorted(selected.events):
                events[list(self._known_event(name))] = True
            table = table & events if selected.classes else events
        return table

    def _known_classes(self, known: Iterable[str]) -> list[str]:
        names = set(known)
        requested = [name.upper() for name in sorted(self.selection.classes)]
        if unknown := [name for name in requested if name not in names]:
            listed = ", ".join(name for name in known if not name.startswith("CLASS "))
            raise UsageError(f"no class {unknown[0]}; there are {listed}")
        return requested

    def _known_event(self, name: str) -> tuple[int, ...]:
        codes = self.names.find(name)
        if not codes:
            near = self.names.suggest(name)
            hint = f"; perhaps {', '.join(near)}" if near else ""
            raise UsageError(f"release {self.names.release} has no event {name}{hint}")
        return codes

    @property
    def is_everything(self) -> bool:
        """True if nothing is left out."""
        return self.selection == Selection()

    def rows(
        self, batch: Batch, start_cycles: int, ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    ) -> NDArray[np.int64]:
        """Return the selected events of a batch, ascending.

        Args:
            batch: Events.
            start_cycles: Time of the first event of the trace.
            ids: pid and tid by thread number.

        Returns:
            int64 (n,), rows within the batch.
        """
        selected = self.selection
        shown = self._codes[batch.code]
        if selected.cpus:
            shown &= np.isin(batch.cpu, list(selected.cpus))
        for requested, values in ((selected.pids, ids[0]), (selected.tids, ids[1])):
            if requested:
                shown &= np.isin(values, list(requested))[batch.thread]
        # Whole cycles: the first one that is not before the limit.
        if selected.from_ns is not None:
            shown &= batch.time_cycles >= start_cycles - (-selected.from_ns * self.cycles_per_s // NS_PER_S)
        if selected.to_ns is not None:
            shown &= batch.time_cycles < start_cycles - (-selected.to_ns * self.cycles_per_s // NS_PER_S)
        if selected.window is not None:
            shown &= (batch.time_cycles >= selected.window.start) & (batch.time_cycles < selected.window.end)
        return np.flatnonzero(shown)

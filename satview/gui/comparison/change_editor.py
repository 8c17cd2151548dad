"""The editor of changes for a prediction, which proposes what the trace has and what can be changed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from satview.analysis.partitions import first_budgets, partition_names, partition_title
from satview.events.spec import Release
from satview.filters.expressions.complete import Completion
from satview.gui.filters.editing import ProposingEditor
from satview.linkage.latencies import latencies
from satview.linkage.mutexes import MUTEX
from satview.linkage.waits import waits
from satview.session.tasks import IsCancelled, Report
from satview.store.losses import idle_threads
from satview.store.trace import Trace
from satview.whatif.changes import KEYS

CPUS_MEANING: Final = "CPUs that the target has"
_MOST: Final = 60
_LOAD: Final = "load burner"
_OF_THREADS: Final = ("priority", "policy", "runmask", "speed")
_VALUES: Final = {"policy": ("fifo", "rr"), "inherit": ("yes", "no"), "handler": ("thread 40",),
                  "runmask": ("0x1", "0x2", "0x3"), "period": ("10ms,work=2ms,priority=30",)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """What something can be changed of.

    Attributes:
        name: As a change says it: `planner 1 (plan-50ms)`, `lock 0x80d4390`; empty = the whole target.
        what: What that is, for people.
        keys: What can be changed of it.
    """

    name: str
    what: str
    keys: tuple[str, ...]


def targets_of(trace: Trace, is_cancelled: IsCancelled, _report: Report) -> tuple[Target, ...]:
    """Return what of a trace can be changed: threads, processes, locks, interrupts, partitions. Runs in a task."""
    every_wait = waits(trace)
    if is_cancelled():
        return ()
    threads = np.unique(every_wait.thread[every_wait.thread > 0])
    threads = threads[~idle_threads(trace)[threads]]
    processes = dict.fromkeys(trace.short_process_name(row) for row in trace.threads.process[threads].tolist())
    locks = np.unique(every_wait.object[(every_wait.value == MUTEX) & every_wait.has_object])
    delivered = latencies(trace)
    # The clock interrupt, which sends pulses of timers, has no handler of a program and cannot be changed.
    is_device = (delivered.handler_row >= 0) | (delivered.pulse_row < 0) | (trace.release is Release.QNX_8)
    numbers = np.unique(delivered.number[is_device & (delivered.number >= 0)])
    handled = np.unique(delivered.number[delivered.handler_row >= 0])
    names = partition_names(trace)
    return (
        *(Target(trace.thread_name(row), "thread", _OF_THREADS) for row in threads.tolist()),
        *(Target(name, "process", (*_OF_THREADS, "threads")) for name in processes if name),
        *(Target(f"lock {lock:#x}", "lock", ("inherit", "ceiling")) for lock in locks.tolist()),
        *(Target(f"interrupt {number:#x}", "interrupt", ("rate", "handler") if number in handled else ("rate",))
          for number in numbers.tolist()),
        *(Target(f"partition {partition_title(names, number)}", "partition", ("budget",))
          for number in first_budgets(trace)),
    )  # fmt: skip


def change_completions(line: str, position: int, targets: Sequence[Target]) -> list[Completion]:
    """Return what fits at the cursor in a line with one change, the likeliest first.

    Args:
        line: The change, finished or not.
        position: Cursor, 0 to len(line).
        targets: What the trace has.
    """
    left, equals, _ = line[:position].partition("=")
    target, colon, key = left.rpartition(":")
    if equals:
        start, offered = len(left) + 1, [(value, "") for value in _VALUES.get(key.strip(), ())]
    elif colon:
        start, name = len(target) + 1, target.strip().casefold()
        keys = next((one.keys for one in targets if one.name.casefold() == name),
                    ("period",) if name.startswith("load ") else tuple(KEYS))  # fmt: skip
        offered = [(f"{one}=", KEYS[one].rpartition(": ")[2].replace("`", "")) for one in keys]
    else:
        start = 0
        offered = [("cpus=", CPUS_MEANING), *((f"{one.name}:", one.what) for one in targets),
                   (f"{_LOAD}:period=10ms,work=2ms,priority=30", "a thread that is added")]  # fmt: skip
    word = line[start:position].strip().casefold()
    fits = [(not text.casefold().startswith(word), number, text, what) for number, (text, what) in enumerate(offered)
            if word in text.casefold() and word != text.casefold()]  # fmt: skip
    return [Completion(text, start, position, what) for _, _, text, what in sorted(fits)][:_MOST]


class ChangeEditor(ProposingEditor):
    """One change a line.

    Attributes:
        targets: What the trace has; none until that is known.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.targets: tuple[Target, ...] = ()
        self.proposals.taken.connect(self._on_next)

    def completions(self) -> tuple[list[Completion], int]:
        """Return what fits at the cursor, and where its line begins."""
        cursor = self.textCursor()
        block = cursor.block()
        return change_completions(block.text(), cursor.positionInBlock(), self.targets), block.position()

    @Slot(object)
    def _on_next(self, _completion: object) -> None:
        """Propose what comes behind a target or a key that was taken."""
        self.propose()

"""Links found event by event, as slowly and plainly as they are defined."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from satview.events.catalogue import never_block
from satview.events.states import NOT_A_STATE, RUNNING
from satview.linkage.links import OPEN
from satview.store.time_ranges import EVERY_CPU, losses
from satview.store.trace import Trace

ENTRIES, EXIT, HANDLER_ENTRIES, HANDLER_EXIT = (1, 5), 2, (3, 6), 4


class Naive:
    """Walks over the events of a trace; every method returns {row that begins: row that ends}."""

    def __init__(self, trace: Trace) -> None:
        events = trace.events
        self.trace, self.count = trace, len(events)
        self.time, self.code = events.time_cycles.tolist(), events.code.tolist()
        self.cpu, self.thread = events.cpu.tolist(), events.thread.tolist()
        self.lost = losses(trace).tolist()
        self.value = trace.catalogue.state_value_of_code.tolist()

    def is_whole(self, first: int, last: int, cpu: int | None = None) -> bool:
        """Nothing is missing between two events; of one CPU if that is given."""
        return not any(
            start < self.time[last] and end > self.time[first]
            for start, end, number in self.lost
            if cpu is None or number in (EVERY_CPU, cpu)
        )

    def calls(self) -> dict[int, int]:
        """Kernel calls."""
        stays, found = never_block(self.trace.release), {}
        for row in range(self.count):
            code = self.code[row]
            if code >> 10 != 2 or code & 0x180:
                continue
            other = self._end_of_known(row) if self.thread[row] else self._end_of_unknown(row)
            if other is None or (self.code[other] ^ code) & 0x7F or self.code[other] & 0x180 not in (0x80, 0x100):
                continue
            if self.thread[row] or stays[code & 0x7F]:
                found[row] = other
        return found

    def _end_of_known(self, row: int) -> int | None:
        for other in range(row + 1, self.count):
            if self.code[other] >> 10 != 2:
                continue
            if not self.thread[other] and not (self.code[other] ^ self.code[row]) & 0x7F:
                return None
            if self.thread[other] == self.thread[row]:
                return other if self.is_whole(row, other) else None
        return None

    def _end_of_unknown(self, row: int) -> int | None:
        for other in range(row + 1, self.count):
            if self.cpu[other] != self.cpu[row]:
                continue
            if self.value[self.code[other]] == RUNNING:
                return None
            if self.code[other] >> 10 == 2:
                is_sure = not self.thread[other] and self.is_whole(row, other, self.cpu[row])
                return other if is_sure else None
        return None

    def interrupts(self) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """Interrupts, handlers, and entries with their first handlers."""
        stacks: dict[int, list[_Frame]] = defaultdict(lambda: [_Frame()])
        last: dict[int, int] = {}
        found, handled, first = {}, {}, {}
        for row in range(self.count):
            if self.code[row] >> 10 != 3:
                continue
            cpu, kind = self.cpu[row], self.code[row] & 0x3FF
            if cpu in last and not self.is_whole(last[cpu], row, cpu):
                del stacks[cpu], last[cpu]
            if cpu in last and kind in HANDLER_ENTRIES and self.code[last[cpu]] & 0x3FF in (*ENTRIES, 7):
                first[last[cpu]] = row
            last[cpu] = row
            frames = stacks[cpu]
            if kind in ENTRIES:
                frames.append(_Frame(row))
            elif kind == EXIT and len(frames) > 1:
                found[frames.pop().entry] = row
            elif kind == EXIT:
                frames[0] = _Frame()
            elif kind in HANDLER_ENTRIES:
                frames[-1].handlers.append(row)
            elif kind == HANDLER_EXIT and frames[-1].handlers:
                handled[frames[-1].handlers.pop()] = row
        return found, handled, first

    def messages(self) -> dict[int, int]:
        """Messages: the next receipt of the rcvid by the receiver."""
        sent: dict[tuple[int, int], int] = {}
        found = {}
        for row in range(self.count):
            if self.code[row] not in (7 << 10, 7 << 10 | 2):
                continue
            rcvid, pid = self.trace.payloads.words(row)[:2].tolist()
            if self.code[row] == 7 << 10:
                sent[rcvid, pid] = row
            elif (rcvid, pid) != (0xFFFFFFFF, 0xFFFFFFFF):
                pid = int(self.trace.threads.pid[self.thread[row]]) if self.thread[row] else pid
                first = sent.pop((rcvid, pid), None)
                if first is not None and self.is_whole(first, row):
                    found[first] = row
        return found

    def states(self) -> dict[int, int]:
        """States of threads."""
        found = {}
        for thread in range(len(self.trace.threads)):
            rows = self.trace.states.of(thread).tolist()
            for row, after in zip(rows, [*rows[1:], OPEN][: len(rows)], strict=True):
                value, until = self.value[self.code[row]], min(after, self.count - 1)
                own = self.cpu[row] if value == RUNNING else None
                if value != NOT_A_STATE and self.is_whole(row, until, own):
                    found[row] = after
        return found


@dataclass
class _Frame:
    """An interrupt that a CPU is in, and the handlers that run in it."""

    entry: int = -1
    handlers: list[int] = field(default_factory=list)


def as_dict(from_row: np.ndarray, to_row: np.ndarray) -> dict[int, int]:
    """Return columns as {row that begins: row that ends}."""
    return dict(zip(from_row.tolist(), to_row.tolist(), strict=True))

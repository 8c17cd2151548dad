"""What really happened within a range of a trace, cut and added up, to hold statistics against."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from satview.analysis.times.message_times import Durations
from satview.base.time import TimeWindow
from satview.capture.sim.truth import CallSpan, InterruptSpan, ThreadId, TrueMessage
from satview.events.states import ABSENT, NOT_A_STATE, RUNNING, STATE_BY_NAME
from tests.capture.judge import histories, is_idle
from tests.capture.made import Traced

ANY = 256  # above every value of a lane


@dataclass(frozen=True, slots=True)
class Lengths:
    """Figures of some lengths in cycles; all 0 if there are none."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0
    p99: int = 0

    @classmethod
    def of(cls, values: Iterable[int]) -> Lengths:
        """Return those of some lengths; 99 % do not exceed the last."""
        ordered = sorted(values)
        if not ordered:
            return cls()
        return cls(len(ordered), sum(ordered), ordered[0], ordered[-1], ordered[(99 * len(ordered) + 99) // 100 - 1])

    @classmethod
    def reported(cls, times: Durations, i: int) -> Lengths:
        """Return those that a row of statistics shows."""
        return cls(
            int(times.count[i]),
            int(times.total_cycles[i]),
            int(times.least_cycles[i]),
            int(times.most_cycles[i]),
            int(times.p99_cycles[i]),
        )


@dataclass(frozen=True, slots=True)
class Span:
    """A span of a thread: on a CPU, or (`cpu` -1) in a state."""

    thread: ThreadId
    cpu: int
    value: int
    start: int
    end: int


class TruthSums:
    """What happened within a range of a trace, in which nothing is missing and the counters of all CPUs agree."""

    def __init__(self, made: Traced, window: TimeWindow) -> None:
        self.truth, self.window, self.cpus = made.truth, window, made.trace.cpu_count
        self.end = made.trace.window.end
        threads = made.trace.threads
        self.row = {(int(pid), int(tid)): i for i, (pid, tid) in enumerate(zip(threads.pid, threads.tid, strict=True))}
        self.histories = {thread: _merged(history) for thread, history in histories(made.truth).items()}
        self._interrupts: dict[int, list[InterruptSpan]] = defaultdict(list)
        for span in made.truth.interrupts:
            self._interrupts[span.cpu].append(span)

    def begins(self, time: int) -> bool:
        """Return whether a moment is in the range."""
        return self.window.start <= time < self.window.end

    def cut(self, part: Span) -> int:
        """Return how much of a span is in the range."""
        return max(0, min(part.end, self.window.end) - max(part.start, self.window.start))

    def is_idle(self, thread: ThreadId) -> bool:
        """Return whether a thread is that of an idle CPU."""
        return is_idle(thread, self.cpus)

    @cached_property
    def runs(self) -> list[Span]:
        """Runs up to the end of the range, as they began; to a trace each ends with the thread's next state."""
        found = []
        for run in sorted(self.truth.runs, key=lambda run: run.start):
            history = self.histories[run.thread]
            start = run.start + self.truth.skew_cycles[run.cpu]
            index = bisect_right(history, (start, ANY))
            off = history[index][0] if index < len(history) else self.end
            if start < self.window.end:
                found.append(Span(run.thread, run.cpu, RUNNING, start, off))
        return found

    def interrupted(self, cpu: int, start: int, end: int) -> int:
        """Return how long a CPU handled interrupts in the part of a span that is in the range."""
        start, end = max(start, self.window.start), min(end, self.window.end)
        spans = self._interrupts[cpu]
        first = bisect_right(spans, start, key=lambda span: span.exit)
        last = bisect_left(spans, end, key=lambda span: span.enter)
        return sum(min(span.exit, end) - max(span.enter, start) for span in spans[first:last])

    @cached_property
    def states(self) -> list[Span]:
        """States of all threads up to the end of the range, by thread, then in time order; repeated ones are one."""
        created = {life.thread for life in self.truth.lives}
        found = []
        for thread, history in self.histories.items():
            before = ABSENT if thread in created else history[0][1]
            entries = _merged([(0, before), *history, (self.end, NOT_A_STATE)])
            spans = (Span(thread, -1, value, start, end) for (start, value), (end, _) in pairwise(entries))
            found += [span for span in spans if span.start < self.window.end]
        return found

    @cached_property
    def calls(self) -> dict[str, list[CallSpan]]:
        """Kernel calls that a trace shows and that were entered within the range, by name."""
        found = defaultdict(list)
        for call in self.truth.calls:
            if call.is_logged and self.begins(call.enter):
                found[call.name].append(call)
        return found

    @cached_property
    def interrupts(self) -> dict[int, list[InterruptSpan]]:
        """Interrupts entered within the range, by vector; up to 7.x."""
        found = defaultdict(list)
        for span in self.truth.interrupts:
            if self.begins(span.enter):
                found[span.vector].append(span)
        return found

    @cached_property
    def deliveries(self) -> Counter[tuple[int, int]]:
        """How often which CPU delivered an interrupt within the range, by (number of the attachment, CPU); 8.0."""
        return Counter((entry.ident, entry.cpu) for entry in self.truth.deliveries if self.begins(entry.time))

    @property
    def messages(self) -> list[TrueMessage]:
        """Messages sent within the range."""
        return [message for message in self.truth.messages if self.begins(message.sent)]

    def has_logged_size(self, message: TrueMessage) -> bool:
        """Return whether the range holds the receipt of a message and the exit from MSG_RECEIVEV that follows it."""
        exits = self._exits[message.server]
        index = bisect_left(exits, message.received)
        return self.begins(message.received) and index < len(exits) and self.begins(exits[index])

    @cached_property
    def _exits(self) -> dict[ThreadId | None, list[int]]:
        found = defaultdict(list)
        for call in self.truth.calls:
            if call.exit >= 0:
                found[call.thread].append(call.exit)
        return found

    def blocked(self, message: TrueMessage) -> dict[str, int]:
        """Return how long the client of a message was in SEND and then in REPLY; what did not end is not there."""
        history = self.histories[message.client]
        index = bisect_right(history, (message.sent, ANY))
        found = {}
        for state in ("SEND", "REPLY"):
            if index < len(history) and history[index][1] == STATE_BY_NAME[state].value:
                if index + 1 < len(history):
                    found[state] = history[index + 1][0] - history[index][0]
                index += 1
        return found


def _merged(history: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a history without the entries that repeat a state, as those do that show a new priority."""
    return [entry for i, entry in enumerate(history) if not i or entry[1] != history[i - 1][1]]

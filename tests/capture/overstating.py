"""Checks that statistics of a trace with holes never show more than what happened."""

from __future__ import annotations

from collections import Counter, defaultdict

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import scope_of
from satview.analysis.times.message_times import IS_CALL
from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.events.states import ABSENT, DEAD, UNKNOWN
from tests.capture.judge import as_idle
from tests.capture.made import Traced
from tests.capture.truth_sums import Lengths, TruthSums


def check_nothing_is_overstated(made: Traced) -> None:
    """Check all tables over what follows the opening dump."""
    _Check(made).everything()


class _Check:
    """Statistics, and the truth about as much; the counters of 6.x are some cycles apart, so that much more may be."""

    def __init__(self, made: Traced) -> None:
        trace, skew = made.trace, made.truth.skew_cycles
        self.apart = max(skew) - min(skew)
        window = TimeWindow(max(made.since, trace.window.start, trace.dump_end_cycles + 1), trace.window.end)
        self.found = Statistics(trace, window)
        self.truth = TruthSums(made, TimeWindow(window.start - self.apart, window.end + self.apart))
        self.thread_of = {row: thread for thread, row in self.truth.row.items()}

    def everything(self) -> None:
        """Check all tables."""
        self.runs()
        self.cpus()
        self.states()
        self.calls()
        self.lengths_of_calls()
        self.messages()
        self.interrupts()

    def at_most(self, reported: Lengths, true: Lengths) -> None:
        """Check figures of some of the lengths against those of all."""
        assert reported.count <= true.count
        assert reported.total <= true.total + self.apart * reported.count
        assert reported.most <= true.most + self.apart
        assert not reported.count or reported.least >= true.least - self.apart

    def runs(self) -> None:
        """Check CPU times of threads."""
        threads, truth = self.found.threads, self.truth
        ran, runs = Counter(), Counter()
        for run in truth.runs:
            ran[run.thread] += truth.cut(run) + self.apart
            runs[run.thread] += truth.cut(run) > 0
        for row in range(1, len(threads)):
            thread = self.thread_of[row]
            assert threads.cpu_cycles[row] + threads.interrupted_cycles[row] <= ran[thread], thread
            assert threads.switches[row] <= threads.runs[row] <= runs[thread], thread

    def cpus(self) -> None:
        """Check the four times of CPUs; without its name an idle thread of 8.0 is any thread."""
        cpus, truth = self.found.cpus, self.truth
        for cpu in range(truth.cpus):
            runs = [run for run in truth.runs if run.cpu == cpu]
            ran = sum(truth.cut(run) + self.apart for run in runs)
            idle = sum(truth.cut(run) + self.apart for run in runs if truth.is_idle(run.thread))
            assert cpus.busy_cycles[cpu] + cpus.idle_cycles[cpu] <= ran
            assert cpus.idle_cycles[cpu] <= idle
            assert cpus.busy_cycles[cpu] <= ran - idle or self.found.trace.release == Release.QNX_8
            assert cpus.interrupt_cycles[cpu] <= truth.interrupted(cpu, truth.window.start, truth.window.end)

    def states(self) -> None:
        """Check times in states that are reported."""
        truth, states = self.truth, self.found.states
        true = Counter()
        for span in truth.states:
            true[span.thread, span.value] += truth.cut(span) + self.apart
        reported = Counter()
        for row, value, cycles in zip(states.thread, states.value, states.total_cycles, strict=True):
            thread = self.thread_of[int(row)]
            lane = as_idle(int(value)) if truth.is_idle(thread) else int(value)
            reported[thread, ABSENT if lane == DEAD else lane] += int(cycles)
        for (thread, value), cycles in reported.items():
            assert value == UNKNOWN or cycles <= true[thread, value], f"{thread} was less long in state {value}"

    def calls(self) -> None:
        """Check kernel calls."""
        calls = self.found.calls
        for i, code in enumerate(calls.code.tolist()):
            true = self.truth.calls[self.found.trace.catalogue.name(code)]
            done = [call for call in true if call.exit >= 0]
            assert calls.count[i] <= len(true)
            self.at_most(Lengths.reported(calls.times, i), Lengths.of(call.exit - call.enter for call in done))
            assert Counter(dict(calls.errors[i])) <= Counter(c.error for c in done if not c.is_interrupted)
            assert calls.failed[i] == sum(count for _, count in calls.errors[i])
            assert calls.interrupted[i] <= sum(call.is_interrupted for call in done)

    def lengths_of_calls(self) -> None:
        """Check every single call of which a length is reported."""
        events, skew = self.found.trace.events, self.truth.truth.skew_cycles
        exits = {call.enter: call.exit for call in self.truth.truth.calls}
        scope = scope_of(self.found.trace, self.found.window, None, self.found.basis, None)
        rows = scope.selected(IS_CALL)
        cycles, ends = scope.lengths(rows)
        for row, length, end in zip(rows.tolist(), cycles.tolist(), ends.tolist(), strict=True):
            if length >= 0:
                enter, leave = (int(events.time_cycles[at]) - skew[events.cpu[at]] for at in (row, end))
                assert exits[enter] == leave, f"event {row} ends with event {end}?"

    def messages(self) -> None:
        """Check messages; senders that are not known are taken together."""
        true, table = defaultdict(list), self.found.messages
        for message in self.truth.messages:
            for client in (self.truth.row.get(message.client), 0):
                true[client, message.server_pid].append(message)
        for i, key in enumerate(zip(table.client.tolist(), table.server_pid.tolist(), strict=True)):
            blocked = [self.truth.blocked(message) for message in true[key]]
            assert table.sized[i] <= table.count[i] <= len(blocked)
            assert table.bytes[i] <= sum(message.size for message in true[key])
            for state, times in (("SEND", table.send_blocked), ("REPLY", table.reply_blocked)):
                self.at_most(Lengths.reported(times, i), Lengths.of(b[state] for b in blocked if state in b))

    def interrupts(self) -> None:
        """Check interrupts, from 8.0 on deliveries."""
        table, delivered = self.found.interrupts, Counter()
        for (ident, _), count in self.truth.deliveries.items():
            delivered[ident] += count
        for i, vector in enumerate(table.vector.tolist()):
            spans = self.truth.interrupts.get(vector, [])
            assert table.count[i] <= max(len(spans), delivered[vector])
            self.at_most(Lengths.reported(table.times, i), Lengths.of(span.exit - span.enter for span in spans))
            late = Lengths.of(span.handlers[0] - span.enter for span in spans if span.handlers)
            self.at_most(Lengths.reported(table.latency, i), late)

"""Explains why a thread runs, is ready or waits at a moment, step by step back to the root cause.

Source: formula 1 of the reference, in its better form: it separates why a thread could run from why it got this CPU
at that time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from satview.analysis.partitions import has_partitions, partition_names
from satview.analysis.thread_names import thread_of
from satview.analysis.verdicts.evidence import Evidence, of_whom, waited_for
from satview.analysis.verdicts.scheduling import ran_instead
from satview.analysis.wait_graph import RECEIVE
from satview.base.errors import UsageError
from satview.base.time import format_duration, format_moment
from satview.events import wire
from satview.events.states import ABSENT, DEAD, NAMES_BY_VALUE, READY, RUNNING, STATE_BY_VALUE, UNKNOWN
from satview.linkage.blockers import REPLY, SEND, blockers
from satview.linkage.calls import TIMER_EVENT
from satview.linkage.latencies import deliveries
from satview.linkage.links import NO_EVENT, OPEN, Certainty, is_whole, is_whole_on, last_before, rows_by_cpu
from satview.linkage.messages import messages
from satview.linkage.transactions import transactions
from satview.linkage.wake_ups import last_sends, wake_ups
from satview.store.arguments import argument, argument_under
from satview.store.axis import are_beside, file_window
from satview.store.trace import Trace
from satview.timeline.spans import LaneSpans
from satview.timeline.state_lanes import thread_spans, value_of_code

NO_ROW: Final = -1


class Causes:
    """Causes of wake-ups in one trace.

    Args:
        trace: The events. The first call computes the links of the whole trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def of_end(self, row: int) -> tuple[int, Certainty]:
        """Return the event that caused the end of a thread's wait, -1 if none is known, and the certainty.

        The receipt of the message ends a wait in SEND: the thread goes to REPLY without a wake-up.

        Args:
            row: The thread's next change of state after the wait began; -1 or `OPEN` for none.
        """
        if row in (NO_ROW, OPEN):
            return NO_ROW, Certainty.EXACT
        table = wake_ups(self._trace)
        link = int(table.ended_by(np.array([row]))[0])
        if link >= 0:
            return int(table.from_row[link]), Certainty(int(table.certainty[link]))
        if int(self._trace.catalogue.state_value_of_code[self._trace.events.code[row]]) == REPLY:
            return self._receipt(row), Certainty.EXACT
        return NO_ROW, Certainty.EXACT

    def _receipt(self, row: int) -> int:
        """Return the receipt of the message by which a thread went into state REPLY, -1 if that is not known."""
        thread = np.array([self._trace.events.thread[row]], np.int64)
        sent = last_sends(self._trace, thread, np.array([row], np.uint32))
        if sent[0] == NO_EVENT:
            return NO_ROW
        receipt = int(messages(self._trace).ends_of(sent)[0])
        return NO_ROW if receipt in (NO_EVENT, OPEN) else receipt

    def origin(self, row: int) -> int:
        """Return the event that sent the pulse or signal delivered by an event; the event itself if there is none."""
        table = deliveries(self._trace)
        link = int(table.ended_by(np.array([row]))[0])
        return int(table.from_row[link]) if link >= 0 else row

    def actor(self, row: int) -> int:
        """Return the thread that caused an event; -1 for timers, interrupts, and pulses that they send."""
        row = self.origin(row)
        code = int(self._trace.events.code[row])
        if code == TIMER_EVENT or wire.class_of(code) == wire.WireClass.INT:
            return NO_ROW
        return int(self._trace.events.thread[row]) or NO_ROW

    def words(self, row: int) -> str:
        """Return a description of an event that ended a wait."""
        trace, name = self._trace, self._trace.spec(row).name
        if wire.class_of(int(trace.events.code[row])) == wire.WireClass.INT:
            return f"interrupt 0x{int(trace.payloads.words(row)[0]):x} (event #{row + 1})"
        actor, origin = self.actor(row), self.origin(row)
        if actor < 0 and origin != row:
            return f"{name} (event #{row + 1}) of {self.words(origin)}"
        return f"{name} (event #{row + 1})" + (f" of {trace.thread_name(actor)}" if actor > 0 else "")


# Repetition: where the steps of a chain or a path recur, and how often.


_MOST_STEPS: Final = 16  # in one round
_LEAST_ROUNDS: Final = 4  # fewer are not folded: the first and the last round are always shown


@dataclass(frozen=True, slots=True)
class Rounds:
    """A sequence of steps that is repeated several times without a break.

    Attributes:
        start: Number of the first step of the first round, from 0.
        size: Steps in a round.
        count: Rounds.
    """

    start: int
    size: int
    count: int

    @property
    def folded(self) -> range:
        """The steps of all rounds but the first and the last."""
        return range(self.start + self.size, self.start + self.size * (self.count - 1))


def find_rounds(steps: Sequence[Hashable]) -> list[Rounds]:
    """Return the sequences of four or more equal rounds, in order and without overlap.

    Of several possible sizes of a round, the one that covers most steps is chosen, then the smallest.

    Args:
        steps: A value for each step; equal values are equal steps.
    """
    numbers: dict[Hashable, int] = {}
    number = np.array([numbers.setdefault(step, len(numbers)) for step in steps], np.int64)
    covered = np.zeros((_MOST_STEPS + 1, len(steps)), np.int64)
    for size in range(1, min(_MOST_STEPS, len(steps) // _LEAST_ROUNDS) + 1):
        differs = np.append(np.flatnonzero(number[:-size] != number[size:]), len(steps) - size)
        starts = np.arange(len(steps) - size)
        rounds = (differs[np.searchsorted(differs, starts)] - starts) // size + 1
        covered[size, : len(starts)] = np.where(rounds >= _LEAST_ROUNDS, rounds * size, 0)
    sizes, out = covered.argmax(axis=0).tolist(), list[Rounds]()
    step = 0
    while step < len(steps):
        size = int(sizes[step])
        count = int(covered[size, step]) // size if size else 0
        if count:
            out.append(Rounds(step, size, count))
        step += size * count or 1
    return out


# Steps of the explanation of a thread's state: their values, their text, and the chain as lines of text.


_NONE: Final = -1

IN_NO_STATE: Final = {
    ABSENT: "is not in the trace then",
    UNKNOWN: "is in a state that the trace does not show",
    DEAD: "is dead",
}


@dataclass(frozen=True, slots=True)
class WhyStep:
    """The state of one thread at one moment, and the reason for it.

    Rows are -1 if the trace does not show the event or thread, or if there is none.

    Attributes:
        thread: Row of the thread table.
        at_cycles: The examined moment.
        value: The thread's state as lane value (`events.states`).
        state: The state's name; UNKNOWN where the trace does not show it, ABSENT where the thread does not exist.
        since_cycles, until_cycles: Start and end of that state; the end of the trace if that comes before.
        row: The event that begins the state.
        priority: The thread's priority then, -1 if no wide event shows it.
        waits_for: Description of the object that the thread waits for; empty if it does not wait.
        holder: Row of the thread that holds or serves that object.
        may_receive: Rows of the server's threads, any of which may receive the message sent by a thread in SEND, or may
            have it if its receiver is receiving again and nobody has replied.
        serves: Row of the client whose message the thread received last and has not answered yet.
        receive_row: The event by which the thread received that message.
        wait_row: For a thread that runs or is ready: the event that began its last wait before.
        ready_row: The event that ended that wait: ready, or running at once.
        cause_row: The event that ended the wait: a message, pulse, reply, kernel call, timer or interrupt.
        waker: Row of the thread that caused this event; -1 for timers and interrupts too.
        before: Row of the thread that had the CPU before.
        on_cpus: For a ready thread, (CPU, thread, priority or -1, since when in cycles) of threads that have the CPUs.
        ran_instead: (thread, priority or -1, cycles) of the threads that had the CPUs since this one was ready.
        certainty: Certainty of the holder or the cause; EXACT if there is none.
        says: All of this as one sentence.
        is_cut: Events are lost from the end of the state on, so that it may last longer.
    """

    thread: int
    at_cycles: int
    value: int
    state: str
    since_cycles: int
    until_cycles: int
    row: int = _NONE
    priority: int = _NONE
    waits_for: str = ""
    holder: int = _NONE
    may_receive: tuple[int, ...] = ()
    serves: int = _NONE
    receive_row: int = _NONE
    wait_row: int = _NONE
    ready_row: int = _NONE
    cause_row: int = _NONE
    waker: int = _NONE
    before: int = _NONE
    on_cpus: tuple[tuple[int, int, int, int], ...] = ()
    ran_instead: tuple[tuple[int, int, int], ...] = ()
    certainty: Certainty = Certainty.EXACT
    says: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class ChainLine:
    """A line of the displayed chain: one step, or all steps of repeated rounds.

    Attributes:
        step: Number of the shown step, or of the first folded one, from 0.
        says: Text of the step, or how often the same round follows.
        is_folded: The line represents several steps.
    """

    step: int
    says: str
    is_folded: bool = False


def chain_lines(trace: Trace, steps: Sequence[WhyStep]) -> list[ChainLine]:
    """Return a chain for display: of four or more equal rounds only the first and the last are shown.

    Steps are equal if their process and state are.

    Args:
        trace: The trace.
        steps: The chain, as `why` returns it.
    """
    process, lines, next_step = trace.threads.process, list[ChainLine](), 0
    for rounds in find_rounds([(int(process[step.thread]), step.value) for step in steps]):
        lines += [ChainLine(number, steps[number].says) for number in range(next_step, rounds.folded.start)]
        # A chain goes back in time: a round lasts from its last step to where the round before it began.
        edges = [steps[number].at_cycles for number in range(rounds.folded.start, rounds.folded.stop + 1, rounds.size)]
        length = [newer - older for newer, older in pairwise(edges)]
        worst, clock = max(range(len(length)), key=length.__getitem__), trace.clock
        what = f"the same {rounds.size} steps" if rounds.size > 1 else "the same step"
        lines.append(ChainLine(
            rounds.folded.start,
            f"Before that {what} {rounds.count - 2} more times, back to "
            f"{format_moment(edges[-1], clock, length[worst])}; the longest "
            f"round took {format_duration(clock.duration_ns(length[worst]))} up to "
            f"{format_moment(edges[worst], clock, length[worst])}.", is_folded=True))  # fmt: skip
        next_step = rounds.folded.stop
    return lines + [ChainLine(number, steps[number].says) for number in range(next_step, len(steps))]


MOST_STEPS: Final = 32
_WIDE_SLOTS: Final = 2
_MOST_SERVERS: Final = 4  # threads of a server that are reported besides the one that receives the message in the end
_MOST_SERVED: Final = 64  # messages that a thread has not answered, looked at from the newest on
_MOST_CPUS: Final = 4  # CPUs whose threads a sentence names
_NO_THREAD_THEN: Final = tuple(IN_NO_STATE)


def why(trace: Trace, thread: int | str, at_cycles: int, steps: int = MOST_STEPS) -> tuple[WhyStep, ...]:
    """Return the steps that explain why a thread is in its state at a moment, back to the root cause.

    From a waiting thread the next step leads to the holder of the object at the same moment, or to the server's threads
    that may receive its message; from a thread that runs or is ready it leads to the thread that made it ready, at that
    time. The chain ends at a timer, an interrupt, the start of the trace, a wait that no particular thread can end, or
    a thread that is in the chain already: a deadlock.

    Args:
        trace: The events.
        thread: Row of the thread table, or a name for `thread_of`.
        at_cycles: The moment in cycles of the trace's clock; `trace.clock.cycles(ns)`. The exact start of a wait or of
            being ready means the whole interval: its middle is examined, because at the start other threads often
            have not reached their lasting states yet.
        steps: Maximum number of steps, at least 1.

    Raises:
        UsageError: No such thread, several of that name, or a moment outside the trace.
    """
    row = thread_of(trace, thread) if isinstance(thread, str) else thread
    if not 0 < row < len(trace.threads):
        raise UsageError(f"there is no thread in row {row} of the thread table")
    if not trace.window.contains(at_cycles):
        raise UsageError("that moment is outside the trace")
    chain = _Chain(trace)
    return tuple(chain.steps(row, chain.lasting(row, at_cycles), max(1, min(steps, MOST_STEPS))))


class _Chain:
    """Builds the chain of steps of `why`: each step leads to the thread that the one before it waits for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.evidence = Evidence(trace)
        self.causes = Causes(trace)
        self.partitions = partition_names(trace) if has_partitions(trace) else None
        self.values = value_of_code(trace)

    def lasting(self, thread: int, at_cycles: int) -> int:
        """Return the middle of the wait or ready interval that begins at a time; without one, the time itself."""
        spans = thread_spans(self.trace, thread, self.values)
        position = spans.index_at(at_cycles)
        value = int(spans.value[position])
        if value in (RUNNING, *_NO_THREAD_THEN) or int(spans.start_cycles[position]) != at_cycles:
            return at_cycles
        _, last = _same(spans, position)
        return at_cycles + (_end(spans, last) - at_cycles) // 2

    def steps(self, thread: int, at_cycles: int, most: int) -> list[WhyStep]:
        """Return the chain of steps that begins with a thread at a moment."""
        out: list[WhyStep] = []
        seen: set[tuple[int, int]] = set()
        while len(out) < most:
            step = self.step(thread, at_cycles)
            out.append(step)
            seen.add((thread, at_cycles))
            if step.holder > 0:
                thread = step.holder
            elif step.value == RECEIVE and step.waker > 0 and len(out) > 1:
                thread = step.waker  # the client of the step before waits for it, too
            elif step.may_receive:
                # The last one is followed: it receives the message, or is the only one.
                *others, thread = step.may_receive
                out += [self.step(other, at_cycles) for other in others][: most - len(out)]
            elif step.value in (RUNNING, READY) and step.waker > 0 and step.cause_row >= 0:
                thread, at_cycles = step.waker, int(self.trace.events.time_cycles[step.cause_row])
            else:
                break
            if (thread, at_cycles) in seen:
                name = self.evidence.name(thread)
                again = f"{name} waits for that in turn, which closes the circle: none of them goes on by itself."
                out[-1] = replace(out[-1], says=f"{out[-1].says} {again}")
            if (thread, at_cycles) in seen or self.evidence.is_idle[thread]:
                break
        return out

    def step(self, thread: int, at_cycles: int) -> WhyStep:
        """Return the step of a thread at a moment."""
        spans = thread_spans(self.trace, thread, self.values)
        position = spans.index_at(at_cycles)
        value = int(spans.value[position])
        begin, last = _same(spans, position)
        row = _row(spans, begin)
        step = WhyStep(
            thread, at_cycles, value, NAMES_BY_VALUE[value], int(spans.start_cycles[begin]), _end(spans, last),
            row, is_cut=last + 1 < len(spans) and int(spans.value[last + 1]) == UNKNOWN,
        )  # fmt: skip
        if value in _NO_THREAD_THEN:
            return replace(
                step, says=f"{self.evidence.name(thread)} {IN_NO_STATE[value]} at {self._moment(at_cycles, step)}."
            )
        if self.evidence.is_idle[thread]:
            return replace(step, says=f"{self.evidence.name(thread)} is an idle thread.")
        # A thread that receives again has handed the message to another one.
        serves, received = self._served(thread, at_cycles) if value != RECEIVE else (_NONE, _NONE)
        step = replace(step, priority=self._priority(_row(spans, position)), serves=serves, receive_row=received)
        if value == RUNNING:
            return self._running(step, spans, begin)
        if value == READY:
            return self._ready(step, spans, begin)
        return self._waiting(step, _row(spans, position))

    def _waiting(self, step: WhyStep, row: int) -> WhyStep:
        """Return the step of a waiting thread, completed by the awaited object, its holder, and what ends the wait."""
        blocked_by = blockers(self.trace)
        fitting = np.flatnonzero((blocked_by.waits.row == row) & (blocked_by.waits.thread == step.thread))
        process = int(self.trace.threads.process[step.thread])
        ends = (
            "the end of the trace"
            if step.until_cycles >= file_window(self.trace, -1, process).end
            else self._moment(step.until_cycles, step)
        )
        begins = self._begins(step)
        if step.is_cut:
            text = (
                f"{begins} at least to {ends}, where events are lost: what it waits for and what ends it is not known."
            )
            return replace(step, says=text)
        if not len(fitting):
            return replace(step, says=f"{begins} to {ends}.")
        wait = int(fitting[0])
        words = waited_for(self.evidence, blocked_by, wait)
        holder, sure = int(blocked_by.thread[wait]), Certainty(int(blocked_by.certainty[wait]) or Certainty.EXACT)
        end = int(blocked_by.waits.end_row[wait])
        cause, _ = self.causes.of_end(end)
        by = f"; {self.causes.words(cause)} ends it" if cause >= 0 else ""
        text = f"{begins} to {ends} for {words}{of_whom(self.evidence, blocked_by, wait)}{by}."
        servers: tuple[int, ...] = ()
        answers = self.causes.actor(cause) if cause >= 0 and step.value == REPLY else _NONE
        if holder > 0 and holder != answers and self._value(holder, step.at_cycles) == RECEIVE:
            text = f"{text} {self.evidence.name(holder)} has received it and receives again: another thread has it."
            holder = answers
            if answers < 0 and end == OPEN:
                ways = self.evidence.wait_graph.reply_ways(wait)
                servers = tuple(sorted(ways.ways or ways.guesses)[:_MOST_SERVERS])
                names = " or ".join(self.evidence.name(thread) for thread in servers)
                text = f"{text} That may be {names}." if servers else f"{text} No thread is left that could reply."
        if step.value == SEND and holder <= 0 and blocked_by.pid[wait] > 0:
            servers, count = self._servers(step, int(blocked_by.pid[wait]), row)
            if count > 1:
                some = "" if count == len(servers) else f", {len(servers)} of which follow"
                text = f"{text} Any of the {count} threads of the server may receive it{some}."
        if step.value == RECEIVE and cause >= 0:
            step = replace(step, cause_row=cause, waker=self.causes.actor(cause))
        return replace(step, waits_for=words, holder=holder, may_receive=servers, certainty=sure, says=text)

    def _servers(self, step: WhyStep, pid: int, row: int) -> tuple[tuple[int, ...], int]:
        """Return the first threads of a server that may receive a message, and the number of all such threads.

        The thread that finally receives the message comes last; threads that serve another message come first.
        """
        threads = self.trace.threads
        alive = [thread for thread in np.flatnonzero((threads.pid == pid) & (threads.tid > 0)).tolist()
                 if self._value(thread, step.at_cycles) not in _NO_THREAD_THEN]  # fmt: skip
        sent = last_sends(self.trace, np.array([step.thread]), np.array([row], np.uint32))
        receipt = int(messages(self.trace).ends_of(sent)[0]) if sent[0] != NO_EVENT else NO_EVENT
        receiver = int(self.trace.events.thread[receipt]) if receipt < len(self.trace.events) else _NONE
        alive.sort(key=lambda thread: (thread == receiver, self._served(thread, step.at_cycles)[0] < 0, thread))
        if len(alive) > 1 and alive[-1] != receiver:  # the receiver is not known
            return tuple(alive[:_MOST_SERVERS]), len(alive)
        return tuple(alive[:-1][:_MOST_SERVERS] + alive[-1:]), len(alive)

    def _value(self, thread: int, at_cycles: int) -> int:
        """Return the state of a thread at a moment, as lane value."""
        spans = thread_spans(self.trace, thread, self.values)
        return int(spans.value[spans.index_at(at_cycles)])

    def _served(self, thread: int, at_cycles: int) -> tuple[int, int]:
        """Return the client of a thread's newest message that is not answered yet, and the receipt; -1 = none.

        The trace must show that the client waits for the reply, as a send that did not block its client never ends.
        """
        sent = transactions(self.trace)
        bound = int(np.searchsorted(self.trace.events.time_cycles, at_cycles, side="right"))
        received = np.flatnonzero((sent.server == thread) & (sent.receive_row >= 0) & (sent.receive_row < bound)
                              & ((sent.over_row < 0) | (sent.over_row >= bound)) & (sent.client > 0))  # fmt: skip
        received = received[np.argsort(-sent.receive_row[received], kind="stable")][:_MOST_SERVED].tolist()
        newest = next((i for i in received if self._value(int(sent.client[i]), at_cycles) == REPLY), None)
        if newest is None:
            return _NONE, _NONE
        receipt = sent.receive_row[newest : newest + 1]
        if not is_whole(self.trace, receipt, np.array([bound - 1]))[0]:
            return _NONE, _NONE
        return int(sent.client[newest]), int(receipt[0])

    def _running(self, step: WhyStep, spans: LaneSpans, position: int) -> WhyStep:
        """Return the step of a running thread, completed by what ended its wait, and who had the CPU before."""
        step, because = self._woken(step, spans, position)
        ready = (
            int(spans.start_cycles[_same(spans, position - 1)[0]])
            if position and spans.value[position - 1] == READY
            else -1
        )
        if ready >= 0 and step.ready_row >= 0 and ready != int(self.trace.events.time_cycles[step.ready_row]):
            because = f"{because}; it was ready since {self._moment(ready, step)}"
        before, arrival = self._before(step)
        return replace(step, before=before, says=f"{self._begins(step)}: {because}{arrival}.")

    def _ready(self, step: WhyStep, spans: LaneSpans, position: int) -> WhyStep:
        """Return the step of a ready thread, completed by the threads that run instead, and what made it ready."""
        step, because = self._woken(step, spans, position)
        (on_cpus, idle), instead = self._on_cpus(step), self._instead(step)
        occupants = [
            f"{self._named(row, priority, step)} has {self.trace.cpu_title(cpu)} since {self._moment(since, step)}"
            for cpu, row, priority, since in on_cpus[:_MOST_CPUS]
        ]
        if len(on_cpus) > _MOST_CPUS:
            occupants.append(f"others have {len(on_cpus) - _MOST_CPUS} more CPUs")
        occupants += [f"{self.trace.cpu_title(cpu)} is idle" for cpu in idle[:_MOST_CPUS]]
        now = f": {', '.join(occupants)}" if occupants else ""
        priorities = {row: priority for row, priority, _ in instead}
        ran = self.evidence.shares([(row, cycles) for row, _, cycles in instead],
                                   lambda row: self._named(row, priorities[row], step))  # fmt: skip
        # One thread that has had a CPU all the time is named already.
        is_named = len(instead) == 1 and instead[0][0] in [row for _, row, *_ in on_cpus]
        text = f"{self._begins(step)} and does not run{now}{f'; meanwhile ran {ran}' if ran and not is_named else ''}"
        if taken := self.evidence.interrupts_of_all((step.since_cycles, step.at_cycles), least=0):
            text = f"{text}; {taken} of that time"
        if idle and self.trace.release.is_qnx:  # the balancer of another system may leave a CPU idle
            keeps = "its runmask or the budget of its partition" if self.partitions is not None else "its runmask"
            text = f"{text}; only {keeps} can keep it from a CPU that is idle"
        text = f"{text}."
        if position and spans.value[position - 1] == RUNNING:
            row_before = _row(spans, position - 1)
            cpu = f" {self.trace.cpu_title(int(self.trace.events.cpu[row_before]))}" if row_before >= 0 else " the CPU"
            had = self.evidence.length(step.since_cycles - int(spans.start_cycles[position - 1]))
            text = f"{text} It lost{cpu} at {self._moment(step.since_cycles, step)}, after {had} on it; {because}."
        else:
            text = f"{text} {because[0].upper()}{because[1:]}."
        return replace(step, on_cpus=on_cpus, ran_instead=instead, says=text)

    def _woken(self, step: WhyStep, spans: LaneSpans, position: int) -> tuple[WhyStep, str]:
        """Return the step of a running or ready thread, completed by what ended its last wait, and a text on that."""
        waited = position - 1
        while waited >= 0 and spans.value[waited] in (RUNNING, READY):
            waited -= 1
        if waited >= 0 and spans.value[waited] == UNKNOWN and int(spans.start_cycles[waited]) > self.trace.window.start:
            return step, "what it did before is not known, as events are lost"
        if waited < 0 or spans.value[waited] in (ABSENT, UNKNOWN):
            return step, "it did not wait before, as far as the trace shows"
        wait_row, ready_row = _row(spans, waited), _row(spans, waited + 1)
        waited_in = STATE_BY_VALUE[int(spans.value[waited])].name
        cause, sure = self.causes.of_end(ready_row)
        step = replace(step, wait_row=wait_row, ready_row=ready_row, cause_row=cause)
        ended = f"its wait in {waited_in} ended at {self._moment(int(spans.start_cycles[waited + 1]), step)}"
        if cause < 0:
            return step, ended
        by = f"{ended} by {self.causes.words(cause)}{'' if sure is Certainty.EXACT else ' (inferred)'}"
        return replace(step, waker=self.causes.actor(cause), certainty=sure), by

    def _on_cpus(self, step: WhyStep) -> tuple[tuple[tuple[int, int, int, int], ...], list[int]]:
        """Return (CPU, thread, priority or -1, start in cycles) for each CPU with another thread, and the idle CPUs.

        The CPU that the thread was on last is the first, then those whose threads have the lowest priority.
        """
        events, (rows, _) = self.trace.events, self.evidence.slices
        inside = rows[self.evidence.slices_in((step.at_cycles, step.at_cycles + 1))]
        inside = inside[(events.thread[inside] != 0) & (events.thread[inside] != step.thread)]
        inside = inside[are_beside(self.trace, events.thread[inside], step.thread)]
        is_idle = self.evidence.is_idle[events.thread[inside]]
        own = int(events.cpu[step.row]) if step.row >= 0 else _NONE
        runners = [(int(events.cpu[row]), int(events.thread[row]), self._priority(row), int(events.time_cycles[row]))
                 for row in inside[~is_idle].tolist()]  # fmt: skip
        runners.sort(key=lambda runner: (runner[0] != own, runner[2], runner[0]))
        return tuple(runners), sorted(events.cpu[inside[is_idle]].tolist())

    def _named(self, thread: int, priority: int, step: WhyStep) -> str:
        """Return the name of a thread, with its priority and partition at the moment of a step."""
        return f"{self.evidence.name(thread)}{self._rank(priority, self._last_of(thread, step))}"

    def _before(self, step: WhyStep) -> tuple[int, str]:
        """Return the thread that had the CPU before a running thread, and a text on how that thread left the CPU."""
        trace = self.trace
        if step.row < 0:
            return _NONE, ""
        rows = np.array([step.row])
        last = int(last_before(trace, rows_by_cpu(trace, wire.THREAD_RUNNING), rows)[0])
        cpu = int(trace.events.cpu[step.row])
        if last == NO_EVENT or not is_whole_on(trace, cpu, np.array([last]), rows)[0]:
            return _NONE, f"; it got {trace.cpu_title(cpu)}"
        other = int(trace.events.thread[last])
        if other == step.thread:
            return other, f"; it had {trace.cpu_title(cpu)} before, too"
        if self.evidence.is_idle[other]:
            return other, f"; {trace.cpu_title(cpu)} was idle"
        own_states = trace.states.of(other)
        following = own_states[np.searchsorted(own_states, last, side="right") :]
        after = int(following[0]) if len(following) else len(trace.events)
        end = {RUNNING: "", READY: " was preempted or gave it up"}
        value = int(trace.catalogue.state_value_of_code[trace.events.code[after]]) if after < step.row else RUNNING
        name = STATE_BY_VALUE[value].name if value in STATE_BY_VALUE else "DEAD"
        return other, (f"; on {trace.cpu_title(cpu)} {self.evidence.name(other)} ran before and"
                       f"{end.get(value, f' went into {name}') or ' left'}")  # fmt: skip

    def _instead(self, step: WhyStep) -> tuple[tuple[int, int, int], ...]:
        """Return (thread, priority, cycles) of threads that ran since a thread became ready, up to the moment."""
        span = step.since_cycles, max(step.at_cycles, step.since_cycles + 1)
        out = []
        for row, cycles in ran_instead(self.evidence, span, step.thread):
            out.append((row, self._priority(self._last_of(row, step)), cycles))
        return tuple(out)

    def _last_of(self, thread: int, step: WhyStep) -> int:
        """Return a thread's last state event up to the moment of a step, -1 for none."""
        own_states = self.trace.states.of(thread)
        position = int(
            np.searchsorted(self.trace.events.time_cycles[own_states], max(step.at_cycles, step.since_cycles + 1))
        )
        return int(own_states[position - 1]) if position else _NONE

    def _priority(self, row: int) -> int:
        """Return the priority in a state event of a thread, -1 if the event is not wide."""
        if row < 0 or self.trace.events.slot_count[row] < _WIDE_SLOTS:
            return _NONE
        value, known = argument(self.trace, np.array([row]), "priority")
        return int(value[0]) if known[0] else _NONE

    def _rank(self, priority: int, row: int) -> str:
        """Return a thread's priority and partition in brackets, as far as its state event `row` shows them."""
        logged = [f"priority {priority}"] if priority >= 0 else []
        if self.partitions is not None and row >= 0 and self.trace.events.slot_count[row] >= _WIDE_SLOTS:
            number = int(argument_under(self.trace, np.array([row]), "partition", "partition_id")[0])
            if number >= 0:
                logged.append(f"partition {self.partitions.get(number, number)}")
        return f" ({', '.join(logged)})" if logged else ""

    def _begins(self, step: WhyStep) -> str:
        """Return the first words of the sentence on a step: thread, priority, state, and the start of the state."""
        priority = self._rank(step.priority, step.row)
        does = {RUNNING: "runs", READY: "is ready"}.get(step.value, f"waits in {step.state}")
        where = ""
        if step.value == RUNNING and step.row >= 0:
            where = f" on {self.trace.cpu_title(int(self.trace.events.cpu[step.row]))}"
        serves = ""
        if step.serves > 0:
            serves = f" serves a message of {self.evidence.name(step.serves)} (event #{step.receive_row + 1}) and"
        since = self._moment(step.since_cycles, step)
        begins = "since" if step.value in (RUNNING, READY) else "from"  # of a wait its end follows
        return f"{self.evidence.name(step.thread)}{priority}{serves} {does}{where} {begins} {since}"

    def _moment(self, cycles: int, step: WhyStep) -> str:
        """Return a moment as text, as exact as the length of the step's state requires."""
        return self.evidence.moment(cycles, step.until_cycles - step.since_cycles)


def _same(spans: LaneSpans, position: int) -> tuple[int, int]:
    """Return the positions of the first and the last of the adjacent intervals in the same state as that at `position`.

    The opening dump, or a change of priority, may show a state twice; two RUNNING intervals mean a change of the CPU.
    """
    value, earliest, latest = int(spans.value[position]), position, position
    while value != RUNNING and earliest > 0 and spans.value[earliest - 1] == value:
        earliest -= 1
    while value != RUNNING and latest + 1 < len(spans) and spans.value[latest + 1] == value:
        latest += 1
    return earliest, latest


def _end(spans: LaneSpans, position: int) -> int:
    """Return the end of the interval at a position, cycles."""
    return int(spans.start_cycles[position + 1]) if position + 1 < len(spans) else spans.end_cycles


def _row(spans: LaneSpans, position: int) -> int:
    """Return the event that begins an interval, -1 for none."""
    row = int(spans.event[position])
    return _NONE if row == NO_EVENT else row

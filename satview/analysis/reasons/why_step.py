"""Steps of an answer to why a thread is in its state: plain values, the sentence of each, and the chain for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from satview.analysis.reasons.rounds import find_rounds
from satview.base.time_text import format_duration, format_moment
from satview.events.states import ABSENT, DEAD, UNKNOWN
from satview.linkage.table import Certainty
from satview.store.trace import Trace

_NONE: Final = -1

IN_NO_STATE: Final = {
    ABSENT: "is not in the trace then",
    UNKNOWN: "is in a state that the trace does not show",
    DEAD: "is dead",
}


@dataclass(frozen=True, slots=True)
class WhyStep:
    """The state of one thread at one moment, and why it is in it.

    Rows are -1 where the trace does not show them, or where there is nothing of that kind.

    Attributes:
        thread: Row of the thread table.
        at_cycles: The moment that is looked at.
        value: Its state as lane value (`events.states`).
        state: The state's name; UNKNOWN where the trace does not show it, ABSENT where the thread does not exist.
        since_cycles, until_cycles: How long it is in that state; the end of the trace if that comes before.
        row: The event that begins the state.
        priority: Its priority then, -1 if no wide event shows it.
        waits_for: What it waits for, in words; empty if it does not.
        holder: Row of the thread that holds or serves that.
        may_receive: Rows of the threads of the server, any of which may receive the message that it waits in SEND with,
            or may have it where the one that received it receives again and nobody replies.
        serves: Row of the client whose message it has received and not answered yet, of several the one received last.
        receive_row: The event by which it received that message.
        wait_row: Of a thread that runs or is ready: the event by which it began to wait the last time before.
        ready_row: The event that ended that wait: ready, or running at once.
        cause_row: What ended the wait: a message, pulse, reply, kernel call, timer or interrupt.
        waker: Row of the thread that did that; -1 for timers and interrupts too.
        before: Row of the thread that had the CPU before.
        on_cpus: (CPU, thread, priority or -1, since when in cycles) of those that have the CPUs while it is ready.
        ran_instead: (thread, priority or -1, cycles) of the threads that had the CPUs since it was ready.
        certainty: Of the holder or the cause; EXACT if there is none.
        says: All that as one sentence.
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


@dataclass(frozen=True, slots=True)
class ChainLine:
    """Steps as they are shown: those of rounds that repeat are one line.

    Attributes:
        step: Number of the step that is shown, or of the first one that is not, from 0.
        says: What it says, or how often the same follows.
        is_folded: It stands for several steps.
    """

    step: int
    says: str
    is_folded: bool = False


def chain_lines(trace: Trace, steps: Sequence[WhyStep]) -> list[ChainLine]:
    """Return a chain for people: of four rounds of the same steps or more only the first and the last are shown.

    Steps are the same if they are of one process in one state.

    Args:
        trace: The trace.
        steps: The chain, as `why` returns it.
    """
    process, lines, next_step = trace.threads.process, list[ChainLine](), 0
    for rounds in find_rounds([(int(process[step.thread]), step.value) for step in steps]):
        lines += [ChainLine(at, steps[at].says) for at in range(next_step, rounds.folded.start)]
        # A chain goes back in time: a round lasts from its last step to where the round before it began.
        edges = [steps[at].at_cycles for at in range(rounds.folded.start, rounds.folded.stop + 1, rounds.size)]
        length = [newer - older for newer, older in pairwise(edges)]
        worst, clock = max(range(len(length)), key=length.__getitem__), trace.clock
        what = f"the same {rounds.size} steps" if rounds.size > 1 else "the same step"
        lines.append(ChainLine(
            rounds.folded.start,
            f"Before that {what} {rounds.count - 2} more times, back to {format_moment(edges[-1], clock)}; the longest "
            f"round took {format_duration(clock.duration_ns(length[worst]))} up to "
            f"{format_moment(edges[worst], clock)}.", is_folded=True))  # fmt: skip
        next_step = rounds.folded.stop
    return lines + [ChainLine(at, steps[at].says) for at in range(next_step, len(steps))]

"""Critical paths against lanes drawn by hand and against what really happened."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict

import numpy as np
import pytest

from satview.analysis.critical_path import CriticalPath, PathWords, PieceKind, critical_path
from satview.analysis.why import Rounds, find_rounds
from satview.answers.path import path_answer
from satview.base.errors import UsageError
from satview.base.time import TimeWindow, format_duration, format_moment
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import STATE_BY_VALUE
from satview.store.trace import Trace
from tests.analysis.conftest import MadeOf
from tests.helpers.extent import LOSS, WIDTH, points

RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)
PATHS = 25
NAMES = [name for name, _ in registry.names()]


def reported(trace: Trace, path: CriticalPath) -> list[str]:
    """Return the pieces as text: length in microseconds, depth as dots, thread, what it does."""
    ns, words = trace.clock.duration_ns, PathWords(trace)
    return [
        f"{ns(int(path.end_cycles[i] - path.start_cycles[i])) / 1000:.0f} {'.' * int(path.depth[i])}"
        f"{trace.thread_name(int(path.on_thread[i]))} {words.describe(path, i)}"
        for i in range(len(path))
    ]


def is_a_partition(path: CriticalPath, window: TimeWindow) -> bool:
    """Return whether the pieces touch, none is empty, and they cover the interval and nothing else."""
    start, end = path.start_cycles, path.end_cycles
    return bool((start[0], end[-1]) == (window.start, window.end) and np.all(end[:-1] == start[1:])
                and np.all(end > start) and sum(path.totals().values()) == window.length)  # fmt: skip


class Truth:
    """What really happened, as a path is made of it."""

    def __init__(self, made) -> None:
        self.history, self.waits = defaultdict(list), {}
        for change in sorted(made.truth.states, key=lambda change: change.time):
            self.history[change.thread].append((change.time, change.state))
        for wait in made.truth.waits:
            self.waits[wait.thread, wait.start] = wait
        self.received = {(m.client, m.sent): (m.received, m.server) for m in made.truth.messages}

    def at(self, thread, time):
        """Return when the state of a thread just before a moment began, and the state."""
        mine = self.history[thread]
        position = bisect_right(mine, (time - 1, "~")) - 1
        return mine[position] if position >= 0 else (0, "none")

    def between(self, thread, begin, end):
        """Return the states that a thread had in an interval."""
        mine = self.history[thread]
        first, last = bisect_right(mine, (begin, "~")) - 1, bisect_right(mine, (end - 1, "~"))
        return {state for _, state in mine[first:last]}

    def path(self, thread, floor, time, above=()):
        """Return the pieces from a moment back to another, (start, end, thread, state), last one first."""
        out = []
        while time > floor:
            since, state = self.at(thread, time)
            wait = self.waits.get((thread, since))
            since = max(since, floor)
            ended, waker = time, None
            if wait is not None and wait.end == time:
                ended, waker = (wait.cause if wait.cause >= 0 else time), wait.waker
            elif wait is not None and len(wait.owners) == 1 and state != "SEND":
                waker = wait.owners[0]  # it does not end here: who holds what the thread waits for
            if ended < time and state != "SEND":
                out.append((ended, time, thread, "waking"))
            ended = time if state == "SEND" else ended
            if waker is not None and ended > since and waker != thread and waker not in above:
                out += self.path(waker, since, ended, (*above, thread))
            elif ended > since:
                out.append((since, ended, thread, state))
            time = since
        return out


def pieces_of(trace: Trace, path: CriticalPath) -> list[tuple]:
    """Return the pieces like `Truth.path`, in time order."""
    out = []
    for i in range(len(path)):
        row = int(path.on_thread[i])
        state = STATE_BY_VALUE[int(path.value[i])].name if path.kind[i] != PieceKind.UNKNOWN else "unknown"
        if path.kind[i] == PieceKind.WAKING:
            state = "waking"
        out.append((int(path.start_cycles[i]), int(path.end_cycles[i]),
                    (int(trace.threads.pid[row]), int(trace.threads.tid[row])), state))  # fmt: skip
    return out


def combined(pieces):
    """Join neighbours of one thread and state: a run that goes on on another CPU is two to the kernel."""
    out = []
    for piece in pieces:
        if out and out[-1][2:] == piece[2:] and out[-1][1] == piece[0]:
            out[-1] = (out[-1][0], *piece[1:])
        else:
            out.append(piece)
    return out


@points(name=NAMES, loss=LOSS, wide=WIDTH, release=RELEASES)
def test_every_piece_is_true(name, loss, wide, release, made_of: MadeOf) -> None:
    made = made_of(name, release, wide, loss)
    trace, truth = made.trace, Truth(made)
    random, seen = np.random.default_rng(11), Counter()
    rows = [
        row
        for row in range(1, len(trace.threads))
        if (int(trace.threads.pid[row]), int(trace.threads.tid[row])) in truth.history
    ]
    for _ in range(PATHS):
        row = int(random.choice(rows))
        start, end = sorted(random.integers(made.since + 1, trace.window.end, 2).tolist())
        window = TimeWindow(start, max(end, start + 1))
        path = critical_path(trace, row, window)
        assert is_a_partition(path, window)
        mine = pieces_of(trace, path)
        for begin, until, thread, state in mine:
            if state == "unknown":
                seen["unknown"] += 1
            elif state == "waking":
                wait = truth.waits.get((thread, truth.at(thread, until)[0]))
                assert wait is not None
                assert wait.cause == begin, (thread, begin)
                seen["true"] += 1
            else:
                assert truth.between(thread, begin, until) == {state}, (thread, begin, until)
                seen["true"] += 1
        whose = int(trace.threads.pid[row]), int(trace.threads.tid[row])
        really = truth.path(whose, window.start, window.end)[::-1]
        # The truth does not name who sends what a server waits for.
        if not {"unknown", "RECEIVE"} & {piece[3] for piece in (*mine, *really)}:
            seen["compared"] += 1
            seen["same"] += combined(mine) == combined(really)
    assert seen["true"]
    if wide and not loss:  # the rest are waits of which the truth names no waker, as for signals
        assert seen["same"] >= 0.7 * seen["compared"], dict(seen)


def test_an_inversion_adds_up(made_of: MadeOf) -> None:
    """Three threads, one mutex: what the thread of highest priority waits for is mostly that the lowest gets a CPU."""
    made = made_of("inversion", Release.QNX_7, True, False)
    trace = made.trace
    start = trace.window.start + trace.clock.cycles_of(60_000_000)
    path = critical_path(trace, "high", TimeWindow(start, start + trace.clock.cycles_of(40_000_000)))
    lines = reported(trace, path)
    instead = [line for line in lines if "meanwhile ran pid 135172 1 (middle)" in line]
    [line] = instead
    assert line == "24999 .pid 2 1 (low) is ready; meanwhile ran pid 135172 1 (middle) 25.00 ms"
    assert max(path.totals(), key=path.totals().get) == (trace.threads.row(2, 1), PieceKind.READY)


def test_bad_questions(made_of: MadeOf) -> None:
    trace = made_of("deadlock", Release.QNX_7, True, False).trace
    window = trace.window
    with pytest.raises(UsageError, match="is outside the trace"):
        critical_path(trace, 1, TimeWindow(window.end, window.end + 5))
    with pytest.raises(UsageError, match="no thread in row"):
        critical_path(trace, 10_000, window)
    with pytest.raises(UsageError, match="more than 1 pieces; take a shorter interval"):
        critical_path(trace, 1, window, most=1)
    whole = critical_path(trace, "forwards", TimeWindow(window.start - 10, window.end + 10))
    assert is_a_partition(whole, window)
    assert "held by pid 2 2 (forwards)" in reported(trace, whole)[-1]


@pytest.mark.parametrize(("steps", "rounds"), [
    ("", []), ("abcabc", []), ("aaa", []), ("aaaa", [(0, 1, 4)]), ("xabababababy", [(1, 2, 5)]),
    ("aabaabaabaab", [(0, 3, 4)]), ("aaaabbbbb", [(0, 1, 4), (4, 1, 5)]),
    ("abcdefghijklmnop" * 4, [(0, 16, 4)]), ("abcdefghijklmnopq" * 4, []),
])  # fmt: skip
def test_rounds_of_steps(steps: str, rounds: list[tuple[int, int, int]]) -> None:
    assert find_rounds(steps) == [Rounds(*each) for each in rounds]


def test_what_comes_again_and_again_is_one_row(made_of: MadeOf) -> None:
    """A task of 10 ms that nobody disturbs at first: it waits, wakes up, is ready, runs."""
    trace = made_of("periodic", Release.QNX_7, True, False).trace
    start = trace.window.start + trace.clock.cycles_of(10_000_000)
    answer = path_answer(trace, critical_path(trace, "fast-10ms", TimeWindow(start, trace.window.end)))
    heads = [row for row in range(len(answer.folded)) if len(answer.folded.children(row))]
    assert len(heads) == 1
    below = answer.folded.at(answer.folded.children(heads[0]))
    assert below["kind"].tolist() == ["waiting", "waking up", "ready", "running"] * (len(below) // 4)
    rounds = below["length_cycles"].reshape(-1, 4).sum(axis=1)
    longest = int(rounds.argmax())
    assert answer.folded["does"][heads[0]] == (
        f"the same 4 steps {len(rounds)} more times, longest "
        f"{format_duration(trace.clock.duration_ns(int(rounds.max())))} from "
        f"{format_moment(int(below['start_cycles'][4 * longest]), trace.clock)}")  # fmt: skip
    assert len(answer.folded) - 1 + len(below) == len(answer.pieces) == len(answer.path)
    assert answer.folded["length_cycles"].sum() == answer.pieces["length_cycles"].sum() == trace.window.end - start
    assert answer.totals["length_cycles"].sum() == trace.window.end - start
    assert answer.totals["share"].sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.thorough
def test_interrupts_have_their_share(made_of: MadeOf) -> None:
    """What handlers took from threads of the path, counted interrupt by interrupt."""
    trace = made_of("interrupt-flood", Release.QNX_7, True, False).trace
    path = critical_path(trace, "victim", TimeWindow(trace.window.start, trace.window.end))
    answer = path_answer(trace, path)
    names = [trace.spec(row).name for row in range(len(trace.events))]
    times, cpus = trace.events.time_cycles.tolist(), trace.events.cpu.tolist()
    handled, begun = defaultdict(list), {}
    for row, name in enumerate(names):
        if name.startswith("INTENTER"):
            begun.setdefault(cpus[row], []).append(times[row])
        elif name == "INTEXIT" and begun.get(cpus[row]):
            start = begun[cpus[row]].pop()
            if not begun[cpus[row]]:
                handled[cpus[row]].append((start, times[row]))
    taken = Counter()
    for piece in np.flatnonzero(path.kind == PieceKind.RUNNING).tolist():
        span = int(path.start_cycles[piece]), int(path.end_cycles[piece])
        taken[int(path.on_thread[piece])] += sum(
            max(0, min(end, span[1]) - max(start, span[0])) for start, end in handled[cpus[path.row[piece]]]
        )
    runs = answer.totals.rows(answer.totals["kind"] == "running")
    reported = dict(zip(runs["thread"].tolist(), runs["interrupted_cycles"].tolist(), strict=True))
    assert sum(taken.values()) > trace.clock.cycles_of(1_000_000)
    assert {thread: max(cycles, 0) for thread, cycles in reported.items()} == {
        thread: taken[thread] for thread in reported
    }

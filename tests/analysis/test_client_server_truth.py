"""Client and server time, messages between CPUs and migrations against what the simulated kernel really did."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.capture.sim.truth import ThreadId, TrueMessage
from satview.events.spec import Release
from satview.events.states import STATE_BY_NAME
from tests.analysis.test_statistics_truth import since_dump, workload
from tests.capture.made import ALL, FAST, WIDE, Traced, damaged, traced
from tests.capture.truth_sums import Span, TruthSums

WORKLOADS = (
    "client-server", "nested-inversion", "message-deadlock", "producer-consumer", "partitions", "signals",
    "small-system", "automotive", "mishaps", "nested-servers", "partition-starvation",
)  # fmt: skip
CASES = [
    pytest.param((name, release, form), id=f"{name}-{release}-{form}")
    for name in WORKLOADS
    for release, form in ((Release.QNX_6, "fast"), (Release.QNX_7, "wide"), (Release.QNX_8, "fast"))
]
Pair = tuple[ThreadId, ThreadId]
SEND, REPLY = (STATE_BY_NAME[name].value for name in ("SEND", "REPLY"))


@dataclass
class Served:
    """A message under way: who serves whom from when to when."""

    client: ThreadId
    server: ThreadId
    start: int
    end: int


def served(truth: TruthSums) -> list[Served]:
    """Return all messages that were received, to the moment at which the client stops to wait for the answer."""
    found = []
    for message in truth.truth.messages:
        if message.received < 0 or message.server is None:
            continue
        history = truth.histories[message.client]
        position = bisect_right(history, (message.sent, 256))
        is_handed = position < len(history) and history[position][1] == REPLY
        while position < len(history) and history[position][1] in (SEND, REPLY):
            position += 1
        free = history[position][0] if position < len(history) else truth.end
        end = min(free, message.replied) if message.replied >= 0 else free
        end = min(end, *(life.time for life in truth.truth.lives if life.state == "DESTROY"
                         and life.thread == message.server and life.time > message.received), truth.end)  # fmt: skip
        found.append(Served(message.client, message.server, message.sent if is_handed else message.received, end))
    return found


def billed(truth: TruthSums) -> tuple[Counter[Pair], Counter[ThreadId], Counter[ThreadId]]:
    """Return what clients imposed on servers, what threads ran for themselves, what they caused: moment by moment."""
    imposed, own, caused = Counter(), Counter(), Counter()
    all_served = sorted(served(truth), key=lambda one: one.start)
    by_server = defaultdict(list)
    for one in all_served:
        by_server[one.server].append(one)
    edges = sorted({time for one in all_served for time in (one.start, one.end)})
    for run in truth.runs:
        if truth.is_idle(run.thread) or not truth.cut(run):
            continue
        start, end = max(run.start, truth.window.start), min(run.end, truth.window.end)
        inside = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        for first, last in pairwise([start, *inside, end]):
            chain = reached(run.thread, first, by_server)
            for client in chain - {run.thread}:
                imposed[client, run.thread] += last - first
            payer, seen = run.thread, set()
            while payer not in seen:
                seen.add(payer)
                open_now = [one for one in by_server[payer] if one.start <= first < one.end]
                payer = open_now[-1].client if open_now else payer
            (own if payer == run.thread else caused)[payer] += last - first
    return imposed, own, caused


def reached(thread: ThreadId, now: int, by_server: dict[ThreadId, list[Served]]) -> set[ThreadId]:
    """Return all for whom a thread works at a moment: its clients, theirs, and so on, and itself."""
    found, todo = {thread}, [thread]
    while todo:
        for one in by_server[todo.pop()]:
            if one.start <= now < one.end and one.client not in found:
                found.add(one.client)
                todo.append(one.client)
    return found


def capture(request: pytest.FixtureRequest, folder, *, loss: bool) -> Traced:
    name, release, form = request.param
    setup, ms, cpus = workload(name)
    ms = min(ms, 40)
    if loss:
        return damaged(
            setup, ms, folder, release, cpus, ring=False, wide=form == "wide", slots=60, skew_ns=0, classes=ALL
        )
    return traced(setup, ms, folder, release, cpus, 5, WIDE if form == "wide" else FAST, skew_ns=0)


@pytest.fixture(scope="module", params=CASES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Statistics, TruthSums]:
    made = capture(request, tmp_path_factory.mktemp("whole"), loss=False)
    window = since_dump(made.trace)
    return Statistics(made.trace, window), TruthSums(made, window)


@pytest.fixture(scope="module", params=CASES)
def lossy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Statistics, TruthSums]:
    made = capture(request, tmp_path_factory.mktemp("lossy"), loss=True)
    return Statistics(made.trace), TruthSums(made, made.trace.window)


def reported(found: Statistics) -> Counter[Pair]:
    """Return what the statistics say that clients imposed on servers."""
    threads, imposed = found.trace.threads, found.client_server.imposed
    names = [(int(pid), int(tid)) for pid, tid in zip(threads.pid, threads.tid, strict=True)]
    return Counter({(names[client], names[server]): int(cycles) for client, server, cycles in
                    zip(imposed.client, imposed.server, imposed.cycles, strict=True)})  # fmt: skip


def test_client_and_server_time(whole: tuple[Statistics, TruthSums]) -> None:
    found, truth = whole
    imposed, own, caused = billed(truth)
    assert reported(found) == +imposed
    table = found.client_server
    for thread, row in truth.row.items():
        assert table.own_cycles[row] == own[thread], thread
        assert table.caused_cycles[row] == caused[thread], thread
    ran = found.threads.run_cycles[~found.basis.is_idle]
    assert table.bill_cycles.sum() == table.self_cycles.sum() == ran.sum()


def test_losses_bill_nobody_too_much(lossy: tuple[Statistics, TruthSums]) -> None:
    found, truth = lossy
    imposed, _, _ = billed(truth)
    for pair, cycles in reported(found).items():
        assert cycles <= imposed[pair], pair
    table = found.client_server
    assert table.bill_cycles.sum() == table.self_cycles.sum()
    assert np.all(table.own_cycles >= 0)
    assert np.all(table.caused_cycles >= 0)


def ends(found: Statistics, truth: TruthSums) -> tuple[dict[int, int], list[TrueMessage]]:
    """Return the CPU of every event by its time, and the messages sent in the range."""
    events = found.trace.events
    return dict(zip(events.time_cycles.tolist(), events.cpu.tolist(), strict=True)), truth.messages


def cpus_of(truth: TruthSums) -> dict[ThreadId, list[Span]]:
    runs = defaultdict(list)
    for run in truth.runs:
        runs[run.thread].append(run)
    return runs


def test_messages_between_cpus(whole: tuple[Statistics, TruthSums]) -> None:
    found, truth = whole
    runs = cpus_of(truth)

    def cpu_at(thread: ThreadId | None, time: int) -> int:
        return next(run.cpu for run in reversed(runs[thread]) if run.start <= time)

    expected, unknown = np.zeros((truth.cpus, truth.cpus), int), 0
    for message in truth.messages:
        if 0 <= message.received < truth.end:
            expected[cpu_at(message.client, message.sent), cpu_at(message.server, message.received)] += 1
        else:
            unknown += 1
    assert found.cpu_messages.count.tolist() == expected.tolist()
    assert found.cpu_messages.unknown.sum() == unknown


def test_losses_move_no_message(lossy: tuple[Statistics, TruthSums]) -> None:
    found, truth = lossy
    assert found.cpu_messages.count.sum() <= sum(message.received >= 0 for message in truth.truth.messages)


def test_migrations(whole: tuple[Statistics, TruthSums]) -> None:
    found, truth = whole
    expected = Counter()
    for thread, runs in cpus_of(truth).items():
        for before, after in pairwise(runs):
            if before.cpu != after.cpu and truth.begins(after.start) and not truth.is_idle(thread):
                expected[truth.row[thread], before.cpu, after.cpu] += 1
    moves = found.migrations
    columns = (moves.thread, moves.from_cpu, moves.to_cpu)
    assert Counter(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert np.bincount(moves.thread, minlength=len(found.threads)).tolist() == found.threads.migrations.tolist()


def test_losses_make_no_migration(lossy: tuple[Statistics, TruthSums]) -> None:
    found, truth = lossy
    real = Counter()
    for thread, runs in cpus_of(truth).items():
        real[truth.row.get(thread, -1)] += sum(a.cpu != b.cpu for a, b in pairwise(runs))
    for row, count in enumerate(np.bincount(found.migrations.thread, minlength=len(found.threads)).tolist()):
        assert count <= real[row]

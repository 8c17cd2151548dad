"""Why a thread runs, is ready or waits, against what really happened."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.__main__ import main
from satview.analysis.critical_path import critical_path
from satview.analysis.thread_names import thread_of
from satview.analysis.why import MOST_STEPS, WhyStep, chain_lines, why
from satview.answers.path import path_answer
from satview.base.errors import UsageError
from satview.base.time import format_moment
from satview.capture.workloads import registry
from satview.cli.ask.why import as_record
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import READY, RUNNING
from satview.linkage.blockers import REPLY, blockers
from satview.linkage.links import OPEN, Certainty
from satview.linkage.transactions import transactions
from tests.analysis.conftest import MadeOf
from tests.analysis.pairs import PAIRS, ring_of_servers
from tests.capture.made import FAST, WIDE, traced
from tests.helpers.extent import LOSS, WIDTH, points
from tests.helpers.kev import START, TraceBuilder
from tests.helpers.scene import scene

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
QUESTIONS = 60
NAMES = [name for name, _ in registry.names()]


@points(name=NAMES, loss=LOSS, wide=WIDTH, release=RELEASES)
def test_every_step_is_true(name: str, loss: bool, wide: bool, release: Release, made_of: MadeOf) -> None:
    made = made_of(name, release, wide, loss)
    trace, truth = made.trace, made.truth
    history, waits = defaultdict(list), {}
    for change in sorted(truth.states, key=lambda change: change.time):
        history[change.thread].append((change.time, change.state, change.priority))
    for wait in truth.waits:
        waits[wait.thread, wait.start] = wait
    random = np.random.default_rng(7)
    seen = Counter()
    threads = [
        row
        for row in range(1, len(trace.threads))
        if trace.threads.tid[row] > 0 and (int(trace.threads.pid[row]), int(trace.threads.tid[row])) in history
    ]
    for _ in range(QUESTIONS):
        row = int(random.choice(threads))
        at = int(random.integers(made.since + 1, trace.window.end))
        for step in why(trace, row, at):
            thread = int(trace.threads.pid[step.thread]), int(trace.threads.tid[step.thread])
            if step.at_cycles <= made.since or step.state in ("UNKNOWN", "ABSENT", "DEAD"):
                continue
            assert trace.thread_name(step.thread) in step.says
            if "is an idle thread" in step.says:
                continue
            mine = history[thread]
            position = bisect_right(mine, (step.at_cycles, "~")) - 1
            assert position >= 0
            time, state, priority = mine[position]
            assert step.state == state, (step, mine[position - 1 : position + 2])
            assert step.since_cycles == time or time <= made.since
            assert step.priority in (-1, priority)
            seen[state] += 1
            seen["held"] += state == "REPLY" and time > made.since
            if step.holder > 0:
                held_by = int(trace.threads.pid[step.holder]), int(trace.threads.tid[step.holder])
                held = waits[thread, time]
                # Who received the message may have handed it on: then it is with whom replies in the end.
                is_handed_on = "receives again: another thread has it." in step.says
                assert held_by in ((held.waker,) if is_handed_on else held.owners), step.says
                seen["holder"] += state == "REPLY" and time > made.since
            if step.value in (RUNNING, READY) and step.wait_row >= 0:
                began = int(trace.events.time_cycles[step.wait_row])
                wait = waits.get((thread, began))
                seen["caused"] += began > made.since and wait is not None and wait.cause >= 0
                if began > made.since and step.cause_row >= 0 and step.certainty is not Certainty.GUESS:
                    assert wait is not None
                    assert int(trace.events.time_cycles[step.cause_row]) == wait.cause, step.says
                    if step.waker > 0:
                        by = int(trace.threads.pid[step.waker]), int(trace.threads.tid[step.waker])
                        assert wait.waker in (by, None), (step.says, wait)
                    seen["cause"] += wait.cause >= 0
            if step.serves > 0:
                client = int(trace.threads.pid[step.serves]), int(trace.threads.tid[step.serves])
                its = history[client]
                began, waits_in, _ = its[bisect_right(its, (step.at_cycles, "~")) - 1]
                assert waits_in == "REPLY", step.says
                assert began <= made.since or thread in waits[client, began].owners, step.says
                seen["serves"] += 1
            for cpu, other, _, since_cycles in step.on_cpus:
                who = int(trace.threads.pid[other]), int(trace.threads.tid[other])
                behind = trace.clock.cycles_of(40_000)  # a thread leaves a CPU a little before the next one has it
                assert any(
                    span.thread == who and span.cpu == cpu and span.start <= step.at_cycles < span.end + behind
                    for span in truth.runs
                ), step.says
                assert since_cycles <= step.at_cycles
            for other, _, cycles in step.ran_instead:
                who = int(trace.threads.pid[other]), int(trace.threads.tid[other])
                ran = sum(
                    max(0, min(span.end, step.at_cycles) - max(span.start, step.since_cycles))
                    for span in truth.runs
                    if span.thread == who
                )
                slack = trace.clock.cycles_of(40_000 * (1 + len(truth.runs) // 100))
                assert cycles <= ran + slack
    if not loss:
        assert sum(seen[state] for state in seen if state.isupper()) >= QUESTIONS // 8
        assert seen["cause"] >= 0.9 * seen["caused"]
        assert seen["holder"] == seen["held"]
        assert seen["serves"] or name not in ("client-server", "nested-servers")


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_chain_of_an_inversion(release: Release, tmp_path: Path) -> None:
    made = traced(registry.find("inversion").setup, 200, tmp_path, release, modes=WIDE)
    trace = made.trace
    [verdict] = satview.check(trace)
    at = verdict.end_cycles - trace.clock.cycles_of(10_000_000)
    high, low = why(trace, "high", at)[:2]
    assert (high.state, high.holder) == ("MUTEX", low.thread)
    assert low.state == "READY"
    assert trace.threads.names[low.ran_instead[0][0]] == "middle"
    assert low.ran_instead[0][1] == 20
    assert (high.priority, low.priority) == (30, 10)
    assert [(cpu, trace.threads.names[row], priority) for cpu, row, priority, _ in low.on_cpus] == [(0, "middle", 20)]
    assert f"(low) (priority 10) is ready since {moment(trace, low)} and does not run: " in low.says
    assert "middle) (priority 20) has CPU 0 since" in low.says
    assert (
        low.says.index("has CPU 0 since") < low.says.index("It lost CPU 0 at ") < low.says.index("its wait in RECEIVE")
    )


def moment(trace, step):
    """Return since when a step lasts, as sentences say it."""
    return format_moment(step.since_cycles, trace.clock, step.until_cycles - step.since_cycles)


def test_ready_again_is_not_said_to_come_from_a_wait_that_was_over_before(tmp_path: Path) -> None:
    """A thread waits to 20, runs, and is preempted at 30 by one that has the CPU up to 60."""
    builder = TraceBuilder().time_event(0).thread_name(1, 2, 1, "low").thread_name(2, 3, 1, "middle")
    for at, pid, state in ((5, 2, "RUNNING"), (10, 2, "RECEIVE"), (11, 3, "RUNNING"), (15, 3, "RECEIVE"),
                           (20, 2, "RUNNING"), (30, 2, "READY"), (31, 3, "RUNNING"), (60, 3, "RECEIVE"),
                           (61, 2, "RUNNING")):  # fmt: skip
        builder.state(state, at, pid, 1)
    trace = satview.open_trace(builder.write(tmp_path / "t.kev"))
    [step] = why(trace, "low", START + 45)
    low, middle = (trace.thread_name(trace.threads.row(pid, 1)) for pid in (2, 3))
    assert step.says == (
        f"{low} is ready since 0.000 000 030 s and does not run: {middle} has CPU 0 since 0.000 000 031 s. "
        "It lost CPU 0 at 0.000 000 030 s, after 10 ns on it; its wait in RECEIVE ended at 0.000 000 020 s."
    )
    [step] = why(trace, "low", START + 30)
    assert step.at_cycles == START + 45, "the event by which it became ready is about all of that: from 30 to 61"
    [step] = why(trace, "low", START + 61)
    assert (
        f"{low} runs on CPU 0 since 0.000 000 061 s: its wait in RECEIVE ended at 0.000 000 020 s; "
        "it was ready since 0.000 000 030 s;"
    ) in step.says


def test_a_deadlock_closes_its_circle(tmp_path: Path) -> None:
    trace = traced(registry.find("deadlock").setup, 100, tmp_path, modes=WIDE).trace
    steps = why(trace, "forwards", trace.clock.cycles(50_000_000))
    assert [trace.threads.names[step.thread] for step in steps] == ["forwards", "backwards"]
    assert all(step.state == "MUTEX" and "to the end of the trace" in step.says for step in steps)
    assert steps[-1].says.endswith("closes the circle: none of them goes on by itself.")


@pytest.mark.parametrize(("first", "second"), [("forwards", "backwards"), ("backwards", "forwards")])
def test_both_sides_of_a_deadlock_name_the_circle_from_the_first_moment_on(first, second, tmp_path: Path) -> None:
    """At the very event by which *backwards* begins to wait *forwards* still runs: for 2 us of 97 ms."""
    trace = traced(registry.find("deadlock").setup, 100, tmp_path, modes=WIDE).trace
    rows = trace.states.of(thread_of(trace, first))
    names = [trace.catalogue.name(int(code)) for code in trace.events.code[rows]]
    begins = int(trace.events.time_cycles[rows[names.index("THMUTEX")]])
    steps = why(trace, first, begins)
    assert [(trace.threads.names[step.thread], step.state) for step in steps] == [(first, "MUTEX"), (second, "MUTEX")]
    assert steps[0].since_cycles == begins < steps[0].at_cycles
    assert steps[-1].says.endswith("closes the circle: none of them goes on by itself.")


def test_a_message_that_queues_leads_to_what_the_server_does_for_whom(tmp_path: Path) -> None:
    trace = traced(registry.find("client-server").setup, 200, tmp_path, modes=WIDE).trace
    server = thread_of(trace, "only-one")
    sent = transactions(trace)
    late = np.flatnonzero((sent.server == server) & (sent.queued_cycles > trace.clock.cycles_of(5_000_000)))[0]
    at = int(trace.events.time_cycles[sent.receive_row[late]]) - trace.clock.cycles_of(1_000_000)
    client, serving = why(trace, int(sent.client[late]), at)
    assert (client.state, client.may_receive, client.holder) == ("SEND", (server,), -1)
    assert (serving.thread, serving.state) == (server, "NANOSLEEP")
    before = np.flatnonzero((sent.server == server) & (sent.receive_row < sent.receive_row[late])
                            & (sent.receive_row >= 0))[-1]  # fmt: skip
    assert serving.serves == sent.client[before] != sent.client[late]
    assert serving.receive_row == sent.receive_row[before]
    whose = f"{trace.thread_name(serving.serves)} (event #{serving.receive_row + 1})"
    said = f"serves a message of {whose} and waits in NANOSLEEP"
    assert said in serving.says
    assert said in why(trace, server, at)[0].says, "requested of the server itself, too"


@pytest.mark.parametrize("receiver", [1, 2])
def test_every_thread_of_a_server_is_reported_of(receiver: int, tmp_path: Path) -> None:
    """Both threads of server 5 sleep, 5.1 while it serves 7.1; from 49 on a message of 9.1 queues for either."""
    call, send, receipt = 11, wire.code(7, 0), wire.code(7, 2)
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).call(14, 11, (1, 1)).state("RECEIVE", 12, 5, 1)
    builder.state("RUNNING", 20, 7, 1).call(call, 21, (3, 0)).event(send, 22, (0x10001, 5)).state("REPLY", 23, 7, 1)
    builder.state("RUNNING", 30, 5, 1).event(receipt, 31, (0x10001, 5)).exit(14, 32, (0x10001, 0))
    builder.state("NANOSLEEP", 40, 5, 1).state("RUNNING", 41, 5, 2).state("NANOSLEEP", 45, 5, 2)
    builder.state("RUNNING", 46, 9, 1).call(call, 47, (3, 0)).event(send, 48, (0x20001, 5)).state("SEND", 49, 9, 1)
    builder.state("RUNNING", 80, 5, receiver).event(receipt, 81, (0x20001, 5)).state("REPLY", 82, 9, 1)
    trace = builder.open(tmp_path)
    client, *servers = why(trace, "9:1", START + 60)
    assert client.state == "SEND"
    assert client.says.endswith("Any of the 2 threads of the server may receive it.")
    tids = [int(trace.threads.tid[step.thread]) for step in servers]
    assert tids == [3 - receiver, receiver], "the one that receives it is the last, as the chain goes on there"
    serving, other = sorted(servers, key=lambda step: int(trace.threads.tid[step.thread]))
    assert (serving.serves, other.serves) == (trace.threads.row(7, 1), -1)
    assert f"serves a message of {trace.thread_name(serving.serves)} (event #10) and waits in NANOSLEEP" in serving.says
    assert trace.events.time_cycles[serving.receive_row] == START + 31


@pytest.mark.parametrize("blocks", [True, False])
def test_a_message_whose_client_does_not_wait_for_it_is_not_served(blocks: bool, tmp_path: Path) -> None:
    """5.1 receives a message of 7.1 and sleeps; 7.1 waits for the reply, or runs on as the send did not block it."""
    send, receipt = wire.code(7, 0), wire.code(7, 2)
    builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 5, 1).call(14, 11, (1, 1))
    builder.state("RECEIVE", 12, 5, 1).state("RUNNING", 20, 7, 1, 1).call(11, 21, (3, 0), 1)
    builder.event(send, 22, (0x10001, 5), 1)
    if blocks:
        builder.state("REPLY", 23, 7, 1, 1)
    builder.state("RUNNING", 30, 5, 1).event(receipt, 31, (0x10001, 5)).state("NANOSLEEP", 40, 5, 1)
    trace = builder.event(wire.code(6, 1), 90).open(tmp_path)
    [step] = why(trace, "5:1", START + 60)
    assert (step.state, step.serves) == ("NANOSLEEP", trace.threads.row(7, 1) if blocks else -1)
    assert ("serves a message of" in step.says) is blocks


def test_a_chain_through_servers_and_wakers(tmp_path: Path) -> None:
    trace = traced(registry.find("nested-inversion").setup, 60, tmp_path, modes=WIDE).trace
    steps = why(trace, thread_of(trace, "high"), trace.clock.cycles(20_000_000))
    assert [step.state for step in steps[:3]] == ["REPLY", "REPLY", "READY"]
    assert [step.waits_for for step in steps[:3]] == ["the reply", "the reply", ""]
    assert steps[2].ran_instead
    assert steps[2].cause_row >= 0
    assert steps[3].at_cycles == trace.events.time_cycles[steps[2].cause_row], "who sent it the message, when it did"
    assert len(why(trace, "high", trace.clock.cycles(20_000_000), steps=2)) == 2
    assert len(steps) <= MOST_STEPS


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_timer_s_pulse_has_no_thread_behind_it(release: Release, tmp_path: Path) -> None:
    trace = traced(registry.find("periodic").setup, 100, tmp_path, release, modes=FAST).trace
    row = thread_of(trace, "fast-10ms")
    runs = [
        int(event)
        for event in trace.states.of(row)
        if trace.catalogue.name(int(trace.events.code[event])) == "THRUNNING"
    ]
    [step] = why(trace, row, int(trace.events.time_cycles[runs[3]]) + 1)
    assert step.state == "RUNNING"
    assert step.waker == -1
    assert "ended at" in step.says
    assert "SND_PULSE_EXE" in step.says
    assert "(idle)" not in step.says.split(";", 1)[0], "the idle thread ran; it did nothing"


def test_which_thread_a_text_means(tmp_path: Path) -> None:
    trace = traced(registry.find("deadlock").setup, 20, tmp_path, modes=WIDE).trace
    row = thread_of(trace, "forwards")
    assert thread_of(trace, f"{trace.threads.pid[row]}:{trace.threads.tid[row]}") == row
    assert thread_of(trace, trace.thread_name(row)) == row
    for text, message in (
        ("99:1", "no thread '99:1'"),
        ("nobody", "no thread 'nobody'; `satview stats` lists them"),
        (trace.process_name(int(trace.threads.process[row])), "is the name of 3 threads; write PID"),
    ):
        with pytest.raises(UsageError, match=message):
            thread_of(trace, text)
    with pytest.raises(UsageError, match="outside the trace"):
        why(trace, row, trace.window.end)
    with pytest.raises(UsageError, match="row 0"):
        why(trace, 0, trace.window.start)


def test_partitions_are_named(tmp_path: Path) -> None:
    """A thread that is starved in its partition, and those that ran instead, each with its partition."""
    path = tmp_path / "t.kev"
    main(["tracelogger", "--workload", "partition-starvation", "-w", "-f", str(path)])
    trace = satview.open_trace(path)
    [step, *_] = trace.why("uploader", trace.clock.cycles(300_000_000))
    assert "(uploader) (priority 15, partition Telemetry) is ready since" in step.says
    assert "render 1 (render) (priority 10, partition System)" in step.says


@pytest.mark.thorough
def test_who_receives_again_holds_no_message(made_of: MadeOf) -> None:
    """The shell waits for a child: one thread of procnto receives that, and another one replies when the child ends."""
    trace = made_of("fork-storm", Release.QNX_7, True, False).trace
    waits = blockers(trace).waits
    handed = 0
    for wait in np.flatnonzero((waits.value == REPLY) & (waits.end_row != OPEN)).tolist():
        steps = why(trace, int(waits.thread[wait]), int(trace.events.time_cycles[waits.row[wait]]))
        if len(steps) < 3 or "receives again: another thread has it." not in steps[0].says:
            continue
        reply = int(waits.end_row[wait])
        replies = [row for row in range(reply) if trace.spec(row).name == "REPLY_MESSAGE"]
        assert steps[1].thread == trace.events.thread[replies[-1]], "the one that replies"
        assert steps[1].state == "RECEIVE"
        assert steps[1].serves < 0
        assert trace.thread_name(steps[2].thread).startswith("cmd"), "its pulse is what the server waits for"
        handed += 1
    assert handed >= 2


def test_a_chain_that_goes_round_is_folded(tmp_path: Path) -> None:
    """A client and a server run in turn: of five rounds back in time the first and the last show."""
    trace = satview.open_trace(scene(tmp_path))
    client, server = (thread_of(trace, name) for name in ("client 1", "server 1"))
    moments = [18_000, 17_000, 16_000, 15_000, 9_000, 8_000, 7_000, 6_000, 5_000, 4_000, 1_000]
    begin = trace.window.start
    steps = [WhyStep(server if number % 2 else client, begin + at, RUNNING, "RUNNING", 0, 0, says=f"at {at}.")
             for number, at in enumerate(moments)]  # fmt: skip
    lines = chain_lines(trace, steps)
    assert [(line.step, line.says) for line in lines] == [
        (0, "at 18000."), (1, "at 17000."),
        (2, "Before that the same 2 steps 3 more times, back to 0.000 005 000 s; the longest round took "
            "7.000 \N{MICRO SIGN}s up to 0.000 016 000 s."),
        (8, "at 5000."), (9, "at 4000."), (10, "at 1000."),
    ]  # fmt: skip
    assert [line.is_folded for line in lines] == [False, False, True, False, False, False]
    assert len(chain_lines(trace, steps[:6])) == 6, "three rounds are not folded"


def test_a_ring_of_servers_with_workers_closes(tmp_path: Path) -> None:
    """Each server's worker waits for the next server, whose receiver receives again: its own worker has the message."""
    pair = next(pair for pair in PAIRS if pair.setup is ring_of_servers)
    trace = traced(partial(ring_of_servers, is_faulty=True), pair.ms, tmp_path, Release.QNX_7, 1, 1, WIDE).trace
    worker = next(row for row in range(len(trace.threads)) if trace.threads.names[row] == "worker")
    steps = why(trace, worker, trace.window.end - 1)
    assert [trace.threads.names[step.thread] for step in steps] == ["worker"] * 3
    assert [step.state for step in steps] == ["REPLY"] * 3
    assert all("receives again: another thread has it. That may be " in step.says for step in steps)
    assert steps[0].thread in steps[2].may_receive
    assert steps[-1].says.endswith("closes the circle: none of them goes on by itself.")


def test_a_wait_into_lost_events_lasts_at_least_to_them(tmp_path: Path) -> None:
    """A thread waits at 20; buffers are lost from 100 to 500; it runs at 600, waits at 700, and runs at 800 again."""
    build = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0)
    build.state("RUNNING", 10, 5, 1).state("NANOSLEEP", 20, 5, 1).event(wire.code(6, 1), 100)
    build.event(wire.CONTROL_BUFFER, 500, (4, 0)).time_event(500).state("RUNNING", 600, 5, 1)
    trace = build.state("NANOSLEEP", 700, 5, 1).state("RUNNING", 800, 5, 1).event(wire.code(6, 1), 900).open(tmp_path)
    thread, start = int(np.flatnonzero(trace.threads.pid == 5)[0]), trace.window.start
    before, behind, later = (why(trace, thread, start + moment)[0] for moment in (50, 650, 750))
    assert (before.is_cut, trace.clock.ns(before.until_cycles)) == (True, 101)
    assert before.says.endswith(
        "waits in NANOSLEEP from 0.000 000 020 s at least to 0.000 000 101 s, where events are lost: "
        "what it waits for and what ends it is not known."
    )
    assert "what it did before is not known, as events are lost" in behind.says
    assert not later.is_cut
    assert as_record(trace, before)["known"] == {"until_ns": "at least"}
    does = [row["does"] for row in path_answer(trace, critical_path(trace, thread, trace.window)).pieces.records()]
    assert "waits in NANOSLEEP, until events are lost: what ends it is not known" in does
    assert "known" not in as_record(trace, later)

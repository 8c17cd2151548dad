"""Wake-ups, mutexes, pulses and transactions against a walk over the events, on scenes of chance."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import fields

import pytest

from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.events.states import STATE_BY_VALUE
from satview.linkage.blockers import blockers
from satview.linkage.chain import causes, effects, link_table, way
from satview.linkage.latencies import latencies
from satview.linkage.links import NO_EVENT, LinkKind
from satview.linkage.transactions import client_of, creation_of, server_of, transactions
from satview.linkage.waits import mutexes, state_ends
from tests.helpers.extent import usually
from tests.helpers.kev import TraceBuilder
from tests.linkage.plain import (
    DEATH,
    ERROR,
    INTERRUPTS,
    PULSES,
    RECEIPT,
    RECEIVED_PULSE,
    REPLY,
    SEND,
    SIGNAL,
    TIMER,
    Plain,
)
from tests.linkage.plain_ways import Ways

THREADS = [(5, 1), (5, 2), (5, 3), (6, 1), (6, 2), (7, 1)]
COID, RCVIDS = 0x40000001, (0x10001, 0x80010001)
HANDLER, HANDLER_EXIT = wire.code(3, 3), wire.code(3, 4)
FAILED = (0xFFFFFFFF, 16)  # -1, EBUSY
# Calls of a scene by theme, each with the state that a thread may block in within it.
THEMES = {
    "mutexes": {"SYNC_MUTEX_LOCK": "MUTEX", "SYNC_MUTEX_UNLOCK": None, "SYNC_CONDVAR_WAIT": "CONDVAR",
                "SYNC_CONDVAR_SIGNAL": None, "SYNC_RWLOCK": "RWLOCK_READ"},
    "messages": {"MSG_SENDV": "REPLY", "MSG_RECEIVEV": "RECEIVE", "MSG_REPLYV": None, "CONNECT_DETACH": None},
    "servers": {"MSG_SENDV": "REPLY", "CONNECT_ATTACH": None, "MSG_RECEIVEV": "RECEIVE", "CHANNEL_CREATE": None},
    "interrupts": {"INTERRUPT_WAIT": "INTR", "MSG_RECEIVEPULSEV": "RECEIVE", "CLOCK_TIME": None},
    "others": {"THREAD_JOIN": "JOIN", "SYNC_SEM_WAIT": "SEM", "SYNC_SEM_POST": None, "INTERRUPT_WAIT": "INTR",
               "MSG_DELIVER_EVENT": None, "SYNC_BARRIER_WAIT": "BARRIER", "THREAD_DETACH": None, "SIGNAL_KILL": None,
               "SIGNAL_WAITINFO": "SIGWAITINFO", "THREAD_CANCEL": None, "TIMER_TIMEOUT": "NANOSLEEP"},
}  # fmt: skip
ENDS = {"MUTEX": "SYNC_MUTEX_UNLOCK", "CONDVAR": "SYNC_CONDVAR_SIGNAL", "SEM": "SYNC_SEM_POST",
        "RWLOCK_READ": "SYNC_RWLOCK", "RWLOCK_WRITE": "SYNC_RWLOCK", "BARRIER": "SYNC_BARRIER_WAIT"}  # fmt: skip
EVENTS = {
    "mutexes": (SIGNAL, TIMER), "messages": (SEND, SEND, RECEIPT, RECEIPT, REPLY, REPLY, ERROR, *PULSES[:2], DEATH,
                                             RECEIVED_PULSE, RECEIVED_PULSE, wire.THREAD_DESTROY),
    "servers": (SEND, RECEIPT, REPLY, REPLY, wire.code(6, 1)),
    "interrupts": (*INTERRUPTS[:2], HANDLER, HANDLER_EXIT, INTERRUPTS[0], HANDLER, HANDLER_EXIT, wire.code(3, 2),
                   *PULSES[1:3], *PULSES[1:3], RECEIVED_PULSE, RECEIVED_PULSE),
    "others": (SIGNAL, TIMER, TIMER, *INTERRUPTS, *INTERRUPTS, PULSES[1], wire.THREAD_DESTROY, wire.code(6, 1)),
}  # fmt: skip


class Scene:
    """Threads on two CPUs that enter calls, block, wake each other and end as chance has it."""

    def __init__(self, seed, theme):
        self.rng = random.Random(f"{theme} {seed}")
        rng = self.rng
        release = rng.choice(("7.1.0", "8.0.0"))
        self.builder = TraceBuilder(release, cpus=2)
        self.is_lossy = release == "7.1.0" and rng.random() < 0.3
        if self.is_lossy or rng.random() < 0.5:  # else any event may be the first one
            self.builder.event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0)
        self.numbers = call_numbers(Release.QNX_7 if release == "7.1.0" else Release.QNX_8)
        self.now, self.sequence = 0, 1
        self.running, self.calls, self.blocked = {0: None, 1: None}, {}, {}
        self.theme = theme
        themes = [theme, theme, theme, rng.choice(list(THEMES))]
        dull = rng.random() < 0.5  # fewer kinds of calls meet each other more often
        for _ in range(rng.randrange(20, 120)):
            self.now += rng.choice((1, 1, 2, 5))
            self.step(rng.choice(themes), rng.randrange(2) if rng.random() < 0.4 else 0, dull)

    def step(self, theme, cpu, is_dull):
        rng, thread = self.rng, self.running[cpu]
        steps = {"switch": 4, "call": 5, "exit": 3, "event": 4, "ready": 2, "wake": 3, "buffer": 0.3,
                 "send": 2 * (theme in ("messages", "servers")), "contend": 0.5 * (theme == "mutexes"),
                 "interrupt": 3 * (theme == "interrupts")}  # fmt: skip
        what = rng.choices([*steps], [*steps.values()])[0]
        if what == "switch" or (what == "call" and thread is None and rng.random() < 0.8):
            free = [each for each in THREADS if each not in self.running.values()]
            if thread is not None:
                self.block(thread, cpu)
            self.running[cpu] = rng.choice(free)
            self.blocked.pop(self.running[cpu], None)
            self.builder.state("RUNNING", self.now, *self.running[cpu], cpu)
        elif what == "call":
            names = [name for name in THEMES[theme] if name in self.numbers]
            name = rng.choice(names[:3] if is_dull else names)
            self.builder.call(self.numbers[name], self.now, self.arguments(name), cpu)
            self.calls[thread or cpu] = name
        elif what == "exit" and (thread or cpu) in self.calls:
            name = self.calls.pop(thread or cpu)
            form = self.builder.exit if rng.random() < 0.9 else self.interrupted
            form(self.numbers[name], self.now, self.results(name), cpu)
        elif what == "event":
            code = rng.choice(EVENTS[theme])
            self.builder.event(code, self.now, self.words(code), cpu)
        elif what == "ready" and self.blocked:
            woken = rng.choice(sorted(self.blocked))
            del self.blocked[woken]
            self.builder.state("READY", self.now, *woken, cpu)
        elif what == "wake" and self.blocked and thread is not None:
            self.wake(rng.choice(sorted(self.blocked)), cpu)
        elif what == "send" and thread is not None:
            self.builder.call(self.numbers["MSG_SENDV"], self.now, (COID, rng.choice((0, 0x105))), cpu)
            self.calls[thread] = "MSG_SENDV"
            self.builder.event(SEND, self.now + 1, self.words(SEND), cpu)
            self.now += 2
            self.block(thread, cpu)
            self.running[cpu] = None
        elif what == "interrupt":
            self.interrupt(cpu)
        elif what == "contend":
            self.contend(cpu, is_dull)
        elif what == "buffer" and self.is_lossy:
            self.sequence += rng.choice((1, 3))
            self.builder.event(wire.CONTROL_BUFFER, self.now, (self.sequence, 0)).time_event(self.now)

    def wake(self, woken, cpu):
        """Log what usually ends the wait of a thread, its end, and what follows; now and then a part is missing."""
        rng, state = self.rng, self.blocked[woken]
        name = ENDS.get(state) if ENDS.get(state) in self.numbers else None
        if name:
            words = (0x3000 if state == "CONDVAR" else 0x1000, 0)
            self.builder.call(self.numbers[name], self.now, words, cpu)
            self.calls[self.running[cpu]] = name
        elif state in ("RECEIVE", "REPLY", "SEND", "INTR", "JOIN"):
            code = {"RECEIVE": rng.choice((SEND, PULSES[1])), "INTR": INTERRUPTS[0], "JOIN": wire.THREAD_DESTROY}
            number = (code.get(state, REPLY), woken[0])
            words = {SEND: (0x10001, woken[0]), PULSES[1]: (9, woken[0]), REPLY: (woken[1], woken[0])}
            for _ in range(rng.choice((1, 1, 2)) if state == "INTR" else 1):
                self.builder.event(number[0], self.now, words.get(number[0]) or self.words(number[0]), cpu)
                self.now += 1
        self.now += 1
        if rng.random() < 0.15:
            return
        if rng.random() < 0.6:
            self.builder.state("READY", self.now, *woken, cpu)
            self.now += 1
        del self.blocked[woken]
        self.block(self.running[cpu], cpu)
        self.running[cpu] = woken
        self.builder.state("RUNNING", self.now, *woken, cpu)
        if self.calls.get(woken) and rng.random() < 0.5:
            self.now += 1
            self.builder.exit(self.numbers[self.calls.pop(woken)], self.now, (0, 0), cpu)
        if state == "RECEIVE" and rng.random() < 0.9:
            self.now += 1
            code = rng.choice((RECEIPT, RECEIVED_PULSE))
            self.builder.event(code, self.now, (0x10001 if code == RECEIPT else 9, woken[0]), cpu)

    def interrupt(self, cpu):
        """Log an interrupt with one or two handlers, and what comes of it: a pulse, or the end of InterruptWait()."""
        rng, number = self.rng, self.rng.choice((7, 7, 8))
        parts = [(INTERRUPTS[0], (number, 0))]
        for _ in range(rng.choice((1, 1, 2))):
            parts += [(HANDLER, (rng.choice((5, 6)), number, 0x1000, 0)), (HANDLER_EXIT, (number, 4, 0, 1))]
        parts += [(wire.code(3, 2), (number, 0)), (PULSES[1], (9, rng.choice((5, 6))))]
        for code, words in parts:
            if rng.random() < 0.9:
                self.builder.event(code, self.now, words, cpu)
                self.now += 1
        waiting = [thread for thread, state in self.blocked.items() if state == "INTR"]
        if waiting and rng.random() < 0.7:
            self.builder.state("READY", self.now, *waiting[0], cpu)
            del self.blocked[waiting[0]]

    def contend(self, cpu, is_dull):
        """Let two threads wait for a mutex; the first one gets it and gives it up while the other waits."""
        first, other = self.rng.sample([each for each in THREADS[:3] if each != self.running[1 - cpu]], 2)
        lock, unlock = self.numbers["SYNC_MUTEX_LOCK"], self.numbers["SYNC_MUTEX_UNLOCK"]
        for thread in (first, other):
            self.builder.state("RUNNING", self.now, *thread, cpu).call(lock, self.now + 1, (0x1000, 0), cpu)
            self.builder.state("MUTEX", self.now + 2, *thread, cpu)
            self.now += 3
        self.builder.state("RUNNING", self.now, *first, cpu).exit(lock, self.now + 1, (0, 0), cpu)
        self.running[cpu], self.now = first, self.now + 2
        self.blocked[other], self.calls[other] = "MUTEX", "SYNC_MUTEX_LOCK"
        self.blocked.pop(first, None)
        for _ in range(self.rng.randrange(3)):
            self.now += 1
            self.step("mutexes", 1 - cpu, is_dull)
        self.builder.call(unlock, self.now + 1, (0x1000, 0), cpu)
        self.now, self.calls[first] = self.now + 2, "SYNC_MUTEX_UNLOCK"

    def interrupted(self, number, time, words, cpu):
        self.builder.call(number + 256, time, words, cpu)

    def block(self, thread, cpu):
        states = {name: state for calls in THEMES.values() for name, state in calls.items()}
        state = states.get(self.calls.get(thread)) or self.rng.choice(("READY", "SEND", "MUTEX", "NANOSLEEP"))
        if state == "REPLY" and self.rng.random() < 0.4:
            state = "SEND"
        if state == "RWLOCK_READ" and self.rng.random() < 0.5:
            state = "RWLOCK_WRITE"
        self.builder.state(state, self.now, *thread, cpu)
        self.blocked[thread] = state
        if state in ("CONDVAR", "SEND") and self.rng.random() < 0.3:  # one wait goes on as another
            self.now += 1
            self.builder.state({"CONDVAR": "MUTEX", "SEND": "REPLY"}[state], self.now, *thread, cpu)

    def arguments(self, name):
        rng = self.rng
        if name == "SYNC_MUTEX_LOCK":
            tid, pid = rng.choice((0, 1, 2, 3)), rng.choice((5, 6, 7))
            owner = rng.choice((0, tid << 16 | pid, pid << 16 | tid, 1 << 31 | tid << 16 | pid))
            return rng.choice((0x1000, 0x1000, 0x2000, 0)), owner
        if name == "SYNC_CONDVAR_WAIT":
            return 0x3000, rng.choice((0x1000, 0x1000, 0x2000, 0))
        return rng.choice(
            {"THREAD_JOIN": (1, 2), "MSG_RECEIVEV": (1, 2), "MSG_SENDV": (COID, 4)}.get(
                name, (0x1000, 0x1000, 0x1000, 0x2000)
            )
        ), 0

    def results(self, name):
        if self.rng.random() < 0.2:
            return FAILED
        numbers = {"CONNECT_ATTACH": (COID, 4), "CHANNEL_CREATE": (1, 1, 2)}
        return self.rng.choice(numbers.get(name, (0,))), 0

    def words(self, code):
        rng = self.rng
        pid, tid = rng.choice(THREADS)
        if code == TIMER:
            return pid, tid, rng.choice((3, 0xFFFFFFFF)), 0x111
        if code == wire.THREAD_DESTROY:
            return pid, tid
        if code in (REPLY, ERROR):
            return tid, pid
        if code in (SEND, RECEIPT):
            return rng.choice(RCVIDS), rng.choice((5, 5, 6, 0xFFFFFFFF))
        if code in (RECEIVED_PULSE, *PULSES):
            return rng.choice((9, 9, 10)), rng.choice((5, 5, 6))
        if code == HANDLER:
            return pid, rng.choice((7, 7, 8)), 0x1000, 0
        if code == HANDLER_EXIT:
            return 7, rng.choice((0, 4)), 0, rng.choice((0, 0, 1))
        return rng.choice((7, 7, 8)), 0


def links_of(trace, kind):
    return {link.to_row: (link.from_row, int(link.certainty)) for link in link_table(trace, kind)}


def check(trace, seen, *, with_ways):
    """Compare all tables of a trace, and ways through it if requested; count what was there to compare."""
    plain = Plain(trace)
    table = link_table(trace, LinkKind.PULSE)
    pulses = {(link.from_row, link.to_row): int(link.certainty) for link in table}
    assert pulses == plain.pulses()
    assert links_of(trace, LinkKind.DELIVERY) == plain.deliveries()
    woken = links_of(trace, LinkKind.WAKE_UP)
    assert woken == plain.wake_ups(pulses)
    holds = {(link.from_row, link.to_row): int(link.certainty) for link in link_table(trace, LinkKind.HOLD)}
    assert holds == plain.holds()
    gets, gives, of_wait = plain.mutex_calls()
    known, number_of = mutexes(trace), {None: -1}
    for calls, expected in ((known.gets, gets), (known.gives, gives)):
        assert list(zip(calls.row.tolist(), calls.thread.tolist(), strict=True)) == [call[:2] for call in expected]
    numbers = [*known.gets.mutex.tolist(), *known.gives.mutex.tolist(), *known.of_wait.tolist()]
    names = [*(call[2] for call in gets), *(call[2] for call in gives), *of_wait]
    assert [number_of.setdefault(name, number) for name, number in zip(names, numbers, strict=True)] == numbers
    assert len(set(number_of.values())) == len(number_of)
    found = blockers(trace)
    reported = list(zip(*(column.tolist() for column in (found.thread, found.pid, found.certainty)), strict=True))
    for row, call in zip(found.waits.call_row.tolist(), found.waits.call.tolist(), strict=True):
        assert call == (-1 if row == NO_EVENT else plain.code[row] & 0x7F)
    expected = plain.blockers()
    assert reported == expected
    sent = transactions(trace)
    for name in ("client", "server", "server_pid", "send_row", "receive_row", "reply_row", "blocked_row", "over_row",
                 "done_row", "parent", "queued_cycles", "service_cycles", "reply_cycles",
                 "round_trip_cycles"):  # fmt: skip
        assert getattr(sent, name).tolist() == [row[name] for row in plain.transactions()], name
    seen.update(f"pulse {how}" for how in pulses.values())
    seen.update(f"hold {how}" for how in holds.values())
    state_of = {wait["end_row"]: STATE_BY_VALUE[wait["value"]].name for wait in plain.waits}
    seen.update(f"woken from {state_of[row]} {how}" for row, (_, how) in woken.items())
    seen.update(f"{STATE_BY_VALUE[int(value)].name} for {how}"
                for value, (_, _, how) in zip(found.waits.value, reported, strict=True))  # fmt: skip
    if with_ways:
        check_ways(trace, Ways(plain), seen)
    seen["part of another"] += int((sent.parent >= 0).sum())


def check_ways(trace, ways, seen):
    """Compare latencies, the steps of every event, and what numbers mean at it."""
    found, expected = latencies(trace), ways.latencies()
    for name in (field.name for field in fields(found)):
        assert getattr(found, name).tolist() == [row[name] for row in expected], name
    seen["handled"] += int((found.handler_row >= 0).sum())
    ends = state_ends(trace).tolist()
    for row in range(len(trace.events)):
        mine = [(step.relation, step.row, int(step.certainty)) for step in causes(trace, row)]
        assert mine == ways.causes(row)
        mine = [(step.relation, step.row, int(step.certainty)) for step in effects(trace, row)]
        assert mine == ways.effects(row, ends)
    for row in range(0, len(trace.events), 9):
        assert [(hop.from_row, hop.to_row) for hop in way(trace, row, 3)] == ways.way(row, 3, ends)
    for process in range(1, len(trace.processes)):
        for row in range(0, len(trace.events), 7):
            for coid in (COID, 4):
                server = server_of(trace, process, coid, row)
                server = None if server is None else (server.pid, server.chid, server.row, int(server.certainty))
                assert server == ways.server_of(process, coid, row)
                seen["server"] += server is not None
            for rcvid in RCVIDS:
                sent = client_of(trace, process, rcvid, row)
                assert sent == ways.client_of(process, rcvid, row)
                seen["client"] += sent >= 0
            for chid in (1, 2):
                created = creation_of(trace, process, chid, row)
                assert created == ways.creation_of(process, chid, row)
                seen["channel"] += created >= 0


EXPECTED = {
    "mutexes": {"hold 2", "hold 3", "MUTEX for 2", "MUTEX for 3", "woken from MUTEX 2", "woken from MUTEX 3",
                "woken from CONDVAR 3", "RWLOCK_READ for 2"},
    "messages": {"pulse 1", "pulse 3", "REPLY for 3", "SEND for 3", "woken from REPLY 3", "woken from RECEIVE 3",
                 "part of another"},
    "servers": {"server", "client", "channel"},
    "interrupts": {"handled", "woken from INTR 2", "woken from INTR 3"},
    "others": {"JOIN for 3", "woken from INTR 2", "woken from INTR 3", "woken from SEM 2", "woken from SEM 3",
               "woken from JOIN 3", "woken from NANOSLEEP 2"},
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("theme", THEMES)
def test_scenes_of_chance(theme, tmp_path):
    seen = Counter()
    for seed in range(usually(40, thorough=200, complete=600)):
        check(Scene(seed, theme).builder.open(tmp_path), seen, with_ways=seed % usually(3, complete=1, thorough=1) == 0)
    assert {what for what in EXPECTED[theme] if not seen[what]} == set(), seen

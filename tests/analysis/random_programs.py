"""Programs drawn at random from locks, messages, semaphores and sleeps, judged against what the kernel knows of them.

A program is some servers and some clients whose threads repeat a fixed script. Some of these never go on: which ones is
what the simulated kernel says that runs on for four times as long as it was traced.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from satview.analysis.verdicts.evidence import Severity, Verdict
from satview.analysis.verdicts.find import find_verdicts
from satview.answers.verdicts import undecided_table
from satview.capture.kernel import Kernel, mode
from satview.capture.sim.calls import (
    ChannelCreate,
    Compute,
    MsgReceive,
    MsgReply,
    MsgSend,
    MutexLock,
    MutexUnlock,
    SemPost,
    SemWait,
    Sleep,
    ThreadCreate,
)
from satview.capture.sim.threads import Mutex, Policy, Program, Semaphore
from satview.capture.sim.truth import ThreadId
from satview.capture.workloads.parts import MS, US, Address
from satview.events.spec import Release
from tests.capture.made import FAST, WIDE, as_trace, kernel, run

TRACED_MS = 200
LONGER = 4  # times the kernel runs on to see who goes on
STUCK_MS = 110  # a wait that is shorter when the trace ends is below the thresholds
FOR_EVER = ("deadlock", "waits-for-ever")
_NEVER_THEIR_TURN = ("server-saturation", "lock-contention")  # others are served, or get the lock, again and again
BLOCKED = ("MUTEX", "SEND", "REPLY", "SEM")
_MOST_SERVERS, _MOST_CLIENTS, _MOST_THREADS, _LOCKS = 3, 3, 3, 3
_FORGETS = 0.1  # share of steps in careless programs that forget to give something back
Script = list[tuple[str, Any]]


def setup(made: Kernel, seed: int) -> None:
    """Set a program up."""
    rng = random.Random(seed)
    servers = [Address() for _ in range(rng.randint(1, _MOST_SERVERS))]
    is_careful = rng.random() < 0.5  # takes locks in one order, and sends to later servers only
    pids: list[int] = []

    def script(locks: list[Mutex], turns: Semaphore, own: int, depth: int = 0) -> Script:
        out: Script = []
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(("compute", "sleep", "lock", "lock", "send", "send", "turn"))
            if kind == "compute":
                out.append((kind, rng.randint(20, 900) * US))
            elif kind == "sleep":
                out.append((kind, rng.randint(1, 6) * MS))
            elif kind == "lock" and depth < 2:
                number = rng.randrange(_LOCKS) if not is_careful else depth
                out.append((kind, (locks[number], script(locks, turns, own, depth + 1))))
            elif kind == "send":
                later = range(own + 1, len(servers)) if is_careful else range(len(servers))
                if targets := [number for number in later if number != own]:
                    out.append((kind, servers[rng.choice(targets)]))
            elif kind == "turn" and depth == 0:
                out.append((kind, (turns, rng.random() < _FORGETS and not is_careful)))
        return out

    def play(steps: Script, coids: dict[int, int], held: tuple[Mutex, ...] = ()) -> Program:
        for kind, what in steps:
            if kind == "compute":
                yield Compute(what)
            elif kind == "sleep":
                yield Sleep(what)
            elif kind == "lock" and what[0] not in held:
                yield MutexLock(what[0])
                yield from play(what[1], coids, (*held, what[0]))
                yield MutexUnlock(what[0])
            elif kind == "send":
                if id(what) not in coids:
                    coids[id(what)] = yield from what.connect()
                yield MsgSend(coids[id(what)], b"please")
            elif kind == "turn":
                yield SemWait(what[0])
                yield Compute(50 * US)
                if not what[1]:
                    yield SemPost(what[0])

    def repeated(steps: Script, rounds: int, last: Mutex) -> Program:
        coids: dict[int, int] = {}
        while rounds:
            yield from play(steps, coids)
            yield Sleep(2 * MS)
            rounds -= 1
        yield MutexLock(last)  # and ends with it

    def serve(number: int, steps: Script, forgets: int) -> Program:
        coids: dict[int, int] = {}
        while True:
            received = yield MsgReceive(servers[number].chid)
            yield from play(steps, coids)
            forgets -= 1
            if forgets:
                yield MsgReply(received.rcvid)

    def server(number: int, scripts: list[Script]) -> Program:
        servers[number].chid = yield ChannelCreate()
        servers[number].pid = pids[number]
        for steps in scripts[1:]:
            yield ThreadCreate(serve, (number, steps, fault()), 10, Policy.RR, "serve")
        yield from serve(number, scripts[0], fault())

    def fault() -> int:
        return -1 if is_careful or rng.random() > _FORGETS else rng.randint(1, 8)

    def client(scripts: list[Script], locks: list[Mutex]) -> Program:
        for steps in scripts:
            yield ThreadCreate(repeated, (steps, fault(), locks[0]), rng.randint(8, 20), Policy.RR, "client")

    def scripts(own: int, locks: list[Mutex]) -> list[Script]:
        turns = Semaphore(f"turns {own}", 1)
        return [script(locks, turns, own) for _ in range(rng.randint(1, _MOST_THREADS))]

    def locks_of(own: int) -> list[Mutex]:
        return [Mutex(f"lock {own} {number}") for number in range(_LOCKS)]

    pids += [
        made.spawn(f"usr/sbin/server{number}", server, number, scripts(number, locks_of(number)), priority=12).pid
        for number in range(len(servers))
    ]
    for number in range(rng.randint(1, _MOST_CLIENTS)):
        locks = locks_of(-1 - number)
        made.spawn("usr/bin/client", client, scripts(-1, locks), locks, priority=15)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a program does, and what is said of it.

    Attributes:
        stuck: Threads that wait when the trace ends, have for long, and never go on.
        going: Threads that go on.
        verdicts: All of them, with the threads of each.
        is_undecided: The trace does not show all holders, and that is said.
    """

    stuck: frozenset[ThreadId]
    going: frozenset[ThreadId]
    verdicts: tuple[tuple[Verdict, tuple[ThreadId, ...]], ...]
    is_undecided: bool

    @property
    def is_missed(self) -> bool:
        """Return whether threads never go on and nothing says so."""
        said = {thread for verdict, threads in self.verdicts if verdict.kind in (*FOR_EVER, *_NEVER_THEIR_TURN)
                for thread in threads}  # fmt: skip
        return bool(self.stuck) and not self.stuck & said and not self.is_undecided

    @property
    def false(self) -> list[Verdict]:
        """Return the verdicts above `info` that say of a thread that goes on that it does not."""
        return [verdict for verdict, threads in self.verdicts
                if verdict.kind in FOR_EVER and verdict.severity is not Severity.INFO
                and self.going.intersection(threads[: None if verdict.kind == "deadlock" else 1])]  # fmt: skip


def judged(seed: int, release: Release, cpus: int, wide: bool, folder: Path) -> Judged:
    """Trace a program, run it on, and compare what is said of it with who goes on."""
    made, sink = kernel(release, cpus, seed, modes=WIDE if wide else FAST)
    made.trace_event(mode("START"))
    setup(made, seed)
    run(made, TRACED_MS)
    made.trace_event(mode("FLUSHBUFFER"))
    made.trace_event(mode("STOP"))
    trace, end = as_trace(made, sink.slots(), folder), made.machine.now
    run(made, TRACED_MS * LONGER)
    least = made.machine.target.cycles(STUCK_MS * MS)
    truth = made.machine.truth
    stuck = {wait.thread for wait in truth.waits
             if wait.end == -1 and wait.start <= end - least and wait.state in BLOCKED}  # fmt: skip
    going = {span.thread for span in truth.runs if span.end > end}
    made.machine.close()
    threads = trace.threads
    ids = list(zip(threads.pid.tolist(), threads.tid.tolist(), strict=True))
    found = find_verdicts(trace)
    named = tuple((verdict, tuple(ids[row] for row in verdict.threads)) for verdict in found)
    return Judged(frozenset(stuck), frozenset(going), named, bool({*FOR_EVER} & {*undecided_table(trace)["kind"]}))

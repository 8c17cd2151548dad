"""One small trace that GUI and session tests share, and what a reader has to know of it.

At 1 GHz, so a cycle is a nanosecond; times from the start of the trace, in nanoseconds:

    cpu0   client runs 1,000 to 4,000, then the server to 8,000, then the client again
    client READY at 500, RUNNING 1,000, REPLY 4,000, RUNNING 8,000, NANOSLEEP 12,000
    server RECEIVE at 600, RUNNING 4,000, RECEIVE 8,000
    calls  MSG_SENDV enter 2,000 by the client, exit 9,000
    user   EVENT 7 at 5,000 (by the server, which runs then)
    lost   four buffers between 12,000 and 16,000
"""

from __future__ import annotations

from pathlib import Path

from satview.events import wire
from satview.store.trace import Trace
from tests.helpers.kev import TraceBuilder

CLIENT, SERVER = 2, 3
MSG_SENDV = 11
END_NS = 20_000


def scene(folder: Path, name: str = "scene.kev") -> Path:
    """Write the trace and return its path."""
    builder = TraceBuilder(cpus=2).time_event(0)
    builder.event(wire.CONTROL_BUFFER, 0, (1, 0))
    builder.process_name(10, CLIENT, "usr/bin/client").process_name(20, SERVER, "usr/bin/server")
    builder.state("READY", 500, CLIENT, 1).state("RECEIVE", 600, SERVER, 1)
    builder.state("RUNNING", 1_000, CLIENT, 1)
    builder.call(MSG_SENDV, 2_000, (0x40000001, 0x51524F54))
    builder.state("REPLY", 4_000, CLIENT, 1).state("RUNNING", 4_001, SERVER, 1)
    builder.event(wire.code(wire.WireClass.USER, 7), 5_000, (1, 2))
    builder.state("RECEIVE", 8_000, SERVER, 1).state("RUNNING", 8_001, CLIENT, 1)
    builder.exit(MSG_SENDV, 9_000, (0, 0))
    builder.state("NANOSLEEP", 12_000, CLIENT, 1)
    builder.event(wire.CONTROL_BUFFER, 16_000, (6, 0))
    builder.event(wire.code(wire.WireClass.USER, 8), END_NS, (3, 4))
    return builder.write(folder / name)


def rounds_of_a_loop(rounds: int = 40, slow: tuple[int, ...] = (10, 20, 30), *, is_cut: bool = False) -> TraceBuilder:
    """Return a thread that wakes every 10,000 cycles and computes 1,000, after another one has run for 100.

    In slow rounds the other one keeps it from the CPU for 4,000 cycles more. The last round may be cut after 700.
    """
    build = TraceBuilder().time_event(0).process_name(1, 5, "bin/control").process_name(2, 6, "bin/hog")
    build.state("RUNNING", 10, 5, 1).state("NANOSLEEP", 20, 5, 1).state("RUNNING", 20, 6, 1)
    for number in range(rounds):
        woken = 10_000 * (number + 1)
        runs = woken + (4_100 if number in slow else 100)
        build.state("READY", woken, 5, 1).state("READY", runs, 6, 1).state("RUNNING", runs, 5, 1)
        if not (is_cut and number == rounds - 1):
            build.state("NANOSLEEP", runs + 1_000, 5, 1).state("RUNNING", runs + 1_000, 6, 1)
    last = 10_000 * rounds + (800 if is_cut else 6_000)
    return build.event(wire.code(6, 1), last)


def chained(folder: Path, starts_by: int, starts: tuple[int, ...]) -> Trace:
    """Return a camera that works from 1,000 k to 1,000 k + 400, and a control that needs 300 from its starts on.

    Control's own thread, or that of the camera, logs that control starts.
    """
    moments = [(1_000 * k, 5, 1) for k in range(1, 6)] + [(1_000 * k + 400, 5, 2) for k in range(1, 6)]
    moments += [(start, starts_by, 3) for start in starts] + [(start + 300, 6, 4) for start in starts]
    build, running = TraceBuilder().time_event(0), 0
    for time, pid, event in sorted(moments):
        if pid != running:
            build.state("RUNNING", time - 1, pid, 1)
        build.event(wire.code(6, event), time)
        running = pid
    return build.event(wire.code(6, 9), 6_500).open(folder)

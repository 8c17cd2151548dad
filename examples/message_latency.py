"""Shows how long messages wait for their server.

A send and its receive have the same rcvid and server.

    python examples/message_latency.py trace.kev
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from satview.base.time import format_duration
from satview.formats.registry import open_trace
from satview.store.trace import Trace

Waits = NDArray[np.int64]


def waits(trace: Trace, first: str, second: str) -> tuple[Waits, Waits]:
    """Return pid of the server and cycles from an event of one name to the next of another with the same arguments."""
    codes = [trace.catalogue.find(name)[0] for name in (f"COMM/{first}", f"COMM/{second}")]
    rows = np.flatnonzero(np.isin(trace.events.code, codes))
    rcvid, pid = trace.payloads.column(rows, 0).astype(np.uint64), trace.payloads.column(rows, 1)
    key = rcvid << np.uint64(32) | pid
    order = np.argsort(key, kind="stable")
    rows, key, pid = rows[order], key[order], pid[order]
    is_first = trace.events.code[rows] == codes[0]
    is_pair = is_first[:-1] & ~is_first[1:] & (key[:-1] == key[1:])
    time = trace.events.time_cycles[rows]
    return pid[:-1][is_pair].astype(np.int64), (time[1:] - time[:-1])[is_pair]


def main(argv: list[str]) -> int:
    """Print per server: messages, median and longest wait."""
    trace = open_trace(argv[0])
    servers, cycles = waits(trace, "SND_MESSAGE", "REC_MESSAGE")
    print(f"{'server':<24}{'messages':>10}{'median':>12}{'longest':>12}")
    for server in np.unique(servers).tolist():
        mine = cycles[servers == server]
        row = trace.processes.row(server)
        name = trace.process_name(row) if row is not None else f"pid {server}"
        times = [format_duration(trace.clock.duration_ns(int(value))) for value in (np.median(mine), mine.max())]
        print(f"{name:<24}{len(mine):>10}" + "".join(f"{text:>12}" for text in times))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

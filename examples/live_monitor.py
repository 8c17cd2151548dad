"""Watches a trace while it is being written: how busy each CPU was in every interval, and with which thread.

    ssh target tracelogger -f - | python examples/live_monitor.py - 0.5

The second argument is the interval in seconds of trace time (default: 1).
"""

from __future__ import annotations

import sys
from collections import defaultdict

from satview.events import wire
from satview.formats.source import opened


class Usage:
    """Running time per CPU and thread in the current interval; times in cycles."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.end = 0
        self.spent: dict[int, dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))
        self.running: dict[int, tuple[tuple[int, int], int]] = {}

    def switch(self, cpu: int, thread: tuple[int, int], now: int) -> None:
        """Note that a thread starts to run on a CPU."""
        self.end = self.end or now + self.length
        while now >= self.end:
            for other in sorted(self.running):
                self._charge(other, self.end)
            self.report()
            self.end += self.length
        self._charge(cpu, now)
        self.running[cpu] = thread, now

    def _charge(self, cpu: int, now: int) -> None:
        if cpu in self.running:
            thread, since = self.running[cpu]
            self.spent[cpu][thread] += max(0, now - since)
            self.running[cpu] = thread, now

    def report(self) -> None:
        """Print one line for the interval that is over. Idle threads belong to process 1, one per CPU."""
        parts = []
        for cpu, threads in sorted(self.spent.items()):
            busy = {thread: spent for thread, spent in threads.items() if thread != (1, cpu + 1)}
            top = max(busy, key=lambda thread: busy[thread], default=None)
            name = f"{top[0]}/{top[1]}" if top and busy[top] else "-"
            parts.append(f"CPU {cpu}: {sum(busy.values()) / self.length:4.0%} {name}")
        print("   ".join(parts), flush=True)
        self.spent.clear()


def main(argv: list[str]) -> int:
    """Read to the end of the stream."""
    with opened(argv[0], sys.stdin.buffer) as source:
        interval_s = float(argv[1]) if len(argv) > 1 else 1.0
        usage = Usage(max(1, int(interval_s * source.cycles_per_s)))
        for batch in source.events:  # a batch is what has come by now
            for row in (batch.code == wire.THREAD_RUNNING).nonzero()[0].tolist():
                pid, tid = batch.words[batch.start[row] : batch.start[row] + 2].tolist()
                usage.switch(int(batch.cpu[row]), (pid, tid), int(batch.time_cycles[row]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

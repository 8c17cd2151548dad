"""Tables of a single kind of event, several millions of it among as many others, with reading its words as floor.

Rows a second of processor time, of `trace.arguments` and of its Arrow table, which SQL takes; the floor is to read the
words of the same events. Ends with 1 if a kind makes less than 5 million rows a second.
Args: [millions of events of the kind].
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from satview.events import wire
from satview.opened import OpenedTrace, open_trace
from tests.helpers.kev import START, write_trace

LEAST = 5.0  # million rows a second
_RUNS = 3
_BLOCK = 1 << 17  # events whose words are read together
_OTHER = wire.code(wire.WireClass.COMM, 0)
_RUN, _SENT, _USER = wire.code(4, 1), wire.code(2, 11), wire.code(wire.WireClass.USER, 100)
_CASES = {
    "THRUNNING, wide": ("THRUNNING", _RUN, 6, None),
    "MSG_SENDV, fast": ("MSG_SENDV", _SENT, 2, None),
    "MSG_SENDV, wide": ("MSG_SENDV", _SENT, 6, None),
    "EVENT 100, 2 words": ("EVENT 100", _USER, 2, None),
    "EVENT 100, 6 words": ("EVENT 100", _USER, 6, None),
    "EVENT 100, 50 texts": ("EVENT 100", _USER, 6, 50),
    "EVENT 100, all texts differ": ("EVENT 100", _USER, 6, 1 << 40),
}


def run(args: list[str]) -> None:
    """Print one line per kind; end with 1 if one is slower than it should be."""
    count = int(float(args[0]) * 1e6) if args else 3_000_000
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        for title, (name, code, words, texts) in _CASES.items():
            path = write_trace(Path(folder) / "kind.kev", _slots(count, code, words, texts))
            trace = open_trace(path)
            rows = trace.arguments(name)["event"]
            floor_s = _best(partial(_read, trace, rows, words))
            own_s = _best(lambda trace=trace, name=name: trace.arguments(name))
            arrow_s = _best(lambda trace=trace, name=name: trace.arguments(name).arrow())
            rate, arrow_rate = (len(rows) / seconds / 1e6 for seconds in (own_s, arrow_s))
            print(f"{title:28} {rate:6.1f} M rows a second, {own_s / floor_s:5.2f} x the words alone; "
                  f"with Arrow {arrow_rate:6.1f}; {len(rows):,} of {len(trace.events):,} events")  # fmt: skip
            if rate < LEAST:
                slow.append(title)
            trace.close()
    print(f"slower than {LEAST:g} M rows a second: {', '.join(slow) or 'none'}")
    sys.exit(1 if slow else 0)


def _read(trace: OpenedTrace, rows: np.ndarray, words: int) -> None:
    for first in range(0, len(rows), _BLOCK):
        trace.payloads.block(rows[first : first + _BLOCK], words)


def _best(timed: Callable[[], object]) -> float:
    """Return the least processor time of some runs, seconds."""
    times = []
    for _ in range(_RUNS):
        begin = time.process_time()
        timed()
        times.append(time.process_time() - begin)
    return min(times)


def _slots(count: int, code: int, words: int, texts: int | None) -> np.ndarray:
    """Return the slots of events of a kind, with an event of another one before each.

    Args:
        count: Events of the kind.
        code: Their code.
        words: Payload words of each.
        texts: How many different texts there are; None = the words are numbers.
    """
    steps = words // 2
    slots = np.zeros((count, 1 + steps, 4), np.uint32)
    slots[:, 0, 0], slots[:, 1:, 0] = _OTHER, code
    if steps > 1:
        slots[:, 1, 0] |= wire.Struct.COMBINE_BEGIN << wire.STRUCT_SHIFT
        slots[:, 2:, 0] |= wire.Struct.COMBINE_CONTINUE << wire.STRUCT_SHIFT
        slots[:, -1, 0] |= wire.Struct.COMBINE_END << wire.STRUCT_SHIFT
    time_cycles = START + 1000 + 400 * np.arange(count, dtype=np.int64)
    slots[:, 0, 1] = time_cycles & 0xFFFFFFFF
    slots[:, 1:, 1] = (time_cycles + 200 & 0xFFFFFFFF)[:, None]
    if texts is None:
        slots[:, :, 2:] = np.random.default_rng(1).integers(1, 1000, (count, 1 + steps, 2))
    else:
        size = 4 * words
        lines = b"".join((b"request %d of client" % (i % texts))[: size - 1].ljust(size, b"\0") for i in range(count))
        slots[:, 1:, 2:] = np.frombuffer(lines, "<u4").reshape(count, steps, 2)
    head = [[wire.CONTROL_TIME, START & 0xFFFFFFFF, START >> 32, START & 0xFFFFFFFF]]
    return np.concatenate((np.array(head, np.uint32), slots.reshape(-1, 4)))

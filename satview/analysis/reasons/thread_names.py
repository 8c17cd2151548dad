"""Which thread a user means by a number or a name."""

from __future__ import annotations

from typing import Final

from satview.base.errors import UsageError
from satview.store.trace import Trace

_MOST_NAMES: Final = 8  # of threads that an ambiguous name could mean


def thread_of(trace: Trace, text: str) -> int:
    """Return the row of the thread that `PID:TID`, its label or its name means; that of a process with one thread too.

    Raises:
        UsageError: There is none, or there are several; names them.
    """
    pid, colon, tid = text.strip().partition(":")
    if colon and pid.isdecimal() and tid.isdecimal() and len(text) < 24:
        row = trace.threads.row(int(pid), int(tid))
        if row is None:
            raise UsageError(f"the trace has no thread {text.strip()}")
        return row
    rows = range(1, len(trace.threads))
    for label in (trace.thread_name, lambda row: trace.threads.names[row],
                  lambda row: trace.process_name(int(trace.threads.process[row]))):  # fmt: skip
        found = [row for row in rows if label(row) == text and int(trace.threads.tid[row]) > 0]
        if len(found) == 1:
            return found[0]
        if found:
            some = ", ".join(f"{trace.threads.pid[row]}:{trace.threads.tid[row]} {trace.thread_name(row)}"
                             for row in found[:_MOST_NAMES])  # fmt: skip
            more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
            raise UsageError(f"{text[:40]!r} is the name of {len(found)} threads; write PID:TID: {some}{more}")
    raise UsageError(f"the trace has no thread {text[:40]!r}; `satview stats` lists them")

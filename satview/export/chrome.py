"""A trace as JSON in the Trace Event Format of Chrome, which many viewers read.

Processes and threads are those of QNX, a thread's number is its row of the thread table; kernel calls have a lane of
their own beside each thread, as they overlap its states. Process 0 has the CPUs and their interrupts. The text is made
by DuckDB, millions of lines at once. Source: "Trace Event Format" by the authors of Chrome's tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from satview.base.installed import required
from satview.base.new_file import NewFile
from satview.export.table_files import text_bytes
from satview.formats.registry import source_files
from satview.store.trace import Trace
from satview.tables.question import Limits
from satview.tables.sql import sql

CALLS: Final = 1_000_000  # added to the row of a thread: the lane of its kernel calls
INTERRUPTS: Final = 1_000  # added to a CPU: the lane of its interrupts
_LIMITS: Final = Limits(time_s=3600.0, memory_bytes=8 << 30, answer_bytes=8 << 30)
_NAME: Final = "'M' as ph, {kind!r} as name, {pid} as pid, {tid} as tid, {{'name': {label}}} as args"
_SLICE: Final = (
    "'X' as ph, {cat!r} as cat, {name} as name, {pid} as pid, {tid} as tid, {start}_ns / 1000.0 as ts, "
    "{length}_ns / 1000.0 as dur"
)
_PARTS: Final = (
    _NAME.format(kind="process_name", pid="pid", tid=0, label="label") + " from process where process > 0",
    _NAME.format(kind="process_name", pid=0, tid=0, label="'CPUs'") + " from trace",
    _NAME.format(kind="thread_name", pid="pid", tid="thread", label="label") + " from thread where thread > 0",
    _NAME.format(kind="thread_name", pid="pid", tid=f"thread + {CALLS}", label="label || ': kernel calls'")
    + " from thread semi join call using (thread)",
    _NAME.format(kind="thread_name", pid=0, tid="cpu", label="label") + " from cpu",
    _NAME.format(kind="thread_name", pid=0, tid=f"cpu + {INTERRUPTS}", label="label || ' interrupts'") + " from cpu",
    _SLICE.format(cat="state", name="state", pid="pid", tid="thread", start="start", length="length")
    + " from state join thread using (thread) where state not in ('ABSENT', 'UNKNOWN', 'WAITING', 'IDLE')",
    _SLICE.format(cat="cpu", name="label", pid=0, tid="cpu", start="start", length="length")
    + " from run join thread using (thread) where not run.is_idle",
    _SLICE.format(
        cat="kernel call", name="call.name", pid="pid", tid=f"thread + {CALLS}", start="start", length="length"
    )
    + " from call join thread using (thread) where length_cycles is not null and thread > 0",
    _SLICE.format(
        cat="interrupt", name="printf('interrupt 0x%x', vector)", pid=0, tid=f"cpu + {INTERRUPTS}", start="start",
        length="length",
    )
    + " from interrupt where length_cycles is not null",
    "'s' as ph, 'message' as cat, 'message' as name, message as id, pid, client as tid, time_ns / 1000.0 as ts "
    "from message join thread on thread.thread = client where server is not null and queued_ns is not null",
    "'f' as ph, 'e' as bp, 'message' as cat, 'message' as name, message as id, pid, server as tid, "
    "time_ns(time_cycles + queued_cycles) / 1000.0 as ts from message join thread on thread.thread = server "
    "where client is not null and queued_ns is not null",
    "'X' as ph, 'loss' as cat, 'lost events' as name, 0 as pid, coalesce(cpu, 0) as tid, start_ns / 1000.0 as ts, "
    "length_ns / 1000.0 as dur from loss",
)  # fmt: skip


def write_chrome(trace: Trace, path: Path | str, report: Callable[[float], None] | None = None) -> int:
    """Write a trace as JSON for Chrome; return how many events of its format.

    Args:
        trace: The trace.
        path: The new file, or `-`.
        report: Called with the share that is done, 0 to 1.

    Raises:
        UsageError: A package is missing, or the file cannot be written.
    """
    required("duckdb")
    count = 0
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, part in enumerate(_PARTS):
            if report is not None:
                report(number / len(_PARTS))
            query = f"select to_json(line)::varchar || chr(44) || chr(10) as line from (select {part}) line"  # noqa: S608
            for batch in sql(trace, query, _LIMITS).arrow().to_batches():
                file.stream.write(text_bytes(batch.column(0)))
                count += batch.num_rows
        file.stream.write(b'{"ph": "M", "name": "process_sort_index", "pid": 0, "args": {"sort_index": -1}}\n]}\n')
    return count + 1

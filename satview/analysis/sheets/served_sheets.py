"""The sheet of client and server time: what threads ran themselves, had servers run, and what all that adds up to."""

from __future__ import annotations

import numpy as np

from satview.analysis.sheets.sheet import Column, Columns, Kind, Sheet, Subject
from satview.analysis.sheets.sheet_rows import Shown, columns_of, sheet_of, thread_columns, threads_shown
from satview.analysis.statistics import Statistics
from satview.events.wire import WireClass, code

_NOTE = ("Own and caused times add up to the time that threads ran; imposed times may add up to more, "
         "as a server works for all its clients at once.")  # fmt: skip
_NO_MESSAGES = "No messages are there, so that all time is own time; capture the class COMM."
_LOST = " Events were lost: self and imposed are lower bounds, and some of what is own may be for clients not known."


def client_server_sheet(found: Statistics, shown: Shown = None, per_server: bool = False) -> Sheet:
    """Return one row per thread that ran, or for which others ran.

    Args:
        found: The statistics.
        shown: bool (threads,), those to show; None = all.
        per_server: True for one more column per server.
    """
    trace, table = found.trace, found.client_server
    rows = threads_shown(found, shown)
    rows = rows[(table.total_cycles[rows] > 0) & (rows > 0)]
    columns = columns_of(found, rows)
    threads = np.arange(len(trace.threads))
    thread_columns(columns, found, threads)
    columns.duration("self_ns", "Self", table.self_cycles, "It ran, for itself or for others, interrupts included.")
    columns.duration("imposed_ns", "Imposed", table.imposed_cycles,
                     "Servers ran while it waited for them, or for others that waited for them.")  # fmt: skip
    columns.duration("total_ns", "Total", table.total_cycles, "Self and imposed.")
    columns.duration("own_ns", "Own", table.own_cycles, "It ran with no message to answer.")
    columns.duration("caused_ns", "Caused", table.caused_cycles,
                     "Others ran for it, as the first one in a chain of messages.")  # fmt: skip
    columns.duration("bill_ns", "Own and caused", table.bill_cycles, "Adds up to the time that threads ran.")
    columns.share("bill_share", "Of all runs", table.bill_cycles, int(table.self_cycles.sum()),
                  "Own and caused as a share of the time that threads ran.")  # fmt: skip
    _most(columns, found)
    if per_server:
        _servers(columns, found)
    is_logged = all(trace.code_counts[code(WireClass.COMM, event)] for event in (0, 2))
    note = (_NOTE if is_logged else _NO_MESSAGES) + (_LOST if found.lost_cycles else "")
    return sheet_of("client-server", "Client and server", Subject.THREAD, columns, "total_ns",
                    "No thread is known to run in this range.", note)  # fmt: skip


def _most(columns: Columns, found: Statistics) -> None:
    """Add the server on which each thread imposed most."""
    trace, imposed = found.trace, found.client_server.imposed
    order = np.lexsort((imposed.cycles, imposed.client))
    is_last = np.append(np.diff(imposed.client[order]) != 0, True)[: len(order)]
    server, most = np.zeros(len(trace.threads), np.int64), np.zeros(len(trace.threads), np.int64)
    best = order[is_last]
    server[imposed.client[best]], most[imposed.client[best]] = imposed.server[best], imposed.cycles[best]
    columns.text("most_on", "Most on", lambda row: trace.thread_name(int(server[row])) if server[row] else "",
                 "The server on which it imposed most.")  # fmt: skip
    columns.duration("most_on_ns", "Of that", most, "What it imposed on that server.")


def _servers(columns: Columns, found: Statistics) -> None:
    """Add a column for each server on which any thread imposed something, those imposed on most first."""
    trace, imposed = found.trace, found.client_server.imposed
    total = np.bincount(imposed.server, imposed.cycles, len(trace.threads))
    for server in np.argsort(-total, kind="stable")[: np.count_nonzero(total)].tolist():
        mine = imposed.server == server
        cycles = np.zeros(len(trace.threads), np.int64)
        cycles[imposed.client[mine]] = imposed.cycles[mine]
        selected = cycles[columns.rows]
        name = f"{trace.threads.pid[server]}_{trace.threads.tid[server]}"
        columns.made.append(Column(f"imposed_on_{name}_ns", f"On {trace.thread_name(server)}", Kind.DURATION,
                                   np.where(selected > 0, columns.ns(selected), -1),
                                   f"Imposed on {trace.thread_name(server)}."))  # fmt: skip

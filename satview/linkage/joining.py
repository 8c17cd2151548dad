"""Combines links and waits of several files that share one time axis.

Links are found in each file alone, as messages, mutexes and interrupts of one target have no effect on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.linkage.blockers import Blockers
from satview.linkage.latencies import Latencies
from satview.linkage.mutexes import MutexCalls, Mutexes
from satview.linkage.servers import Services
from satview.linkage.table import NO_EVENT, LinkKind, LinkTable
from satview.linkage.transactions import Transactions, transactions
from satview.linkage.waits import Waits
from satview.store.axis import AxisPart, FileAxis, Joiner, concatenated, scaled

_Column = NDArray[Any]
_ROWS: Final = frozenset({"row"})
_THREADS: Final = frozenset({"thread", "client", "server"})
_PIDS: Final = frozenset({"pid", "server_pid", "client_pid"})
_MOMENTS: Final = frozenset({"start", "end"})


def _column(part: AxisPart, name: str, own: _Column) -> _Column:
    """Return a column of one file converted to the axis; `name` decides if it holds rows, threads, pids or times."""
    if name in _ROWS or name.endswith("_row"):
        return part.axis_rows(own)
    if name in _THREADS:
        return np.where(own >= 0, part.threads[own], own)
    if name in _PIDS:
        return part.axis_pids(own)
    if name in _MOMENTS:
        return part.cycles(own)
    if name.endswith("_cycles"):
        return np.where(own >= 0, scaled(own, part.trace.clock.cycles_per_s, part.rate), own)
    return own


def _columns(axis: FileAxis, per_file: Sequence[Any], names: Sequence[str]) -> dict[str, _Column]:
    return {
        name: concatenated([_column(part, name, getattr(own, name))
                            for part, own in zip(axis.parts, per_file, strict=True)])
        for name in names
    }  # fmt: skip


def _names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def _event_column(axis: FileAxis, per_file: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Return a column of event rows on the axis, one for every event, joined from such columns of the files."""
    out = np.full(len(axis.part_of), NO_EVENT, np.uint32)
    for part, own in zip(axis.parts, per_file, strict=True):
        out[part.rows] = part.axis_rows(own)
    return out


def _rows(axis: FileAxis, per_file: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    return np.sort(concatenated([part.axis_rows(own) for part, own in zip(axis.parts, per_file, strict=True)]))


def _table(axis: FileAxis, per_file: list[LinkTable]) -> LinkTable:
    columns = _columns(axis, per_file, ("from_row", "to_row", "certainty"))
    return LinkTable.of(per_file[0].kind, (columns["from_row"], columns["to_row"], columns["certainty"]))


def _waits(axis: FileAxis, per_file: list[Waits]) -> Waits:
    return Waits(**_columns(axis, per_file, _names(Waits)))  # stays sorted by thread: later files have larger rows


def _blockers(axis: FileAxis, per_file: list[Blockers]) -> Blockers:
    columns = _columns(axis, per_file, ("thread", "pid", "certainty"))
    return Blockers(_waits(axis, [table.waits for table in per_file]), **columns)


def _mutexes(axis: FileAxis, per_file: list[Mutexes]) -> Mutexes:
    next_number, starts = 0, []
    for table in per_file:
        starts.append(next_number)
        next_number += 1 + max(
            int(column.max(initial=-1)) for column in (table.gets.mutex, table.gives.mutex, table.of_wait)
        )

    def numbered(column: _Column, number: int) -> _Column:
        return np.where(column >= 0, column + starts[number], column)

    def calls(calls_per_file: list[MutexCalls]) -> MutexCalls:
        columns = _columns(axis, calls_per_file, ("row", "thread"))
        mutex = concatenated([numbered(file_calls.mutex, number) for number, file_calls in enumerate(calls_per_file)])
        order = np.argsort(columns["row"], kind="stable")
        return MutexCalls(columns["row"][order], columns["thread"][order], mutex[order])

    of_wait = concatenated([numbered(table.of_wait, number) for number, table in enumerate(per_file)])
    return Mutexes(calls([table.gets for table in per_file]), calls([table.gives for table in per_file]), of_wait)


def _transactions(axis: FileAxis, per_file: list[Transactions]) -> Transactions:
    columns = _columns(axis, per_file, _names(Transactions))
    columns["parent"] = _numbered([table.parent for table in per_file], _positions(axis, per_file))
    order = np.argsort(columns["send_row"], kind="stable")
    return Transactions(**{name: column[order] for name, column in columns.items()})


def _services(axis: FileAxis, per_file: list[Services], sent: list[Transactions]) -> Services:
    columns = _columns(axis, per_file, _names(Services))
    columns["transaction"] = _numbered([table.transaction for table in per_file], _positions(axis, sent))
    return Services(**columns)  # by client


def _positions(axis: FileAxis, per_file: list[Transactions]) -> list[NDArray[np.int64]]:
    """Return for each file the positions of its transactions among those of all files, int64."""
    sends = _columns(axis, per_file, ("send_row",))["send_row"]
    position = np.empty(len(sends), np.int64)
    position[np.argsort(sends, kind="stable")] = np.arange(len(sends))
    return np.split(position, np.cumsum([len(table) for table in per_file])[:-1])


def _numbered(own: list[_Column], positions: list[NDArray[np.int64]]) -> _Column:
    return concatenated([
        np.where(column >= 0, position[column], column) if len(position) else column
        for column, position in zip(own, positions, strict=True)
    ])  # fmt: skip


def _latencies(axis: FileAxis, per_file: list[Latencies]) -> Latencies:
    columns = _columns(axis, per_file, _names(Latencies))
    cause_or_pulse = np.where(columns["cause_row"] >= 0, columns["cause_row"], columns["pulse_row"])
    order = np.lexsort((columns["pulse_row"], columns["ready_row"], cause_or_pulse))
    return Latencies(**{name: column[order] for name, column in columns.items()})


def _services_of(axis: FileAxis, per_file: list[Services]) -> Services:
    return _services(axis, per_file, [transactions(part.trace) for part in axis.parts])


JOINERS: Final[dict[str, Joiner]] = {
    **{f"links.{kind.name.lower()}": _table for kind in LinkKind},
    "links.partners": _event_column,
    "links.state_ends": _event_column,
    "links.beginnings": _rows,
    "links.waits": _waits,
    "links.blockers": _blockers,
    "links.mutexes": _mutexes,
    "links.transactions": _transactions,
    "links.services": _services_of,
    "links.latencies": _latencies,
}
"""By name in the cache of a trace (`Trace.cached`), the function that combines the values of its files."""

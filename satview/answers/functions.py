"""The functions in which programs spend their time, as a table and as flame graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import lacks_of_rows
from satview.analysis.needs import CALLERS, FUNCTIONS
from satview.analysis.times.basis import scope_of
from satview.analysis.times.state_times import state_spans
from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Known, Question, Table, known_where, least_known
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.events.states import RUNNING
from satview.events.wire import KER_64BIT, WireClass, code
from satview.formats.outside_names import Place, symbols_of
from satview.linkage.links import OPEN, ends_of_spans, rows_of_codes, thread_rows
from satview.store.arguments import argument, arguments
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace
from satview.timeline.finders import function_calls

# The functions in which programs spend their time, from functions that log their calls and from profiler samples.
#
# table = function_table(trace).sorted_by("running").head(20)
#
# A row is a function of one thread with a certain stack of callers. Functions have names after
# `formats.outside_names.add_symbols`, before that addresses.


_Ints = NDArray[np.int64]
SEPARATOR: Final = ";"  # between functions of a stack, as in folded stacks
SOURCES: Final = ("calls", "samples")
_MOST_DEPTH: Final = 1_000
_TOO_DEEP: Final = "functions are more than 1,000 deep in others; what is deeper counts as part of its callers"
_FUNC_ENTER: Final = tuple(code(WireClass.SYSTEM, 10) | wide for wide in (0, KER_64BIT))
_PROFILE: Final = tuple(code(WireClass.SYSTEM, 20) | wide for wide in (0, KER_64BIT))
_CUT: Final = "some of these calls were not over when the trace or the range ended, or begin before it"
_REASONS: Final = {Known.AT_LEAST: _CUT}
QUESTION: Final = Question(
    "function",
    "Functions",
    "In which functions do programs spend their time?",
    (
        Column("process", Kind.TEXT, "the program", "Process"),
        Column("thread", Kind.THREAD, "who ran", "Thread", is_nullable=True),
        Column("source", Kind.TEXT, "`calls`: functions that log when they are entered and left; `samples`: where the "
               "thread was at ticks of the profiler", "From"),
        Column("function", Kind.TEXT, "its name, or the address where no symbols name it", "Function"),
        Column("place", Kind.TEXT, "file and line of its beginning; empty where symbols do not say", "Place"),
        Column("stack", Kind.TEXT, "the function and its callers, the outermost first", "Stack"),
        Column("address", Kind.HEX, "where it begins; of samples where the thread was", "Address"),
        Column("depth", Kind.COUNT, "how many callers it has", "Depth"),
        Column("count", Kind.COUNT, "calls, or samples", "Count",
               reasons={Known.AT_LEAST: "events are missing, and calls or samples may be among them"}),
        Column("total", Kind.DURATION, "from its entries to its exits, waiting included", "Total", is_nullable=True,
               reasons=_REASONS),
        Column("self", Kind.DURATION, "that without the functions that it calls", "Self", is_nullable=True,
               reasons=_REASONS),
        Column("running", Kind.DURATION, "as far as the thread had a CPU meanwhile, without what it calls", "Running",
               is_nullable=True, reasons=_REASONS),
        Column("longest", Kind.DURATION, "its longest call", "Longest", is_nullable=True, reasons=_REASONS),
        Column("event", Kind.EVENT, "the entry of its longest call, or its first sample", "Event"),
    ),
    "",
    "No function logs its calls, and no profiler its samples.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes of the call tree, one per function and call stack, each behind its caller's node; columns of shape (n,)."""

    thread: _Ints  # row of the thread table
    address: _Ints
    above: _Ints  # index of the caller's node; -1 = none
    count: _Ints  # calls or samples
    total: _Ints  # cycles; -1 for samples
    own: _Ints
    running: _Ints
    longest: _Ints
    event: _Ints  # row of the entry of the longest call, or of the first sample
    is_cut: NDArray[np.bool_]  # whether some calls begin before or end after the range


def function_table(trace: Trace, window: TimeWindow | None = None) -> Table:
    """Return the call tree of all threads as a table, each function below its callers.

    Args:
        trace: The events.
        window: Count only the parts of calls within this range; None = all.
    """
    calls, is_too_deep = _of_calls(trace, window)
    samples = _of_samples(trace, window)
    columns = [column.name for column in fields(_Nodes)]
    nodes = _Nodes(*(np.concatenate((getattr(calls, name), getattr(samples, name))) for name in columns))
    order = _below_callers(nodes)
    rank = np.argsort(order)
    nodes = _Nodes(*(getattr(nodes, name)[order] for name in columns))
    nodes.above[nodes.above >= 0] = rank[nodes.above[nodes.above >= 0]]
    process = trace.threads.process[nodes.thread].astype(np.int64)
    functions, places = _named(trace, process, nodes.address)
    stacks = _stacks(functions, nodes.above)
    depth = np.zeros(len(functions), np.int64)
    for row, caller in enumerate(nodes.above.tolist()):
        depth[row] = depth[caller] + 1 if caller >= 0 else 0
    unmet = lacks_of_rows(trace, window)
    lack = "; ".join(need.reason(trace) for need in unmet)
    is_bound = nodes.is_cut | (bool(lack) & (nodes.total >= 0))  # samples have no times
    known = known_where(is_bound, Known.AT_LEAST)
    counted_to = np.full(len(known), Known.AT_LEAST if lack else Known.EXACT, np.uint8)
    source = (order >= len(calls.above)).astype(np.uint8)
    nothing = () if len(nodes.above) else (need.advice(trace) for need in (FUNCTIONS, *unmet))
    return Table(
        _with_reason(lack) if lack else QUESTION,
        trace,
        {
            "process": Texts(process.astype(np.uint32), tuple(name or "unknown" for name in trace.processes.names)),
            "thread": nodes.thread,
            "source": Texts(source, SOURCES),
            "function": Texts.of(functions),
            "place": Texts.of(places),
            "stack": Texts.of(stacks),
            "address": nodes.address,
            "depth": depth,
            "count": nodes.count,
            "total": nodes.total,
            "self": nodes.own,
            "running": nodes.running,
            "longest": nodes.longest,
            "event": nodes.event,
        },
        known=dict.fromkeys(("total", "self", "running", "longest"), known) | {"count": counted_to},
        parent=nodes.above,
        cannot_tell="\n".join(filter(None, (_of_nobody(trace, window), _TOO_DEEP if is_too_deep else "", *nothing))),
    )


def _with_reason(lack: str) -> Question:
    """Return the question with the reason why its figures are bounds in a trace that lacks events."""
    reasons = {"count": lack} | dict.fromkeys(("total", "self", "running", "longest"), f"{lack}, or {_CUT}")
    return replace(QUESTION, columns=tuple(
        replace(column, reasons={Known.AT_LEAST: reasons[column.name]}) if column.name in reasons else column
        for column in QUESTION.columns))  # fmt: skip


def _of_nobody(trace: Trace, window: TimeWindow | None) -> str:
    """Return a text on the number of function calls whose thread is not known, with the remedy; empty if none are."""
    rows = rows_of_codes(trace, *_FUNC_ENTER)
    inside = trace.rows_between(window or trace.window)
    rows = rows[(rows >= inside.start) & (rows < inside.stop)]
    count = np.count_nonzero(trace.events.thread[rows] == UNKNOWN_THREAD)
    says = f"the thread of {count:,} of {counted(len(rows), 'call')} of functions is not known"
    return "; ".join(filter(None, (says, CALLERS.remedy if CALLERS.reason(trace) else ""))) if count else ""


def _stacks(functions: Sequence[str], above: _Ints) -> list[str]:
    """Return each function's call stack as text, the outermost caller first; `above` must list callers first."""
    stacks: list[str] = []
    for row, caller in enumerate(above.tolist()):
        stacks.append(f"{stacks[caller]}{SEPARATOR}{functions[row]}" if caller >= 0 else functions[row])
    return stacks


@dataclass(frozen=True, slots=True)
class CallStacks:
    """The calls of functions that log their calls, with the call stack of each; columns of shape (n,).

    Attributes:
        entry_row: int64, row of the entry event.
        start_cycles, end_cycles: int64, times of entry and exit; the end of the trace if the call has not returned.
        parent: int64, index of the enclosing call, -1 = none.
        stack: int64, index of the call's stack in `stacks`; -1 = nested too deeply.
        stacks: Call stacks: a function and its callers, the outermost first; threads may have equal stacks.
    """

    entry_row: _Ints
    start_cycles: _Ints
    end_cycles: _Ints
    parent: _Ints
    stack: _Ints
    stacks: tuple[str, ...]


def call_stacks(trace: Trace) -> CallStacks:
    """Return the calls of all functions of a trace that log their calls."""
    entry_row, end, thread, address, parent, node, above, head = trace.cached("answers.call_stacks", _call_nodes)
    functions, _ = _named(trace, trace.threads.process[thread[head]].astype(np.int64), address[head])
    return CallStacks(
        entry_row, trace.events.time_cycles[entry_row], end, parent, node, tuple(_stacks(functions, above))
    )


def _call_nodes(trace: Trace) -> tuple[_Ints, ...]:
    """Return the arrays from which `CallStacks` is made, int64 (n,) each, without the names of functions.

    Names are left out because the user may add symbols later.
    """
    entry_row, exit_row = function_calls(trace)
    end = ends_of_spans(trace, entry_row, exit_row)
    thread, address = trace.events.thread[entry_row].astype(np.int64), argument(trace, entry_row, "thisfn")[0]
    depth, parent = _nesting(thread, entry_row, exit_row)
    return entry_row.astype(np.int64), end, thread, address, parent, *_numbered(thread, address, depth, parent)


def _below_callers(nodes: _Nodes) -> _Ints:
    """Return the order of nodes in the table, int64 (nodes,): depth first; siblings by total time, then by count."""
    below: dict[int, list[int]] = defaultdict(list)
    for node in np.lexsort((-nodes.count, -nodes.total)).tolist():
        below[int(nodes.above[node])].append(node)
    order, waiting = [], below[-1][::-1]
    while waiting:
        order.append(node := waiting.pop())
        waiting += below[node][::-1]
    return np.array(order, np.int64)


def _named(trace: Trace, process: _Ints, address: _Ints) -> tuple[list[str], list[str]]:
    """Return names of functions, or addresses where names are unknown, and their positions in source files."""
    symbols, functions, places = symbols_of(trace), [], []
    for process_row, pc in zip(process.tolist(), address.tolist(), strict=True):
        place = Place() if symbols is None else symbols.place(process_row, pc)
        functions.append(place.function.replace(SEPARATOR, ":") or f"0x{pc:x}")
        places.append(place.source)
    return functions, places


def _of_calls(trace: Trace, window: TimeWindow | None) -> tuple[_Nodes, bool]:
    """Return the call tree of functions that log their calls, and whether calls nested too deeply are missing in it."""
    entry_row, exit_row = function_calls(trace)
    bounds = window or trace.window
    start, end = trace.events.time_cycles[entry_row], ends_of_spans(trace, entry_row, exit_row)
    is_inside = (start < bounds.end) & (end >= bounds.start)
    entry_row, exit_row, start, end = entry_row[is_inside], exit_row[is_inside], start[is_inside], end[is_inside]
    is_cut = (exit_row == OPEN) | (end > bounds.end) | (start < bounds.start)
    start, end = np.maximum(start, bounds.start), np.minimum(end, bounds.end)
    thread, address = trace.events.thread[entry_row].astype(np.int64), argument(trace, entry_row, "thisfn")[0]
    depth, parent = _nesting(thread, entry_row, exit_row)
    length, running = end - start, _running(trace, thread, start, end)
    own, own_running = length.copy(), running.copy()
    inner = np.flatnonzero((parent >= 0) & (depth < _MOST_DEPTH))
    np.subtract.at(own, parent[inner], length[inner])
    np.subtract.at(own_running, parent[inner], running[inner])
    node, above, head = _numbered(thread, address, depth, parent)
    kept = np.flatnonzero(node >= 0)
    count = np.bincount(node[kept], minlength=len(above))

    def added(values: _Ints) -> _Ints:
        sums = np.zeros(len(above), np.int64)
        np.add.at(sums, node[kept], values[kept])
        return sums

    order = kept[np.lexsort((-entry_row[kept].astype(np.int64), length[kept], node[kept]))]
    longest = order[np.cumsum(count) - 1] if len(order) else order  # the last of each node; of equal ones the earliest
    is_any_cut = np.zeros(len(above), np.bool_)
    is_any_cut[node[kept[is_cut[kept]]]] = True
    nodes = _Nodes(thread[head], address[head], above, count, added(length), added(own), added(own_running),
                   length[longest], entry_row[longest].astype(np.int64), is_any_cut)  # fmt: skip
    return nodes, len(kept) < len(node)


def _nesting(thread: _Ints, entry_row: NDArray[np.uint32], exit_row: NDArray[np.uint32]) -> tuple[_Ints, _Ints]:
    """Return for each call the number of enclosing calls, and the innermost one (index, -1 = none), int64 (n,) each."""
    count = len(entry_row)
    rows = np.concatenate((entry_row, exit_row)).astype(np.int64)
    step = np.repeat(np.array((1, -1)), count)
    order = np.lexsort((rows, np.tile(thread, 2)))
    level = np.empty(2 * count, np.int64)
    level[order] = np.cumsum(step[order])
    depth = level[:count] - 1
    begins = order[order < count]  # by thread, then in time order
    parent = np.full(count, -1, np.int64)
    rank = np.empty(count, np.int64)
    rank[begins] = np.arange(count)
    by_depth = begins[np.argsort(depth[begins], kind="stable")]
    edges = np.searchsorted(depth[by_depth], np.arange(1, min(int(depth.max(initial=0)), _MOST_DEPTH) + 2))
    outer = by_depth[: edges[0]] if len(edges) else by_depth
    for begin, end in pairwise(edges.tolist()):
        inner = by_depth[begin:end]
        parent[inner] = outer[np.searchsorted(rank[outer], rank[inner]) - 1]
        outer = inner
    return depth, parent


def _numbered(thread: _Ints, address: _Ints, depth: _Ints, parent: _Ints) -> tuple[_Ints, _Ints, _Ints]:
    """Return each call's node (-1 = too deep), and for each node its caller's node (-1 = none) and one of its calls."""
    node = np.full(len(thread), -1, np.int64)
    above: list[_Ints] = []
    head: list[_Ints] = []
    count = 0
    for level in range(min(int(depth.max(initial=-1)) + 1, _MOST_DEPTH)):
        calls = np.flatnonzero(depth == level)
        outer = node[parent[calls]] if level else np.full(len(calls), -1)
        order = np.lexsort((address[calls], outer, thread[calls]))
        calls, outer = calls[order], outer[order]
        is_new = np.any([np.diff(values, prepend=values[:1] - 1) != 0
                         for values in (thread[calls], outer, address[calls])], axis=0)  # fmt: skip
        node[calls] = count + np.cumsum(is_new) - 1
        above.append(outer[is_new])
        head.append(calls[is_new])
        count += int(np.count_nonzero(is_new))
    nothing = np.empty(0, np.int64)
    return node, np.concatenate((nothing, *above)), np.concatenate((nothing, *head))


def _running(trace: Trace, thread: _Ints, start: _Ints, end: _Ints) -> _Ints:
    """Return how long `thread[i]` ran between `start[i]` and `end[i]`, for every i; cycles, int64 (n,)."""
    running = np.zeros(len(thread), np.int64)
    if not len(thread):
        return running
    for spans in state_spans(scope_of(trace, trace.window, None, None, None)):
        runs = spans.value == RUNNING
        for number in np.intersect1d(spans.thread[runs], thread).tolist():
            calls, of_thread = np.flatnonzero(thread == number), runs & (spans.thread == number)
            ranges = TimeRanges.of(spans.start[of_thread], spans.end[of_thread])
            running[calls] = ranges.within(start[calls], end[calls])
    return running


def _of_samples(trace: Trace, window: TimeWindow | None) -> _Nodes:
    """Return the functions that profiler samples show, as nodes without callers."""
    rows = rows_of_codes(trace, *_PROFILE) if trace.has_slots else np.empty(0, np.uint32)
    if window is not None:
        inside = trace.rows_between(window)
        rows = rows[(rows >= inside.start) & (rows < inside.stop)]
    (ip, _), (pid, has_pid), (tid, has_tid) = arguments(trace, rows, "ip", "pid", "tid")
    named = thread_rows(trace, pid.astype(np.uint32), tid.astype(np.uint32))
    thread = np.where(has_pid & has_tid & (named > 0), named, trace.events.thread[rows])
    address, symbols = ip.copy(), symbols_of(trace)
    if symbols is not None:  # samples in the same function are counted together
        keys, inverse = np.unique(np.stack((trace.threads.process[thread], ip)), axis=1, return_inverse=True)
        begins = [pc - symbols.place(process_row, pc).offset for process_row, pc in keys.T.tolist()]
        address = np.array(begins, np.int64)[inverse.reshape(-1)] if begins else address
    keys, head, count = np.unique(np.stack((thread, address)), axis=1, return_index=True, return_counts=True)
    none = np.full(len(head), -1, np.int64)
    return _Nodes(keys[0].astype(np.int64), keys[1].astype(np.int64), none, count.astype(np.int64), none, none, none,
                  none, rows[head].astype(np.int64), np.zeros(len(head), np.bool_))  # fmt: skip


# Flame graphs: each function is as wide as its share of the time or samples, with the functions it calls below it.
#
# graph = flame_graph(function_table(trace))


ROOT: Final = 0


class FlameWidth(StrEnum):
    """The quantity that the widths in a flame graph show."""

    RUNNING = "Time on a CPU"
    ELAPSED = "Time with waiting"
    SAMPLES = "Samples"


_COLUMNS: Final = {FlameWidth.RUNNING: "running_cycles", FlameWidth.ELAPSED: "self_cycles", FlameWidth.SAMPLES: "count"}


@dataclass(frozen=True, slots=True, eq=False)
class FlameGraph:
    """The rectangles (nodes) of a flame graph; columns of shape (n,).

    The root is first, then processes and threads if functions are shown by thread, then functions level by level.

    Attributes:
        table: The functions.
        measure: Quantity that widths show.
        measures: All quantities for which there is data.
        name, place: Name and source position of the function; the position is empty for threads and without symbols.
        is_function: bool; False = the root, a process or a thread.
        parent, depth: int64, index of the node above, -1 = none, and level of the node.
        start, width: int64, cycles or samples from the left edge; a width includes the nodes below.
        own: int64, the width without that of the nodes below.
        total: int64, cycles from entries to exits of the function; -1 = not known.
        count: int64, calls or samples.
        event: int64, row of the entry of the longest call, or of a sample; -1 for nodes that are no functions.
        longest: int64, cycles of the longest call; -1 = unknown, as for samples.
        known: uint8, `Known` of the width and of all times of the node.
    """

    table: Table
    measure: FlameWidth
    measures: tuple[FlameWidth, ...]
    name: tuple[str, ...]
    place: tuple[str, ...]
    is_function: NDArray[np.bool_]
    parent: _Ints
    depth: _Ints
    start: _Ints
    width: _Ints
    own: _Ints
    total: _Ints
    count: _Ints
    event: _Ints
    longest: _Ints
    known: NDArray[np.uint8]

    def path(self, node: int) -> tuple[str, ...]:
        """Return the names on the path to a node, without the root, the outermost first."""
        names: list[str] = []
        while node != ROOT:
            names.append(self.name[node])
            node = int(self.parent[node])
        return tuple(reversed(names))

    def at(self, path: tuple[str, ...]) -> int:
        """Return the index of the node at a path of names, else of the deepest node on the path that exists."""
        node = ROOT
        for name in path:
            below = [child for child in self.below(node).tolist() if self.name[child] == name]
            if not below:
                break
            node = below[0]
        return node

    def below(self, node: int) -> _Ints:
        """Return the indices of the nodes directly below a node with a width above 0, left to right, int64 (k,)."""
        below = np.flatnonzero((self.parent == node) & (self.width > 0))
        return below[np.argsort(self.start[below])]


def flame_graph(table: Table, measure: FlameWidth | None = None, *, is_by_thread: bool = False) -> FlameGraph:
    """Return the flame graph of all functions.

    Args:
        table: Result of `function_table`.
        measure: Quantity that widths show; if it is None or has no data, the first quantity with data is used.
        is_by_thread: Put functions below their processes and threads; else equal call paths of all threads are summed.
    """
    is_sampled = table["source"] == "samples"
    rows_of = {width: np.flatnonzero(is_sampled == (width is FlameWidth.SAMPLES)) for width in FlameWidth}
    measures = tuple(width for width in FlameWidth if np.any(table[_COLUMNS[width]][rows_of[width]] > 0))
    measure = measure if measure in measures else (measures or (FlameWidth.RUNNING,))[0]
    rows = rows_of[measure]
    node, parent, depth, row_of_node, is_function = _nodes(table, rows, is_by_thread)
    count_of_nodes = len(parent)

    def added(amounts: _Ints) -> _Ints:
        sums = np.zeros(count_of_nodes, np.int64)
        np.add.at(sums, node[rows], amounts[rows])
        return sums

    own = np.maximum(added(table[_COLUMNS[measure]]), 0)
    width, known = own.copy(), np.full(count_of_nodes, Known.EXACT, np.uint8)
    how = table[f"{_COLUMNS[measure].removesuffix('_cycles')}_known"]
    known[node[rows[how[rows] != Known.EXACT.word]]] = Known.AT_LEAST
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(width, parent[nodes], width[nodes])
        unsure = nodes[known[nodes] != Known.EXACT]
        known[parent[unsure]] = least_known(known[parent[unsure]], known[unsure])
    by_length = rows[np.argsort(table["longest_cycles"][rows], kind="stable")]
    longest, event = (np.full(count_of_nodes, -1, np.int64) for _ in range(2))
    longest[node[by_length]], event[node[by_length]] = table["longest_cycles"][by_length], table["event"][by_length]
    total = np.where(is_function, added(table["total_cycles"]), -1)
    total[is_function & (longest < 0)] = -1
    names, places = _names(table, row_of_node, depth, is_function)
    return FlameGraph(table, measure, measures, names, places, is_function, parent, depth,
                      _starts(parent, depth, width), width, own, total, added(table["count"]), event, longest,
                      known)  # fmt: skip


def _nodes(table: Table, rows: _Ints, is_by_thread: bool) -> tuple[_Ints, _Ints, _Ints, _Ints, NDArray[np.bool_]]:
    """Return the call tree that a table of functions shows.

    These are the node of each row (-1 = none); and for each node its parent (-1 = none), depth, one of its rows, and
    whether it is a function.
    """
    function, place, thread = table["function"], table["place"], table["thread"]
    process = table.trace.threads.process[thread].astype(np.int64)
    caller = np.array([table.parent(row) for row in range(len(table))], np.int64)
    numbers: dict[tuple[str, str, int], int] = {}
    key = np.full(len(function), -1, np.int64)
    for row in rows.tolist():  # the same address without a name is another function in another process
        owner = int(process[row]) if function[row].startswith("0x") else -1
        key[row] = numbers.setdefault((function[row], place[row], owner), len(numbers))
    node = np.full(len(function), -1, np.int64)
    parents, depths, heads = [np.array([-1])], [np.zeros(1, np.int64)], [rows[:1] if len(rows) else np.array([-1])]
    count, above = 1, np.zeros(len(function), np.int64)
    functions_from = 3 if is_by_thread else 1
    levels = [(rows, keys) for keys in ((process, thread) if is_by_thread else ())]
    depth_of_row = table["depth"]
    levels += [(rows[depth_of_row[rows] == depth], key) for depth in range(int(depth_of_row[rows].max(initial=-1)) + 1)]
    for level, (some, keys) in enumerate(levels, 1):
        is_nested = level > functions_from
        outer = node[caller[some]] if is_nested else above[some]
        pairs, head, inverse = np.unique(np.stack((outer, keys[some])), axis=1, return_index=True, return_inverse=True)
        numbered = count + inverse.reshape(-1)
        if level < functions_from:
            above[some] = numbered
        else:
            node[some] = numbered
        parents.append(pairs[0])
        depths.append(np.full(len(head), level))
        heads.append(some[head])
        count += len(head)
    depth = np.concatenate(depths)
    return node, np.concatenate(parents), depth, np.concatenate(heads), depth >= functions_from


def _names(
    table: Table, row_of_node: _Ints, depth: _Ints, is_function: NDArray[np.bool_]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return name and source position of each node of a flame graph: the root, processes, threads and functions."""
    function, place, trace = table["function"], table["place"], table.trace
    process = trace.threads.process[table["thread"]].tolist()
    names, places = ["All"], [""]
    for row, level, is_one in zip(row_of_node[1:].tolist(), depth[1:].tolist(), is_function[1:].tolist(), strict=True):
        owner = trace.process_name(process[row]) if level == 1 else table.text(row, "thread")
        names.append(function[row] if is_one else owner)
        places.append(place[row] if is_one else "")
    return tuple(names), tuple(places)


def _starts(parent: _Ints, depth: _Ints, width: _Ints) -> _Ints:
    """Return the left edge of each node of a flame graph: the widest child first, a node's own time last."""
    start = np.zeros(len(parent), np.int64)
    for level in range(1, int(depth.max()) + 1):
        nodes = np.flatnonzero(depth == level)
        nodes = nodes[np.lexsort((nodes, -width[nodes], parent[nodes]))]
        before = np.cumsum(width[nodes]) - width[nodes]
        is_new = np.diff(parent[nodes], prepend=-1) != 0
        begins = np.flatnonzero(is_new)
        start[nodes] = start[parent[nodes]] + before - before[begins[np.cumsum(is_new) - 1]]
    return start

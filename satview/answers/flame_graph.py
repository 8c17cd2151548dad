"""Flame graphs: each function is as wide as its share of the time or samples, with the functions it calls below it.

graph = flame_graph(function_table(trace))
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.table import Known, Table, least_known

_Ints = NDArray[np.int64]
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
        known: uint8, `Known` of all times of the node.
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
        """Return the node with a path; if it does not exist, the deepest node on the path that does."""
        node = ROOT
        for name in path:
            below = [child for child in self.below(node).tolist() if self.name[child] == name]
            if not below:
                break
            node = below[0]
        return node

    def below(self, node: int) -> _Ints:
        """Return the indices of the nodes directly below a node that have a width above 0, from left to right."""
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
    known[node[rows[table["total_known"][rows] != Known.EXACT.word]]] = Known.AT_LEAST
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
    """Return the node of each row, -1 = none; and of each node the parent, depth, one row, and `is_function`."""
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
    """Return the name and the source position of each node."""
    function, place, trace = table["function"], table["place"], table.trace
    process = trace.threads.process[table["thread"]].tolist()
    names, places = ["All"], [""]
    for row, level, is_one in zip(row_of_node[1:].tolist(), depth[1:].tolist(), is_function[1:].tolist(), strict=True):
        owner = trace.process_name(process[row]) if level == 1 else table.text(row, "thread")
        names.append(function[row] if is_one else owner)
        places.append(place[row] if is_one else "")
    return tuple(names), tuple(places)


def _starts(parent: _Ints, depth: _Ints, width: _Ints) -> _Ints:
    """Return the left edge of each node: the widest child is leftmost, a node's own time is right of its children."""
    start = np.zeros(len(parent), np.int64)
    for level in range(1, int(depth.max()) + 1):
        nodes = np.flatnonzero(depth == level)
        nodes = nodes[np.lexsort((nodes, -width[nodes], parent[nodes]))]
        before = np.cumsum(width[nodes]) - width[nodes]
        is_new = np.diff(parent[nodes], prepend=-1) != 0
        begins = np.flatnonzero(is_new)
        start[nodes] = start[parent[nodes]] + before - before[begins[np.cumsum(is_new) - 1]]
    return start

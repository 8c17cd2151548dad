"""What a condition may say, and what it must say, where a trace does not show all that a kernel knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from satview.filters.expressions import nodes
from satview.filters.expressions.semantics import code_table

_OF_PAYLOAD = (nodes.Argument, nodes.Word)


def bounded(node: nodes.Node, missing: NDArray[np.bool_], *, may: bool) -> nodes.Node:
    """Return a condition that holds where a given one may hold in a kernel, or only where it must.

    A kernel knows the priority of every thread, and all words of an event.

    Args:
        node: A two-valued condition (`three_valued`).
        missing: bool (32768,), codes of events that lack words which the kernel would have logged.
        may: Whether to return the condition that may hold, not the one that must.
    """
    if isinstance(node, nodes.And | nodes.Or):
        return replace(node, parts=tuple(bounded(part, missing, may=may) for part in node.parts))
    if isinstance(node, nodes.Not):
        return replace(node, part=bounded(node.part, missing, may=not may))
    start, end = node.start, node.end
    doubts: list[nodes.Node] = []
    if any(isinstance(part, nodes.Field) and part.name == "priority" for part in _parts(node)):
        thread = nodes.Known(start, end, nodes.Field(start, end, "pid"))
        priority = nodes.Known(start, end, nodes.Field(start, end, "priority"))
        doubts.append(nodes.And(start, end, (thread, nodes.Not(start, end, priority))))
    if missing.any() and any(
        isinstance(part, _OF_PAYLOAD) or (isinstance(part, nodes.Field) and part.name in ("text", "words"))
        for part in _parts(node)
    ):
        doubts.append(code_table(start, end, missing))
    if not doubts:
        return node
    doubt = nodes.Or(start, end, tuple(doubts))
    return nodes.Or(start, end, (node, doubt)) if may else nodes.And(start, end, (node, nodes.Not(start, end, doubt)))


def _parts(node: nodes.Node) -> list[nodes.Node]:
    return [node, *(inner for part in nodes.children(node) for inner in _parts(part))]

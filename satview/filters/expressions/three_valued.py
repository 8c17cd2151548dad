"""Conditions that may be unknown, as in SQL, made into conditions that are true or not: the one form that is evaluated.

A comparison with something unknown is unknown, `not` leaves it so, and only what is true is kept. Instead of carrying a
third value through every evaluator, `not` is moved down to the comparisons here: what is false is the opposite
comparison of known values. Columns, single events, C and the checks of rules read the result.
"""

from __future__ import annotations

from dataclasses import replace

from satview.events.spec import Release
from satview.filters.expressions import nodes
from satview.filters.expressions.operators import COMPARISONS
from satview.filters.expressions.semantics import NAMED, CodeTest, enters_state
from satview.filters.expressions.vocabulary import FIELDS, FieldKind


def two_valued(node: nodes.Node, release: Release, negated: bool = False) -> nodes.Node:
    """Return a condition that holds where a resolved one is true, and does not where that is false or unknown.

    Args:
        node: The condition, as `semantics.resolve` returns it.
        release: Whose names it uses.
        negated: Whether it is to hold where the condition is false instead.

    Returns:
        A tree without `nodes.Is`; `nodes.Not` means there that its part does not hold.
    """
    if isinstance(node, nodes.Not):
        return replace(two_valued(node.part, release, not negated), start=node.start, end=node.end)
    if isinstance(node, nodes.And | nodes.Or):
        joint = nodes.And if isinstance(node, nodes.And) is not negated else nodes.Or
        return joint(node.start, node.end, tuple(two_valued(part, release, negated) for part in node.parts))
    is_two_valued = isinstance(node, nodes.Is | nodes.Known)
    if isinstance(node, nodes.Is):
        node = replace(two_valued(node.value, release, node.word == "false"), start=node.start, end=node.end)
    if isinstance(node, nodes.Known) and isinstance(node.value, nodes.Field):
        kind = FIELDS[node.value.name].kind
        if kind is FieldKind.STATE:
            node = enters_state(node.start, node.end, release)
        elif kind in NAMED:  # each event has a class and a name
            node = replace(node, value=nodes.Number(node.start, node.end, 1))
    if not negated:
        return node
    if is_two_valued:
        return nodes.Not(node.start, node.end, node)
    if isinstance(node, nodes.TimeTest) or (isinstance(node, nodes.Compare) and not isinstance(node.right, nodes.Text)):
        return replace(node, sign=COMPARISONS[node.sign].opposite)
    opposite = nodes.Not(node.start, node.end, node)
    known = _known_parts(node, release)
    return nodes.And(node.start, node.end, (*known, opposite)) if known else opposite


def _known_parts(node: nodes.Node, release: Release) -> tuple[nodes.Node, ...]:
    """Return what has to hold for a comparison not to be unknown, each at the position of the comparison."""
    start, end = node.start, node.end
    if isinstance(node, CodeTest):
        return (enters_state(start, end, release),) if node.kind is FieldKind.STATE else ()
    if isinstance(node, nodes.Field):
        return (nodes.Known(start, end, node),)
    if isinstance(node, nodes.In) and not isinstance(node.items[0], nodes.Text):
        values = (value for value in (node.value, *node.items) if not isinstance(value, nodes.Number))
        return tuple(nodes.Known(start, end, value) for value in values)
    if isinstance(node, nodes.Compare):
        return (nodes.Known(start, end, node.left, as_text=True),)
    assert isinstance(node, nodes.In | nodes.PatternMatch)
    return (nodes.Known(start, end, node.value, as_text=True),)

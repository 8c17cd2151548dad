"""Operators of expressions: one entry says the same for one event and for many, and has its function in C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events.spec import Release
from satview.export.c_program import parts
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.nodes import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    LEVELS,
    of_columns,
    of_numbers,
)

ALL = {**ARITHMETIC, **FUNCTIONS}
edges = st.sampled_from([0, 1, -1, 63, 64, 65, -64, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, -(1 << 63)])
numbers = st.one_of(edges, st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-70, 70))


@pytest.mark.parametrize("sign", ALL)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_columns_say_what_single_events_say(sign, pairs):
    operator = ALL[sign]
    arrays = [np.array(column, np.int64) for column in list(zip(*pairs, strict=True))[: operator.count]]
    values, known = of_columns(operator, *((array, True) for array in arrays))
    known = np.broadcast_to(known, (len(pairs),))
    for i, pair in enumerate(pairs):
        expected = of_numbers(operator, *pair[: operator.count])
        assert (int(values[i]) if known[i] else None) == expected, (sign, pair)


@pytest.mark.parametrize("sign", ALL)
@given(numbers, numbers)
def test_constants_stay_constants(sign, x, y):
    operator = ALL[sign]
    value, known = of_columns(operator, *((number, True) for number in (x, y)[: operator.count]))
    assert (value if known else None) == of_numbers(operator, *(x, y)[: operator.count])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -4),
        ("-7 % 3", 2),
        ("1 / 0", None),
        ("1 << 63", -(1 << 63)),
        ("1 << 64", None),
        ("abs(-5)", 5),
        ("min(3, -4)", -4),
        ("max(3, -4)", 3),
        ("signed(0xffffffff)", -1),
        ("bit(6, 1)", 1),
        ("bit(6, 64)", None),
        ("2 + 3 * 4", 14),
        ("6 & 3 | 8", 10),
        ("9223372036854775807 + 1", -(1 << 63)),
    ],
)
def test_values_that_can_be_checked_by_hand(text, expected):
    tree = Expression(f"pid == {text}", Release.QNX_7).tree

    def value(node):
        if hasattr(node, "value") and isinstance(node.value, int):
            return node.value
        if hasattr(node, "arguments"):
            return of_numbers(FUNCTIONS[node.name], *map(value, node.arguments))
        if hasattr(node, "part"):
            return of_numbers(ARITHMETIC["-"], 0, value(node.part))
        return of_numbers(ARITHMETIC[node.sign], value(node.left), value(node.right))

    assert value(tree.right) == expected


def test_what_is_not_known_stays_unknown():
    known = np.array([True, False])
    values, still = of_columns(ARITHMETIC["+"], (np.array([1, 2]), known), (5, True))
    assert (values.tolist(), still.tolist()) == ([6, 7], [True, False])
    assert of_columns(ARITHMETIC["+"], (0, False), (5, True)) == (0, False)


def test_every_operator_has_its_function_in_exported_programs():
    assert {operator.c_name for operator in (*ALL.values(), *COMPARISONS.values())} <= set(parts())
    assert sorted(sign for level in LEVELS for sign in level) == sorted(ARITHMETIC)


@pytest.mark.parametrize("sign", COMPARISONS)
@given(numbers, numbers)
def test_a_swapped_comparison_says_the_same(sign, x, y):
    entry = COMPARISONS[sign]
    assert entry.scalar(x, y) == COMPARISONS[entry.swapped].scalar(y, x)
    assert entry.scalar(x, y) == bool(entry.columns(np.array([x]), np.array([y]))[0])

"""How much a run tests: the usual run meets every pair of a matrix, the complete one (`--complete`) every point of it.

`make test` is the usual run and `make test-all` the complete one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, TypeVar

import pytest

_STATE = {"complete": False}
_Value = TypeVar("_Value")
Axis = Sequence[Any] | Mapping[str, Any]  # values, or values by the label that a test's id shows
WIDTH = {"fast": False, "wide": True}
LOSS = {"whole": False, "loss": True}
RING = {"loss": False, "ring": True}


def set_complete(is_complete: bool) -> None:
    """Choose the extent, before any test module is imported."""
    _STATE["complete"] = is_complete


def usually(usual: _Value, complete: _Value) -> _Value:
    """Return what the usual run takes, or the complete one: a number of random inputs, a list of sizes."""
    return complete if _STATE["complete"] else usual


def points(**axes: Axis) -> pytest.MarkDecorator:
    """Return a parametrization by the points of a matrix: all of them, or enough to meet every pair of values."""
    return pytest.mark.parametrize(list(axes), [pytest.param(*values, id=name) for name, values in _points(axes)])


def fixture_params(**axes: Axis) -> list[Any]:
    """Return the same points as parameters of a fixture, which gets the values of each as one tuple."""
    return [pytest.param(values, id=name) for name, values in _points(axes)]


def _points(axes: Mapping[str, Axis]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    labelled = [list(_labelled(values)) for values in axes.values()]
    sizes = [len(values) for values in labelled]
    for point in product(*map(range, sizes)) if _STATE["complete"] else sorted(pairwise_cover(sizes)):
        names, values = zip(*(axis[at] for axis, at in zip(labelled, point, strict=True)), strict=True)
        yield "-".join(names), values


def pairwise_cover(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return points that have every two values of different axes together at least once; always the same ones.

    Args:
        sizes: Number of values of each axis.

    Returns:
        Positions on the axes, each point once. Greedy: the next point is one that has most pairs not met yet.
    """
    if len(sizes) < 3:
        return list(product(*map(range, sizes)))
    axes = list(combinations(range(len(sizes)), 2))
    left = {(a, b, x, y) for a, b in axes for x in range(sizes[a]) for y in range(sizes[b])}
    every, selected = list(product(*map(range, sizes))), []
    most = len(axes)
    while left:
        for point in every:
            pairs = [(a, b, point[a], point[b]) for a, b in axes]
            if sum(pair in left for pair in pairs) >= most:
                selected.append(point)
                left.difference_update(pairs)
                break
        else:
            most -= 1  # no point has that many any more
    return selected


def _labelled(values: Axis) -> list[tuple[str, Any]]:
    if isinstance(values, Mapping):
        return list(values.items())
    return [(getattr(value, "__name__", None) or str(value), value) for value in values]

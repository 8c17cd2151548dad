"""How much a run tests of a matrix: every value (the usual run), every pair of values or every point.

`make test` is the usual run. `make test EXTENT=--thorough` meets every pair and is what CI runs. `make test-all`, with
`--complete`, meets every point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import combinations, product
from typing import Any, TypeVar

import pytest


class Extent(IntEnum):
    """How much is tested."""

    USUAL = 0
    THOROUGH = 1
    COMPLETE = 2


_STATE = {"extent": Extent.USUAL}
_Value = TypeVar("_Value")
Axis = Sequence[Any] | Mapping[str, Any]  # values, or values by the label that a test's id shows
WIDTH = {"fast": False, "wide": True}
LOSS = {"whole": False, "loss": True}
RING = {"loss": False, "ring": True}


def set_extent(extent: Extent) -> None:
    """Set the extent, before any test module is imported."""
    _STATE["extent"] = extent


def usually(usual: _Value, complete: _Value, thorough: _Value | None = None) -> _Value:
    """Return what this run takes: a number of random inputs, a list of sizes.

    Args:
        usual: For the usual run.
        complete: For the complete run.
        thorough: For the thorough run; None where that takes what the usual one takes.
    """
    if _STATE["extent"] is Extent.COMPLETE:
        return complete
    return thorough if _STATE["extent"] is Extent.THOROUGH and thorough is not None else usual


def fewer(values: Sequence[_Value], count: int) -> Sequence[_Value]:
    """Return the first values alone in the usual run: of those that each start a process or compile a program."""
    return usually(values[:count], complete=values, thorough=values)


def points(**axes: Axis) -> pytest.MarkDecorator:
    """Return a parametrization by points of a matrix: enough to meet every value, or every pair of values, or all."""
    return pytest.mark.parametrize(list(axes), [pytest.param(*values, id=name) for name, values in _points(axes)])


def fixture_params(**axes: Axis) -> list[Any]:
    """Return the same points as parameters of a fixture, which gets the values of each as one tuple."""
    return [pytest.param(values, id=name) for name, values in _points(axes)]


def _points(axes: Mapping[str, Axis]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    labelled = [list(_labelled(values)) for values in axes.values()]
    sizes = [len(values) for values in labelled]
    for point in sorted(_COVERS[_STATE["extent"]](sizes)):
        names, values = zip(*(axis[at] for axis, at in zip(labelled, point, strict=True)), strict=True)
        yield "-".join(names), values


def every_point(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all points of axes with `sizes` values each."""
    return list(product(*map(range, sizes)))


def value_cover(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return as few points as have every value of every axis at least once; always the same ones.

    Each point takes of every axis a value that was taken least often, of those the one that has met fewest of the
    point's other values, so that few pairs of values are left out where one axis is long.
    """
    uses = [[0] * size for size in sizes]
    meetings: Counter[tuple[int, int, int, int]] = Counter()  # how often two values of two axes have met
    points: list[tuple[int, ...]] = []
    for _ in range(max(sizes)):
        point: list[int] = []
        for axis, size in enumerate(sizes):
            met = [sum(meetings[other, own, axis, value] for other, own in enumerate(point)) for value in range(size)]
            value = min(range(size), key=lambda value, axis=axis, met=met: (uses[axis][value], met[value]))
            uses[axis][value] += 1
            meetings.update((other, own, axis, value) for other, own in enumerate(point))
            point.append(value)
        points.append(tuple(point))
    return points


def pairwise_cover(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return points that have every two values of different axes together at least once; always the same ones.

    Args:
        sizes: Number of values of each axis.

    Returns:
        Positions on the axes, each point once. Greedy: the next point is one that has most pairs not met yet.
    """
    if len(sizes) < 3:
        return every_point(sizes)
    axes = list(combinations(range(len(sizes)), 2))
    left = {(a, b, x, y) for a, b in axes for x in range(sizes[a]) for y in range(sizes[b])}
    every, selected = every_point(sizes), []
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


_COVERS = {Extent.USUAL: value_cover, Extent.THOROUGH: pairwise_cover, Extent.COMPLETE: every_point}


def _labelled(values: Axis) -> list[tuple[str, Any]]:
    if isinstance(values, Mapping):
        return list(values.items())
    return [(getattr(value, "__name__", None) or str(value), value) for value in values]

"""Steps that come again and again: where a chain or a path goes round, and how often."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_MOST_STEPS: Final = 16  # in one round
_LEAST_ROUNDS: Final = 4  # of less there is nothing to fold: the first and the last one are shown


@dataclass(frozen=True, slots=True)
class Rounds:
    """Steps that come several times, one round right after the other.

    Attributes:
        first: Number of the first step of the first round, from 0.
        size: Steps in a round.
        count: Rounds.
    """

    first: int
    size: int
    count: int

    @property
    def folded(self) -> range:
        """The steps of all rounds but the first and the last."""
        return range(self.first + self.size, self.first + self.size * (self.count - 1))


def find_rounds(steps: Sequence[Hashable]) -> list[Rounds]:
    """Return where four rounds or more of the same steps follow each other, in order; none of them overlap.

    Where several sizes of a round fit, that which covers most steps is taken, of those the smallest.

    Args:
        steps: What each step is; equal ones are the same.
    """
    numbers: dict[Hashable, int] = {}
    number = np.array([numbers.setdefault(step, len(numbers)) for step in steps], np.int64)
    covered = np.zeros((_MOST_STEPS + 1, len(steps)), np.int64)
    for size in range(1, min(_MOST_STEPS, len(steps) // _LEAST_ROUNDS) + 1):
        differs = np.append(np.flatnonzero(number[:-size] != number[size:]), len(steps) - size)
        at = np.arange(len(steps) - size)
        rounds = (differs[np.searchsorted(differs, at)] - at) // size + 1
        covered[size, : len(at)] = np.where(rounds >= _LEAST_ROUNDS, rounds * size, 0)
    sizes, out = covered.argmax(axis=0).tolist(), list[Rounds]()
    step = 0
    while step < len(steps):
        size = int(sizes[step])
        count = int(covered[size, step]) // size if size else 0
        if count:
            out.append(Rounds(step, size, count))
        step += size * count or 1
    return out

"""What the filter of a window is at one moment: an immutable value, so that undo is keeping the old one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from satview.filters.rules.rule_line import without_comment
from satview.filters.views.passes import Effect, Pass, PassStack

Mask = NDArray[np.bool_]
_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, eq=False)
class FilterState:
    """Check boxes, conditions and rules together.

    Attributes:
        codes: bool, shape (32768,): events that are checked. Never changed in place.
        threads: bool, shape (threads,): threads that are checked. Never changed in place.
        effect: What happens to events that are not checked (`MARK`: to those that are).
        stack: Conditions and rules.
        is_wide: Code to the form it is shown in: True = wide, False = fast; codes not named show as they were logged.
    """

    codes: Mask
    threads: Mask
    effect: Effect = Effect.HIDE
    stack: PassStack = field(default_factory=PassStack)
    is_wide: Mapping[int, bool] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def chooses(self) -> bool:
        """True if some check box is off."""
        return not (self.codes.all() and self.threads.all())

    @property
    def is_active(self) -> bool:
        """True if some check box is off, or some condition or rule is on."""
        return self.chooses or any(item.is_on for item in self.stack.passes)

    def same(self, other: FilterState) -> bool:
        """Return whether two states are equal."""
        return (
            (self.effect, self.stack, self.is_wide) == (other.effect, other.stack, other.is_wide)
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.threads, other.threads)
        )

    def for_threads(self, count: int) -> FilterState:
        """Return the filter for a longer reading of the file, whose thread table begins with the same threads.

        New ones are checked as row 0 is, the unknown thread: where only some are selected, they stay out.
        """
        if len(self.threads) == count:
            return self
        threads = np.full(count, self.threads[0])
        known = self.threads[:count]
        threads[: len(known)] = known
        return replace(self, threads=threads)

    def with_form(self, codes: list[int], form: str) -> FilterState:
        """Return the state with events shown `fast`, `wide`, or, for anything else, as they were logged."""
        forms = {code: wide for code, wide in self.is_wide.items() if code not in codes}
        if form in ("fast", "wide"):
            forms |= dict.fromkeys(codes, form == "wide")
        return replace(self, is_wide=MappingProxyType(forms))


def new_name(stack: PassStack) -> str:
    """Return a name for one more pass: A, B, ... Z, A2, ..."""
    taken = {item.name for item in stack.passes}
    rounds = [""] + [str(i) for i in range(2, len(taken) + 3)]
    return next(letter + number for number in rounds for letter in _NAMES if letter + number not in taken)


def pass_title(item: Pass) -> str:
    """Return what a pass is about, on one line."""
    lines = [without_comment(line).strip() for line in item.rules.splitlines()]
    rules = "; ".join(line for line in lines if line)
    text = " and ".join(part for part in (" ".join(item.expression.split()), rules) if part) or "everything"
    return f"not ({text})" if item.is_inverted else text

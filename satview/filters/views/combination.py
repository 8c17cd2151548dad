"""How named filters are combined: `A or not (B and C)`, as a small tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from satview.filters.diagnostics import ExpressionError, did_you_mean, nearest
from satview.filters.expressions.tokens import Kind, Token, tokens
from satview.filters.rows import Bools

MaskOf = Callable[[str, bool], Bools | None]
_NESTING_LIMIT: Final = 40


@dataclass(frozen=True, slots=True)
class Combination:
    """A filter by name, or `not` of one part, or `and` or `or` of several.

    Filters without a mask or a text are left out, and with them what consists of nothing else.

    Attributes:
        joint: `and`, `or`, `not`; empty for a filter.
        parts: What is combined.
        name: Of the filter.
    """

    joint: str
    parts: tuple[Combination, ...] = ()
    name: str = ""

    def mask(self, mask_of: MaskOf, negated: bool = False) -> Bools | None:
        """Return what the filters let through together, bool (events,); None if none of them has a mask.

        Args:
            mask_of: Returns the mask of a filter, or that of `not` the filter; an event for which it is unknown
                whether it fits is in neither.
            negated: Whether to return what fits `not` the combination.
        """
        if not self.joint:
            return mask_of(self.name, negated)
        if self.joint == "not":
            return self.parts[0].mask(mask_of, not negated)
        said = [mask for mask in (part.mask(mask_of, negated) for part in self.parts) if mask is not None]
        if not said:
            return None
        return np.asarray((np.logical_or if (self.joint == "or") is not negated else np.logical_and).reduce(said))

    def condition(self, conditions: Mapping[str, str]) -> str:
        """Return the condition that the filters' conditions make together; empty if none of them has one."""
        if not self.joint:
            return conditions.get(self.name, "")
        said = [(part, part.condition(conditions)) for part in self.parts]
        texts = [f"({text})" if part.joint in ("and", "or") else text for part, text in said if text]
        return f"not {texts[0]}" if self.joint == "not" and texts else f" {self.joint} ".join(texts)


def names_in(combination: str) -> set[str]:
    """Return the names a combination mentions; empty if it cannot be read."""
    try:
        found = tokens(combination)
    except ExpressionError:
        return set()
    return {
        token.text
        for token in found
        if token.kind is Kind.TEXT or (token.kind is Kind.NAME and token.text not in ("and", "or", "not"))
    }


def parse_combination(text: str, names: Iterable[str]) -> Combination:
    """Return the tree of a combination.

    Raises:
        ExpressionError: It is faulty or names no filter.
    """
    parser = _Parser(tokens(text), tuple(names))
    result = parser.any_of(0)
    if parser.token.kind is not Kind.END:
        raise parser.fault("and, or, or the end is expected here")
    return result


class _Parser:
    def __init__(self, found: list[Token], names: tuple[str, ...]) -> None:
        self.tokens, self.names, self.at = found, names, 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fault(self, message: str) -> ExpressionError:
        return ExpressionError(message, self.token.start, self.token.end)

    def takes(self, word: str) -> bool:
        is_it = self.token.kind is not Kind.TEXT and self.token.text == word
        self.at += is_it
        return is_it

    def any_of(self, depth: int) -> Combination:
        if depth > _NESTING_LIMIT:
            raise self.fault(f"brackets nested deeper than {_NESTING_LIMIT}")
        parts = [self.all_of(depth)]
        while self.takes("or"):
            parts.append(self.all_of(depth))
        return parts[0] if len(parts) == 1 else Combination("or", tuple(parts))

    def all_of(self, depth: int) -> Combination:
        parts = [self.single(depth)]
        while self.takes("and"):
            parts.append(self.single(depth))
        return parts[0] if len(parts) == 1 else Combination("and", tuple(parts))

    def single(self, depth: int) -> Combination:
        negations = 0
        while self.takes("not"):
            negations += 1
        part = self.named(depth)
        return Combination("not", (part,)) if negations % 2 else part

    def named(self, depth: int) -> Combination:
        if self.takes("("):
            inner = self.any_of(depth + 1)
            if not self.takes(")"):
                raise self.fault("a closing bracket is missing")
            return inner
        token = self.token
        if token.kind not in (Kind.NAME, Kind.TEXT):
            raise self.fault("the name of a filter is expected here")
        if token.text not in self.names:
            hints = nearest(token.text, self.names)
            raise ExpressionError(
                f"there is no filter {token.text[:40]!r}{did_you_mean(hints)}", token.start, token.end, hints
            )
        self.at += 1
        return Combination("", (), token.text)

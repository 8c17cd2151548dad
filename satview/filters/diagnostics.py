"""Faults in rules and expressions, with their position in the text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from satview.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A fault in a rule or expression, or a hint on it, with its position in the text.

    Attributes:
        message: One sentence, which includes the most similar valid names.
        start: Position of the first character concerned, from 0, in the line or expression.
        end: Position after the last character concerned.
        line: Line number from 1 in a rule file; 0 in a lone expression.
        suggestions: Valid names that are similar to the faulty one, the most similar first.
    """

    message: str
    start: int
    end: int
    line: int = 0
    suggestions: tuple[str, ...] = ()

    @property
    def column(self) -> int:
        """Column of the first character, counted from 1 as in editors."""
        return self.start + 1

    def __str__(self) -> str:
        position = f"line {self.line}, column {self.column}" if self.line else f"column {self.column}"
        return f"{position}: {self.message}"


class RuleError(UsageError):
    """Rules or an expression that cannot be used as written, with at least one fault, in text order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(str(fault) for fault in self.diagnostics[:5]))


class ExpressionPart(Protocol):
    """A part of an expression, with its position in the text."""

    @property
    def start(self) -> int:
        """Position of the first character."""

    @property
    def end(self) -> int:
        """Position after the last character."""


class ExpressionError(RuleError):
    """A fault in one expression, with the position and suggestions of its only element of `diagnostics`."""

    def __init__(self, message: str, start: int, end: int, suggestions: Iterable[str] = ()) -> None:
        fault = Diagnostic(message, start, end, 0, tuple(suggestions))
        self.message, self.start, self.end, self.suggestions = fault.message, start, end, fault.suggestions
        super().__init__([fault])

    @classmethod
    def of(cls, part: ExpressionPart, message: str, suggestions: Iterable[str] = ()) -> ExpressionError:
        """Return the error for a faulty token or syntax tree node, at its position."""
        return cls(message, part.start, part.end, suggestions)


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return up to `count` known names that are most similar to a misspelt `word`; case does not matter."""
    names = {name.upper(): name for name in known}
    # A word from an untrusted file may be a megabyte long; names are short.
    return tuple(
        names[spelling] for spelling in difflib.get_close_matches(word[:64].upper(), names, n=count, cutoff=0.55)
    )


def named_by(text: str, names: Sequence[str]) -> list[int]:
    """Return the indices of names equal to `text`, or if there are none, of names that contain it; case is ignored."""
    requested, folded = text.casefold(), [name.casefold() for name in names]
    return [row for row, name in enumerate(folded) if name == requested] or [
        row for row, name in enumerate(folded) if requested in name
    ]


def did_you_mean(suggestions: Iterable[str]) -> str:
    """Return the end of an error message, `; did you mean A or B?`; empty if there are no suggestions."""
    names = tuple(suggestions)
    return f"; did you mean {' or '.join(names)}?" if names else ""

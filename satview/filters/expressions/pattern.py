"""Regular expressions and globs with bounded cost for any pattern and text.

Python's `re` backtracks, so that a pattern from an untrusted file could run for years. RE2 takes linear time, and a
budget stops patterns that are too costly even so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from satview.filters.diagnostics import ExpressionError

PATTERN_LIMIT: Final = 500  # characters
SIZE_LIMIT: Final = 10_000  # instructions of RE2
TEXT_LIMIT: Final = 4096  # characters of a text that are searched
STEP_BUDGET: Final = 20_000_000_000  # bytes times instructions per evaluation, each at most a nanosecond in RE2

SET: Final = r"\[\^?(?:\[:\^?\w+:\]|\\.|[^\\])(?:\[:\^?\w+:\]|\\.|[^\\\]])*\]"
"""A set in square brackets; a closing bracket that comes first belongs to the set."""
_GLOB_PART: Final = re.compile(rf"\*+|{SET}|.", re.DOTALL)


class Pattern:
    """A compiled pattern.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether it ignores case, as after `/i`.
        is_glob: Whether it is a glob, which must match the whole text.
        offset: Its position in the expression, for error messages.

    Attributes:
        allowance: Budget per evaluation; patterns of one expression share a budget.

    Raises:
        ExpressionError: RE2 rejects it, or it exceeds the limits above.
    """

    def __init__(self, text: str, ignores_case: bool, is_glob: bool, offset: int) -> None:
        self.text, self.ignores_case, self.is_glob = text, ignores_case, is_glob
        self.allowance = self._budget = STEP_BUDGET
        end = offset + len(text)
        if len(text) > PATTERN_LIMIT:
            raise ExpressionError(f"a pattern may have {PATTERN_LIMIT} characters", offset, end)
        compiled = compile_source(_source_of_glob(text) if is_glob else text, ignores_case, offset, end)
        if compiled.programsize > SIZE_LIMIT:
            raise ExpressionError("the pattern is too large once its repetitions are written out", offset, end)
        self._cost = compiled.programsize
        self._search = compiled.fullmatch if is_glob else compiled.search

    def refill(self) -> None:
        """Reset the budget; called at the start of an evaluation."""
        self._budget = self.allowance

    def matches(self, text: str) -> bool:
        """Return whether the pattern occurs in the first 4096 characters of a text (globs: matches all of them).

        Raises:
            ExpressionError: The budget of this evaluation is used up.
        """
        data = text[:TEXT_LIMIT].encode("utf-8", "surrogatepass")
        self._budget -= (len(data) + 1) * self._cost
        if self._budget < 0:
            raise ExpressionError(f"the pattern {self.text[:40]!r} takes too long on this trace; make it simpler", 0, 0)
        return self._search(data) is not None


def compile_source(source: str, ignores_case: bool, start: int = 0, end: int = 0) -> Any:
    """Return a pattern compiled by RE2; `start` and `end` are its position, for error messages.

    Raises:
        ExpressionError: RE2 rejects it.
    """
    import re2  # at the first use, as a window without patterns does not need it

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignores_case
    try:
        return re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ExpressionError(f"the pattern cannot be used: {reason}", start, end) from None


def glob_parts(text: str) -> Iterator[str]:
    """Yield the parts of a glob: `*`, `?`, sets such as `[abc]`, and literal characters."""
    for part in _GLOB_PART.findall(text):
        yield "*" if part.startswith("*") else part


def _source_of_glob(text: str) -> str:
    wildcards = {"*": "(?s:.*)", "?": "(?s:.)"}
    return "".join(wildcards.get(part) or (part if len(part) > 1 else re.escape(part)) for part in glob_parts(text))


def share_budget(patterns: Sequence[Pattern]) -> None:
    """Divide one budget among patterns that are used together."""
    for pattern in patterns:
        pattern.allowance = STEP_BUDGET // len(patterns)


def regex(text: str, ignores_case: bool = False, offset: int = 0) -> Pattern:
    """Return a compiled regular expression, in the syntax of RE2, which matches a part of a text.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether it ignores case.
        offset: Its position in the expression, for error messages.

    Raises:
        ExpressionError: It is faulty or exceeds the limits.
    """
    return Pattern(text, ignores_case, False, offset)


def glob(text: str, offset: int = 0) -> Pattern:
    """Return a compiled glob for whole texts: `*` matches any characters, `?` one, `[abc]` one of those in brackets.

    Raises:
        ExpressionError: It exceeds the limits, or a set in it is faulty.
    """
    return Pattern(text, False, True, offset)

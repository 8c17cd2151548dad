"""Regular expressions and globs whose cost is bounded whatever the pattern and the text are.

Python's `re` backtracks: a pattern from a stranger's file can keep it busy for years. RE2 reads each character of a
text once. A budget stops a pattern that is costly even so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from satview.filters.diagnostics import ExpressionError

PATTERN_LIMIT: Final = 500  # characters
SIZE_LIMIT: Final = 10_000  # instructions of RE2
TEXT_LIMIT: Final = 4096  # characters looked at
STEP_BUDGET: Final = 20_000_000_000  # bytes times instructions per evaluation: RE2 takes a nanosecond each at worst

SET: Final = r"\[\^?(?:\[:\^?\w+:\]|\\.|[^\\])(?:\[:\^?\w+:\]|\\.|[^\\\]])*\]"
"""A set in square brackets; a closing one that comes first belongs to the set."""
_GLOB_PART: Final = re.compile(rf"\*+|{SET}|.", re.DOTALL)


class Pattern:
    """A compiled pattern.

    Args:
        text: As written, without slashes.
        ignores_case: True after `/i`.
        is_glob: The whole text has to fit, not a part of it.
        offset: Where it begins in the expression, for error positions.

    Attributes:
        allowance: Its budget per evaluation; patterns that are used together share one.

    Raises:
        ExpressionError: RE2 does not take it, or it is larger than the limits above.
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
        """Grant a new budget; called at the start of an evaluation."""
        self._budget = self.allowance

    def matches(self, text: str) -> bool:
        """Return whether the pattern occurs in a text (globs: fits the whole of it); 4096 characters are looked at.

        Raises:
            ExpressionError: The budget of this evaluation is used up.
        """
        data = text[:TEXT_LIMIT].encode("utf-8", "surrogatepass")
        self._budget -= (len(data) + 1) * self._cost
        if self._budget < 0:
            raise ExpressionError(f"the pattern {self.text[:40]!r} takes too long on this trace; make it simpler", 0, 0)
        return self._search(data) is not None


def compile_source(source: str, ignores_case: bool, start: int = 0, end: int = 0) -> Any:
    """Return what RE2 makes of a pattern in its syntax; `start` and `end` say where it is written.

    Raises:
        ExpressionError: RE2 does not take it.
    """
    import re2  # on first use: a window without patterns need not wait for it

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignores_case
    try:
        return re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ExpressionError(f"the pattern cannot be used: {reason}", start, end) from None


def glob_parts(text: str) -> Iterator[str]:
    """Yield the parts of a glob: `*`, `?`, sets such as `[abc]`, and characters that stand for themselves."""
    for part in _GLOB_PART.findall(text):
        yield "*" if part.startswith("*") else part


def _source_of_glob(text: str) -> str:
    wildcards = {"*": "(?s:.*)", "?": "(?s:.)"}
    return "".join(wildcards.get(part) or (part if len(part) > 1 else re.escape(part)) for part in glob_parts(text))


def share_budget(patterns: Sequence[Pattern]) -> None:
    """Let patterns that are used together cost no more than one."""
    for pattern in patterns:
        pattern.allowance = STEP_BUDGET // len(patterns)


def regex(text: str, ignores_case: bool = False, offset: int = 0) -> Pattern:
    """Return a compiled regular expression, in the syntax of RE2; it has to fit a part of a text.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether capitals match small letters.
        offset: Where it begins in the expression, for error positions.

    Raises:
        ExpressionError: It is faulty, or larger than the limits.
    """
    return Pattern(text, ignores_case, False, offset)


def glob(text: str, offset: int = 0) -> Pattern:
    """Return a compiled glob: `*` any characters, `?` one, `[abc]` one of; the whole text has to fit.

    Raises:
        ExpressionError: It is longer than the limits allow, or a set in it is faulty.
    """
    return Pattern(text, False, True, offset)

"""Regular expressions and globs whose cost is bounded whatever the pattern and the text are.

Python's `re` backtracks: a pattern from a stranger's file can keep it busy for years. RE2 reads each character of a
text once. The pattern is parsed here, which gives faults with their position and one meaning for views and for exported
programs, and handed to RE2 in its plainest form: sets of code points, and what repeats them. A budget stops a pattern
that is costly even so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.pattern_syntax import PatternNode, Ranges, parse_glob, parse_regex, size_of

TEXT_LIMIT: Final = 4096  # characters looked at
STEP_BUDGET: Final = 20_000_000_000  # bytes times instructions per evaluation: RE2 takes a nanosecond each at worst


class Pattern:
    """A compiled pattern.

    Args:
        text: As written, without slashes.
        root: Its tree.
        ignores_case: True after `/i`.
        is_whole: True for globs: the whole text has to fit, not a part of it.
        offset: Where it begins in the expression, for error positions.

    Attributes:
        allowance: Its budget per evaluation; patterns that are used together share one.

    Raises:
        ExpressionError: RE2 does not take it.
    """

    def __init__(self, text: str, root: PatternNode, ignores_case: bool, is_whole: bool, offset: int) -> None:
        self.text, self.root, self.ignores_case, self.is_whole = text, root, ignores_case, is_whole
        self._search = _compiled(root, is_whole, text, offset).search
        self._cost = size_of(root) + 1
        self.allowance = self._budget = STEP_BUDGET

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


def _compiled(root: PatternNode, is_whole: bool, text: str, offset: int) -> Any:
    import re2  # on first use: a window without patterns need not wait for it

    options = re2.Options()
    options.log_errors = False
    source = regex_of(root)
    try:
        return re2.compile(rf"\A(?:{source})\z" if is_whole else source, options)
    except re2.error as error:
        detail = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ExpressionError(f"the pattern cannot be used: {detail}", offset, offset + len(text)) from None


def regex_of(node: PatternNode) -> str:
    """Return a part of a pattern in the syntax of RE2."""
    if node.kind == "set":
        return _set_of(node.ranges)
    if node.kind in ("start", "end"):
        return r"\A" if node.kind == "start" else r"\z"
    if node.kind == "cat":
        return "".join(map(regex_of, node.parts))
    if node.kind == "alt":
        return f"(?:{'|'.join(map(regex_of, node.parts))})"
    part = node.parts[0]
    if not size_of(part):  # nothing, however often
        return ""
    return f"(?:{regex_of(part)}){{{node.low},{'' if node.high < 0 else node.high}}}"


def _set_of(ranges: Ranges) -> str:
    items = "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in ranges)
    return f"[{items}]" if items else r"[^\x{0}-\x{10ffff}]"


def share_budget(patterns: Sequence[Pattern]) -> None:
    """Let patterns that are used together cost no more than one."""
    for pattern in patterns:
        pattern.allowance = STEP_BUDGET // len(patterns)


def regex(text: str, ignores_case: bool = False, offset: int = 0) -> Pattern:
    """Return a compiled regular expression.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether capitals match small letters.
        offset: Where it begins in the expression, for error positions.

    Raises:
        ExpressionError: It is faulty, or larger than the limits.
    """
    return Pattern(text, parse_regex(text, ignores_case, offset), ignores_case, False, offset)


def glob(text: str, offset: int = 0) -> Pattern:
    """Return a compiled glob: `*` any characters, `?` one, `[abc]` one of; the whole text has to fit.

    Raises:
        ExpressionError: It is longer than the limits allow.
    """
    return Pattern(text, parse_glob(text, offset), False, True, offset)

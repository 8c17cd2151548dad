"""Names of processes and threads as people type them: `devb-*`, or several with a heading for groups of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from satview.base.errors import UsageError
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.pattern import glob

Fits = Callable[[str], bool]
_MOST: Final = 200
_WILD: Final = "*?["


def fits_name(text: str) -> Fits:
    """Return a test whether a name fits a pattern: the name itself, or with `*`, `?` and `[abc]` in it.

    Raises:
        UsageError: The pattern is faulty.
    """
    if not any(char in text for char in _WILD):
        return text.__eq__
    try:
        return glob(text).matches
    except ExpressionError as error:
        raise UsageError(f"{text[:40]!r} is no pattern of names: {error}") from error


def parse_groups(text: str) -> tuple[tuple[str, Fits], ...]:
    """Return headings with a test whether a name belongs there: `Drivers: devb-*, io-*; HMI: hmi*`.

    A group without a heading has its patterns for one.

    Raises:
        UsageError: There is no pattern, one is faulty, or two groups have one heading.
    """
    groups: dict[str, Fits] = {}
    for part in text.replace("\n", ";").split(";"):
        title, colon, rest = part.partition(":")
        names = [name.strip() for name in (rest if colon else title).split(",") if name.strip()]
        if not names:
            continue
        heading = title.strip() if colon and title.strip() else ", ".join(names)
        if heading in groups:
            raise UsageError(f"two groups are called {heading[:40]!r}")
        groups[heading] = _any_of(names)
    if not groups:
        raise UsageError(
            "write patterns of names of processes, such as devb-*, io-* or Drivers: devb-*, io-*; HMI: hmi*"
        )
    if len(groups) > _MOST:
        raise UsageError(f"there can be {_MOST} groups at a time")
    return tuple(groups.items())


def _any_of(names: list[str]) -> Fits:
    rules = [fits_name(name) for name in names]
    return lambda text: any(fits(text) for fits in rules)

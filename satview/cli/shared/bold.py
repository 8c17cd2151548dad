"""Bold and dim text on the terminal, for what needs no more: the package for tables takes 25 ms to import."""

from __future__ import annotations

import os
import sys
from typing import Final

NO_TERMINALS: Final = ("", "dumb", "unknown")


def bold(text: str) -> str:
    """Return a text as a terminal shows it in bold; as it is where standard output is none."""
    return _styled(text, 1)


def dim(text: str) -> str:
    """Return a text as a terminal shows it dimmed; as it is where standard output is none."""
    return _styled(text, 2)


def _styled(text: str, number: int) -> str:
    if not sys.stdout.isatty() or os.environ.get("TERM", "") in NO_TERMINALS:
        return text
    return f"\x1b[{number}m{text}\x1b[0m"

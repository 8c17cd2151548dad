"""Bold and dim text, and tables, on the terminal."""

from __future__ import annotations

import os
import sys
from typing import Final

from rich.console import Console
from rich.markup import escape

from satview.base.safe_text import visible_line

NO_TERMINALS: Final = ("", "dumb", "unknown")
_NO_LIMIT: Final = None


class _Console(Console):
    """Leaves a reader that went away to the command line, which knows the right exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console(width: int | None = _NO_LIMIT) -> Console:
    """Return a console on standard output.

    Args:
        width: Characters a line may have in a file or a pipe: one line per row, however long; None = as rich has it.
    """
    return _Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else width)


def cell(text: str) -> str:
    """Return text of a trace for a console: neither mark-up nor control characters of it are carried out."""
    return escape(visible_line(text))


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

"""Tables on the terminal; imported when there is something to print, for the package behind it takes its time."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.markup import escape

from satview.base.safe_text import visible_line

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

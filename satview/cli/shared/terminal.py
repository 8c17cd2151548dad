"""The terminal: bold and dim text, and a progress line on standard error with the share done and the time left.

The line appears after half a second and is erased when the work ends. It is not written to a pipe or a file.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from satview.base.safe_text import visible_line

NO_TERMINALS: Final = ("", "dumb", "unknown")
DELAY_S: float = 0.5  # work that ends earlier shows no progress line
_REFRESH_S: Final = 0.1
_MOST_NAME: Final = 40
Report = Callable[[float], None]


class _ProgressLine:
    """A progress line that a second thread shows while the main thread works: the share done, 0 to 1, or words."""

    def __init__(self, what: str, *, has_no_end: bool = False) -> None:
        self.what, self.has_no_end = what, has_no_end
        self.share: float | None = None
        self.words = ""
        self.is_over = threading.Event()

    def report(self, share: float) -> None:
        """Set the share of the work that is done, 0 to 1."""
        self.share = share

    def tell(self, words: str) -> None:
        """Set the text to show for work without a known end."""
        self.words = words

    def show(self) -> None:
        """Show the line from `DELAY_S` on until the work ends, then erase it."""
        if not self.is_over.wait(DELAY_S):
            with suppress(OSError, ValueError):  # the terminal was closed
                self._show()

    def _show(self) -> None:
        texts = [TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[left]")]
        bar = () if self.has_no_end else (BarColumn(20), TaskProgressColumn())
        columns = (texts[0], *bar, TimeElapsedColumn(), texts[1])
        # Output of programs in a capture is printed above the line; output to a pipe or a file is not changed.
        with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False,
                      redirect_stdout=sys.stdout.isatty()) as progress:  # fmt: skip
            task = progress.add_task(self.what, total=None, left="")
            while not self.is_over.is_set():
                if self.has_no_end:
                    progress.update(task, left=visible_line(self.words))
                elif self.share is not None:
                    left_s = progress.tasks[0].time_remaining
                    left = "" if left_s is None else f"{left_s // 60:.0f}:{left_s % 60:02.0f} left"
                    progress.update(task, total=1.0, completed=self.share, left=left)
                progress.refresh()
                self.is_over.wait(_REFRESH_S)


@contextmanager
def working(what: str) -> Iterator[Report]:
    """Show a progress line during a block; yield a function that sets the share of the work that is done, 0 to 1."""
    line = _ProgressLine(visible_line(what))
    with _shown(line):
        yield line.report


@contextmanager
def going_on(what: str) -> Iterator[Callable[[str], None]]:
    """Show a progress line during a block without a known end; yield a function that sets the text on this line."""
    line = _ProgressLine(visible_line(what), has_no_end=True)
    with _shown(line):
        yield line.tell


@contextmanager
def _shown(line: _ProgressLine) -> Iterator[None]:
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in NO_TERMINALS:
        yield
        return
    thread = threading.Thread(target=line.show, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        line.is_over.set()
        thread.join()


def working_on(what: str, path: Path | str) -> str:
    """Return the text of a progress line, such as `reading boot.kev`; a long file name is cut at its start."""
    name = Path(path).name
    return f"{what} {name if len(name) <= _MOST_NAME else f'...{name[-_MOST_NAME:]}'}"


class _Console(Console):
    """A console that raises BrokenPipeError if the pipe is closed; the command line has an exit code for this error."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console(width: int | None = None) -> Console:
    """Return a console on standard output; `width` is its width if that is no terminal, None = the default of rich."""
    return _Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else width)


def cell(text: str) -> str:
    """Return text of a trace for a console, with rich's mark-up escaped and control characters made harmless."""
    return escape(visible_line(text))


def bold(text: str) -> str:
    """Return a text in bold if standard output is a terminal, else unchanged."""
    return _styled(text, 1)


def dim(text: str) -> str:
    """Return a text dimmed if standard output is a terminal, else unchanged."""
    return _styled(text, 2)


def _styled(text: str, number: int) -> str:
    if not sys.stdout.isatty() or os.environ.get("TERM", "") in NO_TERMINALS:
        return text
    return f"\x1b[{number}m{text}\x1b[0m"

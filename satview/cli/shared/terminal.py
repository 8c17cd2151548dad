"""The terminal: bold and dim text, and one line on standard error about long work: what, the share done, the time left.

The line is there after half a second and gone when the work ends, so that what is printed next begins on a clean line.
Nothing of it is written to a pipe or a file.
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

from satview.base.safe_text import visible_line

NO_TERMINALS: Final = ("", "dumb", "unknown")
DELAY_S: float = 0.5  # nobody needs to be told of what is over by then
_REFRESH_S: Final = 0.1
_MOST_NAME: Final = 40
Report = Callable[[float], None]


class _ProgressLine:
    """A progress line that a second thread shows while the main thread works.

    Attributes:
        share: Done so far, 0 to 1; None = the work does not say.
        words: Text that the work reports instead of a share.
        is_over: Set when the work has ended.
    """

    def __init__(self, what: str, *, has_no_end: bool = False) -> None:
        self.what, self.has_no_end = what, has_no_end
        self.share: float | None = None
        self.words = ""
        self.is_over = threading.Event()

    def report(self, share: float) -> None:
        """Set the share done, 0 to 1; the work may call it any number of times."""
        self.share = share

    def tell(self, words: str) -> None:
        """Set the words to show for work without a known end."""
        self.words = words

    def show(self) -> None:
        """Show the line until the work ends, if it takes long enough; then erase it."""
        if not self.is_over.wait(DELAY_S):
            with suppress(OSError, ValueError):  # a terminal that is gone
                self._show()

    def _show(self) -> None:
        from rich.progress import (  # quick commands need none
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        texts = [TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[left]")]
        bar = () if self.has_no_end else (BarColumn(20), TaskProgressColumn())
        columns = (texts[0], *bar, TimeElapsedColumn(), texts[1])
        # What programs of a capture print goes above the line; in a pipe or a file it is left alone.
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
    """Show a progress line during a block; yields a function that takes the share done, 0 to 1.

    Args:
        what: Such as `reading boot.kev`; names of files may hold anything.
    """
    line = _ProgressLine(visible_line(what))
    with _shown(line):
        yield line.report


@contextmanager
def going_on(what: str) -> Iterator[Callable[[str], None]]:
    """Show a progress line during a block without a known end; yields a function that takes words about it.

    Args:
        what: As for `working`.
    """
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
    """Return what is done with a file, short enough for one line: `reading boot.kev`."""
    name = Path(path).name
    return f"{what} {name if len(name) <= _MOST_NAME else f'...{name[-_MOST_NAME:]}'}"


class _Console(Console):
    """Raises BrokenPipeError if the reader is gone, for which the command line has an exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console(width: int | None = None) -> Console:
    """Return a console on standard output.

    Args:
        width: Characters a line may have in a file or a pipe: one line per row, however long; None = as rich has it.
    """
    return _Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else width)


def cell(text: str) -> str:
    """Return text of a trace for a console, with mark-up and control characters made harmless."""
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

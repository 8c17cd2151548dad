"""One line on standard error about long work: what, the share done, the time left; only where a terminal shows it.

It is there after half a second and gone when the work ends, so that what is printed afterwards begins on a clean line.
Nothing of it is written to a pipe or a file, and nothing is imported for it by commands that are quick.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satview.base.memory import give_back
from satview.base.process import say
from satview.base.safe_text import visible_line
from satview.cli.shared.console import NO_TERMINALS

if TYPE_CHECKING:
    from satview.events.user_events import Descriptions
    from satview.store.trace import Trace

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
        """Take how much is done, 0 to 1; called by the work, as often as it likes."""
        self.share = share

    def tell(self, words: str) -> None:
        """Take what is to be shown of work whose end nobody knows."""
        self.words = words

    def show(self) -> None:
        """Show the line until the work ends, if it takes long enough; then erase it."""
        if not self.is_over.wait(DELAY_S):
            with suppress(OSError, ValueError):  # a terminal that is gone
                self._show()

    def _show(self) -> None:
        from rich.console import Console  # on first use: takes a tenth of the delay to import
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

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
    """Show that something is done in a block; yields what takes the share done, 0 to 1.

    Args:
        what: Such as `reading boot.kev`; names of files may hold anything.
    """
    line = _ProgressLine(visible_line(what))
    with _shown(line):
        yield line.report


@contextmanager
def going_on(what: str) -> Iterator[Callable[[str], None]]:
    """Show that something goes on in a block whose end nobody knows; yields what takes words about it.

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


def open_trace(
    path: Path | str, user_events: str = "", pidin: str = "", *, symbols: str = "", says_outside: bool = True
) -> Trace:
    """Open a trace of any format, as `formats.registry.open_trace` does, and show the progress.

    Args:
        path: The file.
        user_events: File that describes events; empty = none.
        pidin: File with what `pidin` printed on the target; empty = none. Unused parts are reported.
        symbols: Folder with the programs of the target; empty = none. Parts that are not understood are reported.
        says_outside: Report on standard error what is outside of the time that can be trusted; for commands whose
            output does not report it.

    Raises:
        TraceFormatError: No reader knows it, or nothing of it can be read.
        UsageError: The descriptions are faulty.
    """
    from satview.formats import registry  # these bring numpy; --help needs none
    from satview.store.doubts import outside_words

    with working(working_on("reading", path)) as report:
        trace = registry.open_trace(path, report)
    give_back()  # what reading needed: a quarter of what the columns need
    if pidin:
        from satview.formats.pidin import read_pidin, with_names

        trace = with_names(trace, names := read_pidin(Path(pidin)))
        for note in names.notes:
            say(note)
    if user_events:
        describe(user_events, trace)
    if symbols:
        from satview.formats.symbols import add_symbols

        for note in add_symbols(trace, Path(symbols)).notes:
            say(note)
    if says_outside and (words := outside_words(trace)):
        say(f"{trace.path.name}: {words}")
    return trace


def read_descriptions(user_events: str) -> Descriptions:
    """Return the events that a file describes, and say on standard error what of it is not understood.

    Raises:
        UsageError: The file is faulty.
    """
    from satview.formats.user_event_file import read_user_events  # brings a parser of XML

    descriptions = read_user_events(Path(user_events))
    for note in descriptions.notes:
        say(note)
    return descriptions


def describe(user_events: str, *traces: Trace) -> None:
    """Take descriptions of events of traces from a file, and say on standard error what of them cannot be used.

    Raises:
        UsageError: The file is faulty.
    """
    from satview.store.arguments import describe_events, misfits

    descriptions = read_descriptions(user_events)
    for trace in traces:
        describe_events(trace, descriptions.events)
        of = f"{visible_line(trace.path.name)}: " if len(traces) > 1 else ""
        for misfit in misfits(trace):
            say(f"{Path(user_events).name}: {of}{misfit}")

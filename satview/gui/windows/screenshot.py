"""Screenshots of the whole window without a display (`satview --screenshot`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer

from satview.base.errors import SatviewError
from satview.base.new_file import refuse_ending
from satview.base.process import say
from satview.formats.outside_names import add_symbols, read_pidin, with_names
from satview.formats.registry import source_files
from satview.gui.comparison.panel import ComparisonPanel
from satview.gui.swimlane.legend import PICTURE_ENDINGS, save_png
from satview.gui.windows.application import Application, make_qt_application, silence_offscreen
from satview.gui.windows.command_window import Shared
from satview.gui.windows.looks import show_link
from satview.gui.windows.main_window import MainWindow
from satview.session.loading.files import RecentFiles
from satview.session.open_trace import PIDIN, SYMBOLS
from satview.session.session import Stage
from satview.session.settings import Settings
from satview.session.state_files import users_sessions
from satview.session.trace_link import TraceLink
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.gui.windows.workspace import Workspace

_PATIENCE_S: Final = 600
_WAKE_MS: Final = 20  # between checks of conditions that have no signal


@dataclass(frozen=True, slots=True)
class ScreenshotRequest:
    """Description of a screenshot to take.

    Attributes:
        link: The file to open, and what to show of it.
        output: Output file. `.svg` and `.pdf` contain the lanes with title and legend, `.png` the window.
        width_px, height_px: Size of the window in logical pixels.
        scale: Device pixels per logical pixel: 1 or 2.
        looks: Settings by key, such as theme, state colours and labels; others have their defaults.
        is_cached: True to use the cache of decoded large files.
    """

    link: TraceLink
    output: Path
    width_px: int = 1600
    height_px: int = 1000
    scale: int = 1
    looks: Mapping[str, str | int] = field(default_factory=dict)
    is_cached: bool = True


def take(request: ScreenshotRequest) -> int:
    """Open the trace, draw the window and save the screenshot; return the exit code, 1 if the trace lost data.

    Raises:
        TraceFormatError: The file is not a trace.
        UsageError: The range or event does not exist.
        WriteError: The output cannot be written, or its file extension is not in `PICTURE_ENDINGS`.
    """
    reading = source_files(request.link.path)
    # Report a bad output file before the trace is read.
    refuse_ending(request.output, *PICTURE_ENDINGS, reading=reading)
    if request.scale != 1:
        os.environ["QT_SCALE_FACTOR"] = str(request.scale)
    if not sys.platform.startswith(("win", "darwin", "cygwin")):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"  # needs no display and shows no window

    silence_offscreen()
    app = make_qt_application()
    settings = Settings(None)
    looks: dict[str, str | int] = {"window/theme": "light", **request.looks}
    for key, value in (looks if request.is_cached else looks | {"files/cache_mb": 0}).items():
        settings.set(key, value)
    application = Application(Shared(settings, RecentFiles(None, 0), users_sessions()))
    window = application.first_window()
    window.resize(request.width_px, request.height_px)
    window.make_document()  # the commands are created while the trace is read
    window.session.adds_to_cache = False  # write no file except the screenshot
    window.session.open(request.link.path)
    deadline, loop, wakes = QDeadlineTimer(_PATIENCE_S * 1000), QEventLoop(), QTimer()
    wakes.start(_WAKE_MS)

    def wait_while(is_pending: Callable[[], bool]) -> None:
        # `processEvents` with a time limit would spin, and take the interpreter lock from the worker thread.
        while is_pending() and not deadline.hasExpired():
            loop.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    try:
        wait_while(lambda: window.session.stage is Stage.LOADING)
        if window.session.error is not None:
            if isinstance(window.session.error, SatviewError):
                raise window.session.error
            raise RuntimeError("the trace could not be read") from window.session.error
        assert window.workspace is not None
        _check_names(window.workspace.opened.trace, request.looks)
        show_link(window, request.link)
        wait_while(lambda: not is_settled(window))
        if window.workspace.second_trace.error is not None:
            raise window.workspace.second_trace.error
        app.processEvents()  # lay out widgets whose text has changed
        _save(window, request.output, reading)
        assert window.session.opened is not None
        return 1 if window.session.opened.trace.problems.cost_data else 0
    finally:
        wakes.stop()
        window.close()
        app.processEvents()


def _check_names(trace: Trace, looks: Mapping[str, str | int]) -> None:
    """Read the files with names of threads and functions; raise errors and print notes a window would only show."""
    notes: tuple[str, ...] = ()
    if file := looks.get(PIDIN):
        with_names(trace, names := read_pidin(Path(str(file))))
        notes += names.notes
    if folder := looks.get(SYMBOLS):
        notes += add_symbols(trace, Path(str(folder))).notes
    for note in notes:
        say(note)


def _save(window: MainWindow, path: Path, reading: Sequence[Path]) -> None:
    """Save the window as PNG, or its lanes as SVG or PDF, by the file extension."""
    if path.suffix.lower() in (".svg", ".pdf") and window.workspace is not None:
        window.workspace.active.area.save_picture(path, reading, streams=True)
    else:
        save_png(window.grab(), path, reading, streams=True)


def is_settled(window: object) -> bool:
    """Return whether a window is drawn completely, and no task that would change the picture is pending."""
    assert isinstance(window, MainWindow)
    views = window.workspace
    if views is None or views.opened.event_links.is_busy:
        return views is None
    opened = views.opened
    is_naming = (opened.is_named and not opened.symbols_folder) or (opened.pidin_file and opened.trace.pidin is None)
    is_busy = is_naming or views.is_checking or views.opened.labels.is_busy or views.opened.class_loader.is_busy
    return views.panes.is_exact and not is_busy and not _is_comparing(views)


def _is_comparing(views: Workspace) -> bool:
    if views.second_trace.is_reading:
        return True
    panel = views.panel(ComparisonPanel) if views.comparison.second is not None else None
    return panel is not None and (panel.view.is_pending or panel.overlaid.is_busy)

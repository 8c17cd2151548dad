"""What the commands about captures do: the dialog, live views, the demo, and what a capture has found."""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from satview.base.errors import SatviewError
from satview.gui import dialogs
from satview.session.commands import CommandRegistry
from satview.session.session import Stage
from satview.session.tasks import IsCancelled, Report, Task

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow

_DIALOG = "satview.gui.capture.dialog"
_DEMO_WORKLOAD = "periodic"
_DEMO_S = 120
_NS_PER_S = 1_000_000_000


def _import_dialog(_is_cancelled: IsCancelled, _report: Report) -> None:
    import_module(_DIALOG)


class CaptureCommands(QObject):
    """Binds the commands of one window and shows how its captures end."""

    def __init__(self, window: CommandWindow) -> None:
        super().__init__(window)
        self._window = window
        self._rules: str | None = None
        self._import = Task(self)
        self._import.done.connect(self._show_dialog)
        self._import.failed.connect(self._on_not_imported)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        job, session = window.capture_job, window.session
        job.began.connect(self._on_began)
        job.done.connect(self._on_done)
        job.failed.connect(self._on_failed)
        session.reported.connect(self._report)

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        registry.bind("file.new_capture", self.new_capture)
        registry.bind("capture.live", self._toggle_live, lambda: self._window.session.follow is not None)
        registry.bind("capture.stick", self.toggle_stick, self._sticks)
        registry.bind("capture.demo", self.start_demo)
        registry.bind("capture.stop", self._window.capture_job.stop)

    @Slot()
    def new_capture(self) -> None:
        """Open the dialog of captures."""
        self.capture_with(None)

    def capture_with(self, rules: str | None) -> None:
        """Open the dialog of captures, with rules that are already written, if any.

        What the dialog is made of is imported beside the window, the first time: that takes a fifth of a second.
        """
        self._rules = rules
        if _DIALOG in sys.modules:
            self._show_dialog()
        elif not self._import.is_busy:
            self._import.start(_import_dialog)

    @Slot()
    def _show_dialog(self) -> None:
        from satview.gui.capture.dialog import NewCaptureDialog  # imported by now

        dialog = self._window.findChild(NewCaptureDialog)
        if dialog is None:
            recent = self._window.recent.files()
            folder = recent[0].parent if recent else Path.home()
            dialog = NewCaptureDialog(self._window.capture_job, folder, self._window.settings, self._window)
            dialog.live_requested.connect(self.start_live)
        if self._rules is not None:
            dialog.rules.edit.setPlainText(self._rules)
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    @Slot(object)
    def _on_not_imported(self, error: object) -> None:
        raise error if isinstance(error, Exception) else RuntimeError(str(error))  # the last-resort dialog shows it

    @Slot()
    def toggle_stick(self) -> None:
        """Keep to the end, or let go of it."""
        session = self._window.session
        if session.follow is None or session.opened is None:
            return
        sticks = not session.follow.is_sticking
        if sticks:
            session.opened.viewport.go_to_end()
        session.follow.set_sticking(sticks)

    def start_demo(self) -> None:
        """Capture a simulated target in real time into a passing file, and follow it."""
        from satview.capture.logger_options import LoggerOptions  # on first use: brings numpy
        from satview.capture.run import Capture
        from satview.gui.capture.job import CaptureRequest

        if self._shows_a_trace:
            self._window.live_requested.emit(None)
            return
        self.close_down()
        self._folder = tempfile.TemporaryDirectory(prefix="satview-", ignore_cleanup_errors=True)
        options = LoggerOptions(iterations=0, flush_every_s=0.25)
        capture = Capture(_DEMO_WORKLOAD, duration_ns=_DEMO_S * _NS_PER_S, options=options, pace=1.0, keeps_truth=False)
        path = Path(self._folder.name) / "live-demo.kev"
        self._window.capture_job.start(CaptureRequest(capture, path, is_live=True))

    @Slot(object)
    def start_live(self, request: object) -> None:
        """Begin a capture that is watched while it runs; a trace that is open keeps its window."""
        from satview.gui.capture.job import CaptureRequest

        assert isinstance(request, CaptureRequest)
        if self._shows_a_trace:
            self._window.live_requested.emit(request)
        else:
            self._window.capture_job.start(request)

    @property
    def _shows_a_trace(self) -> bool:
        return self._window.session.stage in (Stage.READY, Stage.LOADING)

    def close_down(self) -> None:
        """Stop a capture that runs, and remove the file of the demo."""
        self._import.close()
        self._window.capture_job.close()
        if self._folder is not None:
            folder, self._folder = self._folder, None
            folder.cleanup()

    def _toggle_live(self) -> None:
        session = self._window.session
        if session.opened is not None and session.follow is None and session.opened.trace.format != "kev":
            self._report("Only .kev files can be followed; this is a listing or a trace of another kind")
        else:
            session.set_following(session.follow is None)

    def _sticks(self) -> bool:
        follow = self._window.session.follow
        return follow is not None and follow.is_sticking

    @Slot(str)
    def _report(self, text: str) -> None:
        self._window.statusBar().showMessage(text, 15_000)

    @Slot(object)
    def _on_began(self, order: object) -> None:
        from satview.gui.capture.job import CaptureRequest

        assert isinstance(order, CaptureRequest)
        if order.is_live:
            self._window.session.open(order.path, is_followed=True)

    @Slot(object)
    def _on_done(self, outcome: object) -> None:
        from satview.gui.capture.job import CaptureOutcome, OutcomeDialog, summary

        assert isinstance(outcome, CaptureOutcome)
        if outcome.order.is_live:
            self._window.session.file_is_complete(outcome.order.path)
        else:
            self._window.files_requested.emit([outcome.order.path])  # in a window of its own if this one shows a trace
        self._report(summary(outcome))
        if outcome.result.findings:
            OutcomeDialog(outcome, self._window).show()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        assert isinstance(error, Exception)
        if not isinstance(error, (SatviewError, OSError, MemoryError)):
            raise error  # the last-resort dialog shows it
        from satview.gui.capture.job import failure

        order = self._window.capture_job.last_request
        if order is not None and order.is_live:  # of others, the dialog shows
            self._window.session.file_is_complete(order.path)
            dialogs.report(self._window, "Capture", f"The capture failed: {failure(error, order.path)}.")

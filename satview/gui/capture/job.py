"""Runs a capture in the background, simulated or on a target; shows its findings."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from satview.base.errors import Cancelled, SatviewError, UsageError
from satview.base.new_file import NewFile
from satview.base.safe_text import counted
from satview.base.time import format_duration
from satview.capture.run import Capture, CaptureResult, run
from satview.gui import dialogs
from satview.gui.widgets import Dialog, MessageLine, PlainLabel, capitalized, line_up, named, push_button, sentence
from satview.session.settings import Settings
from satview.session.tasks import IsCancelled, Report, Task
from satview.target.capture import Captured, capture
from satview.target.request import TargetRequest, filter_capture

_MESSAGES_SHOWN: Final = 4  # a flight recorder has one for each file, and may run for days


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """Request for a simulated capture.

    Attributes:
        capture: Workload, target and options.
        path: Output file.
        is_live: True to write the output file in real time, so that it can be followed; False = when complete.
    """

    capture: Capture
    path: Path
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class TargetCaptureRequest:
    """Request for a capture on a target.

    Attributes:
        request: The target, what to capture, and the output file.
        notices: Messages of the functions that the rules call, such as that one was switched off.
    """

    request: TargetRequest
    notices: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """Output file."""
        return self.request.path


AnyRequest = CaptureRequest | TargetCaptureRequest


@dataclass(frozen=True, slots=True)
class CaptureOutcome:
    """Result of a capture.

    Attributes:
        path: File to open.
        summary: A sentence about the amount captured.
        findings: A sentence for each thing worth knowing, such as a deadlock, an exception in a program or a lost
            connection.
        are_titled: True if each finding begins with its kind and a colon, such as `deadlock:`.
    """

    path: Path
    summary: str
    findings: list[str]
    are_titled: bool = False


class CaptureJob(QObject):
    """Runs one capture at a time for a window.

    Signals:
        began: A capture has started; sends its request.
        grows: The output file can be followed; sends its `Path`. Not sent if the file appears only at the end.
        progress_text: Sends the progress of a capture on a target as text: sizes, rate, losses.
        done: A capture has ended; sends the `CaptureOutcome`.
        failed: A capture has failed; sends the exception.
        progress: Sends the share done, 0 to 1.
        ended: Sent after `done` and `failed`, and after a call of `discard`.
    """

    began = Signal(object)
    grows = Signal(object)
    progress_text = Signal(str)
    done = Signal(object)
    failed = Signal(object)
    progress = Signal(float)
    ended = Signal()
    _grows_there = Signal(object)  # sent on the pool thread
    _progress_text_there = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job = Task(self, self._on_done, self._on_failed)
        self._job.progress.connect(self.progress)
        self._grows_there.connect(self._on_grows, Qt.ConnectionType.QueuedConnection)
        self._progress_text_there.connect(self._on_progress_text, Qt.ConnectionType.QueuedConnection)
        self._request: AnyRequest | None = None
        self._is_stopped = threading.Event()

    @property
    def is_busy(self) -> bool:
        """True while a capture runs."""
        return self._job.is_busy

    @property
    def last_request(self) -> AnyRequest | None:
        """The running or last request; None before the first capture."""
        return self._request

    def start(self, request: AnyRequest) -> None:
        """Start a capture; discard a running one."""
        self._request, self._is_stopped = request, threading.Event()
        if isinstance(request, CaptureRequest):
            self._job.start_reporting(partial(_simulate, request, self._is_stopped))
        else:
            signals = (self._progress_text_there.emit, self._grows_there.emit)
            self._job.start_reporting(partial(_capture_on_target, request, self._is_stopped, *signals))
        self.began.emit(request)
        if isinstance(request, CaptureRequest) and request.is_live:
            self.grows.emit(request.path)

    def stop(self) -> None:
        """Let the logger write its buffers and end; `done` is sent once the file is complete."""
        self._is_stopped.set()

    def discard(self) -> None:
        """Stop the capture and discard its data."""
        self._job.cancel()
        self.ended.emit()

    def close(self) -> None:
        """Stop the capture and wait for its end, because the window closes."""
        self._job.close()

    @Slot(object)
    def _on_grows(self, path: object) -> None:
        if self.is_busy:  # not closed meanwhile
            self.grows.emit(path)

    @Slot(str)
    def _on_progress_text(self, text: str) -> None:
        if self.is_busy:
            self.progress_text.emit(text)

    @Slot(object)
    def _on_done(self, outcome: object) -> None:
        if outcome is not None:
            self.done.emit(outcome)
        self.ended.emit()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.failed.emit(error)
        self.ended.emit()


def failure(error: Exception, path: Path) -> str:
    """Return a sentence about the error that ended a capture."""
    if isinstance(error, OSError) and error.strerror:
        return f"{path.name} cannot be written: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error) or "there is not enough memory"


def _simulate(
    request: CaptureRequest, is_stopped: threading.Event, is_cancelled: IsCancelled, report: Report
) -> object:
    """Run a simulated capture on a pool thread, until `is_stopped` (keeping it) or `is_cancelled` (discarding it)."""

    def ends() -> bool:
        return is_stopped.is_set() or is_cancelled()

    def capture_into(stream: BinaryIO | None) -> CaptureResult:
        return run(request.capture, request.path, report, ends, lambda _level, _text: None, stream)

    result = capture_into(None) if request.is_live else _run_aside(request.path, capture_into, is_cancelled)
    return CaptureOutcome(result.path, _summary(result), result.findings, are_titled=True)


def _run_aside(path: Path, run: Callable[[BinaryIO | None], CaptureResult], is_cancelled: IsCancelled) -> CaptureResult:
    """Capture into a temporary file, renamed when complete; a part gets the name too, unless an older file has it."""
    file = NewFile(path, keeps_part=True, is_buffered=False)
    try:
        result = run(file.stream)
        if is_cancelled():
            raise Cancelled
        file.commit()
    except (OSError, SatviewError) as error:
        file.discard(None if isinstance(error, Cancelled) else error)
        if not file.has_name:
            raise
        raise UsageError(f"{failure(error, path)}; what was captured up to there is in the file") from error
    except BaseException:
        file.discard()
        raise
    return result


def _capture_on_target(
    target_capture: TargetCaptureRequest,
    is_stopped: threading.Event,
    tell: Callable[[str], None],
    grows: Callable[[Path], None],
    is_cancelled: IsCancelled,
    report: Report,
) -> object:
    """Capture on a target, on a pool thread, and apply the rules that the target cannot apply itself.

    `tell` gets the progress as text, `grows` the file once it can be followed, `report` the share that has been
    filtered.
    """
    request, messages, before, progress = target_capture.request, deque[str](maxlen=_MESSAGES_SHOWN), 0, ""

    def ends() -> bool:
        return is_stopped.is_set() or is_cancelled()

    def tell_all(text: str) -> None:
        nonlocal progress
        progress = capitalized(text)
        left_out = f"and {counted(before, 'message')} before" if before else ""
        tell("\n".join(filter(None, [progress, *reversed(messages), left_out])))

    def say(text: str) -> None:
        nonlocal before
        before += len(messages) == _MESSAGES_SHOWN
        messages.append(sentence(text))
        tell_all(progress)

    def grow(path: Path) -> None:
        if path == request.path:
            grows(path)

    captured = capture(request, ends, tell_all, say, grow)
    if is_cancelled():
        raise Cancelled
    path, findings = captured.path, [*captured.faults, *captured.notes]
    if request.bounds is not None:
        if not captured.files:
            raise UsageError(f"no trigger has hit in {captured.seconds:.0f} s, so that there is no file")
        path = captured.files[-1]
        findings.append(f"{counted(len(captured.files), 'file')} of incidents; this is the newest")
    elif path != request.path:
        tell_all(f"filtering {path.name} \N{HORIZONTAL ELLIPSIS}")
        try:
            is_empty = not filter_capture(path, request, report, is_cancelled)
        except SatviewError as error:
            findings.insert(0, f"the rules could not filter what came, which is in {path.name}: {error}")
        else:
            findings += [f"no event passes the rules; all that came is in {path.name}"] * is_empty
            path = request.path
    findings += target_capture.notices
    return CaptureOutcome(path, _target_summary(captured, request.profile.title, path), findings)


def _target_summary(captured: Captured, name: str, path: Path) -> str:
    lost = f"{counted(captured.lost, 'buffer')} lost" if captured.lost else "none lost"
    return (f"Captured: {captured.received / 1e6:.1f} MB in {captured.seconds:.1f} s from {name}, "
            f"{counted(captured.buffers, 'buffer')}, {lost}, in {path.name}")  # fmt: skip


# What the dialogs for a capture have in common.


class CaptureDialog(Dialog):
    """Base class of the dialogs for a capture: the file to save, buttons, and a message about faults or the progress.

    Attributes:
        path: Editor of the file; a proposed name follows the other editors until the user changes it.
    """

    def __init__(
        self, title: str, job: CaptureJob, folder: Path, settings: Settings, parent: QWidget | None = None
    ) -> None:
        super().__init__(title, parent)
        self._job, self._folder, self._settings = job, folder, settings
        self._suggested_path = ""
        self._is_running = False
        self._editors = QWidget(self)
        self.path = named(QLineEdit(self), "Save as")
        self.message = MessageLine(self, wraps=True)
        self.start_button = push_button("Capture", self, self.start, is_primary=True)
        self.start_button.setDefault(True)
        self.stop_button = push_button("Stop and open", self, self._stop)
        self.stop_button.hide()
        self.cancel_button = push_button("Cancel", self, self.reject)
        job.done.connect(self._on_done)
        job.failed.connect(self._on_failed)

    @property
    def saved_path(self) -> Path:
        """The file to save."""
        return Path(self.path.text().strip()).expanduser()

    @Slot()
    def start(self) -> None:
        """Start the capture with the values of the editors."""
        raise NotImplementedError

    @Slot()
    def _stop(self) -> None:
        self._job.stop()

    def _propose(self, name: str) -> None:
        """Propose a file name, unless the user has typed another."""
        if self.path.text() == self._suggested_path:
            self._suggested_path = str(dialogs.free_path(self._folder, name))
            self.path.setText(self._suggested_path)

    def _browse_button(self, browse: object) -> QPushButton:
        return push_button("Browse\N{HORIZONTAL ELLIPSIS}", self, browse, takes_return=False)

    @Slot()
    def _browse_path(self) -> None:
        path = dialogs.ask_save(self, Path(self.path.text() or self._suggested_path), "Kernel event traces (*.kev)")
        if path is not None:
            self.path.setText(str(path if path.suffix else path.with_suffix(".kev")))

    def _say_of_file(self) -> None:
        path = self.saved_path
        self.message.say(f"{path.name} exists and will be replaced." if path.exists() else "", "dim")

    def _show_running(self, runs: bool) -> None:
        self._is_running = runs
        self._editors.setEnabled(not runs)
        self.stop_button.setVisible(runs)
        self.start_button.setVisible(not runs)

    @Slot()
    def _on_done(self) -> None:
        if self._is_running:
            self._is_running = False
            self.accept()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if self._is_running:
            self.message.say(f"{self._end_by(error)}.", "error")

    def _end_by(self, error: Exception) -> str:
        """Show the editors again; return a text about the error that ended the capture."""
        request = self._job.last_request
        assert request is not None
        self._show_running(False)
        return failure(error, request.path)


# The result of a capture.


def _summary(result: CaptureResult) -> str:
    """Return a sentence about the captured amount: slots, buffers, time, file and losses."""
    lost = ""
    if result.lost_buffers or result.dropped_events:
        lost = f"; too slow a logger: {result.lost_buffers:,} buffers lost, {result.dropped_events:,} events dropped"
    ended = "Stopped" if result.was_cancelled else "Captured"
    buffers = f"{result.buffers:,} buffer{'s' * (result.buffers != 1)}"
    time = f"{format_duration(result.duration_ns)} of the target's time"
    return f"{ended}: {result.slots:,} slots in {buffers}, {time}, in {result.path.name}{lost}"


class OutcomeDialog(Dialog):
    """Shows the findings of a capture beside the trace; not modal."""

    def __init__(self, outcome: CaptureOutcome, parent: QWidget | None = None) -> None:
        super().__init__(f"Capture of {outcome.path.name}", parent)
        self.setMinimumWidth(560)
        findings = outcome.findings
        layout = line_up(QVBoxLayout(self), margins=(24, 20, 24, 18), spacing=12)
        layout.addWidget(self._label("1 finding" if len(findings) == 1 else f"{len(findings)} findings", "title"))
        for finding in findings[:20]:
            layout.addWidget(self._card(finding, is_titled=outcome.are_titled))
        if len(findings) > 20:
            layout.addWidget(self._label(f"and {len(findings) - 20} more", "dim"))
        layout.addWidget(self._label(f"{outcome.summary}.", "dim"))
        buttons = self.close_box()
        layout.addWidget(buttons)

    def _card(self, finding: str, *, is_titled: bool) -> QFrame:
        card = QFrame(self)
        card.setProperty("role", "card")
        box = line_up(QVBoxLayout(card), margins=(14, 10, 14, 10))
        kind, colon, rest = finding.partition(": ")
        if is_titled and colon and len(kind) < 24:
            box.addWidget(self._label(kind[:1].upper() + kind[1:], "error"))
            finding = rest
        label = self._label(finding[:2000], "")
        label.setObjectName("finding")
        box.addWidget(label)
        return card

    def _label(self, text: str, role: str) -> QLabel:
        label = PlainLabel(text, self, wraps=True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setProperty("role", role)
        return label

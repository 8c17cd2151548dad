"""File > Capture from a target: a dialog for a capture on a target, with its progress."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import msgspec
from PySide6.QtCore import Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import SatviewError
from satview.capture.flight_recorder import Bounds, disk_bytes
from satview.events.spec import Release
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.text import check_rules, read_rule_text
from satview.gui import dialogs
from satview.gui.capture.job import CaptureDialog, CaptureJob, TargetCaptureRequest
from satview.gui.filters import rules_tab
from satview.gui.widgets import (
    SecondsBox,
    drop_down,
    guard_from_wheel,
    line_up,
    named,
    resize_on_screen,
    sentence,
)
from satview.session.settings import Settings
from satview.target.line import (
    MOST_BUFFERS,
    Buffers,
    GivenUpError,
    Profile,
    find_profile,
    read_profiles,
    targets_file,
)
from satview.target.request import TargetRequest

_BY_STOP, _AFTER, _RING, _RECORDER = range(4)
_ENDINGS: Final = (
    "By Stop",
    "After a time",
    "By Stop, newest events only (ring)",
    "By Stop, a file for each incident (ring)",
)
_MOST_FILES: Final = 9999
_TARGETS_KEPT: Final = 10
_LONGEST_S: Final = 86_400.0
_FIELD_PX: Final = 26
_HINT: Final = (
    "A target is reached by your own ssh, without a password: an address, or a name in your file of targets. "
    "sim:// is the one that `satview target` runs on this machine."
)
_SHARED_ROWS: Final = ("Incidents", "Buffers")  # rows with editors of equal widths
_SETTING: Final = "capture/last_target"


class _Last(msgspec.Struct):
    """Stored values of the dialog at the last capture, and the target addresses used, newest first."""

    targets: list[str] = []
    is_wide: bool = False
    rules: str = ""
    ending: Annotated[int, msgspec.Meta(ge=_BY_STOP, le=_RECORDER)] = _BY_STOP
    seconds: Annotated[float, msgspec.Meta(gt=0, le=_LONGEST_S)] = 10.0
    kernel_buffers: Buffers = 32
    own_buffers: Buffers = 64
    files: Annotated[int, msgspec.Meta(ge=0, le=_MOST_FILES)] = 20
    disk: str = ""


class TargetDialog(CaptureDialog):
    """Dialog with all options of a capture on a target; starts and stops the capture and shows its progress."""

    def __init__(self, job: CaptureJob, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__("Capture from a target", job, dialogs.folder_for_saving(), settings, parent)
        resize_on_screen(self, 600, 400)
        self._closes_when_stopped = False
        self._allowed: set[Path] = set()  # files of functions that rules may call
        self._profiles: dict[str, Profile] = {}
        self._names: dict[str, str] = {}  # names of targets by their text in the list
        self._profiles_fault = ""
        self._make_editors()
        self._lay_out()
        guard_from_wheel(self)
        self._recall()
        self._connect()
        self._on_target()
        self.target.setFocus()

    @property
    def target_text(self) -> str:
        """Address or name of the target."""
        text = self.target.currentText().strip()
        return self._names.get(text, text)

    def request(self) -> TargetCaptureRequest:
        """Return the request from the values of the editors.

        Raises:
            UsageError: The target does not exist, or the rules cannot be read.
        """
        ending, rules = self.ending.currentIndex(), self.rules.text().strip()
        profile, allowed = find_profile(self.target_text, targets_file()), self._allowed
        notices: list[str] = []
        request = TargetRequest(
            msgspec.structs.replace(
                profile, kernel_buffers=self.kernel_buffers.value(), own_buffers=self.own_buffers.value()
            ),
            self.saved_path,
            filters=("-w",) if self.is_wide.isChecked() and not rules else (),
            rules=read_rule_text(rules) if rules else "",
            rules_name=rules,
            functions_of=lambda release: Handlers(
                allowed.__contains__, release, Path(rules).parent, notices.append
            ),
            seconds=self.seconds.value() if ending == _AFTER else 0.0,
            is_ring=ending in (_RING, _RECORDER),
            bounds=self._bounds() if ending == _RECORDER else None,
        )  # fmt: skip
        return TargetCaptureRequest(request, notices)

    def _bounds(self) -> Bounds:
        """Return the limits of the files of a flight recorder; raise `UsageError` for a malformed disk limit."""
        disk = self.disk.text().strip()
        limit = disk_bytes(disk, "At most") if disk else 0
        return Bounds(self.kernel_buffers.value(), is_repeated=True, files=self.files.value(), disk_bytes=limit)

    def _allow_functions(self, request: TargetRequest) -> None:
        """Ask to run the Python code that the rules call on any release: the target's is not known yet."""
        rules = [rule for release in Release for rule in check_rules(request.rules, release)[0]]
        rules_tab.allow_functions(self, rules, Path(request.rules_name).parent, self._allowed)

    def _make_editors(self) -> None:
        self.target = named(QComboBox(self, editable=True, insertPolicy=QComboBox.InsertPolicy.NoInsert), "Target")
        line = self.target.lineEdit()
        assert line is not None  # it is editable
        line.setPlaceholderText("ssh://root@192.168.1.20")
        self.is_wide = QCheckBox("Wide events: all arguments", self)
        self.rules = named(QLineEdit(self, placeholderText="All events"), "Rules",
                           "A .satrules file. It says which events there are, and which of them are wide.")  # fmt: skip
        self.ending = drop_down(self, "Ends", _ENDINGS)
        self.seconds = named(SecondsBox(self, 0.1, _LONGEST_S, 1), "Duration")
        self.files = named(self._spin_box(0, _MOST_FILES, " newest files stay"), "Files that stay")
        self.files.setSpecialValueText("all files stay")
        self.disk = named(QLineEdit(self, placeholderText="any size on the disk"), "Disk at most",
                          "The most that all files may take together: 500M, 2GB.")  # fmt: skip
        self.kernel_buffers = named(self._spin_box(1, MOST_BUFFERS, " in the kernel"), "Buffers in the kernel",
                                    "-k of tracelogger, 16 KiB each: for bursts. A ring keeps this many.")  # fmt: skip
        self.own_buffers = named(self._spin_box(1, MOST_BUFFERS, " in the logger"), "Buffers in the logger",
                                 "-b of tracelogger: for a line that is sometimes too slow.")  # fmt: skip

    def _spin_box(self, least: int, most: int, unit: str) -> QSpinBox:
        box = QSpinBox(self, suffix=unit)
        box.setRange(least, most)
        box.lineEdit().setTextMargins(4, 0, 0, 0)  # as above
        return box

    def _lay_out(self) -> None:
        self._rows: dict[str, QHBoxLayout] = {}
        self._form = form = QFormLayout(self._editors)
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(18)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, widgets in (
            ("Target", (self.target,)),
            ("Events", (self.is_wide,)),
            ("Rules", (self.rules, self._browse_button(self._browse_rules))),
            ("Ends", (self.ending, self.seconds)),
            ("Incidents", (self.files, self.disk)),
            ("Buffers", (self.kernel_buffers, self.own_buffers)),
            ("Save as", (self.path, self._browse_button(self._browse_path))),
        ):
            row = line_up(QHBoxLayout(), spacing=6)
            for number, widget in enumerate(widgets):
                widget.setMinimumHeight(_FIELD_PX)  # the height with the style sheet, which layouts do not know
                row.addWidget(widget, int(number == 0 or title in _SHARED_ROWS))
            form.addRow(title, row)
            self._rows[title] = row
        foot = line_up(QHBoxLayout(), None, self.cancel_button, self.stop_button, self.start_button)
        line_up(QVBoxLayout(self), self._editors, self.message, None, foot, margins=(20, 16, 20, 12), spacing=10)

    def _connect(self) -> None:
        self.target.editTextChanged.connect(self._on_target)
        self.rules.textChanged.connect(self._check)
        self.ending.currentIndexChanged.connect(self._check)
        self.path.textChanged.connect(self._check)
        self._job.progress_text.connect(self._on_progress_text)

    @Slot()
    def start(self) -> None:
        """Connect to the target and capture; the dialog closes when the capture is done."""
        self._check()
        if not self.start_button.isEnabled():
            return
        try:
            target_capture = self.request()
            self._allow_functions(target_capture.request)
        except SatviewError as error:
            self.message.say(sentence(str(error)), "error")
            return
        self._remember()
        self._show_running(True)
        self.message.say(f"Asking {target_capture.request.profile.title} \N{HORIZONTAL ELLIPSIS}", "dim")
        self._job.start(target_capture)

    @Slot()
    def _stop(self) -> None:
        self.stop_button.setEnabled(False)
        self.message.say("Stopping: what the target still has is on its way \N{HORIZONTAL ELLIPSIS}", "dim")
        super()._stop()

    @Slot()
    def reject(self) -> None:
        """Stop the running capture, and close when it has ended or stay open to show an error; otherwise close."""
        if self._is_running:
            self._closes_when_stopped = True
            self._stop()
        else:
            super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop the running capture, and close when it has ended or stay open to show an error; otherwise close."""
        if self._is_running:
            self._closes_when_stopped = True
            self._stop()
            event.ignore()
        else:
            super().closeEvent(event)

    def _show_running(self, runs: bool) -> None:
        super()._show_running(runs)
        self.stop_button.setEnabled(True)
        self.cancel_button.setVisible(not runs)

    def _recall(self) -> None:
        """List the known targets, and restore the values of the last capture."""
        try:
            self._profiles = read_profiles(targets_file())
        except SatviewError as error:
            self._profiles_fault = sentence(str(error))
        try:
            last = msgspec.json.decode(self._settings.text(_SETTING) or "{}", type=_Last)
        except msgspec.MsgspecError:
            last = _Last()
        self._names = {f"{name} ({profile.address})": name for name, profile in self._profiles.items()}
        self.target.addItems([*self._names, *(text for text in last.targets if "://" in text)])
        shown = {name: text for text, name in self._names.items()}
        self.target.setCurrentText(shown.get(last.targets[0], last.targets[0]) if last.targets else "")
        self.is_wide.setChecked(last.is_wide)
        self.rules.setText(last.rules)
        self.ending.setCurrentIndex(last.ending)
        self.seconds.setValue(last.seconds)
        self.files.setValue(last.files)
        self.disk.setText(last.disk)
        self.kernel_buffers.setValue(last.kernel_buffers)
        self.own_buffers.setValue(last.own_buffers)

    def _remember(self) -> None:
        """Save the values of the editors for the next time."""
        earlier = [self._names.get(text, text) for text in map(self.target.itemText, range(self.target.count()))]
        used = [self.target_text, *(text for text in earlier if "://" in text and text != self.target_text)]
        last = _Last(used[:_TARGETS_KEPT], self.is_wide.isChecked(), self.rules.text().strip(),
                     self.ending.currentIndex(), self.seconds.value(), self.kernel_buffers.value(),
                     self.own_buffers.value(), self.files.value(), self.disk.text().strip())  # fmt: skip
        self._settings.set(_SETTING, msgspec.json.encode(last).decode())

    @Slot()
    def _on_target(self) -> None:
        """Apply the profile of the target, if it has one, and propose a file name."""
        name = self.target_text
        profile = self._profiles.get(name)
        if profile is not None and self.sender() is self.target:
            self.rules.setText(str(targets_file().parent / profile.rules) if profile.rules else "")
            self.is_wide.setChecked(profile.is_wide)
            self.kernel_buffers.setValue(profile.kernel_buffers)
            self.own_buffers.setValue(profile.own_buffers)
        host = name.rpartition("@")[2] if "@" in name else name.rpartition("/")[2]
        self._propose(re.sub(r"[^\w.-]+", "-", host).strip("-") or "target")
        self._check()

    @Slot()
    def _check(self) -> None:
        """Check the editors: show a message if a value is missing or wrong, else enable the button Start."""
        if self._is_running:
            return
        has_rules = bool(self.rules.text().strip())
        self.is_wide.setEnabled(not has_rules)
        self.is_wide.setText("The rules say which events are wide" if has_rules else "Wide events: all arguments")
        self.seconds.setVisible(self.ending.currentIndex() == _AFTER)
        self._form.setRowVisible(self._rows["Incidents"], self.ending.currentIndex() == _RECORDER)
        fault = self._fault()
        self.start_button.setEnabled(not fault and bool(self.target_text))
        if fault:
            self.message.say(fault, "error")
        elif not self.target_text:
            self.message.say(self._profiles_fault or _HINT, "error" if self._profiles_fault else "dim")
        else:
            self._say_of_file()

    def _fault(self) -> str:
        rules = self.rules.text().strip()
        if rules and not Path(rules).is_file():
            return f"There is no file of rules {rules}."
        if not rules and self.ending.currentIndex() == _RECORDER:
            return "Choose a file of rules that says what an incident is: WHEN \N{HORIZONTAL ELLIPSIS} THEN STOP."
        if fault := dialogs.fault_of_saving(self.path.text()):
            return fault
        return "Another capture runs in this window." if self._job.is_busy else ""

    @Slot()
    def _browse_rules(self) -> None:
        path = rules_tab.ask_rule_file(self, Path(self.rules.text() or self._folder / "any"))
        if path is not None:
            self.rules.setText(str(path))

    @Slot(str)
    def _on_progress_text(self, text: str) -> None:
        if self._is_running:
            self.message.say(text, "error" if " LOST" in text else "dim")

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if self._is_running:
            text = self._end_by(error)
            if self._closes_when_stopped and isinstance(error, GivenUpError):
                self.close()
            self._closes_when_stopped = False
            self.message.say(sentence(text), "error")

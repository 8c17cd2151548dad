"""File > New capture: a dialog for a capture of a simulated target, with its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QFont, QFontDatabase, QPainter, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QProgressBar,
    QSizePolicy,
    QSpinBox,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import SatviewError
from satview.base.safe_text import tool_tip
from satview.base.time import NS_PER_S
from satview.capture.buffers import LoggerOptions
from satview.capture.kernel import Kernel
from satview.capture.run import Capture, processes_of
from satview.capture.sim.target import target
from satview.capture.workloads.registry import Workload, find, names
from satview.events.spec import Release
from satview.filters.diagnostics import Diagnostic
from satview.filters.rules.capturing import check_capture
from satview.filters.rules.text import check_rules, read_rule_text
from satview.gui import dialogs
from satview.gui.capture.job import CaptureDialog, CaptureJob, CaptureRequest
from satview.gui.filters import rules_tab
from satview.gui.theme import DARK, LIGHT, colour
from satview.gui.widgets import (
    MessageLine,
    PlainLabel,
    SecondsBox,
    drop_down,
    flat_button,
    guard_from_wheel,
    line_up,
    named,
    resize_on_screen,
)
from satview.session.settings import Settings

# The input for rules.


_TYPING_MS = 250
_SHOWN = 3
_NAMES_SHOWN = 8


class RuleBox(QWidget):
    """An editor for capture rules, with its `faults`, in text order, underlined while the user types.

    Signals:
        checked: `faults` was updated for the current text.
    """

    checked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.faults: tuple[Diagnostic, ...] = ()
        self._release = Release.QNX_7
        self._is_wide = False
        self._processes: Mapping[str, Sequence[int]] = {}
        self.edit = QPlainTextEdit(self)
        self.edit.setAccessibleName("Rules")
        self.edit.setPlaceholderText("DELALLCLASSES\nADDCLASS THREAD\nADDEVENT KERCALL MSG_SENDV")
        self.edit.setFont(_fixed_font(self.edit.font().pointSizeF()))
        self.edit.setTabChangesFocus(True)
        self.edit.setMinimumHeight(64)
        # It takes the remaining height; with its preferred height it would squeeze the fields above in a low dialog.
        self.edit.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.message = MessageLine(self, wraps=True)
        line_up(QVBoxLayout(self), (self.edit, 1), self.message, margins=(0, 0, 0, 0), spacing=4)
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self.check)
        self.edit.textChanged.connect(self._typing.start)
        self.check()

    @property
    def text(self) -> str:
        """The text of the rules."""
        return self.edit.toPlainText()

    def set_target(self, release: Release, processes: Mapping[str, Sequence[int]], is_wide: bool = False) -> None:
        """Set the target for which rules are checked: release, pids by process name, wide or fast events by default."""
        self._release, self._processes, self._is_wide = release, processes, is_wide
        self.check()

    @Slot()
    def check(self) -> None:
        """Check the rules now."""
        self._typing.stop()
        rules, self.faults = check_rules(self.text, self._release, self._processes)
        notes: tuple[str, ...] = ()
        if rules and not self.faults:
            self.faults, notes = check_capture(rules, self._release, self._is_wide)
        self.edit.setExtraSelections([self._selection(fault) for fault in self.faults])
        if self.faults:
            more = len(self.faults) - _SHOWN
            lines = [f"Line {fault.line}: {fault.message}" for fault in self.faults[:_SHOWN]]
            self.message.say("\n".join(lines + [f"and {more} more"] * (more > 0)), "error")
        elif rules:
            count = "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
            self.message.say("\n".join([count, *notes]), "faint")
        else:
            self.message.say(f"Empty: everything is logged.{self._names()}", "faint")
        self.checked.emit()

    def _names(self) -> str:
        """Return a sentence with the process names that rules may use."""
        names = [name for name in self._processes if "/" not in name]
        more = "" if len(names) <= _NAMES_SHOWN else ", …"
        return f" Rules may name {', '.join(names[:_NAMES_SHOWN])}{more}." if names else ""

    def _selection(self, fault: Diagnostic) -> QTextEdit.ExtraSelection:
        block = self.edit.document().findBlockByNumber(fault.line - 1)
        length = len(block.text())
        start = min(fault.start, max(0, length - 1))
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + start)
        cursor.setPosition(block.position() + min(max(fault.end, start + 1), length), QTextCursor.MoveMode.KeepAnchor)
        theme = DARK if self.palette().window().color().lightness() < 128 else LIGHT
        style = QTextCharFormat()
        style.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        style.setUnderlineColor(colour(theme.error))
        style.setBackground(colour(theme.error, 36))
        selection = QTextEdit.ExtraSelection()
        selection.cursor, selection.format = cursor, style
        return selection


def _fixed_font(size: float) -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(size)
    return font


# Processes of a workload, so that rules can name them before the capture.


@lru_cache(64)
def process_names(workload: str, release: Release) -> dict[str, tuple[int, ...]]:
    """Return the pids of the processes that exist when the logger starts, by name with and without folder."""
    described = find(workload)
    kernel = Kernel(target(release, described.cpus, ""), 1)
    try:
        described.setup(kernel)
        return processes_of(kernel)
    finally:
        kernel.machine.close()


# The list of workloads.


_OFF: Final = 0.45  # opacity of names while the list is disabled


class WorkloadList(QListWidget):
    """A list of all simulated workloads, each with its name and what it teaches."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Workload")
        self.setProperty("role", "card")
        self.setItemDelegate(_TwoLines(self))
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerItem)
        for name, summary in names():
            QListWidgetItem(name, self).setToolTip(tool_tip(summary))

    @property
    def selected(self) -> str:
        """Name of the selected workload; empty if none is selected."""
        item = self.currentItem()
        return item.text() if item is not None else ""

    def choose(self, name: str) -> None:
        """Select a workload by name."""
        for item in self.findItems(name, Qt.MatchFlag.MatchExactly):
            self.setCurrentItem(item)
            self.scrollToItem(item)


class _TwoLines(QStyledItemDelegate):
    """Draws a workload on two lines: the name, and below the name what the workload teaches."""

    _PAD_PX: Final = 7

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._lesson_of = dict(names())

    def sizeHint(self, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the size of two lines of text with padding."""
        return QSize(200, 2 * option.fontMetrics.height() + 2 * self._PAD_PX + 2)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw both lines."""
        self.initStyleOption(option, index)
        name = str(index.data())
        option.text = ""
        widget: QWidget = option.widget
        widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, widget)
        box: QRect = option.rect.adjusted(12, self._PAD_PX, -10, -self._PAD_PX)
        metrics = option.fontMetrics
        painter.save()
        if not widget.isEnabled():
            painter.setOpacity(_OFF)
        font = painter.font()
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(widget.palette().text().color())
        painter.drawText(box, Qt.AlignmentFlag.AlignTop, name)
        font.setBold(False)
        painter.setFont(font)
        dim = widget.palette().text().color()
        dim.setAlphaF(0.66)
        painter.setPen(dim)
        lesson = metrics.elidedText(self._lesson_of.get(name, ""), Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignBottom, lesson)
        painter.restore()


_RELEASES: Final = {
    Release.QNX_7: "QNX 7.x",
    Release.QNX_8: "QNX 8.0",
    Release.QNX_6_6: "QNX 6.6",
    Release.QNX_6: "QNX 6.0 to 6.5",
}
_FIRST: Final = "small-system"
_FIELD_PX: Final = 26


class NewCaptureDialog(CaptureDialog):
    """Dialog with all options of a simulated capture; starts the capture.

    Signals:
        live_requested: A capture that is followed while it runs is requested; sends the `CaptureRequest`.
    """

    live_requested = Signal(object)

    def __init__(self, job: CaptureJob, folder: Path, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__("New capture", job, folder, settings, parent)
        resize_on_screen(self, 920, 680)
        self._form_before: int | None = None  # events before a workload was passed whose lesson needs wide ones
        self._make_editors()
        self.bar = QProgressBar(self, textVisible=False)
        self.bar.setRange(0, 1000)
        self.bar.hide()
        self._lay_out()
        self._connect()
        guard_from_wheel(self)
        self.workloads.choose(_FIRST)
        self._recall()
        self.workloads.setFocus()

    @property
    def workload(self) -> Workload:
        """The selected workload."""
        return find(self.workloads.selected or _FIRST)

    def request(self) -> CaptureRequest:
        """Return the request from the values of the editors."""
        is_live = self.live.isChecked()
        options = LoggerOptions(
            iterations=0,
            is_wide=self.form.currentIndex() == 1,
            is_ring=self.mode.currentIndex() == 1,
            flush_every_s=0.25 if is_live else 0,
            is_probe=self.probe.isChecked(),
        )
        capture = Capture(
            self.workload.name,
            self.seed.value(),
            self.cpus.value(),
            Release(self.release.currentData()),
            round(self.duration.value() * NS_PER_S),
            options,
            rules_text=self.rules.text,
            pace=1.0 if is_live else 0.0,
            keeps_truth=False,
        )
        return CaptureRequest(capture, self.saved_path, is_live)

    def _make_editors(self) -> None:
        self.workloads = WorkloadList(self)
        self.release = drop_down(self, "Release", _RELEASES)
        self.seed = named(QSpinBox(self, maximum=2_147_483_647, value=1), "Seed",
                          "The same seed gives the same file, byte for byte.")  # fmt: skip
        self.cpus = named(QSpinBox(self, maximum=64), "CPUs")
        self.duration = named(SecondsBox(self, 0, 86_400, 3), "Duration")
        self.duration.setSingleStep(0.1)
        for spin in (self.seed, self.cpus):
            spin.lineEdit().setTextMargins(4, 0, 0, 0)  # the style sheet's padding does not apply to the text
        self.form = drop_down(self, "Events", ("Fast: the essential arguments", "Wide: all arguments"))
        self.mode = drop_down(self, "Buffers", ("Linear: everything", "Ring: the newest only"))
        self.probe = QCheckBox("Probe: no logger on the target", self)
        self.probe.setToolTip(
            "The buffers are read from outside, so that the same seed gives the same run whatever the rules are:\n"
            'the capture has exactly the events that "Would capture?" forecasts from such a trace of everything.'
        )
        self.live = QCheckBox("In real time, and watch it live", self)
        self.rules = RuleBox(self)

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setHorizontalSpacing(18)
        form.setVerticalSpacing(6)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for title, widget in (
            ("Release", self.release), ("CPUs", self.cpus), ("Duration", self.duration), ("Seed", self.seed),
            ("Events", self.form), ("Buffers", self.mode), ("", self.probe), ("", self.live),
        ):  # fmt: skip
            widget.setMinimumHeight(_FIELD_PX)  # the height with the style sheet, which the layout does not know
            form.addRow(title, widget)
        save = line_up(QHBoxLayout(), (self.path, 1), self._browse_button(self._browse_path))
        target = QWidget(self)
        target.setLayout(form)
        form.setContentsMargins(0, 0, 0, 0)
        # In a low dialog the rules become lower, and not these fields.
        target.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        right = line_up(QVBoxLayout(), self._head("Target and logger"), target, 6, self._rules_head(), (self.rules, 1),
                        self._head("Save as"), save, spacing=6)  # fmt: skip
        left = line_up(QVBoxLayout(), self._head("Workload"), (self.workloads, 1), spacing=9)
        line_up(QHBoxLayout(self._editors), (left, 5), (right, 6), margins=(0, 0, 0, 0), spacing=22)
        foot = line_up(QHBoxLayout(), (self.message, 1), self.cancel_button, self.stop_button, self.start_button)
        line_up(QVBoxLayout(self), (self._editors, 1), self.bar, foot, margins=(20, 12, 20, 12), spacing=10)

    def _rules_head(self) -> QHBoxLayout:
        tip = "Take the rules of a .satrules file"
        self.rules_button = flat_button("Open\N{HORIZONTAL ELLIPSIS}", self, self._open_rules, tip)
        self.rules_button.setAutoDefault(False)
        return line_up(QHBoxLayout(), (self._head("Rules: what is logged"), 1), self.rules_button)

    def _head(self, text: str) -> QLabel:
        return PlainLabel(text, self, role="dim")

    def _connect(self) -> None:
        self.workloads.currentItemChanged.connect(self._on_workload)
        self.release.currentIndexChanged.connect(self._on_target)
        self.form.currentIndexChanged.connect(self._on_target)
        self.rules.checked.connect(self._check)
        self.path.textChanged.connect(self._check)
        self.live.toggled.connect(self._check)
        self.probe.toggled.connect(self._check)
        self.mode.currentIndexChanged.connect(self._check)
        self._job.progress.connect(self._on_progress)

    @Slot()
    def start(self) -> None:
        """Start the capture; the dialog closes when the capture is done, or immediately if the file is followed."""
        self.rules.check()
        if self._fault():
            self._check()
            return
        request = self.request()
        self._remember()
        if request.is_live:
            self.live_requested.emit(request)
            self.accept()
            return
        self._show_running(True)
        self.message.say(f"Capturing {self.workload.name} \N{HORIZONTAL ELLIPSIS}", "dim")
        self._job.start(request)

    def _remember(self) -> None:
        """Save the values of the editors for the next time."""
        self._settings.set("capture/last", json.dumps({
            "workload": self.workload.name, "seed": self.seed.value(), "cpus": self.cpus.value(),
            "release": self.release.currentIndex(), "duration_ms": round(self.duration.value() * 1000),
            "form": self.form.currentIndex(), "mode": self.mode.currentIndex(), "live": self.live.isChecked(),
            "probe": self.probe.isChecked(), "rules": self.rules.text,
        }))  # fmt: skip

    def _recall(self) -> None:
        """Restore the values of the last capture; ignore invalid ones."""
        try:
            last = json.loads(self._settings.text("capture/last") or "{}")
        except ValueError:
            return
        if not isinstance(last, dict):
            return
        if str(last.get("workload")) in dict(names()):
            self.workloads.choose(last["workload"])
        for key, spin in (("seed", self.seed), ("cpus", self.cpus)):
            spin.setValue(_number(last.get(key), spin.value(), spin.maximum()))
        self.duration.setValue(_number(last.get("duration_ms"), 0, 86_400_000) / 1000)
        for key, combo in (("release", self.release), ("form", self.form), ("mode", self.mode)):
            combo.setCurrentIndex(_number(last.get(key), combo.currentIndex(), combo.count() - 1))
        self.live.setChecked(last.get("live") is True)
        self.probe.setChecked(last.get("probe") is True)
        if isinstance(last.get("rules"), str):
            self.rules.edit.setPlainText(last["rules"])

    @Slot()
    def _open_rules(self) -> None:
        path = rules_tab.ask_rule_file(self, self._folder / "any")
        if path is None:
            return
        try:
            self.rules.edit.setPlainText(read_rule_text(path))
        except SatviewError as error:
            self.message.say(str(error), "error")

    @Slot()
    def reject(self) -> None:
        """Cancel the running capture and return to the editors; otherwise close."""
        if self._is_running and self._job.is_busy:
            self._job.discard()
            self._show_running(False)
            self.message.say("Cancelled; nothing was saved.", "dim")
        else:
            super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Discard the running capture."""
        if self._is_running and self._job.is_busy:
            self._job.discard()
        super().closeEvent(event)

    def _show_running(self, runs: bool) -> None:
        super()._show_running(runs)
        self.bar.setVisible(runs)
        self.bar.setRange(0, 0)

    @Slot()
    def _on_workload(self) -> None:
        workload = self.workload
        self.cpus.setSpecialValueText(f"{workload.cpus}, the workload's own")
        self.duration.setSpecialValueText(f"{workload.duration_ns / NS_PER_S:g} s, the workload's own")
        self._propose(workload.name)
        if workload.is_wide:
            self._form_before = self.form.currentIndex() if self._form_before is None else self._form_before
            self.form.setCurrentIndex(1)
        elif self._form_before is not None:
            self.form.setCurrentIndex(self._form_before)
            self._form_before = None
        self._on_target()

    @Slot()
    def _on_target(self) -> None:
        release = Release(self.release.currentData())  # Qt makes it a plain text
        is_wide = self.form.currentIndex() == 1
        self.rules.set_target(release, process_names(self.workload.name, release), is_wide)
        self._check()

    @Slot()
    def _check(self) -> None:
        """Check the editors: show a message if a value is missing or wrong, else enable the button Start."""
        fault = self._fault()
        self.start_button.setEnabled(not fault)
        if fault:
            self.message.say(fault, "error")
        else:
            self._say_of_file()

    def _fault(self) -> str:
        if self.rules.faults:
            count = len(self.rules.faults)
            return "The rules have a fault." if count == 1 else f"The rules have {count} faults."
        if fault := dialogs.fault_of_saving(self.path.text()):
            return fault
        if self.live.isChecked() and self.mode.currentIndex() == 1:
            return "A ring is saved at its end only: there is nothing to watch live."
        if self.live.isChecked() and self.probe.isChecked():
            return "A probe takes full buffers only, so nothing can be watched live: choose one of the two."
        return "Another capture runs in this window." if self._job.is_busy and not self._is_running else ""

    @Slot(float)
    def _on_progress(self, share: float) -> None:
        self.bar.setRange(0, 1000)
        self.bar.setValue(round(share * 1000))
        if self._is_running:
            whole_s = self.duration.value() or self.workload.duration_ns / NS_PER_S
            self.message.say(f"Capturing {self.workload.name}: {share * whole_s:.1f} of {whole_s:g} s", "dim")


def _number(value: object, default: int, most: int) -> int:
    """Return a stored number, or the default if it is invalid."""
    return value if isinstance(value, int) and 0 <= value <= most else default

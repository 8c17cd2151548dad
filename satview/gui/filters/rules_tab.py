"""The tab Rules: an editor for static and dynamic rules, rule files, and their use in captures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QFontDatabase,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QTextBrowser,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import UsageError
from satview.base.new_file import write_file
from satview.base.safe_text import counted, html_text, percent
from satview.events.modes import RULE_MODES, Mode
from satview.export.c_program import c_program
from satview.filters.derived_columns import process_names
from satview.filters.diagnostics import Diagnostic
from satview.filters.expressions.syntax import Completion, completions
from satview.filters.external import classes_of
from satview.filters.passes import Effect, rules_of_selection
from satview.filters.rules.building import BuiltRules, build, from_tracelogger_args, tracelogger_command
from satview.filters.rules.capturing import check_capture, explain
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.text import Rule, check_rules, names_of_class, read_rule_text, rules_text, save_rules
from satview.filters.rules.triggers import trigger_hits
from satview.filters.would_capture import WouldCapture, would_capture
from satview.formats.registry import source_files
from satview.gui import dialogs
from satview.gui.filters.editing import ProposingEditor
from satview.gui.theme import Theme, colour
from satview.gui.widgets import (
    Dialog,
    LowGrid,
    MessageLine,
    capitalized,
    flat_button,
    line_up,
    push_button,
    resize_on_screen,
)
from satview.session.open_trace import OpenTrace
from satview.session.tasks import Task
from satview.store.arguments import taught
from satview.store.mark_file import Mark
from satview.store.trace import Trace

# The editor for rules: line numbers, completion, and a wavy line below faults.


_CONDITION: Final = re.compile(r"\b(?:WHERE|WHEN)\s((?:(?!\bTHEN\b).)*)$")
_LIMIT: Final = 200
_GUTTER_PX: Final = 10


class RuleEditor(ProposingEditor):
    """An editor that checks its rules on each change.

    Attributes:
        faults: Errors, in line order.
        limits: Parts of the rules that work in a view but not in a capture.

    Signals:
        checked: `faults` was updated.
    """

    checked = Signal()

    def __init__(self, trace: Trace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self._theme = theme
        self._names = process_names(trace)
        self.faults: tuple[Diagnostic, ...] = ()
        self.limits: tuple[Diagnostic, ...] = ()
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName("Rules")
        self._gutter = _Gutter(self)
        self.textChanged.connect(self._check)
        self.blockCountChanged.connect(self._on_blocks)
        self.updateRequest.connect(self._on_update)
        self._on_blocks()

    def set_trace(self, trace: Trace) -> None:
        """Use the process names of a refreshed trace."""
        self._trace, names = trace, process_names(trace)
        if names != self._names:
            self._names = names
            self._check()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        self._check()

    def replace_text(self, text: str) -> None:
        """Replace the rules; Ctrl+Z undoes this."""
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def go_to(self, fault: Diagnostic) -> None:
        """Move the cursor to a fault."""
        block = self.document().findBlockByNumber(max(0, fault.line - 1))
        cursor = QTextCursor(block)
        cursor.setPosition(min(block.position() + fault.start, block.position() + block.length() - 1))
        self.setTextCursor(cursor)
        self.setFocus()

    @Slot()
    def _check(self) -> None:
        rules, self.faults = check_rules(self.toPlainText(), self._trace.release, self._names)
        self.limits = check_capture(rules, self._trace.release)[0] if rules and not self.faults else ()
        waves = [self._wave(fault, self._theme.error) for fault in self.faults]
        self.setExtraSelections([*waves, *(self._wave(limit, self._theme.warning) for limit in self.limits)])
        self.checked.emit()

    def _wave(self, fault: Diagnostic, rgb: int) -> QTextEdit.ExtraSelection:
        block = self.document().findBlockByNumber(max(0, fault.line - 1))
        last = block.position() + max(0, block.length() - 1)
        selection = QTextEdit.ExtraSelection()
        selection.cursor = QTextCursor(block)
        selection.cursor.setPosition(min(block.position() + fault.start, last))
        end = min(max(block.position() + fault.end, block.position() + fault.start + 1), last)
        selection.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        form = QTextCharFormat()
        form.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SpellCheckUnderline)
        form.setUnderlineColor(colour(rgb))
        selection.format = form
        return selection

    def completions(self) -> tuple[list[Completion], int]:
        """Return the completions at the cursor."""
        cursor = self.textCursor()
        offered = list(rule_completions(cursor.block().text(), cursor.positionInBlock(), self._trace))[:_LIMIT]
        return offered, cursor.block().position()

    def left_px(self) -> int:
        """Return the width of the line number column."""
        return self._gutter.width()

    @Slot()
    def _on_blocks(self) -> None:
        self.setViewportMargins(self._gutter.sizeHint().width(), 0, 0, 0)

    def _on_update(self, rect: QRect, dy: int) -> None:
        if dy:
            self._gutter.scroll(0, dy)
        else:
            self._gutter.update(0, rect.y(), self._gutter.width(), rect.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Adjust the line number column to the new size."""
        super().resizeEvent(event)
        inner = self.contentsRect()
        self._gutter.setGeometry(inner.left(), inner.top(), self._gutter.sizeHint().width(), inner.height())

    def paint_gutter(self, painter: QPainter, area: QRect) -> None:
        """Draw the line numbers, with faulty lines in red."""
        painter.fillRect(area, colour(self._theme.panel))
        wrong = {fault.line for fault in self.faults}
        block = self.firstVisibleBlock()
        painter.setFont(self.font())
        while block.isValid():
            top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
            if top > area.bottom():
                break
            number = block.blockNumber() + 1
            painter.setPen(colour(self._theme.error if number in wrong else self._theme.faint))
            rect = QRect(0, round(top), self._gutter.width() - _GUTTER_PX // 2, self.fontMetrics().height())
            painter.drawText(rect, int(Qt.AlignmentFlag.AlignRight), str(number))
            block = block.next()


class _Gutter(QWidget):
    """The line number column."""

    def __init__(self, editor: RuleEditor) -> None:
        super().__init__(editor)
        self._editor = editor

    def sizeHint(self) -> QSize:
        """Return the width of the largest number."""
        digits = max(2, len(str(self._editor.blockCount())))
        return QSize(self._editor.fontMetrics().horizontalAdvance("9") * digits + _GUTTER_PX, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the line numbers."""
        self._editor.paint_gutter(QPainter(self), event.rect())


def rule_completions(line: str, position: int, trace: Trace) -> Iterator[Completion]:
    """Yield the completions at a position of a rule line: modes, classes, events, processes, parts of conditions."""
    before = line[:position]
    condition = _CONDITION.search(before)
    if condition:
        start = condition.start(1)
        for proposal in completions(condition.group(1), len(condition.group(1)), trace.release, trace):
            yield Completion(proposal.text, proposal.start + start, proposal.end + start, proposal.help)
        return
    words = before.split(" ")
    prefix, earlier = words[-1], [word.upper() for word in words[:-1] if word]
    for name, note in _words(earlier, trace):
        if name != prefix and name.upper().startswith(prefix.upper()):
            yield Completion(name, position - len(prefix), position, note)


def _words(earlier: list[str], trace: Trace) -> Iterator[tuple[str, str]]:
    if not earlier:
        yield from ((mode.name, " ".join(mode.rule_arguments)) for mode in RULE_MODES)
        yield "WHERE", "condition on every event"
        yield "WHEN", 'a trigger: condition THEN MARK "late"; KEEP 20 buffers; STOP'
        return
    mode = next((mode for mode in RULE_MODES if mode.name == earlier[0]), None)
    arguments = mode.rule_arguments if isinstance(mode, Mode) else ()
    if len(earlier) > len(arguments):
        return
    requested = arguments[len(earlier) - 1]
    external = next((c for c in classes_of(trace.release) if len(earlier) > 1 and c.name == earlier[1]), None)
    if requested == "class":
        yield from ((c.name, "") for c in classes_of(trace.release) if c.name != "EMPTY")
    elif requested == "event" and external is not None:
        yield from ((name, "") for name in sorted(names_of_class(external, trace.release)))
    elif requested == "pid":
        for name, pids in process_names(trace).items():
            if "/" not in name and " " not in name:
                yield name, f"pid {', '.join(map(str, pids[:5]))}"
    elif requested == "handler":
        yield from (("WHERE", "a condition"), ("CALL", "a Python function: file.py:name"))


# What a capture with given rules would have logged of this trace, and what the views would miss.


class WouldCaptureDialog(Dialog):
    """Dialog with the events that a capture with given rules would have recorded, computed in the background."""

    def __init__(self, opened: OpenTrace, rules: BuiltRules, parent: QWidget) -> None:
        super().__init__("What would these rules capture?", parent)
        resize_on_screen(self, 640, 680)
        self.browser = QTextBrowser(self)
        self.browser.setHtml("<p>Working\N{HORIZONTAL ELLIPSIS}</p>")
        buttons = self.close_box()
        line_up(QVBoxLayout(self), self.browser, buttons)
        self._job = Task(self, self._on_answer, self._on_failed)
        evaluator, trace = opened.filters.evaluator, opened.trace

        def find() -> WouldCapture:
            return would_capture(rules, trace, evaluator.derived)

        self._job.start(lambda is_cancelled: evaluator.alone(is_cancelled, find))

    def done(self, result: int) -> None:
        """Cancel the task; called for the button, Escape and the window's close button."""
        self._job.close()
        super().done(result)

    @Slot(object)
    def _on_answer(self, answer: object) -> None:
        if isinstance(answer, WouldCapture):
            self.browser.setHtml(answer_html(answer))

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.browser.setPlainText(str(error))


def answer_html(answer: WouldCapture) -> str:
    """Return the description of the events that rules would have captured, as HTML."""
    least = "" if answer.is_exact else "at least "
    rows = [
        ("Events", f"{least}{answer.events:,}", f"{answer.total_events:,}", _share(answer.events, answer.total_events)),
        ("Slots", f"{least}{answer.slots:,}", f"{answer.total_slots:,}", _share(answer.slots, answer.total_slots)),
        (
            "Bytes per second",
            f"{least}{answer.bytes_per_s:,.0f}",
            f"{answer.total_bytes_per_s:,.0f}",
            _share(answer.bytes_per_s, answer.total_bytes_per_s),
        ),
    ]
    by_class = answer.by_class.items()
    classes = [(name, f"{count:,}", f"{total:,}", _share(count, total)) for name, (count, total) in by_class]
    losses = "".join(
        f"<tr><td style='padding-right:14px'>{html_text(loss.view)}</td>"
        f"<td>{html_text(loss.text or 'complete')}</td></tr>"
        for loss in answer.losses
    )
    notes = "".join(f"<p>{html_text(note)}.</p>" for note in answer.notes)
    return (
        f"{_table(('', 'captured', 'of', ''), rows)}<h4>By class</h4>{_table(('Class', 'captured', 'of', ''), classes)}"
        f"<h4>What views would miss</h4><table cellpadding='3'>{losses}</table>{notes}"
    )


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, str, str, str]]) -> str:
    leftmost, *others = head
    heads = "".join(f"<th align='right'>{html_text(text)}</th>" for text in others)
    lines = [f"<tr><th align='left'>{html_text(leftmost)}</th>{heads}</tr>"]
    for name, *values in rows:
        cells = "".join(f"<td align='right'>{html_text(value)}</td>" for value in values)
        lines.append(f"<tr><td>{html_text(name)}</td>{cells}</tr>")
    return f"<table cellpadding='4' cellspacing='2'>{''.join(lines)}</table>"


# Modal questions to the user, one function each, so that tests can replace them.


def ask_rule_file(parent: QWidget, last: Path | None) -> Path | None:
    """Ask for a rule file to open; return None if the user cancels."""
    name, _ = QFileDialog.getOpenFileName(
        parent, "Open rules", str(last.parent if last else ""), "Rules (*.satrules);;All files (*)"
    )
    return Path(name) if name else None


def allow_code(parent: QWidget, path: Path) -> bool:
    """Ask whether a Python file may run; return True only if the user agrees explicitly."""
    warning = (
        f"{html_text(str(path))}<br><br>This file is a program. It will run with all your rights: "
        "it can read, change and delete files. "
        "Run it only if you know what it does."
    )
    text = f"The rules call functions of {path.name}."
    icon = QMessageBox.Icon.Warning
    return dialogs.is_agreed(parent, "Run Python code?", text, warning, "Run the code", "Do not run", icon)


def allow_functions(parent: QWidget, rules: Iterable[Rule], folder: Path, allowed: set[Path]) -> None:
    """Ask for consent to run each file in `folder` with functions that the rules call, and add it to `allowed`.

    Raises:
        UsageError: The user refused a file.
    """
    positions = {rule.function.rpartition(":")[0] for rule in rules if rule.function}
    for file in sorted({(folder / position).resolve() for position in positions} - allowed):
        if not allow_code(parent, file):
            raise UsageError(f"{file.name} is code and was not allowed to run")
        allowed.add(file)


_PATTERN: Final = "Rules (*.satrules)"
_FAULTS_SHOWN: Final = 5
_START: Final = """\
# One rule per line, in the words of TraceEvent(); Ctrl+Space proposes.
# ADDCLASS THREAD
# SETCLASSPID KERCALL devb-eide
# WHERE duration > 2ms
# WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 20 buffers; STOP
"""
_MOST_HITS: Final = 1000  # limit of hits shown as marks


class RulesTab(QWidget):
    """Tab with an editor for rules. Opening a file runs no code; handlers run only after the user has agreed.

    Attributes:
        path: File of the rules; None if there is none.
        editing: Name of the filter pass being edited; empty for new rules.
    """

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.path: Path | None = None
        self.editing = ""
        self.editor = RuleEditor(opened.trace, theme, self)
        self.editor.setPlainText(_START)
        self.message = MessageLine(self, wraps=True)
        self.message.setTextFormat(Qt.TextFormat.PlainText)  # it quotes rules of unknown origin
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.apply_button = QPushButton("Apply", self)
        self.apply_button.setProperty("primary", "true")
        self.capture_menu = QMenu(self)
        above, below = QWidget(self), QWidget(self)
        flat_buttons = [
            flat_button("Open\N{HORIZONTAL ELLIPSIS}", self, partial(self._run_reporting, self.open)),
            flat_button("Save\N{HORIZONTAL ELLIPSIS}", self, partial(self._run_reporting, self.save)),
            flat_button("From header", self, partial(self._run_reporting, self.import_arguments)),
        ]
        tip = "Turn the current filter into rules: check boxes, forms and conditions"
        self.from_filter = flat_button("From filter", self, partial(self._run_reporting, self.use_filter), tip)
        line_up(QHBoxLayout(above), *flat_buttons, self.from_filter, None, margins=(0, 0, 0, 0))
        capture = QPushButton("Capture", self)
        capture.setMenu(self.capture_menu)
        would_capture = push_button("Would capture?", self, partial(self._run_reporting, self.show_would_capture))
        line_up(QHBoxLayout(below), would_capture, capture, None, self.apply_button, margins=(0, 0, 0, 0))
        low = ((self.editor, 0, 0, 3), (above, 0, 1, 1), (self.message, 1, 1, 1), (below, 2, 1, 1))
        self._grid = LowGrid(self, (above, self.editor, self.message, below), self.editor, low, (2, 3), 1)
        self._grid.setContentsMargins(8, 6, 8, 4)
        self._grid.setSpacing(6)
        for text, act in (
            ("Copy as tracelogger command", self.copy_command),
            ("Export as C program\N{HORIZONTAL ELLIPSIS}", self.export_program),
            ("Use in new capture\N{HORIZONTAL ELLIPSIS}", self.use_in_capture),
        ):
            self.capture_menu.addAction(text, partial(self._run_reporting, act))
        self.apply_button.clicked.connect(partial(self._run_reporting, self.apply))
        self.editor.checked.connect(self._on_checked)
        opened.reloaded.connect(self._on_reloaded)
        self._hits = Task(self, self._on_hits)
        self._on_checked()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the buttons above and below the text, or beside the text if the panel is low."""
        super().resizeEvent(event)
        self._grid.follow()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self.editor.set_theme(theme)

    def edit(self, name: str) -> None:
        """Load the rules of a filter pass (an entry of the filter) into the editor."""
        self.editor.replace_text(self._opened.filters.pass_named(name).rules)
        self.editing = name
        self.editor.setFocus()

    def apply(self) -> None:
        """Add the rules to the filter as a new pass, or replace the pass that is being edited."""
        filters = self._opened.filters
        built = self.built()  # report rules that the kernel would refuse now, and not later from the background
        filters.evaluator.forget()
        text, before = self.editor.toPlainText(), filters.state
        if self.editing in {item.name for item in filters.state.stack.passes}:
            filters.change_pass(self.editing, rules=text)
        else:
            self.editing = filters.add_pass(rules=text, effect=Effect.HIDE)
        if filters.state is before:  # the same rules, but the handlers' files may have changed
            filters.recompute()
        self.message.say(f"Applied as filter {self.editing}.", "dim")
        if built.triggers:
            self._find_hits(built)
        else:
            self._opened.marks.show_hits(())

    def _find_hits(self, rules: BuiltRules) -> None:
        """Find the events at which triggers in the rules hit, in the background, and show the hits as marks."""
        evaluator, trace = self._opened.filters.evaluator, self._opened.trace

        def find() -> tuple[list[Mark], int]:
            derived = evaluator.derived
            rows, which = trigger_hits(rules.triggers, trace, rules.mask(trace, derived), derived)
            hits = zip(trace.events.time_cycles[rows[:_MOST_HITS]].tolist(), which.tolist(), strict=False)
            return [Mark(cycles, cycles, rules.triggers[number].mark) for cycles, number in hits], len(rows)

        self._hits.start(lambda is_cancelled: evaluator.alone(is_cancelled, find))

    @Slot(object)
    def _on_hits(self, hits: object) -> None:
        if isinstance(hits, tuple):
            marks, count = hits
            self._opened.marks.show_hits(marks)
            shown = "" if count <= _MOST_HITS else f"; the first {_MOST_HITS:,} are marked"
            self.message.say(f"Applied as filter {self.editing}. Triggers hit {counted(count, 'time')}{shown}.", "dim")

    def open(self) -> None:
        """Ask for a rule file, and load it without running code."""
        path = ask_rule_file(self, self.path)
        if path is not None:
            self.load(path)

    def load(self, path: Path) -> None:
        """Load the rules of a file.

        Raises:
            UsageError: The file cannot be read.
        """
        text = read_rule_text(path)
        self.path, self.editing = path, ""
        self._opened.filters.evaluator.folder = path.parent
        self.editor.replace_text(text)

    def save(self) -> None:
        """Write the rules to a file, even if they have faults."""
        suggestion = self.path or Path(f"{self._opened.trace.path.stem}.satrules")
        path = dialogs.ask_save(self, suggestion, _PATTERN)
        if path is not None:
            save_rules(path, self.editor.toPlainText(), source_files(self._opened.trace.path))
            self.path = path
            self._opened.filters.evaluator.folder = path.parent
            self.message.say(f"Saved {path.name}", "dim")

    def import_arguments(self) -> None:
        """Load rules made from the arguments of tracelogger, which the header of the trace has as TRACELOGGER_ARGS.

        Raises:
            UsageError: The header has no TRACELOGGER_ARGS, or they cannot be parsed.
        """
        trace = self._opened.trace
        arguments = trace.header.get("TRACELOGGER_ARGS")
        if not arguments:
            raise UsageError("the header has no TRACELOGGER_ARGS (written from 6.4 on), so it does not show the filter")
        imported = from_tracelogger_args(arguments, trace.release)
        notes = "".join(f"# {line}\n" for line in (arguments, *imported.notes))
        self.editing = ""
        self.editor.replace_text(notes + rules_text(imported.rules, trace.release))

    def use_filter(self) -> None:
        """Make rules that capture what the active filter shows: its check boxes, fast or wide forms, and conditions.

        Raises:
            UsageError: Too many threads are selected individually.
        """
        state, trace = self._opened.filters.state, self._opened.trace
        text = rules_of_selection(trace, state.codes, state.threads, state.stack, state.is_wide)
        self.editing = ""
        self.editor.replace_text(text)

    def copy_command(self) -> None:
        """Copy the tracelogger command that is closest to the rules, and show if it is not exact."""
        command = tracelogger_command(self.built())
        QGuiApplication.clipboard().setText(command.text)
        exact = "exactly these rules" if command.is_exact else "; ".join(("not exact", *command.reasons))
        self.message.say(f"Copied: {command.text}\n({exact})", "dim")

    def export_program(self) -> None:
        """Ask for a file, and write a C program that sets the rules; show rules that C cannot express."""
        path = dialogs.ask_save(self, Path("set_rules.c"), "C source (*.c)")
        if path is None:
            return
        title = self.path.name if self.path is not None else ""
        program = c_program(self.built(), title)
        write_file(path, program.source, reading=source_files(self._opened.trace.path))
        if program.faults:
            self.editor.go_to(program.faults[0])
            text = "\n".join(str(fault) for fault in program.faults[:_FAULTS_SHOWN])
            self.message.say(
                f"Saved {path.name}, which does not compile: C cannot do all of the rules.\n{text}", "error"
            )
        else:
            self.message.say("\n".join((f"Saved {path.name}", *program.notes)), "dim")

    def use_in_capture(self) -> None:
        """Open the dialog for a new capture with the rules."""
        self.built()
        self._opened.capture_requested.emit(self.editor.toPlainText())

    def show_would_capture(self) -> None:
        """Open the dialog with the events that a capture with these rules would have recorded."""
        WouldCaptureDialog(self._opened, self.built(), self.window()).show()

    def built(self) -> BuiltRules:
        """Return the rules with their Python handlers, loaded after the user has allowed their files.

        Raises:
            UsageError: The rules have faults, or call code that is not allowed.
        """
        rules = self._allowed_rules()
        trace, evaluator = self._opened.trace, self._opened.filters.evaluator
        handlers = Handlers(evaluator.allowed.__contains__, trace.release, evaluator.folder)
        return build(rules, trace.release, handlers, taught=taught(trace))

    def _allowed_rules(self) -> tuple[Rule, ...]:
        """Return the parsed rules, once the user has allowed each Python file that they call for the first time."""
        trace, evaluator = self._opened.trace, self._opened.filters.evaluator
        rules, faults = check_rules(self.editor.toPlainText(), trace.release, process_names(trace))
        if faults:
            self.editor.go_to(faults[0])
            raise UsageError(str(faults[0]))
        allow_functions(self, rules, evaluator.folder, evaluator.allowed)
        return rules

    @Slot()
    def _on_reloaded(self) -> None:
        self.editor.set_trace(self._opened.trace)

    @Slot()
    def _on_checked(self) -> None:
        faults = self.editor.faults
        self.apply_button.setEnabled(not faults)
        if faults:
            more = f"  ({len(faults)} faults)" if len(faults) > 1 else ""
            self.message.say(f"Line {faults[0].line}, column {faults[0].column}: {faults[0].message}{more}", "error")
            return
        trace = self._opened.trace
        rules, _ = check_rules(self.editor.toPlainText(), trace.release, process_names(trace))
        notes = explain(rules, trace.release)
        hints = [f"Line {note.line}: {note.message}" for note in notes[:3]]
        self.message.say("\n".join(hints) or counted(len(rules), "rule"), "dim")

    def _run_reporting(self, run: Callable[[], None]) -> None:
        try:
            run()
        except UsageError as error:
            self.message.say(capitalized(str(error)), "error")

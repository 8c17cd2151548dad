"""The tab for static and dynamic rules: editor, files, and the way back to capture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QWidget

from satview.base.errors import UsageError
from satview.base.new_file import write_file
from satview.export.c_program import c_program
from satview.filters.names import process_names
from satview.filters.rules.building import BuiltRules, build
from satview.filters.rules.explain import explain
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.rule import Rule
from satview.filters.rules.text import check_rules, read_rule_text, rules_text, save_rules
from satview.filters.rules.tracelogger_command import from_tracelogger_args, tracelogger_command
from satview.filters.views.passes import Effect
from satview.filters.views.selection import rules_of_selection
from satview.formats.registry import source_files
from satview.gui import dialogs
from satview.gui.filters import questions
from satview.gui.filters.rule_editor import RuleEditor
from satview.gui.filters.would_capture_dialog import WouldCaptureDialog
from satview.gui.low_layout import LowGrid
from satview.gui.message_line import MessageLine
from satview.gui.theme import Theme
from satview.session.open_trace import OpenTrace
from satview.store.arguments import taught

_PATTERN: Final = "Rules (*.satrules)"
_FAULTS_SHOWN: Final = 5
_START: Final = """\
# One rule per line, in the words of TraceEvent(); Ctrl+Space proposes.
# ADDCLASS THREAD
# SETCLASSPID KERCALL devb-eide
# WHERE duration > 2ms
"""


class RulesTab(QWidget):
    """Rules as text. Opening a file runs nothing; Python handlers only after a yes.

    Attributes:
        editor: The text.
        from_filter: The button that makes rules of the filter in force.
        message: Faults, hints, what was done.
        path: The file the rules are from; None while they have none.
        editing: Name of the pass that is being edited; empty for new rules.
    """

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.path: Path | None = None
        self.editing = ""
        self.editor = RuleEditor(opened.trace, theme, self)
        self.editor.setPlainText(_START)
        self.message = MessageLine(self)
        self.message.setWordWrap(True)
        self.message.setTextFormat(Qt.TextFormat.PlainText)  # a stranger's rules are in it
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.apply_button = QPushButton("Apply", self)
        self.apply_button.setProperty("primary", "true")
        self.capture_menu = QMenu(self)
        above, below = QWidget(self), QWidget(self)
        head, foot = QHBoxLayout(above), QHBoxLayout(below)
        for line in (head, foot):
            line.setContentsMargins(0, 0, 0, 0)
        for text, run in (("Open\N{HORIZONTAL ELLIPSIS}", self.open), ("Save\N{HORIZONTAL ELLIPSIS}", self.save)):
            head.addWidget(self._button(text, run, is_flat=True))
        head.addWidget(self._button("From header", self.import_arguments, is_flat=True))
        self.from_filter = self._button("From filter", self.take_filter, is_flat=True)
        self.from_filter.setToolTip("Make rules of the filter in force: check boxes, forms and conditions")
        head.addWidget(self.from_filter)
        head.addStretch()
        capture = self._button("Capture", None)
        capture.setMenu(self.capture_menu)
        foot.addWidget(self._button("Would capture?", self.show_would_capture))
        foot.addWidget(capture)
        foot.addStretch()
        foot.addWidget(self.apply_button)
        low = ((self.editor, 0, 0, 3), (above, 0, 1, 1), (self.message, 1, 1, 1), (below, 2, 1, 1))
        self._grid = LowGrid(self, (above, self.editor, self.message, below), self.editor, low, (2, 3), 1)
        self._grid.setContentsMargins(8, 6, 8, 4)
        self._grid.setSpacing(6)
        for text, act in (
            ("Copy as tracelogger command", self.copy_command),
            ("Export as C program\N{HORIZONTAL ELLIPSIS}", self.export_program),
            ("Use in new capture\N{HORIZONTAL ELLIPSIS}", self.use_in_capture),
        ):
            self.capture_menu.addAction(text, partial(self._try, act))
        self.apply_button.clicked.connect(partial(self._try, self.apply))
        self.editor.checked.connect(self._on_checked)
        opened.reloaded.connect(self._on_reloaded)
        self._on_checked()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons above and below the text, in a low drawer beside it."""
        super().resizeEvent(event)
        self._grid.follow()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self.editor.set_theme(theme)

    def edit(self, name: str) -> None:
        """Put the rules of a pass into the editor."""
        self.editor.replace_text(self._opened.filters.pass_named(name).rules)
        self.editing = name
        self.editor.setFocus()

    def apply(self) -> None:
        """Make the rules a filter of the view, or change the one they were applied as before."""
        filters = self._opened.filters
        self.built()  # what the kernel would refuse is reported here, not later from the background
        filters.evaluator.forget()
        text, before = self.editor.toPlainText(), filters.state
        if self.editing in {item.name for item in filters.state.stack.passes}:
            filters.change_pass(self.editing, rules=text)
        else:
            self.editing = filters.add_pass(rules=text, effect=Effect.HIDE)
        if filters.state is before:  # the same rules, but the handlers that they call may be others now
            filters.recompute()
        self.message.say(f"Applied as filter {self.editing}.", "dim")

    def open(self) -> None:
        """Read a rule file. Nothing in it is run."""
        path = questions.ask_rule_file(self, self.path)
        if path is not None:
            self.load(path)

    def load(self, path: Path) -> None:
        """Show the rules of a file.

        Raises:
            UsageError: It cannot be read.
        """
        text = read_rule_text(path)
        self.path, self.editing = path, ""
        self._opened.filters.evaluator.folder = path.parent
        self.editor.replace_text(text)

    def save(self) -> None:
        """Write the rules to a file, whatever is wrong with them."""
        suggestion = self.path or self._opened.trace.path.with_suffix(".satrules")
        path = dialogs.ask_save(self, suggestion, _PATTERN)
        if path is not None:
            save_rules(path, self.editor.toPlainText(), source_files(self._opened.trace.path))
            self.path = path
            self._opened.filters.evaluator.folder = path.parent
            self.message.say(f"Saved {path.name}", "dim")

    def import_arguments(self) -> None:
        """Show the rules behind the trace's own TRACELOGGER_ARGS.

        Raises:
            UsageError: The header has none, or they cannot be parsed.
        """
        trace = self._opened.trace
        arguments = trace.header.get("TRACELOGGER_ARGS")
        if not arguments:
            raise UsageError("the header has no TRACELOGGER_ARGS (written from 6.4 on), so it does not show the filter")
        imported = from_tracelogger_args(arguments, trace.release)
        notes = "".join(f"# {line}\n" for line in (arguments, *imported.notes))
        self.editing = ""
        self.editor.replace_text(notes + rules_text(imported.rules, trace.release))

    def take_filter(self) -> None:
        """Show the rules that capture what the filter of now lets show: check boxes, forms, conditions.

        Raises:
            UsageError: Too many threads are selected one by one.
        """
        state, trace = self._opened.filters.state, self._opened.trace
        text = rules_of_selection(trace, state.codes, state.threads, state.stack, state.is_wide)
        self.editing = ""
        self.editor.replace_text(text)

    def copy_command(self) -> None:
        """Copy the tracelogger command that comes closest."""
        command = tracelogger_command(self.built())
        QGuiApplication.clipboard().setText(command.text)
        exact = "exactly these rules" if command.is_exact else "; ".join(("not exact", *command.reasons))
        self.message.say(f"Copied: {command.text}\n({exact})", "dim")

    def export_program(self) -> None:
        """Write the C program that sets exactly these rules."""
        path = dialogs.ask_save(self, self._opened.trace.path.with_name("set_rules.c"), "C source (*.c)")
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
        """Hand the rules to the dialog for a new capture."""
        self.built()
        self._opened.capture_requested.emit(self.editor.toPlainText())

    def show_would_capture(self) -> None:
        """Return what a capture with these rules would have captured."""
        WouldCaptureDialog(self._opened, self.built(), self.window()).show()

    def built(self) -> BuiltRules:
        """Return the rules carried out; handlers after a yes.

        Raises:
            UsageError: They have faults, or call code that may not run.
        """
        rules = self._allowed_rules()
        trace, evaluator = self._opened.trace, self._opened.filters.evaluator
        handlers = Handlers(evaluator.allowed.__contains__, trace.release, evaluator.folder)
        return build(rules, trace.release, handlers, taught=taught(trace))

    def _allowed_rules(self) -> tuple[Rule, ...]:
        """Return the rules without a fault, after the user has allowed each new file of handlers."""
        trace, evaluator = self._opened.trace, self._opened.filters.evaluator
        rules, faults = check_rules(self.editor.toPlainText(), trace.release, process_names(trace))
        if faults:
            self.editor.go_to(faults[0])
            raise UsageError(str(faults[0]))
        positions = {rule.function.rpartition(":")[0] for rule in rules if rule.function}
        for file in sorted((evaluator.folder / position).resolve() for position in positions):
            if file not in evaluator.allowed:
                if not questions.allow_code(self, file):
                    raise UsageError(f"{file.name} is code and was not allowed to run")
                evaluator.allowed.add(file)
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
        self.message.say("\n".join(hints) or f"{len(rules):,} rules", "dim")

    def _button(self, text: str, run: Callable[[], None] | None, *, is_flat: bool = False) -> QPushButton:
        button = QPushButton(text, self)
        if is_flat:
            button.setProperty("flat", "true")
        if run is not None:
            button.clicked.connect(partial(self._try, run))
        return button

    def _try(self, run: Callable[[], None]) -> None:
        try:
            run()
        except UsageError as error:
            text = str(error)
            self.message.say(text[:1].upper() + text[1:], "error")

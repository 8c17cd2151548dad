"""The panels Verdicts, Why? and Critical path: what went wrong, and the steps that explain it."""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtCore import QModelIndex, Qt, QUrl, Slot
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QSizePolicy,
    QSplitter,
    QTableView,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.critical_path import count_of_pieces
from satview.analysis.why import ChainLine, WhyStep, chain_lines
from satview.answers.table import Table
from satview.base.safe_text import AT_LEAST_SIGN, html_text, tool_tip, visible_line, with_sign
from satview.base.time import format_duration, format_moment
from satview.gui.answer_table import AnswerModel, AnswerPanel
from satview.gui.colours import ink_on, state_colour
from satview.gui.panel import Panel, PanelContext, follow, linked, select_row, selected_rows, set_up_rows
from satview.gui.theme import Theme, css
from satview.gui.widgets import ElidedLabel, PlainLabel, flat_button, line_up, named
from satview.session.event_text import why_details

# The panel Why?: the steps that explain a thread's state, with state colours and links to threads and events.


_HOW = "Click a thread in the lanes, then press Y to see why it runs, is ready or waits then."
_EVENT = re.compile(r"event #([\d,]+)")


class WhyPanel(Panel):
    """The last requested explanation, from the effect to its causes; it stays while links are followed."""

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.browser = named(QTextBrowser(self, openLinks=False), "Why?")
        self.browser.anchorClicked.connect(self._on_link)
        self.browser.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        line_up(QVBoxLayout(self), self.browser, margins=(0, 0, 0, 0))
        self._opened.why.changed.connect(self.refresh)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self.refresh()

    def as_text(self) -> str:
        """Return the explanation as plain text."""
        why = self._opened.why
        return why_details(self._opened.trace, why.steps, why.error).as_text()

    def copied_text(self) -> str:
        """Return the selected text, or the whole explanation, if the panel has the focus."""
        marked = self.browser.textCursor().selectedText().replace("\u2029", "\n").replace("\u2028", "\n")
        return (marked or self.as_text()) if self.browser.hasFocus() else ""

    @Slot()
    def refresh(self) -> None:
        """Show the current explanation, or why there is none."""
        why, theme = self._opened.why, self._theme
        if not why.steps:
            text = why.error or ("Looking for the answer\N{HORIZONTAL ELLIPSIS}" if why.is_busy else _HOW)
            self.browser.setHtml(f"<p align='center' style='color:{css(theme.dim)}'><br>{html_text(text)}</p>")
            return
        lines = chain_lines(self._opened.trace, why.steps)
        self.browser.setHtml(
            "<table cellpadding='3' cellspacing='0' style='margin:4px 8px'>"
            f"{''.join(self._row(line, why.steps[line.step]) for line in lines)}</table>"
        )

    def _row(self, line: ChainLine, step: WhyStep) -> str:
        """Return a step as a table row: number and state; thread, priority, start and length; the explanation."""
        theme = self._theme
        if line.is_folded:
            return f"<tr><td></td><td></td><td style='color:{css(theme.dim)}'>{html_text(line.says)}</td></tr>"
        clock, small = self._opened.trace.clock, f"font-size:{theme.px(11)}px"
        lasts = format_duration(clock.duration_ns(step.until_cycles - step.since_cycles))
        if step.is_cut:
            lasts = with_sign(AT_LEAST_SIGN, lasts)
        parts = [f"priority {step.priority}"] if step.priority >= 0 else []
        parts.append(f"{lasts} since {format_moment(step.since_cycles, clock, step.until_cycles - step.since_cycles)}")
        name = html_text(self._opened.trace.thread_name(step.thread))
        return (
            f"<tr><td align='right' valign='top' style='color:{css(theme.faint)}'>{line.step + 1}</td>"
            f"<td valign='top'>{self._chip(step)}</td><td valign='top'>"
            f"<b>{linked(f'at:{step.thread}/{step.at_cycles}', name, theme)}</b>"
            f"&nbsp;&nbsp; <span style='color:{css(theme.dim)}; {small}'>{html_text(', '.join(parts))}</span>"
            f"<br>{self._with_links(line.says, step)}</td></tr>"
        )

    def _chip(self, step: WhyStep) -> str:
        """Return the name of a state as HTML, on the colour that the state has on lanes."""
        fill = state_colour(step.value, self._theme)
        if fill is None:
            return html_text(step.state)
        style = f"background:{css(fill)}; color:{css(ink_on(fill))}"
        return f"<span style='{style}'>&nbsp;{html_text(step.state)}&nbsp;</span>"

    def _with_links(self, sentence: str, step: WhyStep) -> str:
        """Return a sentence as HTML, in which the names of threads and events are links."""
        trace, theme, html = self._opened.trace, self._theme, html_text(sentence)
        others = (step.holder, step.waker, step.serves, step.before, *step.may_receive)
        others += tuple(row for _, row, *_ in step.on_cpus) + tuple(row for row, *_ in step.ran_instead)
        rows = {html_text(trace.thread_name(row)): row for row in others if row > 0 and row != step.thread}
        if rows:
            longest_first = "|".join(map(re.escape, sorted(rows, key=len, reverse=True)))
            names = re.compile(rf"(?<![\w/])(?:{longest_first})(?!\w)")
            html = names.sub(lambda m: linked(f"at:{rows[m[0]]}/{step.at_cycles}", m[0], theme), html)
        return _EVENT.sub(lambda m: linked(f"event:{int(m[1].replace(',', '')) - 1}", m[0], theme), html)

    @Slot(QUrl)
    def _on_link(self, url: QUrl) -> None:
        follow(self._navigation, url)


# The panel Critical path: its pieces in time order, and the time spent per thread.


_HOW_TO_CHOOSE: Final = (
    "Click an interval of a thread, or drag over a range in its lane, then press Shift+Y\n"
    "to see the chain of work that the thread depended on."
)
_TOTAL_WIDTHS_PX: Final = (120, 88, 76, 74, 80)
_LEAST_NAME_PX, _WIDEST_NAME_PX = 90, 420


class PathPanel(AnswerPanel):
    """The last requested critical path, with repeated pieces folded, and below it the time per thread (`sums`)."""

    shown_names = ("thread", "start", "length", "does")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Pieces of the critical path", parent)
        self.setMinimumSize(120, 64)
        self.totals, self.sums = AnswerModel(context.theme, self), QTableView(self)
        set_up_rows(self.sums, self.totals, "Critical path by thread", context.settings.number("events/row_height_px"))
        for table in (self.table, self.sums):
            table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
            table.horizontalHeader().setStretchLastSection(table is self.table)
        self.sums.clicked.connect(self._on_sum)
        self.sums.activated.connect(self._on_sum)
        self._set_up()
        self._opened.path.changed.connect(self._on_path)
        self._on_path()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self.totals.set_theme(theme)
        self.sums.viewport().update()

    def _rows_as_text(self, least: int = 2) -> str:
        """Return the selected rows, or all: times per thread if their table has the focus, else pieces of the path."""
        if self.sums.hasFocus() and self.totals.answer is not None:
            selected = selected_rows(self.sums)
            return self.totals.answer.lines(selected if len(selected) >= least else range(self.totals.rowCount()))
        return super()._rows_as_text(least)

    def _all_as_text(self) -> str:
        return self.exported.lines(range(len(self.exported))) if self.exported is not None else super()._all_as_text()

    def copied_text(self) -> str:
        """Return rows of the table that has the focus, as text; "" if none has."""
        return self._rows_as_text(1) if self.table.hasFocus() or self.sums.hasFocus() else ""

    @property
    def exported(self) -> Table | None:
        """All pieces of the path, folded ones too, for the button Export."""
        answer = self._opened.path.answer
        return answer.pieces if answer is not None else None

    def _set_up(self) -> None:
        self.statement = PlainLabel(self)
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        head = line_up(QHBoxLayout(), (self.statement, 1), margins=(10, 4, 8, 4))
        self.add_buttons(head, self.statement)
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.addWidget(self.stack)
        split.addWidget(self.sums)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 0)
        split.setSizes([200, 110])
        self._lay_out(head, split)

    @Slot()
    def _on_path(self) -> None:
        self._order = "", False
        search, trace = self._opened.path, self._opened.trace
        answer = search.answer
        self.sums.setVisible(answer is not None)
        if answer is None:
            self.statement.setText("")
            self.show_page(
                search.error or ("Finding the path\N{HORIZONTAL ELLIPSIS}" if search.is_busy else _HOW_TO_CHOOSE)
            )
            return
        window, clock = answer.path.window, trace.clock
        self.statement.setText(visible_line(
            f"{trace.thread_name(answer.path.thread)}, {format_moment(window.start, clock)} to "
            f"{format_moment(window.end, clock)}: {format_duration(clock.duration_ns(window.length))} in "
            f"{count_of_pieces(len(answer.path))}"
        ))  # fmt: skip
        self._fill()
        self.totals.show(answer.totals, "", is_descending=False)
        for section, width_px in enumerate(_TOTAL_WIDTHS_PX):
            self.sums.setColumnWidth(section, width_px)
        self.sums.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.show_page("")

    def _fill(self) -> None:
        if (answer := self._opened.path.answer) is not None:
            self._show_in_order(answer.folded)
            self.table.resizeColumnToContents(0)
            self.table.setColumnWidth(0, min(max(self.table.columnWidth(0), _LEAST_NAME_PX), _WIDEST_NAME_PX))

    def _show(self, row: int) -> None:
        """Go to the piece of the path in a row, on the lane of its thread."""
        answer, opened = self.model.answer, self._opened
        if answer is None or not 0 <= row < self.model.rowCount():
            return
        lane = opened.lane_of_thread(int(answer["thread"][row]))
        if lane is not None:
            start = int(answer["start_cycles"][row])
            opened.lanes.reveal(lane)
            opened.viewport.reveal(start)
            opened.select_at(lane, start)

    @Slot(QModelIndex)
    def _on_sum(self, index: QModelIndex) -> None:
        """Go to the thread in a row of the times per thread."""
        answer, opened = self.totals.answer, self._opened
        if answer is None or not index.isValid():
            return
        lane = opened.lane_of_thread(int(answer["thread"][index.row()]))
        if lane is not None:
            opened.lanes.reveal(lane)
            self._navigation.show_lane(lane)


# The panel Verdicts: problems of the traced system that were found automatically, with evidence and remedy.


class VerdictsPanel(AnswerPanel):
    """Verdicts, each with its remedy, occurrences and events below. The search starts when the panel is first shown."""

    waits_to_be_seen = True
    shown_names = ("kind", "start", "length", "says")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Verdicts", parent)
        self._report = context.report
        self.statement = ElidedLabel("", self)
        self.missing = PlainLabel("", self, role="dim", wraps=True)
        self.missing.setContentsMargins(8, 4, 8, 4)
        self.capture = flat_button("Capture again\N{HORIZONTAL ELLIPSIS}", self, self._on_capture)
        head = line_up(QHBoxLayout(), (self.statement, 1), self.capture, margins=(8, 2, 8, 2))
        self.add_buttons(head, self.statement)
        self._lay_out(head, self.stack, self.missing)
        self._opened.verdicts.changed.connect(self._fill)
        self._fill()

    def reload(self) -> None:
        """Search for verdicts, initially and after the trace was refreshed."""
        self._opened.verdicts.start()

    def show_worst(self) -> None:
        """Go to the most severe verdict, if there is one."""
        if self._opened.verdicts.answer is not None and self.model.rowCount():
            self.sort("", descending=False)
            select_row(self.table, 0)
            self._show(0)

    @Slot()
    def _fill(self) -> None:
        search = self._opened.verdicts
        answer = search.answer
        self.missing.hide()
        line = answer.capture if answer is not None else None
        self.capture.setVisible(line is not None)
        if line is not None:
            does = "Capture again in wide mode to see what this trace cannot show"
            self.capture.setToolTip(tool_tip(f"{does}:\n{line.command}"))
        if answer is None or search.error:
            self.statement.setText("")
            self.show_page(search.error or "Looking for problems\N{HORIZONTAL ELLIPSIS}")
            return
        table = answer.table
        self._show_in_order(table)
        self.statement.setText(answer.severities or answer.summary)
        self.missing.setText("\n".join(f"Not all: {visible_line(line)}." for line in table.missing))
        self.missing.setVisible(bool(table.missing and len(table)))
        self.show_page("" if len(table) else table.says_why_empty)

    @Slot()
    def _on_capture(self) -> None:
        answer = self._opened.verdicts.answer
        if answer is not None and answer.capture is not None:
            self._opened.capture_requested.emit(answer.capture.rules)

    def _show(self, row: int) -> None:
        super()._show(row)
        if self.model.answer is not None and self.model.answer.event(row) >= 0:
            self._report("Press Y to see why the selected thread is in its state, or I for its details")

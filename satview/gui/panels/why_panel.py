"""The panel Why?: the steps that explain a thread's state, with state colours and links to threads and events."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtWidgets import QTextBrowser, QVBoxLayout, QWidget

from satview.analysis.reasons.why import ChainLine, WhyStep, chain_lines
from satview.base.safe_text import html_text
from satview.base.time_text import format_duration, format_moment
from satview.gui.colours import ink_on, state_colour
from satview.gui.panel import Panel, PanelContext, follow, linked
from satview.gui.theme import Theme, css
from satview.gui.widgets import line_up
from satview.session.events.event_text import why_details

_HOW = "Click a thread in the lanes, then press Y to see why it runs, is ready or waits then."
_EVENT = re.compile(r"event #([\d,]+)")


class WhyPanel(Panel):
    """The last requested explanation, from the effect to its causes; it stays while links are followed.

    Attributes:
        browser: Shows the steps.
    """

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.browser = QTextBrowser(self, openLinks=False)
        self.browser.setAccessibleName("Why?")
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
            "<table cellpadding='3' cellspacing='0' width='100%' style='margin:4px 8px'>"
            f"{''.join(self._row(line, why.steps[line.step]) for line in lines)}</table>"
        )

    def _row(self, line: ChainLine, step: WhyStep) -> str:
        """Return a step as a table row: number and state; thread, priority, start and length; the explanation."""
        theme = self._theme
        if line.is_folded:
            return f"<tr><td></td><td></td><td style='color:{css(theme.dim)}'>{html_text(line.says)}</td></tr>"
        clock, small = self._opened.trace.clock, f"font-size:{theme.px(11)}px"
        lasts = format_duration(clock.duration_ns(step.until_cycles - step.since_cycles))
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

"""The panel Details: the selected event, interval and range, with links; its text can be selected and copied."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPoint, Qt, QUrl, Slot
from PySide6.QtGui import QFontDatabase, QTextTable
from PySide6.QtWidgets import QTextBrowser, QVBoxLayout, QWidget

from satview.base.safe_text import html_text
from satview.gui.colours import class_colour
from satview.gui.panel import Panel, PanelContext, follow, linked
from satview.gui.theme import Theme, css
from satview.gui.widgets import line_up, named
from satview.linkage.links import LinkKind
from satview.session import event_text
from satview.session.range_view import RangeView

_NO_WRAP = "style='white-space:nowrap'"


class DetailsPanel(Panel):
    """Shows the selected event, the interval around it and the selected range, the last selected first.

    While nothing is selected, it shows information about the trace.
    """

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        opened = self._opened
        self.browser = named(QTextBrowser(self, openLinks=False), "Details")
        self.browser.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.browser.anchorClicked.connect(self._on_link)
        self._fixed_family = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
        line_up(QVBoxLayout(self), self.browser, margins=(0, 0, 0, 0))
        self._words_limit = event_text.FIRST_WORDS
        self.range = self.watched = RangeView(opened, self)
        self._range_is_first = True  # the range was selected last
        self.range.changed.connect(self.refresh)
        opened.selection.range_changed.connect(self._on_range)
        opened.selection.changed.connect(self._on_selection)
        opened.event_links.changed.connect(self.refresh)
        opened.highlight.changed.connect(self.refresh)
        opened.described.connect(self.refresh)
        opened.reloaded.connect(self.refresh)
        self._forms = opened.filters.is_wide
        opened.filters.view_changed.connect(self._on_filter)
        self.browser.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.browser.customContextMenuRequested.connect(self._on_menu)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        self.refresh()

    def details(self) -> tuple[event_text.Details, ...]:
        """Return the details to show."""
        opened, selection = self._opened, self._opened.selection
        sections, links = [], opened.event_links.links
        span = selection.span if selection.span is not None and (selection.span.value or selection.span.text) else None
        link, connected = links.link, links.connected
        if span is not None and selection.lane is not None:
            waits = connected.waits_for if connected is not None and selection.event == span.event else None
            sections.append(event_text.span_details(opened.timeline, selection.lane, span, waits))
            if selection.event == span.event:  # the section of the interval has it
                link = None if link is not None and link.kind is LinkKind.STATE else link
                connected = replace(connected, waits_for=None) if connected is not None else None
        if selection.event is not None:
            is_wide = opened.filters.is_wide.get(int(opened.trace.events.code[selection.event]))
            details = event_text.event_details(
                opened.trace, selection.event, link, is_wide, self._words_limit, connected, links.names
            )
            sections.insert(len(sections) if selection.is_interval else 0, details)
        highlighted = opened.highlight.shown
        if highlighted is not None and highlighted.link is not None:
            sections.insert(0, event_text.link_details(opened.trace, highlighted.link))
        elif highlighted is not None and highlighted.title:
            sections.insert(0, event_text.highlight_details(highlighted.title, highlighted.says))
        of_range = self.range.details()
        if of_range is not None:
            sections.insert(0 if self._range_is_first else len(sections), of_range)
        return tuple(sections)

    def as_text(self) -> str:
        """Return the details as plain text."""
        return "\n\n".join(details.as_text() for details in self.details())

    def selected_or_all(self) -> str:
        """Return the text selected in the panel, or all its text."""
        marked = self.browser.textCursor().selectedText().replace("\u2029", "\n").replace("\u2028", "\n")
        return marked or self.as_text()

    @Slot()
    def _on_selection(self) -> None:
        self._words_limit = event_text.FIRST_WORDS
        self._range_is_first = False
        self.refresh()

    @Slot()
    def _on_range(self) -> None:
        self._range_is_first = True

    @Slot()
    def _on_filter(self) -> None:
        if self._forms is not self._opened.filters.is_wide:
            self._forms = self._opened.filters.is_wide
            self.refresh()

    def argument_at(self, position: QPoint) -> str:
        """Return the argument name in the first cell of the table row at a position of the browser; else ""."""
        cursor = self.browser.cursorForPosition(position)
        table: QTextTable | None = cursor.currentTable()
        if not isinstance(table, QTextTable):
            return ""
        row = table.cellAt(cursor).row()
        return table.cellAt(row, 0).firstCursorPosition().block().text().strip()

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        self.menu_requested.emit(self.browser.viewport().mapToGlobal(position), self.argument_at(position))

    @Slot()
    def refresh(self) -> None:
        """Show the details of the selection."""
        details = self.details()
        if not details:
            style = f"color:{css(self._theme.dim)}; margin:8px 10px"
            hint = f"<p style='{style}'>Click an interval or an event to see its details.</p>"
            self.browser.setHtml(hint + self._html(event_text.trace_details(self._opened.trace)))
            return
        self.browser.setHtml("".join(map(self._html, details)))

    def _html(self, details: event_text.Details) -> str:
        theme = self._theme
        chip = css(class_colour(details.kind, theme.is_dark))
        head = (
            f"<table width='100%' cellpadding='0' cellspacing='0' style='margin-top:6px'>"
            "<tr><td style='padding:4px 10px'>"
            f"<span style='font-size:{self._theme.px(15)}px; font-weight:600'>{html_text(details.title)}</span>"
            f"&nbsp;&nbsp;<span style='color:{chip}; font-size:{theme.px(11)}px'>{html_text(details.kind)}</span><br>"
            f"<span style='color:{css(theme.dim)}'>{html_text(details.subtitle)}</span></td></tr></table>"
        )
        return head + "".join((*map(self._section_html, details.sections), *map(self._table_html, details.tables)))

    def _title_html(self, title: str) -> str:
        return (
            f"<p style='margin:10px 10px 2px 10px; font-size:{self._theme.px(11)}px; color:{css(self._theme.faint)}'>"
            f"{html_text(title.upper())}</p>"
        )

    def _table_html(self, table: event_text.DetailTable) -> str:
        """Return a table as HTML, with names on the left and right-aligned numbers."""
        dim = css(self._theme.dim)
        small = f"<span style='color:{dim}; font-size:{self._theme.px(11)}px'>"
        lines = [[f"{small}{html_text(text)}</span>" for text in table.head]]
        lines += [[self._cell_html(cell) for cell in row] for row in table.rows]
        names = "" if any(row[0].thread for row in table.rows) else _NO_WRAP  # names of threads may be long
        rows = "".join(
            f"<tr><td {names}>{name}</td>{''.join(f'<td align=right {_NO_WRAP}>{text}</td>' for text in values)}</tr>"
            for name, *values in lines
        )
        more = f"<tr><td colspan='{len(table.head)}' style='color:{dim}'>{html_text(table.more)}</td></tr>"
        return (
            f"{self._title_html(table.title)}<table width='98%' cellpadding='2' cellspacing='0' "
            f"style='margin:0 8px 4px 8px; font-size:{self._theme.px(11)}px'>"
            f"{rows if table.rows else ''}{more if table.more else ''}</table>"
        )

    def _cell_html(self, cell: event_text.Cell) -> str:
        text = html_text(cell.text)
        if cell.event is not None:
            return self._link(f"event:{cell.event}", text)
        if cell.thread:
            where = f"thread:{cell.thread}" if cell.cycles is None else f"at:{cell.thread}/{cell.cycles}"
            return self._link(where, text)
        return text

    def _section_html(self, section: event_text.Section) -> str:
        rows = "".join(map(self._sentence_html if section.is_prose else self._line_html, section.lines))
        return (
            f"{self._title_html(section.title)}"
            f"<table cellpadding='2' cellspacing='0' style='margin:0 8px 4px 8px'>{rows}</table>"
        )

    def _sentence_html(self, line: event_text.DetailLine) -> str:
        number = f"<b>{html_text(line.name)}</b> " if line.name else ""
        return f"<tr><td>{number}{self._linked(line, html_text(line.text))}</td></tr>"

    def _linked(self, line: event_text.DetailLine, value: str) -> str:
        """Return `value` as a link to the event or lane that a line leads to; unchanged if it leads nowhere."""
        target = f"event:{line.event}" if line.event is not None else ""
        target = target or (f"thread:{line.thread}" if line.thread else "")
        target = target or (f"process:{line.process}" if line.process else "")
        return self._link(target, value) if target else value

    def _link(self, target: str, value: str) -> str:
        return linked(target, value, self._theme)

    def _line_html(self, line: event_text.DetailLine) -> str:
        theme = self._theme
        value = html_text(line.text)
        if line.is_code:
            value = f"<span style='font-family:\"{self._fixed_family}\"; white-space:pre-wrap'>{value}</span>"
        if line.means:
            value = f"{value}&nbsp; {self._linked(line, html_text(line.means))}"
        else:
            value = self._linked(line, value)
        if line.is_more:
            value = self._link("more:", value)
        note = (
            f"&nbsp; <span style='color:{css(theme.faint)}; font-size:{theme.px(11)}px'>{html_text(line.note)}</span>"
            if line.note
            else ""
        )
        return (
            f"<tr><td width='92' style='white-space:nowrap; color:{css(theme.dim)}; padding-right:10px' valign='top'>"
            f"{html_text(line.name)}</td>"
            f"<td valign='top'>{value}{note}</td></tr>"
        )

    @Slot(QUrl)
    def _on_link(self, url: QUrl) -> None:
        if url.scheme() != "more":
            follow(self._navigation, url)
        else:
            self._words_limit = min(event_text.MOST_WORDS, self._words_limit * 8)
            self.refresh()

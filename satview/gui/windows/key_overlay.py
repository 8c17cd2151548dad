"""All keys on one page over the window, printed from the bindings of that window, searchable."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QTextBrowser, QVBoxLayout, QWidget

from satview.base.safe_text import html_text
from satview.gui.theme import Theme, css
from satview.gui.widgets import PlainLabel
from satview.gui.windows.actions import CommandActions
from satview.session.command_table import MOUSE_HELP
from satview.session.commands import CommandRegistry, Menu


class KeyOverlay(QFrame):
    """The overlay; Escape or ? closes it."""

    def __init__(self, registry: CommandRegistry, actions: CommandActions, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("role", "floating")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._registry = registry
        self._actions = actions
        self._theme = theme
        self.search = QLineEdit(self)
        self.search.setPlaceholderText("Find a key")
        self.search.textChanged.connect(self._fill)
        close = QPushButton("Close", self)
        close.clicked.connect(self.close)
        title = PlainLabel("Keys and mouse", self)
        title.setProperty("role", "title")
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch()
        head.addWidget(self.search)
        head.addWidget(close)
        self.browser = QTextBrowser(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 16, 20, 16)
        layout.addLayout(head)
        layout.addWidget(self.browser)
        self.resize(min(1060, parent.width() - 40), min(760, parent.height() - 60))
        self.move((parent.width() - self.width()) // 2, (parent.height() - self.height()) // 2)
        self._fill("")
        self.show()
        self.raise_()
        self.setFocus()

    def event(self, event: QEvent) -> bool:
        """Close on any key, before a command of the window takes it."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress:
            self.close()
            return True
        return super().event(event)

    @Slot(str)
    def _fill(self, text: str) -> None:
        groups = [(menu.value.replace("&", ""), self._rows(menu)) for menu in Menu]
        groups.append(("Mouse", list(MOUSE_HELP)))
        requested = text.casefold()
        shown = [
            (title, [row for row in rows if requested in f"{row[0]} {row[1]}".casefold()]) for title, rows in groups
        ]
        self.browser.setHtml(self._html([(title, rows) for title, rows in shown if rows]))

    def _rows(self, menu: Menu) -> list[tuple[str, str]]:
        rows = []
        for binding in self._registry:
            keys = self._actions.by_id[binding.command.id].shortcuts()
            if binding.command.menu is menu and keys:
                texts = [key.toString(QKeySequence.SequenceFormat.NativeText) for key in keys]
                names = ", ".join(text for text in texts if text not in ("Shift+?", "Shift++"))
                rows.append((names, binding.command.whole_title))
        return rows

    def _html(self, groups: list[tuple[str, list[tuple[str, str]]]]) -> str:
        if not groups:
            return f"<p style='color:{css(self._theme.faint)}'>No key is called that.</p>"
        # Three columns of about equal length; a group stays in one piece.
        total = sum(len(rows) + 3 for _, rows in groups)
        columns: list[list[str]] = [[], [], []]
        used = 0
        for title, rows in groups:
            columns[min(2, used * 3 // total)].append(self._group_html(title, rows))
            used += len(rows) + 3
        cells = "".join(
            f"<td width='33%' valign='top' style='padding-right:18px'>{''.join(column)}</td>" for column in columns
        )
        return f"<table width='100%' cellspacing='0' cellpadding='0'><tr>{cells}</tr></table>"

    def _group_html(self, title: str, rows: list[tuple[str, str]]) -> str:
        theme = self._theme
        lines = "".join(
            f"<tr><td style='color:{css(theme.accent)}; padding-right:12px; white-space:nowrap'>{html_text(keys)}</td>"
            f"<td style='color:{css(theme.text)}'>{html_text(what)}</td></tr>"
            for keys, what in rows
        )
        style = f"margin:10px 0 2px 0; color:{css(theme.faint)}; font-size:{theme.px(11)}px"
        return (
            f"<p style='{style}'>{html_text(title.upper())}</p><table cellspacing='0' cellpadding='2'>{lines}</table>"
        )

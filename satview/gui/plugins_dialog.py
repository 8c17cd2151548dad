"""What other packages add to satview here, and what of it is switched off."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.base.plugins import all_plugins
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.plain_label import PlainLabel

_NONE = "No plug-ins are installed. docs/plugins.md says how one is written; examples/plugins has one of each kind."
_SOME = "Packages that are installed beside satview bring these. One that fails is switched off until the next start."


class PluginsDialog(QDialog):
    """The plug-ins with their packages, and why some are switched off."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Plug-ins")
        found = all_plugins()
        self.head = PlainLabel(self)
        self.head.setWordWrap(True)
        self.head.setText(_SOME if found else _NONE)
        self.tree = QTreeWidget(self)
        self.tree.setAccessibleName("Plug-ins")
        self.tree.setHeaderLabels(["Kind", "Name", "Package", "State"])
        self.tree.setRootIsDecorated(False)
        for plugin in found:
            plugin.value()  # says whether it can be imported
            state = f"switched off: {plugin.fault}" if plugin.fault else "on"
            words = (plugin.kind.word, plugin.name, plugin.package, state)
            item = QTreeWidgetItem(self.tree, [visible_line(word) for word in words])
            item.setToolTip(3, tool_tip(state))
        for column, width_px in enumerate((80, 140, 200)):
            self.tree.setColumnWidth(column, width_px)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.head)
        layout.addWidget(self.tree)
        layout.addWidget(buttons)
        self.resize(QSize(720, 320))

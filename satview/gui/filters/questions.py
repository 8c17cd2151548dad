"""Questions of the filter to the user, one function each, so that tests can answer them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from satview.base.safe_text import html_text, visible
from satview.gui.dialogs import clicked_button


def ask_rule_file(parent: QWidget, last: Path | None) -> Path | None:
    """Return the rule file to open, None if the user changed his mind."""
    name, _ = QFileDialog.getOpenFileName(
        parent, "Open rules", str(last.parent if last else ""), "Rules (*.satrules);;All files (*)"
    )
    return Path(name) if name else None


def allow_code(parent: QWidget, path: Path) -> bool:
    """Let the user confirm that a Python file may run; True only for an explicit yes."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle("Run Python code?")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(visible(f"The rules call functions of {path.name}."))
    box.setInformativeText(
        f"{html_text(str(path))}<br><br>This file is a program. It will run with all your rights: "
        "it can read, change and delete files. "
        "Run it only if you know what it does."
    )
    run = box.addButton("Run the code", QMessageBox.ButtonRole.AcceptRole)
    refuse = box.addButton("Do not run", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(refuse)
    box.setEscapeButton(refuse)
    return clicked_button(box) is run

"""How a window starts: what shows first, what is imported when, and what works before there are commands."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from tests.gui.hands import CONTROL, LEFT, K, run_program
from tests.helpers.commands import SAMPLE

_PROGRAM = """
import sys
from pathlib import Path
import PySide6.QtWidgets
from satview.gui.windows.application import Application, make_qt_application
from satview.gui.windows.command_window import Shared
from satview.session.loading.files import RecentFiles
from satview.session.settings import Settings

app = make_qt_application()
recent = RecentFiles(None, 9)
recent.add(Path(sys.executable))
window = Application(Shared(Settings(None), recent)).first_window()
app.processEvents()
assert window.isVisible()
heavy = ("numpy", "pyqtgraph", "construct", "satview.formats.registry", "satview.session.session")
print(" ".join(name for name in heavy if name in sys.modules))
window.complete()
print(len(window.actions_by_id.by_id) > 150)
"""


@pytest.mark.thorough
def test_window_shows_before_anything_heavy_is_imported():
    done = run_program(_PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\nTrue\n"


@pytest.fixture
def first_window(application, qtbot):
    """A window that shows and has no commands yet."""
    window = application.first_window()
    qtbot.waitExposed(window)
    assert not window.is_complete
    return window


@pytest.fixture
def asked(monkeypatch):
    """The windows that asked for files to open."""
    windows = []
    monkeypatch.setattr("satview.gui.dialogs.ask_open", lambda window, *_: windows.append(window) or [])
    return windows


def test_a_key_pressed_before_there_are_commands_runs_one(first_window, asked, qtbot):
    qtbot.keyClick(first_window, K.Key_O, CONTROL)
    assert asked == [first_window]
    qtbot.keyClick(first_window, K.Key_O, CONTROL)
    assert len(asked) == 2, "from now on as a shortcut"


@pytest.mark.thorough
def test_a_menu_opened_before_there_are_commands_is_filled(first_window, qtbot):
    bar = first_window.menuBar()
    qtbot.mouseClick(bar, LEFT, pos=bar.actionGeometry(bar.actions()[0]).center())
    menu = QApplication.activePopupWidget()
    assert [action.objectName() for action in menu.actions()][:2] == ["file.open", "file.open_link"]


@pytest.mark.thorough
def test_a_button_of_the_first_page_works_before_there_are_commands(first_window, asked, qtbot):
    button = next(b for b in first_window.welcome.findChildren(QPushButton) if b.text().startswith("Open trace"))
    qtbot.mouseClick(button, LEFT)
    assert asked == [first_window]


def test_nothing_moves_when_the_window_is_completed(first_window, qtbot):
    before = first_window.centralWidget().geometry()
    first_window.complete()
    QApplication.processEvents()
    assert first_window.centralWidget().geometry() == before


@pytest.mark.thorough
def test_a_window_closed_before_it_is_complete_goes(application, first_window, qtbot):
    first_window.close()
    qtbot.waitUntil(lambda: application.windows == [])


def test_a_file_is_opened_before_there_are_commands_and_they_are_there_with_its_views(first_window, qtbot):
    first_window.make_document()
    first_window.session.open(SAMPLE)
    assert not first_window.is_complete
    qtbot.waitUntil(lambda: first_window.workspace is not None, timeout=10_000)
    assert first_window.is_complete
    assert first_window.actions_by_id.by_id["view.zoom_in"].isEnabled()


def test_a_file_that_cannot_be_read_is_refused_before_there_are_commands(first_window, tmp_path, qtbot):
    first_window.make_document()
    first_window.session.open(tmp_path / "none.kev")
    qtbot.waitUntil(first_window.views.failed.isVisible, timeout=10_000)
    assert first_window.is_complete


def test_a_key_pressed_while_a_file_is_read_has_its_command(first_window, asked, qtbot):
    first_window.make_document()
    first_window.session.open(SAMPLE)
    qtbot.keyClick(first_window, K.Key_O, CONTROL)
    assert asked == [first_window]
    qtbot.waitUntil(lambda: first_window.workspace is not None, timeout=10_000)


def test_no_button_of_the_first_page_is_cut_off_with_large_text(application, first_window, qtbot):
    buttons = first_window.welcome.findChildren(QPushButton)
    before_px = buttons[0].width()
    application.settings.set("window/text_percent", 200)
    qtbot.waitUntil(lambda: buttons[0].width() > 1.5 * before_px)
    # A layout takes several turns of the event loop: the first button is wide before the last one is.
    qtbot.waitUntil(lambda: not [button for button in buttons if button.width() < button.sizeHint().width()])
    application.settings.set("window/text_percent", 100)
    qtbot.waitUntil(lambda: buttons[0].width() == before_px)

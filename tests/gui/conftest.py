"""Windows for tests: offscreen, settings in memory."""

from __future__ import annotations

import gc
import os
import shutil
from functools import cache
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["SATVIEW_CACHE"] = "off"  # that of the user is no business of tests

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from satview.__main__ import main
from satview.base.time import TimeWindow
from satview.gui.windows.application import Application
from satview.gui.windows.command_window import Shared
from satview.session import session
from satview.session.loading.files import RecentFiles
from satview.session.session import Stage
from satview.session.settings import Settings
from satview.session.state_files import StateFiles
from tests.gui.hands import take_keyboard
from tests.gui.leaks import Living, outliving
from tests.helpers.scene import scene
from tests.target.conftest import board, quick_clock, resident, targets_folder  # noqa: F401  -- fixtures

DENSE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"


@pytest.fixture(scope="session")
def qapp_args():
    return ["satview"]


@pytest.fixture(scope="package", autouse=True)
def nothing_waits_for_memory():
    """Give memory back at once: a timer of half a second would outlive every test that closes a trace."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_GIVE_BACK_MS", 0)
        yield


@pytest.fixture(autouse=True)
def nothing_outlives_its_test(qapp):
    """Fail where widgets, running timers, work or threads are left; first of all fixtures, so last to end."""
    before = Living.now()
    yield
    assert outliving(before) == []


@pytest.fixture(autouse=True)
def hands_off(nothing_outlives_its_test):
    """Leave no pressed button or key and no open menu behind: a file is not read again while the user holds either."""
    yield
    if QApplication.keyboardModifiers() != Qt.KeyboardModifier.NoModifier:  # those of the last click
        QTest.keyRelease(QWidget(), Qt.Key.Key_Shift)
    assert QApplication.keyboardModifiers() == Qt.KeyboardModifier.NoModifier
    while (popup := QApplication.activePopupWidget()) is not None:
        popup.close()
    for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton):
        if QApplication.mouseButtons() & button:
            somewhere = QWidget()
            QTest.mouseRelease(somewhere, button)
            somewhere.deleteLater()
    assert QApplication.mouseButtons() == Qt.MouseButton.NoButton


@pytest.fixture
def state_files():
    """Where what windows show is stored; nowhere, unless a module has a fixture of its own."""
    return StateFiles()


@pytest.fixture
def application(qapp, state_files):
    qapp.setStyle("Fusion")
    settings = Settings(None)
    settings.set("window/theme", "light")
    app = Application(Shared(settings, RecentFiles(None, 10), state_files))
    yield app
    app.close_all()
    app.deleteLater()
    QApplication.sendPostedEvents(None, 0)
    qapp.processEvents()
    gc.collect(1)
    gc.enable()  # for tests without a window, which have no event loop that collects


@pytest.fixture
def empty_window(application, qtbot):
    window = application.new_window()
    window.resize(1200, 800)
    qtbot.waitExposed(window)
    return window


@pytest.fixture
def load(qtbot):
    """Return a function that opens a file in a window and waits for its exact picture and the panels in front."""

    def run(window, path):
        window.session.open(path)
        qtbot.waitUntil(lambda: window.session.stage is not Stage.LOADING, timeout=10_000)
        assert window.session.stage is Stage.READY, window.session.error
        settle(qtbot, window)
        return window

    return run


def settle(qtbot, window):
    workspace, area = window.workspace, window.workspace.area
    view, panels = area.view, workspace.panels
    view.repaint()
    qtbot.waitUntil(lambda: not view.visible_rows() or area.is_exact, timeout=10_000)
    qtbot.waitUntil(
        lambda: all(name in panels.created for name in panels if workspace.panel_shows(name)), timeout=10_000
    )
    view.repaint()


def part(opened, first_ns, last_ns):
    """Return a part of a trace, by nanoseconds from its begin."""
    return TimeWindow(opened.trace.clock.cycles(first_ns), opened.trace.clock.cycles(last_ns))


def stack_of(qtbot, window, lane):
    """Return what a lane stacks, once it does: lanes that just came into sight are made in the background."""
    view = window.workspace.area.view
    qtbot.waitUntil(lambda: lane in view.stacks, timeout=10_000)
    return view.stacks[lane]


@pytest.fixture
def dense_copy(tmp_path):
    """Return a copy of the dense sample: notes are stored beside a trace."""
    return Path(shutil.copy(DENSE, tmp_path))


@pytest.fixture
def dense(empty_window, load, qtbot):
    """A window with the dense sample open and its swimlanes focused."""
    take_keyboard(load(empty_window, DENSE), qtbot)
    return empty_window


@pytest.fixture(scope="session")
def lesson(tmp_path_factory):
    """Return a function that captures a workload with wide events, once for all tests."""
    folder = tmp_path_factory.mktemp("lessons")

    @cache
    def capture(name):
        path = folder / f"{name}.kev"
        main(["tracelogger", "--workload", name, "-w", "-f", str(path)])  # 1 where a program gets stuck
        return path

    return capture


@pytest.fixture
def window(empty_window, load, tmp_path, qtbot):
    """A window with the scene of `tests.helpers.scene` open and its swimlanes focused."""
    take_keyboard(load(empty_window, scene(tmp_path)), qtbot)
    return empty_window


@pytest.fixture
def opened(window):
    return window.session.opened


@pytest.fixture
def view(window):
    return window.workspace.area.view

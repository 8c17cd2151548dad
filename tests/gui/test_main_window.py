from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QLineEdit, QMenu

from satview.base.errors import Cancelled
from satview.base.named_files import resource_path
from satview.formats import registry
from satview.gui import dialogs
from satview.session.commands import COMMANDS, PANELS, Menu
from satview.session.session import Stage
from tests.helpers import linux_scene
from tests.helpers.scene import scene


def page(window):
    return window.centralWidget().currentWidget()


def entries(menu):
    return [entry.text() for entry in menu.actions() if not entry.isSeparator() and QMenu.menuInAction(entry) is None]


def test_every_command_is_bound_and_stands_in_its_menu_with_its_icon(empty_window):
    assert [binding.command for binding in empty_window.registry] == list(COMMANDS)
    titles = {entry.value: entry for entry in Menu}
    for action in empty_window.menuBar().actions():
        menu = QMenu.menuInAction(action)
        mine = [command for command in COMMANDS if command.menu is titles[action.text()]]
        assert entries(menu) == [command.title for command in mine if not command.submenu]
        for submenu in {command.submenu for command in mine} - {""}:
            within = next(QMenu.menuInAction(entry) for entry in menu.actions() if entry.text() == submenu)
            assert entries(within) == [command.title for command in mine if command.submenu == submenu]
    for command in COMMANDS:
        if command.icon:
            assert resource_path(f"icons/{command.icon}.svg").is_file()
            assert not empty_window.actions_by_id.by_id[command.id].icon().isNull()


def test_shortcuts_are_live_and_unique(empty_window):
    seen = {}
    for command_id, action in empty_window.actions_by_id.by_id.items():
        for sequence in action.shortcuts():
            text = sequence.toString()
            assert text, command_id
            assert text not in seen, (text, command_id, seen.get(text))
            seen[text] = command_id


@pytest.mark.thorough
def test_commands_for_a_trace_are_off_until_one_is_open(empty_window, load, tmp_path):
    actions = empty_window.actions_by_id.by_id
    assert not actions["view.zoom_in"].isEnabled()
    assert actions["file.open"].isEnabled()
    load(empty_window, scene(tmp_path))
    assert actions["view.zoom_in"].isEnabled()
    assert not actions["view.focus"].isEnabled()
    empty_window.session.opened.select_event(3)
    assert actions["view.focus"].isEnabled()


@pytest.mark.thorough
def test_welcome_then_failed_then_open(empty_window, load, qtbot, tmp_path):
    assert page(empty_window) is empty_window.welcome
    bad = tmp_path / "letter.kev"
    bad.write_text("Dear all,")
    empty_window.session.open(bad)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.FAILED)
    assert page(empty_window) is empty_window.views.failed
    assert "letter.kev" in empty_window.views.failed.title.text()
    assert empty_window.views.failed.what.text().endswith(".")
    assert empty_window.views.failed.remedy.text()
    load(empty_window, scene(tmp_path))
    assert page(empty_window) is empty_window.workspace
    assert empty_window.windowTitle().startswith("scene.kev")


def test_loading_can_be_cancelled(empty_window, qtbot, tmp_path, monkeypatch):
    loaded = threading.Event()

    def slow(path, progress, cancelled):
        progress(0.25)
        loaded.set()
        while not cancelled():
            pass
        raise Cancelled

    monkeypatch.setattr("satview.formats.registry.open_trace", slow)
    empty_window.session.open(scene(tmp_path))
    assert loaded.wait(5)
    qtbot.waitUntil(lambda: empty_window.views.loading.bar.value() == 250)
    assert page(empty_window) is empty_window.views.loading
    assert empty_window.views.loading.title.text() == "Opening scene.kev"
    qtbot.mouseClick(empty_window.views.loading.cancel, Qt.MouseButton.LeftButton)
    assert page(empty_window) is empty_window.welcome


@pytest.mark.thorough
def test_window_stays_alive_while_loading(empty_window, qtbot, tmp_path, monkeypatch):
    release, real = threading.Event(), registry.open_trace

    def slow(path, progress, cancelled):
        release.wait(5)
        return real(path, progress, cancelled)

    monkeypatch.setattr(registry, "open_trace", slow)
    empty_window.session.open(scene(tmp_path))
    qtbot.keyClick(empty_window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    release.set()
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY)


@pytest.mark.thorough
def test_open_dialog_opens_in_this_window_and_more_in_others(application, empty_window, qtbot, tmp_path, monkeypatch):
    paths = [scene(tmp_path, "one.kev"), scene(tmp_path, "two.kev")]
    monkeypatch.setattr(dialogs, "ask_open", lambda *arguments: paths)
    empty_window.registry["file.open"].run()
    assert len(application.windows) == 2
    for window, path in zip(application.windows, paths, strict=True):
        qtbot.waitUntil(lambda window=window: window.session.stage is Stage.READY)
        assert window.session.opened.trace.path == path
    assert [file.name for file in application.shared.recent.files()][:1] != []


def test_drop_opens(empty_window, qtbot, tmp_path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(scene(tmp_path)))])
    drop = QDropEvent(
        QPointF(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    empty_window.dropEvent(drop)  # Qt delivers drops only to the target of a real drag
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY)


@pytest.mark.thorough
def test_an_opened_file_is_offered_again(window):
    window.recent_menu.fill()
    assert [action.text() for action in window.recent_menu.actions()] == ["scene.kev"]


@pytest.mark.thorough
def test_reload_reads_again_and_leaves_one_dock_of_each(window, qtbot):
    for _ in range(2):
        first = window.session.opened
        window.registry["file.reload"].run()
        qtbot.waitUntil(lambda: window.session.stage is Stage.READY)
        assert window.session.opened is not first
        names = [dock.objectName() for dock in window.findChildren(QDockWidget)]
        assert sorted(names) == sorted(f"dock.{row.name}" for row in PANELS)


@pytest.mark.thorough
def test_theme_command_repaints_everything(window):
    before = window.workspace.area.grab().toImage().pixel(5, 5)
    window.registry["view.theme_dark"].run()
    assert window.theme.is_dark
    assert window.workspace.area.grab().toImage().pixel(5, 5) != before
    assert window.registry["view.theme_dark"].is_checked()


@pytest.mark.thorough
def test_arrangement_is_remembered(application, window, load, tmp_path, qtbot):
    window.workspace.toggle_panel("events")
    window.close()
    QApplication.processEvents()
    other = application.new_window()
    load(other, scene(tmp_path))
    assert other.workspace.docks["events"].isHidden()
    other.resize(1200, 800)  # in a smaller one it is closed at first
    other.registry["panels.reset"].run()
    assert not other.workspace.docks["events"].isHidden()


def own_threads():
    """Return how many threads Python has begun; those of Qt's pool are known to it once they have waited for one."""
    return sum(thread.__class__.__name__ != "_DummyThread" for thread in threading.enumerate())


@pytest.mark.thorough
def test_closed_window_leaves_nothing_behind(application, load, qtbot, tmp_path):
    threads = own_threads()
    window = application.new_window()
    load(window, scene(tmp_path))
    opened, dead = weakref.ref(window.session.opened), weakref.ref(window)
    window.close()
    del window
    for _ in range(5):
        QApplication.sendPostedEvents(None, 0)
        QApplication.processEvents()
        gc.collect()
    assert dead() is None
    assert opened() is None
    assert application.windows == []
    assert QApplication.topLevelWidgets() == []
    assert own_threads() <= threads


@pytest.mark.thorough
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None lives for ever there, and its count means nothing")
def test_repaints_lose_no_reference_to_none(window):
    """PySide6 6.12.0 lost one per painter call, which ends Python 3.11 after some thousand repaints."""
    view, area = window.workspace.area.view, window.workspace.area
    for _ in range(20):
        area.repaint()
    before = sys.getrefcount(None)
    for _ in range(500):
        view.repaint()
        area.ruler.repaint()
    assert abs(sys.getrefcount(None) - before) <= 50


@pytest.mark.thorough
def test_file_cut_short_while_it_is_shown(empty_window, load, qtbot, tmp_path):
    """The window lives on, says why arguments are missing, and opens the file again when it is whole."""
    path = scene(tmp_path)
    window = load(empty_window, path)
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(200)
    trace, said = window.session.opened.trace, []
    window.session.reported.connect(said.append)
    window.session.opened.select_event(3)
    window.workspace.panels["events"].table.viewport().repaint()
    qtbot.waitUntil(lambda: said != [], timeout=5_000)
    assert "now 200; open it again; times and states stay" in said[0]
    (argument,) = trace.payloads.decode(3).arguments
    assert (argument.text, "now 200" in argument.note) == ("not readable any more", True)
    assert window.session.stage is Stage.READY
    qtbot.wait(600)
    assert len(said) == 1
    path.write_bytes(whole)
    load(window, path)
    assert window.session.stage is Stage.READY


@pytest.mark.thorough
def test_fields_of_the_status_bar_stay_behind_a_message(window, qtbot):
    """A click while a message shows: the fields change, and none is painted over the message."""
    status, bar = window.workspace.status, window.statusBar()
    window.workspace.report("a message for a few seconds")
    window.session.opened.select_event(12)
    window.session.opened.selection.set_range(window.session.opened.trace.window)
    qtbot.wait(20)
    assert not any(field.isVisible() for field in (status.mouse, status.selected, status.cursors, status.time_range))
    bar.clearMessage()
    assert status.selected.isVisible()
    assert status.selected.text().startswith("#13 ")
    assert status.time_range.text().startswith("Range ")


def test_a_link_can_be_typed_where_files_are_chosen(empty_window, qtbot, tmp_path):
    """In the dialog of Qt, which offscreen always is; what is no link there is looked for as a file, as before."""
    path, taken = scene(tmp_path), []

    def type_into(text):
        dialog = QApplication.activeModalWidget()
        line = dialog.findChild(QLineEdit, "fileNameEdit")
        line.setText(text)
        qtbot.keyClick(line, Qt.Key.Key_Return)
        return dialog

    QTimer.singleShot(0, lambda: type_into(f"{path.name}#t=1us..2us&sel=4"))
    assert dialogs.ask_open(empty_window, tmp_path, taken.append) == []
    assert [(link.path, link.range_text, link.event) for link in taken] == [(path, "1us..2us", 4)]
    QTimer.singleShot(0, lambda: type_into(path.name))
    assert dialogs.ask_open(empty_window, tmp_path, taken.append) == [path]
    assert len(taken) == 1


def test_the_title_names_another_system(application, qtbot, tmp_path):
    path = tmp_path / "host.txt"
    path.write_text(linux_scene.TEXT)
    window = application.new_window()
    window.session.open(path)
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY)
    assert window.windowTitle() == "host.txt (Linux) \N{EM DASH} satview"
    window.close()

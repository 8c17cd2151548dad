from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtWidgets import QAbstractButton, QDockWidget

from satview.events import wire
from satview.formats.kev.header import SlotWriter
from tests.helpers.kev import TraceBuilder, write_trace

LEFT = Qt.MouseButton.LeftButton


def top_items(tree):
    return {tree.topLevelItem(i).text(0): tree.topLevelItem(i) for i in range(tree.topLevelItemCount())}


def check(item, on):
    item.setCheckState(0, Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)


class TestDetails:
    @pytest.mark.thorough
    def test_link_goes_to_the_partner(self, window, opened):
        window.workspace.navigation.show_position("2us")
        html = window.workspace.panels["details"].browser.toHtml()
        target = next(
            row for row in range(len(opened.trace.events)) if f"event:{row}" in html and row != opened.selection.event
        )
        window.workspace.panels["details"].browser.anchorClicked.emit(QUrl(f"event:{target}"))
        assert opened.selection.event == target

    @pytest.mark.thorough
    def test_partner_of_a_long_trace_is_looked_for_in_the_background(self, window, opened, monkeypatch, qtbot):
        monkeypatch.setattr("satview.session.open_trace._PAIRS_AT_ONCE", 0)
        monkeypatch.setattr("satview.session.open_trace.LINKS_AT_ONCE", 0)
        monkeypatch.setattr("satview.session.open_trace.are_made", lambda _: False)
        details = window.workspace.panels["details"]
        window.workspace.navigation.show_position("2us")
        assert "Ends with" not in details.browser.toPlainText()
        qtbot.waitUntil(lambda: "Ends with" in details.browser.toPlainText())
        opened.select_event(0)
        assert "Ends with" not in details.browser.toPlainText()

    @pytest.mark.thorough
    def test_a_giant_event_shows_a_page_and_more_on_demand(self, empty_window, load, tmp_path):
        words = [0x80000000 + i for i in range(40_000)]
        slots = SlotWriter.slots_of(wire.code(wire.WireClass.USER, 17), 0, 10, words)
        window = load(empty_window, write_trace(tmp_path / "giant.kev", slots))
        window.session.opened.select_event(0)
        browser = window.workspace.panels["details"].browser
        assert "39,872 more words: show more" in browser.toPlainText()
        browser.anchorClicked.emit(QUrl("more:"))
        assert "38,976 more words: show more" in browser.toPlainText()
        browser.anchorClicked.emit(QUrl("more:"))
        assert "traceprinter prints them all" in browser.toPlainText()
        window.session.opened.selection.select(None, None, None)
        window.session.opened.select_event(0)
        assert "39,872 more words: show more" in browser.toPlainText()

    @pytest.mark.thorough
    def test_nothing_is_selected_and_a_strange_link_changes_nothing(self, window, opened):
        window.workspace.panels["details"].browser.anchorClicked.emit(QUrl("http://example.org/"))
        assert opened.selection.is_empty
        assert "Click an interval" in window.workspace.panels["details"].browser.toPlainText()


class TestFilterPanel:
    @pytest.mark.thorough
    def test_counts_and_groups(self, window, opened):
        groups = top_items(window.workspace.panels["filter"].events.tree)
        assert groups["KER_CALL"].text(1) == "1"
        assert groups["USREVENT"].text(1) == "2"
        assert groups["USREVENT"].childCount() == 2
        total = sum(int(item.text(1).replace(",", "")) for item in groups.values())
        assert total == len(opened.trace.events)

    @pytest.mark.thorough
    def test_unchecking_a_class_hides_its_events(self, window, opened):
        item = top_items(window.workspace.panels["filter"].events.tree)["USREVENT"]
        check(item, False)
        assert opened.filters.row_count == len(opened.trace.events) - 2
        assert window.workspace.panels["events"].model.rowCount() == opened.filters.row_count
        assert all(item.child(i).checkState(0) == Qt.CheckState.Unchecked for i in range(2))

    @pytest.mark.thorough
    def test_unchecking_one_event_makes_the_class_partial(self, window, opened):
        item = top_items(window.workspace.panels["filter"].events.tree)["USREVENT"]
        check(item.child(0), False)
        assert item.checkState(0) == Qt.CheckState.PartiallyChecked
        assert opened.filters.row_count == len(opened.trace.events) - 1
        assert f"{opened.filters.row_count:,} shown" in window.workspace.panels["filter"].summary.text()

    @pytest.mark.thorough
    def test_undo_checks_again(self, window, opened):
        item = top_items(window.workspace.panels["filter"].events.tree)["USREVENT"]
        check(item, False)
        assert opened.filters.row_count == len(opened.trace.events) - 2
        opened.edits.undo()
        assert not opened.filters.is_active  # one click is one step
        assert item.checkState(0) == Qt.CheckState.Checked

    def test_process_hides_lanes_and_rows(self, window, opened):
        tree = window.workspace.panels["filter"].threads.tree
        name = next(title for title in top_items(tree) if title.startswith("client"))
        check(top_items(tree)[name], False)
        titles = [opened.timeline.infos[row.index].title for row in opened.lanes.rows]
        assert "client" not in titles
        client = opened.trace.threads.row(2, 1)
        assert client not in opened.trace.events.thread[opened.filters.rows]

    @pytest.mark.thorough
    def test_search_none_and_invert_work_on_what_is_found(self, window, opened, qtbot):
        panel = window.workspace.panels["filter"]
        window.workspace.show_panel("filter")
        qtbot.keyClicks(panel.events.search, "event 7")
        assert panel.events.visible_keys() == [wire.code(wire.WireClass.USER, 7)]
        panel.events._show_visible(False)
        assert opened.filters.row_count == len(opened.trace.events) - 1
        panel.events._on_invert()
        assert not opened.filters.is_active
        panel.events._on_only()
        assert opened.filters.row_count == 1
        panel.events.search.clear()
        panel.events._show_visible(False)
        assert opened.filters.row_count == 0


class TestProblems:
    def test_click_goes_to_the_position(self, window, opened, qtbot):
        opened.viewport.zoom(0.1, opened.trace.clock.cycles(2_000))
        tree = window.workspace.panels["problems"].tree
        window.workspace.show_panel("problems")
        top = top_items(tree)["Lost buffers"]
        assert top.text(1) == "4"
        item = top.child(0)
        tree.scrollToItem(item)
        qtbot.mouseClick(tree.viewport(), LEFT, pos=tree.visualItemRect(item).center())
        assert opened.viewport.window.contains(opened.trace.clock.cycles(16_000))

    @pytest.mark.thorough
    def test_number_in_the_status_bar_opens_the_list(self, window, qtbot):
        button = window.workspace.status.problems
        assert button.text() == "File: 4 problems"
        qtbot.mouseClick(button, LEFT)
        assert window.workspace.panel_shows("problems")

    @pytest.mark.thorough
    def test_clean_trace_says_so(self, empty_window, load, tmp_path):
        load(empty_window, TraceBuilder().time_event(0).state("RUNNING", 5, 2, 1).write(tmp_path / "clean.kev"))
        assert empty_window.workspace.panels["problems"]._stack.currentIndex() == 1
        assert empty_window.workspace.status.problems.text() == "File: no problems"


class TestDialogs:
    @pytest.mark.thorough
    def test_information(self, window, qtbot):
        window.registry["file.info"].run()
        from satview.gui.dialogs import InfoDialog

        dialog = window.findChild(InfoDialog)
        sections = top_items(dialog.tree)
        rows = {
            sections["Trace"].child(i).text(0): sections["Trace"].child(i).text(1)
            for i in range(sections["Trace"].childCount())
        }
        assert rows["CPUs"] == "2"
        assert rows["Length"] == "20.00 \u00b5s"
        header = {sections["Header"].child(i).text(0) for i in range(sections["Header"].childCount())}
        assert "CYCLES_PER_SEC" in header
        dialog.close()

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("key", "value"), [("swimlane/lane_height_px", 30), ("window/wheel_zooms", True), ("window/theme", "dark")]
    )
    def test_settings_dialog_changes_settings(self, window, application, key, value):
        window.registry["file.settings"].run()
        from PySide6.QtWidgets import QCheckBox, QComboBox, QSpinBox

        from satview.gui.settings_dialog import SettingsDialog

        dialog = window.findChild(SettingsDialog)
        if isinstance(value, bool):
            dialog.findChild(QCheckBox, key).click()
        elif isinstance(value, int):
            dialog.findChild(QSpinBox, key).setValue(value)
        else:
            dialog.findChild(QComboBox, key).setCurrentText(value)
        assert application.settings.value(key) == value
        dialog.close()


@pytest.mark.thorough
def test_docks_have_buttons_once_they_are_seen(window, qtbot):
    """To lay out a dock with buttons takes Qt four times as long; those behind tabs are laid out too."""
    docks, button = window.workspace.docks, QDockWidget.DockWidgetFeature.DockWidgetClosable
    behind = [name for name in docks if not window.workspace.panel_shows(name)]
    assert len(behind) > 10
    assert not any(docks[name].features() & button for name in behind)
    window.workspace.show_panel("filter")
    qtbot.waitUntil(lambda: bool(docks["filter"].features() & button))
    close = docks["filter"].findChild(QAbstractButton, "qt_dockwidget_closebutton")
    qtbot.waitUntil(close.isVisible)
    qtbot.mouseClick(close, LEFT)
    assert docks["filter"].isHidden()


@pytest.mark.thorough
def test_legend_keeps_its_entries_within_its_width(window):
    legend = window.workspace.area.legend
    for width in (200, 400, 1200):
        legend.resize(width, 10)
        areas = [legend.area_of(entry.name) for entry in legend.entries]
        assert all(0 < area.right() <= width for area in areas)
        assert legend.height() >= areas[-1].bottom()


@pytest.mark.thorough
def test_hover_card_stays_inside(window):
    hover = window.workspace.area.hover
    area = window.workspace.area
    for point in (QPoint(0, 0), QPoint(area.width(), area.height()), QPoint(area.width() // 2, area.height())):
        hover.show_at(point, "RUNNING<br>1 ms<br>three<br>four")
        assert area.rect().contains(hover.geometry())

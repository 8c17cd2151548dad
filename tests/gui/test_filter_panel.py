"""The filter's widgets: typed, clicked, then session state, rows and pixels are looked at."""

from __future__ import annotations

import threading
from time import sleep

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QPushButton

from satview.events import states, wire
from satview.filters.passes import Effect
from satview.formats.kev.header import SlotWriter, write_kev
from satview.gui import dialogs
from satview.gui.colours import mixed, value_colour
from satview.gui.filters import rules_tab
from satview.gui.filters.chips import add_filter_menus
from satview.gui.filters.rules_tab import WouldCaptureDialog
from satview.gui.theme import DARK, LIGHT
from tests.gui.hands import CONTROL, LEFT, RIGHT, K, contrast


@pytest.fixture
def panel(window):
    window.workspace.show_panel("filter")
    return window.workspace.panels["filter"]


@pytest.fixture
def settled(opened, qtbot):
    def wait():
        qtbot.waitUntil(lambda: not opened.filters.is_pending)
        return opened.filters

    return wait


def labels(menu):
    return [action.text() for action in menu.actions()]


class TestCondition:
    @pytest.mark.thorough
    def test_typing_a_condition_filters(self, panel, window, opened, qtbot, settled):
        line = panel.condition.line
        qtbot.keyClicks(line, "class == USREVENT")
        qtbot.waitUntil(lambda: panel.condition.message.text().startswith("2 of"))
        assert not opened.filters.is_active, "it is counted before it is added"
        qtbot.keyClick(line, K.Key_Return)
        assert settled().row_count == 2
        model = window.workspace.panels["events"].model
        assert model.rowCount() == 2
        assert {model.index(row, 6).data() for row in range(2)} == {"USREVENT"}
        assert list(window.workspace.chips.chips) == ["A"]
        assert window.workspace.chips.chips["A"].count.text() == "2"

    def wave(self, line, is_coloured):
        """Return the first and the last column of a wave of a colour under the words of a line."""
        image = line.grab().toImage()
        rows = range(image.height() - 8, image.height() - 2)
        found = [x for x in range(image.width()) if any(is_coloured(image.pixelColor(x, y)) for y in rows)]
        return found[0], found[-1]

    @pytest.mark.thorough
    def test_fault_names_the_word_and_has_a_wave_under_it(self, panel, opened, qtbot):
        line = panel.condition.line
        qtbot.keyClicks(line, "event == MSG_SENDV and duraton > 2ms")
        assert (line.fault.start, line.fault.end) == (23, 30)
        first, last = self.wave(line, lambda colour: colour.red() > 150 and colour.green() < 120)
        left = line._x_of(23)
        assert left - 4 <= first < last <= left + line.fontMetrics().horizontalAdvance("duraton") + 6
        assert "Column 24" in panel.condition.message.text()
        assert "duration" in panel.condition.message.text()
        qtbot.keyClick(line, K.Key_Return)
        assert not opened.filters.state.stack.passes

    @pytest.mark.thorough
    def test_what_no_capture_can_ask_has_a_wave_in_the_colour_of_warnings(self, panel, opened, qtbot):
        line = panel.condition.line
        qtbot.keyClicks(line, "pid == 1 and duration > 2ms")
        assert line.fault is None
        assert [(limit.start, limit.end) for limit in line.limits] == [(13, 21)]
        qtbot.waitUntil(lambda: "In views only: duration is known only later" in panel.condition.message.text())
        first, last = self.wave(line, lambda colour: colour.red() > colour.blue() + 60)
        left = line._x_of(13)
        assert left - 4 <= first < last <= left + line.fontMetrics().horizontalAdvance("duration") + 6
        qtbot.keyClick(line, K.Key_Return)
        assert [item.expression for item in opened.filters.state.stack.passes] == ["pid == 1 and duration > 2ms"]

    @pytest.mark.thorough
    def test_tab_takes_a_proposal_arrows_choose_and_escape_closes(self, panel, qtbot):
        line = panel.condition.line
        qtbot.keyClicks(line, "durat")
        assert line.proposals.isVisible()
        qtbot.keyClick(line, K.Key_Tab)
        assert line.text() == "duration"
        assert not line.proposals.isVisible()
        line.clear()
        qtbot.keyClicks(line, "event == MSG_SEND")
        count = line.proposals.count()
        assert count > 1
        qtbot.keyClick(line, K.Key_Down)
        qtbot.keyClick(line, K.Key_Down)
        needed = line.proposals.item(1).text().split()[0]
        qtbot.keyClick(line, K.Key_Return)
        assert line.text() == f"event == {needed}"
        qtbot.keyClicks(line, " and p")
        qtbot.keyClick(line, K.Key_Escape)
        assert not line.proposals.isVisible()
        assert line.text().endswith(" and p")


class TestChips:
    @pytest.mark.thorough
    def test_click_switches_off_and_cross_removes_and_trees_have_chips_too(self, window, opened, qtbot, settled):
        opened.filters.add_pass("class == USREVENT")
        settled()
        chips = window.workspace.chips
        assert chips.isVisible()
        qtbot.mouseClick(chips.chips["A"].label, LEFT)
        assert settled().rows is None
        assert chips.chips["A"].property("chip") == "off"
        qtbot.mouseClick(chips.chips["A"].cross, LEFT)
        assert not chips.isVisible()
        assert opened.edits.undo_title == "removed filter"
        opened.filters.show_codes([wire.code(wire.WireClass.USER, 7)], False)
        chip = window.workspace.chips.chips["codes"]
        assert chip.count.text() == f"{len(opened.trace.events) - 1:,}"
        chip.cross.click()
        assert not opened.filters.is_active

    @pytest.mark.thorough
    def test_the_unknown_thread_is_not_counted(self, window, opened, settled):
        def said():
            settled()
            return window.workspace.chips.chips["threads"].label.text()

        opened.filters.only_threads([1], "only")
        assert said() == "only 1 of 2 threads"
        opened.filters.only_threads([1, 2], "only")
        assert said() == "only 2 of 2 threads, without the unknown thread"
        opened.filters.only_threads([0], "only")
        assert said() == "only 0 of 2 threads, and the unknown thread"

    @pytest.mark.thorough
    def test_menu_changes_the_effect_and_says_what_a_capture_cannot_ask(self, window, opened, settled):
        opened.filters.add_pass("class == USREVENT")
        menu = window.workspace.chips.menu("A")
        next(action for action in menu.actions() if action.text() == "Highlight").trigger()
        assert opened.filters.pass_named("A").effect is Effect.MARK
        assert settled().view.marked.sum() == 2
        assert [action.text() for action in menu.actions() if not action.isEnabled() and action.text()] == []
        opened.filters.add_pass("length > 1ms")
        said = [action.text() for action in window.workspace.chips.menu("B").actions() if not action.isEnabled()]
        assert "Not in a capture: length is known only later, when the event has long been logged" in said

    @pytest.mark.thorough
    def test_edit_brings_it_back_into_the_line(self, panel, window, opened, qtbot, settled):
        opened.filters.add_pass("class == USREVENT")
        window.workspace.chips.edit_requested.emit("A")
        line = panel.condition.line
        assert line.text() == "class == USREVENT"
        line.setText("class == KER_CALL")
        qtbot.keyClick(line, K.Key_Return)
        assert [item.expression for item in opened.filters.state.stack.passes] == ["class == KER_CALL"]
        assert settled().row_count == 1

    @pytest.mark.thorough
    def test_many_chips_wrap(self, window, opened, settled):
        for cpu in range(12):
            opened.filters.add_pass(f"cpu == {cpu} or duration > 1234567ns", effect=Effect.COUNT)
        settled()
        QApplication.processEvents()
        chips = window.workspace.chips
        assert all(chips.rect().contains(chip.geometry()) for chip in chips.chips.values())
        assert len({chip.y() for chip in chips.chips.values()}) > 1

    @pytest.mark.thorough
    def test_one_that_stays_keeps_its_position_and_a_new_one_takes_what_is_left_over(
        self, window, opened, qtbot, settled
    ):
        chips = window.workspace.chips
        for expression in ("class == USREVENT", "class == KER_CALL"):
            opened.filters.add_pass(expression)
        settled()
        first, second = chips.chips["A"], chips.chips["B"]
        qtbot.mouseClick(first.cross, LEFT)
        assert not first.isVisible()
        opened.filters.show_codes([wire.code(wire.WireClass.USER, 7)], False)
        settled()
        QApplication.processEvents()
        assert list(chips.chips) == ["codes", "B"]
        assert chips.chips["B"] is second
        assert chips.chips["codes"] is first
        qtbot.mouseClick(first.label, LEFT)  # a chip of the trees cannot be switched off, nor is it a pass any more
        assert opened.filters.state.chooses
        assert first.label.text().startswith("only ")
        assert chips.chips["codes"].x() < second.x()
        assert first.nextInFocusChain() is not second.label  # first its own cross
        assert second.cross.nextInFocusChain().text() in ("To rules", f"Combine{chr(0x2026)}")

    @pytest.mark.thorough
    def test_lanes_stay_where_they_are_when_a_chip_changes_its_text(self, window, view, opened, settled):
        opened.filters.add_pass("class == USREVENT")
        settled()
        QApplication.processEvents()
        before = view.geometry()
        opened.filters.change_pass("A", effect=Effect.MARK, expression="class == KER_CALL")
        settled()
        QApplication.processEvents()
        assert view.geometry() == before


class TestPixels:
    def count(self, view, colour):
        """Return how many pixels of the lanes have a colour."""
        view.repaint()
        image = view.grab().toImage()
        pixels = np.frombuffer(image.convertToFormat(image.Format.Format_RGB32).constBits(), np.uint32)
        return int((pixels & 0xFFFFFF == colour).sum())

    def test_highlight_draws_in_the_colour_of_hits(self, view, opened, settled):
        assert self.count(view, LIGHT.hit) == 0
        opened.filters.add_pass("class == USREVENT", effect=Effect.MARK)
        settled()
        assert self.count(view, LIGHT.hit) > 5

    @pytest.mark.parametrize("effect", [Effect.HIDE, pytest.param(Effect.DIM, marks=pytest.mark.thorough)])
    def test_what_does_not_pass_loses_its_colour_until_all_is_shown_again(self, view, opened, settled, effect):
        running = value_colour(states.RUNNING, False)
        before = self.count(view, running)
        assert before > 0
        opened.filters.add_pass("class == USREVENT", effect=effect)
        settled()
        assert self.count(view, running) == 0
        opened.filters.show_all()
        settled()
        assert self.count(view, running) == before

    @pytest.mark.thorough
    @pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
    def test_list_has_marked_ground_and_dimmed_text_that_is_fainter_and_can_be_read(
        self, window, opened, settled, theme
    ):
        window.set_theme(theme)
        opened.filters.add_pass("class == USREVENT", effect=Effect.DIM)
        opened.filters.add_pass("class == USREVENT", effect=Effect.MARK)
        settled()
        model = window.workspace.panels["events"].model
        marked = model.index(int(np.flatnonzero(opened.filters.view.marked)[0]), 0)
        dimmed = model.index(int(np.flatnonzero(opened.filters.view.dimmed)[0]), 0)
        assert marked.data(Qt.ItemDataRole.BackgroundRole) is not None
        assert dimmed.data(Qt.ItemDataRole.BackgroundRole) is None
        text = dimmed.data(Qt.ItemDataRole.ForegroundRole)
        for ground in (theme.base, theme.alternate):
            shown = mixed(text.rgb() & 0xFFFFFF, ground, 1 - text.alphaF())
            assert 4 < contrast(shown, ground) < contrast(theme.text, ground) / 2


class TestContextMenu:
    @pytest.mark.thorough
    def test_filter_to_this_thread(self, window, opened, settled):
        client = opened.trace.threads.row(2, 1)
        event = int(np.flatnonzero(opened.trace.events.thread == client)[0])
        opened.select_event(event)
        menu = QMenu()
        add_filter_menus(menu, opened)
        to, exclude, highlight = (QMenu.menuInAction(action) for action in menu.actions())
        next(action for action in to.actions() if action.text().startswith("This thread")).trigger()
        assert set(opened.trace.events.thread[settled().rows].tolist()) == {client}
        opened.filters.show_all()
        next(action for action in exclude.actions() if action.text().startswith("This event")).trigger()
        assert opened.trace.events.code[event] not in opened.trace.events.code[settled().rows]
        assert highlight.actions()
        opened.filters.show_all()
        next(action for action in exclude.actions() if action.text().startswith("This thread")).trigger()
        left = np.unique(opened.trace.events.thread[settled().rows]).tolist()
        assert left == [thread for thread in np.unique(opened.trace.events.thread).tolist() if thread != client]
        assert 0 in left, "events of which no thread is known stay"

    @pytest.mark.thorough
    def test_rows_of_the_trees(self, panel, opened, qtbot, settled):
        sends = wire.code(wire.WireClass.USER, 7)
        for tree, selected in ((panel.events, "codes"), (panel.threads, "threads")):
            panel.tabs.setCurrentWidget(tree)
            tree.tree.expandAll()
            key = sends if tree is panel.events else opened.trace.threads.row(2, 1)
            item = tree._leaves[key]
            tree.tree.scrollToItem(item)
            position = tree.tree.visualItemRect(item).center()
            qtbot.mouseClick(tree.tree.viewport(), RIGHT, pos=position)
            menu = tree.menu()
            assert labels(menu) == [f"{lead} {item.text(0)}" for lead in ("Filter &to", "E&xclude", "&Include")]
            menu.actions()[0].trigger()
            settled()
            assert np.flatnonzero(getattr(opened.filters.state, selected)).tolist() == [key]
            opened.filters.show_all()
            menu.actions()[1].trigger()
            settled()
            assert np.flatnonzero(~getattr(opened.filters.state, selected)).tolist() == [key]
            menu.actions()[2].trigger()
            assert not opened.filters.is_active

    @pytest.mark.thorough
    def test_argument_of_the_details(self, window, opened, qtbot, settled):
        window.workspace.show_panel("details")
        opened.select_event(int(np.flatnonzero(opened.trace.events.code >> 10 == wire.WireClass.KER_CALL)[0]))
        browser = window.workspace.panels["details"].browser
        names = [argument.name for argument in opened.trace.payloads.decode(opened.selection.event).arguments]
        at = browser.document().find(names[0])
        assert not at.isNull()
        position = browser.cursorRect(at).center() - QPoint(2, 0)
        if not browser.viewport().rect().contains(position):
            browser.verticalScrollBar().setValue(position.y() - 40)
            position = browser.cursorRect(at).center() - QPoint(2, 0)
        assert window.workspace.panels["details"].argument_at(position) == names[0]
        menu = QMenu()
        add_filter_menus(menu, opened, names[0])
        assert labels(menu)[0].startswith(f"Filter &to {names[0]} = ")
        menu.actions()[0].trigger()
        assert opened.selection.event in settled().rows.tolist()


class TestTrees:
    @pytest.mark.thorough
    def test_form_of_an_event_shows_in_list_and_details(self, panel, window, opened):
        codes = [int(code) for code in panel._codes if panel._form_text(int(code))]
        assert codes
        panel.events.note_clicked.emit(codes)
        assert opened.filters.is_wide == dict.fromkeys(codes, True)
        panel.events.note_clicked.emit(codes)
        assert opened.filters.is_wide == dict.fromkeys(codes, False)
        assert "fast" in {panel.events._leaves[code].text(2) for code in codes}
        opened.edits.undo()
        assert set(opened.filters.is_wide.values()) == {True}

    @pytest.mark.thorough
    def test_presets(self, panel, opened, qtbot, settled):
        texts = labels(panel.presets.menu())
        assert texts[:4] == ["Used the CPU", "Changed state", "Did IPC", "MsgSend family of the selected"]
        panel.presets.menu().actions()[0].trigger()
        qtbot.waitUntil(lambda: opened.filters.is_active)
        assert not opened.filters.state.threads.all()
        assert opened.edits.undo_title == "Used the CPU"

    @pytest.mark.thorough
    def test_cpu_share_counts_no_time_of_lost_buffers(self, application, load, qtbot, tmp_path):
        maker = SlotWriter()
        for number, time, pid in ((1, 0, 7), (3, 900_000, 12), (4, 950_000, 12)):
            maker.event(wire.CONTROL_BUFFER, 0, time, (number, 3))
            maker.event(wire.CONTROL_TIME, 0, time, (0, time))
            maker.event(wire.THREAD_RUNNING, 0, time + 1, (pid, 1))
        pairs = {"LITTLE_ENDIAN": "TRUE", "CYCLES_PER_SEC": "1000000", "SYS_RELEASE": "6.4.1", "SYSPAGE_LEN": "0"}
        write_kev(tmp_path / "lost.kev", tuple(pairs.items()), b"", maker.slots(), "little")
        window = load(application.new_window(), tmp_path / "lost.kev")
        panel, opened = window.workspace.panels["filter"], window.workspace.opened
        window.workspace.show_panel("filter")
        lost, visible = (opened.trace.threads.row(pid, 1) for pid in (7, 12))
        qtbot.waitUntil(lambda: panel.threads._leaves[visible].text(2) != "")
        assert panel.threads._leaves[visible].text(2) == "5.3 %"
        assert panel.threads._leaves[lost].text(2) == "<0.1 %"

    @pytest.mark.thorough
    def test_effect_of_the_check_boxes(self, panel, opened, settled):
        panel.effect.setCurrentIndex(1)
        panel.effect.activated.emit(1)
        assert opened.filters.state.effect is Effect.DIM


class TestRules:
    @pytest.mark.thorough
    def test_apply_and_fault(self, panel, opened, qtbot, settled):
        panel.tabs.setCurrentWidget(panel.rules_page)
        editor = panel.rules.editor
        editor.setPlainText("ADDCLASS THREAD\nADDCLAS COMM")
        assert editor.faults[0].line == 2
        assert "ADDCLASS" in panel.rules.message.text()
        assert not panel.rules.apply_button.isEnabled()
        editor.setPlainText("ADDCLASS USER")
        qtbot.mouseClick(panel.rules.apply_button, LEFT)
        assert settled().row_count == 2

    @pytest.mark.thorough
    def test_triggers_show_where_they_hit_as_marks(self, panel, opened, qtbot):
        panel.tabs.setCurrentWidget(panel.rules_page)
        panel.rules.editor.setPlainText('WHEN class == USREVENT THEN MARK "seen"; STOP')
        qtbot.mouseClick(panel.rules.apply_button, LEFT)
        qtbot.waitUntil(lambda: "Triggers hit 2 times" in panel.rules.message.text())
        times = opened.trace.events.time_cycles[opened.trace.events.code >> 10 == 6].tolist()
        assert [(mark.start_cycles, mark.text) for mark in opened.marks] == [(time, "seen") for time in times]
        panel.rules.editor.setPlainText("ADDCLASS USER")
        qtbot.mouseClick(panel.rules.apply_button, LEFT)
        assert len(opened.marks) == 0

    @pytest.mark.thorough
    def test_limits_of_a_capture_are_marked_and_do_not_keep_rules_from_a_view(self, panel):
        panel.rules.editor.setPlainText("ADDALLCLASSES\nADDCLASSEVHANDLER THREAD WHERE length > 1ms")
        assert [(limit.line, limit.column) for limit in panel.rules.editor.limits] == [(2, 32)]
        assert "Line 2: a capture cannot test this: length" in panel.rules.message.text()
        assert panel.rules.apply_button.isEnabled()

    def test_proposals(self, panel, qtbot):
        panel.tabs.setCurrentWidget(panel.rules_page)
        editor = panel.rules.editor
        editor.clear()
        qtbot.keyClicks(editor, "ADDEVENT KERCALL MSG_SENDVN")
        assert editor.proposals.isVisible()
        qtbot.keyClick(editor, K.Key_Tab)
        assert editor.toPlainText() == "ADDEVENT KERCALL MSG_SENDVNC"
        assert editor.faults == ()

    @pytest.mark.thorough
    def test_files_run_nothing_until_a_yes(self, panel, opened, tmp_path, monkeypatch, settled, qtbot):
        code = f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef one(event):\n    return True\n"
        (tmp_path / "evil.py").write_text(code)
        (tmp_path / "a.satrules").write_text("ADDCLASS KERCALLENTER\nADDCLASSEVHANDLER KERCALLENTER CALL evil.py:one\n")
        requested = []
        monkeypatch.setattr(rules_tab, "allow_code", lambda parent, path: requested.append(path) or False)
        panel.rules.load(tmp_path / "a.satrules")
        assert not (tmp_path / "ran").exists()
        panel.rules.apply_button.click()
        assert requested == [tmp_path / "evil.py"]
        assert not (tmp_path / "ran").exists()
        assert "not allowed" in panel.rules.message.text()
        monkeypatch.setattr(rules_tab, "allow_code", lambda parent, path: True)
        panel.rules.apply_button.click()
        assert settled().row_count == 1
        assert (tmp_path / "ran").exists()
        (tmp_path / "evil.py").write_text("def one(event):\n    return False\n")
        panel.rules.apply_button.click()  # takes handlers that were changed
        assert settled().row_count == 0
        assert len(opened.filters.state.stack.passes) == 1

    @pytest.mark.thorough
    def test_save_open_and_import(self, panel, tmp_path, monkeypatch):
        monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: tmp_path / "b.satrules")
        panel.rules.editor.setPlainText("ADDCLASS USER")
        panel.rules.save()
        assert (tmp_path / "b.satrules").read_text() == "ADDCLASS USER\n"
        panel.rules.editor.clear()
        monkeypatch.setattr(rules_tab, "ask_rule_file", lambda *arguments: tmp_path / "b.satrules")
        panel.rules.open()
        assert panel.rules.editor.toPlainText().strip() == "ADDCLASS USER"
        panel.rules._run_reporting(panel.rules.import_arguments)
        text = panel.rules.message.text()
        assert "TRACELOGGER_ARGS" in text or panel.rules.editor.toPlainText().startswith("# ")

    @pytest.mark.thorough
    def test_back_to_capture(self, panel, opened, tmp_path, monkeypatch, qtbot, window):
        panel.rules.editor.setPlainText("ADDALLCLASSES\nDELCLASS COMM")
        actions = {action.text(): action for action in panel.rules.capture_menu.actions()}
        actions["Copy as tracelogger command"].trigger()
        assert QGuiApplication.clipboard().text().startswith("tracelogger")
        monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: tmp_path / "rules.c")
        next(action for text, action in actions.items() if "C program" in text).trigger()
        assert "_NTO_TRACE_ADDCLASS, _NTO_TRACE_THREAD" in (tmp_path / "rules.c").read_text()
        assert panel.rules.message.text() == "Saved rules.c"
        with qtbot.waitSignal(opened.capture_requested) as needed:
            next(action for text, action in actions.items() if "new capture" in text).trigger()
        assert needed.args == ["ADDALLCLASSES\nDELCLASS COMM"]
        qtbot.waitUntil(lambda: window.findChild(QDialog) is not None)  # its modules are imported beside the window
        dialog = window.findChild(QDialog)
        assert dialog.rules.text == "ADDALLCLASSES\nDELCLASS COMM"
        dialog.close()

    @pytest.mark.thorough
    def test_what_c_cannot_do_is_reported_where_it_is_exported(self, panel, tmp_path, monkeypatch):
        panel.rules.editor.setPlainText("ADDALLCLASSES\nADDCLASSEVHANDLER COMM WHERE cpu == 1 or time > 1s")
        monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: tmp_path / "rules.c")
        actions = {action.text(): action for action in panel.rules.capture_menu.actions()}
        next(action for text, action in actions.items() if "C program" in text).trigger()
        said = panel.rules.message.text()
        assert said.startswith("Saved rules.c, which does not compile: ")
        assert "\nline 2, column 42: " in said
        assert panel.rules.message.property("role") == "error"
        cursor = panel.rules.editor.textCursor()
        assert cursor.block().text()[cursor.positionInBlock() :] == "time > 1s"
        panel.rules.editor.setPlainText("ADDALLCLASSES\nWHERE pid == 7")
        next(action for text, action in actions.items() if "C program" in text).trigger()
        assert panel.rules.message.text().startswith("Saved rules.c\nWHERE does not apply to ")

    @pytest.mark.thorough
    def test_what_would_be_captured(self, panel, window, qtbot):
        panel.rules.editor.setPlainText("ADDCLASS USER")
        panel.rules.show_would_capture()
        dialog = window.findChild(WouldCaptureDialog)
        qtbot.waitUntil(lambda: "USREVENT" in dialog.browser.toPlainText())
        assert "state changes would be missing" in dialog.browser.toPlainText()
        dialog.close()

    @pytest.mark.thorough
    def test_esc_stops_working_out_what_would_be_captured(self, panel, window, opened, qtbot):
        panel.rules.editor.setPlainText("ADDCLASS USER")
        stopped = threading.Event()

        def long_work(is_cancelled, run):
            if any(is_cancelled() or sleep(0.005) for _ in range(1000)):
                stopped.set()

        opened.filters.evaluator.alone = long_work
        panel.rules.show_would_capture()
        dialog = window.findChild(WouldCaptureDialog)
        dialog.activateWindow()
        qtbot.waitUntil(lambda: QApplication.activeWindow() is dialog)
        qtbot.keyClick(dialog, K.Key_Escape)
        assert stopped.is_set()

    @pytest.mark.thorough
    def test_filter_becomes_rules(self, panel, window, opened, qtbot, settled):
        sends = [code for code in opened.trace.catalogue.find("MSG_SENDV") if opened.trace.code_counts[code]]
        opened.filters.only_codes(sends, "x")
        panel.condition.line.setText("cpu == 0")
        qtbot.keyClick(panel.condition.line, K.Key_Return)
        settled()
        panel.rules.editor.setPlainText("ADDCLASS USER")
        button = next(b for b in window.workspace.chips.findChildren(QPushButton) if b.text() == "To rules")
        qtbot.mouseClick(button, LEFT)
        assert panel.rules.isVisible()
        text = panel.rules.editor.toPlainText()
        assert "ADDEVENT KERCALL MSG_SENDV" in text
        assert text.splitlines()[-1] == "WHERE (cpu == 0)"
        assert panel.rules.apply_button.isEnabled()
        qtbot.keyClick(panel.rules.editor, K.Key_Z, CONTROL)
        assert panel.rules.editor.toPlainText() == "ADDCLASS USER"


class TestSearch:
    @pytest.mark.thorough
    def test_condition_in_the_find_bar_and_a_faulty_one(self, window, opened, qtbot):
        bar = window.workspace.find_bar
        bar.start()
        qtbot.keyClicks(bar.line, "class == USREVENT")
        qtbot.keyClick(bar.line, K.Key_Return)
        qtbot.waitUntil(lambda: not opened.search.is_pending)
        assert len(opened.search.hits) == 2
        opened.search.find("pid == and")
        assert bar.count.text().startswith("Column 8")

    def test_table_export_and_copy_and_a_button_that_shows_it(self, window, opened, qtbot, tmp_path, monkeypatch):
        results = window.workspace.panels["results"]
        opened.search.find("class == USREVENT")
        qtbot.waitUntil(lambda: results.model.rowCount() == 2)
        results.copy()
        qtbot.waitUntil(lambda: results.message.text() == "Copied 2 events")
        lines = QGuiApplication.clipboard().text().splitlines()
        assert len(lines) == 3
        assert lines[0].startswith("Number\tTime")
        monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: tmp_path / "hits.csv")
        results.ask_export()
        qtbot.waitUntil((tmp_path / "hits.csv").exists)
        assert len((tmp_path / "hits.csv").read_text().splitlines()) == 3
        qtbot.waitUntil(lambda: results.message.text() == "Wrote 2 events")
        results.table.selectRow(1)
        assert opened.selection.event == int(opened.search.hits[1])
        window.workspace.find_bar.list_requested.emit()
        QApplication.processEvents()
        assert window.workspace.panel_shows("results")


@pytest.mark.thorough
def test_theme_change_reaches_every_part(window, opened, settled):
    opened.filters.add_pass("class == USREVENT", effect=Effect.MARK)
    settled()
    window.set_theme(DARK)
    assert f"#{DARK.panel:06x}" in window.workspace.chips.styleSheet()


@pytest.mark.thorough
def test_a_condition_that_holds_nowhere_says_why(panel, qtbot):
    line = panel.condition.line
    for text, why in (
        ("priority > 10", "`priority > 10` holds for none of 17 events: the trace has no priorities"),
        ("class == SYSTEM", "`class == SYSTEM` needs events of SYSTEM, of which there are none."),
    ):
        line.setText(text)
        qtbot.waitUntil(lambda why=why: why in panel.condition.message.text())


@pytest.mark.thorough
def test_a_filter_that_is_gone_is_not_changed_nor_another_one_of_its_name(panel, opened, qtbot):
    opened.filters.add_pass("cpu == 0")
    (name,) = (item.name for item in opened.filters.state.stack.passes)
    panel.condition.edit(name)
    opened.filters.remove_pass(name)
    assert panel.condition.editing == ""
    opened.filters.add_pass("class == THREAD")  # it gets the name that is free
    panel.condition.line.setText("cpu == 1")
    qtbot.keyClick(panel.condition.line, K.Key_Return)
    assert [item.expression for item in opened.filters.state.stack.passes] == ["class == THREAD", "cpu == 1"]


@pytest.mark.thorough
def test_focus_in_the_line_makes_durations_ready(panel, opened, qtbot):
    cached = opened.trace._cached._values
    cached.pop("links.state_ends", None)  # the marks of statistics may have computed it
    qtbot.mouseClick(panel.condition.line, LEFT)
    panel.condition.line.focused.emit()  # the window of a test need not be the active one
    qtbot.waitUntil(lambda: {"links.partners", "links.state_ends"} <= set(cached))

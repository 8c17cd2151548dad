"""How states look: colours and thickness of one's own, hatching, size of text; the legend explains and highlights."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QApplication, QColorDialog

from satview.base.errors import WriteError
from satview.events import states
from satview.filters.passes import Effect
from satview.gui.colours import (
    FADE,
    HATCHES,
    StateLook,
    hatch_of,
    is_thick,
    mixed,
    read_looks,
    value_colour,
    write_looks,
)
from satview.gui.settings_dialog import SettingsDialog, StateLooksDialog
from satview.gui.swimlane import fills
from satview.gui.swimlane.fills import EVENTS, RAN, hatch, lane_colour, swatch
from satview.gui.swimlane.lane_image import LanePalette, PixelRowKind, ShownMarks, bands, stack_of_lane
from satview.gui.swimlane.shares import share_text
from satview.gui.swimlane.text import FittedTexts, _ink
from satview.gui.theme import DARK, LIGHT, theme_of
from satview.session.settings import Settings
from satview.store.mark_file import Mark
from tests.core.reference.replacing import numpy_passes
from tests.gui.conftest import part, settle
from tests.gui.hands import LEFT, K, contrast, rgb
from tests.gui.test_lane_image import draw

READY, MUTEX = states.READY, states.STATE_BY_NAME["MUTEX"].value
CLIENT_1 = 3  # its lane in the scene


def colour_at(window, lane, ns):
    opened, view = window.session.opened, window.workspace.area.view
    row, scale = opened.lanes.row_of(lane), view.scale
    top, bottom = stack_of_lane(row, view.scroll_px, 1.0, ShownMarks.NONE, SimpleNamespace(cpus=0, keeps_all=False))
    x = round(scale.x(opened.trace.clock.cycles(ns)))
    return rgb(view.grab().toImage(), x, (top + bottom) // 2 + 2)


def test_looks_are_read_as_they_are_written():
    looks = [StateLook(READY, light=0x102030), StateLook(states.KERNEL_CALL, dark=0xABCDEF, is_thick=False)]
    text = write_looks(looks)
    assert text == "READY light=#102030; kernel_call dark=#abcdef thin"
    assert list(read_looks(text).values()) == looks
    assert write_looks([StateLook(READY)]) == ""


@pytest.mark.parametrize(
    "text", ["", ";;;", "NO_STATE thick", "READY light=#12", "READY light=red fat", "=", "\x00 thin", "READY " * 3000]
)
def test_what_no_look_says_changes_nothing(text):
    assert read_looks(text) == {}
    assert value_colour(READY, False, looks=text) == value_colour(READY, False)


def test_a_look_holds_on_its_background_only():
    text = "READY light=#123456 thin"
    assert value_colour(READY, False, looks=text) == 0x123456
    assert value_colour(READY, True, looks=text) == value_colour(READY, True)
    assert not is_thick(READY, text)
    assert is_thick(READY)


@pytest.mark.parametrize(
    ("values", "is_hatched"),
    [({}, False), ({"palette": "print"}, True), ({"palette": "print", "hatching": "never"}, False),
     ({"hatching": "always"}, True)],
)  # fmt: skip
def test_hatching_is_for_print_unless_it_is_set(values, is_hatched):
    assert themed(values).is_hatched is is_hatched


def test_what_looks_alike_in_greys_is_hatched_otherwise():
    """The greys of two processes are one: every second process is hatched. So are the kinds of waiting."""
    processes = range(states.FIRST_PROCESS, states.VALUE_COUNT)
    assert len({(value_colour(value, False, "print"), hatch_of(value)) for value in processes}) == len(processes)
    names = ("RUNNING", "READY", "MUTEX", "SEND", "REPLY", "SEM", "CONDVAR", "INTR")
    hatches = [hatch_of(states.STATE_BY_NAME[name].value) for name in names]
    assert len(set(hatches)) == len(names)
    assert len(set(HATCHES)) == len(HATCHES)


@pytest.mark.thorough
def test_the_core_hatches_what_numpy_hatches():
    random = np.random.default_rng(3)
    for _ in range(40):
        size, top, ratio = random.integers(1, 60, 2), int(random.integers(0, 50)), float(random.integers(1, 4))
        pixels = random.integers(0, 1 << 24, size).astype(np.uint32)
        pixels |= (255 - random.integers(0, len(HATCHES) + 3, size)).astype(np.uint32) << np.uint32(24)
        mine, theirs = pixels.copy(), pixels.copy()
        hatch(mine, top, ratio)
        with numpy_passes():
            hatch(theirs, top, ratio)
        assert np.array_equal(mine, theirs)
        assert (mine >> 24 == 255).all()
        is_plain = pixels >> 24 == 255
        assert np.array_equal(mine[is_plain], pixels[is_plain])


def test_a_hatch_is_ink_on_the_colour_of_its_state():
    """READY has lines four pixels apart."""
    theme = themed({"hatching": "always"})
    picture = draw([READY] * 16, theme)
    row = picture[(bands(20).bar_top + bands(20).bar_end) // 2]
    ready = value_colour(READY, False)
    assert np.count_nonzero(row != ready) == 4
    assert len(set(row.tolist())) == 2
    assert (draw([READY] * 16)[10] == ready).all()
    image = swatch(READY, theme, 16, 8, 1.0)
    assert {image.pixel(x, 3) & 0xFFFFFF for x in range(16)} == set(row.tolist())
    assert lane_colour(READY, ready, LIGHT) == 0xFF000000 | ready


def themed(values):
    """Return the theme that settings of the lanes make."""
    settings = Settings(None)
    for key, value in values.items():
        settings.set(f"swimlane/{key}", value)
    return theme_of(settings)


def test_highlighting_fades_all_but_what_it_is_about():
    usual, palette = LanePalette(LIGHT).table, LanePalette(LIGHT, highlighted=frozenset({READY})).table
    assert palette[PixelRowKind.INNER, READY] == usual[PixelRowKind.INNER, READY]
    assert palette[PixelRowKind.INNER, MUTEX] != usual[PixelRowKind.INNER, MUTEX]
    ticks = PixelRowKind.TICKS, READY | states.SEEN_EVENT
    assert palette[ticks] != usual[ticks]
    events = LanePalette(LIGHT, highlighted=frozenset({EVENTS})).table
    assert events[PixelRowKind.TICKS, READY | states.SEEN_EVENT] == usual[PixelRowKind.TICKS, READY | states.SEEN_EVENT]
    ran, key = LanePalette(LIGHT, highlighted=frozenset({RAN})).table, MUTEX | states.SEEN_RUNNING
    assert ran[PixelRowKind.FOOT, key] == usual[PixelRowKind.FOOT, key]
    assert ran[PixelRowKind.INNER, key] != usual[PixelRowKind.INNER, key]


def click_legend(window, qtbot, name):
    legend = window.workspace.area.legend
    area = legend.area_of(name)
    assert not area.isEmpty(), name
    qtbot.mouseClick(legend, LEFT, pos=area.center().toPoint())


@pytest.mark.thorough
def test_a_click_on_the_legend_highlights_and_another_ends_that(window, view, qtbot):
    running, reply = value_colour(states.RUNNING, False), value_colour(states.STATE_BY_NAME["REPLY"].value, False)
    assert (colour_at(window, CLIENT_1, 3_500), colour_at(window, CLIENT_1, 6_000)) == (running, reply)
    click_legend(window, qtbot, "RUNNING")
    assert colour_at(window, CLIENT_1, 3_500) == running
    assert colour_at(window, CLIENT_1, 6_000) not in (reply, LIGHT.base)
    click_legend(window, qtbot, "REPLY")
    assert colour_at(window, CLIENT_1, 3_500) != running
    assert colour_at(window, CLIENT_1, 6_000) == reply
    click_legend(window, qtbot, "REPLY")
    assert (colour_at(window, CLIENT_1, 3_500), colour_at(window, CLIENT_1, 6_000)) == (running, reply)
    click_legend(window, qtbot, "events are missing")
    assert colour_at(window, CLIENT_1, 3_500) != running
    qtbot.keyClick(view, K.Key_Escape)
    assert colour_at(window, CLIENT_1, 3_500) == running


@pytest.mark.thorough
def test_the_legend_can_be_used_by_keys(window, opened, qtbot):
    legend = window.workspace.area.legend
    names = [entry.name for entry in legend.entries]
    legend.setFocus()
    for _ in range(names.index("REPLY")):
        qtbot.keyClick(legend, K.Key_Right)
    qtbot.keyClick(legend, K.Key_Space)
    assert opened.legend.keys == {states.STATE_BY_NAME["REPLY"].value}
    qtbot.keyClick(legend, K.Key_Left)
    qtbot.keyClick(legend, K.Key_Space)
    assert opened.legend.keys == legend.entries[names.index("REPLY") - 1].keys
    qtbot.keyClick(legend, K.Key_Escape)
    assert not opened.legend.keys


@pytest.mark.thorough
def test_the_legend_explains_ticks_strips_hatching_and_the_states_that_occur(window):
    names = window.workspace.area.legend.accessibleName()
    for thing in ("events", "ran for less than a pixel", "events are missing", "dense: height", "client", "server"):
        assert thing in names
    for state in ("RUNNING", "READY", "REPLY", "RECEIVE", "NANOSLEEP"):
        assert state in names
    assert "MUTEX" not in names, "it does not occur"


@pytest.fixture
def dialog(window, qtbot):
    window.actions_by_id.refresh()
    window.actions_by_id.by_id["file.state_looks"].trigger()
    found = window.findChild(StateLooksDialog)
    found.activateWindow()
    found.tree.setFocus()
    yield found
    found.close()


def choose(dialog, qtbot, name):
    qtbot.keyClicks(dialog.tree, name)  # the list goes to what begins so
    assert dialog.tree.currentItem().text(0) == name


@pytest.mark.thorough
def test_a_state_gets_a_colour_and_a_thickness_and_all_a_palette_and_hatching(dialog, window, application, qtbot):
    choose(dialog, qtbot, "READY")
    qtbot.mouseClick(dialog.colour_button, LEFT)
    chooser = dialog.findChild(QColorDialog)
    chooser.setCurrentColor(QColor(0x12, 0x34, 0x56))
    qtbot.keyClick(chooser, K.Key_Return)
    assert colour_at(window, CLIENT_1, 700) == 0x123456
    qtbot.mouseClick(dialog.thickness_button, LEFT)
    assert application.settings.text("swimlane/state_looks") == "READY light=#123456 thin"
    assert dialog.tree.currentItem().text(1) == "thin"
    assert dialog.tree.currentItem().font(0).bold()
    qtbot.mouseClick(dialog.usual_button, LEFT)
    assert colour_at(window, CLIENT_1, 700) == value_colour(READY, False)
    assert application.settings.text("swimlane/state_looks") == ""
    application.settings.set("swimlane/state_looks", "READY thin; MUTEX light=#000000")
    qtbot.mouseClick(dialog.all_usual_button, LEFT)
    assert application.settings.text("swimlane/state_looks") == ""
    qtbot.keyClicks(dialog.palette_box, "print")
    assert application.settings.text("swimlane/palette") == "print"
    assert window.theme.is_hatched
    qtbot.keyClicks(dialog.hatching_box, "never")
    assert not window.theme.is_hatched


@pytest.mark.thorough
def test_a_setting_that_makes_no_sense_is_no_obstacle(application, window):
    application.settings.set("swimlane/state_looks", "READY light=#zzzzzz thin;; ???")
    assert colour_at(window, CLIENT_1, 700) in (value_colour(READY, False), LIGHT.base)
    assert window.theme.looks


@pytest.mark.thorough
def test_text_has_the_size_that_is_set(window, application, qtbot):
    usual, legend = QApplication.font().pointSizeF(), window.workspace.area.legend
    height, small = legend.height(), window.workspace.area.view.lanes.texts.font.pixelSize()
    application.settings.set("window/text_percent", 150)
    assert QApplication.font().pointSizeF() == pytest.approx(usual * 1.5)
    assert window.workspace.area.view.lanes.texts.font.pixelSize() == small * 1.5
    assert legend.height() > height
    assert window.menuBar().font().pointSizeF() == pytest.approx(usual * 1.5)
    application.settings.set("window/text_percent", 100)
    assert QApplication.font().pointSizeF() == pytest.approx(usual)
    assert legend.height() == height


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_can_be_read_on_what_is_behind_them(theme):
    """WCAG requires 4.5; what is faint is no more than decoration of what is said elsewhere."""
    for text in (theme.text, theme.dim, theme.warning, theme.error, theme.accent):
        for behind in (theme.window, theme.panel, theme.base):
            assert contrast(text, behind) >= 4.5, (hex(text), hex(behind))


@pytest.mark.thorough
def test_kinds_of_work_are_shown_on_lanes_of_cpus_and_undone(dense, qtbot):
    view, opened = dense.workspace.area.view, dense.session.opened
    cpu = opened.lane_of_cpu(0)
    assert max(view.stacks[cpu].values) >= states.FIRST_PROCESS
    busy = view.stacks[cpu].tops[list(view.stacks[cpu].values).index(states.IDLE) - 1]
    qtbot.keyClick(view, K.Key_K)
    settle(qtbot, dense)
    kinds = view.stacks[cpu]
    assert kinds.values[:3] == (states.RUNNING, states.KERNEL_CALL, states.INTERRUPT)
    assert "user code on a CPU" in dense.workspace.area.legend.accessibleName()
    # The same time, divided otherwise: interrupts are above what they interrupted.
    assert np.abs(kinds.tops[2] - busy).max() < 0.02
    text = share_text(opened, cpu, kinds.window_of(20), kinds.spans)
    assert "user" in text
    assert "kernel call" in text
    dense.actions_by_id.by_id["edit.undo"].trigger()
    settle(qtbot, dense)
    assert max(view.stacks[cpu].values) >= states.FIRST_PROCESS


@pytest.mark.thorough
def test_settings_lead_to_the_colours(window, qtbot):
    window.actions_by_id.by_id["file.settings"].trigger()
    dialog = window.findChild(SettingsDialog)
    qtbot.mouseClick(dialog.looks_button, LEFT)
    looks = dialog.findChild(StateLooksDialog)
    assert looks.isVisible()
    looks.close()
    dialog.close()


@pytest.mark.thorough
def test_lanes_are_rectangles_in_an_svg_unless_they_are_too_many(window, tmp_path, monkeypatch):
    """The strip and the hatched piece of the legend are images, lanes are none: READY is in the file by its colour."""
    with pytest.raises(
        WriteError, match=r"exp\.foo: the file extension selects the format; use \.png or \.svg or \.pdf"
    ):
        window.workspace.area.save_picture(tmp_path / "exp.foo", [])
    window.workspace.area.save_picture(tmp_path / "lanes.svg", [])
    text = (tmp_path / "lanes.svg").read_text()
    assert text.count("<image") == 2
    assert f'fill="#{value_colour(READY, False):06x}"' in text
    monkeypatch.setattr(fills, "_MOST", 10)
    window.workspace.area.save_picture(tmp_path / "image.svg", [])
    assert (tmp_path / "image.svg").read_text().count("<image") == 3


def test_rectangles_are_the_picture():
    random = np.random.default_rng(8)
    pixels = random.choice(np.array([0xFF000001, 0xFF0000FF], np.uint32), (5, 9)).repeat(3, axis=0)
    again = np.zeros_like(pixels)
    for left, top, width, height, colour in fills.rectangles(pixels).tolist():
        again[top : top + height, left : left + width] = colour | 0xFF000000
    assert np.array_equal(pixels, again)


@pytest.mark.thorough
def test_the_legend_explains_what_a_filter_marks(window, opened, qtbot):
    window.resize(1400, 1000)
    legend = window.workspace.area.legend
    assert legend.area_of("marked by a filter").isEmpty()
    opened.filters.add_pass("state == REPLY", effect=Effect.MARK)
    qtbot.waitUntil(lambda: not legend.area_of("marked by a filter").isEmpty())


@pytest.mark.thorough
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_what_a_filter_highlights_keeps_its_colour_and_the_rest_fades(window, opened, qtbot, theme):
    """Of the client its waits for a reply are highlighted."""
    window.set_theme(theme)
    opened.filters.add_pass("state == REPLY", effect=Effect.MARK)
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    settle(qtbot, window)
    spans, start = opened.timeline.lane(CLIENT_1).spans, opened.trace.window.start
    ends_ns = dict(zip(spans.value[:-1].tolist(), (spans.start_cycles[1:] - start).tolist(), strict=True))
    reply, running = (value_colour(states.STATE_BY_NAME[name].value, theme.is_dark) for name in ("REPLY", "RUNNING"))
    assert colour_at(window, CLIENT_1, ends_ns[states.STATE_BY_NAME["REPLY"].value] - 100) == reply
    assert colour_at(window, CLIENT_1, ends_ns[states.RUNNING] - 100) == mixed(running, theme.base, FADE)


@pytest.mark.parametrize("palette", ["standard", "colour-blind", "contrast", "print"])
@pytest.mark.parametrize("is_dark", [False, True])
def test_names_can_be_read_on_every_fill(palette, is_dark):
    """Black or white, whichever has more contrast: at least 4.5, which WCAG asks for texts of this size."""
    theme = replace(DARK if is_dark else LIGHT, palette=palette)
    for value in range(2, states.VALUE_COUNT):
        fill = value_colour(value, is_dark, palette)
        assert contrast(fill, _ink(value, theme)) >= 4.5, (value, f"{fill:06x}")


def test_names_of_states_have_short_forms_and_are_never_cut(qapp):
    texts = FittedTexts(QFont(), Qt.TextElideMode.ElideRight, 3, 4, {"NANOSLEEP": "SLP", "MUTEX": "MTX"})
    whole, short = texts.width("NANOSLEEP"), texts.width("SLP")
    fitting = [None if (laid := texts.fit("NANOSLEEP", room)) is None else laid.static_text.text()
               for room in (whole + 3, whole - 4, short + 1, short - 1)]  # fmt: skip
    assert fitting == ["NANOSLEEP", "SLP", "SLP", None]
    assert len({state.short for state in states.STATES}) >= len(states.STATES) - 1  # SLEEPING is of Linux
    assert all(len(state.short) <= 3 for state in states.STATES)


@pytest.mark.thorough
def test_states_keep_their_colour_in_a_range_and_under_a_note(window, opened, qtbot):
    """What is outside the range is paler; a note with a span draws no more than lines at its ends."""
    reply = value_colour(states.STATE_BY_NAME["REPLY"].value, False)
    clock = opened.trace.clock
    assert colour_at(window, CLIENT_1, 6_000) == reply
    opened.marks.add(Mark(clock.cycles(5_500), clock.cycles(6_500), "slow"))
    assert colour_at(window, CLIENT_1, 6_000) == reply
    opened.selection.set_range(part(opened, 5_000, 7_000))
    assert colour_at(window, CLIENT_1, 6_000) == reply
    outside = colour_at(window, CLIENT_1, 7_500)
    assert outside not in (reply, LIGHT.base)
    assert contrast(outside, LIGHT.window) < contrast(reply, LIGHT.window)


def test_what_is_not_known_is_hatched_in_every_palette():
    for palette in ("standard", "colour-blind", "contrast", "print"):
        image = swatch(states.UNKNOWN, replace(LIGHT, palette=palette), 16, 16, 1.0)
        idle = swatch(states.IDLE, replace(LIGHT, palette=palette), 16, 16, 1.0)
        colours = {image.pixel(x, y) for x in range(16) for y in range(16)}
        assert len(colours) == 2, palette
        if palette != "print":
            assert {idle.pixel(x, y) for x in range(16) for y in range(16)} < colours

"""All arrows in the window: the key, the menu, what is drawn, and what the card under the mouse says."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtTest import QTest

from satview.session import arrow_source
from satview.session.arrow_source import ArrowMode
from satview.timeline.arrows import ArrowKind
from tests.gui.conftest import settle
from tests.gui.hands import LEFT, K
from tests.helpers.exchange import Exchange
from tests.helpers.kev import START


def exchange(folder, repeats=1):
    """Write messages from shell to disk, each sent, received 99 later and answered."""
    made = Exchange()
    for number in range(repeats):
        at = 1000 * number
        made.send(at + 100, 2, 3, 1)
        made.receive(at + 200, 2, 3)
        made.reply(at + 700, 2)
        made.goes_on(at + 800, 2)
    return made.build.write(folder / "exchange.kev")


@pytest.fixture
def window(empty_window, load, tmp_path):
    """A window with one exchange."""
    return load(empty_window, exchange(tmp_path))


def all_arrows(window, qtbot):
    """Press L and wait until the arrows are drawn; return the layer."""
    view = window.workspace.area.view
    QTest.keyClick(view, K.Key_L)
    qtbot.waitUntil(lambda: view.arrows.source.is_ready, timeout=10_000)
    settle(qtbot, window)
    return view.arrows


@pytest.mark.thorough
def test_the_key_draws_all_arrows_and_takes_them_away(window, qtbot):
    view, actions = window.workspace.area.view, window.actions_by_id.by_id
    before = view.grab().toImage()
    layer = all_arrows(window, qtbot)
    assert layer.mode is ArrowMode.ALL
    assert (len(layer.groups), layer.groups.total) == (2, 2)
    middle = view.scale.x(START + 150)
    top, bottom = sorted(
        row.y_px - view.scroll_px + row.height_px * 0.555
        for row in window.session.opened.lanes.rows
        if row.index in (layer.groups.arrows.from_lane[0], layer.groups.arrows.to_lane[0])
    )
    picture, y = view.grab().toImage(), round((top + bottom) / 2)
    changed = [x for x in range(round(middle) - 40, round(middle) + 40) if picture.pixel(x, y) != before.pixel(x, y)]
    assert changed
    QTest.keyClick(view, K.Key_L)
    assert layer.mode is ArrowMode.SELECTION
    assert view.grab().toImage() == before
    actions["view.arrows_off"].trigger()
    assert layer.mode is ArrowMode.OFF
    window.actions_by_id.refresh()
    assert [actions[f"view.arrows_{mode}"].isChecked() for mode in ("off", "selection", "all")] == [True, False, False]


@pytest.mark.thorough
def test_off_hides_the_way_of_the_selected_event_too(window, view, opened):
    opened.select_event(int(opened.trace.events.time_cycles.searchsorted(START + 102)))
    assert opened.event_links.links.way
    with_way = view.grab().toImage()
    window.actions_by_id.by_id["view.arrows_off"].trigger()
    assert view.grab().toImage() != with_way


@pytest.mark.thorough
def test_the_card_names_both_ends_and_the_delay_and_the_legend_leaves_one_kind(window, view, qtbot):
    layer = all_arrows(window, qtbot)
    message = layer.groups.arrows.kind.tolist().index(ArrowKind.MESSAGE)
    x1, y1, x2, y2 = layer._end_px[message]
    position = QPointF((x1 + x2) / 2, (y1 + y2) / 2)
    assert layer.at(position) == message
    QTest.mouseMove(view, QPoint(1, 1))
    before = view.grab().toImage()
    QTest.mouseMove(view, position.toPoint())
    qtbot.waitUntil(lambda: layer.hovered == message, timeout=5_000)
    assert view.grab().toImage() != before, "the arrow under the mouse is drawn thicker"
    text = layer.text(message)
    for part in ("<b>message</b>", "99 ns", "shell 1 \N{RIGHTWARDS ARROW} disk 1", "SND_MESSAGE #"):
        assert part in text
    assert "shell 1" in window.workspace.area.hover.text()
    assert layer.at(QPointF(x1 + 200, y1)) != message
    legend = window.workspace.area.legend
    QTest.mouseClick(legend, LEFT, pos=legend.area_of("reply").center().toPoint())
    view.repaint()
    assert [ArrowKind(kind).name for kind in layer.groups.arrows.kind.tolist()] == ["REPLY"]
    QTest.mouseClick(legend, LEFT, pos=legend.area_of("reply").center().toPoint())
    QTest.keyClick(view, K.Key_L)
    assert "reply" not in [entry.name for entry in legend.entries]


def test_dense_arrows_are_counts_where_they_end_and_a_click_zooms_to_them(empty_window, load, tmp_path, qtbot):
    window = load(empty_window, exchange(tmp_path, repeats=1500))
    view = window.workspace.area.view
    before = view.grab().toImage()
    layer = all_arrows(window, qtbot)
    groups = layer.groups
    assert groups.is_counted
    assert groups.total == 3000
    assert int(groups.count.sum()) == 3000
    group = int(groups.count.argmax())
    left, top, width, height = layer._boxes[group]
    row = window.session.opened.lanes.rows[groups.to_position[group]]
    assert row.y_px < top + view.scroll_px < top + view.scroll_px + height < row.y_px + row.height_px
    picture = view.grab().toImage()
    inside = [picture.pixel(round(left + x), round(top + height / 2)) for x in range(round(width))]
    assert len(set(inside)) > 2  # the triangle and the number
    upper, lower = (window.session.opened.lanes.rows[position] for position in sorted(
        {int(groups.from_position[group]), int(groups.to_position[group])}))  # fmt: skip
    between = range(upper.y_px + upper.height_px - view.scroll_px + 8, lower.y_px - view.scroll_px - 8)
    assert all(picture.pixel(x, y) == before.pixel(x, y) for x in range(before.width()) for y in between)
    text = layer.text(group)
    assert "messages</b>" in text or "replies</b>" in text
    assert "a click zooms to them" in text
    begin, end = int(groups.begin[group]), int(groups.end[group])
    middle = QPoint(round(left + width / 2), round(top + height / 2))
    QTest.mouseMove(view, middle)
    qtbot.waitUntil(lambda: layer.hovered == group, timeout=5_000)
    assert view.grab().toImage() != picture, "the arrows under the mouse are drawn"
    QTest.mouseClick(view, LEFT, pos=middle)
    shown = window.session.opened.viewport.window
    assert shown.start <= begin < end <= shown.end
    assert shown.length == pytest.approx(1.1 * (end - begin), rel=0.01)
    assert window.session.opened.viewport.can_go_back
    assert window.session.opened.selection.is_empty


@pytest.mark.thorough
def test_a_click_on_an_arrow_selects_its_link_and_brackets_step_along_it(window, qtbot):
    """The message is sent at 102, the reply at 700; both lead to the other lane."""
    layer, view, opened = all_arrows(window, qtbot), window.workspace.area.view, window.session.opened
    assert [entry.name for entry in window.workspace.area.legend.entries][-2:] == ["message", "reply"]
    before = view.grab().toImage()
    x1, y1, x2, y2 = layer._end_px[layer.groups.arrows.kind.tolist().index(ArrowKind.MESSAGE)]
    middle = QPoint(round((x1 + x2) / 2), round((y1 + y2) / 2))
    QTest.mouseClick(view, LEFT, pos=middle)
    link = opened.highlight.shown.link
    times = opened.trace.events.time_cycles
    assert (link.name, int(times[link.from_row]) - START, int(times[link.to_row]) - START) == ("message", 102, 201)
    assert opened.selection.event == link.from_row
    settle(qtbot, window)
    text = window.workspace.panels.created["details"].as_text()
    assert text.startswith("message  [link]\nshell 1 \N{RIGHTWARDS ARROW} disk 1\n")
    assert "  Takes  99 ns  (99 cycles)\n" in text
    picture = view.grab().toImage()
    assert picture.pixel(middle) != before.pixel(middle)
    QTest.keyClick(view, K.Key_BracketRight)
    assert opened.selection.event == link.to_row
    assert opened.highlight.shown is None
    QTest.keyClick(view, K.Key_BracketLeft)
    assert opened.selection.event == link.from_row


@pytest.mark.thorough
def test_a_sample_is_replaced_by_all_arrows(empty_window, load, tmp_path, qtbot, monkeypatch):
    monkeypatch.setattr(arrow_source, "_AT_ONCE", 500)
    window = load(empty_window, exchange(tmp_path, repeats=3000))
    layer, view = all_arrows(window, qtbot), window.workspace.area.view
    qtbot.waitUntil(lambda: layer.groups is not None and not layer.groups.is_sample, timeout=10_000)
    assert layer.groups.total == 6000
    window.session.opened.viewport.zoom(0.9, START + 1_000_000)
    view.repaint()
    assert layer.groups.is_sample
    assert 5000 < layer.groups.about < 7000


@pytest.mark.thorough
def test_folded_lanes_have_the_arrows_of_their_threads(window, qtbot):
    layer, opened = all_arrows(window, qtbot), window.session.opened
    opened.lanes.fold_all()
    window.workspace.area.view.repaint()
    assert layer.groups.total == 2
    lanes = [opened.lanes.rows[position].index for position in layer.groups.from_position]
    assert {opened.timeline.infos[lane].title for lane in lanes} == {"shell", "disk"}


@pytest.mark.thorough
def test_the_selection_is_remembered(application, window, load, tmp_path, qtbot):
    all_arrows(window, qtbot)
    other = application.new_window()
    other.resize(900, 600)
    load(other, exchange(tmp_path))
    assert other.workspace.area.view.arrows.mode is ArrowMode.ALL

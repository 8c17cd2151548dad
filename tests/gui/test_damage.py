"""What a window shows of a damaged trace."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from satview.events import wire
from satview.gui.theme import LIGHT
from satview.timeline.lane_info import LaneKind
from tests.gui.hands import rgb
from tests.helpers.kev import TraceBuilder, write_trace

STEP = 40_000_000
ROLLOVER = 1 << 32


def slots(pause: bool = False) -> np.ndarray:
    builder = TraceBuilder().process_name(0, 1, "procnto").time_event(1)
    for pid in (2, 3):
        builder.process_name(pid, pid, f"p{pid}").event(wire.THREAD_CREATE, pid, (pid, 1)).state("READY", pid, pid, 1)
    for number in range(1, 200):
        if number % 20 == 0:
            builder.time_event(number * STEP)
        builder.state("RUNNING", number * STEP + 5, 2 + number % 2, 1)
    if pause:
        builder.time_event(40 * ROLLOVER).state("RUNNING", 40 * ROLLOVER + 5, 2, 1)
    return np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)


def test_first_view_ends_where_nothing_confirms_the_clock_and_zero_shows_everything(empty_window, load, tmp_path):
    window = load(empty_window, write_trace(tmp_path / "t.kev", slots(pause=True)))
    viewport = window.session.opened.viewport
    assert 199 * STEP < viewport.window.length < 202 * STEP
    assert not viewport.can_go_back
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_0)
    assert viewport.window.length >= 40 * ROLLOVER


@pytest.mark.thorough
def test_damage_hangs_from_the_overview_and_shows_itself(empty_window, load, tmp_path):
    broken = slots()
    at = np.flatnonzero(broken[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME)[5]
    broken[at, 2] ^= np.uint32(1 << 20)
    window = load(empty_window, write_trace(tmp_path / "t.kev", broken))
    trace, overview = window.session.opened.trace, window.workspace.area.overview
    time = int(trace.events.time_cycles[np.flatnonzero(trace.events.slot == at)[0]])
    x = round(overview._scale.x(time))
    picture = overview.grab().toImage()
    assert [rgb(picture, x + dx, 2) == LIGHT.error for dx in (0, 40)] == [True, False]
    said = "a TIME event of CPU 0 is 1048576 rollovers off its neighbours, and ignored"
    assert overview.text_at(x + 1).endswith(f"\nDamaged times: {said}")
    assert "Damaged" not in overview.text_at(x + 40)


@pytest.mark.thorough
def test_events_of_damaged_slots_are_in_a_lane_of_their_own(empty_window, load, tmp_path):
    broken = slots()
    states = np.flatnonzero(broken[:, 0] & wire.CODE_MASK == wire.THREAD_RUNNING)
    broken[states[50], 2] |= np.uint32(1 << 27)
    broken[states[90], 0] |= np.uint32(9 << wire.CPU_SHIFT)
    window = load(empty_window, write_trace(tmp_path / "t.kev", broken))
    opened = window.session.opened
    infos = [opened.timeline.infos[row.index] for row in opened.lanes.rows]
    assert [info.title for info in infos if info.kind is LaneKind.CPU] == ["CPU 0"]
    assert (infos[-1].kind, infos[-1].subtitle) == (LaneKind.DAMAGED, "1 CPU, 1 process")
    rows = {int(slot): row for row, slot in enumerate(opened.trace.events.slot)}
    opened.select_event(rows[int(states[50])])
    assert opened.selection.lane == infos[-1].index
    mine = opened.timeline.events_of(infos[-1].index).tolist()
    assert {rows[int(states[50])], rows[int(states[90])]} <= set(mine)
    assert len(mine) < 10

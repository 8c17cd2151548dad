from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satview.base.time import TimeWindow
from satview.gui.colours import value_colour
from satview.gui.swimlane.fills import names_of_values
from satview.gui.swimlane.overview import density
from tests.gui.conftest import settle
from tests.helpers import linux_scene
from tests.helpers.kev import TraceBuilder


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of it
@given(st.lists(st.integers(0, 1000), max_size=60), st.data(), st.integers(1, 40))
def test_density_counts_the_selected_events_of_each_pixel(times, data, width_px):
    times = np.array(sorted(times), np.int64)
    selected = sorted(data.draw(st.sets(st.integers(0, len(times) - 1)))) if len(times) else []
    window = TimeWindow(100, 900)
    expected = [0] * width_px
    for row in selected:
        if 100 <= times[row] < 900:
            pixel = max(i for i in range(width_px) if 100 + i * 800 // width_px <= times[row])
            expected[pixel] += 1
    assert density(times, np.array(selected, np.uint32), window, width_px).tolist() == expected


def test_all_events_count_without_a_filter():
    times = np.arange(100, dtype=np.int64)
    assert density(times, None, TimeWindow(0, 100), 4).tolist() == [25, 25, 25, 25]


def x_of(window, ns):
    """Return where the strip shows a moment."""
    return round(window.workspace.area.overview._scale.x(window.session.opened.trace.clock.cycles(ns)))


def column_of(window, ns):
    """Return the colours of the strip from its foot to its top at a moment."""
    image, x = window.workspace.area.overview.grab().toImage(), x_of(window, ns)
    return [image.pixel(x, y) & 0xFFFFFF for y in range(39, 7, -1)]


@pytest.mark.thorough
def test_processes_that_run_fill_their_share_of_the_cpus_and_the_tip_names_them_and_what_is_missing(window):
    """Of two CPUs one runs the client from 1 to 4 us, then the server, the other runs nothing: one is the height."""
    use, trace = window.workspace.area.overview.shown_use, window.session.opened.trace
    timeline, names = window.session.opened.timeline, [name.rpartition("/")[2] for name in trace.processes.names]
    rgb = {name: value_colour(timeline.process_value(names.index(name)), False) for name in ("client", "server")}
    assert (use.cpus, use.high_cpus) == (2, 1)
    for ns, name in ((2_500, "client"), (6_000, "server")):
        column = column_of(window, ns)
        assert column[:14] == [rgb[name]] * 14
        assert column.count(rgb[name]) in (31, 32)  # pixels; the line of one CPU covers one
    assert set(rgb.values()).isdisjoint(column_of(window, 500))
    overview = window.workspace.area.overview
    lines = overview.text_at(x_of(window, 2_500)).splitlines()
    assert lines[0].startswith("About 0.000 002 ")
    assert lines[1] == "1.00 of 2 CPUs in use, from 1.00 to 1.00"
    assert lines[2:] == ["    1.00  client"]
    assert overview.text_at(x_of(window, 14_000)).splitlines()[-1] == "events are missing: 1 gap, 4.000 \N{MICRO SIGN}s"


@pytest.mark.thorough
def test_a_burst_is_smoothed_and_its_extremes_stay_pale(empty_window, load, tmp_path, qtbot):
    """A thread runs every other of 400 spans of 1 ms: half a CPU in the mean, none to one from pixel to pixel."""
    builder = TraceBuilder(cpus=1).time_event(0).process_name(10, 2, "worker")
    for number in range(200):
        builder.state("RUNNING", number * 2_000_000 + 100, 2, 1)
        builder.state("NANOSLEEP", number * 2_000_000 + 1_000_100, 2, 1)
        builder.state("RUNNING", number * 2_000_000 + 1_000_101, 1, 1)
    window = load(empty_window, builder.write(tmp_path / "bursts.kev"))
    settle(qtbot, window)
    use = window.workspace.area.overview.shown_use
    middle = len(use.most) // 2
    assert 0.4 < use.used[:, middle].sum() < 0.6
    assert use.least[middle] < 0.1
    assert use.most[middle] > 0.9
    column = column_of(window, 200_000_000)
    worker = value_colour(use.values[0], False)
    assert 13 <= column.count(worker) <= 19
    pale = column[24]  # up to the busiest pixel
    assert pale not in (worker, window.theme.base)
    assert min(pale >> 16, pale >> 8 & 0xFF, pale & 0xFF) > 0xD0


@pytest.mark.thorough
def test_the_tip_names_a_verdict_with_its_longest_case_and_the_height_stays_readable(dense, qtbot):
    opened, overview = dense.session.opened, dense.workspace.area.overview
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None, timeout=30_000)
    case = opened.verdicts.answer.verdicts[0].occurrences[0]
    x = overview._scale.x(case.start_cycles)
    assert "priority-inversion: 1.391 ms" in overview.text_at(x + 2)
    assert "priority-inversion" not in overview.text_at(x + 60)
    # Where the strip says how many CPUs its height is, in grey; under the veil the darkest was paler than 170.
    viewport = dense.session.opened.viewport
    viewport.move(TimeWindow(viewport.limits.start, viewport.limits.start + viewport.limits.length // 10))
    image = dense.workspace.area.overview.grab().toImage()
    reds = [image.pixel(x, y) >> 16 & 0xFF for x in range(image.width() - 40, image.width() - 8) for y in (11, 14)]
    assert min(reds) < 140


@pytest.mark.thorough
def test_a_task_of_linux_keeps_what_follows_a_slash_in_its_name(empty_window, load, tmp_path):
    path = tmp_path / "schedule"
    path.write_text(linux_scene.TEXT.replace("client", "kworker/1"), encoding="ascii")
    window = load(empty_window, path)
    assert "kworker/1" in names_of_values(window.session.opened.timeline).values()


@pytest.mark.thorough
def test_a_process_without_a_name_has_its_number_in_the_legend_and_in_the_tip(empty_window, load, qtbot, tmp_path):
    builder = TraceBuilder().time_event(0)
    for round_cycles in range(1_000, 5_001_000, 1_000_000):  # pid 7 runs for 0.4 ms, pid 8 for 0.6 ms, and so on
        builder.state("RUNNING", round_cycles, 7, 1).state("RECEIVE", round_cycles + 400_000, 7, 1)
        builder.state("RUNNING", round_cycles + 400_001, 8, 1).state("RECEIVE", round_cycles + 999_000, 8, 1)
    window = load(empty_window, builder.write(tmp_path / "nameless.kev"))
    area = window.workspace.area
    qtbot.waitUntil(lambda: {"pid 7", "pid 8"} <= {entry.name for entry in area.legend.entries})
    assert "" not in {entry.name for entry in area.legend.entries}
    qtbot.waitUntil(lambda: "  pid 8" in area.overview.text_at(area.overview.width() // 2))

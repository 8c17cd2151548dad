from __future__ import annotations

from satview.base.time import TimeWindow
from satview.session.lanes.lane_row import event_of_slot
from satview.session.loading.loaded_trace import LoadedTrace, prepared
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.viewport import Viewport
from tests.helpers.kev import TraceBuilder


def early():
    return TraceBuilder(cpus=2).time_event(0).state("RUNNING", 100, 5, 1).state("RECEIVE", 900, 5, 1)


def test_event_is_found_again_when_older_ones_come_late(tmp_path):
    old = early().open(tmp_path)
    # Another CPU's buffer is written later but is earlier in time: rows behind it move.
    late = early().state("RUNNING", 300, 6, 1, cpu=1).state("RECEIVE", 400, 6, 1, cpu=1)
    new = late.open(tmp_path)
    event = len(old.events) - 1
    found = event_of_slot(new, old, event)
    assert found == event + 2
    assert new.events.time_cycles[found] == old.events.time_cycles[event]
    assert new.events.code[found] == old.events.code[event]
    assert event_of_slot(new, old, 0) == 0
    assert event_of_slot(old, new, 3) is None or old.events.slot[event_of_slot(old, new, 3)] == new.events.slot[3]


def opened_trace(trace):
    first = LoadedTrace.of(trace)
    return OpenTrace(trace, first.timeline, Settings(None), None, first.events_of_thread, first.silent)


def grow(opened, trace):
    """Change over to a longer trace as a window does."""
    reload = prepared(LoadedTrace.of(trace), opened.shown([row.index for row in opened.lanes.rows]), lambda: False)
    opened.reload(reload, is_at_end=True)
    return reload


def titles(opened):
    return [opened.timeline.infos[row.unit].title for row in opened.lanes.rows]


def three_processes(builder):
    """Add two processes whose lanes are before that of pid 5, and one behind."""
    for at, pid in enumerate((3, 4, 9)):
        builder.state("READY", 1_000 + 10 * at, pid, 1)
    return builder


def test_filters_and_folds_of_before_can_be_undone_and_done_again(qapp, tmp_path):
    opened = opened_trace(early().process_name(950, 5, "five").open(tmp_path))
    five = titles(opened).index("five")
    opened.lanes.fold(opened.lanes.rows[five].index)
    opened.lanes.pin(opened.lane_of_thread(opened.trace.threads.row(5, 1)))
    opened.filters.show_threads([opened.trace.threads.row(5, 1)], False, "hide 5")
    opened.filters.add_pass("cpu == 0")
    longer = three_processes(early().process_name(950, 5, "five")).open(tmp_path)
    grow(opened, longer)
    assert opened.trace is longer
    assert opened.edits.undo_title == "new filter"
    opened.edits.undo()
    assert opened.filters.state.stack.passes == ()
    assert (~opened.filters.threads).nonzero()[0].tolist() == [longer.threads.row(5, 1)]
    assert len(opened.filters.threads) == len(longer.threads) == 5
    opened.edits.undo()
    assert opened.filters.threads.all()
    assert titles(opened) == ["thread 1", "CPU 0", "CPU 1", "pid 3", "pid 4", "five", "pid 9"]
    opened.edits.undo()
    assert titles(opened)[0] == "CPU 0"
    opened.edits.undo()
    assert titles(opened)[-2:] == ["five", "pid 9"]
    assert opened.edits.undo_title == ""
    for _ in range(4):
        opened.edits.redo()
    assert opened.filters.state.stack.passes[0].expression == "cpu == 0"
    assert not opened.filters.threads[longer.threads.row(5, 1)]
    opened.shut_down()


def test_new_threads_show_but_not_where_only_some_were_selected(qapp, tmp_path):
    opened = opened_trace(early().open(tmp_path))
    row = opened.trace.threads.row(5, 1)
    opened.filters.only_threads([row], "only 5")
    grow(opened, three_processes(early()).open(tmp_path))
    assert opened.filters.threads.nonzero()[0].tolist() == [row]
    assert opened.filters.row_count == 2
    opened.filters.show_all()
    assert opened.filters.threads.all()
    opened.shut_down()


def test_filter_is_worked_out_before_the_longer_trace_shows(qapp, tmp_path):
    opened = opened_trace(early().open(tmp_path))
    opened.filters.show_codes([opened.trace.catalogue.find("THRECEIVE")[0]], False)
    seen = []
    opened.filters.view_changed.connect(lambda: seen.append((opened.filters.row_count, len(opened.trace.events))))
    grow(opened, three_processes(early()).open(tmp_path))
    assert seen == [(5, 6)]
    assert not opened.filters.is_pending
    opened.shut_down()


def test_refresh_that_was_made_for_another_filter_does_not_suit(qapp, tmp_path):
    opened = opened_trace(early().open(tmp_path))
    shown = opened.shown([])
    reload = prepared(LoadedTrace.of(early().open(tmp_path)), shown, lambda: False)
    assert reload.fits(opened.shown([]))
    assert not reload.fits(opened.shown([0]))  # a lane that nobody has built
    opened.filters.show_threads([1], False)
    assert not reload.fits(opened.shown([]))
    opened.filters.show_all()
    again = prepared(reload.loaded, opened.shown([0]), lambda: False)
    assert again.fits(opened.shown([0]))
    opened.search.find("RUNNING")
    assert not again.fits(opened.shown([0]))
    opened.shut_down()


def test_search_and_selection_go_along(qapp, tmp_path):
    opened = opened_trace(early().open(tmp_path))
    event = len(opened.trace.events) - 1
    opened.select_event(event)
    span, lane = opened.selection.span, opened.selection.lane
    assert opened.timeline.infos[lane].title == "thread 1"
    opened.search.text = "RUNNING"
    late = early().state("RUNNING", 300, 4, 1, cpu=1).state("RECEIVE", 1_400, 5, 1)
    grow(opened, late.open(tmp_path))
    assert opened.selection.event == event + 1
    assert opened.timeline.infos[opened.selection.lane].index == lane + 2  # behind pid 4 and its thread
    assert opened.selection.span.start_cycles == span.start_cycles
    assert opened.selection.span.end_cycles == span.start_cycles + 500
    codes = opened.trace.events.code[opened.search.hits]
    assert [opened.trace.catalogue.spec(int(code)).name for code in codes] == ["THRUNNING"] * 2
    opened.shut_down()


def test_cpu_that_wakes_up_shows_and_one_hidden_by_hand_does_not(qapp, tmp_path):
    opened = opened_trace(TraceBuilder(cpus=12).time_event(0).state("RUNNING", 100, 5, 1).open(tmp_path))
    assert titles(opened)[:2] == ["CPU 0", "pid 5"]
    opened.lanes.hide(0)
    longer = TraceBuilder(cpus=12).time_event(0).state("RUNNING", 100, 5, 1).state("RUNNING", 200, 6, 1, cpu=2)
    grow(opened, longer.state("READY", 300, 5, 1).open(tmp_path))
    assert titles(opened)[:2] == ["CPU 2", "pid 5"]
    opened.shut_down()


def test_short_window_at_the_end_is_not_filled_with_air(qapp):
    view = Viewport(TimeWindow(-5_000, 1_005_000), None, 1_000_000)
    view.set_width(1_000)
    view.jump(TimeWindow(999_000, 1_000_010))
    assert view.is_at_end
    view.grow(TimeWindow(-10_000, 2_010_000), 2_000_000, is_at_end=True)
    assert view.window.length == 1_010
    assert view.window.end == 2_000_020
    assert view.is_at_end
    assert not view.is_whole
    view.back()
    assert view.window.length == 1_010_000
    assert abs(view.window.start + 5_000) <= 1_010  # a pixel


def test_window_stays_when_it_is_not_at_the_end(qapp):
    view = Viewport(TimeWindow(0, 1_000), None, 1_000)
    view.jump(TimeWindow(200, 300))
    view.grow(TimeWindow(0, 5_000), 5_000, is_at_end=False)
    assert view.window == TimeWindow(200, 300)
    assert not view.is_at_end
    view.go_to_end()
    assert view.is_at_end
    assert view.window.length == 100

"""From a row of statistics to what it is about, and to where its longest time happened."""

from __future__ import annotations

import numpy as np

from satview.analysis.sheets.sheet import Column, Kind, Sheet, Subject
from satview.base.time import TimeWindow
from satview.gui.swimlane.shares import longest_of
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind

_AROUND = 0.5  # of a range that is gone to, what shows on either side


class Positions:
    """Selects and shows what rows are about."""

    def __init__(self, opened: OpenTrace, navigation: Navigation) -> None:
        self._opened, self._navigation = opened, navigation

    def select(self, sheet: Sheet, row: int) -> None:
        """Select the lane of a thread, process or CPU, or an event of its kind; the view stays where it is."""
        lane = self.lane_of(sheet, row)
        if lane is not None:
            self._navigation.show_lane(lane)
        elif sheet.subject is Subject.EVENT:
            self._opened.select_event(int(sheet.subjects[row]), reveal=False)

    def go_to(self, sheet: Sheet, column: Column, row: int) -> None:
        """Go to where a value happened; without such a position to the lane or the event that the row is about."""
        cycles = int(column.cycles[row]) if column.cycles is not None else -1
        event = int(column.events[row]) if column.events is not None else -1
        lane = self.lane_of(sheet, row)
        if cycles >= 0 and (lane is not None or sheet.subject is Subject.NONE):
            if lane is not None:
                self._opened.lanes.reveal(lane)
                self._opened.select_at(lane, cycles)
            if column.kind is Kind.DURATION:
                self._fit(column, row, cycles)
            else:
                self._opened.viewport.reveal(cycles)
        elif event >= 0 or sheet.subject is Subject.EVENT:
            event = event if event >= 0 else int(sheet.subjects[row])
            self._navigation.show_event(event)
            if column.kind is Kind.DURATION and column.events is not None:
                start = int(self._opened.trace.events.time_cycles[event])
                self._fit(column, row, start)
                self._select_longest(event, TimeWindow(start, start + max(1, self._length(column, row))))
        elif lane is not None:
            self._navigation.show_lane(lane)

    def _select_longest(self, event: int, window: TimeWindow) -> None:
        """Select with an event what took most of the time that it begins: of a call the wait, not its entry's run."""
        opened, lane = self._opened, self._opened.lane_of_cause(event)
        if lane is None:
            return
        opened.lanes.reveal(lane)
        moment = longest_of(opened.timeline.lane(lane).spans, window, None)
        if moment is not None:
            opened.selection.select(event, lane, opened.timeline.lane(lane).at(moment))

    def _length(self, column: Column, row: int) -> int:
        return self._opened.trace.clock.cycles_of(int(column.values[row]))

    def _fit(self, column: Column, row: int, start_cycles: int) -> None:
        length = self._length(column, row)
        self._opened.viewport.fit(TimeWindow(start_cycles, start_cycles + max(1, length)), _AROUND)

    def row_of(self, sheet: Sheet, lane: int) -> int:
        """Return the first row that is about a lane, -1 for none."""
        info = self._opened.timeline.infos[lane]
        subject, kind = {
            Subject.THREAD: (info.thread, LaneKind.THREAD),
            Subject.PROCESS: (info.process, LaneKind.PROCESS),
            Subject.CPU: (info.cpu, LaneKind.CPU),
        }[sheet.subject]
        found = np.flatnonzero((sheet.subjects == subject) & (info.kind is kind))
        return int(found[0]) if len(found) else -1

    def lane_of(self, sheet: Sheet, row: int) -> int | None:
        """Return the lane that a row is about, None if it is about none."""
        subject, opened = int(sheet.subjects[row]), self._opened
        if sheet.subject is Subject.THREAD:
            return opened.lane_of_thread(subject)
        if sheet.subject is Subject.CPU:
            return opened.lane_of_cpu(subject)
        if sheet.subject is Subject.PROCESS:
            return next(
                (
                    info.index
                    for info in opened.timeline.infos
                    if info.kind is LaneKind.PROCESS and info.process == subject
                ),
                None,
            )
        return None

"""What is late, for its panel: the activities of the trace, and one of them with one instance explained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject

from satview.analysis.times.occurrences import Histogram
from satview.answers.late import Late, late, responses
from satview.answers.late_comparison import SlowAgainstFast
from satview.answers.table import Table
from satview.base.errors import Cancelled
from satview.session.lanes.class_loader import timing_of
from satview.session.open_trace import OpenTrace
from satview.session.questions import Answer
from satview.session.tasks import IsCancelled
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class FoundActivities:
    """What a trace does again and again.

    Attributes:
        late: Answers on it.
        activities: One row for each activity, in its order.
        chains: Those of the file of timing.
        telling: The activity that is to be looked at before others; None without one.
    """

    late: Late
    activities: Table
    chains: Table
    telling: int | None


class ActivitiesView(Answer):
    """Looks for activities once somebody looks, and again in a refreshed trace or by another file of timing.

    Attributes:
        found: What was found; None = nothing yet, or it failed.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.found: FoundActivities | None = None

    def start(self) -> None:
        """Look for activities."""
        self._start(partial(_find, self._opened.trace, self._opened.timing_file))

    def _take(self, result: object) -> None:
        self.found = result if isinstance(result, FoundActivities) else None


def _find(trace: Trace, timing_file: str, _is_cancelled: IsCancelled) -> FoundActivities:
    """Run in the task; holds the trace, no widget."""
    answers = late(trace, timing_of(trace, timing_file))
    return FoundActivities(answers, answers.activities(), answers.chains(), answers.most_telling())


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedInstance:
    """One instance of an activity.

    Attributes:
        late: Answers that it is of.
        activity: The activity.
        positions: int64, its instances, in the order of their table.
        instances: These as rows, the worst first.
        row: Which of the rows is explained.
        says: That one in a sentence.
        blame: Where its time went.
        compared: What slow instances of the activity have that fast ones have not.
        responses: How long its instances took, those of the first rows, as of `answers.late.responses`.
    """

    late: Late
    activity: int
    positions: NDArray[np.int64]
    instances: Table
    row: int
    says: str
    blame: Table
    compared: SlowAgainstFast
    responses: Histogram | None

    def row_of(self, event: int) -> int:
        """Return the row of the instance whose thread has an event meanwhile, or which it begins; -1 = none."""
        instances, events = self.late.learned.instances.at(self.positions), self.late.trace.events
        is_within = (instances.start_row <= event) & ((event <= instances.end_row) | (instances.end_row < 0))
        is_within &= (instances.thread == events.thread[event]) | (instances.start_row == event)
        rows = np.flatnonzero(is_within)
        return int(rows[0]) if len(rows) else -1


class InstanceView(Answer):
    """Explains the instance that was chosen last.

    Attributes:
        found: The instance, with all of its activity; None = none was chosen, or it is not explained yet.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found: ExplainedInstance | None = None

    def explain(self, asked: Late, activity: int, row: int = 0) -> None:
        """Explain one instance of an activity.

        Args:
            asked: Answers on the trace.
            activity: The activity.
            row: Of its instances, the worst first.
        """
        before = self.found
        is_same = before is not None and before.late is asked and before.activity == activity
        self._start(partial(_explain, asked, activity, row, before if is_same else None))

    def explain_thread(self, asked: Late, thread: int, cycles: int) -> bool:
        """Explain what a thread does at a moment, else the worst that it does; return False if it does nothing again.

        Args:
            asked: Answers on the trace.
            thread: Row of the thread table.
            cycles: The moment.
        """
        instances, worst = asked.learned.instances, asked.worst()
        of_thread = worst[instances.thread[worst] == thread]
        is_then = (instances.start_cycles[of_thread] <= cycles) & (cycles <= instances.end_cycles[of_thread])
        chosen = of_thread[is_then] if is_then.any() else of_thread
        if not len(chosen):
            return False
        activity = int(instances.activity[chosen[0]])
        self.explain(asked, activity, int(np.flatnonzero(asked.worst(activity) == chosen[0])[0]))
        return True

    def explain_bar(self, asked: Late, name: str, event: int) -> bool:
        """Explain the instance of an activity that an event begins; return False if there is none.

        Args:
            asked: Answers on the trace.
            name: The whole name of the activity.
            event: Row of the event.
        """
        names = [activity.name for activity in asked.learned.activities]
        activity = names.index(name) if name in names else -1
        rows = np.flatnonzero(asked.learned.instances.start_row[asked.worst(activity)] == event)
        if len(rows):
            self.explain(asked, activity, int(rows[0]))
        return bool(len(rows))

    def forget(self) -> None:
        """Explain nothing."""
        self._job.cancel()
        self.found, self.error = None, ""
        self.changed.emit()

    def _take(self, result: object) -> None:
        self.found = result if isinstance(result, ExplainedInstance) else None


def _explain(
    asked: Late, activity: int, row: int, same: ExplainedInstance | None, is_cancelled: IsCancelled
) -> ExplainedInstance:
    """Run in the task; what another instance of the same activity has is not computed again."""
    positions = same.positions if same is not None else asked.worst(activity)
    instances = same.instances if same is not None else asked.instances(activity)
    chosen = positions[row : row + 1]
    blame, (says,) = asked.explained(chosen)
    if is_cancelled():
        raise Cancelled
    compared = same.compared if same is not None else asked.compared(activity)
    drawn = same.responses if same is not None else responses(asked, activity)
    return ExplainedInstance(asked, activity, positions, instances, row, says, blame, compared, drawn)

"""Model of the panel Late: the activities of the trace, and one instance of an activity explained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject

from satview.analysis.times.message_times import Histogram
from satview.answers.late import Late, late, responses
from satview.answers.late_comparison import SlowAgainstFast
from satview.answers.table import Table
from satview.base.errors import Cancelled
from satview.session.lanes.class_loader import timing_of
from satview.session.open_trace import OpenTrace
from satview.session.tasks import Answer, IsCancelled
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class FoundActivities:
    """The activities (recurring work) that were found in a trace."""

    late: Late
    activities: Table
    chains: Table
    telling: int | None


class ActivitiesView(Answer):
    """Finds the activities when `start` is called.

    Attributes:
        answer: The result; None = not yet found, or it failed.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.answer: FoundActivities | None = None

    def start(self) -> None:
        """Start to look for activities."""
        self._start(partial(_find, self._opened.trace, self._opened.timing_file))

    def _take(self, result: object) -> None:
        self.answer = result if isinstance(result, FoundActivities) else None


def _find(trace: Trace, timing_file: str, _is_cancelled: IsCancelled) -> FoundActivities:
    answers = late(trace, timing_of(trace, timing_file))
    return FoundActivities(answers, answers.activities(), answers.chains(), answers.most_telling())


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedInstance:
    """One instance of an activity, explained.

    Attributes:
        late: Answers about the activities of the trace.
        activity: Number of the activity.
        positions: int64 (n,), indices of its instances in the table of all instances, worst first.
        instances: Table of its instances, worst first.
        row: Row of `instances` that is explained.
        says: The explanation in a sentence.
        blame: Where the time of the instance went.
        compared: Comparison of slow instances of the activity with fast ones.
        responses: Histogram of the response times of all its instances (`answers.late.responses`).
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
        """Return the row in `instances` of the instance that contains or begins with an event; -1 = none."""
        instances, events = self.late.learned.instances.taken(self.positions), self.late.trace.events
        is_within = (instances.start_row <= event) & ((event <= instances.end_row) | (instances.end_row < 0))
        is_within &= (instances.thread == events.thread[event]) | (instances.start_row == event)
        rows = np.flatnonzero(is_within)
        return int(rows[0]) if len(rows) else -1


class InstanceView(Answer):
    """Explains the instance that was requested last.

    Attributes:
        answer: The explained instance; None = none was requested, or it is not ready.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.answer: ExplainedInstance | None = None

    def explain(self, late_answers: Late, activity: int, row: int = 0) -> None:
        """Start to explain one instance of an activity.

        Args:
            late_answers: Answers about the activities of the trace.
            activity: Number of the activity.
            row: Row of the instance, worst first.
        """
        before = self.answer
        is_same = before is not None and before.late is late_answers and before.activity == activity
        self._start(partial(_explain, late_answers, activity, row, before if is_same else None))

    def explain_thread(self, late_answers: Late, thread: int, cycles: int) -> bool:
        """Start to explain the instance of a thread at a time, or else the thread's worst; return False if it has none.

        Args:
            late_answers: Answers about the activities of the trace.
            thread: Row of the thread table.
            cycles: The time.
        """
        instances, worst = late_answers.learned.instances, late_answers.worst()
        of_thread = worst[instances.thread[worst] == thread]
        is_then = (instances.start_cycles[of_thread] <= cycles) & (cycles <= instances.end_cycles[of_thread])
        chosen = of_thread[is_then] if is_then.any() else of_thread
        if not len(chosen):
            return False
        activity = int(instances.activity[chosen[0]])
        self.explain(late_answers, activity, int(np.flatnonzero(late_answers.worst(activity) == chosen[0])[0]))
        return True

    def explain_bar(self, late_answers: Late, name: str, event: int) -> bool:
        """Start to explain the instance of an activity that begins with an event; return False if no instance does.

        Args:
            late_answers: Answers about the activities of the trace.
            name: The whole name of the activity.
            event: Row of the event.
        """
        names = [activity.name for activity in late_answers.learned.activities]
        activity = names.index(name) if name in names else -1
        rows = np.flatnonzero(late_answers.learned.instances.start_row[late_answers.worst(activity)] == event)
        if len(rows):
            self.explain(late_answers, activity, int(rows[0]))
        return bool(len(rows))

    def forget(self) -> None:
        """Clear the result."""
        self._job.cancel()
        self.answer, self.error = None, ""
        self.changed.emit()

    def _take(self, result: object) -> None:
        self.answer = result if isinstance(result, ExplainedInstance) else None


def _explain(
    late_answers: Late, activity: int, row: int, same: ExplainedInstance | None, is_cancelled: IsCancelled
) -> ExplainedInstance:
    """Return an explained instance; figures of the whole activity are copied from `same`, another instance of it."""
    positions = same.positions if same is not None else late_answers.worst(activity)
    instances = same.instances if same is not None else late_answers.instances(activity)
    chosen = positions[row : row + 1]
    blame, (says,) = late_answers.explained(chosen)
    if is_cancelled():
        raise Cancelled
    compared = same.compared if same is not None else late_answers.compared(activity)
    drawn = same.responses if same is not None else responses(late_answers, activity)
    return ExplainedInstance(late_answers, activity, positions, instances, row, says, blame, compared, drawn)

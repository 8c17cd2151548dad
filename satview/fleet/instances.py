"""Instances of an activity in all traces of a data set, with their response times.

Only one trace is open at a time, so that instances of hundreds of traces can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.late import late
from satview.answers.late_comparison import Sample
from satview.base.errors import UsageError
from satview.base.time import NS_PER_S
from satview.events.user_events import UserEvent
from satview.fleet.layout import RECORD, open_dataset
from satview.fleet.query import query_dataset
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events
from satview.tables.views import quoted

_TABLE: Final = "activity_instance"


@dataclass(frozen=True, slots=True)
class RecordedInstances:
    """Instances of one activity in one trace of a data set.

    Attributes:
        path: File of the trace.
        activity: Name of the activity.
        event: int64 (n,), row of the first event of each instance.
        response_s: float64 (n,), response time of each instance.
        described: Descriptions of events, by code, that were used for the export.
    """

    path: Path
    activity: str
    event: NDArray[np.int64]
    response_s: NDArray[np.float64]
    described: Mapping[int, UserEvent]

    def samples(self, *selections: NDArray[np.int64]) -> tuple[Sample, ...]:
        """Open the trace and return one sample per selection; a selection is int64 (k,), positions in `event`.

        Raises:
            UsageError: The trace file does not contain these instances, so it has changed since the export.
        """
        trace = open_trace(self.path)
        if self.described:
            describe_events(trace, self.described)
        learned = late(trace).learned
        names = [activity.name for activity in learned.activities]
        number = names.index(self.activity) if self.activity in names else -1
        own = learned.instances.taken(learned.instances.activity == number)
        samples = tuple(Sample(trace, own.taken(np.isin(own.start_row, self.event[part]))) for part in selections)
        if [len(sample.instances) for sample in samples] != list(map(len, selections)):
            raise UsageError(f"{self.path.name} has other instances of {self.activity} than the data set; run satview "
                             "export again")  # fmt: skip
        return samples


def recorded_instances(
    folder: Path, activity: str, described: Mapping[int, UserEvent] | None = None, without: Path | None = None
) -> list[RecordedInstances]:
    """Return the finished instances of an activity, per trace of a data set; those with lost events are left out.

    Args:
        folder: Folder of the data set.
        activity: Name of a learned activity; activities of a timing file are not in a data set.
        described: Descriptions of events, by code, that were used for the export.
        without: A trace file to leave out, as the caller already has its instances.

    Raises:
        UsageError: There is no data set, none of its traces has the activity, or a trace file is missing.
    """
    dataset = open_dataset(folder)
    if _TABLE not in dataset.tables:
        raise UsageError(f"the data set {folder.name} has no table {_TABLE}; add it by `satview export DIR -o OUT "
                         f"--table {_TABLE}`")  # fmt: skip
    paths = dict(query_dataset(folder, f"select trace, path from {RECORD}").rows())  # noqa: S608  -- of ours
    result = query_dataset(
        folder,
        f"select trace, event, response_ns from {_TABLE} where activity = {quoted(activity)} "  # noqa: S608  -- quoted
        "and response_known not in ('unknown', 'at least') order by trace, event",
    )
    if not len(result):
        raise UsageError(f"no trace of the data set {folder.name} has the activity {activity}, as learned without a "
                         "file of timing")  # fmt: skip
    trace, event, response_ns = (result[column] for column in result.columns)
    names, begins = np.unique(trace.astype(str), return_index=True)
    bounds = [*begins.tolist(), len(trace)]
    recorded = [
        RecordedInstances(Path(paths[name]), activity, event[begin:stop].astype(np.int64),
                          response_ns[begin:stop].astype(np.float64) / NS_PER_S, described or {})
        for name, begin, stop in zip(names.tolist(), bounds[:-1], bounds[1:], strict=True)
    ]  # fmt: skip
    if missing := [instances.path for instances in recorded if not instances.path.is_file()]:
        raise UsageError(f"{len(missing)} of {len(recorded)} traces of the data set {folder.name} are gone, such as "
                         f"{missing[0]}")  # fmt: skip
    return [instances for instances in recorded if without is None or instances.path.resolve() != without.resolve()]

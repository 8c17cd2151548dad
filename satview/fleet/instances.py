"""Instances of an activity over a data set, and how long each took.

A trace is opened only while its instances are examined, so that hundreds can be compared with one open at a time.
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
    """Instances of one activity of one trace of a data set.

    Attributes:
        path: The file.
        activity: Its name.
        event: int64 (n,), row of the event that begins each.
        response_s: float64 (n,), how long each took.
        described: Descriptions of events, by code, with which the data set was made.
    """

    path: Path
    activity: str
    event: NDArray[np.int64]
    response_s: NDArray[np.float64]
    described: Mapping[int, UserEvent]

    def samples(self, *chosen: NDArray[np.int64]) -> tuple[Sample, ...]:
        """Open the trace and return a sample for each selection of instances, int64 (k,) positions each.

        Raises:
            UsageError: It is not as it was when the data set was made.
        """
        trace = open_trace(self.path)
        if self.described:
            describe_events(trace, self.described)
        learned = late(trace).learned
        names = [activity.name for activity in learned.activities]
        number = names.index(self.activity) if self.activity in names else -1
        own = learned.instances.taken(learned.instances.activity == number)
        samples = tuple(Sample(trace, own.taken(np.isin(own.start_row, self.event[some]))) for some in chosen)
        if [len(sample.instances) for sample in samples] != list(map(len, chosen)):
            raise UsageError(f"{self.path.name} has other instances of {self.activity} than the data set; run satview "
                             "export again")  # fmt: skip
        return samples


def recorded_instances(
    folder: Path, activity: str, described: Mapping[int, UserEvent] | None = None, without: Path | None = None
) -> list[RecordedInstances]:
    """Return the instances of an activity that are known and done, by trace of a data set.

    Args:
        folder: Of the data set.
        activity: The name of the activity: a learned one, as its tables were made without a file of timing.
        described: Descriptions of events, by code, as the data set was made with.
        without: A file to be left out, as it is compared anyway.

    Raises:
        UsageError: There is no data set, or none of its traces has the activity.
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
    group = [
        RecordedInstances(Path(paths[name]), activity, event[begin:stop].astype(np.int64),
                          response_ns[begin:stop].astype(np.float64) / NS_PER_S, described or {})
        for name, begin, stop in zip(names.tolist(), bounds[:-1], bounds[1:], strict=True)
    ]  # fmt: skip
    if missing := [one.path for one in group if not one.path.is_file()]:
        raise UsageError(f"{len(missing)} of {len(group)} traces of the data set {folder.name} are gone, such as "
                         f"{missing[0]}")  # fmt: skip
    return [one for one in group if without is None or one.path.resolve() != without.resolve()]

"""A heartbeat that comes too late: a sample of a verdict for satview.

Programs insert user event 1 at least every 20 ms; where it stays away for longer there is a verdict. `satview check`,
the panel Verdicts and `kev.no_verdict("late-heartbeat")` in pytest have it.
"""

import numpy as np

from satview import select
from satview.analysis.verdicts.evidence import Occurrence, Severity, Verdict
from satview.base.time import format_duration

LIMIT_NS = 20_000_000


def late_heartbeats(trace):
    """Return the verdicts: here one with all times at which it happens, or none."""
    beats = select(trace, "class == USREVENT and number == 1")
    times = trace.events.time_cycles[beats]
    late = np.flatnonzero(np.diff(times) > trace.clock.cycles_of(LIMIT_NS))
    if not len(late):
        return []
    found = tuple(Occurrence(int(times[i]), int(times[i + 1]), int(beats[i])) for i in late)
    longest = max(found, key=lambda one: one.end_cycles - one.start_cycles)
    length = format_duration(trace.clock.duration_ns(longest.end_cycles - longest.start_cycles))
    thread = int(trace.events.thread[longest.row])
    return [
        Verdict(
            "late-heartbeat",
            Severity.WARNING,
            longest.start_cycles,
            longest.end_cycles,
            (thread,) if thread else (),
            ("heartbeat",),
            (longest.row,),
            f"No heartbeat for {length}, {len(late)} times longer than 20 ms.",
            "See what runs meanwhile at a higher priority.",
            occurrences=found,
        )
    ]

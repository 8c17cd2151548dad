"""satview: the System Analysis Toolkit for QNX Neutrino in Python.

The public API, each name imported when first used:

    trace = satview.open_trace("boot.kev")             # Trace: tables, columns, names, problems; `with` closes it
    for event in trace.iter_events("MSG_SENDV", pid=7):     # Event, one at a time
        print(event.time_ns, event.thread_name, event.args)
    rows = satview.select(trace, "duration > 2ms")     # event rows that an expression passes
    lanes = satview.Timeline(trace)                    # states per thread and CPU
    found = satview.Statistics(trace)                  # use of CPUs, waits, kernel calls and messages per thread, ...
    woken = satview.links(trace).wake_ups              # links: causes and effects as pairs of event rows
    sent = satview.transactions(trace)                 # times of every message: queued, in service, reply, round trip
    late = satview.latencies(trace)                    # times from pulse or interrupt until handler and thread run
    states = trace.table("state").arrow()              # documented tables, for numpy, Arrow, pandas, Polars
    late = trace.sql("select * from ready_wait")       # SQL over them, with documented views
    for verdict in satview.check(trace):               # problems: deadlocks, inversions, starvation, lost data
        print(verdict.severity, verdict.says)
    for found in satview.doctor(trace):                # the analyses: exact, only a bound, or impossible
        print(found["title"], found["mark"], found["reason"], found["remedy"])
    for step in satview.why(trace, "devb-eide 2", trace.clock.cycles(1_500_000)):   # causes of a thread's state
        print(step.says)
    path = satview.critical_path(trace, "devb-eide 2", trace.window)   # the work that the thread depended on, in order
    now = satview.snapshot(trace, trace.clock.cycles(1_500_000))       # the state of every thread then, one per row
"""

from __future__ import annotations

import os
import sys

_RUN = ("satview", "satview.__main__", "satview.threadtrace", "satview.threadtrace.__main__")  # by `python -m`


def _leave_current_folder() -> None:
    """Remove the folder that `python -m` puts first on the module path.

    Otherwise a `typing.py` in a folder of traces would be run instead of Python's. If satview itself is in that folder,
    the folder is moved to the end of the path.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  -- imports nothing
    folder = sys.path.pop(0)
    if os.path.realpath(folder) == os.path.realpath(home):
        sys.path.append(home)


# `-m` is the program's name while Python looks for the module that it is to run.
if (
    sys.argv[:1] == ["-m"]
    and not sys.flags.safe_path
    and any(
        option.startswith("-") and option.endswith("m") and module in _RUN
        for option, module in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    )
):
    _leave_current_folder()

from importlib import import_module  # noqa: E402  -- from Python's own folder
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from satview.analysis.critical_path import CriticalPath, critical_path
    from satview.analysis.statistics import Statistics
    from satview.analysis.times.basis import Mark
    from satview.analysis.verdicts.evidence import Verdict
    from satview.analysis.verdicts.find import find_verdicts as check
    from satview.analysis.verdicts.rule import read_thresholds
    from satview.analysis.why import WhyStep, why
    from satview.answers.doctor import doctor
    from satview.answers.snapshot import snapshot
    from satview.base.errors import SatviewError, TraceFormatError, UsageError
    from satview.base.time import TimeWindow
    from satview.filters.expressions.expression import select
    from satview.filters.rules.rule_set import RuleSet
    from satview.linkage.chain import Links, links
    from satview.linkage.latencies import latencies
    from satview.linkage.transactions import transactions
    from satview.opened import OpenedTrace, open_trace
    from satview.store.tables import EventTable
    from satview.store.trace import Trace
    from satview.tables.sql import Limits
    from satview.timeline.lane_tree import Timeline

__version__ = "0.2.0"
__all__ = [
    "CriticalPath",
    "Event",
    "EventTable",
    "Limits",
    "Links",
    "Mark",
    "OpenedTrace",
    "RuleSet",
    "SatviewError",
    "Statistics",
    "TimeWindow",
    "Timeline",
    "Trace",
    "TraceFormatError",
    "UsageError",
    "Verdict",
    "WhyStep",
    "check",
    "critical_path",
    "doctor",
    "latencies",
    "links",
    "open_trace",
    "read_thresholds",
    "select",
    "snapshot",
    "transactions",
    "why",
]
_HOMES = {
    "CriticalPath": "satview.analysis.critical_path",
    "Event": "satview.store.trace",
    "EventTable": "satview.store.tables",
    "Limits": "satview.tables.sql",
    "Links": "satview.linkage.chain",
    "OpenedTrace": "satview.opened",
    "Mark": "satview.analysis.times.basis",
    "RuleSet": "satview.filters.rules.rule_set",
    "SatviewError": "satview.base.errors",
    "Statistics": "satview.analysis.statistics",
    "TimeWindow": "satview.base.time",
    "Timeline": "satview.timeline.lane_tree",
    "Trace": "satview.store.trace",
    "TraceFormatError": "satview.base.errors",
    "UsageError": "satview.base.errors",
    "Verdict": "satview.analysis.verdicts.evidence",
    "WhyStep": "satview.analysis.why",
    "check": "satview.analysis.verdicts.find",
    "critical_path": "satview.analysis.critical_path",
    "doctor": "satview.answers.doctor",
    "latencies": "satview.linkage.latencies",
    "links": "satview.linkage.chain",
    "open_trace": "satview.opened",
    "read_thresholds": "satview.analysis.verdicts.rule",
    "select": "satview.filters.expressions.expression",
    "snapshot": "satview.answers.snapshot",
    "transactions": "satview.linkage.transactions",
    "why": "satview.analysis.why",
}
_NAMES_THERE = {"check": "find_verdicts"}  # where the name at home says what only the module shows


def __getattr__(name: str) -> Any:
    # On first use, so that `satview` itself starts without numpy.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), _NAMES_THERE.get(name, name))
    raise AttributeError(f"module 'satview' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""One rule, one answer: what rules choose in a view is what the simulated kernel logs with them.

Every field is asked about in every class, fast and wide, for every release that has event handlers.
"""

import numpy as np
import pytest

from satview.capture.rules import calls_of_text
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.building import build
from satview.filters.text import parse_rules, process_names
from tests.capture.made import as_trace, finish, kernel, mode, run
from tests.filters.matrix import rules

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7)


def captured(name, release, text, folder, ms=12, cpus=1):
    """Return the trace of a workload with rules in the kernel."""
    made, sink = kernel(release, cpus, 3, 64, ())
    registry.find(name).setup(made)
    run(made, 1)
    calls, _ = calls_of_text(text, made)
    for call, args in calls:
        made.trace_event(mode(call), *args)
    made.trace_event(mode("START"))
    run(made, ms)
    return as_trace(made, finish(made, sink), folder)


def events(trace, rows=slice(None)):
    """Return the events, CONTROL aside, as (code, CPU, stamp, words), sorted: interrupts may stand elsewhere."""
    rows = np.arange(len(trace.events))[rows]
    found = [(int(trace.events.code[row]), int(trace.events.cpu[row]), int(trace.events.time_cycles[row]),
              tuple(trace.payloads.words(row).tolist())) for row in rows]
    return sorted(event for event in found if event[0] >> 10 != WireClass.CONTROL)


@pytest.mark.parametrize("wide", [False, True], ids=["fast", "wide"])
@pytest.mark.parametrize(("release", "name"), [*((release, "client-server") for release in RELEASES),
                                               (Release.QNX_6, "automotive"), (Release.QNX_7, "inheritance")])
def test_view_and_capture_agree_on_every_field_of_every_class(release, name, wide, tmp_path):
    width = "SETALLCLASSESWIDE" if wide else "SETALLCLASSESFAST"
    everything = captured(name, release, f"ADDALLCLASSES\n{width}\n", tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    divided, total = 0, len(events(everything))
    for text in rules(everything, wide=wide):
        built = build(parse_rules(text, release, process_names(everything)), release)
        chosen = events(everything, built.mask(everything))
        logged = events(captured(name, release, text, small))
        assert logged == chosen, text
        divided += 0 < len(chosen) < total
    assert divided > 10, "the conditions leave something out"

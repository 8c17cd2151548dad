"""One rule, one answer: what rules choose in a view is what the simulated kernel logs with them.

Every field is evaluated for in every class, fast and wide, for every release that has event handlers.
"""

import numpy as np
import pytest

from satview.capture.run import calls_of_text
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.wire import (
    CODE_COUNT,
    PROC_CREATE,
    PROC_CREATE_NAME,
    PROC_DESTROY,
    PROC_DESTROY_NAME,
    PROC_THREAD_NAME,
    WireClass,
)
from satview.filters.derived_columns import process_names
from satview.filters.passes import rules_of_selection
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.would_capture import would_capture
from tests.capture.made import as_trace, finish, kernel, mode, run
from tests.filters.matrix import rules
from tests.filters.random_rules import RandomRules
from tests.helpers.extent import WIDTH, points, usually

NAMES = (PROC_CREATE, PROC_CREATE_NAME, PROC_DESTROY, PROC_DESTROY_NAME, PROC_THREAD_NAME)
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
    """Return the events, CONTROL aside, as (code, CPU, stamp, words), sorted: interrupts may be elsewhere."""
    rows = np.arange(len(trace.events))[rows]
    found = [
        (
            int(trace.events.code[row]),
            int(trace.events.cpu[row]),
            int(trace.events.time_cycles[row]),
            tuple(trace.payloads.words(row).tolist()),
        )
        for row in rows
    ]
    return sorted(event for event in found if event[0] >> 10 != WireClass.CONTROL)


CASES = {f"client-server {release}": ("client-server", release) for release in RELEASES} | {
    "automotive": ("automotive", Release.QNX_6),
    "inheritance": ("inheritance", Release.QNX_7),
}


@pytest.mark.thorough
@points(case=CASES, wide=WIDTH)
def test_view_and_capture_agree_on_every_field_of_every_class(case, wide, tmp_path):
    name, release = case
    width = "SETALLCLASSESWIDE" if wide else "SETALLCLASSESFAST"
    everything = captured(name, release, f"ADDALLCLASSES\n{width}\n", tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    divided, total = 0, len(events(everything))
    for text in rules(everything, wide=wide):
        built = build(parse_rules(text, release, process_names(everything)), release)
        selected = events(everything, built.mask(everything))
        logged = events(captured(name, release, text, small))
        assert logged == selected, text
        divided += 0 < len(selected) < total
    assert divided > usually(2, complete=10, thorough=5), "the conditions leave something out"


@pytest.mark.thorough
@points(release=RELEASES, wide=WIDTH)
def test_random_rules_choose_log_and_foretell_the_same_events(release, wide, tmp_path):
    everything = captured("client-server", release, "ADDALLCLASSES\nSETALLCLASSESWIDE\n", tmp_path)
    (tmp_path / "rules").mkdir()
    divided = 0
    for text in RandomRules(everything, 20261121, wide=wide).texts(usually(3, complete=8, thorough=5)):
        built = build(parse_rules(text, release, process_names(everything)), release)
        logged = captured("client-server", release, text, tmp_path / "rules")
        if wide and not built.conditions and "SETCLASSTID COMM" not in text:
            # A line on every event leaves classes alone that take no handler; views know receivers by pid.
            assert events(logged) == events(everything, built.mask(everything)), text
        if "SETCLASSTID COMM" in text:
            continue
        found = would_capture(built, everything)
        assert {name: count for name, (count, _) in found.by_class.items() if count} == logged.class_counts(), text
        assert found.slots == logged.slot_count, text
        divided += 0 < found.events < 0.9 * found.total_events
    assert divided > usually(1, complete=3)


def test_several_processes_selected_in_a_view_become_a_capture(tmp_path):
    everything = captured("client-server", Release.QNX_7, "ADDALLCLASSES\nSETALLCLASSESWIDE\n", tmp_path)
    selected = np.isin(everything.threads.pid, [pid for pid in everything.processes.pid.tolist() if pid > 1][:2])
    text = rules_of_selection(everything, np.ones(CODE_COUNT, np.bool_), selected)
    assert "WHERE pid in (" in text
    (tmp_path / "rules").mkdir()
    logged = captured("client-server", Release.QNX_7, text, tmp_path / "rules")
    shown = np.flatnonzero(selected[everything.events.thread])
    of_threads = [WireClass.KER_CALL, WireClass.PR_TH, WireClass.COMM]
    kinds = np.isin(everything.events.code >> 10, of_threads)
    requested = [event for event in events(everything, shown[kinds[shown]]) if event[0] not in NAMES]
    assert [event for event in events(logged) if event[0] >> 10 in of_threads and event[0] not in NAMES] == requested
    assert len(requested) > 20

"""What a capture would log, worked out from a trace of everything, is what the simulated kernel logs: to the event."""

import numpy as np
import pytest

from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.filters.diagnostics import RuleError
from satview.filters.names import process_names
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.views.would_capture import would_capture
from tests.filters.test_rules_everywhere import captured
from tests.helpers.extent import points

RULES = {
    "fast": "ADDALLCLASSES\nSETALLCLASSESFAST",
    "wide without messages": "ADDALLCLASSES\nDELCLASS COMM\nSETALLCLASSESWIDE\nSETCLASSFAST KERCALLEXIT",
    "calls, one wide": "ADDCLASS KERCALL\nADDCLASS SYSTEM\nADDCLASS CONTROL\nSETEVENTWIDE KERCALLENTER MSG_SENDV",
    "interrupts": "ADDCLASS INT\nADDCLASS THREAD\nSETCLASSFAST THREAD",
}
HANDLERS = {
    "names": 'ADDCLASSEVHANDLER KERCALL WHERE name ~ "*client*"\nADDCLASSEVHANDLER THREAD WHERE tid == 1',
    "arguments, fast": "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLENTER WHERE arg.coid >= 0\nSETALLCLASSESFAST",
    "words, fast": "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLEXIT WHERE word[1] == 0 and words == 2",
    "failures": "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALL WHERE failed",
    "two processes": "WHERE pid in (1, 2) and cpu == 0",
    "by class": "WHERE class == KERCALLENTER or event == THRUNNING",
    "later half": "ADDALLCLASSES\nSETALLCLASSESFAST\nWHERE time > 20ms",
}


def forecast(trace, text, window=None):
    """Return the answer for a trace of everything."""
    built = build(parse_rules(text, trace.release, process_names(trace)), trace.release)
    return would_capture(built, trace, None, window)


def by_name(trace):
    """Return how many events of each name a trace has, those of the buffers included."""
    return {trace.catalogue.name(code): int(trace.code_counts[code]) for code in np.flatnonzero(trace.code_counts)}


@points(
    name=["client-server", "interrupt-flood", "automotive"],
    release=[Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8],
    text=RULES,
)
def test_every_event_and_slot_is_foretold(name, release, text, tmp_path):
    everything, logged = both(name, release, text, tmp_path)
    agree(forecast(everything, text), logged)


@pytest.mark.parametrize("text", HANDLERS.values(), ids=HANDLERS)
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_6_6, Release.QNX_7], ids=str)
def test_handlers_and_where_lines_are_replayed(release, text, tmp_path):
    everything, logged = both("client-server", release, text, tmp_path)
    found = forecast(everything, text)
    agree(found, logged)
    assert 20 < found.events < 0.99 * found.total_events


def both(name, release, text, folder):
    """Return a trace of everything, wide, and one with rules, of the same run."""
    (folder / "rules").mkdir()
    cpus = 4 if name == "automotive" else 1
    everything = captured(name, release, "ADDALLCLASSES\nSETALLCLASSESWIDE", folder, 40, cpus)
    return everything, captured(name, release, text, folder / "rules", 40, cpus)


def agree(found, logged):
    """Compare an answer with a capture."""
    counted = {name: count for name, (count, _) in found.by_class.items() if count}
    assert counted == {name: count for name, count in logged.class_counts().items() if count}
    assert found.events == len(logged.events)
    assert found.slots == logged.slot_count
    assert found.is_exact


def test_a_window_counts_what_is_in_it(tmp_path):
    trace = captured("client-server", Release.QNX_7, "ADDALLCLASSES", tmp_path, 40)
    middle = trace.window.start + trace.window.length // 2
    first, second = (
        forecast(trace, "ADDCLASS THREAD\nSETCLASSFAST THREAD", TimeWindow(*part))
        for part in ((trace.window.start, middle), (middle, trace.window.end))
    )
    threads = int(np.isin(trace.events.code >> 10, 4).sum())
    states = trace.class_counts()["THREAD"]
    assert first.by_class["THREAD"][0] + second.by_class["THREAD"][0] == states <= threads
    assert first.total_events + second.total_events == len(trace.events)
    assert any("dump" in note for note in second.notes)
    assert not any("dump" in note for note in first.notes)


def test_what_no_kernel_can_ask_is_refused(tmp_path):
    trace = captured("client-server", Release.QNX_7, "ADDALLCLASSES", tmp_path)
    with pytest.raises(RuleError, match="line 1, column 7: a capture cannot test this: duration is known only later"):
        forecast(trace, "WHERE duration > 1ms")


def test_a_fast_trace_gives_lower_bounds_of_wide_events(tmp_path):
    trace = captured("client-server", Release.QNX_7, "ADDALLCLASSES\nSETALLCLASSESFAST", tmp_path)
    found = forecast(trace, "ADDALLCLASSES\nSETALLCLASSESWIDE")
    assert not found.is_exact
    assert found.slots > found.total_slots

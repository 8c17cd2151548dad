"""Triggers in exported C programs: compiled, run on the events of a capture, and compared with what a view finds."""

import numpy as np
import pytest

from satview.events.spec import Release
from satview.export.c_program import c_program
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.rules.triggers import Watch
from tests.export.c_target import Runner, compiled, everything
from tests.helpers.extent import fewer

RULES = (
    'ADDALLCLASSES\nWHEN latency("MSG_SENDV", "SND_MESSAGE") > 100us THEN MARK "a"',
    'ADDALLCLASSES\nWHEN class == COMM and latency("THREADY", "THRUNNING") > 2us THEN MARK "b"; KEEP 1 buffer; STOP',
    'ADDALLCLASSES\nWHEN not latency("THREPLY", "THRUNNING") > 5us and class == COMM THEN MARK "c"',
    "ADDALLCLASSES\nWHERE cpu == 0 and not pid == 1\nWHEN event == REC_MESSAGE and pid > 1 THEN STOP",
    'ADDCLASS COMM\nWHEN event == SND_MESSAGE or latency("REC_MESSAGE", "REC_MESSAGE") > 1us THEN MARK "e \\"?\\""',
)


def built_rules(text, release=Release.QNX_7):
    return build(parse_rules(text, release), release)


@pytest.mark.thorough
@pytest.mark.parametrize("release", fewer([Release.QNX_7, Release.QNX_6, Release.QNX_6_6], 1))
def test_c_hits_where_a_view_does(release, tmp_path):
    capture = everything("client-server", release, tmp_path, wide=True, ms=100)
    programs = [c_program(built_rules(text, release)) for text in RULES]
    assert [str(fault) for program in programs for fault in program.faults] == []
    target, _ = compiled([program.source for program in programs], release, tmp_path)
    events = [given.info for given in capture.given]
    runner = Runner(release, {}, events)
    hits_in_all = 0
    for number, text in enumerate(RULES):
        built = built_rules(text, release)
        ran = runner.run(target, number)
        watch = Watch(built.triggers[0], 1_000_000_000)
        expected = []
        for place, (info, passes) in enumerate(zip(events, ran.passes, strict=True)):
            info.latency_ns = None
            if passes and watch.hits(info, info.time_ns):
                expected.append(place)
        assert ran.marks == expected, text
        hits_in_all += len(expected)
        stops = built.triggers[0].action.stops
        assert bool(ran.stops) == (stops and bool(expected)), text
        if stops and built.triggers[0].action.keep:
            slots = [max(1, (info.el_num + 1) // 2) * ok for info, ok in zip(events, ran.passes, strict=True)]
            assert np.sum(slots[expected[0] : ran.stops[0] + 1]) >= 1024 > np.sum(slots[expected[0] : ran.stops[0]])
        elif stops:
            assert ran.stops == expected[:1]
    assert hits_in_all > 20


@pytest.mark.parametrize(
    ("release", "rules", "message"),
    [
        (Release.QNX_7, 'WHEN latency("tick", "done") > 5ms THEN STOP', "the kernel calls no handler for 'tick'"),
        (Release.QNX_7, "WHEN class == USREVENT THEN STOP", "the kernel calls no handler for events of USER"),
        (Release.QNX_8, "WHEN class == COMM THEN STOP", "8.0 has no event handlers"),
        (Release.QNX_7, "WHEN time > 5s THEN STOP", "an event handler is not given when the event was"),
        (
            Release.QNX_7,
            "ADDALLCLASSES\nADDEVENTHANDLER COMM SND_MESSAGE WHERE pid == 7\nWHEN class == COMM THEN STOP",
            "events of COMM have handlers of their own",
        ),
    ],
)
def test_what_a_program_cannot_see_is_an_error_in_it(release, rules, message):
    program = c_program(built_rules(rules, release))
    assert any(message in fault.message for fault in program.faults)
    assert message.replace('"', "\\042") in program.source.replace("\\047", "'")
    assert "#error" in program.source


def test_a_program_says_what_it_does_not_see_and_which_ring_it_needs():
    program = c_program(built_rules("WHEN pid == 7 THEN KEEP 40 buffers; STOP"))
    assert any(
        note.startswith("line 1: the program does not see events of INT_HANDLER_ENTER") for note in program.notes
    )
    assert "tracelogger -d1 -r -k 62" in program.source
    program = c_program(built_rules("ADDCLASS COMM\nWHEN pid == 7 THEN STOP"))
    assert "SET(_NTO_TRACE_ADDEVENT, _NTO_TRACE_USER, 1023)" in program.source

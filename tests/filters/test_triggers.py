"""WHEN ... THEN: how it is written, where it hits, and that one event at a time says what a whole trace says."""

import random
from itertools import pairwise

import numpy as np
import pytest

from satview.events.spec import Release
from satview.events.wire import WireClass, code
from satview.filters.derived_columns import event_contexts
from satview.filters.diagnostics import RuleError
from satview.filters.rules.building import build
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.text import parse_rules, rules_text
from satview.filters.rules.triggers import Scan, Watch, trigger_hits
from tests.filters.made import CYCLES_PER_S, RUNNING, SMSG, Maker, made, make_trace, random_trace
from tests.helpers.extent import usually

TICK, DONE = (code(WireClass.USER, number) for number in (10, 11))
LATE = 'WHEN latency(10, 11) > 5ms THEN MARK "late"; KEEP 20 buffers; STOP'


def triggers(text, release=Release.QNX_6):
    return build(parse_rules(text, release), release).triggers


def hit_times_us(text, trace):
    """Return the times of hits since the end of START's dump, in microseconds, which are cycles here."""
    rows, _ = trigger_hits(triggers(text), trace)
    begin = int(trace.events.time_cycles[np.flatnonzero(trace.events.code == RUNNING)[0]])
    return (trace.events.time_cycles[rows] - begin).tolist()


def test_a_trigger_is_written_as_it_is_read():
    text = 'WHEN class == COMM and latency("tick", "done") > 5ms THEN MARK "a \\"b\\"; c"; KEEP 20 buffers; STOP\n'
    (rule,) = parse_rules(text, Release.QNX_7)
    assert (rule.action.mark, rule.action.keep, rule.action.stops) == ('a "b"; c', 20, True)
    assert rule.condition == 'class == COMM and latency("tick", "done") > 5ms'
    assert rules_text([rule], Release.QNX_7) == text
    assert rules_text(parse_rules('when name == "THEN" then stop', Release.QNX_7), Release.QNX_7) == (
        'WHEN name == "THEN" THEN STOP\n'
    )


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("WHEN duration > 5ms THEN STOP", 6, "duration is known only later"),
        ("WHEN time > 25% THEN STOP", 6, "25% is a moment of a whole trace"),
        ("WHEN pid == 7", 14, "THEN is missing"),
        ("WHEN pid == 7 THEN KEEP 5 buffers", 34, "before STOP"),
        ("WHEN pid == 7 THEN STOPP", 20, "did you mean STOP?"),
        ("WHEN pid == 7 THEN STOP; STOP", 26, "STOP stands here twice"),
        ("WHEN pid == 7 THEN KEEP 5000 buffers; STOP", 25, "KEEP takes 1 to 4096"),
        ("WHEN latency(1, 2) > 5 or latency(2, 3) > 5 THEN STOP", 27, "write a second rule"),
        ("WHEN latency(1024, 2) > 5 THEN STOP", 14, "numbered 0 to 1023"),
        ("WHERE latency(1, 2) > 5", 7, "for WHEN ... THEN"),
    ],
)
def test_what_cannot_be_a_trigger_is_refused_where_it_stands(line, column, message):
    with pytest.raises(RuleError) as error:
        parse_rules(line, Release.QNX_7)
    fault = error.value.diagnostics[0]
    assert fault.column == column
    assert message in fault.message


def test_a_latency_hits_once_at_the_end_of_its_span():
    trace = made(
        [
            (0, 0, RUNNING, (7, 1)),
            (100, 0, TICK, (0, 0)),
            (5_100, 0, DONE, (0, 0)),  # 5 ms: not more
            (6_000, 0, TICK, (0, 0)),
            (11_001, 0, DONE, (0, 0)),  # 5.001 ms
            (11_002, 0, SMSG, (0x10001, 7)),
            (20_000, 0, DONE, (0, 0)),  # its tick has had its end
            (21_000, 0, TICK, (0, 0)),
            (21_001, 0, RUNNING, (7, 2)),
            (30_000, 0, DONE, (0, 0)),  # of another thread
        ]
    )
    assert hit_times_us(LATE, trace) == [11_001]


def test_a_latency_is_kept_for_other_events_of_the_thread():
    trace = made(
        [
            (0, 0, RUNNING, (7, 1)),
            (0, 1, RUNNING, (12, 1)),
            (100, 0, TICK, (0, 0)),
            (9_100, 0, DONE, (0, 0)),
            (9_200, 1, SMSG, (0x10001, 7)),  # of another thread
            (9_300, 0, SMSG, (0x10001, 12)),
            (9_400, 0, SMSG, (0x10001, 12)),  # that span has counted
            (10_000, 0, TICK, (0, 0)),
            (19_000, 0, DONE, (0, 0)),
            (19_100, 0, TICK, (0, 0)),
            (19_200, 0, SMSG, (0x10001, 12)),  # the next span has begun
        ]
    )
    assert hit_times_us("WHEN class == COMM and latency(10, 11) > 5ms THEN STOP", trace) == [9_300]


def test_names_of_a_pair_are_events_numbers_or_texts():
    maker = Maker()
    begin = maker.start()
    maker.at(begin, 0, RUNNING, 7, 1)
    maker.text_at(begin + 10, 0, TICK, (), b"tick")
    maker.text_at(begin + 20_010, 0, DONE, (), b"done")
    maker.at(begin + 30_000, 0, RUNNING, 7, 2)
    maker.at(begin + 50_000, 0, RUNNING, 7, 1)
    trace = make_trace(maker)
    assert hit_times_us('WHEN latency("tick", "done") > 5ms THEN STOP', trace) == [20_010]
    assert hit_times_us("WHEN latency(10, 11) > 5ms THEN STOP", trace) == [20_010]
    assert hit_times_us('WHEN latency("tick", "THRUNNING") > 5ms THEN STOP', trace) == [50_000]
    assert hit_times_us('WHEN latency("THRUNNING", "THRUNNING") > 45ms THEN STOP', trace) == [50_000]


def test_triggers_see_what_the_rules_let_pass():
    trace = made([(0, 0, RUNNING, (7, 1)), (10, 0, SMSG, (0x10001, 7)), (20, 0, SMSG, (0x10001, 7))])
    built = build(parse_rules("WHERE time > 25us\nWHEN event == SND_MESSAGE THEN STOP", Release.QNX_6), Release.QNX_6)
    passes = built.mask(trace)
    rows, _ = trigger_hits(built.triggers, trace, passes)
    assert passes[rows].all()
    assert len(trigger_hits(built.triggers, trace)[0]) == 2
    assert len(rows) < 2 or (trace.events.time_cycles[rows] - trace.events.time_cycles[0] > 25).all()


RULES = (
    'WHEN latency("MSG_SENDV", "SND_MESSAGE") > 100us THEN MARK "a"',
    'WHEN latency("THRUNNING", "THREPLY") > 50us or event == REC_MESSAGE THEN MARK "b"',
    'WHEN class == COMM and latency("THRUNNING", "THRUNNING") > 1us THEN MARK "c"',
    'WHEN not latency("THREADY", "THRUNNING") > 50us THEN MARK "d"',
    'WHEN latency("THRUNNING", "THRUNNING") is unknown and class == COMM THEN MARK "e"',
)


@pytest.mark.parametrize("seed", range(usually(3, complete=200, thorough=40)))
def test_one_by_one_at_once_and_in_parts_agree(seed):
    trace = random_trace(seed, 500)
    rows = np.arange(len(trace.events))
    generator = random.Random(seed)
    cuts = sorted({0, len(rows), *(generator.randrange(len(rows)) for _ in range(5))})
    hits_in_all = 0
    for (trigger,) in map(triggers, RULES):
        watch = Watch(trigger, CYCLES_PER_S)
        one_by_one = [
            row
            for row, context in enumerate(event_contexts(trace, rows))
            if watch.hits(context, int(trace.events.time_cycles[row]))
        ]
        at_once = trigger_hits([trigger], trace)[0].tolist()
        scan = Scan(trigger)
        in_parts = [hit for a, b in pairwise(cuts) for hit in scan.hits(trace, rows[a:b]).tolist()]
        assert one_by_one == at_once
        assert in_parts == at_once
        hits_in_all += len(at_once)
    assert hits_in_all


def test_a_capture_refuses_pairs_that_are_switched_off_and_switches_marks_on():
    rules = 'ADDCLASS COMM\nWHEN latency("tick", "done") > 5ms THEN STOP'
    captured = for_capture(build(parse_rules(rules, Release.QNX_7), Release.QNX_7))
    assert [(fault.line, fault.column, fault.message) for fault in captured.faults] == [
        (2, 14, "'tick' is not among the events that are captured; switch it on"),
        (2, 22, "'done' is not among the events that are captured; switch it on"),
    ]
    captured = for_capture(
        build(parse_rules("ADDCLASS COMM\nWHEN class == COMM THEN STOP", Release.QNX_8), Release.QNX_8)
    )
    assert not captured.faults
    assert captured.rules[-1].text(Release.QNX_8) == "ADDEVENT USER 1023"
    assert len(captured.triggers) == 1

"""Texts of values in conditions: of files that describe events, and of the tables, as the window shows them."""

import numpy as np
import pytest

from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.user_events import UserEvent, UserField, ValueText
from satview.export.c_program import c_program
from satview.filters.derived_columns import event_contexts
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression, select
from satview.filters.expressions.syntax import completions
from satview.filters.external import EventContext
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.opened import with_answers
from satview.store.arguments import describe_events, taught
from tests.export.c_target import Runner, compiled
from tests.helpers.kev import TraceBuilder

JOB, OTHER, SENT = wire.code(6, 41), wire.code(6, 42), wire.code(2, 11)
STATES = {3: "RUNNING", 4: "READY"}
KIND = (
    ValueText(5, "key"),
    ValueText(0x10, "late", 0x10),
    ValueText(0x20, "lost", 0x20),
    ValueText(1, "none", when=("state", -1, 3)),
)
DESCRIBED = {JOB: UserEvent(41, "job", (UserField("state", 4, names=STATES), UserField("kind", 4, texts=KIND)))}


@pytest.fixture
def jobs(tmp_path):
    """Rows 1 to 5 are jobs, row 6 another event, whose description has a number called state without texts."""
    builder = TraceBuilder().time_event(0)
    for time, words in enumerate([(3, 5), (4, 0x15), (5, 0x30), (3, 1), (4, 1)], 1):
        builder.event(JOB, 10 * time, words)
    trace = builder.event(OTHER, 90, (3, 5)).open(tmp_path)
    describe_events(trace, DESCRIBED | {OTHER: UserEvent(42, "other", (UserField("state", 4),))})
    return trace


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ('arg.state == "RUNNING"', [1, 4]),
        ('"RUNNING" == arg.state', [1, 4]),
        ("arg.state == RUNNING", [1, 4]),
        ("RUNNING == arg.state", [1, 4]),
        ("arg.state in (RUNNING, READY)", [1, 2, 4, 5]),
        ('arg.state != "RUNNING"', [2, 3, 5, 6]),
        ('not arg.state == "RUNNING"', [2, 3, 5, 6]),
        ("arg.state == 3", [1, 4, 6]),
        ('arg.state in ("RUNNING", "READY")', [1, 2, 4, 5]),
        ('arg.state in ("READY", 5)', [2, 3, 5]),
        ('arg.state not in ("RUNNING", "READY")', [3, 6]),
        ('arg.state ~ "R*Y"', [2, 5]),
        ("arg.state !~ /^RUN/", [2, 3, 5, 6]),
        ('arg.kind == "key"', [1]),
        ('arg.kind == "5 key"', [1]),
        ('arg.kind == "late"', [2, 3]),
        ('arg.kind == "late lost"', [3]),
        ('arg.kind == "none"', [4]),
        ('arg.kind != "late"', [1, 4, 5]),
    ],
)  # fmt: skip
def test_values_are_found_by_their_texts(jobs, condition, rows):
    assert select(jobs, condition).tolist() == rows
    expression = Expression(condition, jobs.release, taught=taught(jobs))
    alone = [
        row for row, context in enumerate(event_contexts(jobs, np.arange(len(jobs.events)))) if expression(context)
    ]
    assert alone == rows


def test_a_pattern_that_no_text_fits_is_refused(jobs):
    with pytest.raises(ExpressionError, match=r"no event can ever fit 'arg.state ~ \"X\*\"'"):
        select(jobs, 'arg.state ~ "X*"')


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ('arg.state == "RUNING"', "no value of the argument 'state' is called 'RUNING'; did you mean RUNNING?"),
        ('arg.state in ("RUNNING", "X")', "no value of the argument 'state' is called 'X'"),
        ('arg.state < "RUNNING"', "texts are equal or not"),
        ('arg.d0 == "RUNNING"', "the argument 'd0' is a number"),
    ],
)
def test_a_text_that_no_value_has_is_refused(jobs, condition, says):
    with pytest.raises(ExpressionError, match=says.replace("?", r"\?")):
        select(jobs, condition)


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        ("arg.state == ", [('"RUNNING"', "3"), ('"READY"', "4")]),
        ("arg.state in (3, R", [('"RUNNING"', "3"), ('"READY"', "4")]),
        ('arg."kind" != "l', [('"late"', "0x10"), ('"lost"', "0x20")]),
        ("arg.d0 == ", []),
    ],
)
def test_texts_are_proposed(jobs, typed, proposed):
    shown = [(one.text, one.help) for one in completions(typed, len(typed), jobs.release, jobs)]
    assert [pair for pair in shown if pair[0].startswith('"')] == proposed


def test_texts_are_those_of_the_trace(jobs, tmp_path):
    """In another trace of the release 3 is READY, and in a third nothing is described."""
    other = TraceBuilder().time_event(0).event(JOB, 10, (3, 0)).event(JOB, 20, (4, 0)).open(tmp_path)
    describe_events(other, {JOB: UserEvent(41, "job", (UserField("state", 4, names={3: "READY", 4: "RUNNING"}),))})
    assert select(other, 'arg.state == "RUNNING"').tolist() == [2]
    assert select(jobs, 'arg.state == "RUNNING"').tolist() == [1, 4]
    rules = build(parse_rules('WHERE arg.state == "RUNNING"', other.release), other.release, taught=taught(other))
    assert np.flatnonzero(rules.mask(other)).tolist() == [2]
    describe_events(other, {})
    with pytest.raises(ExpressionError, match="no event has an argument 'kind'"):
        select(other, "arg.kind == 5")


@pytest.mark.thorough
def test_tables_have_a_column_of_texts(jobs):
    """Row 4 is RUNNING with kind 1, which is called none only then."""
    trace = with_answers(jobs)
    table = trace.arguments("user_41")
    assert table["state"].tolist() == [3, 4, 5, 3, 4]
    assert table["state_text"].tolist() == ["RUNNING", "READY", "", "RUNNING", "READY"]
    assert table.known("state_text").tolist() == [True, True, False, True, True]
    assert table["kind_text"].tolist() == ["key", "late", "late lost", "none", ""]
    assert trace.sql("select state, kind_text from user_41 where state_text = 'RUNNING'").rows() == [
        (3, "key"), (3, "none")]  # fmt: skip
    names = [row[0] for row in trace.sql("describe user_41").rows()]
    assert names[5:9] == ["state", "kind", "state_text", "kind_text"]


def test_texts_of_the_tables_are_those_of_the_details(tmp_path):
    builder = TraceBuilder().time_event(0)
    builder.state("RUNNING", 10, 7, 1, extra=(10, 1)).state("READY", 20, 7, 1, extra=(10, 2))
    builder.exit(11, 30, (0xFFFFFFFF, 260)).exit(11, 40, (0xFFFFFFFF, 3)).exit(11, 50, (0, 0))
    trace = builder.open(tmp_path)
    shown = [
        [argument.note or argument.text for argument in trace.payloads.decode(row).arguments][-1] for row in range(1, 5)
    ]
    assert shown == ["FIFO", "RR", "or data, if the call itself returned -1", "or data, if the call itself returned -1"]
    assert trace.payloads.decode(3).arguments[1].text == "ETIMEDOUT (260)"
    for condition, rows in (
        ('arg.policy == "RR"', [2]), ('arg.policy != "RR"', [1]), ('arg.policy ~ "*F*"', [1]),
        ('arg.errno == "ETIMEDOUT"', [3]), ('arg.errno == "ETIMEDOUT (260)"', [3]), ('arg.errno != "ETIMEDOUT"', [4]),
        ('arg.errno in ("ESRCH", "EPERM")', [4]),
    ):  # fmt: skip
        assert select(trace, condition).tolist() == rows, condition


@pytest.mark.parametrize(
    ("flags", "texts", "others"),
    [
        (1, ["ALLOW"], ["DENY", "IS_ROOT"]),
        (3, ["ALLOW", "IS_ROOT", "ALLOW IS_ROOT"], ["DENY"]),
        (0, ["DENY"], ["ALLOW"]),
    ],
)
def test_bits_of_the_tables(tmp_path, flags, texts, others):
    [code] = catalogue(Release.QNX_7).find("ABLE")
    trace = TraceBuilder().time_event(0).event(code, 10, (7, 1, flags, 9, 0, 0, 0, 0)).open(tmp_path)
    [argument] = [one for one in trace.payloads.decode(1).arguments if one.name == "flags"]
    assert argument.value == flags
    for text in texts:
        assert select(trace, f'class == SEC and arg.flags == "{text}"').tolist() == [1], text
    for text in others:
        assert select(trace, f'class == SEC and arg.flags == "{text}"').tolist() == [], text


@pytest.mark.thorough
def test_exported_c_compares_the_numbers(jobs, tmp_path):
    """The second word of MSG_SENDV is described; user events have no handlers, which is said."""
    sent = UserEvent(11, "sent", (UserField("size", 4, names={1: "small", 9: "large"}, offsets=(4, 4)),), 2)
    describe_events(jobs, {SENT: sent, **DESCRIBED})
    text = 'ADDALLCLASSES\nSETALLCLASSESWIDE\nADDCLASSEVHANDLER KERCALLENTER WHERE arg.size == "large"'
    program = c_program(build(parse_rules(text, Release.QNX_7), Release.QNX_7))
    assert not program.faults
    target, _ = compiled([program.source], Release.QNX_7, tmp_path)
    events = [
        EventContext(SENT, 7, 1, words, 0, word_count=len(words)) for words in ((3, 1), (3, 9), (3, 9, 0, 0), (9, 3))
    ]
    assert Runner(Release.QNX_7, {}, events).run(target, 0).passes == [False, True, True, False]
    everywhere = build(parse_rules('ADDALLCLASSES\nWHERE arg.state == "RUNNING"', Release.QNX_7), Release.QNX_7)
    source = c_program(everywhere).source
    assert "WHERE does not apply to USER: these classes take no handler" in source
    assert "SET(_NTO_TRACE_ADDEVENT, _NTO_TRACE_USER, 41);" in source
    assert "_NTO_TRACE_USER, 42" not in source


@pytest.mark.thorough
def test_a_part_of_a_word_is_refused_in_c(jobs, tmp_path):
    describe_events(jobs, {SENT: UserEvent(11, "sent", (UserField("low", 1),), 2)})
    text = "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLENTER WHERE arg.low == 3"
    [fault] = c_program(build(parse_rules(text, Release.QNX_7), Release.QNX_7)).faults
    assert "part of a word" in fault.message
    assert (fault.line, fault.column) == (2, 38)

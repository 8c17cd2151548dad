"""What rules become in a capture, and what of them no kernel can carry out: each with its position and remedy."""

import numpy as np
import pytest

from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import is_wide_only
from satview.filters.expressions.semantics import FIELDS, KnownWhen
from satview.filters.expressions.syntax import completions
from satview.filters.external import ExternalClass as C
from satview.filters.passes import Pass, pass_limits
from satview.filters.rules.building import build
from satview.filters.rules.capturing import AllOf, check_capture, check_condition, explain, for_capture
from satview.filters.rules.text import parse_rules


def faults(text, release=Release.QNX_7, is_wide=False):
    """Return line, column and message of what a capture refuses."""
    found, _ = check_capture(parse_rules(text, release), release, is_wide)
    return [(fault.line, fault.column, fault.message) for fault in found]


def captured(text, release=Release.QNX_7):
    return for_capture(build(parse_rules(text, release), release))


def test_every_field_says_when_it_is_known():
    assert {name for name, spec in FIELDS.items() if spec.known is KnownWhen.LATER} == {"duration", "length"}
    assert {name for name, spec in FIELDS.items() if spec.known is KnownWhen.EXIT} == {"failed", "errno"}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("ADDCLASSEVHANDLER KERCALL WHERE pid == 1 or duration > 1ms", 45, "duration is known only later"),
        ("ADDCLASSEVHANDLER THREAD WHERE not length > 1ms", 36, "length is known only later"),
        ("WHERE class == THREAD and length > 1ms", 27, "length is known only later"),
        ("ADDCLASSEVHANDLER KERCALLENTER WHERE failed", 38, "at the exit of a kernel call only"),
        ("ADDCLASSEVHANDLER COMM WHERE errno == EAGAIN", 30, "at the exit of a kernel call only"),
        ("ADDEVENTHANDLER KERCALLENTER MSG_SENDV WHERE arg.sparts > 1", 46, "MSG_SENDV would be fast"),
        ("ADDCLASSEVHANDLER THREAD WHERE arg.coid > 1", 32, "by none of these events"),
        ("ADDCLASSEVHANDLER THREAD WHERE event == MSG_SENDV", 32, "no event that this is evaluated for can fit"),
        ("ADDCLASSEVHANDLER THREAD WHERE word[4] == 1", 32, "no event that this is evaluated for can fit"),
        ("ADDCLASSEVHANDLER COMM WHERE text ~ 'x*'", 30, "none of these events has a text"),
    ],
)
def test_what_no_handler_can_know_is_marked_with_its_column(text, column, message):
    text = f"ADDALLCLASSES\nSETALLCLASSESFAST\n{text}"
    (line, found, said), *others = faults(text)
    assert (line, found) == (3, column)
    assert message in said
    assert not others


def test_wide_events_have_the_arguments_that_fast_ones_lack():
    text = "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLENTER WHERE arg.sparts > 1"
    assert "wide form only" in faults(text)[0][2]
    assert not faults(text, is_wide=True)
    assert not faults(text + "\nSETEVENTWIDE KERCALLENTER MSG_SENDV")
    assert is_wide_only("sparts", Release.QNX_7)
    assert not is_wide_only("coid", Release.QNX_7)


def test_where_lines_become_handlers_of_the_classes_that_show_a_thread():
    rules = captured("WHERE pid in (2, 3)")
    assert sorted(rules.handlers) == [C.KERCALLENTER, C.KERCALLEXIT, C.THREAD, C.VTHREAD, C.COMM]
    whole = " ".join(rules.notes)
    assert "USER" in whole.split("take no handler")[0]
    assert "INTENTER, INTEXIT, PROCESS, SYSTEM: these classes show a handler no thread" in whole
    assert C.CONTROL not in rules.state.class_handlers, "a trace without TIME has no clock"


def test_where_lines_that_ask_for_no_thread_are_requested_everywhere():
    assert sorted(captured("WHERE cpu == 0").handlers) == [
        C.KERCALLENTER, C.KERCALLEXIT, C.INTENTER, C.INTEXIT, C.PROCESS, C.THREAD, C.VTHREAD, C.SYSTEM, C.COMM,
    ]  # fmt: skip


def test_where_lines_that_class_and_event_decide_become_switches():
    rules = captured("WHERE class == THREAD or event == MSG_SENDV")
    assert not rules.handlers
    assert not rules.notes
    modes = [(rule.mode, rule.external) for rule in rules.rules]
    assert (Mode.DELCLASS, C.COMM) in modes
    assert (Mode.DELCLASS, C.THREAD) not in modes
    codes = np.flatnonzero(rules.state.codes_at())
    names = {"THREAD", "KER_CALL", "KER_EXIT", "INT_CALL", "CONTROL"}
    from satview.events.catalogue import catalogue

    assert {catalogue(Release.QNX_7).class_name(code) for code in codes} <= names


def test_a_kernel_without_handlers_takes_what_switches_can_do():
    assert not captured("WHERE class == THREAD", Release.QNX_8).faults
    (fault,) = captured("WHERE pid == 2", Release.QNX_8).faults
    assert "8.0 has no event handlers" in fault.message
    (fault,) = captured("ADDALLCLASSES\nADDCLASSEVHANDLER THREAD WHERE pid == 2", Release.QNX_8).faults
    assert (fault.line, fault.column) == (2, 1)


def test_a_where_line_joins_the_handler_that_a_class_has():
    rules = captured("ADDALLCLASSES\nADDCLASSEVHANDLER THREAD WHERE tid == 1\nWHERE pid == 2")
    combined = rules.handlers[C.THREAD]
    assert isinstance(combined, AllOf)
    assert [part.text for part in combined.parts] == ["tid == 1", "pid == 2"]
    assert isinstance(rules.handlers[C.COMM], Expression)


def test_explain_and_chips_say_it_too():
    text = "ADDALLCLASSES\nADDCLASSEVHANDLER THREAD WHERE length > 1ms\n"
    notes = explain(parse_rules(text, Release.QNX_7), Release.QNX_7)
    assert [(note.line, note.column) for note in notes if "only later" in note.message] == [(2, 32)]
    assert "only later" in pass_limits(Pass("A", rules=text), Release.QNX_7)[0]
    assert "only later" in pass_limits(Pass("A", expression="duration > 1ms"), Release.QNX_7)[0]
    assert not pass_limits(Pass("A", expression="pid == 7 and failed"), Release.QNX_7)
    marks = check_condition(Expression("pid == 1 and arg.sparts > 2", Release.QNX_7))
    assert [(mark.start, mark.end) for mark in marks] == [(13, 23)]


def test_completion_says_when_a_field_is_known():
    helps = {item.text: item.help for item in completions("", 0, Release.QNX_7)}
    assert helps["duration"].endswith("(known only later)")
    assert helps["errno"].endswith("(known at the exit of a kernel call)")
    assert "known" not in helps["pid"]
    arguments = {item.text: item.help for item in completions("event == MSG_SENDV and arg.", 27, Release.QNX_7)}
    assert arguments["sparts"] == "wide form only"
    assert arguments["coid"] == ""

"""C programs: they compile without a warning, and the calls in them set the state they were made from."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.export.c_program import c_program
from satview.filters.external import ExternalClass
from satview.filters.rules.building import build, from_tracelogger_args, tracelogger_command
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.text import parse_rules
from tests.export.c_target import Runner, compiled, constants
from tests.filters.test_rules import random_rules

QNX_6 = Release.QNX_6
C = ExternalClass
RELEASES = [Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8]
RULES = """\
ADDALLCLASSES
DELEVENT THREAD THREADY|THNANOSLEEP
DELCLASS VTHREAD
DELCLASS CONTROL
ADDEVENT CONTROL TIME
DELCLASS COMM
ADDEVENT COMM SMSG
SETEVENTWIDE KERCALLENTER MSG_SENDV
SETCLASSPID KERCALL 7
SETEVENTTID KERCALL MSG_RECEIVEV 7 2
ADDEVENTHANDLER KERCALLENTER MSG_SENDV WHERE word[0] > 2 and (pid == 7 or tid in (1, 2))
ADDEVENTHANDLER THREAD THRUNNING CALL my.py:only
WHERE duration > 2ms and name ~ "de\\vb??/*"
"""


class _Named:
    def __init__(self, position):
        self.position = position

    def __call__(self, info):
        return 1


def program_of(text, release=QNX_6):
    return c_program(build(parse_rules(text, release), release, _Named))


def carried_out(source, release):
    """Carry out the TraceEvent() calls of a program as they are written; handlers are left out."""
    known = constants(release)
    state = RuleSet(release)
    state.add_all_classes()
    state.set_all_classes_wide()
    for call in re.findall(r"^    SET\((.*)\);$", source, re.MULTILINE):
        mode, *arguments = [part.strip() for part in call.split(",")]
        if "HANDLER" in mode:
            continue
        numbers = []
        for part in arguments:
            numbers.append(0)
            for term in (item.strip().removesuffix("u") for item in part.split("|")):
                numbers[-1] |= known[term] if term in known else int(term, 0)
        assert state.apply(mode, *numbers) == 0, call
    return state


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_programs_compile_and_set_the_same_state(tmp_path, release):
    rules = [random_rules(seed, release) for seed in (5, 11, 12, 13)]
    rules = [state for state in rules if state.codes_at().any()]
    assert len(rules) > 1
    programs = [c_program(state, "a name\nwith */ signs ??/") for state in rules]
    target, _ = compiled([program.source for program in programs], release, tmp_path)
    runner = Runner(release, {}, [])
    for number, state in enumerate(rules):
        ran = runner.run(target, number)
        assert (ran.state, ran.attached) == (state, set())


@pytest.mark.thorough
@given(st.integers(0, 10**6), st.sampled_from(RELEASES))
def test_any_rule_set_comes_back_from_its_program(seed, release):
    rules = random_rules(seed, release)
    assert carried_out(c_program(rules).source, release) == rules


@pytest.mark.thorough
def test_conditions_become_handlers_where_they_belong(tmp_path):
    text = """ADDALLCLASSES
ADDCLASSEVHANDLER KERCALL WHERE word[0] == 1
ADDEVENTHANDLER THREAD THRUNNING WHERE tid < 3
ADDEVENTHANDLER COMM SMSG WHERE tid < 3
ADDEVENTHANDLER INTENTER 5 WHERE word[0] == 1
"""
    program = program_of(text)
    assert (program.faults, program.notes) == ((), ())
    target, _ = compiled([program.source], QNX_6, tmp_path)
    ran = Runner(QNX_6, {}, []).run(target, 0)
    # THREAD has a handler of its own that follows who runs: COMM does not name the thread of a view.
    assert ran.attached == {
        (C.KERCALLENTER, -1),
        (C.KERCALLEXIT, -1),
        (C.THREAD, 1 << 1),
        (C.COMM, 0),
        (C.INTENTER, 5),
        (C.THREAD, -1),
    }
    assert program.source.count("static int handler_") == 5, "both halves of KERCALL share one"
    assert program.source.count("note_running(event);") == 1


@pytest.mark.thorough
def test_conditions_on_everything_become_what_they_become_in_any_capture(tmp_path):
    text = """ADDALLCLASSES
ADDCLASSEVHANDLER KERCALLENTER WHERE word[0] == 1
WHERE pid == 7
WHERE tid < 3
"""
    program = program_of(text)
    assert program.faults == ()
    target, _ = compiled([program.source], QNX_6, tmp_path)
    ran = Runner(QNX_6, {}, []).run(target, 0)
    assert ran.attached == {(c, -1) for c in (C.KERCALLENTER, C.KERCALLEXIT, C.THREAD, C.VTHREAD, C.COMM)}
    first = program.source.split("static int handler_1", 1)[1].split("\n}\n")[0]
    assert re.findall(r"/\* (WHERE .*) \*/", first) == ["WHERE word[0] == 1", "WHERE pid == 7", "WHERE tid < 3"]
    assert "show a handler no thread, so their events are captured whole" in "".join(program.notes)
    assert "show a handler no thread" in program.source


def test_what_class_and_event_decide_needs_no_handler():
    program = program_of("ADDALLCLASSES\nWHERE event == MSG_SENDV", Release.QNX_8)
    assert program.faults == ()
    assert "HANDLER" not in program.source
    on = np.flatnonzero(carried_out(program.source, Release.QNX_8).codes_at()).tolist()
    book = catalogue(Release.QNX_8)
    assert {book.name(code) for code in on if book.class_name(code) != "CONTROL"} == {"MSG_SENDV"}


@pytest.mark.thorough
def test_who_runs_is_followed_even_where_thrunning_is_off(tmp_path):
    program = program_of("ADDCLASS COMM\nADDCLASSEVHANDLER COMM WHERE pid == 7")
    assert program.faults == ()
    assert "/* THRUNNING is on for this handler alone. */" in program.source
    target, _ = compiled([program.source], QNX_6, tmp_path)
    ran = Runner(QNX_6, {}, []).run(target, 0)
    assert ran.state.thread & ran.state.all_states == 1 << 1


def test_a_latency_that_follows_threads_is_an_error_where_a_pid_keeps_them_from_being_followed():
    program = program_of('ADDALLCLASSES\nSETCLASSPID THREAD 7\nWHEN latency(7, "x") > 1ms THEN STOP')
    assert [fault.column for fault in program.faults] == [1, 6]
    assert "from THRUNNING, but a pid is set" in program.faults[1].message


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("ADDCLASSEVHANDLER KERCALLENTER WHERE pid == 7 and duration > 1ms", 2, 51, "known only later"),
        ("ADDEVENTHANDLER THREAD THREADY WHERE length > 1ms", 2, 38, "known only later"),
        ("ADDCLASSEVHANDLER COMM WHERE cpu == 1 or time > 1s", 2, 42, "not given when the event was"),
        ('ADDCLASSEVHANDLER COMM WHERE thread_name == "x"', 2, 30, "not given names of threads"),
        ("ADDCLASSEVHANDLER KERCALLENTER WHERE priority > 9", 2, 38, "only wide THREAD events show a priority"),
        ("SETCLASSFAST THREAD\nADDEVENTHANDLER THREAD THREADY WHERE priority > 9", 3, 38, "only wide THREAD events"),
        ("ADDCLASSEVHANDLER KERCALLENTER CALL my.py:only", 2, 1, "CALL my.py:only: a Python function"),
        ("SETCLASSPID THREAD 7\nADDCLASSEVHANDLER COMM WHERE tid == 1", 3, 30, "from THRUNNING, but a pid is set"),
        ("WHERE cpu == 1 and duration > 2ms", 2, 20, "known only later"),
        ("WHERE cpu == 1 and time > 2ms", 2, 20, "not given when"),
        ("SETALLCLASSESFAST\nADDEVENTHANDLER KERCALLENTER MSG_SENDV WHERE arg.rparts > 1", 3, 46, "wide form only"),
    ],
)
def test_what_cannot_be_written_is_an_error_at_its_position(text, line, column, message, tmp_path):
    program = program_of(f"ADDALLCLASSES\n{text}")
    assert [(fault.line, fault.column) for fault in program.faults] == [(line, column)]
    assert message in program.faults[0].message
    _, said = compiled([program.source], QNX_6, tmp_path, check=False)
    assert f'#error "line {line}, column {column}: ' in said
    if "WHERE" in text and not text.startswith("WHERE"):
        function = program.source.split("static int handler_", 1)[1].split("\n}\n")[0]
        assert "#error" in program.source.split("int main(void)")[0]
        assert "#error" in function or "note_running" in function


def test_all_that_cannot_be_written_is_reported_at_once():
    program = program_of(RULES)
    assert [fault.line for fault in program.faults] == [12, 13]


@pytest.mark.thorough
def test_priority_is_written_where_the_event_carries_it(tmp_path):
    program = program_of("ADDALLCLASSES\nSETCLASSWIDE THREAD\nADDEVENTHANDLER THREAD THREADY WHERE priority > 9")
    assert program.faults == ()
    compiled([program.source], QNX_6, tmp_path)


@pytest.mark.thorough
def test_a_full_table_of_handlers_is_reported():
    full = "ADDALLCLASSES\n" + "".join(f"ADDEVENTHANDLER KERCALLENTER {i} WHERE tid == 1\n" for i in range(125))
    program = program_of(f"{full}WHERE cpu == 7")
    assert [fault.line for fault in program.faults] == [127] * len(program.faults)
    assert "all 128 positions for handlers are taken" in program.faults[0].message
    exact = "ADDALLCLASSES\n" + "".join(f"ADDEVENTHANDLER KERCALLENTER {i} WHERE tid == 1\n" for i in range(127))
    program = program_of(f"{exact}ADDEVENTHANDLER COMM SMSG WHERE tid == 1\n")
    assert "no position for a handler of THREAD is left" in program.faults[0].message


def test_8_0_has_no_handlers():
    program = program_of("ADDCLASSEVHANDLER COMM WHERE pid == 7", Release.QNX_8)
    assert "release 8.0 has no event handlers" in program.faults[0].message
    assert "handler_" not in program.source
    assert '    #error "line 1, column 1: release 8.0 has no event handlers' in program.source


def test_a_process_that_starts_later_is_reported_to_be_unknown():
    source = program_of('ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLENTER WHERE name ~ "devb-*"').source
    assert "the name of a process that\n   starts later is not known" in source
    assert "DCMD_PROC_MAPDEBUG_BASE" in source


# ---- tracelogger -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("tracelogger -n 0 -f x.kev", "tracelogger -f /dev/shmem/tracebuffer.kev"),
        ("-F1 -F 4 -w", "tracelogger -F1 -F4 -w -f /dev/shmem/tracebuffer.kev"),
        ("-wF2 -S 10M -r", "tracelogger -F2 -w -f /dev/shmem/tracebuffer.kev"),
    ],
)
def test_arguments_become_rules_and_rules_the_same_command(arguments, command):
    imported = from_tracelogger_args(arguments, QNX_6)
    found = tracelogger_command(build(imported.rules, QNX_6))
    assert (found.text, found.is_exact, found.reasons) == (command, True, ())


def test_an_option_that_is_not_documented_is_read_but_not_written():
    built = build(from_tracelogger_args("-F11", QNX_6).rules, QNX_6)
    assert built.state.calls[2] & 3 == 0
    command = tracelogger_command(built)
    assert (command.text, command.is_exact) == ("tracelogger -f /dev/shmem/tracebuffer.kev", False)


def test_what_the_logger_does_not_show():
    assert from_tracelogger_args("-d1 -n 3", QNX_6).rules == ()
    assert "a program chose the events" in from_tracelogger_args("-d1", QNX_6).notes[0]
    assert from_tracelogger_args("-d1 -E -F3", QNX_6).rules != ()
    assert "ring mode" in from_tracelogger_args("-r", QNX_6).notes[0]
    assert "-F 99 is not known" in from_tracelogger_args("-F 99", QNX_6).notes[0]


@given(st.text("-FwdraE 123nsS\x00xyz", max_size=40))
def test_any_arguments_can_be_read(arguments):
    build(from_tracelogger_args(arguments, Release.QNX_7).rules, Release.QNX_7)


def test_what_a_command_cannot_do_is_said_and_loses_nothing():
    built = build(parse_rules(RULES, QNX_6), QNX_6, _Named)
    command = tracelogger_command(built)
    assert command.text.startswith("tracelogger -F5 -w -f")
    assert not command.is_exact
    assert len(command.reasons) == 5
    security = tracelogger_command(build(parse_rules("ADDALLCLASSES\nADDCLASS SEC", Release.QNX_7), Release.QNX_7))
    assert (security.text.split()[1], security.is_exact) == ("-a", True)

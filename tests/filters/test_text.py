"""Rules as text: what lines mean, where faults are said to be, files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.derived_columns import process_names
from satview.filters.diagnostics import RuleError
from satview.filters.external import ExternalClass
from satview.filters.rules.building import build
from satview.filters.rules.capturing import explain
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.text import (
    FILE_LIMIT,
    Rule,
    check_rules,
    parse_rules,
    read_rule_text,
    rules_text,
    save_rules,
    without_comment,
)
from tests.filters.made import MSG_SENDV, RUNNING, made, random_trace
from tests.helpers.growth import cpu_s

C = ExternalClass
QNX_6 = Release.QNX_6
ON_7 = "ADDEVENTHANDLER COMM SMSG WHERE pid == 7"


def test_a_line_is_one_mode():
    assert parse_rules("ADDEVENT KERCALL MSG_SENDV", QNX_6) == (Rule(Mode.ADDEVENT, C.KERCALL, 11),)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("addclass thread  # all of them", Rule(Mode.ADDCLASS, C.THREAD)),
        ("_NTO_TRACE_ADDCLASS _NTO_TRACE_COMM", Rule(Mode.ADDCLASS, C.COMM)),
        ("ADDCLASS 14", Rule(Mode.ADDCLASS, C.COMM)),
        ("ADDEVENT THREAD THRUNNING|THREADY", Rule(Mode.ADDEVENT, C.THREAD, 6)),
        ("ADDEVENT THREAD _NTO_TRACE_THRUNNING", Rule(Mode.ADDEVENT, C.THREAD, 2)),
        ("ADDEVENT THREAD reply", Rule(Mode.ADDEVENT, C.THREAD, 64)),
        ("ADDEVENT VTHREAD VTHRUNNING", Rule(Mode.ADDEVENT, C.VTHREAD, 2)),
        ("ADDEVENT PROCESS PROCCREATE_NAME", Rule(Mode.ADDEVENT, C.PROCESS, 4)),
        ("ADDEVENT CONTROL TIME", Rule(Mode.ADDEVENT, C.CONTROL, 1)),
        ("ADDEVENT COMM _NTO_TRACE_COMM_SMSG", Rule(Mode.ADDEVENT, C.COMM, 0)),
        ("ADDEVENT COMM REPLY_MESSAGE", Rule(Mode.ADDEVENT, C.COMM, 10)),
        ("ADDEVENT COMM REPLY", Rule(Mode.ADDEVENT, C.COMM, 10)),
        ("ADDEVENT SYSTEM MMAP", Rule(Mode.ADDEVENT, C.SYSTEM, 6)),
        ("ADDEVENT KERCALLEXIT __KER_MSG_SENDV", Rule(Mode.ADDEVENT, C.KERCALLEXIT, 11)),
        ("ADDEVENT INT 0x1f", Rule(Mode.ADDEVENT, C.INT, 31)),
        ("ADDEVENT INT interrupt 0x1f", Rule(Mode.ADDEVENT, C.INT, 31)),
        ('ADDEVENT INTENTER "interrupt 0x1f"', Rule(Mode.ADDEVENT, C.INTENTER, 31)),
        ("SETCLASSPID COMM client[12]", Rule(Mode.SETCLASSPID, C.COMM, pid=12, process="client[12]")),
        ('SETCLASSPID COMM "pid 12"', Rule(Mode.SETCLASSPID, C.COMM, pid=12, process="pid 12")),
        ("SETCLASSTID COMM client[12] 2", Rule(Mode.SETCLASSTID, C.COMM, pid=12, tid=2, process="client[12]")),
        ("SETEVENTTID KERCALL 14 7 2", Rule(Mode.SETEVENTTID, C.KERCALL, 14, 7, 2)),
        ("SETCLASSPID COMM client", Rule(Mode.SETCLASSPID, C.COMM, pid=12, process="client")),
        ('SETCLASSPID COMM "/usr/bin/client"', Rule(Mode.SETCLASSPID, C.COMM, pid=12, process="/usr/bin/client")),
        ('WHERE pid == 7 and text ~ "a # b"', Rule(None, condition='pid == 7 and text ~ "a # b"')),
        ("ADDCLASSEVHANDLER COMM CALL my.py:only_big", Rule(Mode.ADDCLASSEVHANDLER, C.COMM, function="my.py:only_big")),
        (
            "ADDEVENTHANDLER THREAD THRUNNING WHERE tid == 1",
            Rule(Mode.ADDEVENTHANDLER, C.THREAD, 2, condition="tid == 1"),
        ),
    ],
)
def test_lines(line, rule):
    processes = process_names(made([]))
    assert parse_rules(line, QNX_6, processes) == (rule,)
    assert parse_rules(rules_text([rule], QNX_6), QNX_6, processes) == (rule,), "written and read again"


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("ADDCLAS THREAD", "no mode 'ADDCLAS'; did you mean ADDCLASS", 1),
        ("ADDCLASS THREED", "no class 'THREED'; did you mean THREAD", 10),
        ("ADDCLASS KER_CALL", "did you mean KERCALLENTER", 10),
        ("ADDEVENT THREAD RUNING", "no event 'RUNING'; did you mean THRUNNING", 17),
        ("ADDEVENT THREAD THRUNNING|THRADY", "no event 'THRADY'; did you mean THREADY", 27),
        ("ADDEVENT THREAD THRUNING|THREADY", "no event 'THRUNING'; did you mean THRUNNING", 17),
        ('SETCLASSPID KERCALL "client', "not closed with a quotation mark", 21),
        ("ADDEVENT KERCALL THRUNNING", "KERCALL has no event", 18),
        ("ADDEVENT INT clock", "events of INT are numbers", 14),
        ("ADDEVENT KERCALL", "the event is missing", 17),
        ("ADDCLASS THREAD now", "ADDCLASS ends before this", 17),
        ("ADDCLASS SEC", "6.x has no class SEC", 10),
        ("START", "sets no filter", 1),
        ("SETCLASSPID KERCALL clint", "no process 'clint'; did you mean client", 21),
        ("SETCLASSPID KERCALL client[13]", "no process 'client[13]'; did you mean client[12]", 21),
        ("ADDEVENT KERCALL interrupt 0x1f", "KERCALL has no event 'interrupt'", 18),
        ("SETEVENTFAST THREAD 99999999999999999999", "THREAD has no event '99999999999999999999'", 21),
        ("SETCLASSTID KERCALL 7 one", "'one' is none", 23),
        ("WHERE pidd == 7", "no field 'pidd'; did you mean pid", 7),
        ("  WHERE pid == 7 an", "and, or, or the end", 18),
        ("ADDEVENTHANDLER COMM SMSG pid == 7", "goes on with WHERE", 27),
        ("ADDCLASSEVHANDLER COMM CALL os.system", "as file.py:name", 29),
    ],
)
def test_faults_point_at_the_word(line, message, column):
    _, faults = check_rules("ADDALLCLASSES\n" + line, QNX_6, process_names(made([])))
    assert message in faults[0].message
    assert (faults[0].line, faults[0].column) == (2, column)


def test_every_fault_is_reported_and_good_lines_are_kept():
    rules, faults = check_rules("FOO\nADDCLASS COMM\nBAR 1\n\n# nothing\n", QNX_6)
    assert [fault.line for fault in faults] == [1, 3]
    assert rules == (Rule(Mode.ADDCLASS, C.COMM),)
    with pytest.raises(RuleError, match=r"line 1, column 1: .*; line 3"):
        parse_rules("FOO\n\nBAR", QNX_6)


def test_names_need_a_trace_and_have_to_be_unique():
    with pytest.raises(RuleError, match="need an open trace"):
        parse_rules("SETCLASSPID COMM client", QNX_6)
    with pytest.raises(RuleError, match=r"2 processes are called 'client'; give one of client\[4\], client\[5\]"):
        parse_rules("SETCLASSPID COMM client", QNX_6, {"client": (4, 5)})
    with pytest.raises(RuleError, match=r"8 processes .*; give one of client\[1\], .*, client\[6\], and 2 more"):
        parse_rules("SETCLASSPID COMM client", QNX_6, {"client": tuple(range(1, 9))})


def test_8_0_has_numbers_for_thread_events():
    assert parse_rules("ADDEVENT THREAD THPIPE", Release.QNX_8) == (Rule(Mode.ADDEVENT, C.THREAD, 22),)
    with pytest.raises(RuleError, match=r"8\.0 has no class VTHREAD"):
        parse_rules("ADDCLASS VTHREAD", Release.QNX_8)


# ---- building ----------------------------------------------------------------------------------------------------


def test_order_matters():
    trace = made([(10, 0, RUNNING, (7, 1)), (20, 0, MSG_SENDV, (1, 2))])

    def captured(text):
        return int(build(parse_rules(text, QNX_6), QNX_6).mask(trace)[-1])

    assert captured("ADDCLASS KERCALL\nDELEVENT KERCALL MSG_SENDV") == 0
    assert captured("DELEVENT KERCALL MSG_SENDV\nADDCLASS KERCALL") == 1


def test_rules_that_switch_nothing_start_with_everything_on():
    trace = random_trace(3)
    assert build((), QNX_6).mask(trace).all()
    only_7 = build(parse_rules("SETCLASSPID KERCALL 7", QNX_6), QNX_6).mask(trace)
    calls = trace.events.code >> 10 == 2
    assert only_7[~calls].all()
    assert (trace.threads.pid[trace.events.thread[calls]] == 7).tolist() == only_7[calls].tolist()


def test_where_lines_all_have_to_hold():
    trace = random_trace(3)
    both = build(parse_rules("WHERE cpu == 1\nWHERE pid == 7", QNX_6), QNX_6).mask(trace)
    pid = trace.threads.pid[trace.events.thread]
    assert both.tolist() == ((trace.events.cpu == 1) & (pid == 7)).tolist()


def test_what_the_kernel_would_refuse_is_explained():
    for line, reason in (
        ("ADDEVENT KERCALLINT 3", "follow KERCALLEXIT"),
        ("SETCLASSPID INT 7", "only KERCALL, THREAD"),
        ("ADDEVENT USER 1024", "EINVAL"),
        ("SETCLASSTID COMM 7 1\nCLREVENTPID COMM SMSG", "a tid is stored"),
        ("ADDEVENTHANDLER CONTROL BUFFER WHERE cpu == 0", "no handler can be attached"),
    ):
        with pytest.raises(RuleError, match=reason) as caught:
            build(parse_rules(line, QNX_6), QNX_6)
        assert caught.value.diagnostics[0].line == line.count("\n") + 1


def test_functions_are_refused_without_permission():
    with pytest.raises(UsageError, match="is code; allow it first"):
        build(parse_rules("ADDCLASSEVHANDLER COMM CALL evil.py:run", QNX_6), QNX_6)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("ADDCLASS THREAD\nADDCLASS KERCALL\nDELCLASS THREAD", 1, "line 3 takes this back: DELCLASS THREAD"),
        ("SETCLASSPID KERCALL 7\nSETCLASSPID KERCALL 9", 2, "replaces pid 7 of line 1: an event has one pid"),
        ("SETCLASSPID SYSTEM 7", 1, "never tested"),
        ("ADDCLASS THREAD", 1, "also makes THREAD wide"),
        ("ADDCLASS KERCALLINT", 1, "no effect"),
        ("ADDALLCLASSES\nSETEVENTWIDE THREAD THRUNNING", 2, "without effect"),
        ("ADDCLASS COMM\nADDCLASS COMM", 2, "changes nothing"),
        ("CLRCLASSTID COMM", 1, "clears the events without a tid"),
        ("SETCLASSTID KERCALL 7 1\nCLRCLASSPID KERCALL", 2, "clears only the pids of events without a tid"),
        (f"{ON_7}\n{ON_7}".replace("7", "8", 1), 2, "replaces the dynamic rule of line 1"),
        (f"DELALLCLASSES\nADDCLASS COMM\n{ON_7}\nDELEVENT COMM SMSG", 3, "this event of COMM is off at the end"),
        ("ADDCLASS COMM\nADDCLASSEVHANDLER THREAD CALL x.py:f", 2, "THREAD is off at the end, so this is never"),
        ("ADDCLASS COMM\nSETCLASSPID KERCALL 7", 2, "KERCALL is off at the end, so this is never called"),
        ("ADDCLASS COMM\nDELALLCLASSES", 2, "nothing is on at the end: no event passes"),
    ],
)
def test_contradictions_are_explained(text, line, message):
    notes = explain(parse_rules(text, QNX_6), QNX_6)
    assert any(note.line == line and message in note.message for note in notes), notes


def test_handlers_are_for_views_in_8_0():
    notes = explain(parse_rules(f"ADDALLCLASSES\n{ON_7}", Release.QNX_8), Release.QNX_8)
    assert [(note.line, note.message.partition(",")[0]) for note in notes] == [(2, "release 8.0 has no event handlers")]


def test_a_plain_rule_file_needs_no_remark():
    assert explain(parse_rules("DELALLCLASSES\nADDCLASS COMM\nSETCLASSPID COMM 7\nWHERE cpu == 1", QNX_6), QNX_6) == ()
    assert explain(parse_rules(f"ADDCLASS COMM\n{ON_7}\nDELEVENTHANDLER COMM SMSG", QNX_6), QNX_6) == ()
    assert explain(parse_rules(f"{ON_7}\nADDEVENTHANDLER COMM RMSG CALL x.py:f", QNX_6), QNX_6) == ()


# ---- files -------------------------------------------------------------------------------------------------------


def test_files_are_written_and_read(tmp_path):
    path = tmp_path / "mine.satrules"
    save_rules(path, "# mine\nADDCLASS COMM")
    assert parse_rules(read_rule_text(path), QNX_6) == (Rule(Mode.ADDCLASS, C.COMM),)
    assert path.read_text() == "# mine\nADDCLASS COMM\n"
    assert [p.name for p in tmp_path.iterdir()] == ["mine.satrules"]


def test_files_that_are_no_rules(tmp_path):
    large, binary = tmp_path / "large", tmp_path / "binary"
    large.write_bytes(b"#" * (FILE_LIMIT + 1))
    binary.write_bytes(b"ADDCLASS \xff\xfe")
    for path, message in (
        (large, "may have 1048576 bytes"),
        (binary, "byte 0x9: this is not text"),
        (tmp_path / "none", "there is no such file"),
        (tmp_path, "directory"),
    ):
        with pytest.raises(UsageError, match=message):
            read_rule_text(path)


def test_a_strangers_file_cannot_take_long():
    for text in (
        "X\n" * 500_000,
        "WHERE " + "(" * 20_000,
        "ADDEVENT THREAD " + "|".join(["THRUNNING"] * 1000),
        "ADDEVENT THREAD " + "A" * 11_000,
        "ADDCLASS COMM\n" * 5000,
    ):
        rules, faults = check_rules(text, QNX_6)
        assert faults or len(rules) <= 2000
        assert len(faults) <= 101


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    *(m.name for m in Mode),
                    "THREAD",
                    "KERCALL",
                    "COMM",
                    "INT",
                    "7",
                    "0x80000000",
                    "THRUNNING|THREADY",
                    "MSG_SENDV",
                    "WHERE",
                    "CALL",
                    "pid == 7",
                    '"',
                    "#",
                    "a.py:f",
                    "-1",
                    "99999999999999999999",
                    "client",
                ]
            ),
            max_size=6,
        ).map(" ".join),
        max_size=5,
    ).map("\n".join)
)
def test_any_lines_give_rules_or_faults(text):
    rules, faults = check_rules(text, QNX_6, {"client": (12,)})
    assert all(1 <= fault.line <= text.count("\n") + 1 for fault in faults)
    state = RuleSet(QNX_6)
    for rule in rules:
        if rule.mode is not None and not (rule.condition or rule.function):
            assert state.apply(rule.mode, *rule.arguments()) in (0, 22, 48)
    again = parse_rules(rules_text(rules, QNX_6), QNX_6, {"client": (12,)})
    assert again == rules


def test_mask_of_rule_text_on_rows_of_a_trace():
    trace = random_trace(4)
    built = build(parse_rules("DELALLCLASSES\nADDCLASS COMM\nADDCLASS THREAD\nDELEVENT THREAD THRUNNING", QNX_6), QNX_6)
    shown = {trace.spec(row).class_name for row in np.flatnonzero(built.mask(trace)).tolist()}
    assert shown == {"COMM", "THREAD"}
    assert RUNNING not in trace.events.code[built.mask(trace)]


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("ADDCLASS COMM # and so on", "ADDCLASS COMM "),
        ("WHERE text ~ /frame # [0-9]/ # lost", "WHERE text ~ /frame # [0-9]/ "),
        ("WHERE text ~ /don't # do/ # it", "WHERE text ~ /don't # do/ "),
        (r'WHERE name == "a\\" # ends with a backslash', r'WHERE name == "a\\" '),
        (r'WHERE name == "a\" # b" # c', r'WHERE name == "a\" # b" '),
        ("WHERE name == 'a # b' # c", "WHERE name == 'a # b' "),
        ("SETCLASSPID COMM bob's # of bob", "SETCLASSPID COMM bob's "),
        ("ADDEVENT USER 7#8", "ADDEVENT USER 7#8"),
    ],
)
def test_a_comment_begins_outside_of_texts_and_patterns(line, bare):
    assert without_comment(line) == bare


@pytest.mark.thorough
@pytest.mark.parametrize("part", ['"', "\\", '"\\', '"\\ ', "~/", "~ /\\", "' ", "='", "~ ", "(", "not "])
@pytest.mark.parametrize("lead", ["WHERE name == ", "SETCLASSPID COMM "])
def test_no_character_of_a_line_is_looked_at_again_and_again(lead, part):
    short, long = (cpu_s(check_rules, lead + (part * 12_000)[:length], QNX_6, {}) for length in (2_900, 11_600))
    assert long < 8 * short + 0.01, "a line of four times the length takes four times as long, not sixteen times"

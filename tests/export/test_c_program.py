"""C programs: they compile, and the calls in them set the state they were made from."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satview.events.modes import Mode
from satview.events.naming import names
from satview.events.spec import Release
from satview.events.wire import KER_64BIT, WireClass
from satview.export.c_program import c_program, in_c
from satview.export.tracelogger_command import from_tracelogger_args, tracelogger_command
from satview.filters.building import build
from satview.filters.expression import Expression
from satview.filters.external import ExternalClass, external_of, has_event_masks
from satview.filters.rules import RuleSet
from satview.filters.text import parse_rules
from tests.filters.test_rules import random_rules

QNX_6 = Release.QNX_6
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
ADDEVENTHANDLER THREAD THRUNNING CALL my.py:only */ big
WHERE duration > 2ms and name ~ "de\\vb??/*"
"""
# Our own declarations, enough for a compiler to check calls and names.
HEADERS = {
    "sys/trace.h": """
#include <stdint.h>
typedef struct event_data { uint32_t header; uint32_t *data_array; uint32_t el_num; void *area; uint32_t feature_mask;
    uint32_t feature[2]; } event_data_t;
extern int TraceEvent(int mode, ...);
""",
    "sys/neutrino.h": "#define _NTO_TCTL_IO 1\nextern int ThreadCtl(int command, void *data);\n",
    "sys/kercalls.h": "",
}


def constants(release):
    """Values of everything a program may name, from the catalogue: what the target's headers would give."""
    values = {f"_NTO_TRACE_{mode.name}": int(mode) for mode in Mode}
    values |= {f"_NTO_TRACE_{external.name}": int(external) for external in ExternalClass}
    for event_code, name in names(release).items():
        address = external_of(event_code, release)
        is_second = event_code & KER_64BIT and event_code >> 10 == WireClass.KER_CALL
        # Interrupts are addressed by vector; their events have the names of classes.
        if not name.symbol or address.external is None or is_second or event_code >> 10 == WireClass.INT:
            continue
        is_bit = has_event_masks(address.external, release) and address.external is not ExternalClass.CONTROL
        values[name.symbol] = 1 << address.number if is_bit else address.number
    return values


def compiled(tmp_path, source, release=QNX_6):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    for name, text in HEADERS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with (tmp_path / "sys/kercalls.h").open("a") as file:
        for symbol, value in constants(release).items():
            if symbol.startswith("__KER_"):
                file.write(f"#define {symbol} {value}\n")
    with (tmp_path / "sys/trace.h").open("a") as file:
        for symbol, value in constants(release).items():
            if symbol.startswith("_NTO_"):
                file.write(f"#define {symbol} {value}u\n")
    (tmp_path / "rules.c").write_text(source)
    command = [
        compiler,
        "-std=gnu11",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{tmp_path}",
        str(tmp_path / "rules.c"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def carried_out(source, release):
    """Carry out the TraceEvent() calls of a program; handlers are left out."""
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


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8])
def test_programs_compile_and_set_the_same_state(tmp_path, release):
    rules = random_rules(11, release)
    source = c_program(rules, "a name\nwith */ signs ??/")
    found = compiled(tmp_path, source, release)
    assert found.returncode == 0, found.stderr
    assert carried_out(source, release) == rules


def test_handlers_become_functions(tmp_path):
    built = build(parse_rules(RULES.replace("only */ big", "only"), QNX_6), QNX_6, _Named)
    source = c_program(built, "driver")
    found = compiled(tmp_path, source)
    assert found.returncode == 0, found.stderr
    assert "return (event->el_num > 0 && ((long long)word[0] > 2LL))" in source
    assert source.count("static int handler_") == 3
    assert "Fill in" in source, "what a handler cannot know is left to the author"
    assert "_NTO_TRACE_ADDCLASSEVHANDLER, _NTO_TRACE_THREAD, handler_1" in source
    static = RuleSet(QNX_6)
    static.set_like(built.state)
    assert carried_out(source, QNX_6) == static


def test_conditions_on_everything_join_those_of_a_class(tmp_path):
    text = """ADDALLCLASSES
ADDCLASSEVHANDLER KERCALLENTER WHERE word[0] == 1
ADDCLASSEVHANDLER COMM CALL my.py:big
WHERE pid == 7
WHERE tid < 3
"""
    source = c_program(build(parse_rules(text, QNX_6), QNX_6, _Named))
    found = compiled(tmp_path, source)
    assert found.returncode == 0, found.stderr
    number = {
        name: re.search(rf"ADDCLASSEVHANDLER, _NTO_TRACE_{name}, handler_(\d+)", source).group(1)
        for name in ("CONTROL", "KERCALLENTER", "KERCALLEXIT", "INTENTER", "INTEXIT", "THREAD", "SYSTEM", "COMM")
    }
    assert number["KERCALLEXIT"] == number["THREAD"] != number["KERCALLENTER"]
    assert "/* (word[0] == 1) and (pid == 7) and (tid < 3) */" in source
    assert "/* The handler of COMM also has to ask: (pid == 7) and (tid < 3) */" in source
    full = "ADDALLCLASSES\nWHERE pid == 7\n" + "".join(
        f"ADDEVENTHANDLER KERCALLENTER {i} WHERE tid == 1\n" for i in range(125)
    )
    assert "so none of COMM asks: (pid == 7)" in c_program(build(parse_rules(full, QNX_6), QNX_6))


class _Named:
    def __init__(self, place):
        self.place = place

    def __call__(self, facts):
        return 1


def test_conditions_too_long_for_one_handler_are_left_to_the_reader(tmp_path):
    many = "\n".join(f'WHERE name ~ "a{i}*" or name ~ "b{i}*"' for i in range(30))  # 60 patterns; a condition has 40
    rules = build(parse_rules(f"ADDALLCLASSES\n{many}", QNX_6), QNX_6)
    source = c_program(rules)
    assert "Too much for one condition, fill it in: the handler of COMM has to ask: (name ~ " in source
    assert "_NTO_TRACE_ADDCLASSEVHANDLER" not in source
    compiled(tmp_path, source)


def test_8_0_has_no_handlers(tmp_path):
    built = build(parse_rules("ADDCLASSEVHANDLER COMM WHERE pid == 7", Release.QNX_8), Release.QNX_8)
    source = c_program(built)
    assert "8.0 has no event handlers; left out: ADDCLASSEVHANDLER COMM WHERE pid == 7" in source
    assert compiled(tmp_path, source, Release.QNX_8).returncode == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8]))
def test_any_rule_set_comes_back_from_its_program(seed, release):
    rules = random_rules(seed, release)
    assert carried_out(c_program(rules), release) == rules


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_no_title_breaks_out_of_its_comment(title):
    head = c_program(RuleSet(), title).split("#include", 1)[0]
    assert head.count("*/") == 1
    assert head.rstrip().endswith("*/")
    assert head.isascii()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word[1] == 3", "event->el_num > 1 && ((long long)word[1] == 3LL)"),
        ("not cpu in (0, 1)", None),
        ("duration > 1ms", None),
        ("pid == 7 or duration > 1ms", None),
        ("word[0] / 2 == 1", None),
    ],
)
def test_conditions_in_c(text, expected):
    found = in_c(Expression(text, QNX_6).tree)
    if text.startswith("not"):
        assert found is not None
        assert found.startswith("!(")
    else:
        assert found == expected


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


def test_what_the_logger_does_not_tell():
    assert from_tracelogger_args("-d1 -n 3", QNX_6).rules == ()
    assert "a program chose the events" in from_tracelogger_args("-d1", QNX_6).notes[0]
    assert from_tracelogger_args("-d1 -E -F3", QNX_6).rules != ()
    assert "ring mode" in from_tracelogger_args("-r", QNX_6).notes[0]
    assert "-F 99 is not known" in from_tracelogger_args("-F 99", QNX_6).notes[0]


@settings(max_examples=100, deadline=None)
@given(st.text("-FwdraE 123nsS\x00xyz", max_size=40))
def test_any_arguments_can_be_read(arguments):
    build(from_tracelogger_args(arguments, Release.QNX_7).rules, Release.QNX_7)


def test_what_a_command_cannot_do_is_said_and_loses_nothing():
    built = build(parse_rules(RULES.replace("only */ big", "only"), QNX_6), QNX_6, _Named)
    command = tracelogger_command(built)
    assert command.text.startswith("tracelogger -F5 -w -f")
    assert not command.is_exact
    assert len(command.reasons) == 5
    security = tracelogger_command(build(parse_rules("ADDALLCLASSES\nADDCLASS SEC", Release.QNX_7), Release.QNX_7))
    assert (security.text.split()[1], security.is_exact) == ("-a", True)

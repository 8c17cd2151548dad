"""Handlers in Python: the guide's pair of them, their state, their permission, their faults."""

import re

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.events.spec import Release
from satview.events.wire import WireClass, code
from satview.filters.derived_columns import event_contexts
from satview.filters.external import EventContext, ExternalClass
from satview.filters.rules import handlers
from satview.filters.rules.building import build
from satview.filters.rules.handlers import HandlerEvent, Handlers
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.text import parse_rules
from tests.filters.made import MSG_SENDV, READY, RUNNING, SMSG, made

RING0 = code(WireClass.KER_CALL, 2)
PAIR = """\
turn = 0

def running(event):
    global turn
    if turn == 0:
        turn = 1
        return 1
    return 0

def ring0(event):
    global turn
    if turn == 1:
        turn = 0
        return 1
    return 0
"""
RULES = """\
DELALLCLASSES
ADDEVENT THREAD THRUNNING
ADDEVENT KERCALLENTER RING0
ADDEVENTHANDLER THREAD THRUNNING CALL two.py:running
ADDEVENTHANDLER KERCALLENTER RING0 CALL two.py:ring0
"""


@pytest.fixture
def pair(tmp_path):
    (tmp_path / "two.py").write_text(PAIR)
    return tmp_path


def busy():
    """RUNNING and RING0 in no order, other events between."""
    kinds = [RUNNING, RUNNING, RING0, RING0, READY, RUNNING, MSG_SENDV, RING0, RUNNING, RUNNING, RING0]
    return made([(10 * (i + 1), 0, kind, (7, 1)) for i, kind in enumerate(kinds)])


def test_the_guides_two_handlers_let_their_events_pass_in_turns(pair):
    trace = busy()
    handlers = Handlers(lambda path: path.name == "two.py", Release.QNX_6, pair)
    built = build(parse_rules(RULES, Release.QNX_6), Release.QNX_6, handlers)
    passed = trace.events.code[built.mask(trace)].tolist()
    assert passed == [RUNNING, RING0, RUNNING, RING0, RUNNING, RING0]
    assert trace.events.code[built.mask(trace)].tolist() == passed, "a second pass begins again"


def test_capture_and_view_give_the_same_events(pair):
    trace = busy()
    built = build(parse_rules(RULES, Release.QNX_6), Release.QNX_6, Handlers(lambda _: True, Release.QNX_6, pair))
    one_by_one = [built.state.admits(context) for context in event_contexts(trace, np.arange(len(trace.events)))]
    assert one_by_one == built.mask(trace).tolist()


def test_handlers_and_expressions_side_by_side(pair):
    trace = busy()
    rules = parse_rules(RULES + "ADDCLASSEVHANDLER THREAD WHERE time > 40us", Release.QNX_6)
    built = build(rules, Release.QNX_6, Handlers(lambda _: True, Release.QNX_6, pair))
    begin = int(trace.events.time_cycles[0])
    passed = [(int(t) - begin - 19, int(c)) for t, c in zip(trace.events.time_cycles, trace.events.code, strict=True)]
    # The class's rule is evaluated first: what it refuses never reaches the handler, whose turn stays.
    assert [passed[row] for row in np.flatnonzero(built.mask(trace))] == [
        (60, RUNNING),
        (80, RING0),
        (90, RUNNING),
        (110, RING0),
    ]


def test_nothing_runs_without_a_yes(tmp_path):
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).touch()\ndef f(event): return 1\n"
    )
    with pytest.raises(UsageError, match="was not allowed to run"):
        Handlers(lambda _: False, Release.QNX_6, tmp_path)("evil.py:f")
    assert not marker.exists()
    assert Handlers(lambda _: True, Release.QNX_6, tmp_path)("evil.py:f")(EventContext(RUNNING)) == 1
    assert marker.exists()


def test_a_handler_that_raises_is_switched_off_with_its_line(tmp_path):
    (tmp_path / "bad.py").write_text(
        "def f(event):\n    if event.cpu == 0:\n        return event.data[5]\n    return 0\n"
    )
    messages = []
    handlers = Handlers(lambda _: True, Release.QNX_6, tmp_path, messages.append)
    rule = handlers("bad.py:f")
    assert rule(EventContext(RUNNING, cpu=1)) == 0
    assert rule(EventContext(RUNNING)) == 1
    assert rule.problem == "bad.py:f was switched off: line 3: IndexError: tuple index out of range"
    assert messages == [rule.problem]
    assert rule(EventContext(RUNNING, cpu=1)) == 1, "off: everything passes"
    assert rule.calls == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(event:\n", "bad.py: line 1"),
        ("x = 1\ny = x / 0\n", "bad.py: line 2: ZeroDivisionError"),
        ("def g(event): return 1\n", "bad.py has no function f; it has g"),
        ("f = 3\n", "has no function f; it has none"),
        ("\x00", "bad.py: "),
    ],
)
def test_files_that_cannot_be_used(tmp_path, source, message):
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(UsageError, match=message):
        Handlers(lambda _: True, Release.QNX_6, tmp_path)("bad.py:f")
    with pytest.raises(UsageError, match="there is no such file"):
        Handlers(lambda _: True, Release.QNX_6, tmp_path)("none.py:f")


def test_what_a_handler_sees():
    event = HandlerEvent(EventContext(SMSG, 7, 2, (0x10001, 12), cpu=3, time_ns=5000), Release.QNX_6)
    assert (event.name, event.event_class, event.el_num, event.data) == ("SND_MESSAGE", "COMM", 2, (0x10001, 12))
    assert (event.feature_mask, event.pid, event.tid, event.header) == (3, 7, 2, SMSG | 3 << 24)
    assert HandlerEvent(EventContext(code(WireClass.INT, 1), 7, 2), Release.QNX_6).feature_mask == 0
    assert HandlerEvent(EventContext(code(WireClass.COMM, 5), 7, 2), Release.QNX_6).pid == 0
    assert HandlerEvent(EventContext(code(WireClass.SYSTEM, 5), 7, 2), Release.QNX_6).tid == 2


def test_a_handler_that_says_true_is_not_taken_for_two():
    rules = RuleSet()
    rules.add_class(ExternalClass.KERCALL)
    rules.add_class_ev_handler(ExternalClass.KERCALLENTER, lambda _: True)
    rules.add_class_ev_handler(ExternalClass.KERCALLEXIT, lambda _: 0)
    assert rules.admits(EventContext(RING0, 7, 1))
    assert not rules.admits(EventContext(RING0 + 128, 7, 1))


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ('re.search("RUN", event.name)', 1),
        ('re.search("READY", event.name)', 0),
        ("[1]", 1),
        ("0.5", 1),
        ("''", 0),
        ("None", 0),
    ],
)
def test_what_is_no_number_counts_as_true_or_false(tmp_path, body, passes):
    (tmp_path / "any.py").write_text(f"import re\ndef f(event):\n    return {body}\n")
    rule = Handlers(lambda _: True, Release.QNX_6, tmp_path)("any.py:f")
    assert rule(EventContext(RUNNING)) == passes
    assert rule.problem == ""


SILENT = "class Silent(Exception):\n    def __str__(self):\n        raise ValueError\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys\ndef f(event):\n    sys.exit(3)\n", "line 3: SystemExit: 3"),
        (SILENT + "def f(event):\n    raise Silent\n", "line 5: Silent"),
        ("def f(event):\n    while True:\n        pass\n", "line [23]: it ran for more than 0.3 seconds"),
        (
            "def f(event):\n    while True:\n        try:\n            x = 1\n        except Exception: pass\n",
            "it ran for more than",
        ),
    ],
)
def test_handlers_cannot_end_or_stop_the_program(tmp_path, monkeypatch, source, message):
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.3)
    (tmp_path / "bad.py").write_text(source)
    rule = Handlers(lambda _: True, Release.QNX_6, tmp_path)("bad.py:f")
    assert rule(EventContext(RUNNING)) == 1
    assert re.search(f"bad.py:f was switched off: .*{message}", rule.problem)
    assert rule(EventContext(RUNNING)) == 1
    assert rule.calls == 1


@pytest.mark.thorough
@pytest.mark.parametrize(("source", "message"), [("exit()", "SystemExit"), ("while True: pass", "it ran for more")])
def test_a_file_cannot_end_or_stop_the_program_while_it_is_read(tmp_path, monkeypatch, source, message):
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.3)
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(UsageError, match=f"bad.py: line 1: {message}"):
        Handlers(lambda _: True, Release.QNX_6, tmp_path)("bad.py:f")


@pytest.mark.thorough
def test_many_short_calls_are_not_one_long_one(tmp_path, monkeypatch):
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.3)
    (tmp_path / "slow.py").write_text("import time\ndef f(event):\n    time.sleep(0.05)\n    return 0\n")
    rule = Handlers(lambda _: True, Release.QNX_6, tmp_path)("slow.py:f")
    assert [rule(EventContext(RUNNING)) for _ in range(20)] == [0] * 20
    assert rule.problem == ""

"""The rule engine against the simulated kernel's own filter: what one lets pass in a view, the other logs.

Every workload runs twice with the same seed: once with everything on, once with rules set in the kernel. The rules over
the first trace have to give the events of the second.
"""

import itertools
import random

import numpy as np
import pytest

from satview.capture.emit import EventData
from satview.capture.workloads import registry
from satview.events.modes import RULE_MODES, Mode
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.external import ExternalClass, classes_of
from satview.filters.rules.building import build
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.text import parse_rules
from tests.capture.made import as_trace, finish, kernel, mode, run
from tests.helpers.extent import points, usually

C = ExternalClass
RULES = {
    "classes": [("ADDALLCLASSES",), ("DELCLASS", C.THREAD), ("DELCLASS", C.KERCALLEXIT)],
    "events": [
        ("DELALLCLASSES",),
        ("ADDEVENT", C.KERCALL, 11),
        ("ADDEVENT", C.KERCALLEXIT, 14),
        ("ADDEVENT", C.COMM, 10),
        ("ADDEVENT", C.COMM, 0),
        ("ADDCLASS", C.PROCESS),
        ("ADDCLASS", C.INT),
        ("ADDCLASS", C.CONTROL),
    ],
    "pids": [
        ("ADDALLCLASSES",),
        ("SETCLASSPID", C.KERCALL, "pid"),
        ("SETCLASSPID", C.COMM, "pid"),
        ("SETCLASSPID", C.SYSTEM, "pid"),
    ],
    "tids": [("ADDALLCLASSES",), ("SETCLASSTID", C.KERCALL, "pid", 1), ("CLREVENTTID", C.KERCALLENTER, 11)],
}


def logged(name, release, modes, folder, ms=30):
    """Return the trace of a workload under some modes."""
    workload = registry.find(name)
    # One CPU: with two, a microsecond more or less of logging decides which comes first.
    made, sink = kernel(release, 1, 3, 64, tuple(modes))
    made.trace_event(mode("START"))
    workload.setup(made)
    run(made, ms)
    return as_trace(made, finish(made, sink), folder)


def plain(trace, rows):
    """Events by class as code and words: logging takes the kernel time, so stamps, and with them which instruction an
    interrupt meets, depend on the rules. Events of SEC are left out: programs insert them here, for which user events
    have to be on, while a view, which cannot know who logged them, looks at the switch of SEC."""
    found = {}
    for row in rows:
        code, words = int(trace.events.code[row]), tuple(trace.payloads.words(row).tolist())
        if code >> 10 not in (WireClass.CONTROL, WireClass["SEC"]):
            found.setdefault(code >> 10, []).append((code, words[:1] if code >> 10 == WireClass.INT else words))
    return found


@points(name=[name for name, _ in registry.names()], selected=list(RULES))
def test_view_and_capture_agree_on_every_workload(name, selected, tmp_path):
    release = random.Random(name + selected).choice([Release.QNX_6, Release.QNX_7])
    everything = logged(name, release, [("ADDALLCLASSES",)], tmp_path)
    pids = [int(pid) for pid in everything.processes.pid if pid > 1]
    modes = [tuple(pids[0] if part == "pid" else part for part in line) for line in RULES[selected]]
    rules = RuleSet(release)
    for line in modes:
        assert rules.apply(*line) == 0
    # Fast or wide changes the words, not what passes.
    rules.set_all_classes_fast()
    passed = plain(everything, np.flatnonzero(rules.mask(everything)))
    small = logged(name, release, [*modes, ("SETALLCLASSESFAST",)], tmp_path)
    assert plain(small, range(len(small.events))) == passed
    assert passed


def test_the_guides_two_handlers_give_the_same_events_in_capture_and_view(tmp_path):
    (tmp_path / "two.py").write_text(
        "turn = 0\n\ndef running(event):\n    global turn\n    was, turn = turn, 1\n    return was == 0\n\n"
        "def receive(event):\n    global turn\n    was, turn = turn, 0\n    return was == 1\n"
    )
    turn = [0]

    def handler(waits_for):
        def judge(_):
            was, turn[0] = turn[0], 1 - waits_for
            return int(was == waits_for)

        return judge

    static = [
        ("DELALLCLASSES",),
        ("ADDCLASS", C.CONTROL),
        ("ADDEVENT", C.THREAD, 1 << 1),
        ("ADDEVENT", C.KERCALLENTER, 14),
    ]
    attached = [
        ("ADDEVENTHANDLER", C.THREAD, 1 << 1, handler(0), EventData()),
        ("ADDEVENTHANDLER", C.KERCALLENTER, 14, handler(1), EventData()),
    ]
    (tmp_path / "captured").mkdir()
    captured = logged("client-server", Release.QNX_6, [*static, *attached], tmp_path / "captured")
    everything = logged("client-server", Release.QNX_6, [("ADDALLCLASSES",)], tmp_path)
    text = (
        "DELALLCLASSES\nADDEVENT THREAD THRUNNING\nADDEVENT KERCALLENTER MSG_RECEIVEV\n"
        "ADDEVENTHANDLER THREAD THRUNNING CALL two.py:running\n"
        "ADDEVENTHANDLER KERCALLENTER MSG_RECEIVEV CALL two.py:receive\n"
    )
    handlers = Handlers(lambda _: True, Release.QNX_6, tmp_path)
    passes = build(parse_rules(text, Release.QNX_6), Release.QNX_6, handlers).mask(everything)
    assert plain(everything, np.flatnonzero(passes)) == plain(captured, range(len(captured.events)))
    passed = everything.events.code[passes].tolist()
    assert len(passed) > 10
    assert all(one != other for one, other in itertools.pairwise(passed)), "in turns"


@pytest.fixture(scope="module")
def everything():
    """Traces of workloads with everything on, by name and release, made when needed."""
    return {}


def random_modes(seed, release, pid):
    """Modes with their arguments, many of them wrong."""
    rng = random.Random(seed)
    found = [("ADDALLCLASSES",)] if rng.random() < 0.6 else []
    usual = [Mode.ADDCLASS, Mode.DELCLASS, Mode.ADDEVENT, Mode.DELEVENT, Mode.SETCLASSPID, Mode.SETEVENTPID]
    for _ in range(rng.randrange(1, 14)):
        kind = rng.choice(usual if rng.random() < 0.7 else [m for m in RULE_MODES if "HANDLER" not in m.name])
        selections = {
            "class": lambda: rng.choice((*classes_of(release), rng.randrange(25))),
            "event": lambda: rng.choice((rng.randrange(33), 11, 14, 15, 1 << rng.randrange(32), rng.randrange(1100))),
            "pid": lambda: rng.choice((0, 1, pid, pid)),
            "tid": lambda: rng.choice((0, 1, 2)),
        }
        found.append((kind.name, *(selections[part]() for part in kind.rule_arguments)))
    return found


@pytest.mark.parametrize("seed", range(usually(12, complete=36, thorough=36)))  # of four releases, three workloads
def test_random_rules_pass_in_a_view_what_the_kernel_logs(seed, tmp_path, everything):
    release = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)[seed % 4]
    name = ("client-server", "automotive", "inversion")[seed % 3]
    if (name, release) not in everything:
        (tmp_path / "all").mkdir()  # a folder of its own: the trace stays mapped
        everything[name, release] = logged(name, release, [("ADDALLCLASSES",)], tmp_path / "all", 12)
    whole = everything[name, release]
    pid = next(int(pid) for pid in whole.processes.pid if pid > 1)
    rules, accepted = RuleSet(release), []
    target = kernel(release, 1, 3, 64, ())[0]
    for line in random_modes(seed, release, pid):
        answer = rules.apply(*line)
        try:
            target.trace_event(mode(line[0]), *line[1:])
        except OSError as error:
            assert answer == error.errno, line
        else:
            assert answer == 0, line
            accepted.append(line)
    rules.set_all_classes_fast()
    small = logged(name, release, [("DELALLCLASSES",), *accepted, ("SETALLCLASSESFAST",)], tmp_path, 12)
    assert plain(small, range(len(small.events))) == plain(whole, np.flatnonzero(rules.mask(whole)))

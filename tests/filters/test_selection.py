"""Rules made from what is selected in a view: they let pass what the view shows."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events.catalogue import catalogue
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT, KER_64BIT, PROC_CREATE_NAME
from satview.filters import derived_columns as event_rows
from satview.filters.derived_columns import EventMask, process_names
from satview.filters.expressions.expression import Expression
from satview.filters.external import ExternalClass
from satview.filters.passes import Effect, Pass, PassStack, rules_of_selection, switch_of
from satview.filters.rules.building import build
from satview.filters.rules.fastwide import inserted_by_code
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.text import parse_rules
from tests.filters.made import (
    MSG_SENDV,
    MSG_SENDV_EXIT,
    READY,
    RELEASES,
    RUNNING,
    SMSG,
    START_CYCLES,
    Maker,
    made,
    make_trace,
    random_trace,
)

C = ExternalClass
BUSY = (
    (10, 0, RUNNING, (7, 1)),
    (20, 0, MSG_SENDV, (1, 2)),
    (30, 0, SMSG, (0x10001, 1)),
    (40, 0, MSG_SENDV_EXIT, (0, 0)),
    (50, 0, RUNNING, (12, 1)),
    (60, 0, MSG_SENDV, (3, 2)),
    (70, 0, READY, (7, 2)),
)


def everything(trace):
    return np.ones(CODE_COUNT, np.bool_), np.ones(len(trace.threads), np.bool_)


def only(trace, *codes):
    selected = np.zeros(CODE_COUNT, np.bool_)
    selected[list(codes)] = True
    return selected, np.ones(len(trace.threads), np.bool_)


def passing(text, trace):
    rules = parse_rules(text, trace.release, process_names(trace))
    return build(rules, trace.release).mask(trace)


def lines(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_all_checked_is_everything():
    trace = made(BUSY)
    expected = ["DELALLCLASSES", "ADDALLCLASSES", "SETALLCLASSESFAST"]
    assert lines(rules_of_selection(trace, *everything(trace))) == expected


def test_one_event_less_leaves_the_rest_on():
    trace = made(BUSY)
    codes, threads = everything(trace)
    codes[RUNNING] = False
    found = lines(rules_of_selection(trace, codes, threads))
    assert "DELEVENT THREAD THRUNNING" in found
    assert {"ADDCLASS THREAD", "ADDCLASS KERCALL", "ADDCLASS COMM", "ADDCLASS USER"} <= set(found)


def test_five_events_of_one_process_with_its_name():
    trace = made(BUSY)
    codes, threads = only(trace, MSG_SENDV, MSG_SENDV_EXIT, SMSG)
    threads[:] = trace.threads.pid == 7
    assert lines(rules_of_selection(trace, codes, threads)) == [
        "DELALLCLASSES",
        "ADDEVENT KERCALL MSG_SENDV",
        "ADDEVENT COMM SND_MESSAGE",
        "SETALLCLASSESFAST",
        *(f"SETCLASSPID {c} devb-eide" for c in ("KERCALL", "THREAD", "VTHREAD", "COMM")),
    ]


def test_one_thread_and_the_names_of_8_0():
    trace = made(BUSY, Release.QNX_8)
    codes, threads = everything(trace)
    threads[:] = (trace.threads.pid == 12) & (trace.threads.tid == 1)
    found = lines(rules_of_selection(trace, codes, threads))
    assert [line for line in found if "TID" in line] == [
        f"SETCLASSTID {c} client 1" for c in ("KERCALL", "THREAD", "COMM")
    ]


def test_wide_traces_give_wide_rules_and_forms_of_the_view_count():
    trace = made([*BUSY, (80, 0, RUNNING, (7, 1, 10, 2))])
    codes, threads = everything(trace)
    assert "SETALLCLASSESWIDE" in rules_of_selection(trace, codes, threads)
    text = rules_of_selection(trace, codes, threads, is_wide={MSG_SENDV: False})
    assert "SETEVENTFAST KERCALLENTER MSG_SENDV" in text
    assert not build(parse_rules(text, trace.release), trace.release).state.is_wide(MSG_SENDV)


def test_inserted_events_become_those_of_user():
    """FUNC_ENTER is event 10 of SYSTEM, and 10 of USER is the switch that the kernel looks at for it."""
    [function] = [code for code in catalogue(Release.QNX_7).find("FUNC_ENTER") if not code & KER_64BIT]
    trace = made([(10, 0, function, (0x1000, 0x2000)), (20, 0, MSG_SENDV, (1, 2))], Release.QNX_7)
    text = rules_of_selection(trace, *only(trace, function))

    assert text.splitlines()[0] == "# Programs insert FUNC_ENTER: for these a kernel looks at their numbers in USER."
    assert "ADDEVENT USER 10" in text.splitlines()
    assert "SYSTEM" not in text
    assert trace.events.code[passing(text, trace)].tolist() == [function]


def test_conditions_become_where_lines():
    trace = made(BUSY)
    stack = PassStack(
        (
            Pass("A", expression="arg.coid > 2"),
            Pass("B", expression="cpu == 1", is_inverted=True),
            Pass("C", expression="pid == 7", effect=Effect.DIM),
            Pass("D", expression="pid == 9", is_on=False),
        )
    )
    found = lines(rules_of_selection(trace, *everything(trace), stack))
    assert found[-2:] == ["WHERE (arg.coid > 2)", "WHERE not (cpu == 1)"]
    combined = stack.combined('A or not ("C" and B)')
    assert lines(rules_of_selection(trace, *everything(trace), combined))[-1] == (
        "WHERE (arg.coid > 2) or not ((pid == 7) and not (cpu == 1))"
    )
    off = combined.changed("B", Pass("B", expression="cpu == 1", is_on=False))
    assert lines(rules_of_selection(trace, *everything(trace), off))[-1] == "WHERE (arg.coid > 2) or not ((pid == 7))"


def test_texts_and_patterns_of_conditions_stay_as_they_are():
    trace = made(BUSY)
    stack = PassStack((Pass("A", expression='name ==  "a  b"\n  or text ~ /c  # d/'),))
    text = rules_of_selection(trace, *everything(trace), stack)
    assert lines(text)[-1] == 'WHERE (name == "a  b" or text ~ /c  # d/)'
    assert parse_rules(text, trace.release)[-1].condition == '(name == "a  b" or text ~ /c  # d/)'
    with pytest.raises(UsageError, match="line break"):
        rules_of_selection(trace, *everything(trace), PassStack((Pass("A", expression='name == "a\nb"'),)))


def test_a_name_that_does_not_fit_into_a_line_stays_a_number():
    maker = Maker()
    maker.text_event(PROC_CREATE_NAME, 0, START_CYCLES, (1, 20), b"evil\nADDALLCLASSES")
    maker.event(RUNNING, 0, START_CYCLES + 10, (20, 1))
    maker.event(RUNNING, 0, START_CYCLES + 20, (7, 1))
    trace = make_trace(maker)
    assert "evil\nADDALLCLASSES" in trace.processes.names
    codes, threads = everything(trace)
    threads[trace.threads.pid != 20] = False
    found = lines(rules_of_selection(trace, codes, threads))
    assert "SETCLASSPID KERCALL 20" in found
    assert found.count("ADDALLCLASSES") == 1


def test_rules_stay_as_they_were_written_or_are_named():
    trace = made(BUSY)
    stack = PassStack((Pass("A", rules="ADDCLASS THREAD # all\n"), Pass("B", expression="cpu == 0")))
    codes, threads = everything(trace)
    assert rules_of_selection(trace, codes, threads, stack) == "ADDCLASS THREAD # all\nWHERE (cpu == 0)\n"
    codes[RUNNING] = False
    assert rules_of_selection(trace, codes, threads, stack).startswith("# A filter made of rules cannot be combined")
    assert rules_of_selection(trace, codes, threads, stack.combined("A or B")).startswith("# A filter made of rules")


@pytest.mark.thorough
def test_too_many_threads_to_list():
    processes = {pid: f"p{pid}" for pid in range(1, 6001)}
    maker = Maker("little")
    maker.start(processes, [(pid, 1) for pid in processes])
    trace = make_trace(maker)
    codes, threads = everything(trace)
    threads[trace.threads.pid % 2 == 0] = False
    with pytest.raises(UsageError, match="too many threads"):
        rules_of_selection(trace, codes, threads)


@pytest.mark.thorough
@given(st.integers(0, 10_000), st.sampled_from(list(RELEASES)), st.integers(0, 3))
def test_rules_let_pass_what_the_view_shows(seed, release, how):
    """Random check boxes, every switch as a whole: enter of both widths, all vectors, ERROR with REPLY."""
    rng = random.Random(seed)
    trace = random_trace(seed % 40, 200, release)
    codes, threads = everything(trace)
    switchable = np.zeros(CODE_COUNT, np.bool_)
    selected: dict[tuple[C, int], bool] = {}
    state = RuleSet(release)
    for code in np.flatnonzero(trace.code_counts).tolist():
        address = switch_of(state, code, inserted_by_code(trace))
        if address.external is None:
            continue
        external = C.KERCALLEXIT if address.external is C.KERCALLINT else address.external
        if external not in state.known:  # 8.0 has INT alone
            external = C.INT
        number = 10 if external is C.COMM and address.number == 11 else address.number
        switchable[code] = address.vector_word >= 0 or state.apply(Mode.ADDEVENT, external, number) == 0
        codes[code] = selected.setdefault((external, number), rng.random() < (0.2, 0.5, 0.8, 1.0)[how])
    if rng.random() < 0.6:
        threads[:] = rng.choice((True, False))
        threads[rng.sample(range(len(threads)), rng.randrange(2, 5))] ^= True
    text = rules_of_selection(trace, codes, threads)
    if "PID" in text or "TID" in text:  # a kernel tests pids in some classes only
        return
    shown = event_rows.event_mask(trace.events, EventMask(codes, threads))
    rows = switchable[trace.events.code]
    assert not text.count("WHERE") or Expression(text.split("WHERE ")[1].strip(), release)
    np.testing.assert_array_equal(passing(text, trace)[rows], shown[rows])

"""Several named filters over one trace: counts, effects, combinations, undo."""

from dataclasses import replace

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.events.wire import CODE_COUNT
from satview.filters.diagnostics import ExpressionError, RuleError
from satview.filters.expressions.expression import Expression
from satview.filters.passes import Effect, Pass, PassEvaluator, PassStack, parse_combination, rules_of_selection
from tests.filters.made import random_trace

CALLS = Pass("calls", expression="class in (KER_CALL, KER_EXIT, INT_CALL)", effect=Effect.MARK)
DISK = Pass("disk", expression='name ~ "devb-*"', effect=Effect.DIM)
FIRST = Pass("first cpu", rules="WHERE cpu == 0", effect=Effect.HIDE)


@pytest.fixture(scope="module")
def trace():
    return random_trace(8)


def test_effects(trace):
    result = PassEvaluator(trace).result(PassStack((CALLS, DISK, FIRST)))
    cpu0 = trace.events.cpu == 0
    disk = trace.threads.pid[trace.events.thread] == 7
    calls = trace.events.code >> 10 == 2
    assert result.hidden.tolist() == (~cpu0).tolist()
    assert result.dimmed.tolist() == (~disk & cpu0).tolist()
    assert result.marked.tolist() == (calls & cpu0).tolist()
    assert result.counts == {"calls": calls.sum(), "disk": disk.sum(), "first cpu": cpu0.sum()}
    assert result.hits.tolist() == (cpu0 & disk & calls).tolist()


def test_a_pass_that_is_off_counts_and_does_nothing(trace):
    stack = PassStack((CALLS, Pass("disk", expression='name ~ "devb-*"', is_on=False)))
    result = PassEvaluator(trace).result(stack)
    assert not result.hidden.any()
    assert result.counts["disk"] > 0
    assert result.hits.tolist() == result.masks["calls"].tolist()


def test_inverted_and_both_rules_and_expression(trace):
    evaluator = PassEvaluator(trace)
    both = Pass("both", rules="DELALLCLASSES\nADDCLASS COMM", expression="cpu == 1")
    plain = evaluator.result(PassStack((both,)))
    inverse = evaluator.result(PassStack((Pass("both", both.rules, both.expression, is_inverted=True),)))
    assert plain.counts["both"] == int(((trace.events.code >> 10 == 7) & (trace.events.cpu == 1)).sum())
    assert plain.counts["both"] + inverse.counts["both"] == len(trace.events)
    assert (plain.hidden ^ inverse.hidden).all()


def test_what_is_unknown_is_in_neither_of_a_filter_and_its_inverse(trace):
    """The same as what the inverted filter becomes as text."""
    item = Pass("coid", expression="arg.coid > 2")
    evaluator = PassEvaluator(trace)
    plain, inverse = (evaluator.result(PassStack((replace(item, is_inverted=way),))).hits for way in (False, True))
    known = Expression("arg.coid is known", trace.release).mask(trace)
    assert plain.any()
    assert inverse.any()
    assert (plain ^ inverse).tolist() == known.tolist()
    assert not known.all()
    stack = PassStack((replace(item, is_inverted=True),))
    rules = rules_of_selection(trace, np.ones(CODE_COUNT, np.bool_), np.ones(len(trace.threads), np.bool_), stack)
    assert "WHERE not (arg.coid > 2)" in rules
    hits = evaluator.mask(Pass("again", rules=rules))
    assert hits.tolist() == inverse.tolist()
    combined = evaluator.result(PassStack((item,)).combined("not (coid and coid)")).hits
    assert combined.tolist() == inverse.tolist()


def test_combinations(trace):
    stack = PassStack((CALLS, DISK, FIRST)).combined('calls and not ("first cpu" or disk)')
    result = PassEvaluator(trace).result(stack)
    masks = result.masks
    has_name = np.array([bool(name) for name in trace.processes.names])[trace.threads.process[trace.events.thread]]
    not_disk = has_name & ~masks["disk"]  # where no process is known it is unknown whether it is the disk's
    assert (masks["calls"] & ~masks["disk"] & ~has_name).any()
    assert result.hits.tolist() == (masks["calls"] & ~masks["first cpu"] & not_disk).tolist()
    for text in ("calls and nothing", "calls or", "(calls", "calls disk", "(" * 60 + "calls" + ")" * 60, "7"):
        with pytest.raises(ExpressionError):
            parse_combination(text, ["calls", "disk"])
    with pytest.raises(ExpressionError, match="did you mean calls"):
        stack.combined("cals")


@pytest.mark.parametrize(
    ("combination", "off", "same_as"),
    [
        ("calls or disk", {"disk"}, "calls"),
        ("calls and not disk", {"disk"}, "calls"),
        ('not (calls or disk) and "first cpu"', {"calls"}, 'not disk and "first cpu"'),
        ("calls or not (disk and calls)", {"disk"}, "calls or not calls"),
        ("not calls", {"calls"}, ""),
    ],
)
def test_a_pass_that_is_off_is_left_out_of_a_combination(trace, combination, off, same_as):
    passes = tuple(replace(item, is_on=item.name not in off) for item in (CALLS, DISK, FIRST))
    result = PassEvaluator(trace).result(PassStack(passes).combined(combination))
    if not same_as:
        assert result.hits.all()
    else:
        assert (result.hits == PassEvaluator(trace).result(PassStack(passes).combined(same_as)).hits).all()
        assert not result.hits.all() or "or not" in same_as


def test_changing_a_stack_makes_a_new_one():
    stack = PassStack((CALLS, DISK)).combined("calls or disk")
    assert stack.removed("disk") == PassStack((CALLS,)), "a combination that names what is gone goes too"
    assert stack.moved("disk", 0).passes == (DISK, CALLS)
    assert stack.changed("disk", FIRST).passes == (CALLS, FIRST)
    assert stack.passes == (CALLS, DISK)
    with pytest.raises(UsageError, match="a name of its own"):
        stack.added(CALLS)


def test_faulty_passes_raise_their_fault(trace):
    with pytest.raises(RuleError, match="no class"):
        PassEvaluator(trace).mask(Pass("bad", rules="ADDCLASS COMN"))


def test_answers_are_kept_and_cannot_be_spoilt(trace):
    evaluator = PassEvaluator(trace)
    first = evaluator.mask(CALLS)
    assert evaluator.mask(Pass("other name", expression=CALLS.expression)) is first
    with pytest.raises(ValueError, match="read-only"):
        first[:] = np.True_

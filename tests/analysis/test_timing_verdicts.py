"""Verdicts on deadlines, periods and chains of a timing file, in traces that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from satview.analysis.activities import Timing
from satview.analysis.verdicts.evidence import Verdict
from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import default_thresholds, refuse_unsearched
from satview.answers.late import late
from satview.answers.verdicts import find
from satview.base.errors import UsageError
from satview.linkage.links import Certainty
from satview.store.trace import Trace
from tests.helpers.scene import chained, rounds_of_a_loop

KINDS = ("deadline", "period", "chain")
PATH = {
    "camera": Timing("class == USER and number == 1", "class == USER and number == 2"),
    "control": Timing("class == USER and number == 3", "class == USER and number == 4"),
}


def checked(trace: Trace, **timing: Timing) -> tuple[Verdict, ...]:
    """Return the verdicts on what a timing file says of a trace."""
    return find_verdicts(trace, replace(default_thresholds(), timing=timing), KINDS)


def test_a_missed_deadline_names_the_worst_and_whose_fault_it_is(tmp_path: Path) -> None:
    """Rounds 10, 20 and 30 take 5,100: 4,100 of that another thread runs."""
    trace = rounds_of_a_loop().open(tmp_path)
    [verdict] = checked(trace, control=Timing(deadline="5us"))
    assert verdict.kind == "deadline"
    assert verdict.says == (
        "control 1 took 5.100 µs from 0.000 110 000 s, 100 ns longer than its deadline of 5.000 µs; most of it "
        "4.100 µs ready while hog 1 ran; it happens 2 more times."
    )
    start = trace.window.start
    assert [case.start_cycles - start for case in verdict.occurrences] == [110_000, 210_000, 310_000]
    assert "higher priority" in verdict.remedy
    later = replace(verdict, start_cycles=start + 310_000, end_cycles=start + 315_100)
    for moved, case in ((verdict, verdict.occurrences[0]), (later, verdict.occurrences[2])):
        assert moved.location(trace).event == case.row + 1, "the event at the time that the location names"
    assert (verdict.certainty, verdict.proof) == (Certainty.EXACT, "")


def test_a_deadline_that_is_met_and_one_that_nobody_has_said_are_no_verdict(tmp_path: Path) -> None:
    trace = rounds_of_a_loop().open(tmp_path)
    assert not checked(trace, control=Timing(deadline="5100ns"))
    assert not {verdict.kind for verdict in find_verdicts(trace)} & {*KINDS}
    assert not {*find(trace).undecided["kind"]} & {*KINDS}


def test_an_unfinished_round_is_late_by_at_least_what_is_seen(tmp_path: Path) -> None:
    """The last round has taken 801 when the trace ends; all others take 1,100 or more."""
    trace = rounds_of_a_loop(is_cut=True, slow=()).open(tmp_path)
    [verdict] = checked(trace, control=Timing(deadline="800ns"))
    assert len(verdict.occurrences) == 40
    early = "class == THREAD and event == THREADY and pid == 5"
    [verdict] = checked(trace, cut=Timing(f"{early} and time > 395us", "event == THNANOSLEEP", deadline="800ns"))
    assert verdict.says.startswith("cut took at least 801 ns from 0.000 400 000 s, 1 ns longer than its deadline")


def test_a_period_of_a_file_is_the_deadline_too(tmp_path: Path) -> None:
    """Rounds begin every 10,000, which is 5,000 later than the file says, and three take longer than that."""
    late, off = checked(rounds_of_a_loop().open(tmp_path), control=Timing(period="5us"))
    assert {late.kind, off.kind} == {"deadline", "period"}
    off = off if off.kind == "period" else late
    assert len(off.occurrences) == 40, "39 rounds, and the 6,001 up to the end of the trace"
    assert off.says == (
        "control 1 is triggered again after 10.00 µs from 0.000 010 000 s, 5.000 µs later than its period of 5.000 µs "
        "says; of that 5.000 µs sleeping; it happens 39 more times."
    )
    assert not checked(rounds_of_a_loop(slow=()).open(tmp_path), control=Timing(period="9500ns"))


def test_a_chain_that_reacts_late_names_where_its_time_goes(tmp_path: Path) -> None:
    """The images of 2,000 and 4,000 wait until 3,600 and 5,600 for control, which needs 300."""
    trace = chained(tmp_path, 6, (1_600, 3_600, 5_600))
    [verdict] = checked(trace, **PATH, path=Timing(chain="camera > control", reaction="1us", age="1us"))
    assert (verdict.kind, verdict.objects) == ("chain", ("path",))
    assert verdict.says == (
        "The reaction of the chain path is 1.900 µs from 0.000 002 000 s, 900 ns more than its bound of 1.000 µs; "
        "most of it 1.200 µs after camera, until control is triggered; it happens once more."
    )
    assert (verdict.certainty, bool(verdict.proof)) == (Certainty.INFERRED, True)


def test_input_that_is_too_old_is_a_verdict_too(tmp_path: Path) -> None:
    """Camera is at work from 1,000 k to 1,000 k + 400, so control has images of 900 ago when it is done."""
    trace = chained(tmp_path, 6, (1_600, 3_600, 5_600))
    [verdict] = checked(trace, **PATH, path=Timing(chain="camera > control", age="800ns"))
    assert verdict.says.startswith(
        "The age of the input of the chain path is 900 ns from 0.000 001 000 s, 100 ns more than its bound"
    )
    assert "most of it 400 ns in camera (400 ns own work)" in verdict.says
    assert len(verdict.occurrences) == 3


def test_a_chain_that_nothing_goes_on_with_is_late_when_the_trace_ends(tmp_path: Path) -> None:
    [verdict] = checked(chained(tmp_path, 6, ()), **PATH, path=Timing(chain="camera > control", reaction="2us"))
    assert "is at least 5.501 µs from 0.000 001 000 s" in verdict.says
    assert "after camera, with which nothing goes on" in verdict.says
    assert len(verdict.occurrences) == 4, "the last image is 1,501 old by then"


def test_work_of_a_class_that_the_trace_does_not_have_is_undecided(tmp_path: Path) -> None:
    """A trace of states has no messages: none was late, or they were not captured."""
    trace, ready = rounds_of_a_loop().open(tmp_path), "event == THREADY and pid == 5"
    messages = Timing("event == SND_MESSAGE", "event == REPLY_MESSAGE", period="1ms", deadline="1us")
    timing = {"serve": messages, "wait": Timing(ready, "event == THRUNNING and pid == 5"),
              "path": Timing(chain="wait > serve", reaction="1us")}  # fmt: skip
    answer = find(trace, replace(default_thresholds(), timing=timing), KINDS)
    assert not answer.verdicts
    reason = "serve: the trace has no events of the class COMM; capture them"
    assert {row["kind"]: row["reason"] for row in answer.undecided.records()} == dict.fromkeys(KINDS, reason)
    assert "DELCLASS COMM" not in answer.capture.rules
    table = late(trace, timing).activities()
    assert reason in table.missing
    assert next(row for row in table.records() if row["activity"] == "serve")["count"] == 0


def test_an_end_of_a_class_that_the_trace_does_not_have_leaves_only_the_period_decided(tmp_path: Path) -> None:
    answer_late = Timing("event == THREADY and pid == 5", "event == REPLY_MESSAGE", period="10us", deadline="1us")
    answer = find(
        rounds_of_a_loop().open(tmp_path), replace(default_thresholds(), timing={"answer": answer_late}), KINDS
    )
    assert not answer.verdicts, "that the answer is missing does not make it late"
    assert [row["kind"] for row in answer.undecided.records()] == ["deadline"]


def test_kinds_that_need_a_file_of_timing_are_refused_without(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="chain needs a timing file that says a reaction or age"):
        refuse_unsearched(["chain"], default_thresholds())
    with pytest.raises(UsageError, match="names no activity; there are control 1"):
        checked(rounds_of_a_loop().open(tmp_path), planner=Timing(deadline="5us"))


def test_two_entries_for_one_activity_are_refused(tmp_path: Path) -> None:
    both = {"control": Timing(deadline="5us"), "control 1": Timing(deadline="1ms")}
    with pytest.raises(UsageError, match=r"\[control\] and \[control 1\] of the timing file are one activity"):
        checked(rounds_of_a_loop().open(tmp_path), **both)

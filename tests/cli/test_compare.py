"""`satview compare`: figures of both traces side by side, those of the statistics."""

from __future__ import annotations

import json
import math

import pytest

from satview.__main__ import main
from satview.analysis.statistics import Statistics
from satview.answers.comparison import (
    FIGURES,
    ChangedRow,
    by_weight,
    change_table,
    change_text,
    compare,
    verdict_counts,
)
from satview.answers.statistics import TABLES
from satview.answers.table import Column, Kind, Known
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import wire
from satview.opened import open_trace
from tests.helpers.kev import TraceBuilder


def called(folder, name, lengths, gap=100_000):
    """`app` calls MSG_SENDV, for so many ns each."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1)
    for i, length in enumerate(lengths):
        builder.call(11, 1_000 + i * gap).exit(11, 1_000 + i * gap + length)
    builder.state("RECEIVE", len(lengths) * gap, 7, 1).event(6 << 10, len(lengths) * gap + 10)
    return builder.write(folder / name)


@pytest.fixture
def pair(tmp_path):
    return called(tmp_path, "a.kev", [100, 200]), called(tmp_path, "b.kev", [100, 200, 900])


def test_figures_of_both(pair):
    found = {(each.column.key, each.name): each for each in compare(*map(open_trace, pair), ["call"])
             if each.column.key != "count"}  # fmt: skip
    assert {key: (each.before, each.after) for key, each in found.items()} == {
        ("mean_ns", "MSG_SENDV"): (150, 400), ("p99_ns", "MSG_SENDV"): (200, 900),
        ("longest_ns", "MSG_SENDV"): (200, 900)}  # fmt: skip
    assert found["longest_ns", "MSG_SENDV"].ratio == 4.5
    assert found["longest_ns", "MSG_SENDV"].is_worse(1)


def test_counts_are_per_second(tmp_path):
    """Twice the events in twice the time are no change."""

    def preempted(name, times):
        builder = TraceBuilder().time_event(0).state("RUNNING", 0, 7, 1)
        for i in range(times):
            builder.state("READY", 1_000 * i + 500, 7, 1).state("RUNNING", 1_000 * i + 600, 7, 1)
        return open_trace(builder.event(6 << 10, 1_000 * times).write(tmp_path / name))

    found = compare(preempted("a.kev", 10), preempted("b.kev", 20), ["thread"])
    [change] = [each for each in found if each.column.key == "preemptions" and each.before > 0]
    assert change.is_per_s
    assert change.before == pytest.approx(1e6, rel=0.01)
    assert change.ratio == pytest.approx(1, rel=0.01)
    assert change.is_worse(1) is False


def test_more_than_none_has_no_ratio(tmp_path):
    once = TraceBuilder().time_event(0).state("RUNNING", 0, 7, 1)
    twice = TraceBuilder().time_event(0).state("RUNNING", 0, 7, 1).state("READY", 500, 7, 1).state("RUNNING", 600, 7, 1)
    traces = [open_trace(made.event(6 << 10, 1_000).write(tmp_path / name))
              for made, name in ((once, "a.kev"), (twice, "b.kev"))]  # fmt: skip
    table = change_table(compare(*traces, ["thread"]))
    row = next(row for row in range(len(table))
               if (table.text(row, "figure"), table.text(row, "name")) == ("preemptions_per_s", "pid 7 1"))  # fmt: skip
    assert (table.plain(row, "before"), table.plain(row, "ratio"), table.text(row, "ratio")) == (0, None, "from none")


def test_a_change_that_rounds_to_nothing_has_no_minus():
    column = Column("mean", Kind.DURATION, "", "Mean")
    texts = [change_text(ChangedRow("call", "a", column, 10_000, after, False, 1.0, (None, None), (0, 0)))
             for after in (9_999, 10_001, 9_980, 300_000, 30_000_000)]  # fmt: skip
    assert texts == ["+0.0 %", "+0.0 %", "-0.2 %", "+2,900.0 %", "3,000 times"]


def test_what_only_one_has_is_new_or_gone(tmp_path, capsys):
    one = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1).event(6 << 10, 9_000)
    two = TraceBuilder().time_event(0).process_name(1, 8, "other").state("RUNNING", 10, 8, 1).event(6 << 10, 9_000)
    paths = str(one.write(tmp_path / "a.kev")), str(two.write(tmp_path / "b.kev"))
    assert main(["compare", *paths, "--by", "process"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out[out.index("\nprocess: ") :].splitlines()]
    assert [line[0] for line in lines if line and line[-1] == "new"] == ["other"]
    assert [line[0] for line in lines if line and line[-1] == "gone"] == ["app"]


@pytest.mark.thorough
def test_exit_code_and_json(pair, capsys):
    paths = list(map(str, pair))
    assert main(["compare", *paths, "--worse-than", "400"]) == 0
    capsys.readouterr()
    assert main(["compare", *paths, "--by", "call", "--worse-than", "200", "--format", "json"]) == 3
    reported = json.loads(capsys.readouterr().out)
    assert reported["verdicts"] == {}
    assert [(each["figure"], each["before"], each["after"], each["worse"]) for each in reported["figures"][:3]] == [
        ("mean_ns", 150, 400, False), ("p99_ns", 200, 900, True), ("longest_ns", 200, 900, True)]  # fmt: skip
    assert main(["compare", *paths, "--worse-than", "200"]) == 3
    assert "satview: worse: Longest of MSG_SENDV: 200 ns before, 900 ns after (+350.0 %)" in capsys.readouterr().err
    assert main(["compare", *reversed(paths), "--worse-than", "0"]) == 0, "shorter is no worse"


@pytest.mark.thorough
def test_a_lesson(tmp_path, capsys):
    """With priority inheritance the lock is had soon; without it the wait is eight times as long."""
    paths = []
    for name in ("inheritance", "inversion"):
        paths.append(tmp_path / f"{name}.kev")
        run(Capture(name, options=LoggerOptions(iterations=0, is_wide=True)), paths[-1])
    before, after = map(open_trace, paths)
    assert [verdict_counts(trace).found for trace in (before, after)] == [{}, {"priority-inversion": 1}]
    found = compare(before, after, ["call"])
    assert (found[0].name, found[0].column.key) == ("SYNC_MUTEX_LOCK", "mean_ns")
    assert found[0].ratio > 8
    everything = compare(before, after)
    most = by_weight(everything, once=True)
    assert [(each.by, each.name) for each in most[:3]] == [
        ("state", "high 1 (high) in MUTEX"), ("call", "SYNC_MUTEX_UNLOCK"), ("call", "SYNC_MUTEX_LOCK")]  # fmt: skip
    assert most[0].ratio > 8
    assert all(each.is_worse(1) is False for each in everything if " in RECEIVE" in each.name), (
        "waiting for work is no fault"
    )
    for change in everything:
        assert change.by in FIGURES
        if change.by == "latency":
            continue
        table = TABLES[change.by](Statistics(after), None)
        if not change.is_per_s and not math.isnan(change.after):
            assert change.after in table[change.column.key].tolist()


def test_a_part_is_said_to_be_one(pair, capsys):
    """One call of two, and one of three, is in the first 100 \u00b5s; the traces end at 200 and 300 \u00b5s."""
    assert main(["compare", *map(str, pair), "--by", "call", "--range", "0s..100us"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "Before:  a.kev, 5 of 9 events in 100.0 \u00b5s of 200.0 \u00b5s",
        "After:   b.kev, 5 of 11 events in 100.0 \u00b5s of 300.0 \u00b5s",
    ]
    assert main(["compare", *map(str, pair), "--by", "call"]) == 0
    assert capsys.readouterr().out.startswith("Before:  a.kev, 9 events in 200.0 \u00b5s\n")


def test_verdicts_are_those_of_the_part(tmp_path, capsys):
    """A thread is READY from 0.1 s to 0.4 s; a part after that has no verdict on it."""
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).state("READY", 100_000_000, 7, 1)
    builder.state("RUNNING", 400_000_000, 7, 1).state("RECEIVE", 400_001_000, 7, 1).event(6 << 10, 900_000_000)
    path = str(builder.write(tmp_path / "a.kev"))
    for options, verdicts in ((), {"starvation": [1, 1]}), (("--range", "0.5s..0.8s"), {}):
        assert main(["compare", path, path, *options, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdicts"] == verdicts


def test_a_trace_that_cannot_show_a_kind_of_verdict_has_not_none_of_it(tmp_path, capsys):
    """A thread is READY for 0.3 s before; the trace after has no states of threads."""
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).state("READY", 100_000_000, 7, 1)
    builder.state("RUNNING", 400_000_000, 7, 1).state("RECEIVE", 400_001_000, 7, 1)
    before = str(builder.write(tmp_path / "a.kev"))
    after = str(TraceBuilder().time_event(0).event(6 << 10, 900_000_000).write(tmp_path / "b.kev"))
    main(["compare", before, after, "--format", "json"])
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"starvation": [1, None]}
    main(["compare", after, before])
    assert "  starvation: unknown before, 1 after\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--top", "0"], "must be at least 1"),
        (["--worse-than", "-1"], "not a percentage"),
        (["--worse-than", "nan"], "not a percentage"),
    ],
)
def test_bad_use(pair, options, says, capsys):
    assert main(["compare", *map(str, pair), *options]) == 2
    assert says in capsys.readouterr().err


def test_a_class_that_one_trace_lacks_is_not_gone(pair, tmp_path, capsys):
    states = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).state("RECEIVE", 20, 7, 1)
    other = str(states.write(tmp_path / "states.kev"))
    arguments = ["compare", str(pair[0]), other, "--by", "call"]
    assert main([*arguments, "--worse-than", "5"]) == 4
    out = capsys.readouterr().out
    assert "Cannot tell: call of states.kev: the trace has no kernel calls; capture the class KERCALL.\n" in out
    assert "none in either\n  cannot tell of a.kev: " in out
    assert "\n  cannot tell of states.kev: " in out
    assert main([*arguments, "--format", "json"]) == 0
    assert "the trace has no kernel calls" in json.loads(capsys.readouterr().out)["incomplete"]


def bounded(before, after, known, name="mean"):
    """Return a change of the durations of a call, of which each value is known as `known` says."""
    column = Column(name, Kind.DURATION, "", "Mean")
    return ChangedRow("call", "a", column, before, after, False, 1.0, (None, None), (0, 0), known)


E, L, M, S, U = Known.EXACT, Known.AT_LEAST, Known.AT_MOST, Known.ESTIMATE, Known.UNKNOWN


@pytest.mark.parametrize(
    ("known", "of_ratio", "is_worse_now", "is_worse_if_half"),
    [
        ((E, E), E, True, False),
        ((E, L), L, True, None),  # at least as much longer: how short it is, is not known
        ((L, E), M, None, False),
        ((M, E), L, True, None),
        ((L, L), S, None, None),
        ((L, M), M, None, False),
        ((E, S), S, None, None),
        ((U, E), U, None, None),
    ],
)
def test_what_bounds_say_of_a_change(known, of_ratio, is_worse_now, is_worse_if_half):
    longer, shorter = bounded(100, 200, known), bounded(100, 50, known)
    assert longer.ratio_known is of_ratio
    assert (longer.is_worse(1.5), shorter.is_worse(1.5)) == (is_worse_now, is_worse_if_half)
    assert longer.is_worse(math.inf) is False
    assert bounded(100, 200, known, "longest_run").is_worse(1.5) is False, "to run longer is no fault"
    assert longer.is_in_doubt == (of_ratio in (M, U))
    assert shorter.is_in_doubt == (of_ratio in (L, U))


def lossy(folder, name, longest):
    """`app` calls MSG_SENDV for 100 ns, then for `longest` ns; between the two calls a buffer is lost."""
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).process_name(1, 7, "app")
    builder.state("RUNNING", 10, 7, 1).call(11, 1_000).exit(11, 1_100)
    builder.event(wire.CONTROL_BUFFER, 5_000, (3, 0)).time_event(5_000).state("RUNNING", 5_010, 7, 1)
    builder.call(11, 6_000).exit(11, 6_000 + longest)
    return builder.state("RECEIVE", 9_000, 7, 1).event(6 << 10, 9_010).write(folder / name)


@pytest.mark.thorough
def test_what_is_lost_may_be_longer_or_shorter(pair, tmp_path, capsys):
    """The longest call of `a.kev` lasts 200 ns, and a lossy trace shows one of 210 ns, or of 900 ns."""
    arguments = ["compare", str(pair[0]), str(lossy(tmp_path, "long.kev", 900)), "--by", "call"]
    assert main([*arguments, "--worse-than", "100"]) == 3
    shown = capsys.readouterr()
    assert "worse: Longest of MSG_SENDV: 200 ns before, \u2265 900 ns after (\u2265 +350.0 %)" in shown.err
    assert "worse: Mean" not in shown.err, "a mean may be shorter than what the trace shows"
    arguments[2] = str(lossy(tmp_path, "short.kev", 210))
    assert main([*arguments, "--worse-than", "100"]) == 4
    out = capsys.readouterr().out
    assert "Cannot tell: short.kev: " in out
    assert "data-loss: 0 before, 1 after\n" in out
    assert main([*arguments, "--worse-than", "2", "--format", "json"]) == 3
    reported = json.loads(capsys.readouterr().out)
    longest = next(figure for figure in reported["figures"] if figure["figure"] == "longest_ns")
    assert (longest["before"], longest["after"], longest["worse"]) == (200, 210, True)
    assert longest["known"] == {"after": "at least", "ratio": "at least"}


def test_a_row_that_a_lossy_trace_does_not_have_may_be_lost(tmp_path, capsys):
    """Only `a.kev` calls MSG_RECEIVEV; what is lost of `b.kev` may have done so, too."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1)
    builder.call(11, 1_000).exit(11, 1_100).call(14, 2_000).exit(14, 2_100).state("RECEIVE", 9_000, 7, 1)
    whole = str(builder.event(6 << 10, 9_010).write(tmp_path / "a.kev"))
    main(["compare", whole, str(lossy(tmp_path, "b.kev", 100)), "--by", "call"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[-2:] for line in lines if line[:1] == ["MSG_RECEIVEV"]][-1] == ["unknown", "unknown"]


def test_an_empty_trace(tmp_path, pair):
    TraceBuilder().write(tmp_path / "empty.kev")
    assert main(["compare", str(tmp_path / "empty.kev"), str(pair[0])]) == 0

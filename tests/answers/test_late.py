"""Late rounds of threads: figures, blame and slow against fast, in traces that can be checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.analysis.activities import Timing, activity_named, read_timing
from satview.analysis.blame import writes_trace
from satview.answers.late import blame_table, late
from satview.base.errors import UsageError
from satview.events import wire
from satview.formats.axis import Member, trace_on_axis
from satview.opened import open_trace
from satview.store.axis import AxisEntry, write_axis
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from tests.helpers.kev import START, TraceBuilder
from tests.helpers.scene import chained, rounds_of_a_loop

THREAD_CTL = 52


def looping(folder: Path, rounds: int = 40, slow: tuple[int, ...] = (10, 20, 30), *, is_cut: bool = False) -> Trace:
    """Return the trace of rounds opened."""
    return rounds_of_a_loop(rounds, slow, is_cut=is_cut).open(folder)


def test_figures_of_a_loop(tmp_path: Path) -> None:
    """39 starts follow each other after 10,000; the end of a slow round comes 4,000 later, that of the next earlier."""
    (row,) = late(looping(tmp_path)).activities().records()
    assert (row["activity"], row["trigger"], row["count"], row["undecided"]) == ("control 1", "sleep", 40, 0)
    assert [row[f"{name}_ns"] for name in ("min", "median", "p99", "max")] == [1_100, 1_100, 5_100, 5_100]
    assert [row[f"{name}_ns"] for name in ("period", "deadline", "margin")] == [10_000, 10_000, 4_900]
    assert (row["start_jitter_ns"], row["end_jitter_ns"]) == (0, 8_000)
    assert (row["deadline_from"], row["misses"], row["overrun_ns"]) == ("period", 0, None)
    assert row["utilisation"] == pytest.approx(40 * 1_000 / 406_000, abs=1e-4)


def test_the_program_that_writes_the_trace_is_known_on_an_axis(tmp_path: Path) -> None:
    """There its name begins with that of its file."""
    trace = TraceBuilder().time_event(0).process_name(1, 7, "usr/sbin/tracelogger").state("RUNNING", 10, 7, 1)
    trace = trace.process_name(20, 8, "bin/app").state("RUNNING", 30, 8, 1).open(tmp_path)
    both = trace_on_axis(tmp_path / "x.sataxis", [Member("host", trace), Member("guest", trace)])
    names = [both.process_name(int(both.threads.process[thread])) for thread in np.flatnonzero(writes_trace(both))]
    assert names == ["host:tracelogger", "guest:tracelogger"]


def test_a_deadline_of_a_file_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "timing.toml"
    file.write_text('["control 1"]\ndeadline = "5us"\n')
    found = late(looping(tmp_path), read_timing(file))
    (row,) = found.activities().records()
    assert (row["deadline_ns"], row["deadline_from"], row["misses"], row["overrun_ns"]) == (5_000, "said", 3, 100)
    rounds = found.instances().records()
    assert [row["outcome"] for row in rounds] == ["late"] * 3 + ["in time"] * 37
    assert [row["start_ns"] for row in rounds[:3]] == [110_000, 210_000, 310_000]
    assert [row["overrun_ns"] for row in rounds[:4]] == [100, 100, 100, None]


def test_blame_of_a_late_round_adds_up(tmp_path: Path) -> None:
    found = late(looping(tmp_path))
    worst = found.worst(count=1)
    parts = found.blame(worst).records()
    assert [(row["part"], row["whom"], row["length_ns"]) for row in parts] == [
        ("preempted", "hog 1", 4_100),
        ("own work", "", 1_000),
    ]
    assert found.says(int(worst[0])) == (
        "control 1 took 5.100 µs from 0.000 110 000 s, 4.900 µs less than its deadline of 10.00 µs: "
        "4.100 µs ready while hog 1 ran, 1.000 µs own work."
    )
    assert sum(row["length_ns"] for row in blame_table(found.trace).records()) == 37 * 1_100 + 3 * 5_100


def test_slow_rounds_differ_by_who_runs(tmp_path: Path) -> None:
    """Of 40 rounds 4 are the slowest tenth, 3 of them slow: the other thread runs 3,000 longer in the mean of them."""
    (row,) = late(looping(tmp_path)).slow_against_fast(0).records()
    assert (row["part"], row["whom"]) == ("preempted", "hog 1")
    assert (row["explains_ns"], row["slow_ns"], row["fast_ns"]) == (3_000, 3_100, 100)
    assert (row["in_slow"], row["in_fast"], row["share"]) == (4, 20, 1.0)
    assert row["sure"] == "likely"


def test_few_rounds_are_not_compared(tmp_path: Path) -> None:
    assert len(late(looping(tmp_path, rounds=5)).slow_against_fast(0)) == 0


def test_an_unfinished_round_counts_up_to_the_end(tmp_path: Path) -> None:
    """The last round has taken 100 and 700 cycles when the trace ends."""
    found = late(looping(tmp_path, is_cut=True))
    cut = next(row for row in found.instances().records() if row["outcome"] == "unfinished")
    assert (cut["response_ns"], cut["known"]["response_ns"], cut["end_ns"]) == (801, "at least", None)
    assert found.activities().records()[0]["known"]["max_ns"] == "at least"


def test_where_events_are_lost_counts_are_bounds_and_the_gap_is_no_jitter(tmp_path: Path) -> None:
    """40 rounds of 10,000, of which number 10 ends 4,000 late; then buffers are lost, and 5 rounds follow 95,000 on."""
    build = rounds_of_a_loop(40, (10,)).event(wire.CONTROL_BUFFER, 407_000, (1, 0)).time_event(407_000)
    build.event(wire.CONTROL_BUFFER, 495_000, (4, 0)).time_event(495_000)
    build.state("NANOSLEEP", 496_000, 5, 1).state("RUNNING", 496_000, 6, 1)
    for woken in range(500_000, 550_000, 10_000):
        build.state("READY", woken, 5, 1).state("READY", woken + 100, 6, 1).state("RUNNING", woken + 100, 5, 1)
        build.state("NANOSLEEP", woken + 1_100, 5, 1).state("RUNNING", woken + 1_100, 6, 1)
    trace = build.event(wire.code(6, 1), 556_000).open(tmp_path)
    assert losses(trace)[:, :2].tolist() == [[START + 407_000, START + 495_000]]
    (row,) = late(trace).activities().records()
    assert (row["count"], row["undecided"], row["start_jitter_ns"], row["end_jitter_ns"]) == (45, 0, 0, 8_000)
    assert row["known"] == dict.fromkeys(("count", "start_jitter_ns", "misses"), "at least") | (
        dict.fromkeys(("min_ns", "median_ns", "p99_ns", "max_ns", "utilisation"), "estimate")
        | dict.fromkeys(("end_jitter_ns", "period_ns", "deadline_ns", "margin_ns"), "estimate")
        | {"overrun_ns": "unknown"}  # a lost round may have missed the deadline
    )
    assert row["overrun_ns"] is None


def test_a_trace_without_rounds_has_no_activity(tmp_path: Path) -> None:
    found = late(looping(tmp_path, rounds=2))
    assert (len(found.activities()), len(found.instances()), found.most_telling()) == (0, 0, None)
    assert len(blame_table(found.trace)) == 0


def test_an_activity_that_never_happens_has_no_figures_and_nothing_is_missing_in_it(tmp_path: Path) -> None:
    found = late(looping(tmp_path), {"never": Timing("event == THREADY and pid == 99", "event == THRUNNING")})
    row = next(row for row in found.activities().records() if row["activity"] == "never")
    assert (row["count"], row["max_ns"], row.get("known")) == (0, None, None)
    assert not found.activities().rows(found.activities()["activity"] == "never").doubts()


def test_an_activity_by_expressions(tmp_path: Path) -> None:
    """From when the thread is ready to when it runs: 100 cycles, in three rounds 4,100."""
    said = {"wait for the CPU": Timing("event == THREADY and tid == 1 and pid == 5", "event == THRUNNING and pid == 5",
                                       deadline="1us")}  # fmt: skip
    row = next(row for row in late(looping(tmp_path), said).activities().records() if row["trigger"] == "said")
    assert (row["activity"], row["count"], row["misses"]) == ("wait for the CPU", 40, 3)
    assert [row[f"{name}_ns"] for name in ("min", "max", "period")] == [100, 4_100, 10_000]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[control]\ndeadline = 5\n",
            r"timing.toml: \[control\] deadline: expected text, got a whole number; write it",
        ),
        ("[control]\ncpus = [0, 'x']\n", r"\[control\] cpus\[1\]: expected a whole number, got text"),
        ('[control]\ndue = "5ms"\n', r"\[control\] object contains unknown field due"),
        ('[control]\ndeadline = "5ms"\nage = "9ms"\n', r"\[control\] age is for a chain: chain = 'camera > control'$"),
        ('[control]\nreaction = "9ms"\n', r"\[control\] reaction is for a chain: chain = "),
        ("[control]\n", r"\[control\] needs start and end, period, deadline or cpus; or chain, with the bounds"),
        ('[control]\nstart = "event == READY"\n', r"\[control\] needs start and end"),
        ('[control]\ndeadline = "-5ms"\n', "deadline is not above 0"),
        ('[path]\nchain = "a > b"\ndeadline = "5ms"\n', r"\[path\] deadline is for an activity, and this is a chain$"),
        (
            '[path]\nchain = "a > b"\nage = "5ms"\ncpus = [0]\n',
            r"\[path\] cpus is for an activity, and this is a chain$",
        ),
        ('[control]\ndeadline = "soon"\n', r"timing.toml: \[control\] deadline: 'soon' is not a time"),
        ("[control\n", "line 1"),
    ],
)
def test_a_file_of_timing_that_is_wrong_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "timing.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=says):
        read_timing(file)


def test_bounds_beyond_any_trace_are_cut(tmp_path: Path) -> None:
    (row,) = late(looping(tmp_path), {"control": Timing(deadline="9999999999s", period="0.1ns")}).activities().records()
    assert (row["misses"], row["period_ns"]) == (0, 1)


def test_a_list_of_names_says_how_many_it_leaves_out() -> None:
    activities = [(f"worker {number}", "pulse") for number in range(1, 13)]
    with pytest.raises(UsageError, match=r"no activity; there are worker 1, .*, worker 8, and 4 more$"):
        activity_named("nobody", activities)
    with pytest.raises(UsageError, match=r"several activities; it may be worker 10, worker 11, worker 12$"):
        activity_named("r 1", activities[9:])
    with pytest.raises(UsageError, match=r"no activity; there are worker 1, .*, worker 7, worker 8$"):
        activity_named("nobody", activities[:8])
    with pytest.raises(UsageError, match=r"no activity; the trace has none$"):
        activity_named("nobody", [])


def test_a_name_must_mean_one_activity(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names no activity; there are control 1"):
        late(looping(tmp_path), {"planner": Timing(deadline="5us")})


CAMERA = Timing("class == USER and number == 1", "class == USER and number == 2")
CONTROL = Timing("class == USER and number == 3", "class == USER and number == 4")


def test_reaction_and_age_of_a_chain_that_samples(tmp_path: Path) -> None:
    """Control starts at 1,600, 3,600 and 5,600: it sees the images of 1,000, 3,000 and 5,000, with two lost between.

    The images of 2,000 and 4,000 wait for it until 3,900 and 5,900: they react after 1,900, the others after 900.
    """
    said = {"camera": CAMERA, "control": CONTROL,
            "path": Timing(chain="camera > control", reaction="1us", age="1us")}  # fmt: skip
    reaction, age = late(chained(tmp_path, 6, (1_600, 3_600, 5_600)), said).chains().records()
    figures = [(row["measure"], row["count"], row["min_ns"], row["max_ns"], row["misses"]) for row in (reaction, age)]
    assert figures == [("reaction", 5, 900, 1_900, 2), ("age", 3, 900, 900, 0)]
    assert reaction["median_ns"] == 900


def test_reaction_of_a_chain_that_triggers(tmp_path: Path) -> None:
    """The camera starts control at 1,200 k, before it is done itself: that of the same image, not of the one before."""
    said = {"camera": CAMERA, "control": CONTROL, "path": Timing(chain="camera > control")}
    reaction, age = late(chained(tmp_path, 5, (1_200, 2_200, 3_200, 4_200, 5_200)), said).chains().records()
    assert [(row["count"], row["min_ns"], row["max_ns"]) for row in (reaction, age)] == [(5, 500, 500)] * 2


def test_a_chain_of_what_never_happens_is_a_lower_bound(tmp_path: Path) -> None:
    said = {"camera": CAMERA, "control": CONTROL, "path": Timing(chain="camera > control")}
    reaction, age = late(chained(tmp_path, 6, ()), said).chains().records()
    assert (reaction["count"], reaction["known"]["max_ns"], age["count"], age["max_ns"]) == (5, "at least", 0, None)


def test_a_pulse_that_queues_waits_for_earlier_work(tmp_path: Path) -> None:
    """Each pulse makes the thread ready after 50, and it runs after 100 more for 900; for the third it runs to 42,000.

    So the fourth, of 40,000, is received 2,000 later, and is done 1,000 after that.
    """
    send, receive = wire.code(wire.WireClass.COMM, 4), wire.code(wire.WireClass.COMM, 3)
    connection = (0x40000001, 5)
    build = TraceBuilder().time_event(0).process_name(1, 5, "bin/control").process_name(2, 6, "bin/timer")
    build.state("RUNNING", 10, 5, 1).state("RECEIVE", 20, 5, 1).state("RUNNING", 20, 6, 1)
    for sent in (10_000, 20_000, 30_000, 50_000):
        done = 43_000 if sent == 30_000 else sent + 1_050
        build.event(send, sent, connection).state("READY", sent + 50, 5, 1).state("READY", sent + 150, 6, 1)
        build.state("RUNNING", sent + 150, 5, 1).event(receive, sent + 160, connection)
        if sent == 30_000:
            build.event(send, 40_000, connection).event(receive, 42_000, connection)
        build.state("RECEIVE", done, 5, 1).state("RUNNING", done, 6, 1)
    found = late(build.event(wire.code(6, 1), 60_000).open(tmp_path))
    rounds = found.learned.instances
    assert rounds.response_cycles.tolist() == [1_050, 1_050, 12_000, 3_000, 1_050]
    parts = [(row["part"], row["length_ns"]) for row in found.blame(np.array([2, 3])).records()]
    assert parts == [("own work", 11_850), ("preempted", 100), ("waking up", 50),
                     ("earlier work", 2_000), ("own work", 1_000)]  # fmt: skip


@pytest.mark.parametrize("is_last", [True, False])
def test_a_pulse_that_still_queues_when_the_trace_ends_is_unfinished_and_spoils_no_figure(
    tmp_path: Path, *, is_last: bool
) -> None:
    """A pulse every 10,000 is received 100 later, not the one of 45,000: it still queues, unless a later one came."""
    send, receive = wire.code(wire.WireClass.COMM, 4), wire.code(wire.WireClass.COMM, 3)
    connection = (0x40000001, 5)
    build = TraceBuilder().time_event(0).process_name(1, 5, "bin/control")
    build.state("RUNNING", 10, 5, 1).state("RECEIVE", 20, 5, 1)
    for sent in (10_000, 20_000, 30_000, 40_000) if is_last else (10_000, 20_000, 30_000, 50_000):
        if sent == 50_000:
            build.event(send, 45_000, connection)
        build.event(send, sent, connection).state("RUNNING", sent + 100, 5, 1).event(receive, sent + 100, connection)
        build.state("RECEIVE", sent + 1_000, 5, 1)
    if is_last:
        build.event(send, 45_000, connection)
    trace = build.event(wire.code(6, 1), 60_000).open(tmp_path)
    (row,) = late(trace).activities().records()
    assert (row["activity"], row["count"], row["undecided"]) == ("control 1", 5, int(not is_last))
    assert (row["max_ns"], row["known"]["max_ns"]) == ((15_001, "at least") if is_last else (1_000, "estimate"))


def test_a_length_that_is_not_known_is_not_said(tmp_path: Path) -> None:
    """Two kinds of pulses every 10,000, each received 1,000 later; without states nobody knows by which thread."""
    send, receive = wire.code(wire.WireClass.COMM, 4), wire.code(wire.WireClass.COMM, 3)
    build = TraceBuilder().time_event(0)
    for sent in range(10_000, 60_000, 10_000):
        for connection in ((0x40000001, 5), (0x40000002, 6)):
            build.event(send, sent, connection).event(receive, sent + 1_000, connection)
    found = late(build.open(tmp_path), {"nobody (pulse)": Timing(deadline="500ns")})
    rows = found.activities().records()
    assert [
        (row["activity"], row["count"], row["max_ns"], row["misses"], row["known"].get("misses")) for row in rows
    ] == [
        ("nobody (pulse)", 5, None, None, "unknown"),
        ("nobody (pulse 2)", 5, None, None, None),  # it has no deadline
    ]
    assert [(row["utilisation"], row["known"]["utilisation"]) for row in rows] == [(None, "unknown")] * 2
    for name in ("margin_ns", "overrun_ns"):
        assert (rows[0][name], rows[0]["known"][name]) == (None, "unknown")
        assert name not in rows[1]["known"], "it has no deadline"
    assert found.says(int(found.worst(0, 1)[0])) == (
        "nobody (pulse) from 0.000 010 000 s: cannot tell how long it took: "
        "events are missing in between, or its thread is not known."
    )


def beside_an_idle_cpu(mask: int | None) -> TraceBuilder:
    """Return a thread that is ready while another one has CPU 0 for 100,000; CPU 1 is idle for 80,000 of that."""
    build = TraceBuilder(cpus=2).time_event(0).time_event(0, 1)
    build.process_name(1, 5, "bin/control").process_name(2, 6, "bin/hog").process_name(3, 7, "bin/other")
    build.state("RUNNING", 4, 1, 2, cpu=1).state("RUNNING", 10, 5, 1)
    if mask is not None:
        build.call(THREAD_CTL, 12, (4, mask)).exit(THREAD_CTL, 14)
    build.state("NANOSLEEP", 20, 5, 1).state("RUNNING", 20, 6, 1)
    for number in range(3):
        woken = 1_000_000 * (number + 1)
        build.state("READY", woken, 5, 1).state("RUNNING", woken + 80_000, 7, 1, cpu=1)
        build.state("READY", woken + 100_000, 6, 1).state("RUNNING", woken + 100_000, 5, 1)
        build.state("NANOSLEEP", woken + 101_000, 5, 1).state("RUNNING", woken + 101_000, 6, 1)
        build.state("RECEIVE", woken + 110_000, 7, 1, cpu=1).state("RUNNING", woken + 110_000, 1, 2, cpu=1)
    return build.event(wire.code(6, 1), 4_000_000)


@pytest.mark.parametrize(
    ("mask", "what"),
    [
        (0b01, "CPU 1 is idle, which its runmask forbids"),
        (0b11, "CPU 1 is idle and allowed"),
        (None, "CPU 1 is idle; perhaps its runmask keeps it off"),
    ],
)
def test_a_thread_that_waits_beside_an_idle_cpu_says_why(mask: int | None, what: str, tmp_path: Path) -> None:
    found = late(beside_an_idle_cpu(mask).open(tmp_path))
    parts = found.blame(found.worst(found.learned.named("control 1"), 1)).records()
    assert [(row["part"], row["what"], row["length_ns"]) for row in parts] == [
        ("preempted", what, 80_000), ("preempted", "", 20_000), ("own work", "", 1_000)]  # fmt: skip


def test_an_idle_cpu_of_another_target_is_none_that_would_help(tmp_path: Path) -> None:
    """CPU 0 of the axis is that of an idle target; the mask has bits of the second one's own CPUs."""
    idle = TraceBuilder().time_event(0).state("RUNNING", 4, 1, 1).event(wire.code(6, 1), 4_000_000)
    idle.write(tmp_path / "idle.kev")
    beside_an_idle_cpu(0b11).write(tmp_path / "busy.kev")
    write_axis(tmp_path / "two.sataxis", [AxisEntry(tmp_path / f"{name}.kev", name) for name in ("idle", "busy")])
    found = late(open_trace(tmp_path / "two.sataxis"))
    parts = found.blame(found.worst(found.learned.named("control 1"), 1)).records()
    assert (parts[0]["what"], parts[0]["length_ns"]) == ("busy CPU 1 is idle and allowed", 80_000)


def test_a_cpu_that_is_free_and_allowed_is_named(tmp_path: Path) -> None:
    """The CPU on which the thread runs next is idle for 60,000 after it is ready; that is no mere switch."""
    build = TraceBuilder().time_event(0).process_name(1, 5, "bin/control").state("RUNNING", 10, 5, 1)
    build.state("NANOSLEEP", 20, 5, 1).state("RUNNING", 20, 1, 1)
    for number, waits in enumerate((60_000, 40_000, 40_000)):
        woken = 1_000_000 * (number + 1)
        build.state("READY", woken, 5, 1).state("RUNNING", woken + waits, 5, 1)
        build.state("NANOSLEEP", woken + waits + 1_000, 5, 1).state("RUNNING", woken + waits + 1_000, 1, 1)
    found = late(build.event(wire.code(6, 1), 4_000_000).open(tmp_path))
    parts = [row for row in found.blame(found.worst()).records() if row["part"] == "ready, CPU not taken"]
    assert [(row["what"], row["length_ns"]) for row in parts] == [
        ("CPU 0 is idle and allowed", 60_000), ("", 40_000), ("", 40_000)]  # fmt: skip


def test_a_message_of_a_client_that_is_not_known_is_unknown_rather_than_unfinished(tmp_path: Path) -> None:
    """Three messages from a CPU on which nobody is known to run; replies name no message without the rcvid."""
    build = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 1, 8, 1, 0)
    send, receipt = (wire.code(wire.WireClass.COMM, event) for event in (0, 2))
    for time in (10, 50, 90):
        build.event(send, time, (time, 8), 1).event(receipt, time + 5, (time, 8), 0)
    rows = late(build.event(wire.code(6, 1), 200).open(tmp_path)).instances().records()
    assert [(row["outcome"], row["response_ns"]) for row in rows] == [("unknown", None)] * 3

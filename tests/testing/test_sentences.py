"""Claims about small traces whose times are written out: 1 GHz, so a cycle is a nanosecond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import satview
from satview.analysis.activities import Timing
from satview.base.errors import UsageError
from satview.events import wire
from satview.events.catalogue import listed_catalogue
from satview.opened import with_answers
from satview.testing.figure import Baseline, ClaimResults, KevFailure
from satview.testing.kev import Kev
from satview.testing.units import ms, ns, s, us
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

USER_TEXT = wire.code(6, 1)


def kev_of(builder, folder, **more):
    return Kev(with_answers(builder.open(folder)), more.get("names", {}), ClaimResults("t", more.get("baseline")))


def ticking(lengths=(100, 250, 120), gap=10_000):
    """`logger` logs tick, and done so many ns later; a MUTEX of 3 us in between the second time."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "logger").state("RUNNING", 10, 7, 1)
    for i, length in enumerate(lengths):
        at = 1_000 + i * gap
        builder.writer.text_event(USER_TEXT, 0, builder.at(at), (), b"tick")
        builder.writer.text_event(USER_TEXT, 0, builder.at(at + length), (), b"done")
        if i == 1:
            builder.state("MUTEX", at + 4_000, 7, 1).state("RUNNING", at + 7_000, 7, 1)
    return builder


@pytest.fixture
def kev(tmp_path):
    return kev_of(ticking(), tmp_path)


def test_units_are_nanoseconds():
    assert (ns, us, ms, s) == (1, 10**3, 10**6, 10**9)


def test_latencies_between_user_events(kev):
    found = kev.latency("tick", "done")
    assert found.ns.tolist() == [100, 250, 120]
    assert (found.longest, found.shortest, found.p50, found.p99, found.total, found.jitter, found.count) == (
        250, 100, 120, 250, 470, 150, 3)  # fmt: skip
    assert found.mean == pytest.approx(470 / 3)
    assert found.longest < 0.5 * us
    assert found.longest.location.start_cycles == found.trace.clock.cycles(11_000)
    assert found.all_answered()


@pytest.mark.parametrize("text", ["a", "abc", "abcd", "abcdefg", "abcdefgh", "a longer one"])
@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_user_texts_of_any_length(tmp_path, text, byte_order):
    builder = TraceBuilder(byte_order=byte_order).time_event(0)
    for i, each in enumerate((text, "another", text)):
        builder.writer.text_event(USER_TEXT, 0, builder.at(10 * i + 10), (), each.encode())
    assert kev_of(builder, tmp_path).rows(text).tolist() == [1, 3]


def test_a_comparison_that_fails_knows_its_place(kev):
    assert not kev.latency("tick", "done").p99 < 200
    location = kev.claims.locations[-1]
    assert (location.start_cycles, location.end_cycles) == tuple(map(kev.trace.clock.cycles, (11_000, 11_250)))
    assert kev.trace.iter_events is not None
    assert kev.rows("tick").tolist()[1] + 1 == location.event
    assert kev.claims.failed[0] == "p99 of tick to done is 250 ns, not < 200 ns"
    assert str(location) == f"at 0.000 011 000 s (event {location.event})"
    assert f"--select {location.event}" in location.command


@pytest.mark.parametrize(
    ("holds", "fails"),
    [("< 251", "< 250"), ("<= 250", "<= 249"), ("> 249", "> 250"), (">= 250", ">= 251"), ("== 250", "== 251"),
     ("!= 251", "!= 250"), ("< 250.5", "< 249.5")],
)  # fmt: skip
def test_every_comparison(kev, holds, fails):
    longest = kev.latency("tick", "done").longest
    assert eval(f"longest {holds}", {"longest": longest})
    assert kev.claims.locations == []
    assert not eval(f"longest {fails}", {"longest": longest})
    assert len(kev.claims.locations) == 1


def test_an_end_that_is_missing_is_told(tmp_path):
    builder = ticking()
    builder.writer.text_event(USER_TEXT, 0, builder.at(90_000), (), b"tick")
    found = kev_of(builder, tmp_path).latency("tick", "done")
    assert (len(found), found.unanswered) == (3, 1)
    with pytest.raises(KevFailure, match="1 of 4 have no end"):
        found.all_answered()


def test_nothing_measured_is_a_failure_and_no_zero(kev):
    with pytest.raises(KevFailure, match="'tack' happens 0 times, 'done' 3 times"):
        assert kev.latency("tack", "done").p99 < 1 * s
    assert kev.latency("tack", "done").count == 0
    assert kev.latency("tack", "done").total == 0


def test_names_of_a_project_and_expressions(tmp_path):
    kev = kev_of(ticking(), tmp_path, names={"blocked": "event == THMUTEX"})
    assert kev.latency("blocked", "class == THREAD and state == RUNNING").ns.tolist() == [3000]
    assert kev.events("THMUTEX") == kev.events("blocked") == 1


def test_pairs_of_one_thread(tmp_path):
    """Two threads call at once; the first exit after an entry is the other thread's."""
    builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 7, 1).state("RUNNING", 20, 8, 1, cpu=1)
    builder.call(11, 1000).call(11, 1100, cpu=1).exit(11, 1500, cpu=1).exit(11, 3000)
    kev = kev_of(builder, tmp_path)
    begin, end = "class == KER_CALL", "class == KER_EXIT"
    assert kev.latency(begin, end).ns.tolist() == [500, 400]
    assert kev.latency(begin, end, same_thread=True).ns.tolist() == [2000, 400]
    assert sorted(kev.calls("MSG_SENDV").ns.tolist()) == [400, 2000]


def test_a_pair_across_lost_events_is_left_out(tmp_path):
    from tests.helpers.scene import scene

    kev = Kev(satview.open_trace(scene(tmp_path)), {}, ClaimResults())
    found = kev.latency("class == KER_CALL", "class == THREAD")
    whole = kev.trace.clock.durations_ns(found.end_cycles - found.start_cycles)
    assert len(whole) == len(found)
    with pytest.raises(KevFailure, match="events are missing in"):
        kev.no_losses()


def test_never(kev):
    thread = kev.thread("logger")
    assert thread.never("SEM", "STATE_REPLY")
    with pytest.raises(KevFailure) as failure:
        thread.never("MUTEX", "SEM")
    assert (
        str(failure.value)
        .splitlines()[0]
        .startswith("logger 1: MUTEX or SEM once, 3.000 \N{MICRO SIGN}s in all, first at 0.000 015 000 s (event ")
    )
    with pytest.raises(UsageError, match="'MUTEXX' is not a state"):
        thread.never("MUTEXX")


def test_times_of_threads(kev):
    thread = kev.thread("7:1")
    assert thread.in_state("MUTEX").ns.tolist() == [3000]
    length = kev.trace.window.length
    assert thread.cpu_share == pytest.approx((length - 10 - 3000) / length, abs=0.01)
    assert thread.stays_on(0)
    with pytest.raises(KevFailure, match="2 runs on other CPUs than 1, first on CPU 0 at"):
        thread.stays_on(1)
    assert thread.runs.count == 2


def test_threads_that_are_not_there_are_named(kev):
    with pytest.raises(KevFailure, match="is it 'logger 1'"):
        kev.thread("loger")
    with pytest.raises(KevFailure, match="no thread of the trace fits"):
        kev.threads("io-*")
    assert kev.threads("log*").rows == kev.thread("logger").rows


def test_within(kev):
    assert kev.latency("tick", "done").within(100, 250)
    with pytest.raises(KevFailure, match="longest of tick to done is 250 ns, not <= 249 ns"):
        kev.latency("tick", "done").within(100, 249)
    with pytest.raises(KevFailure, match="shortest of tick to done is 100 ns, not >= 101 ns"):
        kev.latency("tick", "done").within(101, 250)


def test_a_value_of_sql(kev):
    assert kev.value("select count(*) from event where class = 'USREVENT'") == 6
    assert "3.000" in repr(kev.value("select max(length_ns) as most_ns from state where state = 'MUTEX'"))
    with pytest.raises(KevFailure, match="no row"):
        kev.value("select 1 from event where false")
    with pytest.raises(KevFailure, match="cannot tell: interrupt: the trace has no interrupts; capture the class INTR"):
        kev.value("select count(*) from interrupt")


def test_a_value_of_sql_of_a_trace_that_lost_events(tmp_path):
    """Any value may be another one, unless it comes from what the trace says about itself."""
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("READY", 100, 7, 1)
    trace = with_answers(builder.event(wire.CONTROL_BUFFER, 5000, (4, 0)).time_event(5000).open(tmp_path))
    kev = Kev(trace, {}, ClaimResults())
    for query in ("count(*) from state where state = 'READY'", "max(event) from event"):
        with pytest.raises(KevFailure, match=r"cannot tell: .*events were lost for 4\.900 µs of it$"):
            kev.value(f"select {query}")
    assert kev.value("select count(*) from loss") == 1
    lenient = Kev(trace, {}, ClaimResults(), is_lenient=True)
    assert lenient.value("select count(*) from state where state = 'READY'") == 1


@pytest.fixture(scope="module")
def deadlock(tmp_path_factory):
    from satview.capture.buffers import LoggerOptions
    from satview.capture.run import Capture, run
    from satview.opened import open_trace

    path = tmp_path_factory.mktemp("kev") / "deadlock.kev"
    run(Capture("deadlock", options=LoggerOptions(iterations=0, is_wide=True)), path)
    return Kev(open_trace(path), {}, ClaimResults())


def test_verdicts(deadlock):
    with pytest.raises(KevFailure) as failure:
        deadlock.no_verdict("deadlock")
    lines = str(failure.value).splitlines()
    assert lines[0].startswith("error: deadlock: deadlock 2 (forwards) waits for mutex")
    assert "--range" in lines[-1]
    assert deadlock.no_verdict("inversion")
    with pytest.raises(KevFailure):
        deadlock.no_verdict()
    with pytest.raises(UsageError, match="more than one kind"):
        deadlock.no_verdict("lo")
    with pytest.raises(UsageError, match="not a kind of verdict"):
        deadlock.no_verdict("none-is-called-so")


def test_a_trace_that_cannot_tell_is_no_success(kev):
    with pytest.raises(KevFailure, match="the trace cannot show priority-inversion: "):
        kev.no_verdict("inversion")


def test_what_a_lossy_trace_does_not_show_is_no_success(tmp_path):
    kev = Kev(satview.open_trace(scene(tmp_path)), {}, ClaimResults())
    with pytest.raises(KevFailure, match=r"the trace may not show every busy-loop: events were lost for 4\.000"):
        kev.no_verdict("busy-loop")
    assert kev.if_known.no_verdict("busy-loop")


def test_a_baseline(tmp_path):
    name = "p99 of tick to done"
    kev = kev_of(ticking(), tmp_path, baseline=Baseline({"t": {name: 240.0}}))
    assert kev.latency("tick", "done").p99.no_worse_than_baseline(by=0.05)
    with pytest.raises(KevFailure, match="is 250 ns, in the baseline 240 ns: more than 1 % worse"):
        kev.latency("tick", "done").p99.no_worse_than_baseline(by=0.01)
    assert kev.claims.baseline.now == {"t": {name: 250.0}}
    more = kev.latency("tick", "done").p99
    assert more.no_worse_than_baseline(by=0.0, more_is_better=True)
    kev.claims.baseline.before["t"][name] = 300.0
    with pytest.raises(KevFailure, match="less than 10 % worse"):
        more.no_worse_than_baseline(more_is_better=True)


def test_a_figure_is_a_number(kev):
    longest = kev.latency("tick", "done").longest
    assert longest + 1 == 251
    assert {longest: 1}[250.0] == 1
    assert np.asarray([longest]).tolist() == [250.0]
    assert repr(longest) == "250 ns (longest of tick to done)"
    with pytest.raises(TypeError):
        longest < "x"  # noqa: B015


def test_a_name_that_cannot_exist_is_an_error(kev):
    with pytest.raises(UsageError, match="there is no event 'MSG_EROR'; did you mean MSG_ERROR"):
        kev.events("MSG_EROR")
    with pytest.raises(UsageError, match="there is no kernel call 'MSG_SENDX'; did you mean MSG_SENDV"):
        kev.calls("MSG_SENDX")
    with pytest.raises(UsageError, match="is not the number of an interrupt"):
        kev.interrupts("timer")
    assert kev.events("panic") == 0, "any text may be that of a user event"


def test_names_in_every_form_that_is_shown(tmp_path):
    builder = ticking()
    builder.call(11, 100_000).exit(11, 100_400)
    builder.event(wire.code(3, 1), 101_000, (0x1B, 0)).event(wire.code(3, 2), 101_500, (0x1B, 0))
    kev = kev_of(builder, tmp_path)
    assert kev.events("EVENT 1") == kev.events("USREVENT/EVENT 1") == 6
    assert kev.events("MSG_SENDV") == 2, "the entry and the exit"
    assert kev.events("KER_CALL/MSG_SENDV") == 1
    assert kev.calls("__KER_MSG_SENDV").longest == kev.calls("MSG_SENDV").longest == 400
    assert kev.interrupts("interrupt 0x1b").count == kev.interrupts("0x1b").count == kev.interrupts(27).count == 1
    with pytest.raises(KevFailure, match="the trace has no interrupt 0x999; it has 0x1b"):
        kev.interrupts(0x999)


def test_what_cannot_be_decided_fails_unless_it_is_asked_otherwise(kev):
    """The trace has user events only: nothing shows whether messages failed or interrupts came."""
    with pytest.raises(
        KevFailure, match="cannot tell whether number of events MSG_ERROR is == 0: the trace has no events of the class"
    ):
        assert kev.events("MSG_ERROR") == 0
    with pytest.raises(KevFailure, match="MSG_SENDV is < 5: the trace has no events of the class"):
        assert kev.calls("MSG_SENDV").count < 5
    with pytest.raises(KevFailure, match="interrupt 0x1b is == 0: the trace has no interrupts; capture the class INTR"):
        assert kev.interrupts(0x1B).count == 0
    assert kev.if_known.events("MSG_ERROR") == 0
    assert kev.if_known.calls("MSG_SENDV").count == 0
    assert kev.if_known.interrupts(0x1B).count == 0
    assert kev.events("tick") == 3, "user events are there"


def without_states(folder):
    """The dump of all threads names `logger`, as filters keep it; then one user event, no states and no messages."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "logger").event(wire.THREAD_CREATE, 2, (7, 1))
    return kev_of(builder.event(wire.code(6, 7), 1_000), folder)


def test_states_before_the_first_event_of_a_ring_are_not_known(tmp_path):
    """The trace does not begin with the dump of all threads: nobody saw in which state they were until then."""
    builder = TraceBuilder().state("RUNNING", 10_000, 7, 1).state("READY", 20_000, 7, 1)
    kev = kev_of(builder, tmp_path)
    for claim in ("never('MUTEX')", "in_state('MUTEX').count == 0", "in_state('RUNNING').total < 20_000"):
        with pytest.raises(KevFailure, match=r"cannot tell .* each is unknown before its first event; begin the trace"):
            assert eval(f"thread.{claim}", {"thread": kev.thread("pid 7 1")})
    thread = kev.if_known.thread("pid 7 1")
    assert thread.never("MUTEX")
    assert thread.in_state("RUNNING").longest == 10_000
    assert thread.in_state("MUTEX").count == 0


@pytest.mark.parametrize(
    "claim",
    ["never('MUTEX')", "stays_on(0)", "cpu_share < 0.2", "in_state('MUTEX').count == 0", "in_state('READY').total < 1",
     "in_state('READY').longest < 1", "runs.p99 < 1", "responses.deadline(1)", "periods.within(0, 1)"],
)  # fmt: skip
def test_no_states_do_not_show_that_a_thread_is_in_none(tmp_path, claim):
    kev = without_states(tmp_path)
    with pytest.raises(
        KevFailure, match=r"^cannot tell .*: the trace has only some events of threads; capture the class THREAD"
    ):
        assert eval(f"thread.{claim}", {"thread": kev.thread("logger")})
    for thread in (kev.if_known.thread("logger"), kev.if_known.threads("log*")):
        assert thread.never("MUTEX")
        assert thread.stays_on(0)
        assert thread.cpu_share == thread.in_state("MUTEX").count == thread.in_state("READY").total == 0


def test_some_states_do_not_show_that_a_thread_is_in_no_other(tmp_path):
    """Two threads begin to run on one CPU and none leaves it: what they did in between was not captured."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "logger")
    for at in (10, 30, 50):
        builder.state("RUNNING", at, 7, 1).state("RUNNING", at + 10, 8, 1)
    thread = kev_of(builder, tmp_path).thread("7:1")
    for claim in (lambda: thread.never("MUTEX"), lambda: thread.runs.longest < 1 * s):
        with pytest.raises(KevFailure, match=r"cannot tell .*: the trace has only some events of threads"):
            claim()


def test_a_latency_needs_the_classes_of_both_events(tmp_path):
    """User events are there, messages are not: an end that is not there is not one that never came."""
    kev = without_states(tmp_path)
    # A listing read before has an event of another class, which this trace cannot have.
    listed_catalogue(kev.trace.release).learn("CLASS 31", "OF_A_LISTING")
    reason = "the trace has no events of the class COMM; capture them"
    for begin, end in (("REC_MESSAGE", "EVENT 7"), ("EVENT 7", "REC_MESSAGE"), ("EVENT 7", "event == REC_MESSAGE"),
                       ("EVENT 7", "event == REC_MESSAGE or event == OF_A_LISTING")):  # fmt: skip
        found = kev.latency(begin, end)
        with pytest.raises(KevFailure, match=f"^cannot tell the lengths of {begin} to {end}: {reason}$"):
            assert found.p99 > 0
        with pytest.raises(KevFailure, match=f"^cannot tell whether number of {begin} to {end} is == 0: {reason}$"):
            assert found.count == 0
        assert kev.if_known.latency(begin, end).count == 0


def test_no_thread_is_known_without_events_of_threads(tmp_path):
    kev = kev_of(TraceBuilder().time_event(0).process_name(1, 7, "logger").event(wire.code(6, 7), 9), tmp_path)
    for claim in (kev.thread, kev.threads):
        with pytest.raises(
            KevFailure, match=r"no thread .*logger.*; the trace has no states of threads; capture the class"
        ):
            claim("logger")


def test_a_text_needs_the_class_of_user_events(tmp_path):
    kev = kev_of(TraceBuilder().time_event(0).process_name(1, 7, "logger"), tmp_path)
    for text in ("panic", "a longer text"):
        with pytest.raises(KevFailure, match=f"{text} is == 0: the trace has no events of the class USREVENT; capture"):
            assert kev.events(text) == 0
        assert kev.if_known.events(text) == 0


def test_calls_and_interrupts_without_exits_have_no_lengths(tmp_path):
    builder = TraceBuilder().time_event(0).call(11, 1_000).event(wire.code(3, 1), 2_000, (0x1B, 0))
    kev = kev_of(builder, tmp_path)
    with pytest.raises(KevFailure, match="MSG_SENDV is == 0: the trace has no exits of kernel calls"):
        assert kev.calls("MSG_SENDV").count == 0
    with pytest.raises(KevFailure, match="0x1b is == 0: the trace has no exits of interrupts"):
        assert kev.interrupts(0x1B).count == 0


def test_messages_to_a_server_need_its_name(tmp_path):
    builder = ticking().event(wire.code(wire.WireClass.COMM, 0), 50_000, (1, 2))
    builder.state("RUNNING", 60_000, 8, 1)  # of a process without a name
    kev = kev_of(builder, tmp_path)
    assert kev.round_trips(server="logger").count == 0
    with pytest.raises(KevFailure, match=r"messages to devb is == 0: \d of \d processes have no name here"):
        assert kev.round_trips(server="devb").count == 0


def test_a_count_across_lost_events_is_a_lower_bound(tmp_path):
    from tests.helpers.scene import scene

    kev = Kev(satview.open_trace(scene(tmp_path)), {}, ClaimResults())
    count = len(kev.rows("MSG_SENDV"))
    assert kev.events("MSG_SENDV") >= count
    with pytest.raises(KevFailure, match=f"number of events MSG_SENDV is == {count}: events are missing in"):
        assert kev.events("MSG_SENDV") == count
    assert not kev.events("MSG_SENDV") < count
    assert kev.if_known.events("MSG_SENDV") == count
    kev.claims.baseline = Baseline({"": {"number of events MSG_SENDV": float(count)}})
    with pytest.raises(KevFailure, match="cannot tell whether number of events MSG_SENDV is no worse than in the base"):
        kev.events("MSG_SENDV").no_worse_than_baseline()
    assert kev.events("MSG_SENDV").no_worse_than_baseline(more_is_better=True)
    assert kev.claims.baseline.now == {}, "a lower bound is not what the next run is compared with"
    kev.claims.baseline = Baseline(None)
    with pytest.raises(
        KevFailure, match="MSG_SENDV is only a lower bound, which is no baseline: events are missing in"
    ):
        kev.events("MSG_SENDV").no_worse_than_baseline()


def test_nothing_found_across_lost_events_is_no_proof(tmp_path):
    """The client runs on CPU 0 and is in no mutex, as far as four lost buffers leave it to be seen."""
    from tests.helpers.scene import scene

    kev = Kev(satview.open_trace(scene(tmp_path)), {}, ClaimResults())
    client, reason = kev.thread("2:1"), ": events are missing in 1 range$"
    with pytest.raises(KevFailure, match="^cannot tell whether a state of .* is MUTEX or SEM" + reason):
        client.never("MUTEX", "SEM")
    with pytest.raises(KevFailure, match="^cannot tell whether runs of .* are on other CPUs than 0, 1" + reason):
        client.stays_on(0, 1)
    with pytest.raises(KevFailure, match="^cannot tell whether CPU share of .* is < 90.00 %" + reason):
        assert client.cpu_share < 0.9
    with pytest.raises(KevFailure, match="^cannot tell whether total of REPLY of .* is < 1.000 s" + reason):
        assert client.in_state("REPLY").total < 1 * s
    with pytest.raises(KevFailure, match="REPLY once, "):
        client.never("REPLY")
    assert client.in_state("REPLY").longest < 1 * s, "what is measured is measured"
    assert kev.if_known.thread("2:1").never("MUTEX")
    assert kev.if_known.thread("2:1").stays_on(0)


def test_what_never_ends_counts_to_the_end_of_the_trace(tmp_path):
    builder = ticking()
    builder.writer.text_event(USER_TEXT, 0, builder.at(90_000), (), b"tick")
    builder.state("READY", 190_000, 2, 1)
    found = kev_of(builder, tmp_path).latency("tick", "done")
    assert found.p50 == 120, "of 100, 120, 250 and what goes on"
    assert found.longest >= 100_000
    assert (found.longest.location.event, found.shortest < 1000, len(found)) == (found.open_row[0] + 1, True, 3)


def test_a_deadline_of_an_activity(tmp_path):
    """A thread that wakes every 10,000 ns needs 1,000, and 6,000 the fifth time."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "control").state("RUNNING", 5, 7, 1)
    builder.state("NANOSLEEP", 10, 7, 1).state("RUNNING", 10, 1, 1)
    for number in range(10):
        woken, length = 10_000 * (number + 1), 6_000 if number == 4 else 1_000
        builder.state("READY", woken, 7, 1).state("RUNNING", woken, 7, 1)
        builder.state("NANOSLEEP", woken + length, 7, 1).state("RUNNING", woken + length, 1, 1)
    kev = kev_of(builder.event(USER_TEXT, 110_000), tmp_path)
    control = kev.activity("control")
    assert control.ns.tolist() == [1_000] * 4 + [6_000] + [1_000] * 5
    assert control.deadline(6 * us)
    assert control.p50 < 2 * us
    with pytest.raises(KevFailure, match="longest of control 1"):
        control.deadline(5 * us)
    with pytest.raises(UsageError, match="no activity"):
        kev.activity("planner")


def test_the_reaction_of_a_chain(tmp_path):
    """Every 10,000 ns one thread works for 1,000, and another 2,000 later for 500: 3,500 from stimulus to response."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "control").process_name(2, 8, "planner")
    builder.state("RUNNING", 4, 7, 1).state("NANOSLEEP", 6, 7, 1).state("RUNNING", 8, 8, 1)
    builder.state("NANOSLEEP", 10, 8, 1).state("RUNNING", 10, 1, 1)
    for number in range(10):
        for pid, after, length in ((7, 0, 1_000), (8, 3_000, 500)):
            woken = 10_000 * (number + 1) + after
            builder.state("READY", woken, pid, 1).state("RUNNING", woken, pid, 1)
            builder.state("NANOSLEEP", woken + length, pid, 1).state("RUNNING", woken + length, 1, 1)
    kev = kev_of(builder.event(USER_TEXT, 110_000), tmp_path)
    path = kev.chain("control > planner")
    assert path.reaction.ns.tolist() == path.age.ns.tolist() == [3_500] * 10
    assert path.reaction.p99 < 4 * us
    with pytest.raises(KevFailure, match="longest of age of control > planner"):
        path.age.deadline(3 * us)
    with pytest.raises(UsageError, match="not a chain"):
        kev.chain("control")
    said = replace(kev, timing={"path": Timing(chain="control > planner", reaction="3us")})
    assert said.chain("path").reaction.longest == 3_500
    with pytest.raises(KevFailure, match=r"The reaction of the chain path is 3\.500 µs"):
        said.no_verdict("chain")
    with pytest.raises(UsageError, match="chain needs a timing file"):
        kev.no_verdict("chain")


def test_of_several_files_only_those_with_the_thread_need_its_states(tmp_path):
    """The second file has one user event and no states."""
    from satview.opened import open_trace

    ticking().write(tmp_path / "a.kev")
    TraceBuilder().time_event(0).event(wire.code(6, 7), 1_000).write(tmp_path / "b.kev")
    files = '{"name": "a", "path": "a.kev", "offset_ps": 0}, {"name": "b", "path": "b.kev", "offset_ps": 0}'
    (tmp_path / "both.sataxis").write_text(f'{{"satview_axis": 1, "files": [{files}]}}')
    kev = Kev(open_trace(tmp_path / "both.sataxis"), {}, ClaimResults())
    threads = kev.threads("*logger*")
    assert threads.never("SEM")
    assert threads.in_state("MUTEX").longest <= 3_000

"""The API that the README and the package docstring promise."""

import gc
import weakref

import pytest

import satview
from satview.base.errors import UsageError
from satview.events import wire
from satview.linkage.links import LinkKind
from tests.helpers.kev import TraceBuilder


@pytest.fixture
def path(tmp_path):
    builder = TraceBuilder(cpus=2).time_event(0).process_name(1, 7, "server").state("RUNNING", 10, 7, 1)
    builder.state("RUNNING", 20, 8, 3, cpu=1).call(11, 1000, (3, 0x64636261), cpu=1).exit(11, 5000, (0, 0), cpu=1)
    return builder.call(11, 6000, (4, 0)).event(wire.code(7, 0), 9000, (1, 7)).write(tmp_path / "a.kev")


def test_events_one_at_a_time(path):
    calls = satview.open_trace(path).iter_events("KER_CALL")
    found = [(e.time_ns, e.cpu, e.pid, e.tid, e.name, e.args["coid"]) for e in calls]
    assert found == [(1000, 1, 8, 3, "MSG_SENDV", 3), (6000, 0, 7, 1, "MSG_SENDV", 4)]


def test_restrictions(path):
    trace = satview.open_trace(path)
    assert [e.time_ns for e in trace.iter_events(pid=8)] == [20, 1000, 5000]
    assert [e.time_ns for e in trace.iter_events("MSG_SENDV", "THRUNNING", cpu=0)] == [10, 6000]
    assert [e.time_ns for e in trace.iter_events(start_ns=5000, end_ns=9000)] == [5000, 6000]
    assert [e.class_name for e in trace.iter_events("KER_EXIT/MSG_SENDV")] == ["KER_EXIT"]
    assert [e.time_ns for e in trace.iter_events("KER_CALL", rows=satview.select(trace, "arg.coid == 4"))] == [6000]
    assert [e.time_ns for e in trace.iter_events("KER_CALL", rows=satview.select(trace, "duration > 1us"))] == [1000]


def test_links_and_transactions(path):
    trace = satview.open_trace(path)
    found = satview.links(trace)
    assert [(link.from_row, link.to_row) for link in found.calls] == [(4, 5)]
    assert found.calls is satview.links(trace).calls, "made once"
    sent = satview.transactions(trace)
    assert (sent.server_pid.tolist(), sent.receive_row.tolist(), sent.parent.tolist()) == ([7], [-1], [-1])
    for kind in LinkKind:
        assert found.of(kind).kind is kind
    assert len(found.blockers) == len(found.wake_ups) == 0


def test_an_event_leads_back_to_its_trace(path):
    event = next(satview.open_trace(path).iter_events("COMM"))
    assert event.thread_name == "server 1"
    assert event.words == (1, 7)
    assert len(list(event.trace.iter_events())) == 8


def test_unknown_names_are_refused_with_the_nearest(path):
    with pytest.raises(UsageError, match="MSG_SENDV"):
        next(satview.open_trace(path).iter_events("MSG_SENDW"))


def test_faults_of_the_user_have_a_public_class(path):
    trace = satview.open_trace(path)
    with pytest.raises(satview.UsageError, match="no event can ever fit 'cpu == 0 and cpu == 1'"):
        satview.select(trace, "cpu == 0 and cpu == 1")
    with pytest.raises(satview.UsageError, match="'nothing' does not exist") as refused:
        trace.sql("select * from nothing")
    assert refused.type is satview.UsageError
    with pytest.raises(satview.TraceFormatError, match="the name of the file is empty; name a trace"):
        satview.open_trace("")


def test_a_trace_goes_when_nobody_holds_it(path):
    gc.disable()
    try:
        trace = satview.open_trace(path)
        gone = weakref.ref(trace)
        del trace
        assert gone() is None
    finally:
        gc.enable()


def test_every_public_name_is_there():
    assert all(getattr(satview, name) for name in satview.__all__)
    with pytest.raises(AttributeError):
        satview.nothing  # noqa: B018


def test_verdicts(path):
    trace = satview.open_trace(path)
    assert satview.check(trace) == ()
    lossy = satview.open_trace("sample_traces/dense-4cpu.kev")
    found = satview.check(lossy)
    assert all(isinstance(verdict, satview.Verdict) for verdict in found)
    assert [verdict.kind for verdict in found] == ["priority-inversion"]
    assert satview.check(lossy, kinds=[]) == ()


def test_why(path):
    trace = satview.open_trace(path)
    [step] = satview.why(trace, "8:3", trace.clock.cycles(2000))
    assert isinstance(step, satview.WhyStep)
    assert (step.state, trace.clock.ns(step.since_cycles), step.thread) == ("RUNNING", 20, trace.threads.row(8, 3))


def test_a_trace_answers_by_itself(path):
    """Methods give what the functions give."""
    trace = satview.open_trace(path)
    assert isinstance(trace, satview.OpenedTrace)
    assert repr(trace) == "<OpenedTrace a.kev: 8 events in 9.000 \N{MICRO SIGN}s, 2 CPUs, 7.x>"
    at = trace.clock.cycles(2000)
    assert trace.transactions() is satview.transactions(trace)
    assert trace.latencies() is satview.latencies(trace)
    assert trace.links().calls is satview.links(trace).calls
    assert trace.why("8:3", at) == satview.why(trace, "8:3", at)
    assert trace.verdicts() == satview.check(trace)
    assert trace.doctor().records() == satview.doctor(trace).records()
    assert trace.select("arg.coid == 4").tolist() == satview.select(trace, "arg.coid == 4").tolist()
    assert trace.critical_path("8:3").totals() == satview.critical_path(trace, "8:3", trace.window).totals()
    assert trace.statistics().length_s == satview.Statistics(trace).length_s
    assert [info.kind for info in trace.timeline().infos] == [info.kind for info in satview.Timeline(trace).infos]
    assert trace.snapshot(at) is not None


def test_names_are_shown(path):
    assert {"open_trace", "check", "Trace"} <= set(dir(satview))
    assert not {"Any", "os", "import_module"} & set(dir(satview))


def test_a_block_closes_the_file(path):
    with satview.open_trace(path) as trace:
        assert len(trace.events) == 8
        assert next(trace.iter_events("COMM")).words == (1, 7)
    assert trace.events.time_cycles[0] >= 0, "columns stay"
    with pytest.raises(satview.SatviewError, match="it was closed; open it again"):
        trace.payloads.words(6)


def test_a_trace_writes_itself_by_the_ending(path, tmp_path):
    trace = satview.open_trace(path)
    assert trace.export(tmp_path / "calls.csv", expression="class == KER_CALL") == 2
    assert len((tmp_path / "calls.csv").read_text().splitlines()) == 3
    assert (
        trace.export(tmp_path / "part.kev", window=satview.TimeWindow(*trace.events.time_cycles[[2, 5]].tolist())) == 3
    )
    assert trace.export(tmp_path / "states.parquet", "state") == len(trace.table("state"))
    assert trace.export(tmp_path / "both", ("state", "run")) > 0
    assert sorted(file.name for file in (tmp_path / "both").iterdir()) == ["run.parquet", "state.parquet"]
    with pytest.raises(UsageError, match=r"the file extension selects the format; use \.parquet"):
        trace.export(tmp_path / "x.docx")

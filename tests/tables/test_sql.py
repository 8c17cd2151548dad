"""SQL: what it refuses, its limits, and what it makes; results as columns."""

import re
import sys
from importlib import metadata

import pytest
from packaging.version import Version

from satview.__main__ import main
from satview.base.errors import UsageError
from satview.base.time import Clock
from satview.events import wire
from satview.export.by_ending import export
from satview.opened import open_trace, with_answers
from satview.tables import sql as module
from satview.tables.schema import SCHEMAS, clock_macros, mentioned, views
from tests.helpers.extent import usually
from tests.helpers.kev import START, TraceBuilder


@pytest.fixture
def small(tmp_path):
    """Three events at 0, 1000 and 3000 ns; one process whose name is mark-up."""
    builder = TraceBuilder(cpus=2).time_event(0).process_name(1000, 7, "<b>x</b>").state("RUNNING", 3000, 7, 1, 1)
    return with_answers(builder.open(tmp_path))


@pytest.mark.thorough
def test_a_query(small):
    found = small.sql("select event, time_ns, name from event where time_ns > 0 order by event")
    assert found.columns == ("event", "time_ns", "name")
    assert found.rows() == [(1, 1000, "PROCCREATE_NAME"), (2, 3000, "THRUNNING")]
    assert found["time_ns"].tolist() == [1000, 3000]
    assert found.to_pandas()["event"].tolist() == found.to_polars()["event"].to_list() == [1, 2]
    assert len(found.arrow()) == len(found) == 2
    assert repr(found) == "<Result: 2 rows of event, time_ns, name>"
    with pytest.raises(UsageError, match="no column 'nam'; it has event, time_ns, name"):
        found["nam"]


@pytest.mark.thorough
def test_an_empty_table_says_what_the_trace_cannot_show(small):
    """The trace has neither messages nor kernel calls; of runs it has one, of losses none, which is exact."""
    says = ("message: the trace has no messages; capture the class COMM",)
    for _ in range(2):  # the second time the process has the table
        counted = small.sql("select count(*) as n from message, run")
        assert (counted["n"].tolist(), counted.cannot_tell) == ([0], says)
    assert small.sql("select * from loss").cannot_tell == small.sql("select * from run").cannot_tell == ()
    assert (
        small.table("call").says_why_empty == "Cannot tell: the trace has no kernel calls; capture the class KERCALL."
    )


UNSEEN = "interrupts were not captured, so their time counts for what they interrupt"
OPENING = "the dump at its start lacks 1 of 1 thread, each unknown before its first event"


@pytest.mark.parametrize(
    ("view", "cannot_tell", "not_all"),
    [
        ("cpu_load", "", f"cpu_state: {UNSEEN}; {OPENING}"),
        ("load_per_second", "", f"cpu_state: {UNSEEN}; {OPENING}"),
        ("thread_load", "", f"run: {UNSEEN}; {OPENING}"),
        ("thread_states", "", f"state: {OPENING}"),
        ("interrupted_threads", f"interrupted_threads: {UNSEEN}; capture the class INTR", f"run: {UNSEEN}; {OPENING}"),
        ("lock_contention", "lock_contention: the trace has no kernel calls; capture the class KERCALL", ""),
        ("lock_holders", "lock_holders: the trace has no kernel calls; capture the class KERCALL", ""),
    ],
)
def test_a_view_says_what_its_columns_lack(view, cannot_tell, not_all, small):
    """The trace has states of a thread, but neither interrupts nor kernel calls: a zero of theirs is no answer."""
    result = small.sql(f"select * from {view}")
    assert result.cannot_tell == ((cannot_tell,) if cannot_tell else ())
    assert result.not_all == ((not_all,) if not_all else ())


@pytest.mark.skipif(Version(metadata.version("duckdb")) < Version("1.5"), reason="knows no type that Parquet lacks")
def test_a_type_that_parquet_lacks_is_refused(tmp_path, capsys):
    path, query = tmp_path / "rows.parquet", "select try_cast(date '2000-01-01' as row) from process"
    assert main(["query", "sample_traces/vendor-ker_calls-14.kev", query, "-o", str(path)]) == 2
    assert capsys.readouterr().err.startswith("satview: not as Parquet: ")
    assert not path.exists()


def lossy(builder: TraceBuilder) -> TraceBuilder:
    """Two READY of a thread, and what was logged between 100 and 5,000 ns is lost."""
    builder.event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("READY", 2, 7, 1).state("RUNNING", 100, 7, 1)
    return builder.event(wire.CONTROL_BUFFER, 5000, (4, 0)).time_event(5000).state("READY", 5002, 7, 1)


def test_rows_of_a_trace_that_lost_events_are_not_all(tmp_path):
    trace = with_answers(lossy(TraceBuilder()).open(tmp_path))
    lost = "events were lost for 4.900 µs of it"
    for query in ("* from state", "count(*) from event", "* from thread_states", "count(*) from CONTROL_BUFFER"):
        result = trace.sql(f"select {query}")
        assert (len(result) > 0, result.cannot_tell) == (True, ())
        [line] = result.not_all
        assert lost in line
        assert result.reservations == (f"Not all: {line}",)
        assert result._repr_html_().endswith(f"<br>Not all: {line}</p>")
    written = export(trace, tmp_path / "runs.csv", tables=("run",)), export(trace, tmp_path / "l.csv", tables=("loss",))
    assert [file.left_out for file in written] == [(lost,), ()]
    for query in ("* from loss", "events from trace", "1"):
        assert trace.sql(f"select {query}").not_all == ()
    verdicts = trace.sql("select * from verdict")
    assert [line for line in verdicts.not_all if "were lost" in line] == [f"verdict: {lost}"], "said once"


def test_rows_that_a_class_captured_in_part_leaves_are_not_all(capsys):
    """Of the threads, only kernel calls and the states of their beginning are there, which `stats` marks with `≈`."""
    path = "sample_traces/vendor-ker_calls-14.kev"
    missing = "the trace has only some events of threads; capture the class THREAD whole"
    result = with_answers(open_trace(path)).sql("select * from run")
    assert (len(result), result.cannot_tell, result.not_all) == (5, (), (f"run: {missing}",))
    assert main(["query", path, "select count(*) as n from run"]) == 0
    assert capsys.readouterr() == ("n\n5\n1 row\n", f"satview: not all: run: {missing}\n")


def test_waits_for_a_cpu_that_nothing_logs_are_no_answer():
    """READY of a thread trace is only what a new thread is until its first record, here 1 ns each."""
    trace = open_trace("sample_traces/threads")
    says = "a threads library does not log who has a CPU: what is RUNNING there is not known to wait"
    for view in ("ready_wait", "preemptions", "thread_migrations"):
        assert trace.sql(f"select * from {view}").cannot_tell == (f"{view}: {says}",)
    assert trace.sql("select most_ns from ready_wait").rows() == [(1,)] * 4


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("* from periods", "activation: the trace has no states of threads; capture the class THREAD whole"),
        ("* from server_time", "server_time: the trace has no states of threads; capture the class THREAD whole"),
        (
            "count(*) from round_trips",
            "round_trips: the trace has no states of threads; capture the class THREAD whole",
        ),
        (
            "count(*) from call_msg_sendv",
            "call_msg_sendv: the trace has no events of the class KER_CALL; capture them",
        ),
        ("* from blame", "blame: the trace has no states of threads; capture the class THREAD whole"),
    ],
)
def test_what_drops_rows_that_are_not_known_says_so(query, says, tmp_path):
    """The trace has a message and its reply, but neither states of threads nor kernel calls."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "client").process_name(2, 8, "server")
    for number, time in ((0, 10), (1, 20), (2, 30)):  # sent, received, replied
        builder.event(wire.code(wire.WireClass.COMM, number), time, (1, 8))
    trace = with_answers(builder.open(tmp_path))
    result = trace.sql(f"select {query}")
    assert result.shows_nothing
    assert says in result.cannot_tell
    assert trace.sql("select count(*) from message").cannot_tell == ()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select * from load_per(0)", "bin_ns is not above 0"),
        ("select * from switch_rate_per(-1)", "bin_ns is not above 0"),
        ("select * from load_between(2000, 1000)", "to_ns is before from_ns"),
    ],
)
def test_impossible_arguments_of_macros_are_refused(small, query, says):
    with pytest.raises(UsageError, match=says):
        small.sql(query)


@pytest.fixture
def replies(tmp_path):
    """Two dumpers: pid 7 and 12, both with thread 1; that of 12 responds within 400 ns, then within 900 ns."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "sbin/dumper").process_name(2, 12, "sbin/dumper")
    builder.state("RECEIVE", 10, 7, 1).state("RECEIVE", 20, 12, 1)
    for ready, done in ((1_000, 1_400), (2_000, 2_900)):
        builder.state("READY", ready, 12, 1).state("RUNNING", ready + 100, 12, 1).state("RECEIVE", done, 12, 1)
    return with_answers(builder.event(6 << 10, 5_000).open(tmp_path))


@pytest.mark.parametrize("name", ["dumper[12]", "dumper[12] 1", "12:1", "pid 12 1"])
def test_macros_take_threads_by_name(replies, name):
    assert replies.sql(f"select start_ns, response_ns from overruns('{name}', 500)").rows() == [(2_000, 900)]
    row = replies.threads.row(12, 1)
    assert replies.sql(f"select THREAD_NAMED ( '{name}' ) + 1, 'thread_named(''x'')' -- thread_named('x')").rows() == [
        (row + 1, "thread_named('x')")]  # fmt: skip
    assert replies.sql(f"select * from overruns({row}, 500)").rows() == replies.sql(
        f"select * from overruns('{name}', 500)").rows()  # fmt: skip


def test_a_name_of_several_threads_lists_them(replies):
    with pytest.raises(UsageError, match=r"'sbin/dumper' is the name of 2 threads; write PID:TID: 7:1 .*, 12:1 "):
        replies.sql("select * from overruns('sbin/dumper', 500)")
    with pytest.raises(UsageError, match=r"has no thread 'dumpr\[12\] 1'; did you mean dumper\[12\] 1"):
        replies.sql("select * from overruns('dumpr[12] 1', 500)")


def test_macros_are_listed_alone(replies):
    assert {kind for _, kind, _ in replies.sql("show macros").rows()} == {"macro"}
    assert "overruns(thread_row, deadline_ns)" in [name for name, _, _ in replies.sql("show macros").rows()]


def test_sums_are_whole_numbers(small):
    [(total,)] = small.sql("select sum(time_cycles) from event").rows()
    assert total == 3 * START + 4000
    huge = small.sql("select sum(time_cycles::hugeint * 10000000000) as s from event")
    assert huge.rows() == [((3 * START + 4000) * 10_000_000_000,)]


def test_nulls(small):
    found = small.sql("select created_ns, parent_pid from process order by process")
    assert found["created_ns"].tolist() == [None, None]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select * from read_csv('/etc/passwd')", "disabled by configuration"),
        ("select * from '/etc/passwd'", "does not exist"),
        ("select * from read_text('/etc/hostname')", "disabled by configuration"),
        ("select * from glob('/*')", "disabled by configuration"),
        ("copy (select 1) to '/tmp/satview-out.csv'", "COPY is not a query"),
        ("attach '/tmp/satview.db'", "ATTACH is not a query"),
        ("install httpfs", "is not a query"),
        ("set memory_limit = '1TB'", "SET is not a query"),
        ("create table other as select 1", "CREATE is not a query"),
        ("select 1; select 2", "2 statements; give one query"),
        ("", "no statement; give one query"),
        ("select nothing from event", '"nothing" not found'),
        ("selec 1", "syntax error"),
        ("select * from events", "a table 'events' does not exist; is event meant?"),
        ("select * from ready_wai", "is ready_wait meant?"),
    ],
)
def test_what_is_refused(small, query, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        small.sql(query)


def test_no_variable_of_python_is_a_table(small):
    import pyarrow as pa

    secret = pa.table({"a": [1]})
    with pytest.raises(UsageError, match="does not exist"):
        small.sql("select * from secret")
    assert secret.num_rows == 1


def test_only_tables_that_are_mentioned_are_made(small):
    assert mentioned("select w.state from wait w") == (["wait"], [])
    assert mentioned("SELECT * FROM main.Run") == (["run"], [])
    assert mentioned("select * from load_per_second") == (["cpu_state"], ["load_per", "load_per_second"])
    assert mentioned("select 'call' from \"Event\" where name = 'it''s run'") == (["event"], [])
    assert mentioned("select 1") == ([], [])
    small.sql("select * from ready_wait")
    cached = {name for name in SCHEMAS if small.is_cached(f"tables.{name}")}
    assert cached == {"state", "thread"}


@pytest.mark.thorough
def test_queries_do_not_see_each_other(small, tmp_path):
    (tmp_path / "other").mkdir()
    other = with_answers(TraceBuilder().time_event(0).open(tmp_path / "other"))
    for _ in range(2):
        assert small.sql("select count(*) from event").rows() == [(3,)]
        assert other.sql("select count(*) from event").rows() == [(1,)]
    left = small.sql("select view_name from duckdb_views() where not internal")
    assert left.rows() == []


def test_other_statements_that_read(small):
    assert ("event", "UINTEGER") in [row[:2] for row in small.sql("describe event").rows()]
    assert len(small.sql("summarize select cpu from event")) == 1
    assert small.sql("from cpu").rows(1)[0][:2] == (0, "CPU 0")
    assert "cpu" in str(small.sql("explain select * from cpu").rows())


@pytest.mark.parametrize("rate", [1_000_000_000, 19_200_000, 2_600_000_000, 3, 9_223_372_036])
def test_times_are_those_of_the_clock(small, rate):
    """The macros round as `Clock` does, before the first event too."""
    import duckdb

    connection = duckdb.connect()
    clock = Clock(rate, start_cycles=5_000_000_007)
    for statement in clock_macros(clock.start_cycles, clock.cycles_per_s):
        connection.execute(statement)
    for cycles in (-3, -1, 0, 1, 2, rate - 1, rate, rate + 1, 7 * rate + 5, 3_000_000_000):
        [(time_ns, length_ns, back)] = connection.execute(
            f"select time_ns({clock.start_cycles + cycles}), duration_ns({cycles}), cycles({cycles})"
        ).fetchall()
        assert (time_ns, length_ns) == (clock.ns(clock.start_cycles + cycles), clock.duration_ns(cycles))
        assert back == clock.cycles(cycles)
    connection.close()


@pytest.mark.thorough
def test_a_damaged_clock_has_times_too(small, monkeypatch):
    """Where plain arithmetic would not fit, the columns of nanoseconds are those of the table."""
    plain = small.sql("select time_ns from event").rows()
    monkeypatch.setattr(module, "_fits_plain_numbers", lambda _trace: False)
    assert open_trace(small.path).sql("select time_ns from event").rows() == plain


def test_names_of_a_trace_are_text(small):
    html = small.sql('select name as "<i>" from process where pid = 7')._repr_html_()
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "&lt;i&gt;" in html
    assert "<b>" not in html


def test_every_view_says_what_it_is():
    for view in views().values():
        assert re.fullmatch(r"[A-Z`].*\.", view.meaning), view.name
        assert view.name not in SCHEMAS
        assert view.sql.lower().startswith(("select", "with"))
        for parameter in view.parameters:
            assert re.search(rf"\b{parameter}\b", view.sql), (view.name, parameter)


@pytest.mark.thorough
def test_nanoseconds_are_beside_cycles():
    """In every table, view and macro; each as the clock makes it of the cycles."""
    trace = open_trace("sample_traces/dense-4cpu.kev")
    given = {"from_ns": 0, "to_ns": 900_000_000, "at_ns": 5_000_000, "bin_ns": 100_000_000, "thread_row": 47,
             "deadline_ns": 1}  # fmt: skip
    for view in list(views().values())[:: usually(5, complete=1, thorough=1)]:
        arguments = f"({', '.join(str(given[name]) for name in view.parameters)})" if view.parameters else ""
        found = trace.sql(f"select * from {view.name}{arguments}").arrow()
        assert found.column_names == list(view.columns), view.name
        for at, name in enumerate(found.column_names):
            if name.endswith("_cycles"):
                ns = f"{name.removesuffix('_cycles')}_ns"
                assert ns in found.column_names[at:], (view.name, name)
                make = trace.clock.ns if name == "time_cycles" else trace.clock.duration_ns
                values = found[name].to_pylist()
                assert found[ns].to_pylist() == [None if value is None else make(value) for value in values], view.name
    for schema in SCHEMAS.values():
        for name in schema.names:
            assert not name.endswith("_cycles") or f"{name.removesuffix('_cycles')}_ns" in schema.names, schema.name


@pytest.mark.thorough
def test_every_table_can_be_queried():
    trace = open_trace("sample_traces/vendor-all_classes.kev")
    for name, schema in SCHEMAS.items():
        found = trace.sql(f"select * from {name}")
        assert (found.columns, len(found)) == (schema.names, len(trace.table(name)))
        for column in schema.columns:
            expected = trace.table(name).arrow()[column.name].to_pylist()
            assert found.arrow()[column.name].to_pylist() == expected, (name, column.name)


def test_a_missing_package_is_named(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"duckdb, .*: pip install 'duckdb>="):
        small.sql("select 1")

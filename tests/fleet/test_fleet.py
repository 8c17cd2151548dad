"""Many traces as one data set: what is in it, that it goes on where it stopped, and what damage costs."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import polars as pl
import pyarrow.dataset
import pyarrow.parquet
import pytest

from satview.__main__ import main
from satview.base.errors import UsageError
from satview.events import wire
from satview.fleet import export, query
from satview.fleet.query import DEFAULT_TABLES, MARK, Dataset, find_sources, is_dataset, query_dataset
from satview.opened import open_trace
from satview.tables.schema import views
from satview.tables.sql import sql
from tests.helpers.extent import fewer, usually
from tests.helpers.kev import TraceBuilder

TABLES = ("event", "state", "thread")


def ready(folder, name, wait_ns):
    """A thread that waits for its CPU so long, from 1,000 ns on."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1)
    builder.state("READY", 1_000, 7, 1).state("RUNNING", 1_000 + wait_ns, 7, 1).state("RECEIVE", 100_000, 7, 1)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    return builder.write(folder / name)


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    for name, wait_ns in (("a.kev", 100), ("board 1/b.kev", 200), ("board 1/c=%.kev", 300)):
        ready(folder, name, wait_ns)
    (folder / "readme.txt").write_text("no trace")
    ready(folder, ".hidden/d.kev", 1)
    return folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def modified(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


@pytest.mark.thorough
def test_every_trace_has_its_part(traces, out):
    found = export.export_folder(traces, out, TABLES)
    assert sorted(done.name for done in found.done) == ["a.kev", "board 1/b.kev", "board 1/c=%.kev"]
    assert (found.unchanged, found.skipped) == (0, [])
    rows = query_dataset(
        out, "select trace, max(length_ns) as n from state where state = 'READY' group by trace order by 1"
    )
    assert rows.rows() == [("a.kev", 100), ("board 1/b.kev", 200), ("board 1/c=%.kev", 300)]
    for name in TABLES:
        alone = open_trace(traces / "a.kev").table(name)
        query = f"select count(*) from {name} where trace = 'a.kev'"
        assert query_dataset(out, query).rows() == [(len(alone),)]


@pytest.mark.thorough
def test_times_of_events_are_those_of_each_trace(traces, out):
    export.export_folder(traces, out, TABLES)
    for name in ("a.kev", "board 1/b.kev"):
        expected = open_trace(traces / name).table("event")["time_ns"].tolist()
        query = f"select time_ns from event where trace = '{name}' order by event"
        assert query_dataset(out, query)["time_ns"].tolist() == expected
    assert "time_ns" in query_dataset(out, "select * from event limit 1").columns


@pytest.mark.thorough
def test_every_view_says_of_each_trace_what_it_says_of_it_alone(traces, out):
    export.export_folder(traces, out)
    alone = {path: open_trace(traces / path) for path in ("a.kev", "board 1/b.kev", "board 1/c=%.kev")}
    given = {
        "bin_ns": "5000", "from_ns": "100", "to_ns": "50000", "at_ns": "900", "thread_row": "1", "deadline_ns": "1",
    }  # fmt: skip
    for view in list(views().values())[:: usually(6, complete=1)]:
        arguments = f"({', '.join(given[name] for name in view.parameters)})" if view.parameters else ""
        query = f"select * from {view.name}{arguments}"
        found = query_dataset(out, query)
        expected = []
        for name, trace in alone.items():
            answer = sql(trace, query)
            kept = [at for at, column in enumerate(answer.columns) if not column.endswith("_cycles")]
            expected += [(name, *(row[at] for at in kept)) for row in answer.rows()]
        assert sorted(found.rows(), key=str) == sorted(expected, key=str), view.name
        assert found.columns[0] == "trace"


@pytest.mark.thorough
def test_cycles_of_different_clocks_are_never_compared(traces, out):
    """One more trace, with a clock of 250 MHz: the same wait is a fourth as many cycles."""
    builder = TraceBuilder(rate=250_000_000).time_event(0).process_name(1, 7, "app").state("RUNNING", 3, 7, 1)
    builder.state("READY", 250, 7, 1).state("RUNNING", 325, 7, 1).state("RECEIVE", 25_000, 7, 1)
    builder.write(traces / "slow.kev")
    export.export_folder(traces, out, (*DEFAULT_TABLES, "argument", "thread_thready"))
    longest = "select trace, max(length_ns) from state where state = 'READY' group by trace order by 2 desc, 1 limit 2"
    assert query_dataset(out, longest).rows() == [("board 1/c=%.kev", 300), ("slow.kev", 300)]
    assert query_dataset(out, "select trace, most_ns from ready_wait order by 2 desc, 1 limit 2").rows() == [
        ("board 1/c=%.kev", 300), ("slow.kev", 300)
    ]  # fmt: skip
    tables = [*Dataset(out).tables, *(view.name for view in views().values() if not view.parameters)]
    for name in tables[:: usually(5, complete=1, thorough=1)]:
        columns = [row[0] for row in query_dataset(out, f"describe {name}").rows()]
        assert columns, name
        assert not [column for column in columns if column.endswith("_cycles")], name
    for refused, says in (
        ("select max(length_cycles) from state", "there is no length_cycles; there is length_ns"),
        ("select r.most_cycles from ready_wait r", "there is no most_cycles; there is most_ns"),
        ("select time_ns(1) from state", r"there is no time_ns\(\)"),
        ("select time_ns(1) from ready_wait", r"there is no time_ns\(\)"),
    ):
        with pytest.raises(UsageError, match=says):
            query_dataset(out, refused)
    counted = "select count(*) from argument where kind = 'thread_thready' and argument = 'tid' and number = 1"
    assert query_dataset(out, counted).rows() == [(4,)]
    assert query_dataset(out, "select count(*) from thread_thready where tid = 1").rows() == [(4,)]
    assert ("thread_thready", "table") in [row[:2] for row in query_dataset(out, "show tables").rows()]
    with pytest.raises(UsageError, match=r"is call_msg_sendv or .* meant"):
        export.export_folder(traces, out, ("call_msg_sendw",))


@pytest.mark.thorough
def test_a_data_set_of_an_older_version_is_exported_again(traces, out):
    export.export_folder(traces, out, TABLES)
    (out / MARK).write_text('{"satview": "fleet", "version": 1}\n')
    with pytest.raises(UsageError, match="of another version of satview; export its traces again"):
        query_dataset(out, "select 1")
    export.export_folder(traces, out, TABLES)
    assert query_dataset(out, "select 1 as n").rows() == [(1,)]


@pytest.mark.thorough
def test_a_query_says_in_how_many_traces_events_are_missing(traces, out):
    """One of four lost what was logged between 100 and 5,000 ns; its longest wait for the CPU may be longer."""
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("READY", 2, 7, 1)
    builder.state("RUNNING", 90, 7, 1).state("READY", 100, 7, 1).event(wire.CONTROL_BUFFER, 5000, (4, 0))
    builder.time_event(5000).state("RUNNING", 5100, 7, 1).write(traces / "lossy.kev")
    export.export_folder(traces, out)
    rows = query_dataset(out, "select count(*) from state")
    missing = "events are missing in 1 of 4 traces"
    assert (rows.lossy_traces, rows.not_all) == ({"lossy.kev"}, (missing,))
    for query_of_all in ("select count(*) from loss", "select 1"):
        assert query_dataset(out, query_of_all).not_all == ()
    longest = query.trend(out, "ready-longest")
    assert longest.records()[-1] == longest.records()[-1] | {
        "trace": "lossy.kev",
        "value": 88,
        "known": {"value": "estimate"},
    }
    assert missing in longest.cannot_tell
    assert [row.get("known") for row in query.trend(out, "lost").records()] == [None] * 4


@pytest.mark.thorough
def test_a_query_says_of_how_many_traces_it_cannot_tell(traces, out):
    """Three traces have no messages; of one of them the record is that of an older version, which does not say so."""
    send = wire.code(wire.WireClass.COMM, 0)
    with_message = (
        TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).event(send, 20, (1, 7)).write(traces / "d.kev")
    )
    export.export_folder(traces, out, ("message", "interrupt"))
    rows = query_dataset(out, "select trace from message")
    assert rows.rows() == [(with_message.name,)]
    assert rows.cannot_tell == ("message: the trace has no messages; capture the class COMM (3 of 4 traces)",)
    assert query_dataset(out, "select count(*) from trace").cannot_tell == ()
    record = Dataset(out).part("trace", "a.kev")
    table = pyarrow.parquet.read_table(record, partitioning=None)
    pyarrow.parquet.write_table(table.drop_columns(["cannot_show"]), record)
    assert query_dataset(out, "select trace from message").cannot_tell == (
        "message: the trace has no messages; capture the class COMM (2 of 4 traces)",
    )


@pytest.mark.thorough
def test_views_join_with_tables_and_each_other(traces, out):
    export.export_folder(traces, out)
    query = """select r.trace, r.most_ns, s.n from ready_wait r
               join (select trace, count(*) as n from state group by trace) s using (trace) order by 1"""
    assert [row[0] for row in query_dataset(out, query).rows()] == ["a.kev", "board 1/b.kev", "board 1/c=%.kev"]
    two = "select count(*) from load_per(1000) a join load_per(2000) b using (trace, cpu, bin)"
    assert query_dataset(out, two).rows()[0][0] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("query", fewer(["select * from load_per((select 1))", "select * from load_per(x) t(x)"], 1))
def test_macros_over_many_traces_take_numbers(traces, out, query):
    export.export_folder(traces, out)
    with pytest.raises(UsageError, match=r"the arguments of load_per\(bin_ns\) are numbers"):
        query_dataset(out, query)


def test_a_view_whose_table_is_missing_names_it(traces, out):
    export.export_folder(traces, out, ("event",))
    with pytest.raises(UsageError, match=r"needs the table .*, which the data set lacks; add it by"):
        query_dataset(out, "select * from thread_load")


@pytest.mark.thorough
def test_other_programs_read_it(traces, out):
    """The ways of docs/fleet.md: DuckDB by itself, Polars, Arrow."""
    import duckdb  # not while tests are collected: it reports leaks at the end then

    export.export_folder(traces, out, TABLES)
    names = {"a.kev", "board 1/b.kev", "board 1/c=%.kev"}
    lazy = pl.scan_parquet(f"{out}/state/**/*.parquet", hive_partitioning=True)
    waits = lazy.filter(pl.col("state") == "READY").group_by("trace").agg(pl.col("length_ns").max()).collect()
    assert dict(waits.iter_rows()) == {"a.kev": 100, "board 1/b.kev": 200, "board 1/c=%.kev": 300}
    table = pyarrow.dataset.dataset(out / "state", partitioning="hive").to_table()
    assert set(table.column("trace").to_pylist()) == names
    query = f"select distinct trace from read_parquet('{out}/state/**/*.parquet', hive_partitioning = true)"
    with duckdb.connect() as connection:
        assert {name for (name,) in connection.sql(query).fetchall()} == names


@pytest.mark.thorough
def test_traces_that_were_moved_are_written_again_with_their_new_paths(traces, out):
    export.export_folder(traces, out, TABLES)
    moved = traces.rename(traces.parent / "moved")
    assert export.export_folder(moved, out, TABLES).unchanged == 0
    paths = [path for (path,) in query_dataset(out, "select path from trace order by path").rows()]
    assert paths == [str(moved / name) for name in ("a.kev", "board 1/b.kev", "board 1/c=%.kev")]
    assert export.export_folder(moved, out, TABLES).unchanged == 3


@pytest.mark.thorough
def test_it_goes_on_where_it_stopped(traces, out):
    export.export_folder(traces, out, TABLES)
    before = modified(out)
    found = export.export_folder(traces, out, TABLES)
    assert (found.unchanged, found.done) == (3, [])
    assert modified(out) == before
    Dataset(out).part("trace", "a.kev").unlink()  # as if it had been stopped in the midst of this one
    ready(traces, "board 1/b.kev", 250)
    ready(traces, "new.kev", 50)
    found = export.export_folder(traces, out, TABLES)
    assert (found.unchanged, sorted(done.name for done in found.done)) == (1, ["a.kev", "board 1/b.kev", "new.kev"])
    after = modified(out)
    unchanged = "state/trace=board 1%2Fc%3D%25.kev/part.parquet"
    assert after[unchanged] == before[unchanged]
    query = "select max(length_ns) from state where state = 'READY' and trace = 'board 1/b.kev'"
    assert query_dataset(out, query).rows() == [(250,)]
    assert export.export_folder(traces, out, [*TABLES, "run"]).unchanged == 0, "a table more is needed of all of them"
    assert export.export_folder(traces, out, ["run"]).unchanged == 4


@pytest.mark.thorough
def test_damaged_files_are_reported_and_skipped(traces, out, capsys):
    (traces / "bad.kev").write_bytes(b"\0" * 100)
    (traces / "empty.kev").write_bytes(b"")
    assert main(["export", str(traces), "-o", str(out), "--table", "state", "--jobs", "1"]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"{out}: 3 traces written, 18 events, 2 skipped\n"
    assert "bad.kev skipped: bad.kev, byte 0x0" in printed.err
    with (out / "skipped.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["trace", "fault"]
    assert [name for name, _ in rows[1:]] == ["bad.kev", "empty.kev"]
    assert query_dataset(out, "select count(*) from trace").rows() == [(3,)]
    assert query.trend(out, "ready-longest").question.note.endswith(
        ", 2 files skipped by the last export (skipped.csv says why)"
    )
    (traces / "bad.kev").unlink()
    (traces / "empty.kev").unlink()
    assert main(["export", str(traces), "-o", str(out), "--table", "state"]) == 0
    assert not (out / "skipped.csv").exists()


def test_an_error_inside_costs_one_trace(traces, out, monkeypatch):
    from satview.fleet import export

    def fail(path):
        if path.name == "a.kev":
            raise RuntimeError("oh\nno")
        return open_trace(path)

    monkeypatch.setattr(export, "open_trace", fail)
    found = export.export_folder(traces, out, TABLES)
    assert [(each.name, each.fault) for each in found.skipped] == [
        ("a.kev", "an error inside satview: RuntimeError: oh")
    ]
    assert len(found.done) == 2


@pytest.mark.complete  # 3 s of starting processes; the benchmark runs them too
def test_several_processes(traces, out):
    found = export.export_folder(traces, out, TABLES, jobs=2)
    assert len(found.done) == 3
    assert query_dataset(out, "select count(*) from trace").rows() == [(3,)]


class FakePool:
    """Runs work here; `deadly` ends the process, and with it the pool."""

    def __init__(self, deadly):
        self.deadly, self.is_broken = deadly, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, todo, source, *more):
        future = Future()
        self.is_broken |= source.name == self.deadly
        if self.is_broken:
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(todo(source, *more))
        return future


def test_a_file_that_ends_its_process_costs_only_itself(traces, out, monkeypatch):
    monkeypatch.setattr(export, "_pool", lambda _: FakePool("board 1/b.kev"))
    found = export.export_folder(traces, out, TABLES, jobs=2)
    assert sorted(each.name for each in found.done) == ["a.kev", "board 1/c=%.kev"]
    [skipped] = found.skipped
    assert (skipped.name, skipped.fault[:40]) == ("board 1/b.kev", "the process that read it was ended, perh")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query",
    ["select * from read_csv('/etc/passwd')", "copy (select 1) to '{out}/x.csv'", "select * from glob('/*')",
     "select 1; select 2", "install httpfs", "set enable_external_access = true"],
)  # fmt: skip
def test_a_query_reads_the_data_set_only(traces, out, query):
    export.export_folder(traces, out, TABLES)
    with pytest.raises(UsageError):
        query_dataset(out, query.format(out=out))
    assert not (out / "x.csv").exists()


@pytest.mark.thorough
def test_the_commands(traces, out, capfd):
    assert main(["export", str(traces), "-o", str(out), "--jobs", "1", "--table", "state", "--table", "event"]) == 0
    assert capfd.readouterr().out == f"{out}: 3 traces written, 18 events\n"
    query = "select trace, count(*) as n from event group by trace order by trace limit 1"
    assert main(["query", str(out), query, "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ['"trace","n"', '"a.kev",6']


@pytest.mark.thorough
def test_descriptions_of_user_events_are_for_all_traces(traces, out, capfd):
    for number in (10, 20):
        builder = TraceBuilder().time_event(0).event(wire.code(6, 100), 5, (number, number + 1))
        builder.write(traces / f"user{number}.kev")
    described, short = traces / "a.xml", traces / "b.xml"
    form = '<eventdefinitions><eventclass name="User Events"><event id="100" sformat="{}"/>'
    form += "</eventclass></eventdefinitions>"
    described.write_text(form.format("%4u1d depth"))
    short.write_text(form.format("%4u1d depth %8u1d sum"))
    command = ["export", str(traces), "-o", str(out), "--pattern", "user*", "--table", "user_100"]
    for arguments, written in (
        ([], "2 traces written, 4 events"),
        (["--user-events", str(described)], "2 traces written, 4 events"),
        (["--user-events", str(described)], "0 traces written, 0 events, 2 unchanged"),
        ([], "2 traces written, 4 events"),
        (["--user-events", str(short)], "2 traces written, 4 events"),
    ):
        assert main([*command, *arguments]) == 0
        printed = capfd.readouterr()
        assert printed.out == f"{out}: {written}\n"
        is_short = arguments[-1:] == [str(short)]
        assert ("user20.kev: USREVENT EVENT 100: 1 of 1 event ends before 'sum'" in printed.err) is is_short
        if arguments[-1:] == [str(described)]:
            assert query_dataset(out, "select trace, depth, d1 from user_100 order by trace").rows() == [
                ("user10.kev", 10, 11), ("user20.kev", 20, 21)
            ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["traces", "-o", "old"], "it exists and is not a data set"),
        (["traces", "-o", "out.csv"], "out.csv: a data set is a folder; name one without .csv"),
        (["traces", "-o", "out", "--by-class"], "only be exported as whole tables"),
        (["traces", "-o", "out", "--jobs", "0"], "must be at least 1"),
        (["traces", "-o", "out", "--table", "nothing"], "there is no table 'nothing'"),
        (["traces", "-o", "out", "--table", "ready_wait"], "ready_wait is a view of SQL and no table; `satview query`"),
        (["traces", "-o", "out", "--pattern", "*.xyz"], "no file in it is called *.xyz"),
        (["traces/a.kev", "-o", "out.parquet", "--jobs", "2"], "are for a folder of traces"),
    ],
)
def test_bad_use(traces, arguments, says, monkeypatch, capsys):
    monkeypatch.chdir(traces.parent)
    (traces.parent / "old").mkdir()
    (traces.parent / "old" / "file").write_text("mine")
    assert main(["export", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert (traces.parent / "old" / "file").read_text() == "mine"
    assert not is_dataset(traces.parent / "old")


@pytest.mark.thorough
def test_traces_beside_a_thread_trace_are_exported(traces, out, capsys):
    """`python -m satview.threadtrace` writes its files into the current folder, where other traces may be."""
    shutil.copytree("sample_traces/threads", traces, dirs_exist_ok=True)
    for more in ([], ["--jobs", "1"]):
        assert main(["export", str(traces), "-o", str(out), "--table", "state", *more]) == 0
        assert f"{traces}: the thread trace in it is left out; name one of its files" in capsys.readouterr().err
    assert query_dataset(out, "select count(*) from trace").rows() == [(3,)]
    assert main(["export", str(traces), "-o", str(out.with_suffix(".csv"))]) == 0
    assert "397 rows of event" in capsys.readouterr().out, "one file holds the thread trace, as before"
    assert main(["export", "sample_traces/threads", "-o", str(out), "--jobs", "2"]) == 2
    assert "are for a folder of traces, and sample_traces/threads holds one thread trace" in capsys.readouterr().err


@pytest.mark.thorough
def test_any_name_of_a_folder(traces, tmp_path):
    """Brackets, stars and quotes mean nothing here."""
    out = tmp_path / "o[1]*'x'?"
    ready(traces, "it's [a] *.kev", 700)
    export.export_folder(traces, out, TABLES)
    query = "select max(length_ns) from state where trace = 'it''s [a] *.kev' and state = 'READY'"
    assert query_dataset(out, query).rows() == [(700,)]
    assert query_dataset(out, "select count(distinct trace) from state").rows() == [(4,)]


def test_other_names_of_files(traces, tmp_path):
    assert [source.name for source in find_sources(traces, ["read*.txt"])] == ["readme.txt"]
    assert len(find_sources(traces, out=traces / "board 1")) == 1, "a data set in the folder is no trace of it"


@pytest.mark.thorough
def test_a_bag_of_dask(traces, out):
    """Here by threads of this process; a cluster of processes is the next test."""
    todo = export.plan(traces, out, TABLES)
    done = export.fleet_bag(todo).compute(scheduler="sync")
    assert sorted(each.name for each in done) == ["a.kev", "board 1/b.kev", "board 1/c=%.kev"]
    assert query_dataset(out, "select count(*) from trace").rows() == [(3,)]


@pytest.mark.complete  # 4 s, most of it the start of a cluster
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_processes(traces, out):
    from distributed import LocalCluster

    (traces / "bad.kev").write_bytes(b"x")
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local:
        pids = {worker.pid for worker in local.workers.values() if hasattr(worker, "pid")}
        found = export.export_on_cluster(traces, out, local.scheduler_address, TABLES)
    assert os.getpid() not in pids
    assert (len(found.done), [each.name for each in found.skipped]) == (3, ["bad.kev"])
    assert query_dataset(out, "select count(*) from trace").rows() == [(3,)]


@pytest.mark.parametrize("package", ["dask", "distributed"])
def test_a_missing_package_is_named(traces, out, package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    if package == "dask":
        monkeypatch.setitem(sys.modules, "dask.bag", None)
        with pytest.raises(UsageError, match=r"pip install 'dask>="):
            export.fleet_bag(export.plan(traces, out, TABLES))
        return
    assert main(["export", str(traces), "-o", str(out), "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "pip install 'distributed>=" in capsys.readouterr().err


@pytest.fixture(scope="module")
def nightly(tmp_path_factory):
    """Nine traces; in number 6 the wait is fifty times as long as in the others."""
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(9):
        ready(folder / "nightly", f"{number}.kev", 5_000 if number == 6 else 100 + number)
    export.export_folder(folder / "nightly", folder / "fleet", ["state", "run"])
    return folder / "fleet"


@pytest.mark.thorough
def test_a_trend_and_its_outlier(nightly):
    found = query.trend(nightly, "ready-longest")
    assert found["value"].tolist() == [100, 101, 102, 103, 104, 105, 5000, 107, 108]
    assert query.middle(found["value"]) == 104
    far = found.rows(found["outlier"] != "")
    assert (len(far), far.text(0, "trace"), far.held(0, "start"), far.held(0, "end")) == (1, "6.kev", 1_000, 6_000)
    path, event = far.text(0, "path"), far.event(0)
    assert open_trace(path).spec(event).name == "THREADY"
    command = far.text(0, "command")
    assert command.startswith(f"satview {path} --range ")
    assert f"--select {event + 1}" in command
    assert query.location(far, 0).command == command


@pytest.mark.thorough
def test_every_metric_holds_for_every_trace(traces, out):
    export.export_folder(traces, out)
    for name, metric in query.metrics().items():
        found = query.trend(out, name)
        assert len(found) == 3
        is_unknown = [found.text(row, "value") == "unknown" for row in range(3)]  # there are no interrupts
        assert np.isnan(found["value"]).tolist() == is_unknown or not metric.is_zero, name
    load = query.trend(out, "cpu-load").records()[0]
    trace = open_trace(traces / load["trace"])
    busy = int(trace.statistics().cpus.busy_cycles.sum())
    assert load["value"] == pytest.approx(busy / trace.window.length)


@pytest.mark.thorough
def test_a_metric_of_ones_own(nightly):
    found = query.trend(nightly, "select trace, count(*) as value from run group by trace")
    assert set(found["value"].tolist()) == {2.0}
    assert found.text(0, "value") == "2"
    lower = query.trend(nightly, "select trace, -0.5 as value from trace where trace <> '8.kev'")
    assert [row["value"] for row in lower.sorted_by("value")] == [-0.5] * 8 + [None]
    with pytest.raises(UsageError, match="it needs trace and value"):
        query.trend(nightly, "select 1 as x")
    with pytest.raises(UsageError, match="there is no metric 'nothing'"):
        query.trend(nightly, "nothing")
    with pytest.raises(UsageError, match="is not a number"):
        query.trend(nightly, "select trace, 'x' as value from trace")


@pytest.mark.parametrize(
    ("values", "far"),
    [
        ([1, 2, 3, 2, 1, 2, 100], [6]),
        ([5, 5, 5, 5, 5, 5, 9], [6]),  # more than half are equal
        ([5, 5, 5, 5, 5], []),
        ([1, 2, 3, 1000], []),  # too few for a rule
        ([1, 2, 3, 2, 1, float("nan"), -50], [6]),
        ([], []),
    ],
)
def test_outliers(values, far):
    assert np.flatnonzero(query.outliers(np.array(values, np.float64))).tolist() == far


@pytest.mark.thorough
def test_the_command_trends(nightly, capsys):
    assert main(["trends", str(nightly)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Longest wait for a CPU  median 104 ns, 9 traces, 1 far from the others"
    assert [line.split()[0] for line in lines if "--select" in line] == ["6.kev"]
    assert main(["trends", str(nightly), "--outliers", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "trace,begin,value,outlier,start_ns,event,path,command"
    assert lines[1].startswith("6.kev,2021-10-21T07:57:59.294967+00:00,5000.0,far from the others,1000,")
    constant = "select trace, 1 as value from trace"
    assert main(["trends", str(nightly), "-m", constant, "--outliers"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No trace is far from the others."
    assert main(["trends", "--list"]) == 0
    assert "ready-longest" in capsys.readouterr().out
    assert main(["trends", str(nightly.parent)]) == 2
    assert "no data set of traces" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_figure_that_a_trace_cannot_show_is_unknown_and_a_count_of_nothing_a_bound(tmp_path, out):
    """One trace has states and an interrupt, the other one an event of the user alone."""
    (tmp_path / "traces").mkdir()
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1)
    builder.event(wire.code(wire.WireClass.INT, 1), 20, (3, 0)).event(wire.code(wire.WireClass.INT, 2), 30, (3, 0))
    builder.state("READY", 50, 7, 1).write(tmp_path / "traces" / "all.kev")
    TraceBuilder().time_event(0).event(wire.code(wire.WireClass.USER, 1), 90).write(tmp_path / "traces" / "few.kev")
    export.export_folder(tmp_path / "traces", out)
    for metric, all_text in (("mutex-longest", "0 ns"), ("migrations", "0.0 /s"), ("lost", "0 ns")):
        found = query.trend(out, metric)
        assert [found.text(row, "value") for row in (0, 1)] == [all_text, "0 ns" if metric == "lost" else "unknown"]
    assert (
        query.trend(out, "migrations").records()[1] | {"value": None, "known": {"value": "unknown"}}
        == (query.trend(out, "migrations").records()[1])
    )
    rate = query.trend(out, "interrupt-rate")
    assert rate.text(1, "value") == "unknown"
    assert query.middle(rate["value"]) == rate["value"][0] > 0
    assert ", 2 traces, 1 without a value, 0 far" in rate.question.note
    assert query.trend(out, "verdicts").text(1, "value") == "≥ 0"
    assert "the trace has no states of threads" in query.trend(out, "verdicts").cannot_tell

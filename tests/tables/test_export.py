"""`satview export` and `satview query`: what is written reads back as it was, and bad use is one sentence."""

import io
import json
import re
import sys

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.activities import read_timing
from satview.base.errors import WriteError
from satview.events import wire
from satview.export import tables
from satview.export.tables import WRITERS, write_csv
from satview.opened import open_trace
from satview.tables.schema import SCHEMAS
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop

DENSE = "sample_traces/dense-4cpu.kev"
VENDOR = "sample_traces/vendor-all_classes.kev"


@pytest.fixture(scope="module")
def dense():
    return open_trace(DENSE)


def read_parquet(path):
    import pyarrow.parquet as pq

    return pq.read_table(path)


def read_csv(path):
    import pyarrow.csv  # as above

    return pyarrow.csv.read_csv(path)


def read_arrow(path):
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


@pytest.mark.thorough
def test_events_as_parquet(dense, tmp_path):
    assert main(["export", DENSE, "-o", str(tmp_path / "a.parquet")]) == 0
    found, events = read_parquet(tmp_path / "a.parquet"), dense.table("event")
    assert tuple(found.column_names) == events.columns
    for name in found.column_names:
        assert np.array_equal(found[name].to_numpy(), events[name]), name
    reported = {
        key.decode(): value.decode() for key, value in found.schema.metadata.items() if key.startswith(b"satview")
    }
    assert (reported["satview.table"], reported["satview.release"]) == ("event", "7.x")
    assert int(reported["satview.cycles_per_s"]) == dense.clock.cycles_per_s
    assert int(reported["satview.start_cycles"]) == dense.clock.start_cycles
    size = (tmp_path / "a.parquet").stat().st_size
    assert size < 6 * len(dense.events)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", fewer(("parquet", "arrow"), 1))
def test_every_table_reads_back(kind, tmp_path):
    trace = open_trace(VENDOR)
    assert main(["export", VENDOR, "-o", str(tmp_path / "all"), "--table", "all", "--format", kind]) == 0
    read = {"parquet": read_parquet, "arrow": read_arrow}[kind]
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == sorted(f"{name}.{kind}" for name in SCHEMAS)
    for name in SCHEMAS:
        expected = trace.table(name).arrow()
        found = read(tmp_path / "all" / f"{name}.{kind}")
        for column in found.column_names:
            assert found[column].to_pylist() == expected[column].to_pylist(), (name, column)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_arguments_in_files(kind, tmp_path):
    trace = open_trace(VENDOR)
    read = {"parquet": read_parquet, "arrow": read_arrow, "csv": read_csv}[kind]
    assert main(["export", VENDOR, "--arguments", "-o", str(tmp_path / f"a.{kind}")]) == 0
    found, expected = read(tmp_path / f"a.{kind}"), trace.table("argument").arrow()
    assert found.num_rows == sum(len(event.arguments) for event in trace.iter_events()) > 50
    for name in ("event", "time_ns", "kind", "argument", "number"):
        assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.thorough
def test_arguments_of_some_events(dense, tmp_path, capfd):
    assert main(["export", DENSE, "--arguments", "-o", str(tmp_path / "kinds")]) == 0
    kinds = {path.stem: read_parquet(path) for path in (tmp_path / "kinds").iterdir()}
    assert sum(found.num_rows for found in kinds.values()) == len(dense.events)
    assert kinds["user_100"]["d0"].to_pylist() == dense.arguments("EVENT 100")["d0"].tolist()
    capfd.readouterr()
    for path, table in (("sends.parquet", "call_msg_sendv"), ("long.parquet", "argument")):
        where = ["--table", table, "-e", "event == MSG_SENDV and class == KER_CALL", "--range", "0..10ms"]
        assert main(["export", DENSE, "-o", str(tmp_path / path), *where]) == 0
    sends, long = read_parquet(tmp_path / "sends.parquet"), read_parquet(tmp_path / "long.parquet")
    assert sends.num_rows == 12
    assert max(sends["time_ns"].to_pylist()) < 10_000_000
    assert set(long["event"].to_pylist()) == set(sends["event"].to_pylist())
    assert main(["export", DENSE, "-o", str(tmp_path / "no.csv"), "--table", "call_msg_sendw"]) == 2
    assert "is call_msg_sendv or call_msg_sendvnc meant?" in capfd.readouterr().err


XML = '<a><datakey format="%4ux shown" offset="4"><event class="6" id="100"/><odd/></datakey></a>'


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["query", DENSE, "select count(*) from user_100 where shown = d1", "--format", "csv"], "353"),
        (["stats", DENSE, "--filter", "arg.shown >= 0", "--range", "0..1ms"], ""),
        (["look", DENSE, "--handle", "e-USER"], "shown"),
        (["export", DENSE, "-e", "arg.shown >= 0", "-o", "OUT.csv", "--format", "list"], "353 events"),
        (
            ["export", DENSE, "-e", "arg.shown == 0", "-o", "-", "--format", "list"],
            '"d0=0x00000013 d1=0x00000000 shown=""0x0"""\n',
        ),
        (["traceprinter", DENSE, "--class", "USREVENT"], "EVENT:100          d0:0x00000013 d1:0x00000000 shown:0x0\n"),
        (["traceprinter", DENSE, "--class", "USREVENT", "--format", "jsonl"], '"d1": "0x00000000", "shown": "0x0"}}\n'),
    ],
)
def test_every_command_knows_described_fields(command, says, dense, capfd, tmp_path):
    (tmp_path / "u.xml").write_text(XML)
    user = int(np.flatnonzero(dense.events.code == wire.code(wire.WireClass.USER, 100))[0])
    command = [word.replace("OUT", str(tmp_path / "out")).replace("e-USER", f"e-{user + 1}") for word in command]
    assert main([*command, "--user-events", str(tmp_path / "u.xml")]) in (0, 1)
    reported = capfd.readouterr()
    assert says in reported.out
    assert "u.xml: line 1: 'odd' in datakey is not understood and was passed over" in reported.err


def test_the_file_of_descriptions_is_never_written_over(capfd, tmp_path):
    (tmp_path / "u.xml").write_text(XML)
    assert (
        main(
            [
                "export",
                DENSE,
                "--user-events",
                str(tmp_path / "u.xml"),
                "--format",
                "csv",
                "-o",
                str(tmp_path / "u.xml"),
            ]
        )
        == 2
    )
    assert "u.xml" in capfd.readouterr().err
    assert (tmp_path / "u.xml").read_text() == XML


@pytest.mark.thorough
def test_events_by_class(dense, tmp_path):
    import duckdb

    folder = tmp_path / "dense"
    assert main(["export", DENSE, "-o", str(folder), "--by-class"]) == 0
    assert {path.name for path in folder.iterdir()} == {f"class={name}" for name in dense.class_counts()}
    counted = duckdb.sql(f"select class, count(*) from '{folder}/*/*.parquet' group by 1").fetchall()
    assert dict(counted) == dense.class_counts()
    times = duckdb.sql(f"select time_cycles from '{folder}/*/*.parquet' order by event").fetchnumpy()["time_cycles"]
    assert np.array_equal(times, dense.events.time_cycles)


def test_json_lines_and_csv(tmp_path, capfd):
    trace = open_trace(VENDOR)
    calls = trace.table("call")
    assert main(["export", VENDOR, "-o", "-", "--table", "call", "--format", "jsonl"]) == 0
    reported = capfd.readouterr()
    rows = [json.loads(line) for line in reported.out.splitlines()]
    assert [row["name"] for row in rows] == calls["name"].tolist()
    assert [row["start_cycles"] for row in rows] == calls["start_cycles"].tolist()
    assert [-1 if row["end_ns"] is None else row["end_ns"] for row in rows] == calls["end_ns"].tolist()
    assert f"{len(calls)} rows of call" in reported.err
    assert main(["export", VENDOR, "-o", str(tmp_path / "a.csv"), "--table", "call"]) == 0
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].split(",")[:3] == ['"event"', '"exit_event"', '"cpu"']
    assert len(lines) == len(calls) + 1


def test_selected_events(dense, tmp_path):
    out = tmp_path / "a.parquet"
    assert main(["export", DENSE, "-o", str(out), "-e", "class == COMM", "--range", "1s..2s"]) == 0
    rows = read_parquet(out)["event"].to_numpy()
    inside = dense.rows_between(type(dense.window)(dense.clock.cycles(10**9), dense.clock.cycles(2 * 10**9)))
    expected = dense.select("class == COMM")
    assert rows.tolist() == expected[(expected >= inside.start) & (expected < inside.stop)].tolist()
    assert main(["export", DENSE, "-o", str(tmp_path / "a.kev"), "-e", "class == COMM"]) == 0
    assert open_trace(tmp_path / "a.kev").class_counts()["COMM"] == dense.class_counts()["COMM"]


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        # 4 of 5 events: the BUFFER event is another one in the new file.
        (["a.kev"], ["a.kev: 4 of 5 events", "1 BUFFER events are not copied: the new file has its own, "]),
        (["a.kev", "--range", "#3..#4", "-e", "class == USER"],
         ["a.kev: 1 of 5 events", "3 events are outside of the range", "1 event does not fit the filter"]),
        (["a.csv", "--format", "list"], ["a.csv: 5 events"]),
        (["a.csv"], ["a.csv: 5 rows of event", "arguments are left out: a table has the same columns for all events"]),
        (["a.csv", "--table", "cpu"], ["a.csv: 1 row of cpu"]),
        (["a.pftrace"], ["a.pftrace: ", "arguments of events are left out"]),
        (["a.json"], ["a.json: ", "arguments of events are left out",
                      "events that are not slices are left out: 2 of CONTROL, 1 of USREVENT, 1 of pulses"]),
    ],
)  # fmt: skip
def test_what_is_left_out_is_said(arguments, lines, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10, 2, 1)
    builder.event(wire.code(wire.WireClass.USER, 5), 20, (1, 2)).event(wire.code(wire.WireClass.COMM, 1), 30, (1, 2))
    builder.write(tmp_path / "in.kev")
    assert main(["export", "in.kev", *arguments]) == 0
    about_kev = re.compile(r"  [0-9,]+ (more to keep|generated|slots).*")
    printed = [line.strip() for line in capfd.readouterr().out.splitlines() if not about_kev.fullmatch(line)]
    assert len(printed) == len(lines)
    for line, begin in zip(printed, lines, strict=True):
        assert line.startswith(begin)


def test_names_are_no_formulas(tmp_path):
    trace = TraceBuilder().time_event(0).process_name(1, 7, "=cmd()\x1b[2J").open(tmp_path)
    out = io.BytesIO()
    write_csv(tables.arrow_of(trace, "process"), out)
    assert "'=cmd()" in out.getvalue().decode()
    assert b"\x1b" not in out.getvalue()


def test_an_empty_table_can_be_written(tmp_path):
    trace = TraceBuilder().open(tmp_path)
    for kind in WRITERS:
        for name in ("event", "verdict", "loss"):
            assert tables.write_table(trace, tmp_path / f"{name}.{kind}", name, kind) == 0


def test_nothing_is_left_of_a_folder_that_fails(dense, tmp_path, monkeypatch):
    def fail(_found, _stream):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(WRITERS, "csv", fail)
    with pytest.raises(WriteError, match="No space left"):
        tables.write_folder(dense, tmp_path / "out", ["cpu", "process"], "csv")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()
    with pytest.raises(WriteError, match="it exists"):
        tables.write_folder(dense, tmp_path / "out", ["cpu"], "parquet")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "a.xyz"], "the file extension selects the format"),
        (["-o", "folder/"], "a folder takes --arguments, --by-class or --table all"),
        (["-o", "a.kev", "--table", "state"], "a .kev file holds events alone"),
        (["-o", "a.csv", "--table", "stat"], "there is no table 'stat'"),
        (
            ["-o", "a.csv", "--table", "ready_wait"],
            'ready_wait is a view of SQL and no table; `satview query` writes it: "from ready_wait"',
        ),
        (
            ["-o", "a.csv", "--table", "LOAD_PER"],
            'load_per is a macro of SQL and no table; `satview query` writes it: "from',
        ),
        (["-o", "a.csv", "--table", "state", "-e", "cpu == 1"], "choose events"),
        (
            ["-o", "a.csv", "--table", "state", "--table", "run"],
            "a.csv: several tables are files of a folder; name one",
        ),
        (["-o", "a.PARQUET", "--table", "all", "--format", "csv"], "name one without .PARQUET, and --format csv"),
        (["-o", "a.arrow", "--by-class"], "a.arrow: the events by class are files of a folder"),
        (["-o", "a", "--table", "state", "--by-class"], "--by-class is for the table event"),
        (["-o", "no/such/a.csv"], "a.csv: there is no folder 'no/such'; make it first"),
        (["-o", "no/a", "--table", "all"], "a: there is no folder 'no'; make it first"),
        (["a.csv", "-o", "b.csv"], "two outputs are given, a.csv and b.csv"),
        ([], "-o OUT is missing"),
    ],
)
def test_bad_use_of_export(arguments, says, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    TraceBuilder().time_event(0).write(tmp_path / "in.kev")
    assert main(["export", "in.kev", *arguments]) == 2
    assert says in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.kev"]


def test_a_missing_package_is_named(monkeypatch, tmp_path, capfd):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["export", VENDOR, "-o", str(tmp_path / "a.csv")]) == 2
    assert "pip install 'pyarrow>=" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(["export", VENDOR, str(tmp_path / "a.kev")]) == 0, "that needs none; -o may be left out"


@pytest.mark.thorough
def test_query(capfd, tmp_path):
    query = "select cpu, busy_cycles, label from cpu_load join cpu using (cpu) where cpu < 2 order by cpu"
    assert main(["query", DENSE, query]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].split() == ["cpu", "busy_cycles", "label"]
    assert lines[-1] == "2 rows"
    assert main(["query", DENSE, query, "--format", "json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["label"] for row in rows] == ["CPU 0", "CPU 1"]
    assert main(["query", DENSE, query, "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines()[1] == f'0,{rows[0]["busy_cycles"]},"CPU 0"'
    assert main(["query", DENSE, query, "--format", "parquet", "-o", str(tmp_path / "a.parquet")]) == 0
    assert read_parquet(tmp_path / "a.parquet").to_pylist() == rows


def test_query_from_standard_input(capfd, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("select count(*) as n from cpu"))
    assert main(["query", DENSE, "-", "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ['"n"', "4"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["show tables"], ['"name","kind","meaning"', '"event","table","Every event, in time order."']),
        (["SHOW", "ALL", "TABLES;"], ['"name","kind","meaning"', '"event","table","Every event, in time order."']),
        (["describe", "cpu"], ['"column_name","column_type","null","key","default","extra"',
                               '"cpu","UTINYINT","YES",,,']),
        (["select 7 as n"], ['"n"', "7"]),
        (["select", "7", "as", "n"], ['"n"', "7"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["{option} {file} {query}", "{file} {option} {query}", "{file} {query} {option}"])
def test_what_is_typed_first_works(words, lines, order, capfd, tmp_path):
    """With options in any position, without quotes, and with the format that the output's ending names."""
    for option in (["--format", "csv"], ["-o", str(tmp_path / "rows.csv")]):
        parts = {"{option}": option, "{file}": [VENDOR], "{query}": words}
        assert main(["query", *(word for part in order.split() for word in parts[part])]) == 0
    printed = capfd.readouterr().out
    assert printed.splitlines()[:2] == lines
    assert (tmp_path / "rows.csv").read_text() == printed


@pytest.mark.thorough
def test_tables_that_are_shown_can_be_queried(capfd):
    trace = open_trace(VENDOR)
    rows = trace.sql("show tables").rows()
    tables = [name for name, kind, _ in rows if kind == "table"]
    assert set(SCHEMAS) < set(tables)
    of_kinds = [len(trace.sql(f"from {name}")) for name in tables if name not in SCHEMAS]
    assert 0 not in of_kinds
    assert sum(of_kinds) == len(trace.events)
    assert ("load_per(bin_ns)", "macro") in [row[:2] for row in rows]
    assert main(["query", VENDOR, "describe load_per"]) == 2
    assert "it is a macro: `from load_per(bin_ns)`" in capfd.readouterr().err


def test_query_lists_what_there_is(capfd):
    assert main(["query", "--list"]) == 0
    out = capfd.readouterr().out
    assert "load_per(bin_ns)" in out
    assert all(f"\n{name} " in f"\n{out}" for name in SCHEMAS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "FILE is missing"),
        ([VENDOR], "a query is missing"),
        ([VENDOR, "select nothing from event"], '"nothing" not found'),
        ([VENDOR, "select 1", "-o", "a.xls"], "-o needs --format"),
        ([VENDOR, "select 1", "a.csv"], "expected one QUERY but got 2 arguments; use -o FILE"),
        ([VENDOR, "select 1", "--json"], "--format {table,csv,json,parquet}"),
        ([VENDOR, "select 1", "--time-limit", "0"], "above 0"),
        ([VENDOR, "select count(*) from range(100000000000) a(i) where i % 7 = 3", "--time-limit", "0.1"], "0.1 s"),
    ],
)
def test_bad_use_of_query(arguments, says, capfd):
    assert main(["query", *arguments]) == 2
    reported = capfd.readouterr()
    assert says in reported.err
    assert reported.out == ""


@pytest.mark.thorough
def test_tables_on_activities_follow_a_file_of_timing(tmp_path, capsys):
    """Of 40 rounds 3 are slow."""
    path, timing = str(rounds_of_a_loop().write(tmp_path / "loop.kev")), tmp_path / "timing.toml"
    timing.write_text('[control]\ndeadline = "5us"\n')
    out = tmp_path / "activity.csv"
    assert main(["export", path, "--table", "activity", "-c", str(timing), "-o", str(out)]) == 0
    [row] = read_csv(out).filter(pa_equal("activity", "control 1")).to_pylist()
    assert (row["deadline_ns"], row["deadline_from"], row["misses"]) == (5000, "said", 3)
    assert main(["export", path, "--table", "activity", "-o", str(out)]) == 0
    [row] = read_csv(out).filter(pa_equal("activity", "control 1")).to_pylist()
    assert (row["deadline_from"], row["misses"]) == ("period", 0)
    assert open_trace(path).export(tmp_path / "both", ["activity", "blame"], timing=read_timing(timing)) > 40
    capsys.readouterr()
    assert main(["export", path, "--table", "state", "-c", str(timing), "-o", str(out)]) == 2
    assert "a timing file is for the tables on activities: activity, activity_instance" in capsys.readouterr().err
    assert main(["export", str(tmp_path), "-c", str(timing), "-o", str(tmp_path / "fleet")]) == 2
    assert "--timing is for one trace" in capsys.readouterr().err


def pa_equal(column, value):
    import pyarrow.compute as pc

    return pc.field(column) == value


def test_an_empty_table_is_written_with_the_reason(tmp_path, capsys):
    path = str(TraceBuilder().time_event(0).write(tmp_path / "t.kev"))
    assert main(["export", path, "-o", str(tmp_path / "state.csv"), "--table", "state"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["  state: the trace has no states of threads; capture the class THREAD whole"]
    names = [word for name in ("call", "loss", "cpu") for word in ("--table", name)]
    assert main(["export", path, "-o", str(tmp_path / "out"), *names]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("out: 1 row of call, loss, cpu")
    assert lines[1:] == ["  call: the trace has no kernel calls; capture the class KERCALL"]

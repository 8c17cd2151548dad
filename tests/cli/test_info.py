"""`satview info`: what it prints, and the exit codes."""

import json
import subprocess
import sys

import pytest

from satview.__main__ import main
from satview.events import wire
from tests.helpers.kev import TraceBuilder
from tests.helpers.shared import shared_path


def info(capsys, *args):
    code = main(["info", *map(str, args)])
    streams = capsys.readouterr()
    return code, streams.out, streams.err


@pytest.fixture
def trace_path(tmp_path):
    builder = TraceBuilder(cpus=2).time_event(0).process_name(5, 7, "server").state("RUNNING", 10, 7, 1, cpu=1)
    return (
        builder.call(11, 1_000_000, (3, 4), cpu=1)
        .event(wire.code(7, 0), 2_500_000, (1, 7), cpu=1)
        .write(tmp_path / "t.kev")
    )


def test_json(trace_path, capsys):
    code, out, err = info(capsys, trace_path, "--json")
    reported = json.loads(out)
    assert (code, err) == (0, "")
    assert (reported["release"], reported["sys_release"], reported["cpus"], reported["slots"], reported["events"]) == (
        "7.x",
        "7.1.0",
        2,
        6,
        5,
    )
    assert reported["duration_ns"] == 2_500_000
    assert reported["classes"] == {"CONTROL": 1, "KER_CALL": 1, "PROCESS": 1, "THREAD": 1, "COMM": 1}
    assert reported["problems"] == []
    assert reported["header"]["NODENAME"] == "localhost"
    assert reported["boot_time_s"] == 1_634_803_075


def test_page(trace_path, capsys):
    code, out, _ = info(capsys, trace_path)
    assert code == 0
    for text in (
        "7.1.0 (tables of 7.x)",
        "2.500 ms",
        "6 slots, 5 events",
        "cpu-1 1000 MHz",
        "KER_CALL",
        "The file has no problems.",
    ):
        assert text in out


def test_problems_that_cost_data_give_1(trace_path, capsys):
    trace_path.write_bytes(trace_path.read_bytes() + b"half")
    code, out, _ = info(capsys, trace_path, "--json")
    assert code == 1
    assert [(p["slug"], p["count"]) for p in json.loads(out)["problems"]] == [("partial-slot", 1)]
    code, out, _ = info(capsys, trace_path)
    assert code == 1
    assert "Last slot cut short" in out


def test_no_trace_gives_2_and_one_sentence(tmp_path, capsys):
    path = tmp_path / "x.kev"
    path.write_bytes(b"not a trace")
    code, out, err = info(capsys, path)
    assert (code, out) == (2, "")
    assert err.startswith("satview: x.kev, byte 0x0: ")
    assert err.count("\n") == 1


def test_bad_use_gives_2(capsys):
    assert main(["info"]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["all_classes.results.txt", "traceprinter_quad.results.txt"])
def test_listings(name, capsys):
    code, out, _ = info(capsys, shared_path(f"golden/{name}"), "--json")
    reported = json.loads(out)
    assert (code, reported["format"], reported["release"], reported["sys_release"]) == (
        0,
        "traceprinter",
        "6.x",
        "6.1.0",
    )


@pytest.mark.thorough
def test_the_real_7_1_capture(capsys):
    code, out, _ = info(capsys, shared_path("real/qnx71-ker_call.traceprinter.txt"), "--json")
    reported = json.loads(out)
    assert (code, reported["release"], reported["events"], reported["cpus"]) == (0, "7.x", 13_865, 1)
    assert reported["classes"]["SYSTEM"] == 7606


def test_time_below_zero_is_printed_as_the_64_bit_counter_has_it(tmp_path, capsys):
    builder = TraceBuilder(start=0)
    builder.writer.event(wire.code(wire.WireClass.USER, 7), 0, 0xF0000000, (1, 2))
    builder.writer.event(wire.CONTROL_TIME, 0, 0x100, (0, 0x100))
    builder.writer.event(wire.code(wire.WireClass.USER, 7), 0, 0x200, (1, 2))
    path = builder.write(tmp_path / "below.kev")
    assert "from 0xfffffffff0000000 to 0x200 cycles" in info(capsys, path)[1]
    assert main(["traceprinter", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "\nt:0xfffffffff0000000 CPU:00" in printed
    assert "0x-" not in printed


def test_the_lines_of_a_listing_are_counted_by_kind(tmp_path, capsys):
    path = tmp_path / "serial.txt"
    path.write_text(
        " -- KERNEL EVENTS -- \n# \nt:0x00000001 CPU:00 THREAD  :THREADY       pid:1 tid:1 \n"
        "login: \nt:0x00000002 CPU:00 PROCESS :PROCCREATE_NAME\n   ppid:1\nhello\n   pid:2\n   name:sh\n\n"
    )
    main(["info", "--json", str(path)])
    assert json.loads(capsys.readouterr().out)["lines"] == {
        "title": 1,
        "event": 2,
        "part of event": 3,
        "blank": 1,
        "foreign": 3,
    }
    main(["info", str(path)])
    assert "1 title, 2 event, 3 part of event, 1 blank, 3 foreign" in capsys.readouterr().out


@pytest.mark.thorough
def test_a_small_file_is_described_and_added_up_without_what_that_does_not_need(trace_path):
    program = (
        "import sys; from satview.__main__ import main; main(['info', sys.argv[1]]); main(['stats', sys.argv[1]]);"
        "unneeded = 'concurrent.futures PySide6 duckdb pyarrow';"
        "print('unneeded:', *(name for name in unneeded.split() if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(trace_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "unneeded:"

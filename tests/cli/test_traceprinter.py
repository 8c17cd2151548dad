"""`satview traceprinter` as a user runs it: files, pipes, exit codes."""

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest

from satview.__main__ import main
from satview.events import wire
from satview.formats.kev.header import SlotWriter, header_bytes
from satview.formats.registry import open_trace
from tests.helpers.kev import TraceBuilder

PAIRS = [("LITTLE_ENDIAN", "TRUE"), ("CYCLES_PER_SEC", "1000"), ("SYS_RELEASE", "6.4.1"), ("SYSPAGE_LEN", "0")]


def kev(count=3):
    writer = SlotWriter()
    for stamp in range(count):
        writer.event(wire.THREAD_RUNNING, 0, stamp, [1, 1 + stamp % 3])
    return header_bytes(PAIRS) + writer.slots().astype("<u4").tobytes()


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "x.kev"
    file.write_bytes(kev())
    return file


def test_prints_a_file_and_says_all_is_well(path, capsys):
    assert main(["traceprinter", "-f", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("TRACEPRINTER version 1.02\n")
    assert out.endswith("t:0x00000002 CPU:00 THREAD  :THRUNNING     pid:1 tid:3 \n")
    assert main(["traceprinter", str(path)]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("command", ["traceprinter", "export"])
def test_a_name_that_is_not_utf8_survives_a_listing(command, tmp_path):
    """The bytes go to the listing, and from there into a .kev file, as they were."""
    raw, listing = b"s\xffow_\xe9erver", tmp_path / "x.txt"
    builder = TraceBuilder().time_event(0).process_name(1, 7, raw.decode("utf-8", "surrogateescape"))
    first = builder.state("RUNNING", 2, 7, 1).write(tmp_path / "x.kev")
    assert main([command, str(first), "-o", str(listing)]) == 0
    assert b"name:" + raw + b"\n" in listing.read_bytes()
    assert main(["export", str(listing), "-o", str(tmp_path / "again.kev")]) == 0
    for name in ("x.kev", "x.txt", "again.kev"):
        trace = open_trace(tmp_path / name)
        row = trace.events.code.tolist().index(wire.PROC_CREATE_NAME)
        assert trace.payloads.raw(row)[8:].rstrip(b"\0") == raw, name


def test_writes_to_a_file(path, tmp_path, capsys):
    assert main(["traceprinter", "-f", str(path), "-o", str(tmp_path / "out.txt")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "out.txt").read_bytes().count(b"THRUNNING") == 3


def test_options_reach_the_printer(path, capsys):
    assert main(["traceprinter", str(path), "--format", "csv", "--tid", "2,3", "--from", "1ms", "--to", "0.002s"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ['1000000,1,0,1,2,THREAD,THRUNNING,"pid=1 tid=2"']
    assert (
        main(
            [
                "traceprinter",
                str(path),
                "--layout",
                "7",
                "--time",
                "ns",
                "--class",
                "THREAD",
                "--event",
                "THRUNNING",
                "--cpu",
                "0",
                "--pid",
                "0x1",
            ]
        )
        == 0
    )
    assert "t:0.001000000s CPU:00 THREAD          :THRUNNING          pid:1 tid:2\n" in capsys.readouterr().out


def test_damage_that_costs_data_is_reported_after_printing(path, capsys):
    path.write_bytes(kev() + b"xyz")
    assert main(["traceprinter", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("THRUNNING") == 3
    assert "Last slot cut short" in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-f", "there-is-no-such-file"],
        ["--pid", "x"],
        ["--event", "NO_SUCH"],
        ["--class", "NO_SUCH"],
        ["--from", "soon"],
        ["--layout", "9"],
        ["--format", "xml"],
    ],
)
def test_bad_use_is_one_sentence_and_code_2(path, arguments, capsys):
    given = arguments if "-f" in arguments else [str(path), *arguments]
    assert main(["traceprinter", *given]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"no trace at all\n", b"TRACE_HEADER_BEGIN::TRACE_DATE::"])
def test_what_is_no_trace_is_code_2(path, data, capsys):
    path.write_bytes(data)
    assert main(["traceprinter", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_reads_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(kev())))
    assert main(["traceprinter", "-f", "-"]) == 0
    assert capsys.readouterr().out.count("THRUNNING") == 3


@pytest.mark.thorough
def test_two_traces_are_refused(path, tmp_path, capsys):
    for options in (["-f", "b.kev", str(path)], [str(path), "-f", "b.kev", "-o", str(tmp_path / "out")]):
        assert main(["traceprinter", *options]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert (
            printed.err
            == f"satview traceprinter: two traces are given, -f b.kev and {path}; one is printed at a time\n"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
def test_a_closed_pipe_ends_quietly(path):
    path.write_bytes(kev(200_000))
    command = [sys.executable, "-m", "satview", "traceprinter", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(timeout=30)
    assert errors == b""
    assert process.returncode == 0


def test_every_notation_of_a_range(path, capsys):
    """The trace has 1000 cycles per second and events at 0, 1 and 2."""
    for words, times in (
        (["--range", "#2.."], ["1", "2"]),
        (["--range", "0x1..2cy"], ["1"]),
        (["--range", "-1ms.."], ["2"]),
        (["--from", "-2ms", "--to", "#3"], ["1"]),
        (["--range", "0%..34%"], ["0"]),
    ):
        assert main(["traceprinter", str(path), "--format", "csv", *words]) == 0
        assert [line.split(",")[1] for line in capsys.readouterr().out.splitlines()[1:]] == times, words


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--pid", "99"], "none of 3 events fits --pid 99"),
        (["--cpu", "9,10", "--format", "csv"], "none of 3 events fits --cpu 9,10"),
        (["--class", "COMM"], "none of 3 events fits --class COMM"),
        (["--class", "KER_CALL", "--event", "MSG_SENDV"], "none of 3 events fits --class KER_CALL --event MSG_SENDV"),
        (["--from", "1100us", "--to", "1900us"], "no event is in the range"),
        (["--tid", "3", "--to", "2ms"], "each option lets some events pass, but none of them passes all"),
    ],
)
def test_a_selection_of_nothing_says_why(path, options, reason, capsys):
    """The events are of the threads 1, 2 and 3, at 0, 1 and 2 ms."""
    assert main(["traceprinter", str(path), *options]) == 1
    printed = capsys.readouterr()
    assert "THRUNNING" not in printed.out
    assert printed.err == f"satview traceprinter: no event matched: {reason}\n"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--from", "2ms", "--to", "1ms"], "the range from 2ms to 1ms is empty"),
        (["--to", "0s"], "the range from the start to 0s is empty"),
        (["--from", "3ms"], "3.000 ms from the start is outside this trace, which takes 2.000 ms"),
        (["--class", "THREAD", "--event", "MSG_SENDV"], "no event can ever fit: no MSG_SENDV is of the class THREAD"),
    ],
)
def test_a_selection_that_no_event_can_meet_is_refused(path, options, reason, tmp_path, capsys):
    output = tmp_path / "out.txt"
    assert main(["traceprinter", str(path), *options, "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"satview traceprinter: {reason}\n"
    assert not output.exists()


def test_what_needs_the_whole_trace_needs_a_file(path, capsys):
    assert main(["traceprinter", "-", "--range", "-1ms.."]) == 2
    assert "standard input is read once" in capsys.readouterr().err
    assert main(["traceprinter", str(path), "--range", "1ms..2ms", "--from", "1ms"]) == 2
    assert "--range replaces --from and --to" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["-n"], ["-v"], ["--vendor"], ["--layout", "7"], ["--time", "wall"]])
def test_an_option_of_the_text_is_refused_for_rows(path, options, tmp_path, capsys):
    output = tmp_path / "out.csv"
    assert main(["traceprinter", str(path), *options, "--format", "csv", "-o", str(output)]) == 2
    assert capsys.readouterr().err == (
        f"satview traceprinter: {options[0]}: only for text; rows of --format csv have time_ns since the first "
        "event, time_cycles and all arguments\n"
    )
    assert not output.exists()

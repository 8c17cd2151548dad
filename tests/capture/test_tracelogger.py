"""The command: options, modes, messages, faults; files that other tools would find as tracelogger left them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.__main__ import main
from satview.capture.buffers import LoggerOptions
from satview.capture.kernel import Kernel
from satview.capture.logger import Logger
from satview.capture.run import Capture, MemorySink, count_events, make_tile, run, write_tiles
from satview.capture.sim.target import target
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.formats.kev.header import slots_as_bytes
from satview.formats.kev.reader import open_kev
from tests.capture.made import events, names
from tests.helpers.extent import fewer, points

CONTROL = """
from satview.capture import nto
from satview.capture.sim.calls import Sleep, TraceEvent

def main():
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_ADDCLASS, nto._NTO_TRACE_COMM)
    yield Sleep(20_000_000)
    yield TraceEvent(nto._NTO_TRACE_START)
    yield Sleep(100_000_000)
    yield TraceEvent(nto._NTO_TRACE_FLUSHBUFFER)
    yield TraceEvent(nto._NTO_TRACE_STOP)
"""


def tracelogger(folder: Path, *options: str) -> int:
    return main(["tracelogger", "-f", str(folder / "t.kev"), "--workload", "client-server", *options])


HANDLER = """
from satview.capture import nto
from satview.capture.emit import EventData
from satview.capture.sim.calls import Sleep, ThreadCtl, TraceEvent

def stop_at_the_tenth(event):
    event.area[0] += 1
    if event.area[0] == 10:
        yield TraceEvent(nto._NTO_TRACE_STOP)
    return 1

def main():
    yield ThreadCtl(nto._NTO_TCTL_IO)
    yield TraceEvent(nto._NTO_TRACE_ADDCLASS, nto._NTO_TRACE_COMM)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENTHANDLER, nto._NTO_TRACE_COMM, 2, stop_at_the_tenth, EventData(area=[0]))
    yield TraceEvent(nto._NTO_TRACE_START)
    yield Sleep(200_000_000)
"""


@points(release=("6.x", "6.6", "7.x", "8.0"), stops=["program", "handler"])
def test_what_was_captured_before_a_stop_is_kept(release: str, stops: str, tmp_path: Path) -> None:
    if stops == "handler" and release == "8.0":
        return  # it has no handlers
    program = (
        HANDLER if stops == "handler" else CONTROL.replace("    yield TraceEvent(nto._NTO_TRACE_FLUSHBUFFER)\n", "")
    )
    (tmp_path / "control.py").write_text(program, encoding="utf-8")
    options = ("-d", "1", "--control", str(tmp_path / "control.py"), "--duration", "0.25", "--release", release)
    assert tracelogger(tmp_path, *options) == 0
    received = sum(name == "REC_MESSAGE" for name in names(open_kev(tmp_path / "t.kev")))
    assert received == 9 if stops == "handler" else received > 9, "the tenth found tracing off"
    is_handed_over = release == "8.0"  # at STOP
    assert tracelogger(tmp_path, *options, "--no-flush") == (0 if is_handed_over else 1)
    assert (len(open_kev(tmp_path / "t.kev").events) > 0) == is_handed_over


@pytest.mark.parametrize(
    ("options", "rules", "code", "says"),
    [
        (("-d", "1"), "", 1, "nothing was captured: START was never called"),
        ((), "DELALLCLASSES\nADDCLASS QVM\n", 1,
         "nothing was captured: of the classes that are on (QVM) no event happened or passed"),
        (("--no-flush",), "DELALLCLASSES\nADDCLASS PROCESS\n", 1, "nothing was captured: no buffer was full"),
        ((), "DELALLCLASSES\nADDCLASS PROCESS\n", 0, ""),
        ((), "WHERE class == THREAD\nWHERE class == COMM\n", 2,
         "r.satrules:2:1: no event can fit this and the other conditions"),
        ((), "ADDALLCLASSES\nADDCLASSEVHANDLER COMM WHERE 3 < cpu and cpu <= 3\n", 2, "r.satrules:2:30: no event"),
    ],
)  # fmt: skip
def test_a_capture_of_nothing_says_why(
    options: tuple[str, ...], rules: str, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.satrules").write_text(rules, encoding="utf-8")
    where = ("--rules", str(tmp_path / "r.satrules")) if rules else ()
    assert tracelogger(tmp_path, "--duration", "0.02", *options, *where) == code
    assert says in capsys.readouterr().err


@pytest.mark.thorough
def test_default_is_32_buffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracelogger", "-f", str(tmp_path / "t.kev"), "--cpus", "2"]) == 0
    trace = open_kev(tmp_path / "t.kev")
    assert len(trace.buffers) == 32
    assert 32 * 708 <= trace.slot_count < 32 * 713, "a mark reached inside an interrupt waits for its end"
    assert set(trace.problems.counts()) <= {"unfinished-events"}, "an event may go on in buffer 33"
    assert capsys.readouterr().out == "", "silent without -v"


@pytest.mark.parametrize(("options", "seconds"), [(("-s", "1.5"), 1.5), (("-s", "1.5", "--duration", "0.2"), 0.2)])
def test_a_timed_capture_is_as_long_as_requested_even_of_a_short_workload(
    options: tuple[str, ...], seconds: float, tmp_path: Path
) -> None:
    assert registry.find("fork-storm").duration_ns < 1e9
    assert tracelogger(tmp_path, "--workload", "fork-storm", *options) == 0
    trace = open_kev(tmp_path / "t.kev")
    assert trace.clock.duration_ns(trace.window.length) / 1e9 == pytest.approx(seconds, abs=0.02)


def test_options_of_the_file(tmp_path: Path) -> None:
    assert tracelogger(tmp_path, "-n", "2", "-A", "Build=7", "-A", "ID=x=y", "-w", "--release", "6.x") == 0
    trace = open_kev(tmp_path / "t.kev")
    assert trace.header.pairs[-3:] == (
        ("ID", "x=y"),
        ("Build", "7"),
        ("TRACELOGGER_ARGS", "tracelogger -w -n 2 -f t.kev"),
    )
    assert trace.header.get("SYS_RELEASE") == "6.4.1"
    assert trace.header.get("CYCLES_PER_SEC") == "736629000"
    assert len(trace.buffers) == 2
    state = next(words for _, name, words in events(trace) if name == "THREPLY")
    assert len(state) == 4, "-w: priority and policy too"


def test_filters_leave_classes_out(tmp_path: Path) -> None:
    assert tracelogger(tmp_path, "-F", "1", "-F", "2", "-F", "6", "-c") == 0
    counts = open_kev(tmp_path / "t.kev").class_counts()
    assert "THREAD" in counts
    assert not {"KER_CALL", "KER_EXIT", "INT_ENTR", "INT_EXIT", "COMM"} & counts.keys()


def test_6_x_can_leave_out_ring0_calls_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rings.py").write_text(
        "from satview.capture.sim.calls import *\nDURATION_MS = 50\ndef main():\n    while True:\n"
        "        yield Ring0(lambda machine, cpu: 0)\n        yield ClockTime()\n        yield Sleep(1000000)\n",
        encoding="utf-8",
    )

    def calls(release: str, *options: str) -> list[str]:
        assert (
            main(
                [
                    "tracelogger",
                    "--workload",
                    str(tmp_path / "rings.py"),
                    "--release",
                    release,
                    "-f",
                    str(tmp_path / "t.kev"),
                    "-c",
                    *options,
                ]
            )
            == 0
        )
        return names(open_kev(tmp_path / "t.kev"))

    assert {"RING0", "CLOCK_TIME"} <= set(calls("6.x"))
    without = calls("6.x", "-F", "11")
    assert "RING0" not in without
    assert "CLOCK_TIME" in without
    assert capsys.readouterr().err == ""
    assert "RING0" in calls("7.x", "-F", "11")
    assert "-F 11: has no effect" in capsys.readouterr().err


def test_rule_files_decide_what_is_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "r.satrules"
    rules.write_text(
        "ADDCLASS COMM\nADDEVENT KERCALLENTER MSG_SENDV\nSETCLASSPID KERCALL client1\n"
        'ADDCLASSEVHANDLER COMM WHERE event == "SND_MESSAGE"\n',
        encoding="utf-8",
    )
    assert tracelogger(tmp_path, "-c", "--rules", str(rules)) == 0, capsys.readouterr().err
    trace = open_kev(tmp_path / "t.kev")
    assert set(names(trace)) == {"BUFFER", "SND_MESSAGE", "MSG_SENDV"}
    assert names(trace).count("SND_MESSAGE") > names(trace).count("MSG_SENDV") > 10, "calls of one client only"
    rules.write_text("ADDCLASS NONSENSE\n", encoding="utf-8")
    assert tracelogger(tmp_path, "-c", "--rules", str(rules)) == 2
    assert "NONSENSE" in capsys.readouterr().err
    rules.write_text("WHERE duration > 1s\n", encoding="utf-8")
    assert tracelogger(tmp_path, "-c", "--rules", str(rules)) == 2
    assert "r.satrules:1:7: a capture cannot test this: duration is known only later" in capsys.readouterr().err
    rules.write_text('ADDCLASSEVHANDLER COMM WHERE event == "SND_MESSAGE"\n', encoding="utf-8")
    assert tracelogger(tmp_path, "-c", "--rules", str(rules), "--release", "8.0") == 2
    assert "no event handlers" in capsys.readouterr().err


def test_a_handler_of_rules_that_raises_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.py").write_text("def pick(event):\n    return event.nothing\n", encoding="utf-8")
    rules = tmp_path / "r.satrules"
    rules.write_text("ADDALLCLASSES\nADDCLASSEVHANDLER COMM CALL bad.py:pick\n", encoding="utf-8")
    assert tracelogger(tmp_path, "--rules", str(rules), "--allow-code") == 1
    assert "bad.py:pick was switched off: line 2: AttributeError" in capsys.readouterr().err
    assert "SND_MESSAGE" in names(open_kev(tmp_path / "t.kev")), "from then on everything passes"


def test_a_ring_whose_buffers_are_full_at_the_end_is_saved(tmp_path: Path) -> None:
    """Three slots are a buffer, its time and one event, so that at the end, too, the last event has filled a buffer."""
    options = LoggerOptions(is_ring=True, kernel_buffers=4)
    kind = replace(target(Release.QNX_7), mark_ring=3)
    result = run(Capture("client-server", duration_ns=20_000_000, options=options, target=kind), tmp_path / "t.kev")
    assert result.findings == []
    assert len(open_kev(tmp_path / "t.kev").buffers) == 4


def test_timed_and_ring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tracelogger(tmp_path, "-s", "0.1", "-v") == 0
    assert open_kev(tmp_path / "t.kev").duration_ns == pytest.approx(1e8, rel=0.05)
    out = capsys.readouterr().out
    for text in (
        "creating t.kev",
        "32 kernel buffers",
        "events enabled",
        "timer set: 0.1 s",
        "bytes of events logged in",
        "own buffers in use",
        "events disabled",
    ):
        assert text in out, text
    assert tracelogger(tmp_path, "-r", "-k", "2") == 0
    assert len(open_kev(tmp_path / "t.kev").buffers) == 2


def test_daemon_mode_waits_for_its_control_program(tmp_path: Path) -> None:
    (tmp_path / "control.py").write_text(CONTROL, encoding="utf-8")
    assert tracelogger(tmp_path, "-d1", "-c", "--control", str(tmp_path / "control.py")) == 0
    trace = open_kev(tmp_path / "t.kev")
    assert set(trace.class_counts()) <= {"COMM", "CONTROL"}
    assert names(trace).count("SND_MESSAGE") > 10
    assert tracelogger(tmp_path, "-d1", "-c") == 1
    assert len(open_kev(tmp_path / "t.kev").events) == 0, "nobody started the trace"


def test_extended_daemon_mode_sets_the_filters(tmp_path: Path) -> None:
    program = CONTROL.replace("    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)\n", "").replace(
        "    yield TraceEvent(nto._NTO_TRACE_ADDCLASS, nto._NTO_TRACE_COMM)\n", ""
    )
    (tmp_path / "control.py").write_text(program, encoding="utf-8")
    assert tracelogger(tmp_path, "-d1", "-E", "-c", "-F", "2", "--control", str(tmp_path / "control.py")) == 0
    counts = open_kev(tmp_path / "t.kev").class_counts()
    assert "KER_CALL" in counts
    assert "INT_ENTR" not in counts


def test_size_limit_cuts_at_the_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tracelogger(tmp_path, "-c", "-S", "20k", "-v") == 1
    assert (tmp_path / "t.kev").stat().st_size == 20 * 1024
    said = capsys.readouterr()
    assert "t.kev is full with its 20480 bytes" in said.err
    logged = int(re.search(r"(\d+) bytes of events", said.out)[1])
    assert 20_480 - 2_000 < logged < 20_480, "what is in the file, not what was cut"
    trace = open_kev(tmp_path / "t.kev")
    assert len(trace.events) > 500
    assert set(trace.problems.counts()) <= {"partial-slot", "buffer-length", "unfinished-events"}


@pytest.mark.thorough
def test_no_flush_leaves_the_end_in_the_kernel(tmp_path: Path) -> None:
    tracelogger(tmp_path, "-c")
    with_end = open_kev(tmp_path / "t.kev").slot_count
    tracelogger(tmp_path, "-c", "--no-flush")
    without = open_kev(tmp_path / "t.kev").slot_count
    assert all(count >= 708 for count in open_kev(tmp_path / "t.kev").buffers.slots)
    assert 0 < with_end - without < 800


@pytest.mark.thorough
def test_a_slow_disk_drops_buffers_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["tracelogger", "-f", str(tmp_path / "t.kev"), "-c", "-b", "2", "--disk", "60", "--duration", "0.6"]) == 0
    )
    assert "dropped because -b is too small" in capsys.readouterr().err
    assert open_kev(tmp_path / "t.kev").problems.counts()["lost-buffers"] > 3


@pytest.mark.thorough
def test_standard_output_is_the_same_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "satview", "tracelogger", "--workload", "polite", "-v", "-f"]
    piped = subprocess.run([*command, "-"], capture_output=True, check=True)
    assert piped.stdout.startswith(b"TRACE_HEADER_BEGIN::")
    assert b"events disabled" in piped.stderr
    printing = tmp_path / "printing.py"
    printing.write_text("print('loaded')\ndef main():\n    print('runs')\n    yield\n", encoding="utf-8")
    command[command.index("polite")] = str(printing)
    heard = subprocess.run([*command, "-"], capture_output=True, check=False)
    assert heard.stdout.startswith(b"TRACE_HEADER_BEGIN::"), "what programs print goes elsewhere"
    assert b"loaded\n" in heard.stderr
    assert b"runs\n" in heard.stderr
    (tmp_path / "t.kev").write_bytes(piped.stdout)
    assert not open_kev(tmp_path / "t.kev").problems.counts()


class SlowPipe(BytesIO):
    """Somebody who reads when he likes."""

    def write(self, data: bytes, /) -> int:
        time.sleep(0.1)
        return super().write(data)


@pytest.mark.thorough
def test_whoever_reads_a_pipe_may_take_any_time(tmp_path: Path) -> None:
    """A capture that waits is not stuck: not while it runs, and not while it ends."""
    quick, slow = BytesIO(), SlowPipe()
    for stream in (quick, slow):
        capture = Capture("client-server", duration_ns=10**8, options=LoggerOptions(iterations=0), patience_s=0.05)
        assert run(capture, tmp_path / "pipe", stream=stream).findings == []
    assert slow.getvalue() == quick.getvalue()


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_named_pipe_waits_for_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []

    def reader() -> None:
        time.sleep(0.5)
        read.append((tmp_path / "pipe").read_bytes())

    thread = threading.Thread(target=reader)
    thread.start()
    result = run(Capture("polite", patience_s=0.1), tmp_path / "pipe")
    thread.join()
    assert result.findings == []
    assert len(read[0]) > 16 * result.slots > 1000


def sizes_of(paths: Iterable[Path]) -> Iterator[int]:
    """Yield the sizes of files; one that has been renamed since it was listed is left out."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield path.stat().st_size


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
@pytest.mark.parametrize(
    ("options", "signo", "size"),
    fewer(
        [
            (["-c"], "SIGINT", 100_000),
            (["-r", "-k", "4"], "SIGTERM", 0),
            (["-s", "3000"], "SIGABRT", 0),
            (["-c", "--pace", "0.01"], "SIGHUP", 0),
            (["-d1", "--control"], "SIGTERM", 0),
        ],
        2,
    ),
)
def test_a_signal_stops_it_cleanly(options: list[str], signo: str, size: int, tmp_path: Path) -> None:
    path, control = tmp_path / "t.kev", tmp_path / "control.py"
    control.write_text(CONTROL, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "satview",
        "tracelogger",
        "--workload",
        "small-system",
        "--duration",
        "3000",
        "-f",
        str(path),
        *options,
        *[str(control)] * ("--control" in options),
    ]
    with subprocess.Popen(command) as process:
        try:
            # A ring takes its name when it is complete; what can be seen of it before is its temporary file.
            while not any(seen >= size for seen in sizes_of(tmp_path.glob("*t.kev*"))):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(getattr(signal, signo))
            assert process.wait(20) == 0
        finally:
            process.kill()
    problems = set(open_kev(path).problems.counts())
    assert problems <= {"unfinished-events", "orphan-slots", "clock-unknown", "ring-names"}


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_a_second_signal_ends_what_hangs(tmp_path: Path) -> None:
    hangs = tmp_path / "hangs.py"
    hangs.write_text("import time\nprint('here', flush=True)\ntime.sleep(1000)\n", encoding="utf-8")
    command = [sys.executable, "-m", "satview", "tracelogger", "--workload", str(hangs), "-f", str(tmp_path / "t.kev")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert process.poll() is None, "the first one is a request"
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 130
        finally:
            process.kill()


def test_control_programs_find_the_logger_waiting(tmp_path: Path) -> None:
    """Even those that do not sleep first, on a CPU of their own."""
    program = CONTROL.replace("    yield Sleep(20_000_000)\n", "")
    (tmp_path / "control.py").write_text(program, encoding="utf-8")
    assert tracelogger(tmp_path, "-d1", "-c", "--cpus", "4", "--control", str(tmp_path / "control.py")) == 0
    assert names(open_kev(tmp_path / "t.kev")).count("SND_MESSAGE") > 10


@pytest.mark.thorough
def test_long_captures_do_not_keep_the_truth(tmp_path: Path) -> None:
    short = run(Capture("client-server", duration_ns=10**9, keeps_truth=False), tmp_path / "t.kev").truth
    whole = run(Capture("client-server", duration_ns=10**9), tmp_path / "k.kev").truth
    assert len(short.states) < len(whole.states) / 2
    assert (tmp_path / "t.kev").read_bytes()[64:] == (tmp_path / "k.kev").read_bytes()[64:]


@pytest.mark.thorough
def test_a_paced_capture_takes_its_time_and_is_the_same(tmp_path: Path) -> None:
    began = time.monotonic()
    run(Capture("polite", duration_ns=10**8, pace=0.2, release=Release.QNX_8), tmp_path / "t.kev")
    assert 0.5 <= time.monotonic() - began < 5, "100 ms at a fifth of the speed, quiet as it is"
    paced = (tmp_path / "t.kev").read_bytes()
    run(Capture("polite", duration_ns=10**8, release=Release.QNX_8), tmp_path / "t.kev")
    assert (tmp_path / "t.kev").read_bytes() == paced


@pytest.mark.thorough
def test_very_long_traces_say_what_they_leave_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.kev"
    assert (
        main(
            [
                "tracelogger",
                "--workload",
                "deadlock",
                "--events",
                "2000",
                "-r",
                "-F",
                "1",
                "-S",
                "1k",
                "-w",
                "-A",
                "a=b",
                "-f",
                str(path),
            ]
        )
        == 1
    )
    err = capsys.readouterr().err
    assert "--events: -r, -S, -F without effect" in err
    assert "deadlock: " in err, "workloads are judged here too"
    trace = open_kev(path)
    assert len(trace.events) >= 2000
    assert trace.header.get("a") == "b"
    assert "-w" in trace.header.get("TRACELOGGER_ARGS")


def test_what_cannot_be_honoured_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tracelogger(tmp_path, "-P", "-R", "-p", "0x1000", "-M", "-S", "1m", "-E", "-u", "--release", "8.0") == 0
    err = capsys.readouterr().err
    for option in ("-P:", "-R:", "-M:", "-E:", "-u:"):
        assert option in err
    assert tracelogger(tmp_path, "-r", "-D", "0.01") == 0
    assert "-D: has no effect with -r" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "release", "first"),
    [
        (("-a",), "6.6", "7.x"),
        (("-D", "1"), "6.x", "6.6"),
        (("-p", "0x1000"), "6.x", "6.6"),
        (("-u",), "7.x", "8.0"),
        (("-f", "-"), "6.x", "6.6"),
    ],
)
def test_an_option_that_a_release_lacked_is_refused_with_the_one_that_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], release: str, first: str
) -> None:
    assert tracelogger(tmp_path, "--release", release, *options) == 2
    assert f"--release {first}" in capsys.readouterr().err


@pytest.mark.parametrize("release", ["6.x", "6.6", "7.x", "8.0"])
def test_options_of_every_release_cause_no_complaint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], release: str
) -> None:
    everything = [word for number in range(1, 8) for word in ("-F", str(number))]
    for options in ([], ["-w"]):
        assert tracelogger(tmp_path, "-c", "--duration", "0.01", "--release", release, *options) == 0
    assert capsys.readouterr().err == ""
    assert tracelogger(tmp_path, "-c", "--duration", "0.01", "--release", release, *everything) == 1
    assert re.search(r"^tracelogger: nothing was captured: .*\n\Z", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-A", "novalue"), "name=value"),
        (("-A", "a::b=1"), "name=value"),
        (("-F", "12"), "-F 12"),
        (("-S", "12x"), "-S 12x"),
        (("-S", "0"), "-S 0"),
        (("-c", "-S", "100"), "100 bytes are too few"),  # for the header
        (("--fast", "-w"), "--fast: cannot be used with -w"),
        (("--probe", "-d1"), "--probe: cannot be used with -d1"),  # it takes no control program
        (("-M",), "-M needs -S"),
        (("-d", "2"), "satview tracelogger: -d 2: the only daemon mode is -d1\n"),
        (("-p", "there"), "-p there"),
        (("-k", "0"), "-k 0"),
        (("-n", "-3"), "-n -3"),
        (("--workload", "nonsense"), "no workload"),
        (("--cpus", "99"), "1 to 64"),
        (("--cpus", "0"), "0 CPUs: a target has 1 to 64"),
        (("-c", "--duration", "0"), "--duration 0: must be from 1e-06 to 86400"),
        (("--events", "0", "--workload", "polite"), "0 events: 1 to 2000000000"),
        (("-s", "-1"), "-s -1"),
        (("-s", "nan"), "argument -s: 'nan' is not a time"),
        (("-D", "inf"), "argument -D: 'inf' is not a time"),
        (("--disk", "nan"), "--disk nan"),
        (("-f", ""), "-f"),
        (("--duration", "1e300"), "'1e300' is not a time, from character 2 on"),
        (("--pace", "nan"), "--pace nan"),
        (("-A", "a=b\nc"), "one line"),
        (("--control", "nowhere.py"), "nowhere.py"),
        (("--events", "99999999999", "--workload", "polite"), "99999999999 events: 1 to"),
    ],
)
def test_bad_use_is_one_sentence_and_exit_code_2(
    options: tuple[str, ...], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tracelogger(tmp_path, *options) == 2
    err = capsys.readouterr().err
    assert text in err
    assert "no --control program" not in err
    assert "Traceback" not in err
    assert not (tmp_path / "t.kev").exists()


def test_an_unwritable_path_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracelogger", "-f", str(tmp_path / "no" / "such.kev"), "--workload", "polite"]) == 2
    assert "such.kev: there is no folder" in capsys.readouterr().err
    assert main(["tracelogger", "-f", str(tmp_path), "--workload", "polite"]) == 2, "a folder is bad use"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracelogger", "-f", "/dev/full", "--workload", "client-server", "-c"]) == 1
    assert capsys.readouterr().err == (
        "satview tracelogger: full: writing stopped after 0 bytes: No space left on device\n"
    )


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_a_disk_that_fills_up_ends_the_capture_at_once(tmp_path: Path) -> None:
    """One sentence that blames the disk; the file is readable up to its last whole event."""
    command = [
        sys.executable, "-m", "satview", "tracelogger", "--workload", "client-server", "-c", "--duration", "3000", "-f",
        "t.kev",
    ]  # fmt: skip

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    # Byte code would be cut off too, for all tests that follow.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, preexec_fn=limited
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "satview tracelogger: t.kev: writing stopped after 30000 bytes: File too large; what was "
        "written can be opened\n"
    )
    assert (tmp_path / "t.kev").stat().st_size == 30_000
    assert len(open_kev(tmp_path / "t.kev").events) > 1000


def test_a_faulty_workload_gives_exit_code_1_and_a_readable_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tracelogger", "-f", str(tmp_path / "t.kev"), "--workload", "deadlock"]) == 1
    assert "deadlock: " in capsys.readouterr().err
    assert len(open_kev(tmp_path / "t.kev").events) > 100


def test_list_of_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracelogger", "--list-workloads"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(registry.names()) > 20
    assert any(line.startswith("inversion ") for line in lines)


@pytest.mark.thorough
def test_cancelling_keeps_what_there_is(tmp_path: Path) -> None:
    seen: list[float] = []
    result = run(Capture("automotive", cpus=2), tmp_path / "t.kev", seen.append, lambda: len(seen) > 3)
    assert result.was_cancelled
    assert not open_kev(tmp_path / "t.kev").problems.counts()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_round_trip_of_slots(tmp_path: Path) -> None:
    tracelogger(tmp_path, "-c", "-w")
    raw = (tmp_path / "t.kev").read_bytes()
    trace = open_kev(tmp_path / "t.kev")
    region = raw[len(raw) - trace.slot_count * 16 :]
    slots = np.frombuffer(region, "<u4").reshape(-1, 4)
    assert slots_as_bytes(slots, "little") == region
    assert count_events(slots) == len(trace.events)


@pytest.mark.thorough
def test_tiles_repeat_without_a_seam_that_shows(tmp_path: Path) -> None:
    tile = make_tile("client-server", is_wide=True)
    written = write_tiles(tmp_path / "tiles.kev", tile.events * 3, tile)
    trace = open_kev(tmp_path / "tiles.kev")
    assert len(trace.events) == written >= 3 * tile.events
    assert not trace.problems.counts()
    assert np.all(np.diff(trace.buffers.sequence.astype(np.int64)) == 1)
    assert trace.duration_ns > 2 * (1 << 32) * 10**9 // 2_592_000_000
    running: dict[int, tuple[int, ...]] = {}
    for _, name, words in events(trace):
        if name == "THRUNNING":
            assert running.get(0, words[:2]) == words[:2]
            running[0] = words[:2]
        elif name.startswith("TH") and not name.startswith(("THREAD_", "THCREATE")) and len(words) == 4:
            running = {cpu: thread for cpu, thread in running.items() if thread != words[:2]}


@pytest.mark.thorough
@pytest.mark.parametrize("release", [Release.QNX_7, Release.QNX_8])
def test_a_long_trace_of_several_cpus_has_nothing_wrong(release: Release, tmp_path: Path) -> None:
    tile = make_tile("small-system", cpus=2, release=release)
    for events_requested in (tile.events * 2 + 5000, tile.events * 2 + 7777):
        written = write_tiles(tmp_path / "tiles.kev", events_requested, tile)
        trace = open_kev(tmp_path / "tiles.kev")
        assert len(trace.events) == written >= events_requested
        assert not trace.problems.counts(), "each CPU of 8.0 numbers its buffers, and no event is cut at the end"


@pytest.mark.thorough
def test_very_long_traces_survive_a_device_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "PATIENCE_S", 0.3)
    device = (
        "def gap():\n    while True:\n        pass\n"
        "def setup(kernel):\n    kernel.machine.at(kernel.machine.now + 9, lambda _: kernel.device(5, gap))\n"
    )
    (tmp_path / "wild.py").write_text(device, encoding="utf-8")
    assert tracelogger(tmp_path, "--workload", str(tmp_path / "wild.py"), "--events", "1000") == 1
    assert re.search(r"of device 5 at wild.py:[23]: raised Stuck: it ran for too long", capsys.readouterr().err)
    assert len(open_kev(tmp_path / "t.kev").events) >= 1000


def test_memory_sinks_count_buffers() -> None:
    assert MemorySink().slots().shape == (0, 4)


def test_buffers_can_be_placed_kept_and_reused() -> None:
    """-p, -P and -R: the second logger takes the buffers that the first one left."""
    said: list[str] = []

    class Nowhere:
        is_cut = False
        written = 0

        def is_behind(self) -> bool:
            return False

        def write(self, slots: object) -> None:
            """Take it and forget it."""

    made = Kernel(target(Release.QNX_7, 1))
    for options in (
        LoggerOptions(iterations=0, kernel_buffers=5, physical_address=0x5000000, keeps_buffers=True),
        LoggerOptions(iterations=0, reuses_buffers=True),
    ):
        logger = Logger(made, options, Nowhere(), lambda _level, text: said.append(text))
        made.machine.is_stopped = False
        made.machine.run(made.machine.now + made.target.cycles(20_000_000))
        logger.stop()
        made.machine.run(made.machine.now + made.target.cycles(20_000_000))
        assert logger.is_done
    assert "5 kernel buffers allocated at physical address 0x5000000" in said
    assert "kernel buffers reused" in said
    assert made.emitter.buffers is None, "the second one was not requested to keep them"


@pytest.mark.parametrize(("options", "is_wide"), [
    ((), True), (("--fast",), False), (("-w",), True), (("--workload", "polite"), False),
    (("--workload", "polite", "-w"), True),
])  # fmt: skip
def test_lessons_log_what_they_show(options, is_wide, tmp_path, capsys):
    """The lesson of the inversion is about priorities, which only wide events have."""
    path = tmp_path / "t.kev"
    assert main(["tracelogger", "--workload", "inversion", "--duration", "0.02", "-f", str(path), *options]) == 0
    trace = satview.open_trace(path)
    ready = list(trace.iter_events("THREADY"))
    assert ready
    assert any("priority" in [argument.name for argument in event.arguments] for event in ready) is is_wide
    says = "events are wide because inversion needs priorities and owners; use --fast for fast events"
    assert (says in capsys.readouterr().err) is (not options)

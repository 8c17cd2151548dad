"""Captures over a real ssh: what ends them, what the file holds then, and how the board is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from itertools import pairwise

import pytest

from satview.formats.outside_names import read_pidin
from satview.formats.registry import open_trace
from satview.target import request as answers
from satview.target.capture import capture
from satview.target.line import Profile, TargetError
from satview.target.request import TargetRequest, logger_command
from satview.target.watching import Checksum

pytestmark = pytest.mark.usefixtures("quick_clock")


INSIDE = {"unfinished-events", "buffer-length"}


class Watch:
    """Does something once so many buffers have come; collects what a capture tells."""

    def __init__(self, path, act=lambda: None, size=100_000):
        self.path, self.act, self.size = path, act, size
        self.has_acted = False
        self.told, self.said = [], []

    def asks_to_stop(self):
        """Act when the file has its size; stop nothing."""
        if not self.has_acted and self.path.exists() and self.path.stat().st_size > self.size:
            self.has_acted = True
            self.act()
        return False

    def stops(self):
        """Stop when the file has its size."""
        self.asks_to_stop()
        return self.has_acted


def make_stubborn(board, trap=""):
    """Let the board's tracelogger live on when nobody takes what it writes."""
    script = board.folder / "bin" / "tracelogger"
    script.write_text(script.read_text().replace("exec env", f"{trap}env") + "while :; do sleep 0.1; done\n")


def run(request, watch, stop=None):
    return capture(request, stop or watch.asks_to_stop, watch.told.append, watch.said.append)


def check_whole(path, *, is_cut=False):
    """Return a trace, which has no problem; one that was cut may end inside a buffer and an event, never a slot."""
    trace = open_trace(path)
    assert {problem.kind.slug for problem in trace.problems} <= (INSIDE if is_cut else set())
    return trace


def test_a_timed_capture(board, tmp_path):
    path = tmp_path / "run.kev"
    board.says(ahead="7200")
    watch = Watch(path)
    captured = run(TargetRequest(board.profile, path, filters=("-F", "2"), seconds=2.0), watch)
    assert any("buffers, none lost" in text for text in watch.told)
    assert captured.faults == captured.notes == []
    trace = check_whole(path)
    assert 1.9e9 < trace.duration_ns < 2.1e9
    assert trace.header.get("TRACELOGGER_ARGS") == "tracelogger -c -s 2 -F 2 -f -"
    assert trace.header.get("CAPTURE_COMMAND") == "tracelogger -F 2 -s 2 -c -k 32 -b 64 -f -"
    assert trace.header.get("CAPTURE_HOST") == "127.0.0.1"
    assert trace.header.get("CAPTURE_NODE") == "board"
    ahead, error = map(float, re.findall(r"[0-9.]+", trace.header.get("CAPTURE_CLOCK_OFFSET")))
    assert abs(ahead - 7200) <= error < 1
    assert str(board.folder) not in str(trace.header.pairs)  # where keys are is nobody's business
    assert captured.buffers == len(trace.buffers)
    assert captured.lost == 0
    assert 0 < captured.first_buffer_s < 20
    assert board.is_clean_within(5)


def test_a_capture_until_somebody_stops_it(board, tmp_path):
    path = tmp_path / "run.kev"
    watch = Watch(path)
    captured = run(TargetRequest(board.profile, path), watch, watch.stops)
    assert captured.faults == captured.notes == []
    assert check_whole(path).path.stat().st_size > watch.size
    assert board.is_clean_within(5)


@pytest.mark.thorough
def test_a_ring_comes_at_the_end(board, tmp_path):
    path = tmp_path / "run.kev"
    captured = run(TargetRequest(board.profile, path, seconds=1.0, is_ring=True), Watch(path))
    assert captured.faults == []
    assert captured.command == "tracelogger -r -k 32 -b 64 -f -"
    assert open_trace(path).header.get("TRACELOGGER_ARGS") == "tracelogger -r -f -"
    assert len(open_trace(path).events) > 1000
    (note,) = captured.notes
    opened_by = "open it with --pidin run.pidin.txt, or in the window by Lanes > Names from a pidin text"
    assert note.endswith(f"if the ring lacks some: {opened_by}")
    assert read_pidin(tmp_path / "run.pidin.txt").by_pid == {1: "procnto-smp-instr", 2: "slogger2"}
    board.add_program("pidin", "exit 127")
    captured = run(TargetRequest(board.profile, path, seconds=1.0, is_ring=True), Watch(path))
    assert captured.notes == ["board has no pidin, so processes may have no names in a ring"]
    assert board.is_clean_within(5)


def test_a_broken_line_leaves_the_file_whole_and_the_board_clean(board, tmp_path):
    path = tmp_path / "run.kev"
    captured = run(TargetRequest(board.profile, path), Watch(path, board.cut))
    assert len(captured.faults) == 1
    assert re.match(r"the line to board broke( \(ssh: [^s].*\))?; look at the cable", captured.faults[0])
    assert captured.notes == ["board was left clean: no logger of this capture runs there"]
    trace = check_whole(path, is_cut=True)
    assert len(trace.events) > 3000
    assert board.is_clean_within(5)


def test_a_board_that_is_gone_is_said_to_be(board, tmp_path):
    path = tmp_path / "run.kev"
    captured = run(TargetRequest(board.profile, path), Watch(path, board.lose))
    assert captured.notes[0].startswith("board cannot be reached to look after its logger, which ends as soon as")
    check_whole(path, is_cut=True)
    assert board.is_clean_within(5)  # it looked after itself


@pytest.mark.thorough
def test_a_logger_that_stays_is_ended_over_a_second_connection(board, tmp_path):
    path = tmp_path / "run.kev"
    make_stubborn(board)  # else it would end when its output does
    # A shell that dies with the line leaves its logger alone.
    captured = run(TargetRequest(board.profile, path), Watch(path, lambda: (board.kill_shells(), board.cut())))
    assert captured.notes == ["board was left clean: no logger of this capture runs there"]
    assert board.is_clean_within(5)
    check_whole(path, is_cut=True)


def test_a_logger_that_runs_is_not_disturbed(board, tmp_path):
    path = tmp_path / "run.kev"
    environment = {**os.environ, "PATH": f"{board.folder}/bin:/usr/bin:/bin", "BOARD": str(board.folder)}
    running = subprocess.Popen([board.folder / "bin" / "tracelogger", "-c", "-f", board.folder / "own.kev"],
                               env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    while not board.loggers():
        time.sleep(0.02)
    with pytest.raises(TargetError, match=f"tracelogger runs on board already .pid {running.pid}.*kill {running.pid}"):
        run(TargetRequest(board.profile, path), Watch(path))
    assert board.loggers() == [running.pid]
    assert not path.exists()
    running.send_signal(signal.SIGTERM)
    running.wait()


def test_a_wrong_release_starts_nothing(board, tmp_path):
    path = tmp_path / "run.kev"
    path.write_text("before")
    board.runs("4.25", "7.x")
    with pytest.raises(TargetError, match=r"board runs QNX 4\.25, whose traces are not known here"):
        run(TargetRequest(board.profile, path), Watch(path))
    assert path.read_text() == "before"
    assert not (board.folder / "arguments").exists()  # tracelogger was never called


def test_a_logger_that_refuses_says_why(board, tmp_path):
    path = tmp_path / "run.kev"
    board.add_program("tracelogger", "echo 'Unable to get I/O privilege' >&2; exit 1")
    with pytest.raises(TargetError, match="tracelogger on board wrote no trace and said: Unable to get I/O privilege"):
        run(TargetRequest(board.profile, path), Watch(path))
    board.add_program("tracelogger", "echo usage: tracelogger; exit 0")
    with pytest.raises(TargetError, match="what arrived is not a trace: it begins with usage: tracelogger"):
        run(TargetRequest(board.profile, path), Watch(path))
    assert not path.exists()
    assert not list(tmp_path.glob(".*"))
    assert board.is_clean_within(5)


@pytest.mark.thorough
def test_lost_buffers_are_counted_and_advice_given(board, tmp_path):
    path = tmp_path / "run.kev"
    board.runs("7.1.0", "7.x", "--disk 400 -k 4 -b 2")
    captured = run(TargetRequest(board.profile, path, filters=("-w",), seconds=3.0), Watch(path))
    trace = open_trace(path)
    sequence = trace.buffers.sequence.tolist()
    assert captured.lost == sum(after - before - 1 for before, after in pairwise(sequence)) > 0
    assert re.match(r"wide is too much for this line: [0-9.]+ of [0-9.]+ MB/s, \d+ buffers? lost; capture fast",
                    captured.faults[0])  # fmt: skip
    assert re.fullmatch(r"tracelogger on board said: .*\d+ kernel buffers were dropped because -b is too small",
                        captured.notes[0])  # fmt: skip
    assert board.is_clean_within(5)


def test_a_clock_that_is_set_meanwhile_is_noted(board, tmp_path):
    path = tmp_path / "run.kev"
    watch = Watch(path, lambda: board.says(ahead="-90"))
    captured = run(TargetRequest(board.profile, path), watch, watch.stops)
    assert len(captured.notes) == 1
    assert re.match(r"the clock of board was set by -(89|90|91)\.\d s during the capture", captured.notes[0])
    assert captured.faults == []


@pytest.mark.thorough
def test_a_logger_that_does_not_end_is_not_waited_for_for_ever(board, tmp_path, monkeypatch):
    monkeypatch.setattr("satview.target.capture._STOP_S", 1.0)
    monkeypatch.setattr("satview.target.capture._GONE_S", 1.0)
    make_stubborn(board, "trap '' TERM; ")
    path = tmp_path / "run.kev"
    watch = Watch(path, size=0)
    captured = run(TargetRequest(board.profile, path), watch, watch.stops)
    assert captured.faults[0] == "tracelogger on board did not end within 1 s; what it had not sent is not in the file"
    (pid,) = board.loggers()
    assert captured.notes == [f"tracelogger still runs on board (pid {pid}); end it there with `kill {pid}`"]
    check_whole(path, is_cut=True)


# Releases whose tracelogger cannot write to the line.


def test_an_old_release_captures_into_its_memory(board, tmp_path):
    path = tmp_path / "run.kev"
    board.runs("6.4.1", "6.x")
    captured = run(TargetRequest(board.profile, path, seconds=1.0), Watch(path))
    assert captured.faults == captured.notes == []
    assert re.fullmatch(rf"tracelogger -s 1 -c -k 32 -b 64 -S 50M -f {board.memory}/satview-[0-9a-f]{{8}}.kev",
                        captured.command)  # fmt: skip
    assert 0.9e9 < check_whole(path).duration_ns < 1.1e9
    assert board.is_clean_within(5)


@pytest.mark.thorough
def test_a_copy_that_differs_is_said_to(board, tmp_path):
    path = tmp_path / "run.kev"
    board.runs("6.3.2", "6.x")
    board.add_program("cksum", "echo 1 2")
    captured = run(TargetRequest(board.profile, path, seconds=1.0), Watch(path))
    assert "-n 0" in captured.command  # 6.3 has no -c
    assert captured.faults == [f"run.kev is not what board had: 2 bytes there, {captured.received} came; capture again"]
    board.add_program("cksum", "exit 127")
    captured = run(TargetRequest(board.profile, path, seconds=1.0), Watch(path))
    assert captured.notes == ["board has no cksum, so the copy could not be compared"]


@pytest.mark.thorough
def test_a_line_that_breaks_before_the_copy_leaves_no_file_there(board, tmp_path):
    path = tmp_path / "run.kev"
    board.runs("6.4.1", "6.x")

    def cut_once():
        if any(file.stat().st_size > 50_000 for file in board.memory.iterdir()) and not cuts:
            cuts.append(board.cut())
        return False

    cuts = []
    with pytest.raises(TargetError, match="the line to board broke"):
        run(TargetRequest(board.profile, path), Watch(path), cut_once)
    assert not path.exists()
    assert board.is_clean_within(5)


@pytest.mark.parametrize(
    ("sys_release", "options"),
    [
        ("6.2.1", "-n 0 -k 32 -b 64 -f FILE"),
        ("6.3.2", "-n 0 -k 32 -b 64 -S 16M -f FILE"),
        ("6.5.0", "-c -k 32 -b 64 -S 16M -f FILE"),
    ],
)
def test_options_are_those_that_the_release_has(sys_release, options, tmp_path):
    request, there = TargetRequest(Profile("ssh://rig"), tmp_path / "run.kev"), answers.Board(sys_release=sys_release)
    assert " ".join(logger_command(request, there, "FILE")) == f"tracelogger {options}"


def test_a_ring_needs_a_release_that_has_one(tmp_path):
    request = TargetRequest(Profile("ssh://rig"), tmp_path / "run.kev", is_ring=True)
    with pytest.raises(TargetError, match=r"tracelogger of 6\.2\.1 on rig has no ring, which came with 6\.3"):
        logger_command(request, answers.Board(sys_release="6.2.1"), "FILE")


def test_options_are_those_that_the_logger_says_it_has(tmp_path):
    """Of 6.5, whose loggers have `-c` and `-S` otherwise."""
    said, profile = [], Profile("ssh://rig")
    there = answers.Board(sys_release="6.5.0", options=frozenset({"-f", "-n", "-b", "-w"}))
    request = TargetRequest(profile, tmp_path / "run.kev", filters=("-w",))
    assert " ".join(logger_command(request, there, "FILE", said.append)) == "tracelogger -w -n 0 -b 64 -f FILE"
    assert said == [
        "tracelogger on rig has no option -S, so nothing limits the size of its file; keep it short",
        "tracelogger on rig has no option -k; it decides how many kernel buffers there are",
    ]
    for more, option in (({"filters": ("-F", "2")}, "-F"), ({"seconds": 2.0}, "--for"), ({"is_ring": True}, "--ring")):
        with pytest.raises(TargetError, match=f"as `use tracelogger` there says; leave out {option}"):
            logger_command(TargetRequest(profile, tmp_path / "run.kev", **more), there, "FILE")


def test_the_file_of_an_old_release_takes_a_quarter_of_what_is_free(tmp_path):
    """100 MB of a disk, or 40 MB of memory where that is less."""
    request = TargetRequest(Profile("ssh://rig"), tmp_path / "run.kev")
    for memory, limit in ((None, "25M"), (40 << 20, "10M")):
        there = answers.Board(sys_release="6.5.0", free_bytes=memory, disk_bytes=100 << 20)
        assert limit in logger_command(request, there, "FILE")


def test_a_capture_that_is_stopped_before_it_begins(board, tmp_path):
    with pytest.raises(TargetError, match="stopped before the capture began; nothing was started"):
        run(TargetRequest(board.profile, tmp_path / "run.kev"), Watch(tmp_path), lambda: True)
    assert not list(tmp_path.glob("*.kev"))
    assert not (board.folder / "arguments").exists()


def test_a_board_that_says_nothing_is_given_up_at_once(board, tmp_path):
    board.add_program("uname", "exec sleep 60")
    began_s = time.monotonic()
    with pytest.raises(TargetError, match="nothing was started"):
        run(
            TargetRequest(board.profile, tmp_path / "run.kev"),
            Watch(tmp_path),
            lambda: time.monotonic() > began_s + 0.3,
        )
    assert time.monotonic() - began_s < 20  # it says nothing for a minute
    assert not (board.folder / "arguments").exists()
    assert board.is_clean_within(5)


@pytest.mark.parametrize("data", [b"", b"a", b"123456789", bytes(range(256)) * 300])
def test_the_checksum_is_that_of_cksum(data):
    checksum = Checksum()
    checksum.add(data[:7])
    checksum.add(data[7:])
    printed = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    assert checksum.value() == int(printed.split()[0])

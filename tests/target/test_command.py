"""`satview capture` and `satview targets` as a user runs them."""

from __future__ import annotations

import os
import pty
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.formats.registry import open_trace
from satview.store.axis import files_of, read_axis
from tests.helpers.board import ROOT, Board
from tests.helpers.commands import satview

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
START = [sys.executable, "-P", "-c", "import sys; from satview.__main__ import main; sys.exit(main())"]


@pytest.fixture
def words(board, tmp_path):
    """Words of a command that captures on the board, which its file of targets calls `rig`."""
    targets = tmp_path / "targets.toml"
    targets.write_text(
        f'[rig]\naddress = "{board.profile.address}"\nssh_options = ["-F", "{board.client}"]\n'
        f'memory_folder = "{board.memory}"\nown_buffers = 16\n'
    )
    return ["capture", "rig", "--targets", str(targets), "-o", str(tmp_path / "run.kev")]


def start(words, **more):
    ends = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen([*START, *words], env=ENVIRONMENT, **ends)


def wait_for_size(path, size=60_000, timeout_s=30.0):
    end_s = time.monotonic() + timeout_s
    while not path.exists() or path.stat().st_size < size:
        assert time.monotonic() < end_s
        time.sleep(0.02)


def ended(process):
    """Return exit code, standard output and standard error of a command."""
    out, error = process.communicate(timeout=60)
    return process.returncode, out.decode(), error.decode()


def test_a_target_by_name_for_a_time(board, words, tmp_path):
    done = satview(*words, "--for", "1s", "-w")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith(f"{tmp_path}/run.kev: ")
    assert lines[0].endswith("none lost")
    assert " from rig (QNX 7.1.0), " in lines[0]
    assert lines[1].startswith("clock of rig: ")
    assert (board.folder / "arguments").read_text() == "-w -s 1 -c -k 32 -b 16 -f -\n"
    assert board.is_clean_within(5)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_capture_in_order(board, words, tmp_path, number):
    process = start(words)
    wait_for_size(tmp_path / "run.kev")
    os.kill(process.pid, number)
    code, _, error = ended(process)
    assert (code, error) == (0, "")
    assert not open_trace(tmp_path / "run.kev").problems
    assert board.is_clean_within(5)


def test_ctrl_c_reaches_satview_alone(board, words, tmp_path):
    """A terminal sends it to the whole group, of which ssh is none; and a key ends a capture as well."""
    for key in (b"\x03", b"q"):
        terminal, theirs = pty.openpty()
        process = start([*words, "--until-key"], stdin=theirs, preexec_fn=take_terminal)
        os.close(theirs)
        path = tmp_path / "run.kev"
        path.unlink(missing_ok=True)
        wait_for_size(path)
        os.write(terminal, key)
        code, _, error = ended(process)
        assert (code, error) == (0, "")
        assert not open_trace(path).problems
        assert board.is_clean_within(5)
        os.close(terminal)


def test_a_terminal_shows_size_rate_and_losses(words, tmp_path):
    terminal, theirs = pty.openpty()
    process = start([*words, "--for", "3s"], stderr=theirs)
    os.close(theirs)
    seen = b""
    while not re.search(rb"capturing on rig .* [0-9.]+ MB, [0-9.]+ MB/s, [0-9]+ buffers, none lost", seen):
        seen += os.read(terminal, 65536)  # fails where the command ends without that
    drain = threading.Thread(target=read_all, args=(terminal,))
    drain.start()
    assert process.wait(60) == 0
    drain.join()
    process.stdout.close()
    os.close(terminal)


def read_all(terminal):
    with suppress(OSError):
        while os.read(terminal, 65536):
            pass


def take_terminal():
    os.setsid()
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # the first one that a session opens controls it


def test_a_killed_satview_leaves_the_board_clean(board, words, tmp_path):
    process = start(words)
    wait_for_size(tmp_path / "run.kev")
    process.kill()
    process.communicate()
    assert board.is_clean_within(10)
    problems = {problem.kind.slug for problem in open_trace(tmp_path / "run.kev").problems}
    # It ends where the last write did, which the system may have left half done.
    assert problems <= {"unfinished-events", "buffer-length", "partial-slot"}


@pytest.mark.parametrize("limit", [150_001, 150_002])  # one of them is inside a slot
def test_a_full_disk_is_one_sentence(board, words, tmp_path, limit):

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    code, _, error = ended(start(words, preexec_fn=fill))
    assert code == 1
    assert error == (f"satview: run.kev: writing stopped after {limit} bytes: File too large; what was written can be "
                     "opened; make room, or name another file with -o\n")  # fmt: skip
    assert limit - 16 < (tmp_path / "run.kev").stat().st_size <= limit
    assert not [problem for problem in open_trace(tmp_path / "run.kev").problems if problem.kind.slug == "partial-slot"]
    assert board.is_clean_within(5)


@pytest.mark.thorough
def test_a_slow_line_is_waited_for(board, words, tmp_path):
    """100 kB/s, through a program that ssh connects with."""
    throttle = tmp_path / "throttle.py"
    throttle.write_text(
        "import os, socket, sys, threading, time\n"
        "line = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "def out():\n"
        "    while data := line.recv(5000):\n"
        "        os.write(1, data); time.sleep(len(data) / 100_000)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=out).start()\n"
        "while data := os.read(0, 65536):\n"
        "    line.sendall(data)\n"
        "line.shutdown(socket.SHUT_WR)\n"
    )
    with board.client.open("a") as config:
        config.write(f"ProxyCommand {sys.executable} {throttle} %p\n")
    code, out, error = ended(start([*words, "--for", "2s"]))
    assert (code, error) == (0, "")
    trace = open_trace(tmp_path / "run.kev")
    assert trace.duration_ns > 1.9e9
    assert not trace.problems
    assert float(out.split(" MB in ")[1].split()[0]) > 3.0  # longer than what it shows
    assert board.is_clean_within(5)


# Rules: what options of tracelogger say, and what is left for satview.


def test_rules_become_options(board, words, tmp_path):
    rules = tmp_path / "threads.satrules"
    rules.write_text("ADDALLCLASSES\nDELCLASS KERCALL\nDELCLASS INT\nSETALLCLASSESWIDE\n")
    done = satview(*words, "--for", "1s", "-r", rules)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert (board.folder / "arguments").read_text() == "-F1 -F2 -w -s 1 -c -k 32 -b 16 -f -\n"
    trace = open_trace(tmp_path / "run.kev")
    assert {"THREAD", "COMM"} < set(trace.class_counts())
    assert not {"KER_CALL", "INT_ENTR"} & set(trace.class_counts())
    assert trace.header.get("CAPTURE_RULES") == "ADDALLCLASSES; DELCLASS KERCALL; DELCLASS INT; SETALLCLASSESWIDE"
    shown = satview("info", tmp_path / "run.kev").stdout.decode()
    assert re.search(r"Captured from  127\.0\.0\.1, began 20.*, clock offset [+-]0\.\d+ s, .*, rules ADDALL", shown)


@pytest.mark.thorough
def test_rules_of_a_target_are_beside_its_file(board, words, tmp_path):
    (tmp_path / "quiet.satrules").write_text("ADDALLCLASSES\nDELCLASS INT\n")
    with Path(words[3]).open("a") as targets:
        targets.write('rules = "quiet.satrules"\n')
    assert satview(*words, "--for", "1s").returncode == 0
    assert (board.folder / "arguments").read_text() == "-F2 -s 1 -c -k 32 -b 16 -f -\n"


def test_rules_that_no_option_says_filter_what_came(board, words, tmp_path):
    rules = tmp_path / "calls.satrules"
    rules.write_text("ADDCLASS THREAD\nADDEVENT KERCALL MSG_SENDV\nWHERE cpu == 0\n")
    done = satview(*words, "--for", "1s", "-r", rules)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "some classes are partly on: tracelogger can only leave out whole classes; the rest is filtered" in said
    whole, kept = open_trace(tmp_path / "run.unfiltered.kev"), open_trace(tmp_path / "run.kev")
    assert not {"COMM", "INT_ENTR"} & set(whole.class_counts())  # options said that much
    calls = {trace.catalogue.spec(code).name for trace in (kept,) for code in set(trace.events.code.tolist())
             if trace.catalogue.class_name(code) == "KER_CALL"}  # fmt: skip
    assert calls == {"MSG_SENDV"}
    assert 0 < kept.class_counts()["KER_CALL"] < whole.class_counts()["KER_CALL"]
    assert "run.kev: " in done.stdout.decode().splitlines()[2]


def test_faulty_rules_start_nothing(board, words, tmp_path):
    rules = tmp_path / "bad.satrules"
    rules.write_text("ADDCLASS THRED\n")
    done = satview(*words, "-r", rules)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("bad.satrules:1:")
    assert done.stderr.decode().endswith("satview: the rules have errors; nothing was captured\n")
    assert not (board.folder / "arguments").exists()


# Several targets.


def test_two_targets_are_one_axis(board, words, tmp_path):
    other = Board(tmp_path / "other")
    try:
        with Path(words[3]).open("a") as targets:
            targets.write(f'[second]\naddress = "{other.profile.address}"\nssh_options = ["-F", "{other.client}"]\n')
        axis = tmp_path / "both.sataxis"
        done = satview("capture", "rig", "second", *words[2:4], "--for", "2s", "-o", axis)
        assert done.returncode == 0, done.stderr
        rig, second = read_axis(axis)
        assert (rig.name, rig.path.name, rig.offset_ps) == ("rig", "both-rig.kev", 0)
        assert (second.name, second.path.name) == ("second", "both-second.kev")
        assert abs(second.offset_ps) < 10e12  # they began at once, as far as this machine is quick
        parts = files_of(open_trace(axis)).parts
        assert all(1.9e9 < part.trace.duration_ns < 2.1e9 for part in parts)
        assert board.is_clean_within(5)
        assert other.is_clean_within(5)
        other.sshd.kill()
        other.sshd.wait()
        done = satview("capture", "rig", "second", *words[2:4], "--for", "1s", "-o", tmp_path / "one.sataxis")
        assert done.returncode == 2
        said = done.stderr.decode()
        assert "second has no ssh server on this port" in said
        assert said.endswith("one.sataxis: an axis needs two traces, and 1 came\n")
        assert open_trace(tmp_path / "one-rig.kev").events  # what came is there
    finally:
        other.close()


def test_targets_of_one_name_and_outputs_that_are_no_axis(words, capsys):
    targets = words[2:4]
    assert main(["capture", "rig", "rig", *targets, "-o", "x.sataxis"]) == 2
    assert "two targets are called rig; give them names of their own" in capsys.readouterr().err
    assert main(["capture", "rig", "rig", *targets, "-o", "x.kev"]) == 2
    assert "several targets end as one time axis; write -o NAME.sataxis" in capsys.readouterr().err


def test_targets_are_listed(tmp_path, capsys, monkeypatch):
    file = tmp_path / "targets.toml"
    assert main(["targets", "--targets", str(file)]) == 0
    assert 'address = "ssh://root@192.168.1.20"' in capsys.readouterr().out
    file.write_text('[rig]\naddress = "ssh://root@rig"\nwide = true\n[board7]\naddress = "ssh://b"\n')
    assert main(["targets", "--targets", str(file)]) == 0
    assert capsys.readouterr().out == "rig     ssh://root@rig  wide\nboard7  ssh://b\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--until-key"], "--until-key needs a terminal; use --for 10s"),
        (["--for", "0"], "--for 0: must be more than 0"),
        (["--for=-1s"], "--for -1: must be more than 0"),
        (["-k", "0"], "rig: kernel_buffers: expected a whole number >= 1"),
        (["-F", "99"], "-F 99 is not a filter of tracelogger"),
        (["-k", "5000"], "rig: kernel_buffers: expected a whole number <= 4096"),
        (["-o", "-"], "-o -: a capture needs a file"),
    ],
)
def test_wrong_options_start_nothing(tmp_path, capsys, more, said):
    file = tmp_path / "targets.toml"
    file.write_text('[rig]\naddress = "ssh://127.0.0.1:1"\n')
    assert main(["capture", "rig", "--targets", str(file), *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.thorough
def test_a_recorder_writes_a_file_for_each_incident(board, words, tmp_path):
    rules = tmp_path / "late.satrules"
    rules.write_text('WHEN event == SND_MESSAGE and time > 1s THEN MARK "sent"; KEEP 3 buffers; STOP\n')
    done = satview(*words, "-r", str(rules), "--ring", "--every", "--files", "2", "--for", "4s")
    assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in tmp_path.glob("run*.kev"))
    assert len(files) == 2
    assert files[0] > "run-0002.kev"  # older ones went
    assert f"{tmp_path}/{files[0]}, {tmp_path}/{files[1]}: " in done.stdout.decode()
    assert f"{files[1]}: " in done.stderr.decode()
    assert "of triggers, noticed here" in done.stderr.decode()
    assert (board.folder / "arguments").read_text() == "-a -s 4 -c -D 1 -k 32 -b 16 -f -\n"
    assert board.is_clean_within(5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--every"], "--every needs --ring"),
        (["--ring", "--files", "2"], "are for --every"),
        (["--ring", "--every", "--disk", "1TB"], "--disk 1TB: must be a size"),
        (["--ring", "--every", "--files", "-2"], "--files -2"),
    ],
)
def test_options_of_a_recorder_that_cannot_work_are_refused(words, tmp_path, options, message):
    rules = tmp_path / "late.satrules"
    rules.write_text("WHEN event == SND_MESSAGE THEN STOP\n")
    done = satview(*words, "-r", str(rules), *options)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert not [*tmp_path.glob("run*")]

"""A simulated target that stays: what its shells see, who else may use it, and clients that do harm."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from satview.__main__ import main
from satview.base.errors import UsageError
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.derived_columns import process_names
from satview.formats.registry import open_trace
from satview.target import shell
from satview.target.capture import capture
from satview.target.line import TargetError, find_profile
from satview.target.request import TargetRequest
from tests.helpers.commands import ROOT, satview
from tests.target.conftest import Resident

CLIENT_SERVER = ["slow_server", "client1", "client2", "client3", "client4"]
START = "import sys; from satview.__main__ import main; sys.exit(main())"
LOG = {"do": "log", "options": {"iterations": 0}, "name": "x.kev"}


@pytest.fixture
def shell_of(resident):
    """Start commands in shells of the target; whatever still runs at the end is killed."""
    running = []

    def start(script, *, is_background=False):
        words = ["/bin/sh", "-c", script]
        environment = {**os.environ, **shell.variables(resident.target.folder)}
        process = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        running.append(process)
        return process if is_background else (*process.communicate(timeout=60), process.returncode)

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def sends(resident, data):
    """Return what the target answers to some bytes, as text of frames by kind, after which it closes the line."""
    with shell.connect(resident.target.folder) as line:
        line.settimeout(20)
        line.sendall(data)
        return dict(shell.frames(line))


@pytest.mark.thorough
def test_programs_of_several_shells(resident, shell_of):
    assert resident.processes() == CLIENT_SERVER
    background = shell_of("exec message-deadlock", is_background=True)
    assert resident.waits_until(lambda: len(resident.processes()) > len(CLIENT_SERVER))
    more = resident.processes()[len(CLIENT_SERVER) :]
    listing, _, _ = shell_of("pidin -F '%n %J'")
    assert all(name in listing for name in [*CLIENT_SERVER, *more])
    background.send_signal(signal.SIGINT)
    background.wait(10)
    assert resident.waits_until(lambda: resident.processes() == CLIENT_SERVER)


def test_a_program_that_ends_gives_the_shell_its_prompt_back(shell_of):
    _, error, code = shell_of("timeout 20 two-threads")
    assert (error, code) == ("", 0)


@pytest.mark.thorough
def test_loggers_come_and_go(resident, shell_of, tmp_path):
    for name in ("one.kev", "two.kev"):
        _, error, code = shell_of(f"cd '{tmp_path}'; tracelogger -w -s 0.4 -f {name}")
        assert (error, code) == ("", 0)
        trace = open_trace(tmp_path / name)
        assert not trace.problems
        assert 0.3e9 < trace.duration_ns < 0.5e9
        assert trace.header.get("TRACELOGGER_ARGS") == f"tracelogger -w -s 0.4 -f {name}"
    assert resident.processes() == CLIENT_SERVER


@pytest.mark.thorough
def test_a_program_that_starts_while_a_logger_runs_is_in_the_trace(shell_of, tmp_path):
    runs = "until [ -s run.kev ]; do sleep 0.02; done"
    _, error, code = shell_of(f"cd '{tmp_path}'; tracelogger -c -f run.kev & {runs}; polite; slay tracelogger; wait $!")
    assert (error, code) == ("", 0)
    trace = open_trace(tmp_path / "run.kev")
    assert "polite" in process_names(trace)


@pytest.mark.thorough
def test_a_second_logger_is_refused_and_the_first_one_can_be_ended(resident, shell_of, tmp_path):
    log = shell_of(f"exec tracelogger -c -f '{tmp_path / 'run.kev'}'", is_background=True)
    assert resident.waits_until(lambda: "tracelogger" in resident.processes())
    _, error, code = shell_of(f"tracelogger -c -f '{tmp_path / 'second.kev'}'")
    assert re.search(r"tracelogger runs already \(pid \d+\)", error)
    assert code == 2
    assert not (tmp_path / "second.kev").exists()
    assert resident.waits_until(lambda: (tmp_path / "run.kev").stat().st_size > 50_000)
    shell_of("slay tracelogger")
    assert log.wait(20) == 0
    assert not open_trace(tmp_path / "run.kev").problems
    assert resident.processes() == CLIENT_SERVER


@pytest.mark.thorough
def test_a_logger_that_is_killed_leaves_the_kernel_ready_for_the_next(resident, shell_of, tmp_path):
    log = shell_of(f"exec tracelogger -c -f '{tmp_path / 'run.kev'}'", is_background=True)
    assert resident.waits_until(lambda: "tracelogger" in resident.processes())
    shell_of("slay -9 tracelogger")
    _, error = log.communicate(timeout=20)
    assert "tracelogger was ended" in error
    assert resident.target.kernel.emitter.buffers is None
    assert resident.processes() == CLIENT_SERVER


@pytest.mark.thorough
def test_rules_are_those_of_the_target(resident, shell_of, tmp_path):
    (tmp_path / "mine.satrules").write_text("ADDCLASS COMM\nSETCLASSPID COMM slow_server\n")
    _, error, code = shell_of(f"cd '{tmp_path}'; tracelogger --rules mine.satrules -s 0.3 -f run.kev")
    assert (error, code) == ("", 0)
    trace = open_trace(tmp_path / "run.kev")
    classes = {int(code) >> 10 for code in trace.events.code}
    assert WireClass.COMM in classes
    assert WireClass.PR_TH not in classes


@pytest.mark.thorough
def test_its_clock_follows_real_time(resident):
    def up_s():
        return float(re.search(r"up ([0-9.]+) s", resident.answer("pidin", "info")[1])[1])

    def follows():
        before_s, began_s = up_s(), time.monotonic()
        time.sleep(0.5)
        asked_s, after_s, answered_s = time.monotonic(), up_s(), time.monotonic()
        return asked_s - began_s - 0.15 < after_s - before_s < answered_s - began_s + 0.15

    assert resident.waits_until(follows)  # at once on a machine that does nothing else
    assert resident.waits_until(lambda: "clock follows real time" in resident.answer("pidin", "info")[1])


@pytest.mark.thorough
def test_a_clock_that_falls_behind_is_said(targets_folder, tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\nfrom satview.capture.sim.calls import Compute\n"
        "def main():\n    while True:\n        time.sleep(0.002)\n        yield Compute(100_000)\n"
    )
    there = Resident("slow")
    try:
        there.target.start_workload(str(tmp_path / "slow.py"))
        assert there.waits_until(lambda: "s behind real time" in there.answer("pidin", "info")[1])
    finally:
        there.close()


@pytest.mark.thorough
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_8])
def test_other_releases(targets_folder, quick_clock, tmp_path, release):
    """Before 6.6 tracelogger writes a file into memory, which is copied and removed."""
    there = Resident("other", ["client-server"], release=release)
    try:
        request = TargetRequest(find_profile("sim://other", tmp_path / "none.toml"), tmp_path / "run.kev", seconds=1.0)
        captured = capture(request, lambda: False, lambda _text: None, lambda _text: None)
        assert captured.faults == []
        assert open_trace(tmp_path / "run.kev").release is release
        assert list((there.target.folder / "shmem").iterdir()) == []
    finally:
        there.close()


def test_a_system_without_such_sockets_is_told_so(monkeypatch, tmp_path):
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(UsageError, match="needs Unix sockets"):
        find_profile("sim://", tmp_path / "none.toml")


@pytest.mark.thorough
def test_a_capture_of_it(resident, quick_clock, tmp_path):
    profile = find_profile("sim://", tmp_path / "none.toml")
    request = TargetRequest(profile, tmp_path / "run.kev", filters=("-w",), seconds=1.0)
    captured = capture(request, lambda: False, lambda _text: None, lambda _text: None)
    assert captured.faults == captured.notes == []
    trace = open_trace(tmp_path / "run.kev")
    assert not trace.problems
    assert 0.9e9 < trace.duration_ns < 1.1e9
    assert trace.header.get("CAPTURE_HOST") == "target"
    assert captured.offset is not None
    assert abs(captured.offset.seconds) <= captured.offset.error_s + 0.1
    assert resident.processes() == CLIENT_SERVER


@pytest.mark.thorough
def test_a_target_that_ends_before_its_logger_is_a_fault_of_the_capture(targets_folder, quick_clock, tmp_path):
    """The file has less than was asked for, so that the command ends with 1 as with any other fault."""
    there = Resident("dying", ["client-server"])
    request = TargetRequest(find_profile("sim://dying", tmp_path / "none.toml"), tmp_path / "run.kev", seconds=8.0)
    captured = capture(request, lambda: False, lambda _text: None, lambda _text: None, lambda _path: there.close())
    (fault,) = captured.faults
    assert fault.startswith("tracelogger on dying ended with status 1: ")
    assert fault.endswith("the simulated target dying ended before its logger; stdout has what came")
    assert captured.seconds < 6


def test_a_capture_by_the_command_says_what_is_wrong_with_the_name(resident, tmp_path):
    done = satview("capture", "sim://other", "--for", "1s", "-o", str(tmp_path / "run.kev"))
    assert done.returncode == 2
    assert (
        "no simulated target called other runs here; start it with `satview target --name other`"
        in done.stderr.decode()
    )
    done = satview("capture", "sim://../x", "--for", "1s", "-o", str(tmp_path / "run.kev"))
    assert done.returncode == 2
    assert "is not the address of a target" in done.stderr.decode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hello\n", "does not understand"),
        (b"[1]\n", "does not understand"),
        (b'{"do":"format"}\n', "does not understand"),
        (b'{"do":"command","words":[],"folder":"/"}\n', "does not understand"),
        (b'{"do":"command","words":[7],"folder":"/"}\n', "does not understand"),
        (b'{"do":"command","words":["rm"],"folder":"/"}\n', "rm: there is no such program"),
        (b'{"do":"command","words":["run","no.py"],"folder":"/nowhere"}\n', "no.py"),
        (b'{"do":"log","options":{"kernel_buffers":1000000},"name":"x"}\n', "does not understand"),
        (b'{"do":"log","options":{"is_probe":true},"name":"x"}\n', "no probe"),
        (b'{"do":"log","options":{},"name":"x","rules":"ADDCLASS NOTHING"}\n', "line 1"),
        (b'{"do":"log","options":{},"name":"x","limit_bytes":5}\n', "too few"),
    ],
)  # fmt: skip
def test_requests_that_are_none(resident, data, says):
    answer = sends(resident, data)
    assert answer[shell.EXIT] == b"\x02"
    assert says in answer[shell.ERROR].decode() or "the rules have errors" in answer[shell.ERROR].decode()
    assert resident.processes() == CLIENT_SERVER


def test_a_line_without_an_end_is_cut_off(resident):
    with shell.connect(resident.target.folder) as line:
        line.settimeout(20)
        line.sendall(b"x" * (shell.LINE_BYTES_MAX + 1))
        with suppress(ConnectionError):
            assert line.recv(1) == b""
    assert resident.processes() == CLIENT_SERVER


@pytest.mark.thorough
def test_a_logger_whose_client_takes_nothing_waits_and_its_target_does_not(resident):
    line = shell.connect(resident.target.folder)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    shell.ask(line, {**LOG, "options": {"iterations": 0, "is_wide": True, "own_buffers": 1}})
    assert resident.waits_until(lambda: resident.target.logs and resident.target.logs[0].logger.report.dropped > 0)
    assert "tracelogger" in resident.processes()
    line.close()  # dies without a word
    assert resident.waits_until(lambda: resident.processes() == CLIENT_SERVER)


def test_a_program_that_goes_wrong_ends_alone_and_the_console_says_so(resident, shell_of, tmp_path):
    (tmp_path / "wrong.py").write_text("def main():\n    yield 7\n")
    _, _, code = shell_of(f"cd '{tmp_path}'; run wrong.py")
    assert code == 0
    assert resident.waits_until(lambda: any("yielded 7, which is not a kernel call" in text for text in resident.said))
    assert resident.waits_until(lambda: resident.processes() == CLIENT_SERVER)


def test_only_one_target_has_a_name_and_its_folder_is_private(resident, targets_folder):
    with pytest.raises(TargetError, match="runs already"):
        Resident("target")
    open_folder = targets_folder / "satview" / "open"
    open_folder.mkdir(mode=0o755)
    with pytest.raises(shell.NoTargetError, match="nobody else can enter"):
        Resident("open")
    (targets_folder / "satview" / "link").symlink_to(resident.target.folder)
    with pytest.raises(shell.NoTargetError, match="nobody else can enter"):
        Resident("link")
    assert resident.target.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.thorough
def test_the_dead_are_forgotten(targets_folder, monkeypatch):
    monkeypatch.setattr("satview.target.simulated._REMEMBERED_NS", 100_000_000)
    there = Resident("brief")
    try:
        there.target.start_workload("fork-storm")
        processes, dead = there.target.kernel.machine.processes, set()

        def is_one_forgotten():
            alive_or_dead = list(processes.values())
            dead.update(process.pid for process in alive_or_dead if process.is_dead)
            return dead - {process.pid for process in alive_or_dead}

        assert there.waits_until(is_one_forgotten)
    finally:
        there.close()


@pytest.mark.thorough
def test_the_command_serves_until_it_is_ended(targets_folder, tmp_path):
    words = [sys.executable, "-P", "-c", START, "target", "--name", "mine", "--release", "8.0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("QNX 8.0.0 (simulated, CPUs: 2) is up")
        done = satview("target", "--name", "mine", "--run", f"uname -r; tracelogger -s 0.3 -f '{tmp_path}/x.kev'")
        assert done.stdout.decode().startswith("8.0.0")
        assert not open_trace(tmp_path / "x.kev").problems
        assert satview("target", "--name", "mine", "--end").returncode == 0
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
    done = satview("target", "--name", "mine", "--end")
    assert done.returncode == 2
    assert b"no simulated target called mine runs here" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--sdk", "SDK", "--cpus", "3", "--name", "mine"],
            "--sdk: cannot be used with --name, --cpus, because it writes files and needs no target",
        ),
        (
            ["--run", "pidin", "--cpus", "2", "--workload", "nosuch"],
            "--run: cannot be used with --cpus, --workload, because it boots no target",
        ),
        (["--shell", "--seed", "1"], "--shell: cannot be used with --seed, because it boots no target"),
        (["--end", "--release", "8.0"], "--end: cannot be used with --release, because it boots no target"),
    ],
)
def test_what_a_new_target_is_cannot_be_said_without_one(targets_folder, tmp_path, options, says, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["target", *options]) == 2
    assert capsys.readouterr().err == f"satview: {says}\n"
    assert not list(tmp_path.iterdir())


def test_an_sdk_is_for_a_release(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["target", "--sdk", "SDK", "--release", "8.0"]) == 0
    assert (tmp_path / "SDK" / "Makefile").exists()

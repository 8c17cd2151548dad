"""Where a target is, what it says of itself, and why a capture does not begin."""

from __future__ import annotations

import subprocess

import pytest
from msgspec.structs import replace

from satview.base.errors import UsageError
from satview.events.spec import Release
from satview.formats.axis import Member, trace_on_axis
from satview.formats.kev.reader import open_kev, read_start
from satview.target.line import Profile, TargetError, TargetLine, find_profile, read_profiles
from satview.target.request import Board, TargetRequest, ask_board, attributes, board_of, check_board
from tests.helpers.commands import satview
from tests.helpers.kev import TraceBuilder, write_trace


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ssh://board", ["--", "board"]),
        ("ssh://root@10.0.0.7:2222/", ["-l", "root", "-p", "2222", "--", "10.0.0.7"]),
        ("ssh://qnx@[fe80::1%eth0]:22", ["-l", "qnx", "-p", "22", "--", "fe80::1%eth0"]),
    ],
)
def test_an_address_becomes_words_of_ssh(address, words):
    assert Profile(address).ssh_words() == words


@pytest.mark.parametrize(
    "address", ["board", "ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://b:0", "ssh://b:65536", "http://b"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UsageError, match="write ssh://user@host:port"):
        Profile(address).ssh_words()


def test_a_file_of_targets_gives_profiles_by_name(tmp_path):
    file = tmp_path / "targets.toml"
    assert read_profiles(file) == {}
    file.write_text('[rig]\naddress = "ssh://root@rig"\nssh_options = ["-F", "x"]\nwide = true\nkernel_buffers = 64\n')
    assert find_profile("rig", file) == Profile(
        "ssh://root@rig", ssh_options=("-F", "x"), is_wide=True, kernel_buffers=64, name="rig"
    )
    assert find_profile("ssh://other", file) == Profile("ssh://other")
    with pytest.raises(UsageError, match=r"no target 'rack' in targets.toml \(there are: rig\)"):
        find_profile("rack", file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[rig]\naddress = "rig"\n', "target 'rig': 'rig' is not the address of a target"),
        ('[rig]\naddress = "ssh://rig"\npassword = "x"\n', "unknown field `password`"),
        (
            '[rig]\naddress = "ssh://rig"\nkernel_buffers = 0\n',
            "targets.toml: [rig] kernel_buffers: expected a whole number >= 1",
        ),
        ("[rig\n", "targets.toml, line 1: Expected"),
        ('x = "\xff"\n', "targets.toml, line 1: no UTF-8 text; save it as UTF-8"),
    ],
)
def test_a_faulty_file_of_targets_is_one_sentence(tmp_path, text, said):
    file = tmp_path / "targets.toml"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError) as error:
        read_profiles(file)
    assert said.replace("`", "") in str(error.value).replace("`", "")
    assert "\n" not in str(error.value)


def test_a_board_says_what_it_is(board):
    with TargetLine(board.profile) as line:
        answer = ask_board(line)
    assert answer == Board(
        system="QNX", node="board", sys_release="7.1.0", machine="x86_64", user=0,
        logger=str(board.folder / "bin" / "tracelogger"), processes={1: "procnto-smp-instr", 2: "slogger2"},
        free_bytes=201 << 20,
    )  # fmt: skip
    assert answer.release is Release.QNX_7
    assert answer.has_instrumented_kernel
    assert answer.can_stream
    check_board(answer, board.profile)
    assert board.is_clean_within(5)


def test_a_board_that_answers_nothing_is_unknown_and_not_refused(board):
    for name in ("uname", "id", "pidin", "date"):
        board.add_program(name, "exit 127")
    (board.folder / "bin" / "tracelogger").unlink()
    board.add_program("which", "exit 1")
    with TargetLine(board.profile) as line:
        answer = ask_board(line)
        assert line.clock_offset() is None
    assert answer == Board(logger="")
    assert ", ".join(Board().unknown()) == (
        "its release, whether its kernel is instrumented, whether it has tracelogger, whether a logger runs, "
        "the rights of the login, its free memory"
    )
    check_board(Board(), board.profile)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"system": "Linux pc 6.1.0 x86_64"}, "runs Linux, which has no tracelogger"),
        ({"system": "QNX pc 4.25 x86pc x86"}, "runs QNX 4.25, whose traces are not known here"),
        ({"system": "QNX pc 6.5.0 x86pc x86", "processes": "1 procnto-smp"}, "boot an image with procnto-smp-instr"),
        ({"logger": "none"}, "there is no tracelogger on board"),
        ({"processes": "1 procnto-smp-instr\n 77 usr/sbin/tracelogger"}, "stop it with `kill 77` there"),
        ({"system": "QNX pc 6.5.0 x86pc x86", "user": "100"}, "needs root, and ssh logs in as user 100"),
        ({"memory": "FreeMem:1MB/64MB"}, "has 1 MB of memory free, and the buffers take 1 MB"),
        (
            {"system": "QNX pc 6.5.0 x86pc x86", "disk": "/dev/hd0t77 2048 1024 1024 50% /fs"},
            "/dev/shmem on board has 1 MB free, and the buffers alone have 1 MB",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_remedy(answers, said):
    with pytest.raises(TargetError) as error:
        check_board(board_of(answers), Profile("ssh://board"))
    assert said in str(error.value)
    assert ";" in str(error.value)


def test_answers_of_a_stranger_stay_text(board, tmp_path):
    path = tmp_path / "run.kev"
    nasty = "\x1b]0;x\x07$(touch${IFS}ran)`touch${IFS}ran`;touch${IFS}ran"
    board.says(uname=f"QNX {nasty} 7.1.0 {nasty}", memory=f"FreeMem:{'9' * 400}MB {nasty}", user="-1",
               processes=f"1 procnto-instr\n{'9' * 400} {nasty}\n7 {nasty}")  # fmt: skip
    with TargetLine(board.profile) as line:
        answer = ask_board(line)
    assert "\x1b" not in repr(answer).replace("\\x1b", "")
    assert (answer.user, answer.free_bytes) == (None, None)
    assert list(answer.processes) == [1, 7]
    targets = tmp_path / "targets.toml"
    targets.write_text(f'[rig]\naddress = "{board.profile.address}"\nssh_options = ["-F", "{board.client}"]\n')
    done = satview("capture", "rig", "--targets", targets, "--for", "1s", "-o", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr + read_start(path).header.get("CAPTURE_NODE").encode()
    assert not list(tmp_path.rglob("ran"))


def test_a_clock_ahead_is_measured_with_its_error(board):
    board.says(ahead="3600")
    with TargetLine(board.profile) as line:
        offset = line.clock_offset()
    assert offset is not None
    assert abs(offset.seconds - 3600) <= offset.error_s
    assert 0 < offset.error_s < 0.5


USAGE = """\
tracelogger - Gather events from the instrumented kernel

tracelogger [options]
Options:
 -b num     Number of buffers in the non-kernel part (default 64)
 -d0|1      Daemon mode
 -f file    Output file
 -n num     Number of buffers
 -[PR]      Keep, or reuse
 -s sec, -w Seconds; wide events
"""


def test_a_logger_says_which_options_it_has(board):
    assert board_of({"usage": USAGE}).options == {"-P", "-R", "-b", "-d", "-f", "-n", "-s", "-w"}
    assert board_of({"usage": "tracelogger: no usage message in tracelogger -x"}).options == frozenset()
    board.says(usage=USAGE, disk="Filesystem 1K-blocks Used Available Capacity Mounted\n/dev/hd0 4096 1024 3072 25% /")
    with TargetLine(board.profile) as line:
        answer = ask_board(line)
    assert answer.options == {"-P", "-R", "-b", "-d", "-f", "-n", "-s", "-w"}
    assert answer.disk_bytes == 3 << 20
    assert board_of({"disk": "/dev/shmem 0 0 0 100% /dev/shmem"}).disk_bytes is None


def test_a_key_that_the_board_does_not_know(board):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", board.folder / "other_key"], check=True)
    board.client.write_text(board.client.read_text().replace("user_key", "other_key"))
    with pytest.raises(TargetError, match="board accepts none of your keys; add one there with `ssh-copy-id"):
        TargetLine(board.profile).__enter__()
    assert board.is_clean_within(5)


def test_host_keys_are_the_users_to_confirm(board):
    known = board.folder / "known_hosts"
    before = known.read_text()
    known.write_text("")
    with pytest.raises(TargetError, match="has a host key that you have not confirmed yet; connect once by hand"):
        TargetLine(board.profile).__enter__()
    known.write_text(before.replace(before.split()[2], (board.folder / "user_key.pub").read_text().split()[1]))
    with pytest.raises(TargetError, match="has another host key than before; if the board was set up again"):
        TargetLine(board.profile).__enter__()


def test_nobody_listens(board):
    board.sshd.kill()
    board.sshd.wait()
    with pytest.raises(TargetError, match="board has no ssh server on this port; start sshd there"):
        TargetLine(board.profile).__enter__()
    with pytest.raises(TargetError, match="is not known under this name"):
        TargetLine(replace(board.profile, address="ssh://no-such-board.invalid")).__enter__()


def test_the_process_that_sends_a_trace_is_marked_in_it(tmp_path):
    """sshd 77 serves the line; a shell that is the parent instead carries nothing."""
    processes = "1 procnto-smp-instr\n 77 usr/sbin/sshd\n 78 bin/sh\n"
    board = board_of({"processes": processes, "parent": "77"})
    assert board.ssh_pid == 77
    assert [
        board_of({"processes": processes, "parent": parent}).ssh_pid for parent in ("78", "5", "", "x", "9" * 99)
    ] == ([None] * 5)
    request = TargetRequest(Profile("ssh://rig"), tmp_path / "t.kev")
    pairs = attributes(request, board, "tracelogger", None)
    builder = TraceBuilder().time_event(0).process_name(1, 77, "usr/sbin/sshd").process_name(2, 78, "usr/sbin/sshd")
    builder.state("RUNNING", 5, 77, 1)
    path = write_trace(tmp_path / "t.kev", builder.writer.slots(), attributes=pairs)
    trace = open_kev(path)
    assert [trace.process_name(row) for row in (1, 2)] == ["sshd (of this capture)", "sshd[78]"]
    assert trace.thread_name(1) == "sshd (of this capture) 1"
    both = trace_on_axis(tmp_path / "x.sataxis", [Member(name, trace) for name in ("rig", "twin")])
    names = [both.process_name(row) for row in range(1, len(both.processes))]
    assert names == ["rig:sshd (of this capture)", "rig:sshd[78]", "twin:sshd (of this capture)", "twin:sshd[178]"]

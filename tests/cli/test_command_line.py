"""The command line as a shell sees it: outputs that must not destroy anything, streams, exit codes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from satview.__main__ import main
from tests.helpers.commands import satview
from tests.helpers.extent import fewer, points, usually
from tests.helpers.kev import TraceBuilder
from tests.helpers.packing import PACKERS, zstd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices and signals of POSIX systems")
ONE = "import sys; from satview.__main__ import main; sys.exit(main())"


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().time_event(0)
    for number in range(50):
        builder.state("RUNNING", 10 + number, 2, 1)
    return builder.write(tmp_path / "t.kev")


def wait_until(is_so):
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def said(done):
    text = done.stderr.decode()
    assert "Traceback" not in text
    assert len(text.splitlines()) == 1, text
    return text.strip()


@points(
    command=[
        "traceprinter -f {t} -o {out}",
        "filter {t} -o {out}",
        "filter {t} --c-program {out}",
        "convert {t} {out}",
        "{t} --screenshot {out}",
        "tracelogger --rules {t} -f {out}",
    ],
    name=["t.kev", "symbolic", "hard"],
)
def test_file_that_is_read_is_never_replaced(trace, command, name, capsys):
    before = trace.read_bytes()
    (trace.parent / "symbolic").symlink_to("t.kev")
    (trace.parent / "hard").hardlink_to(trace)
    assert main(command.format(t=trace, out=trace.parent / name).split()) == 2
    [says] = capsys.readouterr().err.splitlines()
    assert says.endswith(f"{name}: this is the file that is being read; give another name")
    assert trace.read_bytes() == before


def test_standard_input_and_appending_are_guarded_too(trace):
    before = trace.read_bytes()
    with trace.open("rb") as file:
        done = satview("traceprinter", "-f", "-", "-o", trace, stdin=file)
    assert done.returncode == 2
    with trace.open("ab") as file:
        done = satview("traceprinter", "-f", trace, stdout=file)
    assert done.returncode == 2
    assert "is being read" in said(done)
    assert trace.read_bytes() == before


@pytest.mark.parametrize(
    "command", ["filter {t} -o", "convert {t}", "traceprinter -f {t} -o", "filter {t} --c-program"]
)
def test_device_node_stays_a_device(trace, command):
    node = trace.parent / "null"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"x")
    except OSError:
        pytest.skip("no device nodes can be made here")
    assert satview(*command.format(t=trace).split(), node).returncode == 0
    assert stat.S_ISCHR(node.stat().st_mode)
    assert satview(*command.format(t=trace).split(), "/dev/full").returncode == 2


@pytest.mark.thorough
def test_counts_have_commas_and_agree_with_their_noun(tmp_path):
    """A trace of 1,201 events, alone in its folder."""
    (tmp_path / "in").mkdir()
    builder = TraceBuilder().time_event(0)
    for number in range(1_200):
        builder.state("RUNNING", 10 + number, 2, 1)
    many = builder.write(tmp_path / "in" / "t.kev")
    for command, says in (
        (("convert", many, tmp_path / "c.kev"), "c.kev: 1,201 slots"),
        (("export", many.parent, "-o", tmp_path / "fleet", "--jobs", "1"), "fleet: 1 trace written, 1,201 events"),
        (("export", many, "-o", tmp_path / "one.csv", "--range", "#1..#1"), "one.csv: 1 row of event"),
    ):
        assert satview(*command).stdout.decode().splitlines()[0] == f"{tmp_path}/{says}"


@pytest.mark.thorough
@pytest.mark.parametrize("output", fewer(("-", "/dev/stdout", "/dev/fd/1"), 1))
def test_trace_goes_to_standard_output_and_messages_elsewhere(trace, output):
    satview("convert", trace, trace.parent / "copy.kev")
    done = satview("convert", trace, output)
    assert done.stdout == (trace.parent / "copy.kev").read_bytes()
    assert said(done) == f"{output}: 51 slots"
    done = satview("filter", trace, "-o", output)
    assert done.stdout.startswith(b"TRACE_HEADER_BEGIN")
    assert b"51 of 51 events" in done.stderr
    done = satview("filter", trace, "--explain", "--tracelogger", "--c-program", output)
    assert done.stdout.startswith(b"/*")
    assert b"tracelogger" in done.stderr


def test_trace_goes_into_a_pipe(trace):
    os.mkfifo(trace.parent / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((trace.parent / "pipe").read_bytes()))
    reader.start()
    assert satview("convert", trace, trace.parent / "pipe").returncode == 0
    reader.join(10)
    assert got[0].startswith(b"TRACE_HEADER_BEGIN")


@pytest.mark.thorough
def test_killed_printer_leaves_the_old_listing_and_ended_one_no_temporary(trace):
    listing = trace.parent / "out.txt"
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if number != signal.SIGKILL and signal.getsignal(number) is signal.SIG_IGN:
            continue  # these tests run in the background of a shell: commands ignore it too
        listing.write_text("old")
        job = subprocess.Popen(
            [sys.executable, "-c", ONE, "traceprinter", "-f", "-", "-o", listing],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        job.stdin.write(trace.read_bytes() + trace.read_bytes()[-16:] * 1000)  # it waits for more, in the middle
        job.stdin.flush()
        wait_until(lambda: len(list(trace.parent.iterdir())) > 2)
        job.send_signal(number)
        code = job.wait(30)
        job.stdin.close()
        assert listing.read_text() == "old"
        names = {path.name for path in trace.parent.iterdir()} - {"t.kev", "out.txt"}
        assert len(names) == (number == signal.SIGKILL)
        assert code == (-number if number == signal.SIGKILL else 128 + number)
        if names:
            assert satview("traceprinter", "-f", trace, "-o", listing).returncode == 0
            assert {path.name for path in trace.parent.iterdir()} == {"t.kev", "out.txt"}


@pytest.mark.thorough
@pytest.mark.parametrize("ring", fewer((True, False), 1))
def test_capture_is_whole_in_ring_mode_and_grows_in_linear_mode(tmp_path, ring):
    file = tmp_path / "c.kev"
    file.write_bytes(b"old")
    job = subprocess.Popen(
        [
            sys.executable,
            "-c",
            ONE,
            "tracelogger",
            "--workload",
            "small-system",
            "--pace",
            "1",
            "--duration",
            "1000",
            "-r" if ring else "-c",
            "-f",
            file,
        ],
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(list(tmp_path.iterdir())) > 1 if ring else file.stat().st_size > 10_000)
    job.kill()
    job.wait(30)
    assert (file.read_bytes() == b"old") is ring
    assert satview("tracelogger", "--workload", "small-system", "-f", file).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["c.kev"]
    assert satview("info", file).returncode == 0


READERS = ["info {t}", "info --json {t}", "stats {t}", "stats --by all {t}", "filter {t}", "traceprinter {t}"]


@pytest.mark.parametrize("command", READERS)
def test_full_standard_output_is_one_sentence_and_one_without_a_reader_none(trace, command):
    arguments = command.format(t=trace).split()
    with Path("/dev/full").open("wb") as full:
        done = satview(*arguments, stdout=full)
    assert (done.returncode, said(done)) == (2, "satview: standard output: No space left on device")
    reading, writing = os.pipe()
    os.close(reading)
    done = satview(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.thorough
@pytest.mark.parametrize("command", READERS[: usually(1, len(READERS))])
def test_closed_standard_output_is_one_sentence(trace, command):
    shell = f'exec {sys.executable} -c "{ONE}" {command.format(t=trace)} >&-'
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, check=False, timeout=60)
    assert (done.returncode, said(done)) == (2, "satview: standard output: it is closed")


@pytest.mark.thorough
def test_dead_display_is_one_sentence(trace):
    environment = {name: value for name, value in os.environ.items() if name not in ("WAYLAND_DISPLAY", "DISPLAY")}
    for change in ({"DISPLAY": ":97"}, {"DISPLAY": "nonsense"}, {"WAYLAND_DISPLAY": "wayland-97"}, {}):
        for platform in ("", "xcb", "wayland"):
            done = satview(trace, env=environment | change | {"QT_QPA_PLATFORM": platform})
            assert done.returncode == 2
            assert "no display is available" in said(done)


@pytest.mark.parametrize(("word", "meant"), [("inof", "info"), ("stat", "stats"), ("trace-printer", "traceprinter")])
def test_misspelt_command_is_named(word, meant, tmp_path):
    done = satview(word, "x.kev", cwd=tmp_path)
    assert done.returncode == 2
    assert f"did you mean `satview {meant}`?" in said(done)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuchcommand"], "'nosuchcommand' is neither a command nor a file; `satview --help` lists the commands"),
        (["chek", "--help"], "'chek' is neither a command nor a file; did you mean `satview check`?"),
        (["--theme", "dark", "chek"], "'chek' is neither a command nor a file; did you mean `satview check`?"),
        (["--theme", "dark", "check", "x.kev"], "'check' is not a file; a command comes first: `satview check ...`"),
    ],
)
def test_a_word_that_is_neither_command_nor_file_opens_no_window(arguments, says, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"satview: {says}\n"


PACKED = [
    "info {t}", "stats {t} --format csv", "filter {t} -e pid==2", "traceprinter {t}", "convert {t} /dev/stdout",
    "filter {t} -o /dev/stdout",
]  # fmt: skip


@points(ending=list(PACKERS), command=PACKED)
def test_packed_and_piped_traces_read_as_the_plain_one(trace, command, ending):
    packed = trace.parent / f"t.kev.{ending}"
    packed.write_bytes(PACKERS[ending](trace.read_bytes()))
    folder = trace.parent / "tmp"
    folder.mkdir()
    named = {"env": os.environ | {"TMPDIR": str(folder)}}
    plain = satview(*command.format(t=trace).split())
    assert plain.returncode == 0
    outputs = [satview(*command.format(t=packed).split(), **named)]
    for file in (trace, packed):
        with file.open("rb") as stdin:
            outputs.append(satview(*command.format(t="-").split(), stdin=stdin, **named))
    for done in outputs:
        assert done.returncode == 0, done.stderr
        shown = [line for line in done.stdout.splitlines() if not line.strip().startswith(b"File ")]
        assert shown == [line for line in plain.stdout.splitlines() if not line.strip().startswith(b"File ")]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_trace_is_not_replaced_and_damaged_ones_are_refused(trace, ending):
    packed = trace.parent / f"t.kev.{ending}"
    packed.write_bytes(PACKERS[ending](trace.read_bytes()))
    done = satview("filter", packed, "-o", packed)
    assert done.returncode == 2
    assert "is being read" in said(done)
    packed.write_bytes(packed.read_bytes()[:-20])
    for command in ("info", "traceprinter", "stats"):
        done = satview(command, packed)
        assert done.returncode == 2
        assert "the compressed data is damaged or cut short" in said(done)


@pytest.mark.thorough
@pytest.mark.parametrize("ending", fewer(list(PACKERS), 1))
def test_bomb_is_refused(trace, ending):
    bomb = trace.parent / f"bomb.kev.{ending}"
    bomb.write_bytes(PACKERS[ending](trace.read_bytes() + bytes(40 * (8 << 20))))
    folder = trace.parent / "tmp"
    folder.mkdir()
    done = satview("info", bomb, env=os.environ | {"TMPDIR": str(folder)})
    assert done.returncode == 2
    assert "unpacks to more than 100 times its size" in said(done)
    assert list(folder.iterdir()) == []


def test_zstd_frames_in_a_row_are_one_file(trace):
    data = trace.read_bytes()
    packed = trace.parent / "t.kev.zst"
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    packed.write_bytes(zstd(data[:5000]) + skippable + zstd(b"") + zstd(data[5000:]))
    parts = satview("traceprinter", packed)
    assert parts.returncode == 0, parts.stderr
    assert parts.stdout == satview("traceprinter", trace).stdout
    packed.write_bytes(zstd(data[:5000]) + zstd(data[5000:])[:-1])
    done = satview("info", packed)
    assert done.returncode == 2
    assert "cut short" in said(done)


@pytest.mark.thorough
def test_ctrl_c_within_a_class_definition_is_no_error(trace):
    """As while modules are imported: up to 3.11 Python raises a RuntimeError then, with the interrupt as its cause."""
    code = """if True:
        import os, signal, satview.cli.look.info as m
        class Name:
            def __set_name__(self, owner, name): os.kill(os.getpid(), signal.SIGINT)
        def run(args):
            class Named: name = Name()
        m.run = run
        """
    done = subprocess.run([sys.executable, "-c", f"{code}{ONE}", "info", trace], capture_output=True, check=False,
                          timeout=60)  # fmt: skip
    assert done.returncode == 130
    assert done.stderr == b"satview: interrupted\n"


@pytest.mark.thorough
def test_internal_error_has_its_own_code_and_a_report(trace):
    code = "import satview.cli.look.info as m; m.run = lambda args: {}['\\x1b[2J']; " + ONE
    done = subprocess.run([sys.executable, "-c", code, "info", trace], capture_output=True, check=False, timeout=60)
    text = done.stderr.decode()
    assert done.returncode == 70
    assert "an error inside satview" in text
    assert "nothing was sent" in text
    assert "KeyError" in text
    assert f"doing: satview info {trace}" in text
    assert "\x1b" not in text

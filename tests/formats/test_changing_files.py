"""Files that are cut short or written over while they are in use: a look into them must not end the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from satview.base.errors import SourceChangedError
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from tests.helpers.commands import satview
from tests.helpers.extent import fewer, usually
from tests.helpers.scene import scene

LOOK = """
import sys
from satview.base.errors import SourceChangedError
from satview.formats.kev.reader import open_kev
trace = open_kev(sys.argv[1])
open(sys.argv[1], "r+b").truncate(100)
try:
    trace.payloads.column(trace.events.slot.astype("int64") * 0, 0)
except SourceChangedError as error:
    print(error)
"""


@pytest.mark.thorough
def test_a_file_cut_short_is_reported_and_not_touched(tmp_path):
    path = scene(tmp_path)
    shown = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    size = scene(tmp_path).stat().st_size
    assert shown.stdout == (f"scene.kev, byte 0x64: it had {size:,} bytes when it was opened, now 100; open it again\n")


def test_a_file_written_over_is_reported(tmp_path):
    path = scene(tmp_path)
    trace = open_kev(path)
    assert trace.payloads.words(3).size
    data = bytearray(path.read_bytes())
    data[0x40] ^= 1
    path.write_bytes(data + bytes(4096))
    os.utime(path, ns=(1, 1))
    for look in (lambda: trace.payloads.words(3), lambda: trace.payloads.slots, lambda: trace.payloads.header(0)):
        with pytest.raises(SourceChangedError, match="written over"):
            look()


def test_a_file_that_grows_or_is_replaced_stays(tmp_path):
    path = scene(tmp_path)
    trace = open_kev(path)
    before = trace.payloads.words(3).tolist()
    with path.open("ab") as file:
        file.write(bytes(160))
    os.utime(path, ns=(1, 1))
    assert trace.payloads.words(3).tolist() == before
    shutil.copy(path, tmp_path / "other.kev")
    (tmp_path / "other.kev").replace(path)
    (tmp_path / "empty.kev").write_bytes(b"")
    (tmp_path / "empty.kev").replace(path)
    assert trace.payloads.words(3).tolist() == before


CUTTER = """
import os, sys, time
path, data = sys.argv[1], open(sys.argv[1], "rb").read()
print("ready", flush=True)
while os.getppid() != 1:
    os.truncate(path, len(data) // 3)
    time.sleep(0.002)
    with open(path, "r+b") as file:
        file.write(data)
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="a file in use cannot be cut there")
@pytest.mark.parametrize("command", fewer(["info", "traceprinter", "stats", "screenshot"], 2))
def test_no_command_dies_of_a_file_that_is_cut_while_it_runs(command, tmp_path):
    """Mapped, 5 of 16 commands ended by SIGBUS. Now each ends well, or says in a sentence what happened."""
    path = tmp_path / "cut.kev"
    options = LoggerOptions(iterations=0, is_wide=True)
    run(Capture("small-system", release=Release.QNX_7, options=options, duration_ns=100_000_000), path)
    slots = open_kev(path).payloads.slots.astype("<u4").tobytes()
    with path.open("ab") as file:
        file.write(slots * (usually(4_000_000, complete=12_000_000) // len(slots)))
    arguments = {
        "info": ["info", str(path)],
        "stats": ["stats", str(path)],
        "traceprinter": ["traceprinter", "-f", str(path)],
        "screenshot": [str(path), "--screenshot", str(tmp_path / "x.png"), "--size", "600x400"],
    }[command]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    for pause in ("0.005", "0.03"):
        cutter = subprocess.Popen([sys.executable, "-c", CUTTER, str(path), pause], stdout=subprocess.PIPE)
        try:
            assert cutter.stdout.readline() == b"ready\n"
            for _ in range(usually(1, complete=3)):
                if command == "screenshot":  # Qt begins in a process of its own
                    done = subprocess.run(
                        [sys.executable, "-m", "satview", *arguments],
                        capture_output=True, env=environment, timeout=60, check=False,
                    )  # fmt: skip
                else:
                    done = satview(*arguments)
                shown = done.stderr.decode()
                assert done.returncode in (0, 1, 2), shown
                assert "Traceback" not in shown
        finally:
            cutter.kill()
            cutter.wait()
            cutter.stdout.close()

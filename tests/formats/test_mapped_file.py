"""Files that are cut short or written over while they are mapped: a look into them must not end the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from satview.base.errors import SourceChangedError
from satview.formats.kev.reader import open_kev
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


def test_a_file_cut_short_is_told_and_not_touched(tmp_path):
    path = scene(tmp_path)
    shown = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    size = scene(tmp_path).stat().st_size
    assert shown.stdout == (
        f"scene.kev, byte 0x64: it had {size:,} bytes when it was opened, now 100; open it again\n"
    )


def test_a_file_written_over_is_told(tmp_path):
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

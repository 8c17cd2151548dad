"""A C program that reads and prints as the vendor's library and printer do, for comparison; see peer.c."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from satview.formats.kev.reader import open_kev
from tools.build_core import compiler


@cache
def peer() -> Path | None:
    """Return the program, built at the first call; None without a C compiler."""
    words = compiler()
    if words is None:
        return None
    program = Path(tempfile.gettempdir()) / "satview-peer"
    source = Path(__file__).with_name("peer.c")
    subprocess.run([*words, "-O2", "-o", str(program), str(source)], check=True)
    return program


def peer_ms(path: Path, does: str = "") -> float | None:
    """Return the processor time of reading a file 16 bytes at a time; None if not built.

    Args:
        path: The file.
        does: `print`, or `unbuffered`: each 16 bytes are a call of the system; otherwise the C library reads blocks.
    """
    times = peer_times(path, does)
    return None if times is None else times[0]


def peer_times(path: Path, does: str = "") -> tuple[float, float] | None:
    """Return its processor time and the time until it ends, ms; None if not built. Arguments as of `peer_ms`."""
    program = peer()
    if program is None:
        return None
    offset = path.stat().st_size - 16 * open_kev(path).slot_count
    return command_times([str(program), str(path), str(offset), *does.split()])


def command_ms(command: list[str]) -> float:
    """Return the processor time of a command, whose output goes to a file that is removed."""
    return command_times(command)[0]


def command_times(command: list[str]) -> tuple[float, float]:
    """Return the processor time of a command and the time until it ends, ms."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as out:
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        subprocess.run(command, check=False, stdout=out, stderr=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * used, 1000 * (time.perf_counter() - start)

"""How much slower a program full of locks is when its threads are traced: whole runs, untraced against traced."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_ROUNDS = 5
_PROGRAM = """
import sys, threading, time
lock, total, count, threads = threading.Lock(), 0, int(sys.argv[1]), int(sys.argv[2])
def work():
    global total
    for _ in range(count):
        with lock:
            total += 1
started, used = time.perf_counter(), time.process_time()
workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert total == count * threads
print((time.perf_counter() - started) / total * 1e9, (time.process_time() - used) / total * 1e9)
"""


def run(arguments: list[str]) -> None:
    """Print ns per locked addition of one and of four threads; the argument is the number of additions per thread."""
    count = int(arguments[0]) if arguments else 200_000
    print(f"ns per `with lock: total += 1`, median of {_ROUNDS} runs of {count:,} per thread")
    print(f"{'threads':10}{'untraced':>10}{'traced':>10}{'ratio':>8}{'ratio of processor time':>26}")
    for threads in (1, 2, 4):
        rounds = [(_times(count, threads, False), _times(count, threads, True)) for _ in range(_ROUNDS)]
        (plain, plain_cpu), (traced, traced_cpu) = (
            [statistics.median(one[side][what] for one in rounds) for what in (0, 1)] for side in (0, 1)
        )
        print(f"{threads:<10}{plain:10.0f}{traced:10.0f}{traced / plain:8.1f}{traced_cpu / plain_cpu:26.1f}")


def measure(count: int, threads: int) -> tuple[float, float]:
    """Return ns of processor time per operation of one run untraced and one traced, start and end left out."""
    return _times(count, threads, False)[1], _times(count, threads, True)[1]


def _times(count: int, threads: int, is_traced: bool) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="satview-heavy-") as directory:
        script = Path(directory) / "heavy.py"
        script.write_text(_PROGRAM)
        command = [sys.executable, *(["-m", "satview.threadtrace"] if is_traced else []), str(script)]
        environment = {**os.environ, "THR_TRACE_DIR": directory}
        done = subprocess.run(
            [*command, str(count), str(threads)], env=environment, capture_output=True, text=True, check=True
        )
    return [float(word) for word in done.stdout.split()]

"""What freed arrays leave in the allocator's hands is given back, whichever thread they were made on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from satview.base.column_arrays import _glibc

# A freed block of 30 MB teaches glibc to keep up to 60 MB at the end of each heap.
PROGRAM = """
import threading
import numpy as np
import psutil
from satview.base.column_arrays import give_back, use_one_arena

def work():
    arrays = [np.ones(12_500) for _ in range(500)]

if {shares}:
    use_one_arena()
resident = psutil.Process().memory_info
taught = np.ones(3_750_000)
del taught
before = resident().rss
thread = threading.Thread(target=work)
thread.start()
thread.join()
give_back()
print((resident().rss - before) // 1_000_000)
"""


only_glibc = pytest.mark.skipif(_glibc("mallopt") is None, reason="only glibc keeps what is freed")


def left_mb(shares: bool) -> int:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(shares=shares)], capture_output=True, text=True, check=True, timeout=60
    )
    return int(run.stdout)


@only_glibc
def test_memory_freed_by_a_thread_is_given_back():
    assert left_mb(shares=True) <= 10


@pytest.mark.thorough
@only_glibc
def test_without_one_arena_it_is_not():
    assert left_mb(shares=False) >= 15  # else `use_one_arena` has become needless

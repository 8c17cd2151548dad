"""Files for comparisons of the core with its reference."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from satview.base.errors import SatviewError
from tests.fuzz import traces


def of_damaged_files(path: Path, files: int, count: Callable[[Path], int]) -> int:
    """Return the sum of what is counted in files that are nearly right; one that cannot be read counts nothing."""
    total = 0
    for number in range(files):
        path.write_bytes(traces.kev(random.Random(number)))
        try:
            total += count(path)
        except SatviewError:
            continue
    return total

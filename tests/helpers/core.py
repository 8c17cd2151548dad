"""The compiled core on and off."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from satview.base.errors import SatviewError
from satview.core import library
from tests.fuzz import traces


@contextmanager
def without_core() -> Iterator[None]:
    """Let the numpy code run, as where there is no compiler."""
    with mock.patch.object(library, "is_available", return_value=False):
        yield


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

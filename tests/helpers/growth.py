"""How long something takes, as far as that can be reported on a machine that is busy with other things."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu_s(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the processor time of a call in seconds, the least of three; waiting for others does not count."""
    taken_s = []
    for _ in range(3):
        begin_s = time.thread_time()
        function(*arguments)
        taken_s.append(time.thread_time() - begin_s)
    return min(taken_s)

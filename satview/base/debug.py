"""Named debug switches (`--debug=timing,paint`) and the timing they switch on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

SWITCHES = {
    "timing": "how long each step of a load, a filter or a frame takes",
    "paint": "every repaint of the swimlanes with its size and duration",
}
_on: set[str] = set()


def enable(names: str) -> None:
    """Switch on the debug switches of a comma-separated list.

    Raises:
        ValueError: A name is no switch; the text lists all switches.
    """
    requested = {name.strip() for name in names.split(",") if name.strip()}
    unknown = requested - SWITCHES.keys()
    if unknown:
        raise ValueError(f"no debug switch {', '.join(sorted(unknown))}; there are {', '.join(SWITCHES)}")
    if requested:
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("satview").setLevel(logging.DEBUG)
    _on.update(requested)


def is_on(name: str) -> bool:
    """Return whether a switch is on."""
    return name in _on


@contextmanager
def timed(step: str, switch: str = "timing") -> Iterator[None]:
    """Log the duration of a block under the name `step`, if the switch is on."""
    if switch not in _on:
        yield
        return

    start_ns = time.perf_counter_ns()
    yield
    logging.getLogger("satview").debug("%s: %.2f ms", step, (time.perf_counter_ns() - start_ns) / 1e6)

"""Python's garbage collector, switched off for what must be freed without it."""

from __future__ import annotations

import gc
from contextlib import contextmanager


@contextmanager
def no_collector():
    """Neither Python nor the window collects in the block; a first threshold of 0 says so to both."""
    gc.collect()
    was_on, thresholds = gc.isenabled(), gc.get_threshold()
    gc.disable()
    gc.set_threshold(0)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if was_on:
            gc.enable()

"""Keeps what was decoded of large .kev files in the user's cache folder, so that they open at once the next time.

A file of the cache belongs to a trace of one size, one time of change and the same bytes at both ends, and to this
version of the code. All of it is checked whenever it is opened; one that does not fit is as good as none, and one that
is damaged is removed. Any of them can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satview.base.array_file import read_arrays, write_arrays
from satview.base.debug import timed
from satview.base.errors import Cancelled, SatviewError, WriteError
from satview.base.resources import resource_path
from satview.base.shared_file import DamagedFileError
from satview.formats.kev.head.header import BEGIN
from satview.session.loading.cache_policy import is_large

if TYPE_CHECKING:
    from satview.session.loading.loaded_trace import LoadedTrace

_END_BYTES: Final = 64 << 10
_SUFFIX: Final = ".cache"


class TraceCache:
    """Finds and keeps decoded traces.

    Args:
        folder: Where they are; None keeps nothing.
        limit_bytes: How many bytes all of them may have; the ones not used for longest go first. 0 keeps nothing.
    """

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        self._folder = folder if limit_bytes > 0 else None
        self._limit_bytes = limit_bytes

    def key(self, path: Path) -> str | None:
        """Return what distinguishes a file from all others, None if it is nothing to keep."""
        if self._folder is None:
            return None
        try:
            if not is_large(path):
                return None
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                first = file.read(_END_BYTES)
                file.seek(max(0, status.st_size - _END_BYTES))
                last = file.read(_END_BYTES)
        except OSError:
            return None
        if not first.startswith(BEGIN):
            return None
        reported = f"{status.st_size} {status.st_mtime_ns} {_code_digest()}".encode()
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in (reported, first, last))).hexdigest()

    def find(self, path: Path, begin: Callable[[], object] = lambda: None) -> LoadedTrace | None:
        """Return a file as it was decoded before, None if it was not or what the cache has of it is not whole.

        Args:
            path: The file.
            begin: Called once it is clear that the cache has something.
        """
        key = self.key(path)
        if key is None or self._folder is None:
            return None
        file = self._folder / f"{key[:40]}{_SUFFIX}"
        if not file.exists():
            return None
        begin()
        try:
            with timed("cache"):
                values, arrays = read_arrays(file, lambda values: isinstance(values, dict) and values.get("key") == key)
                loaded = _loaded(path, values, arrays, key)
            os.utime(file)  # used now
        except FileNotFoundError:
            return None
        except (DamagedFileError, OSError):
            with suppress(OSError):
                file.unlink()
            return None
        except SatviewError:  # the trace itself has changed by now: reading it says how
            return None
        return loaded

    def store(self, loaded: LoadedTrace, lanes: Iterable[int], cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Put a file that was decoded into the cache; return whether it is in it.

        Args:
            loaded: The trace with its lanes.
            lanes: Those that are to be ready at once the next time.
            cancelled: Called now and then.
        """
        from satview.formats.kev.stored import arrays_of, values_of  # here: a key is requested before the first picture
        from satview.timeline.stored_lanes import lanes_of

        trace = loaded.trace
        if self._folder is None or not loaded.key or self.key(trace.path) != loaded.key:
            return False
        lane_values, lane_arrays = lanes_of(loaded.timeline, lanes)
        arrays = arrays_of(trace) | lane_arrays | {"events_of_thread": loaded.events_of_thread}
        size = sum(array.nbytes for array in arrays.values())
        if size > self._limit_bytes:
            return False
        values = {"key": loaded.key, "trace": values_of(trace), "lanes": lane_values, "silent": sorted(loaded.silent)}
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.shrink(self._limit_bytes - size)
            write_arrays(self._folder / f"{loaded.key[:40]}{_SUFFIX}", values, arrays, cancelled)
        except (OSError, WriteError, Cancelled):  # a cache that cannot be written is no fault
            return False
        return True

    def shrink(self, limit_bytes: int) -> None:
        """Delete files not used for longest until all have no more bytes than that."""
        if self._folder is None:
            return
        found = []
        for file in self._folder.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                found.append((file.stat().st_mtime_ns, file.stat().st_size, file))
        total = sum(size for _, size, _ in found)
        for _, size, file in sorted(found):
            if total <= limit_bytes:
                return
            with suppress(OSError):
                file.unlink()
                total -= size


def _loaded(path: Path, values: Any, arrays: dict[str, np.ndarray[Any, Any]], key: str) -> LoadedTrace:
    from satview.formats.kev.reader import read_start  # as in `store`
    from satview.formats.kev.stored import trace_of
    from satview.session.loading.loaded_trace import LoadedTrace
    from satview.timeline.lane_tree import Timeline
    from satview.timeline.stored_lanes import take_lanes

    try:
        trace = trace_of(path, read_start(path), values["trace"], arrays)
        timeline = Timeline(trace)
        take_lanes(timeline, values["lanes"], arrays)
        counts, silent = arrays["events_of_thread"], frozenset(int(index) for index in values["silent"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedFileError(f"it holds no trace: {error}") from error
    if counts.shape != (len(trace.threads),) or counts.dtype != np.int64 or counts.sum() != len(trace.events):
        raise DamagedFileError("its counts of events do not fit")
    if any(not 0 <= index < len(timeline.infos) for index in silent):
        raise DamagedFileError("it names lanes that are not there")
    return LoadedTrace(trace, timeline, counts, silent, key=key, is_cached=True)


@cache
def _code_digest() -> str:
    """Return what distinguishes this version of the code from others that may decode differently."""
    package = Path(__file__).parents[2]
    folders = ("events", "linkage", "formats/kev", "timeline", "session/loading", "session/lanes")
    parts = ("core", "base", "events", "store", *folders)
    found = [np.__version__]
    for folder in (package, *(package / part for part in parts), resource_path("events")):
        for file in sorted(folder.glob("*.*")):
            if file.suffix in (".py", ".c", ".h", ".toml"):
                status = file.stat()
                found.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()

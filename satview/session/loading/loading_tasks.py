"""Functions that a session runs on a worker thread: to read a file, to read it again, to cache the trace."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from platformdirs import user_cache_path

from satview.base import column_arrays
from satview.base.column_arrays import give_back, read_arrays, write_arrays
from satview.base.errors import Cancelled, SatviewError, WriteError
from satview.base.named_files import resource_path
from satview.base.process import timed
from satview.base.shared_file import DamagedFileError
from satview.base.threads import Begun
from satview.formats import registry
from satview.formats.kev.header import BEGIN
from satview.formats.kev.reader import arrays_of, read_start, trace_of, values_of
from satview.formats.kev.sampling import GrowingFile, sampled
from satview.session.loading.files import Follow
from satview.session.loading.loaded_trace import LoadedTrace, ShownState, named_reading, prepared, read_on
from satview.session.tasks import IsCancelled, Report
from satview.timeline.lane_tree import Timeline, add_lanes, lanes_of
from satview.timeline.state_lanes import preview_of

# Location of the cache of decoded traces, and which files it takes.


SWITCH: Final = "SATVIEW_CACHE"  # environment: `off`, or another folder
CACHED_BYTES = 32 << 20  # smaller files are decoded as fast as they are found in a cache


def cache_folder() -> Path | None:
    """Return this user's cache folder; None if the environment switches it off."""
    named = os.environ.get(SWITCH, "")
    if named.lower() in ("off", "0", "no"):
        return None
    if named:
        return Path(named)

    return user_cache_path("satview", appauthor=False) / "traces"


def is_large(path: Path) -> bool:
    """Return whether a file is large enough to be cached."""
    try:
        return path.is_file() and path.stat().st_size >= CACHED_BYTES
    except OSError:
        return False


# Stores decoded large .kev files in the user's cache folder, so that they open at once the next time.


_END_BYTES: Final = 64 << 10
_SUFFIX: Final = ".cache"


class TraceCache:
    """Finds and stores decoded traces.

    Args:
        folder: Cache folder; None stores nothing.
        limit_bytes: Maximum size of the cache; the files not used for longest are deleted first. 0 stores nothing.
    """

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        self._folder = folder if limit_bytes > 0 else None
        self._limit_bytes = limit_bytes

    def key(self, path: Path) -> str | None:
        """Return the cache key of a file; None if the cache does not take it: too small, not .kev, or unreadable."""
        if self._folder is None:
            return None
        try:
            if not is_large(path):
                return None
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                begin = file.read(_END_BYTES)
                file.seek(max(0, status.st_size - _END_BYTES))
                last = file.read(_END_BYTES)
        except OSError:
            return None
        if not begin.startswith(BEGIN):
            return None
        reported = f"{status.st_size} {status.st_mtime_ns} {_code_digest()}".encode()
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in (reported, begin, last))).hexdigest()

    def find(self, path: Path) -> LoadedTrace | None:
        """Return the decoded trace of a file; None if the cache contains no undamaged trace for this file."""
        key = self.key(path)
        if key is None or self._folder is None:
            return None
        file = self._folder / f"{key[:40]}{_SUFFIX}"
        if not file.exists():
            return None
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
        except SatviewError:  # the trace has changed, which reading it will report
            return None
        return loaded

    def store(self, loaded: LoadedTrace, lanes: Iterable[int], cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Write a decoded file into the cache; return whether that succeeded.

        Args:
            loaded: The trace with its lanes.
            lanes: Lanes to store with it, so that they are ready at once the next time.
            cancelled: Polled during the work.
        """
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
        except (OSError, WriteError, Cancelled):  # a cache that cannot be written is not an error
            return False
        return True

    def shrink(self, limit_bytes: int) -> None:
        """Delete the files not used for longest until the cache has at most this size."""
        if self._folder is None:
            return
        stored = []
        for file in self._folder.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                stored.append((file.stat().st_mtime_ns, file.stat().st_size, file))
        total = sum(size for _, size, _ in stored)
        for _, size, file in sorted(stored):
            if total <= limit_bytes:
                return
            with suppress(OSError):
                file.unlink()
                total -= size


def _loaded(path: Path, values: Any, arrays: dict[str, np.ndarray[Any, Any]], key: str) -> LoadedTrace:
    try:
        trace = trace_of(path, read_start(path), values["trace"], arrays)
        timeline = Timeline(trace)
        add_lanes(timeline, values["lanes"], arrays)
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
    """Return a digest of the source files that decode traces, so that cached traces of other versions are not used."""
    package = Path(__file__).parents[2]
    folders = ("events", "linkage", "formats/kev", "timeline", "session/loading", "session/lanes")
    parts = ("core", "base", "events", "store", *folders)
    versions = [np.__version__]
    for folder in (package, *(package / part for part in parts), resource_path("events")):
        for file in sorted(folder.glob("*.*")):
            if file.suffix in (".py", ".c", ".h", ".toml"):
                status = file.stat()
                versions.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()


def read_file(
    path: Path,
    show: Callable[[object], None],
    cache_bytes: int,
    memory_bytes: int,
    is_cancelled: IsCancelled,
    report: Report,
) -> object:
    """Return a file as a `LoadedTrace`; a large one is sampled first, to show a preview, or comes from the cache.

    Without `cache_bytes` there is no cache; without `memory_bytes` the environment sets the limit for columns.

    Raises:
        SatviewError: The file cannot be read.
        Cancelled: `is_cancelled()` returned True.
    """
    _limit_memory(memory_bytes)
    loaded, key = _cached(path, cache_bytes)
    if loaded is None:
        _show_sample(path, show, is_cancelled)
        trace = registry.open_trace(path, report, is_cancelled)
        loaded = LoadedTrace.of(trace, key=key)
        # In parallel with the window, which builds its views meanwhile; an error is raised again there.
        Begun(partial(loaded.timeline.build, loaded.timeline.cpu_lanes, is_cancelled), "satview-cpu-lanes")
    return loaded


def _limit_memory(memory_bytes: int) -> None:
    """Set the limit for columns in memory; further columns go to files beside the cache, as /tmp may be in memory."""
    folder = cache_folder()
    with suppress(OSError):
        if folder is not None and memory_bytes:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    column_arrays.set_limit(memory_bytes or column_arrays.from_environment(), folder if memory_bytes else None)


def read_more(
    follow: Follow,
    shown: ShownState | None,
    is_cancelled: IsCancelled,
    report: Report,
) -> object:
    """Return the current content of a followed file, prepared for what is shown; None = nothing is shown yet.

    Raises:
        SatviewError: The file cannot be read.
        Cancelled: `is_cancelled()` returned True.
    """
    if follow.file is None:
        follow.file = GrowingFile(follow.path)
    loaded = read_on(follow.file, is_cancelled, report)
    ready = loaded if shown is None or loaded.restart else prepared(loaded, shown, is_cancelled)
    give_back()  # memory of the trace before the last one
    return ready


def prepare_loaded(loaded: LoadedTrace, shown: ShownState, is_cancelled: IsCancelled) -> object:
    """Return a loaded trace as a `Reload`, prepared to replace the one that is shown."""
    return prepared(loaded, shown, is_cancelled)


def cache_loaded(loaded: LoadedTrace, lanes: list[int], cache_bytes: int, is_cancelled: IsCancelled) -> object:
    """Write a decoded file into the user's cache; return whether that succeeded."""
    return TraceCache(cache_folder(), cache_bytes).store(loaded, lanes, is_cancelled)


def _cached(path: Path, cache_bytes: int) -> tuple[LoadedTrace | None, str]:
    """Return the trace from the cache and "", or None and the key to store it with later ("" = do not store it)."""
    if not cache_bytes or not is_large(path):
        return None, ""

    traces = TraceCache(cache_folder(), cache_bytes)
    cached = traces.find(path)
    return cached, "" if cached is not None else traces.key(path) or ""


def _show_sample(path: Path, show: Callable[[object], None], is_cancelled: IsCancelled) -> None:
    sample = sampled(path, is_cancelled)
    if sample is not None:
        show(preview_of(sample))


def read_names(path: Path, shown: ShownState, is_cancelled: IsCancelled) -> object:
    """Return the shown trace with names from an output of QNX `pidin` added, prepared to be shown.

    Raises:
        SatviewError: The file is no output of pidin, or its names cannot be added to the trace.
        Cancelled: `is_cancelled()` returned True.
    """
    return named_reading(path, shown, is_cancelled)

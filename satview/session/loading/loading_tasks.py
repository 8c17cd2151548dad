"""What a session does on a worker thread: read a file, read on, keep it. Imports numpy and decoders when called.

Windows show at once because nothing of that is imported before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from satview.base.begun import Begun
from satview.base.memory import give_back
from satview.session.loading.cache_policy import cache_folder, is_large
from satview.session.loading.follow import Follow
from satview.session.tasks import IsCancelled, Report

if TYPE_CHECKING:
    from satview.session.loading.loaded_trace import LoadedTrace, Shown


class Prepare(NamedTuple):
    """Imports what a window will need, on a thread of its own, so that the window does not wait for it.

    Attributes:
        preview: Called before a preview shows.
        views: Called before a trace is ready.
    """

    preview: Callable[[], None]
    views: Callable[[], None]


def read_file(
    path: Path,
    prepare: Prepare | None,
    show: Callable[[object], None],
    cache_bytes: int,
    memory_bytes: int,
    is_cancelled: IsCancelled,
    report: Report,
) -> object:
    """Return a file as it was read; a large one is sampled first, or comes from the cache.

    Args:
        path: The file.
        prepare: Imports what the views will need; None = there are none.
        show: Is given what a sample shows.
        cache_bytes: How much the cache may hold; 0 = do not look into it.
        memory_bytes: How much columns may have in memory; 0 = as the environment says.
        is_cancelled: Called now and then; True stops it.
        report: Is given the share that is done.

    Raises:
        SatviewError: The file cannot be read.
        Cancelled: `is_cancelled()` returned True.
    """
    _limit_memory(memory_bytes)
    # Reading is in the core most of the time, so that modules are imported on the other processor.
    begin = cache(partial(Begun[None], partial(_import_all, prepare), "satview-imports"))
    loaded, key = _cached(path, cache_bytes, begin)
    if loaded is None:
        _show_sample(path, prepare, show, is_cancelled)
    views = begin()
    try:
        if loaded is None:
            from satview.formats.registry import open_trace

            trace = open_trace(path, report, is_cancelled)
            views.result()
            from satview.session.loading.loaded_trace import LoadedTrace

            loaded = LoadedTrace.of(trace, key=key)
            # Beside the window, which makes its views meanwhile, and waits for them; if it fails, it fails there again.
            Begun(partial(loaded.timeline.build, loaded.timeline.cpu_lanes, is_cancelled), "satview-cpu-lanes")
    finally:
        views.wait()
    views.result()
    return loaded


def _limit_memory(memory_bytes: int) -> None:
    """Set the bound of columns; what is beyond it is beside the cache, for temporary files may be memory themselves."""
    from satview.base import column_room

    folder = cache_folder()
    with suppress(OSError):
        if folder is not None and memory_bytes:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    column_room.set_limit(memory_bytes or column_room.from_environment(), folder if memory_bytes else None)


def _import_all(prepare: Prepare | None) -> None:
    import satview.session.loading.loaded_trace  # noqa: F401  -- for its effect on sys.modules
    from satview.base.plugins import PluginKind, plugins

    plugins(PluginKind.LANE)
    if prepare is not None:
        prepare.views()


def read_more(
    follow: Follow,
    prepare: Prepare | None,
    shown: Shown | None,
    is_cancelled: IsCancelled,
    report: Report,
) -> object:
    """Return what a followed file has by now, ready to be shown.

    Args:
        follow: The file.
        prepare: Imports what the views will need; None = there are none.
        shown: What has to be ready; None = nothing shows yet.
        is_cancelled: Called now and then; True stops it.
        report: Is given the share that is done.

    Raises:
        SatviewError, Cancelled: As `read_file`.
    """
    from satview.formats.kev.growth.growing import GrowingFile
    from satview.session.loading.loaded_trace import prepared, read_on

    if follow.file is None:
        follow.file = GrowingFile(follow.path)
    loaded = read_on(follow.file, is_cancelled, report)
    if prepare is not None:
        prepare.views()
    ready = loaded if shown is None or loaded.restart else prepared(loaded, shown, is_cancelled)
    give_back()  # what the reading before the last one held
    return ready


def prepare_loaded(loaded: LoadedTrace, shown: Shown, is_cancelled: IsCancelled, _report: Report) -> object:
    """Return a reading made ready for what shows by now."""
    from satview.session.loading.loaded_trace import prepared

    return prepared(loaded, shown, is_cancelled)


def cache_loaded(
    loaded: LoadedTrace, lanes: list[int], cache_bytes: int, is_cancelled: IsCancelled, _report: Report
) -> object:
    """Write a decoded file into the cache; return whether it is in it."""
    from satview.session.loading.trace_cache import TraceCache

    return TraceCache(cache_folder(), cache_bytes).store(loaded, lanes, is_cancelled)


def _cached(path: Path, cache_bytes: int, begin: Callable[[], object]) -> tuple[LoadedTrace | None, str]:
    """Return the file as it was decoded before, or None and what it would be called in the cache.

    Args:
        path: The file.
        cache_bytes: As of `read_file`.
        begin: Called once it is clear that the cache has something.
    """
    if not cache_bytes or not is_large(path):
        return None, ""
    from satview.session.loading.trace_cache import TraceCache

    traces = TraceCache(cache_folder(), cache_bytes)
    found = traces.find(path, begin)
    return found, "" if found is not None else traces.key(path) or ""


def _show_sample(
    path: Path, prepare: Prepare | None, show: Callable[[object], None], is_cancelled: IsCancelled
) -> None:
    from satview.formats.kev.sampling import sampled

    sample = sampled(path, is_cancelled)
    if sample is not None:
        import satview.session.loading.preview_view  # noqa: F401  -- for the window, which would wait for it
        from satview.timeline.preview import preview_of

        if prepare is not None:
            prepare.preview()
        show(preview_of(sample))

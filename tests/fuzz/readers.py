"""Targets of the readers: batch, streaming and following are oracles for each other."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np

from satview.base.errors import TraceFormatError
from satview.export.listing.forms import Style
from satview.export.listing.printer import Printer
from satview.export.listing.rows import TextRows, default_time, layout_of
from satview.formats.kev.reader import open_kev
from satview.formats.kev.sampling import GrowingFile
from satview.formats.listing.reader import open_listing
from satview.formats.registry import open_trace
from satview.formats.source import source_of
from satview.session.event_text import event_details, list_row
from satview.store.trace import Trace
from satview.tables.table import table
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import Timeline
from tests.core.reference.replacing import numpy_passes
from tests.fuzz.traces import MEMBER_BREAK
from tests.helpers.same_trace import same_table, same_trace

# What both readers count; the stream leaves kinds out that need a second look, and words some of them otherwise.
_SHARED = ("partial-slot", "empty-slots", "orphan-slots", "unfinished-events", "lost-events")
Found = Counter[tuple[int, int, tuple[int, ...]]]


def _batch_events(trace: Trace) -> Found:
    """Return whole events as (code, CPU, words) with how often each occurs."""
    truncated = set(trace.truncated.tolist())
    code, cpu = trace.events.code.tolist(), trace.events.cpu.tolist()
    return Counter(
        (code[row], cpu[row], tuple(trace.payloads.words(row).tolist()))
        for row in range(len(code))
        if row not in truncated
    )


def _stream_events(data: bytes, name: str) -> tuple[Found, dict[str, int]]:
    """Return events as `_batch_events`, and problems."""
    source = source_of(io.BytesIO(data), Path(name))
    found: Found = Counter()
    for batch in source.events:
        code, cpu, start = batch.code.tolist(), batch.cpu.tolist(), batch.start.tolist()
        words = batch.words.tolist()
        found.update((code[i], cpu[i], tuple(words[start[i] : start[i + 1]])) for i in range(len(batch)))
    return found, source.problems.counts()


def _same(batch: Trace, data: bytes, name: str) -> None:
    """Hold the events of batch and stream against each other."""
    mine, (theirs, counts) = _batch_events(batch), _stream_events(data, name)
    names = batch.problems.counts().get("ring-names", 0)  # names after the capture are events of the stream alone
    if mine - theirs or (theirs - mine).total() > names:
        only = list((mine - theirs).items())[:3], list((theirs - mine).items())[:3]
        raise AssertionError(f"batch alone has {only[0]}, stream alone {only[1]}")
    ours, streams = ({slug: each.get(slug, 0) for slug in _SHARED} for each in (batch.problems.counts(), counts))
    assert ours == streams, f"batch reports {ours}, stream {streams}"


def kev(data: bytes, folder: Path) -> None:
    """Batch, stream and follow, and the compiled core and its reference; all give the same, or all refuse."""
    path = folder / "t.kev"
    path.write_bytes(data)
    try:
        trace = open_kev(path)
    except TraceFormatError:
        trace = None
    if trace is not None:
        with numpy_passes():
            same_trace(trace, open_kev(path))
        if "shifted-slots" in trace.problems.counts():
            return  # only a whole file is searched for missing bytes: one that grows has no size that could be wrong
    _follow(trace, data, folder / "growing.kev")
    try:
        if trace is not None:
            _same(trace, data, "t.kev")
            _use(trace)
        else:
            _stream_events(data, "t.kev")
            raise AssertionError("the stream is read, the file is refused")
    except TraceFormatError as error:
        assert trace is None, f"the file is read, the stream is refused: {error}"


def _follow(trace: Trace | None, data: bytes, path: Path) -> None:
    file = GrowingFile(path)
    grown = None
    for share in (3, 2, 1):
        path.write_bytes(data[: len(data) // share])
        try:
            grown = file.read()
        except TraceFormatError:
            grown = None
    assert (grown is None) == (trace is None), "batch and follow do not refuse the same"
    if trace is not None and grown is not None:
        for table in ("events", "threads", "processes", "states", "buffers", "fragments"):
            same_table(getattr(grown, table), getattr(trace, table))
        theirs = {slug: count for slug, count in trace.problems.counts().items() if slug != "partial-slot"}
        assert grown.problems.counts() == theirs, f"follow reports {grown.problems.counts()}, batch {theirs}"


def printer(data: bytes, folder: Path) -> None:
    """Print a .kev file in the layout of its release; what comes out is a listing that can be opened."""
    try:
        source = source_of(io.BytesIO(data), Path("t.kev"))
        layout = layout_of(source.release)
        style = Style(layout, source.release, source.byte_order)
        job = Printer(source, TextRows(source, style, default_time(layout)))
        text = "".join(job.text())
    except TraceFormatError:
        return
    if job.printed:
        path = folder / "t.txt"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        listed = open_listing(path)
        # A combine event of class 0 and number 0 is printed as EMPTY, and that line is read as an empty slot.
        assert len(listed.events) or "empty-slots" in listed.problems.counts(), "no event of the listing is read back"


def listing(data: bytes, folder: Path) -> None:
    """Open a listing as a file and as a stream."""
    path = folder / "t.txt"
    path.write_bytes(data)
    try:
        trace = open_trace(path)
    except TraceFormatError:
        return
    _use(trace)


def thread_set(data: bytes, folder: Path) -> None:
    """Open a set of UnixWare files."""
    for old in folder.glob("tr.*"):
        old.unlink()
    for lwp, part in enumerate(data.split(MEMBER_BREAK)[:8], 1):
        (folder / f"tr.00010e1.{lwp:03x}").write_bytes(part)
    try:
        trace = open_trace(folder / "tr.00010e1.001")
    except TraceFormatError:
        return
    _use(trace)


def foreign(data: bytes, folder: Path) -> None:
    """Open a file of another tool."""
    path = folder / "t.dat"
    path.write_bytes(data)
    try:
        trace = open_trace(path)
    except TraceFormatError:
        return
    _use(trace)
    table(trace, "state")
    table(trace, "wake_up")
    cpus = [info for info in Timeline(trace).infos if info.kind is LaneKind.CPU]
    assert len(cpus) <= 256


def packed(data: bytes, folder: Path) -> None:
    """Open a compressed file."""
    path = folder / "t.kev.gz"
    path.write_bytes(data)
    try:
        _use(open_trace(path))
    except TraceFormatError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error


def _use(trace: Trace) -> None:
    """Look at what every view looks at."""
    assert np.all(np.diff(trace.events.time_cycles) >= 0), "times go back"
    trace.class_counts()
    for row in range(min(20, len(trace.events))):
        event_details(trace, row, None).as_text()
        list_row(trace, row, None)
        trace.payloads.raw(row)

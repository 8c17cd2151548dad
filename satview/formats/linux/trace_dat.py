"""Reads binary records of tracepoints: trace.dat of trace-cmd, versions 6 and 7, and perf.data."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.formats.linux import records
from satview.formats.linux.records import (
    MAGIC,
    ByteOrder,
    Cursor,
    Ints,
    Metadata,
    RecordDetails,
    Records,
    Schedule,
    Tasks,
    read_all,
    schedule_of,
)
from satview.formats.linux.records import MAGIC as TRACING_MAGIC
from satview.formats.registry import RATIO_MAX, grows_too_much, zstd_block
from satview.store.problems import Problems

# Reads trace.dat of trace-cmd, versions 6 and 7.
#
# Source: manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). If there are several instances of ftrace, the first
# one with events is read.


# Pages of the ring buffer of ftrace: each step reads one event of every page.


_PADDING, _EXTEND, _STAMP = 29, 30, 31  # kinds
_DELTA_BITS: Final = 27
_USED: Final = 0xFFFFF  # bits of the commit word that hold the used length of a page
_MISSED: Final = 1 << 31  # events were lost before this page
_TOP: Final = ~((1 << 59) - 1)  # bits of a time that a stamp does not contain
_WORD: Final = 4


@dataclass(frozen=True, slots=True)
class Pages:
    """Ring buffer pages of all CPUs, (n,) each.

    Attributes:
        offsets: int64, byte offset of each page in the data.
        cpu: int64.
        page_bytes: Size of a page.
        commit_bytes: Size of the commit word after the time of a page.
    """

    offsets: Ints
    cpu: Ints
    page_bytes: int
    commit_bytes: int


@dataclass(frozen=True, slots=True)
class Walked:
    """The content of ring buffer pages.

    Attributes:
        records: Records of all CPUs, in order within each page.
        lossy: int64, rows of `Pages` before which events were lost.
        damaged: int64, rows of `Pages` with content beyond the end of the page.
    """

    records: Records
    lossy: Ints
    damaged: Ints


def walk(data: NDArray[np.uint8], pages: Pages, order: str) -> Walked:
    """Return the records of tracepoints in some pages.

    Args:
        data: uint8, bytes of the file.
        pages: The pages; each is completely in `data`.
        order: Byte order, `<` or `>`.
    """
    bytes_of = Records(
        data, pages.offsets, pages.cpu, pages.offsets, np.full(len(pages.offsets), pages.page_bytes), order
    )
    every = np.arange(len(pages.offsets), dtype=np.int64)
    time = bytes_of.numbers(every, 0, 8, is_signed=True)
    commit = bytes_of.numbers(every, 8, pages.commit_bytes, is_signed=False)
    head = 8 + pages.commit_bytes
    is_damaged = (commit & _USED) > pages.page_bytes - head
    end = pages.offsets + head + np.minimum(commit & _USED, pages.page_bytes - head)
    records_by_step: list[tuple[Ints, ...]] = []
    page, offset = every, pages.offsets + head
    while True:
        alive = offset + _WORD <= end[page]
        page, offset = page[alive], offset[alive]
        if not len(page):
            break
        page, offset = _step(data, order, page, offset, time, end, is_damaged, records_by_step)
    columns = [
        np.concatenate(column) if records_by_step else np.empty(0, np.int64)
        for column in zip(*records_by_step, strict=True)
    ] or [np.empty(0, np.int64)] * 4
    in_order = np.lexsort((columns[1], columns[0]))
    row, offsets, times, size = (column[in_order] for column in columns)
    records = Records(data, times, pages.cpu[row], offsets, size, order)
    return Walked(records, every[(commit & _MISSED) != 0], every[is_damaged])


def _step(
    data: NDArray[np.uint8],
    order: str,
    page: Ints,
    offset: Ints,
    time: Ints,
    end: Ints,
    is_damaged: NDArray[np.bool_],
    records_by_step: list[tuple[Ints, ...]],
) -> tuple[Ints, Ints]:
    """Read the next event of each unfinished `page`; return the pages that remain unfinished and their next offsets.

    `time` has the time of the last event of every page, and `is_damaged` whether an event is beyond its end; both are
    changed in place. `records_by_step` receives the columns of the records.
    """
    word = _words(data, offset, order)
    if order == "<":
        kind, delta = word & 31, word >> 5
    else:
        kind, delta = word >> _DELTA_BITS, word & (1 << _DELTA_BITS) - 1
    has_more = (kind == 0) | (kind >= _PADDING)
    next_word = _words(data, np.minimum(offset + _WORD, len(data) - _WORD), order)
    more = np.where(has_more & (offset + 2 * _WORD <= end[page]), next_word, 0)
    is_stamp, is_rest = kind == _STAMP, (kind == _PADDING) & (delta == 0)
    passed = np.where(kind == _EXTEND, (more << _DELTA_BITS) + delta, np.where(kind == _PADDING, 0, delta))
    stamp = (more << _DELTA_BITS) + delta | time[page] & _TOP
    time[page] = np.where(is_stamp, stamp, time[page] + passed)
    # Size of the whole event, including its first word.
    size = np.select(
        [kind == 0, kind <= 28, kind == _PADDING], [_WORD + more, _WORD + _WORD * kind, _WORD + more], 2 * _WORD
    )
    size = np.maximum(-(-size // _WORD) * _WORD, _WORD)
    is_over = offset + size > end[page]
    is_damaged[page[is_over & ~is_rest]] = True
    is_record = (kind <= 28) & ~is_over
    begin = np.where(kind == 0, 2 * _WORD, _WORD)
    records_by_step.append(
        (page[is_record], (offset + begin)[is_record], time[page][is_record], (size - begin)[is_record])
    )
    goes_on = ~is_over & ~is_rest
    return page[goes_on], (offset + size)[goes_on]


def _words(data: NDArray[np.uint8], offsets: Ints, order: str) -> Ints:
    wide = np.empty((len(offsets), _WORD), np.uint8)
    for byte in range(_WORD):
        wide[:, byte] = data[offsets + byte]
    return wide.view(f"{order}u4")[:, 0].astype(np.int64)


_BUFFER, _UNAME, _CPUCOUNT, _HEADER, _FTRACE, _EVENTS, _CMDLINES = 3, 5, 8, 16, 17, 18, 21
_IS_COMPRESSED: Final = 1
_MOST_PAGE: Final = 1 << 20
_MOST_CPUS: Final = 4096
_MOST_OPTIONS: Final = 1 << 16
_MOST_UNPACKED: Final = 1 << 33
_MANY: Final = 100
_COPY_AGAIN: Final = "copy it again"


@dataclass(slots=True)
class _TraceDat:
    """A trace.dat file while it is read.

    Attributes:
        cursor: Cursor over the bytes of the file.
        data: The same bytes, uint8.
        version: 6 or 7.
        page_bytes: Page size of the target.
        parts: (CPU, first byte, bytes) of the pages of each CPU; offsets refer to `unpacked` if it is set.
        unpacked: Pages of all CPUs if they are compressed in the file.
    """

    cursor: Cursor
    data: NDArray[np.uint8]
    version: int
    page_bytes: int
    meta: Metadata = field(default_factory=Metadata)
    head_rows: list[tuple[str, str]] = field(default_factory=list)
    parts: list[tuple[int, int, int]] = field(default_factory=list)
    unpacked: NDArray[np.uint8] | None = None
    cpus: int = 0


def read_trace_dat(path: Path, data: NDArray[np.uint8], problems: Problems) -> Schedule:
    """Return the scheduler events in a trace.dat file, as a `Schedule`.

    Args:
        path: The file, for errors.
        data: Bytes of the file.
        problems: Receives damage.

    Raises:
        TraceFormatError: The metadata before the pages are damaged, or the format is not supported.
    """
    file = _start(path, data)
    if file.version == 6:
        _read_6(file, problems)
    else:
        _read_7(file, problems)
    pages = _pages(file, problems)
    order = "<" if file.cursor.order == "little" else ">"
    walked = walk(file.data if file.unpacked is None else file.unpacked, pages, order)
    for row in walked.lossy[:_MANY].tolist():
        problems.add("lost-events", f"CPU {pages.cpu[row]} has lost events before this page", _offset(file, pages, row))
    for row in walked.damaged[:_MANY].tolist():
        what = f"a page of CPU {pages.cpu[row]} runs over its end; what fits is shown"
        problems.add("section-cut", what, _offset(file, pages, row))
    tasks = Tasks(dict(file.meta.names))
    contents = schedule_of(walked.records, file.meta.formats, tasks)
    if contents.unknown:
        problems.add("unknown-events", "the file brings no format for these events", None, contents.unknown)
    return Schedule(
        f"trace.dat of trace-cmd, version {file.version}", tuple(file.head_rows), contents.switches, contents.wakeups,
        contents.points, tasks, RecordDetails(walked.records, file.meta.formats), cpus=file.cpus,
    )  # fmt: skip


def _offset(file: _TraceDat, pages: Pages, row: int) -> int | None:
    return int(pages.offsets[row]) if file.unpacked is None else None


def _start(path: Path, data: NDArray[np.uint8]) -> _TraceDat:
    cursor = Cursor(data.data, path, len(MAGIC))
    version = cursor.text("its version")
    if version not in ("6", "7"):
        raise TraceFormatError(path, len(MAGIC), f"version {version[:20]!a} of trace.dat is not known",
                               "satview reads versions 6 and 7; `trace-cmd convert` makes them")  # fmt: skip
    is_big = cursor.number(1, "its byte order")
    order: ByteOrder = "big" if is_big == 1 else "little"
    cursor.take(1, "the size of a word")
    cursor.order = order
    page_bytes = cursor.number(4, "the size of a page")
    if not 64 <= page_bytes <= _MOST_PAGE:
        raise TraceFormatError(path, cursor.position - 4, f"pages of {page_bytes} bytes cannot be", _COPY_AGAIN)
    return _TraceDat(cursor, data, int(version), page_bytes)


# ---- version 6 -----------------------------------------------------------------------------------------------------


def _read_6(file: _TraceDat, problems: Problems) -> None:
    cursor = file.cursor
    records.read_all(cursor, file.meta)
    file.cpus = _cpu_count(cursor.number(4, "the number of CPUs"), cursor)
    kind = cursor.take(10, "the kind of the data")
    instances: list[int] = []
    if kind == b"options  \0":
        while option := cursor.number(2, "the options"):
            value = cursor.take(cursor.number(4, "the options"), "the options")
            _read_head_row(file, option, value)
            if option == _BUFFER and len(value) >= 8:
                instances.append(int.from_bytes(value[:8], cursor.order))
        kind = cursor.take(10, "the kind of the data")
    _read_sections_6(file, kind, problems)
    for offset in instances:  # instances of ftrace besides the main one
        if not any(size for _, _, size in file.parts) and offset < len(cursor.data):
            cursor.position = offset
            _read_sections_6(file, cursor.take(10, "the kind of the data"), problems)


def _read_sections_6(file: _TraceDat, kind: bytes, problems: Problems) -> None:
    cursor = file.cursor
    if kind == b"latency  \0":
        raise TraceFormatError(cursor.path, cursor.position - 10, "it holds the text of a latency tracer, no events",
                               "record tracepoints: trace-cmd record -e sched")  # fmt: skip
    if kind != b"flyrecord\0":
        raise TraceFormatError(cursor.path, cursor.position - 10, "the kind of its data is not known", _COPY_AGAIN)
    file.parts = [
        (cpu, cursor.number(8, "where a CPU's pages are"), cursor.number(8, "where a CPU's pages are"))
        for cpu in range(file.cpus)
    ]
    _cut_parts(file, problems)


def _cpu_count(count: int, cursor: Cursor) -> int:
    if count > _MOST_CPUS:
        raise TraceFormatError(cursor.path, cursor.position - 4, f"{count} CPUs cannot be", _COPY_AGAIN)
    return count


def _read_head_row(file: _TraceDat, option: int, value: bytes) -> None:
    text = value.split(b"\0", 1)[0].decode("utf-8", "replace").strip()
    if option == _UNAME and text:
        file.head_rows.append(("UNAME", text))
    elif option == _CPUCOUNT and len(value) == 4:
        file.cpus = max(file.cpus, min(int.from_bytes(value, file.cursor.order), _MOST_CPUS))


def _cut_parts(file: _TraceDat, problems: Problems) -> None:
    """Limit the pages of each CPU to the bytes that the file contains; report missing bytes."""
    total = len(file.data if file.unpacked is None else file.unpacked)
    for i, (cpu, offset, size) in enumerate(file.parts):
        held_bytes = max(0, min(size, total - offset))
        if held_bytes < size:
            problems.add(
                "section-cut", f"{size - held_bytes:,} bytes of the pages of CPU {cpu} are missing", min(offset, total)
            )
        file.parts[i] = (cpu, offset, held_bytes)


# ---- version 7 -----------------------------------------------------------------------------------------------------


def _read_7(file: _TraceDat, problems: Problems) -> None:
    cursor = file.cursor
    algorithm = cursor.text("the name of the compression")
    cursor.text("the version of the compression")
    buffers: list[bytes] = []
    sections: dict[int, int] = {}
    for option, value in _options(cursor, cursor.number(8, "where the options are"), algorithm):
        _read_head_row(file, option, value)
        if option == _BUFFER:
            buffers.append(value)
        elif len(value) == 8:
            sections[option] = int.from_bytes(value, cursor.order)
    for option, read in (
        (_HEADER, records.read_header_info), (_FTRACE, records.read_ftrace_formats),
        (_EVENTS, records.read_event_formats), (_CMDLINES, records.read_names),
    ):  # fmt: skip
        if option in sections:
            read(_section(cursor, sections[option], algorithm)[0], file.meta)
    for value in buffers:
        if not any(size for _, _, size in file.parts):
            _read_buffer(file, value, algorithm, problems)


def _options(cursor: Cursor, offset: int, algorithm: str) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each option in all option sections; each section ends with the offset of the next."""
    seen: set[int] = set()
    while offset and offset not in seen and len(seen) < _MOST_OPTIONS:
        seen.add(offset)
        inner, _ = _section(cursor, offset, algorithm)
        offset = 0
        while inner.left:
            option, size = inner.number(2, "an option"), inner.number(4, "an option")
            value = inner.take(size, "an option")
            if option == 0:
                offset = int.from_bytes(value[:8], cursor.order)
                break
            yield option, value


def _section(cursor: Cursor, offset: int, algorithm: str) -> tuple[Cursor, bool]:
    """Return the unpacked content of a section, and whether it was packed; `algorithm` names the compression."""
    if offset >= len(cursor.data):
        raise TraceFormatError(cursor.path, len(cursor.data), "the file ends before one of its sections", _COPY_AGAIN)
    cursor.position = offset
    _, flags = cursor.number(2, "the head of a section"), cursor.number(2, "the head of a section")
    cursor.take(4, "the head of a section")
    size = cursor.number(8, "the head of a section")
    begin = cursor.position
    content = _unpacked(cursor, algorithm) if flags & _IS_COMPRESSED else cursor.take(size, "a section")
    return Cursor(content, cursor.path, 0, cursor.order, begin), bool(flags & _IS_COMPRESSED)


def _unpacked(cursor: Cursor, algorithm: str) -> bytes:
    """Return the unpacked content of the next block, which begins with its packed and unpacked size."""
    packed, size = cursor.number(4, "a packed block"), cursor.number(4, "a packed block")
    offset = cursor.position
    data = cursor.take(packed, "a packed block")
    if grows_too_much(size, packed):
        raise TraceFormatError(cursor.path, offset, f"a block unpacks to more than {RATIO_MAX} times its size",
                               "unpack it with `trace-cmd convert --compression none` if you trust it")  # fmt: skip
    try:
        content = _unpacker(algorithm, cursor, offset)(data, size)
    except (zlib.error, ValueError, RuntimeError, MemoryError) as error:
        content = b""
        fault = f" ({error})"
    else:
        fault = ""
    if len(content) != size:
        raise TraceFormatError(cursor.path, offset, f"a packed block is damaged{fault}", _COPY_AGAIN)
    return content


def _unpacker(algorithm: str, cursor: Cursor, offset: int) -> Callable[[bytes, int], bytes]:
    if algorithm == "zlib":
        return lambda data, size: zlib.decompressobj().decompress(data, size or 1)
    if algorithm == "zstd":
        return zstd_block
    raise TraceFormatError(cursor.path, offset, f"the compression {algorithm[:20]!a} is not known",
                           "unpack it with `trace-cmd convert --compression none`")  # fmt: skip


def _read_buffer(file: _TraceDat, value: bytes, algorithm: str, problems: Problems) -> None:
    """Read where the pages of an ftrace instance are, from the option that describes it; unpack packed pages."""
    cursor = file.cursor
    inner = Cursor(value, cursor.path, 0, cursor.order)
    offset = inner.number(8, "the description of a buffer")
    inner.text("the description of a buffer")
    clock = inner.text("the description of a buffer")
    page_bytes = inner.number(4, "the description of a buffer")
    count = _cpu_count(inner.number(4, "the description of a buffer"), inner)
    parts = [(inner.number(4, "a CPU"), inner.number(8, "a CPU"), inner.number(8, "a CPU")) for _ in range(count)]
    if not any(size for _, _, size in parts):
        return
    if 64 <= page_bytes <= _MOST_PAGE:
        file.page_bytes = page_bytes
    if clock:
        file.head_rows.append(("TRACE_CLOCK", clock))
    cursor.position = offset + 2  # after its type
    flags = cursor.number(2, "the head of the pages")
    file.parts = parts
    file.cpus = max(file.cpus, count)
    if flags & _IS_COMPRESSED:
        _unpack_pages(file, algorithm, problems)
    _cut_parts(file, problems)


def _unpack_pages(file: _TraceDat, algorithm: str, problems: Problems) -> None:
    """Unpack the pages of all CPUs into `file`; a damaged block ends the pages of its CPU."""
    whole, total, parts = [], 0, []
    for cpu, offset, size in file.parts:
        begin = total
        if size and offset < len(file.data):
            cursor = file.cursor
            cursor.position = offset
            try:
                for _ in range(cursor.number(4, "the pages of a CPU")):
                    whole.append(_unpacked(cursor, algorithm))
                    total += len(whole[-1])
                    if total > _MOST_UNPACKED:
                        raise TraceFormatError(cursor.path, offset, "its pages unpack to more than 8 GiB",
                                               "cut it with `trace-cmd split`")  # fmt: skip
            except TraceFormatError as error:
                if total > _MOST_UNPACKED or "compression" in error.what:
                    raise
                problems.add("section-cut", f"pages of CPU {cpu}: {error.what}", error.offset)
        parts.append((cpu, begin, total - begin))
    file.unpacked = np.frombuffer(b"".join(whole), np.uint8)
    file.parts = parts


def _pages(file: _TraceDat, problems: Problems) -> Pages:
    """Return the complete pages of all CPUs."""
    offsets, cpus = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for cpu, begin, size in file.parts:
        count, rest = divmod(size, file.page_bytes)
        if rest:
            problems.add("section-cut", f"the last page of CPU {cpu} has {rest} of {file.page_bytes} bytes",
                         begin + count * file.page_bytes if file.unpacked is None else None)  # fmt: skip
        if not count:
            continue
        offsets.append(begin + np.arange(count, dtype=np.int64) * file.page_bytes)
        cpus.append(np.full(count, cpu, np.int64))
    return Pages(np.concatenate(offsets), np.concatenate(cpus), file.page_bytes, file.meta.commit_bytes)


# Reads perf.data as `perf record` and `perf sched record` write it: samples of tracepoints.
#
# Source: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of Linux 6.1.


MAGICS: Final[dict[bytes, ByteOrder]] = {b"PERFILE2": "little", b"2ELIFREP": "big"}
_TRACING_DATA: Final = 1  # bit of the feature
_SAMPLE, _COMM, _FORK, _LOST, _LOST_SAMPLES, _COMPRESSED = 9, 3, 7, 2, 13, 81
_IDENTIFIER, _IP, _TID, _TIME, _ADDR, _ID, _STREAM, _CPU, _PERIOD, _READ, _CALLCHAIN, _RAW = (
    1 << 16, 1, 2, 4, 8, 1 << 6, 1 << 9, 1 << 7, 1 << 8, 1 << 4, 1 << 5, 1 << 10,
)  # fmt: skip
_BEFORE_READ: Final = (_IDENTIFIER, _IP, _TID, _TIME, _ADDR, _ID, _STREAM, _CPU, _PERIOD)
_NUMBER_BYTES: Final = 8
_HEAD: Final = ("size", "attr_size", "attrs_at", "attrs_bytes", "data_at", "data_bytes", "types_at", "types_bytes")
_TRACEPOINT: Final = 2  # type of an event
_RECORD: Final = "record with `perf sched record`"
_BLOCK_SHIFT: Final = 14  # log2 of the words that are searched for records at once
_NAMES: Final = {_TID: "threads", _TIME: "times", _CPU: "CPUs", _RAW: "fields of tracepoints"}


def read_perf_data(path: Path, data: NDArray[np.uint8], problems: Problems) -> Schedule:
    """Return the scheduler events in a perf.data file; TraceFormatError if header or samples cannot be read."""
    order = MAGICS[data[:8].tobytes()]
    cursor = Cursor(data.data, path, 8, order)
    head = {name: cursor.number(8, "the head of the file") for name in _HEAD}
    if head["size"] < 104:
        raise TraceFormatError(path, 8, "it was written to a pipe, where its head has no offsets",
                               "record it with `perf record -o FILE`")  # fmt: skip
    features = cursor.number(8, "the features of the file")  # the first ones of 256
    sample_type, identifiers = _tracepoints(cursor, head, path)
    begin, end = head["data_at"], head["data_at"] + head["data_bytes"]
    if begin >= len(data) or not head["data_bytes"]:
        raise TraceFormatError(path, 40, "it holds no samples",
                               "perf was killed before it could finish the file; record it again")  # fmt: skip
    if end > len(data):
        problems.add("section-cut", f"{end - len(data):,} bytes of samples are missing", len(data))
    metadata = Metadata()
    _read_tracing_data(cursor, features, end, metadata, path)
    starts = _starts(data, begin, min(end, len(data)), order, problems)
    # Only numbers are read from these records, neither times nor CPUs.
    heads = Records(data, starts, starts, starts, np.full(len(starts), len(data)), "<" if order == "little" else ">")
    everything = np.arange(len(starts), dtype=np.int64)
    kind = heads.numbers(everything, 0, 4, is_signed=False)
    if np.any(kind == _COMPRESSED):
        raise TraceFormatError(path, int(starts[kind == _COMPRESSED][0]), "its samples are compressed",
                               "record it without -z")  # fmt: skip
    tasks = Tasks(dict(metadata.names))
    _read_tasks(heads, everything[kind == _COMM], everything[kind == _FORK], tasks)
    _report_lost(heads, everything[kind == _LOST], everything[kind == _LOST_SAMPLES], problems)
    rows = everything[kind == _SAMPLE]
    if sample_type & _IDENTIFIER:  # samples of other events have other layouts
        rows = rows[np.isin(heads.numbers(rows, _NUMBER_BYTES, 8, is_signed=True), identifiers)]
    samples = _samples(heads, rows, sample_type, tasks)
    seen = schedule_of(samples, metadata.formats, tasks)
    if seen.unknown:
        problems.add("unknown-events", "the file brings no format for these tracepoints", None, seen.unknown)
    return Schedule("perf.data of perf", (), seen.switches, seen.wakeups, seen.points, tasks,
                    RecordDetails(samples, metadata.formats))  # fmt: skip


def _tracepoints(cursor: Cursor, head: dict[str, int], path: Path) -> tuple[int, Ints]:
    """Return the sample type of all tracepoints, and the identifiers of their samples, int64 (n,)."""
    size, list_offset, total = head["attr_size"], head["attrs_at"], head["attrs_bytes"]
    if not 64 <= size <= 4096 or not size <= total <= 1 << 24:
        raise TraceFormatError(path, 16, "the list of what was recorded has an impossible size",
                               "the file is damaged; record it again")  # fmt: skip
    kinds, identifiers = set(), [0]
    for start in range(list_offset, list_offset + total - size + 1, size):
        cursor.position = start
        if cursor.number(4, "what was recorded") != _TRACEPOINT:
            continue
        cursor.position = start + 24  # type, size, config, period
        kinds.add(cursor.number(8, "what was recorded"))
        cursor.position = start + size - 16
        cursor.position, length = cursor.number(8, "identifiers"), cursor.number(8, "identifiers")
        identifiers += [cursor.number(8, "identifiers") for _ in range(min(length, 1 << 20) // 8)]
    if not kinds:
        raise TraceFormatError(path, list_offset, "no tracepoints were recorded", _RECORD)
    kind, needed = min(kinds), _TID | _TIME | _CPU | _RAW
    if len(kinds) > 1 or kind & _READ:
        raise TraceFormatError(path, list_offset, "its samples of tracepoints are of several layouts", _RECORD)
    if kind & needed != needed:
        lacking = ", ".join(name for bit, name in _NAMES.items() if not kind & bit)
        raise TraceFormatError(path, list_offset, f"its samples have no {lacking}", _RECORD)
    return kind, np.array(identifiers, np.uint64).astype(np.int64)


def _read_tracing_data(cursor: Cursor, features: int, features_offset: int, metadata: Metadata, path: Path) -> None:
    """Read the formats of tracepoints into `metadata`; `features_offset` is that of the table of feature sections."""
    if not features >> _TRACING_DATA & 1:
        raise TraceFormatError(path, 72, "it brings no formats of tracepoints", "record tracepoints: perf sched record")
    cursor.position = features_offset + 16 * (features & (1 << _TRACING_DATA) - 1).bit_count()
    cursor.position = cursor.number(8, "the formats of tracepoints")
    if cursor.take(len(TRACING_MAGIC), "the formats of tracepoints") != TRACING_MAGIC:
        raise TraceFormatError(path, cursor.position, "the formats of tracepoints are damaged", "record it again")
    version = cursor.text("the formats of tracepoints")
    cursor.order = "big" if cursor.number(1, "the byte order") else "little"
    cursor.take(5, "sizes of words and pages")
    read_all(cursor, metadata, has_names=version >= "0.6")


def _starts(data: NDArray[np.uint8], begin: int, end: int, order: ByteOrder, problems: Problems) -> Ints:
    """Return the offsets of the records of a file, int64 (n,), by the lengths in their headers.

    Many records are followed at once: a table has for every 8-byte word the place where the next record would start if
    a record started at this word. Composing the table with itself doubles the number of records that a step skips.
    """
    word = np.dtype("<u2" if order == "little" else ">u2")
    starts_by_block, block_offset = [], begin
    while block_offset + _NUMBER_BYTES <= end:
        count = min(1 << _BLOCK_SHIFT, (end - block_offset) // _NUMBER_BYTES)
        block = data[block_offset : block_offset + count * _NUMBER_BYTES].reshape(count, _NUMBER_BYTES)
        steps = np.ascontiguousarray(block[:, 6:]).view(word)[:, 0].astype(np.int64) // _NUMBER_BYTES
        reached = np.zeros(count + 1, np.bool_)
        reached[0] = True
        further = np.minimum(np.append(np.arange(count) + steps, count), count)
        for _ in range(_BLOCK_SHIFT + 1):
            reached[further[reached]] = True
            further = further[further]
        words = np.flatnonzero(reached[:count])
        starts_by_block.append(block_offset + words * _NUMBER_BYTES)
        last = int(words[-1])
        if not steps[last]:  # no record has length 0: stop here
            problems.add(
                "section-cut", "a record of no length; what follows it is left out", block_offset + last * _NUMBER_BYTES
            )
            starts_by_block[-1] = starts_by_block[-1][:-1]
            break
        block_offset += (last + int(steps[last])) * _NUMBER_BYTES
    starts = np.concatenate(starts_by_block) if starts_by_block else np.empty(0, np.int64)
    return starts[:-1] if len(starts) and block_offset > end else starts


def _read_tasks(heads: Records, comms: Ints, forks: Ints, tasks: Tasks) -> None:
    """Add names and processes of threads to `tasks`, from the `comms` and `forks` among all records."""
    for rows in (comms, forks):
        offsets = (8, 12) if rows is comms else (8, 16)
        process, thread = (heads.numbers(rows, offset, 4, is_signed=True).tolist() for offset in offsets)
        tasks.process.update(zip(thread, process, strict=True))
    for row, thread in zip(comms.tolist(), heads.numbers(comms, 12, 4, is_signed=True).tolist(), strict=True):
        start = int(heads.offsets[row]) + 16
        name = heads.data[start : start + 16].tobytes().split(b"\0", 1)[0].decode("utf-8", "replace")
        if thread > 0 and name:
            tasks.names[thread] = name


def _report_lost(heads: Records, lost: Ints, lost_samples: Ints, problems: Problems) -> None:
    count = int(heads.numbers(lost, 16, 8, is_signed=False).sum() + heads.numbers(lost_samples, 8, 8,
                                                                                  is_signed=False).sum())  # fmt: skip
    if count:
        offset = int(heads.offsets[lost[0]] if len(lost) else heads.offsets[lost_samples[0]])
        problems.add("lost-events", "perf was too slow: samples are missing", offset, count)


@dataclass(frozen=True, slots=True)
class _Offsets:
    """Offsets of the parts of a sample, bytes from the end of its header."""

    of_part: dict[int, int]
    end: int


def _offsets(sample_type: int) -> _Offsets:
    offset, offsets = _NUMBER_BYTES, {}
    for part in _BEFORE_READ:
        if sample_type & part:
            offsets[part] = offset
            offset += _NUMBER_BYTES
    return _Offsets(offsets, offset)


def _samples(heads: Records, rows: Ints, sample_type: int, tasks: Tasks) -> Records:
    """Return the tracepoint records in the samples `rows`; add the processes of their threads to `tasks`."""
    offsets = _offsets(sample_type)
    raw_at = np.full(len(rows), offsets.end, np.int64)
    if sample_type & _CALLCHAIN:
        depth = heads.numbers(rows, offsets.end, 8, is_signed=False)
        raw_at += _NUMBER_BYTES + _NUMBER_BYTES * np.clip(depth, 0, 1 << 13)
    begin = heads.offsets[rows]
    length = heads.numbers(rows, 6, 2, is_signed=False)
    size_offset = np.minimum(begin + raw_at, len(heads.data) - 4)
    sizes = Records(heads.data, size_offset, size_offset, size_offset, np.full(len(size_offset), 4), heads.order)
    size = sizes.numbers(np.arange(len(size_offset)), 0, 4, is_signed=False)
    size = np.clip(size, 0, np.maximum(begin + length - size_offset - 4, 0))
    thread_at = offsets.of_part[_TID]
    process = heads.numbers(rows, thread_at, 4, is_signed=True)
    thread = heads.numbers(rows, thread_at + 4, 4, is_signed=True)
    pairs = np.unique(np.stack((thread, process), axis=1), axis=0)
    for number, owner in pairs.tolist():
        if number > 0 and owner > 0:
            tasks.process.setdefault(number, owner)
    return Records(
        heads.data, heads.numbers(rows, offsets.of_part[_TIME], 8, is_signed=True),
        heads.numbers(rows, offsets.of_part[_CPU], 4, is_signed=False), size_offset + 4, size, heads.order,
    )  # fmt: skip

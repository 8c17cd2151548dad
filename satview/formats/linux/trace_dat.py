"""Reads trace.dat of trace-cmd, versions 6 and 7.

Source: manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). If there are several instances of ftrace, the first
one with events is read.
"""

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
from satview.formats.linux.records import MAGIC, ByteOrder, Cursor, Metadata, RecordDetails, Records, schedule_of
from satview.formats.linux.schedule import Ints, Schedule, Tasks
from satview.formats.unpacked import RATIO_MAX, grows_too_much, zstd_block
from satview.store.problems import Problems

# Pages of the ring buffer of ftrace: each step reads one event of every page.


_PADDING, _EXTEND, _STAMP = 29, 30, 31  # kinds
_DELTA_BITS: Final = 27
_USED: Final = 0xFFFFF  # bits of the commit word that hold the used length of a page
_MISSED: Final = 1 << 31  # events were lost before this page
_TOP: Final = ~((1 << 59) - 1)  # bits of a time that a stamp does not contain
_WORD: Final = 4


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of all CPUs, (n,) each.

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
    """Content of pages.

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
    """Read one event of each page; return the unfinished pages and their next offsets."""
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
    """Return the schedule in a trace.dat file.

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
    """Yield the options of all option sections; each section ends with the offset of the next."""
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
    """Return the unpacked content of a section, and whether it was packed."""
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
    """Read the locations of the pages of an ftrace instance; unpack packed pages."""
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
    """Unpack the pages of all CPUs; a damaged block ends the pages of its CPU."""
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

"""Reads perf.data as `perf record` and `perf sched record` write it: samples of tracepoints.

Source: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of Linux 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.formats.linux.records import MAGIC as TRACING_MAGIC
from satview.formats.linux.records import ByteOrder, Cursor, Metadata, RecordDetails, Records, read_all, schedule_of
from satview.formats.linux.schedule import Ints, Schedule, Tasks
from satview.store.problems import Problems

MAGICS: Final[dict[bytes, ByteOrder]] = {b"PERFILE2": "little", b"2ELIFREP": "big"}
_TRACING_DATA: Final = 1  # bit of the feature
_SAMPLE, _COMM, _FORK, _LOST, _LOST_SAMPLES, _COMPRESSED = 9, 3, 7, 2, 13, 81
_IDENTIFIER, _IP, _TID, _TIME, _ADDR, _ID, _STREAM, _CPU, _PERIOD, _READ, _CALLCHAIN, _RAW = (
    1 << 16, 1, 2, 4, 8, 1 << 6, 1 << 9, 1 << 7, 1 << 8, 1 << 4, 1 << 5, 1 << 10,
)  # fmt: skip
_BEFORE_READ: Final = (_IDENTIFIER, _IP, _TID, _TIME, _ADDR, _ID, _STREAM, _CPU, _PERIOD)
_WORD: Final = 8
_HEAD: Final = ("size", "attr_size", "attrs_at", "attrs_bytes", "data_at", "data_bytes", "types_at", "types_bytes")
_TRACEPOINT: Final = 2  # type of an event
_RECORD: Final = "record with `perf sched record`"
_BLOCK_SHIFT: Final = 14  # log2 of the words that are searched for records at once
_NAMES: Final = {_TID: "threads", _TIME: "times", _CPU: "CPUs", _RAW: "fields of tracepoints"}


def read_perf_data(path: Path, data: NDArray[np.uint8], problems: Problems) -> Schedule:
    """Return the schedule in a perf.data file.

    Args:
        path: The file, for errors.
        data: Bytes of the file.
        problems: Receives damage.

    Raises:
        TraceFormatError: The header is damaged, or the samples cannot be read.
    """
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
        rows = rows[np.isin(heads.numbers(rows, _WORD, 8, is_signed=True), identifiers)]
    samples = _samples(heads, rows, sample_type, tasks)
    seen = schedule_of(samples, metadata.formats, tasks)
    if seen.unknown:
        problems.add("unknown-events", "the file brings no format for these tracepoints", None, seen.unknown)
    return Schedule("perf.data of perf", (), seen.switches, seen.wakeups, seen.points, tasks,
                    RecordDetails(samples, metadata.formats))  # fmt: skip


def _tracepoints(cursor: Cursor, head: dict[str, int], path: Path) -> tuple[int, Ints]:
    """Return the sample type of all tracepoints, and the identifiers of their samples."""
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
    """Read the formats of tracepoints, which follow the samples."""
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

    Many records are followed at once: a table has for every word the start of the next record, as if a record began at
    the word; composing the table with itself doubles the number of steps.
    """
    word = np.dtype("<u2" if order == "little" else ">u2")
    starts_by_block, block_offset = [], begin
    while block_offset + _WORD <= end:
        count = min(1 << _BLOCK_SHIFT, (end - block_offset) // _WORD)
        block = data[block_offset : block_offset + count * _WORD].reshape(count, _WORD)
        steps = np.ascontiguousarray(block[:, 6:]).view(word)[:, 0].astype(np.int64) // _WORD
        reached = np.zeros(count + 1, np.bool_)
        reached[0] = True
        further = np.minimum(np.append(np.arange(count) + steps, count), count)
        for _ in range(_BLOCK_SHIFT + 1):
            reached[further[reached]] = True
            further = further[further]
        words = np.flatnonzero(reached[:count])
        starts_by_block.append(block_offset + words * _WORD)
        last = int(words[-1])
        if not steps[last]:  # no record has length 0: stop here
            problems.add(
                "section-cut", "a record of no length; what follows it is left out", block_offset + last * _WORD
            )
            starts_by_block[-1] = starts_by_block[-1][:-1]
            break
        block_offset += (last + int(steps[last])) * _WORD
    starts = np.concatenate(starts_by_block) if starts_by_block else np.empty(0, np.int64)
    return starts[:-1] if len(starts) and block_offset > end else starts


def _read_tasks(heads: Records, comms: Ints, forks: Ints, tasks: Tasks) -> None:
    """Read names and processes of threads."""
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
        problems.add("lost-events", "perf was too slow: so many samples are missing", offset, count)


@dataclass(frozen=True, slots=True)
class _Offsets:
    """Offsets of the parts of a sample, bytes from the end of its header."""

    of_part: dict[int, int]
    end: int


def _offsets(sample_type: int) -> _Offsets:
    offset, offsets = _WORD, {}
    for part in _BEFORE_READ:
        if sample_type & part:
            offsets[part] = offset
            offset += _WORD
    return _Offsets(offsets, offset)


def _samples(heads: Records, rows: Ints, sample_type: int, tasks: Tasks) -> Records:
    """Return the tracepoint records in samples; add the processes of their threads to `tasks`."""
    offsets = _offsets(sample_type)
    raw_at = np.full(len(rows), offsets.end, np.int64)
    if sample_type & _CALLCHAIN:
        depth = heads.numbers(rows, offsets.end, 8, is_signed=False)
        raw_at += _WORD + _WORD * np.clip(depth, 0, 1 << 13)
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

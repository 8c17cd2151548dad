"""Writes perf.data files as `perf sched record` does; `perf script` prints them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.helpers import trace_dat
from tests.helpers.trace_dat import FORMATS, metadata

_SAMPLE_TYPE = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16  # IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER
_ATTR_BYTES = 128
_FIRST_ID = 7


def _attribute(kind: int, config: int, sample_type: int) -> bytes:
    flags = 1 << 18  # sample_id_all
    return struct.pack(trace_dat.ORDER + "IIQQQQQ", kind, _ATTR_BYTES, config, 1, sample_type, 0, flags).ljust(
        _ATTR_BYTES, b"\0"
    )


def _record(kind: int, body: bytes) -> bytes:
    body = body.ljust(-(-len(body) // 8) * 8, b"\0")
    return struct.pack(trace_dat.ORDER + "IHH", kind, 0, len(body) + 8) + body


def _sample_id(process: int, thread: int, time: int, cpu: int) -> bytes:
    return struct.pack(trace_dat.ORDER + "IIQIIQ", process, thread, time, cpu, 0, _FIRST_ID)


def sample(time: int, cpu: int, process: int, record: bytes) -> bytes:
    """Return a sample of a tracepoint; the thread that logs it is in its record."""
    ident, thread = struct.unpack(trace_dat.ORDER + "HxxI", record[:8])
    number = _FIRST_ID + next(i for i, row in enumerate(FORMATS) if row[2] == ident)
    body = struct.pack(trace_dat.ORDER + "QQIIQIIQ", number, 0, process, thread, time, cpu, 0, 1)
    raw = record.ljust((-(-(len(record) + 4) // 8) * 8) - 4, b"\0")  # with the size a multiple of eight
    return _record(9, body + struct.pack(trace_dat.ORDER + "I", len(raw)) + raw)


def name(process: int, thread: int, text: str, time: int = 0) -> bytes:
    """Return the record that names a thread."""
    return _record(
        3, struct.pack(trace_dat.ORDER + "II16s", process, thread, text.encode()) + _sample_id(process, thread, time, 0)
    )


def lost(count: int) -> bytes:
    """Return the record that says that samples are missing."""
    return _record(2, struct.pack(trace_dat.ORDER + "QQ", _FIRST_ID, count) + _sample_id(0, 0, 0, 0))


def perf_data(records: Sequence[bytes]) -> bytes:
    """Return a file."""
    ids_at = 104
    ids = struct.pack(f"{trace_dat.ORDER}{len(FORMATS)}Q", *(_FIRST_ID + i for i in range(len(FORMATS))))
    attributes_at = ids_at + len(ids)
    attributes = b"".join(
        _attribute(2, row[2], _SAMPLE_TYPE) + struct.pack(trace_dat.ORDER + "QQ", ids_at + 8 * i, 8)
        for i, row in enumerate(FORMATS)
    )
    data_at = attributes_at + len(attributes)
    data = b"".join(records)
    tracing = metadata("0.6")
    tracing_at = data_at + len(data) + 16
    head = (b"PERFILE2" if trace_dat.ORDER == "<" else b"2ELIFREP") + struct.pack(
        trace_dat.ORDER + "QQQQQQQQ", 104, _ATTR_BYTES + 16, attributes_at, len(attributes), data_at, len(data), 0, 0
    )
    head += struct.pack(trace_dat.ORDER + "QQQQ", 1 << 1, 0, 0, 0)  # the feature `tracing data`
    return head + ids + attributes + data + struct.pack(trace_dat.ORDER + "QQ", tracing_at, len(tracing)) + tracing

"""Fields of messages."""

from __future__ import annotations

import numpy as np

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # wire types
_MOST_BYTES = 10  # of a number


def fields(data, begin, end):
    """Return message, number, value and length of each field, and which messages are damaged."""
    octets, rows = data.tobytes(), []
    is_bad = (begin < 0) | (end > len(data))
    stops = np.minimum(end, len(data)).tolist()
    for message, first in enumerate(begin.tolist()):
        at = first
        while 0 <= at < stops[message]:
            field = _field(octets, at, stops[message])
            if field is None:
                is_bad[message] = True
                break
            *row, at = field
            rows.append((message, *row))
    message, number, value, length = np.array(rows, np.int64).reshape(-1, 4).T
    return message, number, value, length, is_bad


def _field(octets, at, stop):
    """Return number, value, length (-1: no bytes) of a field, and where the next one begins; None for damage."""
    tag, at = _number(octets, at, stop)
    number, kind = (tag or 0) >> 3, (tag or 0) & 7
    if tag is None or not 0 < number < 1 << 29:
        return None
    if kind in (_VARINT, _BYTES):
        value, at = _number(octets, at, stop)
        if value is None or (kind == _BYTES and not 0 <= value <= stop - at):
            return None
        return (number, value, -1, at) if kind == _VARINT else (number, at, value, at + value)
    size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind)
    if size is None or stop - at < size:
        return None
    return number, _signed(int.from_bytes(octets[at : at + size], "little")), -1, at + size


def _number(octets, at, stop):
    """Return a number of 7 bits a byte, None where it does not end, and what is behind it."""
    value = 0
    for step in range(min(_MOST_BYTES, stop - at)):
        value |= (octets[at + step] & 0x7F) << 7 * step
        if octets[at + step] < 0x80:
            return _signed(value & 2**64 - 1), at + step + 1
    return None, at


def _signed(value):
    return value - 2**64 if value >= 2**63 else value

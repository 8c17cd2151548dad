"""Protobuf messages from columns: many at once, without a loop over them.

The package `protobuf` makes them one by one, at 10 us each. Here a field of n messages is a block of bytes, one row per
message, of which a mask shows the bytes that are there; blocks are side by side, and the bytes that are there, row by
row, are the messages. Source: "Encoding" of the protobuf documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_BITS: Final = 7
_MOST: Final = 10  # bytes of a number of 64 bits

Numbers = NDArray[np.integer[Any]]
Known = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of n messages.

    Attributes:
        data: uint8, (n, width).
        used: bool, (n, width), which of them are there.
    """

    data: NDArray[np.uint8]
    used: Known

    def __len__(self) -> int:
        return len(self.data)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each message, int64 (n,)."""
        return np.asarray(np.count_nonzero(self.used, axis=1), np.int64)

    def to_bytes(self) -> bytes:
        """Return all messages, one after the other."""
        return self.data[self.used].tobytes()

    def where(self, known: Known) -> Block:
        """Return the same with nothing where `known`, bool (n,), is False."""
        return Block(self.data, self.used & known[:, None])


def message(*fields: Block) -> Block:
    """Return messages of some fields, in their order."""
    return Block(np.concatenate([field.data for field in fields], axis=1),
                 np.concatenate([field.used for field in fields], axis=1))  # fmt: skip


def number(field: int, values: Numbers) -> Block:
    """Return a field of whole numbers, (n,); negative ones take ten bytes, as int32 and int64 do."""
    return message(_tag(field, _VARINT, len(values)), _varints(values))


def fixed64(field: int, values: Numbers) -> Block:
    """Return a field of eight bytes each."""
    data = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(len(values), 8)
    return message(_tag(field, _FIXED64, len(values)), Block(data, np.ones(data.shape, np.bool_)))


def text(field: int, which: Numbers, texts: Sequence[str]) -> Block:
    """Return a field of texts of which few are different.

    Args:
        field: Its number.
        which: (n,), which of the texts.
        texts: The texts.
    """
    raw = [value.encode("utf-8", "replace") for value in texts] or [b""]
    width = max(map(len, raw))
    table = np.frombuffer(b"".join(value.ljust(width, b"\0") for value in raw), np.uint8).reshape(len(raw), width)
    lengths = np.array([len(value) for value in raw])
    return _delimited(field, Block(table[which], np.arange(width) < lengths[which][:, None]))


def nested(field: int, inner: Block) -> Block:
    """Return a field of messages."""
    return _delimited(field, inner)


def _delimited(field: int, inner: Block) -> Block:
    return message(_tag(field, _LENGTH, len(inner)), _varints(inner.lengths), inner)


def _tag(field: int, wire: int, count: int) -> Block:
    tag = _varints(np.array([field << 3 | wire]))
    return Block(np.repeat(tag.data, count, axis=0), np.repeat(tag.used, count, axis=0))


def _varints(values: Numbers) -> Block:
    rest = values.astype(np.int64).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // _BITS))
    shifts = np.arange(min(width, _MOST), dtype=np.uint64) * np.uint64(_BITS)
    parts = rest[:, None] >> shifts
    used = parts > 0
    used[:, 0] = True
    more = np.zeros(parts.shape, np.uint8)
    more[:, :-1] = used[:, 1:] * np.uint8(0x80)
    return Block((parts & np.uint64(0x7F)).astype(np.uint8) | more, used)

"""Pages of the ring buffer of ftrace: all pages are walked at once, one event of each at a time.

A page begins with the time of its first event and the bytes that are used. An event begins with 32 bits: a kind, or its
length in words, and the time since the event before. Source: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c
of Linux 6.1; `header_event` in the file says the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.formats.linux.records import Records
from satview.formats.linux.schedule import Ints

_PADDING, _EXTEND, _STAMP = 29, 30, 31  # kinds
_DELTA_BITS: Final = 27
_USED: Final = 0xFFFFF  # of the word that says how much of a page is used
_MISSED: Final = 1 << 31  # events were lost before this page
_TOP: Final = ~((1 << 59) - 1)  # bits of a time that a stamp does not hold
_WORD: Final = 4


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of all CPUs, (n,) each.

    Attributes:
        at: int64, byte offset of each in the data.
        cpu: int64.
        page_bytes: Of one page.
        commit_bytes: Of the word behind the time of a page.
    """

    at: Ints
    cpu: Ints
    page_bytes: int
    commit_bytes: int


@dataclass(frozen=True, slots=True)
class Walked:
    """What is in pages.

    Attributes:
        records: Of all CPUs, those of a page in their order.
        lossy: int64, rows of `Pages` before which events were lost.
        damaged: int64, rows of `Pages` whose content runs over its end.
    """

    records: Records
    lossy: Ints
    damaged: Ints


def walk(data: NDArray[np.uint8], pages: Pages, order: str) -> Walked:
    """Return the records of tracepoints in some pages.

    Args:
        data: uint8, of the file.
        pages: Where they are; each must be in `data` as a whole.
        order: Byte order, `<` or `>`.
    """
    bytes_of = Records(data, pages.at, pages.cpu, pages.at, np.full(len(pages.at), pages.page_bytes), order)
    every = np.arange(len(pages.at), dtype=np.int64)
    time = bytes_of.numbers(every, 0, 8, is_signed=True)
    commit = bytes_of.numbers(every, 8, pages.commit_bytes, is_signed=False)
    head = 8 + pages.commit_bytes
    is_damaged = (commit & _USED) > pages.page_bytes - head
    end = pages.at + head + np.minimum(commit & _USED, pages.page_bytes - head)
    found: list[tuple[Ints, ...]] = []
    page, at = every, pages.at + head
    while True:
        alive = at + _WORD <= end[page]
        page, at = page[alive], at[alive]
        if not len(page):
            break
        page, at = _step(data, order, page, at, time, end, is_damaged, found)
    columns = [np.concatenate(column) if found else np.empty(0, np.int64) for column in zip(*found, strict=True)] or [
        np.empty(0, np.int64)
    ] * 4
    in_order = np.lexsort((columns[1], columns[0]))
    row, where, when, size = (column[in_order] for column in columns)
    records = Records(data, when, pages.cpu[row], where, size, order)
    return Walked(records, every[(commit & _MISSED) != 0], every[is_damaged])


def _step(
    data: NDArray[np.uint8],
    order: str,
    page: Ints,
    at: Ints,
    time: Ints,
    end: Ints,
    is_damaged: NDArray[np.bool_],
    found: list[tuple[Ints, ...]],
) -> tuple[Ints, Ints]:
    """Read one event of each page; return the pages that go on, and where."""
    word = _words(data, at, order)
    if order == "<":
        kind, delta = word & 31, word >> 5
    else:
        kind, delta = word >> _DELTA_BITS, word & (1 << _DELTA_BITS) - 1
    has_more = (kind == 0) | (kind >= _PADDING)
    more = np.where(has_more & (at + 2 * _WORD <= end[page]), _words(data, np.minimum(at + _WORD, len(data) - _WORD),
                                                                     order), 0)  # fmt: skip
    is_stamp, is_rest = kind == _STAMP, (kind == _PADDING) & (delta == 0)
    passed = np.where(kind == _EXTEND, (more << _DELTA_BITS) + delta, np.where(kind == _PADDING, 0, delta))
    stamp = (more << _DELTA_BITS) + delta | time[page] & _TOP
    time[page] = np.where(is_stamp, stamp, time[page] + passed)
    # Bytes of the whole event, its first word included.
    size = np.select(
        [kind == 0, kind <= 28, kind == _PADDING], [_WORD + more, _WORD + _WORD * kind, _WORD + more], 2 * _WORD
    )
    size = np.maximum(-(-size // _WORD) * _WORD, _WORD)
    is_over = at + size > end[page]
    is_damaged[page[is_over & ~is_rest]] = True
    is_record = (kind <= 28) & ~is_over
    begin = np.where(kind == 0, 2 * _WORD, _WORD)
    found.append((page[is_record], (at + begin)[is_record], time[page][is_record], (size - begin)[is_record]))
    goes_on = ~is_over & ~is_rest
    return page[goes_on], (at + size)[goes_on]


def _words(data: NDArray[np.uint8], at: Ints, order: str) -> Ints:
    wide = np.empty((len(at), _WORD), np.uint8)
    for byte in range(_WORD):
        wide[:, byte] = data[at + byte]
    return wide.view(f"{order}u4")[:, 0].astype(np.int64)

"""Lays out the text header so that the vendor's 6.4 tools can read it, and undoes that on reading.

The 6.4 library reads the header through windows of 99 bytes and hangs on a pair that fits in none, or on a window that
ends inside the end mark. So a long value is continued in further pairs, `KEY+2`, `KEY+3`, ..., and where the end falls
badly an attribute `PAD` of 0 or 1 bytes moves it. Source: kernel event trace format, section 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from satview.base.errors import UsageError

WINDOW_BYTES: Final = 99
PAD: Final = "PAD"
_BEGIN_BYTES = len("TRACE_HEADER_BEGIN::")
_MARK_BYTES = len("TRACE_")
_END_BYTES = len("TRACE_HEADER_END::")
_PART = re.compile(r"(.+)\+(\d{1,4})", re.DOTALL)
Pairs = tuple[tuple[str, str], ...]


def windowed_pairs(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """Return pairs that say the same and that the vendor's windows hold.

    Args:
        pairs: Key without `TRACE_`, value.

    Raises:
        UsageError: A key is so long that no window holds it with any of its value.
    """
    parts = [part for key, value in pairs for part in _split(key, value)]
    sizes = [_pair_bytes(key, value) for key, value in parts]
    if _end_is_whole(sizes):
        return tuple(parts)
    # 12 starts of the end mark are bad; a pad of 11 bytes moves it past all of them but one, of 12 past that too.
    for value in ("", "0"):
        if _end_is_whole([*sizes, _pair_bytes(PAD, value)]):
            return (*parts, (PAD, value))
    raise AssertionError("a pad of 11 or 12 bytes always moves the end out of the bad positions")


def plain_pairs(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """Return the pairs from which `windowed_pairs` made these; what it did not make stays as it is."""
    plain: list[tuple[str, str]] = []
    expected = ("", 0)
    for key, value in pairs:
        part = _PART.fullmatch(key)
        if part and (part[1], int(part[2])) == expected:
            plain[-1] = (part[1], plain[-1][1] + value)
            expected = (part[1], expected[1] + 1)
        else:
            plain.append((key, value))
            expected = (key, 2)
    if plain and plain[-1] in ((PAD, ""), (PAD, "0")):
        del plain[-1]
    unchanged = tuple(pairs)
    if tuple(plain) == unchanged:
        return unchanged
    # Only what this module would have written is reassembled: a real attribute `X+2` stays as it is.
    try:
        return tuple(plain) if windowed_pairs(plain) == unchanged else unchanged
    except UsageError:
        return unchanged


def _split(key: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield a pair, or its parts if no window holds it."""
    number, name = 2, key
    while _pair_bytes(name, value) > WINDOW_BYTES:
        head = _head(value, WINDOW_BYTES - _pair_bytes(name, ""))
        if not head:
            raise UsageError(
                f"header attribute {key[:40]!a}...: a name of {len(_encoded(key))} bytes is too long for "
                f"the tools of QNX 6.4, which read {WINDOW_BYTES} bytes at a time; give a shorter one"
            )
        yield name, head
        value = value[len(head) :]
        name, number = f"{key}+{number}", number + 1
    yield name, value


def _head(value: str, size: int) -> str:
    """Return the longest start of a text of at most so many bytes, whole characters."""
    return _encoded(value)[: max(size, 0)].decode("utf-8", "ignore")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _pair_bytes(key: str, value: str) -> int:
    """Return the bytes from the `TRACE_` of a pair to that of the next."""
    return _MARK_BYTES + len(_encoded(key)) + 2 + len(_encoded(value))


def _end_is_whole(sizes: Sequence[int]) -> bool:
    """Return whether no window ends inside the end mark, given the bytes of each pair."""
    start, room = 0, WINDOW_BYTES - _BEGIN_BYTES - _MARK_BYTES
    at = _BEGIN_BYTES + _MARK_BYTES  # of the key behind the last `TRACE_`
    for size in sizes:
        if size > room:  # the first pair that the window does not hold whole begins the next one
            start, room = at, WINDOW_BYTES
        room -= size
        at += size
    end = at - _MARK_BYTES
    return not end + _MARK_BYTES <= start + WINDOW_BYTES < end + _END_BYTES

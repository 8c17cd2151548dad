"""Changes to bytes, and selections made from bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

BAD_NUMBERS = (
    b"-1",
    b"0",
    b"1e9",
    b"0x",
    b"99999999999999999999",
    b"9" * 5000,
    b"0xffffffffffffffff",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"nan",
    "\N{ARABIC-INDIC DIGIT FIVE}".encode(),
    b"\xff\xfe",
    b"\0",
    b"",
)


def mutate(rng: random.Random, data: bytes, tokens: Sequence[bytes] = ()) -> bytes:
    """Return bytes with up to eight changes: flips, cuts, copies, swaps, words of the format, numbers out of bounds."""
    found = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(found) + 1)
        end = min(len(found), at + rng.choice((1, 1, 2, 4, 16, 100)))
        match rng.randrange(7):
            case 0 if at < len(found):
                found[at] ^= 1 << rng.randrange(8)
            case 1:
                del found[at:end]
            case 2:
                found[at:at] = found[at:end] * rng.choice((1, 1, 2, 30))
            case 3:
                found[at:end] = rng.randbytes(end - at)
            case 4:
                found[at:end] = rng.choice((*tokens, *BAD_NUMBERS))
            case 5:
                del found[at:]
            case 6:
                other = rng.randrange(len(found) + 1)
                found[at:at] = found[other : other + 40]
    return bytes(found)


def mutate_lines(rng: random.Random, data: bytes, tokens: Sequence[bytes]) -> bytes:
    """Return text with lines dropped, doubled, swapped, broken and changed, and with other line ends."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.randrange(5) if lines else 0):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(at, lines[rng.randrange(len(lines))])
            case 2:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = mutate(rng, lines[at], tokens)
            case 4:
                lines.insert(at, rng.choice((b"# ls\n", b"\n", b"\x1b[0mlogin: ", b"....\n", b"t:\n")))
            case 5:
                words = lines[at].split(b" ")
                words[rng.randrange(len(words))] = rng.choice((*tokens, *BAD_NUMBERS))
                lines[at] = b" ".join(words)
    text = b"".join(lines)
    if rng.random() < 0.1:
        text = text.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"")))
    return mutate(rng, text, tokens) if rng.random() < 0.2 else text


class Decisions:
    """Decisions made from bytes, so that the same bytes always do the same; zeros when the bytes have run out."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def is_over(self) -> bool:
        """True if no byte is left."""
        return self._at >= len(self._data)

    def number(self, limit: int) -> int:
        """Return a number from 0 to below `limit`, at most 65,536."""
        size = 1 if limit <= 256 else 2
        part = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(part, "little") % limit

    def one(self, values: Sequence[Any]) -> Any:
        """Return one of some values."""
        return values[self.number(len(values))]

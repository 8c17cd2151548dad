"""Numbers of a listing in either notation: decimal as `%d` prints it, hexadecimal with `0x`, any number of zeros."""

from __future__ import annotations

from typing import Final

NUMBER: Final = r"(0[xX][0-9a-fA-F]{1,16}|-?\d{1,20})"  # one group
BARE_HEX: Final = r"((?:0[xX])?[0-9a-fA-F]{1,16})"  # one group; for what is printed as `%x` or `%p`


def value_of(text: str) -> int:
    """Return the value of a text that `NUMBER` matched."""
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def is_wide(text: str) -> bool:
    """Return whether a number was printed as one of 64 bits, or does not fit 32."""
    digits = len(text) - 2 if text[:2] in ("0x", "0X") else 0
    return digits > 8 or not -1 << 31 <= value_of(text) < 1 << 32


def printed_as(text: str) -> str:
    """Return the `%` template that prints a number as this one: `%d`, `0x%08x`, `0x%016x`, `0x%x` or `%x`."""
    if text[:2] in ("0x", "0X"):
        digits = len(text) - 2
        return f"0x%0{digits}x" if digits in (8, 16) or text[2] == "0" < text[3:4] else "0x%x"
    return "%d" if text.lstrip("-").isdigit() else "%x"


def bare_value(text: str) -> int:
    """Return the value of a text that `BARE_HEX` matched."""
    return int(text, 16)

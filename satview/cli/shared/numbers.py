"""Numbers among the arguments of commands."""

from __future__ import annotations

import argparse


def number(text: str) -> int:
    """Return a number written in decimal, or with 0x in hexadecimal.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    try:
        return int(text, 16) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number such as 256 or 0x100") from None

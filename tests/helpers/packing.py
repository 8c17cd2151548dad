"""How files are compressed for tests."""

from __future__ import annotations

import gzip
import sys


def zstd(data: bytes) -> bytes:
    """Return one frame that does not show its size, as a program that writes to a pipe makes it."""
    if sys.version_info >= (3, 14):
        from compression.zstd import compress

        return compress(data)
    import zstandard

    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


PACKERS = {"gz": gzip.compress, "zst": zstd}

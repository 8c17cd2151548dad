"""Reads a header as the vendor's 6.4 library does, window by window; written from the format's section 1.1 alone."""

from __future__ import annotations

import re


def why_it_hangs(data: bytes) -> str:
    """Return why the 6.4 library would not get through the header at the start of a file; empty if it does."""
    marks = [found.start() for found in re.finditer(rb"TRACE_(?=(?:(?!TRACE_|::).)+::)", data, re.DOTALL)]
    end = data.index(b"TRACE_HEADER_END::")
    marks = [at for at in marks if at <= end]
    keys = [at + 6 for at in marks]  # a window starts at the byte behind `TRACE_`
    start, following = 0, 1  # the second key's number: HEADER_BEGIN is held by the first window
    while True:
        stop = start + 99
        if end + 6 <= stop < end + 18:
            return f"window at {start} ends inside the end mark"
        if end + 18 <= stop:
            return ""
        whole = [n for n in range(following, len(marks)) if marks[n] + 6 <= stop]
        if not whole:
            return f"window at {start} holds no whole pair"
        start, following = keys[whole[-1]], whole[-1] + 1

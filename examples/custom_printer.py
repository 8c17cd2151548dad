"""A printer of one's own, with the functions of the traceparser library: who sends messages to whom.

python examples/custom_printer.py trace.kev
"""

from __future__ import annotations

import sys
from typing import Any

from satview.traceparser.api import (
    Info,
    State,
    traceparser,
    traceparser_cs,
    traceparser_destroy,
    traceparser_get_info,
    traceparser_init,
)

KERCALLENTER, THREAD, COMM = 3, 10, 14
THRUNNING, SMSG = 1 << 1, 0


def started(state: State, running: dict[int, str], _header: int, _time: int, _buffer: Any, _length: int) -> None:
    """Print a title; called once, before the first event."""
    running.clear()
    print(f"messages in {traceparser_get_info(state, Info.FILE_NAME) or 'a trace without name'}")


def on_running(_state: State, running: dict[int, str], header: int, _time: int, buffer: Any, _length: int) -> None:
    """Remember which thread runs on which CPU."""
    running[header >> 24 & 0x3F] = f"{buffer[0]}/{buffer[1]}"


def on_message(_state: State, running: dict[int, str], header: int, time: int, buffer: Any, _length: int) -> None:
    """Print one message."""
    print(f"0x{time:08x}  {running.get(header >> 24 & 0x3F, '?'):>12} -> {buffer[1]}")


def main(argv: list[str]) -> int:
    """Register three callbacks and parse."""
    state = traceparser_init(None)
    running: dict[int, str] = {}
    traceparser_cs(state, running, started, 0, 0)
    traceparser_cs(state, running, on_running, THREAD, THRUNNING)
    traceparser_cs(state, running, on_message, COMM, SMSG)
    result = traceparser(state, None, argv[0])
    if result:
        print(traceparser_get_info(state, Info.ERROR_STR), file=sys.stderr)
    traceparser_destroy(state)
    return -result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

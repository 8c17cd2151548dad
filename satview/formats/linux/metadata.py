"""What trace.dat and perf.data say in front of their records: formats of tracepoints, names of threads.

Source: manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5); perf writes the same in its feature `tracing data`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from satview.formats.linux.cursor import Cursor
from satview.formats.linux.event_format import EventFormat, parse_format

MAGIC: Final = b"\x17\x08\x44tracing"
_MOST_EVENTS: Final = 1 << 16


@dataclass(slots=True)
class Metadata:
    """Formats and names.

    Attributes:
        formats: By number.
        names: Of threads, by number.
        commit_bytes: Size of the word in front of a page of the ring buffer that says how much of it is used.
    """

    formats: dict[int, EventFormat] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    commit_bytes: int = 8


def read_header_info(cursor: Cursor, found: Metadata) -> None:
    """Read how a page of the ring buffer begins, and how an event of it does."""
    for what in ("header_page", "header_event"):
        name = cursor.text(what)
        text = cursor.take(cursor.number(8, what), what).decode("utf-8", "replace")
        if name == "header_page" and (page := parse_format(f"name: page\nID: 0\n{text}", "")):
            commit = page.fields.get("commit")
            found.commit_bytes = commit.size if commit and commit.size in (4, 8) else 8


def read_ftrace_formats(cursor: Cursor, found: Metadata) -> None:
    """Read the formats of events that are no tracepoints."""
    for _ in range(min(cursor.number(4, "the formats of ftrace"), _MOST_EVENTS)):
        _read_format(cursor, found, "ftrace")


def read_event_formats(cursor: Cursor, found: Metadata) -> None:
    """Read the formats of tracepoints."""
    for _ in range(min(cursor.number(4, "the groups of tracepoints"), _MOST_EVENTS)):
        group = cursor.text("the name of a group")
        for _ in range(min(cursor.number(4, "the formats of tracepoints"), _MOST_EVENTS)):
            _read_format(cursor, found, group)


def _read_format(cursor: Cursor, found: Metadata, group: str) -> None:
    text = cursor.take(cursor.number(8, "the format of a tracepoint"), "the format of a tracepoint")
    known = parse_format(text.decode("utf-8", "replace"), group)
    if known is not None:
        found.formats[known.ident] = known


def skip_sized(cursor: Cursor, what: str, size: int = 4) -> None:
    """Read over a part that begins with its size."""
    cursor.take(cursor.number(size, what), what)


def read_names(cursor: Cursor, found: Metadata) -> None:
    """Read the names of threads: lines of a number and a name."""
    text = cursor.take(cursor.number(8, "the names of threads"), "the names of threads").decode("utf-8", "replace")
    for line in text.splitlines():
        number, _, name = line.strip("\0 ").partition(" ")
        if number.isascii() and number.isdigit() and len(number) < 11:
            found.names[int(number)] = name


def read_all(cursor: Cursor, found: Metadata, *, has_names: bool = True) -> None:
    """Read what follows the byte order and page size of version 6, and in perf.data."""
    read_header_info(cursor, found)
    read_ftrace_formats(cursor, found)
    read_event_formats(cursor, found)
    skip_sized(cursor, "the names of functions")
    skip_sized(cursor, "the formats of trace_printk()")
    if has_names:
        read_names(cursor, found)

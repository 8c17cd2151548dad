"""The file of marks beside a trace: what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from satview.base.dataclass import dataclass
from satview.base.shared_file import DamagedFileError, parsed_json, read_shared
from satview.base.time import TimeWindow

SUFFIX: Final = ".marks.json"
FILE_BYTES_MAX: Final = 16 << 20
TEXT_MAX: Final = 4000


@dataclass(frozen=True, slots=True)
class Mark:
    """A location to be found again.

    Attributes:
        start_cycles: Where it begins.
        end_cycles: Where it ends; the same for a moment.
        text: What the user wrote; may be empty.
        is_temporary: It goes when the next temporary mark is set, and is not stored.
    """

    start_cycles: int
    end_cycles: int
    text: str = ""
    is_temporary: bool = False


def mark_path(trace_path: Path) -> Path | None:
    """Return the file of the marks of a trace; None for standard input, whose marks are not stored."""
    return None if str(trace_path) == "-" else trace_path.with_name(trace_path.name + SUFFIX)


def stored_marks(trace_path: Path, limits: TimeWindow) -> list[Mark]:
    """Return the marks stored beside a trace that are within it, in order of time; none if there is no file.

    Raises:
        DamagedFileError: The file cannot be understood.
        OSError: It cannot be read.
    """
    path = mark_path(trace_path)
    data = read_shared(path, FILE_BYTES_MAX) if path is not None else None
    if path is None or data is None:
        return []
    try:
        content = checked(parsed_json(data))
    except DamagedFileError as error:
        raise DamagedFileError(f"{path.name} is damaged: {error}") from error
    found = {mark for row in content["marks"] if (mark := mark_of(row, limits)) is not None}
    return sorted((mark for mark in found if limits.contains(mark.start_cycles)), key=by_time)


def checked(content: Any) -> Any:
    """Return the content of a file of marks.

    Raises:
        DamagedFileError: It is none.
    """
    if not isinstance(content, dict) or not isinstance(content.get("marks"), list):
        raise DamagedFileError("it holds no list of marks")
    return content


def mark_of(row: Any, limits: TimeWindow) -> Mark | None:
    """Return the mark of a row of the file, cut at the end of the trace; None if the row holds none."""
    start, end, text = (
        (row.get(key) for key in ("start_cycles", "end_cycles", "text")) if isinstance(row, dict) else (0, 0, 0)
    )
    if type(start) is int and type(end) is int and isinstance(text, str) and end >= start:
        end = min(end, limits.end) if limits.contains(start) else end
        return Mark(start, end, text[:TEXT_MAX])
    return None


def by_time(mark: Mark) -> tuple[int, int, str, bool]:
    """Return the key by which marks are sorted."""
    return mark.start_cycles, mark.end_cycles, mark.text, mark.is_temporary

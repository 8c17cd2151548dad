"""The errors satview raises on purpose. Everything else that escapes is a fault of ours."""

from __future__ import annotations

from pathlib import Path


class SatviewError(Exception):
    """Root of the tree: the code that catches this shows the text and goes on."""


class UsageError(SatviewError):
    """A command line or an API call that cannot be carried out as given."""


class WriteError(UsageError):
    """A file cannot be written; what was there before is as it was.

    Attributes:
        path: The file as it was named.
        what: Why, without the name.
    """

    def __init__(self, path: Path | str, what: str) -> None:
        self.path = Path(path)
        self.what = what
        super().__init__(f"{'standard output' if str(path) == '-' else self.path.name or path}: {what}")


class Cancelled(SatviewError):  # noqa: N818  -- not a failure: the user requested it
    """Raised out of long functions when their `cancelled()` says so."""


class TraceFormatError(SatviewError):
    """Nothing can be read from a file, or a damaged part was requested.

    Attributes:
        path: The file; None for data that never was a file.
        offset: Byte offset of the fault, or None when no byte is to blame (an empty file, a directory).
        what: What is wrong there, without the position.
        remedy: What the user can do about it; may be empty.
    """

    def __init__(self, path: Path | str | None, offset: int | None, what: str, remedy: str = "") -> None:
        self.path = Path(path) if path is not None else None
        self.offset = offset
        self.what = what
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return one sentence: file, byte, what, what to do."""
        position = self.path.name if self.path is not None else "input"
        if self.offset is not None:
            position += f", byte 0x{self.offset:x}"
        text = f"{position}: {self.what}"
        return f"{text}; {self.remedy}" if self.remedy else text


class SourceChangedError(TraceFormatError):
    """The file was cut short or written over while its trace was in use."""


def one_line(error: BaseException) -> str:
    """Return kind and first line of an exception of a user's program, even if its text cannot be made."""
    try:
        text = next(iter(str(error).splitlines()), "")[:200]
    except Exception:  # noqa: BLE001
        text = ""
    return f"{type(error).__name__}{': ' + text if text else ''}"

"""The exceptions that satview raises on purpose; any other exception is a bug in satview."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# What is wrong with a name, and what to do: every reader says it in these words.
NO_SUCH_FILE: Final = ("there is no such file", "check the name")
IS_A_FOLDER: Final = ("this is a directory", "name a file in it")


class SatviewError(Exception):
    """Base class of all errors that satview raises on purpose; their text is made for the user."""


class UsageError(SatviewError):
    """A command or an API call cannot be carried out as given."""


class WriteError(UsageError):
    """A file cannot be written; an older file of that name is unchanged.

    Attributes:
        path: The file, as named by the caller.
        what: The reason, without the name of the file.
    """

    def __init__(self, path: Path | str, what: str) -> None:
        self.path = Path(path)
        self.what = what
        super().__init__(f"{'standard output' if str(path) == '-' else self.path.name or path}: {what}")


class Cancelled(SatviewError):  # noqa: N818  -- not a failure: the user requested it
    """Raised by a long function when its `cancelled()` returns true."""


class TraceFormatError(SatviewError):
    """Nothing can be read from a file, or a damaged part was requested.

    Attributes:
        path: The file; None for data that is not from a file.
        offset: Byte offset of the fault; None if there is none (an empty file, a directory).
        what: The fault, without its position.
        remedy: Advice to the user on the fault; may be empty.
    """

    def __init__(self, path: Path | str | None, offset: int | None, what: str, remedy: str = "") -> None:
        self.path = Path(path) if path is not None else None
        self.offset = offset
        self.what = what
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return one line with file, byte, fault and remedy."""
        position = self.path.name or str(self.path) if self.path is not None else "input"
        if self.offset is not None:
            position += f", byte 0x{self.offset:x}"
        text = f"{position}: {self.what}"
        return f"{text}; {self.remedy}" if self.remedy else text


class SourceChangedError(TraceFormatError):
    """The file was truncated or overwritten while its trace was in use."""


def reading_fault(error: OSError) -> str:
    """Return why a file cannot be opened or read, with the remedy where there is one; without the file's name."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "; ".join(NO_SUCH_FILE)
    if isinstance(error, IsADirectoryError):
        return "; ".join(IS_A_FOLDER)
    return error.strerror or str(error)


def one_line(error: BaseException) -> str:
    """Return type and first line of any exception, even if its `__str__` raises."""
    try:
        text = next(iter(str(error).splitlines()), "")[:200]
    except Exception:  # noqa: BLE001
        text = ""
    return f"{type(error).__name__}{': ' + text if text else ''}"

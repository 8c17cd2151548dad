"""Marks of a trace: files of notes beside it, written without losing a stored note, and marks that a recorder added."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import WriteError
from satview.base.new_file import remove_leftovers, write_file
from satview.base.shared_file import Damaged, DamagedFileError, parsed_json, read_shared, rename, set_aside
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.variants import user_text
from satview.store.trace import Trace

# Reads and writes the files of notes beside a trace, without locks and without losing a stored note.
#
# A trace `a.kev` has files `a.kev.marks.XXXXXXXXXXXXXXXX.json`. A file appears complete, under a name that was never
# used before, and never changes. A change is written to a new file together with the content of existing small files;
# these are removed only when the new file is on the disk. So every note is in at least one file at any time, with any
# number of writers, even if a writer is killed. The notes of a trace are those of all its files, minus those that any
# file lists as removed; the order of files does not matter. The key of a row is the digest of its JSON text. New rows
# have a random `id`, so that a removed note can be written again.
#
# Versions up to 0.2.0 had one file, `a.kev.marks.json`, which each change replaced. It has the same form, is read like
# the others, and is renamed at the first change.


SUFFIX: Final = ".marks.json"
FILE_BYTES_MAX: Final = 16 << 20
TEXT_MAX: Final = 4000
_VERSION: Final = 2
_JOINED_BYTES_MAX: Final = 16 << 10  # so that changing one of many notes does not rewrite all of them
_REMOVED_BYTES: Final = 36
_LINE_BYTES_MAX: Final = 1 << 20
_TRIES: Final = 1000
_SAME_LISTINGS: Final = 4  # two are not enough for four processes that write without pause
_KEYS: Final = frozenset({"satview_marks", "marks", "removed"})
Identity = tuple[int, int, int, int]
_NONE: Final = (0, 0, 0, 0)
_GONE: Final = (errno.ENOENT, errno.ESTALE)  # NFS reports the second


@dataclass(frozen=True, slots=True)
class Mark:
    """A bookmarked time range of a trace.

    Attributes:
        start_cycles: Start.
        end_cycles: End; equal to the start for a point in time.
        text: The user's text; may be empty.
        is_temporary: Whether the next temporary mark replaces this mark; temporary marks are not stored.
    """

    start_cycles: int
    end_cycles: int
    text: str = ""
    is_temporary: bool = False


class _NoteLine(NamedTuple):
    """A row of a file of notes as text, with its sort key: files are sorted by time, for human readers.

    Attributes:
        is_unknown: Whether the row is not a valid mark; such rows come last.
        order: Sort key of the mark, from `by_time`.
        text: JSON text of the row.
        key: Key that identifies the row.
    """

    is_unknown: bool
    order: tuple[int, int, str, bool]
    text: str
    key: str


@dataclass(frozen=True, slots=True)
class _File:
    """A file of notes that was read.

    Attributes:
        identity: Device, inode, size and time; differs if the content differs.
        keys: Keys of the rows.
        removed: Keys of rows that the file lists as removed.
        may_go: Whether the file may be deleted once its content is in another file.
        problem: Why the file was not read; empty if it was read.
        is_damaged: Whether the content is not a list of notes.
    """

    identity: Identity
    keys: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    may_go: bool = False
    problem: str = ""
    is_damaged: bool = False

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self.identity[2]


class MarkFiles:
    """The notes of a trace: the content of its files when last read, and changes of this process, written or not.

    Attributes:
        path: Path that stands for all files in messages; None for standard input, whose notes are not stored.
        rows: The rows of all files by key, including rows that other versions wrote.
    """

    def __init__(self, trace_path: Path) -> None:
        self.path = (
            None if str(trace_path) == "-" or not trace_path.name else trace_path.with_name(trace_path.name + SUFFIX)
        )
        self.rows: dict[str, Any] = {}
        self._lines: dict[str, _NoteLine] = {}  # by key
        self._removed: set[str] = set()
        self._files: dict[str, _File] = {}
        self._leftovers: list[str] = []  # incomplete files of writers that were killed or are still writing
        stem = re.escape(trace_path.name + ".marks.")
        self._name = re.compile(stem + r"[0-9a-f]{16}\.json")
        self._leftover = re.compile(rf"\.({stem}[0-9a-f]{{16}}\.json)\.[0-9a-f]{{8}}\.satview-tmp")

    def put(self, row: Any) -> None:
        """Add a row; `write` stores it."""
        self._put(_line(row), row)

    def take(self, keys: Iterable[str]) -> None:
        """Remove rows permanently; `write` stores the removal."""
        self._removed.update(keys)
        self._drop_removed(keys)

    def marks(self, limits: TimeWindow) -> set[Mark]:
        """Return the marks of all valid rows; those that begin within `limits` are cut at its end, others are whole."""
        return {mark for row in self.rows.values() if (mark := mark_of(row, limits)) is not None}

    def merged(self, content: Any) -> dict[str, Any]:
        """Return the content of a notes file (None = no file yet) with the rows and removals of this process added."""
        content = content or {"marks": []}
        keys = {_digest(_line(row)) for row in content["marks"]}
        rows = [row for key, row in self.rows.items() if key not in keys]
        removed = sorted({*content.get("removed", ()), *self._removed})
        return {**content, "satview_marks": _VERSION, "removed": removed, "marks": [*content["marks"], *rows]}

    def read(self) -> None:
        """Read changes that other processes have written since the last call.

        While another process joins files, a listing of the folder may miss both an old file, which is just deleted, and
        the new file, which is just created. So a listing is used only if several listings in a row are equal and all
        listed files can be read.

        Raises:
            OSError: The folder cannot be read.
        """
        for _ in range(_TRIES):
            listed = self._listed()
            if all(self._listed() == listed for _ in range(_SAME_LISTINGS - 1)) and self._read_new(listed):
                return
        raise OSError(errno.EAGAIN, "somebody else changes the notes all the time")

    def problem(self) -> str:
        """Return why the first unreadable file could not be read; empty if all were read."""
        for name, file in sorted(self._files.items()):
            if file.problem:
                return f"{name} {'is damaged and was not' if file.is_damaged else 'cannot be'} read: {file.problem}"
        return ""

    def write(self) -> list[Damaged]:
        """Write all notes that are not yet in a file to the disk.

        Returns:
            Damaged files and their new names.

        Raises:
            OSError: The folder cannot be read.
            WriteError: The notes cannot be written; existing files are unchanged.
        """
        if self.path is None:
            return []
        self._read_new(self._listed())
        for name in self._leftovers:
            remove_leftovers(self._path_of(name))
        damaged = self._without_damaged()
        if self._takes_over_old_file():
            self._read_new(self._listed())
        keys = self.rows.keys() - _union(file.keys for file in self._files.values())
        removed = self._removed - _union(file.removed for file in self._files.values())
        if not keys and not removed:
            return damaged
        joined = self._names_to_join()
        # All rows of these files, even if other files have them too, as another process may be removing those files.
        keys |= _union(self._files[name].keys for name in joined) & self.rows.keys()
        removed |= _union(self._files[name].removed for name in joined)
        for lines, removed_here in _parts(sorted(self._lines[key] for key in keys), sorted(removed)):
            self._add_file(lines, removed_here)
        for name in joined:
            with suppress(OSError):  # another process has joined this file too, or has it open
                self._path_of(name).unlink()
            del self._files[name]
        return damaged

    def _path_of(self, name: str) -> Path:
        assert self.path is not None
        return self.path.with_name(name)

    def _listed(self) -> dict[str, Identity | None]:
        """Return the names of the existing files of notes, with their identities; None for a file just deleted."""
        if self.path is None:
            return {}
        listed: dict[str, Identity | None] = {}
        self._leftovers.clear()
        with suppress(FileNotFoundError), os.scandir(self.path.parent) as entries:
            for entry in entries:
                if entry.name == self.path.name or self._name.fullmatch(entry.name):
                    listed[entry.name] = _identity(self._path_of(entry.name))
                elif leftover := self._leftover.fullmatch(entry.name):
                    self._leftovers.append(leftover[1])
        return listed

    def _read_new(self, listed: dict[str, Identity | None]) -> bool:
        """Read the listed files that are new or changed; return whether all of them still existed."""
        self._files = {name: file for name, file in self._files.items() if file.identity == listed.get(name)}
        contents: dict[str, bytes | _File] = {}
        for name, identity in listed.items():
            if identity is None or name in self._files:
                continue
            try:
                data = self._bytes_of(name)
            except DamagedFileError as error:
                contents[name] = _File(identity, problem=str(error), is_damaged=True)
            except OSError as error:
                if error.errno not in _GONE:
                    contents[name] = _File(_NONE, problem=error.strerror or str(error))  # retried later
            else:
                if data is not None:
                    contents[name] = data
        # After the loop: parsing between two reads would give others time to delete the second file.
        for name, content in contents.items():
            identity = listed[name] or _NONE
            try:
                self._files[name] = self._parsed(name, identity, content) if isinstance(content, bytes) else content
            except DamagedFileError as error:
                self._files[name] = _File(identity, problem=str(error), is_damaged=True)
        self._drop_removed(self._removed)
        return len(self._files) == len(listed)

    def _bytes_of(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist.

        Raises:
            DamagedFileError: The file is too large, or not a regular file.
            OSError: The file cannot be read.
        """
        path = self._path_of(name)
        if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):  # a pipe has no end
            raise DamagedFileError("it is not a file")
        return read_shared(path, FILE_BYTES_MAX)

    def _parsed(self, name: str, identity: Identity, data: bytes) -> _File:
        """Add the rows and removals of a file; return its description.

        Args:
            name: Name of the file.
            identity: Identity of the file when it was read.
            data: Content of the file.

        Raises:
            DamagedFileError: The content is not a list of notes.
        """
        path = self._path_of(name)
        content = checked(parsed_json(data))
        try:
            lines = [_line(row) for row in content["marks"]]
        except RecursionError as error:
            raise DamagedFileError("it holds a nesting beyond all bounds") from error
        keys = [self._put(line, row) for line, row in zip(lines, content["marks"], strict=True)]
        removed = frozenset(content.get("removed", ()))
        self._removed |= removed
        # Other files are kept: those of a newer satview may contain more, and a link may lead to a shared file.
        may_go = content.keys() <= _KEYS and content.get("satview_marks", 1) in (1, _VERSION) and not path.is_symlink()
        may_go = may_go and max(map(len, lines), default=0) <= _LINE_BYTES_MAX
        return _File(identity, frozenset(keys), removed, may_go)

    def _put(self, line: str, row: Any) -> str:
        """Add a row; return its key."""
        key = _digest(line)
        if key in self.rows:
            return key
        mark = mark_of(row, TimeWindow(0, 1))
        self.rows[key] = row
        self._lines[key] = _NoteLine(mark is None, (0, 0, "", False) if mark is None else by_time(mark), line, key)
        return key

    def _drop_removed(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.rows.pop(key, None)
            self._lines.pop(key, None)

    def _without_damaged(self) -> list[Damaged]:
        """Rename damaged files; return them with their new names."""
        damaged = []
        for name, file in list(self._files.items()):
            if file.is_damaged:
                with suppress(FileNotFoundError):  # another process has renamed it
                    damaged.append(Damaged(name, set_aside(self._path_of(name)), file.problem))
                del self._files[name]
        return damaged

    def _takes_over_old_file(self) -> bool:
        """Give the single file of versions up to 0.2.0 a unique name; return False if there is no such file."""
        assert self.path is not None
        file = self._files.get(self.path.name)
        if file is None or file.problem or self.path.is_symlink():
            return False
        try:
            rename(self.path, self._new_path())
        except FileNotFoundError:  # another process has renamed it
            pass
        except OSError as error:
            raise WriteError(self.path, error.strerror or str(error)) from error
        return True

    def _new_path(self) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{self.path.name.removesuffix('.json')}.{os.urandom(8).hex()}.json")

    def _names_to_join(self) -> set[str]:
        """Return the names of the files whose content the next change moves to new files.

        These are small files, files with removed rows, and pairs of files that share more than half of their rows,
        which independent writers can leave behind.
        """
        joined: set[str] = set()
        owners: dict[str, str] = {}
        total_bytes = 0
        for _, name in sorted((file.size_bytes, name) for name, file in self._files.items() if file.may_go):
            file = self._files[name]
            keys = file.keys | file.removed
            ((twin, common),) = Counter(owners[key] for key in keys if key in owners).most_common(1) or [("", 0)]
            if 2 * common > len(keys):
                joined |= {name, twin}
            elif file.keys & self._removed:
                joined.add(name)
            elif total_bytes <= _JOINED_BYTES_MAX:
                total_bytes += sum(self._size_bytes(key) for key in keys if owners.get(key) not in joined)
                if total_bytes <= _JOINED_BYTES_MAX:
                    joined.add(name)
            owners.update(dict.fromkeys(keys, name))
        return joined

    def _size_bytes(self, key: str) -> int:
        return len(self._lines[key].text) if key in self._lines else _REMOVED_BYTES

    def _add_file(self, lines: list[_NoteLine], removed: list[str]) -> None:
        path = self._new_path()
        head = f'{{"satview_marks": {_VERSION},\n"removed": {json.dumps(removed)},\n"marks": [\n'
        write_file(path, head + ",\n".join(line.text for line in lines) + "\n]}\n")
        identity = _identity(path)
        if identity is not None:  # else another process has joined it already
            keys = frozenset(line.key for line in lines)
            self._files[path.name] = _File(identity, keys, frozenset(removed), may_go=True)


def stored_marks(trace_path: Path, limits: TimeWindow) -> list[Mark]:
    """Return the marks stored beside a trace that begin within limits, sorted by time; empty if there is no file.

    Raises:
        DamagedFileError: A file cannot be read, or its content is not valid.
        OSError: The folder cannot be read.
    """
    files = MarkFiles(trace_path)
    files.read()
    if problem := files.problem():
        raise DamagedFileError(problem)
    return sorted((mark for mark in files.marks(limits) if limits.contains(mark.start_cycles)), key=by_time)


def note_files(trace_path: Path) -> list[Path]:
    """Return all existing files of notes of a trace; empty if the folder cannot be read."""
    files = MarkFiles(trace_path)
    try:
        listed = files._listed()
    except OSError:
        return []
    return [files._path_of(name) for name, identity in sorted(listed.items()) if identity is not None]


def row_of(mark: Mark) -> dict[str, Any]:
    """Return a mark as a new row of a file of notes, with a random id."""
    row = asdict(mark)
    del row["is_temporary"]
    return {"id": os.urandom(8).hex(), **row}


def checked(content: Any) -> Any:
    """Return the content of a file of marks unchanged, after checking its form.

    Raises:
        DamagedFileError: The content is not valid.
    """
    if not isinstance(content, dict) or not isinstance(content.get("marks"), list):
        raise DamagedFileError("it holds no list of marks")
    removed = content.get("removed", [])
    if not isinstance(removed, list) or not all(isinstance(key, str) for key in removed):
        raise DamagedFileError("it holds no list of removed marks")
    return content


def mark_of(row: Any, limits: TimeWindow) -> Mark | None:
    """Return the mark in a row of a file, None if not valid; a mark that begins within `limits` is cut at their end."""
    start, end, text = (
        (row.get(key) for key in ("start_cycles", "end_cycles", "text")) if isinstance(row, dict) else (0, 0, 0)
    )
    if type(start) is int and type(end) is int and isinstance(text, str) and end >= start:
        end = min(end, limits.end) if limits.contains(start) else end
        return Mark(start, end, text[:TEXT_MAX])
    return None


def by_time(mark: Mark) -> tuple[int, int, str, bool]:
    """Return the sort key of a mark."""
    return mark.start_cycles, mark.end_cycles, mark.text, mark.is_temporary


def _identity(path: Path) -> Identity | None:
    """Return the identity of a file, which changes with its content; None if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _union(sets: Iterable[AbstractSet[str]]) -> set[str]:
    return set[str]().union(*sets)


def _line(row: Any) -> str:
    """Return the JSON text of a row; equal rows have the same text."""
    return json.dumps(row, sort_keys=True)


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:32]


def _parts(lines: list[_NoteLine], removed: list[str]) -> Iterator[tuple[list[_NoteLine], list[str]]]:
    """Split lines into one part per file, of at most the size up to which files are joined later.

    The removed keys are added to the last part.
    """
    part: list[_NoteLine] = []
    size_bytes = 0
    for line in lines:
        if part and size_bytes + len(line.text) > _JOINED_BYTES_MAX:
            yield part, []
            part, size_bytes = [], 0
        part.append(line)
        size_bytes += len(line.text)
    yield part, removed


# The marks that a flight recorder adds to a trace: user events with a text, or keys of the header.
#
# A mark shows where a trigger hit. A kernel inserts the user event right after the event that hit, an event handler
# right before it. A recorder that only watches a stream cannot insert events, and stores the time in the header.


MARK_EVENT: Final = wire.EVENT_MASK
"""Number of the user event of a mark: the highest number of a user event."""
_MARK: Final = re.compile(r"#(?P<number>\d{7}) trigger: (?P<text>.+)", re.DOTALL)
_MOST_MARKS: Final = 10_000_000  # mark numbers are modulo this
_NUMBER_BYTES: Final = 8  # size of `#` and the number, all in the first slot
HEADER_MARK: Final = "CAPTURE_MARK_"
"""Start of the header keys of marks, before a number from 0; the value is a time in cycles and a text."""
HEADER_MARKS_MAX: Final = 100
_MARK_IN_HEADER: Final = re.compile(r"(\d{1,19}) (.+)")
_MARK_CODE: Final = wire.WireClass.USER << wire.CLASS_SHIFT | MARK_EVENT


def mark_text(number: int, text: str) -> str:
    """Return the text of the user event of a mark.

    Args:
        number: Number of earlier marks in the recording.
        text: Text that the trigger rule gives its marks.
    """
    return f"#{number % _MOST_MARKS:07} trigger: {text}"


def mark_number(words: tuple[int, int], byte_order: Literal["little", "big"]) -> int | None:
    """Return the number of a mark from the two words of its first slot; None if the event is not a mark."""
    raw = b"".join(word.to_bytes(4, byte_order) for word in words)
    return int(raw[1:]) if raw[:1] == b"#" and raw[1:_NUMBER_BYTES].isdigit() else None


def is_mark(heads: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for header words of slots whether the slot may be the first of a mark's event, bool of the same shape."""
    codes = heads & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)
    return np.asarray(codes == (_MARK_CODE | wire.Struct.COMBINE_BEGIN << wire.STRUCT_SHIFT))


def recorded_marks(trace: Trace, limit: int = 1000) -> list[tuple[int, str]]:
    """Return the marks that a recorder added to a trace: event rows, ascending, and texts.

    Args:
        trace: The trace.
        limit: Maximum number of marks; later ones are left out.
    """
    marks = []
    for number in range(HEADER_MARKS_MAX):
        mark = _MARK_IN_HEADER.fullmatch(trace.header.get(f"{HEADER_MARK}{number}") or "")
        if mark is None or not len(trace.events):
            break
        row = int(np.searchsorted(trace.events.time_cycles, min(int(mark[1]), np.iinfo(np.int64).max)))
        marks.append((min(row, len(trace.events) - 1), mark[2]))
    if not trace.release.is_qnx or not trace.code_counts[_MARK_CODE]:
        return marks
    for row in np.flatnonzero(trace.events.code == _MARK_CODE)[:limit].tolist():
        text = user_text(trace.payloads.raw(row))
        if text is not None and (mark := _MARK.fullmatch(text)):
            marks.append((row, mark["text"]))
    return sorted(marks)[:limit]

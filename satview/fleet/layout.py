"""File layout of a data set: `TABLE/trace=NAME/part.parquet`, which DuckDB, Polars, Spark and Arrow can read.

The file of the table `trace` is written last, so a trace that has it is complete. Its metadata contain the size and
modification time of the source file at the time of export, and the names of the tables.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from satview.base.errors import UsageError
from satview.base.new_file import NewFile
from satview.base.plugins import required
from satview.events.user_events import UserEvent
from satview.tables.schema import SCHEMAS

MARK: Final = "satview-fleet.json"  # in the folder of a data set
PART: Final = "part.parquet"
SKIPPED: Final = "skipped.csv"
RECORD: Final = "trace"  # the table with one row per trace
PATTERNS: Final = ("*.kev", "*.kev.gz", "*.kev.zst", "*.qst")
_UNASKED: Final = frozenset(("slow_against_fast", "more_in_slow", "slow_path", "chain"))
"""Tables that are written only on request: they take longer than all others, or need a timing file."""
DEFAULT_TABLES: Final = tuple(name for name in SCHEMAS if name not in {"mark", "argument", RECORD} | _UNASKED)
_VERSION: Final = 2  # 1: events without nanoseconds
_MARKED: Final = json.dumps({"satview": "fleet", "version": _VERSION}).encode() + b"\n"
_SAFE: Final = " @,+()[]'!$&;~"  # not percent-encoded in folder names


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A trace file to export into a data set.

    Attributes:
        name: Name of the trace in the data set: the path of the file below the searched folder, with `/`.
        path: Path of the file.
        size_bytes: Size of the file.
        modified_ns: Modification time of the file.
        user_events: Descriptions of its events, by code.
    """

    name: str
    path: Path
    size_bytes: int
    modified_ns: int
    user_events: Mapping[int, UserEvent] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """Return the values that are compared to decide whether the tables must be written again."""
        described = repr(sorted(self.user_events.items())).encode() if self.user_events else b""
        return {"version": _VERSION, "size_bytes": self.size_bytes, "modified_ns": self.modified_ns,
                **({"user_events": hashlib.sha256(described).hexdigest()} if described else {})}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set on disk.

    Attributes:
        folder: Folder of the data set.
    """

    folder: Path

    def part(self, table: str, name: str) -> Path:
        """Return the path of the file with a table of one trace."""
        return self.folder / table / f"trace={quote(name, safe=_SAFE)}" / PART

    def pattern(self, table: str) -> str:
        """Return a pattern that matches the files of a table."""
        return f"{glob.escape(self.folder.as_posix())}/{table}/*/{PART}"

    def files(self) -> Iterator[Path]:
        """Yield the files of the data set."""
        yield from (self.folder / MARK, self.folder / SKIPPED)
        for name in self.tables:
            yield from (self.folder / name).glob(f"*/{PART}")

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of the data set, in the order of docs/tables.md; tables of event kinds come last."""
        own = sorted(home.name for home in self.folder.iterdir() if any(home.glob("trace=*")))
        return (*(name for name in SCHEMAS if name in own), *(name for name in own if name not in SCHEMAS))

    def names(self) -> Iterator[str]:
        """Yield the names of the completely exported traces."""
        for home in sorted((self.folder / RECORD).glob("trace=*")):
            if (home / PART).is_file():
                yield unquote(home.name.removeprefix("trace="))

    def has(self, source: DatasetSource, tables: Iterable[str]) -> bool:
        """Return whether the data set has at least these tables of a file, and the file has not changed since."""
        path = self.part(RECORD, source.name)
        if not path.is_file():
            return False
        try:
            metadata = required("pyarrow.parquet").read_schema(path).metadata or {}
            written = json.loads(metadata.get(b"satview.fleet", b"{}"))
        except (OSError, ValueError):  # pyarrow raises subclasses of ValueError for damaged files
            return False
        tables_there = written.pop("tables", ())
        return bool(written == source.state()) and set(tables) <= set(tables_there)


def record_metadata(source: DatasetSource, tables: Iterable[str]) -> dict[str, str]:
    """Return the Parquet metadata of the table `trace`: state of the source file, and names of the tables."""
    return {"satview.fleet": json.dumps({**source.state(), "tables": sorted(tables)})}


def is_dataset(path: Path | str) -> bool:
    """Return whether a folder contains a data set."""
    return (Path(path) / MARK).is_file()


def open_dataset(path: Path | str) -> Dataset:
    """Return the data set in a folder.

    Raises:
        UsageError: The folder has no data set, or one of another version.
    """
    folder = Path(path)
    if not is_dataset(folder):
        raise UsageError(f"{folder.name or folder}: no data set of traces; `satview export DIR -o OUT` makes one")
    if (folder / MARK).read_bytes() != _MARKED:
        raise UsageError(f"{folder.name}: a data set of another version of satview; export its traces again")
    return Dataset(folder.resolve())


def begin_dataset(path: Path | str) -> Dataset:
    """Return the data set in a folder; create it if the folder is missing or empty.

    Raises:
        UsageError: The folder contains something else.
        WriteError: The data set cannot be created.
    """
    folder = Path(path)
    is_other = folder.exists() and not is_dataset(folder)
    if is_other and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder.name or folder}: it exists and is no data set of traces; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not is_dataset(folder) or (folder / MARK).read_bytes() != _MARKED:
        with NewFile(folder / MARK) as file:
            file.stream.write(_MARKED)
    return Dataset(folder.resolve())


def find_sources(
    folder: Path | str,
    patterns: Iterable[str] = (),
    out: Path | None = None,
    user_events: Mapping[int, UserEvent] | None = None,
) -> list[DatasetSource]:
    """Return the trace files below a folder, sorted; hidden files and folders are left out.

    Args:
        folder: Folder to search recursively.
        patterns: Patterns of file names; none = `PATTERNS`.
        out: A folder to leave out, as it holds the data set.
        user_events: Descriptions of events of all traces; None = none.

    Raises:
        UsageError: No file matches.
    """
    root, given = Path(folder), tuple(patterns) or PATTERNS
    sources: dict[str, DatasetSource] = {}
    for path in sorted({path for pattern in given for path in root.rglob(pattern)}):
        below = path.relative_to(root)
        is_hidden = any(part.startswith(".") for part in below.parts)
        if is_hidden or (out is not None and out.resolve() in path.resolve().parents) or not path.is_file():
            continue
        status = path.stat()
        sources[below.as_posix()] = DatasetSource(
            below.as_posix(), path, status.st_size, status.st_mtime_ns, user_events or {}
        )
    if not sources:
        raise UsageError(f"{root.name or root}: no file in it is called {' or '.join(given)}; see --pattern")
    return list(sources.values())

"""The only module that writes files; it also checks targets of output, so that no file is replaced unasked."""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, TextIO

from satview.base.errors import WriteError

# Checks targets of output: files, or pipes and devices that the user named, but never a file that is being read.


Sources = Iterable[Path | str | int]
_STDOUT: Final = 1
_DESCRIPTOR: Final = re.compile(r"/dev/(?:(stdin)|(stdout)|(stderr))|/(?:dev|proc/self)/fd/([0-9]{1,6})")


class TargetKind(StrEnum):
    """Ways to write a target."""

    FILE = "file"
    DESCRIPTOR = "descriptor"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """The file, pipe or device to which output is written.

    Attributes:
        kind: A file that is replaced, an open descriptor of this process, or a pipe or device that is opened.
        path: Path with all symbolic links followed; for kinds other than files, as given.
        descriptor: Number of the open descriptor; -1 for the other kinds.
        mode: Permission bits of the file that is replaced; None if there is none.
    """

    kind: TargetKind
    path: Path
    descriptor: int = -1
    mode: int | None = None


class _KeptInputs:
    """The inputs of the running command; no output of any of its threads may replace one of these files."""

    sources: Callable[[], Sources] = staticmethod(tuple)


_kept = _KeptInputs()


@contextmanager
def keeps_inputs(sources: Callable[[], Sources]) -> Iterator[None]:
    """Refuse, within a block, outputs that would replace an input; `sources` returns the inputs when needed."""
    _kept.sources = sources
    try:
        yield
    finally:
        del _kept.sources


def find_target(path: Path | str, reading: Sources = (), *, streams: bool = False) -> OutputTarget:
    """Return the output target that a name stands for; symbolic links are followed.

    `reading` are the inputs: paths or open descriptors, `-` for standard input; a folder represents all files in it.
    With `streams`, as the user named the output on a command line, `-` is standard output, and pipes, terminals and
    `/dev/null` are allowed; disks and sockets are always refused.

    Raises WriteError if the name is a folder, is in a missing folder, is a device that is refused, is write-protected,
    or is one of the inputs.
    """
    if streams and (number := descriptor_of(path)) >= 0:
        _refuse_same(Path(path), os.fstat(number), reading)
        return OutputTarget(TargetKind.DESCRIPTOR, Path(path), number)
    path = Path(path)
    try:
        status = path.stat()
    except FileNotFoundError:
        refuse_missing_folder(path)
        return OutputTarget(TargetKind.FILE, Path(os.path.realpath(path)))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise WriteError(path, getattr(error, "strerror", None) or str(error)) from error
    _refuse_same(path, status, reading)
    if stat.S_ISREG(status.st_mode):
        if not os.access(path, os.W_OK):
            raise WriteError(path, "the file is write-protected")
        real = Path(os.path.realpath(path))
        if not (real.exists() and os.path.samestat(status, real.stat())):  # below /proc: removed, or of another root
            raise WriteError(path, "this file has no name in a folder")
        return OutputTarget(TargetKind.FILE, real, mode=stat.S_IMODE(status.st_mode))
    if stat.S_ISDIR(status.st_mode):
        raise WriteError(path, "this is a folder; name a file in it")
    if streams and (stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode)):
        return OutputTarget(TargetKind.STREAM, path)
    raise WriteError(path, "this is a device or a pipe, which a file must not replace")


def refuse_ending(path: Path | str, *endings: str, reading: Sources = ()) -> None:
    """Check that the ending of a new file names its content; pipes, devices and open descriptors need no ending.

    `endings` are in lower case, such as `.kev`. Raises WriteError as `find_target`, or if the file has none of them.
    """
    if find_target(path, reading, streams=True).kind is not TargetKind.FILE or Path(path).suffix.lower() in endings:
        return
    raise WriteError(path, f"the file extension selects the format; use {' or '.join(endings)}")


def refuse_missing_folder(path: Path) -> None:
    """Check that the parent folder of a file or folder to be created exists.

    The folder is looked up as the system does: the path `gone/..` does not exist if there is no folder `gone`.
    `os.path.realpath` would remove both parts, and return a path that the system does not find under the given name.

    Raises:
        WriteError: The folder does not exist; the text names it.
    """
    new = path
    while new.is_symlink():  # to nothing yet, so this ends
        new = new.parent / new.readlink()
    if not new.parent.exists():
        raise WriteError(path, f"there is no folder {str(new.parent)!r}; make it first, or give another name")


def descriptor_of(path: Path | str) -> int:
    """Return the open descriptor for a name such as `-`, `/dev/stdout` or `/dev/fd/3`; -1 for the name of a file.

    Raises WriteError if the descriptor is not open.
    """
    if str(path) == "-":
        return _STDOUT
    parts = _DESCRIPTOR.fullmatch(str(path))
    if parts is None:
        return -1
    number = int(parts[4]) if parts[4] else next(i for i in range(3) if parts[i + 1])
    try:
        os.fstat(number)
    except OSError as error:
        raise WriteError(path, "this descriptor is not open") from error
    return number


def is_standard_output(path: Path | str | None) -> bool:
    """Return whether an output name stands for standard output; if so, messages must go to standard error."""
    return path is not None and descriptor_of(path) == _STDOUT


def _refuse_same(path: Path, status: os.stat_result, reading: Sources) -> None:
    if not stat.S_ISREG(status.st_mode):
        return
    if _is_read(status, reading):
        raise WriteError(path, "this is the file that is being read; give another name")


def _is_read(status: os.stat_result, reading: Sources) -> bool:
    """Return whether a file is one of the files in `reading`, or one that the running command reads."""
    sources = (*reading, *_kept.sources())
    return any((status.st_dev, status.st_ino) in _identities(source) for source in sources)


def _identities(source: Path | str | int) -> set[tuple[int, int]]:
    """Return (device, inode) of a file, or of all files in a folder; empty if it cannot be read."""
    try:
        source = 0 if str(source) == "-" else source
        status = os.fstat(source) if isinstance(source, int) else Path(source).stat()
        if stat.S_ISDIR(status.st_mode) and not isinstance(source, int):
            with os.scandir(source) as entries:
                inside = [entry.stat() for entry in entries if entry.is_file()]
            return {(inner.st_dev, inner.st_ino) for inner in inside}
    except (OSError, ValueError):  # ValueError: a NUL in the name, or half a surrogate
        return set()
    return {(status.st_dev, status.st_ino)}


# The only module that writes files: to a temporary file in the target's folder, synced, then renamed to the target.
#
# A reader of the target sees the old file or the complete new one, never a part. The temporary file is called
# `.NAME.XXXXXXXX.satview-tmp` and is removed whenever writing fails, at the latest when the process ends: a signal may
# arrive before any block exists that would remove it. Only a killed process or a power cut leaves one; the next write
# to the same target removes it. Temporary files in use are known by a lock, which ends with its process.


_IS_WINDOWS: Final = os.name == "nt"  # an open file can be neither renamed nor removed there
if not _IS_WINDOWS:
    import fcntl

SUFFIX: Final = ".satview-tmp"
_NAME_BYTES_MAX: Final = 180
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_CANNOT_SYNC: Final = (errno.EINVAL, errno.ENOTSUP)  # errors of a file system without fsync
_unnamed: Final[set[Path]] = set()  # temporary files and folders of this process


class _Lock(Enum):
    """The holder of the lock of a file: this process or another; `NONE` if the system has no locks."""

    OURS = auto()
    OTHERS = auto()
    NONE = auto()


class NewFile:
    """A file being written. As a context manager: at the end of the block it gets its name, or on an error is removed.

    Attributes:
        path: The name of the target, as given.
        is_stream: Whether the target is a pipe or device, which gets the bytes at once, so that no file is replaced.
        has_name: Whether the written file has its final name.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        reading: Sources = (),
        streams: bool = False,
        keeps_part: bool = False,
        is_buffered: bool = True,
        is_durable: bool = True,
    ) -> None:
        """Create the temporary file, or open the pipe or device.

        Args:
            path: The target.
            reading: As for `find_target`.
            streams: As for `find_target`.
            keeps_part: Whether the written part gets the name if writing fails, unless an older file has the name.
                Half a capture is useful, half a table is not.
            is_buffered: If False, every write is passed on at once, for readers that follow a growing file.
            is_durable: If False, closing does not wait for the disk: after a power cut the file may be damaged.

        Raises:
            WriteError: The target is refused, or cannot be created.
        """
        self.path = Path(path)
        self._reading = tuple(reading)
        self._target = find_target(path, self._reading, streams=streams)
        self.is_stream = self._target.kind is not TargetKind.FILE
        self._keeps_part = keeps_part
        self._is_durable = is_durable
        self._part: Path | None = None
        self.has_name = False
        try:
            self.stream = self._open(-1 if is_buffered else 0)
        except OSError as error:
            raise WriteError(path, error.strerror or str(error)) from error

    def _open(self, buffering: int) -> BinaryIO:
        target = self._target
        if target.kind is TargetKind.DESCRIPTOR:
            sys.stdout.flush()  # earlier output comes first
            return os.fdopen(os.dup(target.descriptor), "wb", buffering)
        if target.kind is TargetKind.STREAM:
            return target.path.open("wb", buffering)
        remove_leftovers(target.path, self._reading)
        self._part, descriptor = create_beside(target.path, target.mode)
        return os.fdopen(descriptor, "wb", buffering)

    def publish(self) -> None:
        """Give the file its name now, before it is complete; has no effect a second time, or for streams."""
        self.stream.flush()
        self._rename()

    def commit(self) -> None:
        """Sync all bytes to the disk, give the file its name, and close it.

        Raises WriteError if writing failed, as on a full disk (an older file is unchanged); BrokenPipeError if the
        reader of the pipe has closed it.
        """
        try:
            self.stream.flush()
            if not self.is_stream:
                if self._is_durable:
                    _sync(self.stream.fileno())
                if _IS_WINDOWS:
                    self.stream.close()
                self._rename()
            self.stream.close()
        except BaseException as error:
            self.discard(error)
            self._raise(error)
            raise

    def _rename(self) -> None:
        if self._part is not None:
            os.replace(self._part, self._target.path)  # noqa: PTH105  -- says what it does
            _unnamed.discard(self._part)
            self._part, self.has_name = None, True
            sync_folder(self._target.path.parent)

    def discard(self, error: BaseException | None = None) -> None:
        """Close the file, and remove it if it has no name yet.

        If `keeps_part` is set and `error` is an `Exception`, it is not removed but gets its name, unless an older file
        has the name.
        """
        with contextlib.suppress(OSError, ValueError):  # the last bytes cannot be flushed
            self.stream.close()
        part, self._part = self._part, None
        if part is None:
            return
        with contextlib.suppress(OSError):
            keeps = self._keeps_part and isinstance(error, Exception) and part.stat().st_size > 0
            if keeps and not self._target.path.exists():
                os.replace(part, self._target.path)  # noqa: PTH105  -- says what it does
                self.has_name = True
        _remove(part)

    def _raise(self, error: BaseException) -> None:
        """Raise WriteError for an OSError other than a stream's broken pipe; just return for other errors."""
        if isinstance(error, OSError) and not (self.is_stream and isinstance(error, BrokenPipeError)):
            raise WriteError(self.path, error.strerror or str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
            return
        self.discard(error)
        self._raise(error)


@contextmanager
def new_text_file(
    path: Path | str, *, reading: Sources = (), streams: bool = False, newline: str = "\n", errors: str = "strict"
) -> Iterator[TextIO]:
    """Yield a UTF-8 text stream into a file that gets its name when the block ends without an exception.

    Args:
        path: The target.
        reading: As for `find_target`.
        streams: As for `find_target`.
        newline: As for `open`.
        errors: As for `open`.

    Raises:
        WriteError: As `NewFile`.
    """
    with NewFile(path, reading=reading, streams=streams) as file:
        text = TextIOWrapper(file.stream, encoding="utf-8", newline=newline, errors=errors, write_through=True)
        try:
            yield text
            text.flush()
        finally:
            text.detach()


def write_file(path: Path | str, data: bytes | str, *, reading: Sources = (), streams: bool = False) -> None:
    """Write bytes or UTF-8 text to a file, which replaces an older one.

    Args:
        path: The target.
        data: Bytes or text.
        reading: As for `find_target`.
        streams: As for `find_target`.

    Raises:
        WriteError: As `NewFile`.
    """
    with NewFile(path, reading=reading, streams=streams) as file:
        file.stream.write(data.encode("utf-8") if isinstance(data, str) else data)


def begin_growing(path: Path | str) -> int:
    """Create an empty file, which has its name from the start, and return a descriptor for appending records to it.

    An older file of that name is not truncated: processes that have it open can still read it.

    Raises:
        WriteError: As `NewFile`.
    """
    target = find_target(path)
    try:
        part, descriptor = create_beside(target.path, target.mode, os.O_APPEND)
        try:
            os.replace(part, target.path)  # noqa: PTH105  -- says what it does
        except BaseException:
            os.close(descriptor)
            _remove(part)
            raise
        _unnamed.discard(part)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    return descriptor


def create_beside(target: Path, mode: int | None, flags: int = 0) -> tuple[Path, int]:
    """Create and lock an empty temporary file in the target's folder; return its name and descriptor, or OSError.

    `mode` are its permissions, None = those of a new file; `flags` are more flags for `os.open`.
    """
    while True:
        part = _new_part(target)
        try:
            descriptor = os.open(part, _FLAGS | flags, 0o666 if mode is None else mode & 0o700)
        except FileExistsError:
            _unnamed.discard(part)
            continue
        is_ours = _lock(descriptor) is not _Lock.OTHERS
        if is_ours and (_IS_WINDOWS or os.fstat(descriptor).st_nlink):  # else another process took it for a leftover
            break
        _unnamed.discard(part)
        os.close(descriptor)
    if mode is not None:
        with contextlib.suppress(OSError):  # a file system without permissions
            part.chmod(mode)
    return part, descriptor


def _new_part(target: Path) -> Path:
    """Return an unused temporary name beside a file or folder, registered for removal before a signal may arrive."""
    part = target.with_name(f".{_stem(target.name)}.{os.urandom(4).hex()}{SUFFIX}")
    _unnamed.add(part)
    return part


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            part.unlink()
    _unnamed.discard(part)


@atexit.register
def remove_unnamed() -> None:
    """Remove the temporary files and folders that this process did not complete; called when it ends."""
    for part in tuple(_unnamed):
        _remove(part)


def remove_leftovers(target: Path, reading: Sources = ()) -> None:
    """Remove temporary files of a target that killed processes have left.

    Inputs (`reading`) are kept, as a temporary file may hold the part of a capture that was saved.
    """
    pattern = re.compile(re.escape(f".{_stem(target.name)}.") + "[0-9a-f]{8}" + re.escape(SUFFIX))
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_dead(Path(entry.path), reading)


def sync_folder(folder: Path) -> None:
    """Sync a folder to the disk, so that new file names in it survive a power cut; does nothing on Windows."""
    if _IS_WINDOWS:
        return
    with contextlib.suppress(OSError):  # the file is complete; only its name may not survive a power cut
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _stem(name: str) -> str:
    """Return a file name, shortened so that the name of the temporary file is not too long for the file system."""
    raw = os.fsencode(name)
    if len(raw) <= _NAME_BYTES_MAX:
        return name

    return f"{raw[:100].decode('utf-8', 'ignore')}~{hashlib.sha256(raw).hexdigest()[:16]}"


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def _lock(descriptor: int) -> _Lock:
    if _IS_WINDOWS:
        return _Lock.NONE
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _Lock.OTHERS
    except OSError:
        return _Lock.NONE
    return _Lock.OURS


def _remove_if_dead(part: Path, reading: Sources) -> None:
    with contextlib.suppress(OSError):
        if _is_read(part.stat(), reading):
            return
        if _IS_WINDOWS:
            part.unlink()
            return
        descriptor = os.open(part, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            if _lock(descriptor) is _Lock.OURS:
                part.unlink()
        finally:
            os.close(descriptor)


# Folders.


@contextmanager
def new_folder(path: Path | str) -> Iterator[Path]:
    """Yield a new folder to fill; at the end of the block it gets its name, or on an error is removed.

    Raises WriteError if the name exists already, or the folder cannot be created.
    """
    path = Path(path)
    if path.exists() or path.is_symlink():
        raise WriteError(path, "it exists; give the name of a new folder")
    refuse_missing_folder(path)
    part = _new_part(path)
    try:
        part.mkdir(0o700)
        yield part
        part.chmod(0o755)
        part.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    finally:
        _remove(part)

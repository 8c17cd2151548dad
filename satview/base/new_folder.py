"""Folders of files that appear complete or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from satview.base.errors import WriteError
from satview.base.new_file import SUFFIX, sync_folder
from satview.base.targets import refuse_missing_folder


@contextmanager
def new_folder(path: Path | str) -> Iterator[Path]:
    """Give a folder to fill, which takes its name at the end of the block, or vanishes.

    Raises:
        WriteError: There is something of that name, or it cannot be created.
    """
    path = Path(path)
    if path.exists() or path.is_symlink():
        raise WriteError(path, "it exists; give the name of a new folder")
    refuse_missing_folder(path)
    try:
        part = Path(tempfile.mkdtemp(SUFFIX, f".{path.name[:100]}.", path.parent))
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    try:
        yield part
        part.chmod(0o755)
        part.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)

"""Pictures of the locations at which claims fail, taken by a process of its own: the tests need no Qt in theirs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from satview.base.child import screenshot
from satview.base.errors import WriteError
from satview.base.new_file import NewFile
from satview.store.time_ranges import Location

MOST: Final = 20  # of one run: a broken build fails everywhere
_SIZE: Final = "1400x860"
_NOT_IN_NAMES: Final = re.compile(r"[^\w.\-\[\]]+")
_LONGEST_NAME: Final = 120


@dataclass(slots=True)
class Pictures:
    """The pictures of one run.

    Attributes:
        folder: Where they go; made when there is one. None = none are requested.
        taken: How many there are.
    """

    folder: Path | None
    taken: int = 0

    def take(self, location: Location, test: str) -> str:
        """Take a picture of a location; return its path, or why there is none.

        Args:
            location: What to show, selected.
            test: Name of the test that failed, for the name of the file.
        """
        if self.folder is None:
            return "none is requested"
        if self.taken >= MOST:
            return f"none: this run has {MOST} already"
        self.taken += 1
        try:
            _make(self.folder)
        except (OSError, WriteError) as error:
            return f"none: {self.folder}: {getattr(error, 'strerror', None) or error}"
        path = self.folder / f"{_NOT_IN_NAMES.sub('-', test)[-_LONGEST_NAME:]}.png"
        why_not = screenshot(location.path, path, location.options, _SIZE)
        return f"none: {why_not}" if why_not else str(path)


def _make(folder: Path) -> None:
    """Make the folder; version control leaves it alone."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        with NewFile(folder / ".gitignore") as file:
            file.stream.write(b"# written by the pytest plug-in of satview\n*\n")

"""The baseline file: values measured by an earlier run, as sorted JSON with one value per line for version control."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.new_file import NewFile

_VERSION: Final = 1
_MAX_BYTES: Final = 1 << 26
Figures = dict[str, dict[str, float]]  # values by test and by name of the measurement; times in nanoseconds


@dataclass(slots=True)
class Baseline:
    """The values in a baseline file, and the values measured by this run.

    Attributes:
        before: Values in the file; None = the file does not exist yet.
        now: Values measured by this run.
    """

    before: Figures | None
    now: Figures = field(default_factory=dict)

    def record(self, test: str, name: str, value: float) -> float | None:
        """Record a value of this run and return the value in the file; None = the file has none."""
        self.now.setdefault(test, {})[name] = value
        return None if self.before is None else self.before.get(test, {}).get(name)

    def add(self, measured: Figures) -> None:
        """Add values that another process of this run measured."""
        for test, figures in measured.items():
            self.now.setdefault(test, {}).update(figures)

    @property
    def count(self) -> int:
        """Number of values that this run has measured."""
        return sum(map(len, self.now.values()))

    @property
    def new_count(self) -> int:
        """Number of values of this run that are not in the file."""
        before = self.before or {}
        return sum(name not in before.get(test, {}) for test, figures in self.now.items() for name in figures)

    def merged(self) -> Figures:
        """Return the values of the file, updated with the values of this run."""
        every_figure = {test: dict(figures) for test, figures in (self.before or {}).items()}
        for test, figures in self.now.items():
            every_figure.setdefault(test, {}).update(figures)
        return every_figure


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file; a missing file gives a baseline whose `before` is None.

    Raises:
        UsageError: The file cannot be read or is not a baseline of this version.
    """
    if not path.exists():
        return Baseline(None)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path.name}: too large for a baseline; is it another file?")
        contents = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path.name}: no baseline can be read from it: {str(error)[:100]}") from error
    if (
        not isinstance(contents, dict)
        or contents.get("version") != _VERSION
        or not _is_figures(contents.get("figures"))
    ):
        raise UsageError(f"{path.name}: no baseline of this version; delete it, and the next run writes it again")
    return Baseline(contents["figures"])


def write_baseline(path: Path, figures: Figures) -> None:
    """Write a baseline file, atomically.

    Raises:
        WriteError: The file cannot be written.
    """
    text = json.dumps({"version": _VERSION, "figures": figures}, indent=1, sort_keys=True, ensure_ascii=True)
    with NewFile(path) as file:
        file.stream.write(text.encode() + b"\n")


def _is_figures(figures_of_tests: Any) -> bool:
    return isinstance(figures_of_tests, dict) and all(
        isinstance(figures, dict) and all(type(value) in (int, float) for value in figures.values())
        for figures in figures_of_tests.values()
    )

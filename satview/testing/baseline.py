"""Values of an earlier run, in a file that belongs under version control: JSON, sorted, one value a line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.new_file import NewFile

_VERSION: Final = 1
_MOST_BYTES: Final = 1 << 26
Figures = dict[str, dict[str, float]]  # test to what is measured to its value; times in nanoseconds


@dataclass(slots=True)
class Baseline:
    """The values of a file, and those that this run measures.

    Attributes:
        before: Those of the file; None = the file is not there yet.
        now: Those of this run.
    """

    before: Figures | None
    now: Figures = field(default_factory=dict)

    def compared(self, test: str, name: str, value: float) -> float | None:
        """Note a value of this run and return the one before; None = there is none."""
        self.now.setdefault(test, {})[name] = value
        return None if self.before is None else self.before.get(test, {}).get(name)

    def add(self, measured: Figures) -> None:
        """Add what another process of this run measured."""
        for test, figures in measured.items():
            self.now.setdefault(test, {}).update(figures)

    @property
    def count(self) -> int:
        """How many values this run has measured."""
        return sum(map(len, self.now.values()))

    @property
    def fresh(self) -> int:
        """How many of them the file does not have."""
        before = self.before or {}
        return sum(name not in before.get(test, {}) for test, figures in self.now.items() for name in figures)

    def merged(self) -> Figures:
        """Return the values of the file with those of this run replaced."""
        every_figure = {test: dict(figures) for test, figures in (self.before or {}).items()}
        for test, figures in self.now.items():
            every_figure.setdefault(test, {}).update(figures)
        return every_figure


def read_baseline(path: Path) -> Baseline:
    """Return the values of a file; of none if it is not there.

    Raises:
        UsageError: It is there and is no baseline.
    """
    if not path.exists():
        return Baseline(None)
    try:
        if path.stat().st_size > _MOST_BYTES:
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
    """Write values; the file is replaced once it is complete.

    Raises:
        WriteError: It cannot be written.
    """
    text = json.dumps({"version": _VERSION, "figures": figures}, indent=1, sort_keys=True, ensure_ascii=True)
    with NewFile(path) as file:
        file.stream.write(text.encode() + b"\n")


def _is_figures(figures_of_tests: Any) -> bool:
    return isinstance(figures_of_tests, dict) and all(
        isinstance(figures, dict) and all(type(value) in (int, float) for value in figures.values())
        for figures in figures_of_tests.values()
    )

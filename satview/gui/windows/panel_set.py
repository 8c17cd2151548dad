"""The panels of a workspace, each made when somebody first looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from satview.gui.panel import Panel
from satview.session.panel_table import PANELS

_Found = TypeVar("_Found", bound=Panel)


class PanelSet(Mapping[str, Panel]):
    """Name of a panel to its widget; the first access makes it.

    Attributes:
        made: Those that are there so far.
    """

    def __init__(self, make: Callable[[str], Panel]) -> None:
        """Begin without any.

        Args:
            make: Returns a new panel, in its dock.
        """
        self._make = make
        self.made: dict[str, Panel] = {}

    def __getitem__(self, name: str) -> Panel:
        if name not in self.made:
            if name not in self:
                raise KeyError(name)
            self.made[name] = self._make(name)
        return self.made[name]

    def __contains__(self, name: object) -> bool:
        return any(row.name == name for row in PANELS)

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in PANELS)

    def __len__(self) -> int:
        return len(PANELS)

    def of_kind(self, kind: type[_Found]) -> _Found:
        """Return the panel of a class."""
        home = f"{kind.__module__}:{kind.__qualname__}"
        panel = self[next(row.name for row in PANELS if row.home == home)]
        assert isinstance(panel, kind)
        return panel

"""The catalogue of a trace whose files are of several releases: that of one, and what the others have besides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.catalogue import FREE_CLASSES, Catalogue
from satview.events.spec import EventSpec, Release


class CombinedCatalogue(Catalogue):
    """The catalogue of one release, with events of others under codes that this one does not use.

    An event that both have, by class and name, keeps the code of the first release.
    """

    def __init__(self, base: Catalogue) -> None:
        """Begin with one release.

        Args:
            base: Whose codes stay as they are.
        """
        super().__init__(base.release)
        self._base = base
        if base.learned:  # events that a listing showed
            self._names, self.classes, self._codes = dict(base._names), base.classes, base.codes()
        self._more: dict[int, tuple[Catalogue, int]] = {}
        self._added: dict[tuple[Release, int], int] = {}
        self._code_of = {self._key(base, code): code for code in base.codes()}
        self._used = set(base.codes())
        self._free = self._codes_to_give()
        self.class_index_of_code = base.class_index_of_code.copy()
        self.state_value_of_code = base.state_value_of_code.copy()

    def take(self, other: Catalogue, logged: NDArray[np.integer]) -> NDArray[np.uint16]:
        """Return the code here of every code of another release, uint16 (32768,); those that are not logged are 0.

        Args:
            other: The other catalogue.
            logged: Its codes that a trace has.

        Raises:
            ValueError: There is no code left.
        """
        table = np.zeros(wire.CODE_COUNT, np.uint16)
        if other is self._base:
            table[:] = np.arange(wire.CODE_COUNT)
            return table
        for code in logged.tolist():
            known = self._code_of.get(self._key(other, code), self._added.get((other.release, code)))
            if known is None:
                known = self._added[other.release, code] = self._add(other, code)
            table[code] = known
        return table

    def freeze(self) -> None:
        """Let nobody change the tables any more."""
        for table in (self.class_index_of_code, self.state_value_of_code):
            table.setflags(write=False)

    def spec(self, code: int) -> EventSpec:
        """Return what is known of a code, by the release that it is from."""
        if (origin := self._more.get(code)) is not None:
            return replace(origin[0].spec(origin[1]), code=code)
        return super().spec(code)

    def codes(self) -> tuple[int, ...]:
        """Return all codes that a table of any of the releases names, ascending."""
        return (*super().codes(), *sorted(self._more))

    def name(self, code: int) -> str:
        """Return the name of a code."""
        if (origin := self._more.get(code)) is not None:
            return origin[0].name(origin[1])
        return super().name(code)

    def find(self, name: str) -> tuple[int, ...]:
        """Return the codes that a name represents in any of the releases, ascending."""
        more = [code for code, (other, own) in self._more.items() if own in other.find(name)]
        return tuple(sorted({*super().find(name), *more}))

    @staticmethod
    def _key(catalogue: Catalogue, code: int) -> tuple[int, str, str, bool]:
        # With the internal class: foreign formats have their own, and several codes of one name.
        spec = catalogue.spec(code)
        return wire.class_of(code), spec.class_name, spec.name, spec.is_64bit

    @staticmethod
    def _codes_to_give() -> Iterator[int]:
        for number in FREE_CLASSES:
            for event in range(wire.EVENT_MASK, -1, -1):
                yield wire.code(number, event)

    def _add(self, other: Catalogue, own: int) -> int:
        # Its own code where that is free: what looks for a class of events by its number finds it.
        code = own if own not in self._used else next((spare for spare in self._free if spare not in self._used), None)
        if code is None:
            raise ValueError("no code is left")
        self._used.add(code)
        spec = other.classes[int(other.class_index_of_code[own])]
        names = [kind.name for kind in self.classes]
        if spec.name not in names:
            self.classes = (*self.classes, spec)
            names.append(spec.name)
        self._more[code] = other, own
        self.class_index_of_code[code] = names.index(spec.name)
        self.state_value_of_code[code] = other.state_value_of_code[own]
        return code

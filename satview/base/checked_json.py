"""Looks into parsed JSON that anybody may have changed: each value has its type and bounds, or the file is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from satview.base.shared_file import DamagedFileError

_Found = TypeVar("_Found")
LARGEST: Final = 2**63 - 1
TEXT_MAX: Final = 100_000
_MOST: Final = 1_000_000


class Fields:
    """An object of JSON; values that are not there have the default, what is there must fit.

    Args:
        content: What was parsed.
        where: What it is, for messages.

    Raises:
        DamagedFileError: It is no object.
    """

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, dict):
            raise DamagedFileError(f"{where} is no object")
        self._content, self._where = content, where

    def whole(self, name: str, default: int = 0, low: int = -LARGEST, high: int = LARGEST) -> int:
        """Return a whole number within bounds.

        Raises:
            DamagedFileError: It is none; so say all methods below.
        """
        return self._value(name, default, lambda value: type(value) is int and low <= value <= high, "whole number")

    def whole_or_none(self, name: str) -> int | None:
        """Return a whole number, None where there is none."""
        return None if self._content.get(name) is None else self.whole(name)

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        return self._value(name, default, lambda value: isinstance(value, str) and len(value) <= TEXT_MAX, "text")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false."""
        return self._value(name, default, lambda value: isinstance(value, bool), "true or false")

    def member(self, name: str, kind: Callable[[str], _Found], default: _Found) -> _Found:
        """Return a word of an enumeration as its member; raises DamagedFileError for any other."""
        if name not in self._content:
            return default
        try:
            return kind(self.text(name))
        except ValueError as error:
            raise DamagedFileError(f"{self._where}: {name} is unknown") from error

    def part(self, name: str) -> Fields | None:
        """Return an object within this one, None where there is none."""
        found = self._content.get(name)
        return None if found is None else Fields(found, name)

    def parts(self, name: str) -> Iterator[Fields]:
        """Yield the objects of a list."""
        for row in self._list(name):
            yield Fields(row, name)

    def wholes(self, name: str, low: int = -LARGEST, high: int = LARGEST) -> tuple[int, ...]:
        """Return the whole numbers of a list; raises DamagedFileError for anything else in it."""
        found = self._list(name)
        if not all(type(value) is int and low <= value <= high for value in found):
            raise DamagedFileError(f"{self._where}: {name} holds something else than whole numbers in bounds")
        return tuple(found)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list; raises DamagedFileError for anything else in it."""
        found = self._list(name)
        if not all(isinstance(value, str) and len(value) <= TEXT_MAX for value in found):
            raise DamagedFileError(f"{self._where}: {name} holds something else than texts")
        return tuple(found)

    def list_or_none(self, name: str) -> list[Any] | None:
        """Return a list of whatever, None where there is none."""
        return None if self._content.get(name) is None else self._list(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of what is in it."""
        return tuple(self._content)

    def plain(self) -> dict[str, str | int | bool]:
        """Return all texts, whole numbers and flags in it."""
        return {
            name: value
            for name, value in self._content.items()
            if isinstance(value, str | int) and (not isinstance(value, str) or len(value) <= TEXT_MAX)
        }

    def _list(self, name: str) -> list[Any]:
        return self._value(name, [], lambda value: isinstance(value, list) and len(value) <= _MOST, "list")

    def _value(self, name: str, default: _Found, fits: Callable[[Any], bool], what: str) -> _Found:
        found = self._content.get(name, default)
        if not fits(found):
            raise DamagedFileError(f"{self._where}: {name} is no {what}" if what != "true or false" else
                                   f"{self._where}: {name} is neither true nor false")  # fmt: skip
        checked: _Found = found
        return checked

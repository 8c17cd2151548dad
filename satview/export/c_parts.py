"""The C functions that exported programs are made of: `resources/export/handlers.c`, cut into parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from satview.base.installed import resource_path

FIND_PROCESSES: Final = "find_processes"
"""The part that is after `note_process()`, which is made from the names that the rules compare."""

_PART: Final = re.compile(r"^/// (\w+):([ \w]*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of C.

    Attributes:
        lines: Its text.
        needs: Names of the parts that have to are before it.
    """

    lines: tuple[str, ...]
    needs: tuple[str, ...]


@cache
def parts() -> Mapping[str, Part]:
    """Return every part by name, in an order in which each is after those it needs."""
    text = resource_path("export/handlers.c").read_text(encoding="ascii")
    _, *pieces = _PART.split(text)
    rows = zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    return {name: Part((*source.strip("\n").split("\n"), ""), tuple(needs.split())) for name, needs, source in rows}


def ordered(requested: Iterable[str]) -> list[str]:
    """Return the names of parts with all that they need, in an order that C accepts."""
    found: set[str] = set()
    open_ = list(requested)
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_ += parts()[name].needs
    return [name for name in parts() if name in found]

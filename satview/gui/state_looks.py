"""How states look where the user's settings differ from the palette: one line of text in the settings. No Qt.

`RUNNING light=#1f8c47 dark=#4fc878 thin; MUTEX thick`: a state is named as in the legend, blanks in a name are written
`_`. What cannot be understood is left out, so that no setting ever stops a start or a frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from satview.events import states

_COLOUR: Final = re.compile(r"(light|dark)=#([0-9a-fA-F]{6})")
OTHER_NAMES: Final = {
    states.UNKNOWN: "unknown",
    states.IDLE: "idle",
    states.INTERRUPT: "interrupt",
    states.KERNEL_CALL: "kernel call",
    states.WAITING: "no thread runs",
}
NAME_OF: Final = {state.value: state.name for state in states.STATES} | OTHER_NAMES
_VALUE_OF: Final = {name.replace(" ", "_").casefold(): value for value, name in NAME_OF.items()}


@dataclass(frozen=True, slots=True)
class StateLook:
    """What differs for one lane value; None = as the palette says.

    Attributes:
        value: Of `events.states`.
        light, dark: Its colour on that background, 0xRRGGBB.
        is_thick: A full bar.
    """

    value: int
    light: int | None = None
    dark: int | None = None
    is_thick: bool | None = None

    @property
    def says_nothing(self) -> bool:
        """True if nothing differs."""
        return self.light is None and self.dark is None and self.is_thick is None

    def colour(self, is_dark: bool) -> int | None:
        """Return the colour on a background."""
        return self.dark if is_dark else self.light


@lru_cache(maxsize=32)
def read_looks(text: str) -> Mapping[int, StateLook]:
    """Return what a setting says by lane value; of two looks of one state the last holds. Not to be changed."""
    found: dict[int, StateLook] = {}
    for part in text.split(";"):
        words = part.split()
        value = _VALUE_OF.get(words[0].casefold()) if words else None
        if value is None:
            continue
        look = StateLook(value)
        for word in words[1:]:
            match = _COLOUR.fullmatch(word)
            if match is not None and match[1] == "dark":
                look = replace(look, dark=int(match[2], 16))
            elif match is not None:
                look = replace(look, light=int(match[2], 16))
            elif word in ("thick", "thin"):
                look = replace(look, is_thick=word == "thick")
        found[value] = look
    return {value: look for value, look in found.items() if not look.says_nothing}


def write_looks(looks: Iterable[StateLook]) -> str:
    """Return looks as the setting that `read_looks` reads."""
    parts = []
    for look in sorted(looks, key=lambda look: look.value):
        words = [NAME_OF[look.value].replace(" ", "_")]
        words += [f"{name}=#{rgb:06x}" for name, rgb in (("light", look.light), ("dark", look.dark)) if rgb is not None]
        words += [] if look.is_thick is None else ["thick" if look.is_thick else "thin"]
        if not look.says_nothing:
            parts.append(" ".join(words))
    return "; ".join(parts)

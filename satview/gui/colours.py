"""Defines colours and hatching of states and processes, light and dark, in four palettes. Imports no Qt.

RUNNING is green and READY is amber in both themes. Waiting states have muted hues, one hue per group and a step of
lightness per state. Waiting for work (RECEIVE) and sleeping are close to the background, because threads of a healthy
system spend most time in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from satview.events import states
from satview.events.wire import mark_colours
from satview.session.settings import PRINT, STANDARD

if TYPE_CHECKING:
    from satview.gui.theme import Theme


# The user's changes to the palette, stored as one line of text in the settings.


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
    """The user's changes to colour and thickness of one lane value (a state); None = as in the palette.

    Attributes:
        value: Lane value of `events.states`.
        light, dark: Colour on a light or dark background, 0xRRGGBB.
        is_thick: True to draw a bar of full height.
    """

    value: int
    light: int | None = None
    dark: int | None = None
    is_thick: bool | None = None

    @property
    def says_nothing(self) -> bool:
        """True if neither colour nor thickness is changed."""
        return self.light is None and self.dark is None and self.is_thick is None

    def colour(self, is_dark: bool) -> int | None:
        """Return the colour on a dark or light background; None = as in the palette."""
        return self.dark if is_dark else self.light


@lru_cache(maxsize=32)
def read_looks(text: str) -> Mapping[int, StateLook]:
    """Return the user's changed looks of states in the text of the setting, by lane value; do not modify (cached).

    If a state occurs twice, the last one counts.
    """
    looks: dict[int, StateLook] = {}
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
        looks[value] = look
    return {value: look for value, look in looks.items() if not look.says_nothing}


def write_looks(looks: Iterable[StateLook]) -> str:
    """Return changed looks of states as the text of the setting, which `read_looks` parses."""
    parts = []
    for look in sorted(looks, key=lambda look: look.value):
        words = [NAME_OF[look.value].replace(" ", "_")]
        words += [f"{name}=#{rgb:06x}" for name, rgb in (("light", look.light), ("dark", look.dark)) if rgb is not None]
        words += [] if look.is_thick is None else ["thick" if look.is_thick else "thin"]
        if not look.says_nothing:
            parts.append(" ".join(words))
    return "; ".join(parts)


# State name: (light, dark), 0xRRGGBB.
_STATE_COLOURS: Final = {
    "RUNNING": (0x1F8C47, 0x4FC878),
    "READY": (0xEFA52B, 0xE9A63A),
    "SEND": (0x3F74C9, 0x5C8FE6),
    "RECEIVE": (0xB9CBE8, 0x33435F),
    "REPLY": (0x7FA3DE, 0x43639C),
    "NET_SEND": (0x4F86B8, 0x4C86BF),
    "NET_REPLY": (0x86B2D3, 0x3E6B8F),
    "MQ_SEND": (0x5B7FBF, 0x5878B8),
    "MQ_RECEIVE": (0xA9BEDD, 0x3B4C6B),
    "PIPE": (0x8FA8D8, 0x44568A),
    "SEND_NOTIFY": (0x6C8BC4, 0x4B62A0),
    "MUTEX": (0xE8706A, 0xC94A46),
    "CONDVAR": (0xCFA3C0, 0x6B4766),
    "SEM": (0xB678AE, 0x9A5F94),
    "RWLOCK_READ": (0xC98AA6, 0x8A5270),
    "RWLOCK_WRITE": (0xB5587C, 0xAD5677),
    "BARRIER": (0xA88BC9, 0x6F5794),
    "MUON_MUTEX": (0xB5443F, 0xC4524E),
    "JOIN": (0xBDA7D3, 0x5B4A78),
    "NANOSLEEP": (0xC6CBD6, 0x3D434F),
    "TIMER_DELEGATE": (0xABB2C2, 0x4C5363),
    "INTR": (0x93C9C4, 0x2F6663),
    "INTR_ATTACH_EV": (0x6BB3AD, 0x3B7F7B),
    "SIGSUSPEND": (0xC7B58A, 0x665A38),
    "SIGWAITINFO": (0xD3C6A4, 0x554B33),
    "STACK": (0xB98A62, 0x8C6848),
    "WAITTHREAD": (0xC9A483, 0x75583F),
    "WAITPAGE": (0xC27C4E, 0xA96B42),
    "WAITCTX": (0xD1B097, 0x6A5140),
    "TRACEBUFFER": (0xA9744F, 0x94653F),
    "STOPPED": (0x8C93A1, 0x6B7280),
    "SUSPENDED": (0x9FA6B3, 0x5C6370),
    "DEAD": (0x5A606B, 0x4A4F58),
    "IO": (0x7FB3D9, 0x3F6E99),
    "SLEEPING": (0xBFC9DA, 0x39424F),
    "UNINTERRUPTIBLE": (0xB9703F, 0xB5744A),
}
_OTHER_COLOURS: Final = {
    states.UNKNOWN: (0xEBEEF2, 0x292D34),  # the same as idle time, and always hatched
    states.IDLE: (0xEBEEF2, 0x292D34),
    states.INTERRUPT: (0xA8200F, 0xFFD5CA),
    states.KERNEL_CALL: (0x7A6FB0, 0x8A80C9),
    states.WAITING: (0xEBEEF2, 0x292D34),
}
# Colours (light, dark) of the other palettes: for colour-blind users, with high contrast, in print. A
# state that is not listed has the colour of its relative in `_LIKE`.
_OTHER_PALETTES: Final = ("colour-blind", "contrast", PRINT)
_PALETTE_COLOURS: Final = {
    "RUNNING": ((0x0A5C99, 0x4FB0F0), (0x007A33, 0x3DF07A), (0x333333,) * 2),
    "READY": ((0xF0B400, 0xF5C531), (0xE89000, 0xFFB000), (0x9A9A9A,) * 2),
    "MUTEX": ((0xC04A00, 0xE8702A), (0xFF4A5A, 0xFF3D55), (0x666666,) * 2),
    "SEND": ((0x45A6DE, 0x2C7BB8), (0x0040B8, 0x6FA8FF), (0x7A7A7A,) * 2),
    "REPLY": ((0x8CC8EC, 0x225A88), (0x4C86E8, 0x4474CC), (0xB4B4B4,) * 2),
    "RECEIVE": ((0xC6DFF2, 0x1C3B58), (0xA5C4F5, 0x2C4A80), (0xEAEAEA,) * 2),
    "SEM": ((0xC06AA8, 0xD089C0), (0x8A1C8A, 0xF09AF0), (0x808080,) * 2),
    "CONDVAR": ((0xE3B4D2, 0x8A4A72), (0xC283C2, 0xA04A90), (0xA8A8A8,) * 2),
    "NANOSLEEP": ((0xC9C9C9, 0x4A4C50), (0x9AA0AC, 0x666C78), (0xDADADA,) * 2),
    "INTR": ((0xB9CF8A, 0x55662B), (0x8FD8C8, 0x1F6A5C), (0xC8C8C8,) * 2),
    "interrupt": ((0x4A1F1F, 0xFFE0D6), (0x4A0030, 0xFFE8E0), (0x000000,) * 2),
}
_LIKE: Final = {
    "NET_SEND": "SEND", "NET_REPLY": "REPLY", "MQ_SEND": "SEND", "MQ_RECEIVE": "RECEIVE", "PIPE": "REPLY",
    "SEND_NOTIFY": "SEND", "RWLOCK_READ": "SEM", "RWLOCK_WRITE": "MUTEX", "BARRIER": "CONDVAR", "MUON_MUTEX": "MUTEX",
    "JOIN": "CONDVAR", "TIMER_DELEGATE": "NANOSLEEP", "INTR_ATTACH_EV": "INTR", "SIGSUSPEND": "NANOSLEEP",
    "SIGWAITINFO": "NANOSLEEP", "STACK": "SEM", "WAITTHREAD": "CONDVAR", "WAITPAGE": "SEM", "WAITCTX": "CONDVAR",
    "TRACEBUFFER": "SEM", "STOPPED": "NANOSLEEP", "SUSPENDED": "NANOSLEEP", "IO": "REPLY",
    "SLEEPING": "NANOSLEEP", "UNINTERRUPTIBLE": "SEM",
}  # fmt: skip
# States drawn as a full bar by default; thin bars for the others keep lanes readable when zoomed out.
THICK: Final = frozenset(
    {
        states.RUNNING,
        states.READY,
        states.STATE_BY_NAME["MUTEX"].value,
        states.INTERRUPT,
        states.KERNEL_CALL,
        *range(states.FIRST_PROCESS, states.VALUE_COUNT),
    }
)

FADE: Final = 0.78  # share of the background in faded colours
# Hatching, for users who cannot distinguish colours: eight rows of eight pixels, one bit per drawn pixel.
SOLID: Final = 0
_RISING: Final = (0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88)
_FALLING: Final = (0x88, 0x44, 0x22, 0x11, 0x88, 0x44, 0x22, 0x11)
_FALLING_WIDE: Final = (0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01)
_CROSSED: Final = (0x99, 0x66, 0x66, 0x99, 0x99, 0x66, 0x66, 0x99)
_UPRIGHT: Final = (0x11,) * 8
_UPRIGHT_WIDE: Final = (0x01,) * 8
_LEVEL: Final = (0xFF, 0, 0, 0, 0xFF, 0, 0, 0)
_DOTTED: Final = (0x01, 0, 0, 0, 0x10, 0, 0, 0)
HATCHES: Final = (
    (0,) * 8, _RISING, _CROSSED, _FALLING, _FALLING_WIDE, _UPRIGHT, _UPRIGHT_WIDE, _LEVEL, _DOTTED,
)  # fmt: skip
UNKNOWN_HATCH: Final = 4  # used in every palette
_HATCH_OF: Final = {
    "READY": 1, "MUTEX": 2, "SEND": 3, "REPLY": 4, "SEM": 5, "CONDVAR": 6, "INTR": 8,
}  # fmt: skip


def value_colour(value: int, is_dark: bool, palette: str = STANDARD, looks: str = "") -> int | None:
    """Return the colour of a lane value of `events.states`, 0xRRGGBB; None if it is drawn as background.

    `palette` is one of `session.settings.PALETTES`; `looks` are the user's changes in the format of `read_looks`.
    """
    look = read_looks(looks).get(value)
    if look is not None and (of_look := look.colour(is_dark)) is not None:
        return of_look
    column = _OTHER_PALETTES.index(palette) if palette in _OTHER_PALETTES else None
    if value == states.ABSENT:
        return None
    if value == states.INTERRUPT and column is not None:
        return _PALETTE_COLOURS["interrupt"][column][is_dark]
    if value in _OTHER_COLOURS:
        return _OTHER_COLOURS[value][is_dark]
    if value in states.STATE_BY_VALUE:
        name = states.STATE_BY_VALUE[value].name
        row = _PALETTE_COLOURS.get(_LIKE.get(name, name)) if column is not None else None
        return (_STATE_COLOURS[name] if row is None or column is None else row[column])[is_dark]
    if value == states.QUIET_PROCESS:
        return _QUIET[is_dark]
    return process_colour(value - states.FIRST_PROCESS, palette) if value < states.VALUE_COUNT else None


def state_colour(value: int, theme: Theme) -> int | None:
    """Return the colour of a lane value in a theme, 0xRRGGBB; None if the value is drawn as background."""
    return value_colour(value, theme.is_dark, theme.palette, theme.looks)


def is_thick(value: int, looks: str = "") -> bool:
    """Return whether a lane value is drawn as a full bar, given the user's changes in the format of `read_looks`."""
    look = read_looks(looks).get(value)
    return value in THICK if look is None or look.is_thick is None else look.is_thick


def hatch_of(value: int) -> int:
    """Return the index in `HATCHES` of the hatching of a lane value, which is the number of a state or process.

    Hatching tells similar colours apart. Every second process is hatched, because two neighbouring hues have the same
    grey in the print palette.
    """
    if value == states.QUIET_PROCESS:
        return 8
    if value == states.UNKNOWN:
        return UNKNOWN_HATCH
    if value >= states.FIRST_PROCESS:
        return 3 if (value - states.FIRST_PROCESS) % 2 else SOLID
    if value == states.KERNEL_CALL:
        return 7
    state = states.STATE_BY_VALUE.get(value)
    return _HATCH_OF.get(_LIKE.get(state.name, state.name), SOLID) if state is not None else SOLID


# Process colours: at least 27 apart in CIELAB on light and dark, also from the colours of interrupts, idle and
# unknown time.
_HUES: Final = (
    0xA0B8F8, 0x708820, 0xC05090, 0x10D0A8, 0xF8A868, 0x408090, 0xA07018, 0xE8A0F8, 0x1080C0, 0x688868, 0x288848,
    0x10C0F0, 0xF8A0C0, 0xA86870, 0x9070A0, 0x88C870, 0xB86040, 0x7880E0, 0xC8B860, 0x78C8C0, 0xE0B0A0,
)  # fmt: skip
# Process colours for protanopia and deuteranopia: at least 14 apart in either.
_COLOUR_BLIND_HUES: Final = (
    0xA07088, 0xD08870, 0xD07040, 0x8888E8, 0xB8D070, 0x4088B8, 0x40E8B8, 0x88B8E8, 0x7010E8, 0x4058A0, 0x705888,
    0xE8D058, 0xB8E810, 0xA05858, 0x884058, 0xB88888, 0x5840B8, 0xA0E8A0, 0xA0A010, 0x1070E8, 0xA02828,
)  # fmt: skip
_QUIET: Final = (0xA9AFBA, 0x666D79)


def process_colour(hue: int, palette: str = STANDARD) -> int:
    """Return the colour of a process on CPU lanes, 0xRRGGBB; hues repeat after `PROCESS_HUES`."""
    hue %= states.PROCESS_HUES
    if palette == PRINT:
        steps = states.PROCESS_HUES // 2  # two hues share a grey; neighbouring pairs have distant greys
        grey = round(255 * (0.25 + 0.6 * (hue // 2 * 7 % (steps + 1)) / steps))
        return grey << 16 | grey << 8 | grey
    return _COLOUR_BLIND_HUES[hue] if palette == "colour-blind" else _HUES[hue]


def class_colour(class_name: str, is_dark: bool) -> int:
    """Return the colour of the event marks of a class, as 0xRRGGBB."""
    return mark_colours(class_name)[is_dark]


def mixed(colour: int, other: int, share: float) -> int:
    """Return a blend of two 0xRRGGBB colours; `share` (0 to 1) is the share of `other`."""
    parts = [(colour >> shift & 0xFF, other >> shift & 0xFF) for shift in (16, 8, 0)]
    red, green, blue = (round(a + (b - a) * share) for a, b in parts)
    return red << 16 | green << 8 | blue


DARK_INK: Final = 0x000000
LIGHT_INK: Final = 0xFFFFFF


def ink_on(fill: int) -> int:
    """Return black or white, whichever has more contrast on a fill: at least 4.58 (WCAG 2 requires 4.5 for text)."""
    bright = _luminance(fill) + 0.05
    return DARK_INK if bright * bright >= 0.05 * 1.05 else LIGHT_INK


def _luminance(colour: int) -> float:
    parts = [(colour >> shift & 0xFF) / 255 for shift in (16, 8, 0)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

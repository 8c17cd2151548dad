r"""Makes text of a trace safe for each medium; all code that shows a name calls one of these functions.

A trace may come from anywhere. A process called `<img src="file:///...">`, `=cmd()` or `\x1b]0;...` must not load
a picture, become a formula, or reach the terminal as a command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final

# Counts and lists in sentences.


def counted(count: int, noun: str) -> str:
    """Return a count (or difference) with its singular noun as display text: `1 event`, `2,409,125 events`.

    The plural ends with `s`, or `es` after an `s`.
    """
    return f"{count:,} {noun}{'' if abs(count) == 1 else 'es' if noun.endswith('s') else 's'}"


AT_LEAST_SIGN: Final = "\N{GREATER-THAN OR EQUAL TO}"
_LESS_THAN: Final = re.compile(r"< ?[0-9.]+( .*)?")


def with_sign(sign: str, text: str) -> str:
    """Return the text of a figure with a sign such as `\u2265` before it; an empty sign adds nothing.

    With the sign for "at least", `<0.1 %` becomes `> 0 %`.
    """
    if sign == AT_LEAST_SIGN and (less := _LESS_THAN.fullmatch(text)):
        return f"> 0{less[1] or ''}"
    return f"{sign} {text}" if sign else text


def percent(share: float, decimals: int = 1) -> str:
    """Return a share as display text: `12.5 %`; `<0.1 %` if it is not zero, but would be written as zero."""
    is_little = 0 < share < 0.005 * 10**-decimals
    return f"<{10**-decimals:g} %" if is_little else f"{100 * share:.{decimals}f} %"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names of a list, and how many more there are, as display text: `a, b, and 40 more`."""
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Control characters, and characters that reverse the direction of writing or are invisible.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_NOT_ON_ONE_LINE: Final = re.compile("[\t\n]")


def visible(text: str) -> str:
    r"""Return a text with control characters, and characters that reverse the writing direction, as `\x1b` or `\u202e`.

    Line feeds and tabs stay, as texts of satview itself contain them.
    """
    return _UNSEEN.sub(_written, text)


def visible_line(text: str) -> str:
    """Return a text on one line: as by `visible`, and with line feeds and tabs written as escapes too."""
    return _NOT_ON_ONE_LINE.sub(_written, visible(text))


def byte_text(raw: bytes, *, keeps_invalid: bool = False) -> str:
    r"""Return bytes decoded as UTF-8, with invalid bytes and unprintable characters written as `\xb0` or `\n`.

    With this a listing shows every byte of a text that a program wrote.

    Args:
        raw: The bytes.
        keeps_invalid: Keep invalid bytes as surrogates, which are the same bytes again when written with
            `surrogateescape`.
    """
    text = raw.decode("utf-8", "surrogateescape" if keeps_invalid else "backslashreplace")
    return "".join(c if c.isprintable() or "\udc80" <= c <= "\udcff" else c.encode("unicode_escape").decode("ascii")
                   for c in text)  # fmt: skip


def html_text(text: str) -> str:
    """Return a text as HTML: mark-up in it is escaped, and line feeds become `<br>`."""
    return escape(visible(text)).replace("\n", "<br>")


def tool_tip(text: str) -> str:
    """Return a text in the form for tooltips, so that Qt does not interpret anything in it as mark-up."""
    if "<" not in text:
        return visible(text)
    return f'<span style="white-space: pre-wrap">{html_text(text)}</span>'


def csv_text(text: str) -> str:
    """Return a text on one line that a spreadsheet does not interpret as a formula."""
    text = visible(_BREAKS.sub(" ", text))
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def menu_text(text: str) -> str:
    """Return a text in the form for menus and buttons, in which `&` and tabs have no special meaning."""
    return visible_line(text).replace("&", "&&")


def _written(character: re.Match[str]) -> str:
    code = ord(character[0])
    code -= 0xDC00 if 0xDC80 <= code <= 0xDCFF else 0  # a byte that is not UTF-8, as `surrogateescape` keeps it
    short = {9: r"\t", 10: r"\n", 13: r"\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")

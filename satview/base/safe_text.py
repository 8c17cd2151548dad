r"""Text of a trace for each medium: code that shows a name calls one of these, so that a name is never more than text.

A trace may come from anywhere. A process called `<img src="file:///...">`, `=cmd()` or `\x1b]0;...` must not load
a picture, become a formula, or reach the terminal as a command.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

# Numbers of things in sentences.


def counted(count: int, noun: str) -> str:
    """Return how many there are of something, for people: `1 event`, `2,409,125 events`.

    Args:
        count: How many; may be negative, as a difference is.
        noun: One of them, with what is said before it; its last word takes an `s` for all but one.
    """
    return f"{count:,} {noun}{'' if abs(count) == 1 else 's'}"


_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Controls, and the characters that reverse the direction of writing or cannot be seen at all.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_NOT_ON_ONE_LINE: Final = re.compile("[\t\n]")


def visible(text: str) -> str:
    r"""Return a text in which control characters and reversals of the writing direction show as `\x1b` or `\u202e`.

    Line feeds and tabs stay: the texts of satview itself have them.
    """
    return _UNSEEN.sub(_written, text)


def visible_line(text: str) -> str:
    """Return a text on one line: as `visible`, with line feeds and tabs written out too."""
    return _NOT_ON_ONE_LINE.sub(_written, visible(text))


def byte_text(raw: bytes) -> str:
    r"""Return the bytes of a text as UTF-8; what is none, and what is not printable, as `\xb0` or `\n`.

    So no byte of a text that some program wrote vanishes in a listing.
    """
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def html_text(text: str) -> str:
    """Return a text for rich text: no mark-up in it is carried out, line feeds become `<br>`."""
    return escape(visible(text)).replace("\n", "<br>")


def tool_tip(text: str) -> str:
    """Return a text for a tooltip, where Qt takes plain text that looks like mark-up for mark-up."""
    if "<" not in text:
        return visible(text)
    return f'<span style="white-space: pre-wrap">{html_text(text)}</span>'


def csv_text(text: str) -> str:
    """Return a text on one line that a spreadsheet does not take for a formula, whatever a program is called."""
    text = visible(_BREAKS.sub(" ", text))
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def menu_text(text: str) -> str:
    """Return a text for a menu or a button, where `&` would underline the next letter and a tab begin a shortcut."""
    return visible_line(text).replace("&", "&&")


def _written(character: re.Match[str]) -> str:
    code = ord(character[0])
    short = {9: r"\t", 10: r"\n", 13: r"\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")

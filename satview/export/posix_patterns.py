"""Patterns as a target's fnmatch() and regcomp() read them, where these can say what RE2 says in views.

They see bytes, so the program gives them texts in which every character beyond ASCII is DEL (`plain` in handlers.c),
which no pattern that is written here names.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import numpy as np

from satview.filters.expressions.pattern import SET, Pattern, compile_source, glob_parts

_DEL: Final = 0x7F
_LETTERS_BEYOND_ASCII: Final = (0x17F, 0x212A)  # long s, Kelvin sign: s and k where case is ignored, as in RE2
_MOST_REPEATS: Final = 255  # RE_DUP_MAX of POSIX
_MOST_STARS: Final = 3  # in a handler, which runs in the kernel: fnmatch() may try all lengths of what each fits

_PART: Final = re.compile(
    rf"(?P<one>{SET}|\\[dDwWsSafnrtv]|\\[^\w]|[^\\()|+*?{{^$]|{{(?!\d+(?:,\d*)?}}))"
    r"|(?P<repeat>[+*?]|{\d+(?:,\d*)?})|(?P<anchor>[\^$]|\\[Az])|(?P<open>\((?:\?:|(?!\?)))|(?P<bar>\|)|(?P<close>\))"
    r"|(?P<other>\(\?.{1,2}|\\.)",
    re.DOTALL,
)
_IN_POSIX: Final = {"(?:": "(", "\\A": "^", "\\z": "$"}


class NotInPosixError(Exception):
    """A pattern that neither fnmatch() nor regcomp() understands as views do; the text says why."""


def posix_pattern(pattern: Pattern, is_in_handler: bool) -> str:
    """Return a glob as fnmatch() reads it with FNM_NOESCAPE, a regular expression as regcomp() reads it.

    The latter with REG_EXTENDED, and with REG_ICASE where case is ignored. What runs in an event handler has to behave
    like an interrupt handler; regexec() allocates memory.

    Raises:
        NotInPosixError: POSIX has nothing that is the same on all texts, or nothing for an event handler.
    """
    if not pattern.is_glob:
        if is_in_handler:
            raise NotInPosixError("an event handler must not call regexec(), only a glob can be tested there")
        return _extended_regex(pattern)
    parts = [part if part in "*?" else _one_of(part, False, "!") for part in glob_parts(pattern.text)]
    if is_in_handler and parts.count("*") > _MOST_STARS:
        raise NotInPosixError(f"a glob with more than {_MOST_STARS} * may take too long in an event handler")
    return "".join(parts)


def _extended_regex(pattern: Pattern) -> str:
    parts: list[str] = []
    before = "open"
    for part in _PART.finditer(pattern.text):
        kind, text = str(part.lastgroup), part.group()
        if kind == "other":
            raise NotInPosixError(f"POSIX has no {text}")
        if kind == "repeat":
            if before in ("repeat", "anchor"):
                raise NotInPosixError(f"POSIX has no {text} after a repetition or an anchor")
            if any(int(number) > _MOST_REPEATS for number in re.findall(r"\d+", text)):
                raise NotInPosixError(f"POSIX repeats {_MOST_REPEATS} times at most")
        if kind in ("bar", "close"):
            _require_branch(before)
        parts.append(_one_of(text, pattern.ignores_case, "^") if kind == "one" else _IN_POSIX.get(text, text))
        before = kind
    _require_branch(before)
    return "".join(parts)


def _require_branch(before: str) -> None:
    if before in ("open", "bar"):
        raise NotInPosixError("POSIX has no empty alternative")


def _one_of(source: str, ignores_case: bool, negation: str) -> str:
    """Return what fits one character, `source` in RE2, as POSIX writes it; `negation` begins a set of all others."""
    characters, has_others = _fitting(source, ignores_case)
    if has_others:
        characters = "".join(char for char in map(chr, range(1, _DEL)) if char not in characters)
    if ignores_case:
        characters = "".join(char for char in characters if not char.isupper())
    if len(characters) == 1 and not has_others:
        is_plain = characters not in ("*?[" if negation == "!" else r"\.[](){}|^$+*?")
        return characters if is_plain else f"[{characters}]" if characters != "^" else r"\^"
    if not characters:
        if not has_others:
            raise NotInPosixError(f"no character fits {source}")
        return "?" if negation == "!" else "."
    body = "".join(sorted(characters, key=lambda char: (char != "]", "[!^-".find(char), char)))
    body = re.sub("0123456789|ABCDEFGHIJKLMNOPQRSTUVWXYZ|abcdefghijklmnopqrstuvwxyz", _as_range, body)
    negating = {"^", negation}  # glibc's fnmatch() takes both
    if not has_others and body[0] in negating:
        body = body[::-1]  # of two or three such signs; a minus sign may begin
        if body[0] in negating:
            raise NotInPosixError("POSIX has no set of ! and ^ alone")
    return f"[{negation if has_others else ''}{body}]"


def _as_range(run: re.Match[str]) -> str:
    return f"{run.group()[0]}-{run.group()[-1]}"


@cache
def _fitting(source: str, ignores_case: bool) -> tuple[str, bool]:
    """Return which characters from 1 to 0x7e fit one in RE2, and whether all others do; if only some, there is no set.

    Raises:
        NotInPosixError: Some of the others fit.
    """
    if (len(source) == 1 and source != ".") or (len(source) == 2 and source[0] == "\\" and not source[1].isalnum()):
        if not 0 < ord(source[-1]) < _DEL:
            raise NotInPosixError(f"the target compares bytes, and U+{ord(source[-1]):04X} is none of ASCII")
        return "".join({source[-1].lower(), source[-1].upper()} if ignores_case else source[-1]), False
    fits = compile_source(source, ignores_case)
    has_others = fits.search(_other_characters()) is not None
    if has_others and compile_source(f"(?:{source})*", ignores_case).fullmatch(_other_characters()) is None:
        raise NotInPosixError(f"the target compares bytes, and {source} fits some characters beyond ASCII")
    return "".join(char for char in map(chr, range(1, _DEL)) if fits.fullmatch(char) is not None), has_others


@cache
def _other_characters() -> bytes:
    numbers = np.arange(_DEL, 0x110000, dtype="<u4")
    is_half = (numbers >= 0xD800) & (numbers < 0xE000)
    return numbers[~is_half & ~np.isin(numbers, _LETTERS_BEYOND_ASCII)].tobytes().decode("utf-32-le").encode()

"""Determines the variant of a layout from payload words, and encodes values as payload words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from satview.core.loading import IS_ASCII, MAY_BE_UTF8, same_rows, text_kinds
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, KER_EXIT_OFFSET, WireClass, class_of, event_of

# Variants of a payload's layout that depend on its words, where code and word count do not determine the layout.
#
# Source: kernel event trace format, sections 8.2 (TRACE_EVENT), 8.3 (exits that failed) and 8.9 (text of user events).
# The rules exist for one event and for columns of events; a test compares both.


MINUS_ONE: Final = 0xFFFFFFFF
LAST_ERRNO: Final = 1023

# Variants of a layout. From 1 to 15: a TRACE_EVENT call with that many arguments.
BY_COUNT: Final = 0  # code and word count alone determine the layout
FAILED: Final = 16  # -1 and errno
FAILED_64: Final = 17  # -1 in 64 bits, then errno
FAILED_UNKNOWN: Final = 18  # -1 in 64 bits, no errno that can be reported
DOUBTFUL: Final = 19  # begins with -1; neither a value nor an errno can be reported
TEXT: Final = 20  # a user event whose payload is a text
FAILED_FOR_VENDOR: Final = 21  # the first word is -1, which the printer of 6.x takes for a failed call
LISTED: Final = 32  # from here on: the arguments that a line of a listing shows (`layout.learn_list`)
FAILURES: Final = (FAILED, FAILED_64, FAILED_UNKNOWN)
FAILED_ARGUMENTS: Final = ("ret_val", "errno")  # arguments of the exit of a failed call
ERRNO_WORD: Final = {FAILED: 1, FAILED_64: 2}
USER_CLASSES: Final = (WireClass.USER, WireClass["QUIP"])

_CODES: Final = np.arange(CODE_COUNT)
EXITS: Final[NDArray[np.bool_]] = (_CODES >> CLASS_SHIFT == WireClass.KER_CALL) & (  # (32768,), as `is_exit`
    _CODES >> 7 & 3 == KER_EXIT_OFFSET >> 7
)
_EXIT, _COUNTED = 1, 2
_SHORTEST_TEXT: Final = 12  # bytes: shorter payloads are numbers
_LETTERS: Final = re.compile(rb"[ -~]{4}")


def is_exit(code: int) -> bool:
    """Return whether a code is the exit of a kernel call, whose payload may show that the call failed."""
    return class_of(code) == WireClass.KER_CALL and event_of(code) >> 7 & 3 == KER_EXIT_OFFSET >> 7


@cache
def _kinds(release: Release) -> NDArray[np.uint8]:
    """Return for each code what selects the variant of its payload layout, uint8 (32768,).

    `_EXIT` = whether the kernel call failed, `_COUNTED` = its number of arguments (TRACE_EVENT), 0 = always `BY_COUNT`.
    """
    table = np.zeros(CODE_COUNT, np.uint8)
    if release.is_qnx:
        table[EXITS] = _EXIT
        book = catalogue(release)
        calls = range(wire.code(WireClass.KER_CALL, 0), wire.code(WireClass.KER_CALL, KER_EXIT_OFFSET))
        table[[call for call in calls if book.name(call) == "TRACE_EVENT"]] = _COUNTED
    return table


@cache
def wide_exits(release: Release) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which codes are exits with 64-bit values, and which of these begin with one; bool (32768,) each."""
    is_64bit, is_first_64bit = np.zeros(CODE_COUNT, np.bool_), np.zeros(CODE_COUNT, np.bool_)
    book = catalogue(release)
    for code in book.codes():
        if is_exit(code) and (spec := book.spec(code)).is_64bit:
            is_64bit[code] = True
            is_first_64bit[code] = spec.wide is None or bool(spec.wide and spec.wide[0].words == 2)
    return is_64bit, is_first_64bit


def counted_call(release: Release) -> tuple[int, int]:
    """Return the code of TRACE_EVENT, whose first word counts its arguments, and the length of its wide list."""
    code = int(np.flatnonzero(_kinds(release) == _COUNTED)[0])
    return code, len(catalogue(release).spec(code).wide or ())


def variant_of(release: Release, code: int, words: Sequence[int]) -> int:
    """Return the variant of the payload layout of an event other than a user event; `words` have their padding.

    For nearly all events it is `BY_COUNT`: code and number of words alone determine the layout.
    """
    kind = _kinds(release)[code]
    if not kind or len(words) < 2:
        return BY_COUNT
    if kind == _COUNTED:
        return _counted(words[0] >> 28, len(words), len(catalogue(release).spec(code).wide or ()))
    return _failure(release, code, words) if words[0] == MINUS_ONE else BY_COUNT


def _counted(arguments: int, count: int, most: int) -> int:
    return arguments if 2 < arguments <= most and count in (arguments, arguments + arguments % 2) else BY_COUNT


def _failure(release: Release, code: int, words: Sequence[int]) -> int:
    is_64bit, is_first_64bit = (bool(table[code]) for table in wide_exits(release))
    is_short = len(words) == 2
    if is_short and (not is_64bit or words[1] <= LAST_ERRNO):
        return FAILED
    if is_first_64bit and words[1] == MINUS_ONE:
        return FAILED_64 if len(words) == 4 and 1 <= words[2] <= LAST_ERRNO else FAILED_UNKNOWN
    return DOUBTFUL if is_short else BY_COUNT


def error_of(release: Release, code: int, words: Sequence[int]) -> int | None:
    """Return the error number in a kernel call's exit, signed; None if it succeeded or the number is not shown."""
    errno_word = ERRNO_WORD.get(variant_of(release, code, words))
    if errno_word is None:
        return None
    return words[errno_word] - (1 << 32) if words[errno_word] >> 31 else words[errno_word]


# Function that returns payload word n of the events at the given positions, uint32: `word(positions, n)`.
WordColumn = Callable[[NDArray[np.intp], int], NDArray[np.uint32]]


def variants(
    release: Release, code: NDArray[np.integer], count: NDArray[np.integer], word: WordColumn
) -> NDArray[np.uint8]:
    """Return the variants of many events, as `variant_of` does for one.

    Args:
        release: Release of the trace.
        code: (n,), event codes.
        count: (n,), payload words, padding included.
        word: Function that returns a payload word of some events; called only for the few events that may have
            variants, and only for words within their payloads.

    Returns:
        uint8 (n,).
    """
    variant = np.zeros(len(code), np.uint8)
    kinds = _kinds(release).take(code)
    exits = np.flatnonzero((kinds == _EXIT) & (count >= 2))
    if len(exits):
        exits = exits[word(exits, 0) == MINUS_ONE]
        variant[exits] = _failures(release, code[exits], count[exits], lambda positions, n: word(exits[positions], n))
    for position in np.flatnonzero((kinds == _COUNTED) & (count > 2)).tolist():  # TraceEvent() calls are rare
        most = len(catalogue(release).spec(int(code[position])).wide or ())
        variant[position] = _counted(int(word(np.array([position]), 0)[0]) >> 28, int(count[position]), most)
    return variant


def _failures(
    release: Release, code: NDArray[np.integer], count: NDArray[np.integer], word: WordColumn
) -> NDArray[np.uint8]:
    is_64bit, is_first_64bit = (table.take(code) for table in wide_exits(release))
    is_short, second = count == 2, word(np.arange(len(code)), 1)
    is_failed = is_short & (~is_64bit | (second <= LAST_ERRNO))
    is_long = is_first_64bit & (second == MINUS_ONE) & ~is_failed
    variant = np.select([is_failed, is_long, is_short], [FAILED, FAILED_UNKNOWN, DOUBTFUL], BY_COUNT)
    four = np.flatnonzero(is_long & (count == 4))
    if len(four):
        third = word(four, 2)
        variant[four[(third >= 1) & (third <= LAST_ERRNO)]] = FAILED_64
    return variant.astype(np.uint8)


def is_user(code: int) -> bool:
    """Return whether a code of a QNX release stands for a user event, whose payload is either words or a text."""
    return class_of(code) in USER_CLASSES


def user_text(payload: bytes) -> str | None:
    """Return the text of a user event; None if its payload is no text (section 8.9).

    An event does not show whether its payload is text. A payload is taken for a text if it has more than two words, is
    printable up to the first NUL, and has only zeros after the NUL.
    """
    text, _, rest = payload.partition(b"\0")
    if len(payload) < _SHORTEST_TEXT or not text or any(rest):
        return None
    try:
        shown = text.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return shown if shown.replace("\t", "").replace("\n", "").isprintable() else None


def user_texts(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which payloads of user events are texts as by `user_text`, bool (n,), for uint8 (n, bytes)."""
    if data.shape[1] < _SHORTEST_TEXT or not len(data):
        return np.zeros(len(data), np.bool_)
    kinds = text_kinds(data)
    is_user_text: NDArray[np.bool_] = kinds == IS_ASCII
    beyond_ascii = np.flatnonzero(kinds == MAY_BE_UTF8)
    if len(beyond_ascii):
        number, of = same_rows(data[beyond_ascii])
        is_text = [user_text(payload.tobytes()) is not None for payload in data[beyond_ascii[of]]]
        is_user_text[beyond_ascii] = np.array(is_text, np.bool_)[number]
    return is_user_text


def has_letters(payload: bytes) -> bool:
    """Return whether a payload may begin with a text although `user_text` returns None for it.

    The rule is that of the program `strings`: four consecutive printable ASCII characters before the first NUL. Texts
    in another encoding, with control characters, or with data after the NUL pass; numbers hardly ever do.
    """
    return _LETTERS.search(payload.partition(b"\0")[0]) is not None


# Encodes values as 32-bit payload words: 64-bit numbers, text, whole argument lists.
#
# Source: kernel event trace format, sections 2 and 8. The words of a payload are numbers in host order; a 64-bit value
# takes two words in the target's memory order, text keeps its bytes in the order of the file.


WORD_MASK: Final = 0xFFFFFFFF
NAME_BYTES: Final = 126  # the kernel cuts names after this length

# An argument list for `encode`: name and number of words of each argument; 0 words = text up to the end.
Plan = tuple[tuple[str, int], ...]
Halves = TypeVar("Halves", int, NDArray[np.uint64], NDArray[np.int64])


def split64(value: int, byte_order: str) -> tuple[int, int]:
    """Return the two payload words of a 64-bit value, in payload order."""
    low, high = value & WORD_MASK, value >> 32 & WORD_MASK
    return (low, high) if byte_order == "little" else (high, low)


def join64(word_0: Halves, word_1: Halves, byte_order: str) -> Halves:
    """Return the 64-bit value of two words in payload order: numbers, or columns of 64-bit integers."""
    low, high = (word_0, word_1) if byte_order == "little" else (word_1, word_0)
    result: Halves = low | cast(Any, high) << 32  # the type of a shifted column differs between versions of numpy
    return result


def text_words(text: bytes, byte_order: str) -> list[int]:
    """Return the payload words of a text and a NUL; the last word is filled with zeros."""
    raw = text + b"\0"
    raw += bytes(-len(raw) % 4)
    order = cast(Literal["little", "big"], byte_order)
    return [int.from_bytes(raw[start : start + 4], order) for start in range(0, len(raw), 4)]


def name_bytes(text: str) -> bytes:
    """Return a name as the kernel writes it: UTF-8, cut after 126 bytes."""
    return text.encode("utf-8", "replace")[:NAME_BYTES]


def encode(plan: Plan, values: Mapping[str, int | bytes], byte_order: str) -> list[int]:
    """Return the words of a payload, without padding, by the names and widths of `layout.plan_of`.

    Texts are bytes; a missing number is 0, a missing text is left out.
    """
    words: list[int] = []
    get = values.get
    for name, width in plan:
        value = get(name, 0)
        if width == 1:
            words.append(value & WORD_MASK)  # type: ignore[operator]  # only texts are bytes, and their width is 0
        elif width:
            words += split64(cast(int, value), byte_order)
        elif isinstance(value, bytes):
            words += text_words(value, byte_order)
    return words


def sigevent_words(notify: int, number: int, value: int, code: int, priority: int, byte_order: str) -> list[int]:
    """Return the words of a sigevent of 6.x: code and priority share the last word, in memory order (section 8.6).

    `byte_order` is `little` or `big`.
    """
    halves = (code & 0xFFFF, priority & 0xFFFF)
    low, high = halves if byte_order == "little" else halves[::-1]
    return [notify & WORD_MASK, number & WORD_MASK, value & WORD_MASK, low | high << 16]


def word_bytes(words: Sequence[int], byte_order: str) -> bytes:
    """Return payload words as bytes in the target's byte order."""
    return np.array(words, np.uint32).astype("<u4" if byte_order == "little" else ">u4").tobytes()

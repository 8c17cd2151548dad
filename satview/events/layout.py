"""Decides which words of a payload are which argument, by release, code and word count.

Used by filters, listings, the details of an event, the simulated kernel and the readers of listings. Source: kernel
event trace format, section 8; the argument lists themselves are data in `resources/events`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as column
from functools import lru_cache
from threading import Lock
from typing import Final, Literal, cast

from satview.events import naming, variants
from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Field, Release, Show
from satview.events.user_events import UserEvent, ValueText
from satview.events.variants import BY_COUNT, Plan
from satview.events.wire import CODE_COUNT, KER_64BIT, THREAD_CREATE, THREAD_DESTROY, WireClass, class_of

SIGEVENT_WORDS: Final = 4  # of 6.x; later layouts are not known
_SIGEVENT: Final = (  # member, word, first byte within the word, size in bytes (0 = the whole word)
    ("notify", 0, 0, 0), ("number", 1, 0, 0), ("value", 2, 0, 0), ("code", 3, 0, 2), ("priority", 3, 2, 2)
)  # fmt: skip
_USER_WORDS: Final = 2  # payload words of the shortest user event
_REST: Final = re.compile(r"(word |d)(0|[1-9][0-9]{0,4})")
USER_TEXT: Final = "text"  # name of the argument of a user event whose payload is a text
_OPEN: Final = (Show.STRING, Show.STRUCT)
_MESSAGES: Final = {"msg": "msg[0]", "smsg": "smsg[0]", "rmsg": "rmsg[0]"}
_RESPELLED: Final = ("itime", "oitime", "otime", "ntime", "param")


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The position of one argument in a payload.

    Attributes:
        name: Name as the list spells it.
        word: First payload word.
        words: 1 or 2, 4 for a sigevent of 6.x; 0 = text up to its NUL or the end of the payload, or a structure whose
            layout is not known.
        show: Notation; decimal numbers are signed, all others unsigned.
        is_sure: False if the notation was inferred.
        text_index: Index among several consecutive texts.
        template: `%` template with which a listing prints the value; empty = the notation decides.
        byte: Offset of the value within the first word, in the byte order of the file.
        size: Number of bytes, for a number that is not whole words; or maximum for a text. 0 = all of the words.
        texts: Texts for values, from a file of event descriptions.
    """

    name: str
    word: int
    words: int
    show: Show
    is_sure: bool = True
    text_index: int = 0
    template: str = ""
    byte: int = 0
    size: int = 0
    texts: tuple[ValueText, ...] = ()

    @property
    def is_signed(self) -> bool:
        """Whether the number is signed."""
        return self.show is Show.DEC

    @property
    def is_text(self) -> bool:
        """Whether the part is a text that ends with a NUL."""
        return self.show is Show.STRING

    @property
    def start(self) -> int:
        """Offset of the part in the payload, bytes."""
        return 4 * self.word + self.byte

    def from_bytes(self, payload: bytes, byte_order: str) -> int:
        """Return the number that a payload has in the `size` bytes of this part."""
        order = cast(Literal["little", "big"], byte_order)
        return int.from_bytes(payload[self.start : self.start + self.size], order, signed=self.is_signed)


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of all arguments of a payload.

    Attributes:
        form: `fast`, `wide`, `same` (both lists are equal), `failed` (a call that returned an error), `raw` (the list
            is not known, or the word count fits none), `listed` (from a line of a listing).
        parts: The arguments in payload order; without gaps, except for `listed` where the line lacks an argument.
        end: The first word that no part describes; the number of words if a text reaches to the end.
        rest_name: Prefix of the names of words from `end` on; the word's index follows.
        described: Additional parts from a file of event descriptions.
    """

    form: str
    parts: tuple[PayloadPart, ...]
    end: int
    rest_name: str = "word "
    described: tuple[PayloadPart, ...] = ()

    def rest_part(self, index: int) -> PayloadPart:
        """Return a part for payload word `index`, which no argument covers: `d3` in a user event, else `word 3`."""
        return PayloadPart(f"{self.rest_name}{index}", index, 1, Show.HEX)

    def rest_index(self, name: str) -> int | None:
        """Return the index of the payload word with a name such as `word 3` in this layout; None for other names."""
        rest = _REST.fullmatch(name)
        return int(rest[2]) if rest is not None and rest[1] == self.rest_name and int(rest[2]) >= self.end else None

    def message_words(self, index: int) -> int:
        """Return how many consecutive parts, from part `index` on, belong to one message (one word each)."""
        end = index + 1
        while end < len(self.parts) and self.parts[end].show is Show.MSG_MORE:
            end += 1
        return end - index


def canonical(name: str) -> str:
    """Return the canonical name of an argument that the lists of different releases spell differently."""
    name = _MESSAGES.get(name, name)
    if not name.startswith(_RESPELLED):
        return name
    return name.replace("param.__", "param.").replace("(sec)", "_sec").replace("(nsec)", "_nsec")


def is_same_name(one: str, other: str) -> bool:
    """Return whether two names mean the same argument: `msg` and `msg[0]`, `ntime(sec)` and `ntime_sec`."""
    return one == other or one_spelling(one) == one_spelling(other)


def one_spelling(name: str) -> str:
    """Return a text that is the same for all spellings of one argument."""
    return canonical(name).removesuffix("[0]")


def plan_of(fields: Sequence[Field]) -> Plan:
    """Return an argument list converted to the form that `variants.encode` takes, with canonical names."""
    return tuple((canonical(field.name), field.words) for field in fields)


def word_count(fields: Sequence[Field]) -> int:
    """Return the number of payload words of the arguments of fixed length in a list."""
    return sum(field.words for field in fields)


def is_open(fields: Sequence[Field]) -> bool:
    """Return whether an argument list ends with a text or structure that fills the rest of the payload."""
    return any(field.show in _OPEN for field in fields)


def _fits(fields: tuple[Field, ...] | None, count: int) -> bool:
    if fields is None:
        return False
    need = word_count(fields)
    return count >= need if is_open(fields) else need > 0 and count in (need, need + need % 2)


# ---- reading payloads --------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def layout_of(release: Release, code: int, count: int, variant: int = BY_COUNT) -> Layout:
    """Return the layout of a payload of `count` words, with or without padding: which belong to which argument.

    Rules of section 8.1: two words are the fast form. Otherwise the first list that fits, with its length rounded up to
    even, is used: wide, fast, then the lists of the 7.1 and 6.4 printers. A payload longer than the wide list begins
    with that list.
    """
    if variant >= variants.LISTED:
        return _listed(variant)
    if variants.is_user(code):
        if variant == variants.TEXT:
            return Layout("same", (PayloadPart(USER_TEXT, 0, 0, Show.STRING),), count)
        return Layout("same", (), 0, "d")
    if variant in variants.FAILURES:
        return _failed(variant)
    if variant == variants.DOUBTFUL:
        return Layout("raw", (), 0)
    spec = catalogue(release).spec(code)
    form, fields = _choose(spec, release, count, variant)
    return _laid_out(form, fields, count, release)


def _failed(variant: int) -> Layout:
    width = 1 if variant == variants.FAILED else 2
    returned_name, errno = variants.FAILED_ARGUMENTS
    returned = PayloadPart(returned_name, 0, width, Show.DEC)
    if variant == variants.FAILED_UNKNOWN:
        return Layout("failed", (returned,), width)
    return Layout("failed", (returned, PayloadPart(errno, width, 1, Show.DEC)), width + 1)


def _choose(spec: EventSpec, release: Release, count: int, variant: int) -> tuple[str, tuple[Field, ...]]:
    wide = spec.wide
    if spec.class_name == "THREAD" and wide is not None and count == 4 and word_count(wide) > 4:
        return "wide", wide[:4]  # without adaptive partitioning the last two words are missing
    if BY_COUNT < variant < variants.FAILED and wide is not None:
        return "wide", wide[:variant]  # TRACE_EVENT: the variant is the number of the call's arguments
    for form, fields in _candidates(spec, release, count):
        if fields is not None and _fits(fields, count):
            return form, fields
    if wide is not None and not is_open(wide) and count > word_count(wide) > 0:
        return "wide", wide
    return "raw", ()


def _candidates(spec: EventSpec, release: Release, count: int) -> Iterator[tuple[str, tuple[Field, ...] | None]]:
    """Yield the lists that may describe a payload of `count` words, the likeliest first."""
    is_same = spec.fast == spec.wide
    fast = "same" if is_same else "fast", spec.fast
    if count == 2:
        yield fast
    yield "same" if is_same else "wide", spec.wide
    yield fast
    if spec.is_64bit and (spec.class_name, spec.name) == ("KER_CALL", "TRACE_EVENT"):
        yield "fast", tuple(replace(field, words=2) for field in spec.fast or ())
    yield from zip(("fast", "wide"), naming.listing_lists(spec, release), strict=True)
    if not spec.is_64bit:
        yield from zip(("fast", "wide"), naming.old_lists(spec.name, spec.class_name), strict=True)


def _laid_out(form: str, fields: Sequence[Field], count: int, release: Release) -> Layout:
    """Return the layout of an argument list, without the arguments for which the payload has no words left."""
    parts: list[PayloadPart] = []
    word = texts = 0
    for field in fields:
        if field.show in _OPEN and word >= count:
            break  # MMAP without a file has no name
        if field.show is Show.STRING:
            parts.append(PayloadPart(field.name, word, 0, field.show, field.is_sure, texts))
            texts += 1
        elif field.show is Show.STRUCT:
            size = SIGEVENT_WORDS if release is Release.QNX_6 and count >= word + SIGEVENT_WORDS else 0
            parts.append(PayloadPart(field.name, word, size, field.show))
            word += size
            break
        elif word + field.words > count:
            break
        else:
            parts.append(PayloadPart(field.name, word, field.words, field.show, field.is_sure))
            word += field.words
    return Layout(form, tuple(parts), count if texts else word)


@lru_cache(maxsize=1 << 14)
def argument_part(release: Release, code: int, count: int, name: str, variant: int = BY_COUNT) -> PayloadPart | None:
    """Return the position of the argument `name` in a payload, as of `layout_of`; None if such payloads lack it."""
    layout = layout_of(release, code, count, variant)
    for part in named_parts(layout):
        if is_same_name(part.name, name):
            return part
    index = layout.rest_index(name)
    return layout.rest_part(index) if index is not None and index < count else None


@lru_cache(maxsize=1 << 14)
def named_parts(layout: Layout) -> tuple[PayloadPart, ...]:
    """Return the numbers and texts of a layout with unique names: the second `empty` is `empty_2`.

    A sigevent of 6.x is replaced by its members, `sigevent.notify` and so on; other structures are left out, as their
    members are not known.
    """
    names = iter(part_names(layout))
    named: list[PayloadPart] = []
    for part in (*layout.parts, *layout.described):
        name = next(names)
        if part.show is not Show.STRUCT:
            named.append(part if part.name == name else replace(part, name=name))
        elif part.words:
            named += (
                PayloadPart(
                    f"{name}.{member}", part.word + word, 1, Show.DEC if size else Show.HEX, byte=byte, size=size
                )
                for member, word, byte, size in _SIGEVENT
            )
    return tuple(named)


def text_name(part: PayloadPart, parts: Sequence[PayloadPart]) -> str:
    """Return a name for the column with the texts of a field: `state_text`, or with a number if it is taken."""
    names, name, number = {other.name for other in parts}, f"{part.name}_text", 1
    while name in names:
        number += 1
        name = f"{part.name}_text_{number}"
    return name


def part_names(layout: Layout) -> tuple[str, ...]:
    """Return unique names for all parts of a layout: the second `empty` is `empty_2`."""
    parts = (*layout.parts, *layout.described)
    seen = {part.name: 1 for part in layout.described if layout.rest_index(part.name) is not None}
    own = {part.name for part in parts}
    names = []
    for part in parts:
        name = part.name
        while name in seen or (name != part.name and name in own):
            seen[part.name] += 1
            name = f"{part.name}_{seen[part.name]}"
        seen[name] = 1
        names.append(name)
    return tuple(names)


@lru_cache(maxsize=1 << 12)
def text_offset(release: Release, code: int, count: int, variant: int = BY_COUNT) -> PayloadPart | None:
    """Return the part of a payload that is its text, as in `layout_of`; None = none. Long user events are all text."""
    if variant < variants.LISTED:
        variant = variants.TEXT if variants.is_user(code) and count > 2 else BY_COUNT
    return next((part for part in layout_of(release, code, count, variant).parts if part.is_text), None)


def text_at(payload: bytes, part: PayloadPart) -> str | None:
    """Return the text at a part's position in a payload; None if too few texts are there."""
    end = part.start + part.size if part.size else None
    texts = payload[part.start : end].split(b"\0", part.text_index + 1)
    return texts[part.text_index].decode("utf-8", "replace") if part.text_index < len(texts) else None


@dataclass(frozen=True, slots=True, eq=False)
class Taught:
    """Numbers and texts, by code, that a listing or a file of event descriptions adds to those of the tables."""

    parts: Mapping[int, tuple[PayloadPart, ...]]


def arguments_of(release: Release, code: int, taught: Taught | None = None) -> tuple[PayloadPart, ...]:
    """Return descriptions of the numbers and texts in all payload layouts of a code, one for each name.

    `taught` are arguments that a trace adds to the tables; None = those that all traces have added so far.
    """
    known = _known_arguments(release, code)
    if taught is not None:
        more = taught.parts.get(code, ())
    else:
        more = tuple(part for layout in _LEARNED.by_code.get((release, code), ()) for part in named_parts(layout))
    return tuple(({part.name: part for part in more} | {part.name: part for part in known}).values()) if more else known


@lru_cache(maxsize=1 << 13)
def _known_arguments(release: Release, code: int) -> tuple[PayloadPart, ...]:
    if variants.is_user(code):
        words = layout_of(release, code, _USER_WORDS)
        text = layout_of(release, code, _USER_WORDS, variants.TEXT)
        return (*(words.rest_part(index) for index in range(_USER_WORDS)), *text.parts)
    spec = catalogue(release).spec(code)
    lists = (
        spec.fast,
        spec.wide,
        *naming.listing_lists(spec, release),
        *naming.old_lists(spec.name, spec.class_name),
    )
    needs = {2, 4} | {word_count(fields) + is_open(fields) for fields in lists if fields}
    needs |= {word_count(fields) + SIGEVENT_WORDS for fields in lists if fields and fields[-1].show is Show.STRUCT}
    counts = {need + need % 2 for need in needs}
    layouts = [layout_of(release, code, count) for count in sorted(counts)]
    if variants.is_exit(code) and spec.class_name == "KER_EXIT":
        layouts.append(_failed(variants.FAILED))
    parts = {part.name: part for layout in reversed(layouts) for part in reversed(named_parts(layout))}
    return tuple(reversed(parts.values()))


def argument_names(release: Release, taught: Taught | None = None) -> dict[str, tuple[int, ...]]:
    """Return all argument names of a release with the codes that have them; `taught` as in `arguments_of`.

    Names such as `word 3`, for words that no list describes, are left out; `codes_of_argument` handles them.
    """
    return _argument_names(release, len(_LEARNED.layouts) if taught is None else taught)


def is_rest(name: str) -> bool:
    """Return whether an argument name stands for a payload word that no argument list describes: `word 3`, `d0`."""
    return _REST.fullmatch(name) is not None


def codes_of_argument(release: Release, name: str, taught: Taught | None = None) -> tuple[int, ...]:
    """Return the codes whose events may have an argument with the given name; `taught` as in `arguments_of`."""
    codes = argument_names(release, taught).get(name, ())
    rest = _REST.fullmatch(name)
    if rest is None:
        return codes
    book = catalogue(release)
    of_rest = (code for code in book.codes() if layout_of(release, code, 0).rest_name == rest[1])
    return tuple(sorted({*codes, *of_rest}))


@lru_cache(maxsize=32)
def _argument_names(release: Release, learned: int | Taught) -> dict[str, tuple[int, ...]]:
    book = catalogue(release)
    codes_of_name: dict[str, list[int]] = {}
    # Any kernel call can fail, also one without a name.
    exits = (code for code in range(CODE_COUNT) if variants.is_exit(code))
    taught = learned if isinstance(learned, Taught) else None
    more = taught.parts if taught is not None else [code for of, code in list(_LEARNED.by_code) if of is release]
    for code in sorted({*book.codes(), *exits, *more}):
        for part in arguments_of(release, code, taught):
            codes_of_name.setdefault(part.name, []).append(code)
    for name in [name for name in codes_of_name if name.endswith("[0]") or f"{name}[1]" in codes_of_name]:
        codes_of_name.setdefault(name.removesuffix("[0]") if name.endswith("[0]") else f"{name}[0]", [])
    alike: dict[str, list[int]] = {}
    # Lists spell an argument differently; each spelling means all codes that have the argument.
    for name, codes in codes_of_name.items():
        alike.setdefault(one_spelling(name), []).extend(codes)
    return {name: tuple(sorted(set(alike[one_spelling(name)]))) for name in codes_of_name}


# ---- layouts learned from listings and descriptions --------------------------------------------------------------


@dataclass(slots=True)
class _Learned:
    """Layouts learned from listings and event descriptions; their variant numbers never change.

    Attributes:
        layouts: The layouts; the first has the variant number `variants.LISTED`.
        by_code: The layouts of each release and code.
        events: The last description read for each release and code.
    """

    layouts: list[Layout] = column(default_factory=list)
    number: dict[tuple[Release, int, Layout], int] = column(default_factory=dict)
    by_code: dict[tuple[Release, int], list[Layout]] = column(default_factory=dict)
    events: dict[tuple[Release, int], UserEvent] = column(default_factory=dict)
    lock: Lock = column(default_factory=Lock)


_LEARNED: Final = _Learned()
_MOST_LEARNED: Final = 1 << 14  # layouts in one process


def learn_list(release: Release, code: int, parts: Sequence[PayloadPart], count: int) -> int | None:
    """Return the variant (`variants.LISTED` or above) of the layout that a line of a listing shows, stored if new.

    None if too many layouts are stored, but never for a line that is a single text.
    """
    return _learn(release, code, Layout("listed", tuple(parts), count))


@lru_cache(maxsize=1 << 13)
def describe_layout(release: Release, code: int, count: int, variant: int, event: UserEvent) -> int:
    """Return the number of a variant whose layout is that of `variant`, extended by the fields that a user described.

    The new layout is stored; if too many are stored already, `variant` itself is returned.
    """
    layout = layout_of(release, code, count, variant)
    is_wide = not variants.is_user(code) and count > _USER_WORDS
    learned_variant = _learn(release, code, replace(layout, described=tuple(_described(event, 4 * count, is_wide))))
    return variant if learned_variant is None else learned_variant


def note_description(release: Release, event: UserEvent) -> None:
    """Store the description of an event for rules and captures, which belong to no trace."""
    _LEARNED.events[release, event.code] = event


def described_part(release: Release, code: int, count: int, name: str) -> PayloadPart | None:
    """Return the position of a field that a file of descriptions names; None if such payloads have no such field."""
    event = _LEARNED.events.get((release, code))
    if event is None:
        return None
    is_wide = not variants.is_user(code) and count > _USER_WORDS
    return next((part for part in _described(event, 4 * count, is_wide) if is_same_name(part.name, name)), None)


def _described(event: UserEvent, size: int, is_wide: bool) -> Iterator[PayloadPart]:
    """Yield the positions of described fields in a payload of `size` bytes, up to a text: behind it they differ."""
    for index, (field, start) in enumerate(event.placed(is_wide=is_wide)):
        name, show = field.label or f"field {index}", Show.DEC if field.is_signed else Show.HEX
        if start < 0 or start + field.size * field.count > size or start >= size:
            continue
        if field.count == 0 or field.base == "c":
            yield PayloadPart(name, start // 4, 0, Show.STRING, byte=start % 4, size=field.size * field.count)
            continue
        for number in range(field.count):
            word, byte = divmod(start + number * field.size, 4)
            is_whole = byte == 0 and field.size in (4, 8)
            words = (byte + field.size + 3) // 4
            own = name if field.count == 1 else f"{name}[{number}]"
            length = 0 if is_whole else field.size
            yield PayloadPart(own, word, words, show, byte=byte, size=length, texts=field.value_texts)


def _learn(release: Release, code: int, layout: Layout) -> int | None:
    """Return the variant number of a layout, which is stored if it is new; None as in `learn_list`."""
    with _LEARNED.lock:
        known = _LEARNED.number.get((release, code, layout))
        is_one_text = len(layout.parts) == 1 and layout.parts[0].is_text and not layout.described
        if known is None and (is_one_text or len(_LEARNED.layouts) < _MOST_LEARNED):
            known = variants.LISTED + len(_LEARNED.layouts)
            _LEARNED.number[release, code, layout] = known
            _LEARNED.by_code[release, code] = [*_LEARNED.by_code.get((release, code), ()), layout]
            _LEARNED.layouts.append(layout)
    return known


def learned_lists() -> int:
    """Return the number of layouts that have been learned so far."""
    return len(_LEARNED.layouts)


def _listed(variant: int) -> Layout:
    position = variant - variants.LISTED
    return _LEARNED.layouts[position] if position < len(_LEARNED.layouts) else Layout("raw", (), 0)


# ---- writing payloads --------------------------------------------------------------------------------------------


def logged_list(release: Release, code: int, *, is_wide: bool) -> tuple[int, tuple[Field, ...] | None]:
    """Return the code and the argument list with which a kernel logs an event; None if the list is not known.

    A kernel call with 64-bit values that has no list is logged without the 64-bit flag in its code (section 8.2). Where
    the fast list has more than two words in the guide but not in the printer, two words are logged.

    Args:
        release: Release of the kernel.
        code: Event code, with the flag for 64-bit values if its process has 64 bits.
        is_wide: True for wide mode, False for fast mode.
    """
    spec = catalogue(release).spec(code)
    if release is Release.QNX_6 and code in (THREAD_CREATE, THREAD_DESTROY):
        return code, spec.fast  # two words in either mode (section 8.4)
    fields = spec.wide if is_wide else _two_words(spec, release)
    if not fields and class_of(code) == WireClass.KER_CALL and code & KER_64BIT:
        return logged_list(release, code & ~KER_64BIT, is_wide=is_wide)
    return code, spec.wide if fields is None else fields


def _two_words(spec: EventSpec, release: Release) -> tuple[Field, ...] | None:
    printed = naming.listing_lists(spec, release)[0]
    if spec.class_name not in ("KER_CALL", "KER_EXIT") or spec.fast is None or printed is None:
        return spec.fast
    return printed if word_count(spec.fast) > 2 >= word_count(printed) else spec.fast


def printed_layout(release: Release, code: int, count: int, variant: int = BY_COUNT) -> Layout | None:
    """Return the layout by which the vendor's printer of a release prints a payload; None if the printer has no list.

    The 6.4 printer applies its list up to the end of the payload, whatever the word count; later printers do so with
    wide lists that end in text. Where no list of the printer fits, the result is `layout_of`.
    """
    if variant >= variants.LISTED:
        return _listed(variant)
    spec = catalogue(release).spec(code)
    fast, wide = naming.listing_lists(spec, release)
    layout: Layout | None = None
    if release is Release.QNX_6:
        if fast is not None and wide is not None:
            layout = _laid_out("", wide if count > 2 or spec.name == "APS_NAME" else fast, count, release)
    elif count == 2 and fast and word_count(fast) <= 2:
        layout = _laid_out("", fast, count, release)
    elif wide and (is_open(wide) or count == word_count(wide) + word_count(wide) % 2):
        layout = _laid_out("", wide, count, release)
    elif (known := layout_of(release, code, count, variant)).parts:
        layout = known
    return layout

"""Reads payloads from the slots when they are needed, and decodes the payload of one event into named arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from struct import unpack
from threading import Lock, get_ident
from typing import Any, Final

import construct
import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.errors import SatviewError, SourceChangedError
from satview.base.safe_text import byte_text
from satview.base.threads import Begun
from satview.core import links
from satview.events import variants
from satview.events.catalogue import Catalogue, shown_texts, table_texts
from satview.events.layout import SIGEVENT_WORDS, Layout, PayloadPart, layout_of, part_names
from satview.events.modes import flag_names
from satview.events.spec import Argument, EventSpec, Payload, Release, Show
from satview.events.user_events import UserEvent
from satview.events.variants import join64
from satview.events.wire import FAST_WORDS
from satview.formats.kev.slot_source import SlotSource
from satview.store.tables import EventTable, Fragments

# Notation of payload values, and the meaning of their numbers.
#
# Source: kernel event trace format, sections 8.3 to 8.11; listing format, section 3.3.


SIGEV_CRITICAL = 0x100
_POWER_CPU_MASK = 0xFFFF


def hex_text(value: int, words: int) -> str:
    """Return a value in hexadecimal with all digits of `words` 32-bit words: `0x0000002a` for one word."""
    return f"0x{value:0{8 * words}x}"


def signed(value: int, words: int) -> int:
    """Return the signed number that an unsigned value of `words` 32-bit words represents (two's complement)."""
    bits = 32 * words
    return value - (1 << bits) if value >> (bits - 1) else value


def message(name: str, raw: bytes, words: Sequence[int], first_word: int, count: int) -> Argument:
    """Return message words as one argument, shown as `"RSVP" (0x50565352)`, with their bytes as value.

    `first_word` is the number of the first message word in the payload, whose bytes are `raw`.
    """
    data = raw[4 * first_word : 4 * (first_word + count)]
    numbers = " ".join(hex_text(word, 1) for word in words[first_word : first_word + count])
    return Argument(name, data, f'"{message_text(data)}" ({numbers})', first_word, count)


def message_text(data: bytes) -> str:
    """Return the text that listings show for message words.

    Each word of 4 bytes is shown up to its first NUL; a word with a character that is neither printable nor a line feed
    is left out. The text ends with the first word that is shown as fewer than 4 characters.
    """
    shown = ""
    for start in range(0, len(data), 4):
        piece = data[start : start + 4].split(b"\0")[0]
        if not all(0x20 <= byte < 0x7F or byte == 0x0A for byte in piece):
            piece = b""
        shown += piece.decode("ascii")
        if len(piece) < 4:
            break
    return shown


def text_argument(name: str, data: bytes, first_word: int, words: int, note: str = "") -> Argument:
    """Return a text that begins in payload word `first_word` as an argument: value UTF-8, `text` with escaped bytes."""
    return Argument(name, data.decode("utf-8", "replace"), byte_text(data), first_word, words, note)


def vendor_text(raw: bytes) -> str:
    """Return the text before the NUL; empty if a character is neither printable (C locale) nor a line feed."""
    text = raw.split(b"\0", 1)[0]
    is_shown = all(0x20 <= byte < 0x7F or byte == 0x0A for byte in text)
    return text.decode("ascii") if is_shown else ""


def plain_text(raw: bytes) -> str:
    """Return the text before the NUL as UTF-8; other bytes and control characters are escaped."""
    return byte_text(raw.split(b"\0", 1)[0])


def text_as_logged(raw: bytes) -> str:
    """Return the text before the NUL for a file: bytes that are not UTF-8 are kept, control characters are escaped."""
    return byte_text(raw.split(b"\0", 1)[0], keeps_invalid=True)


def number_argument(spec: EventSpec, part: PayloadPart, value: int, catalogue: Catalogue) -> Argument:
    """Return a number as an argument, in the notation of its part of the layout, and with a note on its meaning."""
    text = str(value) if part.is_signed else hex_text(value, part.words)
    text = part.template % value if part.template else text
    note = _meaning(spec, part, value, catalogue)
    if not note and not part.is_sure and spec.class_name in ("KER_CALL", "KER_EXIT"):
        note = "notation inferred"
    if part.name == "errno" and (name := catalogue.errno_name(value)):
        text = f"{name} ({value})"
    return Argument(part.name, value, text, part.word, part.words, note)


def errno_argument(value: int, first_word: int, catalogue: Catalogue, note: str = "") -> Argument:
    """Return the errno of a failed call, in payload word `first_word`: `ETIMEDOUT (260)`, with QNX's names."""
    value = signed(value, 1)
    name = catalogue.errno_name(value)
    return Argument("errno", value, f"{name} ({value})" if name else str(value), first_word, 1, note)


def sigevent(event: Any, raw: bytes, first_word: int) -> Argument:
    """Return the sigevent structure of 6.x as an argument; its text is that of `sigevent_text`.

    Args:
        event: The parsed structure: notify, number (signo, coid or id), value, code and priority of 16 bits each.
        raw: Payload bytes.
        first_word: Number of the payload word in which the structure begins.
    """
    data = raw[4 * first_word : 4 * (first_word + SIGEVENT_WORDS)]
    if not any(data):
        return Argument("sigevent", data, "NONE", first_word, SIGEVENT_WORDS, "the handler returned no event")
    text = sigevent_text(event.notify, event.number, event.value, event.code, event.priority)
    return Argument("sigevent", data, text, first_word, SIGEVENT_WORDS)


def sigevent_text(notify: int, number: int, value: int, code: int, priority: int, *, is_vendor: bool = False) -> str:
    """Return a sigevent as the 6.4 printer writes it on a QNX host.

    `notify` has the type in the low byte, and flags; `number` is a signal, connection or function. `is_vendor` shows
    only the low byte of an unknown type, as the vendor's printer does.
    """
    code32, priority = code & 0xFFFFFFFF, signed(priority & 0xFFFFFFFF, 1)
    kind = flag_names("sigev_notify").get(notify & 0xFF)
    forms = {
        "SIGNAL": f"SIGNAL {number}",
        "SIGNAL_CODE": f"SIGNAL_CODE {number} {_alternate(code32)}:{_alternate(value)}",
        "SIGNAL_THREAD": f"SIGNAL_THREAD {number} {_alternate(code32)}:{_alternate(value)}",
        "PULSE": f"PULSE {_alternate(number)}:{priority} {_alternate(code32)}:{_alternate(value)}",
        "THREAD": f"THREAD {code32:x}:{value:x}",
    }
    text = forms.get(kind, kind) if kind else f"UNKNOWN({_alternate(notify & 0xFF if is_vendor else notify)})"
    return f"{text} CRITICAL" if notify & SIGEV_CRITICAL else str(text)


def _alternate(value: int) -> str:
    return f"0x{value:x}" if value else "0"  # C's %#x writes a zero without prefix


def _meaning(spec: EventSpec, part: PayloadPart, value: int, catalogue: Catalogue) -> str:
    texts = table_texts(catalogue.release, spec.code, part.name) if part.name != "errno" else ()
    if texts:
        shown = shown_texts(texts, value, {}) or ""
        is_power = (spec.class_name, spec.name) == ("SYSTEM", "POWER")
        return f"CPU {value & _POWER_CPU_MASK} {shown}".rstrip() if is_power else shown
    if spec.class_name == "CONTROL" and spec.name == "BUFFER" and part.word and value == 0:
        return "not counted: the buffer was not handed over"
    if catalogue.release == Release.QNX_6 and spec.class_name == "COMM" and part.name == "rcvid":
        return f"thread {(value >> 16) + 1}, scoid 0x{value & 0xFFFF:x}" if value != 0xFFFFFFFF else "failed"
    return ""


# Decodes the payload of one event into named arguments with their notation, using construct structs.
#
# Source: kernel event trace format, section 8.


SLOT_PAYLOAD_BYTES = 8
REST = " rest"  # the blank keeps it different from any argument


def _member(part: PayloadPart, end: str) -> construct.Construct:
    if part.is_text:
        return construct.NullTerminated(construct.GreedyBytes, require=False)
    if part.show is Show.STRUCT:
        return _sigevent(end)
    return getattr(construct, f"Int{32 * part.words}{'s' if part.is_signed else 'u'}{end}")


def _sigevent(end: str) -> construct.Struct:
    """Return the event structure of 6.x (section 8.6); `end` is `l` for little-endian, `b` for big-endian numbers."""
    word, half = getattr(construct, f"Int32u{end}"), getattr(construct, f"Int16s{end}")
    return construct.Struct("notify" / word, "number" / word, "value" / word, "code" / half, "priority" / half)


def struct_of(layout: Layout, byte_order: str) -> construct.Struct:
    """Return the `construct` structure of a layout, whose member `REST` takes the bytes after the last part."""
    end = "l" if byte_order == "little" else "b"
    known = [part for part in layout.parts if part.words or part.is_text]
    members = [name / _member(part, end) for name, part in zip(part_names(layout), known, strict=False)]
    return construct.Struct(*members, REST / construct.Default(construct.GreedyBytes, b""))


@lru_cache(maxsize=1 << 12)
def prepared(
    release: Release, code: int, count: int, variant: int, byte_order: str
) -> tuple[Layout, tuple[str, ...], construct.Struct]:
    """Return the layout of a payload of `count` words, and names and `construct` structure of its members."""
    layout = layout_of(release, code, count, variant)
    return layout, part_names(layout), struct_of(layout, byte_order)


def build(layout: Layout, values: Mapping[str, Any], byte_order: str) -> bytes:
    """Return the payload for values by member name, padded to whole slots; ConstructError if a value does not fit."""
    data: bytes = struct_of(layout, byte_order).build(values)
    return data + bytes(-len(data) % SLOT_PAYLOAD_BYTES)


MORE: Final = "\N{HORIZONTAL ELLIPSIS}"  # name of the argument for words that a preview leaves out
_DOUBT = "or data, if the call itself returned -1"


def decode_payload(
    spec: EventSpec,
    raw: bytes,
    byte_order: str,
    catalogue: Catalogue,
    most: int | None = None,
    listed: int | None = None,
) -> Payload:
    """Return the arguments of one event.

    Args:
        spec: Row of the catalogue for the event's code.
        raw: Payload bytes from all slots of the event; an incomplete last word is not decoded.
        byte_order: `little` or `big`.
        catalogue: Catalogue of the release, for names of errors and for rules that differ between releases.
        most: Limit for giant events, as for `PayloadSource.decode`.
        listed: Variant of the layout for an event from a line of a listing; None = determined from the payload.

    Returns:
        The decoded payload; a payload that fits no known list becomes raw words. No payload raises an error.
    """
    count = len(raw) // 4
    whole = raw[: 4 * count]
    words = unpack(f"{'<' if byte_order == 'little' else '>'}{count}I", whole)
    if listed is not None:
        layout = layout_of(catalogue.release, spec.code, count, listed)
        shown = _Decoder(spec, layout, whole, words, catalogue, most).listed(byte_order)
        return Payload(layout.form, tuple(shown), words, raw)
    if variants.is_user(spec.code):
        # A user event does not show whether its words are text (section 8.9): they are if they can be read as text.
        variant = variants.BY_COUNT if variants.user_text(whole) is None else variants.TEXT
    else:
        variant = variants.variant_of(catalogue.release, spec.code, words)
    layout, names, struct = prepared(catalogue.release, spec.code, count, variant, byte_order)
    values = struct.parse(whole)
    payload = _Decoder(spec, layout, whole, words, catalogue, most)
    arguments = payload.failed() if variant in variants.FAILURES else payload.arguments(names, values)
    return Payload(layout.form, tuple(arguments), words, raw)


def with_description(payload: Payload, event: UserEvent, byte_order: str) -> Payload:
    """Return a payload with the fields of a user's description as arguments, as far as the payload contains them.

    The fields come before the raw words of a user event, and after the known arguments of other events.
    """
    is_wide = not variants.is_user(event.code) and len(payload.words) > FAST_WORDS
    taken = {argument.name for argument in payload.arguments}
    described: list[Argument] = []
    for index, (field, byte, data, text) in enumerate(event.shown(payload.raw, byte_order, is_wide=is_wide)):
        name = plain = field.label or f"field {index}"
        number = 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        value = field.number(data, byte_order) if field.is_number else text
        first_word, end = byte // 4, -(-(byte + len(data)) // 4)
        described.append(Argument(name, value, text, first_word, end - first_word))
    own = payload.arguments
    return replace(payload, arguments=(*described, *own) if variants.is_user(event.code) else (*own, *described))


class _Decoder:
    """Creates the arguments of one payload."""

    def __init__(
        self, spec: EventSpec, layout: Layout, raw: bytes, words: Sequence[int], catalogue: Catalogue,
        most: int | None,
    ) -> None:  # fmt: skip
        self._most = most
        self.spec, self.layout, self.raw, self.words, self.catalogue = spec, layout, raw, words, catalogue

    def arguments(self, names: Sequence[str], values: Mapping[str, Any]) -> Iterator[Argument]:
        """Yield the arguments of the layout (`names` in `values`), then the words that it does not describe."""
        parts = self.layout.parts
        text_start = -1
        for index, (part, name) in enumerate(zip(parts, names, strict=True)):
            # The words of a message are shown as one text, like in traceprinter.
            if part.show is Show.MSG_MORE:
                continue  # part of the message before it
            if part.is_text:
                # Texts follow each other without alignment (section 8.10), so only the first text begins at the
                # position in the layout.
                text_start = 4 * part.word if text_start < 0 else text_start
                if text_start >= len(self.raw) and part.text_index:
                    return
                yield self.text(part, values[name], text_start)
                text_start += len(values[name]) + 1
            elif part.show is Show.MSG:
                yield message(part.name, self.raw, self.words, part.word, self.layout.message_words(index))
            elif part.show is Show.STRUCT:
                if part.words:
                    yield sigevent(values[name], self.raw, part.word)
            else:
                yield number_argument(self.spec, part, values[name], self.catalogue)
        yield from self.rest()

    def listed(self, byte_order: str) -> Iterator[Argument]:
        """Yield the arguments of an event from a line of a listing, in the order of the line."""
        for index, part in enumerate(self.layout.parts):
            if part.is_text:
                data = (self.raw[4 * part.word :].split(b"\0", part.text_index + 1) + [b""] * 2)[part.text_index]
                start = 4 * part.word + sum(
                    len(text) + 1 for text in self.raw[4 * part.word :].split(b"\0")[: part.text_index]
                )
                yield self.text(part, data, start)
            elif part.show is Show.MSG:
                yield message(part.name, self.raw, self.words, part.word, self.layout.message_words(index))
            elif part.show is not Show.MSG_MORE:
                first_word = self.words[part.word]
                value = first_word if part.words == 1 else join64(first_word, self.words[part.word + 1], byte_order)
                value = signed(value, part.words) if part.is_signed else value
                yield number_argument(self.spec, part, value, self.catalogue)

    def text(self, part: PayloadPart, data: bytes, start: int) -> Argument:
        """Return the argument of a text that begins at byte `start` of the payload."""
        if self._most is not None and len(data) > self._most:
            first_word, words = start // 4, -(-(start + len(data)) // 4) - start // 4
            rest = f"the first {self._most:,} of {len(data):,} bytes"
            return text_argument(part.name, data[: self._most], first_word, words, rest)
        if self.layout.form == "same" and variants.is_user(self.spec.code):
            return text_argument(part.name, data, 0, len(self.words))
        first_word, end = start // 4, min(start + len(data), len(self.raw))
        return text_argument(part.name, data, first_word, max(0, -(-end // 4) - first_word))

    def rest(self) -> Iterator[Argument]:
        """Yield the words that no part describes, except a zero word that only pads the last slot."""
        # The kernel pads to whole slots of two words (section 3.2).
        first_word = self.layout.end
        is_one = bool(self.layout.parts) and len(self.words) == first_word + 1
        is_padding = is_one and first_word % 2 and not self.words[first_word]
        if not is_padding:
            end = len(self.words) if self._most is None else min(len(self.words), first_word + self._most)
            for index in range(first_word, end):
                name, note = f"{self.layout.rest_name}{index}", self.user_note() if index == 0 else ""
                yield Argument(name, self.words[index], hex_text(self.words[index], 1), index, 1, note)
            if end < len(self.words):
                left = len(self.words) - end
                yield Argument(MORE, left, f"{left:,} more words", end, left)

    def user_note(self) -> str:
        """Return the words of a user event as text, for a note on its first word; empty if they cannot be text."""
        if not (variants.is_user(self.spec.code) and variants.has_letters(self.raw)):
            return ""
        text = self.raw.partition(b"\0")[0]
        shown = text if self._most is None else text[: self._most]
        return f'"{byte_text(shown)}"' + ("" if len(shown) == len(text) else "...")

    def failed(self) -> Iterator[Argument]:
        """Yield -1 and the error of a call that failed (section 8.3)."""
        returned, *error = self.layout.parts
        note = "" if error else "errno unknown"
        yield Argument(returned.name, -1, "-1", returned.word, returned.words, note)
        for part in error:
            yield errno_argument(self.words[part.word], part.word, self.catalogue, _DOUBT)
        if not error:
            yield from self.rest()


# Reads payloads from the slots when they are needed.
#
# A separate thread can read the words of many events ahead, in one pass over the file, to be used several times.


_MOST_SLOTS_EACH: Final = 3  # maximum slots of an event; the first slots contain the arguments of calls
_MOST_SLOTS: Final = 1 << 25  # maximum slots of all events: 256 MB
_MANY: Final = 1 << 16  # number of events from which on waiting is faster than reading them again
_AT_ONCE: Final = 1 << 18  # events that are read at a time, so that scratch stays in the processor's cache


@dataclass(frozen=True, slots=True)
class _Words:
    """Payload words of some events, read before they are needed.

    Attributes:
        rows: uint32 (n,), ascending, rows of the events.
        start: uint32 (n + 1,), index of the first slot of each event in `halves`.
        halves: uint64 (m + 1,), the two payload words of each slot as one number, and a 0 at the end.
    """

    rows: NDArray[np.uint32]
    start: NDArray[np.uint32]
    halves: NDArray[np.uint64]

    def of(self, requested: NDArray[np.uint32], step: int) -> NDArray[np.uint64] | None:
        """Return both words of slot `step` of events, uint64 (k,), 0 = no such slot; None if any was not read ahead."""
        return links.values_in_ranges(self.rows, self.start, self.halves, requested, step)


class WordsAhead:
    """The first payload words of some events, read ahead by a separate thread.

    Args:
        slots: Source of the slots.
        events: The event table.
        fragments: Slots of events that are not adjacent.
        rows: uint32 (n,), ascending, rows of the events.
    """

    def __init__(self, slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> None:
        self._owner = get_ident()
        self._words = Begun(lambda: _read(slots, events, fragments, rows), "satview-read-ahead")

    def close(self) -> None:
        """Wait until the thread has ended."""
        self._words.wait()

    def halves(self, rows: NDArray[np.integer], step: int) -> NDArray[np.uint32] | None:
        """Return the payload words of a slot of each event, uint32 (n, 2), 0 = no such slot; None if not read ahead.

        While the thread is still reading, the result for a few events is None, too.

        Args:
            rows: (n,), rows of the event table.
            step: Number of the slot within the event.
        """
        # Waiting is cheapest for the thread that requested the words, as it needs all of them, and for many events,
        # which are spread over the file. Other threads read their few events themselves.
        is_waiting = len(rows) >= _MANY or get_ident() == self._owner
        if step >= _MOST_SLOTS_EACH or not (self._words.is_done or is_waiting):
            return None
        words = self._words.result()
        halves = None if words is None else words.of(rows.astype(np.uint32, copy=False), step)
        return None if halves is None else halves.view(np.uint32).reshape(-1, 2)


def _read(slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> _Words | None:
    """Return the words of some events; None if there are too many, or the file cannot be read."""
    counts = np.minimum(events.slot_count[rows], _MOST_SLOTS_EACH)
    total = int(counts.sum(dtype=np.int64))
    # Limits memory: words of long traces are read in pieces when they are needed.
    if total > _MOST_SLOTS:
        return None
    start, halves = np.zeros(len(rows) + 1, np.uint32), np.zeros(total + 1, np.uint64)
    np.cumsum(counts, out=start[1:])
    apart, positions = _apart(rows, start, fragments)
    try:
        for begin_row in range(0, len(rows), _AT_ONCE):
            part = slice(begin_row, begin_row + _AT_ONCE)
            begin, end = int(start[begin_row]), int(start[min(part.stop, len(rows))])
            slot_numbers = numbers_of(events.slot[rows[part]], counts[part])
            elsewhere = apart[(apart >= begin) & (apart < end)] - begin
            slot_numbers[elsewhere] = slot_numbers[elsewhere - 1]  # placeholder in order; read separately below
            halves[begin:end] = slots.take_halves(slot_numbers, 1).view(np.uint64).ravel()
        halves[apart] = slots.take_halves(positions, 1).view(np.uint64).ravel()
    except SatviewError:
        return None
    return _Words(rows, start, halves)


def _apart(
    rows: NDArray[np.uint32], start: NDArray[np.uint32], fragments: Fragments
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return slots that do not follow the previous one of their event: index in `halves`, and number in the file."""
    apart, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    event = links.positions(rows, fragments.event)
    entry = np.flatnonzero(rows.take(event, mode="clip") == fragments.event) if len(rows) else event[:0]
    event = event[entry]
    for step in range(1, _MOST_SLOTS_EACH):
        position = start[event].astype(np.int64) + step
        has_step = position < start[event + 1]
        apart.append(position[has_step])
        positions.append(fragments.slots_at(entry[has_step], step).astype(np.int64))
    return np.concatenate(apart), np.concatenate(positions)


class SlotPayloads:
    """Payload access for traces made of 16-byte slots; implements `store.trace.PayloadSource`.

    Args:
        slots: Source of the slots.
        events: First slot and number of slots of each event.
        fragments: Slots of events that are not adjacent.
        byte_order: Byte order of the target, for 64-bit values and text.
        catalogue: Catalogue of the release.

    Attributes:
        listed: Row to variant of the layout, for events whose layout comes from a line of a listing.
        described: As for `store.trace.PayloadSource`.
    """

    def __init__(
        self, slots: SlotSource, events: EventTable, fragments: Fragments, byte_order: str, catalogue: Catalogue
    ) -> None:
        self._slots = slots
        self._is_tolerant = False
        self._events = copy(events)  # the trace's own table refers to the trace, which would be a cycle
        self._fragments = fragments
        self._ahead: WordsAhead | None = None
        self._one_reads_ahead = Lock()
        self._byte_order = byte_order
        self._catalogue = catalogue
        self.listed: dict[int, int] = {}
        self.described: dict[int, UserEvent] = {}

    def check(self) -> None:
        """Raise SourceChangedError if the file is no longer the one that was opened."""
        self._slots.check()

    def close(self) -> None:
        """Close the file; arguments cannot be read any more."""
        self._slots.close()

    def tolerate_loss(self) -> None:
        """From now on, let `decode` report a changed file in place of arguments instead of raising."""
        self._is_tolerant = True

    @property
    def slots(self) -> NDArray[np.uint32]:
        """All slots in file order and host order, shape (n, 4)."""
        self.check()
        return self._slots.read(0, len(self._slots))

    def slots_of(self, event: int) -> NDArray[np.int64]:
        """Return the slot indices of one event, ascending, int64 (slots of the event,)."""
        entry = int(np.searchsorted(self._fragments.event, event))
        if entry < len(self._fragments.event) and self._fragments.event[entry] == event:
            begin, end = self._fragments.start[entry], self._fragments.start[entry + 1]
            return self._fragments.slot[begin:end].astype(np.int64)
        first_slot = int(self._events.slot[event])
        return np.arange(first_slot, first_slot + int(self._events.slot_count[event]))

    def header(self, event: int) -> int:
        """Return the header word of an event's first slot."""
        self.check()
        return int(self._slot(event)[0])

    def headers(self) -> NDArray[np.uint32]:
        """Return the header word of the first slot of every event, uint32 (events,)."""
        self.check()
        return np.ascontiguousarray(self._slots.take_halves(self._events.slot.astype(np.int64), 0)[:, 0])

    def stamp(self, event: int) -> int:
        """Return the 32-bit stamp of an event's first slot."""
        self.check()
        return int(self._slot(event)[1])

    def _slot(self, event: int) -> NDArray[np.uint32]:
        first_slot = int(self._events.slot[event])
        slot: NDArray[np.uint32] = self._slots.read(first_slot, first_slot + 1)[0]
        return slot

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return all payload words of an event in host order, padding included, uint32 (words,)."""
        self.check()
        slots = self.slots_of(event)
        first_slot, end = int(slots[0]), int(slots[-1]) + 1
        # Usually the slots are adjacent and need a single read; slots with others in between are read one by one.
        if end - first_slot == len(slots):
            return self._slots.read(first_slot, end)[:, 2:4].ravel()
        return self._slots.take_halves(slots, 1).ravel()

    def raw(self, event: int) -> bytes:
        """Return the payload bytes of an event in the target's byte order."""
        words = self.words(event)
        return words.astype("<u4" if self._byte_order == "little" else ">u4").tobytes()

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the named arguments of one event; `most` limits those of giant events (`PayloadSource.decode`)."""
        try:
            raw = self.raw(event)
        except SourceChangedError as error:
            if not self._is_tolerant:
                raise
            return Payload("lost", (Argument("arguments", 0, "not readable any more", 0, 0, error.what),), (), b"")

        spec = self._catalogue.spec(int(self._events.code[event]))
        payload = decode_payload(spec, raw, self._byte_order, self._catalogue, most, self.listed.get(int(event)))
        description = self.described.get(spec.code)
        return payload if description is None else with_description(payload, description, self._byte_order)

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events, shape (len(events),); 0 if an event is shorter."""
        return np.ascontiguousarray(self.pair(events, word & ~1)[word & 1])

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the payload words `word` and `word` + 1 of many events, like `column`; faster if `word` is even.

        Returns:
            Two arrays, uint32 (len(events),) each.
        """
        if word % 2:
            return self.column(events, word), self.column(events, word + 1)
        out = self._halves(events, word // 2)
        return out[:, 0], out[:, 1]

    @contextmanager
    def reading_ahead(self, events: NDArray[np.uint32]) -> Iterator[None]:
        """Read the first words of many events ahead in a thread, for all code that reads them within the context.

        Args:
            events: uint32 (n,), rows of the event table, ascending.
        """
        if not self._one_reads_ahead.acquire(blocking=False):  # another window of the trace is reading ahead
            yield
            return
        ahead = self._ahead = WordsAhead(self._slots, self._events, self._fragments, events)
        try:
            yield
        finally:
            self._ahead = None
            ahead.close()
            self._one_reads_ahead.release()

    def _halves(self, events: NDArray[np.integer], step: int) -> NDArray[np.uint32]:
        """Return the payload words of slot `step` of each event, uint32 (n, 2); 0 if an event has no such slot."""
        self.check()
        ahead = self._ahead
        words = ahead.halves(events, step) if ahead is not None else None
        if words is not None:
            return words
        slots, inside = self._positions(events, step)
        if inside is None:
            return self._slots.take_halves(slots, 1)
        out = np.zeros((len(events), 2), np.uint32)
        out[inside] = self._slots.take_halves(slots, 1)
        return out

    def _positions(self, events: NDArray[np.integer], step: int) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Return the numbers of slot `step` of events that have it, int64, and a mask of them; None = all."""
        slots = self._events.slot[events].astype(np.int64)
        if step == 0:
            return slots, None
        inside = self._events.slot_count[events] > step
        # Valid for adjacent slots; numbers for fragmented events are corrected next.
        slots += step
        apart, entries = self._apart(events)
        slots[apart] = self._fragments.slots_at(entries, step)
        return slots[inside], inside

    def block(self, events: NDArray[np.integer], count: int) -> NDArray[np.uint32]:
        """Return the first words of many events in one pass over the file, (len(events), count); 0 = not there."""
        self.check()
        steps = (count + 1) // 2
        first_slots, slots = self._events.slot[events].astype(np.int64), self._events.slot_count[events]
        step = np.arange(steps)
        slot_numbers, inside = first_slots[:, None] + step, step < slots[:, None]
        apart, entries = self._apart(events)
        for number in range(1, steps if len(apart) else 1):
            slot_numbers[apart, number] = self._fragments.slots_at(entries, number)
        if inside.all():
            return self._slots.take_halves(slot_numbers.ravel(), 1).reshape(len(events), 2 * steps)[:, :count]
        halves = np.zeros((len(events), steps), np.uint64)
        halves[inside] = np.ascontiguousarray(self._slots.take_halves(slot_numbers[inside], 1)).view(np.uint64)[:, 0]
        return halves.view(np.uint32)[:, :count]

    def _apart(self, events: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions in `events` of those whose slots are not adjacent, and their rows in `Fragments`."""
        table = self._fragments.event
        if not len(table):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        entries = np.searchsorted(table, events)
        entries[entries == len(table)] = 0
        apart = np.flatnonzero(table[entries] == events)
        return apart, entries[apart]

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of payload words of many events, padding included, int64 (len(events),)."""
        return np.asarray(self._events.slot_count[events], np.int64) * 2

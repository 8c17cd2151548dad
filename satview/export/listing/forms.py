"""The printed form of each kind of event: a template, and the columns of printed values that fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.core import printing
from satview.core.printing import LineField
from satview.events import variants, wire
from satview.events.catalogue import Catalogue
from satview.events.layout import SIGEVENT_WORDS, Layout, PayloadPart, layout_of, printed_layout
from satview.events.modes import flag_names
from satview.events.spec import EventSpec, Release, Show
from satview.events.user_events import UserEvent
from satview.events.wire import FAST_WORDS
from satview.formats.kev.payloads import plain_text, sigevent_text, text_as_logged, vendor_text

# Columns of printed values: each converts the payload words of many events of one kind to values for a template.


_LINE_FEED = 0x0A
_PRINTABLE = np.zeros(256, np.bool_)
_PRINTABLE[0x20:0x7F] = True
_SHOWN = _PRINTABLE.copy()
_SHOWN[_LINE_FEED] = True


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events of one kind and size, with payload words in host order, uint32 (m, k)."""

    words: NDArray[np.uint32]
    byte_order: str

    def raw(self, start: int, count: int) -> NDArray[np.uint8]:
        """Return payload words in the target's byte order, uint8 (m, 4 * count)."""
        dtype = "<u4" if self.byte_order == "little" else ">u4"
        part = np.ascontiguousarray(self.words[:, start : start + count]).astype(dtype)
        return part.view(np.uint8).reshape(len(part), 4 * count)

    def wide(self, start: int) -> NDArray[np.uint64]:
        """Return the words `start` and `start + 1` as 64-bit values, uint64 (m,)."""
        halves = self.words[:, start : start + 2].astype(np.uint64)
        return variants.join64(halves[:, 0], halves[:, 1], self.byte_order)


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """The values for one `%` conversion of a template; `field` is the same for the core, if that can make it."""

    values: Callable[[EventGroup], Sequence[Any]]
    field: LineField | None = None

    def __call__(self, group: EventGroup) -> Sequence[Any]:
        """Return the values for the events of a group."""
        return self.values(group)


def unsigned(word: int) -> TemplateColumn:
    """Return a template column that shows payload word number `word` as an unsigned number."""
    return TemplateColumn(lambda group: group.words[:, word].tolist(), LineField(printing.WORD, word))


def swapped(word: int) -> TemplateColumn:
    """Return a template column of a payload word with reversed bytes, as the vendor prints big-endian files."""
    field = LineField(printing.WORD, word, flags=printing.SWAPPED)
    return TemplateColumn(lambda group: group.words[:, word].byteswap().tolist(), field)


def signed_swapped(word: int) -> TemplateColumn:
    """Return a template column that shows a payload word with reversed bytes, as a signed number."""
    return TemplateColumn(
        lambda group: np.ascontiguousarray(group.words[:, word]).byteswap().view(np.int32).tolist(),
        LineField(printing.WORD, word, flags=printing.SWAPPED | printing.SIGNED),
    )


def masked(word: int, mask: int) -> TemplateColumn:
    """Return a template column that shows the bits of a payload word under a mask."""
    field = LineField(printing.WORD, word, mask=mask)
    return TemplateColumn(lambda group: (group.words[:, word] & np.uint32(mask)).tolist(), field)


def signed(word: int) -> TemplateColumn:
    """Return a template column that shows payload word number `word` as a signed number."""
    return TemplateColumn(
        lambda group: np.ascontiguousarray(group.words[:, word]).view(np.int32).tolist(),
        LineField(printing.WORD, word, flags=printing.SIGNED),
    )


def number(part: PayloadPart) -> TemplateColumn:
    """Return a column of a number with the width (one or two words) and sign that a layout gives it."""
    if part.words == 1:
        return signed(part.word) if part.is_signed else unsigned(part.word)
    if part.is_signed:
        field = LineField(printing.WIDE, part.word, flags=printing.SIGNED)
        return TemplateColumn(lambda group: group.wide(part.word).view(np.int64).tolist(), field)
    return TemplateColumn(lambda group: group.wide(part.word).tolist(), LineField(printing.WIDE, part.word))


def message(word: int, count: int, *, has_line_feeds: bool = True) -> TemplateColumn:
    """Return a column of the characters of message words, by the rule of `formats.kev.payloads.message_text`.

    `has_line_feeds` is False for the first printers, which treat a line feed as unprintable.
    """
    return TemplateColumn(
        lambda group: message_texts(group.raw(word, count), _SHOWN if has_line_feeds else _PRINTABLE),
        LineField(printing.MESSAGE, word, count, printing.LINE_FEEDS if has_line_feeds else 0),
    )


def message_texts(raw: NDArray[np.uint8], shown_bytes: NDArray[np.bool_] = _SHOWN) -> list[str]:
    """Return the texts that listings show for message bytes, uint8 (m, 4 * words).

    A word with a byte that is not in `shown_bytes` shows no characters; the text ends with the first word of fewer than
    four.
    """
    words = raw.reshape(len(raw), -1, 4)
    is_text = np.cumprod(words != 0, axis=2, dtype=np.int8).astype(bool)  # up to the first NUL
    length = is_text.sum(axis=2)
    good = (shown_bytes[words] | ~is_text).all(axis=2)
    length[~good] = 0
    goes_on = np.cumprod(length == 4, axis=1, dtype=np.int8).astype(bool)
    length[:, 1:][~goes_on[:, :-1]] = 0
    shown = np.where(np.arange(4) < length[:, :, None], words, 0).reshape(len(raw), -1)
    rows = np.ascontiguousarray(shown).view(f"S{raw.shape[1]}")[:, 0].tolist()
    return b"\0".join(rows).decode("ascii").split("\0")  # one step for all; no text holds a NUL


def texts(part: PayloadPart, show: Callable[[bytes], str]) -> TemplateColumn:
    """Return a column of a text in the payload; `show` converts its bytes to what is printed."""

    def column(group: EventGroup) -> list[str]:
        raw = group.raw(part.word, group.words.shape[1] - part.word)
        if not part.text_index:
            return [show(bytes(row)) for row in raw]
        return [
            show(b"".join(bytes(row).split(b"\0", part.text_index + 1)[part.text_index : part.text_index + 1]))
            for row in raw
        ]

    return TemplateColumn(column)


def user_tails(*, is_vendor: bool) -> TemplateColumn:
    """Return a column with the arguments of user events of more than two words, as the printer of 6.x writes them."""

    def column(group: EventGroup) -> list[str]:
        raw = group.raw(0, group.words.shape[1])
        if is_vendor:  # it prints everything as text and overwrites the last byte with NUL
            return [f' STR:"{vendor_text(bytes(row[:-1]))}"' for row in raw]
        return [_user_tail(bytes(row), words) for row, words in zip(raw, group.words.tolist(), strict=True)]

    return TemplateColumn(column)


def _user_tail(raw: bytes, words: list[int]) -> str:
    if variants.user_text(raw) is not None:
        return f' STR:"{plain_text(raw)}"'
    # As 7.1 prints it: a possible text and all words, so that no data is hidden.
    text = f' STR:"{plain_text(raw)}"' if variants.has_letters(raw) else ""
    return f"{text}, {word_list(words)}"


def word_list(words: Sequence[int]) -> str:
    """Return the words as text, `d0:0x00000001 d1:...`."""
    return " ".join(f"d{index}:0x{word:08x}" for index, word in enumerate(words))


def user_texts_and_words(*, is_vendor: bool) -> TemplateColumn:
    """Return a column with the arguments of user events of more than two words, as the printer of 7.1 writes them."""

    def column(group: EventGroup) -> list[str]:
        show = vendor_text if is_vendor else plain_text
        raw = group.raw(0, group.words.shape[1])
        return [
            f'STR:"{show(bytes(row))}", {word_list(words)}'
            for row, words in zip(raw, group.words.tolist(), strict=True)
        ]

    return TemplateColumn(column)


def sigevents(word: int, *, is_vendor: bool) -> TemplateColumn:
    """Return a column of sigevents of 6.x as text.

    The vendor's printer shows the type of an unknown sigevent without its flags. In a big-endian file it reads the
    halves of the last word as little-endian numbers, sign-extends them to 32 bits and reverses the four bytes.
    """

    def column(group: EventGroup) -> list[str]:
        raw = group.raw(word + 3, 1).copy()
        if is_vendor and group.byte_order == "big":
            halves = raw.view("<i2").astype(np.int32).byteswap().tolist()
        else:
            halves = raw.view("<i2" if group.byte_order == "little" else ">i2").tolist()
        words = group.words[:, word : word + SIGEVENT_WORDS].tolist()
        return [
            sigevent_text(notify, number, value, code, priority, is_vendor=is_vendor)
            for (notify, number, value, _), (code, priority) in zip(words, halves, strict=True)
        ]

    return TemplateColumn(column)


def flag_words(word: int, table: dict[int, str]) -> TemplateColumn:
    """Return a column with the names of the bits set in a word, each after a blank, in the order of the table."""

    def column(group: EventGroup) -> list[str]:
        values = group.words[:, word]
        kinds, inverse = np.unique(values, return_inverse=True)
        names = ["".join(f" {name}" for bit, name in table.items() if kind & bit) for kind in kinds.tolist()]
        return [names[index] for index in inverse.ravel().tolist()]

    return TemplateColumn(column)


def fields_column(event: UserEvent, count: int, index: int | None = None) -> TemplateColumn:
    """Return a column of the user's fields of an event: ` label:value` for all fields, or the value of one field.

    Args:
        event: The user's description of the event.
        count: Number of payload words.
        index: The field; empty text if the payload has no such field. None = all fields.
    """
    is_wide = not variants.is_user(event.code) and count > FAST_WORDS

    def text_of(payload: bytes, byte_order: str) -> str:
        shown = event.shown(payload, byte_order, is_wide=is_wide)
        if index is None:
            return "".join(f" {field.label}:{text}" for field, _, _, text in shown)
        return next((text for field, _, _, text in shown if field is event.fields[index]), "")

    def values(group: EventGroup) -> list[str]:
        raw = group.raw(0, count)
        payloads, number = np.unique(raw.view(f"V{raw.shape[1]}")[:, 0], return_inverse=True)
        texts = [text_of(payload, group.byte_order) for payload in payloads.tolist()]
        return [texts[which] for which in number.reshape(-1).tolist()]

    return TemplateColumn(values)


# The printed form of each kind of event: a template and the columns that fill it, made once for each kind and size.
#
# Source: listing format, sections 3, 4 and 7. A template follows from the catalogue's argument lists or from a special
# form below, never from a single event.


_UNPADDED_6 = ("ADDRESS", "FUNC_ENTER", "FUNC_EXIT", "SLOG", "MSG_ERROR")
_LABEL_WIDTHS_6 = {"THREAD": 13, "VTHREAD": 13, "PROCESS": 13, "COMM": 13, "SYSTEM": 15}
_ONE_LINE_7 = ("THREAD", "VTHREAD", "QVM")
_DROPPED_BY_VENDOR_6 = ("RESERVED", "BUFFER_END", "DROPPED", "COMPACTION")
# Printers take every exit of two words that begins with -1 for a failed call.
_PRINTED_AS_FAILED = (variants.FAILED, variants.FAILED_UNKNOWN, variants.DOUBTFUL)
MISPLACED_BAD = 101  # the sources of the 6.4 printer have BAD here, one above its position in every release


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a listing.

    Attributes:
        layout: `6`, `7` or `8`; `6.1` for the layout of the first printers.
        is_vendor: Whether to reproduce the deterministic defects of the vendor's printer.
        is_one_line: `-n`: arguments of long events on one line.
        notations: (class, event, argument) -> `%` template, for arguments whose notation differs from the layout's.
    """

    layout: str
    release: Release
    byte_order: str = "little"
    is_vendor: bool = False
    is_one_line: bool = False
    notations: Mapping[tuple[str, str, str], str] = field(default_factory=dict, compare=False)

    @property
    def is_old(self) -> bool:
        """True for the layouts of 6.x."""
        return self.layout.startswith("6")

    @property
    def is_first(self) -> bool:
        """True for the printers of 6.1 and 6.2."""
        return self.layout == "6.1"


@dataclass(frozen=True, slots=True)
class Form:
    """A `%` template of everything after `CPU:00 `, line end included, and its columns.

    Attributes:
        columns: Columns with the values of its conversions, in order.
        names: Class and event, if a format of `-p` prints them; the template then begins with the arguments.
    """

    template: str
    columns: tuple[TemplateColumn, ...] = ()
    names: tuple[str, str] = ("", "")
    event: int = 0


def make_form(
    spec: EventSpec, count: int, style: Style, names: Catalogue, variant: int = variants.BY_COUNT
) -> Form | None:
    """Return the form of a kind of event; None if the events are not printed."""
    if style.is_vendor and style.is_old and not _is_known_to_vendor(spec):
        return None
    listed_code = spec.code
    if style.is_vendor and style.is_old and (spec.code & 0x7F) == MISPLACED_BAD and spec.code >> 10 == 2:
        listed_code = names.find(f"{spec.class_name}/BAD")[0]
        spec = replace(names.spec(listed_code), code=spec.code)
    if variant >= variants.LISTED:
        layout = printed_layout(names.release, listed_code, count, variant)
        if spec.class_name == "USREVENT" and layout is not None:
            return _listed_user(spec, layout, style)
        return _listed(spec, count, style, layout)
    special = _SPECIAL.get((spec.class_name, spec.name)) or _SPECIAL.get((spec.class_name, ""))
    form = special(spec, count, style) if special else None
    if form:
        return form
    if (count == 2 and variant in _PRINTED_AS_FAILED) or variant == variants.FAILED_FOR_VENDOR:
        return _failed(spec, style)
    return _listed(spec, count, style, printed_layout(names.release, listed_code, count, variant))


def _is_known_to_vendor(spec: EventSpec) -> bool:
    wire_class, call = wire.class_of(spec.code), wire.event_of(spec.code) & 0x7F
    if wire_class == wire.WireClass.KER_CALL and spec.class_name in ("KER_CALL", "KER_EXIT", "INT_CALL"):
        # 6.4 has no call of 64 bits, and none that is entered, left and interrupted at once.
        is_one_of_three = wire.event_of(spec.code) >> 7 < 3
        return is_one_of_three and (call == MISPLACED_BAD or (spec.is_known and spec.name != "BAD"))
    return spec.is_known and wire_class <= wire.WireClass.COMM and spec.name not in _DROPPED_BY_VENDOR_6


# Columns before the arguments.


def class_column(spec: EventSpec, style: Style) -> str:
    """Return the padded class name with its colon."""
    return f"{spec.class_name:<8}:" if style.is_old else f"{spec.class_name:<15} :"


def event_column(spec: EventSpec, style: Style) -> str:
    """Return the padded name or label of the event, with the number of a kernel call."""
    # Real listings of 7.x show the name of a kernel call, also if the guide shows a different label.
    has_label = style.release == Release.QNX_6 or spec.class_name in ("SYSTEM", "QVM")
    name = (spec.label if has_label else "") or spec.name
    if spec.class_name in ("KER_CALL", "KER_EXIT") and wire.class_of(spec.code) == wire.WireClass.KER_CALL:
        name = f"{name}/{wire.event_of(spec.code) & 0x7F:02d}"
    if spec.class_name == "VTHREAD" and name not in ("VTHCREATE", "VTHDESTROY"):
        name = name.removeprefix("V")  # printed with the state name of threads
    if not style.is_old:
        return f"{name:<18}"
    width = 0 if name in _UNPADDED_6 else _LABEL_WIDTHS_6.get(spec.class_name, 0)
    return f"{name:<{width}}" if width else name


# Arguments.


def _head(spec: EventSpec, style: Style) -> str:
    return (class_column(spec, style) + event_column(spec, style)).replace("%", "%%")


def _failed(spec: EventSpec, style: Style) -> Form:
    errno = signed_swapped(1) if style.is_vendor and style.byte_order == "big" else signed(1)
    end = "" if style.is_vendor and style.is_old else "\n"
    return Form(f"{_head(spec, style)} ret_val:-1, errno:%d{end}", (errno,))


def _listed(spec: EventSpec, count: int, style: Style, layout: Layout | None) -> Form:
    head = _head(spec, style)
    if layout is None:
        pairs = [(f"word {index}", "0x%08x", (unsigned(index),)) for index in range(count)]
        return Form(
            head + "".join(f" {name}:{template}" for name, template, _ in pairs) + "\n",
            tuple(column for _, _, filled in pairs for column in filled),
        )
    is_long = count > 2 or (spec.class_name, spec.name) == ("SYSTEM", "APS_NAME")
    is_state = spec.class_name == "THREAD" and spec.name not in ("THCREATE", "THDESTROY")
    one_line = style.is_one_line or not is_long or is_state or (not style.is_old and spec.class_name in _ONE_LINE_7)
    template, all_columns = head, []
    for name, value, filled in _values_of(spec, layout, style):
        template += f" {name}:{value}" if one_line else f"\n{name.rjust(26)}:{value}"
        all_columns += filled
    end = " \n" if is_state and count == 2 and style.is_old and not style.is_first else "\n"
    return Form(template + end, tuple(all_columns))


def _listed_user(spec: EventSpec, layout: Layout, style: Style) -> Form:
    """Return the form of a user event of a listing whose text and payload words disagree: the text, then the words."""
    event = f"EVENT:{wire.event_of(spec.code)}"
    shown = _values_of(spec, layout, style)
    texts = [f"{name}:{value}" for name, value, _ in shown if name == "STR"]
    words = [f"{name}:{value}" for name, value, _ in shown if name != "STR"]
    ordered = sorted(shown, key=lambda item: item[0] != "STR")
    text = ", ".join((*texts, *([" ".join(words)] if words else ())))
    head = (
        f"{class_column(spec, style)}{event}{'' if texts else ','} "
        if style.is_old
        else (f"{class_column(spec, style)}{event:<18} ")
    )
    return Form(f"{head}{text}\n", tuple(column for _, _, filled in ordered for column in filled))


def _values_of(spec: EventSpec, layout: Layout, style: Style) -> list[tuple[str, str, list[TemplateColumn]]]:
    """Return (name, template, columns) of every argument of a printed layout; `%` in names is escaped."""
    arguments = []
    for index, part in enumerate(layout.parts):
        name = part.name.replace("%", "%%")
        if part.is_text:
            arguments.append(
                (name, part.template or "%s", [texts(part, vendor_text if style.is_vendor else text_as_logged)])
            )
        elif part.show is Show.STRUCT:
            break
        elif part.show is Show.MSG:
            arguments.append((name, *_message(part.word, layout.message_words(index), style)))
        elif part.show is not Show.MSG_MORE:
            learned = part.template or style.notations.get((spec.class_name, spec.name, part.name))
            arguments.append((name, *(_learned(part, learned) if learned else _number(part, style))))
    return arguments


def _message(start: int, words: int, style: Style) -> tuple[str, list[TemplateColumn]]:
    word = swapped if style.is_vendor and style.byte_order == "big" else unsigned
    numbers = " ".join(["0x%08x"] * words)
    text = message(start, words, has_line_feeds=not style.is_first)
    return f'"%s" ({numbers})', [text, *(word(start + index) for index in range(words))]


def _learned(part: PayloadPart, template: str) -> tuple[str, list[TemplateColumn]]:
    show = Show.DEC if template == "%d" else Show.HEX
    return template, [number(replace(part, show=show))]


def _number(part: PayloadPart, style: Style) -> tuple[str, list[TemplateColumn]]:
    column = number(part)
    if part.is_signed:
        return "%d", [column]
    if style.is_old and part.show == Show.POINTER:
        return "%x", [column]
    if style.is_old and part.words == 2:
        return "0x%x", [column]
    return ("0x%016x" if part.words == 2 else "0x%08x"), [column]


# Kinds with a form of their own.


def _time(spec: EventSpec, _count: int, style: Style) -> Form:
    comma = "," if style.is_first else ""
    name = "TIME" if style.is_old else f"{'TIME':<18}"
    template = f"{class_column(spec, style)}{name} msb:0x%08x{comma} lsb(offset):0x%08x\n"
    return Form(template, (unsigned(0), unsigned(1)))


def _buffer(spec: EventSpec, _count: int, style: Style) -> Form | None:
    if style.is_first and style.is_vendor:
        return None
    if style.is_old:
        sequence = masked(0, 0x7FF) if style.is_vendor else unsigned(0)
        return Form("CONTROL: BUFFER sequence = %d, num_events = %d\n", (sequence, signed(1)))
    head = f"{class_column(spec, style)}{'BUFFER':<18}"
    return Form(f"{head} sequence = %d, num_events = %d\n\n", (unsigned(0), signed(1)))


def _buffer_end(spec: EventSpec, _count: int, style: Style) -> Form:
    head = f"{class_column(spec, style)}{'BUFFER_END':<18}"
    return Form(f"{head} cookie1 = %x, cookie2 = %x\n", (unsigned(0), unsigned(1)))


def _parts(spec: EventSpec, count: int, style: Style) -> dict[str, PayloadPart]:
    """Return the arguments of a payload of `count` words by name; empty if no argument list fits."""
    return {part.name: part for part in layout_of(style.release, spec.code, count).parts}


def _vector(parts: dict[str, PayloadPart]) -> tuple[TemplateColumn, TemplateColumn]:
    """Return the columns of an interrupt's number: unsigned for hexadecimal, signed for decimal."""
    word = parts["interrupt_number"].word
    return unsigned(word), signed(word)


def _address(part: PayloadPart) -> tuple[str, TemplateColumn]:
    return ("0x%016x" if part.words == 2 else "0x%08x"), number(part)


def _interrupt_entry(spec: EventSpec, count: int, style: Style) -> Form | None:
    parts = _parts(spec, count, style)
    if "ip" not in parts:
        return None
    template, address = _address(parts["ip"])
    text = " inkernel=0x%08x" if style.is_first else f"       IP:{template}"
    return Form(f"{class_column(spec, style)}0x%08x (%d){text}\n", (*_vector(parts), address))


def _interrupt_exit(spec: EventSpec, count: int, style: Style) -> Form | None:
    parts = _parts(spec, count, style)
    flags = parts.get("inkernel") or parts.get("kernel_flag")
    if flags is None:
        return None
    mark = "=" if style.is_first else ":"
    return Form(
        f"{class_column(spec, style)}0x%08x (%d) inkernel{mark}0x%08x\n",
        (*_vector(parts), unsigned(flags.word)),
    )


def _handler_entry(spec: EventSpec, count: int, style: Style) -> Form | None:
    parts = _parts(spec, count, style)
    if "area" not in parts:
        return None
    (ip, ip_column), (area, area_column) = _address(parts["ip"]), _address(parts["area"])
    return Form(
        f"{class_column(spec, style)}0x%08x (%d)       PID:%d IP:{ip} AREA:{area}\n",
        (*_vector(parts), number(parts["pid"]), ip_column, area_column),
    )


def _handler_exit(spec: EventSpec, count: int, style: Style) -> Form | None:
    parts = _parts(spec, count, style)
    if "sigevent" not in parts or count < 5:
        return None
    head, event = class_column(spec, style) + "0x%08x (%d) SIGEVENT:", parts["sigevent"]
    if event.words:
        return Form(f"{head}%s\n", (*_vector(parts), sigevents(event.word, is_vendor=style.is_vendor)))
    words = range(event.word, count)
    return Form(head + " ".join("0x%08x" for _ in words) + "\n", (*_vector(parts), *(unsigned(word) for word in words)))


def _interrupted(spec: EventSpec, _count: int, style: Style) -> Form:
    label = f"KER_{spec.name.replace('EVENT ', 'EVENT_')}/{wire.event_of(spec.code) & 0x7F}"
    return Form(f"{class_column(spec, style)}{label if style.is_old else f'{label:<18}'}\n")


def _user(spec: EventSpec, count: int, style: Style) -> Form:
    event = f"EVENT:{wire.event_of(spec.code)}"
    words = (unsigned(0), unsigned(1))
    if style.is_old:
        if count == 2:
            return Form(f"{class_column(spec, style)}{event}, d0:0x%08x d1:0x%08x\n", words)
        return Form(f"{class_column(spec, style)}{event}%s\n", (user_tails(is_vendor=style.is_vendor),))
    head = f"{class_column(spec, style)}{event:<18} "
    if count == 2:
        return Form(f"{head}d0:0x%08x d1:0x%08x\n", words)
    return Form(f"{head}%s\n", (user_texts_and_words(is_vendor=style.is_vendor),))


def _profile(spec: EventSpec, count: int, style: Style) -> Form | None:
    parts = _parts(spec, count, style)
    if style.is_old or not {"ip", "tid", "pid"} <= parts.keys():
        return None
    head = f"{class_column(spec, style)}{event_column(spec, style)}"
    numbers = [unsigned(parts[name].word) for name in ("tid", "pid")]
    return Form(f"{head} ip = 0x%014x, tid = 0x%06x, pid = 0x%06x\n", (number(parts["ip"]), *numbers))


def _timer(spec: EventSpec, count: int, style: Style) -> Form | None:
    parts = _parts(spec, count, style)
    if style.is_old or not {"pid", "tid", "timer_id", "flags"} <= parts.keys():
        return None
    head = f"{class_column(spec, style)}{event_column(spec, style)}"
    numbers = [signed(parts[name].word) for name in ("pid", "tid", "timer_id")]
    flags = parts["flags"].word
    return Form(
        f"{head} pid:%d tid:%d timer_id:%d flags:0x%08x%s\n",
        (*numbers, unsigned(flags), flag_words(flags, flag_names("timer"))),
    )


def _deliver(spec: EventSpec, count: int, style: Style) -> Form | None:
    part = _parts(spec, count, style).get("intr_id")
    if part is None:
        return None
    return Form(
        f"{class_column(spec, style)}{spec.name:<18}intr_id:0x%x(%d)\n",
        (unsigned(part.word), signed(part.word)),
    )


Maker = Callable[[EventSpec, int, Style], Form | None]
_SPECIAL: dict[tuple[str, str], Maker] = {
    ("CONTROL", "TIME"): _time,
    ("CONTROL", "BUFFER"): _buffer,
    ("CONTROL", "BUFFER_END"): _buffer_end,
    ("INT_ENTR", ""): _interrupt_entry,
    ("INT_EXIT", ""): _interrupt_exit,
    ("INT_HANDLER_ENTR", ""): _handler_entry,
    ("INT_HANDLER_EXIT", ""): _handler_exit,
    ("INTERRUPT", ""): _deliver,
    ("INT_CALL", ""): _interrupted,
    ("USREVENT", ""): _user,
    ("SYSTEM", "PROFILE_64"): _profile,
    ("SYSTEM", "TIMER"): _timer,
}

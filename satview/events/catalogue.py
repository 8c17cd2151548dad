"""Catalogues of events, states and errors, the kernel calls of each release, and texts for values of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from threading import Lock
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import visible_line
from satview.events import linux, naming, rows, states, unixware, wire
from satview.events.modes import flag_names
from satview.events.spec import ClassSpec, EventSpec, Release
from satview.events.user_events import ValueText
from satview.events.wire import WireClass

# Catalogues of events, states and errors, by number and by name: one per release, and combined ones.
#
# The data is under `resources/events`; this module only reads and indexes it.


class _Events(Protocol):
    """Interface of the modules that describe events of other operating systems."""

    def names(self) -> dict[int, naming.CodeName]: ...

    def classes(self) -> tuple[ClassSpec, ...]: ...

    def class_indices(self) -> NDArray[np.uint8]: ...

    def state_values(self) -> NDArray[np.uint8]: ...

    def unnamed(self, code: int) -> str: ...

    def spec(self, code: int, class_name: str) -> EventSpec: ...


_FOREIGN: Final[dict[Release, _Events]] = {Release.UNIXWARE: unixware, Release.LINUX: linux}


_LEARNING: Final = Lock()
_CLASS_BEFORE: Final = re.compile(r"(\w+)(?: *: *| +)(?=[^\W\d])")  # a class before a name, as listings print it
_NUMBERED: Final = re.compile(r"(.+)/(\d{1,3})")  # a kernel call with its number, as listings print it
FREE_CLASSES: Final = range(wire.CLASS_MASK, 11, -1)  # internal classes that no release of QNX defines
_MOST_LEARNED: Final = 1 << 12
_LONGEST_NAME: Final = 80
_MOST_CLASSES: Final = 200  # the index of a class has eight bits


class Catalogue:
    """The names, codes and argument lists of all events of one release.

    Attributes:
        classes: Printed classes in table order, then one entry (`CLASS 12`) for each undefined internal class.
        class_index_of_code: Shape (32768,), uint8, row in `classes` of every code.
        learned: (class, event) -> code of events that listings showed; empty except in a `ListedCatalogue`.
        state_value_of_code: Shape (32768,), uint8, lane value of thread state events, `states.NOT_A_STATE` otherwise;
            virtual threads, CREATE and DESTROY are no states.
    """

    def __init__(self, release: Release) -> None:
        self.release = release
        self._foreign = _FOREIGN.get(release)
        self._names = self._foreign.names() if self._foreign else naming.names(release)
        self.classes: tuple[ClassSpec, ...] = (
            self._foreign.classes() if self._foreign else (*wire.printed_classes(), *wire.undefined_classes())
        )
        self.class_index_of_code = self._class_indices()
        self.state_value_of_code = self._state_values()
        self._codes = tuple(sorted(self._names))
        self._specs: dict[int, EventSpec] = {}
        self._by_name: dict[str, tuple[int, ...]] = {}
        self._by_label: dict[str, tuple[int, ...]] = {}
        self.learned: dict[tuple[str, str], int] = {}

    def spec(self, code: int) -> EventSpec:
        """Return the description of a code; codes that no table names get a spec with `is_known` False."""
        code &= wire.CODE_MASK
        spec = self._specs.get(code)
        if spec is None:
            spec = self._specs[code] = self._make_spec(code)
        return spec

    def codes(self) -> tuple[int, ...]:
        """Return all codes that a table of the release names, ascending."""
        return self._codes

    def name(self, code: int) -> str:
        """Return the name of a code without reading any argument list."""
        known = self._names.get(code)
        if known is None and self._foreign:
            return self._foreign.unnamed(code)
        return known.name if known else naming.unnamed(code, self.release)

    def class_name(self, code: int) -> str:
        """Return the printed class of a code."""
        return self.classes[int(self.class_index_of_code[code])].name

    def find(self, name: str) -> tuple[int, ...]:
        """Return the codes of the events with the given name, in any case, ascending; empty if there are none.

        Accepted are names of listings (`MSG_SENDV`, `THRUNNING`, `SND_MESSAGE`), optionally after a class
        (`KER_CALL/MSG_SENDV`, `COMM SND_MESSAGE`, `KER_CALL:MSG_SENDV/11`), names for TraceEvent()
        (`_NTO_TRACE_COMM_SMSG`, `__KER_MSG_SENDV`), and public functions that make a kernel call (`MsgSendv`,
        `MsgSend()`). The name of a kernel call finds its entry, exit and interrupted event, in both widths.
        """
        if not self._by_name:
            self._by_name = self._index_names()
        key = name.strip().upper().removesuffix("()")
        if key not in self._by_name:
            key = _CLASS_BEFORE.sub(r"\1/", key)
        user = re.fullmatch(r"(?:USREVENT/)?EVENT[ :]?(\d{1,4})", key)
        if user and int(user[1]) <= wire.EVENT_MASK:  # a listing may have taught a larger number
            return (wire.code(WireClass.USER, int(user[1])),)
        if key not in self._by_name and (numbered := _NUMBERED.fullmatch(key)):
            return tuple(
                code for code in self._by_name.get(numbered[1], ())
                if wire.class_of(code) == WireClass.KER_CALL and wire.event_of(code) & 0x7F == int(numbered[2])
            )  # fmt: skip
        return self._by_name.get(key, ())

    def find_shown(self, name: str) -> tuple[int, ...]:
        """Return the codes of events whose name or label (`EventSpec.label`) is the given text, ascending."""
        if not self._by_label:
            self._by_label = self._index_labels()
        # Events learned from a listing may be named `EVENT 5` in classes other than that of user events.
        codes, key = self.find(name), name.strip().upper()
        return tuple(sorted({*codes, *self._by_name.get(key, ()), *self._by_label.get(key, ())}))

    def suggest(self, name: str) -> tuple[str, ...]:
        """Return up to five known names that are similar to an unknown one."""
        self.find("")

        near = get_close_matches(name.strip().upper(), self._by_name, n=5, cutoff=0.6)
        return tuple(near)

    def kernel_call_number(self, name: str) -> int | None:
        """Return the number of a kernel call (`MSG_SENDV`, `__KER_MSG_SENDV`), None if the release has none."""
        for code in self.find(name):
            if wire.class_of(code) == WireClass.KER_CALL:
                return wire.event_of(code) & 0x7F
        return None

    def errno_name(self, number: int) -> str | None:
        """Return the name of a QNX error number, None if it has none."""
        return _errno().get(number)

    def _class_indices(self) -> NDArray[np.uint8]:
        if self._foreign:
            return self._foreign.class_indices()
        row = {spec.name: index for index, spec in enumerate(self.classes)}
        table = np.zeros(wire.CODE_COUNT, dtype=np.uint8)
        for number in range(wire.CLASS_MASK + 1):
            first_code = wire.code(number, 0)
            for event in naming.class_starts(number):
                code = first_code + event
                table[code : first_code + wire.EVENT_MASK + 1] = row[naming.class_of_unnamed(code, self.release)]
        for code, known in self._names.items():
            table[code] = row[known.class_name]
        table.setflags(write=False)
        return table

    def _state_values(self) -> NDArray[np.uint8]:
        if self._foreign:
            return self._foreign.state_values()
        table = np.full(wire.CODE_COUNT, states.NOT_A_STATE, dtype=np.uint8)
        for code, known in self._names.items():
            if known.class_name == "THREAD" and known.key in states.STATE_BY_NAME:
                table[code] = states.STATE_BY_NAME[known.key].value
        table.setflags(write=False)
        return table

    def _make_spec(self, code: int) -> EventSpec:
        known = self._names.get(code)
        if self._foreign:
            return self._foreign.spec(code, self.class_name(code))
        if known is None:
            return EventSpec(code, self.class_name(code), naming.unnamed(code, self.release), is_known=False)
        fast, wide = naming.lists_of(known, self.release)
        return EventSpec(
            code,
            known.class_name,
            known.name,
            naming.label_of(known, self.release),
            fast,
            wide,
            naming.calls_of(known),
            naming.when_of(known),
            known.is_64bit,
            notes=naming.notes_of(known, self.release),
        )

    def _index_names(self) -> dict[str, tuple[int, ...]]:
        index: dict[str, tuple[int, ...]] = {}
        for code in self._codes:
            known = self._names[code]
            if known.class_name == "USREVENT":
                continue
            for spelling in self._spellings(known):
                index[spelling] = (*index.get(spelling, ()), code)
        public: dict[str, tuple[int, ...]] = {}
        for code in self._codes:
            for call in self.spec(code).calls:
                public[call.upper()] = (*public.get(call.upper(), ()), code)
        return public | index

    def _index_labels(self) -> dict[str, tuple[int, ...]]:
        index: dict[str, tuple[int, ...]] = {}
        for code in self._codes:
            label = self.spec(code).label.upper()
            if label:
                index[label] = (*index.get(label, ()), code)
        return index

    def _spellings(self, known: naming.CodeName) -> set[str]:
        names = {known.name, known.symbol}
        if known.symbol.startswith("_NTO_TRACE_"):
            short = known.symbol.removeprefix("_NTO_TRACE_")
            names |= {short, short.removeprefix("SYS_").removeprefix("COMM_")}
        if known.is_64bit:  # a name without `_64` finds both forms, as it does for kernel calls
            names |= {name.removesuffix("_64") for name in names}
        return {text.upper() for name in names if name for text in (name, f"{known.class_name}/{name}")}


class ListedCatalogue(Catalogue):
    """The events of one release and, under unused codes, events that listings showed.

    Used for traces read from listings and for filters; in a .kev file these additional codes have no meaning.
    """

    def __init__(self, release: Release) -> None:
        super().__init__(release)
        self._spare = (wire.code(free, event) for free in FREE_CLASSES for event in range(wire.EVENT_MASK, -1, -1))

    def learn(self, class_name: str, name: str, number: int | None = None) -> int | None:
        """Return the code of an event that a listing shows, and add it (and its class) if it is unknown; None if full.

        `number` is that of the kernel call as printed; None for other events.
        """
        class_name, name = class_name[:_LONGEST_NAME], name[:_LONGEST_NAME]
        with _LEARNING:
            full_name = name if number is None else f"{name}/{number:02d}"
            for known in (name, full_name):
                if codes := self.find(f"{class_name}/{known}"):
                    return codes[0]
            if len(self.learned) >= _MOST_LEARNED:
                return None
            own = (code for code in self._own_codes(class_name, name, number) if code not in self._names)
            code = next(own, None)
            if code is None:
                code, name = next(self._spare, None), full_name  # the number may belong to another call
            if code is None:
                return None
            rows = [spec.name for spec in self.classes]
            if class_name not in rows:
                if len(rows) >= _MOST_CLASSES:
                    return None
                self.classes = (*self.classes, ClassSpec(class_name, class_name, None, wire.class_of(code)))
                rows.append(class_name)
            table = self.class_index_of_code.copy()
            table[code] = rows.index(class_name)
            table.setflags(write=False)
            # Other threads may read the tables meanwhile, so that these are replaced, never changed.
            self.class_index_of_code = table
            if not self.learned:
                self._names = dict(self._names)  # all catalogues of the release shared it until now
            self._names[code] = naming.CodeName(class_name, name, "", "", name)
            self._codes = tuple(sorted((*self._codes, code)))
            self.learned[class_name, name] = code
            self._specs.pop(code, None)
            for spelling in self._spellings(self._names[code]):
                self._by_name[spelling] = (*self._by_name.get(spelling, ()), code)
            return code

    def learned_call(self, name: str, offset: int) -> int | None:
        """Return the code of a kernel call that `learn` has added; None if no added call has the name.

        Args:
            name: Name as printed.
            offset: Value that `naming.KER_CLASSES` adds to call numbers for entries, exits or interrupted calls.
        """
        class_name = next(name for name, class_offset in naming.KER_CLASSES if class_offset == offset)
        return self.learned.get((class_name, name))

    def _own_codes(self, class_name: str, name: str, number: int | None) -> Iterator[int]:
        """Yield the codes that a new event of a known class may get, used ones included, the highest first."""
        known = next((spec.internal for spec in self.classes if spec.name == class_name), None)
        offset = dict(naming.KER_CLASSES).get(class_name)
        if offset is not None and number is not None:
            numbers: Iterable[int] = [number + offset] if number < wire.KER_EXIT_OFFSET else []
        elif offset is not None:  # entry and exit of a call have one number
            calls = [code & 0x7F for (_, other), code in self.learned.items() if other == name]
            numbers = [call + offset for call in (*calls, *range(wire.KER_EXIT_OFFSET - 1, -1, -1))]
        elif class_name in ("THREAD", "VTHREAD"):
            numbers = range(63, 31, -1) if class_name == "VTHREAD" else range(31, -1, -1)
        else:
            numbers = range(wire.EVENT_MASK, 63 if known == WireClass.PR_TH else -1, -1)
        return (wire.code(known, event) for event in numbers) if known is not None else iter(())


@cache
def catalogue(release: Release) -> Catalogue:
    """Return the catalogue of a release, which all callers share."""
    return Catalogue(release)


@cache
def listed_catalogue(release: Release) -> ListedCatalogue:
    """Return the catalogue of a release, shared by all of its listings in this process, which add events to it."""
    return ListedCatalogue(release)


@cache
def _errno() -> dict[int, str]:
    return rows.numbers("errno", "errno")


def release_of(sys_release: str) -> Release | None:
    """Return the release for a value of TRACE_SYS_RELEASE: `6.4.1` is 6.x, `7.1.0` is 7.x; None if it is unknown."""
    version = re.match(r"\s*([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", sys_release)
    if not version:
        return None
    major, minor = int(version[1]), int(version[2])
    if major == 6:
        return Release.QNX_6_6 if minor >= 6 else Release.QNX_6
    return {7: Release.QNX_7, 8: Release.QNX_8}.get(major)


class CombinedCatalogue(Catalogue):
    """The catalogue of one release, to which events of other releases are added under unused codes.

    An event of another release that has the same class and name in the first release gets the code from there.
    """

    def __init__(self, base: Catalogue) -> None:
        """Create the catalogue with the events of one release, whose codes do not change."""
        super().__init__(base.release)
        self._base = base
        if base.learned:  # events that a listing showed
            self._names, self.classes, self._codes = dict(base._names), base.classes, base.codes()
        self._more: dict[int, tuple[Catalogue, int]] = {}
        self._added: dict[tuple[Release, int], int] = {}
        self._code_of = {self._key(base, code): code for code in base.codes()}
        self._used = set(base.codes())
        self._free = self._codes_to_give()
        self.class_index_of_code = base.class_index_of_code.copy()
        self.state_value_of_code = base.state_value_of_code.copy()

    def take(self, other: Catalogue, logged: NDArray[np.integer]) -> NDArray[np.uint16]:
        """Add the events `logged` in a trace of another catalogue; return a table from the codes there to those here.

        The table is uint16 (32768,), 0 for codes that are not logged. Raises ValueError if there is no code left.
        """
        table = np.zeros(wire.CODE_COUNT, np.uint16)
        if other is self._base:
            table[:] = np.arange(wire.CODE_COUNT)
            return table
        for code in logged.tolist():
            known = self._code_of.get(self._key(other, code), self._added.get((other.release, code)))
            if known is None:
                known = self._added[other.release, code] = self._add(other, code)
            table[code] = known
        return table

    def freeze(self) -> None:
        """Make the tables read-only."""
        for table in (self.class_index_of_code, self.state_value_of_code):
            table.setflags(write=False)

    def spec(self, code: int) -> EventSpec:
        """Return the description of a code, from the release that it belongs to."""
        if (origin := self._more.get(code)) is not None:
            return replace(origin[0].spec(origin[1]), code=code)
        return super().spec(code)

    def codes(self) -> tuple[int, ...]:
        """Return all codes that a table of any of the releases names, ascending."""
        return (*super().codes(), *sorted(self._more))

    def name(self, code: int) -> str:
        """Return the name of a code."""
        if (origin := self._more.get(code)) is not None:
            return origin[0].name(origin[1])
        return super().name(code)

    def find(self, name: str) -> tuple[int, ...]:
        """Return the codes of the events that have the given name in any of the releases, ascending."""
        more = [code for code, (other, own) in self._more.items() if own in other.find(name)]
        return tuple(sorted({*super().find(name), *more}))

    @staticmethod
    def _key(catalogue: Catalogue, code: int) -> tuple[int, str, str, bool]:
        # The internal class is part of the key: foreign formats have classes of their own and several codes per name.
        spec = catalogue.spec(code)
        return wire.class_of(code), spec.class_name, spec.name, spec.is_64bit

    @staticmethod
    def _codes_to_give() -> Iterator[int]:
        for number in FREE_CLASSES:
            for event in range(wire.EVENT_MASK, -1, -1):
                yield wire.code(number, event)

    def _add(self, other: Catalogue, own: int) -> int:
        # Keep the code where that is free, so that searches for a class by its number find the event.
        code = own if own not in self._used else next((spare for spare in self._free if spare not in self._used), None)
        if code is None:
            raise ValueError("no code is left")
        self._used.add(code)
        spec = other.classes[int(other.class_index_of_code[own])]
        names = [kind.name for kind in self.classes]
        if spec.name not in names:
            self.classes = (*self.classes, spec)
            names.append(spec.name)
        self._more[code] = other, own
        self.class_index_of_code[code] = names.index(spec.name)
        self.state_value_of_code[code] = other.state_value_of_code[own]
        return code


# Sizes of the kernel's trace buffers by release. Source: trace format, sections 3.2 and 6; capture side, section 4.


@dataclass(frozen=True, slots=True)
class BufferSizes:
    """Sizes of one trace buffer of the kernel, which has 16 KiB.

    Attributes:
        slots: Number of event slots that fit behind the header of the buffer.
        mark_linear, mark_ring: Number of slots at which the kernel closes the buffer in linear and in ring mode.
        has_end: Whether the buffer ends with BUFFER_END and belongs to one CPU (8.0).
    """

    slots: int
    mark_linear: int
    mark_ring: int
    has_end: bool = False


BUFFER_SIZES: Final = {
    Release.QNX_6: BufferSizes(1014, 714, 963),
    Release.QNX_6_6: BufferSizes(1014, 709, 963),
    Release.QNX_7: BufferSizes(1012, 708, 911),
    Release.QNX_8: BufferSizes(1011, 707, 909, has_end=True),
}


@cache
def never_block(release: Release) -> NDArray[np.bool_]:
    """Return which kernel calls never block their caller, bool (128,) by number; read-only.

    Source: `resources/events/kernel_calls.toml`, block `never_block`.
    """
    table = np.zeros(128, np.bool_)
    if release in rows.RELEASE_ORDER:
        names = {name for line in rows.columns("kernel_calls", "never_block") for name in line}
        column = rows.RELEASE_ORDER.index(release)
        for name, *numbers in rows.columns("kernel_calls", "calls"):
            if name in names and numbers[column] != "-":
                table[int(numbers[column])] = True
    table.setflags(write=False)
    return table


@cache
def call_numbers(release: Release) -> dict[str, int]:
    """Return the numbers of the kernel calls of a release by name, without 64-bit forms; empty for other systems."""
    if release not in rows.RELEASE_ORDER:
        return {}
    book = catalogue(release)
    return {book.name(wire.code(wire.WireClass.KER_CALL, number)): number for number in range(wire.KER_EXIT_OFFSET)}


# Texts for the values of arguments, from the tables and from files of event descriptions.
#
# The details of an event show these texts, and filter expressions compare with them.


_ERRORS: Final = 1024
_POWER_IDLE: Final = 0x10000
_BITS: Final = {
    ("SYSTEM", "RUNSTATE", "bitset"): "runstate",
    ("SYSTEM", "TIMER", "flags"): "timer",
    ("SEC", "ABLE", "flags"): "able",
}
_VALUES: Final = {("SEC", "PATH_ATTACH", "status"): "path_attach", ("SEC", "QNET_CONNECT", "status"): "qnet_connect"}
_NONE: Final = {
    ("SEC", "ABLE", "flags"): ValueText(0, "DENY"),
    ("SYSTEM", "TIMER", "timer_id"): ValueText(0xFFFFFFFF, "TimerTimeout()"),
}


@cache
def table_texts(release: Release, code: int, name: str) -> tuple[ValueText, ...]:
    """Return the texts that the tables of a release contain for values of an argument; empty for most arguments."""
    if name == "errno":
        return error_texts(release)
    if name == "policy":
        return _values("policy")
    spec = catalogue(release).spec(code)
    key = (spec.class_name, spec.name, name)
    if key == ("SYSTEM", "POWER", "bitset"):
        return tuple(_power())
    bits = (ValueText(bit, text, bit) for bit, text in flag_names(_BITS[key]).items()) if key in _BITS else ()
    values = _values(_VALUES[key]) if key in _VALUES else ()
    return (*bits, *values, *([_NONE[key]] if key in _NONE else ()))


@cache
def error_texts(release: Release) -> tuple[ValueText, ...]:
    """Return the names of the error numbers of a release, in the order of the numbers."""
    book = catalogue(release)
    named = ((number, book.errno_name(number)) for number in range(_ERRORS))
    return tuple(ValueText(number, text) for number, text in named if text is not None)


@cache
def _values(table: str) -> tuple[ValueText, ...]:
    return tuple(ValueText(value, text) for value, text in flag_names(table).items())


def _power() -> Iterator[ValueText]:
    """Yield the texts of the bits of POWER; the meaning of some bits depends on the bit IDLE."""
    yield from (ValueText(bit, text, bit) for bit, text in flag_names("power").items())
    for table, idle in (("power_idle", _POWER_IDLE), ("power_frequency", 0)):
        yield from (ValueText(bit | idle, text, bit | _POWER_IDLE) for bit, text in flag_names(table).items())


def shown_texts(texts: Sequence[ValueText], value: int, numbers: Mapping[str, int]) -> str | None:
    """Return the texts for a value of an argument, separated by spaces; None if none fits. `numbers`: by label."""
    return " ".join(visible_line(text.text) for text in texts if text.fits(value, numbers)) or None


def called(texts: Sequence[ValueText], wanted: str) -> list[tuple[ValueText, ...]]:
    """Return the groups of `texts` that make up a displayed text; empty if no values are shown that way.

    A value is shown as `wanted` if it fits all texts of one group: one text (`late`), several (`ALLOW IS_ROOT`), or
    text and number (`5 key`, `ETIMEDOUT (260)`).
    """
    single: list[tuple[ValueText, ...]] = [(text,) for text in texts if text.text == wanted]
    if single:
        return single
    number, text = _with_number(wanted)
    if number is not None:
        exact = ValueText(number, wanted)
        return [(exact, *group) for group in called(texts, text)]
    group, rest = [], wanted
    for value_text in texts:
        name = value_text.text
        if name and (rest == name or rest.startswith(f"{name} ")):
            group.append(value_text)
            rest = rest[len(name) + 1 :]
    return [tuple(group)] if group and not rest else []


def _with_number(shown: str) -> tuple[int | None, str]:
    """Return number and text from `0x5 key` or `key (5)`; None and an empty text for other forms."""
    before, _, text = shown.partition(" ")
    behind = shown.rpartition(" (")
    for number, rest in ((before, text), (behind[2].removesuffix(")"), behind[0])):
        try:
            if rest:
                return int(number[:20], 0), rest
        except ValueError:
            continue
    return None, ""

"""The content of a listing: header, times, slots and notations; and the head of a listing as text."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.events.variants import WORD_MASK
from satview.formats.kev.header import CPU_ENTRY_BYTES, SlotWriter, plain_pairs
from satview.store.problems import Problems
from satview.store.trace import Header, SystemInfo

# The content of a listing: header, times, slots, notations, and number of lines of each kind.
#
# Times are full cycle counts or their low words, in hexadecimal, or seconds; a number that lost a digit is repaired.


MAX_CYCLES = 1 << 62  # 36 years at 4 GHz; a larger time is a damaged number
_WALL = re.compile(r"t:(\d{1,9})\.(\d{1,3})\.(\d{1,3})us")
_COUNT = re.compile(r"c:(0x[0-9a-fA-F]{1,16})\s")
_TIME = re.compile(r"t:(\S+)")
_DECIMAL = re.compile(r"\d{1,19}")
_DIGITS = re.compile(r"[0-9a-f]{1,16}")
_TYPESET = str.maketrans("lIoO", "1100")  # letters that replace digits in typeset listings


@dataclass(frozen=True, slots=True)
class StampNotation:
    """Notation of times in a listing that differs from that of the release's printer.

    Attributes:
        template: `%` template of a time.
        is_low: Whether only the low half of the clock is printed.
    """

    template: str
    is_low: bool


class Stamps:
    """Reads the times of a listing in file order.

    Attributes:
        is_wall: Whether any time was printed in seconds, or as a full count after `c:`.
        is_decimal: Whether times are decimal: none has `0x` or a letter. All printers of the vendor write `0x`.
    """

    def __init__(self, problems: Problems) -> None:
        self.is_wall = self.is_decimal = False
        self._prefixes: set[bool] = set()
        self._widths = Counter[tuple[int, bool]]()  # digits, and whether the first one is a zero
        self._most = 0
        self._problems = problems
        self._last: dict[int, int] = {}

    def look_ahead(self, texts: Iterable[str]) -> None:
        """Detect decimal stamps in the first events of a listing; `texts` are their times, as `text` in `cycles`."""
        stamps = [stamp[1] for text in texts if not _COUNT.search(text) and (stamp := _TIME.search(text))]
        self.is_decimal = bool(stamps) and all(_DECIMAL.fullmatch(stamp) for stamp in stamps)

    def notation(self, default_digits: int, has_clock: bool) -> StampNotation | None:
        """Return the notation of times; None if times are printed as by the release's printer, `0x%08x`.

        `default_digits` are those of the printer; `has_clock` = TIME events have an upper half that is not zero.
        """
        if self.is_wall or not (self._widths or self.is_decimal):
            return None
        is_low = self._most < 1 << 32 and (default_digits <= 8 or has_clock)
        if self.is_decimal:
            return StampNotation("%d", is_low)
        (width, is_padded), _ = self._widths.most_common(1)[0]
        template = ("0x" if True in self._prefixes else "") + (f"%0{width}x" if is_padded or width >= 8 else "%x")
        if template == "0x%08x" and is_low == (default_digits <= 8):
            return None
        return StampNotation(template, is_low)

    def cycles(self, line: int, cpu: int, text: str, rate: int) -> int:
        """Return the time of an event in cycles.

        Args:
            line: Line of the event, for the report of a damaged number.
            cpu: CPU of the event.
            text: Text before the event: `t:`, `c:` and `e:` with their values, in any order.
            rate: Cycles per second, for times in seconds.
        """
        if count := _COUNT.search(text):
            self.is_wall = True
            return self._checked(line, cpu, count[1].removeprefix("0x"))
        if wall := _WALL.search(text):
            self.is_wall = True
            us = int(wall[1]) * 1_000_000 + int(wall[2]) * 1_000 + int(wall[3])
            return min(us * rate // 1_000_000, MAX_CYCLES)
        stamp = _TIME.search(text)
        printed = stamp[1] if stamp else ""
        if self.is_decimal:
            return self._decimal(line, cpu, printed)
        digits = printed.removeprefix("0x")
        self._prefixes.add(digits != printed)
        value = self._checked(line, cpu, digits)
        if _DIGITS.fullmatch(digits):  # stamps longer than eight digits have no leading zero
            is_padded = digits[0] == "0"
            self._widths[len(digits) if is_padded or len(digits) < 8 else 8, is_padded] += 1
        self._most = max(self._most, value)
        return value

    def _decimal(self, line: int, cpu: int, printed: str) -> int:
        value = int(printed) if _DECIMAL.fullmatch(printed) else -1
        if not 0 <= value <= MAX_CYCLES:
            value = self._last.get(cpu, 0)
            self._damaged(line, printed, value)
        self._last[cpu], self._most = value, max(self._most, value)
        return value

    def _checked(self, line: int, cpu: int, digits: str) -> int:
        last = self._last.get(cpu, -1)
        clean = digits.translate(_TYPESET).lower()
        value = int(clean, 16) if _DIGITS.fullmatch(clean) else -1
        if len(clean) < 8 and value >= 0:
            value = _restored(clean, last)
        if not 0 <= value <= MAX_CYCLES:
            value = max(last, 0)
            self._damaged(line, digits, value)
        elif digits.lower() != f"{value:08x}" and len(digits.lstrip("0")) != len(f"{value:x}"):
            self._damaged(line, digits, value)
        self._last[cpu] = value
        return value

    def _damaged(self, line: int, digits: str, value: int) -> None:
        what = f"time {digits[:40]} at line {line} is damaged; read as 0x{value:08x}"
        self._problems.add("listing-digits", what, line=line)


def _restored(digits: str, last: int) -> int:
    """Return the number that hexadecimal digits show.

    If there are only seven digits, one of eight was lost: the result is then the earliest possible time from `last` on.
    """
    if len(digits) != 7 or last < 0:
        return int(digits, 16)
    base = last & ~0xFFFFFFFF
    fits = {
        base | int(digits[:position] + digit + digits[position:], 16)
        for position in range(8)
        for digit in "0123456789abcdef"
    }
    later = [value for value in fits if value >= last]
    return min(later, default=int(digits, 16))


# Builds slots from events, in host order.


class SlotList:
    """A growing list of slots: 16 bytes each, and 8 for the full time if the listing has it."""

    def __init__(self) -> None:
        self._words = array("I")  # 32 bits wherever CPython runs
        self._times = array("q")
        self.has_full_times = False
        self._listed_slot, self._listed_variant = array("q"), array("i")

    def __len__(self) -> int:
        return len(self._words) // 4

    def event(self, code: int, cpu: int, time_cycles: int, words: list[int], variant: int = 0) -> None:
        """Append an event: one slot for up to two words, else combine slots, padded with a zero word.

        The printed time has 32 or up to 63 bits. `variant` is that of a payload layout that comes from the line; else
        0.
        """
        if variant:
            self._listed_slot.append(len(self) + max(1, (len(words) + 1) // 2) - 1)
            self._listed_variant.append(variant)
        self.has_full_times |= time_cycles > WORD_MASK
        for slot in SlotWriter.slots_of(code, cpu, time_cycles, words):
            self._words.extend(slot)
            self._times.append(time_cycles)

    def slot(self, header: int, stamp: int, first_word: int, second_word: int) -> None:
        """Append a slot unchanged."""
        self._words.extend((header, stamp, first_word, second_word))
        self._times.append(stamp)

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots, shape (n, 4), host order."""
        return np.frombuffer(self._words, np.uint32).reshape(-1, 4)

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the last slot and the layout variant of each event whose layout comes from its line; slots ascend.

        Returns:
            int64 (n,) and int32 (n,).
        """
        return np.frombuffer(self._listed_slot, np.int64), np.frombuffer(self._listed_variant, np.int32)

    def times(self) -> NDArray[np.int64]:
        """Return the printed time of every slot, int64 (n,), cycles."""
        return np.frombuffer(self._times, dtype=np.int64)


MOST_UNLISTED: Final = 4096
_KIND_OF_LINE = {
    "syspage": "system page", "part": "event that fits its row in part", "raw": "event with raw values",
    "raw_slot": "slot", "continuation": "part of event", "cut": "left out", "notice": "message of the printer",
}  # fmt: skip


@dataclass(slots=True)
class LineCounts:
    """Number of lines of each kind in a listing; together these are all lines of the listing."""

    title: int = 0
    header: int = 0
    syspage: int = 0
    event: int = 0
    part: int = 0
    raw: int = 0
    raw_slot: int = 0
    continuation: int = 0
    blank: int = 0
    cut: int = 0
    notice: int = 0
    foreign: int = 0

    @property
    def lines(self) -> int:
        """Total number of lines."""
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """Return the number of lines of each kind, without zeros."""
        return {_KIND_OF_LINE.get(name, name): count for name, count in asdict(self).items() if count}


@dataclass(slots=True)
class Listing:
    """The content of a listing.

    Attributes:
        pairs: Header keys and values.
        slots: All events as slots, in file order.
        line_counts: Number of lines of each kind.
        events: Number of printed events; a line may have several.
        release: Release whose lists were used: from the header, else guessed from the events.
        notations: Notation of arguments that differs from that of the release's printer; see `EventParser`.
        proven: Notation of arguments that equals that of the release's printer.
        unlisted: Number of lines that match no row, by class, event, and names and notations of arguments; at most
            `MOST_UNLISTED` kinds.
        is_release_known: Whether the header contains the release.
        release_reason: Reason for the assumption of this release, if the header does not contain the release.
        stamps: Notation of times; None = that of the release's printer.
        byte_order: Byte order from the header; `little` if the header has none.
    """

    problems: Problems
    pairs: list[tuple[str, str]] = field(default_factory=list)
    slots: SlotList = field(default_factory=SlotList)
    line_counts: LineCounts = field(default_factory=LineCounts)
    is_release_known: bool = False
    notations: dict[tuple[str, str, str], str] = field(default_factory=dict)
    proven: dict[tuple[str, str, str], str] = field(default_factory=dict)
    unlisted: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = field(default_factory=dict)
    events: int = 0
    release: Release = Release.QNX_6
    release_reason: str = ""
    stamps: StampNotation | None = None
    byte_order: str = "little"

    @property
    def header(self) -> Header:
        """The header in the form that readers of .kev files return."""
        return Header(plain_pairs(self.pairs))

    def slot_array(self) -> NDArray[np.uint32]:
        """Return the slots, uint32 (n, 4), in the byte order of this machine."""
        return self.slots.slots()

    def full_times(self) -> NDArray[np.int64] | None:
        """Return the time of every slot, int64 (n,), cycles; None if the listing lacks full times or has raw slots."""
        return self.slots.times() if self.slots.has_full_times and not self.line_counts.raw_slot else None


# Writes the head of a listing: banner, header keys, and with -v the system page. Source: listing format, 2 and 5.


_SECTIONS: tuple[tuple[str, ...], ...] = (
    ("asinfo", "meminfo", "hwinfo"),
    ("cpuinfo", "cacheattr", "qtime"),
    ("callout", "callin", "intrinfo"),
    ("typed_strings", "strings"),
)
_ABSENT = 65_535  # printed as the offset of a missing section


BANNER = "TRACEPRINTER version 1.02\n"
LIBRARY_BANNER = "TRACEPARSER LIBRARY version 1.02\n"
HEADER_TITLE = " -- HEADER FILE INFORMATION -- \n"
SYSPAGE_TITLE = " -- SYSPAGE INFORMATION -- \n"
EVENTS_TITLE = " -- KERNEL EVENTS -- \n"


def head_lines(
    header: Header, system: SystemInfo | None, byte_order: str, *, is_vendor: bool, is_verbose: bool
) -> Iterator[str]:
    """Yield the text before the first event, line ends included.

    Args:
        header: The header of the file.
        system: The system page; None if there is none.
        byte_order: Byte order of the target.
        is_vendor: Leave out unprintable characters of values, like traceprinter; else they are escaped.
        is_verbose: Add lengths of values and the system page (`-v`).
    """
    yield BANNER + LIBRARY_BANNER + HEADER_TITLE
    yield from header_lines(header, is_vendor=is_vendor, is_verbose=is_verbose)
    if is_verbose:
        yield SYSPAGE_TITLE
        if system is not None:
            yield from syspage_lines(system, byte_order)
        yield "TRACEPRINTER: header file and syspage have been processed\n"
    yield EVENTS_TITLE


def header_lines(header: Header, *, is_vendor: bool, is_verbose: bool) -> Iterator[str]:
    """Yield a line for each header key, when verbose with the length of the value; arguments as for `head_lines`."""
    for key, value in header.pairs:
        text = _printable(value) if is_vendor else _escaped(value)
        if is_verbose:
            text = f'(len={len(value.encode("utf-8", "surrogateescape"))}) -> "{text}" '
        yield f"{key_column(key)}:: {text}\n"


def _printable(value: str) -> str:
    return "".join(c for c in value if " " <= c <= "~")


def _escaped(value: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in value)


def key_column(key: str) -> str:
    """Return `TRACE_` and the key; keys up to 16 characters end in column 22."""
    width = 22 - len(key)  # as in C's "%*s", where a negative width pads on the other side
    return f"{'TRACE_':>{width}}{key}" if width >= 0 else f"{'TRACE_':<{-width}}{key}"


def syspage_lines(system: SystemInfo, byte_order: str) -> Iterator[str]:
    """Yield the lines that show the content of the system page."""
    values = system.values
    step = values.get("cpuinfo.element_size", CPU_ENTRY_BYTES)

    def section(name: str) -> str:
        return f"{name}:off/size={values.get(f'{name}.offset', _ABSENT)},{values.get(f'{name}.size', 0)}"

    yield f" size={values['size']} total_size={values['total_size']} {section('system_private')}\n"
    for sections in _SECTIONS:
        yield f" {' '.join(section(name) for name in sections)}\n"
    yield f" processor={system.processor} num_cpus={values['num_cpu']}\n"
    for number, cpu in enumerate(system.cpus, 1):
        offset = values["cpuinfo.offset"] + (number - 1) * step
        model = int.from_bytes(system.raw[offset : offset + 4], "little" if byte_order == "little" else "big")
        yield f"  cpu {number} cpu={model} name={cpu.name} speed={cpu.speed_mhz}\n"
        names = "".join(f" {name}" for name in cpu.flag_names)
        yield f"  flags={f'0x{cpu.flags:06x}' if cpu.flags else '00000000'}{names}\n"
    yield from _clock_lines(values)
    if system.strings:
        yield "".join(f'   {name}="{text}"' for name, text in system.strings) + "\n"


def _clock_lines(values: dict[str, int]) -> Iterator[str]:
    def value(name: str) -> int:
        return values.get(f"qtime.{name}", 0)

    if "qtime.cycles_per_sec" not in values:
        return
    yield (
        f" cyc/sec={value('cycles_per_sec')} tod_adj={value('nsec_tod_adjust')} nsec={value('nsec')}  "
        f"inc={value('nsec_inc')}\n"
    )
    yield f" boot={value('boot_time')} epoch={value('epoch')} intr={value('intr')}\n"
    yield f" rate={value('timer_rate')} scale={value('timer_scale')} load={value('timer_load')}\n"


def slot_lines(slots: NDArray[np.uint32], byte_order: str) -> list[str]:
    """Return the verbose line of every slot, (n, 4); payload words are printed as a little-endian host reads them."""
    payload = slots[:, 2:4].byteswap() if byte_order == "big" else slots[:, 2:4]
    values = np.column_stack((slots[:, :2], payload)).ravel().tolist()
    template = "event => h:0x%08x d0:0x%08x d1:0x%08x d2:0x%08x\n\0" * len(slots)
    return (template % tuple(values)).split("\0")[:-1]


def stray_line(header: int) -> str:
    """Return the library's message about a continuation slot without an open event."""
    kind = "end" if header >> wire.STRUCT_SHIFT == wire.Struct.COMBINE_END else "continuation"
    return f"TRACEPARSER: unbalanced {kind} of combine event ignored\n"

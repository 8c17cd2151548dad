"""The start of a .kev file byte by byte: every field of the system page in each layout, and guesses of a byte order."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from satview.base.errors import TraceFormatError
from satview.formats.kev.header import GLOBAL_CLOCK, fits, parse_header, parse_syspage, slot_byte_order, syspage_bytes
from satview.formats.kev.reader import byte_order_of, read_start, report_header
from satview.store.problems import Problems
from satview.store.trace import Header

ORDERS = {"little": "<", "big": ">"}
# Where in the entry a section is found: kev-format.md, sections 4.1 and 4.2; the triples of 7.x win over the pairs.
PAIRS = {
    "system_private": 8, "asinfo": 12, "meminfo": 16, "hwinfo": 20, "cpuinfo": 24, "cacheattr": 28, "qtime": 32,
    "callout": 36, "callin": 40, "typed_strings": 44, "strings": 48, "intrinfo": 52, "smp": 56, "pminfo": 60,
    "mdriver": 64,
}  # fmt: skip
TRIPLES_7 = {"asinfo": 232, "cpuinfo": 238, "cacheattr": 244, "intrinfo": 250, "mdriver": 256}
PAIRS_8 = {"system_private": 8, "hwinfo": 16, "qtime": 20, "callout": 24, "typed_strings": 28, "strings": 32,
           "smp": 36, "hypinfo": 224}  # fmt: skip
TRIPLES_8 = {"asinfo": 200, "cpuinfo": 206, "cacheattr": 212, "intrinfo": 218, "cluster": 228}
LAYOUTS = {"old": (0, 76, PAIRS, {}), "7": (0x100, 262, PAIRS, TRIPLES_7), "8": (0x1100, 248, PAIRS_8, TRIPLES_8)}


def page(order: str, kind: int, size: int, *, cpus: int = 0, total: int = 1024, fields: dict[int, bytes] | None = None):
    """Return a page of 1024 bytes: its entry, and bytes at some offsets."""
    image = bytearray(1024)
    struct.pack_into(ORDERS[order] + "4H", image, 0, size, total, kind, cpus)
    for offset, content in (fields or {}).items():
        image[offset : offset + len(content)] = content
    return bytes(image)


def halves(order: str, *values: int) -> bytes:
    return struct.pack(f"{ORDERS[order]}{len(values)}H", *values)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_section_is_where_its_layout_has_it(order, layout):
    """Section number n is at 300 + n with n bytes; through a triple it is 40 bytes later, its elements have 32 + n."""
    kind, size, pairs, triples = LAYOUTS[layout]
    names = sorted(pairs.keys() | triples.keys())
    number = {name: names.index(name) + 1 for name in names}
    fields = {offset: halves(order, 300 + number[name], number[name]) for name, offset in pairs.items()}
    fields |= {offset: halves(order, 340 + number[name], number[name], 32 + number[name])
               for name, offset in triples.items()}  # fmt: skip
    system, doubts = parse_syspage(page(order, kind, size, fields=fields), order)
    expected = {"size": size, "total_size": 1024, "type": kind, "num_cpu": 0}
    for name in names:
        expected[f"{name}.offset"] = (340 if name in triples else 300) + number[name]
        expected[f"{name}.size"] = number[name]
        if name in triples:
            expected[f"{name}.element_size"] = 32 + number[name]
    assert system.values == expected
    assert doubts == [f"section qtime has {number['qtime']} bytes, expected {56 if layout == '8' else 68}"]


def test_a_triple_counts_where_the_entry_reaches_to_it_and_its_elements_have_a_size():
    pair, triple = halves("little", 300, 64), halves("little", 400, 256 + 96, 256)
    for size, element, offset in ((262, triple[4:], 400), (261, triple[4:], 300), (262, b"\0\0", 300)):
        fields = {24: pair, 238: triple[:4] + element}
        assert parse_syspage(page("little", 0x100, size, fields=fields), "little")[0].values["cpuinfo.offset"] == offset
    # The entry may say more than the page has.
    short = page("little", 0x100, 65535, total=200, fields={24: pair[:0], 28: bytes(4)})[:200]
    assert parse_syspage(short, "little")[1] == []


QTIME = {
    "cycles_per_sec": (0, "Q", 1 << 40 | 5), "nsec_tod_adjust": (8, "Q", 1 << 41 | 6), "nsec": (16, "Q", 1 << 42 | 7),
    "nsec_inc": (24, "I", 8), "boot_time": (28, "I", 9), "timer_rate": (40, "I", 10), "timer_scale": (44, "i", -11),
    "timer_load": (48, "I", 12), "intr": (52, "i", -13), "epoch": (56, "I", 14), "flags": (60, "I", 15),
    "rr_interval_mul": (64, "I", 16),
}  # fmt: skip
QTIME_8 = {
    "cycles_per_sec": (0, "Q", 1 << 40 | 5), "nsec_tod_adjust": (8, "Q", 1 << 41 | 6), "nsec_inc": (16, "I", 8),
    "boot_time": (20, "I", 9), "timer_period": (32, "I", 10), "timer_scale": (36, "i", -11), "intr": (40, "i", -13),
    "epoch": (44, "I", 14), "flags": (48, "I", 15), "rr_interval_mul": (52, "I", 16),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kind", "pair", "fields", "size"), [(0, 32, QTIME, 68), (0x1100, 20, QTIME_8, 56)])
def test_every_field_of_the_time_section(order, kind, pair, fields, size):
    content = {300 + at: struct.pack(ORDERS[order] + letter, value) for at, letter, value in fields.values()}
    content[pair] = halves(order, 300, size)
    system, doubts = parse_syspage(page(order, kind, 248, fields=content), order)
    assert doubts == []
    assert {name: system.values[f"qtime.{name}"] for name in fields} == {name: row[2] for name, row in fields.items()}
    assert [name for name in system.values if name.startswith("qtime.")] == [
        "qtime.offset", "qtime.size", *(f"qtime.{name}" for name in fields)
    ]  # fmt: skip
    assert system.boot_time_s == 9
    without = content | {300 + fields["boot_time"][0]: bytes(4)}
    assert parse_syspage(page(order, kind, 248, fields=without), order)[0].boot_time_s is None
    short = content | {pair: halves(order, 300, size - 1)}
    system, doubts = parse_syspage(page(order, kind, 248, fields=short), order)
    assert (system.boot_time_s, doubts) == (None, [f"section qtime has {size - 1} bytes, expected {size}"])


NAMES_X86 = ["FPU", "MMU", "CPUID", "RDTSC", "INVLPG", "WP", "BSWAP", "MMX", "CMOV", "PSE", "PGE", "MTRR", "SEP",
             "SIMD", "FXSR"]  # fmt: skip
NAMES_PPC = ["FPU", "MMU", "EAR", "HW_HT", "HW_POW", "FPREGS", "SW_HT", "ALTIVEC"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("kind", "processor", "names"),
    [(0, "X86", NAMES_X86), (1, "PPC", NAMES_PPC), (2, "MIPS", ["FPU", "MMU"]), (3, "unknown(3)", ["FPU", "MMU"]),
     (4, "ARM", ["FPU", "MMU"]), (5, "SH", ["FPU", "MMU"]), (6, "unknown(6)", ["FPU", "MMU"]),
     (0x100, "X86_64", ["FPU", "MMU"]), (0x101, "AARCH64", ["FPU", "MMU"]), (0x1100, "X86_64", ["FPU", "MMU"]),
     (0x1101, "AARCH64", ["FPU", "MMU"])],
)  # fmt: skip
def test_processors(order, kind, processor, names):
    """Entries of 40 bytes where a triple says so, of 32 else; a name ends with its section, and one beyond is none."""
    is_8, wide = bool(kind & 0x1000), kind >= 0x100
    step = 40 if wide else 32
    texts = b"\0first\0second"
    fields = {(32 if is_8 else 48): halves(order, 600, len(texts)), 600: texts + b"beyond"}
    if wide:
        fields[206 if is_8 else 238] = halves(order, 300, 3 * step + 1, step)
    else:
        fields[24] = halves(order, 300, 3 * step + 1)
    for i, (flags, name) in enumerate(((0xFFFFFFFF, 1), (0, 7), (1 << 31, len(texts)))):
        word = struct.pack(ORDERS[order] + ("Q" if is_8 else "I"), flags)
        at = 300 + i * step
        fields |= {at: struct.pack(ORDERS[order] + "II", 77, 1000 + i), at + 8: word, at + 28: halves(order, name)}
    system, doubts = parse_syspage(page(order, kind, 262, cpus=9, fields=fields), order)
    assert (system.processor, len(system.raw)) == (processor, 1024)
    assert [(cpu.number, cpu.name, cpu.speed_mhz, cpu.flags, list(cpu.flag_names)) for cpu in system.cpus] == [
        (0, "first", 1000, 0xFFFFFFFF, names), (1, "second", 1001, 0, []), (2, "", 1002, 1 << 31, ["FPU"])
    ]  # fmt: skip
    assert [doubt for doubt in doubts if "qtime" not in doubt] == []


def test_as_many_processors_as_are_promised_and_there():
    fields = {24: halves("little", 76, 32 * 20)}
    for cpus in (0, 1, 19, 20, 21):
        system, _ = parse_syspage(page("little", 0, 76, cpus=cpus, fields=fields), "little")
        assert len(system.cpus) == min(cpus, 20)
    big = bytearray(page("little", 0, 76, cpus=99) + bytes(4096))
    big[2:4], big[24:28] = halves("little", len(big)), halves("little", 1024, 4096)
    assert len(parse_syspage(bytes(big), "little")[0].cpus) == 64
    for step, doubts in ((31, ["entries of section cpuinfo have 31 bytes, expected 32"]), (32, [])):
        fields = {238: halves("little", 300, 64, step)}
        system, found = parse_syspage(page("little", 0x100, 262, cpus=1, fields=fields), "little")
        assert (len(system.cpus), found) == (0 if doubts else 1, doubts)


STRINGS = {1: "PATH", 2: "HOSTNAME", 3: "RELEASE", 4: "VERSION", 5: "MACHINE", 6: "ARCHITECTURE", 7: "HW_SERIAL",
           8: "HW_PROVIDER", 9: "SRPC_DOMAIN", 10: "type(10)", 11: "SYSNAME", 12: "type(12)", 200: "LIBPATH",
           201: "DOMAIN", 202: "RESOLVE", 203: "TIMEZONE", 204: "LOCALE", 205: "type(205)",
           513: "type(513)"}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("is_set", [0, 0x100])
def test_typed_strings(order, is_set):
    """Texts of 1 to 5 bytes, each filled to whole words; bit 0x100 is no part of the type."""
    content, expected = b"", []
    for i, (number, name) in enumerate(STRINGS.items()):
        text = "abcde"[: 1 + i % 5]
        content += struct.pack(ORDERS[order] + "I", number | is_set) + text.encode() + b"\0"
        content += bytes(-len(content) % 4)
        expected.append((name, text))
    fields = {44: halves(order, 300, len(content) + 12), 300: content + bytes(4) + struct.pack("<I", 1) + b"no\0\0"}
    system, doubts = parse_syspage(page(order, 0, 76, fields=fields), order)
    assert (list(system.strings), doubts) == (expected, [])


@pytest.mark.parametrize(
    ("content", "size", "strings", "doubts"),
    [
        (b"\1\0\0\0ab\0\0\2\0\0\0", 12, [("PATH", "ab"), ], ["the last typed string has no end"]),
        (b"\1\0\0\0ab\0\0\2\0\0\0", 11, [("PATH", "ab")], []),
        (b"\1\0\0\0abcd", 8, [], ["the last typed string has no end"]),
        (b"\1\0\0\0\0", 5, [("PATH", "")], []),
        (b"\0\0\0\0\1\0\0\0ab\0\0", 12, [], []),
    ],
)  # fmt: skip
def test_typed_strings_that_end_somewhere(content, size, strings, doubts):
    fields = {44: halves("little", 300, size), 300: content + b"zz"}
    system, found = parse_syspage(page("little", 0, 76, fields=fields), "little")
    assert (list(system.strings), found) == (strings, doubts)


def test_pages_that_do_not_fit():
    assert parse_syspage(b"", "little") == (None, [])
    assert parse_syspage(bytes(79), "little") == (None, ["a system page of 79 bytes is too short for its entry"])
    old = page("little", 0, 76, total=80)[:80]
    assert parse_syspage(old, "little")[1] == []
    eight = page("little", 0x1100, 248, total=234)[:234]
    assert parse_syspage(eight, "little")[0] is not None
    said = "the page says it has 234 bytes, the header says 233"
    assert parse_syspage(eight[:-1], "little") == (None, [said, "the page is too short for its entry"])
    for last, doubts in ((1024, []), (1025, ["section hwinfo at 1000, 25 bytes, is beyond the page of 1024 bytes"])):
        fields = {20: halves("little", 1000, last - 1000)}
        system, found = parse_syspage(page("little", 0, 76, fields=fields), "little")
        assert (("hwinfo.size" in system.values), found) == (not doubts, doubts)
    assert "hwinfo.offset" in parse_syspage(page("little", 0, 76, fields={20: b"\xff\xff"}), "little")[0].values


@pytest.mark.parametrize(
    ("size", "total", "length", "expected"),
    [(8, 8, 8, True), (9, 8, 8, False), (0, 8, 8, False), (1, 8, 8, True), (8, 9, 8, False), (8, 8, 9, False),
     (4, 7, 7, False)],
)  # fmt: skip
@pytest.mark.parametrize("order", ORDERS)
def test_a_page_fits_its_byte_order(size, total, length, expected, order):
    image = halves(order, size, total, 0, 1)[:length].ljust(length, b"\0")
    assert fits(image, order) is expected
    assert not fits(image, "big" if order == "little" else "little")


@pytest.mark.parametrize("order", ORDERS)
def test_a_byte_order_by_the_system_page(order):
    """Where the header names none, it says more than the slots, which may be rubbish."""
    image = page(order, 0, 76)
    other = next(name for name in ORDERS if name != order)
    sample = np.array([1 << 10, 0, 0, 0], ORDERS[other] + "u4").tobytes()
    for content, found in ((image, order), (b"", other)):
        problems = Problems()
        assert byte_order_of(Header(()), content, sample, problems) == found
        assert [(each.detail, each.offset) for each in problems] == [
            (f"the header says neither byte order; the data reads as {found}-endian", 0)
        ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kind", "entry", "qtime"), [(0, 80, 80), (0x100, 264, 96), (0x1101, 248, 96)])
def test_the_page_that_is_written(order, kind, entry, qtime):
    """Sections follow the entry, each filled to eight bytes; names follow a zero byte."""
    image = syspage_bytes(order, kind=kind, cycles_per_s=5, boot_time_s=6, cpu_names=("ab", "cd"), speed_mhz=7,
                          strings=((2, "host"), (5, "x")))  # fmt: skip
    system, doubts = parse_syspage(image, order)
    assert doubts == []
    strings_at = entry + 64 + qtime
    expected = {"cpuinfo": (entry, 64), "qtime": (entry + 64, qtime), "typed_strings": (strings_at, 24),
                "strings": (strings_at + 24, 7)}  # fmt: skip
    assert {name: (system.values[f"{name}.offset"], system.values[f"{name}.size"]) for name in expected} == expected
    assert system.values.get("cpuinfo.element_size") == (32 if kind else None)
    assert (system.values["size"], system.values["total_size"], len(image)) == (entry, strings_at + 32, strings_at + 32)
    shown = [(cpu.name, cpu.speed_mhz, cpu.flags) for cpu in system.cpus]
    assert shown == [("ab", 7, 0xC0000000), ("cd", 7, 0xC0000000)]
    assert image[strings_at + 24 : strings_at + 32] == b"\0ab\0cd\0\0"
    written = {name: system.values.get(f"qtime.{name}") for name in QTIME if f"qtime.{name}" in system.values}
    assert written == {
        "cycles_per_sec": 5, "nsec_tod_adjust": 0, "nsec_inc": 1_000_000, "boot_time": 6, "timer_scale": 0, "intr": 0,
        "epoch": 1970, "flags": GLOBAL_CLOCK, "rr_interval_mul": 4,
    } | ({} if kind & 0x1000 else {"nsec": 0, "timer_rate": 0, "timer_load": 0})  # fmt: skip
    assert GLOBAL_CLOCK == 8
    plain = syspage_bytes(order, cycles_per_s=5, boot_time_s=6, cpu_names=("ab",), speed_mhz=7)
    assert parse_syspage(plain, order)[0].values["type"] == 0


# ---- header ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "order"),
    [
        (1 << 10, "little"), (11 << 10 | 5, "little"), (1 << 16 | 2 << 10, "little"),
        (1 << 17 | 2 << 10, "big"), (1 << 15 | 2 << 10, "big"), (1 << 23 | 2 << 10, "big"),  # bits that no header has
        (12 << 10, "big"), (0, "big"),  # classes that no release has
    ],
)  # fmt: skip
def test_a_byte_order_by_the_first_slots(word, order):
    """A slot that may be little-endian, and one that only big-endian ones can be: one each is little-endian."""
    little, big = (np.array([first, 0, 0, 0], letter).tobytes() for first, letter in ((word, "<u4"), (1 << 10, ">u4")))
    assert slot_byte_order(b"odd") == slot_byte_order(little + b"odd") == "little"
    assert slot_byte_order(big) == slot_byte_order(little + big + big) == "big"
    assert slot_byte_order(little + big) == order


@pytest.mark.parametrize(
    ("data", "size", "offset", "what"),
    [
        (b"TRACE_HEAD", 10, 10, "the file ends inside the first key of the header"),
        (b"", 0, 0, "the file ends inside the first key of the header"),
        (b"TRACE_HEADER_BEGIN:_", 20, 0, "it does not begin with TRACE_HEADER_BEGIN::"),
        (b"TRACE_HEADER_BEGIN::TRACE_A::b", 30, 30, "the file ends inside the header"),
        (b"TRACE_HEADER_BEGIN::TRACE_A::b", 31, 30, "no end of the header within 30 bytes"),
    ],
)
def test_a_header_that_does_not_end(data, size, offset, what):
    with pytest.raises(TraceFormatError, match=what) as refused:
        parse_header(data, None, size)
    assert refused.value.offset == offset


def test_a_header_may_have_a_mebibyte(tmp_path):
    path, begin, end = tmp_path / "a.kev", b"TRACE_HEADER_BEGIN::TRACE_A::", b"TRACE_HEADER_END::"
    value = b"x" * ((1 << 20) - len(begin) - len(end))
    path.write_bytes(begin + value + end + bytes(16))
    assert read_start(path).header.length == 1 << 20
    path.write_bytes(begin + value + b"x" + end + bytes(16))
    with pytest.raises(TraceFormatError, match="no end of the header within 1048576 bytes"):
        read_start(path)


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ({"CYCLES_PER_SEC": "5", "SYS_RELEASE": "7.1.0", "SYSPAGE_LEN": "0"}, []),
        ({"CYCLES_PER_SEC": "5", "SYS_RELEASE": "7.1.0", "SYSPAGE_LEN": "x"},
         [("TRACE_SYSPAGE_LEN is 'x', no number: taken as 0", 0, 1)]),
        ({"SYS_RELEASE": "7.1.0"}, [("no TRACE_CYCLES_PER_SEC, no TRACE_SYSPAGE_LEN", 0, 2)]),
        ({"CYCLES_PER_SEC": "5", "SYSPAGE_LEN": "x"}, [("no TRACE_SYS_RELEASE", 0, 1)]),
    ],
)  # fmt: skip
def test_keys_that_are_missing_or_make_no_sense(pairs, says):
    problems = Problems()
    report_header(Header(tuple(pairs.items())), problems)
    assert [(each.detail, each.offset, each.count) for each in problems] == says

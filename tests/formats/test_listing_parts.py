"""Parts of a listing: numbers at their limits, times, sigevents, slots, the system page; each with what it becomes."""

from __future__ import annotations

import numpy as np
import pytest

from satview.events import wire
from satview.events.spec import Field, Show
from satview.formats.listing.arguments import (
    bare_value,
    compile_list,
    is_argument_line,
    is_wide,
    message_words,
    number_reader,
    placed,
    printed_as,
    value_of,
    values_of,
)
from satview.formats.listing.events import sigevent_of
from satview.formats.listing.model import (
    MAX_CYCLES,
    SlotList,
    Stamps,
    head_lines,
    key_column,
    slot_lines,
    stray_line,
    syspage_lines,
)
from satview.store.problems import Problems
from satview.store.trace import CpuInfo, Header, SystemInfo


def test_numbers_at_their_limits():
    low, high = -(1 << 31), (1 << 31) - 1
    number32, any32 = number_reader(1, int, is_signed=True), number_reader(1, value_of)
    number64, hex32, hex64 = number_reader(2, value_of), number_reader(1, bare_value), number_reader(2, bare_value)
    assert [number32(str(value), "little") for value in (low - 1, low, -1, high, high + 1)] == [
        None, [0x80000000], [0xFFFFFFFF], [0x7FFFFFFF], None
    ]  # fmt: skip
    assert [any32(text, "little") for text in (str(low - 1), str(low), "4294967295", "0x100000000", "0xA")] == [
        None, [0x80000000], [0xFFFFFFFF], None, [10]
    ]  # fmt: skip
    assert [hex32(text, "little") for text in ("ffffffff", "0xffffffff", "100000000")] == [
        [0xFFFFFFFF], [0xFFFFFFFF], None
    ]  # fmt: skip
    assert hex64("0x0000000100000002", "little") == [2, 1]
    assert hex64("100000002", "big") == [1, 2]
    lowest = -(1 << 63)
    assert [number64(str(value), "little") for value in (lowest - 1, lowest, (1 << 64) - 1, 1 << 64, 3)] == [
        None, [0, 0x80000000], [0xFFFFFFFF] * 2, None, [3, 0]
    ]  # fmt: skip
    assert message_words(f"0x41, {low}, -1 {0xFFFFFFFF}", "little") == [0x41, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFF]
    assert message_words(f"1, {low - 1}", "little") is None
    assert message_words("1, 4294967296", "little") is None


@pytest.mark.parametrize(
    ("text", "value", "wide", "template"),
    [
        ("10", 10, False, "%d"), ("-10", -10, False, "%d"), ("0x10", 16, False, "0x%x"), ("0X10", 16, False, "0x%x"),
        ("0x00000010", 16, False, "0x%08x"), ("0x0000000000000010", 16, True, "0x%016x"),
        ("0x010", 16, False, "0x%03x"), ("0x123456789", 0x123456789, True, "0x%x"),
        ("0x0", 0, False, "0x%x"), ("0x12345678", 0x12345678, False, "0x%08x"),
        ("4294967295", 0xFFFFFFFF, False, "%d"), ("4294967296", 1 << 32, True, "%d"),
        ("-2147483648", -(1 << 31), False, "%d"), ("-2147483649", -(1 << 31) - 1, True, "%d"),
    ],
)  # fmt: skip
def test_how_a_number_is_printed(text, value, wide, template):
    assert (value_of(text), is_wide(text), printed_as(text)) == (value, wide, template)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(
    ("text", "notify", "number", "code_priority", "value"),
    [
        ("SIGNAL 17", 1, 17, (0, 0), 0),
        ("SIGNAL_CODE 17 3:-1", 2, 17, (3, 0), 0xFFFFFFFF),
        ("SIGNAL_THREAD 17 0x4:9 CRITICAL", 0x103, 17, (4, 0), 9),
        ("PULSE 0x40000001:10 2:0x55", 4, 0x40000001, (2, 10), 0x55),
        ("UNBLOCK", 5, 0, (0, 0), 0),
        ("INTR", 6, 0, (0, 0), 0),
    ],
)
def test_sigevents(order, text, notify, number, code_priority, value):
    """Four words: how it notifies, signal or connection, value, and code and priority in one."""
    words = sigevent_of(text, order)
    assert words is not None
    code, priority = code_priority
    assert words[:2] == [notify, number]
    assert sorted(words[2:]) == sorted([value, code | priority << 16 if order == "little" else code << 16 | priority])


def test_sigevents_that_are_none():
    assert sigevent_of("UNKNOWN(0x1f)", "little") == [0x1F, 0, 0, 0]
    assert sigevent_of("UNKNOWN(1f)", "little") == [0x1F, 0, 0, 0]
    for text in ("PULSE 1:2", "SIGNAL", "NOTHING 1", "SIGNAL_CODE 1 2", "UNKNOWN(xyz)"):
        assert sigevent_of(text, "little") is None


def test_a_list_is_read_up_to_a_structure():
    """Words of a structure have a form of their own."""
    fields = [Field("number", 1, Show.DEC), Field("sigevent", 0, Show.STRUCT), Field("more", 1, Show.DEC)]
    found = compile_list(fields, 5, is_whole=True, has_short_hex=False)
    assert (found.names, found.words(" number:7", "little")) == (("number",), [7])
    assert found.words(" number:7 more:8", "little") is None


ROW = (
    Field("a", 1, Show.HEX, is_sure=False), Field("wide_b", 2, Show.DEC), Field("m[0]", 1, Show.MSG),
    Field("m[1]", 1, Show.MSG_MORE), Field("t", 0, Show.STRING),
)  # fmt: skip
PLACED = [
    # Words 0 to 4 are those of the row, texts of the row follow, then other numbers and other texts.
    ('a:1 wide b:-2 m:"x" (0x41 2) t:hello', 3, False,
     "1 0 0 41 2 6c6c6568 6f fffffffe 65646977 0",
     ["a 0 1 hex? %d 0", "b 7 1 dec %d 0", "m[0] 3 1 msg - 0", "m[1] 4 1 msg_cont - 0", "t 5 0 string - 0",
      "text 8 0 string - 0"]),
    # A message that is longer than in the row, and none of the names that are there.
    ('a:0x00000001 wide_b:5 m[0]:"x" (0x41 2 3)', 2, False, "1 5 0 0 0 41 2 3",
     ["a 0 1 hex? 0x%08x 0", "wide_b 1 2 dec %d 0", "m[0] 5 1 msg - 0", "m[1] 6 1 msg_cont - 0",
      "m[2] 7 1 msg_cont - 0"]),
    ('n:4 x:5000000000 y:4294967295 z:-1 s:"q u" u:v w', 0, False,
     "4 2a05f200 1 ffffffff ffffffff 752071 772076 0",
     ["n 0 1 dec %d 0", "x 1 2 dec %d 0", "y 3 1 hex %d 0", "z 4 1 dec %d 0", 's 5 0 string "%s" 0',
      "u 5 0 string - 1"]),
    # One that does not fit its field is behind the row; the row without it has as much and comes later.
    ("a:-3000000000 k:7", 0, False, "0 0 0 0 0 4d2fa200 ffffffff 7", ["a 5 2 dec %d 0", "k 7 1 dec %d 0"]),
    ('a:0x1 wide_b:5 m:"" (1 2) t:x', 4, True, "1 5 0 1 2 78",
     ["a 0 1 hex? 0x%x 0", "wide_b 1 2 dec %d 0", "m[0] 3 1 msg - 0", "m[1] 4 1 msg_cont - 0", "t 5 0 string - 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "matched", "is_whole", "words", "parts"), PLACED)
def test_arguments_of_a_line_at_the_words_of_a_row(text, matched, is_whole, words, parts):
    """Name, first word, words, notation, template and number of the text of each part; `?` is not proven."""
    found = placed(values_of(text), [ROW] if matched or "k" in text else [], "little", is_long=False)
    shown = [
        f"{part.name} {part.word} {part.words} {part.show.value}{'' if part.is_sure else '?'} "
        f"{part.template or '-'} {part.text_index}"
        for part in found.parts
    ]
    assert shown == parts
    assert (" ".join(f"{word:x}" for word in found.words), found.matched) == (words, matched)
    assert found.is_whole is is_whole


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a:1 b=0x2, c : -3", ["a dec 1 %d", "b hex 2 0x%x", "c dec -3 %d"]),
        ("word 3:0x5 word 123456:7", ["word 3 hex 5 0x%x", "123456 dec 7 %d", "text string word -"]),
        ("x:12(13) y:12 (13) z:12(13", ["x dec 12 %d", "y dec 12 %d", "z string 12(13 -"]),
        ('m:"a" ( 1, 0x2 -3 ) n:"a"(1)', [f"m msg (1, 2, {2**32 - 3}) -", "n msg (1,) -"]),
        ('q:"a b", r:"c"d s:"e"', ['q string a b "%s"', 'r string "c"d -', 's string e "%s"']),
        ("t:one two u:3\nv:4", ["t string one two -", "u dec 3 %d", "v dec 4 %d"]),
        ("lead a:1 mid, b:2 tail", ["a dec 1 %d", "b dec 2 %d", "text string lead mid tail -"]),
        ("a:b:c d:e", ["a string b:c -", "d string e -"]), ("n:", ["n string  -"]), ("", []),
        (f"a:{2**64} b:{-(2**63) - 1} c:{2**64 - 1} d:{-(2**63)}",
         [f"a string {2**64} -", f"b string {-(2**63) - 1} -", f"c dec64 {2**64 - 1} %d", f"d dec64 {-(2**63)} %d"]),
        (f"a:{2**32} b:{-(2**31) - 1} c:{2**32 - 1} d:{-(2**31)}",
         [f"a dec64 {2**32} %d", f"b dec64 {-(2**31) - 1} %d", f"c dec {2**32 - 1} %d", f"d dec {-(2**31)} %d"]),
        (f'm:"a" (1 {2**32 - 1})', [f"m msg (1, {2**32 - 1}) -"]), (f'm:"a" (1 {2**32})', [f"m string 1 {2**32} -"]),
    ],
)  # fmt: skip
def test_arguments_that_a_text_shows(text, values):
    """Name, notation, value and template of each; what is between them is one text at the end."""
    shown = [(each, each.words if each.number is None and each.words else each.number) for each in values_of(text)]
    assert [
        f"{each.name} {each.kind} {each.text if value is None else value} {each.template or '-'}"
        for each, value in shown
    ] == values


def test_a_line_shows_256_arguments():
    for count, rest in ((256, []), (257, ["a256:256"]), (258, ["a256:256 a257:257"])):
        found = values_of(" ".join(f"a{number}:{number}" for number in range(count)))
        assert [each.number for each in found[:256]] == list(range(256))
        assert [each.text for each in found[256:]] == rest


def test_the_row_that_has_most_of_a_line():
    """The first of several alike; all that a line has, and no more, is best. A long event has four words or more."""
    one, two, other = ((Field(name, 1, Show.DEC),) for name in ("a", "a", "b"))
    both = (*one, *other)
    for rows, text, long, expected in (
        ([one, both], "a:1", False, ([1], 1, True)), ([both, one], "a:1", False, ([1], 1, True)),
        ([other, both], "a:1 b:2", True, ([1, 2, 0, 0], 2, True)), ([other], "a:1", False, ([0, 1], 0, False)),
        ([both], "b:2", False, ([0, 2], 1, False)), ([], "a:1 b:2 c:3", False, ([1, 2, 3, 0], 0, False)),
        ([], "", True, ([0, 0, 0, 0], 0, True)), ([two], "a:1 c:2 d:3 e:4 f:5", True, ([1, 2, 3, 4, 5, 0], 1, False)),
    ):  # fmt: skip
        found = placed(values_of(text), rows, "little", is_long=long)
        assert (found.words, found.matched, found.is_whole) == expected


STRICT, SHORT, LENIENT = {"has_short_hex": False}, {"has_short_hex": True}, {"has_short_hex": False, "is_lenient": True}
EITHER = {"has_short_hex": True, "is_lenient": True}
LONG = "0000000000000010"


@pytest.mark.parametrize(
    ("show", "words", "how", "expected"),
    [
        (Show.HEX, 1, STRICT, {"0x00000010": [16], "0x10": None, "00000010": None, "10": None}),
        (Show.HEX, 2, STRICT, {f"0x{LONG}": [16, 0], "0x00000010": None, LONG: None}),
        (Show.POINTER, 1, STRICT, {"0x00000010": [16], "00000010": [16], "10": None}),
        (Show.POINTER, 2, STRICT, {f"0x{LONG}": [16, 0], LONG: [16, 0], "10": None}),
        (Show.DEC, 1, STRICT, {"-5": [0xFFFFFFFB], "0x5": None, "4294967296": None}),
        (Show.DEC, 2, STRICT, {"-5": [0xFFFFFFFB, 0xFFFFFFFF], "4294967296": [0, 1]}),
        (Show.HEX, 1, SHORT, {"0x00000010": [16], "0x10": None}),
        (Show.HEX, 2, SHORT, {f"0x{LONG}": [16, 0], "0x10": [16, 0], "10": None}),
        (Show.POINTER, 1, SHORT, {"0x10": [16], "10": [16], "123456789": None}),
        (Show.POINTER, 2, SHORT, {"10": [16, 0], "123456789": [0x23456789, 1]}),
        (Show.HEX, 1, LENIENT, {"10": [10], "0x10": [16], "0X10": [16], "0x123456789": None}),
        (Show.HEX, 2, LENIENT, {"10": [10, 0], "0x10": [16, 0]}),
        (Show.POINTER, 1, LENIENT, {"10": [10], "1a": None}),
        (Show.POINTER, 1, EITHER, {"10": [16], "1a": [26], "123456789": None}),
        (Show.POINTER, 2, EITHER, {"10": [16, 0], "123456789": [0x23456789, 1]}),
        (Show.HEX, 1, EITHER, {"10": [10], "1a": None}),
        (Show.DEC, 1, EITHER, {"10": [10], "0x10": [16]}),
    ],
)  # fmt: skip
def test_numbers_of_a_list(show, words, how, expected):
    """As printers write them: with all zeros, or up to 6.x without those of pointers and wide numbers; or anyhow."""
    found = compile_list([Field("a_b", words, show)], 5, is_whole=True, **how)
    assert {text: found.words(f" a_b:{text}", "little") for text in expected} == expected


def test_what_may_be_between_the_arguments_of_a_list():
    """Blanks alone, or commas, equals signs and blanks in names too; it may be cut short where it is not whole."""
    fields = [
        Field("a_b", 1, Show.DEC),
        Field("c", 1, Show.DEC),
        Field("d", 0, Show.STRING),
        Field("e", 0, Show.STRING),
    ]

    def words(text: str, count: int, **how: bool) -> list[int] | None:
        return compile_list(fields[:count], 5, has_short_hex=False, **how).words(text, "little")

    assert words(" a_b:1  c:2 \n", 2, is_whole=True) == [1, 2]
    assert words(" a_b:1 c:2,", 2, is_whole=True) is words(" a b:1 c:2", 2, is_whole=True) is None
    assert words(" a_b:1", 2, is_whole=True) is words("a_b:1 c:2", 2, is_whole=True) is None
    assert words(" a_b:1", 2, is_whole=False) == [1]
    assert words(" c:2", 2, is_whole=False) is None
    assert words(" a b = 1,c:2, ,", 2, is_whole=True, is_lenient=True) == [1, 2]
    assert words(" a_b:1 c:2 d:x ", 3, is_whole=True) == [1, 2, ord("x") | ord(" ") << 8]
    assert words(" a_b:1 c:2 d:x e:y", 4, is_whole=True) == [1, 2, ord("x") | ord("y") << 16]
    whole = compile_list(fields, 5, is_whole=False, has_short_hex=False)
    assert (whole.names, whole.spellings, whole.code) == (("a_b", "c", "", ""), ("a_b", "c", "d", "e"), 5)
    assert whole.shown(" a_b:1 c:2") == ("a_b", "c")
    assert list(whole.notations(" a_b:1 c:2 d:3")) == [("a_b", "%d"), ("c", "%d")]
    message = [Field("m[0]", 1, Show.MSG), *[Field(f"m[{number}]", 1, Show.MSG_MORE) for number in (1, 2)]]
    for text, expected in (('" (0x1)', [1]), ('a"b" (0x1 0x2 0x3)', [1, 2, 3]), ('" (0x1 0x2 0x3 0x4)', None),
                           ('" (1)', None), ('" (0x1,0x2)', None)):  # fmt: skip
        for name in ("m", "m[0]"):
            found = compile_list(message, 5, is_whole=True, has_short_hex=False)
            assert found.words(f' {name}:"{text}', "little") == expected
    lenient = compile_list(message, 5, is_whole=True, has_short_hex=False, is_lenient=True)
    assert lenient.words(' m = "a" ( 1, 0x2 -3 )', "little") == [1, 2, 0xFFFFFFFD]
    assert lenient.words(' m:"a" (1 2 3 4)', "little") is None


def test_slots_of_events():
    """Up to two words are one slot; more are combined: begin, continue, end, the last one padded."""
    slots = SlotList()
    slots.event(5, 2, 0x1_0000_0007, [4])
    slots.event(6, 0, 8, [1])
    slots.event(7, 1, 9, [1, 2])
    assert slots.has_full_times
    slots.event(8, 63, 10, [1, 2, 3])
    slots.event(9, 0, 11, [1, 2, 3, 4, 5, 6])
    slots.slot(0xC0000001, 12, 13, 14)
    begin, middle, end = (kind << 30 for kind in (1, 2, 3))
    assert slots.slots().tolist() == [
        [5 | 2 << 24, 7, 4, 0], [6, 8, 1, 0], [7 | 1 << 24, 9, 1, 2],
        [8 | 63 << 24 | begin, 10, 1, 2], [8 | 63 << 24 | end, 10, 3, 0],
        [9 | begin, 11, 1, 2], [9 | middle, 11, 3, 4], [9 | end, 11, 5, 6], [0xC0000001, 12, 13, 14],
    ]  # fmt: skip
    assert slots.times().tolist() == [0x1_0000_0007, 8, 9, 10, 10, 11, 11, 11, 12]
    assert len(slots) == 9
    few = SlotList()
    few.event(1, 0, 0xFFFFFFFF, [0])
    assert not few.has_full_times
    for count in range(1, 7):  # variant 40 + count of an event of so many words
        few.event(2, 0, 5, [7] * count, 40 + count)
    assert [column.tolist() for column in few.listed()] == [[1, 2, 4, 6, 9, 12], [41, 42, 43, 44, 45, 46]]


def test_times_of_lines():
    """Counts, low words with letters for digits, one that lost a digit, seconds, and rubbish."""
    problems = Problems()
    stamps = Stamps(problems)
    read = [
        stamps.cycles(1, 0, "t:0x00001000 ", 1000),
        stamps.cycles(2, 1, "t:0x0000l0I0 ", 1000),
        stamps.cycles(3, 0, "t:0x0000100 ", 1000),
        stamps.cycles(4, 2, "t:0x0000zz00 ", 1000),
        stamps.cycles(5, 0, "", 1000),
    ]
    assert read == [0x1000, 0x1010, 0x1000, 0, 0x1000]
    assert not stamps.is_wall
    assert stamps.cycles(6, 0, "t:2.003.500us ", 1000) == 2003
    assert stamps.is_wall
    assert stamps.cycles(7, 0, "t:999999999.999.999us ", 10**12) == MAX_CYCLES
    full = Stamps(problems)
    assert full.cycles(8, 0, "t:0.000.016us c:0x4000000000000000 ", 1) == MAX_CYCLES
    assert full.is_wall
    assert full.cycles(9, 0, "c:0x4000000000000001 ", 1) == MAX_CYCLES
    assert [(problem.kind.slug, problem.detail, problem.line) for problem in problems] == [
        ("listing-digits", "time 0000100 at line 3 is damaged; read as 0x00001000", 3),
        ("listing-digits", "time 0000zz00 at line 4 is damaged; read as 0x00000000", 4),
        ("listing-digits", "time  at line 5 is damaged; read as 0x00001000", 5),
        ("listing-digits", "time 4000000000000001 at line 9 is damaged; read as 0x4000000000000000", 9),
    ]


@pytest.mark.parametrize(
    ("last", "digits", "time"),
    [
        (0x1000, "0000000", 0x1000), (0x1000, "0001234", 0x1234), (0x1235, "0001234", 0x10234), (0x1000, "000", 0),
        (0x50001000, "0000000", 0x60000000), (0x1_0000_1000, "0001234", 0x1_0000_1234), (0x1000, "00000000", 0),
        (0xFFFFFFF0, "1234567", 0x1234567), (None, "0001234", 0x1234), (0, "0000001", 1), (0x1000, "000000", 0),
    ],
)  # fmt: skip
def test_a_time_that_lost_a_digit(last, digits, time):
    """The first one from the time before on that gives it when a digit is lost; as it is where there is none."""
    stamps = Stamps(Problems())
    if last is not None:
        assert stamps.cycles(1, 0, f"t:0x{last:08x} ", 1) == last
    assert stamps.cycles(2, 0, f"t:0x{digits} ", 1) == time


def test_lines_of_slots():
    slots = np.array([[0x12345678, 1, 2, 0xA0B0C0D0]], np.uint32)
    assert slot_lines(slots, "little") == ["event => h:0x12345678 d0:0x00000001 d1:0x00000002 d2:0xa0b0c0d0\n"]
    assert slot_lines(slots, "big") == ["event => h:0x12345678 d0:0x00000001 d1:0x02000000 d2:0xd0c0b0a0\n"]
    assert stray_line(wire.Struct.COMBINE_END << 30) == "TRACEPARSER: unbalanced end of combine event ignored\n"
    assert "continuation" in stray_line(wire.Struct.COMBINE_CONTINUE << 30)
    for length, blanks in ((9, 7), (16, 0), (22, 0)):  # keys end in column 22
        assert key_column("A" * length) == " " * blanks + "TRACE_" + "A" * length
    assert key_column("A" * 30) == "TRACE_  " + "A" * 30


def test_lines_of_the_system_page():
    raw = bytes(64) + (7).to_bytes(4, "little") + bytes(36) + (9).to_bytes(4, "little")
    values = {
        "size": 200, "total_size": 300, "num_cpu": 2, "cpuinfo.offset": 64, "cpuinfo.size": 80,
        "cpuinfo.element_size": 40, "qtime.cycles_per_sec": 1000, "qtime.nsec": 5, "qtime.boot_time": 6,
        "qtime.timer_load": 7,
    }  # fmt: skip
    cpus = (CpuInfo(0, "A57", 1200, 3, ("FPU", "MMU")), CpuInfo(1, "A53", 800))
    system = SystemInfo(200, "AArch64", cpus, None, (("HOSTNAME", "box"), ("MACHINE", "m")), values, raw)
    assert "".join(syspage_lines(system, "little")).splitlines() == [
        " size=200 total_size=300 system_private:off/size=65535,0",
        " asinfo:off/size=65535,0 meminfo:off/size=65535,0 hwinfo:off/size=65535,0",
        " cpuinfo:off/size=64,80 cacheattr:off/size=65535,0 qtime:off/size=65535,0",
        " callout:off/size=65535,0 callin:off/size=65535,0 intrinfo:off/size=65535,0",
        " typed_strings:off/size=65535,0 strings:off/size=65535,0",
        " processor=AArch64 num_cpus=2",
        "  cpu 1 cpu=7 name=A57 speed=1200",
        "  flags=0x000003 FPU MMU",
        "  cpu 2 cpu=9 name=A53 speed=800",
        "  flags=00000000",
        " cyc/sec=1000 tod_adj=0 nsec=5  inc=0",
        " boot=6 epoch=0 intr=0",
        " rate=0 scale=0 load=7",
        '   HOSTNAME="box"   MACHINE="m"',
    ]
    assert "".join(syspage_lines(system, "big")).count("cpu=117440512") == 1
    del values["cpuinfo.element_size"]  # entries of older releases have 32 bytes
    assert [line for line in syspage_lines(system, "little") if "cpu=" in line] == [
        "  cpu 1 cpu=7 name=A57 speed=1200\n", "  cpu 2 cpu=0 name=A53 speed=800\n"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "is_one"),
    [("                      name:", True), ("                      name:a b", True),
     ("                     name:a b", False),
     ("                       name:a b", False), ("                  two of:a b", False), (" name:7", True),
     (" name:-7 ", True), ("name:7", False), (" name:x", False), (" word 3:0x5", True), (' m:"a" (1 2)', True),
     (' m:"a" 1 2', False), ("", False), ("# ls", False)],
)  # fmt: skip
def test_lines_that_look_like_an_argument(line, is_one):
    """The colon below those of the printer, in column 26, or a number behind a name."""
    assert is_argument_line(line) == is_one


def test_decimal_times_of_lines():
    """A damaged one is that of the event before it on its CPU."""
    problems = Problems()
    stamps = Stamps(problems)
    stamps.look_ahead(f"t:{number} " for number in (100, 200))
    assert stamps.is_decimal
    texts = ((0, "100"), (1, "x"), (0, "1e3"), (0, MAX_CYCLES), (1, MAX_CYCLES + 1), (0, "-5"), (1, "0"), (1, "9z"))
    read = [stamps.cycles(line, cpu, f"t:{text} ", 1) for line, (cpu, text) in enumerate(texts)]
    assert read == [100, 0, 100, MAX_CYCLES, 0, MAX_CYCLES, 0, 0]
    assert [(each.line, each.detail) for each in problems] == [
        (1, "time x at line 1 is damaged; read as 0x00000000"),
        (2, "time 1e3 at line 2 is damaged; read as 0x00000064"),
        (4, f"time {MAX_CYCLES + 1} at line 4 is damaged; read as 0x00000000"),
        (5, f"time -5 at line 5 is damaged; read as 0x{MAX_CYCLES:x}"),
        (7, "time 9z at line 7 is damaged; read as 0x00000000"),
    ]  # fmt: skip


def test_the_head_of_a_listing():
    """With the system page where there is one, and lengths of values in bytes, if it is verbose."""
    header = Header((("A", "xy\u00fc\n"),))
    system = SystemInfo(1, "x", (), None, (), {"size": 1, "total_size": 2, "num_cpu": 0}, b"")

    def lines(system, **how):
        return "".join(head_lines(header, system, "little", **how)).splitlines()[2:]

    assert lines(system, is_vendor=True, is_verbose=False) == [
        " -- HEADER FILE INFORMATION -- ", "               TRACE_A:: xy", " -- KERNEL EVENTS -- "
    ]  # fmt: skip
    assert lines(None, is_vendor=False, is_verbose=True) == [
        " -- HEADER FILE INFORMATION -- ", '               TRACE_A:: (len=5) -> "xy\u00fc\\n" ',
        " -- SYSPAGE INFORMATION -- ", "TRACEPRINTER: header file and syspage have been processed",
        " -- KERNEL EVENTS -- ",
    ]  # fmt: skip
    assert lines(system, is_vendor=True, is_verbose=True)[3].startswith(" size=1 total_size=2 system_private:")

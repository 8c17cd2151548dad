"""Lines of a listing: what each counts as, what is said of it, and the slots that are left."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path

import pytest

from satview.base.errors import Cancelled
from satview.events.spec import Release
from satview.formats.listing import reader
from satview.formats.listing.model import LineCounts, StampNotation
from satview.formats.listing.reader import open_listing, read_listing, score
from satview.store.problems import Problems

PULSE = "COMM            :SND_PULSE_EXE      scoid:0x00010001 pid:1"
TIME = "CONTROL         :TIME               msb:0x{:08x} lsb(offset):0x00000009"
STATE = "THREAD          :THREADY            "
CREATE = "PROCESS         :PROCCREATE_NAME    "
HEAD = ["  TRACE_CYCLES_PER_SEC:: 1000", "  TRACE_SYS_RELEASE:: 7.1.0"]
RAW = "event => h:0x00001c04 d0:0x00000009 d1:0x00010001 d2:0x00000001"
FAILED_EXIT = "KER_EXIT        :MSG_SENDV/11       ret_val:-1, errno:5"


def at(time: int, event: str, cpu: int = 0) -> str:
    return f"t:0x{time:08x} CPU:{cpu:02} {event}"


def read(lines, **known):
    problems = Problems()
    text = lines if isinstance(lines, bytes) else "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")
    return read_listing(io.BytesIO(text), problems, **known), problems


def shown(listing, problems):
    """Return counts of lines, problems as text, and slots as hexadecimal: event, CPU, time and words."""
    counts = " ".join(f"{name} {count}" for name, count in asdict(listing.line_counts).items() if count)
    reported = [f"{problem.kind.slug}: {problem.detail}" for problem in problems]
    slots = [f"{header & 0x7FFF:x}@{header >> 24 & 63} {stamp:x}: {first:x} {second:x}"
             for header, stamp, first, second in listing.slot_array().tolist()]  # fmt: skip
    return counts, reported, slots


@pytest.mark.parametrize(
    ("lines", "counts", "reported", "slots"),
    [
        ([at(9, PULSE)], "event 1", [], ["1c04@0 9: 10001 1"]),
        ([".", "", ".", at(9, PULSE), " . ", "."], "event 1 blank 1 cut 4",
         ["cut-listing: lines were left out at line 3", "cut-listing: lines were left out at line 7"],
         ["1c04@0 9: 10001 1"]),
        ([at(9, STATE), "    pid:1", "", "    tid:2", "", at(10, PULSE)], "event 2 continuation 2 blank 2", [],
         ["1002@0 9: 1 2", "1002@0 9: 0 0", "1c04@0 a: 10001 1"]),
        ([at(9, STATE + "pid:1 tid:2"), "# ls", "", "file", at(10, PULSE)], "event 2 blank 1 foreign 2",
         ["foreign-line: 2 in the event of line 3"], ["1002@0 9: 1 2", "1c04@0 a: 10001 1"]),
        (["# ls", at(9, PULSE)], "event 1 foreign 1", ["foreign-line: line 3: '# ls'"], ["1c04@0 9: 10001 1"]),
        ([" -- KERNEL EVENTS -- ", "  TRACE_FILE_NAME:: x", at(9, PULSE)], "title 1 event 1 foreign 1",
         ["foreign-line: line 4: '  TRACE_FILE_NAME:: x'"], ["1c04@0 9: 10001 1"]),
        ([at(9, PULSE), " -- SYSPAGE INFORMATION -- ", " size=200", "TRACEPRINTER: x", " processor=x",
          " -- KERNEL EVENTS -- ", " size=200"], "title 2 syspage 2 event 1 notice 1 foreign 1",
         ["foreign-line: line 9: ' size=200'"], ["1c04@0 9: 10001 1"]),
        (["TRACEPRINTER version 1.02", "TRACEPARSER LIBRARY version 1.02", " -- HEADER FILE INFORMATION -- ", "junk"],
         "title 1 notice 2 foreign 1", ["foreign-line: line 6: 'junk'"], []),
        ([at(9, STATE + "pid:1 tid:2"), "TRACEPARSER: unbalanced end of combine event ignored", "junk"],
         "event 1 notice 1 foreign 1", ["foreign-line: 1 in the event of line 3"], ["1002@0 9: 1 2"]),
        ([at(9, STATE + "pid:1 tid:2"), ".", "junk"], "event 1 cut 1 foreign 1",
         ["cut-listing: lines were left out at line 4", "foreign-line: line 5: 'junk'"], ["1002@0 9: 1 2"]),
        # A failed exit has no line end behind it.
        ([at(9, FAILED_EXIT) + at(10, FAILED_EXIT) + at(11, PULSE), "junk"], "event 1 foreign 1",
         ["foreign-line: 1 in the event of line 3"],
         ["88b@0 9: ffffffff 5", "88b@0 a: ffffffff 5", "1c04@0 b: 10001 1"]),
        ([at(9, FAILED_EXIT) + "TRACEPRINTER: x", "junk"], "event 1 foreign 1", ["foreign-line: line 4: 'junk'"],
         ["88b@0 9: ffffffff 5"]),
        ([RAW, at(9, PULSE), RAW.replace("9", "a") + at(10, PULSE), "  # ls"],
         "event 1 raw_slot 2 continuation 1", [], ["1c04@0 9: 10001 1", "1c04@0 a: 10001 1"]),
        ([RAW, at(9, FAILED_EXIT) + RAW.replace("9", "a"), "junk"], "event 1 raw_slot 1 foreign 1",
         ["foreign-line: line 5: 'junk'"], ["1c04@0 9: 10001 1", "1c04@0 a: 10001 1"]),
        ([RAW + "junk", "junk"], "raw_slot 1 foreign 1", ["foreign-line: line 4: 'junk'"], ["1c04@0 9: 10001 1"]),
        (["  event => h:0x00001c04"], "foreign 1", ["foreign-line: line 3: '  event => h:0x00001c04'"], []),
        ([RAW[:-1]], "foreign 1", [f"foreign-line: line 3: {RAW[:60]!r}"], []),
        # What is before an event: a prompt or a pager's mark, but no quoted text and no word.
        (["# " + at(9, PULSE)], "event 1", [], ["1c04@0 9: 10001 1"]),
        (["x" * 3 + at(9, PULSE)], "foreign 1", [f"foreign-line: line 3: {('xxx' + at(9, PULSE))[:60]!r}"], []),
        (['" ' + at(9, PULSE)], "foreign 1", [f"foreign-line: line 3: {(chr(34) + ' ' + at(9, PULSE))[:60]!r}"], []),
        (["#" * 180 + at(9, PULSE)], "event 1", [], ["1c04@0 9: 10001 1"]),
        (["#" * 181 + at(9, PULSE)], "foreign 1", [f"foreign-line: line 3: {'#' * 60!r}"], []),
        # What a terminal adds.
        (["\x1b[31;1m" + at(9, PULSE) + "\x1b[0m"], "event 1", [], ["1c04@0 9: 10001 1"]),
        (["x\x08" + at(9, PULSE) + "\x07"], "event 1", [], ["1c04@0 9: 10001 1"]),
        ([at(9, PULSE) + "\r"], "event 1", [], ["1c04@0 9: 10001 1"]),
        ([at(9, CREATE), "    ppid:1", "    pid:2", "    name:a\udcff"], "event 1 continuation 3", [],
         ["10c0@0 9: 1 2", "10c0@0 9: ff61 0"]),
    ],
)  # fmt: skip
def test_what_lines_are(lines, counts, reported, slots):
    listing, problems = read(HEAD + lines)
    listing.line_counts.header -= 2
    assert shown(listing, problems) == (counts, reported, slots)


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("   TRACE_FILE_NAME:: x y", ("FILE_NAME", "x y")), ("TRACE_A::x", ("A", "x")), ("TRACE_A:: ", ("A", "")),
        ('TRACE_A:: (len=3) -> "a"b" ', ("A", 'a"b')), ('TRACE_A:: (len=3) -> "abc', ("A", '(len=3) -> "abc')),
        ("TRACE_A b:: x", ("A b", "x")), ("TRACE_A:: TRACE_B:: x", None), ("x TRACE_A:: x", None), ("TRACE_A: x", None),
    ],
)  # fmt: skip
def test_lines_of_the_header(line, pair):
    listing, problems = read([line])
    assert listing.pairs == ([pair] if pair else [])
    assert (listing.line_counts.header, listing.line_counts.foreign) == ((1, 0) if pair else (0, 1))
    assert len(list(problems)) == (pair is None)


def test_words_of_slots_of_a_big_endian_target():
    """In host order: header and stamp; as the target had them: payload words."""
    lines = ["TRACE_BIG_ENDIAN:: TRUE", *HEAD, "event => h:0x00001c04 d0:0x00000102 d1:0x00000102 d2:0x01020304"]
    assert read(lines)[0].slot_array().tolist() == [[0x1C04, 0x102, 0x02010000, 0x04030201]]
    lines[0] = "TRACE_LITTLE_ENDIAN:: TRUE"
    assert read(lines)[0].slot_array().tolist() == [[0x1C04, 0x102, 0x102, 0x01020304]]


def test_a_verbose_listing_gives_its_slots_and_no_event_twice():
    listing, _ = read([*HEAD, RAW, at(9, PULSE), RAW, at(9, PULSE, 70), "x"])
    assert (len(listing.slots), listing.events, listing.full_times()) == (2, 2, None)
    assert listing.line_counts.part + listing.line_counts.raw == 0


@pytest.mark.parametrize(("lines", "foreign"), [(0, 0), (3, 0), (4, 1), (6, 3)])
def test_lines_behind_the_longest_event(monkeypatch, lines, foreign):
    monkeypatch.setattr(reader, "MAX_BODY_LINES", 3)
    listing, problems = read([*HEAD, at(9, PULSE), *["# x"] * lines, at(10, PULSE)])
    assert (listing.line_counts.foreign, listing.line_counts.continuation) == (lines, 0)
    assert len([problem for problem in problems if problem.detail.startswith("line ")]) == foreign


@pytest.mark.parametrize(("blanks", "text"), [(1, "a\n\nb"), (3, "a\n\n\n\nb"), (5, "a\n\n\n\nb")])
def test_blank_lines_inside_a_text(monkeypatch, blanks, text):
    monkeypatch.setattr(reader, "MAX_BODY_LINES", 3)
    event = at(9, 'USREVENT        :EVENT:3, STR:"a')
    listing, _ = read([*HEAD, event, *[""] * blanks, 'b"'])
    words = b"".join(int(word).to_bytes(4, "little") for slot in listing.slot_array() for word in slot[2:])
    assert words.rstrip(b"\0").decode() == text
    assert (listing.line_counts.blank, listing.line_counts.continuation) == (blanks, 1)


def test_a_line_longer_than_any_printer_writes(monkeypatch):
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 100)
    listing, _ = read([*HEAD, at(9, PULSE) + " " * 60 + "x"])
    assert (listing.line_counts.event, listing.line_counts.foreign) == (1, 1)


def test_how_far_the_reader_is():
    """It says so every 16,384 lines, and looks there whether it is to stop."""
    line = b"\n"
    done, looks = [], []
    listing, _ = read(line * (2 << 14), progress=done.append, cancelled=lambda: looks.append(1) is not None)
    assert (done, len(looks), listing.line_counts.blank) == ([1 << 14, 2 << 14], 2, 2 << 14)
    done.clear()
    read(line * ((1 << 14) - 1), progress=done.append)
    assert done == []
    with pytest.raises(Cancelled):
        read(line * (1 << 14), cancelled=lambda: True)


@pytest.mark.parametrize(("events", "release"), [(2, Release.QNX_7), (3, Release.QNX_7), (4, Release.QNX_8)])
def test_events_that_wait_for_the_release(monkeypatch, events, release):
    """The header does not show it: the first ones do, here three of them; the header behind them comes too late."""
    monkeypatch.setattr(reader, "_LOOK_AHEAD", events)
    lines = [at(number, PULSE) for number in range(3)] + [at(4, "INTERRUPT       :INT_DELIVER       intr_id:1")]
    listing, _ = read(lines)
    assert (listing.release, listing.is_release_known, listing.events) == (release, False, 4)
    assert len(listing.slots) == listing.events
    known, _ = read([HEAD[1].replace("7.1.0", "8.0.0"), *lines])
    assert (known.release, known.is_release_known, known.line_counts.raw) == (Release.QNX_8, True, 0)


EIGHT = StampNotation("%08x", False)


@pytest.mark.parametrize(
    ("lines", "release", "stamps"),
    [
        ([at(9, PULSE)], "7.1.0", None), ([at(9, TIME.format(0))], "7.1.0", None),
        ([at(9, TIME.format(5))], "7.1.0", StampNotation("0x%08x", True)), ([at(9, TIME.format(5))], "6.4.0", None),
        ([at(9, TIME.format(5))], "6.6.0", None), ([f"t:0x100000009 CPU:00 {PULSE}"], "7.1.0", None),
        ([f"t:12 CPU:00 {PULSE}"], "7.1.0", StampNotation("%d", False)),
        ([f"t:12 CPU:00 {PULSE}"], "6.4.0", StampNotation("%d", True)),
        ([f"t:4294967296 CPU:00 {PULSE}"], "6.4.0", StampNotation("%d", False)),
        ([f"t:0x1f CPU:00 {PULSE}"], "7.1.0", StampNotation("0x%x", False)),
        ([f"t:0x1234567f CPU:00 {PULSE}"], "7.1.0", None), ([f"t:1234567f CPU:00 {PULSE}"], "7.1.0", EIGHT),
        ([f"t:01f CPU:00 {PULSE}"], "7.1.0", StampNotation("%03x", False)),
        ([f"t:0.009.000us CPU:00 {PULSE}"], "7.1.0", None), ([], "7.1.0", None),
    ],
)  # fmt: skip
def test_how_stamps_are_printed(lines, release, stamps):
    """None is as the printer of the release does it: the low half up to 6.6, the whole clock from 7.x on.

    Stamps of 32 bits are the low half where a TIME event shows that the clock is beyond them.
    """
    assert read([HEAD[0], f"  TRACE_SYS_RELEASE:: {release}", *lines])[0].stamps == stamps


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("TRACE_HEADER_BEGIN:: TRACEPRINTER version 1", 0), ("TRACEPRINTER version 1.02\n", 95),
        (" TRACEPRINTER version 1.02\n", 60), (at(9, PULSE), 70), (f"x\n{at(9, PULSE)}", 70),
        (f"-- KERNEL EVENTS --\n{at(9, PULSE)}", 90), (" TRACE_FILE_NAME:: x\n", 60),
        (" TRACE_FILE_NAME:: x\n\0", 0), (f"\0TRACE_A:: x\n{at(9, PULSE)}", 70), ("hello", 0), ("", 0),
        ("#" * 40 + " " + at(9, PULSE), 0), ("#" * 39 + " " + at(9, PULSE), 70), (f"x{at(9, PULSE)}", 0),
        ("\n" * (4096 - len(at(9, ""))) + at(9, PULSE), 0), ("\n" * (4095 - len(at(9, ""))) + at(9, PULSE), 70),
    ],
)  # fmt: skip
def test_how_sure_a_file_is_a_listing(text, points):
    assert score(text.encode(), Path("x")) == points


@pytest.mark.thorough
def test_limits_of_lines():
    """A line of 64 KiB, 4,096 lines of an event, 4,096 events that wait for one that shows the release."""
    for length, lines in ((1 << 16, 1), ((1 << 16) + 1, 2)):
        assert read(b"x" * (length - 1) + b"\n")[0].line_counts.lines == lines
    for extra in (0, 1):
        _, problems = read([*HEAD, at(9, PULSE), *["# x"] * (4096 + extra)])
        assert [problem.count for problem in problems] == [1] * extra + [4096]
    for waiting, release in ((4095, Release.QNX_8), (4096, Release.QNX_7)):
        listing, _ = read([*[at(9, PULSE)] * waiting, at(9, "INTERRUPT       :INT_DELIVER       intr_id:1")])
        assert (listing.release, listing.events) == (release, waiting + 1)


def test_cpus_that_a_slot_holds_and_times_without_a_rate():
    """64 CPUs; the number of another one is an argument. A cycle is a nanosecond where nothing says how long it is."""
    listing, _ = read([*HEAD, at(9, PULSE, 63), at(9, PULSE, 64)])
    assert shown(listing, ())[2] == ["1c04@63 9: 10001 1", "1c04@0 9: 10001 1", "1c04@0 9: 40 0"]
    assert listing.unlisted == {("COMM", "SND_PULSE_EXE", (("scoid", "hex"), ("pid", "dec"), ("CPU", "dec"))): 1}
    times = read([HEAD[1], f"t:0.009.001us CPU:00 {PULSE}"])[0].full_times()
    assert times is not None
    assert times.tolist() == [9_001_000]


@pytest.mark.parametrize(
    ("event", "release", "reason"),
    [
        ("INTERRUPT       :INT_DELIVER       intr_id:1", Release.QNX_8, "the events look like 8.0"),
        (PULSE, Release.QNX_7, "read as 7.x: of 2 lines 2 as 7.x, 2 as 8.0, 2 as 6.6 fit"),
        ("KER_EXIT        :MSG_SENDV/11       ret_val:0x00000000", Release.QNX_8,
         "read as 8.0: of 2 lines 0 as 7.x, 2 as 8.0, 0 as 6.6 fit"),
    ],
)  # fmt: skip
def test_why_a_listing_is_taken_for_that_of_a_release(event, release, reason):
    listing, _ = read([at(9, event)] * 2)
    assert (listing.release, listing.release_reason, listing.is_release_known) == (release, reason, False)


def test_the_first_64_events_show_whether_stamps_are_decimal():
    for count, template in ((63, "%x"), (64, "%d")):
        listing, _ = read([*HEAD, *[f"t:100 CPU:00 {PULSE}"] * count, f"t:1f CPU:00 {PULSE}"])
        assert listing.stamps == StampNotation(template, is_low=False)


def test_kinds_of_lines_that_fit_no_row(monkeypatch):
    """Each by its name and its arguments with how many there are; beyond the most no further kinds are kept."""
    assert reader.MOST_UNLISTED == 4096, "fewer are enough here"
    monkeypatch.setattr(reader, "MOST_UNLISTED", 2)
    kinds = [f"COMM            :SND_PULSE_EXE      {arguments}" for arguments in ("zzz:1", "zzz:0x1", "yyy:1")]
    listing, _ = read([*HEAD, *(at(9, kinds[number]) for number in (0, 1, 2, 0, 2))])
    assert listing.unlisted == {
        ("COMM", "SND_PULSE_EXE", (("zzz", "dec"),)): 2, ("COMM", "SND_PULSE_EXE", (("zzz", "hex"),)): 1
    }  # fmt: skip


def test_kinds_of_lines_by_their_names():
    counts = LineCounts(header=2, raw_slot=3, raw=1)
    assert (counts.counts(), counts.lines) == ({"header": 2, "slot": 3, "event with raw values": 1}, 6)


def test_how_far_a_listing_is_opened(tmp_path):
    """Nine tenths are reading, by bytes; the rest is no part of it."""
    path, done = tmp_path / "x.txt", []
    text = at(9, PULSE).encode() + b"\n" * (2 << 14)
    path.write_bytes(text)
    open_listing(path, done.append)
    assert done[0] == pytest.approx(0.9 * (len(text) - (1 << 14)) / len(text))
    assert done[1] == pytest.approx(0.9)


GUESSED = "no usable SYS_RELEASE; read as 7.x: of 1 lines 1 as 7.x, 1 as 8.0, 1 as 6.6 fit"


@pytest.mark.parametrize(
    ("head", "said"),
    [(HEAD, []), (HEAD[:1], [GUESSED]),
     ([HEAD[0], "TRACE_SYS_RELEASE:: x"], [GUESSED])],
)  # fmt: skip
def test_a_release_that_the_header_does_not_show(tmp_path, head, said):
    path = tmp_path / "x.txt"
    path.write_text("\n".join([*head, at(9, PULSE), ""]))
    trace = open_listing(path)
    assert [each.detail for each in trace.problems if each.kind.slug == "release-assumed"] == said
    assert (trace.release, trace.lines["event"], trace.format) == (Release.QNX_7, 1, "traceprinter")


@pytest.mark.parametrize(
    ("stamp", "full"),
    [("t:0x00000009", None), ("t:0.009.000us", [9]), ("t:0x00000009 c:0x0000000000000009", [9]),
     ("t:0x0000000100000009", [0x100000009])],
)  # fmt: skip
def test_times_that_stamps_need_not_be_joined_for(stamp, full):
    """Seconds, full counts beside, and counts of more than 32 bits; a cycle is a millisecond."""
    found = read([*HEAD, f"{stamp} CPU:00 {PULSE}"])[0].full_times()
    assert (None if found is None else found.tolist()) == full

"""Listings read back: every line is accounted for, and the slots are those of the file the listing was printed from."""

import io
import re
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import Cancelled, TraceFormatError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.formats.kev.reader import open_kev
from satview.formats.listing.reader import open_listing, read_listing, score
from satview.formats.registry import open_trace
from satview.formats.source import opened
from satview.store.problems import Problems
from tests.helpers.shared import GUIDE_LISTINGS, shared_path

VENDOR = ("control", "int", "ker_fast", "process", "threads", "threads_be", "user")
HEAD_6 = """TRACEPRINTER version 1.02
TRACEPARSER LIBRARY version 1.02
 -- HEADER FILE INFORMATION -- 
   TRACE_LITTLE_ENDIAN:: TRUE
  TRACE_CYCLES_PER_SEC:: 1000000
     TRACE_SYS_RELEASE:: 6.4.1
 -- KERNEL EVENTS -- 
"""  # noqa: W291
HEAD_7 = HEAD_6.replace("6.4.1", "7.1.0")


def read(text):
    problems = Problems()
    data = text if isinstance(text, bytes) else text.encode()
    return read_listing(io.BytesIO(data), problems), problems


def slots(text, head=HEAD_6):
    listing, problems = read(head + text)
    assert problems.counts() == {}
    return listing.slot_array().tolist()


def events_of(array):
    """Return {(header without structure bits, stamp): [payload words, ...]} of slots."""
    done, unfinished = {}, {}
    for header, stamp, *words in array.tolist():
        key = header & 0x3FFFFFFF, stamp
        if header >> 30 == 0:
            done.setdefault(key, []).append(words)
        elif header >> 30 == 1:
            unfinished.setdefault(key, []).append(words)
        elif unfinished.get(key):
            unfinished[key][0] += words
            if header >> 30 == 3:
                done.setdefault(key, []).append(unfinished[key].pop(0))
    return done


@pytest.mark.parametrize(
    "name",
    [f"golden/{name}.results.txt" for name in GUIDE_LISTINGS]
    + [f"golden/vendor-6.x/{name}{kind}" for name in VENDOR for kind in (".txt", ".n.txt")]
    + [
        "golden/vendor-6.x/threads.v.txt",
        "real/qnx71-ker_call.traceprinter.txt",
        "real/qnx641-docs-using_traceprinter-excerpt.txt",
    ],
)
def test_every_line_is_accounted_for_and_understood(name):
    data = shared_path(name).read_bytes()
    listing, problems = read(data)
    assert listing.line_counts.lines == len(data.splitlines())
    assert listing.line_counts.part == listing.line_counts.raw == 0
    # Three names have a line end in them: what follows it cannot be decided from a line of something else.
    assert listing.line_counts.foreign == (3 if "process" in name else 0)
    assert set(problems.counts()) <= {"cut-listing", "listing-digits", "foreign-line"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [f"golden/{name}.results.txt" for name in GUIDE_LISTINGS]
    + [f"golden/vendor-6.x/{name}.txt" for name in VENDOR]
    + ["real/qnx71-ker_call.traceprinter.txt"],
)
def test_counts_per_event_equal_those_of_a_grep(name):
    text = shared_path(name).read_bytes().decode("latin-1")
    trace = open_trace(shared_path(name))
    number = {wire.class_of(c): c for c in range(0, wire.CODE_COUNT, 1024)}
    assert len(number) == 32
    labels = Counter()
    for class_name, label in re.findall(r"t:0x[0-9a-fl]{7,16} CPU:\d\d ([A-Z_]+) *: *(\w+)", text):
        labels["INT" if class_name.startswith("INT_") and class_name != "INT_CALL" else label] += 1
    counted = Counter()
    for code in np.flatnonzero(trace.code_counts).tolist():
        spec = trace.catalogue.spec(code)
        label = (trace.release == Release.QNX_6 and spec.label) or spec.name
        if spec.class_name == "VTHREAD":
            label = label.removeprefix("V") if label not in ("VTHCREATE", "VTHDESTROY") else label
        elif spec.class_name == "INT_CALL":
            label = f"KER_{label}"
        elif spec.class_name == "USREVENT":
            label = "EVENT"
        elif spec.class_name.startswith("INT_"):
            label = "INT"
        elif not spec.is_known:
            label = "BAD"  # call 101 of the sources that the vendor-made listing comes from
        counted[label] += int(trace.code_counts[code])
    assert counted == labels


def explained(code, ours, real):
    """Show why a listing cannot carry the words that the file has: returns the reason, or None."""
    names = catalogue(Release.QNX_6)
    class_name, name = names.class_name(code), names.name(code)
    if name == "BUFFER" and ours[1] == real[1] and ours[0] == real[0] & 0x7FF:
        return "the printer masks the sequence number"
    if name == "INT_HANDLER_EXIT" and ours[:2] == real[:2]:
        return "the text of this kind of sigevent does not show all of its words"
    if class_name in ("PROCESS", "THREAD") and ours[:2] == real[:2]:
        return "names stop at their NUL, unprintable ones are not shown; CREATE and DESTROY show three words at most"
    if class_name == "USREVENT":
        return "only text is shown, and only if it is printable"
    return None


@pytest.mark.parametrize("name", VENDOR)
def test_slots_of_a_vendor_listing_are_those_of_its_file(name):
    listing, _ = read(shared_path(f"golden/vendor-6.x/{name}.txt").read_bytes())
    trace = open_kev(shared_path(f"golden/vendor-6.x/{name}.kev"))
    real = events_of(trace.payloads.slots)
    ours = events_of(listing.slot_array())
    assert ours.keys() <= real.keys()
    unlike = [(key, a, b) for key, found in ours.items() for a, b in zip(found, real[key], strict=False) if a != b]
    assert all(explained(key[0] & 0x7FFF, a, b) for key, a, b in unlike), unlike
    if name in ("control", "ker_fast"):
        assert len(unlike) <= 1
    missing = {trace.catalogue.class_name(key[0] & 0x7FFF) for key in real.keys() - ours.keys()}
    assert missing <= {"CONTROL", "INTERRUPT", "INT_CALL", "KER_CALL", "KER_EXIT", "PROCESS", "THREAD", "VTHREAD"}


def test_verbose_listing_gives_the_very_slots_of_its_file():
    listing, _ = read(shared_path("golden/vendor-6.x/threads.v.txt").read_bytes())
    trace = open_kev(shared_path("golden/vendor-6.x/threads.kev"))
    assert np.array_equal(listing.slot_array(), trace.payloads.slots)
    assert listing.pairs == list(trace.header.pairs)


def test_full_times_of_the_7_1_listing():
    path = shared_path("real/qnx71-ker_call.traceprinter.txt")
    trace = open_listing(path)
    printed = [int(text, 16) for text in re.findall(r"^t:0x([0-9a-f]+)", path.read_text(), re.MULTILINE)]
    assert len(printed) == len(trace.events) == 13_865
    assert trace.events.time_cycles[np.argsort(trace.last_slots(), kind="stable")].tolist() == printed
    assert trace.release == Release.QNX_7
    assert trace.class_counts()["SYSTEM"] == 7606
    assert not trace.problems.counts()


def test_wide_and_fast_events_of_6x():
    assert slots('t:0x00000010 CPU:01 KER_CALL:MSG_SENDV/11 coid:0x00000003 msg:"a\nb" (0x0062610a)\n') == [
        [0x0100080B, 0x10, 3, 0x0062610A]
    ]
    wide = (
        "t:0x00000011 CPU:00 KER_CALL:MSG_SENDV/11\n                      coid:0x00000003\n"
        "                    sparts:1\n                    rparts:-2\n"
        '                       msg:"ABCDE" (0x44434241 0x00000045 0x00000000)\n'
    )
    assert slots(wide) == [
        [0x4000080B, 0x11, 3, 1],
        [0x8000080B, 0x11, 0xFFFFFFFE, 0x44434241],
        [0xC000080B, 0x11, 0x45, 0],
    ]
    one_line = re.sub(r"\n +", " ", wide)
    assert slots(one_line) == slots(wide)


def test_collapsed_blanks_and_inserted_blank_lines_change_nothing():
    plain = (
        "t:0x00000011 CPU:00 PROCESS :PROCCREATE_NAME\n                      ppid:1\n"
        "                       pid:2\n"
        "                      name:sh\nt:0x00000012 CPU:00 THREAD  :THRUNNING     pid:2 tid:1 \n"
    )
    typeset = (
        "t:0x00000011 CPU:00 PROCESS :PROCCREATE_NAME\n\n ppid:1\n\npid:2\nname:sh\n\n"
        "t:0x00000012 CPU:00 THREAD :THRUNNING pid:2 tid:1\n"
    )
    assert slots(plain) == slots(typeset)


def test_failed_exits_glued_to_the_next_events():
    text = (
        "t:0x00000010 CPU:00 KER_EXIT:MSG_SENDV/11 ret_val:-1, errno:48t:0x00000011 CPU:01 KER_EXIT:MSG_SENDV/11 "
        "ret_val:-1, errno:2t:0x00000012 CPU:00 THREAD  :THREADY       pid:1 tid:1 \n"
    )
    expected = [[0x0000088B, 0x10, 0xFFFFFFFF, 48], [0x0100088B, 0x11, 0xFFFFFFFF, 2], [0x1002, 0x12, 1, 1]]
    assert slots(text) == expected
    assert slots(text.replace("48t:", "48\nt:")) == expected


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("CONTROL :TIME msb:0x0000000b, lsb(offset):0xbcb128b3", wire.CONTROL_TIME, [0xB, 0xBCB128B3]),
        ("CONTROL :TIME msb:0x0000000b lsb(offset):0xbcb128b3", wire.CONTROL_TIME, [0xB, 0xBCB128B3]),
        ("CONTROL: BUFFER sequence = 33, num_events = 714", wire.CONTROL_BUFFER, [33, 714]),
        ("INT_ENTR:0x00000000 (0) inkernel=0x00000081", wire.code(WireClass.INT, 1), [0, 0x81]),
        ("INT_ENTR:0x80000000 (-2147483648)       IP:0x00001000", wire.code(WireClass.INT, 1), [0x80000000, 0x1000]),
        ("INT_EXIT:0x00000004 (4) inkernel:0x00000001", wire.code(WireClass.INT, 2), [4, 1]),
        (
            "INT_HANDLER_ENTR:0x00000009 (9)       PID:7 IP:0x00000001 AREA:0x00000002",
            wire.code(WireClass.INT, 3),
            [7, 9, 1, 2],
        ),
        ("INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:NONE", wire.code(WireClass.INT, 4), [9, 0, 0, 0, 0, 0]),
        (
            "INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:PULSE 0x40000002:21 0xa:0x55aa CRITICAL",
            wire.code(WireClass.INT, 4),
            [9, 0x104, 0x40000002, 0x55AA, 0x0015000A, 0],
        ),
        ("INT_CALL:KER_MSG_RECEIVEV/14", wire.code(WireClass.KER_CALL, 14 + 256), [0, 0]),
        ("USREVENT:EVENT:111, d0:0x00000001 d1:0x0000000b", wire.code(WireClass.USER, 111), [1, 11]),
        (
            'USREVENT:EVENT:555 STR:"Hello world"',
            wire.code(WireClass.USER, 555),
            [0x6C6C6548, 0x6F77206F, 0x00646C72, 0],
        ),
        ("KER_EXIT:SYNC_CONDVAR_SIG/83 ret_val:0 empty:0x00000000", wire.code(WireClass.KER_CALL, 83 + 128), [0, 0]),
        (
            "KER_CALL:RING0/02 func_p:ff836f16 arg_p:12345678",
            wire.code(WireClass.KER_CALL, 2),
            [0xFF836F16, 0x12345678],
        ),
        ("VTHREAD :THRUNNING     pid:1 tid:2", wire.THREAD_RUNNING + 26, [1, 2]),
        ("SYSTEM  :FUNC_ENTER thisfn:0x0000000a call_site:0x0000000b", wire.code(WireClass.SYSTEM, 10), [10, 11]),
    ],
)
def test_events_of_6x(line, code, words):
    found = slots(f"t:0x00000010 CPU:00 {line}\n")
    assert found[0][0] & 0x7FFF == code
    assert [word for slot in found for word in slot[2:]] == words


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("CONTROL         :BUFFER             sequence = 35, num_events = 709\n", wire.CONTROL_BUFFER, [35, 709]),
        (
            "CONTROL         :BUFFER_END         cookie1 = e6e6e6e6, cookie2 = e6e6e6e6",
            wire.CONTROL_BUFFER_END,
            [0xE6E6E6E6, 0xE6E6E6E6],
        ),
        (
            "SYSTEM          :PROFILE_64         ip = 0x00003d516c6925, tid = 0x000001, pid = 0x0b7017",
            wire.code(WireClass.SYSTEM, 532),
            [0x516C6925, 0x3D, 1, 0xB7017],
        ),
        (
            "SYSTEM          :TIMER              pid:1 tid:8 timer_id:-1 flags:0x00000101 WAKEUP ACTIVE",
            wire.code(WireClass.SYSTEM, 18),
            [1, 8, 0xFFFFFFFF, 0x101],
        ),
        (
            "KER_CALL        :RING0/02           func_p:0xffff80000004f800",
            wire.code(WireClass.KER_CALL, 2 | 512),
            [0x0004F800, 0xFFFF8000],
        ),
        (
            "KER_EXIT        :MSG_SENDV/11       ret_val:-1, errno:2",
            wire.code(WireClass.KER_CALL, 11 + 128),
            [0xFFFFFFFF, 2],
        ),
        (
            "KER_CALL        :MSG_RECEIVEV/14   \n                      chid:0x00000001\n                    rparts:1",
            wire.code(WireClass.KER_CALL, 14 | 512),
            [1, 1, 0, 0],
        ),
        ("INT_CALL        :KER_RING0/2       ", wire.code(WireClass.KER_CALL, 2 + 256), [0, 0]),
        (
            'USREVENT        :EVENT:100          STR:"ab", d0:0x00006261 d1:0x00000000 d2:0x00000001 d3:0x00000000',
            wire.code(WireClass.USER, 100),
            [0x6261, 0, 1, 0],
        ),
        (
            "QVM             :GUEST_ENTER        guest_ip:0x00000000deadbeef",
            wire.code(WireClass["QVM"], 0),
            [0xDEADBEEF, 0],
        ),
        (
            "SYSTEM          :POWER              word 0:0x0000000a word 1:0x00000001",
            wire.code(WireClass.SYSTEM, 15),
            [10, 1],
        ),
    ],
)
def test_events_of_7_1(line, code, words):
    release = HEAD_7.replace("7.1.0", "8.0.0") if "BUFFER_END" in line else HEAD_7
    found = slots(f"t:0x65570a8b78a CPU:00 {line}\n", release)
    assert found[0][0] & 0x7FFF == code
    assert found[0][1] == 0x70A8B78A
    assert [word for slot in found for word in slot[2:]] == words


def test_interrupts_of_8_0():
    head = HEAD_7.replace("7.1.0", "8.0.0")
    assert slots("t:0x00000001 CPU:03 INTERRUPT       :INT_DELIVER       intr_id:0x1c(28)\n", head) == [
        [0x03000000 | wire.code(WireClass.INT, 7), 1, 28, 0]
    ]


def test_big_endian_text_and_64_bit_values_are_as_the_target_had_them():
    head = HEAD_6.replace("TRACE_LITTLE_ENDIAN", "TRACE_BIG_ENDIAN")
    found = slots("t:0x00000001 CPU:00 PROCESS :PROCCREATE_NAME ppid:1 pid:2 name:abc\n", head)
    assert found[1][2] == 0x61626300
    mapped = slots("t:0x00000001 CPU:00 SYSTEM  :MUNMAP          pid:1 vaddr:0x100000002 len:0x3\n", head)
    assert [word for slot in mapped for word in slot[2:]] == [1, 1, 2, 0, 3, 0]


def test_times_in_seconds_become_cycles():
    found = slots("t:2.003.004us CPU:00 THREAD :THREADY pid:1 tid:1\n")
    assert found[0][1] == 2_003_004  # the header says 1 MHz


def test_full_times_survive_without_time_events(tmp_path):
    """An excerpt of a 7.1 listing: silences longer than a rollover of the low word must not shrink."""
    path = tmp_path / "excerpt.txt"
    stamps = [0x65570A8B78A, 0x65570A8B78B, 0x65999999999, 0x65A00000000]
    path.write_text(
        HEAD_7 + "".join(f"t:0x{stamp:x} CPU:00 THREAD          :THREADY            pid:1 tid:1\n" for stamp in stamps)
    )
    assert open_listing(path).events.time_cycles.tolist() == stamps
    with opened(path) as source:
        assert [time for batch in source.events for time in batch.time_cycles.tolist()] == stamps


def test_a_time_that_lost_a_digit_is_restored_to_the_nearest_that_fits():
    listing, problems = read(
        HEAD_6 + "t:0x35bbec68 CPU:00 THREAD :THRECEIVE pid:1 tid:5\nt:0x35bbe10 CPU:00 THREAD :THRUNNING pid:4 tid:1\n"
    )
    assert listing.slot_array()[1, 1] == 0x35BBED10
    assert problems.counts() == {"listing-digits": 1}
    assert next(iter(problems)).line == 9


def test_rubbish_is_named_with_its_line():
    listing, problems = read(
        HEAD_6 + "what is this\nt:0x00000001 CPU:00 KER_CALL:NO_SUCH/12x y\n"
        "t:0x00000002 CPU:00 THREAD :THREADY pid:1 tid:1\n.\n.\n.\n"
    )
    assert sorted((problem.kind.slug, problem.line) for problem in problems) == [
        ("cut-listing", 11),
        ("foreign-line", 8),
        ("unlisted-line", 9),
    ]
    assert listing.events == 2
    assert listing.line_counts.lines == 13


def test_text_that_is_no_utf_8_survives():
    listing, _ = read(HEAD_6.encode() + b"t:0x00000001 CPU:00 PROCESS :PROCCREATE_NAME ppid:1 pid:2 name:\xff\xfe\n")
    assert listing.slot_array()[1, 2] == 0x0000FEFF


def test_release_is_seen_from_the_columns_where_the_header_is_gone():
    new, _ = read("t:0x65570e1979a CPU:00 KER_CALL        :RING0/02           func_p:0xffff80000004f800\n")
    old, _ = read("t:0xbcb2e00c CPU:00 KER_CALL:RING0/02 func_p:ff836f16 arg_p:e3fd2ee0\n")
    assert (new.release, old.release) == (Release.QNX_7, Release.QNX_6)
    assert (new.events, old.events) == (1, 1)


def test_detection_is_by_content(tmp_path):
    assert score(HEAD_6.encode(), tmp_path) == 95
    assert score(b"t:0xbcb2e00c CPU:00 KER_CALL:RING0/02 func_p:0 arg_p:0\n", tmp_path) == 70
    assert score(b"TRACE_HEADER_BEGIN::TRACE_FILE_NAME::x", tmp_path) == 0
    assert score(b"hello\nworld\n", tmp_path) == 0


def test_a_file_without_any_event_is_refused(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("TRACEPRINTER version 1.02\n")
    with pytest.raises(TraceFormatError, match="it has no line with an event"):
        open_listing(path)


def test_loading_can_be_stopped(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(HEAD_6 + "t:0x00000001 CPU:00 THREAD :THREADY pid:1 tid:1\n" * 20_000)
    with pytest.raises(Cancelled):
        open_listing(path, cancelled=lambda: True)
    seen = []
    open_listing(path, seen.append)
    assert seen
    assert all(0 < share <= 1 for share in seen)


LINES = st.sampled_from(
    [
        "t:0x00000001 CPU:00 ",
        "t:0x",
        "CPU:99 ",
        "KER_CALL:MSG_SENDV/11",
        " coid:0x00000001",
        "\n",
        ' msg:"a" (0x00000061)',
        ".\n",
        "event => h:0x",
        "event => h:0x00001001 d0:0x00000001 d1:0x00000002 d2:0x00000003",
        "THREAD  :THREADY ",
        " pid:1",
        " tid:-7",
        "PROCESS :PROCCREATE_NAME",
        " name:x",
        "ret_val:-1, errno:4",
        "KER_EXIT:NOP/00 ",
        "USREVENT:",
        'EVENT:5 STR:"',
        '"',
        "INT_HANDLER_EXIT:0x00000001 (1) SIGEVENT:",
        "PULSE 1:2 3:4",
        " -- KERNEL EVENTS -- \n",
        "TRACE_A:: b\n",
        "state 5",
        "EVENT 9999",
        "word 0:0x00000001",
        "CLASS 13 :EVENT 5 word 0:0x00000001",
        "\x00",
        "é",
    ]
)


@given(st.lists(LINES, max_size=40).map("".join))
def test_any_mixture_is_accounted_for(text):
    data = text.encode()
    listing, _ = read(data)
    assert listing.line_counts.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert listing.slot_array().shape[1] == 4


@given(st.binary(max_size=300))
def test_any_bytes_are_accounted_for(data):
    listing, _ = read(data)
    assert listing.line_counts.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


@pytest.mark.parametrize(
    "hostile",
    [
        'KER_CALL:MSG_SENDV/11 coid:0x00000001 msg:"' + '" (0x' * 8000,
        "KER_CALL:MSG_SENDV/11\n" + "x\n" * 8000,
        "PROCESS :PROCCREATE_NAME ppid:1 pid:2 name:" + "a" * 60_000,
        "KER_EXIT:NOP/00 ret_val:-1, errno:4t:0x00000001 CPU:00 " * 1000,
        'USREVENT:EVENT:5 STR:"' + '", d0:0x00000000' * 3000,
        "SYSTEM :TIMER" + " A" * 20_000 + "!",
    ],
)
def test_hostile_lines_take_no_time(hostile):
    text = HEAD_6 + f"t:0x00000001 CPU:00 {hostile}\n" * 4
    start_s = time.perf_counter()
    read(text)
    assert time.perf_counter() - start_s < 2.0

"""The printer: byte for byte what the vendor's printers wrote, and for every kind of event text a human can check."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release, Show
from satview.events.variants import text_words, user_text
from satview.events.wire import WireClass
from satview.export.listing.forms import Style, message_texts
from satview.export.listing.printer import ListedEvents, Printer
from satview.export.listing.rows import RecordRows, TextRows, default_time, layout_of
from satview.formats.kev.header import SlotWriter, header_bytes
from satview.formats.kev.payloads import message_text
from satview.formats.kev.stream import CHUNK_SLOTS
from satview.formats.listing.reader import open_listing, read_listing
from satview.formats.source import opened, source_of
from satview.store.problems import Problems
from tests.helpers.extent import fewer
from tests.helpers.shared import GUIDE_LISTINGS, shared_path

VENDOR = ("control", "int", "ker_fast", "process", "threads", "threads_be", "user")
PAIRS_2 = ("comm", "compaction", "ker_fail", "sigevent", "unlisted")
VENDOR_2 = ("attribute_pad", "attributes", *PAIRS_2, *(f"{name}_be" for name in PAIRS_2))
RELEASES = {"6": "6.4.1", "7": "7.1.0", "8": "8.0.0"}
HEAD = " -- KERNEL EVENTS -- \n"


def printed(source, layout=None, selection=None, **style):
    layout = layout or layout_of(source.release)
    verbose, time = style.pop("verbose", False), style.pop("time", None)
    look = Style(layout, source.release, source.byte_order, style.get("vendor", False), style.get("one_line", False))
    rows = TextRows(source, look, time or default_time(layout), verbose)
    return "".join(Printer(source, rows, selection or ListedEvents(), is_verbose=verbose).text())


def trace(*events, release="6", order="little"):
    """Return the source of a trace of (wire class, event, words or (words, text), optional cpu and stamp)."""
    writer = SlotWriter(order)
    for number, (wire_class, event, payload, *position) in enumerate(events):
        cpu, stamp = position or (0, 0x10 + number)
        if isinstance(payload, tuple):
            writer.text_event(wire.code(wire_class, event), cpu, stamp, *payload)
        else:
            writer.event(wire.code(wire_class, event), cpu, stamp, payload)
    pairs = [
        (f"{order.upper()}_ENDIAN", "TRUE"),
        ("CYCLES_PER_SEC", "1000000000"),
        ("BOOT_DATE", "Fri Aug 17 09:02:16 2001"),
        ("SYS_RELEASE", RELEASES[release]),
    ]
    data = writer.slots().astype("<u4" if order == "little" else ">u4").tobytes()
    return source_of(io.BytesIO(header_bytes(pairs) + data), "x.kev")


def lines(*events, **options):
    release, order = options.pop("release", "6"), options.pop("order", "little")
    return printed(trace(*events, release=release, order=order), **options).split(HEAD)[1]


@pytest.mark.parametrize("name", VENDOR)
@pytest.mark.parametrize(
    ("ending", "options"), [(".txt", {}), (".n.txt", {"one_line": True}), (".v.txt", {"verbose": True})]
)
def test_vendor_files_to_the_byte(name, ending, options):
    expected = shared_path(f"golden/vendor-6.x/{name}{ending}").read_bytes()
    with opened(shared_path(f"golden/vendor-6.x/{name}.kev")) as source:
        assert printed(source, vendor=True, **options).encode() == expected


@pytest.mark.parametrize("name", VENDOR_2)
@pytest.mark.parametrize(("ending", "one_line"), [(".txt", False), (".n.txt", True)])
def test_vendor_files_of_the_second_set_to_the_byte(name, ending, one_line):
    expected = shared_path(f"golden/vendor-6.x-2/{name}{ending}").read_bytes()
    with opened(shared_path(f"golden/vendor-6.x-2/{name}.kev")) as source:
        assert printed(source, vendor=True, one_line=one_line).encode() == expected


@pytest.mark.parametrize(
    ("event", "order", "vendor", "ours"),
    [
        # COMPACTION, calls of 64 bits and those that are entered and left at once have no line.
        ((WireClass.SYSTEM, 13, [3, 5]), "little", "", "SYSTEM  :COMPACTION      word 0:0x00000003 word 1:0x00000005"),
        ((WireClass.KER_CALL, 613, [3, 5]), "little", "", "KER_CALL:EVENT 613/101 word 0:0x00000003 word 1:0x00000005"),
        # An exit whose first word is -1 has failed, however long it is, and its line has no end.
        (
            (WireClass.KER_CALL, 11 + 128, [0xFFFFFFFF, 3, 4, 5]),
            "big",
            "KER_EXIT:MSG_SENDV/11 ret_val:-1, errno:50331648",
            'KER_EXIT:MSG_SENDV/11 status:-1 rmsg:"" (0x00000003 0x00000004 0x00000005)',
        ),
        # Code 0x83 and priority -1 of a big-endian file: each half is read in the printer's order, then turned.
        (
            (WireClass.INT, 4, [9, 4, 0x40000001, 0x55AA, 0x0083FFFF, 0]),
            "big",
            "INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:PULSE 0x40000001:-1 0x83ffff:0x55aa",
            "INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:PULSE 0x40000001:-1 0x83:0x55aa",
        ),
        (
            (WireClass.INT, 4, [9, 0x10A, 0, 0, 0, 0]),
            "little",
            "INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:UNKNOWN(0xa) CRITICAL",
            "INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:UNKNOWN(0x10a) CRITICAL",
        ),
    ],
)
def test_what_the_vendor_prints_otherwise(event, order, vendor, ours):
    begin = "t:0x00000010 CPU:00 "
    exact = lines(event, order=order, vendor=True, one_line=True)
    assert exact.removesuffix("\n") == (begin + vendor if vendor else "")
    assert exact.endswith("\n") is (bool(vendor) and "errno" not in vendor)
    assert lines(event, order=order, one_line=True) == f"{begin}{ours}\n"


@pytest.mark.thorough
@pytest.mark.parametrize("vendor", [True, False])
def test_the_7_1_capture_gives_its_own_text_back(vendor):
    path = shared_path("real/qnx71-ker_call.traceprinter.txt")
    with opened(path) as source:
        assert printed(source, vendor=vendor).encode() == path.read_bytes()


@pytest.mark.parametrize("name", GUIDE_LISTINGS)
def test_first_printers_after_collapsing_blanks(name):
    """The layout 6.1 gives the guide's listings back, where typesetting left their lines whole."""
    path = shared_path(f"golden/{name}.results.txt")

    def events(text):
        body = text.split("-- KERNEL EVENTS --")[1]
        return [" ".join(line.split()) for line in body.splitlines() if line.strip() not in ("", ".")]

    with opened(path) as source:
        ours = events(printed(source, layout="6.1", vendor=True))
    expected = events(path.read_text())
    damaged = [at for at, line in enumerate(expected) if line.startswith(("t:0x35bbe10 ", "t:0x35dalb25 "))]
    assert len(ours) == len(expected)
    assert [line for at, line in enumerate(ours) if at not in damaged] == [
        line for at, line in enumerate(expected) if at not in damaged
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ((WireClass.CONTROL, 1, [0xB, 0xBCB128B3]), "CONTROL :TIME msb:0x0000000b lsb(offset):0xbcb128b3\n"),
        ((WireClass.CONTROL, 2, [0x2005, 714]), "CONTROL: BUFFER sequence = 8197, num_events = 714\n"),
        ((WireClass.PR_TH, 1, [7, 5]), "THREAD  :THRUNNING     pid:7 tid:5 \n"),
        ((WireClass.PR_TH, 1, [7, 5, 10, 2]), "THREAD  :THRUNNING     pid:7 tid:5 priority:10 policy:2\n"),
        ((WireClass.PR_TH, 27, [7, 5]), "VTHREAD :THRUNNING     pid:7 tid:5\n"),
        ((WireClass.PR_TH, 24, [7, 5]), "THREAD  :THCREATE      pid:7 tid:5\n"),
        (
            (WireClass.PR_TH, 192, ([1, 2], b"proc/b\xc3\xb6")),
            "PROCESS :PROCCREATE_NAME\n                      ppid:1\n                       pid:2\n"
            "                      name:proc/bö\n",
        ),
        ((WireClass.KER_CALL, 11, [3, 0x50565352]), 'KER_CALL:MSG_SENDV/11 coid:0x00000003 msg:"RSVP" (0x50565352)\n'),
        (
            (WireClass.KER_CALL, 16 + 128, [47, 0x6F72500A, 0x73736563, 0x34383120]),
            'KER_EXIT:MSG_READV/16\n                    rbytes:47\n                      rmsg:"\nProcess 184" '
            "(0x6f72500a 0x73736563 0x34383120)\n",
        ),
        ((WireClass.KER_CALL, 11 + 128, [0xFFFFFFFF, 48]), "KER_EXIT:MSG_SENDV/11 ret_val:-1, errno:48\n"),
        ((WireClass.KER_CALL, 14 + 256, [0, 0]), "INT_CALL:KER_MSG_RECEIVEV/14\n"),
        ((WireClass.INT, 1, [9, 0x1000]), "INT_ENTR:0x00000009 (9)       IP:0x00001000\n"),
        ((WireClass.INT, 2, [9, 0x81]), "INT_EXIT:0x00000009 (9) inkernel:0x00000081\n"),
        (
            (WireClass.INT, 3, [7, 9, 1, 2]),
            "INT_HANDLER_ENTR:0x00000009 (9)       PID:7 IP:0x00000001 AREA:0x00000002\n",
        ),
        ((WireClass.INT, 4, [9, 1, 17, 0, 0, 0]), "INT_HANDLER_EXIT:0x00000009 (9) SIGEVENT:SIGNAL 17\n"),
        ((WireClass.SYSTEM, 9, [0x1234, 0]), "SYSTEM  :ADDRESS addr:0x00001234\n"),
        (
            (WireClass.SYSTEM, 7, [1, 2, 0, 3, 1, 0]),
            "SYSTEM  :MUNMAP         \n                       pid:1\n                     vaddr:0x2\n"
            "                       len:0x100000003\n",
        ),
        ((WireClass.COMM, 0, [0x10005, 7]), "COMM    :SND_MESSAGE   rcvid:0x00010005 pid:7\n"),
        ((WireClass.COMM, 11, [1, 7]), "COMM    :MSG_ERROR tid:1 pid:7\n"),
        ((WireClass.USER, 111, [1, 11]), "USREVENT:EVENT:111, d0:0x00000001 d1:0x0000000b\n"),
        ((WireClass.USER, 5, ([], b"hello world")), 'USREVENT:EVENT:5 STR:"hello world"\n'),
        (
            (WireClass.USER, 5, [1, 2, 3, 4]),
            "USREVENT:EVENT:5, d0:0x00000001 d1:0x00000002 d2:0x00000003 d3:0x00000004\n",
        ),
        ((WireClass.SYSTEM, 1, [1, 2]), "SYSTEM  :RESERVED        word 0:0x00000001 word 1:0x00000002\n"),
        ((13, 37, [1, 2]), "CLASS 13:EVENT 37 word 0:0x00000001 word 1:0x00000002\n"),
    ],
)
def test_events_of_6x(event, expected):
    assert lines(event) == f"t:0x00000010 CPU:00 {expected}"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ((WireClass.CONTROL, 2, [35, 709]), "CONTROL         :BUFFER             sequence = 35, num_events = 709\n\n"),
        ((WireClass.PR_TH, 1, [7, 5]), "THREAD          :THRUNNING          pid:7 tid:5\n"),
        (
            (WireClass.SYSTEM, 532, [0x516C6925, 0x3D, 1, 0xB7017]),
            "SYSTEM          :PROFILE_64         ip = 0x00003d516c6925, tid = 0x000001, pid = 0x0b7017\n",
        ),
        (
            (WireClass.SYSTEM, 18, [1, 8, 0xFFFFFFFF, 0x191]),
            "SYSTEM          :TIMER              pid:1 tid:8 timer_id:-1 flags:0x00000191 "
            "WAKEUP TOLERANT ACTIVE TARGET_PROCESS\n",
        ),
        (
            (WireClass.KER_CALL, 2 | 512, [0x4F800, 0xFFFF8000]),
            "KER_CALL        :RING0/02           func_p:0xffff80000004f800\n",
        ),
        ((WireClass.KER_CALL, 11 + 128, [0xFFFFFFFF, 2]), "KER_EXIT        :MSG_SENDV/11       ret_val:-1, errno:2\n"),
        ((WireClass.KER_CALL, 2 + 256, [0, 0]), "INT_CALL        :KER_RING0/2       \n"),
        (
            (WireClass.USER, 100, ([], b"LDD: start")),
            'USREVENT        :EVENT:100          STR:"LDD: start", '
            "d0:0x3a44444c d1:0x61747320 d2:0x00007472 d3:0x00000000\n",
        ),
        ((WireClass["QVM"], 0, [0xDEADBEEF, 0]), "QVM             :GUEST_ENTER        guest_ip:0x00000000deadbeef\n"),
        ((WireClass["QVM"], 3, [1, 2]), "QVM             :INTR_RAISE         vcpu_id:1 intr_vector:2\n"),
    ],
)
def test_events_of_7_1(event, expected):
    assert lines(event, release="7") == f"t:0x00000010 CPU:00 {expected}"


def test_events_of_8_0():
    text = lines((WireClass.INT, 7, [28, 0]), (WireClass.CONTROL, 4, [0xE6E6E6E6, 0xE6E6E6E6]), release="8")
    assert text == (
        "t:0x00000010 CPU:00 INTERRUPT       :INT_DELIVER       intr_id:0x1c(28)\n"
        "t:0x00000011 CPU:00 CONTROL         :BUFFER_END         cookie1 = e6e6e6e6, cookie2 = e6e6e6e6\n"
    )


def test_layout_can_be_selected():
    event = (WireClass.KER_CALL, 11, [3, 0x41])
    assert lines(event, layout="7").split("CPU:00 ")[1] == (
        'KER_CALL        :MSG_SENDV/11       coid:0x00000003 msg:"A" (0x00000041)\n'
    )
    assert lines((WireClass.CONTROL, 1, [1, 2]), layout="6.1").endswith("msb:0x00000001, lsb(offset):0x00000002\n")
    assert lines((WireClass.INT, 1, [0, 1]), layout="6.1").endswith("INT_ENTR:0x00000000 (0) inkernel=0x00000001\n")


def test_vendor_defects_and_their_repair():
    failed = (WireClass.KER_CALL, 11 + 128, [0xFFFFFFFF, 48])
    after = (WireClass.PR_TH, 2, [1, 1])
    assert "errno:48t:0x00000011" in lines(failed, after, vendor=True)
    assert "errno:48\nt:0x00000011" in lines(failed, after)
    text = (WireClass.USER, 5, [0x41414141, 0x41414141, 0x41414141, 0x42414141])
    assert lines(text, vendor=True).endswith('STR:"AAAAAAAAAAAAAAA"\n')
    assert lines(text).endswith('STR:"AAAAAAAAAAAAAAAB"\n')
    assert lines((13, 37, [1, 2]), (WireClass.SYSTEM, 1, [1, 2]), vendor=True) == ""
    big = (WireClass.KER_CALL, 11, [3, 0x41424344])
    assert lines(big, order="big", vendor=True).endswith('msg:"ABCD" (0x44434241)\n')
    assert lines(big, order="big").endswith('msg:"ABCD" (0x41424344)\n')
    # The printer takes errno as it is in the file (listing format, 3.3), and prints it with a sign.
    for errno, shown in ((48, 48 << 24), (240, (240 << 24) - (1 << 32))):
        assert lines((WireClass.KER_CALL, 11 + 128, [0xFFFFFFFF, errno]), order="big", vendor=True).endswith(
            f"ret_val:-1, errno:{shown}"
        )
    name = (WireClass.PR_TH, 192, ([1, 2], b"a\x01\nb"))
    assert lines(name, vendor=True, one_line=True).endswith("name:\n")
    assert lines(name, one_line=True).endswith("name:a\\x01\\nb\n")
    beyond = (WireClass.PR_TH, 192, ([1, 2], b"s\xffow \xc2\xb5"))
    assert lines(beyond, one_line=True).endswith("name:s\udcffow \N{MICRO SIGN}\n"), "the bytes as they are, in a file"


def test_times():
    events = [(WireClass.CONTROL, 1, [2, 0x10]), (WireClass.PR_TH, 1, [1, 1], 0, 0x3B9ACA10)]
    starts = {
        time: [line.split(" CPU")[0] for line in lines(*events, time=time).splitlines()]
        for time in ("cycles", "full", "ns", "wall")
    }
    assert starts == {
        "cycles": ["t:0x00000010", "t:0x3b9aca10"],
        "full": ["t:0x200000010", "t:0x23b9aca10"],
        "ns": ["t:0.000000000s", "t:1.000000000s"],
        "wall": ["t:2001-08-17T09:02:24.589934608Z", "t:2001-08-17T09:02:25.589934608Z"],
    }


def test_verbose_shows_slots_and_stray_tails():
    call = wire.code(WireClass.KER_CALL, 11)
    slots = np.array([(call | 2 << 30, 5, 1, 2), (call | 3 << 30, 5, 1, 2)], "<u4")
    data = header_bytes([("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "6.4.1")]) + slots.tobytes()
    text = printed(source_of(io.BytesIO(data), "x.kev"), verbose=True)
    assert text.endswith(
        "event => h:0x8000080b d0:0x00000005 d1:0x00000001 d2:0x00000002\n"
        "TRACEPARSER: unbalanced continuation of combine event ignored\n"
        "event => h:0xc000080b d0:0x00000005 d1:0x00000001 d2:0x00000002\n"
        "TRACEPARSER: unbalanced end of combine event ignored\n"
    )
    assert ' TRACE_SYS_RELEASE:: (len=5) -> "6.4.1" \n' in text


MIXED = (
    (WireClass.PR_TH, 1, [20, 1], 0, 1000),
    (WireClass.KER_CALL, 11, [3, 0x41], 0, 2000),
    (WireClass.PR_TH, 1, [30, 2], 1, 3000),
    (WireClass.KER_CALL, 11 + 128, [0, 0x41], 0, 4000),
    (WireClass.KER_CALL, 12, [3, 0x41], 1, 5000),
    (WireClass.PR_TH, 5, [20, 1], 0, 6000),
)


@pytest.mark.parametrize(
    ("selection", "stamps"),
    [
        (ListedEvents(), [1000, 2000, 3000, 4000, 5000, 6000]),
        (ListedEvents(classes=frozenset({"thread"})), [1000, 3000, 6000]),
        (ListedEvents(events=frozenset({"MSG_SENDV"})), [2000, 4000]),
        (ListedEvents(classes=frozenset({"KER_CALL"}), events=frozenset({"MSG_SENDV", "MSG_SENDVNC"})), [2000, 5000]),
        (ListedEvents(events=frozenset({"THRUNNING", "KER_EXIT/MSG_SENDV"})), [1000, 3000, 4000]),
        (ListedEvents(pids=frozenset({20})), [1000, 2000, 4000, 6000]),
        (ListedEvents(tids=frozenset({2})), [3000, 5000]),
        (ListedEvents(pids=frozenset({20}), tids=frozenset({2})), []),
        (ListedEvents(cpus=frozenset({1})), [3000, 5000]),
        (ListedEvents(from_ns=1000, to_ns=4000), [2000, 3000, 4000]),
    ],
)
def test_selection(selection, stamps):
    text = lines(*MIXED, selection=selection)
    assert [int(line[4:12], 16) for line in text.splitlines()] == stamps


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(UsageError, match="no class FOO; there are CONTROL, KER_CALL"):
        lines(*MIXED, selection=ListedEvents(classes=frozenset({"foo"})))
    with pytest.raises(UsageError, match="no event MSG_SENDVV; perhaps MSG_SENDV"):
        lines(*MIXED, selection=ListedEvents(events=frozenset({"MSG_SENDVV"})))


EVENTS = (
    *MIXED,
    (WireClass.PR_TH, 192, ([1, 2], b'say "hi", \xff\n%s'), 0, 7000),
    (WireClass.KER_CALL, 139, [0xFFFFFFFF, 48], 0, 8000),
    (WireClass.USER, 5, ([], b"hello world"), 0, 9000),
    (13, 37, [1, 2], 0, 9500),
    (WireClass.SYSTEM, 7, [1, 2, 0, 3, 1, 0], 0, 9600),
)


def records(format_name):
    source = trace(*EVENTS)
    return "".join(Printer(source, RecordRows(source, format_name)).text())


def test_json_lines_and_json_hold_the_same_rows():
    rows = [json.loads(line) for line in records("jsonl").splitlines()]
    assert rows == json.loads(records("json"))
    assert rows[1] == {
        "time_ns": 1000,
        "time_cycles": 2000,
        "cpu": 0,
        "pid": 20,
        "tid": 1,
        "class": "KER_CALL",
        "event": "MSG_SENDV",
        "arguments": {"coid": "0x00000003", "msg": "0x00000041", "msg.text": "A"},
    }
    assert rows[6]["arguments"]["name"] == 'say "hi", \\xff\\n%s'
    assert rows[7]["arguments"] == {"ret_val": -1, "errno": 48, "errno_name": "ENOTSUP"}
    assert rows[8]["arguments"]["text"] == "hello world"
    assert rows[9]["arguments"] == {"word 0": "0x00000001", "word 1": "0x00000002"}
    assert rows[10]["arguments"] == {"pid": 1, "vaddr": "0x0000000000000002", "len": "0x0000000100000003"}


def test_csv_is_read_back_by_the_standard_reader():
    rows = list(csv.DictReader(io.StringIO(records("csv"))))
    assert len(rows) == len(EVENTS)
    assert rows[1]["arguments"] == 'coid=0x00000003 msg=0x00000041 msg.text="A"'
    assert rows[6]["arguments"] == 'ppid=1 pid=2 name="say "hi", \\xff\\n%s"'
    assert (rows[2]["time_ns"], rows[2]["pid"], rows[2]["tid"], rows[2]["class"]) == ("2000", "30", "2", "THREAD")


def one_of_each(release, order):
    """Return a trace with every kind of event of a release in both modes, with distinct values."""
    writer, rng = SlotWriter(order), np.random.default_rng(7)
    names = catalogue(release)
    for code in names.codes():
        if code == 0 or (wire.class_of(code) == WireClass.USER and code % 97):
            continue
        for fields in (names.spec(code).fast, names.spec(code).wide):
            count = 2 if fields is None else sum(field.words for field in fields)
            words = [int(word) for word in rng.choice([0, 1, 0x41424344, *rng.integers(0, 2**32, 3)], count)]
            if fields and fields[-1].show == Show.STRING:
                words += text_words(b"some text, with: things", writer.byte_order)
            elif fields and fields[-1].show == Show.STRUCT:
                words += [4, 1, 2, 3]
            writer.event(code, 3, len(writer), words)
    pairs = [
        (f"{order.upper()}_ENDIAN", "TRUE"),
        ("CYCLES_PER_SEC", "1000"),
        ("SYS_RELEASE", {"6.x": "6.4.1", "6.6": "6.6.0", "7.x": "7.1.0", "8.0": "8.0.0"}[release]),
    ]
    return header_bytes(pairs) + writer.slots().astype("<u4" if order == "little" else ">u4").tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "layout", "order"),
    fewer(
        [
            (Release.QNX_6, "6", "little"),
            (Release.QNX_6_6, "6", "big"),
            (Release.QNX_7, "7", "big"),
            (Release.QNX_8, "8", "little"),
            (Release.QNX_6, "7", "big"),
            (Release.QNX_7, "7", "little"),
            (Release.QNX_7, "6", "little"),
            (Release.QNX_8, "6", "big"),
        ],
        2,
    ),
)
def test_every_kind_of_event_read_back_prints_the_same(release, layout, order):
    data = one_of_each(release, order)
    for one_line in (False, True):
        text = printed(source_of(io.BytesIO(data), "x.kev"), layout=layout, one_line=one_line)
        again = printed(source_of(io.BytesIO(text.encode()), "x.txt"), layout=layout, one_line=one_line)
        unlike = [pair for pair in zip(text.split("\nt:"), again.split("\nt:"), strict=False) if pair[0] != pair[1]]
        assert unlike[:3] == []
        assert text == again


class Endless:
    """A pipe that never ends and counts what was taken from it."""

    def __init__(self, head, slot):
        self.head, self.slot, self.taken = head, slot, 0

    def read(self, size):
        data = self.head or self.slot * (size // len(self.slot))
        self.head = b""
        self.taken += len(data)
        return data[:size] if size < len(data) else data


def test_printing_streams_and_holds_one_chunk_only():
    writer = SlotWriter()
    writer.event(wire.THREAD_RUNNING, 0, 5, [1, 1])
    pipe = Endless(header_bytes([("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "6.4.1")]), writer.slots().tobytes())
    source = source_of(pipe, "x.kev")
    pieces = Printer(source, TextRows(source, Style("6", source.release), "cycles")).text()
    events = 0
    while events < 300_000:
        piece = next(pieces)
        events += piece.count("THRUNNING")
        assert len(piece) < 8_000_000
        assert pipe.taken <= 16 * events + 3 * 16 * CHUNK_SLOTS


def test_empty_trace_is_valid_json():
    source = trace()
    assert json.loads("".join(Printer(source, RecordRows(source, "json")).text())) == []


@given(st.lists(st.binary(min_size=12, max_size=12), min_size=1, max_size=20))
def test_message_texts_follow_the_rule_for_one(rows):
    raw = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 12)
    assert message_texts(raw) == [message_text(row) for row in rows]


@pytest.mark.thorough
@given(
    st.sampled_from(["6", "7", "8"]),
    st.lists(
        st.tuples(
            st.integers(0, 40_000),
            st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([0, 0xFFFFFFFF, 0x41414141]), min_size=2, max_size=26),
        ),
        max_size=12,
    ),
)
def test_every_event_is_printed_in_every_format(release, events):
    codes = catalogue({"6": Release.QNX_6, "7": Release.QNX_7, "8": Release.QNX_8}[release]).codes()
    rows = []
    for index, words in events:
        code = codes[index % len(codes)] if index < 36_000 else index & 0x7FFF
        if code:
            rows.append((wire.class_of(code), wire.event_of(code), words))
    text = lines(*rows, release=release, one_line=True)
    assert text.count("t:0x") >= len(rows)
    for format_name in ("jsonl", "csv"):
        source = trace(*rows, release=release)
        output = "".join(Printer(source, RecordRows(source, format_name)).text())
        found = (
            [json.loads(line) for line in output.splitlines()]
            if format_name == "jsonl"
            else list(csv.DictReader(io.StringIO(output)))
        )
        assert len(found) == len(rows)


@pytest.mark.parametrize("one_line", [True, False])
def test_both_texts_of_an_event_are_printed_and_read_back(one_line):
    text = b"class of it\0perm\0"
    code = catalogue(Release.QNX_7).find("PERM_LOOKUP")[0]
    writer = SlotWriter()
    writer.event(code, 0, 5, [7, 0, 3, 1, *text_words(text.removesuffix(b"\0"), "little")])
    pairs = [("LITTLE_ENDIAN", "TRUE"), ("CYCLES_PER_SEC", "1000"), ("SYS_RELEASE", "7.1.0")]
    data = header_bytes(pairs) + writer.slots().tobytes()
    shown = printed(source_of(io.BytesIO(data), "x.kev"), layout="7", one_line=one_line)
    assert shown.split("class_name:")[1].split() == ["class", "of", "it", "perm_name:perm"]
    again = read_listing(io.BytesIO(shown.encode()), Problems())
    assert again.slot_array().tolist() == writer.slots().tolist()


# Payload of a user event, and what of it must be readable outside --vendor.
ODD_TEXTS = [
    (b"caf\xe9 open\0", r"caf\xe9 open"),  # not UTF-8
    ("größe erreicht\0".encode(), "größe erreicht"),  # not ASCII
    (b"\x1b[31mred alert\0", r"\x1b[31mred alert"),  # control characters
    (b"no end, no NUL at all!!", "no end, no NUL at all!!"),
    (b"first part\0second", "first part"),  # more behind the NUL: in the words
    (b"x" * 5000 + b"\0", "x" * 5000),
    (b"two\nlines and\ttabs\0", r"two\nlines and\ttabs"),
]


def user_event(data):
    return WireClass.USER, 5, np.frombuffer(data + bytes(-len(data) % 4), "<u4").tolist()


@pytest.mark.parametrize(("data", "shown"), ODD_TEXTS)
@pytest.mark.parametrize("layout", ["6", "6.1", "7"])
@pytest.mark.parametrize("one_line", [False, True])
def test_no_text_of_a_user_event_is_dropped(data, shown, layout, one_line):
    text = lines(user_event(data), layout=layout, one_line=one_line)
    assert f'STR:"{shown}"' in text


@pytest.mark.parametrize(("data", "shown"), [*ODD_TEXTS, (b"", ""), (b"\xff\xfe\xfd\xfc", "")])
@pytest.mark.parametrize("layout", ["6", "7"])
def test_what_text_cannot_show_is_reported_by_words_and_read_back(data, shown, layout, tmp_path):
    data += bytes(max(0, 16 - len(data)))
    event = user_event(data)
    path = tmp_path / "t.txt"
    path.write_text(printed(trace(event, release=layout), layout=layout), "utf-8")
    read = open_listing(path)
    words = read.payloads.words(0).tolist()
    is_clean = user_text(data) is not None
    if layout == "7" or not is_clean:
        assert words[: len(event[2])] == event[2]


def test_numbers_of_a_user_event_are_no_text():
    assert "STR" not in lines((WireClass.USER, 5, [1, 2, 3, 4]))
    assert "STR" not in lines((WireClass.USER, 5, [0x41, 0x42, 0x43, 0x44]))

"""The library's functions behave as their C originals are documented to."""

import errno
import io
import re
import sys
from types import SimpleNamespace

import pytest

import satview.traceparser
from satview.events import wire
from satview.events.wire import WireClass
from satview.formats.kev.header import SlotWriter, header_bytes
from satview.traceparser.api import (
    Debug,
    Error,
    Info,
    Sort,
    traceparser,
    traceparser_cs,
    traceparser_cs_range,
    traceparser_debug,
    traceparser_destroy,
    traceparser_get_info,
    traceparser_init,
    traceparser_sort,
)
from tests.helpers.shared import shared_path

KERCALL, KERCALLENTER, KERCALLEXIT, KERCALLINT, INT, PROCESS, THREAD, VTHREAD, USER, SYSTEM, COMM = (
    2,
    3,
    4,
    5,
    6,
    9,
    10,
    11,
    12,
    13,
    14,
)
PAIRS = [
    ("FILE_NAME", "/tmp/x.kev"),
    ("DATE", "Fri Aug 17 09:08:06 2001"),
    ("VER_MAJOR", "1"),
    ("VER_MINOR", "01"),
    ("LITTLE_ENDIAN", "TRUE"),
    ("CYCLES_PER_SEC", "1000"),
    ("SYS_RELEASE", "7.1.0"),
    ("SYSPAGE_LEN", "0"),
]


def make(tmp_path, *events, pairs=PAIRS, order="little", page=b""):
    writer = SlotWriter(order)
    for code, words, *position in events:
        cpu, stamp = position or (0, len(writer))
        writer.event(code, cpu, stamp, words)
    path = tmp_path / "x.kev"
    slots = writer.slots().astype("<u4" if order == "little" else ">u4").tobytes()
    path.write_bytes(header_bytes(pairs) + page + slots)
    return path


def record(state, userdata, header, time, buffer, length):
    userdata.append((header & 0x7FFF, time, None if buffer is None else buffer.tolist(), length))
    return len(userdata)


CALL, EXIT = wire.code(WireClass.KER_CALL, 11), wire.code(WireClass.KER_CALL, 11 + 128)
INTERRUPTED = wire.code(WireClass.KER_CALL, 11 + 256)
MIXED = [
    (CALL, [3, 0x41]),
    (EXIT, [0, 0x41]),
    (INTERRUPTED, [0, 0]),
    (wire.THREAD_RUNNING, [1, 1]),
    (wire.PROC_CREATE, [0, 1]),
    (wire.code(WireClass.INT, 1), [0, 1]),
    (wire.code(WireClass.USER, 7), [1, 2, 3, 4]),
]


def delivered(path, *registrations, release="7.x"):
    state = traceparser_init(None, release=release)
    found = []
    for function, *arguments in registrations:
        assert function(state, found, record, *arguments) == 0
    assert traceparser(state, None, path) == 0
    return [entry[0] for entry in found]


@pytest.mark.parametrize(
    ("registration", "codes"),
    [
        ((traceparser_cs, KERCALL, 11), [CALL, EXIT]),
        ((traceparser_cs, KERCALLENTER, 11), [CALL]),
        ((traceparser_cs, KERCALLEXIT, 11), [EXIT]),
        ((traceparser_cs, KERCALLINT, 11), [INTERRUPTED]),
        ((traceparser_cs_range, KERCALL, 0, 107), [CALL, EXIT]),
        ((traceparser_cs, THREAD, 1 << 1), [wire.THREAD_RUNNING]),
        ((traceparser_cs, THREAD, 1 << 2), []),
        ((traceparser_cs_range, THREAD, 1, 1 << 25), [wire.THREAD_RUNNING]),
        ((traceparser_cs, THREAD, 0b0110), [wire.THREAD_RUNNING]),
        ((traceparser_cs, PROCESS, 1), [wire.PROC_CREATE]),
        ((traceparser_cs_range, PROCESS, 1, 16), [wire.PROC_CREATE]),
        ((traceparser_cs_range, INT, 0, 0xFFFFFFFF), [wire.code(WireClass.INT, 1)]),
        ((traceparser_cs_range, 7, 0, 0xFFFFFFFF), [wire.code(WireClass.INT, 1)]),
        ((traceparser_cs, USER, 7), [wire.code(WireClass.USER, 7)]),
        ((traceparser_cs_range, USER, 0, 1023), [wire.code(WireClass.USER, 7)]),
        ((traceparser_cs, COMM, 0), []),
    ],
)
def test_external_classes_and_events(tmp_path, registration, codes):
    assert delivered(make(tmp_path, *MIXED), registration) == codes


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (traceparser_cs, (INT, 0)),
        (traceparser_cs, (7, 1)),
        (traceparser_cs_range, (INT, 0, 5)),
        (traceparser_cs, (USER, 1024)),
        (traceparser_cs_range, (USER, 0, 2000)),
        (traceparser_cs, (99, 0)),
        (traceparser_cs, (THREAD, 0)),
        (traceparser_cs, (0, 1)),
        (traceparser_cs, (20, 0)),
    ],
)
def test_what_cannot_be_registered(function, arguments):
    state = traceparser_init(None)
    assert function(state, None, record, *arguments) == -1
    assert state.errno == errno.EINVAL
    assert traceparser_get_info(state, Info.ERROR) == Error.UNKNOWN_ERROR == 15


@pytest.mark.parametrize(("flags", "order"), [(0, Sort.NOSORT), (Debug.ALL, Sort.NOSORT), (0, Sort.SORT)])
def test_empty_slots_and_interrupts_of_no_table_are_delivered(tmp_path, flags, order):
    path = make(tmp_path, (CALL, [3, 5]), (wire.code(WireClass.INT, 0), [7, 8]), (wire.code(WireClass.INT, 9), [1, 2]))
    data = path.read_bytes()
    slot = b"\0" * 4 + b"\x09\0\0\0" + b"\x03\0\0\0" + b"\x05\0\0\0"
    path.write_bytes(data[:-16] + slot + data[-16:])
    found, state = [], traceparser_init(None, release="8.0")
    traceparser_debug(state, io.StringIO(), flags)
    traceparser_sort(state, order)
    assert traceparser_cs(state, found, record, 0, 0) == 0
    assert traceparser_cs_range(state, found, record, INT, 0, 0xFFFFFFFF) == 0
    assert traceparser(state, None, path) == 0
    assert found == [
        (0, 0, None, 0),
        (wire.code(WireClass.INT, 0), 1, [7, 8], 2),
        (0, 9, [3, 5], 2),
        (wire.code(WireClass.INT, 9), 2, [1, 2], 2),
    ]


def test_error_numbers_are_the_vendors():
    names = ("UNKNOWN_ERROR", "INVALID_DATA", "NOT_SEEKABLE", "UNKNOWN_ERROR_8")
    assert [int(Error[name]) for name in names] == [15, 15, 16, 17]
    assert satview.traceparser._TRACEPARSER_INVALID_DATA == 15


def test_thread_events_of_8_0_are_numbers(tmp_path):
    path = make(tmp_path, *MIXED)
    assert delivered(path, (traceparser_cs, THREAD, 1), release="8.0") == [wire.THREAD_RUNNING]
    assert traceparser_cs(traceparser_init(None, release="8.0"), None, record, VTHREAD, 1) == -1
    assert traceparser_cs(traceparser_init(None, release="8.0"), None, record, 20, 0) == 0


def test_null_callback_comes_first_and_later_registrations_replace_earlier_ones(tmp_path):
    state, found, other = traceparser_init(None), [], []
    traceparser_cs(state, other, record, THREAD, 2)
    traceparser_cs_range(state, found, record, THREAD, 1, 1 << 25)
    traceparser_cs(state, found, record, 0, 0)
    assert traceparser(state, None, make(tmp_path, *MIXED)) == 0
    assert found == [(0, 0, None, 0), (wire.THREAD_RUNNING, 3, [1, 1], 2)]
    assert other == []


def test_userdata_of_the_parse_serves_registrations_without(tmp_path):
    state, found = traceparser_init(None), []
    traceparser_cs(state, None, record, THREAD, 2)
    assert traceparser(state, found, make(tmp_path, *MIXED)) == 0
    assert len(found) == 1


def test_file_order_and_assembled_combine_events(tmp_path):
    first = SlotWriter.slots_of(CALL, 0, 5, [1, 2, 3, 4, 5])
    writer = SlotWriter()
    for slot in (first[0], *SlotWriter.slots_of(wire.THREAD_RUNNING, 1, 9, [7, 1]), first[1], first[2]):
        writer.append(slot)
    path = tmp_path / "x.kev"
    path.write_bytes(header_bytes(PAIRS) + writer.slots().astype("<u4").tobytes())
    state, found = traceparser_init(None), []
    traceparser_cs(state, found, record, KERCALL, 11)
    traceparser_cs_range(state, found, record, THREAD, 1, 1 << 25)
    assert traceparser(state, None, path) == 0
    assert found == [(wire.THREAD_RUNNING, 9, [7, 1], 2), (CALL, 5, [1, 2, 3, 4, 5, 0], 6)]
    assert traceparser_sort(state, Sort.SORT) == 0
    found.clear()
    assert traceparser(state, None, path) == 0
    assert [entry[1] for entry in found] == [5, 9]
    assert traceparser_sort(state, 7) == -1


def test_header_values_and_state(tmp_path):
    state, seen = traceparser_init(None), []

    def look(inner, _userdata, _header, _time, _buffer, _length):
        seen.append(
            tuple(
                traceparser_get_info(inner, mode)
                for mode in (
                    Info.NOW_CALLBACK_CLASS,
                    Info.NOW_CALLBACK_EVENT,
                    Info.PREV_CALLBACK_CLASS,
                    Info.PREV_CALLBACK_EVENT,
                    Info.PREV_CALLBACK_RETURN,
                )
            )
        )
        return 40 + len(seen)

    traceparser_cs(state, None, look, KERCALL, 11)
    traceparser_cs(state, None, look, THREAD, 2)
    assert traceparser(state, None, make(tmp_path, *MIXED, page=b"")) == 0
    assert seen == [(2, 11, 0, 0, 0), (2, 139, 2, 11, 41), (4, 1, 2, 139, 42)]
    length = []
    assert traceparser_get_info(state, Info.FILE_NAME, length) == "/tmp/x.kev"
    assert length == [10]
    assert traceparser_get_info(state, Info.SYSPAGE, length) == b""
    assert length == [1]  # of the text "0": the vendor's quirk
    assert traceparser_get_info(state, Info.HEADER_END) == ""
    assert traceparser_get_info(state, Info.ENDIAN_CONV) == int(sys.byteorder != "little")
    assert traceparser_get_info(state, Info.MACHINE) is None
    assert traceparser_get_info(state, Info.ERROR) == Error.MISSING_FIELD
    assert traceparser_get_info(state, -99) is None
    assert traceparser_get_info(state, Info.ERROR) == Error.WRONG_H_KEYWORD
    assert traceparser_get_info(state, Info.ERROR_STR) == "no such information mode"
    assert traceparser_get_info(None, Info.DATE) is None


def test_clock_modes_of_7_1(tmp_path):
    path = make(
        tmp_path,
        (wire.CONTROL_TIME, [2, 0x10], 0, 0x10),
        (wire.THREAD_RUNNING, [1, 1], 0, 0x40),
        (wire.THREAD_RUNNING, [1, 1], 0, 0x60),
    )
    state, seen = traceparser_init(None), []
    modes = (Info.CLK_MSB, Info.CLK, Info.CLK_INTIAL, Info.CLK_DELTA, Info.TIME_DELTA)

    def look(inner, *_):
        seen.append([traceparser_get_info(inner, mode) for mode in modes])

    traceparser_cs(state, None, look, THREAD, 2)
    assert traceparser(state, None, path) == 0
    assert seen == [[2, 0x200000040, 0x200000010, 0x30, 48_000_000], [2, 0x200000060, 0x200000010, 0x20, 32_000_000]]
    assert traceparser_get_info(traceparser_init(None, release="6.x"), Info.CLK) is None


def test_payload_of_a_foreign_byte_order_is_not_swapped(tmp_path):
    pairs = [pair if pair[0] != "LITTLE_ENDIAN" else ("BIG_ENDIAN", "TRUE") for pair in PAIRS]
    path = make(tmp_path, (wire.THREAD_RUNNING, [1, 2]), pairs=pairs, order="big")
    state, found = traceparser_init(None), []
    traceparser_cs(state, found, record, THREAD, 2)
    assert traceparser(state, None, path) == 0
    assert traceparser_get_info(state, Info.ENDIAN_CONV) == int(sys.byteorder == "little")
    assert found == [(wire.THREAD_RUNNING, 0, [0x01000000, 0x02000000] if sys.byteorder == "little" else [1, 2], 2)]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"VER_MAJOR": "0", "VER_MINOR": "97"}, Error.WRONG_FILE_VERSION),
        ({"LITTLE_ENDIAN": None}, Error.WRONG_ENDIAN_TYPE),
        ({"VER_MAJOR": None}, Error.WRONG_FILE_VERSION),
    ],
)
def test_strict_refuses_what_the_vendor_refuses(tmp_path, change, error):
    pairs = [(key, change.get(key, value)) for key, value in PAIRS if change.get(key, value) is not None]
    path = make(tmp_path, *MIXED, pairs=pairs)
    strict = traceparser_init(None, is_strict=True)
    assert traceparser(strict, None, path) == -1
    assert traceparser_get_info(strict, Info.ERROR) == error
    assert traceparser(traceparser_init(None), None, path) == 0


def test_files_that_cannot_be_read(tmp_path):
    state = traceparser_init(None)
    assert traceparser(state, None, tmp_path / "none.kev") == -1
    assert traceparser_get_info(state, Info.ERROR) == Error.CANNOT_READ_IN_FILE
    path = make(tmp_path, pairs=[*PAIRS[:-1], ("SYSPAGE_LEN", "400")])
    assert traceparser(state, None, path) == -1
    assert traceparser(None, None, path) == -1


def test_standard_input(tmp_path, monkeypatch):
    data = make(tmp_path, *MIXED).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert delivered("-", (traceparser_cs, THREAD, 2)) == [wire.THREAD_RUNNING]
    state = traceparser_init(None, release="8.0")
    traceparser_sort(state, Sort.SORT)
    assert traceparser(state, None, "-") == -1
    assert traceparser_get_info(state, Info.ERROR) == Error.NOT_SEEKABLE


def test_debug_output(tmp_path):
    path = make(tmp_path, (wire.THREAD_RUNNING, [1, 1]))
    outputs = {}
    for flags in (Debug.NONE, Debug.ERRORS, Debug.HEADER, Debug.ALL):
        stream = io.StringIO()
        state = traceparser_init(None)
        assert traceparser_debug(state, stream, flags) == 0
        assert traceparser(state, None, path) == 0
        outputs[flags] = stream.getvalue()
    assert outputs[Debug.NONE] == ""
    assert outputs[Debug.ERRORS].startswith("       TRACE_FILE_NAME:: /tmp/x.kev\n")
    assert outputs[Debug.HEADER].startswith("TRACEPARSER LIBRARY version 1.02\n -- HEADER FILE INFORMATION -- \n")
    assert outputs[Debug.HEADER].endswith(" -- KERNEL EVENTS -- \n")
    assert outputs[Debug.ALL].endswith("event => h:0x00001001 d0:0x00000000 d1:0x00000001 d2:0x00000001\n")
    state = traceparser_init(None)
    assert traceparser_debug(state, None, 1) == -1
    assert state.errno == errno.EINVAL
    assert traceparser_debug(None, io.StringIO(), 1) == -1


def test_debug_output_of_a_vendor_file():
    """With everything on and nothing registered the library writes what traceprinter -v shows, less its own lines."""
    expected = shared_path("golden/vendor-6.x/threads.v.txt").read_text().splitlines(keepends=True)
    stream, state = io.StringIO(), traceparser_init(None)
    traceparser_debug(state, stream, Debug.ALL)
    assert traceparser(state, None, shared_path("golden/vendor-6.x/threads.kev")) == 0
    printer = re.compile(r"t:0x|TRACEPRINTER| {10,}[a-z]+:[^:]")
    assert stream.getvalue() == "".join(line for line in expected if not printer.match(line))


def test_a_state_can_be_cleared_and_destroyed(tmp_path):
    state, found = traceparser_init(None), []
    traceparser_cs(state, found, record, THREAD, 2)
    assert traceparser_init(state) is state
    assert traceparser(state, None, make(tmp_path, *MIXED)) == 0
    assert found == []
    assert traceparser_destroy(state) is None
    assert traceparser_get_info(state, Info.DATE) is None


def test_a_failing_callback_closes_the_file(tmp_path):
    state = traceparser_init(None)
    traceparser_cs(state, None, lambda *_: 1 / 0, THREAD, 2)
    with pytest.raises(ZeroDivisionError):
        traceparser(state, None, make(tmp_path, *MIXED))
    assert state.file is None

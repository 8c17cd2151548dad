"""Whole files: both byte orders, every release, round trips, and everything that can be wrong with a file."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import TraceFormatError, UsageError
from satview.events import wire
from satview.formats.kev.header import (
    SlotWriter,
    header_bytes,
    parse_header,
    parse_syspage,
    slots_as_bytes,
    write_kev,
)
from satview.formats.kev.reader import open_kev
from satview.formats.registry import open_trace
from tests.helpers.extent import usually
from tests.helpers.kev import START, TraceBuilder, header_and_page, write_trace
from tests.helpers.shared import shared_path

RELEASES = {"6.4.1": "6.x", "6.6.0": "6.6", "7.1.0": "7.x", "8.0.0": "8.0"}


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize("release", RELEASES)
def test_every_release_in_both_byte_orders(tmp_path, release, byte_order):
    builder = TraceBuilder("7.1.0", byte_order, cpus=2)
    builder.release = release
    builder.time_event(0).process_name(5, 77, "/proc/boot/devb-ümlaut").thread_name(6, 77, 2, "worker")
    builder.state("RUNNING", 10, 77, 2, cpu=1, extra=(10, 2)).call(11, 20, (3, 0x41424344), cpu=1)
    trace = builder.open(tmp_path)
    assert (trace.release.value, trace.byte_order, trace.cpu_count) == (
        RELEASES[release],
        byte_order,
        2,
    )
    assert trace.system is not None
    assert [c.name for c in trace.system.cpus] == ["cpu-0", "cpu-1"]
    assert trace.system.cpus[1].speed_mhz == 1000
    assert trace.system.strings == (("HOSTNAME", "target"), ("MACHINE", "x86pc"))
    assert trace.clock.boot_time_s == 1_634_803_075
    assert not trace.problems.counts()
    assert trace.events.time_cycles.tolist() == [START + t for t in (0, 5, 6, 10, 20)]
    assert trace.process_name(trace.processes.row(77)) == "devb-ümlaut"
    assert trace.thread_name(int(trace.events.thread[4])) == "devb-ümlaut 2 (worker)"
    assert trace.payloads.words(4).tolist() == [3, 0x41424344]
    assert trace.payloads.raw(4) == (b"\x03\0\0\0DCBA" if byte_order == "little" else b"\0\0\0\x03ABCD")


def test_names_that_come_last_count_from_the_start(tmp_path):
    builder = (
        TraceBuilder().time_event(0).state("RUNNING", 1, 9, 1).event(wire.code(6, 1), 2).process_name(900, 9, "late")
    )
    trace = builder.open(tmp_path)
    assert trace.thread_name(int(trace.events.thread[1])) == "late 1"


@pytest.mark.thorough
@given(
    st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 4), max_size=40),
    st.sampled_from(["little", "big"]),
    st.binary(max_size=15),
)
def test_write_after_read_gives_the_same_slots(tmp_path_factory, slots, byte_order, rest):
    folder = tmp_path_factory.mktemp("round")
    path = write_trace(folder / "a.kev", np.array(slots, np.uint32).reshape(-1, 4), byte_order=byte_order)
    with path.open("ab") as file:
        file.write(rest)
    trace = open_kev(path)  # any words are slots: nothing may stop the load
    assert trace.slot_count == len(slots)
    assert trace.problems.counts().get("partial-slot", 0) == bool(rest)
    size = path.stat().st_size
    pairs, page = trace.header.pairs, trace.system.raw
    write_kev(folder / "b.kev", pairs, page, trace.payloads.slots, byte_order)
    assert (folder / "b.kev").read_bytes() == path.read_bytes()[: size - len(rest)]


@pytest.mark.parametrize("name", ["threads", "threads_be", "process", "user", "int", "control", "ker_fast"])
def test_vendor_files_round_trip(tmp_path, name):
    path = shared_path(f"golden/vendor-6.x/{name}.kev")
    trace = open_kev(path)
    data = path.read_bytes()
    offset = trace.header.length + (trace.header.number("SYSPAGE_LEN") or 0)
    slots = trace.payloads.slots
    write_kev(tmp_path / "again.kev", trace.header.pairs, data[trace.header.length : offset], slots, trace.byte_order)
    assert (tmp_path / "again.kev").read_bytes() == data[: offset + 16 * len(slots)]


class TestHeader:
    def test_any_order_and_extra_keys(self):
        data = (
            b"TRACE_HEADER_BEGIN::TRACE_SYSPAGE_LEN::12TRACE_FILE_NAME::/dev/shmem/TRACE_1.kev"
            b"TRACE_mine::a=bTRACE_empty::TRACE_HEADER_END::rest"
        )
        header = parse_header(data, None, len(data))
        assert header.pairs == (
            ("SYSPAGE_LEN", "12"),
            ("FILE_NAME", "/dev/shmem/TRACE_1.kev"),
            ("mine", "a=b"),
            ("empty", ""),
        )
        assert header.length == data.index(b"rest")

    def test_a_path_with_colons_and_key_like_text(self):
        data = header_bytes((("FILE_NAME", "/tmp/a:b/TRACE_x.kev"), ("NODENAME", "n:1")))
        assert parse_header(data, None, len(data)).get("FILE_NAME") == "/tmp/a:b/TRACE_x.kev"

    @given(st.binary(max_size=300))
    def test_any_bytes_give_a_header_or_a_format_error(self, data):
        try:
            parse_header(b"TRACE_HEADER_BEGIN::" + data, None, 10**9)
        except TraceFormatError as error:
            where = error.offset
            assert where is not None

    def test_a_value_that_would_not_be_read_back_is_refused(self):
        with pytest.raises(UsageError, match="contains a key"):
            header_bytes((("FILE_NAME", "TRACE_X::1"),))


class TestSyspage:
    @given(st.binary(max_size=400), st.sampled_from(["little", "big"]))
    def test_any_bytes_are_survived(self, image, byte_order):
        parse_syspage(image, byte_order)

    def test_the_vendor_page(self):
        trace = open_kev(shared_path("golden/vendor-6.x/threads.kev"))
        assert trace.system.processor == "X86"
        assert trace.system.cpus[0].flag_names[:2] == ("FPU", "MMU")


def damaged(tmp_path, content: bytes):
    path = tmp_path / "bad.kev"
    path.write_bytes(content)
    return path


# By how much opening a file makes a process grow, bytes; a new one, for what others left behind would count too.
_GROWTH = """
import sys, psutil
from satview.formats.registry import open_trace
before = psutil.Process().memory_info().rss
trace = open_trace(sys.argv[1])
print(psutil.Process().memory_info().rss - before)
"""


class TestBadFiles:
    def good(self):
        pairs, page = header_and_page()
        return header_bytes(pairs), page

    def refused(self, path, *words):
        with pytest.raises(TraceFormatError) as caught:
            open_trace(path)
        text = str(caught.value)
        assert path.name in text
        assert "\n" not in text
        for word in words:
            assert word in text
        return caught.value

    def test_no_trace(self, tmp_path):
        error = self.refused(damaged(tmp_path, b"\x7fELF" + bytes(1000)), "not a kernel event trace")
        assert error.offset == 0

    def test_page_beyond_the_file(self, tmp_path):
        pairs, _ = header_and_page()
        pairs = tuple((k, "999999999999") if k == "SYSPAGE_LEN" else (k, v) for k, v in pairs)
        self.refused(damaged(tmp_path, header_bytes(pairs) + bytes(100)), "999999999999", "only 100 bytes")

    def test_both_byte_order_keys(self, tmp_path):
        pairs, page = header_and_page()
        writer = SlotWriter()
        writer.event(wire.code(6, 1), 0, 5, (1, 2))
        path = damaged(
            tmp_path, header_bytes((*pairs, ("BIG_ENDIAN", "TRUE"))) + page + slots_as_bytes(writer.slots(), "little")
        )
        trace = open_trace(path)
        assert trace.byte_order == "little"
        assert trace.payloads.words(0).tolist() == [1, 2]
        assert "byte-order" in trace.problems.counts()

    @pytest.mark.thorough
    def test_much_of_random_bytes(self, tmp_path):
        head, page = self.good()
        path, mb = tmp_path / "random.kev", usually(4, complete=64, thorough=16)
        with path.open("wb") as file:
            file.write(head + page)
            rng = np.random.default_rng(0)
            for _ in range(mb):
                file.write(rng.bytes(1 << 20))
        trace = open_trace(path)
        assert trace.slot_count == mb << 16
        assert {"orphan-slots", "unfinished-events", "unknown-events"} <= trace.problems.counts().keys()
        assert len(trace.problems) < 20_000
        done = subprocess.run([sys.executable, "-c", _GROWTH, str(path)], check=True, capture_output=True, text=True)
        assert int(done.stdout) < 8 * mb << 20

    def test_nothing_but_a_header(self, tmp_path):
        head, page = self.good()
        trace = open_trace(damaged(tmp_path, head + page))
        assert (len(trace.events), trace.duration_ns, trace.class_counts()) == (0, 0, {})


class TestBuffers:
    def buffers(self, tmp_path, numbers):
        builder = TraceBuilder()
        for i, number in enumerate(numbers):
            builder.event(wire.CONTROL_BUFFER, i * 1000, (number, 3))
            builder.time_event(i * 1000)
            builder.event(wire.code(6, 1), i * 1000 + 5)
        return builder.open(tmp_path)

    def test_a_gap_is_a_loss(self, tmp_path):
        trace = self.buffers(tmp_path, [7, 8, 12, 13])
        assert trace.buffers.lost_before.tolist() == [0, 0, 3, 0]
        assert trace.problems.counts() == {"lost-buffers": 3}
        assert next(iter(trace.problems)).time_cycles == START + 2000

    def test_a_loss_around_a_damaged_number_is_counted(self, tmp_path):
        trace = self.buffers(tmp_path, [1, 2, 4_259_739_853, 6, 7])
        assert trace.buffers.lost_before.tolist() == [0, 0, 0, 2, 0]
        assert trace.problems.counts() == {"buffer-order": 1, "lost-buffers": 2}

    def test_a_repeated_number_is_out_of_order(self, tmp_path):
        assert self.buffers(tmp_path, [4, 4]).problems.counts() == {"buffer-order": 1}

    def test_a_buffer_has_the_time_of_the_slot_behind_it(self, tmp_path):
        trace = self.buffers(tmp_path, [1, 2])
        assert trace.buffers.time_cycles.tolist() == [START, START + 1000]

    def test_events_after_a_ring_capture_are_pointed_out(self, tmp_path):
        builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0)
        for i in range(10):
            builder.event(wire.code(6, 1), 100 + i)
        builder.event(wire.CONTROL_BUFFER, 2_000_000_000, (2, 0)).time_event(2_000_000_000)
        trace = builder.event(wire.code(6, 2), 2_000_000_005).event(wire.code(6, 2), 2_000_000_006).open(tmp_path)
        assert trace.problems.counts() == {"ring-tail": 2}
        assert not trace.problems.cost_data
        assert next(iter(trace.problems)).time_cycles == START + 2_000_000_005


def test_what_a_writer_refuses(tmp_path):
    """An order of bytes that is none, and a header that says other things than what follows."""
    with pytest.raises(ValueError, match="byte order 'middle' is neither 'little' nor 'big'"):
        SlotWriter("middle")
    pairs, page = header_and_page(byte_order="big")
    slots = np.zeros((1, 4), np.uint32)
    with pytest.raises(ValueError, match=f"SYSPAGE_LEN is {len(page)}, the page has {len(page) - 1} bytes"):
        write_kev(tmp_path / "x", pairs, page[:-1], slots, "big")
    with pytest.raises(ValueError, match="SYSPAGE_LEN is None, the page has 1 bytes"):
        write_kev(tmp_path / "x", [("BIG_ENDIAN", "TRUE")], b"1", slots, "big")
    with pytest.raises(ValueError, match="the header does not say that the file is little-endian"):
        write_kev(tmp_path / "x", pairs, page, slots, "little")
    assert not (tmp_path / "x").exists()
    write_kev(tmp_path / "x", [("BIG_ENDIAN", "TRUE")], b"", slots, "big")
    writer = SlotWriter()
    writer.event(5, 0, 0, (1, 2, 3))
    assert len(writer) == 2
    writer.clear()
    assert (len(writer), writer.slots().shape) == (0, (0, 4))

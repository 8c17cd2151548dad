"""The file that grows as a trace arrives: the events that were sent, a header that knows more, losses that show."""

from __future__ import annotations

import pytest

from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture
from satview.capture.run import run as run_capture
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.reader import read_start
from satview.formats.registry import open_trace
from satview.target.line import TargetError
from satview.target.watching import Arrival


@pytest.fixture(scope="module", params=[Release.QNX_6_6, Release.QNX_7, Release.QNX_8], ids=str)
def sent(request, tmp_path_factory):
    """The bytes that tracelogger of a release on two CPUs sends."""
    path = tmp_path_factory.mktemp("sent") / "sent.kev"
    capture = Capture(
        "client-server", cpus=2, release=request.param, duration_ns=300_000_000,
        options=LoggerOptions(iterations=0), attributes=[("TRACELOGGER_ARGS", "tracelogger -c -f -")],
    )  # fmt: skip
    run_capture(capture, path)
    return path.read_bytes()


def arrived(tmp_path, data, size=1 << 16, attributes=(("CAPTURE_HOST", "rig"),)):
    """Return the file of bytes that come in pieces, and what was counted."""
    arrival = Arrival(tmp_path / "run.kev", attributes)
    try:
        for begin in range(0, len(data), size):
            arrival.take(data[begin : begin + size])
    finally:
        arrival.finish()
    return tmp_path / "run.kev", arrival


def buffers_of(path):
    """Return the byte in the file where each buffer begins."""
    start = read_start(path)
    slots = start.slots.read(0, len(start.slots))
    begins = (slots[:, 0] & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)) == wire.CONTROL_BUFFER
    return [start.offset + int(row) * wire.SLOT_BYTES for row in begins.nonzero()[0]]


@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_the_same_events_come_in_whatever_pieces(sent, tmp_path, size):
    whole = tmp_path / "sent.kev"
    whole.write_bytes(sent)
    path, arrival = arrived(tmp_path, sent, size)
    before, after = open_trace(whole), open_trace(path)
    assert path.read_bytes().endswith(sent[read_start(whole).offset - 100 :])  # with the end of the system page
    assert after.header.pairs == (*before.header.pairs, ("CAPTURE_HOST", "rig"))
    assert (arrival.buffers, arrival.lost, arrival.received) == (len(before.buffers), 0, len(sent))
    assert not after.problems


def test_a_buffer_that_is_missing_is_counted(sent, tmp_path):
    path, _ = arrived(tmp_path, sent, attributes=())
    begins = buffers_of(path)
    data = path.read_bytes()
    without = data[: begins[3]] + data[begins[4] :]  # of its CPU in 8.0
    path, arrival = arrived(tmp_path, without)
    assert (arrival.buffers, arrival.lost) == (len(begins) - 1, 1)
    assert int(open_trace(path).buffers.lost_before.sum()) == 1  # as every command counts


def test_what_is_cut_ends_with_a_whole_slot(sent, tmp_path):
    path, arrival = arrived(tmp_path, sent[:-5])
    assert (path.stat().st_size - read_start(path).offset) % wire.SLOT_BYTES == 0
    assert path.stat().st_size == len(sent) - 16 + len("TRACE_CAPTURE_HOST::rig") + pad_of(path)
    assert arrival.received == len(sent) - 5


def pad_of(path):
    """Return the bytes of what moves the end of the header for the vendor's tools."""
    head = path.read_bytes()[:4096]
    return len("TRACE_PAD::") if b"TRACE_PAD::TRACE" in head else len("TRACE_PAD::0") if b"TRACE_PAD::0T" in head else 0


def test_a_header_that_never_ends_leaves_no_file(tmp_path):
    path, _ = arrived(tmp_path, b"TRACE_HEADER_BEGIN::TRACE_DATE::x")
    assert not path.exists()
    with pytest.raises(TargetError, match="its header has no end"):
        arrived(tmp_path, b"TRACE_HEADER_BEGIN::" + b"x" * (1 << 21))
    assert not path.exists()

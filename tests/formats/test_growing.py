"""A file read bit by bit while it grows gives what a file read at once gives, at every step."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satview.base.errors import Cancelled, TraceFormatError
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev import decode as decode_module
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.decode import Decoder
from satview.formats.kev.header import header_bytes
from satview.formats.kev.reader import open_kev
from satview.formats.kev.sampling import GrowingFile
from satview.store.problems import Problems
from tests.formats.test_decode import HEADER, chunks_of, opened, slot_lists
from tests.helpers.same_trace import same_table, same_trace


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(slot_lists(), st.lists(st.integers(0, 60), max_size=6), st.sampled_from([4, 16, 1 << 17]))
def test_decoder_that_goes_on_equals_a_new_one(slots, stops, chunk):
    array = np.array(slots, np.uint32).reshape(-1, 4)
    decoders, older = [], []

    def decoder_of(part, names):
        if decoders:
            decoders[0].extend(part)
        else:
            decoders.append(Decoder(part, names, goes_on=True))
        return decoders[0]

    with chunks_of(chunk):
        for count in [*sorted(min(stop, len(array)) for stop in stops), len(array)]:
            part = array[:count]
            grown = trace_from_slots("made", "kev", HEADER, b"", part, "little", Problems(), decoder_of=decoder_of)
            older.append((grown, opened(part)))
        for grown, whole in older:  # those of before must not have changed when more came
            same_trace(grown, whole)


def test_threads_keep_their_rows_when_more_come():
    """Filters and undo count on it. Many threads at once, so that their positions in the table of keys collide."""
    pids = np.random.default_rng(5).permutation(40_000)[:3_000].tolist()
    slots = [(wire.code(4, 5), at, pid, 1) for at, pid in enumerate(pids)]
    with chunks_of(300):
        for count in (7, 1_000, 3_000):
            assert opened(slots[:count]).threads.pid[1:].tolist() == pids[:count]


@pytest.fixture(scope="module", params=[Release.QNX_6, Release.QNX_8])
def capture(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("growing") / "whole.kev"
    options = LoggerOptions(iterations=0, is_wide=True)
    run(Capture("small-system", release=request.param, options=options, duration_ns=150_000_000), path)
    return path


@pytest.mark.thorough
def test_file_that_grows_equals_the_whole_file_at_every_step(capture, tmp_path):
    data, path, part = capture.read_bytes(), tmp_path / "part.kev", tmp_path / "so-far.kev"
    file = GrowingFile(path)
    offset = len(data) - open_kev(capture).slot_count * 16
    with chunks_of(1 << 9):
        for share in (0.1, 0.35, 0.36, 0.8, 1.0):
            end = offset + int((len(data) - offset) * share) // 16 * 16
            for name in (path, part):
                name.write_bytes(data[:end])
            grown, whole = file.read(), open_kev(part)
            assert grown.slot_count == (end - offset) // 16
            same_table(grown.events, whole.events)
            same_table(grown.threads, whole.threads)
            same_table(grown.processes, whole.processes)
            assert grown.problems.counts() == whole.problems.counts()
            assert grown.payloads.raw(len(grown.events) - 1) == whole.payloads.raw(len(grown.events) - 1)


def test_byte_order_that_only_the_slots_show_is_found_when_they_come(tmp_path):
    path = tmp_path / "big.kev"
    start = header_bytes([("CYCLES_PER_SEC", "1000"), ("SYS_RELEASE", "6.4.1"), ("SYSPAGE_LEN", "0")])
    slots = np.array([(wire.code(6, 1), at, at, 0) for at in range(40)], ">u4").tobytes()
    file, first = GrowingFile(path), None
    for count in (0, 1, 40):
        path.write_bytes(start + slots[: 16 * count])
        grown, first = file.read(), first or file.read()
        same_trace(grown, open_kev(path))
    assert (grown.byte_order, len(grown.events), len(first.events)) == ("big", 40, 0)


def test_only_the_last_chunk_is_decoded_again(capture, tmp_path, monkeypatch):
    data, path = capture.read_bytes(), tmp_path / "part.kev"
    path.write_bytes(data[: len(data) - 1600])
    done = []
    group = Decoder._group
    monkeypatch.setattr(Decoder, "_group", lambda self, start, first: done.append(start) or group(self, start, first))
    file = GrowingFile(path)
    with chunks_of(1 << 9):
        file.read()
        first, done[:] = list(done), []
        path.write_bytes(data)
        file.read()
    assert len(first) > 5
    assert done[0] == first[-1]
    assert len(done) <= 2


def test_cancelled_read_is_taken_up_again(capture, tmp_path):
    path = tmp_path / "part.kev"
    path.write_bytes(capture.read_bytes())
    file, requested = GrowingFile(path), []
    with chunks_of(1 << 9):
        with pytest.raises(Cancelled):
            file.read(cancelled=lambda: requested.append(1) or len(requested) > 3)
        same_table(file.read().events, open_kev(path).events)


def test_another_file_of_that_name_is_decoded_from_its_start(capture, tmp_path):
    path = tmp_path / "part.kev"
    path.write_bytes(capture.read_bytes())
    file = GrowingFile(path)
    before = file.read()
    other = tmp_path / "other.kev"
    run(Capture("periodic", seed=3, options=LoggerOptions(iterations=0), duration_ns=300_000_000), other)
    path.write_bytes(other.read_bytes())
    after = file.read()
    assert "a new capture began" in file.restart
    same_table(after.events, open_kev(path).events)
    assert len(before.events) != len(after.events)


HEAD = header_bytes(
    [("LITTLE_ENDIAN", "TRUE"), ("CYCLES_PER_SEC", "1000"), ("SYS_RELEASE", "6.4.1"), ("SYSPAGE_LEN", "4")]
)
SLOTS = np.array([(wire.code(6, 1), at, at, 0) for at in range(3000)], "<u4").tobytes()
WHOLE = HEAD + b"page" + SLOTS
FIRST = len(HEAD) + 4  # byte of the first slot


def growing(tmp_path, content):
    path = tmp_path / "part.kev"
    path.write_bytes(content)
    return path, GrowingFile(path)


@pytest.mark.parametrize(
    ("content", "what", "offset"),
    [
        (b"", "it is empty so far; start the capture", None),
        (b"TRACE_HEADEX", "this is not a .kev file; only .kev files", 0),
        (b"TRACE_HEAD", "the file ends inside the first key of the header", 10),
        (HEAD[:-3], "the file ends inside the header", len(HEAD) - 3),
        (HEAD, "0 of 4 bytes of its system page are there; wait for the rest", len(HEAD)),
        (HEAD + b"pag", "3 of 4 bytes of its system page are there", len(HEAD)),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_yet(tmp_path, content, what, offset):
    path, file = growing(tmp_path, content)
    with pytest.raises(TraceFormatError, match=what) as refused:
        file.read()
    assert refused.value.offset == offset
    path.write_bytes(WHOLE)
    assert (file.has_changed, len(file.read().events), file.has_changed, file.restart) == (True, 3000, False, "")


def test_a_header_longer_than_the_first_look(tmp_path):
    pairs = [("LITTLE_ENDIAN", "TRUE"), ("SYSPAGE_LEN", "0"), *((f"A{number}", "x" * 80) for number in range(900))]
    path, file = growing(tmp_path, header_bytes(pairs) + SLOTS[:32])
    trace = file.read()
    assert (len(trace.events), trace.header.get("A899")) == (2, "x" * 80)
    assert [each.detail for each in trace.problems] == [each.detail for each in open_kev(path).problems]


@pytest.mark.parametrize(
    ("change", "at"),
    [(HEAD.index(b"6.4.1"), 0), (len(HEAD) + 2, 0), (FIRST + 21, FIRST + 16),
     (FIRST + 1500 * 16 + 3, FIRST + 1500 * 16), (len(WHOLE) - 1, len(WHOLE) - 16)],
)  # fmt: skip
def test_a_file_that_is_written_over(tmp_path, change, at):
    """In its header, its page, its first, middle or last slots; the sentence names the slot."""
    path, file = growing(tmp_path, WHOLE)
    file.read()
    data = bytearray(WHOLE + SLOTS[:16])
    data[change] ^= 0x20 if change < len(HEAD) else 1
    path.write_bytes(data)
    trace = file.read()
    rest = ": it was cut short, or a new capture began; shown from its start"
    assert file.restart == f"part.kev was written over from byte 0x{at:x} on{rest}"
    assert len(trace.events) == 3001
    file.read()
    assert file.restart == ""


@pytest.mark.parametrize(
    ("slot", "is_noticed"),
    [(255, True), (256, False), (1499, False), (1500, True), (1755, True), (1756, False), (2743, False), (2744, True)],
)
def test_which_old_slots_are_looked_at_again(tmp_path, slot, is_noticed):
    """Of 3,000 the first 256, 256 from the middle on, and the last 256."""
    path, file = growing(tmp_path, WHOLE)
    file.read()
    data = bytearray(WHOLE + SLOTS[:16])
    data[FIRST + 16 * slot] ^= 1
    path.write_bytes(data)
    file.read()
    assert bool(file.restart) is is_noticed


def test_a_file_that_shrinks_or_ends_inside_a_slot(tmp_path):
    path, file = growing(tmp_path, WHOLE)
    first = file.read()
    path.write_bytes(WHOLE + b"7 bytes")
    second = file.read()
    assert (file.restart, len(second.events), list(second.problems) == list(first.problems)) == ("", 3000, True)
    path.write_bytes(WHOLE[:-1])
    assert len(file.read().events) == 2999
    rest = "it was cut short, or a new capture began; shown from its start"
    assert file.restart == f"part.kev shrank from {len(WHOLE):,} to {len(WHOLE) - 1:,} bytes: {rest}"
    path.write_bytes(HEAD)
    with pytest.raises(TraceFormatError, match="0 of 4 bytes"):
        file.read()
    path.write_bytes(WHOLE)
    file.read()
    assert file.restart.startswith(f"part.kev shrank from {len(WHOLE) - 16:,} to {len(HEAD):,} bytes"), (
        "said once it reads"
    )


@pytest.mark.parametrize("is_memory", [True, False])
def test_a_column_that_grows(monkeypatch, is_memory):
    """In memory, or in a file where the system has no such memory: what one reading has seen stays as it was."""
    if not is_memory:
        monkeypatch.delattr("os.memfd_create", raising=False)
    column = decode_module.GrowingColumn(np.uint16)
    assert (column._is_memory, len(column.writable(0)), len(column.reading(np.empty(0, np.uint16), 0))) == (
        is_memory and hasattr(decode_module.os, "memfd_create"), 0, 0
    )  # fmt: skip
    written = column.writable(3)
    written[:] = 1, 2, 3
    first = column.reading(written, 2)
    first[0] = 77  # a reader's own
    more = column.writable(600_000)
    assert more[:3].tolist() == [1, 2, 3]
    assert not more[3:].any()
    more[2:5] = 30, 40, 50
    assert (first.tolist(), column.reading(more[:5], 2).tolist()) == ([77, 2, 3], [1, 2, 30, 40, 50])
    assert len(column.writable(2)) == 2
    assert column.writable(600_000)[:5].tolist() == [1, 2, 30, 40, 50]


@pytest.mark.parametrize("is_memory", [True, False])
def test_the_file_of_a_column_is_closed_with_it(monkeypatch, is_memory):
    if not is_memory:
        monkeypatch.delattr("os.memfd_create", raising=False)
    column = decode_module.GrowingColumn(np.uint16)
    file = column._file
    assert os.fstat(file).st_size == 0
    del column
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


def test_a_column_on_a_disk_that_was_full(monkeypatch):
    """What was written before the disk was full is written over once there is room."""
    monkeypatch.delattr("os.memfd_create", raising=False)
    column = decode_module.GrowingColumn(np.uint16)
    column.writable(4)[:] = 7
    write = os.write

    def write_some(file: int, data: bytes) -> int:
        write(file, data[:5])
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as full:
        full.setattr(decode_module.os, "write", write_some)
        with pytest.raises(OSError, match="no room"):
            column.writable(10)
    assert column.writable(10).tolist() == [7] * 4 + [0] * 6
    assert os.fstat(column._file).st_size == 20

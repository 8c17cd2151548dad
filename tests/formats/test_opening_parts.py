"""How a trace is found, unpacked and opened: one sentence for each thing that is none, and bounds of what is packed."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zstandard

from satview.base.errors import Cancelled, TraceFormatError
from satview.events import wire
from satview.events.spec import Release
from satview.formats import registry, source
from satview.formats.kev.header import SlotWriter, header_bytes, write_kev
from satview.formats.kev.reader import score
from satview.formats.registry import is_packed, unpacked_stream, zstd_block
from satview.formats.source import opened, source_of
from tests.helpers import linux_scene
from tests.helpers.kev import START, TraceBuilder, header_and_page
from tests.helpers.pipes import Trickle
from tests.helpers.thread_trace import record

MARK = wire.code(wire.WireClass.USER, 5)
SLOT = np.array([MARK, 9, 1, 2], "<u4").tobytes()
PACKERS = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}


@pytest.fixture
def kev(tmp_path):
    builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 7, 1)
    for number in range(300):
        builder.event(MARK, 20 + number, (number, 2), number % 2)
    return builder.write(tmp_path / "a.kev")


def events_of(found: source.TraceSource) -> list[tuple[int, int]]:
    """Return time and code of every event."""
    rows: list[tuple[int, int]] = []
    for batch in found.events:
        rows += zip(batch.time_cycles.tolist(), batch.code.tolist(), strict=True)
    return rows


# ---- for one pass ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("packed", [None, *PACKERS])
def test_a_file_that_comes_bit_by_bit(kev, step, packed):
    content = kev.read_bytes() if packed is None else PACKERS[packed](kev.read_bytes())
    if step == 1 and packed is None:
        content = content[: len(content) - 290 * 16]  # a step of one byte is slow
    found = source_of(Trickle(content, step), Path("-"))
    assert (found.format, found.path, found.byte_order, found.release, found.cycles_per_s) == (
        "kev", Path("-"), "little", Release.QNX_7, 1_000_000_000
    )  # fmt: skip
    assert found.system is not None
    assert len(found.system_page) == found.header.number("SYSPAGE_LEN")
    rows = events_of(found)
    assert rows[0] == (START, wire.CONTROL_TIME)
    assert len(rows) == (12 if step == 1 and packed is None else 302)
    assert {code for _, code in rows[2:]} == {MARK}
    assert [time - START for time, _ in rows[2:]] == list(range(20, 20 + len(rows) - 2))
    assert list(found.problems) == []


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_a_system_page_that_is_longer_than_the_first_look(step):
    """Of a pipe 4,096 bytes are looked at first."""
    page = np.arange(1250, dtype="<u4").tobytes()
    head = header_bytes([("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "7.1.0"), ("SYSPAGE_LEN", "5000")])
    opened_trace = source_of(Trickle(head + page + SLOT, step), Path("x"))
    assert opened_trace.system_page == page
    assert events_of(opened_trace) == [(9, MARK)]


@pytest.mark.parametrize(
    ("content", "what", "offset"),
    [
        (b"", "it is empty", 0),
        (b"TRACE_HEAD", "the file ends inside the first key of the header", 10),
        (b"TRACE_HEADER_BEGIN::TRACE_A::b", "the file ends inside the header", 30),
        (b"TRACE_HEADER_BEGIN::TRACE_SYSPAGE_LEN::9TRACE_HEADER_END::1234",
         "the header announces a system page of 9 bytes, but only 4 bytes follow", 58),
        (linux_scene.TEXT.encode(), "a trace of Linux is not printed in the vendor's layout", 0),
        (record(0, 1, 1, "thr_self").encode(), "a trace of the threads library is not printed in", 0),
        (b"nothing of the kind", "this is not a trace that satview knows", 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("step", [5, 1 << 20])
def test_what_cannot_be_read_as_it_comes(content, what, offset, step):
    with pytest.raises(TraceFormatError, match=what) as refused:
        events_of(source_of(Trickle(content, step), Path("x")))
    assert refused.value.offset == offset


def test_a_header_whose_end_comes_after_a_mebibyte():
    """No more is read for it, of a pipe that gives 4 KiB at a time."""
    content = b"TRACE_HEADER_BEGIN::TRACE_A::" + b"x" * (1 << 20) + b"TRACE_HEADER_END::"
    with pytest.raises(TraceFormatError, match="no end of the header within 1048576 bytes") as refused:
        source_of(Trickle(content, 4096), Path("x"))
    assert source.MAX_HEADER_BYTES <= refused.value.offset <= len(content)


def test_a_file_and_a_pipe(kev, tmp_path):
    with opened(kev) as found:
        from_file = events_of(found)
    with opened("-", io.BytesIO(kev.read_bytes())) as found:
        assert events_of(found) == from_file
    with pytest.raises(ValueError, match="no standard input was given"), opened("-"):
        pass
    with pytest.raises(TraceFormatError, match="this is a directory"), opened(tmp_path):
        pass
    with pytest.raises(FileNotFoundError), opened(tmp_path / "missing"):
        pass


@pytest.mark.parametrize(("order", "step"), [("little", 100), ("big", 100), ("big", 1 << 20), ("big", 4096)])
@pytest.mark.parametrize("keys", [(), (b"TRACE_LITTLE_ENDIAN", b"TRACE_BIG_ENDIAN")])
def test_a_byte_order_that_only_slots_show(tmp_path, keys, order, step):
    """Without its key the first slots are looked at, as many as come; here there is no system page to show it."""
    writer = SlotWriter(order)
    for number in range(302):
        writer.event(MARK, 0, number, (number, 2))
    pairs, _ = header_and_page(byte_order=order)
    pairs = [(key, "0" if key == "SYSPAGE_LEN" else value) for key, value in pairs]
    write_kev(tmp_path / "a.kev", pairs, b"", writer.slots(), order)
    content = (tmp_path / "a.kev").read_bytes()
    for key in keys:
        content = content.replace(key, key[:-1] + b"X")
    found = source_of(Trickle(content, step), Path("x"))
    assert found.byte_order == order
    assert len(events_of(found)) == 302
    assert [problem.kind.slug for problem in found.problems] == (["byte-order"] if keys else [])


# ---- packed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", PACKERS)
def test_packed_bytes_come_back(packed):
    content = np.random.default_rng(1).bytes(300_000) + bytes(100_000)
    pack = PACKERS[packed]
    for whole, expected in ((pack(content), content), (pack(b""), b""), (pack(b"a") + pack(b"b"), b"ab")):
        assert is_packed(whole[:4])
        for first in (4, len(whole)):
            stream = unpacked_stream(whole[:first], Trickle(whole[first:], 1000), Path("x"))
            assert stream.read() == expected
    assert not is_packed(b"TRAC")
    assert unpacked_stream(b"plai", io.BytesIO(b"n text"), Path("x")).read() == b"plain text"


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_packed_bytes_that_are_damaged(packed, damage):
    whole = PACKERS[packed](np.random.default_rng(1).bytes(30_000))
    whole = whole[:-9] if damage == "cut" else whole[:9] + bytes(100) + whole[109:-8] + bytes(8)
    if packed == "zstd" and damage == "changed":
        whole = whole[:4] + b"\xff" * 20 + whole[24:]
    with pytest.raises(
        TraceFormatError, match=r"the compressed data is damaged or cut short \(.+\); copy the file again"
    ):
        unpacked_stream(whole[:4], io.BytesIO(whole[4:]), Path("x")).read()


def test_bytes_are_counted_as_they_are_read():
    """Those that were read before, then those of the file."""
    counting = registry._Counting(b"abc", io.BytesIO(b"defg"))
    assert counting.count == 0
    assert [(counting.read(2), counting.count) for _ in range(5)] == [
        (b"ab", 2), (b"c", 3), (b"de", 5), (b"fg", 7), (b"", 7)
    ]  # fmt: skip


@pytest.mark.parametrize("packed", PACKERS)
def test_a_file_that_unpacks_to_too_much(monkeypatch, packed):
    """Refused is what is both large and has grown by more than a factor."""
    monkeypatch.setattr(registry, "_BLOCK", 1000)
    whole = PACKERS[packed](bytes(20_000))
    for free, ratio, is_good in ((20_000, 1, True), (19_999, 1, False), (0, 20_000, True)):
        monkeypatch.setattr(registry, "_FREE_BYTES", free)
        monkeypatch.setattr(registry, "RATIO_MAX", ratio)
        stream = unpacked_stream(whole[:4], io.BytesIO(whole[4:]), Path("x"))
        if is_good:
            assert stream.read() == bytes(20_000)
        else:
            with pytest.raises(TraceFormatError, match="it unpacks to more than 1 times its size, as no trace does"):
                stream.read()


def test_how_much_a_trace_may_grow():
    """256 MiB whatever the file, and 100 times its size."""
    free, packed = 256 << 20, 4 << 20
    assert [registry.grows_too_much(size, many) for size, many in (
        (free, 0), (free + 1, 0), (100 * packed, packed), (100 * packed + 1, packed), (100 * packed + 1, packed + 1)
    )] == [False, True, False, True, False]  # fmt: skip


def test_zstd_comes_with_newer_pythons(monkeypatch):
    """From 3.14 on `compression.zstd` is there, whose decompressor and errors are the same in what is used of them."""
    zstd = SimpleNamespace(
        ZstdDecompressor=lambda: zstandard.ZstdDecompressor().decompressobj(), ZstdError=zstandard.ZstdError
    )
    monkeypatch.setattr(registry, "sys", SimpleNamespace(version_info=(3, 14)))
    monkeypatch.setattr(registry, "import_module", {"compression.zstd": zstd}.__getitem__)
    assert zstd_block(PACKERS["zstd"](b"a" * 500), 500) == b"a" * 500
    with pytest.raises(ValueError, match="zstd"):
        zstd_block(b"rubbish", 5)


@pytest.mark.parametrize("looks", [1, 3])
def test_unpacking_can_be_stopped(tmp_path, looks):
    """Before a reader sees anything of it; it is asked for every 256 KiB."""
    path, asked = tmp_path / "a.gz", []
    path.write_bytes(gzip.compress(bytes(5 << 18)))

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) == looks

    with pytest.raises(Cancelled, match="unpacking was stopped"):
        registry.opened_plain(path, lambda plain: pytest.fail(f"{plain} was opened"), cancelled)
    assert len(asked) == looks


def test_one_block_of_zstd():
    packed = PACKERS["zstd"](b"a" * 500)
    assert [zstd_block(packed, size) for size in (500, 501)] == [b"a" * 500] * 2
    long = PACKERS["zstd"](b"a" * ((1 << 18) + 1))  # a byte more than is unpacked at once
    for data, size, what in (
        (long, 1 << 18, "it unpacks to more than it announces"),
        (packed, 499, "it unpacks to more than it announces"),
        (packed[:-3], 500, "its last frame is not complete"),
        (b"rubbish", 5, "zstd"),
    ):
        with pytest.raises(ValueError, match=what):
            zstd_block(data, size)


@pytest.mark.parametrize("packed", [None, *PACKERS])
def test_standard_input_is_opened_as_a_file(kev, packed, monkeypatch):
    content = kev.read_bytes() if packed is None else PACKERS[packed](kev.read_bytes())
    monkeypatch.setattr(registry, "standard_input", lambda: io.BytesIO(content))
    trace = registry.open_trace("-")
    assert (trace.path, len(trace.events), trace.payloads.words(5).tolist()) == (Path("-"), 302, [3, 2])


@pytest.mark.parametrize("packed", [None, *PACKERS])
def test_a_packed_file_is_opened_under_its_name(kev, packed, monkeypatch):
    made: list[Path] = []
    path = kev if packed is None else kev.with_name("b.txt.packed")
    if packed:
        path.write_bytes(PACKERS[packed](kev.read_bytes()))
        real = registry._renamed
        monkeypatch.setattr(registry, "_renamed", lambda plain, *rest: (made.append(plain), real(plain, *rest))[1])
    trace = registry.open_trace(path)
    assert (trace.path, len(trace.events), trace.format) == (path, 302, "kev")
    assert [(plain.name, plain.parent.exists()) for plain in made] == ([("b.txt", False)] if packed else [])
    assert trace.payloads.words(5).tolist() == [3, 2]
    if packed:
        with pytest.raises(Cancelled):
            registry.open_trace(path, None, lambda: True)
        path.write_bytes(PACKERS[packed](b"no trace"))
        with pytest.raises(TraceFormatError) as refused:
            registry.open_trace(path)
        assert (refused.value.path, refused.value.what) == (path, "this is not a trace that satview knows")


# ---- which reader ------------------------------------------------------------------------------------------------


def test_what_is_no_trace(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("nothing of the kind")
    (tmp_path / "tr.0000001.001").touch()
    for name, what, offset in (("empty", "the file is empty", 0), ("text", "this is not a trace that satview knows", 0),
                               ("missing", "there is no such file", None),
                               ("tr.0000001.001", "no line of it is a record of thread_trace", 0)):  # fmt: skip
        with pytest.raises(TraceFormatError, match=what) as refused:
            registry.open_trace(tmp_path / name)
        assert refused.value.offset == offset
    (tmp_path / "folder").mkdir()
    with pytest.raises(TraceFormatError, match="this is a directory; name a file in it"):
        registry.open_trace(tmp_path / "folder")
    with pytest.raises(TraceFormatError, match="this is neither a file nor a directory"):
        registry.open_trace("/dev/null")


@pytest.mark.parametrize(
    ("scores", "expected"), [((100, 100), 0), ((60, 70), 1), ((60, 60), 0), ((0, 1), 1), ((0, 0), None)]
)
def test_the_reader_that_is_surest(tmp_path, monkeypatch, scores, expected):
    """Of equals the first one; those behind a certain one are not even asked."""
    asked: list[int] = []

    class Reader:
        def __init__(self, number: int) -> None:
            self.number = number

        def score(self, first: bytes, _path: Path) -> int:
            asked.append(self.number)
            assert first == b"x" * 4096
            return scores[self.number]

        def open_it(self) -> None: ...

    readers = {f"reader {number}": Reader(number) for number in range(2)}
    monkeypatch.setattr(registry, "import_module", readers.__getitem__)
    monkeypatch.setattr(registry, "FORMATS", tuple(registry.Format("", "", (), name, "open_it") for name in readers))
    path = tmp_path / "x"
    path.write_bytes(b"x" * 5000)
    if expected is None:
        with pytest.raises(TraceFormatError, match="this is not a trace that satview knows"):
            registry._best(path)
    else:
        assert registry._best(path).__self__ is readers[f"reader {expected}"]
    assert asked == ([0] if scores[0] == 100 else [0, 1])


@pytest.mark.parametrize(
    ("error", "what"),
    [(MemoryError(), "there is not enough memory to hold its events"),
     (OSError(5, "Input/output error"), "cannot be read: Input/output error"), (OSError("odd"), "cannot be read: odd")],
)  # fmt: skip
def test_errors_of_the_system_are_sentences(tmp_path, monkeypatch, error, what):
    def fails(*_args: object) -> None:
        raise error

    monkeypatch.setattr(registry, "opened_plain", fails)
    with pytest.raises(TraceFormatError, match=what) as refused:
        registry.open_trace(tmp_path / "x")
    assert (refused.value.path, refused.value.offset) == (tmp_path / "x", None)


@pytest.mark.parametrize(
    ("first", "name", "sure"),
    [(b"TRACE_HEADER_BEGIN::x", "x", 100), (b"TRACE", "x", 100), (b"TRAC", "x", 0), (b"TRACE_X", "x", 0), (b"", "x", 0),
     (b"", "x.KEV", 5), (b"rubbish", "x.kev", 5)],
)  # fmt: skip
def test_how_sure_a_key_of_the_header_makes(first, name, sure):
    assert score(first, Path(name)) == sure


def test_a_disk_that_fails_while_a_trace_is_read():
    says = "cannot be read: Input/output error; copy it from the target again"
    with pytest.raises(TraceFormatError, match=says), opened("/proc/self/mem"):
        pass


@pytest.mark.parametrize(
    ("text", "what"),
    [("TRACEPRINTER version 1.02\n", "it has no line with an event; give a .kev file"),
     (" -- KERNEL EVENTS -- \nnothing\n", "it has no line with an event; give a .kev file")],
)  # fmt: skip
def test_a_listing_without_an_event(text, what):
    with pytest.raises(TraceFormatError, match=what):
        source_of(io.BytesIO(text.encode()), Path("x"))


def test_files_that_a_trace_is_made_of(tmp_path, monkeypatch):
    """Where only some folders are open each of them is checked before anything is read."""
    names = ("tr.0000001.001", "tr.0000001.002", "tr.0000001.names", "tr.0000001.001.time")
    for name in names:
        (tmp_path / name).write_text(record(0, 1, 1, "thr_self"))
    (tmp_path / "folder").mkdir()
    every = [tmp_path / name for name in names]
    assert registry._parts(tmp_path) == every
    assert registry._parts(every[0]) == every, "of one file the whole set"
    assert registry._parts(tmp_path / "folder") == [tmp_path / "folder"]
    checked: list[Path] = []
    monkeypatch.setattr(registry, "check_below", checked.append)
    for folders, count in ((None, 0), ([tmp_path], len(registry.source_files(tmp_path)))):
        checked.clear()
        monkeypatch.setattr(registry, "folders", lambda folders=folders: folders)
        registry.open_trace(tmp_path)
        assert len(checked) == count
    with pytest.raises(TraceFormatError, match="there is a NUL in it, which no file's name has; check the name"):
        registry.open_trace("a\0b")

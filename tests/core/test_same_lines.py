"""The compiled core prints the same bytes as its reference, whatever the events and the layout."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest

from satview.base.errors import SatviewError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.export.listing.forms import Style
from satview.export.listing.printer import ListedEvents, Printer
from satview.export.listing.rows import FORMATS, PrintedFormat, RecordRows, TextRows
from satview.formats.kev.header import SlotWriter, header_bytes
from satview.formats.kev.stream import EventStream
from satview.formats.source import source_of
from satview.store.problems import Problems
from tests.core.reference.replacing import numpy_passes
from tests.fuzz import traces
from tests.helpers.extent import usually

FORMAT = "%c %#c|%14t|%014t|%.3t|%-12Z|%.-4z|%3C%5e%% "

RELEASES = {"6.4.1": Release.QNX_6, "7.1.0": Release.QNX_7, "8.0.0": Release.QNX_8}


def outputs(source, rng):
    """Return one way of printing of each kind, with options at random."""
    layout = rng.choice(("6", "6.1", "7", "8"))
    style = Style(layout, source.release, source.byte_order, rng.random() < 0.3, rng.random() < 0.3, source.notations)
    yield TextRows(source, style, rng.choice(("cycles", "full", "ns")))
    if not style.is_old:
        yield TextRows(source, style, "full", format=PrintedFormat.parse(FORMAT))
    yield RecordRows(source, rng.choice(FORMATS))


def printed(data, number, output):
    """Return the bytes of one output of a file, and what is reported of it; None where there is no such output."""
    source = source_of(io.BytesIO(data), Path("t.kev"))
    rng = random.Random(number)
    rows = list(outputs(source, rng))
    if output >= len(rows):
        return None
    cpus = frozenset((0,)) if rng.random() < 0.2 else frozenset()
    printer = Printer(source, rows[output], ListedEvents(cpus=cpus), is_verbose=rng.random() < 0.2)
    text = b"".join(bytes(piece) for piece in printer.encoded())
    return text, printer.printed, source.problems.counts()


def assert_same(data, number):
    count = 0
    for output in range(3):
        mine = printed(data, number, output)
        with numpy_passes():
            assert printed(data, number, output) == mine
        count += mine[1] if mine else 0
    return count


@pytest.mark.thorough
def test_files_that_are_nearly_right():
    lines = 0
    for number in range(usually(15, complete=1000, thorough=40)):
        try:
            lines += assert_same(traces.kev(random.Random(number)), number)
        except SatviewError:
            continue
    assert lines > 500


def every_code(order, release):
    """Return a file with an event of every code, in several lengths, of words that have signs, letters and errors."""
    rng = random.Random(release)
    writer = SlotWriter(order)
    words = (0, 1, 0xFFFFFFFF, 0x80000000, 0x41424344, 0x000A2241, 0x5C5C0A22, 3)
    known = sorted(catalogue(RELEASES[release]).codes())
    for number, code in enumerate([*known, *range(1, wire.CODE_COUNT, 97)]):
        for size in (1, 2, rng.choice((3, 5, 8, 12))):
            writer.event(code, code & 3, 16 * number, [rng.choice(words) for _ in range(size)])
    pairs = [(f"{order.upper()}_ENDIAN", "TRUE"), ("CYCLES_PER_SEC", "1000000000"), ("SYS_RELEASE", release)]
    return header_bytes(pairs) + writer.slots().astype("<u4" if order == "little" else ">u4").tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "order"), [("6.4.1", "big"), ("7.1.0", "little"), ("8.0.0", "big")])
def test_every_kind_of_event(release, order):
    assert assert_same(every_code(order, release), int(release[0])) > 2_000


def columns_of(slots):
    """Return what a stream delivers of slots, in blocks of random lengths."""
    rng, blocks, at = random.Random(1), [], 0
    while at < len(slots):
        size = rng.randrange(1, 200)
        blocks.append(np.ascontiguousarray(slots[at : at + size]))
        at += size
    problems = Problems()
    batches = list(EventStream(blocks, problems))
    names = ("slots", "header", "stamp", "time_cycles", "thread", "start", "words", "last_slot", "stray_tails")
    return [[getattr(batch, name).tolist() for name in names] for batch in batches], problems.counts()


def test_slots_that_belong_together_at_random():
    """Combine events of few keys: interlaced, twice open, without beginnings and ends, across blocks."""
    rng = np.random.default_rng(5)
    for _ in range(usually(2, complete=300, thorough=8)):
        slots = rng.integers(0, 3, (1_500, 4), np.uint32)
        kind, cpu = rng.choice(4, 1_500, p=(0.3, 0.25, 0.2, 0.25)), rng.integers(0, 2, 1_500)
        code = rng.choice((wire.CONTROL_BUFFER, wire.CONTROL_TIME, 0, wire.THREAD_RUNNING, wire.code(2, 3)), 1_500)
        slots[:, 0] = kind << wire.STRUCT_SHIFT | cpu << wire.CPU_SHIFT | code
        slots[:, 1] = np.sort(rng.integers(0, 400, 1_500))
        mine = columns_of(slots)
        with numpy_passes():
            assert columns_of(slots) == mine
        assert mine[1]["orphan-slots"]

"""The compiled passes and their reference give the same columns, problems and tables, whatever the slots."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from satview.base.errors import SatviewError
from satview.base.time import TimeWindow
from satview.capture.workloads import registry
from satview.core import loading
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.kev import decode
from satview.formats.kev.decode import COLUMNS, Decoder
from satview.formats.kev.reader import open_kev, read_start
from satview.timeline.event_marks import event_cells, mark_codes, marks, marks_between
from satview.timeline.lane import build_levels, finest_shift
from satview.timeline.lane_classes import LANE_CLASS_BY_NAME
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import LaneSpans, exact_raster, pixel_edges
from tests.capture.made import made_of_lesson
from tests.core.reference import loading as reference
from tests.core.reference.replacing import numpy_passes
from tests.fuzz import traces
from tests.fuzz.cases import all_cases
from tests.helpers.extent import fewer, usually
from tests.helpers.same_trace import same_trace

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.kev"))
RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)
RUBBISH = usually(6, complete=300, thorough=80)
FILES = usually(20, complete=250, thorough=100)


def decoded(slots, release, numpy_only, monkeypatch, chunk_slots):
    monkeypatch.setattr(decode, "CHUNK_SLOTS", chunk_slots)
    if numpy_only:
        with numpy_passes():
            return Decoder(slots, catalogue(release)).run()
    return Decoder(slots, catalogue(release)).run()


def assert_same(mine, theirs):
    for name in (*COLUMNS, "state_rows", "rare_rows"):
        first, second = getattr(mine, name), getattr(theirs, name)
        assert first.dtype == second.dtype, name
        assert first.tolist() == second.tolist(), name
    assert mine.keys[1:].tolist() == theirs.keys[1:].tolist()
    assert (mine.empty, mine.unknown) == (theirs.empty, theirs.unknown)
    for name in mine.unmatched.__slots__:
        assert getattr(mine.unmatched, name).tolist() == getattr(theirs.unmatched, name).tolist(), name
    assert mine.clock.references == theirs.clock.references
    assert sorted(mine.clock.ignored) == sorted(theirs.clock.ignored)
    first, second = mine.clock.verdicts(), theirs.clock.verdicts()
    for name in first.__slots__:
        assert sorted(getattr(first, name), key=repr) == sorted(getattr(second, name), key=repr), name


def rubbish(rng: random.Random) -> np.ndarray:
    """Return slots of few codes, CPUs, threads and stamps, so that everything that can meet does."""
    count = rng.choice((0, 1, 2, 5, 40, 200, 700))
    time, slots = rng.choice((0, 1 << 32, (1 << 32) - 5000)), []
    codes = [wire.CONTROL_TIME, wire.CONTROL_BUFFER, wire.CONTROL_DROPPED, wire.THREAD_RUNNING, wire.code(4, 3),
             wire.code(2, 14), wire.code(3, 1), 0]  # fmt: skip
    for _ in range(count):
        time += rng.choice((0, 1, 50, 50, 1 << 20, 1 << 30, 3 << 30, -60))
        code, cpu, kind = rng.choice(codes), rng.choice((0, 0, 1, 5, 63)), rng.choice((0, 0, 0, 1, 2, 3))
        stamp = time & 0xFFFFFFFF
        words = (rng.randrange(4), rng.randrange(4))
        if code == wire.CONTROL_TIME and rng.random() < 0.8:
            value = time + rng.choice((0, 0, 0, 0, 1 << 32, -(1 << 32), 1 << 40))
            words = (value >> 32 & 0xFFFFFFFF, value & 0xFFFFFFFF)
        if rng.random() < 0.05:
            slots.append((0, 0, 0, 0))
        elif slots and kind >= 2 and rng.random() < 0.7:
            before = slots[-1]  # a tail that may belong to it
            slots.append(((before[0] & 0x3FFFFFFF) | kind << 30, before[1], *words))
        else:
            slots.append((code | cpu << wire.CPU_SHIFT | kind << 30, stamp, *words))
    return np.array(slots, np.uint32).reshape(-1, 4)


@pytest.mark.thorough
def test_rubbish_in_chunks_of_every_size(monkeypatch):
    rng, seen = random.Random(5), 0
    for number in range(RUBBISH):
        slots, release = rubbish(rng), RELEASES[number % 3]
        chunk = rng.choice((1, 2, 3, 7, 64, 1 << 17))
        try:
            mine = decoded(slots, release, False, monkeypatch, chunk)
            assert_same(mine, decoded(slots, release, True, monkeypatch, chunk))
        except AssertionError as error:
            raise AssertionError(f"input {number}, chunks of {chunk}") from error
        seen += mine.count
    assert seen > 30 * RUBBISH


@pytest.mark.parametrize("part", range(5))
def test_files_that_are_nearly_right(part, tmp_path):
    path, opened = tmp_path / "t.kev", 0
    for number in range(part * FILES // 5, (part + 1) * FILES // 5):
        path.write_bytes(traces.kev(random.Random(number)))
        try:
            mine = open_kev(path)
        except SatviewError:
            continue
        with numpy_passes():
            same_trace(mine, open_kev(path))
        opened += 1
    assert opened > FILES // 10


@pytest.mark.thorough
@pytest.mark.parametrize("name", fewer([name for name, _ in registry.names()][::-1], 3))
def test_workloads(name, tmp_path):
    for wide, loss in ((True, False), (True, True), (False, True)):
        trace = made_of_lesson(name, Release.QNX_7, wide, loss, tmp_path).trace
        with numpy_passes():
            same_trace(trace, open_kev(trace.path))


@pytest.mark.thorough
def test_kept_cases_and_samples():
    files = [path for name, path in all_cases() if name == "kev"] + SAMPLES
    assert len(files) > 5
    for path in files:
        try:
            mine = open_kev(path)
        except SatviewError:
            continue
        with numpy_passes():
            same_trace(mine, open_kev(path))


def test_threads_are_numbered_alike_while_the_table_grows(monkeypatch):
    rng = np.random.default_rng(3)
    slots = np.zeros((50_000, 4), np.uint32)
    slots[:, 0] = np.where(rng.random(50_000) < 0.5, wire.THREAD_RUNNING, wire.code(2, 14)) | np.uint32(1 << 24)
    slots[:, 1] = np.arange(50_000) * 10
    slots[:, 2], slots[:, 3] = rng.integers(1, 9000, 50_000), rng.integers(1, 9, 50_000)
    mine = decoded(slots, Release.QNX_7, False, monkeypatch, 1 << 12)
    assert len(mine.keys) > 20_000
    assert_same(mine, decoded(slots, Release.QNX_7, True, monkeypatch, 1 << 12))


def test_a_clock_with_an_own_rollover_on_every_cpu(monkeypatch):
    """Times are those of the rule, by hand: CPU 1 passes a rollover between two TIME events, CPU 0 does not."""
    rollover = 1 << 32
    slots = np.array([
        (wire.CONTROL_TIME, rollover - 100 & 0xFFFFFFFF, 0, rollover - 100 & 0xFFFFFFFF),
        (wire.CONTROL_TIME | 1 << 24, rollover - 90 & 0xFFFFFFFF, 0, rollover - 90 & 0xFFFFFFFF),
        (wire.code(2, 14) | 1 << 24, 20, 0, 0),
        (wire.code(2, 14), rollover - 10 & 0xFFFFFFFF, 0, 0),
        (wire.CONTROL_TIME, 30, 1, 30),
    ], np.uint32)  # fmt: skip
    mine = decoded(slots, Release.QNX_7, False, monkeypatch, 1 << 17)
    assert mine.time.tolist() == [rollover - 100, rollover - 90, rollover + 20, rollover - 10, rollover + 30]
    assert_same(mine, decoded(slots, Release.QNX_7, True, monkeypatch, 1 << 17))
    assert all(first <= second for first, second in pairwise(mine.slot.tolist()))


def test_the_cheapest_path_by_hand_and_at_random():
    """Of three steps with two choices: to stay costs nothing, to change 2; the second choice costs 3, 0 and 3."""
    cost, step = np.array([[0.0, 3.0], [5.0, 0.0], [0.0, 3.0]]), np.array([[[0.0, 2.0], [2.0, 0.0]]] * 2)
    path, through = loading.cheapest_path(cost, step)
    assert path.tolist() == [0, 1, 0]
    assert through.tolist() == [[4, 5], [5, 4], [4, 5]]
    rng = np.random.default_rng(6)
    for count, choices in ((1, 1), (1, 4), (2, 1), (40, 3), (200, 9)):
        cost = rng.integers(0, 5, (count, choices)).astype(np.float64)
        step = rng.integers(0, 5, (count - 1, choices, choices)).astype(np.float64)
        mine, theirs = loading.cheapest_path(cost, step), reference.cheapest_path(cost, step)
        assert mine[0].tolist() == theirs[0].tolist()
        assert mine[1].tolist() == theirs[1].tolist()


def random_lane(rng, window):
    """Return touching intervals from the start of a window on, some of one cycle, some long."""
    start, value = [window.start], [int(rng.integers(0, 64))]
    while True:
        start.append(start[-1] + int(rng.choice((1, 2, 7, 100, 5000, window.length // 3 + 1))))
        if start[-1] >= window.end or len(start) > 400:
            break
        value.append(int(rng.choice((0, 1, 2, 3, 40, 63))))
    starts = np.array(start[: len(value)], np.int64)
    return LaneSpans(starts, np.array(value, np.uint8), np.zeros(len(value), np.uint32), None, window.end)


@pytest.mark.thorough
def test_rasters_and_levels():
    rng = np.random.default_rng(8)
    for number in range(300):
        start = int(rng.integers(-10, 1 << 40))
        window = TimeWindow(start, start + int(rng.choice((1, 3, 1000, 30_000, 1 << 20, 1 << 36))))
        lanes = [random_lane(rng, window) for _ in range(3)]
        view = TimeWindow(window.start - int(rng.integers(0, 50)), window.end + int(rng.integers(1, 50)))
        view = view if rng.random() < 0.5 else TimeWindow(window.start + window.length // 3, window.end)
        width = int(rng.choice((1, 2, 17, 400)))
        seen = rng.random(((window.length - 1) >> finest_shift(window, len(lanes[0]))) + 1) < 0.1
        mine = exact_raster(lanes, view, width), build_levels(lanes[0], window, seen)
        with numpy_passes():
            theirs = exact_raster(lanes, view, width), build_levels(lanes[0], window, seen)
        assert mine[0].tolist() == theirs[0].tolist(), number
        assert (mine[1].origin, mine[1].shift) == (theirs[1].origin, theirs[1].shift)
        assert [cells.tolist() for cells in mine[1].cells] == [cells.tolist() for cells in theirs[1].cells], number


def with_another_cpu(path: Path) -> bytes:
    """Return a sample with one event of a CPU that the target has not."""
    start, data = read_start(path), bytearray(path.read_bytes())
    headers = start.slots.read(0, len(start.slots))[:, 0]
    row = int(np.flatnonzero(headers >> 10 == wire.WireClass.KER_CALL)[100])  # simple, of CPU 0
    data[start.offset + 16 * row + 3] ^= 37
    return bytes(data)


@pytest.mark.thorough
def test_cells_that_hold_events(tmp_path):
    """Lanes of every kind, that of damage too, at random resolutions."""
    path, kinds = tmp_path / "t.kev", set()
    dense = next(sample for sample in SAMPLES if sample.stem.startswith("dense"))
    for number in range(50):
        rng = random.Random(number)
        path.write_bytes(traces.kev(rng) if number else with_another_cpu(dense))
        try:
            trace = open_kev(path)
        except SatviewError:
            continue
        timeline = Timeline(trace)
        timeline.show_classes(LANE_CLASS_BY_NAME)
        infos = [info for info in timeline.infos if rng.random() < 0.8 or info.kind is LaneKind.DAMAGED]
        least = max(0, (trace.window.length >> 16).bit_length())
        shifts = np.array([least + rng.randrange(8) for _ in infos], np.int64)
        mine = event_cells(trace, infos, shifts, mark_codes())
        with numpy_passes():
            theirs = event_cells(trace, infos, shifts, mark_codes())
        assert [cells.tolist() for cells in mine] == [cells.tolist() for cells in theirs]
        kinds |= {info.kind for info, cells in zip(infos, mine, strict=True) if cells.any()}
        window, part = trace.window, slice(len(trace.events) // 4, len(trace.events))
        for edges in (pixel_edges(window, 97), pixel_edges(TimeWindow(window.start, window.end + 5), 1)):
            mine = marks_between(trace, infos, part, mark_codes(), edges)
            rows = np.flatnonzero(mark_codes()[trace.events.code[part]]) + part.start
            assert np.array_equal(marks(trace, infos, rows.astype(np.uint32), edges), mine)
    assert kinds == set(LaneKind) - {LaneKind.PLUGGED}

"""Files that lost or gained bytes that are no whole number of slots: nothing but what is around the place is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.formats.kev import reader
from satview.formats.kev.reader import open_kev, read_start
from tests.helpers.extent import fewer

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"
SLOT = 16


@pytest.fixture(scope="module")
def whole():
    return open_kev(SAMPLE)


def kept(trace, whole):
    """Return how many events are those of the whole trace, with time, code and CPU, and how many are none of them."""
    mine, other = (
        np.unique(of.events.time_cycles << 21 | of.events.code.astype(np.int64) << 6 | of.events.cpu)
        for of in (trace, whole)
    )
    same = len(np.intersect1d(mine, other, assume_unique=True))
    return same, len(mine) - same


@pytest.mark.thorough
@pytest.mark.parametrize("lost", fewer((7, 399_998, 1, 2, 15, 1_000_003), 2))
def test_bytes_that_are_missing_cost_what_they_held(whole, tmp_path, lost):
    """As much as a cut of whole slots costs, and the slot that is cut in two."""
    data, path, cut = SAMPLE.read_bytes(), tmp_path / "cut.kev", 1_500_007
    path.write_bytes(data[:cut] + data[cut + lost :])
    trace = open_kev(path)
    assert (trace.cpu_count, trace.window) == (4, whole.window)
    slot = read_start(SAMPLE).slots.byte(0) % SLOT
    first = cut - (cut - slot) % SLOT
    path.write_bytes(data[:first] + data[first + -(-lost // SLOT) * SLOT :])
    by_whole_slots = kept(open_kev(path), whole)
    same, other = kept(trace, whole)
    assert same >= by_whole_slots[0] - 2
    assert other <= by_whole_slots[1] + 1
    (problem,) = (row for row in trace.problems if row.kind.slug == "shifted-slots")
    assert abs(problem.offset - cut) <= 2 * SLOT, "where it happened"
    assert problem.detail == f"from here on slots lie {-lost % SLOT} bytes further on"
    assert "partial-slot" not in trace.problems.counts()


@pytest.mark.thorough
def test_bytes_that_are_too_many_cost_nothing_but_their_slot(whole, tmp_path):
    data, path = SAMPLE.read_bytes(), tmp_path / "more.kev"
    path.write_bytes(data[:800_003] + b"\x00\x01\x02\x03\x04" + data[800_003:2_000_000] + b"???" + data[2_000_000:])
    trace = open_kev(path)
    same, other = kept(trace, whole)
    assert (other <= 2, len(whole.events) - same <= 4) == (True, True)
    assert trace.problems.counts()["shifted-slots"] == 2


def test_every_byte_of_an_event_is_where_it_says(whole, tmp_path):
    """Slots are read as the decoder, the details and the statistics do: in a row, and one by one."""
    data, path = SAMPLE.read_bytes(), tmp_path / "cut.kev"
    path.write_bytes(data[:900_000] + data[900_005:])
    start = read_start(path)
    slots, damaged = start.slots, path.read_bytes()
    numbers = np.array([0, 5, 50_000, 100_000, len(slots) - 1])
    for number in numbers.tolist():
        offset = slots.byte(number)
        assert slots.read(number, number + 1).tobytes() == damaged[offset : offset + SLOT]
    assert slots.take(numbers, 1).tolist() == [int(slots.read(number, number + 1)[0, 1]) for number in numbers.tolist()]


def test_a_file_that_just_ends_early_is_not_searched(tmp_path, monkeypatch):
    path = tmp_path / "short.kev"
    path.write_bytes(SAMPLE.read_bytes()[: 4_900_000 + 9])
    searched = []
    heads = reader._buffer_heads
    monkeypatch.setattr(reader, "_buffer_heads", lambda *a: searched.append(a[1:3]) or heads(*a))
    assert "shifted-slots" not in open_kev(path).problems.counts()
    assert searched == [(path.stat().st_size - (1 << 22), path.stat().st_size)]


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["6.x", "7.x", "8.0"])
def test_of_every_release(release, tmp_path, capsys):
    path = tmp_path / "target.kev"
    words = ["tracelogger", "--workload", "automotive", "--release", release, "-s", "0.3", "-w", "-f", str(path)]
    assert main(words) == 0
    whole, data = open_kev(path), path.read_bytes()
    at = len(data) // 2
    path.with_name("cut.kev").write_bytes(data[:at] + data[at + 11 :])
    trace = open_kev(path.with_name("cut.kev"))
    same, other = kept(trace, whole)
    assert trace.problems.counts()["shifted-slots"] == 1
    assert trace.cpu_count == whole.cpu_count
    assert (len(whole.events) - same <= 20, other <= 20) == (True, True)

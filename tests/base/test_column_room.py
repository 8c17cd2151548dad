"""A bound of memory for columns is observed, and changes nothing of what they hold."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.base import column_arrays
from satview.formats.kev.reader import open_kev
from satview.session.loading.loading_tasks import read_file
from satview.timeline.lane_tree import Timeline
from tests.core.reference.replacing import numpy_passes
from tests.helpers.same_trace import same_trace

SAMPLE = "sample_traces/dense-4cpu.kev"


@pytest.fixture
def bound(tmp_path):
    """Return a function that sets the bound; there is none again afterwards."""
    yield lambda limit_bytes: column_arrays.set_limit(limit_bytes, tmp_path)
    column_arrays.set_limit(None)


def columns_of(trace, timeline):
    events = trace.events
    found = [events.time_cycles, events.code, events.cpu, events.thread, events.slot, trace.states.event]
    for lane in range(len(timeline.infos)):
        spans = timeline.lane(lane).spans
        found += [spans.start_cycles, spans.value, spans.event]
    return found


def shown():
    trace = open_kev(SAMPLE)
    timeline = Timeline(trace)
    timeline.build(range(len(timeline.infos)))
    return trace, timeline


@pytest.mark.thorough
def test_what_is_beyond_the_bound_is_the_same(bound):
    gc.collect()  # or windows of tests before give back theirs meanwhile
    before = column_arrays.used_bytes()
    plain = shown()
    limit = column_arrays.used_bytes() + 100_000
    bound(limit)
    trace, timeline = shown()
    assert column_arrays.used_bytes() <= limit
    same_trace(trace, plain[0])
    mine, theirs = columns_of(trace, timeline), columns_of(*plain)
    assert all(np.array_equal(*pair) for pair in zip(mine, theirs, strict=True))
    mapped = [column.nbytes for column in mine if column_arrays.is_mapped(column)]
    assert sum(mapped) > 0.8 * sum(column.nbytes for column in mine)
    assert not any(map(column_arrays.is_mapped, theirs))
    del plain, trace, timeline, mine, theirs
    assert column_arrays.used_bytes() == before


@pytest.mark.thorough
def test_without_the_core(bound):
    plain = open_kev(SAMPLE)
    bound(0)
    with numpy_passes():
        same_trace(open_kev(SAMPLE), plain)


def test_pages_that_were_let_go_come_back(bound):
    bound(0)
    column = column_arrays.empty(50_000, np.int64)
    column[:] = np.arange(50_000)
    column_arrays.let_go(column[5:])
    assert column_arrays.is_mapped(column[7:])
    assert column.tolist() == list(range(50_000))
    column_arrays.let_go(np.zeros(3))  # in memory: nothing to do


def test_many_columns_share_a_file(bound):
    bound(0)
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
    columns = [column_arrays.settled(np.full(1_000, number, np.int64)) for number in range(2_000)]
    assert [int(column[999]) for column in columns] == list(range(2_000))
    if before:
        assert len(list(descriptors.iterdir())) <= before + 2
    assert column_arrays.settled(np.empty(0, np.uint8)).tolist() == []


def test_a_full_disk_is_an_error(bound, monkeypatch):
    bound(0)

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(column_arrays.os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space"):
        column_arrays.empty(1 << 24, np.int64)


@pytest.mark.thorough
def test_the_environment_sets_it():
    program = (
        "from satview.base import column_arrays as c; import numpy as n; "
        "print(c.is_mapped(c.empty(2_000_000, n.uint8)))"
    )
    for text, expected in (("1", "True"), ("3", "False"), ("", "False"), ("0", "False"), ("much", "False")):
        environment = os.environ | {column_arrays.SWITCH: text}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected, text


def test_a_window_sets_it_for_what_it_reads(bound):
    bound(None)

    def read(memory_bytes):
        loaded = read_file(Path(SAMPLE), lambda _preview: None, 0, memory_bytes, lambda: False, lambda _share: None)
        return loaded.trace.events.time_cycles

    assert column_arrays.is_mapped(read(1))
    assert not column_arrays.is_mapped(read(0))


@pytest.mark.parametrize("text", ["0", "-5", "much", "\u00b2", "1e3"])
def test_what_is_no_bound_is_refused(text, capsys):
    assert main([f"--memory-limit={text}", SAMPLE]) == 2
    assert "is not a number of megabytes" in capsys.readouterr().err

"""The cache of decoded traces: what comes out is what went in, or nothing."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import numpy as np
import pytest

from satview.base.column_arrays import read_arrays, write_arrays
from satview.base.errors import SatviewError
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from satview.session.loading import loading_tasks
from satview.session.loading.loaded_trace import LoadedTrace
from satview.session.loading.loading_tasks import TraceCache, cache_folder
from satview.timeline.lane_tree import Timeline
from tests.benchmarks.made_traces import make_file
from tests.capture.made import made_of_lesson
from tests.fuzz import traces
from tests.helpers.extent import fewer
from tests.helpers.same_trace import same_trace

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.kev"))
MANY = 1 << 40
FUZZED = 60


@pytest.fixture(autouse=True)
def small_files_are_kept(monkeypatch):
    monkeypatch.setattr(loading_tasks, "CACHED_BYTES", 1)


@pytest.fixture
def cache(tmp_path):
    return TraceCache(tmp_path / "cache", MANY)


def read(cache, path):
    key = cache.key(path)
    return LoadedTrace.of(open_kev(path), key=key or "")


def stored_and_found(cache, path, lanes=()):
    """Keep a file; return it as it was decoded, and as it comes back."""
    loaded = read(cache, path)
    lanes = [index for index in lanes if index < len(loaded.timeline.infos)]
    loaded.timeline.build(lanes)
    assert cache.store(loaded, lanes)
    return loaded, cache.find(path)


def same_lanes(mine: Timeline, theirs: Timeline, indices) -> None:
    for index in indices:
        first, second = mine.lane(index), theirs.lane(index)
        for name in ("start_cycles", "value", "event", "thread", "end_cycles"):
            one, other = getattr(first.spans, name), getattr(second.spans, name)
            assert np.array_equal(one, other), name
        assert (first.use is None) == (second.use is None)
        for one, other in ((first.shares, second.shares), *([(first.use, second.use)] if first.use else [])):
            assert one.values.tolist() == other.values.tolist()
            assert one.sums.tolist() == other.sums.tolist()
            assert one.totals(mine.trace.window).tolist() == other.totals(mine.trace.window).tolist()
        assert (first.levels.origin, first.levels.shift) == (second.levels.origin, second.levels.shift)
        assert [c.tolist() for c in first.levels.cells] == [c.tolist() for c in second.levels.cells]


def same_reading(mine: LoadedTrace, theirs: LoadedTrace) -> None:
    same_trace(mine.trace, theirs.trace)
    for name in ("path", "format", "header", "system", "release", "byte_order", "slot_count", "cpu_titles", "lines"):
        assert getattr(mine.trace, name) == getattr(theirs.trace, name), name
    assert mine.trace.problems.counts() == theirs.trace.problems.counts()
    assert mine.trace.code_counts.tolist() == theirs.trace.code_counts.tolist()
    assert mine.timeline.infos == theirs.timeline.infos
    assert mine.timeline.lost_marks.tolist() == theirs.timeline.lost_marks.tolist()
    assert mine.events_of_thread.tolist() == theirs.events_of_thread.tolist()
    assert mine.silent == theirs.silent


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_come_back_with_lanes_and_payloads(cache, path):
    fresh, found = stored_and_found(cache, path, range(8))
    assert found.is_cached
    assert not fresh.is_cached
    same_reading(fresh, found)
    count = len(fresh.timeline.infos)
    assert [found.timeline.is_ready(index) for index in range(count)] == [index < 8 for index in range(count)]
    same_lanes(fresh.timeline, found.timeline, range(min(20, count)))
    for row in range(0, len(fresh.trace.events), max(1, len(fresh.trace.events) // 50)):
        assert fresh.trace.payloads.decode(row) == found.trace.payloads.decode(row)
    assert not found.trace.events.time_cycles.flags.writeable


@pytest.mark.parametrize("name", fewer([name for name, _ in registry.names()][::-1], 3))
def test_workloads_come_back(cache, name, tmp_path):
    for release, loss in ((Release.QNX_7, False), (Release.QNX_8, True)):
        fresh, found = stored_and_found(cache, made_of_lesson(name, release, True, loss, tmp_path).trace.path, range(5))
        same_reading(fresh, found)


@pytest.mark.thorough
def test_damaged_files_of_all_releases_come_back(cache, tmp_path):
    releases, problems, path = set(), set(), tmp_path / "t.kev"
    for number in range(FUZZED):
        path.write_bytes(traces.kev(random.Random(number)))
        try:
            fresh, found = stored_and_found(cache, path, range(2))
        except SatviewError:
            continue
        same_reading(fresh, found)
        releases.add(fresh.trace.release)
        problems |= fresh.trace.problems.counts().keys()
    assert len(releases) >= 3
    assert len(problems) >= 10


def test_another_file_of_the_name_is_not_served(cache, tmp_path):
    path = make_file(tmp_path / "a.kev", 3000)
    _, found = stored_and_found(cache, path)
    assert found is not None
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.find(path) is None  # same size and time, other bytes at the end
    data[-5] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.find(path) is not None
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert cache.find(path) is None
    path.write_bytes(data + data[-16:])
    assert cache.find(path) is None


def test_a_copy_under_another_name_is(cache, tmp_path):
    path = make_file(tmp_path / "a.kev", 3000)
    stored_and_found(cache, path)
    found = cache.find(path.rename(tmp_path / "b.kev"))
    assert found.trace.path.name == "b.kev"


@pytest.mark.thorough
def test_a_damaged_one_is_removed_and_never_believed(cache, tmp_path):
    path = make_file(tmp_path / "a.kev", 3000)
    fresh, _ = stored_and_found(cache, path, range(3))
    file = next((tmp_path / "cache").iterdir())
    data = file.read_bytes()
    rng, refused = random.Random(1), 0
    for _ in range(150):
        at = rng.randrange(len(data))
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        found = cache.find(path)
        if found is None:
            assert not file.exists()
            refused += 1
        else:  # a byte between two arrays
            same_reading(fresh, found)
            same_lanes(fresh.timeline, found.timeline, range(3))
    assert refused > 100
    for length in (0, 5, 100, 5000, len(data) // 2, len(data) - 4000):
        file.write_bytes(data[:length])
        assert cache.find(path) is None


@pytest.mark.thorough
def test_made_up_columns_are_refused(cache, tmp_path):
    """A file with right sums in which a row or slot number means nothing."""
    path = make_file(tmp_path / "a.kev", 3000)
    stored_and_found(cache, path, range(3))
    file = next((tmp_path / "cache").iterdir())
    values, arrays = read_arrays(file)
    whole = file.read_bytes()

    def tried(name, change):
        other = arrays[name].copy()
        other = change(other)
        write_arrays(file, values, {**arrays, name: other})
        found = cache.find(path)
        assert found is None, name
        assert not file.exists()

    def put(value):
        def change(array):
            array[len(array) // 2] = value
            return array

        return change

    for name, value in (("events.thread", 9999), ("events.code", 0x8000), ("events.cpu", 64), ("events.slot", 9999),
                        ("events.slot_count", 0), ("events.time_cycles", 0), ("threads.process", 999),
                        ("threads.process", -1), ("states.event", 9999), ("states.start", 9999), ("code_counts", 5),
                        ("lane.1.start", 0), ("lane.1.value", 64), ("lane.1.event", 99999), ("lane.0.thread", 999),
                        ("events_of_thread", 7)):  # fmt: skip
        if name in arrays and len(arrays[name]):
            tried(name, put(value))
    for name in ("events.time_cycles", "events.cpu", "threads.pid", "states.start", "lane.1.cells", "lane.1.event"):
        tried(name, lambda array: array[:-1])
        tried(name, lambda array: array.astype(np.int32).reshape(-1, 1))
        write_arrays(file, values, {key: array for key, array in arrays.items() if key != name})
        assert cache.find(path) is None
    for key, value in (
        ("lanes", [{"index": 10**9}]),
        ("lanes", 5),
        ("trace", {}),
        ("silent", [10**9]),
        ("silent", ["x"]),
    ):
        write_arrays(file, {**values, key: value}, arrays)
        assert cache.find(path) is None, key
    unknown = {"rows": [["no-such-kind", "", 0, 1, 0, 0, ""]]}
    for key, value in (("release", "9.9"), ("cpu_count", 0), ("cpu_count", 65), ("cycles_per_s", 0), ("threads", []),
                       ("problems", unknown), ("processes", None)):  # fmt: skip
        write_arrays(file, {**values, "trace": {**values["trace"], key: value}}, arrays)
        assert cache.find(path) is None, key
    file.write_bytes(whole)
    assert cache.find(path) is not None


def test_what_is_used_least_goes_first(tmp_path):
    folder = tmp_path / "cache"
    paths = [make_file(tmp_path / f"{number}.kev", 3000, seed=number) for number in range(3)]
    large = TraceCache(folder, MANY)
    for at, path in enumerate(paths):
        stored_and_found(large, path)
        newest = max(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (at, at))
    size = max(file.stat().st_size for file in folder.iterdir())
    assert large.find(paths[0]) is not None  # used now
    small = TraceCache(folder, 2 * size + size // 2)
    other = make_file(tmp_path / "other.kev", 3000, seed=9)
    stored_and_found(small, other)
    assert [small.find(path) is not None for path in (*paths, other)] == [True, False, False, True]
    assert not TraceCache(folder, size // 2).store(read(small, paths[1]), ())


def test_only_the_user_can_read_it(cache, tmp_path):
    stored_and_found(cache, make_file(tmp_path / "a.kev", 3000))
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path):
    (tmp_path / "cache").write_text("a file")
    cache = TraceCache(tmp_path / "cache", MANY)
    path = make_file(tmp_path / "a.kev", 3000)
    assert not cache.store(read(cache, path), ())
    assert cache.find(path) is None


def test_a_stopped_write_keeps_nothing(cache, tmp_path):
    path = make_file(tmp_path / "a.kev", 3000)
    assert not cache.store(read(cache, path), (), lambda: True)
    assert cache.find(path) is None


def test_it_can_be_switched_off(tmp_path, monkeypatch):
    path = make_file(tmp_path / "a.kev", 3000)
    assert TraceCache(tmp_path / "cache", 0).key(path) is None
    monkeypatch.setenv(loading_tasks.SWITCH, "off")
    assert cache_folder() is None
    monkeypatch.setenv(loading_tasks.SWITCH, str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv(loading_tasks.SWITCH)
    assert cache_folder().parts[-2:] == ("satview", "traces")


def test_a_file_that_changed_while_it_was_read_is_not_kept(cache, tmp_path):
    path = make_file(tmp_path / "a.kev", 3000)
    loaded = read(cache, path)
    with path.open("ab") as file:
        file.write(bytes(16))
    assert not cache.store(loaded, ())


def test_other_formats_and_small_files_are_not_kept(cache, tmp_path, monkeypatch):
    text = tmp_path / "a.txt"
    text.write_text("no trace")
    assert cache.key(text) is None
    assert cache.key(tmp_path / "missing.kev") is None
    path = make_file(tmp_path / "a.kev", 3000)
    assert cache.key(path) is not None
    monkeypatch.setattr(loading_tasks, "CACHED_BYTES", 1 << 30)
    assert cache.key(path) is None

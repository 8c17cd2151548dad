"""QST files: the simulated kernel's ring as a tracer on the target writes it out, against tracelogger's of one run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import satview
from satview.base.errors import TraceFormatError, UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.flight_recorder import QstForm
from satview.capture.run import Capture, run
from satview.events.spec import Release
from satview.formats import qst as reader
from satview.formats.source import opened
from satview.store.trace import Trace
from tests.helpers.commands import satview as command
from tests.helpers.extent import fewer

FORMS = [  # the first three have every release and every form
    (Release.QNX_7, QstForm.VERSION_3),
    (Release.QNX_7, QstForm.VERSION_4),
    (Release.QNX_8, QstForm.VERSION_4_SLOTS),
    (Release.QNX_7, QstForm.VERSION_4_SLOTS),
    (Release.QNX_8, QstForm.VERSION_4),
]
every_form = pytest.mark.parametrize(("release", "form"), fewer(FORMS, 3))
EPOCH_S = 1_718_000_000
BUFFER = 16384


def _captured(folder: Path, release: Release, form: QstForm | None) -> Path:
    options = LoggerOptions(iterations=0, kernel_buffers=4, is_ring=True, is_probe=True)
    path = folder / f"{release}-{form}{'.qst' if form else '.kev'}"
    capture = Capture("automotive", release=release, duration_ns=150_000_000, options=options, cpus=2, qst=form)
    run(capture, path)
    return path


class _Files(dict[tuple[Release, QstForm | None], Path]):
    """The file of each release and form, captured when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, key: tuple[Release, QstForm | None]) -> Path:
        self[key] = _captured(self._folder, *key)
        return self[key]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> _Files:
    return _Files(tmp_path_factory.mktemp("qst"))


def _same_events(found: Trace, truth: Trace) -> bool:
    columns = ("time_cycles", "code", "cpu", "thread")
    return all(np.array_equal(getattr(found.events, name), getattr(truth.events, name)) for name in columns)


@pytest.mark.thorough
@every_form
def test_every_event_of_the_ring_is_found_and_none_invented(files, release, form):
    found, truth = satview.open_trace(files[release, form]), satview.open_trace(files[release, None])
    assert found.format == "qst"
    assert _same_events(found, truth)
    assert len(found.events) > 2000
    assert found.payloads.words(500).tolist() == truth.payloads.words(500).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "form"), FORMS[:3:2])
def test_it_is_read_in_one_pass_as_at_once(files, release, form):
    """As traceprinter reads it; the file of the same run that is no QST file is read by the same function."""
    at_once = satview.open_trace(files[release, form])
    with opened(files[release, form]) as source:
        assert (source.format, source.release, source.cycles_per_s) == (
            "qst",
            at_once.release,
            at_once.clock.cycles_per_s,
        )
        assert (source.header.pairs, source.system_page, source.system) == (at_once.header.pairs, b"", None)
        times = np.concatenate([batch.time_cycles for batch in source.events])
    assert sorted(times.tolist()) == at_once.events.time_cycles.tolist()


@every_form
def test_the_last_event_is_at_the_wall_clock_of_the_end(files, release, form):
    trace = satview.open_trace(files[release, form])
    last = int(trace.events.time_cycles[-1])
    # The simulated counter is zero at boot, which was at EPOCH_S.
    truth_ns = EPOCH_S * 10**9 + last * 10**9 // trace.clock.cycles_per_s
    clock = trace.clock
    assert clock.boot_time_s * 10**9 + clock.boot_rest_ns + last * 10**9 // clock.cycles_per_s == truth_ns
    assert clock.wall_time(last).timestamp() == pytest.approx(truth_ns / 1e9, abs=1e-5)


@every_form
def test_names_come_from_the_second_trace_and_nothing_else(files, release, form):
    trace = satview.open_trace(files[release, form])
    named = satview.open_trace(files[release, None])
    alone = dict(zip(named.processes.pid.tolist(), named.processes.names, strict=True))
    with_names = dict(zip(trace.processes.pid.tolist(), trace.processes.names, strict=True))
    assert with_names.keys() == alone.keys()
    assert with_names[1] == "proc/boot/procnto-smp-instr"
    if release is Release.QNX_7:  # its ring has lost the dump of START, so only the second trace can know
        assert not alone[1]
    assert all(with_names[pid] == name for pid, name in alone.items() if name)


def _patched(source: Path, target: Path, *changes: tuple[int, bytes]) -> Path:
    data = bytearray(source.read_bytes())
    for at, new in changes:
        data[at : at + len(new)] = new
    target.write_bytes(data)
    return target


def _data_at(index: int) -> int:
    return reader.HEAD_BYTES + reader.SECTION_4.itemsize + index * BUFFER


def test_an_emptied_buffer_shows_as_lost(files, tmp_path):
    whole = files[Release.QNX_7, QstForm.VERSION_4]
    slots = [int.from_bytes(whole.read_bytes()[_data_at(i) + 24 : _data_at(i) + 28], "little") for i in range(4)]
    second = slots.index(sorted(slots)[1])
    at = _data_at(second) + reader.SLOT_COUNT_AT
    found = satview.open_trace(_patched(whole, tmp_path / "empty.qst", (at, bytes(4))))
    assert found.buffers.lost_before.sum() == 1


def test_without_time_events_it_is_counted_backwards_from_the_end(files, tmp_path):
    """TIME events become user events, so only stamps and the wall clock of the end are left."""
    whole = files[Release.QNX_8, QstForm.VERSION_4]
    data = np.frombuffer(bytearray(whole.read_bytes()), np.uint8)
    slots = data[reader.HEAD_BYTES + reader.SECTION_4.itemsize :]
    words = slots[: len(slots) // 4 * 4].view("<u4")
    times = np.flatnonzero(words & 0xC0FFFFFF == 0x401)  # heads of TIME events; 0x1800 is a user event
    words[times] += 0x1800 - 0x401
    path = tmp_path / "stamps.qst"
    path.write_bytes(data.tobytes())
    truth, found = satview.open_trace(whole), satview.open_trace(path)
    ns = [trace.events.time_cycles - trace.events.time_cycles[-1] for trace in (truth, found)]
    assert np.array_equal(*ns)
    wall = [trace.clock.wall_time(int(trace.events.time_cycles[-1])) for trace in (truth, found)]
    assert abs((wall[0] - wall[1]).total_seconds()) < 1e-5


@every_form
def test_any_damage_opens_or_is_refused(files, tmp_path, release, form):
    data, path = files[release, form].read_bytes(), tmp_path / "any.qst"
    chance = np.random.default_rng(1)
    for _ in range(12):
        damaged = bytearray(data[: int(chance.integers(0, len(data)))] if chance.random() < 0.5 else data)
        for at in chance.integers(0, min(400, max(len(damaged), 1)), 4).tolist():
            if at < len(damaged):
                damaged[at] = int(chance.integers(0, 256))
        path.write_bytes(damaged)
        try:
            trace = satview.open_trace(path)
        except TraceFormatError as error:
            assert error.what
            continue
        assert np.all(np.diff(trace.events.time_cycles) >= 0)


@pytest.mark.thorough
def test_commands_read_it_like_any_trace(files, tmp_path):
    path = files[Release.QNX_8, QstForm.VERSION_4]
    listing = command("traceprinter", "-f", path).stdout.decode()
    assert "TRACE_QST_VERSION:: 4" in listing
    stamps = [int(line.split()[0].partition(":")[2], 0) for line in listing.splitlines() if line.startswith("t:0x")]
    assert len(stamps) == len(satview.open_trace(path).events)
    assert command("convert", path, tmp_path / "x.kev").returncode == 0
    assert _same_events(satview.open_trace(tmp_path / "x.kev"), satview.open_trace(path))
    with path.open("rb") as file:
        assert b"not in time order" in command("traceprinter", "-f", "-", stdin=file).stderr


def test_the_command_writes_it(tmp_path):
    path = tmp_path / "ring.qst"
    done = command(
        "tracelogger", "--qst", "3", "--workload", "two-threads", "--duration", "0.05", "-k", "2", "-f", path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert satview.open_trace(path).header.get("QST_VERSION") == "3"
    refused = command("tracelogger", "--qst", "3", "--release", "8.0", "-f", path)
    assert refused.returncode == 2
    assert b"QST files of form 3 are written by tracers of 7.x, not of 8.0" in refused.stderr
    assert b"cannot be used with -S" in command("tracelogger", "--qst", "4", "-S", "1m", "-f", path).stderr


def test_other_targets_have_no_such_tracer(tmp_path):
    with pytest.raises(UsageError, match=r"of 7.x and 8.0, not of 6.6"):
        _captured(tmp_path, Release.QNX_6_6, QstForm.VERSION_4)

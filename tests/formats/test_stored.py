"""What a cache keeps of a decoded file: it comes back as it was, and whatever cannot be of the file is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from satview.base.shared_file import DamagedFileError
from satview.events import wire
from satview.formats.kev.reader import arrays_of, open_kev, read_start, trace_of, values_of
from tests.helpers.kev import TraceBuilder, write_trace
from tests.helpers.same_trace import same_trace

MARK = wire.code(wire.WireClass.USER, 5)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A file with buffers, an event whose slots are apart and one without its end; its trace, values and arrays."""
    builder = TraceBuilder(cpus=2).time_event(0).event(wire.CONTROL_BUFFER, 5, (1, 6)).process_name(6, 7, "app")
    builder.state("RUNNING", 10, 7, 1).state("READY", 11, 7, 2)
    first, second = builder.writer.slots_of(MARK, 0, builder.at(20), (1, 2, 3, 4))
    for slot in (first, builder.writer.slots_of(MARK, 1, builder.at(21), (5, 6))[0], second):
        builder.writer.append(slot)
    builder.event(wire.CONTROL_BUFFER, 40, (3, 4))
    builder.writer.append(builder.writer.slots_of(MARK, 0, builder.at(60), (7, 8, 9, 10))[0])
    path = write_trace(tmp_path_factory.mktemp("stored") / "a.kev", builder.writer.slots(), cpus=2)
    trace = open_kev(path)
    return path, trace, values_of(trace), arrays_of(trace)


def back(parts, values=None, **arrays):
    path, _, own, columns = parts
    return trace_of(path, read_start(path), json.loads(json.dumps({**own, **(values or {})})), {**columns, **arrays})


def test_a_trace_comes_back(parts):
    trace, again = parts[1], back(parts)
    same_trace(trace, again)
    for name in ("path", "format", "header", "system", "release", "byte_order", "clock", "cpu_count", "slot_count",
                 "dump_end_cycles"):  # fmt: skip
        assert getattr(again, name) == getattr(trace, name), name
    assert again.truncated.tolist() == trace.truncated.tolist()
    assert again.code_counts.tolist() == trace.code_counts.tolist()
    assert [str(each) for each in again.problems] == [str(each) for each in trace.problems]
    assert [again.payloads.words(row).tolist() for row in range(len(trace.events))] == [
        trace.payloads.words(row).tolist() for row in range(len(trace.events))
    ]
    assert len(trace.fragments.event) == len(trace.truncated) == 1
    assert parts[2] == {
        "release": "7.x", "is_absolute": True, "cycles_per_s": 1_000_000_000, "cpu_count": 2,
        "dump_end_cycles": trace.dump_end_cycles, "threads": ["", "", ""], "processes": ["", "app"],
        "problems": trace.problems.values(),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "of"),
    [("events.code", "codes"), ("events.cpu", "cpus"), ("events.thread", "threads"), ("events.slot", "slots"),
     ("threads.process", "processes"), ("states.event", "events"), ("fragments.event", "events"),
     ("fragments.slot", "slots"), ("truncated", "events"), ("buffers.slot", "slots")],
)  # fmt: skip
def test_a_number_that_names_what_is_not_there(parts, name, of):
    trace = parts[1]
    below = {"codes": wire.CODE_COUNT, "cpus": 64, "threads": len(trace.threads), "slots": trace.slot_count,
             "processes": len(trace.processes), "events": len(trace.events)}[of]  # fmt: skip

    def changed(number: int) -> np.ndarray:
        column = parts[3][name].copy()
        column[-1] = number
        return column

    back(parts, **{name: changed(0)})
    back(parts, **{name: changed(below - 1)})
    for wrong in (below, -1) if parts[3][name].dtype.kind == "i" else (below,):
        with pytest.raises(DamagedFileError, match=f"it holds no trace: column {name} names what is not there"):
            back(parts, **{name: changed(wrong)})


def test_columns_of_another_type_or_length(parts):
    for name, column in parts[3].items():
        for other in (column.astype(np.float64), column.astype(">i8"), column[None]):
            with pytest.raises(DamagedFileError, match=f"it holds no trace: column {name} is of another type"):
                back(parts, **{name: other})
    for name in ("threads.pid", "threads.tid", "processes.pid", "processes.created_cycles", "buffers.sequence"):
        with pytest.raises(DamagedFileError, match=f"the columns of {name.partition('.')[0]} differ in length"):
            back(parts, **{name: parts[3][name][:-1]})
    for name in ("threads", "processes"):
        with pytest.raises(DamagedFileError, match=f"the columns of {name} differ in length"):
            back(parts, {name: [*parts[2][name], "more"]})
    wide = {name: parts[3][name].astype(kind) for name, kind in (
        ("events.thread", np.uint32), ("events.slot", np.uint64), ("events.slot_count", np.uint32),
        ("fragments.slot", np.uint64))}  # fmt: skip
    back(parts, **wide)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("states.start", lambda start: start[:-1], "the groups of states do not fit"),
        ("states.start", lambda start: np.append(start, start[-1]), "the groups of states do not fit"),
        ("states.start", lambda start: start + 1, "the groups of states do not fit"),
        ("states.start", lambda start: np.append(start[:-1], start[-1] - 1), "the groups of states do not fit"),
        ("states.start", lambda start: np.array([0, 3, 1, start[-1]]), "the groups of states do not fit"),
        ("fragments.start", lambda start: np.append(start, start[-1]), "the groups of fragments do not fit"),
        ("fragments.start", lambda start: np.append(start[:-1], start[-1] + 1), "the groups of fragments do not fit"),
        ("code_counts", lambda counts: counts[:-1], "the counts of events do not fit"),
        ("code_counts", lambda counts: counts + (np.arange(len(counts)) == 5), "the counts of events do not fit"),
        ("events.slot_count", lambda counts: counts * 0, "an event has no slots"),
    ],
)
def test_groups_and_counts_that_do_not_fit(parts, name, change, says):
    with pytest.raises(DamagedFileError, match=says):
        back(parts, **{name: change(parts[3][name])})


def test_an_event_of_no_slots_among_those_apart(parts):
    event, start = parts[3]["fragments.event"], parts[3]["fragments.start"]
    both = {"fragments.event": np.append(event, event), "fragments.start": np.append(start, start[-1])}
    with pytest.raises(DamagedFileError, match="an event has no slots"):
        back(parts, **both)


@pytest.mark.parametrize(
    ("values", "is_good"),
    [({"cpu_count": 1}, True), ({"cpu_count": 64}, True), ({"cpu_count": 0}, False), ({"cpu_count": 65}, False),
     ({"cycles_per_s": 1}, True), ({"cycles_per_s": 0}, False), ({"release": "9.0"}, False), ({"threads": None}, False),
     ({"problems": 7}, False), ({"dump_end_cycles": "x"}, False)],
)  # fmt: skip
def test_values_that_cannot_be(parts, values, is_good):
    if is_good:
        assert back(parts, values).cpu_count == values.get("cpu_count", 2)
    else:
        with pytest.raises(DamagedFileError, match="it holds no trace: "):
            back(parts, values)
    path, _, own, columns = parts
    for missing in ("release", "problems"):
        with pytest.raises(DamagedFileError, match=f"it holds no trace: '{missing}'"):
            trace_of(path, read_start(path), {key: own[key] for key in own if key != missing}, columns)


def test_a_trace_of_nothing_has_nobody_and_no_process_all_the_same(parts):
    """Row 0 of both tables: events of nobody are its."""
    nothing = {name: column[:0] for name, column in parts[3].items()}
    nothing |= {"states.start": np.zeros(2, np.int64), "fragments.start": np.zeros(1, np.int64),
                "code_counts": np.zeros_like(parts[3]["code_counts"])}  # fmt: skip
    nothing |= {name: parts[3][name][:1] for name in nothing if name.startswith(("threads.", "processes."))}
    assert len(back(parts, {"threads": [""], "processes": [""]}, **nothing).events) == 0
    for table in ("threads", "processes"):
        less = {name: column[:0] for name, column in nothing.items() if name.startswith(f"{table}.")}
        less |= {"states.start": nothing["states.start"][:1], "threads.process": nothing["threads.process"][:0]}
        less = less if table == "threads" else {name: column for name, column in less.items() if "processes" in name}
        with pytest.raises(DamagedFileError, match=r"the first thread or process is missing|names what is not there"):
            back(parts, {"threads": [""], "processes": [""], table: []}, **{**nothing, **less})

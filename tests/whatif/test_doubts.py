"""What a prediction does not claim: what may be chance, and what rests on something that the trace leaves open."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from satview.answers.whatif import Compared, Direction, Leverage, comparison, sensitivity_table
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.whatif import prediction
from satview.whatif.locks import other_orders
from satview.whatif.prediction import Prediction, _quantile, basis_of, predict
from satview.whatif.steps import Await, parse_changes
from tests.helpers.changed import RealChange, changed
from tests.helpers.commands import satview
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

NS_PER_MS = 1_000_000


def recorded(folder: Path, workload: str, release: Release, *, wide: bool, length_ms: int) -> Path:
    path = folder / "recorded.kev"
    options = LoggerOptions(iterations=0, is_wide=wide)
    made = changed(workload, RealChange(()))
    run(Capture(made, 1, 0, release, length_ms * NS_PER_MS, options, keeps_truth=False), path)
    return path


def predicted(path: Path, *changes: str, has_doubts: bool = True) -> dict[str, Compared]:
    outcome: Prediction = predict(basis_of(open_trace(path, None)), parse_changes(changes), has_doubts=has_doubts)
    return {entry.activity: entry for entry in outcome.compared}


@pytest.mark.parametrize(
    ("times_ns", "ranges_ns", "says"),
    [
        ((100, 100, 50), ((90, 110), (90, 110), (40, 60)), "shorter"),
        ((100, 100, 150), ((90, 110), (90, 110), (140, 160)), "longer"),
        ((100, 100, 150), ((90, 140), (90, 110), (140, 160)), "cannot tell"),
        ((100, 100, 150), ((90, 110), (95, 140), (140, 160)), "cannot tell"),
        ((100, 100, 50), ((60, 110), (90, 110), (40, 60)), "cannot tell"),
        ((100, 101, 150), ((100, 100), (101, 101), (99, 160)), "cannot tell"),
        ((1000, 1000, 1039), ((1000, 1000), (1000, 1000), (1039, 1039)), "same"),
        ((100, 100, 105), ((100, 100), (100, 100), (105, 105)), "longer"),
        ((100, 103, 109), ((100, 100), (103, 103), (109, 109)), "same"),  # twice 3 %
        ((100, -1, 50), ((90, 110), (40, 60)), "none"),
        ((100, 100, -1), ((90, 110), (90, 110), (0, 1 << 62)), "none"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_change(times_ns, ranges_ns, says) -> None:
    entry = Compared("task", (9, 9, 9), times_ns, (10, 10, 10), ranges_ns, ((10, 10),) * 3)
    assert entry.directions == (Direction(says), Direction.SAME)


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [(100, 0.5, (50, 37, 63)), (100, 0.99, (99, 96, 100)), (10_000, 0.99, (9900, 9874, 9926)), (1, 0.5, (1, 1, 1)),
     (6, 0.5, (3, 1, 6))],
)  # fmt: skip
def test_where_a_quantile_may_lie_by_chance(count, share, expected) -> None:
    """By 2.58 standard deviations of how many of so many are below it: 12.9 of 100 for the median, 25.7 of 10,000."""
    assert _quantile(np.arange(1, count + 1), share) == expected


def test_orders_that_events_allow() -> None:
    """0 takes the CPU from 1, and 1 from 2; of 3 nothing is known."""
    above = [(0, 1), (1, 2)]
    for orders in other_orders(4, above), other_orders(4, above[::-1]):
        low, turned, high = zip(*orders, strict=True)
        assert np.argsort(low).tolist() == [2, 3, 1, 0]
        assert np.argsort(turned).tolist() == [3, 2, 1, 0]
        assert np.argsort(high).tolist() == [2, 1, 3, 0]
    low, turned, high = zip(*other_orders(3, []), strict=True)
    assert np.argsort(low).tolist() == [0, 1, 2] == np.argsort(turned).tolist()[::-1] == np.argsort(high).tolist()[::-1]
    assert max(max(levels) for levels in other_orders(1000, [])) <= 210


def test_who_is_below_somebody_may_be_above_others() -> None:
    """0 takes the CPU from 1; nothing tells 1 from 2 and 3, which are above it in one order and below it in another."""
    low, turned, _ = zip(*other_orders(4, [(0, 1)]), strict=True)
    assert low[1] < low[2] < low[3]
    assert turned[3] < turned[2] < turned[1]
    assert (low[0] > low[1], turned[0] > turned[1]) == (True, True)


def test_a_circle_of_who_is_above_whom_has_orders_too() -> None:
    for order in zip(*other_orders(4, [(0, 1), (1, 2), (2, 0), (0, 3)]), strict=True):
        assert len({*order}) == 4
        assert order[0] > order[3]


@pytest.mark.thorough
def test_fast_events_leave_open_who_is_more_urgent(tmp_path: Path) -> None:
    """On one CPU instead of two the client of the screen gets slower, which wide events show, and fast ones do not."""
    fast = recorded(tmp_path, "nested-servers", Release.QNX_6_6, wide=False, length_ms=1000)
    [claimed, open_] = (predicted(fast, "cpus=1", has_doubts=doubts)["screen 1 (screen)"] for doubts in (False, True))
    assert claimed.directions[1] is Direction.SHORTER  # in the order that is taken first
    assert open_.directions[1] is Direction.CANNOT_TELL
    assert open_.p99s_ns == claimed.p99s_ns
    wide = recorded(tmp_path, "nested-servers", Release.QNX_6_6, wide=True, length_ms=1000)
    assert predicted(wide, "cpus=1")["screen 1 (screen)"].directions[1] is Direction.LONGER


@pytest.mark.thorough
def test_another_process_predicts_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded(tmp_path, "nested-servers", Release.QNX_6_6, wide=False, length_ms=200)
    here = predicted(path, "store:speed=2")
    monkeypatch.setattr(prediction, "_LONG", 0)
    monkeypatch.setattr(prediction, "cpu_count", lambda: 2)
    runs: list[int] = []
    submit = ProcessPoolExecutor.submit
    monkeypatch.setattr(ProcessPoolExecutor, "submit", lambda *args: runs.append(args[-1]) or submit(*args))
    assert predicted(path, "store:speed=2") == here
    assert runs == [0, 1, 2]  # one for each order


@pytest.mark.thorough
def test_locks_of_the_library_leave_open_who_has_to_wait(tmp_path: Path) -> None:
    """Up to 7.x a reader waits at a condition variable: no event has what decides whether it has to after a change."""
    path = recorded(tmp_path, "meeting-points", Release.QNX_7, wide=True, length_ms=500)
    basis = basis_of(open_trace(path, None))
    lengths_ns = [step.recorded_ns for thread in basis.programs.threads for step in thread.steps
                  if isinstance(step, Await) and basis.programs.things[step.thing].kind == "CONDVAR"]  # fmt: skip
    assert lengths_ns
    assert min(lengths_ns) > 0
    readers = [entry for name, entry in predicted(path, "meeting_points:speed=2").items() if "reader" in name]
    assert readers
    assert Direction.LONGER not in {direction for reader in readers for direction in reader.directions}


def test_no_change_has_no_sign_of_its_own(tmp_path: Path) -> None:
    """9,999 after 10,000 is -0.01 %, and 3 ns of a mean are -0.003 us: both are shown as other zeros are."""
    trace, name = TraceBuilder().time_event(0).open(tmp_path), "loop 1"
    entry = Compared(name, (60, 60, 60), (10_000, 10_000, 9_999), (10_000, 10_000, 9_989), ((0, 0),) * 3, ((0, 0),) * 3)
    table = comparison(trace, [entry], has_prediction=True)
    assert (table.text(0, "median_change"), table.text(0, "p99_change")) == ("+0.0", "-0.1")
    helps = sensitivity_table(trace, [Leverage("loop", 1_000_000, -3.0, -2_000, 60)])
    assert [helps.text(0, column) for column in ("gain", "gain_p99", "leverage")] == ["+0.00", "-2.00", "+0.00"]


@pytest.mark.thorough
def test_the_table_marks_what_it_cannot_tell(tmp_path: Path) -> None:
    path = recorded(tmp_path, "nested-servers", Release.QNX_6_6, wide=False, length_ms=1000)
    entries = list(predicted(path, "cpus=1").values())
    table = comparison(open_trace(path, None), entries, has_prediction=True)
    is_open = [entry.directions[1] is Direction.CANNOT_TELL for entry in entries]
    assert {*is_open} == {True, False}
    assert [table.text(row, "p99_change").startswith("? ") for row in range(len(table))] == is_open
    says = f"? {sum(is_open)} of {len(entries)} in Change 99 %: it may be the other way, by chance or by what the trace"
    assert says in satview("whatif", path, "--set", "cpus=1").stdout.decode()
    rows = json.loads(satview("whatif", path, "--set", "cpus=1", "--format", "json").stdout)["activities"]
    assert [row.get("known", {}).get("p99_change") == "guess" for row in rows] == is_open


def test_recorded_figures_are_bounds_where_events_are_lost(tmp_path: Path) -> None:
    entry = Compared(
        "task", (9, 9, 9), (100, 100, 150), (10, 10, 10), ((90, 110), (90, 110), (140, 160)), ((10, 10),) * 3
    )
    table = comparison(open_trace(scene(tmp_path), None), [entry], has_prediction=True)
    texts = [table.text(0, name) for name in ("count", "median", "replayed_median", "predicted_median")]
    assert texts == ["\u2265 9", "\u2248 100 ns", "100 ns", "150 ns"]
    assert table.doubt(0, "count") == "At least: events are missing, so that some responses are not known."

"""How well unchanged replays fit, and predictions against workloads that were really changed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from satview.analysis.activities import Timing
from satview.base.errors import UsageError
from satview.base.safe_text import percent
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.capture.sim.calls import Compute, Sleep
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.store.trace import Trace
from satview.whatif.prediction import (
    ActivityFigures,
    ActivityFit,
    ReplayBasis,
    ReplayFit,
    _judged,
    basis_of,
    figures,
    predict,
    search,
)
from satview.whatif.steps import parse_changes
from tests.benchmarks.whatif import Recorded, judge
from tests.helpers.changed import CHANGES, RealChange, changed
from tests.helpers.extent import WIDTH, fewer, points
from tests.helpers.own_streams import with_own_streams

NS_PER_MS = 1_000_000
# Largest error of the median, and least share of the wake-ups in the same order, fast and wide, of each replay.
FITS = {"client-server": (0.02, 0.9, 0.9), "nested-servers": (0.01, 0.6, 0.8), "starvation": (0.02, 0.9, 0.9)}
RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)


def captured(
    folder: Path,
    workload: str,
    change: RealChange | None = None,
    *,
    wide: bool = True,
    release: Release = Release.QNX_7,
    length_ms: int = 0,
) -> Trace:
    """Return a capture of a workload, opened; with a change, of the workload with that change really made."""
    path = folder / f"{workload}-{'changed' if change else 'recorded'}.kev"
    options = LoggerOptions(iterations=0, is_wide=wide)
    made = changed(workload, change or RealChange(()))
    run(Capture(made, 1, 0, release, length_ms * NS_PER_MS, options, keeps_truth=False), path)
    return open_trace(path, None)


def medians_us(basis: ReplayBasis, texts: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Return the replayed and the predicted median of each activity in microseconds."""
    found = predict(basis, parse_changes(texts))
    return {entry.activity: (entry.medians_ns[1] // 1000, entry.medians_ns[2] // 1000) for entry in found.compared}


@pytest.mark.thorough
@points(workload=tuple(FITS), wide=WIDTH, release=RELEASES)
def test_an_unchanged_replay_fits(tmp_path: Path, workload: str, wide: bool, release: Release) -> None:
    fit = basis_of(captured(tmp_path, workload, wide=wide, release=release)).fit
    most, fast_least, wide_least = FITS[workload]
    assert fit.median_error < most
    assert fit.same_order > (wide_least if wide else fast_least)


@pytest.mark.thorough
@points(release=(Release.QNX_7, Release.QNX_8))
def test_sporadic_scheduling_is_read_from_the_states(tmp_path: Path, release: Release) -> None:
    """Priority 25, after 2 ms at it 5, and 25 again 40 ms after they began: as the workload says it."""
    basis = basis_of(captured(tmp_path, "periodic", release=release, length_ms=1000))
    (thread,) = (thread for thread in basis.programs.threads if thread.name == "aperiodic")
    assert (thread.priority, thread.policy) == (25, 4)
    assert thread.sporadic == (5, 2 * NS_PER_MS, 40 * NS_PER_MS)
    assert basis.fit.same_order > 0.9


@pytest.mark.thorough
def test_a_replayed_car_fits(tmp_path: Path) -> None:
    """Most wake-ups come in the same order: sleeps end on ticks, and the next message is for who waited longest."""
    basis = basis_of(captured(tmp_path, "automotive"))
    assert basis.fit.median_error < 0.02
    assert basis.fit.p99_error < 0.05
    assert basis.fit.same_order > 0.71
    assert not basis.fit.sentences()[0].startswith("Warning")


@pytest.mark.thorough
@points(name=("inversion", "inheritance"))
def test_inheritance_of_a_lock_is_seen_and_can_be_changed(tmp_path: Path, name: str) -> None:
    """High waits 4 ms for low where that inherits its priority, else 30 ms more for middle."""
    true_ms = {"inversion": 34.5, "inheritance": 4.5}
    trace = captured(tmp_path, name, length_ms=500)
    basis = basis_of(trace)
    (mutex,) = (thing for thing in basis.programs.things if thing.kind == "MUTEX")
    assert mutex.inherits == (name == "inheritance")
    other = "no" if mutex.inherits else "yes"
    replayed_us, predicted_us = medians_us(basis, (f"lock {mutex.address:#x}:inherit={other}",))["high 1 (high)"]
    assert replayed_us / 1000 == pytest.approx(true_ms[name], rel=0.01)
    assert predicted_us / 1000 == pytest.approx(true_ms["inheritance" if other == "yes" else "inversion"], rel=0.01)


@pytest.mark.thorough
def test_a_ceiling_does_what_inheritance_does(tmp_path: Path) -> None:
    """Low runs at 30 from its lock on, so that middle cannot keep it from giving the mutex up."""
    basis = basis_of(captured(tmp_path, "inversion", length_ms=500))
    (mutex,) = (thing for thing in basis.programs.things if thing.kind == "MUTEX")
    _, predicted_us = medians_us(basis, (f"lock {mutex.address:#x}:ceiling=30",))["high 1 (high)"]
    assert predicted_us / 1000 == pytest.approx(4.5, rel=0.01)
    true = captured(tmp_path, "inversion", CHANGES["ceiling"]["inversion"], length_ms=500)
    truth = figures(true, true.dump_end_cycles, basis.programs.length_ns)
    assert truth["pulse", "high", 0, 0].median_ns / 1000 == pytest.approx(predicted_us, rel=0.01)


@pytest.mark.thorough
def test_a_thread_that_is_busy_at_the_end_stays_busy(tmp_path: Path) -> None:
    """The sampler never rests: with all of the CPU it starves the uploader as before, after two rounds of that."""
    trace = captured(tmp_path, "partition-starvation", length_ms=700)
    basis = basis_of(trace)
    budgets = [(share.name, share.percent) for share in basis.programs.partitions]
    assert budgets == [("System", 80), ("Telemetry", 20)]
    (key,) = (key for key, fit in basis.fit.activities.items() if fit.recorded.name == "telemetry 3 (uploader)")
    replayed = basis.fit.activities[key].replayed
    assert replayed is not None
    with_budget = predict(basis, parse_changes(["partition Telemetry:budget=100"])).figures
    assert with_budget[key].count == replayed.count == 2


@pytest.mark.thorough
@points(kind=fewer(("priority", "threads", "cpus", "speed"), 2), wide=WIDTH)
def test_predictions_hold_against_servers_that_were_really_changed(tmp_path: Path, kind: str, wide: bool) -> None:
    change = CHANGES[kind]["nested-servers"]
    basis = basis_of(captured(tmp_path, "nested-servers", wide=wide, length_ms=1000))
    prediction = predict(basis, parse_changes(change.said))
    true = captured(tmp_path, "nested-servers", change, wide=wide, length_ms=1000)
    begin = max(true.dump_end_cycles, int(true.events.time_cycles[0]))
    truth = figures(true, begin, basis.programs.length_ns)
    clients = [key for key in truth if key[1] in ("report", "screen")]
    assert len(clients) == 2
    for key in clients:
        assert prediction.figures[key].median_ns == pytest.approx(truth[key].median_ns, rel=0.05)


@pytest.mark.thorough
def test_a_pool_of_threads_shortens_the_queue(tmp_path: Path) -> None:
    """Four clients of one thread wait for each other; with four a round is hardly more than the disk's 2 to 5 ms."""
    basis = basis_of(captured(tmp_path, "client-server", length_ms=1000))
    replayed_us, predicted_us = medians_us(basis, ("slow_server:threads=4",))["client2 1 (client)"]
    assert replayed_us > 15_000
    assert 2_000 < predicted_us < 6_500


@pytest.mark.thorough
def test_a_load_of_higher_priority_delays_by_its_work(tmp_path: Path) -> None:
    """The middle thread is done after 32.5 ms; 1 ms of load in each 10 ms makes that 3 or 4 ms more."""
    basis = basis_of(captured(tmp_path, "inheritance", length_ms=500))
    load = ("load burner:period=10ms,work=1ms,priority=50",)
    replayed_us, predicted_us = medians_us(basis, load)["middle 1 (middle)"]
    assert replayed_us == pytest.approx(32_540, abs=50)
    assert 3_000 <= predicted_us - replayed_us <= 4_200


@pytest.mark.thorough
def test_locks_held_over_a_sleep_fit(tmp_path: Path) -> None:
    """Five threads sleep with one mutex locked, one after the other."""
    fit = basis_of(captured(tmp_path, "convoy")).fit
    assert fit.median_error < 0.02
    assert fit.same_order > 0.9


def test_a_trace_without_activities_warns(tmp_path: Path) -> None:
    """Two threads that yield to each other do nothing that begins by a trigger."""
    fit = basis_of(captured(tmp_path, "polite")).fit
    assert fit.sentences() == ["Warning: no activity can be compared, so that nothing says how well the replay fits."]


@pytest.mark.thorough
def test_a_poor_fit_warns_before_anything(tmp_path: Path) -> None:
    """Processes that are created and die at once: what creates them is not replayed."""
    fit = basis_of(captured(tmp_path, "fork-storm")).fit
    assert fit.median_error > 0.05
    assert fit.sentences()[0].startswith("Warning: the unchanged replay is off by ")
    worst = max(
        (one for one in fit.activities.values() if not one.recorded.is_own),
        key=lambda one: max(one.median_error / 0.05, one.p99_error / 0.1),
    )
    end = f"in the median, by {percent(worst.p99_error)} in 99 %)."
    assert "Above 5 % in the median or 10 % in 99 % do not rely on predictions; furthest off is " in fit.sentences()[0]
    assert fit.sentences()[0].endswith(f"{worst.recorded.name} (off by {percent(worst.median_error)} {end}")


def fit_with(*errors: tuple[float, float]) -> ReplayFit:
    """Return a fit of activities of 1 ms in the median and 10 ms in 99 %, whose replays are longer by shares."""
    activities = {}
    for number, (median, p99) in enumerate(errors):
        recorded = ActivityFigures(
            f"task {number}", 100, 1_000_000, 10_000_000, (0, 0), (0, 0), 1e6, 10_000_000, -1, 0, False
        )
        replayed = dataclasses.replace(
            recorded, median_ns=int(1_000_000 * (1 + median)), p99_ns=int(10_000_000 * (1 + p99))
        )
        activities["pulse", "task", number, 0] = ActivityFit(recorded, replayed)
    return ReplayFit(activities, 1.0)


def test_a_fit_that_is_poor_in_99_percent_alone_warns() -> None:
    """Medians are right; 99 % of two activities of three are off by 12 and 40 %, which is above 10."""
    (says,) = fit_with((0, 0.12), (0, 0), (0, 0.4)).sentences()
    assert says.startswith(
        "Warning: the unchanged replay is off by 0.0 % in the median of an activity, by 12.0 % in 99 %"
    )
    assert says.endswith("furthest off is task 2 (off by 0.0 % in the median, by 40.0 % in 99 %).")


def test_one_poor_activity_among_good_ones_is_named() -> None:
    """6 % of the median are further above 5 % than 11 % of 99 % are above 10."""
    says = fit_with((0, 0.09), (0.06, 0), (0, 0.11), (0.05, 0.1)).sentences()
    assert not says[0].startswith("Warning")
    assert says[1:] == [
        "Do not rely on predictions of task 1 (off by 6.0 % in the median, by 0.0 % in 99 %) and 1 other, out of 4."
    ]


def test_instances_that_are_not_done_are_told_from_those_that_are_too_long() -> None:
    """Of 100 recorded rounds 95 end, so that 4 are not done besides the one at the end; 2 of 99 take more than 20 ms.

    An activity that never comes is not done 100 times.
    """
    known = {key: dataclasses.replace(entry, recorded=dataclasses.replace(entry.recorded, deadline_ns=20_000_000))
             for key, entry in fit_with((0, 0), (0, 0)).activities.items()}  # fmt: skip
    fit, (few, slow) = ReplayFit(known, 1.0), known

    def judged(**predicted: ActivityFigures) -> tuple[str, int, int, str, int]:
        found = _judged(fit, "cpus=1", {key: predicted[name] for key, name in ((few, "few"), (slow, "slow"))
                                        if name in predicted})  # fmt: skip
        return found.outcome, found.misses, found.not_done, found.tightest, found.margin_ns

    ends = dataclasses.replace(known[few].recorded, count=95, longest_ns=12_000_000)
    late = dataclasses.replace(known[slow].recorded, count=99, longest_ns=23_000_000, misses=2)
    in_time = dataclasses.replace(late, longest_ns=9_000_000, misses=0)
    assert judged(few=ends, slow=in_time) == ("missed", 4, 4, "task 0", 8_000_000)
    assert judged(few=ends, slow=late) == ("missed", 6, 4, "task 1", -3_000_000)
    assert judged(few=in_time, slow=in_time) == ("holds", 0, 0, "task 0", 11_000_000)
    assert judged(few=in_time) == ("missed", 100, 100, "task 1", -20_000_000)


@pytest.mark.thorough
def test_a_deadline_of_what_writes_the_trace_is_nothing_to_search_with(tmp_path: Path) -> None:
    basis = basis_of(captured(tmp_path, "client-server", length_ms=300), {"tracelogger 1": Timing(deadline="1 ms")})
    assert [fit.recorded.is_own for fit in basis.fit.activities.values() if fit.recorded.deadline_ns > 0] == [True]
    with pytest.raises(UsageError, match="no activity has a deadline"):
        search(basis, "cpus")


@pytest.mark.thorough
def test_deadlines_and_activities_of_a_file_of_timing(tmp_path: Path) -> None:
    """On one CPU the 12.3 ms of a report come beside 9 ms of the screen's own: some take more than 20 ms then."""
    trace = captured(tmp_path, "nested-servers", length_ms=500)
    timing = {
        "question": Timing(
            start='event == SND_MESSAGE and name ~ "*screen"',
            end='event == REPLY_MESSAGE and name ~ "*front"',
            deadline="12 ms",
        ),
        "report": Timing(deadline="20 ms"),
    }
    basis = basis_of(trace, timing)
    assert basis.fit.activities["said", "question", 0, 0].recorded.deadline_ns == 12 * NS_PER_MS
    assert basis.fit.activities["said", "question", 0, 0].median_error < 0.02
    predicted = predict(basis, parse_changes(["cpus=1"])).figures
    (report,) = (figure for key, figure in predicted.items() if key[1] == "report")
    assert report.deadline_ns == 20 * NS_PER_MS
    assert 0 < report.misses < report.count
    assert max(fit.recorded.misses for key, fit in basis.fit.activities.items() if key[1] == "report") == 0


def drawn(folder: Path, cpus: int, *, own: bool) -> Counter[int]:
    """Return how long clients compute and the server's disk takes, in ns, on so many CPUs."""
    lengths: Counter[int] = Counter()

    def note(item: Any) -> Any:
        if isinstance(item, (Compute, Sleep)):
            lengths[item.ns] += 1
        return item

    workload = changed("client-server", RealChange((), edit=note, cpus=cpus))
    if own:
        workload = with_own_streams(workload, 1)
    options = LoggerOptions(iterations=0, is_wide=False)
    run(Capture(workload, 1, 0, Release.QNX_7, 300 * NS_PER_MS, options, keeps_truth=False), folder / "drawn.kev")
    return lengths


@pytest.mark.thorough
@pytest.mark.parametrize(("own", "least", "most"), [(True, 0.95, 1), (False, 0, 0.8)])
def test_changed_workloads_do_the_same_work_by_own_streams(
    tmp_path: Path, own: bool, least: float, most: float
) -> None:
    """On a second CPU clients ask in another order: with one stream for all, each draws what another one drew."""
    one, other = drawn(tmp_path, 1, own=own), drawn(tmp_path, 2, own=own)
    assert least <= (one & other).total() / min(one.total(), other.total()) <= most


@pytest.mark.thorough
def test_a_handler_moves_to_a_thread_as_in_a_really_changed_driver(tmp_path: Path) -> None:
    """The driver's handler takes 12 us, and every eighth call sends a pulse."""
    change = CHANGES["handler"]["interrupt-flood"]
    basis = basis_of(captured(tmp_path, "interrupt-flood", length_ms=300))
    true = captured(tmp_path, "interrupt-flood", change, length_ms=300)
    truth = figures(true, max(true.dump_end_cycles, int(true.events.time_cycles[0])), basis.programs.length_ns)
    predicted = predict(basis, parse_changes(change.said)).figures
    (key,) = (key for key, figure in truth.items() if key in basis.fit.activities and not figure.is_own)
    assert key[:2] == ("pulse", "devc-wild")
    assert predicted[key].median_ns == pytest.approx(truth[key].median_ns, rel=0.05)
    recorded = basis.fit.activities[key].recorded
    assert abs(truth[key].median_ns / recorded.median_ns - 1) > 0.1


@pytest.mark.thorough
def test_a_shell_waits_for_what_it_starts() -> None:
    """2 ms of load in each 10 ms delay the programs that a shell starts and waits for: its rounds become longer."""
    judged = judge(Recorded("small-system", Release.QNX_8, True, 1, ("load",)))
    (shell,) = (entry for entry in judged if entry.activity == "sh 1")
    assert shell.changes[0] > 0.2
    assert shell.errors[0] < 0.1

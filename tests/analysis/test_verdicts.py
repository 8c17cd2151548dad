"""Verdicts of workloads whose faults are known: the lessons, faults of each other kind, and sound programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.analysis.doctor import may_be_more
from satview.analysis.verdicts.evidence import Severity, Verdict
from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import rules
from satview.answers.verdicts import undecided_table
from satview.base.time import format_duration, parse_moment
from satview.capture.kernel import Kernel, mode
from satview.capture.sim.target import target
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.linkage.links import Certainty
from satview.linkage.transactions import transactions
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from tests.analysis import faults
from tests.analysis.pairs import PAIRS, is_about, is_then
from tests.analysis.random_programs import judged
from tests.capture.made import FAST, WIDE, Traced, as_trace, damaged, run, traced
from tests.helpers.extent import WIDTH, fewer, points, usually

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
LESSONS = {
    "client-server": "server-saturation", "deadlock": "deadlock", "inversion": "priority-inversion",
    "lost-wakeup": "lost-wakeup", "interrupt-flood": "interrupt-flood", "periodic": "missed-period",
    "message-deadlock": "deadlock", "nested-inversion": "priority-inversion", "convoy": "lock-contention",
    "starvation": "starvation", "partition-starvation": "starvation",
}  # fmt: skip
FAULTS = {
    faults.ping_pong: ("ping-pong", 40),
    faults.restarted_calls: ("restarted-calls", 120),
    faults.leak: ("leak", 200),
    faults.servers_with_idle_threads: ("deadlock", 100),
    faults.dead_owner: ("waits-for-ever", 200),
    faults.nobody_posts: ("waits-for-ever", 200),
    faults.forgotten_reply: ("waits-for-ever", 200),
}
SOUND = {
    faults.many_channels_at_start: 150,
    faults.deadlock_with_a_way_out: 100,
    faults.empty_queue: 200,
    faults.message_handed_on: 200,
    faults.kept_reply: 200,
}
CLEAN = (
    "two-threads", "polite", "inheritance", "fork-storm", "meeting-points", "signals", "small-system", "nested-servers",
)  # fmt: skip
EVERY = [*(name for name, _ in registry.names()), *(fault.__name__ for fault in (*FAULTS, *SOUND))]
SEEDS = usually(1, complete=10, thorough=2)


def of_lesson(name: str, release: Release, wide: bool, folder: Path, seed: int = 1) -> Traced:
    lesson = registry.find(name)
    ms = 300 if name == "automotive" else lesson.duration_ns / 1e6
    return traced(lesson.setup, ms, folder, release, lesson.cpus, seed, WIDE if wide else FAST)


def can_show(name: str, release: Release, wide: bool) -> bool:
    """Return whether a trace can show the fault of a lesson: some events only have owners of mutexes and priorities."""
    if LESSONS[name] == "priority-inversion":
        return wide
    return wide or name != "deadlock" or release in (Release.QNX_6, Release.QNX_6_6)


def named(trace: Trace, verdict: Verdict) -> list[str]:
    return [trace.threads.names[thread] or str(trace.threads.pid[thread]) for thread in verdict.threads]


def lead(verdicts: tuple[Verdict, ...]) -> list[str]:
    """Return the kinds of what is wrong, those of mere notice left out."""
    return [verdict.kind for verdict in verdicts if verdict.severity is not Severity.INFO]


@points(name=list(LESSONS), wide=WIDTH, release=RELEASES)
def test_the_fault_of_a_lesson_is_found_and_no_other(name: str, wide: bool, release: Release, tmp_path: Path) -> None:
    kind = LESSONS[name]
    found = find_verdicts(of_lesson(name, release, wide, tmp_path).trace)
    # "a priority inversion is possible", "whose holder no event shows"
    possible = {"inversion": {"lock-contention"}, "deadlock": {"deadlock"}}.get(name, set())
    assert set(lead(found)) == ({kind} if can_show(name, release, wide) else possible)


@points(fault=list(FAULTS), wide=WIDTH, release=RELEASES)
def test_faults_that_no_lesson_shows(
    fault: Callable[[Kernel], None], wide: bool, release: Release, tmp_path: Path
) -> None:
    kind, ms = FAULTS[fault]
    trace = traced(fault, ms, tmp_path, release, modes=WIDE if wide else FAST).trace
    found = find_verdicts(trace)
    if fault is faults.dead_owner and not wide and release not in (Release.QNX_6, Release.QNX_6_6):
        assert not found, "no event has the owner"
        assert "waits-for-ever" in undecided_table(trace)["kind"]
        return
    assert {verdict.kind for verdict in found} == {kind}


def test_who_waits_for_ever_is_named_with_the_reason(tmp_path: Path) -> None:
    def only(fault: Callable[[Kernel], None]) -> Verdict:
        [verdict] = find_verdicts(traced(fault, 200, tmp_path, modes=WIDE).trace)
        return verdict

    dead = only(faults.dead_owner)
    assert re.search(r"held by .*\(owner\), which has ended, from ", dead.says)
    assert (dead.severity, dead.certainty) == (Severity.ERROR, Certainty.EXACT)
    posts = only(faults.nobody_posts)
    assert re.search(r"posted in this trace only by .*\(poster\), which has ended, from ", posts.says)
    assert (posts.severity, posts.certainty) == (Severity.WARNING, Certainty.INFERRED)
    reply = only(faults.forgotten_reply)
    assert re.search(r"waits for the reply, which .* received and no thread holds, from ", reply.says)
    assert (reply.severity, reply.certainty) == (Severity.INFO, Certainty.GUESS)


def test_a_circle_that_others_could_open_is_only_possible(tmp_path: Path) -> None:
    """In each server of two that send to each other a thread sleeps: whether it receives too, no event shows."""
    [verdict] = find_verdicts(traced(faults.servers_with_idle_threads, 100, tmp_path, modes=FAST).trace)
    assert len(verdict.threads) == 2
    assert verdict.severity in (Severity.ERROR, Severity.WARNING)
    if verdict.certainty is Certainty.GUESS:
        assert "unless " in verdict.says


@points(sound=list(SOUND), release=RELEASES)
def test_what_only_looks_like_a_fault(sound: Callable[[Kernel], None], release: Release, tmp_path: Path) -> None:
    found = find_verdicts(traced(sound, SOUND[sound], tmp_path, release, modes=WIDE).trace)
    assert {verdict.kind for verdict in found} == ({"waits-for-ever"} if sound is faults.empty_queue else set())
    assert not lead(found)


def test_a_saturated_server_is_reported_of_with_its_figures(tmp_path: Path) -> None:
    """Each message takes the server 4 ms of sleep; in the worst 100 ms fourteen queue, each with a time of its own."""
    made = of_lesson("client-server", Release.QNX_7, True, tmp_path)
    [verdict] = find_verdicts(made.trace)
    sent, clock = transactions(made.trace), made.trace.clock
    stated = re.findall(r"(?:Since|from) ([\d. ]+ s)\b", verdict.says)
    since, begin = (parse_moment(text, made.trace.time_axis) for text in stated)
    queues = (sent.server == verdict.threads[-1]) & (sent.service_cycles >= 0)
    queues &= sent.queued_cycles >= np.maximum(sent.service_cycles, clock.cycles_of(200_000))
    first = made.trace.events.time_cycles[sent.send_row[np.flatnonzero(queues)[0]]]
    assert 0 <= since - int(first) < clock.cycles_of(1_000), "that is when the first that queued so long was sent"
    sends, receipts = (made.trace.events.time_cycles[rows] for rows in (sent.send_row, sent.receive_row))
    inside = queues & (sends < begin + clock.cycles_of(100_000_000)) & (receipts > begin)
    assert f"{np.count_nonzero(inside)} messages of 3 clients" in verdict.says
    queued, served = (format_duration(clock.duration_ns(int(np.median(cycles[inside]))))
                      for cycles in (sent.queued_cycles, sent.service_cycles))  # fmt: skip
    assert f"of which one queues {queued} and is served in {served} (medians)" in verdict.says
    assert "is in NANOSLEEP 100 %" in verdict.says, "the server sleeps while it serves"
    assert set(verdict.roles) == {"queues", "received"}
    states = {made.trace.catalogue.name(int(made.trace.events.code[row]))
              for row, role in zip(verdict.evidence, verdict.roles, strict=True) if role == "queues"}  # fmt: skip
    assert states == {"THSEND"}, "a click there shows the client in SEND"
    window = made.trace.window
    assert all(
        window.start <= position.start_cycles < position.end_cycles <= window.end for position in verdict.occurrences
    )


def test_every_kind_has_a_rule_and_every_rule_a_test() -> None:
    pairs = {kind for pair in PAIRS for kind in pair.kinds}
    assert {*LESSONS.values(), *(kind for kind, _ in FAULTS.values()), *pairs} <= set(rules())
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    assert not [kind for kind in rules() if f'"{kind}"' not in tests]


PROGRAMS = {f"{pair.setup.__name__}{suffix}": (pair, not suffix) for pair in PAIRS for suffix in ("", "_twin")}


@points(program=list(PROGRAMS), wide=WIDTH, release=RELEASES)
def test_faults_are_told_from_their_healthy_twins(program: str, wide: bool, release: Release, tmp_path: Path) -> None:
    pair, is_faulty = PROGRAMS[program]

    def setup(kernel: Kernel) -> None:
        pair.setup(kernel, is_faulty)

    made = traced(setup, pair.ms, tmp_path, release, pair.cpus, modes=WIDE if wide else FAST)
    found = find_verdicts(made.trace)
    if is_faulty:
        own = [verdict for verdict in found if verdict.kind in pair.kinds]
        assert any(is_about(pair, made, verdict) and is_then(pair, made, verdict) for verdict in own)
        assert all(verdict.proof for verdict in own if verdict.certainty is not Certainty.EXACT)
    else:
        assert not lead(found)


@points(program=list(PROGRAMS), wide=WIDTH, release=RELEASES)
def test_where_events_are_missing_nothing_is_made_up(
    program: str, wide: bool, release: Release, tmp_path: Path
) -> None:
    """A slow logger loses a quarter of the time: a fault is found, or it is said that it cannot be told."""
    pair, is_faulty = PROGRAMS[program]

    def setup(kernel: Kernel) -> None:
        pair.setup(kernel, is_faulty)

    made = damaged(setup, pair.ms, tmp_path, release, pair.cpus, ring=False, wide=wide, slots=101)
    found = [verdict for verdict in find_verdicts(made.trace) if verdict.kind != "data-loss"]
    undecided = {*undecided_table(made.trace)["kind"].tolist()}
    if not is_faulty:
        assert not lead(found)
    elif not {verdict.kind for verdict in found} & {*pair.kinds}:
        assert {*pair.kinds} & undecided or may_be_more(made.trace)


@pytest.mark.parametrize("seed", range(usually(5, thorough=60, complete=2_000)))
def test_who_never_goes_on_in_a_random_program_is_found_and_nobody_else(seed: int, tmp_path: Path) -> None:
    found = judged(seed, RELEASES[seed % 4], (1, 2, 4, 8)[seed // 8 % 4], seed % 8 < 4, tmp_path)
    assert not found.is_missed, found.stuck
    assert not found.false


@points(name=CLEAN, wide=WIDTH, release=RELEASES)
def test_no_false_alarms_in_sound_workloads(name: str, wide: bool, release: Release, tmp_path: Path) -> None:
    alarms = []
    for seed in range(SEEDS):
        found = find_verdicts(of_lesson(name, release, wide, tmp_path, seed).trace)
        alarms += [(seed, verdict.says) for verdict in found if verdict.severity is not Severity.INFO]
    assert not alarms


@pytest.mark.thorough
@pytest.mark.parametrize("release", fewer(RELEASES[::-1], 2), ids=str)
def test_what_is_said_of_the_busy_workloads_is_true(release: Release, tmp_path: Path) -> None:
    """Producers and consumers keep both CPUs busy: one consumer starves; the car's only fault is its config lock."""
    for seed in range(usually(1, thorough=4, complete=4)):
        made = of_lesson("producer-consumer", release, True, tmp_path, seed)
        for verdict in find_verdicts(made.trace):
            assert verdict.kind in ("starvation", "long-ready")
            row = verdict.threads[0]
            thread = int(made.trace.threads.pid[row]), int(made.trace.threads.tid[row])
            ran = sum(
                max(0, min(span.end, verdict.end_cycles) - max(span.start, verdict.start_cycles))
                for span in made.truth.runs
                if span.thread == thread
            )
            assert ran <= 0.06 * (verdict.end_cycles - verdict.start_cycles), verdict.says
    made = of_lesson("automotive", release, True, tmp_path)
    for verdict in find_verdicts(made.trace):
        assert verdict.kind == "priority-inversion"
        assert_is_inverted(made, verdict, "mutex config")


def assert_is_inverted(made: Traced, verdict: Verdict, on: str) -> None:
    ids = [(int(made.trace.threads.pid[row]), int(made.trace.threads.tid[row])) for row in verdict.threads]
    [wait] = [wait for wait in made.truth.waits if wait.thread == ids[0] and wait.start == verdict.start_cycles]
    assert wait.on == on
    assert wait.end == verdict.end_cycles
    assert wait.owners == (ids[1],)
    last = {
        thread: [
            change.priority for change in made.truth.states if change.thread == thread and change.time <= wait.end
        ][-1]
        for thread in ids
    }
    assert last[ids[1]] < last[ids[2]] < last[ids[0]]


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_an_inversion_names_its_three_threads(release: Release, tmp_path: Path) -> None:
    made = of_lesson("inversion", release, True, tmp_path)
    [verdict] = find_verdicts(made.trace)
    assert named(made.trace, verdict) == ["high", "low", "middle"]
    assert_is_inverted(made, verdict, "mutex shared")
    ms = made.trace.clock.duration_ns(verdict.end_cycles - verdict.start_cycles) / 1e6
    assert 33 < ms < 35, "6 ms of low, less 2, and 30 ms of middle"
    assert "(priority 30)" in verdict.says
    assert verdict.certainty is Certainty.INFERRED, "the mutex is in shared memory"


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_an_inversion_through_two_servers(release: Release, tmp_path: Path) -> None:
    made = of_lesson("nested-inversion", release, True, tmp_path)
    [verdict] = find_verdicts(made.trace)
    store, _, high, middle = sorted(
        {
            made.trace.processes.pid[process]
            for process in made.trace.threads.process
            if made.trace.processes.pid[process] > 1
        },
        key=lambda pid: pid,
    )[:4]
    assert {int(made.trace.threads.pid[row]) for row in verdict.threads} == {store, high, middle}
    assert "the reply from" in verdict.says
    assert "1 step on" in verdict.says


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_deadlock_names_threads_mutexes_and_the_calls(release: Release, tmp_path: Path) -> None:
    made = of_lesson("deadlock", release, True, tmp_path)
    [verdict] = find_verdicts(made.trace)
    assert sorted(named(made.trace, verdict)) == ["backwards", "forwards"]
    truth = [wait for wait in made.truth.waits if wait.state == "MUTEX" and wait.end < 0]
    assert verdict.start_cycles == max(wait.start for wait in truth)
    assert verdict.end_cycles == made.trace.window.end
    assert {f"0x{wait.address:x}" for wait in truth} == {text.split()[1] for text in verdict.objects}
    names = {made.trace.catalogue.name(int(made.trace.events.code[row])) for row in verdict.evidence}
    assert names == {"SYNC_MUTEX_LOCK", "THMUTEX"}
    assert verdict.certainty is Certainty.EXACT


def test_who_waits_behind_a_deadlock_is_named_after_it(tmp_path: Path) -> None:
    made = of_lesson("message-deadlock", Release.QNX_7, True, tmp_path)
    [verdict] = find_verdicts(made.trace)
    waiting = {wait.thread for wait in made.truth.waits if wait.end < 0 and wait.state == "SEND"}
    threads = made.trace.threads
    ids = [(int(threads.pid[row]), int(threads.tid[row])) for row in verdict.threads]
    assert (set(ids), len(ids)) == (waiting, 3)
    last = made.trace.thread_name(verdict.threads[-1])
    assert f". {last} can go on only behind them." in verdict.says
    assert verdict.says.count("to receive its message") == 2
    assert verdict.roles.count("waits behind") == 1


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_who_starves_and_who_never_waits(release: Release, tmp_path: Path) -> None:
    made = of_lesson("starvation", release, False, tmp_path)
    starves, polls = find_verdicts(made.trace)
    assert (starves.kind, named(made.trace, starves)) == ("starvation", ["victim", "poller", "ticker"])
    assert (polls.kind, named(made.trace, polls)) == ("busy-loop", ["poller"])


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_long_ready(release: Release, tmp_path: Path) -> None:
    found = find_verdicts(of_lesson("partitions", release, False, tmp_path).trace)
    assert {verdict.kind for verdict in found} == {"long-ready"}
    assert all("; meanwhile ran " in verdict.says for verdict in found)


def test_a_capture_without_all_events_of_threads_shows_nothing_of_states(tmp_path: Path) -> None:
    """Of the vendor's captures that log RUNNING alone, threads would seem to run for ever."""
    for name in ("vendor-eh_sample.kev", "vendor-ker_calls-14.kev", "vendor-five_events.kev"):
        assert not satview.check(satview.open_trace(Path("sample_traces") / name))
    lesson = registry.find("deadlock")
    assert find_verdicts(traced(lesson.setup, 100, tmp_path, modes=WIDE).trace)
    without = traced(lesson.setup, 100, tmp_path, modes=(("ADDCLASS", target_class("KERCALL")),)).trace
    assert not find_verdicts(without)


def target_class(name: str) -> int:
    from satview.capture import nto

    return int(getattr(nto, f"_NTO_TRACE_{name}"))


def test_kinds_and_switches(tmp_path: Path) -> None:
    trace = of_lesson("deadlock", Release.QNX_7, True, tmp_path).trace
    assert [verdict.kind for verdict in find_verdicts(trace, kinds=["deadlock"])] == ["deadlock"]
    assert not find_verdicts(trace, kinds=["leak"])
    (tmp_path / "off.toml").write_text("[deadlock]\nenabled = false\n")
    assert not find_verdicts(trace, satview.read_thresholds(tmp_path / "off.toml"))
    (tmp_path / "longer.toml").write_text("[deadlock]\nleast_ms = 98\n")
    assert not find_verdicts(trace, satview.read_thresholds(tmp_path / "longer.toml"))
    (tmp_path / "shorter.toml").write_text("[deadlock]\nleast_ms = 96\n")
    assert find_verdicts(trace, satview.read_thresholds(tmp_path / "shorter.toml"))


class Recorder:
    """Takes every buffer as it is handed over, one list of words each."""

    def __init__(self, made: Kernel) -> None:
        self.made = made
        self.buffers: list[list[int]] = []

    def __call__(self, _buffer: object) -> None:
        rings = self.made.emitter.buffers.rings  # type: ignore[union-attr]
        for ring in rings:
            for buffer in ring.buffers:
                if buffer.is_full:
                    self.buffers.append(list(buffer.words))
                    buffer.empty()


def recorded(setup: Callable[[Kernel], None], ms: float, release: Release, cpus: int, wide: bool) -> Recorder:
    """Return a capture of a workload in small buffers, none of which is lost."""
    small = replace(target(release, cpus, skew_ns=0), slots_per_buffer=140, mark_linear=100, mark_ring=100)
    made = Kernel(small, seed=5)
    recorder = Recorder(made)
    made.trace_event(mode("ALLOCBUFFER"), 8, [])
    made.control.hook = recorder
    for name, *args in (*(WIDE if wide else FAST), ("SETLINEARMODE",), ("START",)):
        made.trace_event(mode(name), *args)
    setup(made)
    run(made, ms)
    made.trace_event(mode("FLUSHBUFFER"))
    made.trace_event(mode("STOP"))
    made.machine.close()
    recorder(None)
    return recorder


def part_of(recorder: Recorder, buffers: list[int], folder: Path) -> Trace:
    words = [word for number in buffers for word in recorder.buffers[number]]
    return as_trace(recorder.made, np.array(words, np.uint32).reshape(-1, 4), folder)


def keys_of(trace: Trace) -> set[tuple[str, tuple[int, int] | str]]:
    """Return kind and thread of every verdict, each of its threads; of those without threads what they are about."""
    found = set()
    for verdict in find_verdicts(trace):
        ids = [(int(trace.threads.pid[row]), int(trace.threads.tid[row])) for row in verdict.threads]
        if verdict.kind in ("starvation", "long-ready"):
            ids = ids[:1]  # others ran instead
        found |= {(verdict.kind, key) for key in ids or [" ".join(verdict.objects)]}
    return found


@pytest.mark.thorough
@points(name=EVERY, wide=WIDTH, release=RELEASES)
def test_losses_make_no_verdicts(name: str, wide: bool, release: Release, tmp_path: Path) -> None:
    """What a capture with lost buffers, or the last buffers of a ring, shows is reported the whole one too."""
    if hasattr(faults, name):
        fault = getattr(faults, name)
        setup, ms, cpus = fault, FAULTS[fault][1] if fault in FAULTS else SOUND[fault], 1
    else:
        lesson = registry.find(name)
        setup, cpus = lesson.setup, lesson.cpus
        ms = 60 if name == "automotive" else min(lesson.duration_ns / 1e6, 300)
    recorder = recorded(setup, ms, release, cpus, wide)
    count = len(recorder.buffers)
    whole = keys_of(part_of(recorder, list(range(count)), tmp_path))
    assert "data-loss" not in {kind for kind, _ in whole}
    random = np.random.default_rng(count)
    buffers_left = [np.flatnonzero(random.random(count) > share).tolist() for share in (0.05, 0.3, 0.6)]
    buffers_left += [list(range(count // 3, count)), list(range(count * 3 // 4, count)), list(range(count // 2))]
    may_differ = {"starvation": "long-ready", "long-ready": "starvation"}
    every = usually(2, complete=1)
    for buffers in buffers_left[count % every :: every]:
        if not buffers:
            continue
        reported = {(kind, key) for kind, key in keys_of(part_of(recorder, buffers, tmp_path)) if kind != "data-loss"}
        # A part of a long wait for a CPU may be a shorter one.
        more = {(kind, key) for kind, key in reported - whole if (may_differ.get(kind, kind), key) not in whole}
        assert not more


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_some_is_still_found_between_losses(release: Release, tmp_path: Path) -> None:
    for name in ("client-server", "interrupt-flood"):
        lesson = registry.find(name)
        recorder = recorded(lesson.setup, lesson.duration_ns / 1e6, release, lesson.cpus, True)
        buffers = [number for number in range(len(recorder.buffers)) if number != 1]
        kinds = {verdict.kind for verdict in find_verdicts(part_of(recorder, buffers, tmp_path))}
        assert LESSONS[name] in kinds, name


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_lost_data_is_a_verdict_and_the_late_begin_of_a_ring_is_none(release: Release, tmp_path: Path) -> None:
    lesson = registry.find("small-system")
    recorder = recorded(lesson.setup, 100, release, 2, True)
    count = len(recorder.buffers)
    lossy = part_of(recorder, [*range(4), *range(7, count)], tmp_path)
    [verdict] = find_verdicts(lossy)
    assert verdict.start_cycles in losses(lossy)[:, 0]
    assert verdict.kind == "data-loss"
    assert " buffers)" in verdict.says
    assert not find_verdicts(part_of(recorder, list(range(count // 2, count)), tmp_path))

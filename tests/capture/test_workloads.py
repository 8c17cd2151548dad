"""Each workload teaches what its page says; faulty ones are reported by thread and line, and leave a readable trace."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from satview.analysis.statistics import Statistics
from satview.base.errors import UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, CaptureResult, run
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from tests.capture.made import events, names, traced

DOCS = Path(__file__).parents[2] / "docs" / "workloads"


def capture(name: str, folder: Path, **options: object) -> CaptureResult:
    return run(Capture(name, **options), folder / "w.kev")  # type: ignore[arg-type]


def ms(result: CaptureResult, cycles: int) -> float:
    return cycles * 1000 / 2_592_000_000


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7, Release.QNX_8], ids=str)
def test_two_threads_follow_the_guide_s_table(release: Release, tmp_path: Path) -> None:
    made = traced(registry.find("two-threads").setup, 40, tmp_path, release)
    a, b = (2, 2), (2, 3)
    found = [(w[:2], name[2:]) for _, name, w in events(made.trace) if name[:2] == "TH" and w[:2] in (a, b)]
    kinds = [
        ("A" if thread == a else "B", state)
        for thread, state in found
        if state in ("CREATE", "INTR", "RUNNING", "READY", "DEAD")
    ]
    assert kinds == [
        ("A", "CREATE"),
        ("A", "READY"),
        ("B", "CREATE"),
        ("B", "READY"),
        ("A", "RUNNING"),
        ("A", "INTR"),  # t1, t2: created, waits for I/O
        ("B", "RUNNING"),  # t3, t4: B works
        ("A", "READY"),
        ("B", "READY"),
        ("A", "RUNNING"),  # t4.5 to t6: I/O completed, B is preempted
        ("A", "DEAD"),
        ("B", "RUNNING"),
        ("B", "DEAD"),
    ]  # t7 to t9
    all_names = names(made.trace)
    assert all_names.count("CLOCK_TIME") == 12, "t4: the kernel calls of B, entry and exit"


def test_polite_threads_take_turns(tmp_path: Path) -> None:
    result = capture("polite", tmp_path)
    turns = [r.thread[1] for r in result.truth.runs if r.thread[0] == 2 and r.thread[1] > 1]
    assert len(turns) >= 40
    assert all(x != y for x, y in pairwise(turns[:-1]))


def test_clients_wait_longer_to_be_received_than_to_be_answered(tmp_path: Path) -> None:
    sent = capture("client-server", tmp_path, duration_ns=200_000_000).truth.messages
    messages = [m for m in sent if m.replied > 0 and m.server_pid == 2]
    assert len(messages) > 20
    queued = sum(m.received - m.sent for m in messages)
    served = sum(m.replied - m.received for m in messages)
    assert queued > 1.5 * served


def test_inheritance_bounds_what_inversion_does_not(tmp_path: Path) -> None:
    def worst(name: str) -> float:
        result = capture(name, tmp_path)
        return max(ms(result, w.end - w.start) for w in result.truth.waits if w.state == "MUTEX")

    assert worst("inversion") == pytest.approx(34, abs=1)  # 4 ms of the low thread and 30 ms of the middle one
    assert worst("inheritance") == pytest.approx(4, abs=0.5)  # the rest of the critical section


def test_deadlock_is_found_and_named(tmp_path: Path) -> None:
    result = capture("deadlock", tmp_path)
    assert len(result.findings) == 1
    text = result.findings[0]
    assert text.startswith("deadlock: ")
    assert "forwards" in text
    assert "backwards" in text
    assert "locking.py:" in text
    assert len(open_kev(tmp_path / "w.kev").events) > 100


def test_lost_wakeup_waits_for_ever(tmp_path: Path) -> None:
    result = capture("lost-wakeup", tmp_path)
    assert [f for f in result.findings if "waits for ever" in f and "consumer" in f and "condvar ready" in f]


@pytest.mark.thorough
def test_the_flood_starves_the_victim(tmp_path: Path) -> None:
    result = capture("interrupt-flood", tmp_path)
    begin = result.truth.start
    flood = [begin + int(2.592e6 * t) for t in (65, 125)]
    calm = [begin + int(2.592e6 * t) for t in (15, 55)]

    def count(window: list[int]) -> float:
        inside = [i for i in result.truth.interrupts if i.vector == 9 and window[0] <= i.enter < window[1]]
        return len(inside) / (window[1] - window[0])

    assert count(flood) > 50 * count(calm)


def test_periodic_tasks_miss_one_deadline(tmp_path: Path) -> None:
    trace = (capture("periodic", tmp_path), open_kev(tmp_path / "w.kev"))[1]
    missed = [words for _, name, words in events(trace) if name == "EVENT 3"]
    assert (1, 12) in missed
    begins = [t for t, name, w in events(trace) if name == "EVENT 1" and w[0] == 0]
    periods = [(b - a) / 2.592e6 for a, b in pairwise(begins)]
    assert sum(periods) / len(periods) == pytest.approx(10, abs=0.2)
    assert max(periods) - min(periods) > 0.01


def test_partitions_hold_the_hog_down(tmp_path: Path) -> None:
    truth = capture("partitions", tmp_path).truth
    share = {}
    for r in truth.runs:
        share[r.thread[0]] = share.get(r.thread[0], 0) + r.end - r.start
    total = truth.end - truth.start
    hog, background = share[2] / total, max(time for pid, time in share.items() if pid > 2) / total
    assert 0.2 <= hog < 0.5, "its 20 %, and its part of what Drivers leaves"
    assert background >= 0.45, "priority 10 against 30, but a budget of its own"
    assert truth.bankruptcies


def test_fork_storm_creates_and_reaps(tmp_path: Path) -> None:
    truth = capture("fork-storm", tmp_path).truth
    created = [p for p in truth.processes if p[1] == "created"]
    destroyed = [p for p in truth.processes if p[1] == "destroyed"]
    assert len(created) == 25
    assert {p[2] for p in created} <= {p[2] for p in destroyed}
    trace = open_kev(tmp_path / "w.kev")
    since = int(trace.events.time_cycles[0])
    assert names(trace).count("PROCCREATE") == sum(p[0] > since for p in created) >= 15
    assert names(trace).count("PROCDESTROY") == sum(p[0] > since for p in destroyed)


def test_signals_interrupt_calls(tmp_path: Path) -> None:
    result = capture("signals", tmp_path)
    trace = open_kev(tmp_path / "w.kev")
    assert trace.class_counts()["INT_CALL"] == 3
    assert names(trace).count("SIGNAL") == 8, "three and three, SIGTERM, and the logger's SIGINT"
    assert "SIGNAL_RETURN" in names(trace)
    outcomes = {w.outcome for w in result.truth.waits}
    assert outcomes >= {"signal", "timeout", "ok", "dead"}


def test_every_workload_has_a_page_and_every_page_a_workload() -> None:
    pages = {page.stem for page in DOCS.glob("*.md")} - {"README"}
    assert pages == {name for name, _ in registry.names()}
    for name, summary in registry.names():
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert f"--workload {name}" in text
        assert len(summary) < 80


# Faulty workloads


def write(folder: Path, text: str) -> str:
    path = folder / "faulty.py"
    path.write_text("from satview.capture.sim.calls import *\n" + text, encoding="utf-8")
    return str(path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("def main():\n    yield Compute(1000000)\n    yield 42\n", "faulty.py:4: yielded 42"),
        ("def main():\n    yield Compute(1000000)\n    raise ValueError('no')\n", "faulty.py:4: raised ValueError: no"),
        ("def main():\n    yield Compute(1000000)\n    yield MsgSend(99)\n", "faulty.py:4: raised QnxError"),
        (
            "def main():\n    yield Compute(1000000)\n    yield ThreadCreate(print)\n    yield Sleep(1)\n",
            "print is not a generator function",
        ),
    ],
)
def test_a_faulty_program_is_named_with_its_line(program: str, expected: str, tmp_path: Path) -> None:
    result = capture(write(tmp_path, program), tmp_path, duration_ns=20 * 10**6)
    assert any(expected in finding and "thread faulty 1" in finding for finding in result.findings), result.findings
    trace = open_kev(tmp_path / "w.kev")
    assert not trace.problems.counts()
    assert "THDEAD" in names(trace) or "print" in expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("yield MsgSend('x')", "bad arguments"),
        ("yield Compute('long')", "which is not a time"),
        ("yield Compute(-5)", "Compute(-5), which is not a time"),
        ("yield Compute(float('nan'))", "which is not a time"),
        ("raise SystemExit(3)", "faulty.py:4: raised SystemExit: 3"),
        ("raise type('Odd', (BaseException,), {'__str__': lambda self: 1 / 0})()", "faulty.py:4: raised Odd"),
        ("raise GeneratorExit", "faulty.py:4: raised GeneratorExit"),
        ("(lambda f: f(f))(lambda f: f(f))", "raised RecursionError"),
        ("yield MutexLock(None)", "bad arguments"),
        ("yield Sleep(None)", "bad arguments"),
        ("yield Ring0(lambda m, c: 1 / 0)", "Ring0 function raised ZeroDivisionError"),
        ("yield TimerSettime(7, 1)", "raised QnxError: [Errno 22]"),
        ("yield Compute(1 << 99)", ""),
        ("yield ThreadJoin(99)", "[Errno 3]"),
        ("yield SchedSet(999)", "[Errno 22]"),
        ("yield TraceEvent('x')", "faulty.py:4: raised TypeError: TraceEvent: mode 'x' is not a number"),
    ],
)
def test_bad_arguments_never_stop_the_simulation(program: str, expected: str, tmp_path: Path) -> None:
    text = f"def main():\n    yield Compute(1000000)\n    {program}\n    yield Sleep(1000)\n"
    result = capture(write(tmp_path, text), tmp_path, duration_ns=20 * 10**6)
    assert not expected or any(expected in text and "faulty" in text for text in result.findings), result.findings
    trace = open_kev(tmp_path / "w.kev")
    assert not trace.problems.counts()
    assert "SIGNAL" in names(trace), "the machine ran on until the logger was stopped"


def test_handlers_that_raise_are_reported(tmp_path: Path) -> None:
    text = (
        "def handler():\n    return 1 / 0\n\n"
        "def main():\n    yield ThreadCtl()\n    yield InterruptAttach(5, handler)\n    yield Sleep(10**8)\n\n"
        "def setup(kernel):\n    kernel.device(5, lambda: 3000000)\n    kernel.spawn('usr/bin/faulty', main)\n"
    )
    result = capture(write(tmp_path, text), tmp_path, duration_ns=20 * 10**6)
    assert any("faulty.py:3: interrupt handler raised ZeroDivisionError" in finding for finding in result.findings)


@pytest.mark.thorough
def test_a_device_without_rest_does_not_hang(tmp_path: Path) -> None:
    text = (
        "def setup(kernel):\n    kernel.device(5, lambda: 0)\n    kernel.spawn('usr/bin/faulty', main)\n\n"
        "def main():\n    yield Sleep(10**8)\n"
    )
    result = capture(write(tmp_path, text), tmp_path, duration_ns=10**6, options=LoggerOptions(iterations=0))
    assert len(result.truth.interrupts) > 1000


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("-5", "device 5: gave -5, which is not a time"),
        ("float('nan')", "device 5: gave nan"),
        ("1 / 0", "faulty.py:4: raised ZeroDivisionError"),
        ("'soon'", "gave 'soon'"),
    ],
)
def test_a_device_that_shows_no_time_is_reported_and_silent(gap: str, expected: str, tmp_path: Path) -> None:
    text = (
        "times = iter([1000000] * 3)\ndef gap():\n    return next(times, None) or " + gap + "\n\n"
        "def setup(kernel):\n    kernel.device(5, gap)\n    kernel.spawn('usr/bin/faulty', main)\n\n"
        "def main():\n    yield Sleep(10**8)\n"
    )
    result = capture(write(tmp_path, text), tmp_path, duration_ns=10 * 10**6)
    assert any(expected in finding for finding in result.findings), result.findings
    assert sum(span.vector == 5 for span in result.truth.interrupts) == 3
    assert not open_kev(tmp_path / "w.kev").problems.counts()


@pytest.mark.parametrize("step", ["Compute(0)", "Compute(-1)", "Compute(1)", "Sleep(0)"])
def test_time_passes_in_any_loop(step: str, tmp_path: Path) -> None:
    result = capture(
        write(tmp_path, f"def main():\n    while True:\n        yield {step}\n"), tmp_path, duration_ns=10**6
    )
    assert result.duration_ns > 10**6
    assert len(result.findings) == ("-" in step), "said once, with its number of times"
    assert all("times" in finding for finding in result.findings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CPUS = 'x'", "CPUS is 'x'"),
        ("CPUS = 65", "CPUS is 65"),
        ("DURATION_MS = float('nan')", "DURATION_MS is nan"),
        ("LEAD_IN_MS = -1", "LEAD_IN_MS is -1"),
        ("import sys; sys.exit(3)", "line 2: SystemExit: 3"),
        ("raise GeneratorExit('at import')", "line 2: GeneratorExit: at import"),
        ("import no_such_module", "line 2: ModuleNotFoundError"),
        ("open('nowhere')", "line 2: FileNotFoundError"),
        ("while True: pass", "line 2: ran for 0.3 s without getting anywhere"),
        ("def setup(kernel):\n    while True: pass", "line 3: ran for 0.3 s"),
        ("def setup(kernel):\n    exit(2)", "line 3: SystemExit: 2"),
        ("def setup(kernel):\n    kernel.spawn('a', main, priority=256)", "a: priority 256 is not 1 to 255"),
        ("def setup(kernel):\n    kernel.spawn('a', main, runmask=2)", "none of the 1 CPUs"),
        ("def setup(kernel):\n    kernel.partitions(('a', 90, 0), ('b', 20, 0))", "90, 20 % exceed 100 %"),
        ("def main(first):\n    yield", "faulty.py: TypeError"),
    ],
)
def test_files_that_do_what_they_must_not_are_refused(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "PATIENCE_S", 0.3)
    if "def main" not in text:
        text += "\ndef main():\n    yield Compute(1)\n"
    with pytest.raises(UsageError) as caught:
        capture(write(tmp_path, text), tmp_path)
    assert expected in str(caught.value)
    assert not (tmp_path / "w.kev").exists()


def test_a_setup_that_fails_is_bad_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"faulty.py, line 3: ZeroDivisionError"):
        capture(write(tmp_path, "def setup(kernel):\n    1 / 0\n"), tmp_path)
    with pytest.raises(UsageError, match="not a generator function"):
        capture(write(tmp_path, "def main():\n    return 5\n"), tmp_path)


def test_64_cpus(tmp_path: Path) -> None:
    result = capture("automotive", tmp_path, cpus=64, duration_ns=30 * 10**6, lead_in_ns=10**6)
    trace = open_kev(tmp_path / "w.kev")
    assert trace.cpu_count == 64
    assert not trace.problems.counts()
    assert len({r.cpu for r in result.truth.runs}) == 64


@pytest.mark.thorough
def test_a_program_that_never_yields_is_ended(tmp_path: Path) -> None:
    program = write(tmp_path, "def main():\n    yield Compute(1000000)\n    while True:\n        pass\n")
    result = run(Capture(program, duration_ns=20 * 10**6, patience_s=0.3), tmp_path / "w.kev")
    assert any("faulty.py:" in f and "ran for long" in f for f in result.findings)
    assert len(open_kev(tmp_path / "w.kev").events) > 50


def test_a_program_that_never_ends_is_cut_at_its_time(tmp_path: Path) -> None:
    program = write(tmp_path, "def main():\n    while True:\n        yield ClockTime()\n")
    result = capture(program, tmp_path, duration_ns=2 * 10**6, options=LoggerOptions(iterations=3))
    assert result.buffers == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def main(:\n", "line 2"),
        ("1/0\n", "line 2: ZeroDivisionError"),
        ("x = 1\n", "neither setup(kernel) nor main()"),
    ],
)
def test_files_without_a_workload_are_refused(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"faulty\.py") as caught:
        capture(write(tmp_path, text), tmp_path)
    assert expected in str(caught.value)


def test_unknown_names_get_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean deadlock"):
        capture("dedlock", tmp_path)
    with pytest.raises(UsageError, match="1 to 64"):
        capture("polite", tmp_path, cpus=65)


def test_a_neighbour_in_the_partition_starves_though_lower_priorities_run(tmp_path: Path) -> None:
    truth = capture("partition-starvation", tmp_path).truth
    uploader, sampler, render = (2, 3), (2, 2), (3, 1)
    ran = {thread: [run for run in truth.runs if run.thread == thread] for thread in (uploader, sampler, render)}
    start = truth.start
    assert all((run.end - start) * 1000 / 2_592_000_000 < 35 for run in ran[uploader]), "it runs no more after 35 ms"
    used = {thread: sum(run.end - run.start for run in ran[thread]) for thread in ran}
    assert 0.15 < used[sampler] / (used[sampler] + used[render]) < 0.25, "the budget of Telemetry is 20 %"


def test_who_has_the_work_of_nested_servers_done(tmp_path: Path) -> None:
    result = capture("nested-servers", tmp_path)
    found = Statistics(open_kev(tmp_path / "w.kev"))
    trace, table = found.trace, found.client_server
    row = {trace.threads.names[i]: i for i in range(len(trace.threads))}
    report, screen, keeper = row["report"], row["screen"], row["keeper"]
    assert table.self_cycles[report] < 0.01 * table.self_cycles[screen]
    assert table.imposed_cycles[report] > 50 * table.self_cycles[report]
    assert table.imposed_cycles[report] > 10 * table.imposed_cycles[screen]
    on_keeper = (table.imposed.client == report) & (table.imposed.server == keeper)
    assert table.imposed.cycles[on_keeper][0] > 0.9 * table.imposed_cycles[report], "two steps on"
    assert not any(m.client[0] == trace.threads.pid[report] and m.server_pid == trace.threads.pid[keeper]
                   for m in result.truth.messages), "it never sends there itself"  # fmt: skip
    assert found.cpu_messages.elsewhere.sum() > 0
    assert found.threads.migrations[keeper] > 0

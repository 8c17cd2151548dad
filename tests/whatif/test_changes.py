"""What can be changed: how it is said, and what is said of changes that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.base.errors import UsageError
from satview.whatif.prediction import basis_of
from satview.whatif.program import programs_of
from satview.whatif.steps import (
    Await,
    AwaitInterrupt,
    Programs,
    Receive,
    SendPulse,
    SleepStep,
    Unmask,
    Work,
    parse_changes,
    read_changes,
    with_changes,
)
from tests.whatif.test_fit import captured


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return programs_of(captured(tmp_path_factory.mktemp("servers"), "nested-servers"))


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return programs_of(captured(tmp_path_factory.mktemp("car"), "automotive", length_ms=200))


def thread_of(programs: Programs, label: str) -> tuple[int, int, int]:
    """Return priority, policy and runmask of a thread."""
    (thread,) = (thread for thread in programs.threads if thread.label.startswith(label))
    return thread.priority, thread.policy, thread.runmask


def test_changes_leave_the_given_programs_alone(servers: Programs) -> None:
    changed = with_changes(servers, parse_changes(["screen:priority=20", "screen 1:policy=fifo", "screen:runmask=0x2"]))
    assert thread_of(changed.programs, "screen 1") == (20, 1, 2)
    assert thread_of(servers, "screen 1") == (10, 2, (1 << 64) - 1)
    assert changed.texts == ("screen:priority=20", "screen 1:policy=fifo", "screen:runmask=0x2")


def test_numbers_may_be_said_in_several_ways(servers: Programs, tmp_path: Path) -> None:
    path = tmp_path / "changes.toml"
    path.write_text("cpus = 2.0\n[screen]\npriority = 22.0\nrunmask = 0x2\nspeed = 2\n")
    changed = with_changes(servers, [*read_changes(path), *parse_changes(["front:speed=.5", "store:speed=1e1"])])
    assert (changed.cpus, thread_of(changed.programs, "screen 1")) == (2, (22, 2, 2))
    speeds = {thread.short_process: thread.speed for thread in changed.programs.threads}
    assert (speeds["screen"], speeds["front"], speeds["store"]) == (2, 0.5, 10)
    masks = parse_changes(["screen:runmask=0xffffffffffffffff", "report:runmask=1"])
    changed = with_changes(servers, masks)
    assert thread_of(changed.programs, "screen 1")[2] == (1 << 64) - 1
    assert thread_of(changed.programs, "report 1")[2] == 1


@pytest.mark.thorough
def test_each_wait_of_a_thread_becomes_a_step(car: Programs) -> None:
    """The driver waits for a block and sleeps while the medium works: 11 times in this trace, and then waits."""
    (completion,) = (thread for thread in car.threads if thread.name == "completion")
    assert sum(isinstance(step, SleepStep) for step in completion.steps) == 11
    assert sum(isinstance(step, Await) for step in completion.steps) == 12


def test_a_pool_gets_and_loses_threads(servers: Programs) -> None:
    more = with_changes(servers, parse_changes(["front:threads=4"])).programs
    pool = [thread for thread in more.threads if thread.label.startswith("front ")]
    assert [thread.tid for thread in pool] == [1, 2, 3, 4]
    assert [thread.steps for thread in pool[2:]] == [[Receive(1)], [Receive(1)]]
    less = with_changes(servers, parse_changes(["front:threads=1"])).programs
    assert [thread.label for thread in less.threads if thread.label.startswith("front ")] == ["front 1 (desk-1)"]


@pytest.mark.thorough
def test_an_interrupt_comes_twice_as_often(car: Programs) -> None:
    (line,) = (line for line in car.interrupts if line.vector == 12)
    (faster,) = (line for line in with_changes(car, parse_changes(["interrupt 12:rate=2"])).programs.interrupts
                 if line.vector == 12)  # fmt: skip
    assert len(faster.moments_ns) == pytest.approx(2 * len(line.moments_ns), rel=0.03)
    assert faster.moments_ns[1] - faster.moments_ns[0] == pytest.approx(
        (line.moments_ns[1] - line.moments_ns[0]) / 2, abs=1
    )


def test_a_handler_moves_to_a_thread(car: Programs) -> None:
    """Every other interrupt of the bus delivers a pulse, after 2 us of its handler."""
    changed = with_changes(car, parse_changes(["interrupt 12:handler=thread 40"])).programs
    thread, (line,) = changed.threads[-1], (line for line in changed.interrupts if line.vector == 12)
    assert (thread.name, thread.priority, thread.policy) == ("interrupt-12", 40, 1)
    assert line.handlers == {}
    assert line.threads == [thread.row]
    kinds = [type(step) for step in thread.steps[:7]]
    assert kinds.count(AwaitInterrupt) == 2
    assert kinds.count(SendPulse) == 1
    assert kinds.count(Unmask) == 2
    assert all(1_000 < step.ns < 10_000 for step in thread.steps if isinstance(step, Work))


def test_a_file_says_the_same_as_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "changes.toml"
    path.write_text(
        'cpus = 2\n["planner 1"]\npriority = 22\npolicy = "fifo"\n["lock 0x80d4390"]\ninherit = true\n'
        '["load burner"]\nperiod = "10ms"\nwork = "2ms"\npriority = 30\n'
    )
    assert read_changes(path) == parse_changes(
        ["cpus=2", "planner 1:priority=22", "planner 1:policy=fifo", "lock 0x80d4390:inherit=yes",
         "load burner:period=10ms,work=2ms,priority=30"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nobody:priority=22", "the trace has no such thread or process; there are procnto-smp-instr 3"),
        ("screen:priority=256", "'256' is not a number from 1 to 255"),
        ("screen:priority=high", "'high' is not a number from 1 to 255"),
        ("screen:priority=1_0", "'1_0' is not a number from 1 to 255"),
        ("screen:priority=\N{FULLWIDTH DIGIT THREE}", "'\N{FULLWIDTH DIGIT THREE}' is not a number from 1 to 255"),
        ("screen:priority=22.5", "'22.5' is not a number from 1 to 255"),
        ("screen:priority=0x10", "'0x10' is not a number from 1 to 255"),
        ("screen:speed=1_0.5", "'1_0.5' is not a number from 0.001 to 1000"),
        ("screen:speed=inf", "'inf' is not a number from 0.001 to 1000"),
        ("screen:runmask=0x1_0", "'0x1_0' is not a number from 0x1 to 0xffffffffffffffff"),
        ("screen:runmask=0x10000000000000000", "is not a number from 0x1 to 0xffffffffffffffff"),
        ("screen:colour=red", "there is no 'colour'; there are cpus, priority, policy"),
        ("priority=5", "is a change of something: TARGET:priority=5, where TARGET is a thread or process"),
        ("screen:period=5ms", "for a thread that is added 'load NAME:period=10ms,work=2ms,priority=20'"),
        ("screen:policy=best", "the policies are fifo, rr, other"),
        ("screen:runmask=0x4", "screen 1 (screen) may then run on none of 2 CPUs"),
        ("cpus=0", "'0' is not a number from 1 to 64"),
        ("screen:cpus=2", "the CPUs are those of the target: cpus=2"),
        ("lock 0x10:inherit=no", "the trace has no such lock that somebody waited for; the trace shows none"),
        ("partition Drivers:budget=20", "the trace has no such partition; the trace shows none"),
        ("interrupt 12:rate=2", "the trace has no such interrupt; the trace shows none"),
        ("screen:threads=2", "no thread of it receives messages in the trace"),
        ("load burner:work=2ms,priority=30", "the load has no period"),
        ("load burner:period=10ms,work=2ms", "the load has no priority; say it as 'load NAME:period=10ms,work=2ms,"),
        ("load burner:period=10ms,work=soon", "soon"),
        ("load screen:period=10ms,work=1ms,priority=40", "the trace has a process screen; give the load another name"),
        ("load new/screen:period=10ms,work=1ms,priority=40", "the trace has a process screen; give the load another"),
        ("screen:speed=0", "'0' is not a number from 0.001 to 1000"),
    ],
)
def test_what_cannot_be_changed_is_said_with_what_there_is(servers: Programs, text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        with_changes(servers, parse_changes([text]))
    assert says in str(error.value)


def test_what_is_impossible_in_any_trace_is_refused_before_there_is_one(tmp_path: Path) -> None:
    """A replay takes seconds before it gets to its changes."""
    for text in ("x:priority=300", "x:colour=red", "x:inherit=perhaps", "cpus=0", "interrupt 3:handler=thread 0",
                 "load x:period=10ms,work=20ms,priority=5"):  # fmt: skip
        with pytest.raises(UsageError):
            parse_changes([text])
    path = tmp_path / "changes.toml"
    path.write_text('["x"]\nspeed = 0\n')
    with pytest.raises(UsageError, match="x:speed=0: '0' is not a number"):
        read_changes(path)


def test_two_changes_of_the_same_are_refused(servers: Programs) -> None:
    """One of them would silently do nothing; a thread may have another priority than its process."""
    with pytest.raises(UsageError, match="cpus=1: cpus=2 changes the same; leave one of them out"):
        with_changes(servers, parse_changes(["cpus=2", "cpus=1"]))
    with_changes(servers, parse_changes(["screen:priority=12", "screen 1:priority=14"]))


@pytest.mark.parametrize("text", ["planner", "planner 1:priority", "=2", "planner:=2", "planner:priority="])
def test_a_text_that_is_no_change_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not TARGET:KEY=VALUE"):
        parse_changes([text])


def test_a_sporadic_thread_stays_above_its_low_priority(tmp_path: Path) -> None:
    """Its low priority is 5; without its budget it may have any."""
    programs = programs_of(captured(tmp_path, "periodic", length_ms=500))
    with pytest.raises(UsageError, match="falls to 5 without budget; set its policy too"):
        with_changes(programs, parse_changes(["aperiodic:priority=4"]))
    changed = with_changes(programs, parse_changes(["aperiodic:policy=rr", "aperiodic:priority=4"])).programs
    assert thread_of(changed, "sporadic 1") == (4, 2, (1 << 64) - 1)


def test_a_target_that_is_not_there_is_refused_before_the_replay(
    servers: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a damaged trace of many CPUs the replay takes a minute."""
    monkeypatch.setattr("satview.whatif.prediction.replay", lambda *_, **__: pytest.fail("it was replayed"))
    with pytest.raises(UsageError, match="the trace has no such thread or process"):
        basis_of(servers.trace, changes=parse_changes(["nobody:priority=3"]))

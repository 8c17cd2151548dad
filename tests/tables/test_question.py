"""Queries in a process of their own: limits, signals, deaths of either side, what is sent again and what is cut."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from satview.__main__ import main
from satview.base.errors import Cancelled, UsageError
from satview.opened import open_trace
from satview.tables import sql as sql_module
from satview.tables.sql import Limits, Waiting, close_processes, sql, start_early, waiting
from tests.helpers.extent import fewer
from tests.helpers.ignored_signals import skip_if_ignored
from tests.helpers.kev import TraceBuilder
from tests.helpers.sql_values import query_at_work

ROOT = Path(__file__).resolve().parents[2]
# Tens of seconds in one call of a function, in which DuckDB looks at nothing else.
SLOW = "select levenshtein(repeat('a', 120000), repeat('b', 120000))"
LARGE = "select repeat('x', 2000000000)"
WAIT_S = 30
_COMMAND = "from satview.__main__ import entry; entry()"


@pytest.fixture
def trace(tmp_path):
    return open_trace(TraceBuilder(cpus=2).time_event(0).state("RUNNING", 3000, 7, 1, 1).write(tmp_path / "a.kev"))


@pytest.fixture(autouse=True)
def _processes_of_the_test():
    sql_module._close_all()
    yield
    sql_module._close_all()


def children():
    return {child.pid for child in psutil.Process().children() if "query_child" in " ".join(child.cmdline())}


@contextmanager
def ended_at_the_end(process):
    """End a command of a test whatever happens."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition):
    end_s = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < end_s, "it does not happen"
        time.sleep(0.01)
    return found


@pytest.mark.thorough
def test_a_time_limit_holds_within_a_function(trace):
    before, begin_s = children(), time.monotonic()
    with pytest.raises(UsageError, match=r"^the query took longer than 0\.3 s and was stopped$"):
        trace.sql(SLOW, Limits(time_s=0.3))
    assert time.monotonic() - begin_s < 5
    assert children() == before
    assert trace.sql("select count(*) as n from event").rows() == [(2,)]


@pytest.mark.thorough
def test_time_is_up_before_the_rows_are(trace):
    with pytest.raises(UsageError, match="took longer"):
        trace.sql("select count(*) from range(100000000000) a(i) where i % 7 = 3", Limits(time_s=0.2))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query",
    fewer([LARGE, "select list(i) from range(100000000) a(i)", "select repeat('x', 2000000) from range(2000)"], 1),
)
def test_a_memory_limit_holds(trace, query):
    with pytest.raises(UsageError, match=r"^the query needs more than 64 MiB of memory and was stopped$"):
        trace.sql(query, Limits(memory_bytes=64 << 20))
    assert trace.sql("select 1 as one", Limits(threads=1)).rows() == [(1,)], "limits are those of one query"


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not limit addresses")
def test_memory_that_duckdb_does_not_count(trace):
    """Arrow's and Python's is limited by the system."""
    from satview.tables import query_child

    code = (
        "from satview.tables import query_child as q\n"
        "q._limit('RLIMIT_AS', q._address_bytes() + (64 << 20))\n"
        "try: bytearray(1 << 28)\nexcept MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"refused\n"
    assert query_child._address_bytes() > 1 << 20


@pytest.mark.thorough
def test_a_query_is_cancelled_within_a_function(trace):
    before, stop = children(), threading.Event()
    answers = []

    def run():
        try:
            sql(trace, SLOW, cancelled=stop.is_set)
        except Cancelled as error:
            answers.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(query_at_work)
    begin_s = time.monotonic()
    stop.set()
    thread.join()
    assert time.monotonic() - begin_s < 5  # usually a fifth of a second; the query itself takes minutes
    assert answers == ["the query was stopped"]
    assert children() == before


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code", "says"), fewer([(signal.SIGINT, 130, b"satview: interrupted\n"), (signal.SIGTERM, 143, b"")], 1)
)
def test_signals_end_the_command_and_its_process(trace, number, code, says):
    skip_if_ignored(number)
    command = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "query", str(trace.path), SLOW], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with ended_at_the_end(command):
        child = wait_for(lambda: query_at_work(command.pid))
        os.killpg(command.pid, number) if number == signal.SIGINT else command.send_signal(number)
        out, err = command.communicate(timeout=WAIT_S)
        assert (command.returncode, out, err) == (code, b"", says)
        assert not child.is_running()


@pytest.mark.thorough
def test_no_process_is_left_by_a_parent_that_is_killed(trace):
    command = subprocess.Popen([sys.executable, "-c", _COMMAND, "query", str(trace.path), SLOW], cwd=ROOT)
    with ended_at_the_end(command):
        child = wait_for(lambda: query_at_work(command.pid))
        command.kill()
        assert psutil.wait_procs([child], timeout=WAIT_S)[1] == []


@pytest.mark.thorough
def test_a_process_that_is_killed(trace):
    failures = []

    def run():
        try:
            sql(trace, SLOW)
        except UsageError as error:
            failures.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(query_at_work).kill()
    thread.join()
    [failure] = failures
    assert failure.startswith("the process that ran the query has ended (SIGKILL), most likely for want of memory")
    assert trace.sql("select 1 as one").rows() == [(1,)]
    [process] = waiting.idle
    psutil.Process(process._child.pid).kill()  # while it waits
    wait_for(lambda: not process.is_alive)
    assert trace.sql("select 2 as two").rows() == [(2,)]


@pytest.mark.thorough
def test_a_warm_process_has_its_tables(trace, monkeypatch):
    made = []
    parts = sql_module._parts
    monkeypatch.setattr(sql_module, "_parts", lambda of, name, *more: made.append(name) or parts(of, name, *more))
    assert trace.sql("select count(*) from event, thread").rows() == [(2 * len(trace.threads),)]
    assert sorted(made) == ["event", "thread"]
    pids = [process._child.pid for process in waiting.idle]
    trace.sql("select * from event join thread using (thread), mark")
    with pytest.raises(UsageError, match='"nothing" not found'):
        trace.sql("select nothing from event")
    trace.sql("select * from event, mark")
    assert made[2:] == ["mark", "mark"], "only what others may have changed is sent again"
    assert [process._child.pid for process in waiting.idle] == pids


@pytest.mark.thorough
def test_tables_go_with_their_trace(trace, tmp_path):
    trace.sql("select * from event")
    [process] = waiting.idle
    assert process.owner
    other = open_trace(TraceBuilder().time_event(0).write(tmp_path / "b.kev"))
    assert other.sql("select count(*) from event").rows() == [(1,)]
    assert len(waiting.idle) == 2
    del other
    assert [each.owner for each in waiting.idle] == [process.owner, 0]
    close_processes(trace)
    assert waiting.idle == []
    assert not process.is_alive


@pytest.mark.thorough
def test_a_process_is_started_early_and_used(trace):
    start_early()
    [process] = waiting.idle
    start_early()
    trace.sql("select 1")
    assert waiting.idle == [process]


@pytest.mark.thorough
def test_no_more_processes_wait_than_two(trace, tmp_path):
    traces = [open_trace(TraceBuilder().time_event(0).write(tmp_path / f"{i}.kev")) for i in range(4)]
    for each in traces * 2:
        assert each.sql("select count(*) from event").rows() == [(1,)]
        assert len(waiting.idle) <= 2


@pytest.mark.thorough
def test_queries_at_the_same_time(trace):
    answers = [None] * 4

    def run(number):
        answers[number] = trace.sql(f"select {number} as n, count(*) from event").rows()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[(number, 2)] for number in range(4)]
    assert len(waiting.idle) <= 2


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_has_processes_of_its_own(trace):
    trace.sql("select count(*) from event")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if not pid:
        try:
            has_own = not waiting.idle and trace.sql("select count(*) from event").rows() == [(2,)]
            os._exit(7 if has_own else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert trace.sql("select count(*) from event").rows() == [(2,)]


@pytest.mark.thorough
def test_an_answer_that_is_cut(trace, tmp_path, capsys):
    numbers = "select i from range(1000000) t(i) order by i"
    with pytest.raises(UsageError, match="the answer has more than 1 MiB; add a LIMIT"):
        trace.sql(numbers, Limits(answer_bytes=1 << 20))
    part = sql(trace, numbers, Limits(answer_bytes=1 << 20), is_part_enough=True)
    assert part.is_cut
    count = (1 << 20) * 8 // 65  # 64 bits of a number and one that says that it is none
    assert part["i"].tolist() == list(range(count)), "the first ones, as many as fit"
    assert repr(part) == "<Result: 129,055 rows, cut: there are more of i>"
    assert not sql(trace, numbers, is_part_enough=True).is_cut
    assert len(sql(trace, "select repeat('x', 2000000) as x", Limits(answer_bytes=1 << 20), is_part_enough=True)) == 0

    out = tmp_path / "out.json"
    command = ["query", str(trace.path), numbers, "--answer-limit", "1"]
    assert main([*command, "--format", "json", "-o", str(out)]) == 1
    says = "the result was cut after 129,055 rows at the size limit; add a LIMIT, or raise --answer-limit"
    assert capsys.readouterr().err == f"satview: {says}\n"
    rows = json.loads(out.read_text())
    assert (rows[0], rows[-2], rows[-1], len(rows)) == ({"i": 0}, {"i": 129054}, {"cut": says}, 129056)
    command[2] = "select repeat('y', 600000) as y from range(3)"
    assert main([*command, "--format", "csv", "-o", str(out)]) == 1
    assert out.read_text().count("y" * 600000) == 1
    assert "cut after 1 rows" in capsys.readouterr().err


@pytest.mark.thorough
def test_texts_that_are_no_texts(trace, capsys):
    with pytest.raises(UsageError, match="not text in UTF-8"):
        trace.sql("select '\udcff'")
    for query in (
        "select 1 \0",
        "select '\0' as x",
        '"',
        "'",
        "/*",
        "select $1",
        "select ?",
        "(" * 5000,
        "\N{SNOWMAN}",
    ):
        assert main(["query", str(trace.path), query]) in (0, 2), query
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--time-limit=nan", "--time-limit=inf", "--memory-limit=0", "--answer-limit=0",
                                    "--threads=-1", "--memory-limit=99999999999", "--threads=99999"])  # fmt: skip
def test_limits_that_are_none(trace, option, capsys):
    assert main(["query", str(trace.path), "select 1", option]) == 2
    assert "at most" in capsys.readouterr().err


@pytest.mark.thorough
def test_nothing_of_the_child_is_written(trace, tmp_path, monkeypatch):
    """No file of the folder runs, and none is written there, not even after a crash."""
    monkeypatch.chdir(tmp_path)
    for name in ("duckdb", "pyarrow", "json", "satview", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    before = set(tmp_path.iterdir())
    with pytest.raises(UsageError, match="needs more than 64 MiB of memory"):  # DuckDB would put it into a file
        trace.sql("select * from range(20000000) a(i) order by hash(i)", Limits(memory_bytes=64 << 20))
    assert trace.sql("select 1 as one").rows() == [(1,)]
    [process] = waiting.idle
    soft, _ = resource.prlimit(process._child.pid, resource.RLIMIT_CORE)
    assert (soft, resource.prlimit(process._child.pid, resource.RLIMIT_FSIZE)[0]) == (0, 0)
    os.kill(process._child.pid, signal.SIGSEGV)
    wait_for(lambda: not process.is_alive)
    assert set(tmp_path.iterdir()) == before


def test_an_idle_process_that_died_is_passed_over_once():
    """It is both the one with the tables of the trace and the oldest; it cannot be taken out of the list twice."""

    class Idle:
        def __init__(self, owner, is_alive):
            self.owner, self.is_alive, self.is_closed = owner, is_alive, False

        def close(self):
            self.is_closed = True

    processes, dead, alive = Waiting(), Idle(1, False), Idle(7, True)
    processes.idle = [dead, alive]
    taken = processes.take(1)
    taken.close()
    assert (taken is not dead, dead.is_closed, processes.idle) == (True, True, [alive])

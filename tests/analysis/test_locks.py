"""Contention of locks, counted by hand, and against a plain loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.answers.locks import lock_tables
from satview.answers.table import Outcome
from satview.formats.registry import open_trace
from satview.formats.unixware.reader import open_thread_trace
from tests.helpers.kev import from_lanes
from tests.helpers.thread_trace import record, write_set

FIGURES = ("calls", "waits", "failed", "wait_ns", "longest_wait_ns", "holds", "hold_ns", "longest_hold_ns", "threads")


def derived(tmp_path, text):
    table, waits = lock_tables(open_trace(write_set(tmp_path, text)))
    return {(row["kind"], int(row["address"], 16)): {name: row[name] for name in FIGURES} for row in table}, waits


def test_a_mutex_that_two_threads_want(tmp_path):
    rows, waits = derived(
        tmp_path,
        """
         0 lwp1 t1 mutex_lock 1 16
         1 lwp1 t1 mutex_lock 2 0 0
         5 lwp2 t2 mutex_lock 1 16
        10 lwp1 t1 mutex_unlock 0 16 0 1
        12 lwp2 t2 mutex_lock 2 0 1
        15 lwp3 t3 mutex_trylock 0 16 16
        20 lwp2 t2 mutex_unlock 0 16 0 0
        30 lwp3 t3 mutex_trylock 0 16 0
        33 lwp3 t3 mutex_unlock 0 16 0 0
    """,
    )
    assert rows == {
        ("mutex", 16): {
            "calls": 4,
            "waits": 1,
            "failed": 1,
            "wait_ns": 7000,
            "longest_wait_ns": 7000,
            "holds": 3,
            "hold_ns": 9000 + 8000 + 3000,
            "longest_hold_ns": 9000,
            "threads": 3,
        }
    }
    assert waits["start_ns"].tolist() == [5000]
    assert waits["length_ns"].tolist() == [7000]


def test_waiting_on_a_condition_lets_go_of_its_mutex(tmp_path):
    rows, _ = derived(
        tmp_path,
        """
         0 lwp1 t1 mutex_lock 1 16
         0 lwp1 t1 mutex_lock 2 0 0
        10 lwp1 t1 cond_wait 1 32 16
        50 lwp1 t1 cond_wait 2 0
        55 lwp1 t1 mutex_unlock 0 16 0 0
    """,
    )
    assert rows["mutex", 16]["holds"] == 2
    assert rows["mutex", 16]["hold_ns"] == 15_000
    assert rows["cond", 32]["wait_ns"] == 40_000
    assert rows["cond", 32]["holds"] == 0


def test_recursive_holds_count_once(tmp_path):
    rows, _ = derived(
        tmp_path,
        """
         0 lwp1 t1 rmutex_lock 1 16
         1 lwp1 t1 rmutex_lock 2 0 0 1
         2 lwp1 t1 rmutex_lock 1 16
         3 lwp1 t1 rmutex_lock 2 0 0 2
         4 lwp1 t1 rmutex_unlock 0 16 0
         9 lwp1 t1 rmutex_unlock 0 16 0
    """,
    )
    assert (rows["rmutex", 16]["holds"], rows["rmutex", 16]["hold_ns"]) == (1, 8000)


def test_readers_hold_side_by_side_and_open_calls_last_to_the_end(tmp_path):
    rows, waits = derived(
        tmp_path,
        """
         0 lwp1 t1 rw_rdlock 1 16
         0 lwp1 t1 rw_rdlock 2 0 0 1
         0 lwp2 t2 rw_rdlock 1 16
         0 lwp2 t2 rw_rdlock 2 0 0 2
         5 lwp3 t3 rw_wrlock 1 16
        10 lwp1 t1 rw_unlock 0 16 0 1
        20 lwp2 t2 thr_self
    """,
    )
    assert rows["rwlock", 16]["holds"] == 2
    assert rows["rwlock", 16]["hold_ns"] == 10_000 + 20_001
    assert rows["rwlock", 16]["wait_ns"] == 15_001
    assert waits.records()[0]["known"] == {"length_ns": "at least"}
    (row,) = lock_tables(waits.trace)[0]
    assert row["known"] == dict.fromkeys(("wait_ns", "longest_wait_ns", "hold_ns", "longest_hold_ns"), "at least")


def test_spinning_is_waiting(tmp_path):
    rows, _ = derived(tmp_path, "0 lwp1 t1 _spin_lock 1 16\n4 lwp1 t1 _spin_lock 2 1\n9 lwp1 t1 _spin_unlock 0 16")
    assert rows["spin", 16]["wait_ns"] == 4000
    assert rows["spin", 16]["hold_ns"] == 5000
    assert rows["spin", 16]["failed"] == 0


def test_timeouts_are_failures_and_unlocks_of_nothing_are_ignored(tmp_path):
    rows, _ = derived(
        tmp_path,
        """
         0 lwp1 t1 mutex_unlock 0 16 0 0
         1 lwp1 t1 mutex_lock 1 16
         5 lwp1 t1 mutex_lock 2 62 1
         6 lwp1 t1 sema_wait 1 32 0
         8 lwp1 t1 sema_wait 2 62
    """,
    )
    assert rows["mutex", 16] == {
        "calls": 1, "waits": 1, "failed": 1, "wait_ns": 4000, "longest_wait_ns": 4000, "holds": 0, "hold_ns": None,
        "longest_hold_ns": None, "threads": 1,
    }  # fmt: skip
    assert rows["sema", 32]["failed"] == 1


def test_longest_waits_first_and_joins_have_no_lock(tmp_path):
    table, waits = lock_tables(
        open_trace(
            write_set(
                tmp_path,
                """
         0 lwp1 t1 sema_wait 1 16 0
        10 lwp1 t1 sema_wait 2 0
        10 lwp1 t1 sema_wait 1 32 0
        40 lwp1 t1 sema_wait 2 0
        50 lwp1 t1 thr_join 1 2
       990 lwp1 t1 thr_join 2 2 0 0
    """,
            )
        )
    )
    assert table["address"].tolist() == ["0x20", "0x10"]
    assert waits["lock"].tolist() == ["0x10", "0x20", ""]
    assert waits["length_ns"].tolist() == [10_000, 30_000, 940_000]


def test_a_kernel_trace_cannot_tell(tmp_path):
    for table in lock_tables(from_lanes(tmp_path, "cpu0  A A B . A")):
        assert (len(table), table.outcome) == (0, Outcome.CANNOT_TELL)
        assert table.says_why_empty == "Cannot tell: the trace does not come from a threads library (thread_trace)."


def test_no_records_no_locks(tmp_path):
    table, waits = lock_tables(open_thread_trace(write_set(tmp_path, "0 lwp1 t1 thr_self"), categories="mutex"))
    assert len(table) == len(waits) == 0


_step = st.tuples(st.integers(1, 3), st.sampled_from(("lock", "unlock")), st.sampled_from((16, 32)))


@pytest.mark.thorough
@given(st.lists(_step, min_size=1, max_size=40))
def test_holds_agree_with_a_loop(tmp_path_factory, steps):
    lines, depth, since, expected, now = [], {}, {}, {16: [], 32: []}, 0
    for tid, what, address in steps:
        now += 10
        key = tid, address
        if what == "lock":
            lines.append(record(now, tid, tid, "rmutex_lock", 1, address) + record(now, tid, tid, "rmutex_lock", 2, 0))
            depth[key] = depth.get(key, 0) + 1
            if depth[key] == 1:
                since[key] = now
        else:
            lines.append(record(now, tid, tid, "rmutex_unlock", 0, address))
            if depth.get(key, 0) > 0:
                depth[key] -= 1
                if depth[key] == 0:
                    expected[address].append((now - since.pop(key)) * 1000)
    for (_, address), start in since.items():
        expected[address].append((now - start) * 1000 + 1)
    directory = tmp_path_factory.mktemp("holds")
    (directory / "tr.0000001.001").write_text("".join(lines))
    table, _ = lock_tables(open_trace(directory))
    for row in table:
        lengths = expected[int(row["address"], 16)]
        assert row["holds"] == len(lengths)
        assert row["hold_ns"] == (sum(lengths) if lengths else None)
        assert row["waits"] == 0

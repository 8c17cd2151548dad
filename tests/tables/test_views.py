"""Every view and macro of SQL equals statistics, links or columns to the cycle: workloads, releases, and losses."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import scope_of
from satview.analysis.times.message_times import IS_CALL, SHARES, occurrences
from satview.answers.snapshot import snapshot
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import NAMES_BY_VALUE
from satview.linkage.blockers import blockers
from satview.linkage.latencies import latencies
from satview.linkage.links import OPEN
from satview.linkage.transactions import transactions
from satview.linkage.wake_ups import wake_ups
from satview.opened import with_answers
from satview.store.time_ranges import losses
from satview.tables.schema import SCHEMAS, views
from tests.helpers.extent import fewer
from tests.tables.conftest import CASES, QUERIED

BIN_NS = 7_000_000
TESTED: dict[str, object] = {}


@pytest.fixture(scope="module", params=fewer(QUERIED, 2))
def trace(request, tmp_path_factory):
    return with_answers(CASES[request.param](tmp_path_factory.mktemp("views")))


@pytest.fixture(scope="module")
def found(trace):
    return Statistics(trace)


def of(*names):
    """Mark a test as the one of some views; `test_every_view_is_tested` looks for all."""

    def keep(test):
        TESTED.update(dict.fromkeys(names, test))
        return test

    return keep


def rows_of(trace, view, *arguments):
    given = f"({', '.join(map(str, arguments))})" if arguments else ""
    return trace.sql(f"select * from {view}{given}")


def by(result, *keys):
    """Return the rows of a result by key columns, each row a dict."""
    names = result.columns
    rows = [dict(zip(names, row, strict=True)) for row in result.rows()]
    found = {tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]: row for row in rows}
    assert len(found) == len(rows)
    return found


def thirds(trace):
    """Return the middle third of a trace: the window, and its bounds in nanoseconds, whole ones of this clock."""
    length_ns = trace.clock.duration_ns(trace.window.length)
    from_ns, to_ns = length_ns // 3, max(length_ns * 2 // 3, length_ns // 3 + 1)
    window = TimeWindow(trace.clock.cycles(from_ns), trace.clock.cycles(to_ns))
    return window, from_ns, to_ns


def bins(trace):
    """Return the windows of the bins of BIN_NS."""
    clock, end = trace.clock, trace.window.end
    count = clock.ns(end - 1) // BIN_NS + 1
    return [
        TimeWindow(clock.cycles(i * BIN_NS), min(clock.cycles((i + 1) * BIN_NS), end)) for i in range(min(count, 8))
    ]


def ranked(values, share):
    """Return the value that a share of the values does not exceed, by sorting."""
    values = sorted(values)
    return values[max(int(np.ceil(share * len(values))) - 1, 0)]


def grouped(*columns):
    """Return value lists by key: the last column by the others."""
    found = defaultdict(list)
    for *key, value in zip(*(np.asarray(column).tolist() for column in columns), strict=True):
        found[tuple(key) if len(key) > 1 else key[0]].append(value)
    return found


@of("cpu_load")
def test_cpu_load(trace, found):
    result, cpus = rows_of(trace, "cpu_load"), found.cpus
    for name in ("busy_cycles", "idle_cycles", "interrupt_cycles", "unknown_cycles"):
        assert result[name].tolist() == getattr(cpus, name).tolist(), name
    share = 100.0 * cpus.busy_cycles / trace.window.length
    assert result["busy_percent"].tolist() == pytest.approx(share.tolist())


@of("load_between", "thread_load_between", "states_between")
def test_parts_of_the_trace(trace):
    window, *bounds = thirds(trace)
    part = Statistics(trace, window)
    result, cpus = rows_of(trace, "load_between", *bounds), part.cpus
    for name in ("busy_cycles", "idle_cycles", "interrupt_cycles", "unknown_cycles"):
        assert result[name].tolist() == getattr(cpus, name).tolist(), name
    names, states = NAMES_BY_VALUE, part.states
    expected = {(thread, names[value]): (count, total) for thread, value, count, total in zip(
        states.thread.tolist(), states.value.tolist(), states.count.tolist(), states.total_cycles.tolist(),
        strict=True)}  # fmt: skip
    result = by(rows_of(trace, "states_between", *bounds), "thread", "state")
    assert {key: (row["count"], row["total_cycles"]) for key, row in result.items()} == expected
    if not part.measures_cpu:
        ran = by(rows_of(trace, "thread_load_between", *bounds), "thread")
        cpu = part.threads.cpu_cycles
        assert {thread: row["cpu_cycles"] for thread, row in ran.items()} == {
            thread: int(cpu[thread]) for thread in range(1, len(cpu)) if thread in ran or cpu[thread]}  # fmt: skip


@of("load_per", "load_per_second", "process_load_per")
def test_load_over_time(trace):
    names = ("busy_cycles", "idle_cycles", "interrupt_cycles", "unknown_cycles")
    result = by(rows_of(trace, "load_per", BIN_NS), "cpu", "bin")
    processes = by(rows_of(trace, "process_load_per", BIN_NS), "process", "bin")
    for number, window in enumerate(bins(trace)):
        part = Statistics(trace, window)
        for cpu in range(trace.cpu_count):
            assert [result[cpu, number][name] for name in names] == [getattr(part.cpus, name)[cpu] for name in names]
        if not part.measures_cpu:
            expected = dict(enumerate(part.processes.cpu_cycles.tolist()))
            reported = {p: row["cpu_cycles"] for (p, at), row in processes.items() if at == number and p > 0}
            assert reported == {
                process: expected[process] for process in expected if process in reported or expected[process]
            }
    assert sum(rows_of(trace, "load_per_second")["busy_cycles"]) == sum(row["busy_cycles"] for row in result.values())


@of("cpu_runs", "longest_runs", "cpu_threads", "switch_rate_per")
def test_runs_of_cpus(trace, found):
    result, cpus = by(rows_of(trace, "cpu_runs"), "cpu"), found.cpus
    for cpu in range(trace.cpu_count):
        row = result[cpu]
        assert (row["runs"], row["switches"]) == (cpus.runs[cpu], cpus.switches[cpu])
        if cpus.busiest[cpu]:
            assert row["longest_run_cycles"] == cpus.longest_run_cycles[cpu]
    longest = rows_of(trace, "longest_runs")["length_cycles"].tolist()
    assert longest == sorted(longest, reverse=True)
    assert not longest or longest[0] == max(row["longest_run_cycles"] for row in result.values())
    busiest = {}
    for cpu, thread, _, cycles, _ in rows_of(trace, "cpu_threads").rows():
        busiest.setdefault(cpu, cycles)
        assert thread > 0 or not cpus.busiest[cpu]
    assert {cpu: cycles for cpu, cycles in enumerate(cpus.busiest_cycles.tolist()) if cpus.busiest[cpu]} == {
        cpu: cycles for cpu, cycles in busiest.items() if cpus.busiest[cpu]}  # fmt: skip
    rates = rows_of(trace, "switch_rate_per", BIN_NS)
    assert (sum(rates["runs"]), sum(rates["switches"])) == (sum(cpus.runs), sum(cpus.switches))
    for number, window in enumerate(bins(trace)[:4]):
        assert sum(rates["runs"][rates["bin"] == number]) == sum(Statistics(trace, window).cpus.runs)


@of("thread_load", "process_load", "interrupted_threads", "preemptions")
def test_threads_and_processes(trace, found):
    threads, processes = found.threads, found.processes
    result = by(rows_of(trace, "thread_load"), "thread")
    assert sorted(result) == list(range(1, len(trace.threads)))
    names = ["interrupted_cycles", "run_cycles", "runs", "migrations", "longest_run_cycles"]
    if found.measures_cpu:
        assert all(row["cpu_cycles"] == row["run_cycles"] for row in result.values()), "RUNNING, nothing measured"
        assert "was RUNNING, which is not known to wait" in SCHEMAS["run"].column("cpu_cycles").meaning
    else:
        names.append("cpu_cycles")
    for name in names:
        assert {thread: row[name] for thread, row in result.items()} == dict(
            enumerate(getattr(threads, name).tolist()[1:], 1)), name  # fmt: skip
    result = by(rows_of(trace, "process_load"), "process")
    for name in set(names) & {"cpu_cycles", "interrupted_cycles", "runs", "migrations"}:
        expected = dict(enumerate(getattr(processes, name).tolist()[1:], 1))
        assert {process: row[name] for process, row in result.items()} == expected, name
    handled = by(rows_of(trace, "interrupted_threads"), "thread")
    assert {thread: row["interrupted_cycles"] for thread, row in handled.items() if thread > 0} == {
        thread: cycles for thread, cycles in enumerate(threads.interrupted_cycles.tolist()) if cycles and thread
    }
    preempted = by(rows_of(trace, "preemptions"), "thread")
    assert {thread: row["count"] for thread, row in preempted.items()} == {
        thread: count for thread, count in enumerate(threads.preemptions.tolist()) if count}  # fmt: skip


@of("thread_states", "states_at")
def test_states(trace, found):
    names, states = NAMES_BY_VALUE, found.states
    result = by(rows_of(trace, "thread_states"), "thread", "state")
    columns = (states.thread, states.value, states.count, states.total_cycles, states.longest_cycles)
    assert {key: (row["count"], row["total_cycles"], row["longest_cycles"]) for key, row in result.items()} == {
        (thread, names[value]): rest for thread, value, *rest in zip(*(c.tolist() for c in columns), strict=True)
        for rest in [tuple(rest)]}  # fmt: skip
    _, at_ns, _ = thirds(trace)
    now = by(rows_of(trace, "states_at", at_ns), "thread")
    shown = snapshot(trace, trace.clock.cycles(at_ns))
    expected = dict(zip(shown["thread"].tolist(), shown["state"].tolist(), strict=True))
    hidden = ("ABSENT", "WAITING")  # of idle threads a snapshot shows those that have a CPU
    assert {thread: row["state"] for thread, row in now.items() if row["state"] not in hidden} == expected


@of("state_percentiles", "ready_wait", "run_percentiles")
def test_percentiles_of_states_and_runs(trace):
    """What the trace cuts counts, as long as it is seen."""
    states, runs = trace.table("state").to_pandas(), trace.table("run").to_pandas()
    result = by(rows_of(trace, "state_percentiles"), "state")
    assert set(result) == set(states["state"])
    for state, mine in states.groupby("state"):
        row, lengths = result[state], sorted(mine["length_cycles"].tolist())
        assert (row["count"], row["cut"]) == (len(lengths), int(mine["is_cut"].sum()))
        assert [row[f"p{name}_cycles"] for name in (50, 90, 99, 999)] == [ranked(lengths, share) for share in SHARES]
    ready = states[states["state"] == "READY"]
    for view, rows in (("ready_wait", ready), ("run_percentiles", runs[~runs["is_idle"]])):
        reported = by(rows_of(trace, view), "thread")
        assert set(reported) == set(rows["thread"])
        for thread, mine in rows.groupby("thread"):
            row, lengths = reported[thread], sorted(mine["length_cycles"].tolist())
            names = ("count", "cut", "p50_cycles", "p90_cycles", "p99_cycles", "most_cycles")
            assert [row[name] for name in names] == [
                len(lengths), int(mine["is_cut"].sum()), *(ranked(lengths, share) for share in (0.5, 0.9, 0.99)),
                lengths[-1]]  # fmt: skip


@of("thread_migrations", "migrations_between")
def test_migrations(trace, found):
    moved = found.migrations
    expected = sorted(zip(moved.thread.tolist(), moved.to_cpu.tolist(), moved.from_cpu.tolist(),
                          moved.time_cycles.tolist(), strict=True))  # fmt: skip
    result = rows_of(trace, "thread_migrations").rows()
    reported = [(thread, to_cpu, -1 if from_cpu is None else from_cpu, time)
            for thread, _, from_cpu, to_cpu, time, *_ in result]  # fmt: skip
    assert sorted(reported) == expected
    between = {(-1 if from_cpu is None else from_cpu, to_cpu): count
               for from_cpu, to_cpu, count in rows_of(trace, "migrations_between").rows()}  # fmt: skip
    assert between == Counter((row[2], row[1]) for row in expected)


@of("process_lifetimes")
def test_process_lifetimes(trace):
    processes = trace.processes
    expected = np.flatnonzero((processes.created_cycles >= 0) | (processes.destroyed_cycles >= 0)).tolist()
    assert sorted(rows_of(trace, "process_lifetimes")["process"].tolist()) == expected


def activations_of(trace):
    """Return (thread, start, end, ran, is whole) of each span without a wait, by a loop over the table of states."""
    table = trace.table("state")
    columns = (table[name].tolist() for name in ("thread", "state", "start_cycles", "end_cycles", "is_cut"))
    found, last = [], (-1, "", True)
    for thread, state, start, end, is_cut in zip(*columns, strict=True):
        before, last = last, (thread, state, is_cut)
        if state not in ("READY", "RUNNING"):
            continue
        if before[0] == thread and before[1] in ("READY", "RUNNING"):
            found[-1][2], found[-1][4] = end, found[-1][4] and not is_cut
        else:
            is_known = before[0] == thread and before[1] != "UNKNOWN"
            found.append([thread, start, end, 0, is_known and not is_cut])
        found[-1][3] += (end - start) * (state == "RUNNING")
    return found


@of("response_times", "overruns")
def test_response_times(trace):
    rows = list(activations_of(trace))
    lengths = grouped([row[0] for row in rows], [row[2] - row[1] for row in rows])
    ran = grouped([row[0] for row in rows], [row[3] for row in rows])
    result = by(rows_of(trace, "response_times"), "thread")
    assert set(result) == set(lengths)
    for thread, row in result.items():
        assert [row[name] for name in ("count", "p50_cycles", "p99_cycles", "most_cycles", "running_cycles")] == [
            len(lengths[thread]), ranked(lengths[thread], 0.5), ranked(lengths[thread], 0.99), max(lengths[thread]),
            sum(ran[thread])]  # fmt: skip
    if lengths:
        thread = max(lengths, key=lambda thread: len(lengths[thread]))
        limit_ns = trace.clock.duration_ns(ranked(lengths[thread], 0.5))
        late = rows_of(trace, "overruns", thread, limit_ns)
        assert len(late) == sum(trace.clock.duration_ns(length) > limit_ns for length in lengths[thread])


@of("periods")
def test_periods(trace):
    lost = losses(trace)
    result = by(rows_of(trace, "periods"), "thread")
    starts = grouped(*zip(*((row[0], row[1]) for row in activations_of(trace)), strict=True)) if result else {}
    for thread, row in result.items():
        if len(lost):
            assert row["least_cycles"] > 0
            continue
        gaps = np.diff(starts[thread])
        assert row["count"] in (len(gaps), len(gaps) - 1), "the first of all may be cut"
        gaps = gaps[len(gaps) - row["count"] :].tolist()
        names = ("least_cycles", "p50_cycles", "p99_cycles", "most_cycles", "jitter_cycles")
        assert [row[name] for name in names] == [
            min(gaps), ranked(gaps, 0.5), ranked(gaps, 0.99), max(gaps), max(gaps) - min(gaps)]  # fmt: skip


@of("call_times", "call_errors", "calls_by_thread", "open_calls", "longest_calls")
def test_kernel_calls(trace, found):
    calls = found.calls
    name = [trace.catalogue.name(code) for code in calls.code.tolist()]
    result = by(rows_of(trace, "call_times"), "name")
    assert sorted(result) == sorted(name)
    for i, call in enumerate(name):
        row, times = result[call], calls.times
        reported = (
            "count", "ended", "total_cycles", "least_cycles", "p99_cycles", "most_cycles", "failed", "interrupted",
        )  # fmt: skip
        assert [row[column] or 0 for column in reported] == [
            calls.count[i], times.count[i], times.total_cycles[i], times.least_cycles[i], times.p99_cycles[i],
            times.most_cycles[i], calls.failed[i], calls.interrupted[i]], call  # fmt: skip
        assert (row["running_cycles"] or 0) == calls.running.total_cycles[i]
    errors = {(call, errno): count for call, errno, count in rows_of(trace, "call_errors").rows()}
    assert errors == {(call, errno): count for i, call in enumerate(name) for errno, count in calls.errors[i]}
    by_thread = Counter()
    for row in by(rows_of(trace, "calls_by_thread"), "thread", "name").values():
        by_thread[row["thread"]] += row["count"]
    logged = found.threads.calls.tolist()
    assert by_thread == Counter({thread: count for thread, count in enumerate(logged) if count})
    assert len(rows_of(trace, "open_calls")) == sum(calls.count) - sum(calls.times.count)
    longest = rows_of(trace, "longest_calls")
    if len(longest):
        assert longest["length_cycles"][0] == max(calls.times.most_cycles)
        assert IS_CALL[trace.events.code[longest["event"]]].all()


@of("message_pairs", "cpu_messages")
def test_messages(trace, found):
    messages = found.messages
    result = by(rows_of(trace, "message_pairs"), "client", "server_pid")
    assert sorted(result) == sorted(zip(messages.client.tolist(), messages.server_pid.tolist(), strict=True))
    for i, key in enumerate(zip(messages.client.tolist(), messages.server_pid.tolist(), strict=True)):
        row, send, reply = result[key], messages.send_blocked, messages.reply_blocked
        reported = ("count", "send_blocked", "send_blocked_cycles", "reply_blocked", "reply_blocked_cycles", "sized",
                "total_bytes")  # fmt: skip
        assert [row[name] for name in reported] == [
            messages.count[i], send.count[i], send.total_cycles[i], reply.count[i], reply.total_cycles[i],
            messages.sized[i], messages.bytes[i]]  # fmt: skip
    counts = found.cpu_messages
    reported = {(sent, received): count for sent, received, count in rows_of(trace, "cpu_messages").rows()}
    expected = {(sent, received): count for (sent, received), count in np.ndenumerate(counts.count) if count}
    expected |= {(sent, None): count for sent, count in enumerate(counts.unknown.tolist()) if count}
    assert reported == expected


@pytest.mark.thorough
@of("message_legs", "round_trips", "server_times", "slowest_messages", "unanswered_messages", "message_types",
    "nested_messages")  # fmt: skip
def test_legs_of_messages(trace):
    scope, made = scope_of(trace, None, None, None, None), transactions(trace)
    legs = by(rows_of(trace, "message_legs"), "leg")
    for leg in legs:
        expected = occurrences(scope, leg)
        assert legs[leg]["count"] == len(expected)
        if len(expected):
            reported = tuple(legs[leg][f"p{p}_cycles"] for p in (50, 90, 99, 999))
            assert reported == expected.percentiles(SHARES), leg
    known = (made.round_trip_cycles >= 0) & (made.client >= 0)
    trips = grouped(made.client[known], made.server_pid[known], made.round_trip_cycles[known])
    reported = by(rows_of(trace, "round_trips"), "client", "server_pid")
    names = ("count", "p50_cycles", "p99_cycles", "total_cycles")
    assert {key: [row[name] for name in names] for key, row in reported.items()} == {
        key: [len(all_), ranked(all_, 0.5), ranked(all_, 0.99), sum(all_)] for key, all_ in trips.items()}  # fmt: skip
    table = trace.table("message")  # what is not over counts up to the end of the trace
    open_ = (table["round_trip_known"] == "at least") & (made.client >= 0)
    assert not np.any(open_ & known)
    assert table["round_trip_cycles"][known].tolist() == made.round_trip_cycles[known].tolist()
    slowest = rows_of(trace, "slowest_messages")
    assert (
        slowest["round_trip_ns"].tolist() == sorted(table["round_trip_ns"][known | open_].tolist(), reverse=True)[:100]
    )
    assert legs["round_trip"]["unfinished"] == np.count_nonzero(table["round_trip_known"] == "at least")
    served = made.server >= 0
    reported = by(rows_of(trace, "server_times"), "server")
    assert {server: row["received"] for server, row in reported.items()} == Counter(made.server[served].tolist())
    for server, row in reported.items():
        work = made.service_cycles[(made.server == server) & (made.service_cycles >= 0)]
        assert row["answered"] == len(work)
        assert (row["service_cycles"] or 0) == work.sum()
        assert not len(work) or row["p99_service_cycles"] == ranked(work.tolist(), 0.99)
    assert len(rows_of(trace, "unanswered_messages")) == np.count_nonzero(made.reply_row < 0)
    is_typed = made.message_type >= 0
    types = Counter(zip(made.server_pid[is_typed].tolist(), made.message_type[is_typed].tolist(), strict=True))
    assert {(row[0], row[1]): row[2] for row in rows_of(trace, "message_types").rows()} == types
    nested = by(rows_of(trace, "nested_messages"), "message")
    assert {message: row["nested"] for message, row in nested.items()} == Counter(
        made.parent[made.parent >= 0].tolist()
    )


@of("client_times", "served")
def test_clients_and_servers(trace, found):
    bill = found.client_server
    result = by(rows_of(trace, "client_times"), "thread")
    for name in ("self_cycles", "imposed_cycles", "total_cycles", "own_cycles", "caused_cycles"):
        assert {thread: row[name] for thread, row in result.items()} == dict(
            enumerate(getattr(bill, name).tolist()[1:], 1)), name  # fmt: skip
    pairs = bill.imposed
    assert {(row[0], row[2]): row[4] for row in rows_of(trace, "served").rows()} == {
        (client, server): cycles for client, server, cycles in zip(
            pairs.client.tolist(), pairs.server.tolist(), pairs.cycles.tolist(), strict=True)}  # fmt: skip


@of("interrupt_times", "interrupt_rate", "interrupt_rate_per")
def test_interrupts(trace, found):
    table = found.interrupts
    result = by(rows_of(trace, "interrupt_times"), "vector")
    assert sorted(result) == table.vector.tolist()
    for i, vector in enumerate(table.vector.tolist()):
        row, times, latency = result[vector], table.times, table.latency
        reported = ("count", "total_cycles", "least_cycles", "p99_cycles", "most_cycles", "dispatched",
                "handler_entry_cycles", "longest_handler_entry_cycles")  # fmt: skip
        assert [row[name] for name in reported] == [
            table.count[i], times.total_cycles[i], times.least_cycles[i], times.p99_cycles[i], times.most_cycles[i],
            latency.count[i], latency.total_cycles[i], latency.most_cycles[i]]  # fmt: skip
    rates = rows_of(trace, "interrupt_rate_per", BIN_NS)
    assert sum(rates["count"]) == sum(table.count) == sum(rows_of(trace, "interrupt_rate")["count"])
    for number, window in enumerate(bins(trace)[:6]):
        part = Statistics(trace, window).interrupts
        reported, here = Counter(), rates["bin"] == number
        for vector, count in zip(rates["vector"][here].tolist(), rates["count"][here].tolist(), strict=True):
            reported[vector] += count
        assert reported == Counter(dict(zip(part.vector.tolist(), part.count.tolist(), strict=True)))


@of("interrupt_latencies", "pulse_latencies")
def test_latencies(trace):
    made = latencies(trace)
    known = (made.total_cycles >= 0) & (made.thread >= 0)
    of_interrupts = known & (made.number >= 0)
    totals = grouped(made.number[of_interrupts], made.thread[of_interrupts], made.total_cycles[of_interrupts])
    result = by(rows_of(trace, "interrupt_latencies"), "vector", "thread")
    names = ("count", "p50_cycles", "p99_cycles", "most_cycles")
    assert {key: [row[name] for name in names] for key, row in result.items()} == {
        key: [len(all_), ranked(all_, 0.5), ranked(all_, 0.99), max(all_)] for key, all_ in totals.items()}  # fmt: skip
    of_pulses = known & (made.pulse_row >= 0)
    totals = grouped(made.thread[of_pulses], made.total_cycles[of_pulses])
    result = by(rows_of(trace, "pulse_latencies"), "thread")
    assert {key: (row["count"], row["p99_cycles"], row["most_cycles"]) for key, row in result.items()} == {
        key: (len(all_), ranked(all_, 0.99), max(all_)) for key, all_ in totals.items()}  # fmt: skip


@of("pulse_times")
def test_pulses(trace):
    made = latencies(trace)
    sent = made.pulse_row[made.pulse_row >= 0]
    result = by(rows_of(trace, "pulse_times"), "server_pid", "scoid")
    deaths = trace.code_counts[wire.code(wire.WireClass.COMM, 6)]  # no latency: they come with the end of a process
    assert sum(row["count"] for row in result.values()) == len(sent) + deaths
    received = np.count_nonzero((made.pulse_row >= 0) & (made.received_row >= 0))
    assert received <= sum(row["received"] for row in result.values()) <= received + deaths
    longest = max((row["most_cycles"] for row in result.values() if row["most_cycles"] is not None), default=0)
    both = (made.pulse_row >= 0) & (made.received_row >= 0)
    time = trace.events.time_cycles
    assert longest >= (time[made.received_row[both]] - time[made.pulse_row[both]]).max(initial=0)


@of("lock_contention", "lock_holders", "blocked_by", "waits_by_state")
def test_waits(trace):
    found, names = blockers(trace), NAMES_BY_VALUE
    waits = found.waits
    time = trace.events.time_cycles
    is_open = waits.end_row == OPEN
    end = np.where(is_open, trace.window.end, time[np.where(is_open, 0, waits.end_row)]) if len(time) else is_open
    length = end - time[waits.row]
    states = np.array([names[value] for value in range(len(names))], object)[waits.value]
    result = by(rows_of(trace, "waits_by_state"), "state")
    totals = grouped(states, length)
    assert {state: (row["waits"], row["total_cycles"], row["most_cycles"]) for state, row in result.items()} == {
        state: (len(all_), sum(all_), max(all_)) for state, all_ in totals.items()}  # fmt: skip
    assert sum(row["open"] for row in result.values()) == np.count_nonzero(is_open)
    mutex = (states == "MUTEX") & waits.has_object & (waits.object != -1)
    totals = grouped(trace.threads.process[waits.thread[mutex]], waits.object[mutex], length[mutex])
    result = by(rows_of(trace, "lock_contention"), "process", "object")
    assert {key: (row["waits"], row["total_cycles"], row["p99_cycles"]) for key, row in result.items()} == {
        key: (len(all_), sum(all_), ranked(all_, 0.99)) for key, all_ in totals.items()}  # fmt: skip
    held = (states == "MUTEX") & (found.thread >= 0)
    totals = grouped(found.thread[held], waits.thread[held], length[held])
    result = by(rows_of(trace, "lock_holders"), "blocker", "thread")
    assert {key: (row["waits"], row["total_cycles"]) for key, row in result.items()} == {
        key: (len(all_), sum(all_)) for key, all_ in totals.items()}  # fmt: skip
    known = found.pid >= 0
    totals = grouped(waits.thread[known], states[known], found.pid[known], length[known])
    result = by(rows_of(trace, "blocked_by"), "thread", "state", "blocker_pid")
    assert {key: (row["waits"], row["total_cycles"]) for key, row in result.items()} == {
        key: (len(all_), sum(all_)) for key, all_ in totals.items()}  # fmt: skip


@of("wakers", "wake_up_times")
def test_wake_ups(trace):
    table, events = wake_ups(trace), trace.events
    waker, woken = events.thread[table.from_row].tolist(), events.thread[table.to_row].tolist()
    result = by(rows_of(trace, "wakers"), "waker", "thread")
    assert {key: row["count"] for key, row in result.items()} == Counter(zip(waker, woken, strict=True))
    lengths = grouped(woken, events.time_cycles[table.to_row] - events.time_cycles[table.from_row])
    result = by(rows_of(trace, "wake_up_times"), "thread")
    assert {thread: (row["count"], row["total_cycles"], row["most_cycles"]) for thread, row in result.items()} == {
        thread: (len(all_), sum(all_), max(all_)) for thread, all_ in lengths.items()}  # fmt: skip


@of("event_counts", "class_counts", "thread_events", "event_rate", "event_rate_per")
def test_events(trace, found):
    events = found.events
    result = by(rows_of(trace, "event_counts"), "code")  # forms of one name, as of 32 and 64 bits, are one row
    columns = (events.code, events.count, events.first, events.last)
    assert sorted((code, row["count"], row["first_event"], row["last_event"]) for code, row in result.items()) == list(
        zip(*(c.tolist() for c in columns), strict=True)
    )
    assert len({(row["class"], row["name"]) for row in result.values()}) == len(result)
    assert dict(rows_of(trace, "class_counts").rows()) == trace.class_counts()
    logged = by(rows_of(trace, "thread_events"), "thread")
    assert {thread: row["count"] for thread, row in logged.items()} == {
        thread: count for thread, count in enumerate(found.threads.events.tolist()) if count}  # fmt: skip
    rates = rows_of(trace, "event_rate_per", BIN_NS)
    for number, window in enumerate(bins(trace)):
        rows = trace.rows_between(window)
        assert sum(rates["count"][rates["bin"] == number]) == rows.stop - rows.start
    assert sum(rows_of(trace, "event_rate")["count"]) == len(trace.events)


@of("losses_by_cpu", "verdict_counts")
def test_losses_and_verdicts(trace):
    lost = losses(trace)
    totals = grouped(lost[:, 2], lost[:, 1] - lost[:, 0])
    result = by(rows_of(trace, "losses_by_cpu"), "cpu")
    assert {-1 if cpu is None else cpu: (row["count"], row["total_cycles"]) for cpu, row in result.items()} == {
        cpu: (len(all_), sum(all_)) for cpu, all_ in totals.items()}  # fmt: skip
    reported = {kind: count for kind, _, count in rows_of(trace, "verdict_counts").rows()}
    assert reported == Counter(str(verdict.kind) for verdict in trace.verdicts())


def test_every_view_is_tested():
    assert set(TESTED) == set(views())
    assert len(views()) >= 40


def test_the_lossy_traces_do_lose(trace, request):
    name = request.node.callspec.params["trace"]
    assert len(losses(trace)) > 3 if name.startswith("lossy") else len(losses(trace)) == 0

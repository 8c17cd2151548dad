"""Schedules of Linux: one and the same in every form that is read, and what damage costs."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import satview
from satview.__main__ import main
from satview.base.errors import TraceFormatError
from satview.core import loading
from satview.events.states import STATE_BY_NAME
from satview.formats.linux.records import parse_format
from satview.store.trace import Trace
from satview.tables.table import table
from tests.core.reference import loading as reference
from tests.helpers import linux_scene, perf_data, trace_dat
from tests.helpers.commands import satview as command
from tests.helpers.kev import TraceBuilder

MS = linux_scene.MS
FORMS = {
    "trace.dat": linux_scene.as_trace_dat,
    "perf.data": linux_scene.as_perf_data,
    "perf-script": linux_scene.TEXT.encode,
    "perfetto": linux_scene.as_perfetto,
    "perfetto compact": lambda: linux_scene.as_perfetto(is_compact=True),
}


def _states(trace: Trace, name: str) -> list[tuple[str, int]]:
    rows = trace.states.of(trace.threads.names.index(name))
    return [
        (trace.catalogue.name(int(trace.events.code[row])), int(trace.events.time_cycles[row]) - linux_scene.START)
        for row in rows
    ]


def _problems(trace: Trace) -> dict[str, str]:
    return {problem.kind.slug: problem.detail for problem in trace.problems}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_the_same(tmp_path, form):
    trace = linux_scene.opened(tmp_path, FORMS[form]())
    assert trace.format == form.split()[0]
    assert {name: _states(trace, name) for name in linux_scene.TRUTH} == linux_scene.TRUTH
    assert trace.cpu_count == 2
    # Who ran: client 3 ms and 292.9 ms on CPU 0, server 3.5 ms on CPU 1; swapper is idle.
    runs = table(trace, "run")
    busy = ~runs["is_idle"]
    assert sorted(zip(runs["cpu"][busy].tolist(), runs["length_ns"][busy].tolist(), strict=True)) == [
        (0, 3 * MS), (0, 292_900_000), (1, 3_500_000)
    ]  # fmt: skip
    client = trace.threads.row(100 if form == "trace.dat" else 90, 100)
    assert len(satview.select(trace, "event == sched_waking and arg.prio == 100")) == 1
    woken = table(trace, "wake_up")
    server = trace.threads.names.index("server")
    assert woken["waker"][woken["thread"] == server].tolist() == [client]
    assert _problems(trace)["foreign"].endswith("names, states and events are those of Linux")
    names = [trace.catalogue.name(int(code)) for code in trace.events.code]
    assert names.count("irq_handler_entry") == 1


@pytest.mark.thorough
def test_it_says_that_it_is_foreign(tmp_path):
    path = tmp_path / "host.dat"
    path.write_bytes(linux_scene.as_trace_dat())
    shown = command("info", path).stdout.decode()
    assert "trace.dat of trace-cmd, version 6" in shown
    assert "Trace of another system" in shown
    assert "Linux (tables of linux)" in shown
    assert b"locks" not in command("doctor", path).stdout.lower()
    checked = command("check", path)
    assert checked.returncode == 3
    assert (
        b"warning: starvation  From 0.006 000 000 s, To 0.300 000 001 s" in checked.stdout
    )  # server, READY to the end
    assert b"capture" not in checked.stdout
    assert b"events that no .kev file can hold" in command("export", path, "-o", tmp_path / "x.kev").stderr
    assert b"not printed in the vendor's layout" in command("traceprinter", "-f", path).stderr
    listed = command("export", path, "-o", tmp_path / "x.csv", "--format", "list")
    assert listed.returncode == 0
    assert (tmp_path / "x.csv").read_text().count("\n") == 1 + 17  # 6 switches and 2 wake-ups are two events each


def test_what_a_schedule_cannot_tell_is_said_in_its_own_words(tmp_path, capsys):
    """No event says for whom a thread waits, so that no deadlock can be seen; runmasks are of QNX."""
    path = tmp_path / "s.dat"
    path.write_bytes(linux_scene.as_trace_dat())
    assert main(["check", str(path), "--kind", "deadlock", "--kind", "missed-period"]) == 4
    said = capsys.readouterr().out
    assert "deadlock: a schedule does not say for whom a thread waits." in said
    assert "missed-period: SLEEPING does not say what a thread waits for." in said
    assert main(["check", str(path)]) == 3
    said = capsys.readouterr().out
    assert "server 200 (server) is ready for 294.0 ms" in said
    assert "; idle meanwhile: CPU 1 294.0 ms." in said
    assert "growing-queue, interrupt-flood, leak, lock-contention, lost-wakeup, priority-inversion, " in said
    assert ": a schedule has no kernel calls, messages, pulses, interrupts and priorities of QNX" in said
    assert main(["why", str(path), "--thread", "server", "--at", "10ms"]) == 0
    said += capsys.readouterr().out
    assert "CPU 1 is idle" in said
    assert main(["doctor", str(path)]) == 0
    said += capsys.readouterr().out
    assert "Exact: Events, Wake-ups, Names" in said
    assert not re.search("runmask|partition|dump of all|timers|captured", said)
    switches = [event for event in linux_scene._EVENTS if len(event[2]) != len(trace_dat.waking(1, "a", 1, 1, 1))]
    assert len(switches) == 7
    path.write_bytes(linux_scene.as_trace_dat(switches))
    assert main(["doctor", str(path)]) == 0
    assert "Lower bound: Wake-ups\n  the trace has no events sched_waking" in capsys.readouterr().out


@pytest.mark.thorough
def test_no_capture_helps_a_schedule_beside_a_trace_of_qnx(tmp_path, capsys):
    """What the schedule alone lacks on a common axis is no class of events to capture on the target."""
    (tmp_path / "s.dat").write_bytes(linux_scene.as_trace_dat())
    TraceBuilder(cpus=2).time_event(0).process_name(1, 7, "a").state("RUNNING", 10, 7, 1).write(tmp_path / "q.kev")
    axis = str(tmp_path / "both.sataxis")
    assert main(["together", str(tmp_path / "q.kev"), str(tmp_path / "s.dat"), "-o", axis]) == 0
    capsys.readouterr()
    assert main(["doctor", axis]) == 0
    said = capsys.readouterr().out
    assert "q: the trace has no messages; s: a schedule has no kernel calls, messages, pulses, interrupts and " in said
    assert "s: a schedule does not say for whom a thread waits\n\n" in said
    assert main(["check", axis, "--kind", "deadlock"]) == 4
    assert "capture" not in capsys.readouterr().out


def test_lanes_have_states_of_linux(tmp_path):
    trace = linux_scene.opened(tmp_path, linux_scene.as_trace_dat())
    values = table(trace, "state")
    texts = values.column_values("state")
    assert {"SLEEPING", "UNINTERRUPTIBLE"} <= {texts.texts[code] for code in texts.code.tolist()}
    assert STATE_BY_NAME["SLEEPING"].meaning.endswith("(S of Linux)")


# ---- trace.dat -----------------------------------------------------------------------------------------------------


def test_a_damaged_page_costs_that_page(tmp_path):
    content = bytearray(linux_scene.as_trace_dat())
    at = len(content) - 3 * trace_dat.PAGE  # the first page of CPU 0
    content[at + 16 : at + 20] = (28 | 0xFFFFF << 5).to_bytes(4, "little")
    content[at + 8 : at + 12] = (40).to_bytes(4, "little")
    trace = linux_scene.opened(tmp_path, bytes(content))
    assert "runs over its end" in _problems(trace)["section-cut"]
    assert _states(trace, "client")[-1] == ("UNINTERRUPTIBLE", 300 * MS)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ((10, b"9"), "version '9' of trace.dat is not known"),
        ((14, b"\0\0\0\0"), "pages of 0 bytes cannot be"),
        ((30, b"\xff\xff\xff\xff\xff\xff\xff\x7f"), "the file ends inside header_page"),
    ],
)
def test_a_head_that_cannot_be(tmp_path, change, what):
    content = bytearray(linux_scene.as_trace_dat())
    content[change[0] : change[0] + len(change[1])] = change[1]
    with pytest.raises(TraceFormatError, match=what):
        linux_scene.opened(tmp_path, bytes(content))


@pytest.mark.skipif(shutil.which("trace-cmd") is None, reason="trace-cmd is not installed")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_version_7_as_trace_cmd_converts_it(tmp_path, compression):
    (tmp_path / "6.dat").write_bytes(linux_scene.as_trace_dat())
    subprocess.run(["trace-cmd", "convert", "-i", "6.dat", "-o", "7.dat", "--file-version", "7", "--compression",
                    compression], cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
    trace = satview.open_trace(tmp_path / "7.dat")
    assert dict(trace.header.pairs)["SOURCE"] == "trace.dat of trace-cmd, version 7"
    assert {name: _states(trace, name) for name in linux_scene.TRUTH} == linux_scene.TRUTH


@pytest.mark.parametrize("compression", ["none", "zlib", "zstd"])
def test_version_7(tmp_path, compression):
    trace = linux_scene.opened(tmp_path, trace_dat.version_7(linux_scene.as_trace_dat(), compression))
    assert {name: _states(trace, name) for name in linux_scene.TRUTH} == linux_scene.TRUTH
    assert trace.threads.names.count("client") == 1


# ---- perf.data and text --------------------------------------------------------------------------------------------


def test_a_hostile_line_takes_no_time(tmp_path):
    text = linux_scene.TEXT.encode() + b"a 1 " * 250_000 + b"\n" + b"-" * 1_000_000 + b"\n"
    trace = linux_scene.opened(tmp_path, text)
    assert _states(trace, "client") == linux_scene.TRUTH["client"]


# ---- Perfetto ------------------------------------------------------------------------------------------------------


def test_the_fields_of_messages_are_those_of_the_reference():
    chance = np.random.default_rng(1)
    good = np.frombuffer(linux_scene.as_perfetto(), np.uint8)
    for i in range(200):
        data = chance.integers(0, 256, 300, dtype=np.uint8) if i % 2 else good[:300].copy()
        data[chance.integers(0, 300, 3)] = chance.integers(0, 256, 3)
        edges = np.sort(chance.integers(0, 320, 6)).astype(np.int64)
        begin, end = edges[:5].copy(), edges[1:].copy()
        for one, other in zip(
            loading.protobuf_fields(data, begin, end), reference.protobuf_fields(data, begin, end), strict=True
        ):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("form", FORMS)
def test_any_damage_opens_or_is_refused(tmp_path, form):
    content, chance = FORMS[form](), np.random.default_rng(2)
    for _ in range(25):
        damaged = bytearray(content[: int(chance.integers(1, len(content)))] if chance.random() < 0.4 else content)
        for at in chance.integers(0, len(damaged), 6).tolist():
            damaged[at] = int(chance.integers(0, 256))
        try:
            trace = linux_scene.opened(tmp_path, bytes(damaged))
        except TraceFormatError as error:
            assert error.what
            continue
        assert np.all(np.diff(trace.events.time_cycles) >= 0)
        for row in range(0, len(trace.events), 7):
            trace.payloads.decode(row)


@pytest.mark.parametrize("number", [-1, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63)])
def test_numbers_that_no_kernel_gives(tmp_path, number):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protocol

    trace = protocol.Trace.FromString(linux_scene.as_perfetto())
    low = number if -(1 << 31) <= number < 1 << 31 else -5
    for packet in trace.packet[1:]:
        events = packet.ftrace_events
        events.cpu = number & 0xFFFFFFFF
        events.event.add(timestamp=number & (1 << 64) - 1, pid=7).sched_waking.pid = low
        switch = events.event.add(timestamp=linux_scene.START + MS, pid=7).sched_switch
        switch.next_pid, switch.prev_pid, switch.prev_state = low, low, number
    trace.packet[0].process_tree.threads.add(tid=100, tgid=low)
    opened = linux_scene.opened(tmp_path, trace.SerializeToString())
    assert np.all(np.diff(opened.events.time_cycles) >= 0)
    assert opened.cpu_count <= 256
    assert len(table(opened, "state")) > 0


def test_pages_that_are_nowhere(tmp_path):
    content = bytearray(linux_scene.as_trace_dat())
    position = content.index(b"flyrecord\0") + 10
    content[position : position + 8] = b"\xff" * 8
    opened = linux_scene.opened(tmp_path, bytes(content))
    assert "of the pages of CPU 0 are missing" in _problems(opened)["section-cut"]
    assert "server" in opened.threads.names


def test_a_thread_has_the_name_of_the_program_that_it_runs_last(tmp_path):
    def sample(ms, pid, record):
        return perf_data.sample(ms * MS, 0, pid, record)

    samples = [
        sample(1, 0, trace_dat.waking(0, "bash", 7, 120, 0)),
        sample(2, 0, trace_dat.switch(0, ("swapper/0", 0, 120, 0), ("bash", 7, 120))),
        sample(3, 7, trace_dat.switch(7, ("cat", 7, 120, 1), ("swapper/0", 0, 120))),
    ]
    trace = linux_scene.opened(tmp_path, perf_data.perf_data([perf_data.name(7, 7, "bash"), *samples]))
    assert "cat" in trace.threads.names
    assert "bash" not in trace.threads.names


@pytest.mark.parametrize("written", ["02", "2", "0x2", "0X02", "0o2", "09", "0777"])
def test_flags_are_read_as_c_writes_them(tmp_path, written):
    content = linux_scene.as_trace_dat()
    assert b"{ 0x02, " in content
    trace = linux_scene.opened(tmp_path, content.replace(b"{ 0x02, ", f"{{ {written:4}, ".encode()))
    assert len(trace.events) > 0
    if written in ("02", "2", "0x2"):
        assert {name: _states(trace, name) for name in linux_scene.TRUTH} == linux_scene.TRUTH


def test_numbers_of_a_format_have_bounds():
    nines = "9" * 5000
    head = "name: sched_switch\nID: 316\nformat:\n\tfield:long prev_state;\toffset:24;\tsize:8;\tsigned:1;\n"
    found = parse_format(f'{head}print fmt: {{ {nines}, "D" }}, {{ 010, "T" }}', "sched")
    assert found.state_flags == ((8, "T"),)
    assert parse_format(f"name: a\nID: {nines}\n", "sched") is None
    assert parse_format(head.replace("24", nines), "sched").fields == {}

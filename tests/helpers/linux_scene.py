"""One schedule of two CPUs in every form that satview reads; a millisecond is a column.

cpu0  client . . server's waker, then idle until it is woken again
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import satview
from satview.store.trace import Trace
from tests.helpers import perf_data, trace_dat

Events = Sequence[tuple[int, float, bytes]]
MS = 1_000_000
START = 5_000_000_000
IDLE = 0
# CPU, milliseconds, thread that logs, record: client runs 0..3 on CPU 0, wakes server at 2, sleeps (S) from 3 to 7;
# server runs 2..6 on CPU 1 and is preempted; client runs 7..300 and waits for a disk (D).
_EVENTS = (
    (0, 0, trace_dat.switch(0, ("swapper/0", 0, 120, 0), ("client", 100, 110))),
    (0, 1, trace_dat.interrupt(100, 42, "eth0")),
    (0, 2, trace_dat.waking(100, "server", 200, 100, 1)),
    (1, 2.5, trace_dat.switch(0, ("swapper/1", 0, 120, 0), ("server", 200, 100))),
    (0, 3, trace_dat.switch(100, ("client", 100, 110, 1), ("swapper/0", 0, 120))),
    (1, 6, trace_dat.switch(200, ("server", 200, 100, 256), ("swapper/1", 0, 120))),
    (0, 7, trace_dat.waking(0, "client", 100, 110, 0)),
    (0, 7.1, trace_dat.switch(0, ("swapper/0", 0, 120, 0), ("client", 100, 110))),
    (0, 300, trace_dat.switch(100, ("client", 100, 110, 2), ("swapper/0", 0, 120))),
)
NAMES = ((100, "client"), (200, "server"))
# What the threads did, by name: state and when it began, in ns from the start.
TRUTH = {
    "client": [("RUNNING", 0), ("SLEEPING", 3 * MS), ("READY", 7 * MS), ("RUNNING", 7_100_000),
               ("UNINTERRUPTIBLE", 300 * MS)],
    "server": [("READY", 2 * MS), ("RUNNING", 2_500_000), ("READY", 6 * MS)],
}  # fmt: skip
TEXT = """\
# a head
     swapper     0 [000]     5.000000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=100 next_prio=110
      client 90/100 [000]     5.001000: irq:irq_handler_entry: irq=42 name=eth0
      client 90/100 [000]     5.002000: sched:sched_waking: comm=server pid=200 prio=100 target_cpu=001
      <idle>-0     [001]     5.002500: sched_switch:         swapper/1:0 [120] R ==> server:200 [100]
      client-100   [000] d..2.     5.003000: sched_switch:         client:100 [110] S ==> swapper/0:0 [120]
      server-200   [001]     5.006000000: sched_switch:         server:200 [100] R+ ==> swapper/1:0 [120]
     swapper     0 [000]     5.007000: sched:sched_waking: comm=client pid=100 prio=110 target_cpu=000
     swapper     0 [000]     5.007100: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=100 next_prio=110
      client   100 [000]     5.300000: sched:sched_switch: prev_comm=client prev_pid=100 prev_prio=110 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120
"""  # noqa: E501


def _ns(ms: float) -> int:
    return START + round(ms * MS)


def as_trace_dat(events: Events = _EVENTS, names: Sequence[tuple[int, str]] = NAMES) -> bytes:
    """Return it as trace-cmd writes it, CPU 0 in two pages."""
    of_cpu = [[(_ns(ms), record) for cpu, ms, record in events if cpu == number] for number in (0, 1)]
    first = [trace_dat.page(of_cpu[0][:4]), trace_dat.page(of_cpu[0][4:])]
    return trace_dat.trace_dat([first, [trace_dat.page(of_cpu[1])]], names)


def as_perf_data(*more: bytes, events: Events = _EVENTS) -> bytes:
    """Return it as perf writes it: samples of a CPU after those of another one, as its buffers come."""
    process = {0: 0, 100: 90, 200: 200, 300: 90}
    records = [
        perf_data.sample(
            _ns(ms), cpu, process[int.from_bytes(record[4:8], "little" if trace_dat.ORDER == "<" else "big")], record
        )
        for number in (1, 0)
        for cpu, ms, record in events
        if cpu == number
    ]
    return perf_data.perf_data([perf_data.name(90, 100, "client"), perf_data.name(200, 200, "server"), *records, *more])


def as_perfetto(is_compact: bool = False, events: Events = _EVENTS) -> bytes:
    """Return it as Perfetto writes it, by Perfetto's own classes."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protocol

    trace = protocol.Trace()
    tree = trace.packet.add().process_tree
    tree.processes.add(pid=90, cmdline=["/bin/client", "-v"])
    tree.threads.add(tid=100, tgid=90)
    for number in (0, 1):
        bundle = trace.packet.add().ftrace_events
        bundle.cpu = number
        compact, last_switch, last_waking, texts = bundle.compact_sched, 0, 0, []
        for cpu, ms, record in events:
            if cpu != number:
                continue
            now, kind, pid = _ns(ms), int.from_bytes(record[:2], "little"), int.from_bytes(record[4:8], "little")
            if kind == 316:
                before, before_pid, before_prio, state, after, after_pid, after_prio = _switch_fields(record)
                if is_compact:
                    compact.switch_timestamp.append(now - last_switch)
                    compact.switch_prev_state.append(state)
                    compact.switch_next_pid.append(after_pid)
                    compact.switch_next_prio.append(after_prio)
                    texts += [after] if after not in texts else []
                    compact.switch_next_comm_index.append(texts.index(after))
                    last_switch = now
                else:
                    event = bundle.event.add(timestamp=now, pid=pid).sched_switch
                    event.prev_comm, event.prev_pid, event.prev_prio, event.prev_state = (
                        before, before_pid, before_prio, state)  # fmt: skip
                    event.next_comm, event.next_pid, event.next_prio = after, after_pid, after_prio
            elif kind == 317 and is_compact:
                name, woken, prio, target = _waking_fields(record)
                compact.waking_timestamp.append(now - last_waking)
                compact.waking_pid.append(woken)
                compact.waking_prio.append(prio)
                compact.waking_target_cpu.append(target)
                texts += [name] if name not in texts else []
                compact.waking_comm_index.append(texts.index(name))
                last_waking = now
            elif kind == 317:
                name, woken, prio, target = _waking_fields(record)
                bundle.event.add(timestamp=now, pid=pid).sched_waking.CopyFrom(
                    protocol.SchedWakingFtraceEvent(comm=name, pid=woken, prio=prio, target_cpu=target))  # fmt: skip
            else:
                bundle.event.add(timestamp=now, pid=pid).irq_handler_entry.CopyFrom(
                    protocol.IrqHandlerEntryFtraceEvent(irq=42, name="eth0"))  # fmt: skip
        compact.intern_table.extend(texts)
    return trace.SerializeToString()


def _switch_fields(record: bytes) -> tuple[str, int, int, int, str, int, int]:
    import struct

    before, pid, prio, state, after, after_pid, after_prio = struct.unpack("<16siiq16sii", record[8:])
    return before.rstrip(b"\0").decode(), pid, prio, state, after.rstrip(b"\0").decode(), after_pid, after_prio


def _waking_fields(record: bytes) -> tuple[str, int, int, int]:
    import struct

    name, pid, prio, cpu = struct.unpack("<16siii", record[8:])
    return name.rstrip(b"\0").decode(), pid, prio, cpu


def opened(folder: Path, content: bytes) -> Trace:
    """Open what a file has, whose name says nothing."""
    path = folder / "schedule"
    path.write_bytes(content)
    return satview.open_trace(path)

"""Traces of Perfetto as QNX's own probe writes them, by Perfetto's own classes: for tests and the fuzzer."""

from __future__ import annotations

import satview

CREATED, READY, RUNNING, SLEEPS, PAGE, STOPPED, DEAD, DESTROYED = range(1, 9)


def tid(pid, number):
    return pid << 32 | number


class Probe:
    """Packets at times in nanoseconds, turned into a file and opened."""

    def __init__(self, machine=0):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protocol

        self.trace, self.machine = protocol.Trace(), machine

    def packet(self, time):
        packet = self.trace.packet.add(timestamp=time, trusted_packet_sequence_id=1)
        if self.machine:
            packet.MergeFromString(b"\x90\x06" + bytes([self.machine]))  # field 98: machine_id
        return packet

    def process(self, pid, name, *threads, idle=()):
        tree = self.packet(0).generic_kernel_process_tree
        tree.processes.add(pid=pid, ppid=1, cmdline=name)
        for number, comm in threads:
            tree.threads.add(tid=tid(pid, number), pid=pid, comm=comm, is_idle=number in idle)
        return self

    def state(
        self,
        time,
        pid,
        number,
        state,
        cpu=0,
        prio=0,
        comm="",
    ):
        event = self.packet(time).generic_kernel_task_state_event
        event.cpu, event.tid, event.state, event.prio, event.comm = cpu, tid(pid, number), state, prio, comm
        return self

    def write(self, path):
        path.write_bytes(self.trace.SerializeToString())
        return path

    def open(self, folder):
        return satview.open_trace(self.write(folder / "probe.pftrace"))


def scene(machine=0):
    """CPU 0: shell 1 runs from 0, faults at 40; shell 2 from 40 to 70, waits. CPU 1: the driver from 20 on."""
    probe = Probe(machine).process(1, "procnto", (1, "idle"), (2, ""), idle=(1, 2))
    probe.process(7, "bin/sh -l", (1, "shell"), (2, "")).process(9, "devb-eide", (1, "driver"))
    probe.state(100, 7, 1, RUNNING, 0, 10).state(100, 1, 2, RUNNING, 1).state(110, 7, 2, READY)
    probe.state(120, 1, 2, READY, 1).state(120, 9, 1, RUNNING, 1, 21)
    probe.state(140, 7, 1, PAGE, 0).state(140, 7, 2, RUNNING, 0, 9, "worker")
    return probe.state(170, 7, 2, SLEEPS, 0).state(170, 1, 1, RUNNING, 0).state(180, 9, 1, STOPPED, 1)

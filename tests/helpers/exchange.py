"""Traces of messages between three processes, written moment by moment."""

from __future__ import annotations

from satview.events import wire
from tests.helpers.kev import TraceBuilder

SND, REC, REP = (wire.code(wire.WireClass.COMM, event) for event in (0, 2, 10))
MSG_SENDV = 11


class Exchange:
    """Writes a trace of messages between processes of one thread each; pids are 2, 3, 4."""

    def __init__(self) -> None:
        self.build = TraceBuilder().time_event(0)
        for pid, name in ((2, "usr/bin/shell"), (3, "sbin/disk"), (4, "sbin/driver")):
            self.build.process_name(pid, pid, name)

    def send(self, time: int, client: int, server: int, word: int) -> None:
        self.build.state("RUNNING", time, client, 1).call(MSG_SENDV, time + 1, (0x40000001, word))
        self.build.event(SND, time + 2, (0x10000 + client, server)).state("SEND", time + 3, client, 1)

    def receive(self, time: int, client: int, server: int) -> None:
        self.build.state("RUNNING", time, server, 1).event(REC, time + 1, (0x10000 + client, server))
        self.build.state("REPLY", time + 2, client, 1)

    def reply(self, time: int, client: int) -> None:
        self.build.event(REP, time, (1, client)).state("READY", time + 1, client, 1)

    def goes_on(self, time: int, client: int) -> None:
        self.build.state("RUNNING", time, client, 1)

"""Programs that make kernel calls with anything as arguments: their faults are reported, the kernel goes on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from satview.capture.run import Capture, run
from satview.capture.sim import calls
from satview.capture.sim.calls import Call, ChannelCreate, Compute, ConnectAttach, TimerTimeout
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import BoundedQueue, Mutex
from satview.capture.workloads.registry import Workload
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from tests.helpers.extent import usually

MS = 1_000_000
RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
KINDS: tuple[type[Call], ...] = tuple(
    getattr(calls, name)
    for name in [
        "KernelCall",
        "MsgReadIov",
        "MsgReadWrite",
        "InterruptDetachFunc",
        "SyncTypeDestroy",
        "MsgQueueOpen",
        "MsgQueueSend",
        "MsgQueueReceive",
        "MsgQueueCtl",
        "MsgQueueClose",
        "PipeOpen",
        "PipeRead",
        "PipeWrite",
        "PipeClose",
        "NetVtid",
        "NetUnblock",
        "NetSignalKill",
        "Touch",
        "SignalFault",
        "SignalKill",
        "ThreadCtl",
        "ThreadCtlExt",
        "ThreadCreate",
        "SchedCtl",
        "Fork",
        "Exec",
        "Dlopen",
        "ChannelCreate",
        "ConnectAttach",
        "MsgSendPulse",
    ]
)


def brief() -> Any:
    yield Compute(1000)


def no_program() -> int:
    return 3


VALUES: tuple[Any, ...] = (
    0, 1, 2, 3, 8, 9, -1, 99, 1 << 40, 1 << 70, "x", None, b"abc", b"", 3.5, [], {}, brief, no_program,
    BoundedQueue("q", 1), BoundedQueue("no room", 0), Mutex("m"), "CLOCK_ID", "POWER_ACTIVE", "SPARE2", "join",
    "partition", {"pid": 1}, {"word 0": 1 << 66}, ("NET_SEND",), True,
)  # fmt: skip


def program(seed: int) -> Callable[[], Any]:
    chance = random.Random(seed)

    def wild() -> Any:
        chid = yield ChannelCreate(flags=0x4A)
        yield ConnectAttach(0, chid, nd=chance.choice((0, 2)))
        for _ in range(40):
            kind = chance.choice(KINDS)
            count = chance.randint(0, len(fields(kind)))
            try:
                call = kind(*(chance.choice(VALUES) for _ in range(count)))
            except TypeError:
                continue  # too few
            try:
                yield TimerTimeout(("PIPE", "MQ_SEND", "MQ_RECEIVE", "NET_SEND", "REPLY", "SEND"), MS)
                yield call
            except QnxError:
                yield Compute(1000)

    return wild


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_any_argument_is_survived(release: Release, tmp_path: Path) -> None:
    for seed in range(usually(4, complete=500, thorough=60)):

        def setup(kernel: Any, seed: int = seed) -> None:
            if seed % 3 == 0:
                kernel.partitions(("A", 30, 0))
            for i in range(3):
                kernel.spawn(f"bin/p{i}", program(seed * 10 + i), priority=9 + i)

        workload = Workload("wild", "", setup, 1 + seed % 3, 60 * MS)
        result = run(Capture(workload, release=release, seed=seed), tmp_path / "w.kev")
        assert not any("the logger did not come to its end" in text for text in result.findings)
        trace = open_kev(tmp_path / "w.kev")
        assert not trace.problems.counts()
        assert trace.class_counts()["KER_EXIT"] > 10

"""Handlers need I/O privilege, as on a target; the trace interrupt has room for several of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from satview.__main__ import main
from satview.capture import nto
from satview.capture.emit import EventData
from satview.capture.kernel import Kernel, mode
from satview.capture.sim.calls import (
    InterruptAttach,
    InterruptAttachEvent,
    InterruptDetach,
    InterruptHookTrace,
    Sleep,
    ThreadCreate,
    ThreadCtl,
    ThreadJoin,
    TraceEvent,
)
from satview.capture.sim.services import QnxError
from satview.capture.sim.target import target
from satview.capture.sim.threads import Program
from satview.events.spec import Release

MS = 1_000_000


def attempts(has_privilege: bool, needs_privilege: bool = True, release: Release = Release.QNX_7) -> list[Any]:
    """Return what attaching handlers results in, call by call."""
    kernel = Kernel(replace(target(release, 1), needs_privilege=needs_privilege), 1)
    found: list[Any] = []
    calls = (
        InterruptHookTrace(lambda _info: None),
        InterruptAttach(5, lambda: None),
        InterruptAttachEvent(6),
        TraceEvent(mode("ADDCLASSEVHANDLER"), 10, lambda _data: 1, EventData()),
        TraceEvent(mode("ADDEVENTHANDLER"), 3, 11, lambda _data: 1, EventData()),
        TraceEvent(mode("DELCLASSEVHANDLER"), 10),
        TraceEvent(mode("ADDCLASS"), 10),
    )

    def function() -> Program:
        for call in calls:
            try:
                yield call
                found.append("ok")
            except QnxError as error:
                found.append(error.name)

    def program() -> Program:
        if has_privilege:
            yield ThreadCtl(nto._NTO_TCTL_IO)
        tid = yield ThreadCreate(function)
        yield ThreadJoin(tid)

    kernel.spawn("p", program)
    kernel.machine.run(kernel.machine.now + kernel.target.cycles(5 * MS))
    assert not kernel.machine.faults
    return found


@pytest.mark.parametrize(
    ("situation", "ends"),
    [
        ({"has_privilege": False}, ["EPERM"] * 5 + ["ok"] * 2),  # removing and filtering need none
        ({"has_privilege": True}, ["ok"] * 7),  # threads inherit it
        ({"has_privilege": False, "needs_privilege": False}, ["ok"] * 7),
        ({"has_privilege": False, "release": Release.QNX_8},  # 8.0 has no handlers to ask it for
         ["EPERM", "ENOTSUP", "ok", "ENOTSUP", "ENOTSUP", "ENOTSUP", "ok"]),
    ],
)  # fmt: skip
def test_what_needs_it(situation: dict[str, Any], ends: list[str]) -> None:
    assert attempts(**situation) == ends


def test_the_option_waives_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "control.py").write_text(
        "from satview.capture import nto\nfrom satview.capture.emit import EventData\n"
        "from satview.capture.sim.calls import TraceEvent\n\n"
        "def main():\n"
        "    yield TraceEvent(nto._NTO_TRACE_ADDCLASSEVHANDLER, nto._NTO_TRACE_THREAD, lambda data: 1, EventData())\n"
    )
    command = [
        "tracelogger", "-d1", "-n", "1", "--control", str(tmp_path / "control.py"), "-f", str(tmp_path / "x.kev"),
        "--workload", "small-system", "--duration", "0.1",
    ]  # fmt: skip
    main(command)
    assert "control.py:6: raised QnxError: [Errno 1] Operation not permitted" in capsys.readouterr().err
    main([*command, "--no-privilege"])
    assert "Operation not permitted" not in capsys.readouterr().err


class TestTraceHooks:
    """Several programs may hear of full buffers."""

    def run(self, *steps: Any) -> list[str]:
        kernel = Kernel(target(Release.QNX_7, 1), 1)
        heard: list[str] = []
        idents: dict[str, int] = {}

        def hook(name: str) -> Any:
            def handler(info: int) -> None:
                heard.append(f"{name}{info >> 13}")

            return handler

        def program() -> Program:
            yield ThreadCtl()
            yield TraceEvent(mode("ALLOCBUFFER"), 4, [])
            for name, flags in steps[0]:
                idents[name] = yield InterruptHookTrace(hook(name), flags)
            yield TraceEvent(mode("ADDALLCLASSES"))
            yield TraceEvent(mode("STARTNOSTATE"))
            yield TraceEvent(mode("FLUSHBUFFER"))
            for name in steps[1]:
                yield InterruptDetach(idents[name])
            yield TraceEvent(mode("FLUSHBUFFER"))
            yield Sleep(MS)

        kernel.spawn("p", program)
        kernel.machine.run(kernel.machine.now + kernel.target.cycles(20 * MS))
        assert not kernel.machine.faults, kernel.machine.faults
        assert len(set(idents.values())) == len(idents), "every hook has an id of its own"
        return heard

    def test_a_new_one_comes_first_and_all_are_called(self) -> None:
        assert self.run([("a", 0), ("b", 0)], []) == ["b0", "a0", "b1", "a1"]

    def test_flags_put_it_last(self) -> None:
        assert self.run([("a", 0), ("b", nto._NTO_INTR_FLAGS_END)], []) == ["a0", "b0", "a1", "b1"]

    def test_detach_takes_one_by_its_id(self) -> None:
        assert self.run([("a", 0), ("b", 0)], ["b"]) == ["b0", "a0", "a1"]
        assert self.run([("a", 0), ("b", 0)], ["b", "a"]) == ["b0", "a0"]

    def test_an_id_of_another_process_or_none_is_refused(self) -> None:
        kernel = Kernel(target(Release.QNX_7, 1), 1)
        seen: list[str] = []

        def owner() -> Program:
            yield ThreadCtl()
            ident = yield InterruptHookTrace(lambda _info: None)
            seen.append(str(ident))
            yield Sleep(100 * MS)

        def thief() -> Program:
            yield Sleep(MS)
            for ident in (int(seen[0]), 99):
                try:
                    yield InterruptDetach(ident)
                except QnxError as error:
                    seen.append(error.name)

        kernel.spawn("owner", owner)
        kernel.spawn("thief", thief)
        kernel.machine.run(kernel.machine.now + kernel.target.cycles(20 * MS))
        assert seen == ["1", "EINVAL", "EINVAL"]

    def test_they_go_with_their_process(self) -> None:
        kernel = Kernel(target(Release.QNX_7, 1), 1)
        heard: list[int] = []

        def owner() -> Program:
            yield ThreadCtl()
            yield TraceEvent(mode("ALLOCBUFFER"), 4, [])
            yield TraceEvent(mode("ADDALLCLASSES"))
            yield TraceEvent(mode("STARTNOSTATE"))
            yield InterruptHookTrace(heard.append)

        kernel.spawn("owner", owner)
        kernel.machine.run(kernel.machine.now + kernel.target.cycles(20 * MS))
        kernel.trace_event(mode("FLUSHBUFFER"))
        assert heard == []

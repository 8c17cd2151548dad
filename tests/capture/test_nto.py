"""The names of the C headers: all that the sources use, with the numbers of the release a program runs on."""

import json
import re
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.capture import nto
from satview.capture.kernel import Kernel
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.target import target
from satview.capture.workloads import registry
from satview.events.modes import header_names
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from tests.helpers.shared import shared_path

# Written so in the sources, but no names of the headers: families, misprints, and what no source gives a number for.
NOT_REQUESTED = {"TIME", "BUFFER", "BUFFER_END"}
NO_NAMES = {
    "_NTO_TRACE_", "_NTO_TRACE_SYS_", "_NTO_TRACE_FI", "_NTO_TRACE_FM", "_NTO_TRACE_KERCALL64", "_NTO_TRACE_DEFRAG_END",
    "_NTO_TRACE_INTENTER_64", "_NTO_TRACE_INT_HANDLER_ENTER_64",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _default_release():
    yield
    nto.set_release(Release.QNX_7)


def test_every_name_of_the_descriptions_is_there():
    text = shared_path("spec/traceevent.md").read_text(encoding="utf-8")
    calls = json.loads(shared_path("spec/kercalls.json").read_text(encoding="utf-8"))
    text += json.dumps(calls)
    requested = set(re.findall(r"\b(?:_NTO_TRACE|_NTO_INTR|_NTO_TCTL|__KER)_[A-Z0-9_]+\b", text)) - NO_NAMES
    known = {
        name
        for release in (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
        for name in header_names(release)
    }
    assert len(requested) > 200
    assert sorted(requested - known) == []


@pytest.mark.parametrize(
    ("name", "number_7", "number_8"),
    [
        ("_NTO_TRACE_THRUNNING", 2, 1),
        ("_NTO_TRACE_THREADY", 4, 2),
        ("_NTO_TRACE_PROCCREATE", 1, 1),
        ("_NTO_TRACE_COMM_RPULSE", 3, 3),
        ("_NTO_TRACE_SYS_MMAP", 6, 6),
        ("__KER_MSG_SENDV", 11, 11),
        ("_NTO_TRACE_START", 0x1000000A, 0x1000000A),
        ("_NTO_TRACE_USERLAST", 1023, 1023),
        ("_NTO_TRACE_CONTROLDROPPED", None, 8),
        ("_NTO_TRACE_POWER_IDLE", 0x10000, 0x10000),
        ("_NTO_TRACE_FI_NUM", 2, 2),
        ("_NTO_TRACE_NONSENSE", None, None),
    ],
)
def test_numbers(name, number_7, number_8):
    for release, number in ((Release.QNX_7, number_7), (Release.QNX_8, number_8)):
        nto.set_release(release)
        assert getattr(nto, name, None) == number


def test_a_kernel_sets_the_release():
    Kernel(target(Release.QNX_8, 1), 1)
    assert nto._NTO_TRACE_THRUNNING == 1
    Kernel(target(Release.QNX_6, 1), 1)
    assert nto._NTO_TRACE_THRUNNING == 2


class Watch:
    """Python puts `_Watch` before names of two underscores in here."""

    mode = nto._NTO_TRACE_START

    class Inner:
        number = nto.__KER_MSG_SENDV

        def call(self):
            def nested():
                return TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_KERCALLENTER, nto.__KER_MSG_SENDV)

            return nested()


def test_names_survive_in_classes():
    assert Watch.Inner.number == 11
    assert Watch().Inner().call().args == (3, 11)
    assert Watch.mode == 0x1000000A


PROGRAM = """
from satview.capture import nto
from satview.capture.sim.calls import Sleep, TraceEvent

STATE = nto._NTO_TRACE_THRUNNING       # at import: the release of the capture counts here, too


def main():
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_THREAD, STATE)
    yield TraceEvent(nto._NTO_TRACE_STARTNOSTATE)
    yield Sleep(50_000_000)
    yield TraceEvent(nto._NTO_TRACE_FLUSHBUFFER)
    yield TraceEvent(nto._NTO_TRACE_STOP)
"""


@pytest.mark.parametrize("release", ["6.x", "7.x", "8.0"])
def test_thrunning_logs_thrunning(tmp_path, release):
    (tmp_path / "control.py").write_text(PROGRAM)
    assert registry.load(tmp_path / "control.py", Release(release))
    assert (
        main(
            [
                "tracelogger",
                "-d1",
                "-n",
                "1",
                "--release",
                release,
                "--control",
                str(tmp_path / "control.py"),
                "-f",
                str(tmp_path / "x.kev"),
                "--workload",
                "small-system",
            ]
        )
        == 0
    )
    trace = open_kev(Path(tmp_path / "x.kev"))
    assert set(trace.class_counts()) - {"CONTROL"} == {"THREAD"}
    assert {trace.catalogue.name(int(code)) for code in trace.events.code} - NOT_REQUESTED == {"THRUNNING"}

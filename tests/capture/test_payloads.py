"""Payloads have the words that the catalogue's lists require, in every release, mode and width."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.capture.emit import call_form
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.variants import encode, name_bytes, text_words
from satview.formats.kev.reader import open_kev
from satview.store.trace import Trace
from tests.capture.made import events, names, traced
from tests.helpers.extent import fewer, points, usually
from tools.emitted import WORKLOADS

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"
WIDE = (("ADDALLCLASSES",), ("SETALLCLASSESWIDE",))
EXCEPTIONS = {
    "CHANCON_ATTR": {"fast"},  # how long the attribute of the wide form is no source says
    "IPI_64": {"wide"},  # has one list only
    "THCREATE": {"fast"},
    "THDESTROY": {"fast"},  # 6.x: two words in either mode
}
FAST = (("ADDALLCLASSES",), ("SETALLCLASSESFAST",))


def forms(trace: Trace) -> dict[tuple[str, str], set[str]]:
    """Return (class, event) to the forms the decoder found it in."""
    found: dict[tuple[str, str], set[str]] = {}
    for row, code in enumerate(trace.events.code):
        spec = trace.catalogue.spec(int(code))
        form = trace.payloads.decode(row).form
        is_unlisted = form == "raw" and not spec.fast and not spec.wide
        found.setdefault((spec.class_name, spec.name), set()).add("no list" if is_unlisted else form)
    return found


@pytest.mark.thorough
@points(
    form={"fast": FAST, "wide": WIDE}, release=fewer([Release.QNX_8, Release.QNX_6, Release.QNX_6_6, Release.QNX_7], 2)
)
def test_every_payload_fits_its_list(form: tuple[tuple[str, ...], ...], release: Release, tmp_path: Path) -> None:
    modes, allowed = form, {"wide" if form is WIDE else "fast", "same", "failed", "no list"}
    found: dict[tuple[str, str], set[str]] = {}
    for name in ("signals", "fork-storm", "automotive", "meeting-points", "partitions", *WORKLOADS[:6]):
        workload = registry.find(name)
        ms = 60 if name == "automotive" else usually(40, complete=200, thorough=200)
        made = traced(workload.setup, ms, tmp_path, release, workload.cpus, 3, modes)
        for key, kinds in forms(made.trace).items():
            found.setdefault(key, set()).update(kinds)
    wrong = {
        key: kinds
        for key, kinds in found.items()
        if not kinds <= allowed | EXCEPTIONS.get(key[1], set()) and key[0] not in ("USREVENT", "INT_CALL")
    }
    assert not wrong
    assert len(found) > 60


def test_64_bit_processes_set_the_flag_and_32_bit_ones_do_not() -> None:
    assert call_form(Release.QNX_7, 11, wide=True, is_64bit=True)[0] == 2 << 10 | 11 | 0x200
    assert call_form(Release.QNX_7, 11, wide=True, is_64bit=False)[0] == 2 << 10 | 11
    code, plan = call_form(Release.QNX_7, 15, wide=False, is_64bit=True)
    assert (code, [name for name, _ in plan]) == (2 << 10 | 15, ["rcvid", "status"]), "without the flag"
    assert call_form(Release.QNX_6, 11, wide=True, is_64bit=True)[0] == 2 << 10 | 11


def test_encoding_by_hand() -> None:
    plan = (("coid", 1), ("sparts", 2), ("msg[0]", 1))
    values = {"coid": -1, "sparts": 0x1_0000_0002, "msg[0]": 7}
    assert encode(plan, values, "little") == [0xFFFFFFFF, 2, 1, 7]
    assert encode(plan, values, "big") == [0xFFFFFFFF, 1, 2, 7]
    assert text_words(b"abc", "little") == [0x00636261]
    assert text_words(b"abcd", "big") == [0x61626364, 0]
    assert len(text_words(name_bytes("x" * 500), "little")) == 32, "names are cut to 126 bytes"


def test_timer_timeout_has_two_fast_words() -> None:
    _, plan = call_form(Release.QNX_7, 75, wide=False, is_64bit=False)
    assert [name for name, _ in plan] == ["timeout_flags", "ntime_sec"]


def test_the_dense_sample_is_what_its_script_makes() -> None:
    trace = open_kev(SAMPLE)
    assert SAMPLE.stat().st_size < 5_000_000
    assert 190_000 < len(trace.events) < 210_000
    assert trace.cpu_count == 4
    assert not trace.problems.counts()
    assert trace.duration_ns == pytest.approx(7.05e9, rel=0.01)
    assert trace.header.get("SYS_RELEASE") == "7.1.0"
    labels = {trace.process_name(row) for row in range(len(trace.processes))}
    assert labels >= {"procnto-smp-instr", "io-pkt-v6-hc", "devb-ahci", "sensor_fusion", "planner", "logger", "hmi"}
    gone = [row for row in range(len(trace.processes)) if trace.processes.destroyed_cycles[row] >= 0]
    assert {trace.process_name(row) for row in gone} == {"dtc_dump[147474]", "dtc_dump[184337]"}, (
        "created and gone again in the middle"
    )


@points(release=[Release.QNX_6, Release.QNX_7, Release.QNX_8], modes={"fast": FAST, "wide": WIDE})
def test_a_new_process_is_set_up_and_mapped(
    modes: tuple[tuple[str, ...], ...], release: Release, tmp_path: Path
) -> None:
    trace = traced(registry.find("fork-storm").setup, 30, tmp_path, release, 2, 3, modes).trace
    big = release != Release.QNX_6
    maps = [trace.payloads.decode(row) for row, name in enumerate(names(trace)) if name == "MMAP"]
    first = {argument.name: argument.value for argument in maps[0].arguments}
    assert first["len"] == 0x2071B8
    assert first["flags"] == 0x800A2
    if modes is WIDE:
        assert (first["name"] if big else first["path"]) == ("libc.so.5" if big else "libc.so.3")
        assert first["prot"] == 0x500
    child = first["pid"]
    gone = [words for _, name, words in events(trace, "MUNMAP") if words[0] == child]
    assert gone[0][:5] == (child, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF), "everything, at its end"
    order = [(name, words[:2]) for _, name, words in events(trace, "THCREATE", "THWAITTHREAD", "THRUNNING", "THREADY")]
    begin = order.index(("THCREATE", (child, 1)))
    if release == Release.QNX_8:
        assert order[begin + 1] == ("THREADY", (child, 1))
        return
    # As a listing of 6.1 shows it: never READY; its creator waits until it has set itself up.
    worker = order[begin + 1][1]
    assert [name for name, _ in order[begin : begin + 4]] == ["THCREATE", "THWAITTHREAD", "THRUNNING", "THREADY"]
    assert (worker[0], order[begin + 2][1], order[begin + 3][1]) == (1, (child, 1), worker)

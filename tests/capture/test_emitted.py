"""Every call of the tables can be made, and every event is emitted by a workload or has a reason why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import satview.capture.sim.machine  # noqa: F401  -- all classes of calls
from satview.capture.run import Capture, run
from satview.capture.sim.calls import PLAIN_CALLS, Call
from satview.events.catalogue import call_numbers, catalogue
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from tools import emitted

PAGE = Path(__file__).resolve().parents[2] / "docs" / "capture.md"
CALLS = {Release.QNX_6: 101, Release.QNX_6_6: 101, Release.QNX_7: 108, Release.QNX_8: 93}


def classes_below(parent: type[Call]) -> Iterator[type[Call]]:
    for child in parent.__subclasses__():
        yield child
        yield from classes_below(child)


@pytest.mark.parametrize("release", CALLS, ids=str)
def test_every_call_has_a_class_or_a_row(release: Release) -> None:
    names = {name for name in call_numbers(release) if catalogue(release).kernel_call_number(name) is not None}
    assert len(names) == CALLS[release]
    made = {kind.name for kind in classes_below(Call)} | PLAIN_CALLS.keys()
    assert sorted(names - made) == []


def test_no_row_is_of_a_call_that_has_a_class() -> None:
    assert not PLAIN_CALLS.keys() & {kind.name for kind in classes_below(Call)} - {"NOP"}


@pytest.mark.parametrize("release", CALLS, ids=str)
def test_every_call_succeeds_once(release: Release, tmp_path: Path) -> None:
    assert not run(Capture("every-call", release=release), tmp_path / "calls.kev").findings
    trace = open_kev(tmp_path / "calls.kev")
    entered, returned = set(), set()
    for row in np.flatnonzero(trace.events.code >> 10 == 2).tolist():
        name, words = trace.catalogue.name(int(trace.events.code[row])), trace.payloads.words(row)
        kind = int(trace.events.code[row]) & 0x180
        if kind == 0:
            entered.add(name)
        elif kind == 0x80 and (words[0] != 0xFFFFFFFF or len(words) > 2):
            returned.add(name)
    assert len(entered) == CALLS[release]
    failing = {name for name in entered - returned if "SPARE" not in name and name != "BAD"}
    assert failing <= {"SIGNAL_SUSPEND", "THREAD_DESTROY", "THREAD_DESTROYALL"}


def check_emitted(release: Release) -> None:
    events, seen, reasons = emitted.named(release), emitted.emitted(release), emitted.why_not(release)
    assert sorted(events - seen - reasons.keys()) == [], "neither emitted nor explained"
    assert sorted(reasons.keys() & seen) == [], "emitted, and explained why not"
    assert sorted(reasons.keys() - events) == [], "explained, but the release has no such event"


@pytest.mark.thorough
def test_every_event_of_7_x_is_emitted_or_explained() -> None:
    check_emitted(Release.QNX_7)


@pytest.mark.thorough
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_6_6, Release.QNX_8], ids=str)
def test_every_event_of_other_releases_is_emitted_or_explained(release: Release) -> None:
    check_emitted(release)


@pytest.mark.thorough
def test_the_page_has_the_table() -> None:
    assert "\n".join(emitted.lines()) in PAGE.read_text(encoding="utf-8"), "run `python tools/write_docs.py`"

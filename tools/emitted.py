"""Which events and calls of the tables the simulated kernel emits, and why not the others: a table of docs/capture.md.

The numbers come from captures of the workloads below; those of the other workloads emit nothing that these do not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from satview.capture.run import Capture, run
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
WORKLOADS = (
    "every-call",
    "process-life",
    "faults",
    "network",
    "kernel-notes",
    "virtual-machine",
    "partitions",
    "meeting-points",
    "instrumented",
)
_TITLES = {
    "KER_CALL": "calls entered",
    "KER_EXIT": "calls left",
    "PROCESS": "PROCESS",
    "THREAD": "THREAD",
    "VTHREAD": "VTHREAD",
    "COMM": "COMM",
    "SYSTEM": "SYSTEM",
    "SEC": "SEC",
    "QVM": "QVM",
    "PMU": "PMU",
}
Event = tuple[str, str]  # class and name, as listings print them
_ALL, _8 = RELEASES, (Release.QNX_8,)
_VIRTUAL = (
    "RUNNING STOPPED RECEIVE STACK WAITTHREAD WAITPAGE SIGSUSPEND SIGWAITINFO NANOSLEEP MUTEX CONDVAR JOIN INTR SEM "
    "WAITCTX NET_SEND NET_REPLY"
)
# Class, names, releases, and why no workload emits them.
REASONS: tuple[tuple[str, str, tuple[Release, ...], str], ...] = (
    ("KER_EXIT", "SIGNAL_SUSPEND", _ALL, "a signal handler always ends it: with INT_CALL instead of an exit"),
    ("KER_EXIT", "THREAD_DESTROYALL", RELEASES[:3], "the thread is gone"),
    ("KER_EXIT", "THREAD_DESTROY", _8, "the thread is gone (up to 7.x this call of a last thread fails, which shows)"),
    (
        "VTHREAD",
        " ".join(f"VTH{state}" for state in _VIRTUAL.split()),
        RELEASES[:3],
        "a virtual thread stands for a thread of another node that sends to this one: it does nothing else here",
    ),
    ("SYSTEM", "RESERVED", _ALL, "a number without a meaning"),
    ("SYSTEM", "IPI", (Release.QNX_7, *_8), "the simulated kernel is a 64-bit one: it emits IPI_64"),
    ("SYSTEM", "MAPNAME", _8, "8.0 emits MAPNAME_64 only"),
    ("SYSTEM", "ADDRESS FUNC_ENTER FUNC_EXIT PROFILE", _8, "8.0 has no 32-bit programs: it emits the 64-bit form"),
    ("COMM", "SND_PULSE_QUN", _8, "8.0 has no calls of a network manager, to which these pulses go"),
    (
        "THREAD",
        "THINTR_ATTACH_EV THMUON_MUTEX THSEND_NOTIFY THTIMER_DELEGATE THTRACEBUFFER",
        _8,
        "no source says what a thread in this state waits for, or which call it is in",
    ),
)


def why_not(release: Release) -> dict[Event, str]:
    """Return the reasons that hold for a release, by event."""
    return {
        (class_name, name): reason
        for class_name, names, releases, reason in REASONS
        if release in releases
        for name in names.split()
    }


def named(release: Release) -> set[Event]:
    """Return the events of the counted classes that the tables of a release name; forms for 64 bits have names too."""
    book = catalogue(release)
    return {(book.class_name(code), book.name(code)) for code in book.codes() if book.class_name(code) in _TITLES}


def emitted(release: Release) -> set[Event]:
    """Return the events that captures of the workloads have."""
    book = catalogue(release)
    codes: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "emitted.kev"
        for workload in WORKLOADS:
            run(Capture(workload, release=release, keeps_truth=False), path)
            codes.update(np.unique(open_kev(path).events.code).tolist())
    return {(book.class_name(code), book.name(code)) for code in codes}


def lines() -> list[str]:
    """Return the table and the list of reasons."""
    rows = [f"| release | {' | '.join(_TITLES.values())} | without a reason |", f"|{' --- |' * (len(_TITLES) + 2)}"]
    for release in RELEASES:
        events, seen = named(release), emitted(release)
        counts = []
        for class_name in _TITLES:
            mine = {event for event in events if event[0] == class_name}
            counts.append(f"{len(mine & seen)} of {len(mine)}" if mine else "")
        rows.append(f"| {release} | {' | '.join(counts)} | {len(events - seen - why_not(release).keys())} |")
    rows += ["", "| not emitted | in | why |", "| --- | --- | --- |"]
    for class_name, names, releases, reason in REASONS:
        where = "all" if releases == _ALL else ", ".join(releases)
        listed = ", ".join(f"`{name}`" for name in names.split())
        rows.append(f"| {class_name} {listed} | {where} | {reason} |")
    return rows

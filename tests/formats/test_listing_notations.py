"""Listings as people have them: other notations, lines broken otherwise, foreign lines; no event is lost."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satview.base.errors import SatviewError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.export.listing.forms import Style
from satview.export.listing.printer import Printer
from satview.export.listing.rows import TextRows, default_time
from satview.formats.listing.reader import read_listing
from satview.formats.registry import open_trace
from satview.formats.source import source_of
from satview.store.problems import Problems
from tests.export.test_listing import one_of_each
from tests.helpers.extent import fewer, points
from tests.helpers.shared import shared_path

RELEASES = ((Release.QNX_6, "6"), (Release.QNX_6_6, "6"), (Release.QNX_7, "7"), (Release.QNX_8, "8"))
PROMPTS = ("# ", "login: root", "[ttyS0] umass: device attached", "/dev/shmem# ls -l", "-- more --", "> quoted", "```")
HEAD = (
    " -- HEADER FILE INFORMATION -- \n   TRACE_LITTLE_ENDIAN:: TRUE\n  TRACE_CYCLES_PER_SEC:: 1000\n"
    "     TRACE_SYS_RELEASE:: {}\n -- KERNEL EVENTS -- \n"
)
VALUE = re.compile(r"((?<=[\w)\]>* ])(?<!EVENT)(?<!CONTROL )[:=] ?|\()(0x[0-9a-f]{1,16}|-?\d{1,20})(?![\w.\"])")


def read(text):
    problems = Problems()
    return read_listing(io.BytesIO(text if isinstance(text, bytes) else text.encode()), problems), problems


@cache
def listed(release, layout, one_line=False):
    """Return a listing of every kind of event of a release, in both modes."""
    source = source_of(io.BytesIO(one_of_each(release, "little")), Path("x.kev"))
    style = Style(layout, release, is_one_line=one_line)
    return "".join(Printer(source, TextRows(source, style, default_time(layout))).text())


@cache
def read_as_it_is(release, layout, one_line=False):
    return read(listed(release, layout, one_line))[0]


def codes(listing):
    """Return the codes of the events of a listing, 32 and 64 bit forms of a call as one, and their times."""
    slots = listing.slot_array()
    begins = slots[(slots[:, 0] >> 30 == 0) | (slots[:, 0] >> 30 == 1)]
    code = begins[:, 0] & 0x7FFF
    is_call = code >> 10 == wire.WireClass.KER_CALL
    return np.where(is_call, code & ~np.uint32(wire.KER_64BIT), code).tolist(), begins[:, 1].tolist()


def events_part(text):
    head, title, events = text.partition(" -- KERNEL EVENTS -- \n")
    return head + title, events


def rewritten(events):
    """Return the text with every hexadecimal argument in decimal and every decimal one in hexadecimal."""

    def other(found):
        text = found[2]
        if text.startswith("0x"):
            return f"{found[1]}{int(text, 16)}"
        return f"{found[1]}{hex(int(text) & 0xFFFFFFFF if int(text) >= -1 << 31 else int(text) & (1 << 64) - 1)}"

    lines = []
    for line in events.split("\n"):
        at = line.find("CPU:") + 7 if line.startswith("t:") else 0
        is_bare = "cookie" in line or "func_p:" in line or "SIGEVENT:" in line
        lines.append(line if is_bare else line[:at] + VALUE.sub(other, line[at:]))
    return "\n".join(lines)


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "layout"), fewer(RELEASES[::-1], 1))
def test_the_other_notation_loses_no_event(release, layout):
    text, plain = listed(release, layout), read_as_it_is(release, layout)
    head, events = events_part(text)
    changed = rewritten(events)
    assert sum(a != b for a, b in zip(events.split("\n"), changed.split("\n"), strict=True)) > 700
    listing, problems = read(head + changed)
    assert "unlisted-line" not in problems.counts(), [problem.detail for problem in problems][:5]
    assert codes(listing)[1] == codes(plain)[1]
    assert codes(listing)[0] == codes(plain)[0]


@pytest.mark.thorough
@points(version={str(release): (release, layout) for release, layout in RELEASES}, spread=[True, False])
def test_lines_broken_otherwise_lose_no_event(version, spread):
    release, layout = version
    """Every argument on its own line, or several on one."""
    text, plain = listed(release, layout, spread), read_as_it_is(release, layout, spread)
    head, events = events_part(text)
    if spread:
        changed = re.sub(r"(:(?:0x[0-9a-f]+|-?\d+)) ([a-z_]\w*:)(?=[-0])", r"\1\n   \2", events)
    else:
        changed = re.sub(r"\n {3,}(\S+:[-0x\w]+)(?=\n {3,})", r"   \1", events)
    assert changed != events
    listing, problems = read(head + changed)
    assert problems.counts() == {}, list(problems)[:3]
    assert codes(listing) == codes(plain)


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "layout"), RELEASES)
def test_foreign_lines_lose_no_event_and_are_counted(release, layout):
    text, plain = listed(release, layout), read_as_it_is(release, layout)
    head, events = events_part(text)
    lines = [line for line in events.split("\n") if line]
    mixed = [part for number, line in enumerate(lines) for part in (line, PROMPTS[number % len(PROMPTS)])]
    listing, problems = read(head + "\n".join(mixed) + "\n")
    assert problems.counts() == {"foreign-line": len(lines)}
    assert codes(listing) == codes(plain)
    assert (listing.slot_array() == plain.slot_array()).all()
    line_counts = listing.line_counts
    assert (line_counts.foreign, line_counts.part + line_counts.raw) == (len(lines), 0)
    assert line_counts.event + line_counts.continuation == len(lines)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r\r\n"),
        lambda text: text.replace(" CPU:", "\x1b[0m CPU:"),
        lambda text: re.sub("^t:", "\x07> t:", text, flags=re.MULTILINE),
        lambda text: re.sub("^t:", "e:0000000010 t:", text, flags=re.MULTILINE),
        lambda text: re.sub(r"^(t:0x)(\w+) ", r"t:0.000.016us c:0x\2 ", text, flags=re.MULTILINE),
        lambda text: text.replace(" CPU:03 ", "\tCPU:3   "),
    ],
    ids=["crlf", "crcrlf", "escapes", "quoted", "event id", "cycles", "blanks"],
)
def test_serial_consoles_and_formats_change_no_event(change):
    text, plain = listed(Release.QNX_7, "7"), read_as_it_is(Release.QNX_7, "7")
    head, events = events_part(text)
    listing, problems = read((head + change(events)).encode())
    assert set(problems.counts()) <= {"foreign-line"}
    assert (listing.slot_array() == plain.slot_array()).all()


@pytest.mark.parametrize("name", ["L1.bin", "L2.bin", "L3.bin", "L4.bin", "L5.bin"])
def test_damaged_listings_open(name):
    data = shared_path(f"crashes/{name}").read_bytes()
    trace = open_trace(shared_path(f"crashes/{name}"))
    listing, _ = read(data)
    assert listing.line_counts.lines == data.count(b"\n") + (not data.endswith(b"\n"))
    assert trace.release is listing.release
    assert trace.window.end < 1 << 63


@cache
def small():
    """Return the head of a listing of each release."""
    return [
        HEAD.format(version) + "\n".join(events_part(listed(release, layout))[1].split("\n")[:200])
        for (release, layout), version in zip(RELEASES, ("6.4.1", "6.6.0", "7.1.0", "8.0.0"), strict=True)
    ]


PIECES = (
    "9" * 40,
    "t:0xffffffffffffffff CPU:00 ",
    "-",
    "0x",
    "\x1b[31m",
    "CPU:99",
    "\n",
    " ",
    "t:99999999999.999.999us",
    "7.",
    "TRACE_A::TRACE_B:: x\n",
)


@pytest.mark.thorough
@settings(deadline=20_000)  # ms; a busy machine took 9 s, and what hangs takes for ever
@given(data=st.data())
def test_damage_of_any_kind_gives_a_trace_or_one_sentence(tmp_path_factory, data):
    text = data.draw(st.sampled_from(small()))
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 60))
        first = data.draw(st.integers(0, len(text)))
        copied = text[first : first + data.draw(st.integers(0, 300))]
        piece = data.draw(st.one_of(st.sampled_from([*PIECES, copied]), st.text(max_size=20)))
        text = text[:at] + piece + text[at + size :]
    raw = text.encode("utf-8", "replace")
    path = tmp_path_factory.mktemp("damage") / "x.txt"
    path.write_bytes(raw)
    try:
        trace = open_trace(path)
    except SatviewError:
        return
    listing, _ = read(raw)
    assert listing.line_counts.lines == raw.count(b"\n") + (not raw.endswith(b"\n"))
    assert len(trace.events) <= listing.events
    assert 0 <= trace.window.start <= trace.window.end < 1 << 63


@pytest.mark.thorough
def test_every_release_has_events_in_the_lists_above():
    assert all(
        len(codes(read(listed(release, layout))[0])[0]) > len(list(catalogue(release).codes())) // 2
        for release, layout in RELEASES
    )


def test_a_listing_is_printed_back_in_its_own_notation():
    plain = (
        "t:0x00000010 CPU:00 KER_CALL        :THREAD_DESTROY/47  tid:0x00000002 status_p:4096\n"
        "t:0x00000011 CPU:00 THREAD          :THREADY            pid:0x1 tid:0x2\n"
        "t:0x00000012 CPU:00 THREAD          :THREADY            pid:0x1b tid:0x2\n"
        "t:0x00000013 CPU:00 COMM            :SND_PULSE_EXE      scoid:65537 pid:1\n"
    )
    text = HEAD.format("7.1.0") + plain
    source = source_of(io.BytesIO(text.encode()), Path("x.txt"))
    style = Style("7", source.release, notations=source.notations)
    again = "".join(Printer(source, TextRows(source, style, "full")).text())
    assert events_part(again)[1] == plain
    assert source.notations["THREAD", "THREADY", "pid"] == "0x%x"

"""Lines that fit no row of the catalogue: no event is lost, and each has the arguments that its line shows."""

import io
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.cli.convert.catalogue import unlisted_rows
from satview.events import wire
from satview.events.spec import Release
from satview.export.listing.forms import Style
from satview.export.listing.printer import Printer
from satview.export.listing.rows import TextRows, layout_of
from satview.filters.expressions.expression import Expression
from satview.formats.listing.reader import read_listing, trace_of_listing
from satview.formats.source import source_of
from satview.opened import open_trace
from satview.store.arguments import argument
from satview.store.problems import Problems
from tests.formats.test_listing_notations import listed
from tests.helpers.shared import shared_path

NUMBER = r"(?:0x[0-9a-f]+|-?\d+)"
# What somebody's target prints: pattern and replacement in the text of a listing.
CHANGES = {
    "an argument more": (rf"(?m)^(t:.* [A-Z_]+ *:\w+(?:/\d+)? .*\w:{NUMBER})$", r"\1 zzz:0x00000007"),
    "another name": (rf"(?m)([ ])([a-z]\w*):({NUMBER})$", r"\1\2_q:\3"),
    "without its last": (rf"(?m)^(t:.*\w:{NUMBER}) \w+:{NUMBER}$", r"\1"),
    "an unknown event": (r"(KER_CALL *:)(\w+)/", r"\1NEW_\2/"),
    "an unknown class": (r"(?m)^(t:\S+ CPU:\d\d )COMM( *:)", r"\1FRESH\2"),
}


def read(text):
    data = text.encode("utf-8", "surrogateescape")
    listing = read_listing(io.BytesIO(data), Problems())
    return listing, trace_of_listing(listing, Path("x.txt"))


def printed(text):
    source = source_of(io.BytesIO(text.encode("utf-8", "surrogateescape")), Path("x.txt"))
    layout = layout_of(source.release)
    style = Style(layout, source.release, source.byte_order, notations=source.notations)
    return "".join(Printer(source, TextRows(source, style, "")).text())


def lines(*events, release="8.0.0"):
    head = f" -- HEADER FILE INFORMATION -- \n     TRACE_SYS_RELEASE:: {release}\n" if release else ""
    return head + " -- KERNEL EVENTS -- \n" + "".join(f"{event}\n" for event in events)


@cache
def texts():
    """Return listings by name: every kind of event of two releases, and a real one where it is present."""
    found = {"6.4": listed(Release.QNX_6, "6"), "8.0": listed(Release.QNX_8, "8")}
    real = shared_path("real/qnx71-ker_call.traceprinter.txt")
    if not real:
        return found
    lines = real.read_text("utf-8", "surrogateescape").splitlines(keepends=True)
    return found | {"real": "".join(lines[:4000])}


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["6.4", "8.0", "real"])
def test_a_changed_line_loses_no_event(name, change):
    if name not in texts():
        pytest.skip("the real listing is not there")
    before, _ = read(texts()[name])
    changed, count = re.subn(*CHANGES[change], texts()[name])
    assert count > 10
    listing, trace = read(changed)
    assert listing.events == len(trace.events) == before.events
    counts = listing.line_counts
    assert counts.event + counts.part + counts.raw == before.line_counts.event
    assert counts.part + counts.raw >= 0.3 * count
    assert counts.lines == before.line_counts.lines
    old, new = before.slot_array(), listing.slot_array()
    starts = [slots[slots[:, 0] >> wire.STRUCT_SHIFT <= 1][:, 1] for slots in (old, new)]
    assert np.array_equal(*starts)
    if change == "an argument more":
        values, known = argument(trace, np.arange(len(trace.events)), "zzz")
        assert (int(known.sum()), set(values[known].tolist())) == (count, {7})
    # What is printed back reads and prints the same again, but for zeros before numbers of several widths.
    again = printed(changed)
    assert re.sub("0x0*", "0x", printed(again)) == re.sub("0x0*", "0x", again)
    if change == "an argument more":
        assert again.count("zzz:0x00000007") == count


@pytest.mark.thorough
def test_a_line_has_the_arguments_it_shows_and_no_others():
    _, trace = read(lines(
        't:0x00000001 CPU:00 KER_CALL        :MSG_SENDV/11       coid:0x40000001 msg:"" (0x00000000) zzz:7',
        "t:0x00000002 CPU:00 COMM            :SND_MESSAGE        rcvidx:0x00010001 pid:5",
        't:0x00000003 CPU:00 COMM            :SND_SMOKE          height:12 colour:"dark grey" wide:0xffffffffffff',
        "t:0x00000004 CPU:00 FROB            :XYZ                path:/usr/lib/x",
        't:0x00000005 CPU:00 USREVENT        :EVENT:100          STR:"m4-fix-start", d0:0x00000001 d1:0x00000002',
        "t:0x00000006 CPU:00 no class at all",
        "t:0x00000007 CPU:70 THREAD          :THRUNNING          pid:7 tid:2",
        "t:0x00000008 CPU:00 CONTROL         :TIME               msb:0x00000001",
    ))  # fmt: skip
    shown = [(event.class_name, event.name, event.args) for event in trace.iter_events()]
    assert shown == [
        ("KER_CALL", "MSG_SENDV", {"coid": 0x40000001, "msg[0]": b"\0\0\0\0", "zzz": 7}),
        ("COMM", "SND_MESSAGE", {"rcvidx": 0x10001, "pid": 5}),  # no rcvid, rather than 0
        ("COMM", "SND_SMOKE", {"height": 12, "colour": "dark grey", "wide": 0xFFFFFFFFFFFF}),
        ("FROB", "XYZ", {"path": "/usr/lib/x"}),
        ("USREVENT", "EVENT 100", {"STR": "m4-fix-start", "d0": 1, "d1": 2}),
        ("OTHER", "EVENT", {"text": "no class at all"}),
        ("THREAD", "THRUNNING", {"pid": 7, "tid": 2, "CPU": 70}),
        ("CONTROL", "TIME?", {"msb": 1}),
    ]
    rows = np.arange(8)
    assert argument(trace, rows, "rcvid")[1].tolist() == [False] * 8
    assert argument(trace, rows, "pid")[0].tolist() == [0, 5, 0, 0, 0, 0, 7, 0]
    expression = Expression("arg.zzz == 7 or event == SND_SMOKE", trace.release)
    assert np.flatnonzero(expression.mask(trace)).tolist() == [0, 2]


def test_what_is_printed_back_is_what_came():
    events = (
        "t:0x00000001 CPU:00 COMM            :SND_MESSAGE        rcvid:0x00010001 pid:5 more:0x7",
        't:0x00000003 CPU:00 USREVENT        :EVENT:100          STR:"m4-fix-start", d0:0x00000001 d1:0x00000002',
        "t:0x00000004 CPU:00 KER_CALL        :SYNC_RWLOCK/77     syncp:0x00001234 op:0x00000002",
        "t:0x00000005 CPU:00 KER_EXIT        :SYNC_RWLOCK/77     ret_val:0x00000000 empty:0x00000000",
        "t:0x00000006 CPU:00 KER_EXIT        :MSG_SENDV/11       ret_val:0x00000000",
        "t:0x00000007 CPU:00 FROB            :XYZ                a:1 b:0x00000002",
    )  # fmt: skip
    text = lines(*events)
    listing, _ = read(text)
    # Three are seen in the data of others and fit.
    assert listing.line_counts.counts() == {
        "title": 2, "header": 1, "event": 3, "event that fits its row in part": 1, "event with raw values": 2,
    }  # fmt: skip
    back = re.sub(r"\n +(?=\S+:)", " ", printed(text).partition("EVENTS -- \n")[2])
    assert re.sub(r" +", " ", back) == re.sub(r" +", " ", "".join(f"{event}\n" for event in events))
    assert next(iter(unlisted_rows(listing)))[1:] == ("SND_MESSAGE: rcvid hex?, pid dec?, more hex?", 1)


def test_lines_alone_are_a_listing(tmp_path):
    path = tmp_path / "pasted.txt"
    path.write_text("t:7 CPU:0 FROB            :XYZ                a:1\n")
    trace = open_trace(path)
    assert [(event.class_name, event.name, event.args) for event in trace.iter_events()] == [("FROB", "XYZ", {"a": 1})]
    assert trace.arguments("XYZ")["a"].tolist() == [1]


@pytest.mark.parametrize(
    ("stamps", "cycles"),
    [
        (["1000123", "1000456", "1000999"], [1000123, 1000456, 1000999]),
        (["5000000123", "5000000456", "5000000999"], [5000000123, 5000000456, 5000000999]),
        (["00a00123", "00a00456", "00a00999"], [0xA00123, 0xA00456, 0xA00999]),
        (["0x00000000a00123", "0x00000000a00456", "0x00000000a00999"], [0xA00123, 0xA00456, 0xA00999]),
    ],
)
def test_times_are_read_and_printed_back_in_their_notation(stamps, cycles):
    text = lines(*(f"t:{stamp} CPU:00 THREAD          :THREADY            pid:7 tid:2" for stamp in stamps))
    _, trace = read(text)
    assert trace.events.time_cycles.tolist() == cycles
    assert re.findall(r"(?m)^t:(\S+)", printed(text)) == stamps


def test_low_stamps_stay_low_where_the_clock_is_known():
    text = lines(
        "t:0x00000010 CPU:00 CONTROL         :TIME               msb:0x00000005 lsb(offset):0x00000010",
        "t:0x00000020 CPU:00 THREAD          :THREADY            pid:7 tid:2",
    )
    _, trace = read(text)
    assert trace.events.time_cycles.tolist() == [0x500000010, 0x500000020]
    assert re.findall(r"(?m)^t:(\S+)", printed(text)) == ["0x00000010", "0x00000020"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["export"], "2 events"), (["filter"], "2 events"), (["export", "-e", 'event == "NEW_B"'], "1 event"),
        (["filter", "-e", "class == COMM"], ""),
    ],
)  # fmt: skip
def test_a_kev_file_says_how_many_names_it_cannot_hold(command, said, tmp_path, capsys):
    path, out = tmp_path / "x.txt", tmp_path / "x.kev"
    path.write_text(
        lines(
            "t:0x1 CPU:00 FRESH           :NEW_A              a:0x00000001",
            "t:0x2 CPU:00 FRESH           :NEW_B              b:0x00000002",
            "t:0x3 CPU:00 COMM            :REC_PULSE          scoid:0x40000001 pid:1",
        )
    )
    assert main([*command, str(path), "-o", str(out)]) == 0
    sentence = f"  names of arguments are left out for {said} that fit no row: a .kev file cannot hold names\n"
    printed = capsys.readouterr().out
    assert (sentence in printed) if said else "fit no row" not in printed


def test_one_stray_cpu_makes_no_lanes():
    events = [f"t:0x{i:08x} CPU:{i % 2:02d} THREAD          :THREADY            pid:7 tid:2" for i in range(1, 60)]
    _, trace = read(lines(*events, "t:0x00000100 CPU:09 THREAD          :THREADY            pid:7 tid:2"))
    assert (trace.cpu_count, int(trace.events.cpu.max())) == (2, 9)


def test_where_texts_of_a_line_are():
    """One behind the other, each with its zero byte: bytes 4 to 6, 8 to 15, and 17."""
    _, trace = read(lines('t:0x00000001 CPU:00 COMM            :SND_TEXTS         a:abc b:"efghijkl" c:7 d:m'))
    shown = [(each.name, each.value, each.first_word, each.words) for each in trace.payloads.decode(0).arguments]
    assert shown == [("a", "abc", 1, 1), ("b", "efghijkl", 2, 2), ("c", 7, 0, 1), ("d", "m", 4, 1)]

"""Listings read back: every line is accounted for, and the slots are those of the file the listing was printed from."""

import io
import re
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import TraceFormatError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from satview.formats.listing.reader import open_listing, read_listing
from satview.formats.registry import open_trace
from satview.formats.source import opened
from satview.store.problems import Problems
from tests.helpers.extent import fewer
from tests.helpers.shared import GUIDE_LISTINGS, shared_path

VENDOR = ("control", "int", "ker_fast", "process", "threads", "threads_be", "user")
HEAD_6 = """TRACEPRINTER version 1.02
TRACEPARSER LIBRARY version 1.02
 -- HEADER FILE INFORMATION -- 
   TRACE_LITTLE_ENDIAN:: TRUE
  TRACE_CYCLES_PER_SEC:: 1000000
     TRACE_SYS_RELEASE:: 6.4.1
 -- KERNEL EVENTS -- 
"""  # noqa: W291
HEAD_7 = HEAD_6.replace("6.4.1", "7.1.0")


def read(text):
    problems = Problems()
    data = text if isinstance(text, bytes) else text.encode()
    return read_listing(io.BytesIO(data), problems), problems


def slots(text, head=HEAD_6):
    listing, problems = read(head + text)
    assert problems.counts() == {}
    return listing.slot_array().tolist()


def events_of(array):
    """Return {(header without structure bits, stamp): [payload words, ...]} of slots."""
    done, unfinished = {}, {}
    for header, stamp, *words in array.tolist():
        key = header & 0x3FFFFFFF, stamp
        if header >> 30 == 0:
            done.setdefault(key, []).append(words)
        elif header >> 30 == 1:
            unfinished.setdefault(key, []).append(words)
        elif unfinished.get(key):
            unfinished[key][0] += words
            if header >> 30 == 3:
                done.setdefault(key, []).append(unfinished[key].pop(0))
    return done


@pytest.mark.parametrize(
    "name",
    [f"golden/{name}.results.txt" for name in GUIDE_LISTINGS]
    + [f"golden/vendor-6.x/{name}.txt" for name in VENDOR]
    + [
        f"golden/vendor-6.x/{name}.n.txt"
        for name in fewer(("process", "user", "control", "int", "ker_fast", "threads", "threads_be"), 2)
    ]
    + [
        "golden/vendor-6.x/threads.v.txt",
        "real/qnx71-ker_call.traceprinter.txt",
        "real/qnx641-docs-using_traceprinter-excerpt.txt",
    ],
)
def test_every_line_is_accounted_for_and_understood(name):
    data = shared_path(name).read_bytes()
    listing, problems = read(data)
    assert listing.line_counts.lines == len(data.splitlines())
    assert listing.line_counts.part == listing.line_counts.raw == 0
    # Three names have a line end in them: what follows it cannot be decided from a line of something else.
    assert listing.line_counts.foreign == (3 if "process" in name else 0)
    assert set(problems.counts()) <= {"cut-listing", "listing-digits", "foreign-line"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [f"golden/{name}.results.txt" for name in GUIDE_LISTINGS]
    + [f"golden/vendor-6.x/{name}.txt" for name in VENDOR]
    + ["real/qnx71-ker_call.traceprinter.txt"],
)
def test_counts_per_event_equal_those_of_a_grep(name):
    text = shared_path(name).read_bytes().decode("latin-1")
    trace = open_trace(shared_path(name))
    number = {wire.class_of(c): c for c in range(0, wire.CODE_COUNT, 1024)}
    assert len(number) == 32
    labels = Counter()
    for class_name, label in re.findall(r"t:0x[0-9a-fl]{7,16} CPU:\d\d ([A-Z_]+) *: *(\w+)", text):
        labels["INT" if class_name.startswith("INT_") and class_name != "INT_CALL" else label] += 1
    counted = Counter()
    for code in np.flatnonzero(trace.code_counts).tolist():
        spec = trace.catalogue.spec(code)
        label = (trace.release == Release.QNX_6 and spec.label) or spec.name
        if spec.class_name == "VTHREAD":
            label = label.removeprefix("V") if label not in ("VTHCREATE", "VTHDESTROY") else label
        elif spec.class_name == "INT_CALL":
            label = f"KER_{label}"
        elif spec.class_name == "USREVENT":
            label = "EVENT"
        elif spec.class_name.startswith("INT_"):
            label = "INT"
        elif not spec.is_known:
            label = "BAD"  # call 101 of the sources that the vendor-made listing comes from
        counted[label] += int(trace.code_counts[code])
    assert counted == labels


def explained(code, ours, real):
    """Show why a listing cannot carry the words that the file has: returns the reason, or None."""
    names = catalogue(Release.QNX_6)
    class_name, name = names.class_name(code), names.name(code)
    if name == "BUFFER" and ours[1] == real[1] and ours[0] == real[0] & 0x7FF:
        return "the printer masks the sequence number"
    if name == "INT_HANDLER_EXIT" and ours[:2] == real[:2]:
        return "the text of this kind of sigevent does not show all of its words"
    if class_name in ("PROCESS", "THREAD") and ours[:2] == real[:2]:
        return "names stop at their NUL, unprintable ones are not shown; CREATE and DESTROY show three words at most"
    if class_name == "USREVENT":
        return "only text is shown, and only if it is printable"
    return None


@pytest.mark.parametrize("name", VENDOR)
def test_slots_of_a_vendor_listing_are_those_of_its_file(name):
    listing, _ = read(shared_path(f"golden/vendor-6.x/{name}.txt").read_bytes())
    trace = open_kev(shared_path(f"golden/vendor-6.x/{name}.kev"))
    real = events_of(trace.payloads.slots)
    ours = events_of(listing.slot_array())
    assert ours.keys() <= real.keys()
    unlike = [(key, a, b) for key, found in ours.items() for a, b in zip(found, real[key], strict=False) if a != b]
    assert all(explained(key[0] & 0x7FFF, a, b) for key, a, b in unlike), unlike
    if name in ("control", "ker_fast"):
        assert len(unlike) <= 1
    missing = {trace.catalogue.class_name(key[0] & 0x7FFF) for key in real.keys() - ours.keys()}
    assert missing <= {"CONTROL", "INTERRUPT", "INT_CALL", "KER_CALL", "KER_EXIT", "PROCESS", "THREAD", "VTHREAD"}


def test_verbose_listing_gives_the_very_slots_of_its_file():
    listing, _ = read(shared_path("golden/vendor-6.x/threads.v.txt").read_bytes())
    trace = open_kev(shared_path("golden/vendor-6.x/threads.kev"))
    assert np.array_equal(listing.slot_array(), trace.payloads.slots)
    assert listing.pairs == list(trace.header.pairs)


@pytest.mark.thorough
def test_full_times_of_the_7_1_listing():
    path = shared_path("real/qnx71-ker_call.traceprinter.txt")
    trace = open_listing(path)
    printed = [int(text, 16) for text in re.findall(r"^t:0x([0-9a-f]+)", path.read_text(), re.MULTILINE)]
    assert len(printed) == len(trace.events) == 13_865
    assert trace.events.time_cycles[np.argsort(trace.last_slots(), kind="stable")].tolist() == printed
    assert trace.release == Release.QNX_7
    assert trace.class_counts()["SYSTEM"] == 7606
    assert not trace.problems.counts()


def test_collapsed_blanks_and_inserted_blank_lines_change_nothing():
    plain = (
        "t:0x00000011 CPU:00 PROCESS :PROCCREATE_NAME\n                      ppid:1\n"
        "                       pid:2\n"
        "                      name:sh\nt:0x00000012 CPU:00 THREAD  :THRUNNING     pid:2 tid:1 \n"
    )
    typeset = (
        "t:0x00000011 CPU:00 PROCESS :PROCCREATE_NAME\n\n ppid:1\n\npid:2\nname:sh\n\n"
        "t:0x00000012 CPU:00 THREAD :THRUNNING pid:2 tid:1\n"
    )
    assert slots(plain) == slots(typeset)


def test_big_endian_text_and_64_bit_values_are_as_the_target_had_them():
    head = HEAD_6.replace("TRACE_LITTLE_ENDIAN", "TRACE_BIG_ENDIAN")
    found = slots("t:0x00000001 CPU:00 PROCESS :PROCCREATE_NAME ppid:1 pid:2 name:abc\n", head)
    assert found[1][2] == 0x61626300
    mapped = slots("t:0x00000001 CPU:00 SYSTEM  :MUNMAP          pid:1 vaddr:0x100000002 len:0x3\n", head)
    assert [word for slot in mapped for word in slot[2:]] == [1, 1, 2, 0, 3, 0]


def test_full_times_survive_without_time_events(tmp_path):
    """An excerpt of a 7.1 listing: silences longer than a rollover of the low word must not shrink."""
    path = tmp_path / "excerpt.txt"
    stamps = [0x65570A8B78A, 0x65570A8B78B, 0x65999999999, 0x65A00000000]
    path.write_text(
        HEAD_7 + "".join(f"t:0x{stamp:x} CPU:00 THREAD          :THREADY            pid:1 tid:1\n" for stamp in stamps)
    )
    assert open_listing(path).events.time_cycles.tolist() == stamps
    with opened(path) as source:
        assert [time for batch in source.events for time in batch.time_cycles.tolist()] == stamps


def test_rubbish_is_named_with_its_line():
    listing, problems = read(
        HEAD_6 + "what is this\nt:0x00000001 CPU:00 KER_CALL:NO_SUCH/12x y\n"
        "t:0x00000002 CPU:00 THREAD :THREADY pid:1 tid:1\n.\n.\n.\n"
    )
    assert sorted((problem.kind.slug, problem.line) for problem in problems) == [
        ("cut-listing", 11),
        ("foreign-line", 8),
        ("unlisted-line", 9),
    ]
    assert listing.events == 2
    assert listing.line_counts.lines == 13


def test_a_file_without_any_event_is_refused(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("TRACEPRINTER version 1.02\n")
    with pytest.raises(TraceFormatError, match="it has no line with an event"):
        open_listing(path)


LINES = st.sampled_from(
    [
        "t:0x00000001 CPU:00 ",
        "t:0x",
        "CPU:99 ",
        "KER_CALL:MSG_SENDV/11",
        " coid:0x00000001",
        "\n",
        ' msg:"a" (0x00000061)',
        ".\n",
        "event => h:0x",
        "event => h:0x00001001 d0:0x00000001 d1:0x00000002 d2:0x00000003",
        "THREAD  :THREADY ",
        " pid:1",
        " tid:-7",
        "PROCESS :PROCCREATE_NAME",
        " name:x",
        "ret_val:-1, errno:4",
        "KER_EXIT:NOP/00 ",
        "USREVENT:",
        'EVENT:5 STR:"',
        '"',
        "INT_HANDLER_EXIT:0x00000001 (1) SIGEVENT:",
        "PULSE 1:2 3:4",
        " -- KERNEL EVENTS -- \n",
        "TRACE_A:: b\n",
        "state 5",
        "EVENT 9999",
        "word 0:0x00000001",
        "CLASS 13 :EVENT 5 word 0:0x00000001",
        "\x00",
        "é",
    ]
)


@given(st.lists(LINES, max_size=40).map("".join))
def test_any_mixture_is_accounted_for(text):
    data = text.encode()
    listing, _ = read(data)
    assert listing.line_counts.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert listing.slot_array().shape[1] == 4


@given(st.binary(max_size=300))
def test_any_bytes_are_accounted_for(data):
    listing, _ = read(data)
    assert listing.line_counts.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


@pytest.mark.parametrize(
    "hostile",
    [
        'KER_CALL:MSG_SENDV/11 coid:0x00000001 msg:"' + '" (0x' * 8000,
        "KER_CALL:MSG_SENDV/11\n" + "x\n" * 8000,
        "PROCESS :PROCCREATE_NAME ppid:1 pid:2 name:" + "a" * 60_000,
        "KER_EXIT:NOP/00 ret_val:-1, errno:4t:0x00000001 CPU:00 " * 1000,
        'USREVENT:EVENT:5 STR:"' + '", d0:0x00000000' * 3000,
        "SYSTEM :TIMER" + " A" * 20_000 + "!",
    ],
)
def test_hostile_lines_take_no_time(hostile):
    text = HEAD_6 + f"t:0x00000001 CPU:00 {hostile}\n" * 4
    start_s = time.perf_counter()
    read(text)
    assert time.perf_counter() - start_s < 2.0

"""Headers that the vendor's 6.4 tools get through: no pair above their window, no end in the wrong position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.__main__ import main
from satview.base.errors import UsageError
from satview.capture.buffers import start_of_file
from satview.capture.sim.target import target
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.export.kev import write_verbatim
from satview.formats.kev import header
from satview.formats.kev.header import header_bytes, parse_header
from satview.formats.registry import open_trace
from tests.helpers.extent import fewer, usually
from tests.helpers.header_windows import why_it_hangs

TARGETS = [target(release, 2, "", None) for release in (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)]


def raw_header(*pairs):
    """Return a header with the pairs as they are."""
    return b"".join((b"TRACE_HEADER_BEGIN::", *(f"TRACE_{k}::{v}".encode() for k, v in pairs), b"TRACE_HEADER_END::"))


def of_capture(here, name, attribute):
    args = f"tracelogger -d1 -n 32 -A note={attribute} -f {name}"
    pairs, _page, _order = start_of_file(here, name, 0, [("note", attribute), ("TRACELOGGER_ARGS", args)])
    return pairs


def test_the_checker_sees_a_pair_above_the_window():
    after = ("C", "x" * 40)
    assert why_it_hangs(raw_header(("A", "x" * 90), after)) == ""
    assert why_it_hangs(raw_header(("A", "x" * 91), after)) == "window at 26 holds no whole pair"


@pytest.mark.parametrize(("length", "hangs"), [(52, False), (53, True), (64, True), (65, False)])
def test_the_checker_sees_a_window_that_ends_in_the_end_mark(length, hangs):
    # The end mark is at 20 + 9 + length; it is cut by byte 99 from 82 to 93.
    assert bool(why_it_hangs(raw_header(("A", "x" * length)))) == hangs


@pytest.mark.thorough
@pytest.mark.parametrize("here", fewer(TARGETS[::-1], 1), ids=lambda here: here.release.name)
def test_headers_of_captures_hold_for_every_length(here):
    for name_length in range(1, 121, usually(4, complete=1, thorough=1)):
        for attribute_length in range(0, 201, 1 if name_length % 20 == 1 else 23):
            pairs = of_capture(here, "n" * name_length, "a" * attribute_length)
            data = header_bytes(pairs)
            assert why_it_hangs(data) == "", (name_length, attribute_length)
            assert parse_header(data, None, len(data)).pairs == pairs  # nothing is lost or added


@pytest.mark.parametrize("workload", fewer([name for name, _ in registry.names()], 3))
def test_captures_of_every_workload_hold(workload, tmp_path, capsys):
    path = tmp_path / ("f" * 116 + ".kev")
    note = "long " * 40
    code = main(["tracelogger", "--workload", workload, "--duration", "0.01", "-f", str(path), "-A", f"note={note}"])
    assert code in (0, 1), capsys.readouterr().err  # 1: the workload itself ran into a deadlock
    assert why_it_hangs(path.read_bytes()) == ""
    header = parse_header(path.read_bytes(), None, path.stat().st_size)
    assert header.get("FILE_NAME") == path.name
    assert header.get("note") == note
    assert header.get("TRACELOGGER_ARGS").endswith(path.name)


def test_a_copy_of_a_file_that_hangs_them_does_not(tmp_path):
    old, new = tmp_path / "old.kev", tmp_path / "new.kev"
    long = ("TRACELOGGER_ARGS", "tracelogger -f " + "p" * 300)
    data = raw_header(
        ("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "7.1.0"), ("CYCLES_PER_SEC", "1000"), ("SYSPAGE_LEN", "0"), long
    )
    assert why_it_hangs(data)
    old.write_bytes(data + bytes(16))
    write_verbatim(open_trace(old), new)
    assert why_it_hangs(new.read_bytes()) == ""
    assert open_trace(new).header.get("TRACELOGGER_ARGS") == long[1]


@pytest.mark.thorough
@given(st.lists(st.tuples(st.text(min_size=1, max_size=60), st.text(max_size=300)), max_size=8))
def test_any_pairs_are_read_back_or_refused(pairs):
    try:
        data = header_bytes(pairs)
    except UsageError:
        return
    assert why_it_hangs(data) == ""
    readable = [tuple(text.encode("utf-8", "replace").decode() for text in pair) for pair in pairs]
    assert list(parse_header(data, None, len(data)).pairs) == readable


def test_a_foreign_numbered_key_is_left_alone():
    data = raw_header(("A", "x"), ("A+2", "y"), ("PAD", ""))
    assert parse_header(data, None, len(data)).pairs == (("A", "x"), ("A+2", "y"), ("PAD", ""))


@pytest.mark.parametrize(("key", "says"), [("k:", "ends with ':'"), ("k" * 95, "a name of 95 bytes is too long")])
def test_keys_that_are_refused(key, says):
    """`TRACE_k:` and `::v` would be read back as key `k` and value `:v`; of 95 bytes no window holds the pair."""
    with pytest.raises(UsageError, match=says):
        header_bytes([(key, "v")])


@pytest.mark.parametrize(
    ("size", "is_whole"),
    [(61, True), (62, False), (73, False), (74, True), (87, True), (88, False), (99, False), (100, True)],
)
def test_windows_that_end_in_the_end_mark(size, is_whole):
    """A pair is from byte 20 on, then the mark of 18 bytes; a window ends at byte 99, or at 125 if it lacks the pair.

    Of the mark `TRACE_` alone tells nothing, so that a window with less than these 6 bytes of it is whole.
    """
    assert header._end_is_whole([size]) is is_whole

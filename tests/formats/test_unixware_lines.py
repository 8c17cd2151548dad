"""Lines of thread_trace files: numbers in every notation, damage, and the fast way against the slow one."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satview.formats.unixware import columns
from satview.formats.unixware.columns import LONGEST_LINE, parse_block, parse_line

GOOD = b"1:2:3:4:5:6:7:0:8:9:10:11:12"


def test_a_plain_line_is_thirteen_numbers():
    records = parse_block(GOOD + b"\n")
    assert records.values.tolist() == [[1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12]]
    assert records.damaged == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"0x1F", 31),
        (b"-1", -1),
        (b"+7", 7),
        (b" 42\t", 42),
        (b"0XfFfFfFfFfFfFfFfF", -1),
        (b"9223372036854775807", 2**63 - 1),
        (b"-0x10", -16),
        (b"007", 7),
    ],
)
def test_notations_of_numbers(field, value):
    line = GOOD.replace(b":8:", b":" + field + b":")
    assert parse_line(line)[8] == value
    assert parse_block(line + b"\n").values[0, 8] == value


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"1:2:3", "13 fields"),
        (GOOD + b":", "13 fields"),
        (GOOD.replace(b":8:", b":x:"), "not a number"),
        (GOOD.replace(b":8:", b"::"), "not a number"),
        (GOOD.replace(b":8:", b":" + b"9" * 50 + b":"), "not a number"),
        (GOOD.replace(b":8:", b":99999999999999999999:"), "not a number"),
        (GOOD.replace(b":8:", b":8-:"), "not a number"),
        (GOOD.replace(b":8:", b":--8:"), "not a number"),
        (GOOD.replace(b":8:", b":-:"), "not a number"),
        (b"1:1000000000" + GOOD[3:], "time"),
        (GOOD.replace(b":3:", b":-3:"), "id of"),
        (b"a" * (LONGEST_LINE + 1), "longer"),
        (b"\x00\xff", "13 fields"),
    ],
)
def test_damaged_lines_are_named_and_the_others_stand(line, what):
    records = parse_block(GOOD + b"\n" + line + b"\n" + GOOD)
    assert len(records.values) == 2
    assert records.line.tolist() == [0, 2]
    assert [number for number, _ in records.damaged] == [1]
    assert what in records.damaged[0][1]


def test_letters_between_nines_are_no_number():
    nines = b":".join([b"9"] * 13)
    records = parse_block(nines + b"\n" + nines[:-1] + b"x\n" + nines[:-1] + b"/\n")
    assert (records.values.tolist(), records.line.tolist()) == ([[9] * 13], [0])
    assert records.damaged == [(1, "a field is not a number"), (2, "a field is not a number")]


def test_blank_lines_and_line_ends_of_other_systems_are_no_damage():
    records = parse_block(b"\n" + GOOD + b"\r\n  \n\n" + GOOD)
    assert records.line.tolist() == [1, 4]
    assert records.damaged == []
    assert records.values[0].tolist() == records.values[1].tolist()


_number = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(lambda n: str(n).encode()),
    st.integers(0, 99).map(lambda n: str(n).encode()),
    st.sampled_from(
        [b"", b"-", b"+1", b"0x", b"0xff", b" 1", b"1 ", b"1_0", b"1e3", b"\xd9\xa3", b"0" * 20, b"9" * 30]
    ),
)


_line = st.one_of(st.lists(_number, min_size=12, max_size=14).map(b":".join), st.binary(max_size=60))


@given(st.lists(_line, max_size=8))
@example([b"1:2:3:4:5:6:7:8:9:10:11:12:13", b":" * 12])
def test_blocks_agree_with_lines(lines):
    data = b"\n".join(lines)
    records = parse_block(data)
    expected, damaged = [], set()
    for number, line in enumerate(data.split(b"\n")):
        found = parse_line(line)
        if isinstance(found, tuple):
            in_range = 0 <= found[0] <= 9_000_000_000 and 0 <= found[1] < 10**9
            if in_range and all(0 <= one < 2**31 for one in found[2:5]):
                expected.append((number, *found))
                continue
        if line.strip(b" \t\r\x0b\x0c"):
            damaged.add(number)
    got = [(number, *values) for number, values in zip(records.line.tolist(), records.values.tolist(), strict=True)]
    assert got == expected
    assert {number for number, _ in records.damaged} == damaged


@given(st.binary(max_size=2000))
def test_any_bytes_give_records_or_damage(data):
    records = parse_block(data)
    assert records.values.shape == (len(records.line), 13)
    assert np.all(np.diff(records.line) > 0)


def _changed(field: int, text: bytes) -> bytes:
    fields = GOOD.split(b":")
    fields[field] = text
    return b":".join(fields)


@pytest.mark.parametrize(
    ("field", "last", "beyond"),
    [
        (0, b"9000000000", b"9000000001"),
        (0, b"0", b"-1"),
        (1, b"999999999", b"1000000000"),
        (1, b"0", b"-1"),
        *((field, str(columns._LARGEST_ID).encode(), str(columns._LARGEST_ID + 1).encode()) for field in (2, 3, 4)),
        *((field, b"0", b"-1") for field in (2, 3, 4)),
        (12, b"18446744073709551615", b"18446744073709551616"),
        (12, b"-9223372036854775808", b"-9223372036854775809"),
        (12, b"0XfF", b"0Xg"),
        (12, b" +7 ", b"+ 7"),
    ],
)
def test_the_last_number_that_a_field_may_hold(field, last, beyond):
    records = parse_block(_changed(field, last) + b"\n" + _changed(field, beyond) + b"\n")
    assert records.line.tolist() == [0]
    assert [line for line, _ in records.damaged] == [1]
    value = int(last, 16) if b"X" in last else int(last)
    assert records.values[0, field] == (value - (1 << 64) if value >= 1 << 63 else value)


def test_a_line_as_long_as_any_is_read():
    filler = _changed(12, b"1" + b" " * (LONGEST_LINE - len(_changed(12, b"1"))))
    records = parse_block(filler + b"\n" + filler + b" \n")
    assert records.line.tolist() == [0]
    assert records.damaged == [(1, f"it is longer than {LONGEST_LINE} bytes")]


def test_an_odd_line_far_behind_the_start_is_as_long_as_it_is():
    odd = _changed(12, b" 0x10")
    records = parse_block((GOOD + b"\n") * 300 + odd + b"\nbad\n")
    assert (len(records.values), records.values[-1, 12], records.line_count) == (301, 16, 302)
    assert records.damaged == [(301, "it has not 13 fields")]

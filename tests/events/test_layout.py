"""Where arguments are: by release, code and word count; and that what hot paths take for granted is so."""

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.analysis.times import message_times
from satview.events import variants, wire
from satview.events.catalogue import catalogue
from satview.events.layout import (
    argument_part,
    arguments_of,
    is_same_name,
    layout_of,
    logged_list,
    printed_layout,
    text_at,
    text_offset,
)
from satview.events.spec import Release
from satview.events.variants import encode, join64, sigevent_words, split64
from satview.filters.derived_columns import _PRIORITY_WORD
from satview.filters.external import external_of
from tests.filters.made import RUNNING, made

QNX = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
CALL, EXIT = wire.code(2, 0), wire.code(2, 128)
FLAG = wire.KER_64BIT
MSG_SENDV, TRACE_EVENT, MUTEX_UNLOCK, TIMER_TIMEOUT = (CALL | number for number in (11, 1, 81, 75))


def names(layout):
    return [(part.name, part.word, part.words) for part in layout.parts]


def test_word_counts_show_fast_from_wide():
    fast, wide = (layout_of(Release.QNX_7, MSG_SENDV | FLAG, count) for count in (2, 8))
    assert (fast.form, names(fast)) == ("fast", [("coid", 0, 1), ("msg[0]", 1, 1)])
    assert wide.form == "wide"
    assert names(wide)[:4] == [("coid", 0, 1), ("sparts", 1, 2), ("rparts", 3, 2), ("msg[0]", 5, 1)]
    assert layout_of(Release.QNX_7, MSG_SENDV | FLAG, 4).form == "raw"
    assert names(layout_of(Release.QNX_6, wire.THREAD_RUNNING, 4))[2:] == [("priority", 2, 1), ("policy", 3, 1)]


def test_a_payload_without_its_padding_is_laid_out_as_with_it():
    """The kernel calls handlers before it pads."""
    expected = [("id", 0, 1), ("new(sec)", 1, 1), ("new(nsec)", 2, 1)]
    for count in (3, 4):
        assert names(layout_of(Release.QNX_6, CALL | 65, count)) == expected


def test_the_mode_of_trace_event_counts_its_arguments():
    assert variants.variant_of(Release.QNX_6, TRACE_EVENT, (0x30000005, 7, 9, 0)) == 3
    three = layout_of(Release.QNX_6, TRACE_EVENT, 4, 3)
    assert [name for name, _, _ in names(three)] == ["mode", "class[header]", "event[time_off]"]
    assert variants.variant_of(Release.QNX_6, TRACE_EVENT, (1, 2, 3, 4)) == variants.BY_COUNT
    assert layout_of(Release.QNX_6, TRACE_EVENT, 4).form == "raw"


@pytest.mark.parametrize(
    ("code", "words", "variant", "error"),
    [
        (EXIT | 11, (-1, 4711), variants.FAILED, 4711),
        (EXIT | 11, (-1, -1), variants.FAILED, -1),
        (EXIT | 11 | FLAG, (-1, 1023), variants.FAILED, 1023),
        (EXIT | 11 | FLAG, (-1, 1024), variants.DOUBTFUL, None),
        (EXIT | 16 | FLAG, (-1, -1), variants.FAILED_UNKNOWN, None),
        (EXIT | 16 | FLAG, (-1, -1, 4, 0), variants.FAILED_64, 4),
        (EXIT | 16 | FLAG, (-1, -1, 4000, 0), variants.FAILED_UNKNOWN, None),
        (EXIT | 16, (-1, 4, 0, 0), variants.BY_COUNT, None),
        (CALL | 11, (-1, 4), variants.BY_COUNT, None),
    ],
)
def test_failed_calls(code, words, variant, error):
    """Section 8.3, for one event and for a column of them."""
    words = [word & 0xFFFFFFFF for word in words]
    assert variants.variant_of(Release.QNX_7, code, words) == variant
    assert variants.error_of(Release.QNX_7, code, words) == error
    column = np.array([words], np.uint32)
    found = variants.variants(Release.QNX_7, np.array([code]), np.array([len(words)]), lambda at, n: column[at, n])
    assert found.tolist() == [variant]


def test_two_words_are_on_the_wire_where_the_guide_names_three():
    for release in QNX[1:]:
        _, fields = logged_list(release, TIMER_TIMEOUT, is_wide=False)
        assert [field.name for field in fields] == ["timeout_flags", "ntime(sec)"]
    _, fields = logged_list(Release.QNX_7, MUTEX_UNLOCK | FLAG, is_wide=False)
    assert [(field.name, field.words) for field in fields] == [("sync_p", 2)]


def test_what_has_no_fast_list_of_64_bits_is_logged_without_the_flag():
    code, fields = logged_list(Release.QNX_7, CALL | 15 | FLAG, is_wide=False)
    assert (code, [field.name for field in fields]) == (CALL | 15, ["rcvid", "status"])
    assert logged_list(Release.QNX_7, wire.code(5, 0x210), is_wide=False)[0] == wire.code(5, 0x210), "a system event"
    created = logged_list(Release.QNX_6, wire.THREAD_CREATE, is_wide=True)[1]
    assert [field.name for field in created] == ["pid", "tid"], "two words in either mode up to 6.5"


def test_the_printer_of_6_4_goes_on_until_the_payload_is_used_up():
    assert layout_of(Release.QNX_6, MSG_SENDV, 4).form == "raw"
    printed = printed_layout(Release.QNX_6, MSG_SENDV, 4)
    assert [part.name for part in printed.parts] == ["coid", "sparts", "rparts", "msg"]
    assert printed_layout(Release.QNX_7, MSG_SENDV, 4) is None
    assert printed_layout(Release.QNX_7, wire.code(8, 3), 4) is None, "QUIP"


def test_texts_are_where_the_numbers_end():
    part = text_offset(Release.QNX_7, wire.code(9, 4), 10)
    assert (part.name, part.word) == ("class_name", 4)
    second = argument_part(Release.QNX_7, wire.code(9, 4), 10, "perm_name")
    assert text_at(bytes(16) + b"file\0open\0\0\0", second) == "open"
    assert text_offset(Release.QNX_7, wire.code(5, 6), 12) is None, "MMAP of no file"
    assert text_offset(Release.QNX_7, wire.code(6, 1), 2) is None, "two words of a user event are no text"


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"hello world\0", "hello world"),
        (b"hello world!", "hello world!"),
        (b"a\tb\nc\0\0\0\0\0\0\0", "a\tb\nc"),
        (b"short\0\0\0", None),
        (b"hello\0rest\0\0", None),
        (b"\x01\x02\x03\x04defghijk", None),
        (bytes(12), None),
        (b"\xff\xfe not utf\0\0", None),
    ],
)
def test_user_texts(payload, text):
    assert variants.user_text(payload) == text


def test_spellings():
    assert is_same_name("msg", "msg[0]")
    assert is_same_name("ntime(sec)", "ntime_sec")
    assert not is_same_name("msg[1]", "msg")
    assert "sigevent" not in {part.name for part in arguments_of(Release.QNX_7, wire.code(3, 4))}, "nothing to compare"
    assert {"ret_val", "errno"} <= {part.name for part in arguments_of(Release.QNX_7, EXIT | 11)}


def test_64_bit_values_in_both_byte_orders():
    assert split64(0x1_00000002, "little") == (2, 1)
    assert split64(-2, "big") == (0xFFFFFFFF, 0xFFFFFFFE)
    assert join64(2, 1, "little") == join64(1, 2, "big") == 0x1_00000002
    plan = (("a", 1), ("b", 2), ("t", 0))
    assert encode(plan, {"a": -1, "b": 5, "t": b"abc"}, "big") == [0xFFFFFFFF, 0, 5, 0x61626300]
    assert encode((("a", 1), ("t", 0)), {}, "little") == [0], "no value is 0, no text is none"
    assert sigevent_words(4, 1, 2, -3, 21, "little")[3] == 21 << 16 | 0xFFFD
    assert sigevent_words(4, 1, 2, -3, 21, "big")[3] == 0xFFFD << 16 | 21


@pytest.mark.parametrize("release", QNX)
def test_hot_paths_take_these_words_for_granted(release):
    """Reading of owners, states, messages and interrupts is by number: the layouts have to agree."""
    book = catalogue(release)

    def words(code, name):
        spec = book.spec(code)
        return {
            part.word
            for fields in (spec.fast, spec.wide)
            if fields
            for part in layout_of(release, code, sum(field.words for field in fields) or 2).parts
            if part.name == name
        }

    for code in book.codes():
        spec = book.spec(code)
        if spec.class_name == "THREAD":
            assert (words(code, "pid"), words(code, "tid")) == ({0}, {1})
            assert words(code, "priority") <= {_PRIORITY_WORD}
        if spec.class_name == "PROCESS":
            assert words(code, "pid") == ({0} if code == wire.PROC_THREAD_NAME else {1})
            assert words(code, "name") <= {2}
        if code in (wire.code(7, 0), wire.code(7, 2)):
            assert (words(code, "rcvid"), words(code, "pid")) == ({0}, {message_times._PID_WORD})
        if code in (wire.code(7, 10), wire.code(7, 11)):
            assert (words(code, "tid"), words(code, "pid")) == ({0}, {1})
        vector = words(code, "interrupt_number") | words(code, "intr_id")
        if wire.class_of(code) == wire.WireClass.INT:
            assert vector == {external_of(code, release).vector_word}, spec


def test_statistics_take_an_error_that_is_no_errno_as_the_details_show_it():
    """A damaged exit: -1 and -1. The error is -1, of that call, and not 4,294,967,295 of another."""
    minus = 0xFFFFFFFF
    trace = made(
        [
            (10, 0, RUNNING, (7, 1)),
            (20, 0, MSG_SENDV, (3, 4)),
            (30, 0, EXIT | 11, (minus, minus)),
            (40, 0, MSG_SENDV, (3, 4)),
            (50, 0, EXIT | 11, (minus, 4)),
        ]
    )
    calls = Statistics(trace).calls
    reported = {name: sorted(errors) for name, errors in zip(calls.code.tolist(), calls.errors, strict=True)}
    assert reported == {MSG_SENDV: [(-1, 1), (4, 1)]}

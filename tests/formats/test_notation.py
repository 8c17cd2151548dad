"""How values of payloads are written, and what their numbers mean: one row for each rule and each of its bounds."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from satview.events import variants, wire
from satview.events.catalogue import catalogue, shown_texts, table_texts
from satview.events.spec import Release
from satview.formats.kev import payloads
from satview.formats.kev.payloads import MORE, decode_payload

Q6, Q7, Q8 = (catalogue(release) for release in (Release.QNX_6, Release.QNX_7, Release.QNX_8))
USER_TEXT = wire.code(wire.WireClass.USER, 1025)


def shown(book, name, words, order="little", most=None):
    """Return name, text and note of every argument of an event given by name or code."""
    code = name if isinstance(name, int) else next(iter(sorted(book.find(name))))
    raw = struct.pack(f"{'<' if order == 'little' else '>'}{len(words)}I", *(word & 0xFFFFFFFF for word in words))
    return [
        (each.name, each.text, each.note) for each in decode_payload(book.spec(code), raw, order, book, most).arguments
    ]


@pytest.mark.parametrize(
    ("value", "words", "text", "number"),
    [
        (0, 1, "0x00000000", 0), (42, 1, "0x0000002a", 42), (0x7FFFFFFF, 1, "0x7fffffff", 2**31 - 1),
        (0x80000000, 1, "0x80000000", -(2**31)), (0xFFFFFFFF, 1, "0xffffffff", -1),
        (1 << 32, 2, "0x0000000100000000", 1 << 32), (1 << 63, 2, "0x8000000000000000", -(1 << 63)),
    ],
)  # fmt: skip
def test_numbers(value, words, text, number):
    assert payloads.hex_text(value, words) == text
    assert payloads.signed(value, words) == number


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"RSVP", "RSVP"), (b"RSVPnext", "RSVPnext"), (b"RSV\0next", "RSV"), (b"\0SVPnext", ""),
        (b" ~\nxnext", " ~\nxnext"), (b"a\x7fbcnext", ""), (b"a\x1fbcnext", ""), (b"a\rbcnext", ""),
        (b"RSVP\x80", "RSVP"),
        (b"abcdef", "abcdef"), (b"abcdefghij", "abcdefghij"), (b"abc", "abc"), (b"", ""),
    ],
)  # fmt: skip
def test_the_characters_of_message_words(data, text):
    assert payloads.message_text(data) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b" a~\nb\0no", " a~\nb"),
        (b"a\x1f", ""),
        (b"a\x7f", ""),
        (b"a\t", ""),
        (b"a\x0b", ""),
        (b"\0a", ""),
        (b"a", "a"),
    ],
)
def test_texts_that_the_vendor_prints(raw, text):
    assert payloads.vendor_text(raw) == text


def test_a_message_is_some_words_of_a_payload():
    raw = b"0000" + b"RSVPnext" + b"more"
    found = payloads.message("msg", raw, struct.unpack("<4I", raw), 1, 2)
    assert (found.name, found.value, found.first_word, found.words) == ("msg", b"RSVPnext", 1, 2)
    assert found.text == '"RSVPnext" (0x50565352 0x7478656e)'


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ((0, 1, 2, 3, 4), "NONE"), ((1, 17, 2, 3, 4), "SIGNAL 17"), ((2, 17, 0x2A, 3, 4), "SIGNAL_CODE 17 0x3:0x2a"),
        ((2, 17, 0, 0, 4), "SIGNAL_CODE 17 0:0"), ((3, 17, 0x2A, -1, 4), "SIGNAL_THREAD 17 0xffffffff:0x2a"),
        ((4, 0x40000001, 5, -2, 21), "PULSE 0x40000001:21 0xfffffffe:0x5"), ((4, 0, 0, 0, -1), "PULSE 0:-1 0:0"),
        ((5, 1, 2, 3, 4), "UNBLOCK"), ((6, 1, 2, 3, 4), "INTR"), ((7, 1, 0x2B, 0x1C, 4), "THREAD 1c:2b"),
        ((7, 1, 0, -1, 4), "THREAD ffffffff:0"), ((8, 1, 2, 3, 4), "UNKNOWN(0x8)"), ((0x200, 1, 2, 3, 4), "NONE"),
        ((0x106, 1, 2, 3, 4), "INTR CRITICAL"), ((0x108, 1, 2, 3, 4), "UNKNOWN(0x108) CRITICAL"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["little", "big"])
def test_events_that_handlers_return(event, text, order):
    assert payloads.sigevent_text(*event) == text
    raw = struct.pack(f"{'<' if order == 'little' else '>'}5I2h", 9, 9, event[0], event[1], event[2], *event[3:])
    parsed = payloads.sigevent(type("Event", (), dict(zip(("notify", "number", "value", "code", "priority"), event,
                                                          strict=True))), raw, 2)  # fmt: skip
    assert (parsed.name, parsed.value, parsed.text, parsed.first_word, parsed.words, parsed.note) == (
        "sigevent", raw[8:], text, 2, 4, ""
    )  # fmt: skip
    if order == "little":
        words = struct.unpack("<4I", raw[8:])
        assert shown(Q6, "INT_HANDLER_EXIT", [33, *words, 0])[1] == ("sigevent", text, "")


def test_a_handler_that_returned_no_event():
    none = ("sigevent", "NONE", "the handler returned no event")
    assert shown(Q6, "INT_HANDLER_EXIT", [33, 0, 0, 0, 0, 0])[1] == none
    assert shown(Q6, "INT_HANDLER_EXIT", [33, 0, 0, 0, 1 << 16, 0])[1] == ("sigevent", "NONE", "")


@pytest.mark.parametrize(
    ("book", "name", "words", "argument", "note"),
    [
        (Q7, "SYSTEM/POWER", [0x0001_0007], 0, "CPU 7 IDLE"),
        (Q7, "SYSTEM/POWER", [0x0005_FFFF], 0, "CPU 65535 IDLE IDLE_REACHED"),
        (Q7, "SYSTEM/POWER", [0x001E_0003], 0, "CPU 3 START VFS_OVERDRIVE VFS_DYNAMIC VFS_STEP_UP"),
        (Q7, "SYSTEM/POWER", [3], 0, "CPU 3"),
        (Q7, "SYSTEM/RUNSTATE", [9], 0, "ONLINE BURST"), (Q7, "SYSTEM/RUNSTATE", [0], 0, ""),
        (Q7, "CONTROL/BUFFER", [3, 0], 1, "not counted: the buffer was not handed over"),
        (Q7, "CONTROL/BUFFER", [0, 5], 1, ""),
        (Q7, "CONTROL/BUFFER", [0, 5], 0, ""),
        (Q6, "COMM/REC_MESSAGE", [5 << 16 | 0x2A, 7], 0, "thread 6, scoid 0x2a"),
        (Q6, "COMM/REC_MESSAGE", [0xFFFF, 7], 0, "thread 1, scoid 0xffff"),
        (Q6, "COMM/REC_MESSAGE", [0xFFFFFFFF, 7], 0, "failed"), (Q7, "COMM/REC_MESSAGE", [5 << 16, 7], 0, ""),
        (Q6, "COMM/REC_PULSE", [5 << 16, 7], 0, ""),
        (Q7, "THREAD/THRUNNING", [7, 1, 10, 2], 3, "RR"), (Q7, "THREAD/THRUNNING", [7, 1, 10, 99], 3, ""),
        (Q7, "THREAD/THRUNNING", [7, 1, 10, 2], 2, ""),
    ],
)  # fmt: skip
def test_what_a_number_means(book, name, words, argument, note):
    words = [*words, *[0] * (-len(words) % 2)]
    assert shown(book, name, words)[argument][2] == note


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (("SYSTEM", "TIMER", "flags"), {0x191: "WAKEUP TOLERANT ACTIVE TARGET_PROCESS", 0: "", 2: ""}),
        (("SYSTEM", "TIMER", "timer_id"), {0xFFFFFFFF: "TimerTimeout()", 0xFFFFFFFE: "", 0: ""}),
        (("SEC", "ABLE", "flags"), {0: "DENY", 7: "ALLOW IS_ROOT UNCREATED", 8: ""}),
        (("SEC", "PATH_ATTACH", "status"), {0: "OK", 1: "NO_RULE", 2: "CONFLICT", 3: "BAD_OP", 4: ""}),
        (("SEC", "QNET_CONNECT", "status"), {0: "OK", 1: "SERVER_FAILED", 2: "CLIENT_FAILED", 3: ""}),
    ],
)
def test_flags_and_values_by_name(key, values):
    class_name, event, argument = key
    [code] = Q7.find(f"{class_name}/{event}")
    texts = table_texts(Release.QNX_7, code, argument)
    assert {value: shown_texts(texts, value, {}) or "" for value in values} == values


def test_errors_have_names():
    found = payloads.errno_argument(260, 1, Q7, "or data")
    assert (found.name, found.value, found.text, found.first_word, found.words, found.note) == (
        "errno", 260, "ETIMEDOUT (260)", 1, 1, "or data"
    )  # fmt: skip
    assert payloads.errno_argument(0xFFFFFFFF, 1, Q7).text == "-1"
    failed = wire.code(2, 11 + 128)  # the end of MSG_SENDV
    assert [row[1:] for row in shown(Q7, failed, [-1, 3])] == [
        ("-1", ""), ("ESRCH (3)", "or data, if the call itself returned -1")
    ]  # fmt: skip


# ---- texts and words that no part describes ----------------------------------------------------------------------


def test_words_behind_the_last_argument():
    code = wire.code(wire.WireClass.INT, 2)  # INT_EXIT: two words
    assert [name for name, _, _ in shown(Q7, code, [1, 2])] == ["interrupt_number", "kernel_flag"]
    assert shown(Q7, code, [1, 2, 0, 3])[2:] == [("word 2", "0x00000000", ""), ("word 3", "0x00000003", "")]
    unknown = wire.code(5, 900)
    words = list(range(10))
    rows = shown(Q7, unknown, words, most=4)
    assert [row[1] for row in rows[:4]] == [f"0x{word:08x}" for word in range(4)]
    assert rows[4:] == [(MORE, "6 more words", "")]
    assert len(shown(Q7, unknown, words, most=10)) == len(shown(Q7, unknown, words)) == 10


@pytest.mark.parametrize(
    ("most", "text", "note"),
    [(None, "abcdefghi", ""), (9, "abcdefghi", ""), (8, "abcdefgh", "the first 8 of 9 bytes")],
)
def test_a_preview_of_a_text(most, text, note):
    """Of 9 bytes in three words, whatever of them is spelled out."""
    raw = struct.pack("<II16s", 1, 7, b"abcdefghi")
    found = decode_payload(Q7.spec(wire.PROC_CREATE_NAME), raw, "little", Q7, most).arguments[2]
    assert (found.name, found.text, found.note, found.first_word, found.words) == ("name", text, note, 2, 3)


@pytest.mark.parametrize(("most", "text"), [(None, "fghijkl"), (6, "fghijk")])
def test_a_text_that_begins_within_a_word(most, text):
    """Behind the first one, at bytes 22 to 28 of the payload: in words 5 to 7."""
    [code] = Q7.find("SEC/PERM_LOOKUP")
    raw = struct.pack("<IIII16s", 1, 2, 3, 4, b"abcde\0fghijkl")
    second = decode_payload(Q7.spec(code), raw, "little", Q7, most).arguments[-1]
    assert (second.name, second.text, second.first_word, second.words) == ("perm_name", text, 5, 3)


@pytest.mark.parametrize(("texts", "shown"), [(b"abcdefg\0", ["abcdefg"]), (b"abcdef\0\0", ["abcdef", ""])])
def test_a_text_that_would_begin_behind_the_payload(texts, shown):
    """Is none; one of no letters within it is one."""
    [code] = Q7.find("SEC/PERM_LOOKUP")
    raw = struct.pack("<IIII", 1, 2, 3, 4) + texts
    arguments = decode_payload(Q7.spec(code), raw, "little", Q7).arguments
    assert [argument.text for argument in arguments if argument.name.endswith("_name")] == shown


def test_words_of_a_user_event_that_may_be_a_text():
    number = wire.code(wire.WireClass.USER, 5)
    raw = b"\x01abcd\0ef"
    words = struct.unpack("<2I", raw)
    assert variants.user_text(raw) is None
    first, second = shown(Q7, number, words)
    assert first[1:] == ("0x63626101", '"\\x01abcd"')
    assert second[1:] == ("0x66650064", "")
    assert shown(Q7, number, words, most=3)[0][2] == '"\\x01ab"...'
    assert shown(Q7, number, [1, 2])[0][2] == ""


def test_a_sigevent_has_four_words():
    raw, event = bytes(range(40)), SimpleNamespace(notify=1, number=5, value=0, code=0, priority=0)
    found = payloads.sigevent(event, raw, 1)
    assert (found.value, found.text) == (raw[4:20], "SIGNAL 5")
    assert payloads.sigevent(event, bytes(20) + b"\1", 1).text == "NONE"

"""Layouts of payloads and their decoding: examples whose values can be read off, and properties over all rows."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.formats.kev.payloads import decode_payload

QNX = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)


def payload(*words, order="little"):
    return struct.pack(f"{'<' if order == 'little' else '>'}{len(words)}I", *(word & 0xFFFFFFFF for word in words))


def decode(release, wire_class, event, raw, order="little"):
    spec = catalogue(release).spec(wire.code(wire_class, event))
    return decode_payload(spec, raw, order, catalogue(release))


def shown(decoded):
    return {argument.name: argument.text for argument in decoded.arguments}


def test_fast_and_wide_are_reported_apart_by_the_word_count():
    fast = decode(Release.QNX_6, WireClass.KER_CALL, 11, payload(0x4000000A, 0x6F6C6C68))
    assert fast.form == "fast"
    assert shown(fast) == {"coid": "0x4000000a", "msg": '"hllo" (0x6f6c6c68)'}
    raw = payload(3, 1, 2, 0x44434241, 0x00000045, 0x46464646)
    wide = decode(Release.QNX_6, WireClass.KER_CALL, 11, raw)
    assert wide.form == "wide"
    assert shown(wide) == {
        "coid": "0x00000003",
        "sparts": "1",
        "rparts": "2",
        "msg": '"ABCDE" (0x44434241 0x00000045 0x46464646)',
    }
    assert [(a.first_word, a.words) for a in wide.arguments] == [(0, 1), (1, 1), (2, 1), (3, 3)]
    assert wide.raw == raw
    assert wide.words[3] == 0x44434241


def test_failed_exit_has_qnx_errno_names():
    failed = decode(Release.QNX_7, WireClass.KER_CALL, 75 + 128, payload(-1, 260))
    assert failed.form == "failed"
    assert shown(failed) == {"ret_val": "-1", "errno": "ETIMEDOUT (260)"}
    assert failed.arguments[1].note == "or data, if the call itself returned -1"
    odd = decode(Release.QNX_6, WireClass.KER_CALL, 11 + 128, payload(-1, 4711))
    assert shown(odd)["errno"] == "4711"


def test_text_is_bounded_by_the_payload_and_decoded_with_replacement():
    raw = payload(1, 4099) + b"proc/b\xc3\xb6\x01t\xff" + b"\0"
    decoded = decode(Release.QNX_7, WireClass.PR_TH, 192, raw)
    name = decoded.arguments[2]
    assert (name.name, name.value) == ("name", "proc/bö\x01t\N{REPLACEMENT CHARACTER}")
    assert name.text == r"proc/bö\x01t\xff"
    unended = decode(Release.QNX_7, WireClass.PR_TH, 192, payload(1, 2) + b"abcdefgh")
    assert unended.arguments[2].value == "abcdefgh"


def test_thread_wide_has_four_or_six_words():
    four = decode(Release.QNX_6, WireClass.PR_TH, 1, payload(1, 2, 10, 2))
    assert (four.form, shown(four)) == ("wide", {"pid": "1", "tid": "2", "priority": "10", "policy": "2"})
    six = decode(Release.QNX_6, WireClass.PR_TH, 1, payload(1, 2, 10, 2, 5, 0x40))
    assert shown(six)["sched_flags"] == "0x00000040"


def test_sigevent_of_6x():
    raw = payload(0x33, 0x104, 0x40000001, 0x2A) + struct.pack("<hh", -3, 21) + payload(0)
    decoded = decode(Release.QNX_6, WireClass.INT, 4, raw)
    assert shown(decoded) == {"interrupt_number": "51", "sigevent": "PULSE 0x40000001:21 0xfffffffd:0x2a CRITICAL"}
    later = decode(Release.QNX_7, WireClass.INT, 4, raw)
    assert [a.name for a in later.arguments] == ["interrupt_number", *(f"word {n}" for n in range(1, 6))]


def test_user_events_are_text_only_if_nothing_else_is_possible():
    text = decode(Release.QNX_7, WireClass.USER, 5, b"hello world\0\0\0\0\0")
    assert [(a.name, a.value, a.first_word, a.words) for a in text.arguments] == [("text", "hello world", 0, 4)]
    words = decode(Release.QNX_7, WireClass.USER, 5, payload(1, 2, 3, 4))
    assert shown(words) == {"d0": "0x00000001", "d1": "0x00000002", "d2": "0x00000003", "d3": "0x00000004"}
    short = decode(Release.QNX_7, WireClass.USER, 5, b"abc\0\0\0\0\0")
    assert [a.name for a in short.arguments] == ["d0", "d1"]


def test_interrupt_state_word_is_hexadecimal():
    assert shown(decode(Release.QNX_6, WireClass.INT, 2, payload(5, 0x81)))["inkernel"] == "0x00000081"


def test_count_decides_between_the_guide_and_the_6_4_list():
    fast = decode(Release.QNX_7, WireClass.KER_CALL, 75, payload(0x1000, 5))
    assert shown(fast) == {"timeout_flags": "0x00001000", "ntime(sec)": "5"}
    read = decode(Release.QNX_7, WireClass.KER_CALL, 23, payload(1, 2, 3, 4))  # MSG_READIOV: in the 6.4 table only
    assert read.form == "wide"
    assert read.arguments[0].note == "notation inferred"


def test_a_longer_payload_than_the_list_keeps_its_extra_words_raw():
    decoded = decode(Release.QNX_6, WireClass.KER_CALL, 28 + 128, payload(0, 1, 2, 3, 4, 5, 6, 7))
    assert list(shown(decoded)) == ["ret_val", "reg_1", "reg_2", "reg_3", "reg_4", "reg_5", "word 6", "word 7"]
    between = decode(Release.QNX_6, WireClass.KER_CALL, 46, payload(*range(8)))
    assert between.form == "raw"
    assert list(shown(between)) == [f"word {n}" for n in range(8)]


def test_padding_is_hidden_only_while_it_is_zero():
    padded = decode(Release.QNX_6, WireClass.KER_CALL, 65, payload(0, 5, 6, 0))
    assert list(shown(padded)) == ["id", "new(sec)", "new(nsec)"]
    dirty = decode(Release.QNX_6, WireClass.KER_CALL, 65, payload(0, 5, 6, 7))
    assert shown(dirty)["word 3"] == "0x00000007"


@given(
    release=st.sampled_from(QNX),
    code=st.integers(0, wire.CODE_MASK),
    raw=st.binary(max_size=120),
    order=st.sampled_from(["little", "big"]),
)
def test_any_bytes_decode_and_every_word_is_accounted_for(release, code, raw, order):
    events = catalogue(release)
    decoded = decode_payload(events.spec(code), raw, order, events)
    assert decoded.raw == raw
    assert len(decoded.words) == len(raw) // 4
    covered = [word for a in decoded.arguments for word in range(a.first_word, a.first_word + a.words)]
    assert all(0 <= word < max(1, len(decoded.words)) for word in covered)
    assert covered == sorted(covered)

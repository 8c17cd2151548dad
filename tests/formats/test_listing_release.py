"""The release of a listing by its events, and the rows of the catalogue that a listing corrects."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from satview.cli.convert.catalogue import proposed_rows, unlisted_rows
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release, Show
from satview.formats.listing.reader import possible_releases

Q6, Q66, Q7, Q8 = Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8
WIDE, NARROW = "KER_CALL        :", "KER_CALL:"


def calls_only_in(release: Release, other: Release) -> list[str]:
    """Return `NAME/NN` of the calls of a release that another one calls otherwise."""
    mine, theirs = (catalogue(each) for each in (release, other))
    specs = ((mine.spec(wire.code(2, number)), theirs.spec(wire.code(2, number)), number) for number in range(110))
    return [f"{spec.name}/{number:02}" for spec, foreign, number in specs
            if spec.is_known and spec.name not in (foreign.name, foreign.label)]  # fmt: skip


def likeliest(texts, stamp="t:0x12345678"):
    """Return the first of the releases that events with a stamp may be of."""
    return possible_releases([(text, stamp) for text in texts])[0]


@pytest.mark.parametrize(
    ("texts", "release"),
    [
        ((), Q7), (("COMM    :x",), Q6), ((f"{'COMM':16}:x",), Q7), ((f"{'COMM':17}:x",), Q6),
        ((f"{'COMM':15}:x",), Q6),
        ((f"{'COMM':16}:x", "COMM:x"), Q7), (("COMM:x", f"{'COMM':16}:x"), Q6),  # the first event decides
        (("INTERRUPT  :x",), Q8), (("COMM:x", "CONTROL :BUFFER_END"), Q8), (("CONTROL :BUFFER_ENDS",), Q6),
        (("CONTROL :BUFFER",), Q6), (("CONTROL:DROPPED x",), Q8), (("x INTERRUPT:",), Q7),
        (("KER_CALL:UNHEARD_OF/11",), Q6), (("KER_CALL:NOP/200",), Q6),
    ],
)  # fmt: skip
def test_the_release_by_events(texts, release):
    assert likeliest(texts) is release


@pytest.mark.parametrize(("stamp", "release"), [("t:0x123456789", Q7), ("t:0x12345678", Q6), ("t:0x012345678", Q6)])
def test_stamps_of_more_than_32_bits_are_not_of_6(stamp, release):
    assert possible_releases([("COMM :x", "t:0x1"), ("COMM    :x", stamp)])[0] is Q6, "the narrow column decides"
    assert (Q6 not in possible_releases([("x", stamp)])) is (release is Q7)


def test_the_release_by_numbers_of_calls():
    """The one that knows most of them; 6.x is none that prints wide columns."""
    only_8, only_7, only_6 = calls_only_in(Q8, Q7), calls_only_in(Q7, Q6), calls_only_in(Q6, Q7)
    assert min(map(len, (only_8, only_7, only_6))) > 0
    assert likeliest([f"{WIDE}{call}" for call in only_8]) is Q8
    assert likeliest([f"KER_EXIT        :{call}" for call in only_8]) is Q8
    assert likeliest([f"{NARROW}{call}" for call in only_7]) in (Q7, Q66)
    assert likeliest([f"{NARROW}{call}" for call in (*only_6, only_7[0])]) is Q6
    assert likeliest([f"{WIDE}{call}" for call in only_6]) is not Q6


def test_rows_that_a_listing_corrects():
    """What it shows in the notation of the catalogue is proven, what it shows otherwise gets that."""
    book = catalogue(Q7)
    code = next(code for code in sorted(book.codes()) if book.spec(code).class_name == "KER_CALL"
                and any(not each.is_sure and each.show is Show.HEX for each in book.spec(code).wide or ()))  # fmt: skip
    spec = book.spec(code)
    field = next(each for each in spec.wide if not each.is_sure and each.show is Show.HEX)
    key = (spec.class_name, spec.name, field.name)
    width = "64" if field.words == 2 else ""
    as_hex, as_decimal = (f"{field.name} {show.value}{width}" for show in (Show.HEX, Show.DEC))
    for proven, notations, shown in (
        ({key: "0x%08x"}, {}, as_hex), ({}, {key: "%d"}, as_decimal), ({key: "%d"}, {key: "0x%x"}, as_hex)
    ):  # fmt: skip
        rows = list(proposed_rows(SimpleNamespace(release=Q7, proven=proven, notations=notations)))
        assert {class_name for class_name, _ in rows} == {"KER_CALL"}
        for _, row in rows:
            name, _, lists = row.partition(": ")
            assert name.removesuffix("/64") == spec.name
            parts = [part.strip() for part in lists.replace("|", ",").split(",")]
            assert shown in parts
            assert f"{shown}?" not in parts
    assert list(proposed_rows(SimpleNamespace(release=Q7, proven={}, notations={}))) == []


def test_rows_as_they_are_proposed():
    """By class and event; an address stays one, a text has no notation, and what shows nothing new is no row."""
    call, thread, system = "KER_CALL", "THREAD", "SYSTEM"
    proven = {(thread, "THREADY", "pid"): "%d", (call, "RING0", "func_p"): "0x%08x"}
    notations = {
        (system, "MMAP", "len"): "%d", (system, "PATHMGR", "pathname"): "%d", (system, "UNHEARD_OF", "x"): "%d",
        (call, "THREAD_CANCEL", "tid"): "0x%x", (call, "THREAD_CANCEL", "canstub_p"): "%d",
        (call, "MSG_READV", "rcvid"): "%d",
    }  # fmt: skip
    assert list(proposed_rows(SimpleNamespace(release=Q7, proven=proven, notations=notations))) == [
        (call, "MSG_READV: rcvid dec, offset hex | rcvid dec, rmsg_p pointer, rparts dec, offset hex"),
        (call, "MSG_READV/64: rcvid dec, empty hex? | rcvid dec, rmsg_p pointer64, rparts dec64, offset hex64"),
        (call, "THREAD_CANCEL: tid hex, canstub_p pointer"),
        (call, "THREAD_CANCEL/64: - | tid hex, canstub_p pointer64"),
        (system, "MMAP: pid dec?, addr hex64?, len dec64, flags hex? | pid dec?, addr hex64?, len dec64, flags hex?, "
                 "prot hex?, fd dec?, align hex64?, offset hex64?, name string"),
        (thread, "THREADY: pid dec, tid dec? | pid dec, tid dec?, priority dec?, policy dec?, partition_id dec?, "
                 "sched_flags hex?"),
    ]  # fmt: skip


def test_rows_of_lines_that_fit_none():
    """The most frequent first, of several alike the first; the notation of the last line of a kind counts."""
    unlisted = {
        ("COMM", "A", (("x", "dec"), ("y", "hex"))): 2, ("COMM", "B", ()): 3,
        ("COMM", "A", (("x", "hex"), ("y", "hex"))): 2, ("SYSTEM", "C", (("x", "dec64"),)): 3,
    }  # fmt: skip
    assert list(unlisted_rows(SimpleNamespace(unlisted=unlisted))) == [
        ("COMM", "A: x hex?, y hex?", 4), ("COMM", "B: -", 3), ("SYSTEM", "C: x dec64?", 3)
    ]  # fmt: skip

"""One layout, many forms: constructs, the encoder, the slot writer, columns of filters and listings, single events.

Over every event, form, release and byte order, both ways: what one of them writes all others read as the same values.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events import variants, wire
from satview.events.catalogue import catalogue
from satview.events.layout import (
    Layout,
    argument_names,
    argument_part,
    is_same_name,
    layout_of,
    part_names,
    printed_layout,
)
from satview.events.spec import Release, Show
from satview.events.variants import encode, text_words
from satview.export.listing import forms as listing_columns
from satview.filters.derived_columns import TraceDerivedColumns, event_contexts
from satview.filters.expressions.compiled import RowColumns
from satview.filters.expressions.expression import _Event
from satview.formats.kev.header import SlotWriter, slots_as_bytes
from satview.formats.kev.payloads import REST, build, decode_payload, plain_text, prepared, struct_of
from satview.store.arguments import codes_with
from tests.filters.made import Maker, make_trace
from tests.helpers.extent import fewer, points

QNX = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
ORDERS = ("little", "big")
UNKNOWN = (wire.code(2, 120), wire.code(2, 120 + 128) | 0x200, wire.code(5, 900), wire.code(13, 7))
LONGEST = 30


@dataclass(frozen=True)
class Case:
    """One form of one event."""

    code: int
    count: int
    variant: int
    layout: Layout

    def __str__(self) -> str:
        return f"code 0x{self.code:x}, {self.count} words, variant {self.variant}"


@cache
def cases(release):
    """Return every form of every event of a release; of user events some."""
    book, found = catalogue(release), []
    for code in (*book.codes(), *UNKNOWN):
        if wire.class_of(code) == wire.WireClass.USER and code % 97:
            continue
        kinds = [(count, variants.BY_COUNT) for count in range(2, LONGEST, 2)]
        if variants.is_exit(code):
            kinds += [(2, variants.FAILED), (2, variants.DOUBTFUL)]
            kinds += [(4, variants.FAILED_64), (4, variants.FAILED_UNKNOWN)] if code & wire.KER_64BIT else []
        if book.name(code) == "TRACE_EVENT" and code == wire.code(2, 1):
            kinds += [(4, 3), (4, 4), (6, 5)]
        if variants.is_user(code):
            kinds.append((4, variants.TEXT))
        seen = set()
        for count, variant in kinds:
            layout = layout_of(release, code, count, variant)
            if (layout.form, layout.parts, variant) not in seen:
                seen.add((layout.form, layout.parts, variant))
                found.append(Case(code, count, variant, layout))
    return tuple(found)


def values_of(case, rng, order):
    """Return a value for every member that shows its bytes and its sign apart, and that keeps to the variant."""
    values = {}
    for name, part in zip(part_names(case.layout), case.layout.parts, strict=True):
        if part.is_text:
            values[name] = f"text {part.text_index} of 0x{case.code:x}, {'x' * int(rng.integers(1, 9))}".encode()
        elif part.show is Show.STRUCT:
            if part.words:
                values[name] = {"notify": 0x104, "number": 0x40000001, "value": 0x89ABCDEF, "code": -3, "priority": 21}
        else:
            pattern = int(rng.integers(0x10, 1 << 32 * part.words, dtype=np.uint64)) | 0x8 << 32 * part.words - 4
            values[name] = pattern - (1 << 32 * part.words) if part.is_signed else pattern
    first = case.layout.parts[0].name if case.layout.parts else ""
    if case.variant in variants.FAILURES:
        values["ret_val"] = -1
        if "errno" in values:
            values["errno"] = 260
    elif first == "mode" and case.code == wire.code(2, 1):
        values["mode"] = case.variant << 28 | 0x1234567
    rest = [int(word) for word in rng.integers(0x01020384, 1 << 32, max(0, case.count - case.layout.end))]
    if case.layout.end % 2 and rest and case.layout.parts:
        rest[0] = 0  # padding
    if case.variant == variants.DOUBTFUL:
        rest[:2] = [0xFFFFFFFF, 5000]
    values[REST] = np.array(rest, np.uint32).astype("<u4" if order == "little" else ">u4").tobytes()
    return values


def words_of(raw, order):
    return np.frombuffer(raw, "<u4" if order == "little" else ">u4").astype(np.uint32)


def is_possible(release, case, words):
    """Return whether these words are read as this form: a variant may need more than the release allows."""
    if variants.is_user(case.code):
        return True
    return variants.variant_of(release, case.code, words.tolist()) == case.variant


@cache
def written(release, order):
    """Return (cases, their values, their payloads as constructs build them)."""
    rng = np.random.default_rng(20)
    found = []
    for case in cases(release):
        values = values_of(case, rng, order)
        raw = build(case.layout, values, order)
        if is_possible(release, case, words_of(raw, order)):
            found.append((case, values, raw))
    return found


@cache
def trace_of(release, order):
    """Return a trace with all of them, and the row of each; the clock's and the buffers' own events are left out."""
    maker = Maker(order)
    at = maker.start()
    slots = {}
    for index, (case, _, raw) in enumerate(written(release, order)):
        if wire.class_of(case.code) in (wire.WireClass.CONTROL, wire.WireClass.EMPTY):
            continue
        slots[len(maker)] = index
        maker.at(at + index, 0, case.code, *words_of(raw, order).tolist())
    trace = make_trace(maker, release)
    rows = {slots[slot]: row for row, slot in enumerate(trace.events.slot.tolist()) if slot in slots}
    assert len(rows) == len(slots), "every event has a row"
    return trace, rows


every = points(release=fewer(QNX[::-1], 2), order=ORDERS)


@pytest.mark.thorough
@every
def test_what_constructs_build_they_parse(release, order):
    assert len(written(release, order)) > 600
    for case, values, raw in written(release, order):
        layout, names, struct = prepared(release, case.code, len(raw) // 4, case.variant, order)
        assert (layout.form, layout.parts) == (case.layout.form, case.layout.parts), str(case)
        parsed = struct.parse(raw)
        for name in names:
            if name in values:
                assert parsed[name] == values[name], f"{case}: {name}"
        assert struct_of(layout, order).build(parsed) == raw, str(case)


@pytest.mark.thorough
@every
def test_the_encoder_and_the_writer_write_what_constructs_build(release, order):
    """The encoder of the simulated kernel, from the same values; the slot writer, from its words."""
    for case, values, raw in written(release, order):
        words = words_of(raw, order).tolist()
        parts = case.layout.parts
        if not any(part.show is Show.STRUCT or part.text_index for part in parts):
            plan = tuple(zip(part_names(case.layout), (part.words for part in parts), strict=True))
            encoded = encode(plan, values, order)
            assert encoded == words[: len(encoded)], str(case)
            assert not any(words_of(values[REST], order)[len(words) - len(encoded) :]), str(case)
        writer = SlotWriter(order)
        texts = [name for name, part in zip(part_names(case.layout), parts, strict=True) if part.is_text]
        if len(texts) == 1:
            data = values[texts[0]]
            writer.text_event(case.code, 3, 7, words[: len(words) - len(words) % 2][: parts[-1].word], data)
            assert text_words(data, order) == words[parts[-1].word :][: len(text_words(data, order))]
        else:
            writer.event(case.code, 3, 7, words)
        slots = np.frombuffer(slots_as_bytes(writer.slots(), order), np.uint8).reshape(-1, 16)
        assert slots[:, 8:].tobytes() == raw, str(case)


@pytest.mark.thorough
@every
def test_columns_of_filters_read_what_constructs_build(release, order):
    """All arguments of all events at once, as filters do, and one by one, as event handlers do."""
    trace, rows = trace_of(release, order)
    columns = RowColumns(trace, TraceDerivedColumns(trace), slice(0, len(trace.events)))
    everything = written(release, order)
    expected = {}
    for index, row in rows.items():
        case, values, raw = everything[index]
        assert trace.payloads.raw(row) == raw, str(case)
        for name, part in zip(part_names(case.layout), case.layout.parts, strict=True):
            first = next(p for p in case.layout.parts if is_same_name(p.name, part.name))
            if part is first and part.words and part.show is not Show.STRUCT:
                expected.setdefault(part.name, {})[row] = (values[name] + (1 << 63)) % (1 << 64) - (1 << 63)
    assert len(expected) > 200
    for name, by_row in expected.items():
        assert name in argument_names(release), name
        values, known = columns.argument(name)
        for row, value in by_row.items():
            assert known[row], (name, row)
            assert values[row] == value, (name, trace.spec(row).name)
        assert codes_with(name, release)[trace.events.code[list(by_row)]].all()
    selected = np.array(sorted(rows.values()))
    info = dict(zip(selected.tolist(), event_contexts(trace, selected), strict=True))
    for name, by_row in expected.items():
        for row, value in by_row.items():
            assert _Event(info[row], release).argument(name) == value, (name, trace.spec(row).name)


@every
def test_texts_of_filters_are_those_that_constructs_build(release, order):
    trace, rows = trace_of(release, order)
    columns = RowColumns(trace, TraceDerivedColumns(trace), slice(0, len(trace.events)))
    everything = written(release, order)
    count = 0
    for index, row in rows.items():
        case, values, _ = everything[index]
        for name, part in zip(part_names(case.layout), case.layout.parts, strict=True):
            if part.is_text:
                requested = None if part.name == "text" and variants.is_user(case.code) else part.name
                found = columns.texts(requested, values[name].decode().__eq__)
                assert found[row], str(case)
                count += 1
    assert count > (3 if release is Release.QNX_6 else 7)


@pytest.mark.thorough
@every
def test_details_show_what_constructs_build(release, order):
    trace, rows = trace_of(release, order)
    everything = written(release, order)
    for index, row in rows.items():
        case, values, raw = everything[index]
        payload = trace.payloads.decode(row)
        assert payload.form == case.layout.form, str(case)
        shown = [argument for argument in payload.arguments if argument.name != "sigevent"]
        for argument in shown:
            position = argument_part(release, case.code, len(raw) // 4, argument.name, case.variant)
            if isinstance(argument.value, int) and position is not None and argument.first_word == position.word:
                own = words_of(raw, order)[position.word] if position.word >= case.layout.end else values[position.name]
                assert argument.value == own, str(case)
        known = {part.name for part in case.layout.parts if part.show not in (Show.MSG_MORE, Show.STRUCT)}
        assert known <= {argument.name for argument in shown}, str(case)


@every
def test_columns_of_listings_read_what_constructs_build(release, order):
    for case, values, raw in written(release, order):
        words = words_of(raw, order).reshape(1, -1)
        group = listing_columns.EventGroup(words, order)
        for name, part in zip(part_names(case.layout), case.layout.parts, strict=True):
            if part.is_text:
                assert listing_columns.texts(part, plain_text)(group) == [values[name].decode()], str(case)
            elif part.words in (1, 2):
                assert listing_columns.number(part)(group) == [values[name]], f"{case}: {part.name}"
        printed = printed_layout(release, case.code, words.shape[1], case.variant)
        if printed is not None and case.variant == variants.BY_COUNT:
            ends = [part.word + part.words for part in printed.parts]
            assert [part.word for part in printed.parts[1:]] == ends[:-1], "printed arguments follow one another"


@pytest.mark.thorough
@given(
    release=st.sampled_from(QNX),
    order=st.sampled_from(ORDERS),
    events=st.lists(
        st.tuples(
            st.integers(0, 1 << 20),
            st.lists(
                st.sampled_from((0, 1, 5, 1023, 1024, 0xFFFFFFFF, 0x30000001, 0x41424344)) | st.integers(0, 2**32 - 1),
                min_size=2,
                max_size=14,
            ),
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_any_words_mean_the_same_everywhere(release, order, events):
    """The other way: from words that nobody built, with errors and counts of arguments among them."""
    book = catalogue(release)
    codes = [code for code in book.codes() if wire.class_of(code) not in (wire.WireClass.CONTROL, wire.WireClass.EMPTY)]
    maker = Maker(order)
    at = maker.start()
    first = len(maker)
    for number, (index, words) in enumerate(events):
        maker.at(at + number, 0, codes[index % len(codes)], *words)
    trace = make_trace(maker, release)
    rows = [row for row, slot in enumerate(trace.events.slot.tolist()) if slot >= first]
    columns = RowColumns(trace, TraceDerivedColumns(trace), slice(0, len(trace.events)))
    counts = trace.payloads.word_counts(np.arange(len(trace.events)))
    found = variants.variants(release, trace.events.code, counts, trace.payloads.column)
    failed, (errors, has_error) = columns.failed(), columns.errors()
    info = dict(zip(rows, event_contexts(trace, np.array(rows)), strict=True))
    for row in rows:
        code, words, raw = int(trace.events.code[row]), trace.payloads.words(row).tolist(), trace.payloads.raw(row)
        variant = variants.variant_of(release, code, words)
        assert found[row] == variant
        payload = decode_payload(book.spec(code), raw, order, book)
        assert failed[row] == (payload.form == "failed")
        named = {argument.name: argument for argument in reversed(payload.arguments)}
        if payload.form == "failed" and "errno" in named:
            assert (errors[row], has_error[row]) == (named["errno"].value, True)
            assert variants.error_of(release, code, words) == named["errno"].value
        _, names, struct = prepared(release, code, len(words), variant, order)
        built = struct.build(struct.parse(raw))
        # A text that fills the payload up to its last byte has no zero at its end, and gets one.
        assert built in (raw, raw + b"\0")
        for name, argument in named.items():
            position = argument_part(release, code, len(words), name, variant)
            if position is None or not isinstance(argument.value, int) or not variants.BY_COUNT <= variant <= 19:
                continue
            value = (argument.value + (1 << 63)) % (1 << 64) - (1 << 63)
            own = struct.parse(raw)[position.name] if position.name in names else words[position.word]
            assert own == argument.value
            values, known = columns.argument(name)
            assert (values[row], known[row]) == (value, True)
            assert _Event(info[row], release).argument(name) == value


@pytest.mark.parametrize("release", QNX)
def test_failures_are_the_same_for_one_event_and_for_columns(release):
    """Every exit and TraceEvent() call, with all combinations of words at which the rules rollover."""
    codes = [code for code in range(wire.code(2, 0), wire.code(3, 0)) if variants.is_exit(code)] + [wire.code(2, 1)]
    revealing = (0xFFFFFFFF, 0, 1, 1023, 1024, 0x30000001, 0x40000001)
    short = [(*pair, 0, 0) for pair in product(revealing, repeat=2)]
    rows = [(2, row) for row in short] + [(4, (*three, 7)) for three in product(revealing, repeat=3)]
    code, row = (part.ravel() for part in np.meshgrid(codes, np.arange(len(rows)), indexing="ij"))
    count = np.array([size for size, _ in rows])[row]
    words = np.array([words for _, words in rows], np.uint32)[row]
    found = variants.variants(release, code, count, lambda at, n: words[at, n])
    one_by_one = [
        variants.variant_of(release, kind, rows[at][1][: rows[at][0]])
        for kind, at in zip(code.tolist(), row.tolist(), strict=True)
    ]
    assert found.tolist() == one_by_one
    assert {variants.BY_COUNT, variants.FAILED, 3, 4} <= set(one_by_one)


def test_a_payload_cut_short_shows_what_is_there():
    """A wide MSG_SENDV whose last slot is missing fits no list: raw words, and no filter finds an argument in it."""
    book, code = catalogue(Release.QNX_6), wire.code(2, 11)
    whole = build(
        layout_of(Release.QNX_6, code, 6),
        {"coid": 3, "sparts": 1, "rparts": 2, "msg": 4, "msg[1]": 5, "msg[2]": 6},
        "little",
    )
    for length in range(len(whole)):
        payload = decode_payload(book.spec(code), whole[:length], "little", book)
        assert len(payload.words) == length // 4
        if length // 4 not in (2, 6):
            assert [argument.name for argument in payload.arguments] == [f"word {n}" for n in range(length // 4)]
    assert argument_part(Release.QNX_6, code, 4, "rparts") is None

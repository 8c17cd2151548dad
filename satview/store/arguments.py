"""Reads arguments of many events at once, by name, independent of release, mode and width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import lru_cache, partial
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.safe_text import counted, visible_line
from satview.core import links
from satview.core.loading import joined, same_rows
from satview.events.catalogue import catalogue, shown_texts
from satview.events.layout import (
    Layout,
    PayloadPart,
    Taught,
    argument_part,
    arguments_of,
    codes_of_argument,
    describe_layout,
    is_rest,
    layout_of,
    learned_lists,
    named_parts,
    note_description,
    one_spelling,
    text_at,
    text_name,
    text_offset,
)
from satview.events.spec import Release
from satview.events.user_events import UserEvent
from satview.events.variants import BY_COUNT, TEXT, USER_CLASSES, join64, user_texts, variants
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, FAST_WORDS
from satview.store.axis import AxisPart, FileAxis, files_of
from satview.store.trace import Trace

Rows = NDArray[np.integer]
Positions = NDArray[np.intp] | slice
TextColumn = tuple[NDArray[np.uint32], tuple[str, ...]]  # (n,), index of the text; the texts
Arguments = dict[str, tuple[NDArray[np.int64] | TextColumn, NDArray[np.bool_]]]  # by name; the mask is where it exists
_MOST_WORDS: Final = (1 << 15) - 1
EVENTS_AT_ONCE: Final = 1 << 17  # events whose words are read together
_BLOCK_WORDS: Final = 32  # words that are read at once; arguments after these are rare
_MOST_SHARE: Final = 0.99  # minimum share of events whose words are all read at once
_MOST_REST: Final = 32  # maximum number of words without a description that get separate columns
_MOST_VALUES: Final = 1 << 29  # maximum number of values in all columns: 4 GiB
_TEXT_BLOCK: Final = 1 << 20  # words of texts that are processed together
_FEW_TEXTS: Final = 4096  # up to this number, the texts of some events are always deduplicated
_SHARED: Final = 4  # more texts are deduplicated if on average at least this many events share a text
_IS_USER: Final = np.isin(np.arange(CODE_COUNT) >> CLASS_SHIFT, USER_CLASSES)
_DESCRIBED: Final = "arguments.described"
_TAUGHT: Final = "arguments.taught"
_NOTHING_TAUGHT: Final = Taught({})  # shared by all traces, so that names are collected once
_VARIANT_BITS: Final = 32
_VARIANTS: Final = (1 << _VARIANT_BITS) - 1
Text = TypeVar("Text", str, "str | None")
MORE_WORDS: Final = "more_words"
_BLOCK_ROWS: Final = 1 << 17
_TABLE_LIMIT: Final = 1 << 17  # kinds of payloads that are counted in a table; more are hashed


def codes_with(name: str, release: Release) -> NDArray[np.bool_]:
    """Return which codes of a release have the argument `name` in any variant of their payload, bool (32768,)."""
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(codes_of_argument(release, name))] = True
    return table


def codes_in(trace: Trace, name: str) -> NDArray[np.bool_]:
    """Return which codes of a trace have the argument `name` in any variant of their payload, bool (32768,)."""
    axis = files_of(trace)
    if axis is None:
        return codes_with(name, trace.release)
    table = np.zeros(CODE_COUNT, np.bool_)
    for part in axis.parts:
        table[part.codes[codes_with(name, part.trace.release)]] = True
    return table


def is_pid(name: str) -> bool:
    """Return whether an argument is a pid: `pid`, `ppid`, `src_pid`, `info->pid`."""
    return name.endswith("pid")


def is_partition(name: str) -> bool:
    """Return whether an argument is a partition number: `partition`, `partition_id`."""
    return name == "partition" or name.endswith("partition_id")


def logged_codes_with(trace: Trace, name: str, class_name: str = "") -> NDArray[np.bool_]:
    """Return which of the codes that occur in a trace have an argument, bool (32768,).

    Faster than `codes_with`, which checks all codes of a release: a quarter of a second the first time.

    Args:
        trace: The trace.
        name: Name of the argument.
        class_name: Printed name of the only class to check; empty = check all classes.
    """
    requested, table = one_spelling(name), np.zeros(CODE_COUNT, np.bool_)
    if (axis := files_of(trace)) is not None:
        for part in axis.parts:
            table[part.codes[logged_codes_with(part.trace, name, class_name)]] = True
        return table
    for code in np.flatnonzero(trace.code_counts).tolist():
        if class_name and trace.catalogue.class_name(code) != class_name:
            continue
        table[code] = any(one_spelling(part.name) == requested for part in arguments_of(trace.release, code))
    return table


def codes_with_text(release: Release) -> NDArray[np.bool_]:
    """Return which codes may have a text in their payload, bool (32768,)."""
    codes = catalogue(release).codes()
    table = _IS_USER.copy()
    table[[code for code in codes if any(part.is_text for part in arguments_of(release, code))]] = True
    return table


@lru_cache(maxsize=128)
def _ranks(
    name: str | None, release: Release, learned: int, logged: tuple[int, ...]
) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
    """Return the n codes that have an argument, (n,), and a table, (32768,), that numbers them from 1; 0 = other code.

    Args:
        name: Name of the argument; None = any text.
        release: Release of the trace.
        learned: Number of argument lists learned from listings, as cache key: the result changes only with it.
        logged: The codes that occur in the trace; to check all codes of a release would take a tenth of a second.
    """
    if name is None:
        table = codes_with_text(release)
    elif is_rest(name):
        table = codes_with(name, release)
    else:
        table, spelling = np.zeros(CODE_COUNT, np.bool_), one_spelling(name)
        table[[code for code in logged if spelling in _spellings(release, code, learned)]] = True
    return np.flatnonzero(table), np.where(table, np.cumsum(table), 0).astype(np.uint16)


@lru_cache(maxsize=1 << 13)
def _spellings(release: Release, code: int, learned: int) -> frozenset[str]:
    """Return the names of a code's arguments in all variants of its payload, in the form of `one_spelling`.

    `learned` is as for `_ranks`.
    """
    del learned
    return frozenset(one_spelling(part.name) for part in arguments_of(release, code))


def _logged_codes(trace: Trace) -> tuple[int, ...]:
    return trace.cached("arguments.logged", lambda trace: tuple(np.flatnonzero(trace.code_counts).tolist()))


def distinct(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the distinct keys, ascending, and for every key its index among the distinct keys.

    Small keys are counted in a table, others are numbered by a hash: both are ten times as fast as sorting all keys.

    Args:
        keys: int64 (n,).
    """
    size = int(keys.max(initial=0)) + 1
    if size > _TABLE_LIMIT or keys.min(initial=0) < 0:
        count, index = links.numbered(np.ascontiguousarray(keys))
        values = np.empty(count, np.int64)
        values[index] = keys
        order = np.argsort(values)
        rank = np.empty(count, np.intp)
        rank[order] = np.arange(count)
        return values[order], rank[index]
    kinds = np.flatnonzero(np.bincount(keys, minlength=size))
    numbers = np.empty(size, np.intp)
    numbers[kinds] = np.arange(len(kinds))
    return kinds, numbers.take(keys)


def argument(trace: Trace, rows: Rows, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a numeric argument of many events.

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        name: Name of the argument in the argument lists.

    Returns:
        The values, int64 (n,): decimal arguments signed, others unsigned, 0 for events without the argument; and which
        events have the argument, bool (n,).
    """
    return arguments(trace, rows, name)[0]


def arguments(trace: Trace, rows: Rows, *names: str) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Return several numeric arguments of many events, like `argument`; adjacent payload words are read once.

    Returns:
        For each argument the values, int64 (len(rows),), and which events have it, bool (len(rows),).
    """
    if (axis := files_of(trace)) is not None:
        return _arguments_of_files(axis, rows, names)
    if np.any(rows[1:] < rows[:-1]):  # in file order, each part of the file is read once
        order = np.argsort(rows)
        columns = arguments(trace, rows[order], *names)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return [(values[back], known[back]) for values, known in columns]
    columns = [(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)) for _ in names]
    for begin in range(0, len(rows), _BLOCK_ROWS):  # intermediate arrays of a block fit in the processor's cache
        block = slice(begin, begin + _BLOCK_ROWS)
        words = _PayloadPairs(trace, rows[block])
        for name, (values, known) in zip(names, columns, strict=True):
            for positions, part in argument_offsets(trace, rows[block], name):
                if part is not None and part.words:
                    values[block][positions], known[block][positions] = _gathered(trace, words, positions, part), True
    return columns


def _arguments_of_files(
    axis: FileAxis, rows: Rows, names: tuple[str, ...]
) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Return what `arguments` returns, for a trace of several files, each of which has its own release.

    Pids and partitions are those of the axis.
    """
    columns = [(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)) for _ in names]
    for part, positions, own in axis.split(rows):
        columns_of_file = arguments(part.trace, own, *names)
        for (values, known), name, (of_file, is_known) in zip(columns, names, columns_of_file, strict=True):
            known[positions] = is_known
            if is_pid(name):
                values[positions] = part.axis_pids(of_file)
            else:
                values[positions] = part.axis_partitions(of_file) if is_partition(name) else of_file
    return columns


class _PayloadPairs:
    """Reads payload words of some events in pairs, as stored in slots; the last pair is cached."""

    def __init__(self, trace: Trace, rows: Rows) -> None:
        self._payloads, self._rows = trace.payloads, rows
        self._positions: NDArray[np.intp] = np.empty(0, np.intp)
        self._step = -1
        self._pair: tuple[NDArray[np.uint32], NDArray[np.uint32]] | None = None

    def of(self, positions: NDArray[np.intp], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of the events at some positions, uint32 (len(positions),)."""
        if self._pair is None or self._step != word // 2 or not np.array_equal(self._positions, positions):
            self._positions, self._step = positions, word // 2
            self._pair = self._payloads.pair(self._rows[positions], 2 * self._step)
        return self._pair[word % 2]


def argument_under(trace: Trace, rows: Rows, *names: str) -> NDArray[np.int64]:
    """Return a numeric argument whose name differs between releases, int64 (n,); -1 for events without the argument.

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        names: All spellings; if an event has several, the last one is used.
    """
    values = np.full(len(rows), -1, np.int64)
    for name in names:
        numbers, known = argument(trace, rows, name)
        values[known] = numbers[known]
    return values


def variants_of(trace: Trace, rows: Rows, counts: NDArray[np.int64] | None = None) -> NDArray[np.integer]:
    """Return the layout variants of events (`events.variants`), uint8 or int32 (n,).

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        counts: int64 (n,), payload word counts of the events, if known.
    """
    if (axis := files_of(trace)) is not None:
        out = np.zeros(len(rows), np.int32)
        for part, positions, own in axis.split(rows):
            out[positions] = variants_of(part.trace, own)
        return out
    payloads, code = trace.payloads, trace.events.code[rows]
    counts = payloads.word_counts(rows) if counts is None else counts
    variant = variants(trace.release, code, counts, lambda selected, word: payloads.column(rows[selected], word))
    return _with_payload(trace, rows, counts, variant, code)


def _with_payload(
    trace: Trace, rows: Rows, counts: NDArray[np.int64], variants_so_far: NDArray[np.uint8], code: NDArray[np.uint16],
    block: _Block | None = None,
) -> NDArray[np.integer]:  # fmt: skip
    """Return layout variants of events, updated for user events with a text and for events from lines of a listing.

    These two variants depend on the whole payload.

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        counts: int64 (n,), payload word counts of the events.
        variants_so_far: uint8 (n,), variants determined without the whole payload; changed.
        code: uint16 (n,), codes of the events.
        block: Payload words of the events, if already read.
    """
    users = np.flatnonzero(_IS_USER.take(code))
    users = users[counts[users] > 2]
    for count in distinct(counts[users])[0].tolist():
        of_count = users[counts[users] == count]
        for start, data in _payload_bytes(trace, rows, of_count, count, block):
            variants_so_far[of_count[start : start + len(data)][user_texts(data)]] = TEXT
    if trace.listed is None:
        return variants_so_far
    listed, variant = trace.listed
    position = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
    return np.where(listed[position] == rows, variant[position], variants_so_far)


def describe_events(trace: Trace, events: Mapping[int, UserEvent]) -> None:
    """Replace the user's descriptions of events, given by event code; the described fields become arguments."""
    axis = files_of(trace)
    for file_trace in [trace] if axis is None else [part.trace for part in axis.parts]:
        file_trace.payloads.described.clear()
        file_trace.payloads.described.update(events)
        for event in events.values():
            note_description(file_trace.release, event)
        file_trace.cached(_DESCRIBED, _nothing_yet).append(len(events))
        if events:
            taught(file_trace)  # registers the names
    if axis is not None:
        trace.cached(_DESCRIBED, _nothing_yet).append(len(events))


def was_described(trace: Trace) -> bool:
    """Return whether the arguments of a trace may have changed because `describe_events` was called."""
    return bool(trace.cached(_DESCRIBED, _nothing_yet))


def _nothing_yet(_trace: Trace) -> list[int]:
    return []


def taught(trace: Trace) -> Taught:
    """Return the arguments that a trace adds to those of the event tables: from its listing, and from descriptions.

    Arguments that no event of the trace has are included.
    """
    times = len(trace.cached(_DESCRIBED, _nothing_yet))
    return trace.cached(f"{_TAUGHT}.{times}", _taught)


def _taught(trace: Trace) -> Taught:
    layouts_of: dict[int, list[Layout]] = {}
    if (axis := files_of(trace)) is not None:
        parts: dict[int, tuple[PayloadPart, ...]] = {}
        for file in axis.parts:
            for code, added in taught(file.trace).parts.items():
                of_axis = int(file.codes[code])
                parts[of_axis] = (*parts.get(of_axis, ()), *added)
        return Taught(parts)
    if trace.listed is not None:
        rows, variant = trace.listed
        kinds = np.unique(trace.events.code[rows].astype(np.int64) << _VARIANT_BITS | variant)
        for code, number in zip((kinds >> _VARIANT_BITS).tolist(), (kinds & _VARIANTS).tolist(), strict=True):
            layouts_of.setdefault(code, []).append(layout_of(trace.release, code, 0, number))
    for code, event in trace.payloads.described.items():
        ends = (start + field.size * max(field.count, 1) for field, start in event.placed() if start >= 0)
        count = min(-(-max(ends, default=0) // 8) * 2, _MOST_WORDS)
        for words, form in ((count, BY_COUNT), (count, TEXT) if _IS_USER[code] else (FAST_WORDS, BY_COUNT)):
            described = describe_layout(trace.release, code, words, form, event)
            layouts_of.setdefault(code, []).append(layout_of(trace.release, code, words, described))
    if not layouts_of:
        return _NOTHING_TAUGHT
    return Taught({code: tuple({part.name: part for layout in layouts for part in named_parts(layout)}.values())
                   for code, layouts in layouts_of.items()})  # fmt: skip


def misfits(trace: Trace) -> list[str]:
    """Return a sentence for each kind of event with payloads too short for the described fields."""
    axis, sentences = files_of(trace), list[str]()
    for file_trace in [trace] if axis is None else [part.trace for part in axis.parts]:
        for code, event in file_trace.payloads.described.items():
            is_logged = bool(file_trace.code_counts[code])
            rows = np.flatnonzero(file_trace.events.code == code) if is_logged else np.empty(0, np.intp)
            counts = file_trace.payloads.word_counts(rows)
            is_wide = ~_IS_USER[code] & (counts > FAST_WORDS)
            for wide in np.unique(is_wide).tolist():
                sizes = 4 * counts[is_wide == wide]
                for field, start in event.placed(is_wide=wide):
                    needed = start + max(field.size * field.count, 1)
                    if start >= 0 and (short := int(np.count_nonzero(sizes < needed))):
                        name = f"{file_trace.catalogue.class_name(code)} {file_trace.catalogue.name(code)}"
                        events, end = counted(len(sizes), "event"), "ends" if len(sizes) == 1 else "end"
                        sentences.append(f"{name}: {short:,} of {events} {end} before {visible_line(field.label)!r}")
                        break
    return sentences


def _with_descriptions(
    trace: Trace, rows: Rows, counts: NDArray[np.int64], variant_of: NDArray[np.integer]
) -> NDArray[np.integer]:
    """Return layout variants of events, updated for events that the user has described.

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        counts: int64 (n,), payload word counts of the events.
        variant_of: (n,), their variants without descriptions.
    """
    events = dict(trace.payloads.described)
    if not events:
        return variant_of
    codes = trace.events.code[rows]
    affected = np.flatnonzero(np.isin(codes, list(events)))
    if not len(affected):
        return variant_of
    out = variant_of.astype(np.int32)
    kinds, kind = np.unique(
        np.stack([codes[affected].astype(np.int64), counts[affected], out[affected]]), axis=1, return_inverse=True
    )
    described = [
        describe_layout(trace.release, code, count, variant, events[code]) for code, count, variant in kinds.T.tolist()
    ]
    out[affected] = np.array(described, np.int32)[kind.reshape(-1)]
    return out


def argument_offsets(trace: Trace, rows: Rows, name: str | None) -> list[tuple[NDArray[np.intp], PayloadPart | None]]:
    """Group events by the location of an argument (name None: the text) in their payload.

    Events of codes that have no such argument are left out.

    Returns:
        For each group, positions of its events in `rows`, intp (n,), ascending; and the location, None = the payload
        lacks the argument.
    """
    release, code = trace.release, trace.events.code[rows]
    codes, rank_of_code = _ranks(name, release, learned_lists(), _logged_codes(trace))
    rank = rank_of_code.take(code)
    positions = np.flatnonzero(rank)
    if not len(positions):
        return []
    own = rows if len(positions) == len(rows) else rows[positions]
    counts = np.minimum(trace.payloads.word_counts(own), _MOST_WORDS)
    variant_of: NDArray[np.integer] = np.zeros(len(positions), np.uint8)
    if name is not None or trace.listed is not None:
        variant_of = _with_descriptions(trace, own, counts, variants_of(trace, own, counts))
    # There are few distinct layouts: they are numbered without sorting.
    shape = (len(codes), int(counts.max()) + 1, int(variant_of.max()) + 1)
    kinds, kind = distinct(np.ravel_multi_index((rank[positions] - 1, counts, variant_of), shape))
    number_of_place: dict[PayloadPart | None, int] = {}
    number_of_kind = np.empty(len(kinds), np.intp)
    for number, (code_number, words, variant) in enumerate(
        zip(*(part.tolist() for part in np.unravel_index(kinds, shape)), strict=True)
    ):
        only = int(codes[code_number])
        place = (
            text_offset(release, only, words, variant)
            if name is None
            else argument_part(release, only, words, name, variant)
        )
        number_of_kind[number] = number_of_place.setdefault(place, len(number_of_place))
    if len(number_of_place) == 1:
        return [(positions, next(iter(number_of_place)))]
    numbers = number_of_kind.take(kind)
    return [(positions[numbers == number], place) for place, number in number_of_place.items()]


def numbers_at(trace: Trace, rows: Rows, part: PayloadPart) -> NDArray[np.int64]:
    """Return the number at one position of many payloads, int64 (n,); undefined beyond the end of a payload."""
    return _gathered(trace, _PayloadPairs(trace, rows), np.arange(len(rows)), part)


def _gathered(trace: Trace, words: _PayloadPairs, positions: NDArray[np.intp], part: PayloadPart) -> NDArray[np.int64]:
    return _combined(trace, part, [words.of(positions, part.word + number) for number in range(part.words)])


def _combined(trace: Trace, part: PayloadPart, words: list[NDArray[np.uint32]]) -> NDArray[np.int64]:
    """Return the number that `part` describes in n events, int64 (n,).

    Args:
        trace: The trace.
        part: Position and form of the number in a payload.
        words: The payload words that contain the number, uint32 (n,) each.
    """
    if part.size:
        return _of_bytes(trace, part, words)
    if part.words == 1:
        return words[0].astype(np.int32 if part.is_signed else np.uint32).astype(np.int64)
    return join64(words[0].astype(np.int64), words[1].astype(np.int64), trace.byte_order)


def _of_bytes(trace: Trace, part: PayloadPart, words: list[NDArray[np.uint32]]) -> NDArray[np.int64]:
    """Return a number that does not fill whole payload words, int64 (n,); arguments as for `_combined`."""
    order = "<" if trace.byte_order == "little" else ">"
    data = np.stack(words, axis=1).astype(f"{order}u4").view(np.uint8)[:, part.byte : part.byte + part.size]
    wide = np.zeros((len(data), 8), np.uint8)
    wide[:, slice(8 - part.size, 8) if order == "<" else slice(part.size)] = data
    number = wide.view(f"{order}{'i' if part.is_signed else 'u'}8")[:, 0]
    shifted: NDArray[np.int64] = (number >> np.array(64 - 8 * part.size, number.dtype)).astype(np.int64)
    return shifted


def all_arguments(trace: Trace, rows: Rows) -> Arguments:
    """Return all arguments of many events as columns, by name.

    Different spellings of an argument share a column, with the first spelling as name. Payload words that no list
    describes are arguments too, as in the details of an event; all after the 32nd are in one text, `more_words`. A name
    that is a number in some events and a text in others has two columns.

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.

    Returns:
        By name, the values and which events have the argument, bool (n,). Values are numbers, int64 (n,): decimal
        arguments signed, others unsigned, 0 = absent; or texts: (index of each text, uint32 (n,); the texts).

    Raises:
        UsageError: The columns would take more than 4 GiB.
    """
    columns = _Columns(len(rows))
    for pieces in argument_pieces(trace, rows, _MOST_REST):
        for piece in pieces:
            columns.put(piece)
    return columns.finished()


@dataclass(frozen=True, slots=True)
class Piece:
    """An argument of some events.

    Attributes:
        name: Name in the layout of the events.
        at: (n,), positions of the events among the rows; ascending.
        values: int64 (n,), or for texts uint32 (n,), index of the text.
        texts: The distinct texts; None = numbers.
    """

    name: str
    at: Positions
    values: NDArray[np.int64] | NDArray[np.uint32]
    texts: tuple[str, ...] | None = None


def argument_pieces(trace: Trace, rows: Rows, most_rest: int = _MOST_WORDS) -> Iterator[list[Piece]]:
    """Yield all arguments of many events, block by block; the arguments of an event are in payload order.

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        most_rest: Maximum number of undescribed words that become separate arguments; the others are in `more_words`.
    """
    axis = files_of(trace)
    for start in range(0, len(rows), EVENTS_AT_ONCE):
        part = rows[start : start + EVENTS_AT_ONCE]
        if axis is None:
            yield [*_moved(_pieces(trace, part, most_rest), start)]
        else:
            yield [
                replace(_of_axis(file, piece), at=start + of_file[piece.at])
                for file, of_file, own in axis.split(part)
                for piece in _pieces(file.trace, own, most_rest)
            ]


def _moved(pieces: Iterator[Piece], by: int) -> Iterator[Piece]:
    """Yield pieces with positions shifted by `by`; pieces that share an array of positions still share it."""
    of: Positions | None = None
    moved: Positions = slice(0)
    for piece in pieces:
        if not by and not isinstance(piece.at, slice):
            yield piece
            continue
        if piece.at is not of:
            of = piece.at
            moved = slice(by, by + len(piece.values)) if isinstance(of, slice) else of + by
        yield replace(piece, at=moved)


def _of_axis(part: AxisPart, piece: Piece) -> Piece:
    """Return an argument of a file on an axis, with pids and partition numbers converted to those of the axis."""
    if piece.texts is not None or not (is_pid(piece.name) or is_partition(piece.name)):
        return piece
    numbers = part.axis_pids if is_pid(piece.name) else part.axis_partitions
    return replace(piece, values=numbers(piece.values.astype(np.int64)))


def _pieces(trace: Trace, rows: Rows, most_rest: int) -> Iterator[Piece]:
    """Yield the arguments of events of one file; positions of events count from 0.

    Args:
        trace: The trace of the file.
        rows: (n,), rows of the event table.
        most_rest: As for `argument_pieces`.
    """
    counts = np.minimum(trace.payloads.word_counts(rows), _MOST_WORDS)
    block = _Block(trace, rows, counts)
    plain = variants(trace.release, trace.events.code[rows], counts, block.word)
    own = _with_payload(trace, rows, counts, plain, trace.events.code[rows], block)
    variant = _with_descriptions(trace, rows, counts, own)
    for positions, layout, count in _layouts(trace, rows, counts, variant):
        for part in named_parts(layout):
            if part.is_text:
                behind = replace(part, word=0)
                if part.text_index:
                    later = _texts(block, positions, count, part.word, partial(_later_texts, part=behind))
                    yield from _known_texts(part.name, positions, *later)
                elif part.word < count:
                    number, texts = _texts(block, positions, count, part.word, partial(_first_texts, part=behind))
                    yield Piece(part.name, positions, number, tuple(texts))
            else:
                yield Piece(part.name, positions, block.numbers(positions, part))
        yield from _value_texts(block, positions, named_parts(layout))
        extra = range(layout.end, count)
        is_padded = len(extra) == 1 and bool(layout.parts) and layout.end % 2 == 1
        for part in map(layout.rest_part, extra[:most_rest]):
            values = block.numbers(positions, part)
            if not is_padded:
                yield Piece(part.name, positions, values)
            elif len(known := np.flatnonzero(values)):  # the kernel pads to whole slots with 0
                yield Piece(part.name, _narrowed(positions, known), values[known])
        if len(extra) > most_rest:
            texts_of = partial(_hexadecimal, order=trace.byte_order)
            number, texts = _texts(block, positions, count, extra[most_rest], texts_of)
            yield Piece(MORE_WORDS, positions, number, tuple(texts))


def _narrowed(positions: Positions, selected: NDArray[np.intp]) -> NDArray[np.intp]:
    return selected if isinstance(positions, slice) else positions[selected]


def _value_texts(block: _Block, positions: Positions, parts: Sequence[PayloadPart]) -> Iterator[Piece]:
    """Yield a text argument with the names of the values for each argument that has such names, as enumerations do.

    Args:
        block: Payload words of events.
        positions: (n,), positions of the events in the block.
        parts: The arguments of these events.
    """
    number_of = {part.name: part for part in parts if part.words}
    for part in parts:
        if not part.texts:
            continue
        # A text may depend on other fields, so the distinct combinations of all their values are looked up.
        others = {text.when[0] for text in part.texts if text.when is not None} & number_of.keys()
        names = (part.name, *sorted(others - {part.name}))
        values = np.stack([block.numbers(positions, number_of[name]) for name in names], axis=1)
        unique, index = np.unique(values, axis=0, return_inverse=True)
        texts = [shown_texts(part.texts, row[0], dict(zip(names, row, strict=True))) for row in unique.tolist()]
        yield from _known_texts(text_name(part, parts), positions, index.reshape(-1).astype(np.uint32), texts)


def _known_texts(
    name: str, positions: Positions, number: NDArray[np.uint32], texts: Sequence[str | None]
) -> Iterator[Piece]:
    """Yield a text argument of those events that have a text.

    Args:
        name: Name of the argument.
        positions: (n,), positions of the events.
        number: uint32 (n,), index in `texts` for each event.
        texts: The texts; None = an event with this index has no text.
    """
    if None in texts:
        selected = np.flatnonzero(np.array([text is not None for text in texts], np.bool_)[number])
        positions, number = _narrowed(positions, selected), number[selected]
    if len(number):
        yield Piece(name, positions, number, tuple(text or "" for text in texts))


def _hexadecimal(data: NDArray[np.uint8], order: str) -> list[str]:
    """Return each payload of `data`, uint8 (n, bytes), as a text of hexadecimal words."""
    words = data.view("<u4" if order == "little" else ">u4").tolist()
    return [" ".join(f"0x{word:08x}" for word in payload) for payload in words]


def _later_texts(data: NDArray[np.uint8], part: PayloadPart) -> list[str | None]:
    """Return the text `part`, which follows other texts, of each payload; None if the payload ends before it.

    Args:
        data: uint8 (n, bytes).
        part: Position of the text.
    """
    return [text_at(payload.tobytes(), part) for payload in data]


def _first_texts(data: NDArray[np.uint8], part: PayloadPart) -> list[str]:
    """Return the first (or only) text of each payload; `data` is uint8 (n, bytes)."""
    own = data[:, part.start : part.start + part.size if part.size else None]
    return joined(own).tobytes().decode("utf-8", "replace").split("\0")[:-1]


class _Block:
    """Payload words of some events, read in one pass up to the length that nearly all events have.

    Attributes:
        words: uint32 (events, words).
    """

    def __init__(self, trace: Trace, rows: Rows, counts: NDArray[np.int64]) -> None:
        self._trace, self._rows = trace, rows
        longest = np.flatnonzero(np.cumsum(np.bincount(counts)) >= _MOST_SHARE * len(counts))
        width = min(int(longest[0]), _BLOCK_WORDS)
        self.words = trace.payloads.block(rows, width)
        self._columns = np.ascontiguousarray(self.words.T)

    def word(self, positions: Positions, number: int) -> NDArray[np.uint32]:
        """Return payload word number `number` of the events at some positions, uint32 (n,)."""
        if number < len(self._columns):
            column: NDArray[np.uint32] = self._columns[number]
            return column if isinstance(positions, slice) else column.take(positions)
        return self._trace.payloads.column(self._rows[positions], number)

    def payload_bytes(self, positions: Positions, count: int, word: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield the payloads of some events from a word on; arguments and results as for `_payload_bytes`."""
        return _payload_bytes(self._trace, self._rows, positions, count, self, word)

    def numbers(self, positions: Positions, part: PayloadPart) -> NDArray[np.int64]:
        """Return the number that `part` describes in the events at some positions, int64 (n,)."""
        return _combined(self._trace, part, [self.word(positions, part.word + number) for number in range(part.words)])


@dataclass(slots=True)
class _Column:
    """The column of an argument while it is filled.

    Attributes:
        values: Numbers, or indices into `texts`.
        known: bool (n,), which events have the argument.
        texts: The texts; None for a column of numbers.
        number_of: Index of each deduplicated text.
    """

    values: NDArray[np.int64] | NDArray[np.uint32]
    known: NDArray[np.bool_]
    texts: list[str] | None = None
    number_of: dict[str, int] = attribute(default_factory=lambda: {"": 0})

    def numbered(self, texts: Sequence[str], events: int) -> NDArray[np.uint32]:
        """Add the texts of some events; return the index of each text in the column, uint32 (len(texts),).

        Many texts are not deduplicated if few events share a text, because that would dominate the run time.
        """
        assert self.texts is not None
        if len(texts) > _FEW_TEXTS and _SHARED * len(texts) > events:
            known = len(self.texts)
            self.texts += texts
            return np.arange(known, len(self.texts), dtype=np.uint32)
        for text in texts:
            if text not in self.number_of:
                self.number_of[text] = len(self.texts)
                self.texts.append(text)
        return np.array([self.number_of[text] for text in texts], np.uint32)


class _Columns:
    """Columns of arguments while they are filled."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._columns: dict[str, _Column] = {}
        self._names: dict[str, str] = {}

    def put(self, piece: Piece) -> None:
        """Enter the values of an argument for some events into its column."""
        is_text = piece.texts is not None
        name = self._names.setdefault(one_spelling(piece.name), piece.name)
        if name in self._columns and (self._columns[name].texts is not None) != is_text:
            name = f"{name}_{'text' if is_text else 'number'}"
        column = self._columns.get(name)
        if column is None:
            if (len(self._columns) + 1) * self._count > _MOST_VALUES:
                raise UsageError(f"these {self._count:,} events have more than {len(self._columns):,} different "
                                 "arguments; the table argument has them, one a row")  # fmt: skip
            known = np.zeros(self._count, np.bool_)
            if is_text:
                column = _Column(np.zeros(self._count, np.uint32), known, [""])
            else:
                column = _Column(np.zeros(self._count, np.int64), known)
            self._columns[name] = column
        values = piece.values
        if piece.texts is not None:
            values = column.numbered(piece.texts, len(values))[values]
        column.values[piece.at], column.known[piece.at] = values, True

    def finished(self) -> Arguments:
        """Return the filled columns."""
        return {name: (_filled(column), column.known) for name, column in self._columns.items()}


def _filled(column: _Column) -> NDArray[np.int64] | TextColumn:
    if column.texts is None:
        return column.values.astype(np.int64, copy=False)
    return column.values.astype(np.uint32, copy=False), tuple(column.texts)


def _layouts(
    trace: Trace, rows: Rows, counts: NDArray[np.int64], variant: NDArray[np.integer]
) -> Iterator[tuple[Positions, Layout, int]]:
    """Yield each payload layout that occurs among some events.

    Args:
        trace: The trace.
        rows: (n,), rows of the events.
        counts: int64 (n,), payload words of each event.
        variant: (n,), number of the layout among those of its code.

    Yields:
        Indices in `rows` of the events with this layout, the layout, and the number of their payload words.
    """
    codes, code = distinct(trace.events.code[rows].astype(np.int64))
    shape = (len(codes), int(counts.max()) + 1, int(variant.max()) + 1)
    kinds, kind = distinct(np.ravel_multi_index((code, counts, variant), shape))
    if len(kinds) == 1:
        yield slice(None), layout_of(trace.release, int(codes[0]), int(counts[0]), int(variant[0])), int(counts[0])
        return
    order, start = _grouped(kind, len(kinds))
    for number, (code_number, words, form) in enumerate(
        zip(*(part.tolist() for part in np.unravel_index(kinds, shape)), strict=True)
    ):
        yield (
            order[start[number] : start[number + 1]],
            layout_of(trace.release, int(codes[code_number]), words, form),
            words,
        )


def _grouped(kind: NDArray[np.intp], kinds: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return positions grouped by kind, ascending within a kind, and the start of each kind, (kinds + 1,)."""
    narrow = kind.astype(np.uint16) if kinds < 1 << 16 else kind  # numpy sorts uint16 by counting
    return np.argsort(narrow, kind="stable"), np.concatenate(([0], np.cumsum(np.bincount(kind, minlength=kinds))))


def _texts(
    block: _Block, positions: Positions, count: int, word: int, texts_of: Callable[[NDArray[np.uint8]], list[Text]]
) -> tuple[NDArray[np.uint32], list[Text]]:
    """Return the texts of events of one layout: index of each text, uint32 (n,), and the texts, with few duplicates.

    Args:
        block: Words of events.
        positions: Positions of the events in the block.
        count: Number of payload words of each event.
        word: First word of the texts.
        texts_of: Converts the bytes from this word on, uint8 (n, bytes), to texts.
    """
    codes, texts = list[NDArray[np.uint32]](), list[Text]()
    for _, data in block.payload_bytes(positions, count, word):
        number, of = same_rows(data)
        codes.append(number + np.uint32(len(texts)))
        texts += texts_of(data if len(of) == len(data) else data[of])
    return np.concatenate(codes or [np.zeros(0, np.uint32)]), texts


def _payload_bytes(
    trace: Trace, rows: Rows, positions: Positions, count: int, block: _Block | None, word: int = 0
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield payloads of events in parts: the number of events before the part, and the bytes, uint8 (events, bytes).

    Args:
        trace: The trace.
        rows: (n,), rows of the event table.
        positions: Positions in `rows` of the events to read.
        count: Number of payload words of each event.
        block: Words of all events at `rows`, if already read.
        word: First word of each payload to yield.
    """
    step = max(1, _TEXT_BLOCK // max(count, 1))
    is_there = block is not None and count <= block.words.shape[1]
    own = np.arange(len(rows))[positions] if isinstance(positions, slice) else positions
    for start in range(0, len(own), step):
        part = own[start : start + step]
        words = block.words[part, word:count] if block is not None and is_there else (
            trace.payloads.block(rows[part], count)[:, word:])  # fmt: skip
        if words.shape[1]:
            yield (
                start,
                np.ascontiguousarray(words.astype("<u4" if trace.byte_order == "little" else ">u4")).view(np.uint8),
            )

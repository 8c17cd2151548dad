"""Parts of the decoder against what one would write event by event, with limits so low that tests pass them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from satview.formats.kev import combine, repair, stream
from satview.formats.kev.combine import MAX_SLOTS
from satview.formats.kev.consensus import ROLLOVER
from satview.formats.kev.decode import Parts
from satview.formats.kev.stream import OpenEvent, OpenEvents
from satview.store.problems import Problems
from satview.store.tables import Fragments


@pytest.mark.parametrize("seed", range(5))
def test_rows_out_of_order_in_pieces(monkeypatch, seed):
    monkeypatch.setattr(repair, "_CHUNK", 4)
    time = np.random.default_rng(seed).integers(0, 30, 41) + np.arange(41) * 3
    expected = [
        row for row, now in enumerate(time.tolist())
        if any(before > now for before in time[:row]) or any(after < now for after in time[row + 1 :])
    ]  # fmt: skip
    assert repair.disordered_rows(time).tolist() == expected
    assert repair.disordered_rows(np.sort(time)).tolist() == []


@pytest.mark.parametrize(
    ("time", "positions"),
    [
        ([3, 2, 1, 0, 4, 7, 6, 5], [0, 1, 2, 3, 5, 6, 7]),  # seven of eight rows move
        ([3, 2, 1, 0, 4, 8, 7, 6, 5], list(range(9))),  # eight of nine: more than seven eighths
        ([0, 2, 1, 3], [1, 2]), ([0, 1, 2], None),
    ],
)  # fmt: skip
def test_which_rows_are_moved(time, positions):
    """Those that are out of order; where these are nearly all between the first and the last, all of them."""
    times = np.array(time)
    moves = repair.time_order(times, np.zeros(len(times), np.uint8), repair.disordered_rows(times))
    assert positions is None if moves is None else moves[0].tolist() == positions
    if moves is not None:
        assert times[moves[1]].tolist() == sorted(times[positions].tolist())


def event(position: int, words: int = 2, time: int = 0) -> OpenEvent:
    return OpenEvent(0, 7, time, 0, position, [np.zeros(words, np.uint32)])


def test_events_without_end_are_given_up_the_oldest_first(monkeypatch):
    assert (stream.MAX_OPEN, stream.MAX_WORDS) == (65_536, 4_194_304), "less is enough here"
    monkeypatch.setattr(stream, "MAX_OPEN", 3)
    monkeypatch.setattr(stream, "MAX_WORDS", 10)
    problems = Problems()
    found = OpenEvents(problems, 1000)
    for number in range(3):
        found.add(number, event(number))
    assert (len(found), found.keys().tolist()) == (3, [0, 1, 2])
    assert found.has_room(0, 4)
    assert not found.has_room(1, 0)
    assert not found.has_room(0, 5)
    found.add(3, event(3))
    assert found.keys().tolist() == [1, 2, 3]  # one event too many
    found.add(3, event(4, 6))
    assert found.keys().tolist() == [2, 3]  # one event and two words too many: 2, 2 and 6 are left
    assert len(found) == 3
    words = np.ones(3, np.uint32)
    assert found.append(3, words, 1, 0, closes=False) is None
    ended = found.append(3, words, 1, 0, closes=True)
    assert ended is not None
    assert (ended.position, ended.slots, sum(map(len, ended.words))) == (3, 3, 8)
    long = found.append(3, words, MAX_SLOTS, 0, closes=False)
    assert long is not None
    assert (long.position, len(found)) == (4, 1)
    found.add(5, event(6, time=100))
    found.add(5, event(5, time=101))
    assert found.append(5, words, 1, ROLLOVER + 99, closes=False) is None
    with pytest.raises(KeyError):
        found.append(5, words, 1, ROLLOVER + 101, closes=False)
    found.add(9, event(8))
    found.add(8, event(7))
    found.move_before(5 * ROLLOVER + 10)
    assert found.append(8, words, 1, 5 * ROLLOVER + 7, closes=True).time == 5 * ROLLOVER + 7
    found.add(8, event(7))
    found.finish()
    assert [(problem.detail, problem.offset) for problem in problems] == [
        ("the end of this event is missing", 1000 + 16 * position) for position in (0, 1, 6, 5, 2, 7, 8)
    ]


# ---- tails that are apart from their event -----------------------------------------------------------------------


def queued(rows: list[tuple[int, bool, bool, int]], times: list[int]) -> tuple[list[int], list[int]]:
    """Return the owner of each row (key, is it an event, closes, last event before), and events without end."""
    open_events: dict[int, list[int]] = {}
    owners, ended, events = [], set(), 0
    for key, is_event, closes, before in rows:
        queue = open_events.setdefault(key, [])
        if is_event:
            queue.append(events)
            owners.append(events)
            events += 1
            continue
        while queue and abs(times[before] - times[queue[0]]) >= ROLLOVER:
            queue.pop(0)
        owners.append(queue[0] if queue else -1)
        if queue and closes:
            ended.add(queue.pop(0))
    return owners, sorted(set(range(events)) - ended)


@pytest.mark.parametrize("ascends", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_tails_belong_to_the_oldest_open_event(monkeypatch, seed, ascends):
    """Two keys on one CPU, up to 30 rows; the clock of the CPU steps by up to a rollover."""
    monkeypatch.setattr(combine, "_BLOCK_ROWS", 1 + seed % 4)
    rng = np.random.default_rng(seed)
    rows, times, now = [], [], 5 * ROLLOVER
    for _ in range(int(rng.integers(1, 30))):
        is_event = bool(rng.random() < 0.45) or not times
        if is_event:
            now += int(rng.choice([0, 1, ROLLOVER // 2, ROLLOVER - 1, ROLLOVER])) * (
                1 if ascends else int(rng.choice([1, 1, -1]))
            )
            times.append(now)
        rows.append((int(rng.integers(0, 2)), is_event, bool(rng.random() < 0.6), len(times) - 1))
    n = len(rows)
    event = np.cumsum([is_event for _, is_event, _, _ in rows]) - 1
    unmatched = combine.Unmatched(
        np.arange(n) * 2, np.ones(n, np.int64),
        np.array([1 << 30 | 63 << 24 | 5 + key for key, _, _, _ in rows], np.uint32),
        np.full(n, 77, np.uint32), np.array([closes and not is_event for _, is_event, closes, _ in rows]),
        np.where([is_event for _, is_event, _, _ in rows], event, -1), np.array([before for _, _, _, before in rows]),
    )  # fmt: skip
    found = combine.match(unmatched, np.array(times), np.full(len(times), 63, np.uint8), ascends=ascends)
    owners, unfinished = queued(rows, times)
    assert (found.owner.tolist(), found.unfinished.tolist()) == (owners, unfinished)


def test_nothing_to_match():
    found = combine.match(combine.Unmatched.none(), np.array([5]), np.zeros(1, np.uint8))
    assert (found.owner.tolist(), found.unfinished.tolist()) == ([], [])


def test_keys_of_slots():
    """Stamp above CPU, class and event; the bits of the structure count for nothing."""
    headers = np.array([0x40000001, 0xC0000001, 0x3F000001, 0x3F000002], np.uint32)
    found = combine.keys(headers, np.array([7, 7, 7, 8], np.uint32))
    assert found.tolist() == [7 << 32 | 1, 7 << 32 | 1, 7 << 32 | 0x3F000001, 8 << 32 | 0x3F000002]
    is_open = np.array([False, True, True, False])
    assert combine.contested(found, is_open).tolist() == [True, True, False, False]
    assert combine.contested(found, ~is_open).tolist() == [True, True, False, False]
    assert combine.contested(found, np.zeros(4, np.bool_)).tolist() == [False] * 4
    assert combine.contains(np.array([3, 5, 9]), np.array([1, 3, 4, 9, 10])).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert combine.contains(np.array([], np.int64), np.array([1])).tolist() == [False]


def test_tails_are_taken_away_from_events():
    """Event 2 has three slots at 20, and its end; event 5 two at 50 and none; event 7 is one slot, open already."""
    many = combine.Unmatched(
        np.array([70, 90]), np.array([1, 2]), np.array([17, 19], np.uint32), np.array([7, 9], np.uint32),
        np.array([False, True]), np.array([7, -1]), np.array([7, 8]),
    )  # fmt: skip
    found = combine.split(many, np.array([2, 5, 7]), np.array([20, 50, 70]), np.array([3, 2, 1]),
                          np.array([12, 15, 17], np.uint32), np.array([2, 5, 7], np.uint32))  # fmt: skip
    columns = (found.slot, found.count, found.header, found.stamp, found.closes, found.event, found.before)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (20, 1, 12, 2, False, 2, 2), (21, 2, 12, 2, True, -1, 2), (50, 1, 15, 5, False, 5, 5),
        (51, 1, 15, 5, True, -1, 5), (70, 1, 17, 7, False, 7, 7), (90, 2, 19, 9, True, -1, 8),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_that_share_their_time(monkeypatch, seed, is_sorted):
    monkeypatch.setattr(repair, "_CHUNK", 5)
    rng = np.random.default_rng(seed)
    time = rng.integers(0, 25, 30)
    if is_sorted:
        time.sort()
    moves = repair.time_order(time, np.zeros(30, np.uint8), repair.disordered_rows(time))
    assert (moves is None) == is_sorted
    some = np.unique(rng.integers(0, 30, 6))
    counts = np.bincount(time)
    shared = [row for row in range(30) if counts[time[row]] > 1]
    assert repair.rows_of_equal_time(time, moves).tolist() == shared
    assert repair.rows_of_shared_time(time, some, moves).tolist() == [row for row in shared if time[row] in time[some]]
    if moves is not None:
        order = np.arange(30)
        order[moves[0]] = moves[1]
        assert order.tolist() == np.argsort(time, kind="stable").tolist()


@pytest.mark.parametrize(
    ("spans", "noted"), [(1, [(3, 1)]), (100, [(3 * n, 1) for n in range(1, 101)]), (101, [(3, 101)])]
)
def test_spans_of_empty_slots(spans, noted):
    """Up to a hundred one by one, of more the first slot and how many there are."""
    parts = Parts()
    parts.note_empty(3 * np.arange(1, spans + 1))
    parts.note_empty(np.array([1000, 1001, 1002]))
    assert parts.empty == [*noted, (1000, 3)]


def test_a_row_alone_shares_its_time_with_nobody():
    row = np.zeros(1, np.int64)
    assert repair.rows_of_shared_time(row + 5, row, None).tolist() == []


def test_fragments_follow_their_events():
    fragments = Fragments(
        np.array([2, 5, 6], np.uint32), np.array([0, 2, 5, 7]), np.array([4, 9, 1, 3, 8, 2, 7], np.uint32)
    )
    went = np.array([0, 1, 6, 2, 3, 4, 5], np.uint32)
    found = repair.renumber(fragments, went)
    assert (found.event.tolist(), found.start.tolist()) == ([4, 5, 6], [0, 3, 5, 7])
    assert found.slot.tolist() == [1, 3, 8, 2, 7, 4, 9]


def test_what_a_chunk_leaves_to_be_matched():
    """Open events and runs of tails by their slots; a run is no event, and has the row of the event before it."""
    parts, slots = Parts(), np.arange(40, dtype=np.uint32).reshape(10, 4)
    opened = tuple(np.array(column) for column in ([2, 7], [1, 3], [0, 4]))
    runs = (*(np.array(column) for column in ([0, 5], [2, 1], [-1, 3])), np.array([True, False]))
    parts.note_unmatched(100, 50, slots, opened, runs)
    [found] = parts.unmatched
    assert [getattr(found, each.name).tolist() for each in fields(found)] == [
        [100, 102, 105, 107], [2, 1, 1, 3], [0, 8, 20, 28], [1, 9, 21, 29], [True, False, False, False],
        [-1, 50, -1, 54], [49, 50, 53, 54],
    ]  # fmt: skip

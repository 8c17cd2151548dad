"""The links that the compiled passes find are those of their reference, whatever the events."""

from __future__ import annotations

import numpy as np
import pytest

from satview.capture.workloads import registry
from satview.core import links
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev import slot_source
from satview.formats.kev.reader import open_kev
from satview.linkage import calls
from satview.linkage import links as linkage_links
from satview.linkage.blockers import blockers
from satview.linkage.calls import partners
from satview.linkage.chain import link_table, reading_ahead
from satview.linkage.links import NO_EVENT, LinkKind
from satview.linkage.transactions import transactions
from tests.capture.made import made_of_lesson
from tests.core.reference import links as reference
from tests.core.reference.replacing import numpy_passes
from tests.helpers.core import of_damaged_files
from tests.helpers.extent import fewer, usually

FILES = usually(8, complete=120, thorough=120)
TABLES = (
    (wire.THREAD_RUNNING,),
    (wire.code(wire.WireClass.INT, 1),),
    (wire.code(wire.WireClass.COMM, 0), wire.THREAD_CREATE),
)


def found_in(trace):
    """Return everything that is made of links, as lists."""
    every = np.arange(len(trace.events), dtype=np.uint32)
    mixed = np.random.default_rng(1).permutation(every)
    found = {"partners": partners(trace).tolist(), "open": calls.open_calls(trace, mixed).tolist()}
    found["switch"] = calls.last_switch(trace, mixed).tolist()
    for codes in TABLES:
        for name, requested in (("all", mixed), ("few", mixed[:20])):
            found[f"last {codes} {name}"] = linkage_links.last_of_codes(trace, codes, requested).tolist()
        found[f"rows {codes}"] = linkage_links.rows_of_codes(trace, *codes).tolist()
    for kind in LinkKind:
        table = link_table(trace, kind)
        found[str(kind)] = table.from_row.tolist(), table.to_row.tolist(), table.certainty.tolist()
    for table in (transactions(trace), blockers(trace)):
        for name in table.__slots__:
            if isinstance(getattr(table, name), np.ndarray):
                found[name] = getattr(table, name).tolist()
    return found


def assert_same(path):
    mine = found_in(open_kev(path))
    ahead = open_kev(path)
    with reading_ahead(ahead):
        assert found_in(ahead) == mine
    with numpy_passes():
        theirs = found_in(open_kev(path))
    for name, values in mine.items():
        assert values == theirs[name], name
    return sum(len(mine[str(kind)][0]) for kind in LinkKind)


@pytest.mark.thorough
@pytest.mark.parametrize("name", fewer([name for name, _ in registry.names()][::-1], 3))
def test_workloads(name, tmp_path):
    links = 0
    for release, wide, loss in (
        (Release.QNX_7, True, False),
        (Release.QNX_8, False, True),
        (Release.QNX_6, True, True),
    ):
        links += assert_same(made_of_lesson(name, release, wide, loss, tmp_path).trace.path)
    assert links > 100


@pytest.mark.thorough
def test_files_that_are_nearly_right(tmp_path):
    assert of_damaged_files(tmp_path / "t.kev", FILES, assert_same) > FILES


def test_calls_of_threads_that_nobody_knows():
    """Entries and exits alone, on CPUs whose threads are not known, with restarts, other calls and runs in between."""
    rng = np.random.default_rng(7)
    count = 20_000
    stays = np.zeros(128, np.bool_)
    stays[[3, 5]] = True
    traits = np.zeros(wire.CODE_COUNT, np.uint8)
    call = wire.code(wire.WireClass.KER_CALL, 0)
    traits[[call + 3, call + 5, call + 9]] = links.IS_CALL | links.IS_ENTRY
    traits[[call + 3 + 128, call + 5 + 128, call + 9 + 256]] = links.IS_CALL | links.IS_END
    traits[wire.THREAD_RUNNING] = links.IS_SWITCH | links.IS_RUNNING
    code = rng.choice(np.flatnonzero(traits), count).astype(np.uint16)
    cpu = rng.integers(0, 3, count).astype(np.uint8)
    thread = rng.choice([0, 0, 1, 2], count).astype(np.uint16)
    found = links.calls(code, cpu, thread, 3, traits, stays, count)
    newest: dict[int, int] = {}  # per CPU, the event of a call that the next one may end
    expected = []
    for row in range(count):
        mine, here = int(code[row]), int(cpu[row])
        if mine == wire.THREAD_RUNNING:
            newest.pop(here, None)
            continue
        before = newest.get(here)
        if (
            thread[row] == 0 and before is not None and traits[mine] & links.IS_END
            and traits[code[before]] & links.IS_ENTRY and (int(code[before]) ^ mine) & 127 == 0 and stays[mine & 127]
        ):  # fmt: skip
            expected.append((before, row))
        newest[here] = row
        if thread[row]:
            newest.pop(here)
    assert len(expected) > 100
    assert sorted(zip(found.unknown[0].tolist(), found.unknown[1].tolist(), strict=True)) == sorted(expected)


@pytest.mark.thorough
def test_words_of_slots_far_apart(tmp_path):
    """Each way of reading gives the words that are there, in any order; what the file has lost is reported as ever."""
    rng = np.random.default_rng(2)
    slots = rng.integers(0, 2**32, (200_000, 4), dtype=np.uint32)
    path = tmp_path / "slots"
    path.write_bytes(b"header--" + slots.astype(">u4").tobytes())
    source = slot_source.FileSlots(slot_source.SourceFile(path, path.stat().st_size), 8, len(slots), "big")
    for count in (0, 1, 2, 50, 5000, 150_000):
        at = rng.choice(len(slots), count, replace=False)
        for half in (0, 1):
            assert source.take_halves(at, half).tolist() == slots[at, 2 * half : 2 * half + 2].tolist()
            with numpy_passes():
                assert source.take_halves(at, half).tolist() == slots[at, 2 * half : 2 * half + 2].tolist()
        assert source.take(at, 3).tolist() == slots[at, 3].tolist()
    for bad in ([5, len(slots)], [-1, 5]):
        with pytest.raises(IndexError):
            source.take(np.array(bad), 2)
    with path.open("r+b") as file:
        file.truncate(8 + 16 * 1000)
    assert source.take(np.array([3, 999]), 2).tolist() == slots[[3, 999], 2].tolist()
    with pytest.raises(slot_source.SourceChangedError):
        source.take(np.array([3, 150_000]), 2)


def test_rows_that_do_not_ascend_are_refused():
    code, cpu = np.zeros(10, np.uint16), np.zeros(10, np.uint8)
    table = np.ones(wire.CODE_COUNT, np.bool_)
    for requested in ([3, 2], [3, 10]):
        with pytest.raises(ValueError, match="out of range"):
            links.last_before(code, cpu, table, np.array(requested, np.uint32))


def test_numbers_that_are_equal():
    rng = np.random.default_rng(3)
    for count, kinds in ((0, 1), (1, 1), (1_000, 3), (1_000, 2_000)):
        number = rng.integers(-kinds, kinds, count) << 30
        before, (many, which) = links.previous_same(number), links.numbered(number)
        seen = {}
        for position, mine in enumerate(number.tolist()):
            assert before[position] == seen.get(mine, -1)
            seen[mine] = position
        assert many == len(seen)
        assert len(set(zip(number.tolist(), which.tolist(), strict=True))) == many == len(set(which.tolist()))


@pytest.mark.parametrize("kind", [np.uint32, np.int64])
def test_positions_among_ascending_numbers(kind):
    rng = np.random.default_rng(4)
    for count in (0, 1, 2, 1_000):
        number = np.sort(rng.integers(0, 5_000, count)).astype(kind)
        for requested in (rng.integers(0, 6_000, 2_000), np.arange(6_000), np.arange(6_000)[::-1]):
            needed = requested.astype(kind)
            assert linkage_links.positions(number, needed).tolist() == np.searchsorted(number, needed).tolist()


def test_events_before_and_after_with_the_same_number():
    rng = np.random.default_rng(5)
    candidates = np.sort(rng.choice(5_000, 400, replace=False)).astype(np.uint32)
    number, requested = rng.integers(0, 9, 400), rng.integers(0, 9, 1_000)
    at = np.sort(rng.integers(0, 5_000, 1_000)).astype(np.uint32)
    found = [of(candidates, number, at, requested, 9).tolist() for of in (links.last_of_number, links.next_of_number)]
    for row, mine, before, after in zip(at.tolist(), requested.tolist(), *found, strict=True):
        own = candidates[number == mine]
        assert before == max(own[own < row].tolist(), default=NO_EVENT)
        assert after == min(own[own >= row].tolist(), default=NO_EVENT)


ENTRY, EXIT, HANDLER, HANDLER_EXIT = (wire.code(wire.WireClass.INT, event) for event in (1, 2, 3, 4))


def pairs_in(nested, codes, cpus):
    columns = np.array(codes, np.uint16), np.array(cpus, np.uint8)
    found = nested(*columns, calls._STEP_OF_CODE, np.arange(len(codes), dtype=np.uint32))
    return sorted(zip(*(rows.tolist() for rows in found), strict=True))


def test_first_state_in_a_table_from_positions_in_any_order():
    rng = np.random.default_rng(6)
    for share in (0.0, 0.02, 0.4, 1.0):
        start = np.cumsum([0, 0, *rng.integers(0, 60, 8), 0])
        index, value = np.arange(5, 5 + start[-1]).astype(np.uint32), rng.integers(0, 256, start[-1]).astype(np.uint8)
        thread, table = rng.integers(0, len(start) - 1, 400), rng.random(256) < share
        positions = rng.integers(start[thread], start[thread + 1], endpoint=True)
        for order in (np.arange(400), np.lexsort((positions, thread)), np.argsort(-positions)):
            given = index, value, start, positions[order], thread[order], table
            assert links.first_in_table(*given).tolist() == reference.first_in_table(*given).tolist()
    with pytest.raises(ValueError, match="first_in_table"):
        links.first_in_table(index, value, start, start[2:3] - 1, np.array([2]), table)


def test_values_in_ranges():
    """A range that is too short has the value behind all ranges, and a number without a range makes the answer None."""
    number, start = np.array([2, 5, 6], np.uint32), np.array([0, 2, 2, 3], np.uint32)
    values = np.array([20, 21, 60, 99], np.uint64)
    requested = np.array([6, 2, 5, 2], np.uint32)
    assert links.values_in_ranges(number, start, values, requested, 0).tolist() == [60, 20, 99, 20]
    assert links.values_in_ranges(number, start, values, requested, 1).tolist() == [99, 21, 99, 21]
    assert links.values_in_ranges(number, start, values, requested[:0], 0).tolist() == []
    assert links.values_in_ranges(number, start, values, requested + np.uint32(1), 0) is None
    with pytest.raises(ValueError, match="values_in_ranges"):
        links.values_in_ranges(number, start + np.uint32(9), values, requested, 0)
    rng = np.random.default_rng(5)
    for _ in range(20):
        number = np.flatnonzero(rng.random(400) < 0.3).astype(np.uint32)
        start = np.cumsum(np.append(0, rng.integers(0, 4, len(number)))).astype(np.uint32)
        values = rng.integers(0, 1 << 60, int(start[-1]) + 1).astype(np.uint64)
        requested = rng.choice(number, 300)
        for position in range(4):
            given = number, start, values, requested, position
            assert links.values_in_ranges(*given).tolist() == reference.values_in_ranges(*given).tolist()


@pytest.mark.parametrize("nested", [links.nested, reference.nested], ids=["compiled", "reference"])
class TestHandlersEndWithinTheirInterrupt:
    def test_the_exit_behind_an_inner_interrupt_is_that_of_the_outer_handler(self, nested):
        codes = [ENTRY, HANDLER, ENTRY, HANDLER, EXIT, HANDLER_EXIT, EXIT]
        assert pairs_in(nested, codes, [0] * 7) == [(0, 6), (1, 5), (2, 4)]

    def test_an_open_handler_is_forgotten_by_the_next_interrupt(self, nested):
        codes = [ENTRY, HANDLER, EXIT, ENTRY, HANDLER_EXIT, EXIT]
        assert pairs_in(nested, codes, [0] * 6) == [(0, 2), (3, 5)]

    def test_outside_of_interrupts_an_exit_without_an_entry_ends_them(self, nested):
        assert pairs_in(nested, [HANDLER, HANDLER_EXIT, HANDLER, EXIT, HANDLER_EXIT], [0] * 5) == [(0, 1)]

    def test_every_cpu_has_its_own(self, nested):
        codes = [ENTRY, ENTRY, HANDLER, HANDLER, HANDLER_EXIT, HANDLER_EXIT, EXIT, EXIT]
        assert pairs_in(nested, codes, [0, 1, 0, 1, 0, 1, 1, 0]) == [(0, 7), (1, 6), (2, 4), (3, 5)]


def test_random_interrupts_are_nested_like_the_reference():
    random, codes = np.random.default_rng(1), (ENTRY, EXIT, EXIT, HANDLER, HANDLER_EXIT)
    for _ in range(300):
        events, cpus = random.choice(codes, 40).tolist(), random.integers(0, 2, 40).tolist()
        assert pairs_in(links.nested, events, cpus) == pairs_in(reference.nested, events, cpus)

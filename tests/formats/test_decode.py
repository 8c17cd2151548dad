"""The vectorised decoder against the rules one slot at a time, on traces of every kind of disorder."""

from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.kev import assemble
from satview.formats.kev import decode as decode_module
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.consensus import Surroundings
from satview.store.problems import Problems
from satview.store.trace import Header
from tests.core.reference.replacing import numpy_passes
from tests.helpers import naive
from tests.helpers.extent import points
from tests.helpers.growth import cpu_s

HEADER = Header((("SYS_RELEASE", "7.1.0"), ("CYCLES_PER_SEC", "1000000000")))


CALL = wire.code(2, 11)


def opened(slots):
    array = np.array(slots, np.uint32).reshape(-1, 4)
    return trace_from_slots("made", "kev", HEADER, b"", array, "little", Problems())


@contextmanager
def chunks_of(slots):
    """Chunks so small that a few slots make many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_module, "CHUNK_SLOTS", slots)
        yield


@pytest.mark.parametrize("struct", [0, 1])
@pytest.mark.parametrize(("upper", "start"), [(7, (7 << 32) - 16), (0, -16)])
def test_events_in_front_of_the_first_time_event(struct, upper, start):
    """A call 16 cycles before it, which may be of several slots, and one as many behind it."""
    time = wire.CONTROL_TIME | struct << wire.STRUCT_SHIFT
    trace = opened([(CALL, 0xFFFFFFF0, 1, 2), (time, 0, upper, 0), (CALL, 0x10, 1, 2)])
    assert trace.events.time_cycles.tolist() == [start, start + 16, start + 32]


CODES = [
    wire.code(2, 11),
    wire.code(2, 139),
    wire.code(4, 1),
    wire.code(4, 5),
    wire.code(7, 0),
    wire.code(6, 3),
    wire.CONTROL_BUFFER,
]


@st.composite
def slot_lists(draw):
    """Slots of a few CPUs: steps ahead, back, over the rollover, silence; combine slots whose keys collide."""
    clock, slots = draw(st.sampled_from([0x100000000, 0x1FFFFFF00, 0x2F0000000])), []
    for _ in range(draw(st.integers(1, 60))):
        clock += draw(st.sampled_from([0, 1, 7, 1000, 0x1000000, 0x20000000, 0x60000000, -5, -0x100000]))
        cpu = draw(st.integers(0, 2))
        kind = draw(st.sampled_from(["one", "one", "one", "head", "middle", "end", "time", "zero"]))
        if kind == "time":
            slots.append(
                (
                    wire.CONTROL_TIME | cpu << 24,
                    clock + draw(st.sampled_from([0, 5])) & 0xFFFFFFFF,
                    clock >> 32,
                    clock & 0xFFFFFFFF,
                )
            )
        elif kind == "zero":
            slots.append((0, 0, 0, 0))
        elif kind == "one":
            slots.append(
                (
                    draw(st.sampled_from(CODES)) | cpu << 24,
                    clock & 0xFFFFFFFF,
                    draw(st.integers(1, 2)),
                    draw(st.integers(1, 2)),
                )
            )
        else:
            bits = {"head": 1, "middle": 2, "end": 3}[kind] << 30
            slots.append((wire.code(2, 11) | bits, draw(st.sampled_from([5, 6])), len(slots), 0))
    return slots


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(slot_lists(), st.sampled_from([4, 16, 1 << 17]))
def test_equals_the_rules_one_slot_at_a_time(slots, chunk):
    # Combine slots have old stamps of their own here, so a rollover of the clock between head and tail does not show
    # from the rules of matching alone; the expiry rule has a test of its own.
    # These clocks are wild; what is corrected afterwards has tests of its own (test_damaged_clock).
    with chunks_of(chunk), pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "correct", lambda *_: [])
        patch.setattr(assemble, "_move_between_neighbours", lambda *_: False)
        trace = opened(slots)
    events, orphans, unfinished = naive.decode(slots)
    by_slot = {int(s): row for row, s in enumerate(trace.events.slot)}
    assert sorted(by_slot) == [e["slots"][0] for e in events]
    expired = _expires(trace, events)
    if not expired:
        for event in events:
            row = by_slot[event["slots"][0]]
            assert trace.payloads.slots_of(row).tolist() == event["slots"]
            assert trace.payloads.words(row).tolist() == event["words"]
        assert trace.problems.counts().get("orphan-slots", 0) == len(orphans)
        assert trace.problems.counts().get("unfinished-events", 0) == len(unfinished)
    first_time = next((i for i, s in enumerate(slots) if s[0] & 0x7FFF == wire.CONTROL_TIME and s[0]), None)
    if first_time is None or first_time < chunk:
        requested = naive.times(events)
        assert [int(trace.events.time_cycles[by_slot[e["slots"][0]]]) for e in events] == requested


def _expires(trace, events):
    times = trace.events.time_cycles
    return len(times) and int(times[-1]) - int(times[0]) >= 1 << 32


def test_buffers_in_a_row_take_the_time_of_what_follows_them():
    base = 0x100000000
    # The second TIME is damaged, so the chunk is not placed with one addition.
    slots = [(wire.CONTROL_TIME, 0, 1, 0), (wire.CONTROL_TIME, 400, 0xFFFFFFFF, 0)]
    slots += [(wire.CONTROL_BUFFER | cpu << 24, 500, cpu, 0) for cpu in (0, 1, 2)]
    slots += [(wire.code(6, 1), 500, 0, 0), (wire.CONTROL_BUFFER, 900, 4, 0), (wire.code(6, 2), 900, 0, 0)]
    assert opened(slots).events.time_cycles.tolist() == [base + t for t in (0, 400, 500, 500, 500, 500, 900, 900)]


@pytest.mark.parametrize("core", [nullcontext, numpy_passes])
def test_a_buffer_behind_orphans_alone_stays_with_the_event_after_it(core):
    """The second chunk of four slots begins with orphans and ends at that event: the cut is before the BUFFER."""
    clocks = [(wire.CONTROL_TIME | cpu << 24, 100, upper, 100) for cpu, upper in ((1, 1), (2, 5))]
    orphans = [(wire.code(2, 11) | 3 << 30, stamp, 0, 0) for stamp in (5, 6, 7)]
    slots = [*clocks, *orphans, (wire.CONTROL_BUFFER | 2 << 24, 500, 1, 1)]
    slots += [(wire.code(6, 1) | 1 << 24, stamp, 0, 0) for stamp in (500, 600)]
    with core(), chunks_of(4):
        decoded = decode_module.Decoder(np.array(slots, np.uint32), catalogue(Release.QNX_7)).run()
    # By rule 3 of section 5.3; the clock of its own CPU 2 is four rollovers ahead.
    assert decoded.time.tolist() == [(1 << 32) + 100, (5 << 32) + 100, *((1 << 32) + t for t in (500, 500, 600))]


def test_what_a_decoder_is_told_of_the_clock():
    """By the header, before the first slots; a file that does not grow has columns in plain memory."""
    decoder = decode_module.Decoder(np.array([(wire.code(6, 1), 5, 0, 0)], np.uint32), catalogue(Release.QNX_7))
    decoder.inform(Surroundings(cycles_per_s=7, says_ring=True))
    decoded = decoder.run()
    assert decoded.clock.review.surroundings == Surroundings(cycles_per_s=7, says_ring=True)
    assert decoder._growing == {}


@pytest.mark.parametrize("chunk", [5, 6, 7, 8])
def test_buffers_in_a_row_stay_with_what_follows_them(chunk):
    """CPU 1 is a rollover ahead, so its buffers show by their times whether they took those of CPU 0."""
    rollover = 0x100000000
    slots = [(wire.CONTROL_TIME, 0, 1, 0), (wire.CONTROL_TIME | 1 << 24, 0, 2, 0), (wire.code(6, 1), 10, 0, 0)]
    slots += [(wire.CONTROL_BUFFER | 1 << 24, 500, number, 0) for number in (1, 2)]
    slots += [(0, 0, 0, 0), (wire.code(6, 2), 500, 0, 0), (wire.code(6, 3), 600, 0, 0), (wire.code(6, 4), 700, 0, 0)]
    with chunks_of(chunk):
        trace = opened(slots)
    assert (trace.events.time_cycles - rollover).tolist() == [0, 10, 500, 500, 500, 600, 700, rollover]


def test_a_tail_is_no_time_event():
    orphan = (wire.CONTROL_TIME | 3 << 30, 77, 9, 9)
    trace = opened([(wire.code(6, 1), 100, 0, 0), orphan, (wire.CONTROL_TIME, 200, 5, 200)])
    assert trace.events.time_cycles.tolist() == [(5 << 32) + 100, (5 << 32) + 200]


def test_time_order_is_stable():
    base = 0x100000000
    slots = [(wire.CONTROL_TIME, 0, 1, 0)] + [
        (wire.code(6, i), (base + t) & 0xFFFFFFFF, i, 0) for i, t in enumerate([50, 10, 10, 40, 50, 20])
    ]
    trace = opened(slots)
    assert trace.events.time_cycles.tolist() == [base + t for t in (0, 10, 10, 20, 40, 50, 50)]
    assert [wire.event_of(int(c)) for c in trace.events.code[1:]] == [1, 2, 5, 3, 0, 4]
    assert np.argsort(trace.last_slots(), kind="stable").tolist() == [0, 5, 1, 2, 4, 6, 3]


def test_an_equal_stamp_a_full_turn_later_is_another_event():
    head = wire.code(2, 11) | 1 << 30
    tail = wire.code(2, 11) | 3 << 30
    slots = [(wire.CONTROL_TIME, 0, 1, 0), (head, 100, 1, 2)]
    # Four steps of a third of a rollover: the clock comes round.
    slots += [(wire.code(6, 1), 100 + i * 0x55555555 & 0xFFFFFFFF, 0, 0) for i in range(1, 5)]
    trace = opened([*slots, (tail, 100, 3, 4)])
    assert trace.problems.counts() == {"orphan-slots": 1, "unfinished-events": 1}
    again = opened(
        [*slots, (head, 100 + 4 * 0x55555555 & 0xFFFFFFFF, 5, 6), (tail, 100 + 4 * 0x55555555 & 0xFFFFFFFF, 7, 8)]
    )
    assert again.payloads.words(6).tolist() == [5, 6, 7, 8]
    assert again.truncated.tolist() == [1]


def test_events_of_many_keys_are_given_up_each_for_itself():
    """CPU 1 has come round when its tails arrive, CPU 2 has stood still."""
    head, tail = wire.code(2, 11) | 1 << 30, wire.code(2, 11) | 3 << 30
    slots = [(wire.CONTROL_TIME | cpu << 24, 0, 1, 0) for cpu in (1, 2)]
    slots += [(head | cpu << 24, 100 + i, cpu, i) for i in range(3) for cpu in (1, 2)]
    slots += [(wire.code(6, 1) | 1 << 24, 200 + i * 0x55555555 & 0xFFFFFFFF, 0, 0) for i in range(1, 5)]
    slots.insert(-2, (wire.CONTROL_TIME | 1 << 24, 0xC7, 2, 0xC7))
    slots += [(tail | cpu << 24, 100 + i, cpu + 2, i) for i in range(3) for cpu in (1, 2)]
    trace = opened(slots)
    assert trace.problems.counts() == {"orphan-slots": 3, "unfinished-events": 3}
    heads = np.flatnonzero(trace.events.code == wire.code(2, 11)).tolist()
    found = [trace.payloads.words(row).tolist() for row in heads]
    assert sorted(found) == [[1, 0], [1, 1], [1, 2], [2, 0, 4, 0], [2, 1, 4, 1], [2, 2, 4, 2]]


def test_thread_and_owner():
    running, receive = wire.code(4, 1), wire.code(4, 5)
    call = wire.code(2, 11)
    slots = [
        (call, 1, 0, 0),
        (running, 2, 7, 1),
        (call, 3, 0, 0),
        (running | 1 << 24, 4, 8, 2),
        (call, 5, 0, 0),
        (call | 1 << 24, 6, 0, 0),
        (receive, 7, 7, 1),
        (running, 8, 9, 1),
        (call, 9, 0, 0),
    ]
    trace = opened(slots)
    ids = [(int(trace.threads.pid[t]), int(trace.threads.tid[t])) for t in trace.events.thread]
    assert ids == [(-1, -1), (7, 1), (7, 1), (8, 2), (7, 1), (8, 2), (7, 1), (9, 1), (9, 1)]


@points(release=["7.1.0", "8.0.0"], cpus=[4, 64])
def test_nobody_is_known_to_run_from_a_jump_to_the_next_running_event(release, cpus):
    """Up to 7.x a gap between buffers concerns all CPUs, in 8.0 its own."""
    rng = np.random.default_rng(cpus)
    running, slots = wire.code(4, 1), []
    for i in range(4000):
        cpu = int(rng.integers(cpus))
        kind = [running, wire.code(2, 11), wire.CONTROL_DROPPED][int(rng.choice(3, p=[0.3, 0.65, 0.05]))]
        slots.append((kind | cpu << 24, i, int(rng.integers(1, 300)), 1))
    header = Header((("SYS_RELEASE", release), ("CYCLES_PER_SEC", "1000000000")))
    with chunks_of(700):
        trace = trace_from_slots("made", "kev", header, b"", np.array(slots, np.uint32), "little", Problems())
    now, requested = {}, []
    for head, _, pid, _ in slots:
        cpu = head >> 24
        if head & 0x7FFF == running:
            now[cpu] = pid
        elif head & 0x7FFF == wire.CONTROL_DROPPED:
            now = {} if release == "7.1.0" else {**now, cpu: -1}
        requested.append(now.get(cpu, -1))
    assert trace.threads.pid[trace.events.thread].tolist() == requested


def plain(count):
    """Return slots a microsecond apart."""
    slots = np.ones((count, 4), np.uint32)
    slots[:, 0], slots[:, 1] = wire.code(6, 1), np.arange(count) * 1000
    return slots


def many_buffers(count):
    slots = plain(count)
    slots[::2, 0], slots[::2, 2] = wire.CONTROL_BUFFER, np.arange(0, 2 * count, 4)
    slots[1::4, 0] = wire.code(4, 1)
    return slots


def all_dropped(count):
    slots = plain(count)
    slots[:, 0] = wire.CONTROL_DROPPED
    return slots


def all_processes(count):
    slots = plain(count)
    slots[:, 0], slots[:, 3] = wire.PROC_CREATE, np.arange(count)
    return slots


def colliding_ids(count):
    slots = plain(count)
    keys = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
    slots[:, 0], slots[:, 2], slots[:, 3] = wire.code(4, 5), keys & np.uint64(0xFFFFFFFF), keys >> np.uint64(32)
    return slots


def old_keys(count):
    """Half are heads, then the clock goes round, then come the tails."""
    slots, half = plain(count), count // 2
    slots[half : 2 * half, 1] = slots[:half, 1]
    slots[:half, 0], slots[half:, 0] = wire.code(2, 11) | 1 << 30, wire.code(2, 11) | 3 << 30
    slots[half : half + 6, 0] = wire.code(6, 1)
    slots[half : half + 6, 1] = np.arange(1, 7) * 0x55555555 & 0xFFFFFFFF
    return slots


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shape", "limit_us"),
    [(many_buffers, 10), (all_dropped, 10), (all_processes, 10), (colliding_ids, 30), (old_keys, 10)],
)
def test_no_file_takes_long_for_its_size(shape, limit_us):
    count = 50_000
    assert cpu_s(opened, shape(count)) * 1e6 / count < limit_us, "per slot; plain files take a hundredth"


def test_more_than_65535_threads():
    n = 70_000
    slots = np.zeros((n, 4), np.uint32)
    slots[:, 0] = wire.code(4, 5)
    slots[:, 1] = np.arange(n)
    slots[:, 2], slots[:, 3] = np.arange(n) // 100 + 1, np.arange(n) % 100 + 1
    trace = opened(slots)
    assert len(trace.threads) == n + 1
    assert trace.events.thread.tolist() == list(range(1, n + 1))
    assert trace.states.of(65_700).tolist() == [65_699]


def test_cancel_stops_the_load():
    from satview.base.errors import Cancelled

    with pytest.raises(Cancelled):
        trace_from_slots(
            "made", "kev", HEADER, b"", np.zeros((10, 4), np.uint32), "little", Problems(), cancelled=lambda: True
        )

"""Builds a `Trace` from slots: decodes, repairs and sorts events, and finds missing events and other problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.process import timed
from satview.base.threads import Begun
from satview.base.time import NS_PER_S, Clock
from satview.core import links, statistics
from satview.events import wire
from satview.events.catalogue import Catalogue, catalogue, listed_catalogue, release_of
from satview.events.spec import Release
from satview.events.states import STEP_OF_CODE
from satview.formats.kev import combine, repair
from satview.formats.kev.clock import correct, misplaced
from satview.formats.kev.combine import (
    EventRegion,
    buffer_table,
    report_buffers,
    report_control_events,
    report_ring_tail,
)
from satview.formats.kev.consensus import ClockVerdicts, Surroundings
from satview.formats.kev.decode import Decoded, Decoder
from satview.formats.kev.header import FROM_LISTING, GLOBAL_CLOCK, VERSIONED, parse_syspage
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.kev.slot_source import SlotSource, source_of
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, ProcessTable, StateIndex, ThreadTable
from satview.store.time_ranges import EVERY_CPU, count_cpus
from satview.store.trace import Header, SystemInfo, Trace

# Finds missing events that no BUFFER event reports: in truncated buffers, and where events contradict each other.
#
# A buffer with another length than it announces was truncated or spliced. The gap is assumed at the longest step in
# time from its first slot to the next buffer. If a CPU begins to run a thread, or calls the kernel, inside an
# interrupt, the exit of the interrupt is missing.
#
# Source: kernel event trace format, sections 6.1, 8.2 and 8.6.


Gaps = NDArray[np.int64]  # (n, 4), as `Trace.gaps`
_NO_BUFFER: Final = -1
_MOST: Final = 500  # maximum number of buffers that are examined; garbage has more
_LONGER: Final = 4  # minimum ratio of a step within a truncated buffer to the step to the next buffer of its ring
_FASTER: Final = 10  # events may come this many times faster than usual where buffers are lost
_MOST_CPUS: Final = 256  # number of buffers that contain at least one of every CPU
_NEAR: Final = 1 << 16  # number of events before a splice that are searched for the last one of a CPU
_MOST_OPEN: Final = 0.1  # if a larger share of a CPU's interrupts has no exit, nothing is concluded
_MOST_WITHIN: Final = 8  # maximum number of interrupt events from entry to exit of nested interrupts
_SAMPLE: Final = 4096  # number of a CPU's interrupt events that decide whether the others are examined
_CALLS: Final = wire.KER_EXIT_OFFSET  # kernel call entries have smaller numbers
_CPUS_MAX: Final = 64  # the header word has six bits for the CPU (section 3)


def no_gaps() -> Gaps:
    """Return an empty array of gaps, int64 (0, 4)."""
    return np.empty((0, 4), np.int64)


def cut_buffers(decoded: Decoded, count: int, region: EventRegion, *, per_cpu: bool) -> Gaps:
    """Return the gaps inside truncated buffers, and clear the threads of the events after each gap.

    Args:
        decoded: Columns in file order; threads of events after a gap are set to 0 until their CPU shows again which
            thread runs.
        count: Number of events of the capture.
        region: Gives the number of slots in the file.
        per_cpu: Whether every CPU has its own buffers (8.0).

    Returns:
        int64 (n, 4): last time before the gap, first time after the gap, CPU or `EVERY_CPU`, and time of the BUFFER
        event that shows the loss, -1 = none; times in cycles.
    """
    is_buffer = (decoded.code[decoded.rare_rows] == wire.CONTROL_BUFFER) & (decoded.rare_rows < count)
    rows, words = decoded.rare_rows[is_buffer], decoded.rare_words[is_buffer].astype(np.int64)
    if not len(rows):
        return no_gaps()
    ends = np.append(rows[1:], count)
    slot_counts = np.diff(decoded.slot[rows].astype(np.int64), append=region.slot_count)
    ring = decoded.cpu[rows].astype(np.int64) if per_cpu else np.full(len(rows), EVERY_CPU)
    following = _following(ring)
    has_next = following >= 0
    missing = np.where(has_next, words[following, 0] - words[:, 0] - 1, 0)
    announced = words[:, 1]
    # A buffer is cut if it has fewer slots than announced, or slots of another buffer after its own. In a ring, and if
    # the length happens to match, only missing buffer numbers show it, if these buffers do not fit before the next one.
    is_cut = (announced > 0) & ((slot_counts < announced) | ((slot_counts != announced) & (missing > 0)))
    is_cut[-1] &= announced[-1] > slot_counts[-1]
    is_cut |= (announced == 0) & (missing > 0)
    begins, to_next = decoded.time[rows], decoded.time[rows[following]] - decoded.time[ends - 1]
    spans = (begins[following] - begins)[has_next & (missing == 0) & (2 * announced >= announced.max())]
    least = int(spans[spans > 0].min()) if np.any(spans > 0) else 0  # shortest time of a buffer
    is_cut |= (announced > 0) & (missing > 0) & (to_next >= 0) & (to_next * _FASTER < missing * least)
    gaps: list[tuple[int, int, int, int]] = []
    for number in np.flatnonzero(is_cut)[:_MOST].tolist():
        begin, end = int(rows[number]), int(ends[number])
        for cpu, before, behind in _longest_steps(decoded, begin, end, int(ring[number])):
            # The last slot before the gap may be cut in two, with a wrong time, usually far too early.
            start, stop = int(decoded.time[min(begin, before) : before + 1].max()), int(decoded.time[behind])
            if stop <= start or behind >= end:
                continue  # the next buffer itself shows this loss
            if not announced[number] and stop - start < _LONGER * to_next[number]:
                continue  # buffers are missing after it, which take longer than any step within one
            # A ring has no lengths, so it is unknown whether this buffer is truncated or later ones are lost.
            shown_by = _next_buffer(decoded, rows[number + 1 :], cpu) if announced[number] else _NO_BUFFER
            gaps.append((start, stop, cpu, shown_by))
            _forget_runners(decoded, behind, end, cpu)
    return np.array(gaps, np.int64).reshape(-1, 4)


def _following(ring: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return for each buffer the index of the next one with the same CPU (`ring`), intp (n,); -1 = there is none."""
    after = np.full(len(ring), -1)
    for number in np.unique(ring):
        buffers = np.flatnonzero(ring == number)
        after[buffers[:-1]] = buffers[1:]
    return after


def _longest_steps(decoded: Decoded, begin: int, end: int, ring: int) -> list[tuple[int, int, int]]:
    """Return the longest step in time between the events of a truncated buffer, as (CPU, row before, row after).

    The step to the next buffer's first event counts too; the list is empty if there is no step. A buffer of one CPU
    that contains events of other CPUs was spliced: the list then has a step for each of the other CPUs, from its last
    event shortly before the buffer, if there is one, to its first event inside. `ring` is the CPU of the buffer;
    `EVERY_CPU` = all CPUs share the buffers.
    """
    cpus = decoded.cpu[begin:end]
    if ring != EVERY_CPU and (cpus != ring).any():
        strangers = []
        for cpu in np.unique(cpus[cpus != ring]).tolist():
            behind = begin + int(np.argmax(cpus == cpu))
            near = max(0, begin - _NEAR)
            earlier = np.flatnonzero(decoded.cpu[near:begin] == cpu)
            if len(earlier):
                strangers.append((cpu, near + int(earlier[-1]), behind))
        return strangers
    # The next buffer's first event counts too: if the longest step leads to it, the next buffer shows the loss itself.
    time = np.maximum.accumulate(decoded.time[begin : min(end + 1, len(decoded.time))])
    steps = np.diff(time)
    if not len(steps):
        return []
    longest = begin + len(steps) - 1 - int(np.argmax(steps[::-1]))  # of equal steps the one nearest to the next buffer
    return [(ring, longest, longest + 1)]


def _next_buffer(decoded: Decoded, rows: NDArray[np.int64], cpu: int) -> int:
    """Return the time, cycles, of the first BUFFER event in `rows` that belongs to a CPU; -1 = none."""
    near = rows[:_MOST_CPUS] if cpu == EVERY_CPU else rows[:_MOST_CPUS][decoded.cpu[rows[:_MOST_CPUS]] == cpu]
    return int(decoded.time[near[0]]) if len(near) else _NO_BUFFER


def _forget_runners(decoded: Decoded, begin: int, end: int, cpu: int) -> None:
    """Set threads of events from row `begin` on to 0 (unknown), up to the next RUNNING event of their CPU, or `end`."""
    code, cpus = decoded.code[begin:end], decoded.cpu[begin:end]
    is_own = wire.are_of_threads(code)
    for number in np.unique(cpus).tolist() if cpu == EVERY_CPU else [cpu]:
        of_cpu = np.flatnonzero(cpus == number)
        runs = of_cpu[code[of_cpu] == wire.THREAD_RUNNING]
        until = int(runs[0]) if len(runs) else end - begin
        unknown = of_cpu[(of_cpu < until) & ~is_own[of_cpu]]
        decoded.thread[begin + unknown] = 0


def open_interrupts(events: EventTable, known: Gaps, region: EventRegion, problems: Problems) -> Gaps:
    """Return gaps in which interrupt exits are missing, as `cut_buffers`: until the CPU runs a thread again.

    Each interrupt whose exit is missing is reported. A CPU has no gaps if so many of its interrupts lack an exit that
    nothing can be concluded. After the other gaps `known` the nesting depth is reset.
    """
    rows = links.rows_with(events.code, np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.INT)
    gaps: list[Gaps] = [no_gaps()]
    entries: list[int] = []
    of_threads: NDArray[np.intp] | None = None
    cpus = events.cpu[rows]
    is_open = statistics.left_open(events.code, events.cpu, STEP_OF_CODE, rows, _MOST_WITHIN)
    for cpu in np.flatnonzero(is_open).tolist() if not len(known) else np.unique(cpus).tolist():
        ends = np.sort(known[(known[:, 2] == EVERY_CPU) | (known[:, 2] == cpu), 1])
        own, part, step, depth, _ = statistics.nesting(
            events.code, events.cpu, events.time_cycles, STEP_OF_CODE, rows[cpus == cpu], cpu, ends
        )
        # The usual case: the depth is often 0, also at the end of each part, so that no exit is missing; or exits were
        # not captured. A missing entry can hide a missing exit only at the end of a part.
        outside = np.flatnonzero(depth == 0)
        is_long = np.any(np.diff(outside, prepend=-1, append=len(own)) > _MOST_WITHIN)
        is_end = np.append(part[1:] != part[:-1], True)[: len(part)]
        if not np.any(step < 0) or not (is_long or np.any(depth[is_end] > 0)):
            continue
        head = own[:_SAMPLE]
        near = _of_threads(events, int(head[0]), int(head[-1]) + 1)
        near = near[events.cpu[near] == cpu]
        entry, _ = _left_open(np.searchsorted(near, head), part[:_SAMPLE], step[:_SAMPLE])
        if len(entry) > max(1, _MOST_OPEN * np.count_nonzero(step[:_SAMPLE] > 0)):
            continue
        of_threads = _of_threads(events, 0, len(events)) if of_threads is None else of_threads
        calls = of_threads[events.cpu[of_threads] == cpu]
        segment = np.searchsorted(calls, own)
        entry, last = _left_open(segment, part, step)
        behind = segment[last]
        is_followed = behind < len(calls)
        entry, last, behind = entry[is_followed], last[is_followed], behind[is_followed]
        if len(entry) > max(1, _MOST_OPEN * np.count_nonzero(step > 0)):
            continue
        entries += own[entry].tolist()
        start, stop = events.time_cycles[own[last]], events.time_cycles[calls[behind]]
        gaps.append(np.stack((start, stop, np.full(len(entry), cpu), np.full(len(entry), _NO_BUFFER)), axis=1))
    for row in sorted(entries)[: problems.limit]:
        what = f"CPU {events.cpu[row]} enters an interrupt and runs threads without having left it"
        problems.add("contradiction", what, region.byte(int(events.slot[row])), 1, int(events.time_cycles[row]))
    problems.add_rest("contradiction", len(entries[problems.limit :]), len(entries[problems.limit :]))
    return np.concatenate(gaps)


def _of_threads(events: EventTable, begin: int, end: int) -> NDArray[np.intp]:
    """Return the rows from `begin` to `end` at which CPUs enter kernel calls or begin to run threads, intp (n,)."""
    codes = np.arange(wire.CODE_COUNT)
    table = (codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (codes & 0x1FF < _CALLS)
    table[wire.THREAD_RUNNING] = True
    return begin + links.rows_with(events.code[begin:end], table).astype(np.intp)


def _left_open(
    segment: NDArray[np.intp], part: NDArray[np.int64], step: NDArray[np.int8]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and last index of each run of interrupt events that ends inside an interrupt, intp (k,) each.

    The events of a run have the same number `segment` of kernel calls and RUNNING events of the CPU before them, and
    are in the same `part` between gaps. `step` is 1 for the entry of an interrupt, and -1 for its exit.
    """
    begins = np.flatnonzero(np.append(True, (segment[1:] != segment[:-1]) | (part[1:] != part[:-1]))[: len(segment)])
    last_rows = np.append(begins[1:], len(segment)) - 1
    total = np.cumsum(step, dtype=np.int64)
    before = total[begins] - step[begins]
    lowest = np.minimum(np.minimum.reduceat(total, begins) - before, 0)
    is_open = total[last_rows] - before - lowest > 0
    is_cut = np.append(part[begins[1:]] != part[last_rows[:-1]], False)  # the exit may be among missing events after it
    runs = np.flatnonzero(is_open & ~is_cut)
    return begins[runs], last_rows[runs]


# Builds a `Trace` from slots: decodes, repairs and sorts events, lists problems, builds thread and process tables.


LISTING: Final = "traceprinter"  # format of traces whose slots were made from text
# Cycles per second. Real counters run at some 10^9 at most; above this limit the header is damaged.
_MAX_RATE: Final = 1_000_000_000_000


def choose_release(header: Header, system: SystemInfo | None, problems: Problems) -> Release:
    """Return the release whose event tables apply, according to SYS_RELEASE in the header.

    Without a usable SYS_RELEASE, the release is guessed from the system page, or is 7.x if there is no system page. 8.0
    with a system page of the old layout is read as 6.6. These cases are reported.
    """
    named = release_of(header.get("SYS_RELEASE"))
    kind = system.values.get("type", 0) if system else None
    if named is not None:
        # An older branch of the kernel used the number 8.0 with the system page of 6.6 (section 0).
        if named == Release.QNX_8 and kind is not None and not kind & VERSIONED:
            problems.add("release-assumed", "the header says 8.0 but the system page has the old layout: read as 6.6")
            return Release.QNX_6_6
        return named
    if kind is not None:
        # Types from 0x100 on are 64-bit processors, which came with 7.x (section 4.1).
        release = Release.QNX_8 if kind & VERSIONED else Release.QNX_7 if kind >= 0x100 else Release.QNX_6
        problems.add("release-assumed", f"no usable SYS_RELEASE; the system page looks like {release}")
        return release
    problems.add("release-assumed", "no usable SYS_RELEASE and no system page: read as 7.x")
    return Release.QNX_7


def choose_rate(header: Header, system: SystemInfo | None, problems: Problems) -> int:
    """Return the clock rate in cycles per second: from the header, else from the system page, else (reported) 1 GHz."""
    # The header comes first: on MIPS and SH the rate in the system page is shifted by a constant (section 1.1).
    rates = (header.number("CYCLES_PER_SEC"), system.values.get("qtime.cycles_per_sec") if system else None)
    for rate in rates:
        if rate is not None and 0 < rate <= _MAX_RATE:
            return rate
    problems.add("clock-rate", f"TRACE_CYCLES_PER_SEC is {header.get('CYCLES_PER_SEC') or 'missing'}")
    return NS_PER_S


def clock_surroundings(header: Header, system: SystemInfo | None, release: Release) -> Surroundings:
    """Return the information on clocks in header and system page (format description, 1.1, 5.1, 6.1)."""
    uptime_cycles, rate = None, choose_rate(header, system, Problems())
    date, boot = header.date("DATE"), header.date("BOOT_DATE")  # both are local times of the target
    if date is not None and boot is not None:
        uptime_cycles = (date - boot) // timedelta(seconds=1) * rate
    says_ring = "-r" in header.get("TRACELOGGER_ARGS").split()
    return Surroundings(
        {}, _has_common_clock(system, release), release != Release.QNX_8, uptime_cycles, rate, says_ring
    )


def trace_from_slots(
    path: Path | str,
    format_name: str,
    header: Header,
    system_page: bytes,
    slots: NDArray[np.uint32] | SlotSource,
    byte_order: str,
    problems: Problems,
    *,
    offset: int = 0,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    has_whole_buffers: bool = True,
    times: NDArray[np.int64] | None = None,
    release: Release | None = None,
    byte_of_slot: Callable[[int], int] | None = None,
    decoder_of: Callable[[SlotSource, Catalogue], Decoder] = Decoder,
) -> Trace:
    """Build a trace from its slots.

    Args:
        path: The file, for titles and errors.
        format_name: `kev`, `traceprinter`, ...
        header: The header; its keys determine release and clock rate.
        system_page: Image of the system page in the target's byte order; may be empty.
        slots: (n, 4) words, or a source to read them from.
        byte_order: Byte order of the target.
        problems: Receives problems; becomes part of the trace.
        offset: Byte offset of the first slot in the file.
        progress: Called with the share that is done, 0 to 1, between chunks.
        cancelled: Called between chunks; True stops.
        has_whole_buffers: False for listings with lines cut out, whose buffers cannot have their announced length.
        times: (n,) full time of every slot, if the source contains it; None = rebuild times from the stamps.
        release: Release whose tables apply, if known; None = from header and system page.
        byte_of_slot: Returns the file offset of a slot, if the slots are not contiguous from `offset` on.
        decoder_of: Returns the decoder; for a growing file, a decoder that has already decoded older slots.

    Raises:
        Cancelled: `cancelled()` returned True.
        SourceChangedError: The file was truncated or overwritten while its slots were read.
    """
    slots = source_of(slots)
    system, doubts = parse_syspage(system_page, byte_order)
    for doubt in doubts:
        problems.add("syspage", doubt, header.length)
    release = choose_release(header, system, problems) if release is None else release
    names = listed_catalogue(release) if format_name == LISTING else catalogue(release)
    region = EventRegion(offset, len(slots), byte_of_slot)
    rate = choose_rate(header, system, problems)
    with timed("decode"):
        decoder = decoder_of(slots, names)
        surroundings = clock_surroundings(header, system, release)
        decoder.inform(surroundings)
        decoded = decoder.run(progress, cancelled)
        if times is not None:
            decoded.time[:] = times[decoded.slot]
            decoded.clock.has_time = True
        verdicts, count = _settle_times(decoded, surroundings, times is None, region, problems)
    has_whole_buffers &= header.get(FROM_LISTING[0]) != FROM_LISTING[1]
    gaps = cut_buffers(decoded, count, region, per_cpu=release == Release.QNX_8) if has_whole_buffers else no_gaps()
    with timed("repair and sort"):
        _report_pass(decoded, verdicts, region, names, problems)
        # The order matters: corrected times decide which rows move, moves decide which events have equal times and may
        # be contested (section 3.3), and only the events that are complete then can be sorted once and for all.
        positions = repair.disordered_rows(decoded.time)
        moves = repair.time_order(decoded.time, decoded.cpu, positions)
        repair.split_contested(decoded, slots, moves)
        fragments, unfinished = repair.repair(decoded, region, problems, ascends=not len(positions))
        # After `repair`, because tails are matched by the original stamps.
        if times is None and _move_between_neighbours(decoded, positions, region, problems):
            moves = repair.time_order(decoded.time, decoded.cpu, repair.disordered_rows(decoded.time))
        if moves is not None:
            went = repair.sort(decoded, moves)
            fragments, unfinished = repair.renumber(fragments, went), np.sort(went[unfinished]).astype(np.int64)
    named_by = EventTable(decoded.time, decoded.code, decoded.cpu, decoded.thread, decoded.slot, decoded.slots)
    events = named_by.before(count)
    payloads_of_names = SlotPayloads(slots, named_by, fragments, byte_order, names)
    payloads_of_names.check()
    buffers = _buffers(decoded, unfinished, events, release, region, problems, has_whole_buffers)
    with timed("counts"):
        tables = Begun(partial(_tables, decoded, named_by, payloads_of_names, buffers, count), "satview-tables")
        if has_whole_buffers:  # in a listing with lines cut out, events are missing everywhere
            gaps = np.concatenate((gaps, open_interrupts(events, gaps, region, problems)))
        dumped, threads, processes, states = tables.result()
    fragments, unfinished = fragments.before(count), unfinished[unfinished < count]
    payloads = SlotPayloads(slots, events, fragments, byte_order, names)
    # Only a ring has slots from after the capture; all its buffers except the last have a count of 0 (5.5, 6.1).
    if repair.is_ring(surroundings, decoded.code[decoded.rare_rows], decoded.rare_words):
        report_ring_tail(events, rate, region, problems)
    start = int(events.time_cycles[0]) if len(events) else 0
    cpus = count_cpus(events, _declared_cpus(header, system, problems))
    _report_skew(cpus, system, release, problems)
    return Trace(
        Path(path),
        format_name,
        header,
        system,
        release,
        byte_order,
        Clock(rate, start, system.boot_time_s if system else None, decoded.clock.has_time),
        cpus,
        len(slots),
        events,
        threads,
        processes,
        states,
        buffers,
        payloads,
        problems,
        names,
        dumped,
        fragments,
        unfinished.astype(np.uint32),
        gaps=gaps,
    )


def _tables(
    decoded: Decoded, named_by: EventTable, payloads: SlotPayloads, buffers: BufferTable, count: int
) -> tuple[int, ThreadTable, ProcessTable, StateIndex]:
    """Return the end of the opening state dump, cycles, the tables of threads and processes, and the index of states.

    `named_by` and `payloads` include the names appended after the `count` events of the capture.
    """
    rare, words, events = decoded.rare_rows, decoded.rare_words, named_by.before(count)
    is_process = decoded.code[rare] >> wire.CLASS_SHIFT == wire.WireClass.PR_TH
    first_loss = buffers.time_cycles[buffers.lost_before > 0].min(initial=np.iinfo(np.int64).max)
    dumped = dump_end(events, _activity(), int(first_loss))
    threads, processes = thread_and_process_tables(
        named_by, payloads, rare[is_process], words[is_process], decoded.keys, dumped, count
    )
    rows = decoded.state_rows if count == len(named_by) else decoded.state_rows[decoded.state_rows < count]
    return dumped, threads, processes, StateIndex(*repair.group_rows(rows, events.thread, len(threads)))


def _settle_times(
    decoded: Decoded, surroundings: Surroundings, is_rebuilt: bool, region: EventRegion, problems: Problems
) -> tuple[ClockVerdicts, int]:
    """Correct the times of events; return the clock verdicts, and the number of events that belong to the capture.

    The events after these are the names appended to a ring capture, last in the file and in time. `is_rebuilt` = times
    were rebuilt from stamps and TIME events, not given by the source.
    """
    time, count = decoded.time, len(decoded.time)
    tail_row, clock = None, decoded.clock if is_rebuilt else None
    if repair.is_ring(surroundings, decoded.code[decoded.rare_rows], decoded.rare_words):
        begin = max(0, count - repair.MOST_EVENTS)
        last = repair.LastEvents(begin, time[begin:], decoded.cpu[begin:], decoded.code[begin:], decoded.thread[begin:])
        tail_row = repair.first_of_tail(last, surroundings.cycles_per_s, clock)
    if tail_row is not None:
        verdicts = ClockVerdicts()
        if clock is not None:
            verdicts = repair.verdicts_without_tail(clock, time[:tail_row], decoded.cpu[:tail_row], tail_row)
        corrected = time[:tail_row].copy()
        correct(verdicts.corrections, corrected, decoded.cpu[:tail_row], decoded.code[:tail_row])
        if int(time[tail_row:].min()) - int(corrected.max()) > surroundings.cycles_per_s:
            time[:tail_row] = corrected
            repair.report_names(decoded, tail_row, surroundings.cycles_per_s, region, problems)
            return verdicts, tail_row
    verdicts = clock.verdicts() if clock is not None else ClockVerdicts()
    correct(verdicts.corrections, time, decoded.cpu, decoded.code)
    return verdicts, count


def _has_common_clock(system: SystemInfo | None, release: Release) -> bool:
    # 6.x kernels subtract the difference (format description, 5.1).
    flags = system.values.get("qtime.flags") if system else None
    return flags is None or bool(flags & GLOBAL_CLOCK) or release == Release.QNX_6


def _declared_cpus(header: Header, system: SystemInfo | None, problems: Problems) -> int:
    """Return the number of CPUs according to header and system page, 0 to 64; report an impossible number."""
    declared, in_page = header.get("CPU_NUM"), len(system.cpus) if system else 0
    cpus = header.number("CPU_NUM")
    if declared and (cpus is None or not 1 <= cpus <= _CPUS_MAX):
        problems.add(
            "header", f"TRACE_CPU_NUM is {declared[:20]!r}, not 1 to {_CPUS_MAX}: system page and events count", 0
        )
        cpus = 0
    return min(_CPUS_MAX, max(cpus or 0, in_page))


def _report_skew(cpus: int, system: SystemInfo | None, release: Release, problems: Problems) -> None:
    """Report a problem if several CPUs may have different clocks, so that their times may not be comparable."""
    if cpus > 1 and not _has_common_clock(system, release):
        problems.add("clock-skew", "the system page does not set the flag of a common clock")


def _activity() -> NDArray[np.bool_]:
    """Return which event codes are activity, and so never in the opening state dump, bool (32768,)."""
    codes = np.arange(wire.CODE_COUNT)
    kind = codes >> wire.CLASS_SHIFT
    # System events may be in the dump: names of partitions, the frequency of each CPU (section 8.8).
    in_dump = (kind == wire.WireClass.CONTROL) | (kind == wire.WireClass.PR_TH) | (kind == wire.WireClass.SYSTEM)
    destroyed = np.isin(codes, (wire.PROC_DESTROY, wire.PROC_DESTROY_NAME, wire.THREAD_DESTROY))
    return np.asarray(~in_dump | destroyed)


def _report_pass(
    decoded: Decoded, verdicts: ClockVerdicts, region: EventRegion, names: Catalogue, problems: Problems
) -> None:
    """Report problems that the decoder found: zero slots, unknown events, clock discontinuities."""
    for first_slot, count in decoded.empty:
        problems.add("empty-slots", f"{count} slot{'s' * (count > 1)} of zeros", region.byte(first_slot), count)
    for code, (row, count) in sorted(decoded.unknown.items()):
        problems.add(
            "unknown-events",
            f"class {wire.class_of(code)} event {wire.event_of(code)} is in no table of {names.release}",
            region.byte(int(decoded.slot[row])),
            count,
            int(decoded.time[row]),
        )
    clock = decoded.clock
    if decoded.count and not clock.has_time:
        problems.add("clock-unknown", "no TIME event: times count from the first event")
    impossible = [(row, int(decoded.cpu[row]), 0) for row in clock.ignored]
    for slug, entries, text in (
        ("clock-step", verdicts.steps, "CPU {} went back by {} cycles"),
        ("clock-seed", verdicts.reseeded, "the first TIME of CPU {} is {} cycles from where it was placed"),
        ("clock-unproven", verdicts.unproven, "a TIME event of CPU {} is {} rollovers after the events before it"),
        ("clock-damaged", verdicts.damaged, "a TIME event of CPU {} is {} rollovers off its neighbours, and ignored"),
        ("clock-doubt", verdicts.doubtful, "events of CPU {} from here on may be off by up to {} rollovers"),
        ("clock-damaged", impossible, "a TIME event of CPU {} holds an impossible value and was ignored"),
    ):
        for row, cpu, amount in sorted(entries)[: repair.MANY]:
            problems.add(slug, text.format(cpu, amount), region.byte(int(decoded.slot[row])), 1, int(decoded.time[row]))
        if len(entries) > repair.MANY:
            problems.add(slug, "and more of the same", None, len(entries) - repair.MANY)


def _move_between_neighbours(
    decoded: Decoded, disordered: NDArray[np.int64], region: EventRegion, problems: Problems
) -> bool:
    """Move events with damaged stamps to times between their neighbours and report them; return whether any exist."""
    rows, cycles = misplaced(decoded.time, decoded.cpu, disordered)
    if not len(rows):
        return False
    decoded.time[rows] -= cycles
    for row, off in zip(rows[: repair.MANY].tolist(), cycles[: repair.MANY].tolist(), strict=True):
        problems.add(
            "clock-damaged",
            f"the stamp of an event is {off} cycles off those around it; it shows between them",
            region.byte(int(decoded.slot[row])),
            1,
            int(decoded.time[row]),
        )
    if len(rows) > repair.MANY:
        problems.add("clock-damaged", "and more of the same", None, len(rows) - repair.MANY)
    return True


def _buffers(
    decoded: Decoded,
    unfinished: NDArray[np.int64],
    events: EventTable,
    release: Release,
    region: EventRegion,
    problems: Problems,
    has_whole_buffers: bool,
) -> BufferTable:
    rare = decoded.rare_rows
    is_control = (decoded.code[rare] >> wire.CLASS_SHIFT == wire.WireClass.CONTROL) & (rare < len(events))
    # The words of a BUFFER or DROPPED event whose last slots are missing mean nothing.
    is_control &= ~combine.contains(np.sort(unfinished), rare)
    control, words = rare[is_control], decoded.rare_words[is_control]
    code, slot, time = events.code[control], events.slot[control], events.time_cycles[control]
    report_control_events(code, words, slot, time, region, problems)
    is_buffer = code == wire.CONTROL_BUFFER
    buffers = buffer_table(control[is_buffer], words[is_buffer], events, release)
    if has_whole_buffers:
        report_buffers(buffers, region, release, problems)
    return buffers


_DUMP_EVENTS = 1 << 17  # upper limit for the length of a state dump
_NAMED = (wire.PROC_CREATE_NAME, wire.PROC_DESTROY_NAME)
_CREATED = (wire.PROC_CREATE, wire.PROC_CREATE_NAME)
_DESTROYED = (wire.PROC_DESTROY, wire.PROC_DESTROY_NAME)


@dataclass(slots=True)
class _Process:
    parent_pid: int = -1
    name: str = ""
    created_cycles: int = -1
    destroyed_cycles: int = -1
    has_history: bool = False


def _name(payloads: SlotPayloads, row: int) -> str:
    return payloads.raw(row)[8:].split(b"\0", 1)[0].decode("utf-8", "replace")


def thread_and_process_tables(
    events: EventTable,
    payloads: SlotPayloads,
    process_rows: NDArray[np.int64],
    process_words: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    dump_end_cycles: int,
    count: int,
) -> tuple[ThreadTable, ProcessTable]:
    """Build the tables of threads and processes.

    Args:
        events: All events in time order.
        payloads: Payloads of the events.
        process_rows: Rows of the PROCESS events, ascending.
        process_words: (len(process_rows), 2): first two payload words of each.
        keys: (pid, tid) per thread row as two payload words; row 0 is the unknown thread.
        dump_end_cycles: End of the opening state dump; a process created up to here is older than the trace.
        count: Number of events of the capture; later events only name what existed at its end.
    """
    pids = keys.view(np.uint32).reshape(-1, 2)[:, 0].astype(np.int32)
    tids = keys.view(np.uint32).reshape(-1, 2)[:, 1].astype(np.int32)
    # Row 0 means "not known" in all tables.
    pids[0], tids[0] = -1, -1
    processes: dict[int, _Process] = {}
    thread_names: dict[tuple[int, int], int] = {}  # (pid, tid) to the row of the last event that names it
    firsts, seconds = (column.astype(np.int32).tolist() for column in process_words.T)
    codes, times = events.code[process_rows].tolist(), events.time_cycles[process_rows].tolist()
    for row, first_word, second_word, code, time in zip(
        process_rows.tolist(), firsts, seconds, codes, times, strict=True
    ):
        if code == wire.PROC_THREAD_NAME:
            thread_names[first_word, second_word] = row
            continue
        # Word 0 is the parent, word 1 the process (section 8.5).
        process = processes.setdefault(second_word, _Process())
        if row >= count:
            if process.destroyed_cycles == -1:  # else the pid may belong to another process now
                process.name = _name(payloads, row) if code in _NAMED else process.name
                process.parent_pid = first_word
            continue
        if code in _NAMED and (name := _name(payloads, row)):
            process.name = name
        if code in _CREATED:
            process.parent_pid = first_word
            # START reports processes that exist, so the same pid may be "created" again (section 8.5): only a creation
            # after the dump, of a pid not seen before, is real.
            if time > dump_end_cycles and not process.has_history:
                process.created_cycles = time
            process.destroyed_cycles = -1
        elif code in _DESTROYED:
            process.destroyed_cycles = time
        process.has_history = True
    all_pids = np.unique(
        np.concatenate((pids[1:], np.array(sorted({*processes, *(p for p, _ in thread_names)}), np.int32)))
    )
    table = [processes.get(int(pid), _Process()) for pid in all_pids]
    process_table = ProcessTable(
        np.concatenate((np.array([-1], np.int32), all_pids.astype(np.int32))),
        np.array([-1, *(_in_range(p.parent_pid) for p in table)], np.int32),
        ("", *(p.name for p in table)),
        np.array([-1, *(p.created_cycles for p in table)], np.int64),
        np.array([-1, *(p.destroyed_cycles for p in table)], np.int64),
    )
    process_of = (np.searchsorted(all_pids, pids) + 1).astype(np.int32)
    process_of[0] = 0
    names = [""] * len(pids)
    if thread_names:
        rows = {key: row for row, key in enumerate(zip(pids.tolist(), tids.tolist(), strict=True))}
        for key, named_at in thread_names.items():
            if key in rows:
                names[rows[key]] = _name(payloads, named_at)
    return ThreadTable(pids, tids, process_of, tuple(names)), process_table


def _in_range(pid: int) -> int:
    return pid if -(1 << 31) <= pid < 1 << 31 else -1


def dump_end(events: EventTable, code_is_activity: NDArray[np.bool_], first_loss_cycles: int) -> int:
    """Return the end of the opening state dump: the time of its last event, after which real activity begins.

    On the CPU that called START, the trace begins with creation, name and one state of every existing process and
    thread. So the dump ends before this CPU's first event of another kind (a kernel call, an interrupt, a message), or
    before the second state of a thread. Other CPUs may be active meanwhile. If a state comes before the first creation,
    there is no dump: the trace begins later. Source: kernel event trace format 8.5, capture 4.4.

    Args:
        events: Events in time order.
        code_is_activity: (32768,), codes that no dump contains.
        first_loss_cycles: Time of the first loss; the dump does not continue after it.

    Returns:
        Cycles; one before the first event if there is no dump.
    """
    # After a gap, the dump of a restarted capture may follow; it is not part of the opening dump.
    count = min(_DUMP_EVENTS, int(np.searchsorted(events.time_cycles, first_loss_cycles)))
    code, creations = events.code[:count], (wire.PROC_CREATE, wire.PROC_CREATE_NAME, wire.THREAD_CREATE)
    if not len(code):
        return int(events.time_cycles[0]) - 1 if len(events) else 0
    first_creation = int(np.argmax(np.isin(code, creations)))
    before = code[:first_creation]
    if int(code[first_creation]) not in creations or code_is_activity[before].any() or _is_state(before).any():
        return int(events.time_cycles[0]) - 1
    rows_of_cpu = np.flatnonzero(events.cpu[: len(code)] == events.cpu[first_creation])
    active = code_is_activity[code[rows_of_cpu]]
    end = int(np.argmax(active)) if active.any() else len(rows_of_cpu)
    dumped = code[rows_of_cpu[:end]]
    states = np.flatnonzero(_is_state(dumped))
    again = _first_repetition(events.thread[rows_of_cpu[states]])
    last = rows_of_cpu[int(states[again]) - 1] if again is not None else rows_of_cpu[end - 1]
    return int(events.time_cycles[last])


def _is_state(code: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return which codes are states or ends of threads, not creations; bool, shaped like `code`."""
    is_thread = wire.are_of_threads(code)
    return np.asarray(is_thread & (code != wire.THREAD_CREATE))


def _first_repetition(values: NDArray[np.unsignedinteger]) -> int | None:
    """Return the first position, usually small, with a value that occurred before it; None if there is none."""
    size = 256
    while True:
        part = values[:size]
        _, first_positions = np.unique(part, return_index=True)
        if len(first_positions) < len(part):
            is_first = np.zeros(len(part), np.bool_)
            is_first[first_positions] = True
            return int(np.argmin(is_first))
        if size >= len(values):
            return None
        size *= 2

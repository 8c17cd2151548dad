"""Links on traces small enough to work out by hand; tables, growth, memory."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pytest

from satview.events import wire
from satview.events.spec import Release
from satview.events.states import STEP_OF_CODE
from satview.formats.kev.payloads import WordsAhead
from satview.formats.kev.reader import open_kev
from satview.formats.kev.sampling import GrowingFile
from satview.formats.registry import open_trace
from satview.linkage import calls
from satview.linkage.blockers import blockers
from satview.linkage.calls import are_made, ends_of_interrupts, exits_of, partner, partners
from satview.linkage.chain import link_of, link_table, links, reading_ahead
from satview.linkage.latencies import latencies
from satview.linkage.links import NO_EVENT, OPEN, Certainty, Link, LinkKind, LinkTable
from satview.linkage.transactions import transactions
from satview.linkage.waits import state_ends
from satview.session.event_text import event_details
from satview.store.time_ranges import losses
from tests.capture.made import FAST, WIDE, damaged, traced
from tests.capture.mishaps import DURATION_MS, setup
from tests.helpers.kev import START, TraceBuilder
from tests.helpers.thread_trace import write_set

SEND, RECEIVE, INFO = 11, 14, 19
INTERRUPTED = 256
ENTRY, EXIT, HANDLER, HANDLER_EXIT = (wire.code(3, n) for n in (1, 2, 3, 4))


def opened(builder, folder):
    """Return the trace, and a function from the time of an event to the time of its partner."""
    trace = builder.open(folder)
    row_at = {int(time) - START: row for row, time in enumerate(trace.events.time_cycles)}
    time_of = {row: time for time, row in row_at.items()} | {None: None}
    return trace, lambda time: time_of[partner(trace, row_at[time])]


class TestCalls:
    def test_a_call_that_a_signal_interrupts_ends_in_its_interrupted_form(self, tmp_path):
        builder = TraceBuilder().time_event(0).state("RUNNING", 1, 5, 1).call(RECEIVE, 10)
        _, other = opened(builder.call(RECEIVE + INTERRUPTED, 20).exit(RECEIVE, 30), tmp_path)
        assert [other(time) for time in (10, 20, 30)] == [20, 10, None]

    def test_unknown_threads_are_linked_in_calls_that_never_block(self, tmp_path):
        builder = TraceBuilder().time_event(0).call(INFO, 10).exit(INFO, 20).call(SEND, 30).exit(SEND, 40)
        trace, other = opened(builder.call(INFO, 50).call(SEND, 60).exit(INFO, 70), tmp_path)
        assert [other(time) for time in (10, 20)] == [20, 10]
        assert [other(time) for time in (30, 40)] == [None, None], "the one that came back may have sent before"
        assert [other(time) for time in (50, 60, 70)] == [None, None, None]
        assert list(link_table(trace, LinkKind.CALL)) == [Link(LinkKind.CALL, 1, 2, Certainty.INFERRED)]

    def test_the_exits_of_some_calls_need_no_column_of_all_events(self, tmp_path):
        builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 1, 5, 1).state("RUNNING", 2, 6, 1, cpu=1)
        builder.call(INFO, 10).call(RECEIVE, 11, cpu=1).exit(RECEIVE, 20, cpu=1).exit(INFO, 21).call(SEND, 30)
        trace = builder.call(INFO, 31, cpu=1).exit(INFO, 40, cpu=1).open(tmp_path)
        entries = np.flatnonzero(np.isin(trace.events.time_cycles - START, (10, 11, 30, 31))).astype(np.uint32)
        ends = exits_of(trace, entries)
        assert not are_made(trace)
        assert ends[2] == NO_EVENT, "the trace ends before the call of time 30"
        assert (trace.events.time_cycles[ends[[0, 1, 3]]] - START).tolist() == [21, 20, 40]
        assert not len(exits_of(trace, entries[:0]))
        assert partners(trace)[entries].tolist() == ends.tolist()

    def test_the_details_say_so(self, tmp_path):
        trace, _ = opened(TraceBuilder().time_event(0).call(INFO, 10).exit(INFO, 25), tmp_path)
        text = event_details(trace, 1, link_of(trace, 1)).as_text()
        assert "event 3: MSG_INFO  (next on this CPU; the calling thread is not known)" in text
        assert "15 cycles" in text

    def test_other_cpus_do_not_matter_to_unknown_threads(self, tmp_path):
        builder = TraceBuilder(cpus=2).time_event(0).call(INFO, 10).call(INFO, 11, cpu=1)
        _, other = opened(builder.exit(INFO, 20, cpu=1).exit(INFO, 21), tmp_path)
        assert [other(time) for time in (10, 11)] == [21, 20]

    def test_an_unknown_thread_in_the_same_call_makes_a_known_one_unsure(self, tmp_path):
        builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 1, 5, 1).call(INFO, 10).call(INFO, 11, cpu=1)
        _, other = opened(builder.exit(INFO, 20).call(INFO, 30).exit(INFO, 40), tmp_path)
        assert [other(time) for time in (10, 30)] == [None, 40]

    def test_a_thread_that_begins_to_run_is_another_caller(self, tmp_path):
        """Buffers out of order: nothing is missing, but who runs is not known where the file goes on."""
        builder = TraceBuilder()
        for number, time in ((1, 0), (3, 2000), (2, 1000), (4, 3000)):
            builder.event(wire.CONTROL_BUFFER, time, (number, 0)).time_event(time)
            if number == 1:
                builder.call(INFO, 100)
            elif number == 2:
                builder.state("RUNNING", 1100, 5, 1)
            elif number == 3:
                builder.exit(INFO, 2100).call(INFO, 2200).exit(INFO, 2300)
        trace, other = opened(builder, tmp_path)
        assert not len(losses(trace))
        assert not trace.events.thread[trace.events.code >> 10 == 2].any()
        assert [other(time) for time in (100, 2100, 2200)] == [None, None, 2300]

    def test_a_lost_buffer_parts_unknown_threads(self, tmp_path):
        builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).call(INFO, 10)
        builder.event(wire.CONTROL_BUFFER, 500, (3, 0)).time_event(500).exit(INFO, 510)
        _, other = opened(builder.call(INFO, 520).exit(INFO, 530), tmp_path)
        assert [other(time) for time in (10, 510, 520)] == [None, None, 530]


class TestInterrupts:
    def test_handlers_are_within_their_interrupt(self, tmp_path):
        """The first handler's exit is missing, the second one's entry."""
        builder = TraceBuilder().time_event(0).event(ENTRY, 10).event(HANDLER, 11).event(EXIT, 20)
        builder.event(ENTRY, 30).event(HANDLER_EXIT, 31).event(HANDLER, 32).event(HANDLER_EXIT, 33).event(EXIT, 40)
        trace, other = opened(builder, tmp_path)
        assert [other(time) for time in (10, 11, 30, 31, 32)] == [20, None, 40, None, 33]
        dispatched = link_table(trace, LinkKind.DISPATCH)
        assert [(link.from_row, link.to_row) for link in dispatched] == [(1, 2)]

    def test_entries_of_both_widths_and_nested_ones(self, tmp_path):
        builder = TraceBuilder().time_event(0).event(wire.code(3, 5), 10, (1, 0, 0, 0)).event(ENTRY, 20)
        trace, other = opened(builder.event(EXIT, 30).event(EXIT, 40), tmp_path)
        assert [other(time) for time in (10, 20)] == [40, 30]
        assert link_table(trace, LinkKind.INTERRUPT).cycles(trace.events.time_cycles).tolist() == [30, 10]

    def test_the_ends_of_some_interrupts_need_no_column_of_all_events(self, tmp_path):
        builder = TraceBuilder().time_event(0).event(ENTRY, 10).event(ENTRY, 20).event(EXIT, 30).event(EXIT, 40)
        trace = builder.event(ENTRY, 50).open(tmp_path)
        assert ends_of_interrupts(trace, np.array([1, 2, 5], np.uint32)).tolist() == [4, 3, NO_EVENT]
        assert ends_of_interrupts(trace, np.array([2], np.uint32)).tolist() == [3]
        assert not are_made(trace)


class TestStates:
    def test_each_state_ends_with_the_next_or_not_at_all(self, tmp_path):
        builder = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).state("RECEIVE", 20, 5, 1)
        trace, _ = opened(builder.state("RUNNING", 21, 6, 1).event(wire.code(6, 1), 50), tmp_path)
        assert state_ends(trace)[1:4].tolist() == [2, OPEN, OPEN]
        assert link_table(trace, LinkKind.STATE).cycles(trace.events.time_cycles).tolist() == [10, -1, -1]
        assert "event 3: THRECEIVE" in event_details(trace, 1, link_of(trace, 1)).as_text()
        assert "the end of the trace" in event_details(trace, 2, link_of(trace, 2)).as_text()

    def test_a_state_across_a_loss_is_not_linked(self, tmp_path):
        builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RECEIVE", 10, 5, 1)
        builder.event(wire.CONTROL_BUFFER, 500, (3, 0)).time_event(500).state("READY", 510, 5, 1)
        trace, _ = opened(builder.event(wire.code(6, 1), 600), tmp_path)
        assert [(link.from_row, link.to_row) for link in link_table(trace, LinkKind.STATE)] == [(5, OPEN)]
        assert link_of(trace, 2) is None


class TestTable:
    TABLE = LinkTable(LinkKind.DISPATCH, *(np.array(column, dtype) for column, dtype in (
        ([2, 5, 9, 40], np.uint32), ([8, 7, OPEN, 41], np.uint32), ([3, 2, 3, 3], np.uint8))))  # fmt: skip

    def test_links_are_found_from_both_ends(self):
        rows = np.array([5, 2, 3, 40, 41, 8, 7, 100])
        assert self.TABLE.begun_by(rows).tolist() == [1, 0, -1, 3, -1, -1, -1, -1]
        assert self.TABLE.ended_by(rows).tolist() == [-1, -1, -1, -1, 3, 0, 1, -1]
        assert self.TABLE.ends_of(np.array([9, 40, 41])).tolist() == [OPEN, 41, 2**32 - 1]
        assert self.TABLE[1] == Link(LinkKind.DISPATCH, 5, 7, Certainty.INFERRED)

    def test_an_empty_table_finds_nothing(self):
        none = np.empty(0, np.uint32)
        table = LinkTable(LinkKind.CALL, none, none, np.empty(0, np.uint8))
        assert table.begun_by(np.array([3])).tolist() == table.ended_by(np.array([3])).tolist() == [-1]
        assert not list(table)

    def test_columns_that_do_not_fit_are_refused(self):
        three, two = np.arange(3, dtype=np.uint32), np.arange(2, dtype=np.uint32)
        with pytest.raises(ValueError, match="length"):
            LinkTable(LinkKind.CALL, three, two, np.zeros(3, np.uint8))
        with pytest.raises(ValueError, match="ascend"):
            LinkTable(LinkKind.CALL, three[::-1], three, np.zeros(3, np.uint8))

    def test_columns_cannot_be_changed(self, tmp_path):
        trace, _ = opened(TraceBuilder().time_event(0).call(INFO, 10).exit(INFO, 20), tmp_path)
        tables = STEP_OF_CODE, calls._SWITCHES
        for column in (partners(trace), state_ends(trace), link_table(trace, LinkKind.CALL).to_row, *tables):
            with pytest.raises(ValueError, match="read-only"):
                column[:] = 0


def test_scripts_find_every_table_by_its_name(tmp_path):
    trace = TraceBuilder().time_event(0).state("RUNNING", 1, 5, 1).call(INFO, 10).exit(INFO, 20).open(tmp_path)
    found = links(trace)
    for kind in LinkKind:
        name = {LinkKind.REPLY: "replies", LinkKind.DELIVERY: "deliveries", LinkKind.DISPATCH: "dispatches",
                LinkKind.WAKE_UP: "wake_ups", LinkKind.ROUND_TRIP: "round_trips"}.get(kind, f"{kind}s")  # fmt: skip
        assert getattr(found, name) is found.of(kind) is link_table(trace, kind)
        assert found.of(kind).kind is kind
    assert found.blockers is blockers(trace)
    assert found.transactions is transactions(trace)
    assert found.latencies is latencies(trace)


def test_a_format_that_pairs_its_records_has_calls_and_states_alone(tmp_path):
    """Of thread_trace: a call of t1 from 0 to 40, in which it waits; no messages, pulses or interrupts."""
    text = "  0 lwp1 t1 thr_create 1 0 0 4096 0 0\n 10 lwp1 t1 thr_create 2 0 2\n 20 lwp1 t1 mutex_lock 1 65552\n"
    write_set(tmp_path, text + " 40 lwp1 t1 mutex_lock 2 0 0\n")
    trace = open_trace(tmp_path)
    assert trace.pairs is not None
    calls = link_table(trace, LinkKind.CALL)
    for kind in LinkKind:
        assert kind in (LinkKind.CALL, LinkKind.STATE) or not len(link_table(trace, kind)), kind
    assert len(transactions(trace)) == len(latencies(trace)) == len(blockers(trace)) == 0
    assert len(calls) == 2
    ends = dict(zip(calls.from_row.tolist(), calls.to_row.tolist(), strict=True))
    starts = {last: first for first, last in ends.items()}
    for row in range(len(trace.events)):
        link, end = link_of(trace, row), int(state_ends(trace)[row])
        if row in ends or row in starts:
            begin = starts.get(row, row)
            assert link == Link(LinkKind.CALL, begin, ends[begin], Certainty.EXACT)
        else:
            assert link == (None if end == 2**32 - 1 else Link(LinkKind.STATE, row, end, Certainty.EXACT))


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["6.x", "8.0"])
def test_a_followed_file_has_the_links_of_the_whole_one_at_every_step(release, tmp_path):
    whole = damaged(setup, 40, tmp_path, Release(release), 1, ring=False, wide=False).trace
    data = whole.path.read_bytes()
    start = len(data) - whole.slot_count * 16
    path, part = tmp_path / "grows.kev", tmp_path / "part.kev"
    file, counts = GrowingFile(path), []
    for slots in np.linspace(whole.slot_count // 10, whole.slot_count, 8, dtype=int).tolist():
        for name in (path, part):
            name.write_bytes(data[: start + slots * 16])
        grown, batch = file.read(), open_kev(part)
        assert partners(grown).tolist() == partners(batch).tolist()
        assert state_ends(grown).tolist() == state_ends(batch).tolist()
        for kind in LinkKind:
            mine, theirs = link_table(grown, kind), link_table(batch, kind)
            assert list(mine) == list(theirs)
        counts.append(len(link_table(grown, LinkKind.CALL)))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize("modes", [FAST, WIDE], ids=["fast", "wide"])
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_8], ids=str)
def test_words_that_several_links_need_are_read_at_once(release, modes, tmp_path, monkeypatch):
    trace, not_read, asked, real = (
        traced(setup, DURATION_MS, tmp_path, release, 1, 5, modes).trace,
        [],
        [],
        WordsAhead.halves,
    )

    def halves(self, rows, step):
        found = real(self, rows, step)
        asked.append(len(rows))
        if found is None:
            not_read.extend(trace.catalogue.name(int(code)) for code in np.unique(trace.events.code[rows]))
        return found

    monkeypatch.setattr(WordsAhead, "halves", halves)
    with reading_ahead(trace):
        for kind in LinkKind:
            link_table(trace, kind)
        assert len(blockers(trace))
    assert len(asked) > 5
    once = re.compile("MSG_|SND_|REC_|REPLY_|SIGNAL|INTENTER|INTR_|CONNECT_|THREAD_|CHANNEL_|TIMER_")
    assert [name for name in not_read if not once.match(name)] == []


def test_a_closed_trace_is_gone_at_once(tmp_path):
    trace = TraceBuilder().time_event(0).state("RUNNING", 1, 5, 1).call(INFO, 10).exit(INFO, 20).open(tmp_path)
    for kind in LinkKind:
        assert link_table(trace, kind) is link_table(trace, kind), "made once"
    borrowed = weakref.ref(trace)
    gc.collect()
    gc.disable()
    try:
        del trace
        assert borrowed() is None
    finally:
        gc.enable()


class TestRepliesByNumber:
    """Captures without events of threads: who sends is not known, and the rcvid of MsgReply() picks the message."""

    SENT, RECEIVED, REPLIED = (wire.code(7, event) for event in (0, 2, 10))
    REPLY = 15

    def scene(self, *steps):
        builder = TraceBuilder().time_event(0)
        for time, what, rcvid, pid in steps:
            if what == "reply":
                builder.call(self.REPLY, time, (rcvid, 0)).event(self.REPLIED, time + 1, (1, pid))
                builder.exit(self.REPLY, time + 2)
            else:
                builder.event(self.SENT if what == "send" else self.RECEIVED, time, (rcvid, pid))
        return builder

    @pytest.mark.parametrize(("steps", "replied"), [
        ([(10, "send", 5, 8), (20, "receive", 5, 8), (30, "reply", 5, 9)], {10: 31}),
        ([(10, "send", 5, 8), (20, "receive", 5, 8), (30, "reply", 6, 9)], {10: None}),
        ([(10, "send", 5, 8), (20, "receive", 5, 8), (30, "reply", 5, 9), (40, "send", 5, 8), (50, "receive", 5, 8),
          (60, "reply", 5, 9)], {10: 31, 40: 61}),
        # Two servers have a message 5 open: it may be either.
        ([(10, "send", 5, 8), (12, "send", 5, 7), (20, "receive", 5, 8), (22, "receive", 5, 7), (30, "reply", 5, 9)],
         {10: None, 12: None}),
        ([(10, "send", 5, 8), (12, "send", 6, 8), (20, "receive", 5, 8), (22, "receive", 6, 8), (30, "reply", 6, 9),
          (40, "reply", 5, 9)], {10: 41, 12: 31}),
    ])  # fmt: skip
    def test_the_one_open_message_is_answered(self, steps, replied, tmp_path):
        trace = self.scene(*steps).open(tmp_path)
        times = trace.events.time_cycles - START
        found = transactions(trace)
        assert {int(times[sent]): int(times[row]) if row >= 0 else None
                for sent, row in zip(found.send_row, found.reply_row, strict=True)} == replied  # fmt: skip
        known = found.reply_row >= 0
        assert (found.certainty[known] == Certainty.INFERRED).all()
        assert (found.client == -1).all()
        assert (found.client_pid == np.where(known, 9, -1)).all(), "the reply names it"
        assert np.array_equal(np.sort(link_table(trace, LinkKind.REPLY).to_row), np.sort(found.reply_row[known]))

    def test_of_two_open_messages_the_one_of_the_replying_process_is_answered(self, tmp_path):
        """Both servers have a message 5 open. Only 7 replies, so that of 8 may be answered later or not at all."""
        builder = TraceBuilder(cpus=3).time_event(0).state("RUNNING", 1, 8, 1, 0).state("RUNNING", 2, 7, 1, 1)
        for cpu, pid in ((1, 7), (0, 8)):  # the last received is not the one that is answered
            builder.event(self.SENT, pid, (5, pid), 2).event(self.RECEIVED, 10 + pid, (5, pid), cpu)
        builder.call(self.REPLY, 30, (5, 0), 1).event(self.REPLIED, 31, (1, 9), 1).exit(self.REPLY, 32, (0, 0), 1)
        trace = builder.open(tmp_path)
        found = transactions(trace)
        assert (found.server_pid.tolist(), found.client_pid.tolist()) == ([7, 8], [9, -1])
        assert [int(trace.events.time_cycles[row]) - START if row >= 0 else None for row in found.reply_row] == [
            31,
            None,
        ]

    def test_a_message_after_one_whose_reply_is_not_seen_is_answered_too(self, tmp_path):
        """A process has one message 5 open at a time: the receipt of the second shows that the first is answered."""
        builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 1, 8, 1, 0)
        for time in (10, 50):
            builder.event(self.SENT, time, (5, 8), 1).event(self.RECEIVED, time + 5, (5, 8), 0)
        builder.call(self.REPLY, 60, (5, 0)).event(self.REPLIED, 61, (1, 9)).exit(self.REPLY, 62)
        trace = builder.open(tmp_path)
        rows = transactions(trace).reply_row
        assert [int(trace.events.time_cycles[row]) - START if row >= 0 else None for row in rows] == [None, 61]

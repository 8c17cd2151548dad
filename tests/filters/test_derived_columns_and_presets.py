"""DerivedColumns and ready-made selections of threads, on traces small enough to work out by hand."""

import numpy as np

from satview.events.spec import Release
from satview.events.wire import WireClass, code
from satview.filters import passes
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.expressions.syntax import completions
from satview.filters.rules.fastwide import logged_form
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import C
from satview.filters.would_capture import would_capture
from satview.linkage.calls import partner
from tests.filters.made import (
    MSG_RECEIVEV,
    MSG_SENDV,
    MSG_SENDV_EXIT,
    READY,
    REPLY,
    REPLY_MESSAGE,
    RMSG,
    RUNNING,
    SMSG,
    made,
    random_trace,
)

INT_ENTER, INT_EXIT, HANDLER_ENTER, HANDLER_EXIT = (code(WireClass.INT, n) for n in (1, 2, 3, 4))
DUMP = 18  # events of Maker.start()


def messages():
    """12/1 sends to 7, whose thread 2 answers after a message to 20/1; 1/2 only runs."""
    return made(
        [
            (10, 0, RUNNING, (12, 1)),
            (20, 0, SMSG, (0x10001, 7)),
            (30, 0, RUNNING, (7, 2)),
            (40, 0, SMSG, (0x20001, 20)),
            (50, 0, RUNNING, (20, 1)),
            (60, 0, RMSG, (0x20001, 20)),
            (70, 0, REPLY_MESSAGE, (2, 7)),
            (80, 0, RUNNING, (7, 2)),
            (90, 0, REPLY_MESSAGE, (1, 12)),
            (100, 1, RUNNING, (1, 2)),
            (200, 0, READY, (7, 2)),
        ]
    )


def names(trace, selected):
    return {(int(trace.threads.pid[t]), int(trace.threads.tid[t])) for t in np.flatnonzero(selected)}


def test_kernel_calls_pair_by_thread_and_interrupts_by_depth():
    trace = made(
        [
            (10, 0, RUNNING, (7, 1)),
            (20, 0, MSG_SENDV, (1, 2)),
            (30, 0, INT_ENTER, (5, 0)),
            (31, 0, HANDLER_ENTER, (7, 5, 0, 0)),
            (33, 0, INT_ENTER, (6, 0)),
            (36, 0, INT_EXIT, (6, 0)),
            (37, 0, HANDLER_EXIT, (5, 0, 0, 0)),
            (40, 0, INT_EXIT, (5, 0)),
            (50, 0, RUNNING, (12, 1)),
            (60, 0, MSG_SENDV, (1, 2)),
            (70, 0, RUNNING, (7, 1)),
            (80, 0, MSG_SENDV_EXIT, (0, 0)),
            (90, 0, MSG_RECEIVEV, (1, 0)),
        ]
    )
    lengths = TraceDerivedColumns(trace).duration_ns(np.arange(DUMP + 1, len(trace.events)))
    us = [-1 if n < 0 else n // 1000 for n in lengths.tolist()]
    assert us == [-1, 60, 10, 6, 3, 3, 6, 10, -1, -1, -1, 60, -1]


def test_a_handler_without_exit_leaves_interrupts_their_pairs():
    trace = made(
        [
            (30, 0, INT_ENTER, (5, 0)),
            (31, 0, HANDLER_ENTER, (7, 5, 0, 0)),
            (40, 0, INT_EXIT, (5, 0)),
            (50, 0, INT_ENTER, (5, 0)),
            (52, 0, HANDLER_ENTER, (7, 5, 0, 0)),
            (53, 0, HANDLER_EXIT, (5, 0, 0, 0)),
            (55, 0, INT_EXIT, (5, 0)),
        ]
    )
    rows = np.arange(DUMP + 1, len(trace.events))
    assert (TraceDerivedColumns(trace).duration_ns(rows) // 1000).tolist() == [10, -1, 10, 5, 1, 1, 5]
    pairs = [partner(trace, int(row)) for row in rows]
    assert pairs == [DUMP + 1 + n if n >= 0 else None for n in (2, -1, 0, 6, 5, 4, 3)]


def test_state_lengths_end_with_the_next_state_or_the_trace():
    trace = made([(10, 0, RUNNING, (7, 1)), (30, 0, REPLY, (7, 1)), (100, 0, MSG_SENDV, (0, 0))])
    rows = np.arange(DUMP + 1, len(trace.events))
    assert TraceDerivedColumns(trace).state_length_ns(rows).tolist() == [20_000, 70_000, -1]


def test_priority_is_the_last_one_reported():
    trace = made(
        [
            (10, 0, RUNNING, (7, 1, 30, 2)),
            (20, 0, MSG_SENDV, (0, 0)),
            (30, 0, RUNNING, (7, 1)),
            (40, 0, RUNNING, (12, 1)),
            (50, 0, RUNNING, (7, 1, 9, 2)),
        ]
    )
    assert TraceDerivedColumns(trace).priority(np.arange(DUMP + 1, len(trace.events))).tolist() == [30, 30, 30, -1, 9]


def test_who_used_the_cpu():
    trace = messages()
    assert names(trace, passes.used_cpu(trace)) == {(12, 1), (7, 2), (20, 1)}, "1/2 is idle: CPU 2 of 2"
    cycles = np.zeros(len(trace.threads), np.int64)
    for pid, tid, ran in ((12, 1, 20), (7, 2, 140), (20, 1, 30), (1, 2, 1000)):
        cycles[trace.threads.row(pid, tid)] = ran
    assert names(trace, passes.top_by_cpu(trace, 2, cycles)) == {(7, 2), (20, 1)}, "1/2 is idle"
    assert names(trace, passes.top_by_cpu(trace, 0, cycles)) == set()


def test_who_changed_state_and_who_did_ipc():
    trace = messages()
    assert names(trace, passes.changed_state(trace)) == {(12, 1), (7, 2), (20, 1), (1, 2)}
    assert names(trace, passes.did_ipc(trace)) == {(12, 1), (7, 2), (20, 1)}


def test_the_family_of_a_sender_goes_through_nested_sends():
    trace = messages()
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.threads.row(12, 1)] = True
    assert names(trace, passes.message_family(trace, selected)) == {(12, 1), (7, 2), (20, 1)}
    selected[:] = False
    selected[trace.threads.row(20, 1)] = True
    assert names(trace, passes.message_family(trace, selected)) == {(20, 1)}


def test_a_server_that_received_the_message_belongs_to_the_family_as_one_that_replied_does():
    trace = made(
        [
            (10, 0, RUNNING, (12, 1)),
            (20, 0, SMSG, (1, 7)),
            (30, 0, RUNNING, (7, 2)),
            (40, 0, RMSG, (1, 12)),
            (50, 0, REPLY_MESSAGE, (1, 12)),
            (60, 0, RUNNING, (12, 1)),
            (70, 0, SMSG, (2, 7)),
            (80, 0, RUNNING, (20, 1)),
            (90, 0, SMSG, (3, 7)),
            (100, 0, RUNNING, (7, 1)),
            (110, 0, RMSG, (2, 12)),  # of 12/1, and not answered any more
        ]
    )
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.threads.row(12, 1)] = True
    assert names(trace, passes.message_family(trace, selected)) == {(12, 1), (7, 1), (7, 2)}


def test_a_server_that_never_answers_is_known_by_who_receives():
    trace = made([(10, 0, RUNNING, (12, 1)), (20, 0, SMSG, (1, 7)), (30, 0, RUNNING, (7, 2)), (40, 0, RMSG, (1, 7))])
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.threads.row(12, 1)] = True
    assert names(trace, passes.message_family(trace, selected)) == {(12, 1), (7, 2)}


# ---- the other form ----------------------------------------------------------------------------------------------


def test_wide_events_as_fast_mode_would_have_logged_them():
    trace = made([(10, 0, RUNNING, (7, 1, 21, 2)), (20, 0, MSG_SENDV, (3, 1, 4, 0x61626364, 5, 6))])
    send = logged_form(trace, len(trace.events) - 1, wide=False)
    assert (send.form, send.words, send.slots) == ("fast", (3, 0x61626364), 1)
    state = logged_form(trace, len(trace.events) - 2, wide=False)
    assert state.words == (7, 1)
    assert logged_form(trace, len(trace.events) - 1, wide=True).words == (3, 1, 4, 0x61626364, 5, 6)


def test_fast_events_in_wide_form_lack_words():
    trace = made([(20, 0, MSG_SENDV, (3, 0x61626364))])
    send = logged_form(trace, len(trace.events) - 1, wide=True)
    assert send.words == (3, None, None, 0x61626364, None, None)
    assert send.missing == ("sparts", "rparts", "msg[1]", "msg[2]")
    failed = made([(20, 0, MSG_SENDV_EXIT, (0xFFFFFFFF, 4))])
    assert logged_form(failed, len(failed.events) - 1, wide=True).form == "failed"


def test_what_would_be_captured():
    trace = made(
        [
            (10, 0, RUNNING, (7, 1, 21, 2)),
            (20, 0, MSG_SENDV, (3, 1, 4, 0x61626364, 5, 6)),
            (30, 0, SMSG, (1, 7)),
            (40, 0, REPLY, (7, 1, 21, 2)),
            (1_000_000, 0, SMSG, (1, 7)),
        ]
    )
    rules = RuleSet()
    rules.add_class(C.KERCALL)
    rules.add_event(C.COMM, 0)
    rules.add_event(C.THREAD, 1 << 1)
    answer = would_capture(rules, trace)
    assert (answer.events, answer.slots, answer.is_exact) == (4 + 1, 4 + 1, True), "fast: one slot each, and a BUFFER"
    rules.set_all_classes_wide()
    answer = would_capture(rules, trace)
    assert (answer.events, answer.slots) == (4 + 1, 2 + 3 + 1 + 1 + 1)
    seconds = trace.duration_ns / 1e9
    assert answer.bytes_per_s == 16 * 8 / seconds
    losses = {loss.view: (loss.lost, loss.total) for loss in answer.losses}
    assert losses["Messages"] == (0, 2)
    assert losses["CPU lanes"] == (0, 1)
    assert losses["Names and tree"] == (11, 11)
    assert losses["Thread lanes"] == (8, 9)
    assert answer.by_class["COMM"] == (2, 2)


# ---- completion --------------------------------------------------------------------------------------------------


def proposals(text, trace=None):
    return [item.text for item in completions(text, len(text), Release.QNX_6, trace)]


def test_completion_knows_what_can_follow():
    assert proposals("")[:3] == ["class", "event", "state"]
    assert proposals("pi") == ["pid"]
    assert proposals("event == MSG_SENDV")[0].startswith("MSG_SENDV")
    assert "THRUNNING" in proposals("event == THR")
    assert proposals("state == RUN") == ["RUNNING"]
    assert proposals("class in (KER_CALL, CO")[:2] == ["CONTROL", "COMM"]
    assert proposals("errno == ETIMED") == ["ETIMEDOUT"]
    assert "rparts" in proposals("event == MSG_SENDV and arg.")
    assert "tick_count" not in " ".join(proposals("event == MSG_SENDV and arg."))
    assert "and" in proposals("pid == 7 ")
    assert "~" in proposals("name ")
    assert "<" not in proposals("name ")
    assert proposals("pid == 7 and dur") == ["duration"]
    assert proposals("failed ")[:2] == ["is known", "is unknown"]
    assert proposals("pid is ") == ["known", "unknown", "true", "false", "not"]
    assert proposals("(pid == 7) is not t") == ["true"]


def test_completion_knows_the_trace():
    trace = random_trace(1)
    assert proposals('name == "dev', trace) == ['"devb-eide"']
    assert proposals("name ~ ", trace)[0].startswith('"')
    assert {"7", "12"} <= set(proposals("pid == ", trace))
    assert proposals("cpu == ", trace) == ["0", "1"]


def test_completion_replaces_the_word_before_the_cursor():
    text = "pid == 7 and eve and tid == 1"
    found = completions(text, len("pid == 7 and eve"), Release.QNX_6)[0]
    assert (found.text, found.start, found.end) == ("event", 13, 16)
    for position in range(len(text) + 1):
        completions(text, position, Release.QNX_6)

"""The state of TraceEvent(): what each mode does, as the 6.4 kernel does it."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events.modes import RULE_MODES, Mode
from satview.events.spec import Release
from satview.events.wire import WireClass, code
from satview.filters.derived_columns import event_contexts
from satview.filters.external import EventContext, ExternalClass, external_of, internal_codes
from satview.filters.rules.building import rules_of
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import EINVAL, ENOTSUP, OK
from tests.filters.made import (
    MSG_SENDV,
    MSG_SENDV_EXIT,
    RELEASES,
    REPLY_MESSAGE,
    RMSG,
    RUNNING,
    SMSG,
    made,
    random_trace,
)

C = ExternalClass
INT_ENTER, INT_EXIT, HANDLER_ENTER = (code(WireClass.INT, n) for n in (1, 2, 3))
INTERRUPTED = code(WireClass.KER_CALL, 11 + 256)
MMAP = code(WireClass.SYSTEM, 6)


def admits(rules, event_code, *words, pid=7, tid=1):
    return rules.admits(EventContext(event_code, pid, tid, words or (0, 0)))


def with_everything(release=Release.QNX_6):
    rules = RuleSet(release)
    rules.add_all_classes()
    return rules


def test_everything_is_off_and_fast_at_first():
    rules = RuleSet()
    assert not any(admits(rules, c) for c in (RUNNING, MSG_SENDV, SMSG, INT_ENTER, MMAP, code(WireClass.USER, 5)))
    assert not rules.thread_is_wide
    assert not rules.is_wide(MSG_SENDV)


def test_kercall_is_enter_and_exit_and_interrupted_follows_exit():
    rules = RuleSet()
    assert rules.add_class(C.KERCALL) == OK
    assert admits(rules, MSG_SENDV)
    assert admits(rules, MSG_SENDV_EXIT)
    assert admits(rules, INTERRUPTED)
    rules.del_class(C.KERCALLEXIT)
    assert admits(rules, MSG_SENDV)
    assert not admits(rules, MSG_SENDV_EXIT)
    assert not admits(rules, INTERRUPTED)
    assert rules.add_class(C.KERCALLINT) == OK
    assert not admits(rules, INTERRUPTED)
    assert rules.add_event(C.KERCALLINT, 11) == ENOTSUP


def test_int_class_has_four_parts_and_int_event_two():
    rules = RuleSet()
    rules.add_event(C.INT, 5)
    assert admits(rules, INT_ENTER, 5)
    assert admits(rules, INT_EXIT, 5)
    assert not admits(rules, INT_ENTER, 6)
    assert not admits(rules, HANDLER_ENTER, 7, 5, 0, 0)
    rules.add_class(C.INT)
    assert admits(rules, HANDLER_ENTER, 7, 5, 0, 0)
    assert admits(rules, INT_ENTER, 300)
    rules.del_event(C.INT_HANDLER_ENTER, 5)
    assert not admits(rules, HANDLER_ENTER, 7, 5, 0, 0)
    assert admits(rules, HANDLER_ENTER, 7, 6, 0, 0)
    assert rules.add_event(C.INT, 256) == ENOTSUP


def test_thread_class_on_sets_the_wide_bit_too():
    rules = RuleSet()
    rules.add_class(C.THREAD)
    assert rules.thread_is_wide
    rules.set_class_fast(C.THREAD)
    assert not rules.thread_is_wide
    assert admits(rules, RUNNING)
    rules.set_event_wide(C.THREAD, 2)
    assert not rules.thread_is_wide, "a width per state does not exist"
    rules.set_all_classes_wide()
    rules.del_class(C.THREAD)
    assert not rules.thread_is_wide, "off clears wide as well"


def test_all_classes_leave_the_width_alone():
    rules = RuleSet()
    rules.set_all_classes_wide()
    rules.add_all_classes()
    rules.del_all_classes()
    assert rules.thread_is_wide
    assert rules.is_wide(MSG_SENDV)
    assert not admits(rules, RUNNING)


def test_masks_take_several_bits_at_once_and_in_8_0_one_number():
    rules = RuleSet()
    rules.add_event(C.THREAD, 1 << 1 | 1 << 6)
    assert [n for n in range(26) if admits(rules, code(WireClass.PR_TH, n))] == [1, 6]
    later = RuleSet(Release.QNX_8)
    later.add_event(C.THREAD, 26)
    assert [n for n in range(64) if admits(later, code(WireClass.PR_TH, n))] == [26]


def test_errors():
    rules = RuleSet()
    assert rules.add_class(17) == ENOTSUP, "QUIP came with 6.6"
    assert rules.add_class(99) == ENOTSUP
    assert rules.add_class(C.EMPTY) == OK
    assert rules.add_event(C.EMPTY, 3) == OK
    assert rules.add_event(C.USER, 1024) == EINVAL
    assert rules.add_event(C.KERCALL, 128) == ENOTSUP
    assert rules.add_event(C.COMM, 12) == ENOTSUP
    assert rules.set_class_fast(C.USER) == ENOTSUP
    assert rules.set_class_wide(C.CONTROL) == OK
    assert rules.set_class_pid(C.PROCESS, 7) == ENOTSUP
    assert rules.clr_class_pid(C.PROCESS) == OK
    assert rules.apply(Mode.START) == ENOTSUP
    assert rules.apply("NO_SUCH_MODE") == ENOTSUP
    assert rules.apply(Mode.ADDCLASS) == ENOTSUP, "an argument is missing"
    assert rules == RuleSet(), "refused settings change nothing"


def test_apply_takes_names_and_numbers_with_the_count_bits():
    rules = RuleSet()
    assert rules.apply("_NTO_TRACE_ADDCLASS", C.COMM) == OK
    assert rules.apply(0x30000005, C.KERCALL, 11) == OK
    assert admits(rules, SMSG)
    assert admits(rules, MSG_SENDV)


def test_pid_and_tid_are_shared_by_enter_and_exit():
    rules = with_everything()
    rules.set_event_tid(C.KERCALLENTER, 11, 7, 2)
    assert admits(rules, MSG_SENDV_EXIT, pid=7, tid=2)
    assert not admits(rules, MSG_SENDV_EXIT, pid=7, tid=1)
    assert not admits(rules, MSG_SENDV, pid=12, tid=2)
    assert admits(rules, code(WireClass.KER_CALL, 12), pid=12)
    assert rules.clr_event_pid(C.KERCALL, 11) == ENOTSUP, "a tid is stored"
    assert rules.clr_event_tid(C.KERCALLEXIT, 11) == OK
    assert admits(rules, MSG_SENDV, pid=12)


def test_setting_a_pid_clears_the_tid_and_the_last_one_counts():
    rules = with_everything()
    rules.set_class_tid(C.THREAD, 7, 2)
    rules.set_class_pid(C.THREAD, 12)
    assert admits(rules, RUNNING, 12, 1, pid=12)
    assert not admits(rules, RUNNING, 7, 2, pid=7, tid=2)


def test_clearing_by_class():
    rules = with_everything()
    rules.set_class_pid(C.KERCALL, 7)
    rules.set_event_tid(C.KERCALL, 11, 7, 1)
    rules.clr_class_pid(C.KERCALL)
    assert admits(rules, code(WireClass.KER_CALL, 12), pid=12)
    assert not admits(rules, MSG_SENDV, pid=12)
    rules.clr_class_tid(C.KERCALL)
    assert admits(rules, MSG_SENDV, pid=12)


def test_clrclasstid_of_comm_clears_the_wrong_ones():
    rules = with_everything()
    rules.set_event_pid(C.COMM, 0, 7)
    rules.set_event_tid(C.COMM, 1, 7, 1)
    rules.clr_class_tid(C.COMM)
    assert admits(rules, SMSG, 1, 9, pid=12), "no tid stored: cleared"
    assert not admits(rules, code(WireClass.COMM, 1), 1, 9, pid=12), "tid stored: stays"


def test_whose_thread_is_tested():
    rules = with_everything()
    rules.set_class_tid(C.COMM, 12, 3)
    assert admits(rules, SMSG, 0x10001, 20, pid=12, tid=3), "the sender"
    assert admits(rules, RMSG, 0x10001, 12, pid=20, tid=1), "the receiver's process; its thread is not reported"
    assert not admits(rules, RMSG, 0x10001, 12, pid=12, tid=1), "the receiver runs: its tid counts"
    assert admits(rules, REPLY_MESSAGE, 3, 12, pid=20, tid=1), "the client that is answered"
    assert not admits(rules, REPLY_MESSAGE, 1, 12, pid=12, tid=3)
    assert admits(rules, code(WireClass.COMM, 5), 1, 12, pid=1), "the kernel's own pulse: only the pid"
    assert rules.admits(EventContext(RMSG, 20, 1, (0x10001, 12), tested=(12, 3)))
    assert not rules.admits(EventContext(RMSG, 20, 1, (0x10001, 12), tested=(12, 4)))


def test_system_pids_are_stored_but_not_tested():
    rules = with_everything()
    rules.set_class_pid(C.SYSTEM, 99)
    assert admits(rules, MMAP, 7, 0, pid=7)


def test_error_message_follows_reply():
    rules = RuleSet()
    rules.add_event(C.COMM, 10)
    assert admits(rules, code(WireClass.COMM, 11), 1, 7)
    rules.del_event(C.COMM, 10)
    rules.add_event(C.COMM, 11)
    assert not admits(rules, code(WireClass.COMM, 11), 1, 7)


def test_events_without_a_switch_need_the_user_mask():
    rules = RuleSet()
    stray = code(13, 9)
    assert not admits(rules, stray)
    rules.add_event(C.USER, 9)
    assert admits(rules, stray)
    assert admits(rules, code(WireClass.USER, 9))


def test_security_has_to_be_added_by_itself():
    rules = with_everything(Release.QNX_7)
    assert not admits(rules, code(WireClass["SEC"], 0))
    assert admits(rules, code(WireClass["QVM"], 0))
    assert rules.add_class(C.SEC) == OK
    assert admits(rules, code(WireClass["SEC"], 0))


def test_handlers_class_first_then_event_and_both_must_pass():
    requested = []
    rules = with_everything()

    def handler(name, answer):
        return lambda context: (requested.append(name), answer)[1]

    rules.add_class_ev_handler(C.COMM, handler("class", 1))
    rules.add_event_handler(C.COMM, 0, handler("event", 0))
    assert not admits(rules, SMSG, 1, 7)
    assert requested == ["class", "event"]
    assert admits(rules, REPLY_MESSAGE, 1, 7)
    requested.clear()
    rules.add_class_ev_handler(C.COMM, handler("class", 0))
    assert not admits(rules, SMSG, 1, 7)
    assert requested == ["class"], "the event's handler is not called"
    rules.del_class_ev_handler(C.COMM)
    rules.del_event_handler(C.COMM, 0)
    assert rules.del_event_handler(C.COMM, 0) == OK
    assert admits(rules, SMSG, 1, 7)


def test_handlers_are_not_requested_about_events_that_are_off_or_of_others():
    rules = RuleSet()
    requested = []
    rules.add_class_ev_handler(C.THREAD, lambda context: requested.append(context) or 1)
    assert not admits(rules, RUNNING)
    rules.add_class(C.THREAD)
    rules.set_class_pid(C.THREAD, 7)
    assert not admits(rules, RUNNING, 12, 1, pid=12)
    assert requested == []
    assert admits(rules, RUNNING, 7, 1)
    assert len(requested) == 1


def test_answer_two_lets_the_exit_pass_unasked():
    rules = with_everything()
    rules.add_class_ev_handler(C.KERCALLENTER, lambda context: 2)
    rules.add_class_ev_handler(C.KERCALLEXIT, lambda context: 0)
    assert not admits(rules, MSG_SENDV_EXIT)
    assert admits(rules, MSG_SENDV)
    assert not admits(rules, MSG_SENDV_EXIT, tid=2)
    assert admits(rules, MSG_SENDV_EXIT)
    assert not admits(rules, MSG_SENDV_EXIT)


def test_where_handlers_can_be_attached():
    rules = RuleSet()

    def always(_):
        return 1

    assert rules.add_event_handler(C.CONTROL, 1, always) == OK
    assert rules.add_event_handler(C.CONTROL, 2, always) == ENOTSUP
    assert rules.add_event_handler(C.KERCALL, 11, always) == ENOTSUP
    assert rules.add_class_ev_handler(C.KERCALL, always) == OK
    assert rules.add_class_ev_handler(C.USER, always) == ENOTSUP
    assert rules.add_class_ev_handler(C.EMPTY, always) == OK
    assert rules.add_event_handler(C.PROCESS, 1 << 5, always) == ENOTSUP
    assert len(rules.class_handlers) == 2, "KERCALL takes two entries of the table"


def test_the_handler_table_has_128_positions():
    rules = RuleSet()
    results = [rules.add_event_handler(C.KERCALLENTER, n, lambda _: 1) for n in range(128)]
    assert set(results) == {OK}
    assert rules.add_class_ev_handler(C.THREAD, lambda _: 1) == ENOTSUP
    assert rules.add_event_handler(C.KERCALLENTER, 5, lambda _: 0) == OK, "replacing takes no position"


@pytest.mark.parametrize("release", RELEASES)
def test_external_and_internal_codes_are_each_others_inverse(release):
    for event_code in range(1 << 15):
        address = external_of(event_code, release)
        if address.external is not None:
            assert event_code in internal_codes(address.external, address.number, release), hex(event_code)


# ---- properties --------------------------------------------------------------------------------------------------


def random_rules(seed, release, handlers=False):
    """A rule set after some random modes; errors included, they change nothing."""
    rng = random.Random(seed)
    rules = RuleSet(release)
    if rng.random() < 0.6:
        rules.add_all_classes()
    modes = [m for m in RULE_MODES if handlers or "HANDLER" not in m.name]
    for _ in range(rng.randrange(40)):
        mode = rng.choice(modes)
        selections = {
            "class": lambda: rng.randrange(22),
            "tid": lambda: rng.choice((0, 1, 2)),
            "event": lambda: rng.choice((rng.randrange(33), 1 << rng.randrange(32), rng.randrange(1100))),
            "pid": lambda: rng.choice((0, 1, 7, 12, 20)),
            "handler": lambda: rng.choice(HANDLERS),
        }
        rules.apply(mode, *(selections[part]() for part in mode.rule_arguments))
    return rules


HANDLERS = [lambda context, n=n: (context.words[0] + context.tid + n) % 3 for n in range(3)]
releases = st.sampled_from(list(RELEASES))


@pytest.mark.thorough
@given(st.integers(0, 10**6), releases)
def test_vectorised_is_one_by_one(seed, release):
    trace = random_trace(seed % 17, 250, release, "big" if seed % 2 else "little")
    rules = random_rules(seed, release, handlers=seed % 3 == 0)
    together = rules.mask(trace)
    single = [rules.admits(context) for context in event_contexts(trace, np.arange(len(trace.events)))]
    rules.forget_calls()
    assert together.tolist() == single
    rows = np.flatnonzero(np.arange(len(together)) % 3 == 1)
    if not (rules.class_handlers or rules.event_handlers):
        assert rules.mask(trace, rows).tolist() == together[rows].tolist()


@given(st.integers(0, 10**6), st.integers(0, 10**6), releases)
def test_written_rules_set_the_same_state_from_any_other(seed, other_seed, release):
    rules, other = random_rules(seed, release), random_rules(other_seed, release)
    for rule in rules_of(rules):
        assert other.apply(rule.mode, *rule.arguments()) == OK, rule
    assert other == rules


def test_owner_decides_for_kernel_calls_in_a_trace():
    trace = made(
        [
            (10, 0, RUNNING, (7, 1)),
            (20, 0, MSG_SENDV, (3, 0)),
            (30, 1, RUNNING, (12, 1)),
            (40, 1, MSG_SENDV, (3, 0)),
            (50, 0, MSG_SENDV_EXIT, (0, 0)),
        ]
    )
    rules = with_everything()
    rules.set_class_pid(C.KERCALL, 12)
    calls = np.flatnonzero(trace.events.code >> 10 == WireClass.KER_CALL)
    assert rules.mask(trace)[calls].tolist() == [False, True, False]


def test_the_receiver_of_a_message_is_tested_in_a_trace_as_one_by_one():
    trace = made(
        [
            (10, 0, RUNNING, (12, 1)),
            (20, 0, RMSG, (1, 12)),
            (30, 0, RUNNING, (12, 2)),
            (40, 0, RMSG, (1, 12)),
            (50, 0, RUNNING, (7, 1)),
            (60, 0, RMSG, (1, 12)),
            (70, 0, RMSG, (1, 7)),
            (80, 0, REPLY_MESSAGE, (2, 12)),
            (90, 0, REPLY_MESSAGE, (1, 12)),
            (95, 0, RMSG, (0xFFFFFFFF, 0xFFFFFFFF)),
        ]
    )
    rules = with_everything()
    rules.set_class_tid(C.COMM, 12, 2)
    messages = np.flatnonzero(trace.events.code >> 10 == WireClass.COMM)
    assert rules.mask(trace)[messages].tolist() == [False, True, True, False, True, False, False]

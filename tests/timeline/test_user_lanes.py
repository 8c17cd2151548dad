"""Lanes of user events: moments, intervals and counters, as descriptions and rules say."""

from __future__ import annotations

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.events import wire
from satview.events.user_events import UserEvent, UserField, UserRule, UserRuleKind, parse_rules
from satview.events.wire import WireClass
from satview.timeline.finders import UserLanes
from satview.timeline.lane_tree import Timeline
from tests.helpers.kev import TraceBuilder
from tests.timeline.test_tracks import shown

A = 2


def user(number):
    return wire.code(WireClass.USER, number)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A queue (10) that is 3, then -1; a request (41 to 42) in a request; a note (50)."""
    made = TraceBuilder().time_event(0).process_name(10, A, "usr/bin/app").state("RUNNING", 100, A, 1)
    made.event(user(10), 1_000, (3, 7)).event(user(41), 1_500, (1, 0)).event(user(41), 2_000, (2, 0))
    made.event(user(42), 2_500, (2, 0)).event(user(10), 3_000, (0xFFFFFFFF, 9)).event(user(42), 3_500, (1, 0))
    made.event(user(50), 4_000, (0x6C6C6568, 0x6F, 0, 0))
    return made.open(tmp_path_factory.mktemp("user"))


def counted(trace, lanes):
    timeline = Timeline(trace)
    timeline.describe_user_events(lanes)
    timeline.show_classes(["user"])
    found = [info for info in timeline.infos if info.is_counter]
    counters = [timeline.lane(info.index).counter for info in found]
    return [(info.title, counter.levels[0][1].tolist()) for info, counter in zip(found, counters, strict=True)]


def test_without_descriptions_events_are_moments_with_their_words(trace):
    assert shown(trace, "user") == [
        ("event 10", "", [(1_000, 3_000, "0x3 0x7"), (3_000, 4_001, "0xffffffff 0x9")]),
        ("event 41", "", [(1_500, 2_000, "0x1 0x0"), (2_000, 4_001, "0x2 0x0")]),
        ("event 42", "", [(2_500, 3_500, "0x2 0x0"), (3_500, 4_001, "0x1 0x0")]),
        ("event 50", "", [(4_000, 4_001, "hello")]),
    ]


def test_rules_make_counters_and_intervals(trace):
    lanes = UserLanes(rules=parse_rules("10:1 counter used; 41..42 interval request; 50 moment note"))
    assert shown(trace, "user", lanes) == [
        ("request", "thread 1", [(1_500, 3_500, "request")]),
        ("request 2", "thread 1", [(2_000, 2_500, "request")]),
        ("used", "", [(1_000, 3_000, "7"), (3_000, 4_001, "9")]),
        ("note", "", [(4_000, 4_001, "hello")]),
    ]
    [(title, numbers)] = counted(trace, lanes)
    assert title == "used"
    assert np.isnan(numbers[0])
    assert numbers[1:] == [7, 9]


def test_descriptions_name_lanes_fields_and_pairs(trace):
    events = {
        10: UserEvent(10, "queue", (UserField("depth", 4, is_signed=True),)),
        41: UserEvent(41, "request begin", (UserField("id", 4),)),
        42: UserEvent(42, "request end", (UserField("id", 4),)),
    }
    assert shown(trace, "user", UserLanes(events))[:3] == [
        ("request", "thread 1", [(1_500, 3_500, "request id=1")]),
        ("request 2", "thread 1", [(2_000, 2_500, "request id=2")]),
        ("queue", "", [(1_000, 3_000, "3"), (3_000, 4_001, "-1")]),
    ]
    moment = UserLanes(events, parse_rules("10 moment"))
    assert shown(trace, "user", moment)[2] == (
        "queue", "", [(1_000, 3_000, "queue depth=3"), (3_000, 4_001, "queue depth=-1")]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "is_signed", "words", "value"),
    [
        (1, True, (0x000000FF, 0), -1),
        (2, False, (0x1234FFFE, 0), 0xFFFE),
        (8, True, (0xFFFFFFFF, 0xFFFFFFFF), -1),
        (8, False, (0, 0x80000000), 2.0**63),
    ],
)
@pytest.mark.parametrize("order", ["little", "big"])
def test_numbers_of_every_size_and_byte_order(tmp_path, size, is_signed, words, value, order):
    if order == "big":
        words = words[::-1] if size == 8 else (words[0] << 8 * (4 - size) & 0xFFFFFFFF, 0)
    made = TraceBuilder(byte_order=order).time_event(0).event(user(5), 100, words).event(user(6), 200)
    lanes = UserLanes({5: UserEvent(5, "n", (UserField("v", size, is_signed),))})
    assert counted(made.open(tmp_path), lanes)[0][1][-1] == value


def test_a_field_that_a_payload_has_not_is_no_number(tmp_path):
    made = TraceBuilder().time_event(0).event(user(5), 100, (1, 2)).event(user(6), 200)
    lanes = UserLanes(rules=parse_rules("5:2 counter"))
    assert np.isnan(counted(made.open(tmp_path), lanes)[0][1]).all()


def test_lanes_change_with_descriptions(trace):
    timeline = Timeline(trace)
    timeline.show_classes(["user"])
    before = timeline.lanes_of_class("user")
    timeline.describe_user_events(UserLanes(rules=parse_rules("41..42 interval request")))
    assert not timeline.has_classes(["user"])
    timeline.show_classes(["user"])
    assert not before & timeline.lanes_of_class("user"), "lanes that are out of date do not show"


def test_one_event_that_begins_and_ends_by_turns(trace):
    lanes = UserLanes(rules=parse_rules("41..41 interval busy"))
    assert shown(trace, "user", lanes)[0] == ("busy", "thread 1", [(1_500, 2_000, "busy")])


def test_rules_are_read():
    assert parse_rules(" 7 counter queue depth ;\n41..42 interval; ;9 moment") == (
        UserRule(7, UserRuleKind.COUNTER, name="queue depth"),
        UserRule(41, UserRuleKind.INTERVAL, 42),
        UserRule(9, UserRuleKind.MOMENT),
    )


@pytest.mark.parametrize(
    "rule",
    ["queue", "7", "7 gauge", "1024 counter", "7..8 counter", "7 interval", "7:9999 counter", "-1 moment",
     "9" * 400 + " moment", ";".join(["7 moment"] * 1001)],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_one_sentence(rule):
    with pytest.raises(UsageError) as caught:
        parse_rules(rule)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_field_is_counted_by_its_name(trace):
    event = UserEvent(10, "queue", (UserField("depth", 4, is_signed=True), UserField("used", 4)))
    [(title, numbers)] = counted(trace, UserLanes({10: event}, parse_rules("10:used counter")))
    assert (title, numbers[1:]) == ("queue", [7, 9])
    assert counted(trace, UserLanes({10: event}, parse_rules("10:other counter"))) == [], "no field is called so"

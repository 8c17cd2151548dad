from __future__ import annotations

import numpy as np
import pytest

from satview.session.filter_stack import fits_of


def find(opened, qtbot, text):
    with qtbot.waitSignal(opened.search.changed):
        opened.search.find(text)
    qtbot.waitUntil(lambda: not opened.search.is_pending)
    return opened.search.hits.tolist()


def names(opened, rows):
    return [opened.trace.spec(row).name for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("msg_sendv", ["MSG_SENDV", "MSG_SENDV"]),  # in any case
        ("MsgSendv", ["MSG_SENDV", "MSG_SENDV"]),  # the public name of the call
        ("/^EVENT [78]$/", ["EVENT 7", "EVENT 8"]),
        ("EVENT.7", []),  # dots are literal outside slashes
        ("arg.coid is known", ["MSG_SENDV"]),  # its exit has none
    ],
)
def test_what_a_text_finds(opened, qtbot, text, expected):
    assert names(opened, find(opened, qtbot, text)) == expected


def test_process_name_finds_the_events_of_its_threads(opened, qtbot):
    server = opened.trace.threads.row(3, 1)
    expected = np.flatnonzero(opened.trace.events.thread == server).tolist()
    assert find(opened, qtbot, "server") == expected
    assert expected


def test_questions_are_conditions(opened, qtbot):
    assert len(find(opened, qtbot, "arg.coid is not known")) == len(opened.trace.events) - 1


def test_bad_expression_is_reported(opened):
    opened.search.find("/a(/")
    assert opened.search.error == "pattern, column 2: the pattern cannot be used: missing ): a("
    opened.search.find("/(?=a)b/")
    assert "invalid perl operator: (?=" in opened.search.error


def test_a_pattern_that_never_ends_elsewhere_takes_no_time(monkeypatch):
    monkeypatch.setattr("satview.filters.expressions.nodes.STEP_BUDGET", 60_000)
    assert not fits_of("/^(a|aa)+$/")("a" * 3000 + "b")
    assert fits_of("/^(A|aa)+$/")("a" * 3000), "case is ignored"


def test_hits_go_round(opened, qtbot):
    first, last = find(opened, qtbot, "/^EVENT/")
    search = opened.search
    assert search.next_hit(-1) == first
    assert search.next_hit(first) == last
    assert search.next_hit(last) == first
    assert search.previous_hit(first) == last
    assert search.next_hit(-1, np.array([last], np.uint32)) == last
    assert search.shown_hits(np.array([first - 1, first, last - 1], np.uint32)).tolist() == [first]
    assert search.next_hit(-1, np.array([], np.uint32)) is None

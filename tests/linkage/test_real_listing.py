"""Links of a real capture of QNX 7.1, where it is at hand, against a count made from its text alone."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from satview.answers.transactions import TransactionFilter, transaction_table
from satview.events.catalogue import call_numbers, never_block
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.linkage.chain import link_table
from satview.linkage.links import LinkKind
from satview.store.time_ranges import losses
from tests.helpers.shared import shared_path

LISTING = "real/qnx71-ker_call.traceprinter.txt"
EVENT = re.compile(r"^t:0x([0-9a-f]+) CPU:\d+ (\w+) *:(\S+)(.*)")
NUMBERS = re.compile(r"\b(rcvid|pid|scoid)\s*:\s*(0x[0-9a-f]+|-?\d+)")


def events() -> list[tuple[int, str, str, dict[str, int]]]:
    """Return (time, class, name without number, ids) of the events of the listing."""
    found: list[tuple[int, str, str, dict[str, int]]] = []
    for line in shared_path(LISTING).read_text(errors="replace").splitlines():
        reported = EVENT.match(line)
        if reported:
            found.append((int(reported[1], 16), reported[2], reported[3].split("/")[0], {}))
        if found:
            rest = reported[4] if reported else line
            found[-1][3].update((name, int(number, 0) & 0xFFFFFFFF) for name, number in NUMBERS.findall(rest))
    return found


@pytest.mark.thorough
def test_message_pairs() -> None:
    sent: dict[tuple[int, int], int] = {}
    expected = []
    for time, _, name, ids in events():
        if name == "SND_MESSAGE":
            sent[ids["rcvid"], ids["pid"]] = time
        elif name == "REC_MESSAGE" and (first := sent.pop((ids["rcvid"], ids["pid"]), None)) is not None:
            expected.append((first, time))
    trace = open_trace(shared_path(LISTING))
    table, times = link_table(trace, LinkKind.MESSAGE), trace.events.time_cycles
    found = list(zip(times[table.from_row].tolist(), times[table.to_row].tolist(), strict=True))
    assert len(found) > 150
    lost = losses(trace)[:, :2].tolist()
    whole = [pair for pair in expected if not any(start < pair[1] and end > pair[0] for start, end in lost)]
    assert sorted(found) == sorted(whole)


def test_durations_of_kernel_calls() -> None:
    """No THREAD event shows who ran: a call and its exit follow each other, and the call never blocks."""
    numbers, stays = call_numbers(Release.QNX_7), never_block(Release.QNX_7)
    expected, last = [], None
    for time, kind, name, _ in events():
        if kind in ("KER_CALL", "KER_EXIT", "INT_CALL"):
            if last is not None and kind != "KER_CALL" and last[1] == name and stays[numbers[name]]:
                expected.append((last[0], time - last[0]))
            last = (time, name) if kind == "KER_CALL" else None
    trace = open_trace(shared_path(LISTING))
    table, times = link_table(trace, LinkKind.CALL), trace.events.time_cycles
    found = list(zip(times[table.from_row].tolist(), table.cycles(times).tolist(), strict=True))
    assert len(found) > 500
    assert found == expected


@pytest.mark.thorough
def test_clients_are_those_that_replies_name() -> None:
    """No THREAD event shows who sends; between receipt and reply of a rcvid no other one has that number."""
    expected: dict[int, int | str] = {}
    sent: dict[tuple[int, int], int] = {}
    is_open: dict[int, int] = {}
    replying = None
    for time, kind, name, ids in events():
        if name == "SND_MESSAGE":
            expected[time], sent[ids["rcvid"], ids["pid"]] = "unknown", time
        if name == "REC_MESSAGE":
            is_open[ids["rcvid"]] = sent[ids["rcvid"], ids["pid"]]
        if kind == "KER_CALL":
            replying = is_open.get(ids["rcvid"]) if name in ("MSG_REPLYV", "MSG_ERROR") else None
        if kind == "COMM" and name in ("REPLY_MESSAGE", "MSG_ERROR") and replying is not None:
            expected[replying], replying = ids["pid"], None
    trace = open_trace(shared_path(LISTING))
    table = transaction_table(trace)
    pids = dict(zip(table["time_cycles"].tolist(), table["client_pid"].tolist(), strict=True))
    assert {time: pid if pid > 0 else "unknown" for time, pid in pids.items()} == expected
    assert list(expected.values()).count("unknown") == 1
    names = Counter(table.text(row, "client") for row in range(len(table)))
    assert (names["~ one_class"], names["~ ls"], names["unknown"]) == (4, 110, 1)
    assert len(transaction_table(trace, TransactionFilter(client="one_class"))) == 4

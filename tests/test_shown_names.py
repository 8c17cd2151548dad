"""A name that the window shows works wherever names are typed: filters, rules, claims, options, lists of threads."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.thread_names import names_of_thread, thread_of, threads_named
from satview.analysis.verdicts.find import kind_of
from satview.analysis.verdicts.rule import rules
from satview.base.errors import UsageError
from satview.events import wire
from satview.events.catalogue import ListedCatalogue, listed_catalogue
from satview.events.spec import Release
from satview.events.states import STATES
from satview.filters.expressions.expression import select
from satview.filters.expressions.semantics import state_value
from satview.filters.external import ExternalClass
from satview.filters.rules.text import event_argument
from satview.opened import OpenedTrace, with_answers
from satview.session.event_text import list_row
from satview.testing.figure import ClaimResults, KevFailure
from satview.testing.kev import Kev
from tests.helpers.kev import TraceBuilder

CALLS = (11, 14, 15)  # MSG_SENDV, MSG_RECEIVEV, MSG_REPLYV
RELEASES = [release for release in Release if release.is_qnx]


@pytest.fixture
def trace(tmp_path: Path) -> OpenedTrace:
    """Two processes called `dumper`, one with a named thread; one process without a name; an interrupt."""
    builder = TraceBuilder().time_event(0)
    for pid in (7, 12):
        builder.process_name(pid, pid, "usr/bin/dumper")
        builder.state("RUNNING", 1000 * pid, pid, 1)
        for number in CALLS:
            at = 1000 * pid + 50 * number
            builder.call(number, at).exit(number, at + 30)
    builder.thread_name(14_000, 12, 1, "writer").state("RUNNING", 15_000, 30, 2).call(11, 15_100)
    builder.event(wire.code(wire.WireClass.INT, 1), 16_000, (0x1B, 0))
    builder.event(wire.code(wire.WireClass.INT, 2), 16_050, (0x1B, 0))
    return with_answers(builder.open(tmp_path))


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_event_is_found_by_what_the_list_and_the_details_show(release: Release) -> None:
    book = listed_catalogue(release)
    for code in book.codes():
        spec = book.spec(code)
        for shown in {
            spec.label or spec.name,
            spec.name,
            f"{spec.class_name}/{spec.name}",
            f"{spec.class_name} {spec.name}",
            f"{spec.class_name}:{spec.name}",
            *map("{}()".format, spec.calls),
        }:
            assert code in book.find_shown(shown), shown


def test_an_event_whose_number_no_file_can_have_is_found_as_it_is_shown() -> None:
    book = ListedCatalogue(Release.QNX_6)
    assert book.find("EVENT 9999") == ()
    learned = book.learn("USREVENT", "EVENT 9999")
    for shown in ("EVENT 9999", "USREVENT EVENT 9999", "USREVENT/EVENT 9999", "USREVENT:EVENT 9999"):
        assert book.find_shown(shown) == (learned,), shown


def test_an_event_that_a_listing_taught_is_found_by_its_number() -> None:
    """`EVENT 5` is the name of a user event, and may be that of an event of another class that no table has."""
    book = ListedCatalogue(Release.QNX_7)
    [user] = book.find_shown("EVENT 5")
    learned = book.learn("COMM", "EVENT 5")
    assert book.find_shown("EVENT 5") == tuple(sorted((user, learned)))
    assert book.find_shown("COMM/EVENT 5") == (learned,)
    assert book.find("EVENT 5") == (user,)


def test_a_kernel_call_is_found_as_listings_print_it() -> None:
    book = ListedCatalogue(Release.QNX_7)  # own: other tests read listings that add names
    assert book.find("MSG_SENDV/11") == book.find("MSG_SENDV")
    assert book.find("KER_CALL :MSG_SENDV/11") == book.find("KER_CALL/MSG_SENDV")
    assert book.kernel_call_number("MSG_SENDV/11") == 11
    assert book.find("MSG_SENDV/12") == book.find("SND_MESSAGE/0") == ()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("msg_sendv", "MSG_SENDV"), ("Msg_Sendv", "MSG_SENDV"), ("msg_eror", "MSG_ERROR"), ("event 100", "EVENT 100"),
        ("MsgSendx()", "MSG_SENDV"), ("EVENT 2000", ""), ("send message", "SND_MESSAGE"),
    ],
)  # fmt: skip
def test_a_claim_about_what_is_almost_a_name_does_not_hold(trace: OpenedTrace, name: str, meant: str) -> None:
    says = f"there is no event '{re.escape(name)}'.*{meant}.*write text == \"{re.escape(name)}\""
    with pytest.raises(UsageError, match=says):
        Kev(trace, {}, ClaimResults()).events(name)


def test_a_claim_about_another_text_counts_user_events(trace: OpenedTrace) -> None:
    assert Kev(trace, {}, ClaimResults()).if_known.events("brake released") == 0


def test_public_calls_choose_events_in_filters_rules_and_claims(trace: OpenedTrace) -> None:
    kev = Kev(trace, {}, ClaimResults())
    sends = select(trace, "event == MSG_SENDV")
    assert len(sends) == 5
    for shown in ("MsgSendv", "MsgSend", "MsgSendv()", "__KER_MSG_SENDV"):
        assert select(trace, f'event == "{shown}"').tolist() == sends.tolist()
        assert kev.rows(shown).tolist() == sends.tolist()
        assert kev.calls(shown).count == 2
        assert event_argument(shown.removesuffix("()"), ExternalClass.KERCALLENTER, trace.release) == 11
    rows = {list_row(trace, int(row), None)[7] for row in sends}
    assert rows == {"MSG_SENDV"}
    with pytest.raises(UsageError, match="there is no kernel call 'MsgSendw'; did you mean"):
        kev.calls("MsgSendw")


def test_threads_and_processes_go_by_every_name(trace: OpenedTrace) -> None:
    kev, threads = Kev(trace, {}, ClaimResults()), trace.threads
    assert trace.thread_name(threads.row(12, 1) or 0) == "dumper[12] 1 (writer)"
    for pid, tid in ((7, 1), (12, 1), (30, 2)):
        row = threads.row(pid, tid)
        assert row is not None
        shown = {*names_of_thread(trace, row), f"pid {pid} {tid}"} - {"dumper 1", "usr/bin/dumper 1"}
        for name in shown:
            assert thread_of(trace, name) == row, name
            assert kev.thread(name).rows == (row,), name
            assert kev.threads(name).rows == (row,), name
            assert np.flatnonzero(threads_named(trace, name)).tolist() == [row], name
        process = list_row(trace, int(np.flatnonzero(trace.events.thread == row)[0]), None)[4]
        assert select(trace, f'name == "{process}"').tolist() == select(trace, f"pid == {pid}").tolist(), process
        assert select(trace, f'name in ("{process}", "x")').tolist() == select(trace, f"pid == {pid}").tolist()
    assert {"dumper[12] 1", "pid 12 1", "writer", "12:1"} < set(names_of_thread(trace, threads.row(12, 1) or 0))
    assert kev.threads("usr/bin/dumper").rows == kev.threads("dumper").rows
    assert len(kev.threads("dumper").rows) == 2
    with pytest.raises(UsageError, match="'dumper 1' is the name of 2 threads"):
        thread_of(trace, "dumper 1")
    with pytest.raises(KevFailure, match="is it 'dumper"):
        kev.thread("dumpr[12] 1")


def test_states_kinds_and_interrupts(trace: OpenedTrace, capsys: pytest.CaptureFixture[str]) -> None:
    for state in STATES:
        for shown in (state.name, f"STATE_{state.name}", state.name.capitalize()):
            assert state_value(shown) == state.value, shown
    for kind, rule in rules().items():
        assert {kind_of(text) for text in (kind, rule.title, rule.title.upper(), kind.replace("-", "_"))} == {kind}
    with pytest.raises(UsageError, match="more than one kind"):
        kind_of("lock")
    kev = Kev(trace, {}, ClaimResults())
    for vector in (27, "27", "0x1b", "interrupt 0x1b", "Interrupt 0x1B"):
        assert kev.interrupts(vector).longest == 50
    assert main(["check", str(trace.path), "--kind", "Priority inversion"]) in (0, 1, 4)
    assert main(["check", str(trace.path), "--kind", "Priority invasion"]) == 2
    assert "priority-inversion" in capsys.readouterr().err

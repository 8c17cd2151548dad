"""Tables: values a reader can check, documented types, no copies, and sums that are those of the statistics."""

import json
import re
import struct
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import satview
from satview.base.errors import UsageError
from satview.base.shared_file import DamagedFileError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.layout import is_same_name
from satview.events.spec import Release
from satview.events.user_events import UserEvent, UserField
from satview.events.variants import sigevent_words, text_words
from satview.filters.derived_columns import event_contexts
from satview.filters.expressions.expression import Expression
from satview.formats.axis import Member, trace_on_axis
from satview.formats.user_event_file import read_user_events
from satview.linkage.chain import LinkKind, link_table
from satview.linkage.links import OPEN
from satview.opened import with_answers
from satview.store import arguments
from satview.store.arguments import describe_events, misfits
from satview.tables.schema import SCHEMAS, SqlKind
from satview.tables.table import BUILDERS, kinds
from tests.helpers.kev import START, TraceBuilder

USER_100 = wire.code(wire.WireClass.USER, 100)
HANDLER_EXIT = catalogue(Release.QNX_6).find("INT_HANDLER_EXIT")[0]
WORDS = (0, 1, 5, 1023, 0xFFFFFFFF, 0x30000001, 0x41424344, 0x0000C3A9, 0x80000000)


@pytest.fixture
def small(tmp_path):
    """One CPU: a call of nobody, server 1 runs to 500, pid 8 up to 800, then server 1 makes a call.

    The call of nobody comes first, so that the states are no opening dump.
    """
    builder = TraceBuilder().time_event(0).process_name(1, 7, "bin/server")
    builder.call(2, 5).state("RUNNING", 10, 7, 1).state("MUTEX", 500, 7, 1).state("RUNNING", 500, 8, 3)
    builder.state("READY", 800, 8, 3).state("RUNNING", 800, 7, 1).call(11, 1000, (3, 0x64636261))
    return with_answers(builder.exit(11, 5000, (0, 0)).event(wire.code(7, 0), 9000, (1, 8)).open(tmp_path))


def test_events(small):
    events = small.table("event")
    assert len(events) == 11
    assert events["event"].tolist() == list(range(11))
    assert events["time_ns"].tolist() == [0, 1, 5, 10, 500, 500, 800, 800, 1000, 5000, 9000]
    assert events["time_cycles"][3] == START + 10
    assert events["name"][[4, 8, 9, 10]].tolist() == ["THMUTEX", "MSG_SENDV", "MSG_SENDV", "SND_MESSAGE"]
    assert events["class"][[4, 8, 9, 10]].tolist() == ["THREAD", "KER_CALL", "KER_EXIT", "COMM"]


def test_states(small):
    table = small.table("state")
    label = small.table("thread")["label"]
    times = table["start_ns"], table["length_ns"]
    rows = zip(label[table["thread"]], table["state"], *times, table["event"], strict=True)
    assert list(rows) == [
        ("server 1", "UNKNOWN", 0, 10, -1), ("server 1", "RUNNING", 10, 490, 3), ("server 1", "MUTEX", 500, 300, 4),
        ("server 1", "RUNNING", 800, 8201, 7), ("pid 8 3", "UNKNOWN", 0, 500, -1), ("pid 8 3", "RUNNING", 500, 300, 5),
        ("pid 8 3", "READY", 800, 8201, 6),
    ]  # fmt: skip
    assert table["state_before"].tolist() == ["", "UNKNOWN", "RUNNING", "MUTEX", "", "UNKNOWN", "RUNNING"]
    assert table["is_cut"].tolist() == [True, False, False, True, True, False, True]


def test_rows_of_a_table_are_an_answer(small):
    longest = small.table("state").sorted_by("length").head(1)
    assert longest.records() == [{
        "thread": "server 1", "state": "RUNNING", "state_before": "MUTEX", "start_ns": 800, "end_ns": 9001,
        "length_ns": 8201, "event": 8, "is_cut": True,
    }]  # fmt: skip
    assert [longest.text(0, name) for name in ("thread", "length", "is_cut")] == ["server 1", "8.201 µs", "yes"]
    assert (longest.event(0), longest["length_ns"].tolist()) == (7, [8201])
    arguments = small.table("argument")
    named = arguments.rows(arguments["text"] == "bin/server").records()
    assert [(row["argument"], row["number"], row["text"]) for row in named] == [("name", None, "bin/server")]


def test_runs_and_calls(small):
    runs, calls = small.table("run"), small.table("call")
    assert list(zip(runs["start_ns"], runs["end_ns"], runs["event"], runs["is_switch"], strict=True)) == [
        (10, 500, 3, False), (500, 800, 5, True), (800, 9001, 7, True)]  # fmt: skip
    row = {name: column[1] for name, column in calls.numpy().items()}
    assert (row["name"], row["start_ns"], row["length_ns"], row["running_ns"]) == ("MSG_SENDV", 1000, 4000, 4000)
    assert (row["is_failed"], row["errno"], row["exit_event"]) == (False, -1, 9)


def test_what_is_not_known_is_null(small):
    sent = small.table("message")
    assert (sent["receive_event"][0], sent["service_ns"][0], sent["server_pid"][0]) == (-1, -1, 8)
    assert (sent["queued_ns"][0], sent["queued_known"][0]) == (1, "at least")  # sent by the last event
    found = sent.arrow().to_pylist()[0]
    assert (found["receive_event"], found["service_ns"], found["server_pid"]) == (None, None, 8)
    assert small.table("state").arrow()["state_before"].to_pylist()[:2] == [None, "UNKNOWN"]


def test_columns_of_the_trace_are_not_copied(small):
    events = small.table("event").arrow()
    for name in ("time_cycles", "cpu", "thread", "code"):
        [chunk] = events[name].chunks
        assert chunk.buffers()[1].address == getattr(small.events, name).ctypes.data, name
    [chunk] = events["name"].chunks
    assert chunk.indices.buffers()[1].address == small.events.code.ctypes.data
    assert np.shares_memory(small.table("state")["end_cycles"], small.table("state")["end_cycles"])


@pytest.mark.thorough
def test_every_table_is_as_documented(trace):
    assert set(BUILDERS) == {name for name, schema in SCHEMAS.items() if schema.answer is None and schema.timed is None}
    for name, schema in SCHEMAS.items():
        table = trace.table(name)
        arrow = table.arrow()
        assert arrow.column_names == list(table.columns)
        for column in schema.columns:
            values = table[column.name]
            assert values.shape == (len(table),), (name, column.name)
            types = ["object"] if column.kind is SqlKind.TEXT else column.kind.value.split(", ")
            assert values.dtype.name in types, (name, column.name)
            assert column.is_nullable or arrow[column.name].null_count == 0
            if column.is_nullable and column.kind is not SqlKind.TEXT and name != "argument":
                assert arrow[column.name].null_count == np.count_nonzero(values == -1), (name, column.name)
        assert len(table) == arrow.num_rows
        assert re.match(rf"<Table {schema.question.name} of [^<>\n]+: [0-9,]+ of [0-9,]+ rows>", repr(table))


def test_states_and_cpu_states_fill_the_trace(trace):
    states, window = trace.table("state"), trace.window
    totals = np.bincount(states["thread"], states["length_cycles"], len(trace.threads))
    assert (totals[1:] == window.length).all()
    cpus = trace.table("cpu_state")
    assert np.bincount(cpus["cpu"], cpus["length_cycles"]).tolist() == [window.length] * trace.cpu_count
    touch = cpus["cpu"][1:] == cpus["cpu"][:-1]
    assert (cpus["end_cycles"][:-1][touch] == cpus["start_cycles"][1:][touch]).all()


def test_rows_begin_with_the_events_they_name(trace):
    time = trace.events.time_cycles
    for name in ("state", "run", "call", "wait", "interrupt", "message", "pulse", "wake_up"):
        table = trace.table(name)
        start = "start_cycles" if "start_cycles" in table.columns else "time_cycles"
        known = table["event"] >= 0
        assert (time[table["event"][known]] == table[start][known]).all(), name
        if name != "state" or trace.format != "kev":  # a record of a thread trace reports other threads too
            continue
        owner = trace.events.thread[table["event"][known]]
        assert (owner == table["thread"][known]).all()


def test_wake_ups_are_links(trace):
    table, links = trace.table("wake_up"), link_table(trace, LinkKind.WAKE_UP)
    assert table["cause_event"].tolist() == links.from_row.tolist()
    assert (links.to_row < OPEN).all()
    assert table["event"].tolist() == links.to_row.tolist()


def test_arguments_are_those_of_the_details(trace):
    """Every argument of every kind of event as decoding one event gives it, of three events of each kind."""
    checked = 0
    for code in np.flatnonzero(trace.code_counts).tolist():
        spec = trace.catalogue.spec(code)
        name = f"{spec.class_name}/{spec.name}"
        if trace.format != "kev" or spec.class_name == "USREVENT" or not trace.catalogue.find(name):
            continue
        table = trace.arguments(name)
        for position in {0, len(table) // 2, len(table) - 1}:
            decoded = trace.payloads.decode(int(table["event"][position]))
            for argument in decoded.arguments:
                if decoded.form == "raw" or isinstance(argument.value, bytes) or argument.name.startswith("word "):
                    continue
                column = _column_of(table, argument.name)
                assert table.known(column)[position], (spec.name, argument.name)
                value = table[column][position]
                is_number = isinstance(argument.value, int)  # above 2^63 the same bits are a negative number
                same = (int(value) - argument.value) % (1 << 64) == 0 if is_number else value == argument.value
                assert same, (spec.name, argument.name)
                checked += 1
    assert checked > 20 or trace.format != "kev"


def _column_of(table, name):
    own = {"event", "time_cycles", "time_ns", "cpu", "thread"}
    spelt = {column: column.removeprefix("arg_") if column.removeprefix("arg_") in own else column
             for column in table.columns[len(own):]}  # fmt: skip
    return next(column for column, spelling in spelt.items() if is_same_name(spelling, name))


def test_arguments_by_name(small):
    sent = small.arguments("msg_sendv")
    assert sent.columns[:6] == ("event", "time_cycles", "time_ns", "cpu", "thread", "coid")
    assert (len(sent), sent["coid"].tolist(), sent["time_ns"].tolist()) == (1, [3], [1000])
    created = small.arguments("PROCCREATE_NAME")
    assert (created["name"].tolist(), created["pid"].tolist()) == (["bin/server"], [7])
    assert created.arrow().to_pylist()[0]["name"] == "bin/server"
    assert "bin/server" in created._repr_html_()
    assert len(small.arguments("KER_EXIT/MSG_SENDV")) == 1
    with pytest.raises(UsageError, match="MSG_SENDV"):
        small.arguments("MSG_SENDW")
    with pytest.raises(UsageError, match="coid"):
        sent["coyd"]


@pytest.fixture(params=["little", "big"])
def told(request, tmp_path):
    """User events of 2 words, of 3 and with a text of 2,000 bytes; a send with words too many; a call that failed."""
    builder = TraceBuilder("6.4.1", request.param).time_event(0).event(USER_100, 10, (5, 0xFFFFFFFF))
    builder.event(USER_100, 20, (1, 2, 3)).event(USER_100, 30, text_words(b"x" * 2000, request.param))
    builder.call(11, 40, (3, 1, 2, 4, 5, 6, 7)).exit(11, 50, (0xFFFFFFFF, 4))
    builder.event(HANDLER_EXIT, 60, (9, *sigevent_words(4, 77, 8, -3, 21, request.param)))
    return with_answers(builder.open(tmp_path))


def test_user_data_and_what_no_list_describes(told):
    user = told.arguments("EVENT 100")
    assert user.columns[5:] == ("d0", "d1", "d2", "d3", "text")
    assert [user[name].tolist() for name in ("d0", "d1", "d2")] == [[5, 1, 0], [0xFFFFFFFF, 2, 0], [0, 3, 0]]
    assert user.known("d0").tolist() == [True, True, False]
    assert user.known("d2").tolist() == [False, True, False]
    assert user["text"].tolist() == ["", "", "x" * 2000]
    assert told.arguments("user_100").columns == user.columns
    sent = told.arguments("MSG_SENDV")
    assert (sent["coid"].tolist(), sent["word 6"].tolist()) == ([3], [7])
    assert sent["word 7"].tolist() == [0]
    failed = told.arguments("exit_msg_sendv")
    assert (failed["ret_val"].tolist(), failed["errno"].tolist(), failed.known("status").tolist()) == (
        [-1],
        [4],
        [False],
    )
    left = told.arguments("INT_HANDLER_EXIT")
    members = ("notify", "number", "value", "code", "priority")
    assert [left[f"sigevent.{name}"].tolist() for name in members] == [[4], [77], [8], [-3], [21]]


@pytest.mark.parametrize(
    ("expression", "times_ns"),
    [("arg.d0 == 5", [10]), ("arg.d2 == 3", [20]), ('arg.text ~ "xxx*"', [30]), ('arg."word 6" == 7', [40]),
     ("arg.sigevent.code == -3", [60]), ("arg.sigevent.priority == 21 and arg.interrupt_number == 9", [60])],
)  # fmt: skip
def test_filters_know_the_same_arguments(told, expression, times_ns):
    rows = told.select(expression)
    assert told.clock.ns_array(told.events.time_cycles[rows]).tolist() == times_ns
    condition, every = Expression(expression, told.release), np.arange(len(told.events))
    assert [at for at, event in enumerate(event_contexts(told, every)) if condition(event)] == rows.tolist()


def test_one_argument_a_row(told):
    found = told.sql("select kind, argument, number, text from argument where time_ns between 10 and 60")
    rows = [(*row[:3], len(row[3])) if row[3] else row[:3] for row in found.rows()]
    assert rows == [
        ("user_100", "d0", 5), ("user_100", "d1", 0xFFFFFFFF),
        ("user_100", "d0", 1), ("user_100", "d1", 2), ("user_100", "d2", 3), ("user_100", "d3", 0),
        ("user_100", "text", None, 2000),
        ("call_msg_sendv", "coid", 3), ("call_msg_sendv", "sparts", 1), ("call_msg_sendv", "rparts", 2),
        ("call_msg_sendv", "msg", 4), ("call_msg_sendv", "msg[1]", 5), ("call_msg_sendv", "msg[2]", 6),
        ("call_msg_sendv", "word 6", 7), ("call_msg_sendv", "word 7", 0),
        ("exit_msg_sendv", "ret_val", -1), ("exit_msg_sendv", "errno", 4),
        ("int_handler_exit_int_handler_exit", "interrupt_number", 9),
        ("int_handler_exit_int_handler_exit", "sigevent.notify", 4),
        ("int_handler_exit_int_handler_exit", "sigevent.number", 77),
        ("int_handler_exit_int_handler_exit", "sigevent.value", 8),
        ("int_handler_exit_int_handler_exit", "sigevent.code", -3),
        ("int_handler_exit_int_handler_exit", "sigevent.priority", 21),
    ]  # fmt: skip


@pytest.mark.thorough
def test_tables_of_kinds_in_sql(told):
    assert told.sql("select time_ns, d0, d2, length(text) from user_100").rows() == [
        (10, 5, None, None), (20, 1, 3, None), (30, None, None, 2000)
    ]  # fmt: skip
    assert [row[0] for row in told.sql("describe call_msg_receivev").rows()][5:] == ["chid", "rparts"]
    assert told.sql("select count(*) from call_msg_receivev").rows() == [(0,)]
    assert [row[0] for row in told.sql("describe user_7").rows()][5:] == ["d0", "d1", "text"]
    listed = {name: says for name, _, says in told.sql("show tables").rows()}
    assert listed["user_100"] == "3 events USREVENT EVENT 100, arguments as columns"
    assert "user_7" not in listed
    with pytest.raises(UsageError, match=r"'call_msg_sendw' does not exist; is call_msg_sendv or .* meant"):
        told.sql("describe call_msg_sendw")


def test_words_beyond_the_columns_are_one_text(tmp_path):
    trace = with_answers(TraceBuilder().time_event(0).event(USER_100, 10, range(40)).open(tmp_path))
    found = trace.arguments("EVENT 100")
    assert found.columns[-3:] == ("d31", "more_words", "text")
    assert (found["d31"].tolist(), found["more_words"][0].split()[-1]) == ([31], "0x00000027")
    assert trace.sql("select max(argument), sum(number) from argument where kind = 'user_100'").rows() == [("d9", 780)]


DESCRIBED = """<eventdefinitions>
  <datakey format="%1ux first %2sd middle %8ux last %1s0 who"><event class="6" id="100" name="frame"/></datakey>
  <datakey format="%4ux extra" offset="0" wide_offset="8"><event class="2" id="11"/></datakey>
</eventdefinitions>"""


@pytest.mark.parametrize("order", ["little", "big"])
def test_described_fields_are_arguments(tmp_path, order):
    """Fields at any byte, of any class; the raw words stay, and an event that is too short has what it has room for."""
    prefix = {"little": "<", "big": ">"}[order]
    payload = struct.pack(f"{prefix}BhQ", 9, -2, 0x7FFFFFFF12345678) + b"me\0"
    words = np.frombuffer(payload + bytes(-len(payload) % 8), f"{prefix}u4").tolist()
    builder = TraceBuilder(byte_order=order).time_event(0).event(USER_100, 10, words).event(USER_100, 20, words[:2])
    trace = with_answers(builder.call(11, 30, (3, 1, 2, 4, 5, 6)).call(11, 40, (3, 4)).open(tmp_path))
    before = trace.sql("select * from user_100").columns
    path = tmp_path / "events.xml"
    path.write_text(DESCRIBED)
    found = read_user_events(path)
    describe_events(trace, found.events)
    user = trace.arguments("EVENT 100")
    assert user["first"].tolist() == [9, 9]
    assert user["middle"].tolist() == [-2, -2]
    assert (user["last"].tolist(), user.known("last").tolist()) == ([0x7FFFFFFF12345678, 0], [True, False])
    assert (user["who"].tolist(), user.known("who").tolist()) == (["me", ""], [True, False])
    assert user["d0"].tolist() == [words[0], words[0]]
    sent = trace.arguments("MSG_SENDV")
    assert (sent["extra"].tolist(), sent["coid"].tolist()) == ([2, 3], [3, 3]), "wide and fast events"
    assert trace.sql("select first, middle, last, who from user_100 where who is not null").rows() == [
        (9, -2, 0x7FFFFFFF12345678, "me")
    ]  # fmt: skip
    for expression, times in (
        ("arg.first == 9", [10, 20]), ("arg.middle == -2 and arg.last > 5", [10]), ('arg.who == "me"', [10]),
        ("arg.extra == 2", [30]),
    ):  # fmt: skip
        assert trace.clock.ns_array(trace.events.time_cycles[trace.select(expression)]).tolist() == times, expression
    details = trace.payloads.decode(int(user["event"][0])).arguments
    assert [(each.name, each.text) for each in details[:4]] == [
        ("first", "0x9"), ("middle", "-2"), ("last", "0x7fffffff12345678"), ("who", "me")
    ]  # fmt: skip
    assert misfits(trace) == ["USREVENT EVENT 100: 1 of 2 events end before 'last'"]
    describe_events(trace, {})
    assert trace.sql("select * from user_100").columns[:7] == before[:7]
    assert trace.sql("select count(*) from user_100 where d0 is null").rows() == [(0,)]


@pytest.mark.parametrize("words_at_once", [1 << 20, 8])
def test_texts_that_nearly_all_differ(words_at_once, tmp_path, monkeypatch):
    """Texts of one block of events are not looked for in the next one; rows, groups and categories are right."""
    monkeypatch.setattr(arguments, "EVENTS_AT_ONCE", 4)
    monkeypatch.setattr(arguments, "_FEW_TEXTS", 0)
    monkeypatch.setattr(arguments, "_TEXT_BLOCK", words_at_once)
    builder = TraceBuilder().time_event(0)
    texts = [f"request {number % 6} \N{GREEK SMALL LETTER ALPHA}" for number in range(10)]
    for time, text in enumerate(texts, 1):
        builder.event(USER_100, time, text_words(text.encode(), "little"))
    trace = with_answers(builder.event(USER_100, 90, (1, 2)).open(tmp_path))
    table = trace.arguments("EVENT 100")
    assert table["text"].tolist() == [*texts, ""]
    assert table.known("text").tolist() == [True] * 10 + [False]
    assert table.arrow()["text"].to_pylist() == [*texts, None]
    assert table.to_pandas()["text"].value_counts().to_dict() == {"": 0, **Counter(texts)}
    rows = trace.sql("select text, count(*) from user_100 where text is not null group by text order by text").rows()
    assert rows == sorted(Counter(texts).items())


def test_names_belong_to_the_trace_that_taught_them(tmp_path):
    """One trace has a description, a listing a line with an argument more; a third one of the release has neither."""
    plain = TraceBuilder().time_event(0).event(USER_100, 10, (1, 2)).event(wire.code(7, 1), 20, (1, 2)).open(tmp_path)
    described = with_answers(TraceBuilder().time_event(0).event(USER_100, 10, (1, 2)).open(tmp_path))
    describe_events(described, {USER_100: UserEvent(100, "", (UserField("depth", 4),))})
    path = tmp_path / "listing.txt"
    path.write_text(" -- HEADER FILE INFORMATION -- \n     TRACE_SYS_RELEASE:: 7.1.0\n -- KERNEL EVENTS -- \n"
                    "t:7 CPU:0 COMM            :SND_PULSE_EXE      scoid:1 pid:2 zebra:3\n")  # fmt: skip
    listed = satview.open_trace(path)
    assert (described.release, listed.release) == (plain.release, plain.release)
    assert described.arguments("user_100").columns[5:] == ("depth", "d0", "d1", "text")
    assert listed.arguments("SND_PULSE_EXE")["zebra"].tolist() == [3]
    third = with_answers(plain)
    assert third.arguments("user_100").columns[5:] == ("d0", "d1", "text")
    assert third.arguments("SND_PULSE_EXE").columns[5:] == ("scoid", "pid")
    assert [row[0] for row in third.sql("describe user_100").rows()][5:] == ["d0", "d1", "text"]
    for name in ("depth", "zebra"):
        with pytest.raises(UsageError, match=f"no event has an argument '{name}'"):
            third.select(f"arg.{name} == 3")


def test_names_of_fields_that_are_taken(tmp_path):
    trace = with_answers(TraceBuilder().time_event(0).event(USER_100, 10, (1, 2, 3, 4)).open(tmp_path))
    fields = (UserField("d0", 4), UserField("cpu", 4), UserField("CPU", 4), UserField("", 2, count=2))
    describe_events(trace, {USER_100: UserEvent(100, "", fields)})
    found = trace.arguments("EVENT 100")
    values = {name: found[name].tolist() for name in found.columns[5:] if found.known(name).all()}
    assert values == {"d0_2": [1], "arg_cpu": [2], "arg_CPU_2": [3], "field 3[0]": [4], "field 3[1]": [0],
                      "d0": [1], "d1": [2], "d2": [3], "d3": [4]}  # fmt: skip
    assert trace.sql('select d0_2, arg_cpu, "arg_CPU_2" from user_100').rows() == [(1, 2, 3)]


@pytest.mark.thorough
@given(
    kind=st.sampled_from(sorted(catalogue(Release.QNX_7).codes())),
    words=st.lists(st.sampled_from(WORDS), min_size=2, max_size=12),
)
@example(kind=USER_100, words=[0x61616161, 0x0A096161, 0x61])
@example(kind=USER_100, words=[0xC3A9, 0, 0])
@example(kind=USER_100, words=[0xC3, 0, 0])
def test_arguments_of_any_words_are_those_of_the_details(tmp_path_factory, kind, words):
    """All that one event's details show, whatever its words; messages and structures are several numbers here."""
    builder = TraceBuilder().time_event(0)
    trace = with_answers(builder.event(kind, 10, words).open(tmp_path_factory.mktemp("any")))
    row = len(trace.events) - 1
    if int(trace.events.code[row]) != kind:
        return  # the reader takes some events for its own ends
    spec = trace.spec(row)
    name = next(name for name, codes in kinds(trace).items() if kind in codes)
    table = trace.arguments(name)
    shown = [argument for argument in trace.payloads.decode(row).arguments if not isinstance(argument.value, bytes)]
    for argument in shown:
        if argument.name == "empty":
            continue
        column = _column_of(table, argument.name)
        assert table.known(column)[-1], (spec.name, argument.name)
        value = table[column][-1]
        same = (
            (int(value) - argument.value) % (1 << 64) == 0
            if isinstance(argument.value, int)
            else value == argument.value
        )
        assert same, (spec.name, argument.name)


@pytest.mark.thorough
def test_pandas_and_polars(small):
    runs = small.table("run")
    assert runs.to_pandas()["length_ns"].tolist() == [490, 300, 8201]
    assert runs.to_polars()["length_ns"].to_list() == [490, 300, 8201]
    assert small.arguments("MSG_SENDV").to_pandas()["coid"].tolist() == [3]
    for name in SCHEMAS:  # several codes and states have no name, and pandas requires every name once
        table = small.table(name)
        assert len(table.to_pandas()) == len(table), name
    states = small.table("state")
    assert states.to_pandas()["state"].tolist() == states.to_polars()["state"].to_list() == states["state"].tolist()
    assert small.arguments("MSG_SENDV").to_polars()["coid"].to_list() == [3]


@pytest.mark.parametrize(
    ("package", "install"), [("pyarrow", "pyarrow>=18"), ("pandas", "pandas>=2.2.3"), ("polars", "polars>=1.10")]
)
def test_a_missing_package_is_named(small, monkeypatch, package, install):
    monkeypatch.setitem(sys.modules, package, None)
    method = {"pyarrow": "arrow", "pandas": "to_pandas", "polars": "to_polars"}[package]
    with pytest.raises(UsageError, match=rf"{package}, .*: pip install '{re.escape(install)}'"):
        getattr(small.table("run"), method)()
    assert small.table("run").numpy()["length_ns"].tolist() == [490, 300, 8201], "numpy needs none"


def test_marks_are_read_each_time(small):
    assert len(small.table("mark")) == 0
    file = small.path.with_name(small.path.name + ".marks.json")
    marks = [{"start_cycles": START + 5, "end_cycles": START + 9, "text": "late"}, {"start_cycles": 3}, None,
             {"start_cycles": START - 5, "end_cycles": START, "text": "before the trace"}]  # fmt: skip
    file.write_text(json.dumps({"satview_marks": 1, "marks": marks}))
    table = small.table("mark")
    assert (table["start_ns"].tolist(), table["end_ns"].tolist(), table["text"].tolist()) == ([5], [9], ["late"])
    file.write_text("{")
    with pytest.raises(DamagedFileError, match="line 1"):
        small.table("mark")


def test_names_of_a_trace_are_text(tmp_path):
    name = "<img src=x>\x1b[2J"
    trace = with_answers(TraceBuilder().time_event(0).process_name(1, 7, name).open(tmp_path))
    html = trace.table("process")._repr_html_()
    assert "&lt;img src=x&gt;" in html
    assert "<img" not in html
    assert "\x1b" not in html
    assert "<img" not in trace.arguments("PROCCREATE_NAME")._repr_html_()
    assert "<img" not in trace._repr_html_()


def test_a_trace_shows_itself(small):
    assert repr(small) == "<OpenedTrace built.kev: 11 events in 9.000 \N{MICRO SIGN}s, 1 CPU, 7.x>"
    html = small._repr_html_()
    assert "built.kev" in html
    assert "server" in html


def test_unknown_names(small):
    with pytest.raises(UsageError, match=r"there is no table 'states'; is state or .* meant\? there are event"):
        small.table("states")
    with pytest.raises(UsageError, match=r"call_msg_sendv has .* one kind: trace.arguments\('call_msg_sendv'\)"):
        small.table("call_msg_sendv")
    with pytest.raises(UsageError, match="no column 'stat'; it has thread, state"):
        small.table("state")["stat"]


@pytest.mark.thorough
def test_an_empty_trace_has_empty_tables(tmp_path):
    trace = with_answers(TraceBuilder().open(tmp_path))
    for name in SCHEMAS:
        assert trace.table(name).arrow().num_rows == len(trace.table(name))
    assert len(trace.table("event")) == 0
    assert satview.__version__


def test_a_wait_that_does_not_end_lasts_until_its_file_does(tmp_path):
    """The thread of the host sleeps from 500 to the end of its file at 1,000; the file of the guest ends much later."""
    members = []
    for name, end in (("host", 1_000), ("guest", 90_000)):
        (tmp_path / name).mkdir()
        builder = TraceBuilder().state("RUNNING", 0, 2, 1).state("NANOSLEEP", 500, 2, 1).time_event(end)
        members.append(Member(name, builder.open(tmp_path / name)))
    waits = with_answers(trace_on_axis(tmp_path / "x.sataxis", members)).table("wait")
    assert waits["length_ns"].tolist() == [501, 89_501], "just after the last event, as in the file alone"
    assert waits["end_event"].tolist() == [-1, -1]


def test_what_cpus_did_is_that_of_their_files(tmp_path):
    """The CPU of the guest is busy for 800 of the 1,000 that its file has, from 5,000 on."""
    members = []
    for name, end in (("host", 90_000), ("guest", 999)):
        (tmp_path / name).mkdir()
        builder = TraceBuilder().state("RUNNING", 0, 2, 1).state("NANOSLEEP", 800, 2, 1).state("RUNNING", 800, 1, 1)
        members.append(Member(name, builder.time_event(end).open(tmp_path / name), 5 * 10**6 * (name == "guest")))
    found = with_answers(trace_on_axis(tmp_path / "x.sataxis", members))
    cpus = found.table("cpu_state")
    rows = zip(*(cpus[name].tolist() for name in ("cpu", "kind", "start_ns", "end_ns")), strict=True)
    assert [row for row in rows if row[0] == 1] == [(1, "thread", 5_000, 5_800), (1, "idle", 5_800, 6_000)]
    load = found.sql("select busy_percent, unknown_cycles from cpu_load")
    assert load.rows()[1] == (80.0, 0)

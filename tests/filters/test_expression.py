"""Expressions: what they mean, that the fast way and the slow way agree, and that no text can break the parser."""

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events.catalogue import catalogue
from satview.events.layout import argument_part
from satview.events.spec import Release
from satview.events.variants import EXITS, is_exit
from satview.events.wire import CODE_COUNT, WireClass, code
from satview.filters.derived_columns import TraceDerivedColumns, event_contexts
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.compiled import NUMBERS
from satview.filters.expressions.expression import Expression, number_of, validate
from satview.filters.expressions.reach import never_true
from tests.filters.made import (
    MSG_RECEIVEV,
    MSG_RECEIVEV_EXIT,
    MSG_SENDV,
    MSG_SENDV_EXIT,
    RELEASES,
    REPLY,
    RUNNING,
    SMSG,
    Maker,
    made,
    make_trace,
    random_trace,
)
from tests.helpers.extent import usually

USER = code(WireClass.USER, 17)


@pytest.fixture(scope="module")
def small():
    """Two threads, a slow and a quick call, a failed one, a long wait."""
    return made(
        [
            (10, 0, RUNNING, (7, 1, 21, 2)),
            (20, 0, MSG_SENDV, (3, 1, 4, 0x61626364, 0, 0)),
            (30, 0, REPLY, (7, 1, 21, 2)),
            (31, 0, RUNNING, (12, 1, 10, 2)),
            (40, 0, MSG_RECEIVEV, (5, 6)),
            (45, 0, MSG_RECEIVEV_EXIT, (0xFFFFFFFF, 260)),
            (50, 1, SMSG, (0x10001, 12)),
            (9030, 0, RUNNING, (7, 1, 22, 2)),
            (9040, 0, MSG_SENDV_EXIT, (0, 0)),
            (9050, 0, USER, (0x80000000, 9)),
            (9060, 0, MSG_SENDV, (1, 2)),
        ]
    )


def hits(trace, text):
    """Times (microseconds from the first event after the dump) at which an expression holds."""
    rows = np.flatnonzero(Expression(text, trace.release).mask(trace))
    begin = 19  # what Maker.start() took
    return [
        int(trace.events.time_cycles[row] - trace.events.time_cycles[0]) - begin
        for row in rows
        if trace.events.time_cycles[row] - trace.events.time_cycles[0] > begin
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pid == 7 and event == MSG_SENDV", [20, 9040, 9060]),
        ("event == MSG_SENDV and class == KER_CALL", [20, 9060]),
        ("event == MSG_SENDV and duration > 2ms", [20, 9040]),
        ("event == MSG_SENDV and duration == 9020us", [20, 9040]),
        ("event == MSG_SENDV and duration == 9 020 \u00b5s", [20, 9040]),
        ("event == MSG_SENDV and duration == 9\u202f020\u00a0US", [20, 9040]),
        ("event == MSG_SENDV and duration == 9.020 MS", [20, 9040]),
        ("event == MSG_SENDV and duration > .5ms", [20, 9040]),
        ("event == MSG_SENDV and duration > .5 ms and time < 100%", [20, 9040]),
        ("event == __KER_MSG_RECEIVEV and duration < 10us", [40, 45]),
        ("state == REPLY", [30]),
        ("state == STATE_REPLY and length > 5ms", [30]),
        ("state == THREPLY and length > 9001us", []),
        ('name ~ "devb-*" and class in (THREAD, COMM)', [10, 30, 9030]),
        ('name == "client" and class != THREAD', [40, 45]),
        ('name == "/usr/bin/client" and class != THREAD', [40, 45]),
        ("failed", [45]),
        ("errno == ETIMEDOUT", [45]),
        ("errno == 260 and not failed", []),
        ("errno != 260", []),
        ("class == KER_EXIT and not failed", [9040]),
        ("class == KERCALL and cpu == 0 and time < 1ms", [20, 40, 45]),
        ("arg.coid == 3", [20]),
        ("arg.rparts > 3", [20, 40]),
        ("word[2] == 4", [20]),
        ('word[0] & 0xff == 3 and event ~ "MSG_*"', [20]),
        ("signed(word[0]) < 0", [45, 9050]),
        ("bit(word[0], 31) == 1 and class == USREVENT", [9050]),
        ("number == 17 and class == USER", [9050]),
        ("priority == 22", [9030, 9040, 9050, 9060]),
        ("priority == 10", [31, 40, 45]),
        ("cpu in (1, 3)", [50]),
        ("cpu not in (0,)", [50]),
        ("event in (SND_MESSAGE, _NTO_TRACE_THREPLY)", [30, 50]),
        ("1 < cpu or cpu > 0", [50]),
        ("words == 6", [20]),
        ("pid * 2 - 14 == 0 and class == USREVENT", [9050]),
        ("max(word[0], 7) == 7 and min(word[1], 3) == 2 and event == MSG_SENDV", [9060]),
        ("word[0] / 0 == 0 or word[0] % 0 != 5", []),
        ("-word[0] == -5", [40]),
        ("abs(0 - word[0]) == 5 && !(pid == 7)", [40]),
        ("time >= 9.049ms and time < 9069us", [9030, 9040]),
        ("not failed", [9040]),
        ("failed is known", [45, 9040]),
        ("failed is not true and class == KERCALL", [20, 40, 9040, 9060]),
        ("(failed) is false", [9040]),
        ("not arg.coid == 3", [9060]),
        ("arg.coid not in (3, 4)", [9060]),
        ("arg.coid == 3 is not true and event == MSG_SENDV and class == KER_CALL", None),
        ("(arg.coid == 3) is not true and event == MSG_SENDV", [9040, 9060]),
        ("arg.coid is known", [20, 9060]),
        ("arg.coid is unknown and class == KERCALL", [40, 45, 9040]),
        ("not arg.coid is known and class == KERCALL", [40, 45, 9040]),
        ("state != REPLY", [10, 31, 9030]),
        ("state is known", [10, 30, 31, 9030]),
        ("state is unknown and pid == 12", [40, 45]),
        ("errno is unknown and class == KER_EXIT", [9040]),
        ("arg.sparts not in (1, arg.coid)", []),
        ("arg.sparts not in (2, arg.coid)", [20]),
        ("arg.rparts not in (4, arg.ret_val)", []),
        ("word[2] != 4 and event == MSG_SENDV", []),
        ("word[2] / 0 is unknown and word[2] is known and event == MSG_SENDV", [20]),
        ("duration is known and duration > 1ms is known", None),
        ('thread_name !~ "x*"', []),
        ("class is known and event is unknown", []),
    ],
)
def test_meaning(small, text, expected):
    if expected is None:
        with pytest.raises(ExpressionError):
            Expression(text, small.release)
    else:
        assert hits(small, text) == expected


def test_text_of_events():
    maker = Maker()
    begin = maker.start()
    maker.text_at(begin + 10, 0, USER, (), b"frame 17 drawn")
    maker.text_at(begin + 20, 0, USER, (), b"frame 18 lost")
    maker.at(begin + 30, 0, USER, 1, 2, 3, 4)
    maker.text_at(begin + 40, 0, code(WireClass.PR_TH, 320), (7, 2), b"Frames")
    trace = make_trace(maker)
    assert hits(trace, 'text ~ "frame*"') == [10, 20]
    assert hits(trace, "text ~ /^frame \\d+ lost$/") == [20]
    assert hits(trace, "text ~ /FRAME/i") == [10, 20, 40]
    assert hits(trace, 'arg.name == "Frames"') == [40]
    assert hits(trace, 'thread_name == "Frames"') == []
    assert hits(trace, 'text !~ "frame*"') == [40]
    assert hits(trace, "text is unknown and class == USER") == [30], "numbers are no text"
    assert hits(trace, "text is known") == [10, 20, 40]
    assert hits(trace, 'text not in ("Frames", "x")') == [10, 20]
    assert hits(trace, 'arg.name != "Frames"') == []
    assert hits(trace, "arg.name is known") == [40]
    rows = np.flatnonzero(Expression('thread_name ~ "F*"', trace.release).mask(trace))
    assert set(trace.events.thread[rows]) == {trace.threads.row(7, 2)}


@pytest.mark.thorough
def test_arguments_are_those_of_the_decoded_payload():
    """Where an expression looks for an argument is where the details of an event show it."""
    for release in RELEASES:
        trace = random_trace(5, 300, release, "big")
        for row in range(len(trace.events)):
            count = len(trace.payloads.words(row))
            payload = trace.payloads.decode(row)
            if payload.form in ("failed", "raw") or trace.spec(row).class_name == "USREVENT":
                continue
            for argument in payload.arguments:
                position = argument_part(release, int(trace.events.code[row]), count, argument.name)
                is_named = not argument.name.startswith("word ") and argument.name != "empty"
                if isinstance(argument.value, int) and position is not None and is_named:
                    assert (position.word, position.words) == (argument.first_word, argument.words), argument
                    value = next(iter(event_contexts(trace, np.array([row]))))
                    text = f'arg."{argument.name}" == {argument.value & (2**64 - 1)}'
                    names = [item.name for item in payload.arguments]
                    if names.index(argument.name) == names.index(argument.name, 0) and names.count(argument.name) == 1:
                        assert Expression(text, release)(value), (trace.spec(row).name, text)


@pytest.mark.parametrize(
    ("text", "message", "start", "end"),
    [
        ("", "empty", 0, 0),
        ("pid", "this is a number; an expression is a condition", 0, 3),
        ("pid == ", "ends too early", 7, 7),
        ("pidd == 7", "no field 'pidd'; did you mean pid", 0, 4),
        ("event == MSG_SENDVX", "no event 'MSG_SENDVX' in 6.x; did you mean MSG_SENDV", 9, 19),
        ("state == RUNING", "did you mean RUNNING", 9, 15),
        ("class == KERCAL", "did you mean KERCALL or KER_CALL", 9, 15),
        ("errno == ETIMEOUT", "did you mean ETIMEDOUT", 9, 17),
        ("arg.rpart > 1", "did you mean rparts", 0, 9),
        ("pid = 7 an tid == 1", "'an' does not fit; and, or, or the end is expected here; did you mean and", 8, 10),
        ("(pid == 7", "')' is missing for '(' at column 1", 9, 10),
        ("1 < pid < 3", "compare twice", 8, 9),
        ("pid == devb", 'write name == "devb"', 7, 11),
        ('name < "a"', "no order", 0, 10),
        ("name == 7", "text in quotes", 8, 9),
        ("event == 7", "the name of an event is needed here; number compares", 9, 10),
        ("event < MSG_SENDV", "equal to another or not", 0, 17),
        ("pid.real == 7", "a field has no parts", 3, 4),
        ("__import__(1) == 2", "no function", 0, 10),
        ("duration > 2minutes", "'minutes' is not a unit", 12, 19),
        ("duration > 1.5", "needs a unit", 11, 14),
        ("duration > .5", "needs a unit", 11, 13),
        ("pid == 1 200", "'200' does not fit", 9, 12),
        ("duration > 25%", "compare time with it", 11, 14),
        ("duration < #12", "compare time with it", 11, 14),
        ("word[x] == 1", "0 to 8191", 5, 6),
        ("name ~ devb", "a pattern follows ~", 7, 11),
        ("name ~ /(/", "missing ): (", 8, 9),
        ("pid == 7 ; tid == 2", "';' has no meaning", 9, 10),
        ("pid == 0xZ", "not a hexadecimal number", 7, 10),
        ("pid == 99999999999999999999", "64 bits", 7, 27),
        ("pid == 7 and tid", "this is a number", 13, 16),
        ('arg.rparts == "x"', "is a number", 0, 10),
        ("min(1) == 1", "min takes 2", 0, 6),
        ("pid is", "ends too early; known, unknown, true or false follows is", 6, 6),
        ("pid is knwon", "'knwon' does not fit; known, unknown, true or false follows is; did you mean known", 7, 12),
        ("pid is true", "this is a number; is true asks about a condition", 0, 3),
        ("(pid == 7) is known", "this is a condition; is known asks about a value", 1, 9),
        ("arg.rpart is known", "did you mean rparts", 0, 9),
        ("pid is known == 1", "compare twice", 13, 15),
        ("known == 1", "no field 'known'", 0, 5),
        ("is known", "a value is expected here", 0, 2),
    ],
)
def test_faults_name_their_position(text, message, start, end):
    fault = validate(text, Release.QNX_6)
    assert fault is not None
    assert message in fault.message
    assert (fault.start, fault.end) == (start, end)


def test_nothing_is_wrong_with_a_good_one():
    assert validate("pid == 7", Release.QNX_6) is None


def test_failed_calls_of_64_bit_processes():
    """-1 and an error number is a failure; -1 and anything larger is the low half of a result (section 8.3)."""
    wide_exit = code(WireClass.KER_CALL, 11 + 128) | 0x200
    minus = 0xFFFFFFFF
    trace = made(
        [
            (10, 0, RUNNING, (7, 1)),
            (20, 0, wide_exit, (minus, 1023)),
            (30, 0, wide_exit, (minus, 1024)),
            (40, 0, wide_exit, (minus, minus, 260, 0)),
            (50, 0, wide_exit, (minus, minus, 1024, 0)),
            (60, 0, MSG_SENDV_EXIT, (minus, 1024)),
        ],
        Release.QNX_7,
    )
    assert hits(trace, "failed") == [20, 40, 50, 60], "as the details of an event say; of 50 no error can be reported"
    assert hits(trace, "errno == ETIMEDOUT") == [40]


def test_limits():
    for text in (
        "(" * 41 + "pid == 1" + ")" * 41,
        "pid == " + "+".join("1" * 70),
        "pid == 1" + " or pid == 1" * 1000,
        "x" * 10_001,
        "abs(" * 45 + "1" + ")" * 45 + " == 1",
    ):
        with pytest.raises(ExpressionError):
            Expression(text, Release.QNX_6)
    assert Expression("pid == 1" + " or pid == 1" * 400, Release.QNX_6)
    assert Expression("not " * 1000 + "pid == 1", Release.QNX_6)


def test_expressions_of_another_release_are_refused(small):
    with pytest.raises(ExpressionError, match=r"written for 8\.0"):
        Expression("pid == 7", Release.QNX_8).mask(small)


# ---- properties --------------------------------------------------------------------------------------------------

_BOOK = catalogue(Release.QNX_6)
numbers = st.one_of(
    st.integers(0, 40), st.sampled_from([255, 260, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1])
).map(str)
fields = st.sampled_from(
    [
        "pid",
        "tid",
        "cpu",
        "word[0]",
        "word[1]",
        "word[4]",
        "arg.pid",
        "arg.coid",
        "arg.rparts",
        "arg.ret_val",
        "words",
        "number",
        "code",
        "priority",
        "duration",
        "length",
        "time",
        "errno",
        'arg."msg[0]"',
    ]
)
values = st.recursive(
    st.one_of(numbers, fields),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        inner.map("-{}".format),
        inner.map("signed({})".format),
        inner.map("abs({})".format),
        st.tuples(inner, inner).map(lambda t: f"bit({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
    ),
    max_leaves=4,
)
tests = st.one_of(
    st.tuples(values, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), values).map(" ".join),
    st.tuples(
        st.just("time"), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(0, 3000).map("{}ms".format)
    ).map(" ".join),
    st.tuples(values, st.lists(values, min_size=1, max_size=3).map(", ".join)).map(lambda t: f"{t[0]} in ({t[1]})"),
    st.sampled_from(["MSG_SENDV", "THRUNNING", "SND_MESSAGE", "TIME", "INTENTER"]).map("event == {}".format),
    st.sampled_from(["KER_CALL", "COMM", "THREAD", "INT", "PROCESS", "SYSTEM", "USREVENT"]).map("class != {}".format),
    st.sampled_from(["RUNNING", "REPLY", "READY"]).map("state == {}".format),
    st.sampled_from(["devb*", "*client", "nobody", "*"]).map('name ~ "{}"'.format),
    st.sampled_from(["hello", "film$", "w.rker", "o+", "[0-9]+"]).map("text ~ /{}/".format),
    st.sampled_from(["MSG_*", "TH*", "*MESSAGE"]).map('event ~ "{}"'.format),
    st.sampled_from(
        [
            "failed",
            'thread_name == "worker"',
            'name == "devb-eide"',
            'name in ("client", "x")',
            'class ~ "INT*"',
            'state ~ "RE*"',
            'arg.name == "worker"',
            "errno in (ETIMEDOUT, 4)",
            "failed is unknown",
            "state is known",
            "event is known",
            "name is unknown",
            "thread_name is not known",
            "text is known",
            "arg.name is unknown",
        ]
    ),
    values.map("{} is known".format),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda t: f"({t[0]} and {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]} or {t[1]})"),
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["true", "not true", "false", "not false"])).map(
            lambda t: f"({t[0]}) is {t[1]}"
        ),
    ),
    max_leaves=6,
)


@pytest.mark.thorough
@given(conditions, st.integers(0, 5), st.booleans())
def test_vectorised_is_one_by_one(text, seed, is_big):
    trace, derived, events = _prepared(seed, is_big)
    expression = Expression(text, trace.release)
    expected = [bool(expression(event)) for event in events]
    assert expression.mask(trace, None, derived).tolist() == expected, text
    rows = np.arange(len(events))[seed % 3 :: 3]
    assert expression.mask(trace, rows, derived).tolist() == expected[seed % 3 :: 3], text


number_tests = st.one_of(
    st.tuples(values, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), values).map(
        lambda t: (f"{t[0]} {t[1]} {t[2]}", (t[0], t[2]))
    ),
    st.sampled_from(
        [
            ("state == READY", ("state",)),
            ('state ~ "R*"', ("state",)),
            ("failed", ("failed",)),
            ("event == MSG_SENDV", ("event",)),
            ('name in ("client", "x")', ("name",)),
            ("text ~ /o+/", ("text",)),
            ('arg.name == "worker"', ("arg.name",)),
            ("cpu in (1, 2)", ("cpu",)),
            ("arg.coid in (1, 2)", ("arg.coid",)),
            ("pid is known", ()),
        ]
    ),
)
trees = st.recursive(
    number_tests, lambda inner: st.tuples(st.sampled_from(["and", "or", "not", "is true", "is false"]), inner, inner)
)


@pytest.mark.thorough
@given(trees, st.integers(0, 5))
def test_conditions_have_the_three_values_of_sql(tree, seed):
    """The oracle has a column that is true, false or unknown for each comparison, and joins them as SQL does."""
    trace, derived, _events = _prepared(seed, False)

    def holds(text):
        return Expression(text, trace.release).mask(trace, None, derived)

    def columns(tree):
        """Text, which are true, which are false."""
        if len(tree) == 2:
            text, values = tree
            true, known = (
                holds(text),
                np.logical_and.reduce([holds("1 == 1"), *(holds(f"{v} is known") for v in values)]),
            )
            assert not (true & ~known).any(), text
            return text, true, known & ~true
        joint, (text, true, false), (other_text, other_true, other_false) = tree[0], columns(tree[1]), columns(tree[2])
        if joint == "and":
            return f"({text}) and ({other_text})", true & other_true, false | other_false
        if joint == "or":
            return f"({text}) or ({other_text})", true | other_true, false & other_false
        if joint == "not":
            return f"not ({text})", false, true
        return f"({text}) {joint}", *((true, ~true) if joint == "is true" else (false, ~false))

    text, true, false = columns(tree)
    assert holds(text).tolist() == true.tolist(), text
    assert holds(f"not ({text})").tolist() == false.tolist(), text
    assert Expression(text, trace.release, negated=True).mask(trace, None, derived).tolist() == false.tolist(), text


_KEPT = {}


def _prepared(seed, is_big):
    key = seed, is_big
    if key not in _KEPT:
        trace = random_trace(seed, 150, Release.QNX_6, "big" if is_big else "little")
        derived = TraceDerivedColumns(trace)
        _KEPT[key] = trace, derived, list(event_contexts(trace, np.arange(len(trace.events)), derived))
    return _KEPT[key]


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from(
                [
                    "pid",
                    "==",
                    "7",
                    "and",
                    "or",
                    "not",
                    "in",
                    "(",
                    ")",
                    "[",
                    "]",
                    ",",
                    "~",
                    "!~",
                    "/",
                    '"',
                    "'",
                    "arg.",
                    "word",
                    "event",
                    "MSG_SENDV",
                    "2ms",
                    "1.",
                    ".",
                    "->",
                    "\\",
                    "*",
                    "-",
                    "0x",
                    "name",
                    "\x00",
                    "\N{MICRO SIGN}s",
                    "text",
                    "min(",
                    "/a*/i",
                    "<<",
                ]
            ),
            max_size=25,
        ).map(" ".join),
    )
)
def test_any_text_gives_an_expression_or_a_fault_within_it(text):
    fault = validate(text, Release.QNX_6)
    assert fault is None or (fault.message and 0 <= fault.start <= fault.end <= len(text) + 1)


def test_large_texts_are_refused_at_once():
    start_s = time.thread_time()  # a busy machine takes longer, but not more of this
    for text in ("(" * 1_000_000, "not " * 1_000_000, "a" * 10_000_000, "'" * 9_999, "1+" * 4_900 + "1", "[" * 9_999):
        with pytest.raises(ExpressionError):
            Expression(text, Release.QNX_6)
    assert time.thread_time() - start_s < 3


def test_tables_of_codes_are_those_of_single_codes():
    codes = range(CODE_COUNT)
    assert EXITS.tolist() == [is_exit(code) for code in codes]
    assert NUMBERS.tolist() == [number_of(code) for code in codes]


def test_what_is_refused_as_never_true_holds_for_no_event():
    atoms = ["cpu == 0", "cpu == 1", "cpu > 0", "pid == 7", "pid < 3", "class == COMM", "class == THREAD", "1 < cpu",
             "event == MSG_SENDV", "state == READY", "duration > 1us", "duration < 2us", "failed", "tid in (1, 2)",
             "arg.coid == 1", "priority > 5", 'class ~ "KER*"', "arg.coid is unknown", "failed is known",
             "state is unknown", "errno != 4", "pid is unknown"]  # fmt: skip
    numbers, trace, refused = random.Random(4), random_trace(1, 800), 0

    def condition(depth):
        if not depth:
            return numbers.choice(atoms)
        word = numbers.choice(("and", "and", "or", "not"))
        if word == "not":
            return f"not ({condition(depth - 1)})"
        return f"({condition(depth - 1)}) {word} ({condition(depth - 1)})"

    for _ in range(usually(60, thorough=500, complete=5000)):
        expression = Expression(condition(numbers.choice((1, 2, 3))), trace.release)
        if never_true(expression.tree, trace.release) is not None:
            refused += 1
            assert not expression.mask(trace).any(), expression.text
    assert refused > 5

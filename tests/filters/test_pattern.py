"""Patterns: they mean what they mean in `re` and `fnmatch`, and cost what their length allows."""

import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events.spec import Release
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.nodes import glob, regex
from satview.filters.rules.building import build
from satview.filters.rules.text import check_rules, parse_rules

atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "\\S", "(?:ab)", "x-", "\\.", "[a-c]"])


def _joined(parts):
    return st.lists(parts, max_size=4).map("".join)


patterns = st.recursive(
    st.tuples(atoms, st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{2,}"])).map("".join),
    lambda inner: st.one_of(
        _joined(inner), st.tuples(inner, inner).map("|".join), inner.map("({})".format), inner.map("({})*".format)
    ),
    max_leaves=8,
)
anchored = st.tuples(st.sampled_from(["", "^"]), patterns, st.sampled_from(["", "$"])).map("".join)
texts = st.text("abAB.x-1\n ", max_size=6)  # re backtracks: nested repetitions of longer ones take it minutes


@given(anchored, texts, st.booleans())
def test_regex_is_that_of_re(pattern, text, ignores_case):
    # re lets $ are before a last line feed; here it is the end.
    flags = re.IGNORECASE if ignores_case else 0
    expected = re.search(re.sub(r"\$$", r"\\Z", pattern), text, flags) is not None
    assert regex(pattern, ignores_case).matches(text) == expected


@given(st.text("ab*?[]-", max_size=8), st.text("ab[]-", max_size=8))
def test_glob_is_that_of_fnmatch(pattern, text):
    if "[" in pattern:
        return  # fnmatch negates sets with !, and has rules of its own for empty ranges
    assert glob(pattern).matches(text) == (re.match(fnmatch.translate(pattern), text) is not None)


def test_glob_has_to_fit_the_whole_text():
    assert glob("devb-*").matches("devb-eide")
    assert not glob("devb-*").matches("/sbin/devb-eide")
    assert glob("dev[bc]-?ide").matches("devc-eide")
    assert glob("a[b").matches("a[b")


def test_case_is_ignored_on_request():
    assert regex("RÉPLY", ignores_case=True).matches("no réply")
    assert not regex("REPLY").matches("reply")
    assert regex("k", ignores_case=True).matches("\u212a"), "the Kelvin sign is a capital k"
    assert not regex("^[^a]$", ignores_case=True).matches("A"), "neither letter of what a set leaves out"


def test_a_text_may_hold_what_no_file_can():
    assert regex("^.a$").matches("\ud800a"), "half a surrogate pair"
    assert regex("a\0b").matches("a\0b")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a",
        "a)",
        "[a",
        "*a",
        "a**",
        "a{5,2}",
        "a{1001}",
        "\\1",
        "(?=a)",
        "[z-a]",
        "((a{100}){100}){100}",
        "a" * 501,
        "(?:(?:\\pL{10}){10}){2}",
    ],
)
def test_what_is_not_available_is_refused(pattern):
    with pytest.raises(ExpressionError):
        regex(pattern)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+$", "a*a*a*a*a*a*a*b", "(.*)(.*)(.*)(.*)(.*)x"])
def test_patterns_that_keep_re_busy_for_years_take_no_time(pattern):
    begin = time.perf_counter()
    for _ in range(20):
        regex(pattern).matches("a" * 4000 + "c")
    assert time.perf_counter() - begin < 1.0


def test_the_budget_stops_what_is_costly_even_so(monkeypatch):
    monkeypatch.setattr("satview.filters.expressions.nodes.STEP_BUDGET", 100_000_000)
    pattern = regex("(a|b)*a(a|b){90}c")
    text = "".join("ab"[(i * i // 7) % 2] for i in range(4000))
    with pytest.raises(ExpressionError, match="takes too long"):
        any(pattern.matches(text[i:] + str(i)) for i in range(1000))


@given(st.text("ab()[]{}*+?|^$\\.,-0123d", max_size=30), texts)
def test_any_pattern_compiles_or_is_refused(pattern, text):
    try:
        compiled = regex(pattern)
    except ExpressionError:
        return
    assert compiled.matches(text) in (True, False)


def test_patterns_that_are_used_together_share_one_budget(monkeypatch):
    monkeypatch.setattr("satview.filters.expressions.nodes.STEP_BUDGET", 60_000)
    several = Expression(" or ".join(f"name ~ /{i}/" for i in range(30)), Release.QNX_7)
    assert [pattern.allowance for pattern in several.patterns] == [2_000] * 30
    rules = "".join(f"ADDEVENTHANDLER COMM {i} WHERE name ~ /{i}/\nWHERE name ~ /a/ or text ~ /b/\n" for i in range(10))
    built = build(parse_rules(rules, Release.QNX_7), Release.QNX_7)
    assert {pattern.allowance for item in built.conditions for pattern in item.patterns} == {2_000}


def test_how_many_there_may_be():
    Expression(" or ".join(["name ~ /a/"] * 40), Release.QNX_7)
    with pytest.raises(ExpressionError, match="may have 40 patterns"):
        Expression(" or ".join(["name ~ /a/"] * 41), Release.QNX_7)
    lines = "\n".join(["WHERE " + " or ".join(f"name ~ /{i}/" for i in range(40))] * 90)
    rules, faults = check_rules(lines, Release.QNX_7)
    assert (len(rules), faults[0].line, faults[0].message) == (5, 6, "more than 200 patterns; the rest was not read")

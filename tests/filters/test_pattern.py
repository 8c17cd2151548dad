"""Patterns: they mean what they mean in `re` and `fnmatch`, and cost what their length allows."""

import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events.spec import Release
from satview.export.c_conditions import Automaton
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.pattern import _LAST_LETTER, _LAST_OF_ASCII, _other_cases, glob, regex
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
texts = st.text("abAB.x-1\n ", max_size=12)


@given(anchored, texts, st.booleans())
def test_regex_is_that_of_re(pattern, text, ignores_case):
    # re lets $ are before a last line feed; here it is the end.
    flags = re.IGNORECASE if ignores_case else 0
    expected = re.search(re.sub(r"\$$", r"\\Z", pattern), text, flags) is not None
    assert regex(pattern, ignores_case).matches(text) == expected


def fits(automaton, text, is_whole):
    """Go through a text as the exported C program does: one set of states, one character after the other."""
    reads = {index: (ranges, after) for index, ranges, after in automaton.characters}
    states = automaton.closure([automaton.entry], at_start=True, at_end=not text)
    for i, char in enumerate(text):
        if 0 in states and not is_whole:
            return True
        after = [reads[s][1] for s in states if s in reads and any(a <= ord(char) <= b for a, b in reads[s][0])]
        after += [] if is_whole else [automaton.entry]
        states = automaton.closure(after, at_start=False, at_end=i == len(text) - 1)
    return 0 in states


@given(anchored, texts, st.booleans())
def test_the_automaton_of_exported_programs_says_what_views_say(pattern, text, ignores_case):
    compiled = regex(pattern, ignores_case)
    assert fits(Automaton(compiled.root), text, is_whole=False) == compiled.matches(text)


@given(st.text("ab*?[]-", max_size=8), st.text("ab[]-", max_size=8))
def test_the_automaton_of_a_glob_says_what_views_say(pattern, text):
    try:
        compiled = glob(pattern)
    except ExpressionError:
        return
    assert fits(Automaton(compiled.root), text, is_whole=True) == compiled.matches(text)


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


def test_letters_whose_other_case_is_in_ascii_are_found_by_the_short_table():
    full, short = _other_cases(_LAST_LETTER), _other_cases(_LAST_OF_ASCII)
    assert {number: full[number] for number in full if number < 0x80} == {
        number: short[number] for number in short if number < 0x80
    }
    beyond = range(_LAST_LETTER + 1, 0x110000)
    assert all(chr(n).lower() == chr(n) == chr(n).upper() for n in beyond)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a",
        "a)",
        "[a",
        "*a",
        "a**",
        "a{5,2}",
        "a{200}",
        "a{x}",
        "\\1",
        "\\b",
        "(?=a)",
        "[z-a]",
        "((a{100}){100}){100}",
        "(" * 30 + ")" * 30,
        "a" * 501,
        "a*?",
        "^*",
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
    monkeypatch.setattr("satview.filters.expressions.pattern.STEP_BUDGET", 100_000_000)
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
    monkeypatch.setattr("satview.filters.expressions.pattern.STEP_BUDGET", 60_000)
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

"""Patterns for fnmatch() and regcomp(): as the C library reads them, they mean what views mean, or are refused."""

import ctypes
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.export.c_conditions import NotInPosixError, posix_pattern
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.nodes import glob, regex

FNM_NOESCAPE = 2
REG_EXTENDED, REG_ICASE, REG_NOSUB = 1, 2, 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+b|c{2,3}", "a+b|c{2,3}"),
        (r"^frame \d+ lost$", "^frame [0-9]+ lost$"),
        (r"\Aa.c\z", "^a[^\n]c$"),
        (r"(?:dev|io)-(\w)", "(dev|io)-([0-9A-Z_a-z])"),
        (r"\[\.{2}\^{", "[[][.]{2}\\^[{]"),
        (r"[^a\]-]", "[^]a-]"),
        (r"[\^!-]", "[!^-]"),
        (r"[\^-]", "[-^]"),
        (r"[\x00-\x{10ffff}]", "."),
    ],
)
def test_regular_expressions_that_posix_has(text, expected):
    assert posix_pattern(regex(text), is_in_handler=False) == expected


def test_case_is_ignored_by_a_flag_so_one_letter_is_enough():
    assert posix_pattern(regex("MSG_[ab]", ignores_case=True), is_in_handler=False) == "msg_[ab]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("devb-*", "devb-*"),
        ("a?[^bc]", "a?[!bc]"),
        ("[!a]", "[a!]"),
        ("[!^-]", "[-^!]"),
        ("a[b***", "a[[]b*"),
        (r"a\*", r"a\*"),
    ],
)
def test_globs_that_posix_has(text, expected):
    assert posix_pattern(glob(text), is_in_handler=True) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (r"\bx", r"POSIX has no \b"),
        (r"\pL", r"POSIX has no \p"),
        ("(?i)a", "POSIX has no (?i)"),
        ("(?P<n>a)", "POSIX has no (?P<"),
        ("a+?", "POSIX has no ? after a repetition or an anchor"),
        ("^*", "POSIX has no * after a repetition or an anchor"),
        ("a||b", "POSIX has no empty alternative"),
        ("()", "POSIX has no empty alternative"),
        ("a{2,300}", "POSIX repeats 255 times at most"),
        ("caf\u00e9", "the target compares bytes, and U+00E9 is none of ASCII"),
        ("[a\u00e9]", "the target compares bytes, and [a\u00e9] fits some characters beyond ASCII"),
        ("[^\u00e9]", "the target compares bytes, and [^\u00e9] fits some characters beyond ASCII"),
        ("a\0", "the target compares bytes, and U+0000 is none of ASCII"),
        (r"[^\x00-\x{10ffff}]", r"no character fits [^\x00-\x{10ffff}]"),
    ],
)
def test_regular_expressions_that_posix_has_not(text, reason):
    with pytest.raises(NotInPosixError) as refusal:
        posix_pattern(regex(text), is_in_handler=False)
    assert str(refusal.value).startswith(reason)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (regex("a"), "an event handler must not call regexec()"),
        (glob("*a*b*c*"), "a glob with more than 3 * may take too long in an event handler"),
    ],
)
def test_what_takes_too_much_is_not_done_in_the_kernel(pattern, reason):
    assert posix_pattern(pattern, is_in_handler=False) == pattern.text
    with pytest.raises(NotInPosixError) as refusal:
        posix_pattern(pattern, is_in_handler=True)
    assert str(refusal.value).startswith(reason)


def test_a_glob_has_no_set_of_the_two_signs_that_negate():
    with pytest.raises(NotInPosixError, match="no set of ! and"):
        posix_pattern(glob("[!^]"), is_in_handler=False)


def plain(text, ignores_case):
    """Return the bytes that an exported program hands to the C library."""
    letters = {"\u017f": "s", "\u212a": "k"} if ignores_case else {}
    return "".join(letters.get(char, min("\x7f", char)) for char in text).encode("ascii")


def fits_regex(source, text, ignores_case):
    """Return what regexec() says; the room for a regex_t is more than any system needs."""
    library, compiled = ctypes.CDLL(None), ctypes.create_string_buffer(1024)
    flags = REG_EXTENDED | REG_NOSUB | (REG_ICASE if ignores_case else 0)
    assert library.regcomp(compiled, source.encode("ascii"), flags) == 0
    answer = library.regexec(compiled, plain(text, ignores_case), 0, None, 0)
    library.regfree(compiled)
    return answer == 0


units = st.sampled_from([*"ak.-]!^\n\u00e9", "[ab]", "[^ak]", "[]^!-]", "[!^]", "\\w", "\\S", "\\D", "\\.", "{"])
sequences = st.recursive(
    st.tuples(units, st.sampled_from(["", "", "*", "+", "?", "{2}", "{0,2}", "{1,}"])).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map("({})".format),
        inner.map("(?:{})*".format),
    ),
    max_leaves=6,
)
texts = st.text("akKSs.-]!^{\n \u00e9\u017f\u212a\u4e2d", max_size=8)
needs_glibc = pytest.mark.skipif(sys.platform != "linux", reason="the flags are those of glibc")


@needs_glibc
@given(st.tuples(st.sampled_from(["", "^"]), sequences, st.sampled_from(["", "$"])).map("".join), texts, st.booleans())
def test_regcomp_fits_what_views_fit(text, subject, ignores_case):
    try:
        pattern = regex(text, ignores_case)
        source = posix_pattern(pattern, is_in_handler=False)
    except (ExpressionError, NotInPosixError):
        return
    assert fits_regex(source, subject, ignores_case) == pattern.matches(subject)


@needs_glibc
@given(st.text("ak*?[]^!-\\", max_size=8), texts)
def test_fnmatch_fits_what_views_fit(text, subject):
    try:
        pattern = glob(text)
        source = posix_pattern(pattern, is_in_handler=False)
    except (ExpressionError, NotInPosixError):
        return
    answer = ctypes.CDLL(None).fnmatch(source.encode("ascii"), plain(subject, False), FNM_NOESCAPE)
    assert (answer == 0) == pattern.matches(subject)

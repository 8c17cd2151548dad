"""Nothing that strangers wrote becomes code in an exported program, which runs as root."""

import ast
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.export.c_conditions import comment, constants, literal
from satview.export.c_program import c_program, ordered, parts
from satview.filters.external import ExternalClass
from satview.filters.rules.building import build
from satview.filters.rules.text import Rule, parse_rules
from tests.export.c_target import Runner, compiled

QNX_6 = Release.QNX_6
C = ExternalClass
CLASSES = (C.KERCALLENTER, C.KERCALLEXIT, C.THREAD, C.PROCESS, C.COMM)
EVIL = (
    "*/ int evil(void) { return system(1); } /*",
    "*\\",
    "*\\\n/ int evil;",
    "*??/\n/ int evil;",
    "??/",
    "\\",
    "a\\\nint evil;",
    '"); evil("',
    "\0*/evil",
    "\r\n#include <evil.h>\n",
    "*\u2028/",
    "/*/",
    "**//**/evil/**",
    "\\u000a evil",
    "%s%n",
    '_Pragma("evil")',
    "'",
    "\ud800",
    "é*/",
    "*" * 99 + "/" + "evil",
    "?" * 7 + "/",
)
TRIGRAPHS = {"=": "#", "/": "\\", "'": "^", "(": "[", ")": "]", "!": "|", "<": "{", ">": "}", "-": "~"}
pieces = st.sampled_from([*"*/\\?\"'\n\r# \0\u00e9\u2028};%", "evil"])
texts = st.one_of(st.lists(pieces, max_size=12).map("".join), st.text(max_size=40))


def code_of(source):
    """Return C as a compiler sees it after its first phases: comments as blanks, strings as `""`.

    Fails where a comment or a string is not closed, and where it has a trigraph or continues a line.
    """
    assert source.isascii()
    source = re.sub(r"\?\?([=/'()!<>-])", lambda found: TRIGRAPHS[found.group(1)], source).replace("\\\n", "")
    found = re.sub(
        r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'',
        lambda part: " " if part.group().startswith("/*") else '""',
        source,
        flags=re.DOTALL,
    )
    assert not re.search(r'/\*|\*/|"[^"]|\'', found.replace('""', "")), "something is not closed"
    return found


def words_of(source):
    return set(re.findall(r"\b[A-Za-z_]\w*", code_of(source)))


@given(texts)
@example("*\\")
@example("*" * 100 + "/")
def test_comments_hold_any_text(text):
    lines = comment(text)
    assert code_of("\n".join(lines)).strip() == ""
    assert all(re.fullmatch(r"/\* [ -~]{1,100} \*/", line) for line in lines)
    assert code_of(f"a {' b '.join(lines)} c").split() == ["a", *["b"] * (len(lines) - 1), "c"]


@given(texts)
def test_literals_hold_any_text(text):
    shown = literal(text)
    assert code_of(shown) == '""'
    assert ast.literal_eval("b" + shown) == text.encode("utf-8", "replace")


def test_tables_are_cut_into_lines():
    lines = constants("int table[]", [str(i) for i in range(200)])
    assert max(map(len, lines)) < 120
    assert [int(word) for word in re.findall(r"\d+", "".join(lines))] == list(range(200))


def in_quotes(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def rules_with(text, function="my.py:only"):
    """Return rules with a text everywhere where a rule can have one."""
    shown = in_quotes(text)
    pattern = "".join(f"\\{char}" if char.isascii() and not char.isalnum() else char for char in text)[:200]
    conditions = [
        f"name == {shown}",
        f"name ~ {shown}",
        f"name in ({shown}, {shown})",
        f"text == {shown}",
        f"name ~ /{pattern}|x/i",
    ]
    rules = [Rule(Mode.ADDALLCLASSES)]
    for external, condition in zip(CLASSES, conditions, strict=True):
        rules.append(Rule(Mode.ADDCLASSEVHANDLER, external, condition=condition, line=len(rules) + 1))
    return [*rules, Rule(Mode.ADDCLASSEVHANDLER, C.SYSTEM, function=function, line=7)]


class Named:
    def __init__(self, position):
        self.position = position

    def __call__(self, info):
        return 1


def program_of(text):
    return c_program(build(rules_with(text, f"{text}.py:{text}"), QNX_6, Named), text)


PLAIN = program_of("plain").source


@pytest.mark.thorough
@given(texts)
def test_no_text_of_rules_becomes_code(text):
    try:
        program = program_of(text)
    except UsageError:  # no such condition
        return
    # Texts that nothing can fit need fewer functions.
    assert words_of(program.source) <= words_of(PLAIN)
    assert code_of(program.source).count("SET(") == code_of(PLAIN).count("SET(")
    refused = [
        fault.message for fault in program.faults if "POSIX" not in fault.message and "bytes" not in fault.message
    ]
    assert len(refused) == 1, "the Python function"


@pytest.mark.thorough
def test_what_strangers_write_compiles_and_does_nothing(tmp_path):
    sources = []
    for text in EVIL:
        try:
            built = build(rules_with(text)[:-1], QNX_6)
        except UsageError:
            continue
        source = c_program(built, text).source
        sources.append("\n".join(line for line in source.splitlines() if not line.startswith("#error")))
    assert len(sources) > len(EVIL) - 4
    target, said = compiled(sources, QNX_6, tmp_path)
    assert said == ""
    runner = Runner(QNX_6, {5: b"evil"}, [])
    handlers = {(c, -1) for c in CLASSES}
    assert [runner.run(target, number).attached for number in range(len(sources))] == [handlers] * len(sources)


@pytest.mark.thorough
def test_a_pattern_no_longer_ends_a_comment(tmp_path):
    text = 'ADDALLCLASSES\nADDCLASSEVHANDLER COMM WHERE event ~ "*\\\\" or number == 1 or event ~ "/*"'
    source = c_program(build(parse_rules(text, QNX_6), QNX_6), "x*\\").source
    assert '/* WHERE event ~ "*\\\\" or number == 1 or event ~ "/ *" */' in source
    compiled([source], QNX_6, tmp_path)


@pytest.mark.parametrize("text", EVIL)
def test_faults_hold_any_text(text, tmp_path):
    program = program_of(text[:30]) if text != "\ud800" else program_of("x")
    errors = [line for line in program.source.splitlines() if "#error" in line]
    assert errors
    assert all(re.fullmatch(r'\s*#error "(?:[ !#->@-\[\]-~]|\\[0-7]{3})*"', line) for line in errors)


def test_every_part_is_after_those_it_needs():
    known = [*parts()]
    for name, part in parts().items():
        assert [need for need in part.needs if known.index(need) >= known.index(name)] == []
        assert part.lines[-1] == ""
        assert all(line.isascii() and len(line) <= 120 for line in part.lines)
    assert ordered(["word"]) == ["number", "known", "unknown", "word_count", "word_at", "word"]

"""What no source of the project may have: checks over the texts of all of them.

Python 3.11.0 to 3.11.2, which Debian 12 has, take possessive quantifiers and atomic groups for something else:
`re.match("(?:ab?c)*+", "aca")` spans three characters there instead of none. Patterns that stop at the first
character that ends a text (`"[^"]*"`) need neither.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.extent import fewer

ROOT = Path(__file__).parents[1]
FOLDERS = ("satview", "tests", "tools", "examples", "sample_traces", "resources")
LOOKS_POSSESSIVE = re.compile(r"[*+?}][+]|\(\?>")
# The same where quotes, blanks and escapes of the source are in between: most files have none, and are not parsed.
MAY_HOLD_ONE = re.compile(r"""[*+?}][\s"'\\a-zA-Z]*[+]|\([\s"'\\a-zA-Z]*\?[\s"'\\a-zA-Z]*>|\\[xuUN0-7]""")
REFUSED = {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}
PROGRAMS_IN_C = ("satview/export/c_program.py", "tests/target/test_c_programs.py")
NO_PATTERNS = {"Shift++", r"ab()[]{}*+?|^$\.,-0123d"}  # a key, and letters that patterns are made of


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every string, with `x` in place of what an f-string inserts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(getattr(part, "value", "x")) if is_text(part) else "x" for part in node.values),
            )
        elif is_text(node):
            yield node.lineno, node.value


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def texts_of_toml(value: object) -> Iterator[tuple[int, str]]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_of_toml(part)
    elif isinstance(value, str):
        yield 0, value


def is_possessive(text: str) -> bool:
    """Return whether a text is a pattern with a possessive quantifier or an atomic group, or a part of one."""
    if text in NO_PATTERNS or not LOOKS_POSSESSIVE.search(text.replace("C++", "")):
        return False
    try:
        parsed = re._parser.parse(text)
    except re.error:  # the part of a pattern
        return True
    return any(str(code) in REFUSED for code in codes_of(parsed))


def codes_of(parsed: object) -> Iterator[object]:
    if isinstance(parsed, re._parser.SubPattern | list | tuple):
        for part in parsed:
            yield from codes_of(part)
    else:
        yield parsed


@pytest.mark.thorough
@pytest.mark.parametrize("folder", fewer(FOLDERS, 1))
def test_no_pattern_needs_a_newer_python_than_debian_has(folder):
    faults = []
    for path in sorted((ROOT / folder).rglob("*")):
        if path == Path(__file__) or path.suffix not in (".py", ".toml"):
            continue
        if path.relative_to(ROOT).as_posix() in PROGRAMS_IN_C:
            continue
        content = path.read_text("utf-8")
        if not MAY_HOLD_ONE.search(content):
            continue
        texts = texts_of(content) if path.suffix == ".py" else texts_of_toml(tomllib.loads(content))
        faults += [f"{path.relative_to(ROOT)}:{line}: {text[:80]}" for line, text in texts if is_possessive(text)]
    assert faults == []


@pytest.mark.parametrize("pattern", [r'"(?:[^"\\]|\\.)*+"', r"~\s*+/", "(?>ab?c)*", r"(x{2,3}+)", '[^"]*+" (?! %s'])
def test_the_check_sees_what_it_is_for(pattern):
    assert is_possessive(pattern)
    assert MAY_HOLD_ONE.search(pattern)


@pytest.mark.parametrize("text", ["[*+?}]+", r"a\++", "in C++ too", r"(?:[-+]+)\*"])
def test_the_check_lets_pass_what_is_fine(text):
    assert not is_possessive(text)

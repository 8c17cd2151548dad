"""What changes the code in order to test tests: its changes, and a room of two modules from beginning to end."""

from __future__ import annotations

import ast

import pytest

from tests.helpers.extent import usually
from tests.mutants.__main__ import ROOMS, Result, chosen, equivalent, mutants_of, table
from tests.mutants.changes import Mutant, c_mutants, python_mutants
from tests.mutants.tree import ROOT, Reach, statement_line

_PYTHON = b'''"""Adds 1 + 1."""
LIMIT = 10


def cut(values, limit: int = 3):
    """Return a < b."""
    if not values or len(values) >= limit:
        raise ValueError(f"{len(values) + 1} of {limit}")
    total = 0
    for value in values[1:]:
        total += value << 2
    return max(total, LIMIT)
'''
_C = b"""#define BITS 5
enum { WIDTH = 4 };
/* i < n */
int64_t sum(const int64_t *value, int64_t count) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i += 1) {
        if (value[i] == 7)
            continue;
        total += value[i];
    }
    return total;
}
"""


def _changes(mutants: list[Mutant], source: bytes) -> set[tuple[int, str]]:
    return {(mutant.line, mutant.texts(source)[1]) for mutant in mutants}


def test_changes_of_python():
    assert _changes(python_mutants("a.py", _PYTHON), _PYTHON) == {
        (2, "LIMIT = (10 + 1)"), (2, "LIMIT = (10 - 1)"),
        (5, "def cut(values, limit: int = (3 + 1)):"), (5, "def cut(values, limit: int = (3 - 1)):"),
        (7, "if (not (not values or len(values) >= limit)):"), (7, "if (values) or len(values) >= limit:"),
        (7, "if not values and len(values) >= limit:"), (7, "if not values or len(values) > limit:"),
        (7, "if not values or len(values) < limit:"), (8, "pass"), (9, "total = (0 + 1)"),
        (10, "for value in values[(1 + 1):]:"), (10, "for value in values[(1 - 1):]:"), (10, "for value in values[:]:"),
        (11, "total -= value << 2"), (11, "pass"), (11, "total += value >> 2"), (11, "total += value << (2 + 1)"),
        (11, "total += value << (2 - 1)"), (12, "return None"), (12, "return min(total, LIMIT)"),
    }  # fmt: skip


def test_what_asserts_or_may_be_any_number_is_not_changed():
    source = b"rows = [a for a, b in zip(c, d, strict=True)]\ntable = words.reshape(-1, 4)\n"
    assert _changes(python_mutants("a.py", source), source) == {
        (1, "rows = [a for a, b in zip(d, c, strict=True)]"), (2, "table = words.reshape(-1, (4 + 1))"),
        (2, "table = words.reshape(-1, (4 - 1))"),
    }  # fmt: skip


def test_changes_of_c():
    assert _changes(c_mutants("a.c", _C), _C) == {
        (2, "enum { WIDTH = (4 + 1) };"), (2, "enum { WIDTH = (4 - 1) };"), (5, "int64_t total = (0 + 1);"),
        (6, "for (int64_t i = (0 + 1); i < count; i += 1) {"), (6, "for (int64_t i = 0; i <= count; i += 1) {"),
        (6, "for (int64_t i = 0; i > count; i += 1) {"), (6, "for (int64_t i = 0; i < count; i -= 1) {"),
        (6, "for (int64_t i = 0; i < count; i += (1 + 1)) {"), (6, "for (int64_t i = 0; i < count; i += (1 - 1)) {"),
        (7, "if (!(value[i] == 7))"), (7, "if (value[i] != 7)"), (7, "if (value[i] == (7 + 1))"),
        (7, "if (value[i] == (7 - 1))"), (8, "break;"), (9, "total -= value[i];"), (9, ";"),
    }  # fmt: skip


@pytest.mark.thorough
def test_every_change_of_the_rooms_is_python_and_changes_something():
    for room in ("base", "verdicts"):
        for file in chosen([room])[room]:
            source = (ROOT / file).read_bytes()
            for mutant in mutants_of(file)[:: usually(20, complete=1, thorough=1)]:
                changed = mutant.applied(source)
                assert changed != source
                ast.parse(changed)


def test_rooms_and_modules_are_selected_by_name():
    assert "satview/formats/qst.py" in chosen(["formats"])["formats"]
    assert chosen(["satview.formats.qst", "satview/linkage/links"]) == {
        "formats": ["satview/formats/qst.py"],
        "linkage": ["satview/linkage/links.py"],
    }
    with pytest.raises(SystemExit, match="neither a room"):
        chosen(["satview.gui"])


def test_a_mutant_is_tried_on_the_tests_that_reach_it_the_quick_ones_first():
    reach = Reach(
        {"a::slow": 2.0, "a::quick": 0.1, "a::other": 0.5, "b::b": 0.1}, {"r/f.py": {7: ["a::slow", "a::quick"]}}
    )
    assert statement_line(_PYTHON, 2) is None
    assert [statement_line(_PYTHON, line) for line in (7, 8, 10, 11)] == [7, 8, 10, 11]
    inside, outside = Mutant("r/f.py", 7, 0, 0, b""), Mutant("r/f.py", 2, 0, 0, b"")
    assert reach.by(inside, _PYTHON) == ["a::quick", "a::slow", "a::other"]
    assert reach.by(outside, _PYTHON) == ["a::quick", "a::slow"]
    assert reach.by(Mutant("r/f.py", 8, 0, 0, b""), _PYTHON) == []


@pytest.mark.thorough
def test_every_equivalent_mutant_is_one():
    """A reason for a line that is gone, or for a change that is never made, helps nobody."""
    named = set(equivalent())
    for file in {file for file, _, _ in named}:
        source = (ROOT / file).read_bytes()
        named -= {(file, *mutant.texts(source)) for mutant in mutants_of(file)}
    assert named == set()


def test_every_room_has_modules_and_tests():
    for room in ROOMS.values():
        for glob in (*room.modules, *room.tests):
            assert list(ROOT.glob(glob)), glob


def test_the_share_is_of_those_that_change_behaviour():
    survivor = Mutant("a.py", 1, 0, 0, b"")
    result = Result(noticed=18, not_compiled=5, equivalent=3, survived=[(survivor, True), (survivor, False)])
    assert result.share == 0.9
    assert table({"x": result}).splitlines()[-1] == "| `x` | 23 | 3 | 20 | 18 | 90.0 % | 1 | 1 |"
    assert Result().share == 1.0

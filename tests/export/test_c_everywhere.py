"""One rule, one answer: what rules choose in a view is what the compiled C program lets pass on a target.

Every field is evaluated for in every class, fast and wide, for every release that has event handlers; the events are
those that the simulated kernel gives to handlers.
"""

import re

import numpy as np
import pytest

from satview.events.spec import Release
from satview.export.c_program import c_program
from satview.filters.derived_columns import process_names
from satview.filters.rules.building import build
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.text import parse_rules
from tests.export.c_target import everything, passed
from tests.filters.matrix import rules
from tests.filters.random_rules import RandomRules
from tests.helpers.extent import WIDTH, fewer, points, usually


def is_untold(line, release):
    """Return whether a rule needs what no handler is given, after a look at what the export says of it."""
    found = re.search(r"HANDLER (\w+) WHERE (time|thread_name|priority)\b", line)
    if found is None:
        return False
    # Of the events of THREAD in 6.x, THCREATE and THDESTROY have no priority.
    is_logged = found.groups() == ("THREAD", "priority") and release is not Release.QNX_6
    program = c_program(build(parse_rules(f"ADDALLCLASSES\nSETALLCLASSESWIDE\n{line}", release), release))
    assert [fault.line for fault in program.faults] == ([] if is_logged else [3])
    return not is_logged


NAMES = {Release.QNX_6: "client-server", Release.QNX_6_6: "client-server", Release.QNX_7: "inheritance"}


@pytest.mark.thorough
@points(release=fewer(list(NAMES)[::-1], 2), wide=WIDTH)
def test_view_and_c_agree_on_every_field_of_every_class(release, wide, tmp_path):
    name = NAMES[release]
    capture = everything(name, release, tmp_path, wide=wide)
    trace, divided = capture.trace, 0
    texts, programs = [], []
    for whole in rules(trace, wide=wide):
        text = "".join(line + "\n" for line in whole.splitlines() if not is_untold(line, release))
        program = c_program(build(parse_rules(text, release, process_names(trace)), release))
        assert program.faults == (), text
        texts.append(text)
        programs.append(program)
    rows = np.sort([given.row for given in capture.given])
    for text, found in zip(texts, passed(capture, programs, tmp_path), strict=True):
        selected = rows[build(parse_rules(text, release, process_names(trace)), release).mask(trace)[rows]]
        wrong = sorted(set(selected.tolist()) ^ set(found.tolist()))
        assert not wrong, (text, [(row, trace.catalogue.name(int(trace.events.code[row]))) for row in wrong[:10]])
        divided += 0 < len(found) < len(rows)
    assert divided > usually(3, complete=10, thorough=5), "the conditions leave something out"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "wide", "cpus"),
    fewer([(Release.QNX_6_6, False, 2), (Release.QNX_6, True, 1), (Release.QNX_7, True, 2)], 1),
)
def test_view_and_c_agree_on_random_rules(release, wide, cpus, tmp_path):
    capture = everything("automotive", release, tmp_path, wide=wide, cpus=cpus, ms=6)
    trace = capture.trace
    expected, programs = [], []
    random_rules = RandomRules(trace, 20261121, wide=wide, has_text_regexes=False)
    for text in random_rules.texts(usually(6, complete=100, thorough=12)):
        built = build(parse_rules(text, release, process_names(trace)), release)
        captured, program = for_capture(built), c_program(built)
        assert program.faults == (), text
        expected.append((text, captured, built))
        programs.append(program)
    rows, divided = np.sort([given.row for given in capture.given]), 0
    for (text, captured, built), found in zip(expected, passed(capture, programs, tmp_path), strict=True):
        selected = rows[captured.state.mask(trace)[rows]]
        wrong = sorted(set(selected.tolist()) ^ set(found.tolist()))
        assert not wrong, (text, [(row, trace.catalogue.name(int(trace.events.code[row]))) for row in wrong[:10]])
        if not any("thread" in note for note in captured.notes):
            assert found.tolist() == rows[built.mask(trace)[rows]].tolist(), text
        divided += 0 < len(found) < len(rows)
    assert divided > usually(3, complete=9)

"""One rule, one answer: what rules choose in a view is what the compiled C program lets pass on a target.

Every field is asked about in every class, fast and wide, for every release that has event handlers; the events are
those that the simulated kernel gives to handlers.
"""

import re

import numpy as np
import pytest

from satview.events.spec import Release
from satview.export.c_program import c_program
from satview.filters.building import build
from satview.filters.text import parse_rules, process_names
from tests.export.c_target import everything, passed
from tests.filters.matrix import rules

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7)
UNTOLD = re.compile(r"WHERE (?:time|thread_name|priority)\b")


@pytest.mark.parametrize("wide", [False, True], ids=["fast", "wide"])
@pytest.mark.parametrize(("release", "name"), [*((release, "client-server") for release in RELEASES),
                                               (Release.QNX_6, "automotive"), (Release.QNX_7, "inheritance")])
def test_view_and_c_agree_on_every_field_of_every_class(release, name, wide, tmp_path):
    capture = everything(name, release, tmp_path, wide=wide)
    trace, divided = capture.trace, 0
    texts, programs = [], []
    for text in rules(trace, wide=wide):
        # What no handler is told is another test's.
        text = "".join(line + "\n" for line in text.splitlines() if not UNTOLD.search(line))
        program = c_program(build(parse_rules(text, release, process_names(trace)), release))
        assert program.faults == (), text
        texts.append(text)
        programs.append(program)
    rows = np.sort([given.row for given in capture.given])
    for text, found in zip(texts, passed(capture, programs, tmp_path), strict=True):
        chosen = rows[build(parse_rules(text, release, process_names(trace)), release).mask(trace)[rows]]
        wrong = sorted(set(chosen.tolist()) ^ set(found.tolist()))
        assert not wrong, (text, [(row, trace.catalogue.name(int(trace.events.code[row]))) for row in wrong[:10]])
        divided += 0 < len(found) < len(rows)
    assert divided > 10, "the conditions leave something out"

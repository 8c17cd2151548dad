"""Which events have an argument of a name, however the lists of releases and widths spell it."""

import pytest

from satview.events.catalogue import catalogue
from satview.events.layout import argument_names, arguments_of, is_same_name
from satview.events.spec import Release
from tests.helpers.extent import fewer


@pytest.mark.thorough
@pytest.mark.parametrize("release", fewer([Release.QNX_8, Release.QNX_6, Release.QNX_6_6, Release.QNX_7], 1))
def test_an_argument_has_the_same_events_in_every_spelling(release):
    known = argument_names(release)
    parts = {code: [part.name for part in arguments_of(release, code)] for code in catalogue(release).codes()}
    for name, codes in known.items():
        having = {code for code, names in parts.items() if any(is_same_name(other, name) for other in names)}
        assert having <= set(codes), name
    if release is Release.QNX_7:
        assert 0xA4B in known["ntime(sec)"]
        assert known["ntime(sec)"] == known["ntime_sec"]

"""PySide6 does not read the source of modules whose name is enough."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from satview.gui import garbage, pyside_sources


@pytest.fixture
def feature(monkeypatch):
    """Return a stand-in for the module of PySide6 that looks, with a list of the modules it has read."""
    stand_in = ModuleType("shibokensupport.feature")
    stand_in.read = []
    stand_in._mod_uses_pyside = stand_in.read.append
    monkeypatch.setitem(sys.modules, "shibokensupport.feature", stand_in)
    return stand_in


def test_only_sources_of_other_packages_are_read(feature):
    pyside_sources.skip_sources()
    pyside_sources.skip_sources()  # the second time changes nothing
    own, other = ModuleType("satview.gui.theme"), ModuleType("satviewer")
    assert feature._mod_uses_pyside(own) is True  # names of Qt are the standard ones there
    assert feature._mod_uses_pyside(ModuleType("numpy.linalg")) is True
    assert feature.read == []
    assert feature._mod_uses_pyside(other) is False
    assert feature.read == [other]


def test_another_pyside_is_left_alone(monkeypatch):
    bare = ModuleType("shibokensupport.feature")
    monkeypatch.setitem(sys.modules, "shibokensupport.feature", bare)
    pyside_sources.skip_sources()
    assert not hasattr(bare, "_mod_uses_pyside")
    monkeypatch.delitem(sys.modules, "shibokensupport.feature")
    pyside_sources.skip_sources()


def test_the_pyside_that_is_here_is_known():
    feature = sys.modules["shibokensupport.feature"]
    assert hasattr(feature._mod_uses_pyside, "original"), "PySide6 changed: imports are slower until this is mended"


def test_modules_are_set_apart_once(monkeypatch):
    calls = []
    monkeypatch.setattr(garbage.gc, "freeze", lambda: calls.append(1))
    garbage.set_apart.cache_clear()
    garbage.set_apart()
    garbage.set_apart()
    assert calls == [1]

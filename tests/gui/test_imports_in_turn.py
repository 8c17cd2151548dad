"""Windows that open together import one after the other: PySide6 makes classes for one thread at a time."""

from __future__ import annotations

import threading
import time

import pytest

from satview.gui.windows import document_views


@pytest.mark.parametrize("prepare", ["_import_views", "_import_panels"])
def test_two_windows_import_in_turn(prepare, monkeypatch):
    """At once, one of twenty programs that opened two traces ended with a segmentation fault."""
    inside, most = [], []

    def import_module(name):
        inside.append(name)
        most.append(len(inside))
        time.sleep(0.002)
        inside.remove(name)

    class Catalogue:
        def find(self, text):
            assert text == ""

    monkeypatch.setattr(document_views, "import_module", import_module)
    arguments = (Catalogue(), lambda: False) if prepare == "_import_panels" else ()
    threads = [threading.Thread(target=getattr(document_views, prepare), args=arguments) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) >= 6
    assert max(most) == 1

"""Frames of a view that moves: what there is no time for shows its last picture, and at rest all is exact."""

from __future__ import annotations

import random

from satview.base.time import TimeWindow


def screen(view):
    """Return what is on the screen of a view, which takes pictures otherwise by painting again."""
    store, ratio = view.backingStore().paintDevice(), view.devicePixelRatioF()
    corner, size = view.mapTo(view.window(), view.rect().topLeft()) * ratio, view.size() * ratio
    return store.copy(corner.x(), corner.y(), size.width(), size.height())


def forget(view):
    view.lanes.pictures.show([], object())


def move(rng, view, viewport):
    """Pan, zoom, jump or scroll, by chance."""
    kind = rng.randrange(6)
    if kind < 2:
        viewport.pan(rng.uniform(-0.4, 0.4))
    elif kind < 4:
        window = viewport.window
        viewport.zoom(rng.choice([0.5, 0.9, 1.1, 2.0]), rng.randrange(window.start, window.end))
    elif kind == 4:
        start = rng.randrange(viewport.limits.start, viewport.limits.end - 100)
        viewport.jump(TimeWindow(start, start + rng.randrange(100, viewport.limits.length)))
    else:
        view.scroll_to(rng.randrange(200))


def test_a_view_at_rest_shows_what_one_painted_at_once_shows(window, qtbot, qapp):
    view, viewport, rng = window.workspace.area.view, window.session.opened.viewport, random.Random(5)
    window.session.opened.lanes.set_lane_height(90)
    view.frame_s, unsettled = 0.0, 0
    for _ in range(12):
        for _ in range(rng.randrange(1, 5)):
            move(rng, view, viewport)
            qapp.processEvents()
            unsettled += not view.is_settled
        qtbot.waitUntil(lambda: view.is_settled)
        found = screen(view)
        forget(view)
        view.repaint()
        assert screen(view) == found
    assert unsettled > 12

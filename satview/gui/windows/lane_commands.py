"""What the commands do that arrange lanes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from satview.gui.quick_pick import LinePrompt
from satview.session.commands import CommandRegistry
from satview.session.lanes.lane_arrangement import GroupBy, LaneArrangement, SortBy
from satview.session.step import BACK, ON

if TYPE_CHECKING:
    from satview.gui.windows.workspace import Workspace

Run = Callable[["Workspace"], object]


class LaneCommands:
    """Binds the commands of one window.

    Args:
        run: Carries something out on the open trace.
        workspace: Returns the views of it.
    """

    def __init__(self, run: Callable[[Run], None], workspace: Callable[[], Workspace]) -> None:
        self._run, self._workspace = run, workspace

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        run = self._run
        for command_id, action in self._lane_commands():
            registry.bind(command_id, partial(run, action))
        registry.bind("lanes.pin", partial(run, self._pin), self._is_pinned)
        registry.bind("lanes.hide_empty", partial(run, self._hide_empty), self._hides_empty)
        registry.bind("view.cpu_kinds", partial(run, self._show_kinds), self._shows_kinds)
        for sort in SortBy:
            is_it = partial(self._is_sorted, sort)
            registry.bind(f"lanes.sort_{sort.value}", partial(run, partial(_sort, sort)), is_it)
        for group in GroupBy:
            action = _ask_groups if group is GroupBy.PATTERN else partial(_group, group)
            registry.bind(f"lanes.group_{group.value}", partial(run, action), partial(self._is_grouped, group))

    def _lane_commands(self) -> tuple[tuple[str, Run], ...]:
        return (
            ("lanes.fold", lambda views: views.active.opened.lanes.fold(self._lane())),
            ("lanes.unfold_all", lambda views: views.active.opened.lanes.unfold_all()),
            ("lanes.fold_all", lambda views: views.active.opened.lanes.fold_all()),
            ("lanes.hide", lambda views: views.active.opened.lanes.hide(self._lane())),
            ("lanes.show_all", lambda views: views.active.opened.lanes.show_all()),
            ("lanes.up", lambda views: views.active.opened.lanes.step(self._lane(), BACK)),
            ("lanes.down", lambda views: views.active.opened.lanes.step(self._lane(), ON)),
            ("lanes.taller", lambda views: views.active.area.change_lane_height(1)),
            ("lanes.shorter", lambda views: views.active.area.change_lane_height(-1)),
        )

    def _pin(self, views: Workspace) -> None:
        views.active.opened.lanes.pin(self._lane())

    def _is_pinned(self) -> bool:
        lane = self._workspace().active.opened.selection.lane
        return lane is not None and self._workspace().active.opened.lanes.is_pinned(lane)

    def _hide_empty(self, views: Workspace) -> None:
        lanes = views.active.opened.lanes
        lanes.hide_empty(not lanes.hides_empty, views.active.opened.viewport.window)

    def _hides_empty(self) -> bool:
        return self._workspace().active.opened.lanes.hides_empty

    def _show_kinds(self, views: Workspace) -> None:
        shows = not self._shows_kinds()
        views.active.opened.lanes.show_kinds(shows)
        if shows and not any(
            views.active.opened.timeline.infos[lane].cpu >= 0 for lane in views.active.area.view.stacks
        ):
            views.report("Zoomed out, lanes of CPUs show kinds of work now; as bars they show who runs")

    def _shows_kinds(self) -> bool:
        return self._workspace().active.opened.lanes.shows_kinds

    def _lane(self) -> int:
        lane = self._workspace().active.opened.selection.lane
        assert lane is not None, "the command needs a lane"
        return lane

    @property
    def _arrangement(self) -> LaneArrangement:
        return self._workspace().active.opened.lanes.arrangement

    def _is_sorted(self, sort: SortBy) -> bool:
        return self._arrangement.sort is sort

    def _is_grouped(self, group: GroupBy) -> bool:
        return self._arrangement.group is group


def _sort(sort: SortBy, views: Workspace) -> None:
    views.active.opened.sort_lanes(sort)


def _group(group: GroupBy, views: Workspace) -> None:
    views.active.opened.group_lanes(group)


def _ask_groups(views: Workspace) -> None:
    LinePrompt(
        "Groups of lanes by names of processes",
        "Drivers: devb-*, io-*; HMI: hmi*",
        partial(views.active.opened.group_lanes, GroupBy.PATTERN),
        views.window(),
        views.active.opened.lanes.arrangement.patterns,
    )

"""What the commands do that arrange lanes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.events.user_events import parse_rules
from satview.gui import dialogs
from satview.gui.quick_pick import LinePrompt
from satview.session.commands import CommandRegistry
from satview.session.lanes.lane_arrangement import GroupBy, Label, LaneArrangement, SortBy
from satview.session.settings import Settings
from satview.session.step import BACK, ON
from satview.timeline.lane_classes import LANE_CLASSES, LaneClass, Owner

if TYPE_CHECKING:
    from satview.gui.windows.workspace import Workspace

Run = Callable[["Workspace"], object]


class LaneCommands:
    """Binds the commands of one window.

    Args:
        run: Carries something out on the open trace.
        workspace: Returns the views of it.
        settings: Keep what the next trace begins with.
    """

    def __init__(self, run: Callable[[Run], None], workspace: Callable[[], Workspace], settings: Settings) -> None:
        self._run, self._workspace, self._settings = run, workspace, settings

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

        registry.bind("lanes.user_file", partial(run, self._ask_user_file))
        registry.bind("lanes.no_user_file", partial(run, self._forget_user_file))
        registry.bind("lanes.user_rules", partial(run, self._ask_user_rules))
        for each in LANE_CLASSES:
            shows = partial(self._shows_class, each.name)
            registry.bind(f"lanes.show_{each.name}", partial(run, partial(self._toggle_class, each)), shows)
        for label in Label:
            is_on = partial(self._has_label, label)
            registry.bind(f"view.label_{label.value}", partial(run, partial(self._toggle_label, label)), is_on)

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

    def _shows_class(self, name: str) -> bool:
        return name in self._arrangement.classes

    def _toggle_class(self, lane_class: LaneClass, views: Workspace) -> None:
        """Show or hide lanes of events; the next trace begins with the same ones."""
        opened, name = views.active.opened, lane_class.name
        if name not in self._arrangement.classes and lane_class not in opened.timeline.lane_classes():
            raise UsageError(f"the trace has no events for lanes of {lane_class.title}")
        opened.lanes.show_classes(opened.lanes.arrangement.classes ^ {name})
        self._settings.set("swimlane/lane_classes", ",".join(sorted(opened.lanes.arrangement.classes)))
        if name in opened.lanes.arrangement.classes:
            self._say_where(lane_class, views)

    def _ask_user_file(self, views: Workspace) -> None:
        """Ask for a file with descriptions, which the trace keeps from now on."""
        path = dialogs.ask_file(views.window(), "User events", "XML (*.xml);;All files (*)")
        if path is None:
            return
        from satview.store.arguments import misfits  # on first use: brings numpy

        opened = views.opened
        opened.describe(str(path))
        self._show_users(views)
        notes = [*opened.descriptions.notes, *misfits(opened.trace)]
        views.report(f"{len(opened.descriptions.events):,} kinds of events described by {visible_line(path.name)}"
                     + (f"; {notes[0]}" if notes else ""))  # fmt: skip

    def _forget_user_file(self, views: Workspace) -> None:
        opened = views.opened
        if not opened.user_file:
            raise UsageError("no file describes events of this trace")
        opened.describe("")

    def _ask_user_rules(self, views: Workspace) -> None:
        def take(text: str) -> None:
            parse_rules(text)
            self._settings.set("events/user_rules", text)
            self._show_users(views)

        before = self._settings.text("events/user_rules")
        LinePrompt("What lanes make of user events", "10 counter queue; 41..42 interval request; 7 moment", take,
                   views.window(), before)  # fmt: skip

    def _show_users(self, views: Workspace) -> None:
        """Show lanes of user events, if there are any."""
        if not any(each.name == "user" for each in views.active.opened.timeline.lane_classes()):
            return
        lanes = views.active.opened.lanes
        lanes.show_classes(lanes.arrangement.classes | {"user"})
        self._settings.set("swimlane/lane_classes", ",".join(sorted(lanes.arrangement.classes)))

    def _say_where(self, lane_class: LaneClass, views: Workspace) -> None:
        """Say where the lanes are that were switched on, for they may be out of sight."""
        where = {
            Owner.TRACE: "below the CPUs",
            Owner.PROCESS: "below the CPUs",
            Owner.CPU: "under their CPUs",
            Owner.THREAD: "under their threads; Shift+E unfolds the processes",
        }[lane_class.owner_kind]
        views.report(f"Lanes of {lane_class.title} are {where}")

    def _has_label(self, label: Label) -> bool:
        return label in self._arrangement.labels

    def _toggle_label(self, label: Label, views: Workspace) -> None:
        """Switch a label of these lanes; the next trace begins with the same ones."""
        lanes = views.active.opened.lanes
        lanes.set_labels(lanes.arrangement.labels ^ {label})
        on = [each.value for each in Label if each in lanes.arrangement.labels]
        self._settings.set("swimlane/labels", ",".join(on))

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

"""What of a state goes into a session that is saved under a name, and which names it has for other traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from satview.base.errors import UsageError
from satview.session.name_patterns import fits_name
from satview.session.workspace_state import FilterPart, LanesState, OwnerName, WorkspaceState

PARTS = {
    "lanes": "Lanes: folded, hidden, pinned, order, groups",
    "filter": "Filter",
    "panels": "Panels and what they show",
    "view": "Part of the trace, from its start",
}


def names_in(state: WorkspaceState) -> tuple[str, ...]:
    """Return the names of processes and threads that a state has, each once, in order."""
    owners = [] if state.lanes is None else list(state.lanes.names.values())
    owners += [] if state.filter is None else [owner for _, owner in state.filter.threads]
    found = {name for owner in owners for name in (owner.process, owner.thread) if name}
    return tuple(sorted(found, key=str.casefold))


def session_of(state: WorkspaceState, parts: frozenset[str], patterns: Mapping[str, str]) -> WorkspaceState:
    """Return a state that means something in other traces too.

    Args:
        state: Of a workspace.
        parts: Keys of `PARTS` that it is to have.
        patterns: Name to the pattern that replaces it; names that are not there stay.

    Raises:
        UsageError: A pattern is faulty.
    """
    for pattern in patterns.values():
        fits_name(pattern)
    panels = state.panels
    if panels is not None:  # the list of events begins with one of this trace
        panels = replace(panels, values={name: found for name, found in panels.values.items() if name != "events"})
    return WorkspaceState(
        view=state.view if "view" in parts else None,
        lanes=_lanes(state.lanes, patterns) if "lanes" in parts else None,
        filter=_filter(state.filter, patterns) if "filter" in parts else None,
        panels=panels if "panels" in parts else None,
    )


def _lanes(state: LanesState | None, patterns: Mapping[str, str]) -> LanesState | None:
    if state is None:
        return None
    return replace(state, names={key: _owner(name, patterns) for key, name in state.names.items()})


def _filter(part: FilterPart | None, patterns: Mapping[str, str]) -> FilterPart | None:
    if part is None:
        return None
    return replace(part, threads=tuple((row, _owner(name, patterns)) for row, name in part.threads))


def _owner(name: OwnerName, patterns: Mapping[str, str]) -> OwnerName:
    process, thread = (patterns.get(text, text) for text in (name.process, name.thread))
    return replace(name, process=process, thread=thread)


def check_name(name: str) -> str:
    """Return the name of a session without blanks around it.

    Raises:
        UsageError: It is empty.
    """
    if not name.strip():
        raise UsageError("write a name for the session")
    return name.strip()

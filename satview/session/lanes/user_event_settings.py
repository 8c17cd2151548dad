"""What the settings say of user events, as lanes take it."""

from __future__ import annotations

from pathlib import Path

from satview.events.user_events import parse_rules
from satview.formats.user_event_file import read_user_events
from satview.timeline.tracks.user import UserLanes

FILE_KEY = "events/user_events"
RULES_KEY = "events/user_rules"


def user_lanes_of(file: str, rules: str) -> UserLanes:
    """Return descriptions and rules of user events.

    Args:
        file: Path of a file that describes them; empty = none.
        rules: As `parse_rules` takes them.

    Raises:
        UsageError: The file or a rule is faulty.
    """
    events = read_user_events(Path(file).expanduser()) if file.strip() else {}
    return UserLanes(events, parse_rules(rules))

"""What settings, and a user for one trace, say of user events."""

from __future__ import annotations

from pathlib import Path

from satview.events.user_events import Descriptions
from satview.formats.user_event_file import read_user_events

FILE_KEY = "events/user_events"
RULES_KEY = "events/user_rules"


def descriptions_of(file: str) -> Descriptions:
    """Return the descriptions in a file; none if its name is empty.

    Raises:
        UsageError: The file is faulty.
    """
    return read_user_events(Path(file).expanduser()) if file.strip() else Descriptions()

"""A user's timing file: periods, deadlines and bounds of activities and chains (docs/late.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from satview.base.errors import UsageError
from satview.base.named_files import read_toml
from satview.base.shared_file import DamagedFileError, as_declared
from satview.base.time import parse_length
from satview.store.trace import Trace

_MOST_BYTES: Final = 1 << 16
_MOST_CYCLES: Final = 1 << 62
_EXAMPLE: Final = 'write it as [control] and then deadline = "10 ms"'


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user's settings for one activity or chain.

    Attributes:
        start: Expression for the events that begin the activity; empty = it is a learned activity.
        end: Expression for the events that end the activity, the first one after each start; of the same thread, if all
            threads that begin it also end it.
        period: Time from one trigger to the next, such as `10 ms`; empty = as learned.
        deadline: How long the activity may take; empty = its period.
        cpus: CPUs on which its thread may run, for the schedulability analysis; empty = as the trace shows.
        chain: Names of successive activities, such as `camera > control`; the entry is a chain, not an activity, then.
        reaction: How long the chain may take from the trigger of its first activity to its first response.
        age: How old the first activity's trigger may be when the last one is done.
    """

    start: str = ""
    end: str = ""
    period: str = ""
    deadline: str = ""
    cpus: tuple[int, ...] = ()
    chain: str = ""
    reaction: str = ""
    age: str = ""


def read_timing(path: Path) -> dict[str, Timing]:
    """Return the entries of a user's timing file, by name.

    Raises:
        UsageError: The file cannot be read or has a wrong entry, which the text locates.
    """
    _, content = read_toml(path, _MOST_BYTES, _EXAMPLE)
    try:
        timing = as_declared(content, dict[str, Timing])
    except DamagedFileError as error:
        raise UsageError(f"{path.name}: {error}; {_EXAMPLE}") from error
    for name, said in timing.items():
        if bool(said.start) != bool(said.end):
            raise UsageError(f"{path.name}: [{name}] needs start and end, or neither for one that is learned")
        is_chain = bool(said.chain)
        if (
            is_chain == bool(said.start or said.period or said.deadline or said.cpus)
            or bool(said.reaction or said.age) > is_chain
        ):
            raise UsageError(f"{path.name}: [{name}] needs start and end, period, deadline or cpus; or chain, with the "
                             "bounds reaction and age")  # fmt: skip
        lengths = {"period": said.period, "deadline": said.deadline, "reaction": said.reaction, "age": said.age}
        for key, text in lengths.items():
            try:
                is_fine = not text or parse_length(text) > 0
            except UsageError as error:
                raise UsageError(f"{path.name}: [{name}] {key}: {error}") from error
            if not is_fine:
                raise UsageError(f"{path.name}: [{name}] {key} is not above 0")
    return timing


def bound_cycles(trace: Trace, text: str) -> int:
    """Return a length from a timing file in cycles, at least 1, and limited to the longest time a trace can have."""
    return max(1, min(trace.clock.cycles_of(int(parse_length(text))), _MOST_CYCLES))

"""Lanes of events among the other lanes: under which they are, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from satview.store.doubts import doubts
from satview.store.trace import Trace
from satview.timeline.lane_classes import Owner
from satview.timeline.lane_info import LaneInfo, LaneKind
from satview.timeline.tracks.track import Track


def track_infos(trace: Trace, infos: Sequence[LaneInfo], tracks: Iterable[Track]) -> list[LaneInfo]:
    """Return the lanes of tracks, to come behind the others; those of owners that have no lane are left out.

    Args:
        trace: The trace.
        infos: The lanes that there are.
        tracks: What they show; those of one owner follow each other.
    """
    lane_of = {
        Owner.CPU: {info.cpu: info.index for info in infos if info.kind is LaneKind.CPU},
        Owner.THREAD: {info.thread: info.index for info in infos if info.kind is LaneKind.THREAD},
    }
    doubtful = doubts(trace).processes
    found: list[LaneInfo] = []
    whole = -1
    for track in tracks:
        owner_kind, index = track.found.owner_kind, len(infos) + len(found)
        title = track.found.title if not track.depth else f"{track.found.title} {track.depth + 1}"
        if owner_kind is Owner.PROCESS:
            if track.is_whole:
                whole = index
            elif doubtful[track.owner]:
                continue
            process = 0 if track.is_whole else track.owner
            name = title if track.is_whole else trace.process_name(process) if process else "not known"
            parent = -1 if track.is_whole else whole
            found.append(LaneInfo(index, LaneKind.TRACK, name, "", parent, process=process, track=track))
            continue
        parent = lane_of[owner_kind].get(track.owner, -1) if owner_kind in lane_of else -1
        if owner_kind in lane_of and parent < 0:
            continue
        owner = infos[parent] if parent >= 0 else None
        found.append(
            LaneInfo(
                index,
                LaneKind.TRACK,
                title,
                track.found.subtitle,
                parent,
                cpu=owner.cpu if owner is not None else -1,
                process=owner.process if owner is not None else 0,
                thread=owner.thread if owner is not None else 0,
                track=track,
            )
        )
    return found

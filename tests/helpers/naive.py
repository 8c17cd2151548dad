"""The rules of the format one slot at a time, as they read: the yardstick for the vectorised decoder."""

from __future__ import annotations

from satview.events import wire
from satview.formats.kev.consensus import ROLLOVER, SLACK, unwrap


def decode(slots):
    """Return (events, orphans, unfinished): events as dicts in file order of their first slots."""
    open_events: dict[tuple, list[dict]] = {}
    events, orphans = [], []
    for i, (header, stamp, w0, w1) in enumerate(slots):
        kind, key = header >> 30, (header & 0x3FFFFFFF, stamp)
        if header == 0:
            continue
        if kind in (0, 1):
            event = {
                "code": header & 0x7FFF,
                "cpu": header >> 24 & 63,
                "stamp": stamp,
                "slots": [i],
                "words": [w0, w1],
                "closed": kind == 0,
            }
            events.append(event)
            if kind == 1:
                open_events.setdefault(key, []).append(event)
            continue
        queue = open_events.get(key, [])
        owner = queue[0] if queue else None
        if owner is None:
            orphans.append(i)
            continue
        owner["slots"].append(i)
        owner["words"] += [w0, w1]
        if kind == 3:
            queue.remove(owner)
            owner["closed"] = True
    return events, orphans, [e for e in events if not e["closed"]]


def times(events, held_limit=100_000):
    """Return the 64-bit time of every event by rules 1 to 6."""
    first = next((i for i, e in enumerate(events) if e["code"] == wire.CONTROL_TIME), None)
    value = lambda e: e["words"][0] << 32 | e["words"][1]  # noqa: E731
    out = [0] * len(events)
    start, references, last = 0, {}, None
    if first is not None and first < held_limit:
        base = value(events[first])
        for i in range(first):
            back = (base - events[i]["stamp"]) % ROLLOVER
            out[i] = base + ROLLOVER - back if back > ROLLOVER - SLACK else base - back
        own = events[first]["cpu"]
        placed = [(e["cpu"], time) for e, time in zip(events[:first], out, strict=False) if e["cpu"] != own]
        references = {cpu: max(time for one, time in placed if one == cpu) for cpu, _ in placed}
        start, last = first, base
    elif events:
        last = events[0]["stamp"]
    for i in range(start, len(events)):
        e = events[i]
        if e["code"] == wire.CONTROL_BUFFER and i + 1 < len(events) and events[i + 1]["stamp"] == e["stamp"]:
            out[i] = None
            continue
        references.setdefault(e["cpu"], last)
        if e["code"] == wire.CONTROL_TIME:
            late = (e["stamp"] - value(e)) % ROLLOVER
            out[i] = value(e) + late if late < ROLLOVER - SLACK else value(e) - (ROLLOVER - late)
            references[e["cpu"]] = value(e)
        else:
            out[i] = unwrap(references[e["cpu"]], e["stamp"])
            references[e["cpu"]] = max(references[e["cpu"]], out[i])
        last = out[i]
    for i in range(len(events) - 2, -1, -1):
        if out[i] is None:
            out[i] = out[i + 1]
    return out

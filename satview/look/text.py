"""Answers as lines of text, with the handles that lead on; and as plain values for programs."""

from __future__ import annotations

from typing import Any

from satview.base.safe_text import visible_line
from satview.look.handles import event_handle, process_handle, thread_handle
from satview.session.events.event_text import Details, Line


def as_text(details: Details) -> str:
    """Return an answer as text: a title, then sections of names and values; `[e-12]` behind a line leads on."""
    lines = [visible_line(details.title)]
    if details.subtitle:
        lines.append(visible_line(details.subtitle))
    for section in details.sections:
        lines += ["", section.title]
        width = max((len(line.name) for line in section.lines), default=0)
        lines += [f"  {visible_line(line.name):<{width}}  {_value(line)}".rstrip() for line in section.lines]
    return "\n".join(lines)


def as_record(details: Details) -> dict[str, Any]:
    """Return an answer as plain values."""
    return {
        "title": details.title,
        "subtitle": details.subtitle,
        "kind": details.kind,
        "sections": [
            {"title": section.title, "lines": [_record(line) for line in section.lines]} for section in details.sections
        ],
    }


def leads_to(line: Line) -> list[str]:
    """Return the handles of what a line is about."""
    found = [event_handle(line.event)] if line.event is not None else []
    found += [thread_handle(line.thread)] if line.thread else []
    return found + ([process_handle(line.process)] if line.process else [])


def _value(line: Line) -> str:
    note = f" ({line.note})" if line.note else ""
    means = f"  {line.means}" if line.means else ""
    handles = "".join(f" [{handle}]" for handle in leads_to(line))
    return visible_line(f"{line.text}{means}{note}{handles}")


def _record(line: Line) -> dict[str, Any]:
    found = {"name": line.name, "text": line.text, "means": line.means, "note": line.note}
    return {key: value for key, value in found.items() if value} | {"handles": leads_to(line)}

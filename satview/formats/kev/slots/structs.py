"""Layouts of payloads as constructs: declared from the event catalogue, read and written in both byte orders.

Single events go this way, as the details show them. Whatever must be fast has a form of its own (columns of filters
and listings, the kernel simulation, the slot writer); tests hold each of them against these structs, both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import construct

from satview.events.layout import Layout, Part, layout_of
from satview.events.spec import Release, Show

SLOT_PAYLOAD_BYTES = 8
REST = "rest"


def member_names(layout: Layout) -> tuple[str, ...]:
    """Return the names of a layout's parts made unique: the second `empty` becomes `empty_2`."""
    seen: dict[str, int] = {REST: 1}
    names = []
    for part in layout.parts:
        seen[part.name] = seen.get(part.name, 0) + 1
        names.append(part.name if seen[part.name] == 1 else f"{part.name}_{seen[part.name]}")
    return tuple(names)


def _member(part: Part, end: str) -> construct.Construct:
    if part.is_text:
        return construct.NullTerminated(construct.GreedyBytes, require=False)
    if part.show is Show.STRUCT:
        return _sigevent(end)
    return getattr(construct, f"Int{32 * part.words}{'s' if part.is_signed else 'u'}{end}")


def _sigevent(end: str) -> construct.Struct:
    """Return the event structure of 6.x (section 8.6)."""
    word, half = getattr(construct, f"Int32u{end}"), getattr(construct, f"Int16s{end}")
    return construct.Struct(
        "notify" / word,
        "number" / word,
        "value" / word,
        "code" / half,
        "priority" / half,
    )


def struct_of(layout: Layout, byte_order: str) -> construct.Struct:
    """Return a layout as a construct; what no part describes is `rest`, bytes."""
    end = "l" if byte_order == "little" else "b"
    known = [part for part in layout.parts if part.words or part.is_text]
    members = [name / _member(part, end) for name, part in zip(member_names(layout), known, strict=False)]
    return construct.Struct(*members, REST / construct.Default(construct.GreedyBytes, b""))


@lru_cache(maxsize=1 << 12)
def prepared(
    release: Release, code: int, count: int, variant: int, byte_order: str
) -> tuple[Layout, tuple[str, ...], construct.Struct]:
    """Return the layout of a payload, the names of its members, and its construct; each made once."""
    layout = layout_of(release, code, count, variant)
    return layout, member_names(layout), struct_of(layout, byte_order)


def build(layout: Layout, values: Mapping[str, Any], byte_order: str) -> bytes:
    """Return the payload of given values, by member name, zero-filled to whole slots as the kernel does.

    Raises:
        construct.ConstructError: A value is missing, or does not fit its member.
    """
    data: bytes = struct_of(layout, byte_order).build(values)
    return data + bytes(-len(data) % SLOT_PAYLOAD_BYTES)

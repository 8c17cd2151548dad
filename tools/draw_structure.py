"""Draws the rooms of satview: each module a square as large as its lines, each import between rooms an arrow downwards.

    python tools/draw_structure.py [--project FOLDER] [-o docs/images/structure.svg]

The order of the rooms is that of the contract "Imports go down" in pyproject.toml.
"""

from __future__ import annotations

import argparse
import ast
import tomllib
from collections import Counter
from dataclasses import dataclass
from html import escape
from math import sqrt
from pathlib import Path

PICTURE_WIDTH_PX = 1200
GAP_PX = 34
PAD_PX = 8
HEAD_PX = 20
SQUARE_PX_PER_ROOT_OF_LINES = 0.62


@dataclass
class Room:
    """A part of the program and where it is drawn.

    Attributes:
        name: `gui`.
        lines: Of each of its modules, the longest first.
        imports: Room to how many modules here import something of it.
    """

    name: str
    lines: list[int]
    imports: Counter[str]
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    def place(self, x: float, y: float, width: float) -> list[tuple[float, float, float]]:
        """Put the room somewhere; return (x, y, side) of the square of each module."""
        self.x, self.y, self.width = x, y, width
        squares, left, top, row = [], x + PAD_PX, y + HEAD_PX + PAD_PX, 0.0
        for lines in self.lines:
            side = max(2.0, sqrt(lines) * SQUARE_PX_PER_ROOT_OF_LINES)
            if left + side > x + width - PAD_PX:
                left, top, row = x + PAD_PX, top + row + 2, 0.0
            squares.append((left, top, side))
            left, row = left + side + 2, max(row, side)
        self.height = top + row + PAD_PX - y
        return squares


def read_rooms(project: Path) -> list[list[Room]]:
    """Return the layers from the top, each with its rooms."""
    contracts = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" | ") for layer in contracts[0]["layers"]]
    rooms = {name: Room(name, [], Counter()) for layer in layers for name in layer}
    for path in sorted((project / "satview").rglob("*.py")):
        parts = path.relative_to(project / "satview").with_suffix("").parts
        if parts[0] not in rooms:
            continue
        text = path.read_text()
        rooms[parts[0]].lines.append(text.count("\n"))
        imported = {
            node.module.split(".")[1]
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("satview.")
        }
        rooms[parts[0]].imports.update(imported & rooms.keys() - {parts[0]})
    for room in rooms.values():
        room.lines.sort(reverse=True)
    return [[rooms[name] for name in layer] for layer in layers]


def draw(layers: list[list[Room]]) -> str:
    """Return the picture as SVG."""
    boxes, y = [], GAP_PX / 2
    for layer in layers:
        wide = [max(110.0, sqrt(sum(room.lines))) for room in layer]
        room_for_all = PICTURE_WIDTH_PX - GAP_PX * (len(layer) + 1)
        x, stretch = float(GAP_PX), min(room_for_all / sum(wide), 4.5)
        x += (room_for_all - stretch * sum(wide)) / 2
        squares = []
        for room, share in zip(layer, wide, strict=True):
            squares.append(room.place(x, y, share * stretch))
            x += share * stretch + GAP_PX
        y += max(room.height for room in layer) + GAP_PX
        boxes += list(zip(layer, squares, strict=True))
    rooms = {room.name: room for layer in layers for room in layer}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PICTURE_WIDTH_PX} {y:.0f}" font-family="sans-serif">',
        f'<rect width="{PICTURE_WIDTH_PX}" height="{y:.0f}" fill="#ffffff"/>',
    ]
    for room in rooms.values():
        for position, (name, count) in enumerate(sorted(room.imports.items())):
            target, across = rooms[name], (position + 1) / (len(room.imports) + 1)
            x1, y1 = room.x + room.width * across, room.y + room.height
            x2, y2 = target.x + target.width * (1 - across), target.y
            bend = (y2 - y1) / 2
            parts.append(
                f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}" '
                f'fill="none" stroke="#4a6a8a" stroke-opacity="0.35" stroke-width="{0.6 + count / 14:.1f}"/>'
                f'<path d="M{x2 - 3:.0f} {y2 - 6:.0f} h6 l-3 6 z" fill="#4a6a8a"/>'
            )
    for room, squares in boxes:
        modules = "1 module" if len(room.lines) == 1 else f"{len(room.lines)} modules"
        title = f"{escape(room.name)}: {modules}, {sum(room.lines):,} lines"
        short = title if room.width > 7.1 * len(title) else f"{escape(room.name)}: {modules}"
        parts.append(
            f'<rect x="{room.x:.0f}" y="{room.y:.0f}" width="{room.width:.0f}" height="{room.height:.0f}" rx="4" '
            f'fill="#f4f6f8" fill-opacity="0.92" stroke="#8a97a5"/><title>{title}</title>'
            f'<text x="{room.x + PAD_PX:.0f}" y="{room.y + HEAD_PX - 4:.0f}" font-size="12" fill="#1d2733">'
            f"{short}</text>"
        )
        parts += [
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{side:.1f}" height="{side:.1f}" fill="#d98a3d"/>'
            for x, top, side in squares
        ]
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    output = arguments.output or arguments.project / "docs" / "images" / "structure.svg"
    output.write_text(draw(read_rooms(arguments.project)))


if __name__ == "__main__":
    main()

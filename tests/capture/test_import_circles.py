"""No module of the capture side imports one that imports it, not even for a type."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import satview

ROOT = Path(satview.__file__).parent
FOLDERS = ("capture", "filters")


def imported(path: Path, modules: set[str]) -> set[str]:
    """Return those of `modules` that a file imports: at the top, inside functions, under TYPE_CHECKING."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & modules


def graph(files: dict[str, Path]) -> dict[str, set[str]]:
    return {name: imported(path, set(files)) - {name} for name, path in files.items()}


def circles(edges: dict[str, set[str]]) -> set[str]:
    """Return the modules that are left when those that import nothing left are taken away, again and again."""
    left = {name: set(targets) for name, targets in edges.items()}
    while leaves := {name for name, targets in left.items() if not targets}:
        left = {name: targets - leaves for name, targets in left.items() if name not in leaves}
    importers = {target for targets in left.values() for target in targets}
    while idle := set(left) - importers:  # they import a circle, but are in none
        left = {name: targets for name, targets in left.items() if name not in idle}
        importers = {target for targets in left.values() for target in targets}
    return set(left)


@pytest.mark.thorough
@pytest.mark.parametrize("folder", FOLDERS)
def test_there_are_no_circles_of_imports(folder: str) -> None:
    files = {
        ".".join(("satview", *path.relative_to(ROOT).with_suffix("").parts)): path
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert len(files) > 15
    assert circles(graph(files)) == set()


def test_a_circle_through_a_type_or_a_function_is_found(tmp_path: Path) -> None:
    texts = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b import B\n",
        "b": "def f():\n    import c\n",
        "c": "from a import A\n",
        "d": "import a\n",
        "e": "import json\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert circles(graph({name: tmp_path / f"{name}.py" for name in texts})) == {"a", "b", "c"}

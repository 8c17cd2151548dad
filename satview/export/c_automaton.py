"""The automaton of a pattern: states that each wait for one character (Thompson's construction).

Views use RE2; an exported C program gets these states as tables, made from the same tree.
"""

from __future__ import annotations

from satview.filters.expressions.pattern_syntax import PatternNode, Ranges

_CHAR, _SPLIT, _START, _END, _MATCH = range(5)


class Automaton:
    """The states of a pattern and what leads from one to the next.

    Attributes:
        code: Instructions: (operation, ranges, next, other); 0 is the end of the pattern.
        entry: Instruction where it begins.
        characters: The instructions that read a character: index, what it reads, where it goes on.
    """

    def __init__(self, root: PatternNode) -> None:
        self.code: list[tuple[int, Ranges, int, int]] = [(_MATCH, (), 0, 0)]
        self.entry = self.build(root, 0)
        self.characters = [(i, ranges, after) for i, (op, ranges, after, _) in enumerate(self.code) if op == _CHAR]

    def add(self, operation: int, following: int, ranges: Ranges = (), other: int = 0) -> int:
        """Add an instruction; return its index."""
        self.code.append((operation, ranges, following, other))
        return len(self.code) - 1

    def build(self, node: PatternNode, following: int) -> int:
        """Add the instructions of a node that go on at `following`; return where it begins."""
        if node.kind == "set":
            return self.add(_CHAR, following, node.ranges)
        if node.kind in ("start", "end"):
            return self.add(_START if node.kind == "start" else _END, following)
        if node.kind == "cat":
            for part in reversed(node.parts):
                following = self.build(part, following)
            return following
        if node.kind == "alt":
            branches = [self.build(part, following) for part in node.parts]
            entry = branches[-1]
            for branch in reversed(branches[:-1]):
                entry = self.add(_SPLIT, branch, other=entry)
            return entry
        return self.repeat(node, following)

    def repeat(self, node: PatternNode, following: int) -> int:
        """Add the instructions of a repetition, written out; return where it begins."""
        body, entry = node.parts[0], following
        if node.high < 0:
            loop = self.add(_SPLIT, 0, other=following)
            inner = self.build(body, loop)
            self.code[loop] = (_SPLIT, (), inner, following)
            entry = loop
        else:
            for _ in range(node.high - node.low):
                entry = self.add(_SPLIT, self.build(body, entry), other=following)
        for _ in range(node.low):
            entry = self.build(body, entry)
        return entry

    def closure(self, entries: list[int], at_start: bool, at_end: bool) -> frozenset[int]:
        """Return all instructions reachable without reading a character; 0 is the end of the pattern."""
        seen: set[int] = set()
        open_ = list(entries)
        while open_:
            index = open_.pop()
            if index in seen:
                continue
            seen.add(index)
            op, _, following, other = self.code[index]
            if op == _SPLIT:
                open_ += (following, other)
            elif (op == _START and at_start) or (op == _END and at_end):
                open_.append(following)
        return frozenset(seen)

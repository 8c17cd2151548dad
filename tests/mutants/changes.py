"""What can be changed in a file of Python or C, one thing at a time."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change.

    Attributes:
        file: Path in the tree, with slashes.
        line: Of its beginning, from 1.
        start, end: Bytes of the file that go.
        new: What stands there instead.
    """

    file: str
    line: int
    start: int
    end: int
    new: bytes

    def applied(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.new + source[self.end :]

    def texts(self, source: bytes) -> tuple[str, str]:
        """Return the lines that differ, before and after the change, joined and without indentation: its name."""
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        last = len(source) if last < 0 else last
        old = source[first:last].decode().splitlines()
        new = (source[first : self.start] + self.new + source[self.end : last]).decode().splitlines()
        before, after = [], []
        for tag, old_start, old_end, new_start, new_end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
            if tag != "equal":
                before += old[old_start:old_end]
                after += new[new_start:new_end]
        return " ".join(map(str.strip, before)), " ".join(map(str.strip, after))


# --- Python ---------------------------------------------------------------------------------------------------------
_COMPARED: Final = {
    ast.Lt: ("<", ("<=", ">")), ast.LtE: ("<=", ("<", ">")), ast.Gt: (">", (">=", "<")), ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.In: ("in", ("not in",)), ast.NotIn: ("not in", ("in",)),
    ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",)),
}  # fmt: skip
_COMPUTED: Final = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"), ast.Pow: ("**", "*"),
}  # fmt: skip
_PAIRS: Final = (("min", "max"), ("any", "all"), ("minimum", "maximum"), ("left", "right"), ("little", "big"))
_OTHER_NAMES: Final = {name: other for pair in _PAIRS for name, other in (pair, pair[::-1])}
_SYMMETRIC: Final = {"suppress", "min", "max", "minimum", "maximum", "array_equal"}


def python_mutants(file: str, source: bytes) -> list[Mutant]:
    """Return every change of a Python file that is known here, in the order of the file.

    Not changed: what only people read (docstrings, texts of errors, formatted strings), annotations, `strict` of zip.
    """
    return sorted(_PythonFile(file, source).mutants(), key=lambda mutant: (mutant.start, mutant.end, mutant.new))


class _PythonFile:
    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source, self.tree = file, source, ast.parse(source)
        self.starts = [0]
        for text in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(text))

    def mutants(self) -> Iterator[Mutant]:
        yield from self._below(self.tree)

    def _below(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the changes of a node and of what is in it."""
        yield from self._own(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if _is_any_size(node, child):
                    continue
                if isinstance(child, ast.Raise):  # its text is for people, but it must be raised
                    yield self._instead(child, b"pass")
                elif isinstance(child, ast.AST) and not self._is_for_people(child):
                    yield from self._below(child)

    def _is_for_people(self, node: ast.AST) -> bool:
        match node:
            case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Expr(value=ast.Constant()):
                return True
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return True
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name == "__all__"
            case ast.keyword(arg="strict"):  # of zip: it asserts that lengths are equal, as assert does
                return True
            case ast.Subscript(value=ast.Name(id="Literal" | "Callable" | "Annotated")):
                return True
        return False

    def _own(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                for operator, (left, right) in zip(node.ops, pairwise(operands), strict=True):
                    old, others = _COMPARED[type(operator)]
                    for other in others:
                        yield from self._operator(left, right, old, other)
            case ast.BinOp() if type(node.op) in _COMPUTED and not isinstance(node.left, ast.Constant | ast.JoinedStr):
                yield from self._operator(node.left, node.right, *_COMPUTED[type(node.op)])
            case ast.BoolOp():
                old, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in pairwise(node.values):
                    yield from self._operator(left, right, old, other)
            case ast.AugAssign() if type(node.op) in _COMPUTED:
                old, other = _COMPUTED[type(node.op)]
                yield from self._operator(node.target, node.value, old + "=", other + "=")
                yield self._instead(node, b"pass")
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield self._instead(node, b"(" + self._text(node.operand) + b")")
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant):
                    yield self._instead(test, b"(not (" + self._text(test) + b"))")
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    yield self._instead(condition, b"True")
            case ast.Constant():
                yield from self._constant(node)
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._instead(value, b"None")
            case (
                ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom())
                | ast.Delete()
                | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            ):
                yield self._instead(node, b"pass")
            case ast.Break():
                yield self._instead(node, b"continue")
            case ast.Continue():
                yield self._instead(node, b"break")
            case ast.Call(args=[ast.expr() as first, ast.expr() as second, *_]) if self._can_swap(node, first, second):
                between = self.source[self._end(first) : self._start(second)]
                new = self._text(second) + between + self._text(first)
                yield self._mutant(self._start(first), self._end(second), new)
            case ast.Slice(lower=lower, upper=upper):
                for bound in (lower, upper):
                    if bound is not None and not (isinstance(bound, ast.Constant) and bound.value == 0):
                        yield self._instead(bound, b"")
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _OTHER_NAMES:
                yield self._mutant(self._end(node) - len(name), self._end(node), _OTHER_NAMES[name].encode())

    def _can_swap(self, call: ast.Call, first: ast.expr, second: ast.expr) -> bool:
        """Return whether a call with its two first arguments swapped is another call that may run."""
        if isinstance(first, ast.Starred | ast.Constant) or isinstance(second, ast.Starred | ast.Constant):
            return False
        name = self._text(call.func).decode().rpartition(".")[2]
        return name not in _SYMMETRIC and self._text(first) != self._text(second)

    def _constant(self, node: ast.Constant) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._instead(node, b"False" if value else b"True")
        elif isinstance(value, int):
            text = self._text(node)
            yield self._instead(node, b"(" + text + b" + 1)")
            if value:
                yield self._instead(node, b"(" + text + b" - 1)")
        elif isinstance(value, float) and value:
            yield self._instead(node, b"(" + self._text(node) + b" * 2)")
        elif isinstance(value, str) and value in _OTHER_NAMES:
            yield self._instead(node, repr(_OTHER_NAMES[value]).encode())

    def _operator(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Mutant]:
        start, end = self._end(left), self._start(right)
        # Words of two are written with one space; comments between operands could hold an operator.
        between = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self.source[start:end])
        position = between.find(old.encode())
        if position >= 0:
            yield self._mutant(start + position, start + position + len(old), new.encode())

    def _instead(self, node: ast.AST, new: bytes) -> Mutant:
        return self._mutant(self._start(node), self._end(node), new)

    def _mutant(self, start: int, end: int, new: bytes) -> Mutant:
        return Mutant(self.file, self.source.count(b"\n", 0, start) + 1, start, end, new)

    def _text(self, node: ast.AST) -> bytes:
        return self.source[self._start(node) : self._end(node)]

    def _start(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset


def _is_any_size(call: ast.AST, argument: object) -> bool:
    """Return whether a node is the -1 of `reshape(-1, 4)`: any number below zero means the same to numpy."""
    match call, argument:
        case ast.Call(func=ast.Attribute(attr="reshape")), ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
    return False


# --- C --------------------------------------------------------------------------------------------------------------
_TOKEN: Final = re.compile(
    rb"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|^[ \t]*\#(?:\\\n|[^\n])*|\s+)
    |(?P<word>[A-Za-z_]\w*)|(?P<number>0[xX][0-9a-fA-F]+|\d+)(?P<suffix>[uUlL]*)
    |(?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SIGNS: Final = {
    "<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "&&": ("||",), "||": ("&&",), "<<": (">>",), ">>": ("<<",), "+=": ("-=",), "-=": ("+=",), "|=": ("&=",),
    "&=": ("|=",),
}  # fmt: skip
_BETWEEN_VALUES: Final = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&": "|", "|": "&", "^": "|"}
_WORDS: Final = {"break": "continue", "continue": "break"}
_BEFORE_NO_VALUE: Final = {"return", "case", "int64_t", "uint32_t", "uint64_t", "int32_t", "uint8_t", "const", "char",
                           "uint16_t", "void", "double", "struct", "static", "size_t", "int"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def c_mutants(file: str, source: bytes) -> list[Mutant]:
    """Return every change of a C file that is known here, in the order of the file; some may not compile."""
    tokens = [
        _Token(match.lastgroup or "", match[0].decode(), match.start(), match.end())
        for match in _TOKEN.finditer(source)
        if match.lastgroup != "skip"
    ]
    tokens = [token if token.kind != "suffix" else _Token("number", *_fields(token)) for token in tokens]

    def mutant(start: int, end: int, new: str) -> Mutant:
        return Mutant(file, source.count(b"\n", 0, start) + 1, start, end, new.encode())

    def changes() -> Iterator[Mutant]:
        depth = brackets = statement = 0
        for index, token in enumerate(tokens):
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            brackets += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:
                continue
            before, after = tokens[index - 1], tokens[min(index + 1, len(tokens) - 1)]
            for other in _SIGNS.get(token.text, ()):
                yield mutant(token.start, token.end, other)
            is_value = before.text in (")", "]") or before.kind == "number" or (
                before.kind == "word" and before.text not in _BEFORE_NO_VALUE
            )  # fmt: skip
            if token.text in _BETWEEN_VALUES and is_value:
                yield mutant(token.start, token.end, _BETWEEN_VALUES[token.text])
            if token.text in _WORDS and after.text == ";":
                yield mutant(token.start, token.end, _WORDS[token.text])
            if token.kind == "number":
                yield mutant(token.start, token.end, f"({token.text} + 1)")
                if int(token.text.rstrip("uUlL"), 0):
                    yield mutant(token.start, token.end, f"({token.text} - 1)")
            if token.text in ("if", "while") and after.text == "(":
                closing = _closing(tokens, index + 1)
                inside = source[after.end : tokens[closing].start].decode()
                yield mutant(after.end, tokens[closing].start, f"!({inside})")
            if before.text in (";", "{", "}"):
                statement = index
            if token.text == ";" and not brackets and index - statement > 1 and tokens[statement].kind == "word":
                words = {one.text for one in tokens[statement:index]}
                first = tokens[statement]
                is_plain = not words & {"{", "}", "for", "if", "while", "else", "case", "default", "return", "goto"}
                if is_plain and first.text not in _BEFORE_NO_VALUE and tokens[statement + 1].kind != "word":
                    yield mutant(first.start, token.end, ";")

    return list(changes())


def _fields(token: _Token) -> tuple[str, int, int]:
    return token.text, token.start, token.end


def _closing(tokens: list[_Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index
    raise ValueError("a bracket that is not closed")

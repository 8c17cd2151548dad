"""Opens the compiled library as this module is imported, and calls its functions.

The C sources declare the arguments of each function behind it (`PASS` of core.h). The library checks arguments against
that, functions check indices and numbers against sizes, and a call that breaks a contract raises `ValueError`.
"""

from __future__ import annotations

import ctypes
import sys
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from satview.core import CoreError

FOLDER: Final = Path(__file__).parent
_SUFFIX: Final = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY: Final = Path(__file__).with_name(f"_passes{_SUFFIX}")
_REMEDY: Final = "install satview again, or in a checkout run `python tools/build_core.py`"
CPUS: Final = 64
CODES: Final = 1 << 15
_I64: Final = ctypes.c_int64
_REFUSED: Final = -(1 << 63)  # as in core.h; up to twice the number of arguments more says which one
_MOST_ARGUMENTS: Final = 64
_NUMBER: Final = 1  # kinds of core.h; 0 = absent
_OTHER: Final = -1  # what no function takes
_KINDS: Final = {
    np.dtype(name): kind
    for kind, names in enumerate(("u1 ?", "u2", "u4", "u8", "i1", "i4", "i8", "f8"), _NUMBER + 1)
    for name in names.split()
}


def source_digest(folder: Path) -> str:
    """Return a digest of the C sources in a folder, 16 hexadecimal digits; empty if there are none.

    A checksum is enough to notice an edit, and needs no cryptography library, which costs 3 ms at each start.
    """
    content = b"".join(source.read_bytes() for source in sorted(folder.glob("*.[ch]")))
    return f"{len(content):08x}{zlib.crc32(content):08x}" if content else ""


def _opened() -> ctypes.CDLL:
    """Return the library.

    Raises:
        CoreError: There is no library, or it does not fit.
    """
    if not LIBRARY.exists():
        raise CoreError(f"{LIBRARY}: the compiled core is missing; {_REMEDY}")
    try:
        opened = ctypes.CDLL(str(LIBRARY))
        for name in ("satview_source", "satview_name", "satview_takes"):
            getattr(opened, name).restype = ctypes.c_char_p
        opened.satview_call.restype = _I64
        built_from = opened.satview_source().decode("ascii")
    except (OSError, AttributeError) as error:
        raise CoreError(f"{LIBRARY}: the compiled core cannot be loaded ({error}); {_REMEDY}") from error
    if source_digest(FOLDER) not in ("", built_from):
        raise CoreError(f"{LIBRARY}: the compiled core is older than its sources; {_REMEDY}")
    return opened


_LIBRARY: Final = _opened()
_call: Final = _LIBRARY.satview_call
_call.argtypes = (_I64, ctypes.c_void_p, _I64)
_BLOCKS: Final = [_I64 * size for size in range(3 * _MOST_ARGUMENTS)]  # by numbers: blocks of arguments


def _passes() -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return number and arguments of every function by name."""
    passes: dict[str, tuple[int, tuple[str, ...]]] = {}
    while (name := _LIBRARY.satview_name(_I64(len(passes)))) is not None:
        takes = _LIBRARY.satview_takes(_I64(len(passes))).decode("ascii")
        passes[name.decode("ascii")] = len(passes), tuple(takes.split())
    return passes


PASSES: Final = _passes()  # by name: number, and what each argument is (core.h)


def describe() -> str:
    """Return a description of the loaded core, for `satview --version --verbose`."""
    return f"compiled ({LIBRARY.name})"


class BoundCall:
    """A function of the library with its first arguments; it can be called again and again, from any thread.

    Args:
        name: Key of `PASSES`.
        arguments: Contiguous arrays, None for absent ones, and numbers; references to the arrays are kept.
    """

    __slots__ = ("_arguments", "_name", "_number", "_words")

    def __init__(self, name: str, *arguments: Any) -> None:
        self._name, self._number, self._arguments = name, PASSES[name][0], arguments
        self._words = _words(arguments)

    def __call__(self, *arguments: Any) -> int:
        """Call the function with the bound arguments, then these; return its result (see the function in the C source).

        Raises:
            ValueError: An argument breaks the contract.
        """
        words = self._words + _words(arguments)
        size = len(words)
        result: int = _call(self._number, _BLOCKS[size](*words), size // 3)
        if result < _REFUSED + 2 * _MOST_ARGUMENTS:
            raise ValueError(_fault(self._name, result - _REFUSED, (*self._arguments, *arguments)))
        return result


def call(name: str, *arguments: Any) -> int:
    """Call a function once, as `BoundCall` does."""
    return BoundCall(name, *arguments)()


def _words(arguments: tuple[Any, ...]) -> list[int]:
    """Return address, count or number, and kind of each argument, in the layout of `satview_argument` (core.h)."""
    words: list[int] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            kind = _KINDS.get(argument.dtype, _OTHER) if argument.flags.c_contiguous else _OTHER
            # `array.ctypes` imports a module at every use, which costs microseconds while Qt watches imports.
            words += argument.__array_interface__["data"][0], argument.size, kind
        elif argument is None:
            words += 0, 0, 0
        else:
            words += 0, argument, _NUMBER
    return words


def _fault(name: str, reason: int, arguments: tuple[Any, ...]) -> str:
    """Return why a call was refused, in words."""
    takes = PASSES[name][1]
    if reason == 0:
        return f"{name}: an index or a number is out of its range, or there is not room enough"
    if reason == 1:
        return f"{name}: {len(arguments)} arguments where {len(takes)} are taken"
    position, is_length = divmod(reason - 2, 2)
    argument = arguments[position]
    if not isinstance(argument, np.ndarray):
        shown = "none" if argument is None else "a number"
    elif is_length:
        shown = f"{argument.size} elements"
    else:
        shown = f"{'' if argument.flags.c_contiguous else 'parts of '}an array of {argument.dtype}"
    return f"{name}: argument {position} is {shown}, not {takes[position]}"

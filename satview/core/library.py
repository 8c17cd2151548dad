"""Loads the compiled library on import, and calls its functions.

Each C function is followed by a declaration of its arguments (`PASS` in core.h). The library checks the types and
lengths of arguments against the declaration, and functions check indices; an invalid call raises `ValueError`.
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
_REFUSED: Final = -(1 << 63)  # as in core.h; the values above it name the invalid argument (see `_fault`)
_MAX_ARGUMENTS: Final = 64  # maximum number of arguments
_NUMBER: Final = 1  # NUMBER_KIND of core.h; 0 is ABSENT
_OTHER: Final = -1  # a type that no function accepts
_KINDS: Final = {
    np.dtype(name): kind
    for kind, names in enumerate(("u1 ?", "u2", "u4", "u8", "i1", "i4", "i8", "f8"), _NUMBER + 1)
    for name in names.split()
}


def source_digest(folder: Path) -> str:
    """Return a digest of the C sources in a folder, 16 hexadecimal digits; empty if there are no sources.

    The digest is a checksum, because importing a cryptographic hash would cost 3 ms at each start.
    """
    content = b"".join(source.read_bytes() for source in sorted(folder.glob("*.[ch]")))
    return f"{len(content):08x}{zlib.crc32(content):08x}" if content else ""


def _opened() -> ctypes.CDLL:
    """Load the library.

    Raises:
        CoreError: The library is missing, cannot be loaded, or was not built from the present sources.
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
_BLOCKS: Final = [_I64 * size for size in range(3 * _MAX_ARGUMENTS)]  # ctypes array types, by length


def _passes() -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the functions of the library by name, each with its index and the declarations of its arguments.

    The core calls a function by this index. core.h describes the declarations.
    """
    passes: dict[str, tuple[int, tuple[str, ...]]] = {}
    while (name := _LIBRARY.satview_name(_I64(len(passes)))) is not None:
        takes = _LIBRARY.satview_takes(_I64(len(passes))).decode("ascii")
        passes[name.decode("ascii")] = len(passes), tuple(takes.split())
    return passes


PASSES: Final = _passes()


def describe() -> str:
    """Return a description of the loaded core, for `satview --version --verbose`."""
    return f"compiled ({LIBRARY.name})"


class BoundCall:
    """A function of the library with its first arguments bound; can be called repeatedly and from any thread.

    Args:
        name: Key of `PASSES`.
        arguments: Contiguous arrays, numbers, and None for absent arrays; references to the arrays are kept.
    """

    __slots__ = ("_arguments", "_name", "_number", "_words")

    def __init__(self, name: str, *arguments: Any) -> None:
        self._name, self._number, self._arguments = name, PASSES[name][0], arguments
        self._words = _words(arguments)

    def __call__(self, *arguments: Any) -> int:
        """Call the function with the bound arguments followed by `arguments`; return its result (see the C source).

        Raises:
            ValueError: An argument is invalid.
        """
        words = self._words + _words(arguments)
        size = len(words)
        result: int = _call(self._number, _BLOCKS[size](*words), size // 3)
        if result < _REFUSED + 2 * _MAX_ARGUMENTS:
            raise ValueError(_fault(self._name, result - _REFUSED, (*self._arguments, *arguments)))
        return result


def call(name: str, *arguments: Any) -> int:
    """Call a function of the library, and return its result; arguments and errors are as for `BoundCall`."""
    return BoundCall(name, *arguments)()


def _words(arguments: tuple[Any, ...]) -> list[int]:
    """Return the arguments as integers in the layout of `satview_argument` (core.h), three for each argument."""
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
    """Return the error message for a call that the library refused.

    Args:
        name: Name of the function.
        reason: Result of the call minus `REFUSED`: it says what is wrong, and with which argument.
        arguments: Arguments of the call.
    """
    takes = PASSES[name][1]
    if reason == 0:
        return f"{name}: an index or a number is out of range, or there is not enough room"
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

"""Finds and opens the compiled library, or says why it is not used."""

from __future__ import annotations

import ctypes
import os
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # start-up has no need of numpy
    from numpy.typing import NDArray

SWITCH: Final = "SATVIEW_CORE"  # environment; "off" = the numpy code, for comparison
FOLDER: Final = Path(__file__).parent
_SUFFIX: Final = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY: Final = Path(__file__).with_name(f"_passes{_SUFFIX}")
CPUS: Final = 64
CODES: Final = 1 << 15
I64: Final = ctypes.c_int64
POINTER: Final = ctypes.c_void_p


def source_digest(folder: Path) -> str:
    """Return what names a version of the C sources in a folder, 16 hexadecimal digits; empty if there are none.

    A checksum is enough to notice an edit, and needs no library of cryptography, which takes 3 ms of each start.
    """
    content = b"".join(source.read_bytes() for source in sorted(folder.glob("*.[ch]")))
    return f"{len(content):08x}{zlib.crc32(content):08x}" if content else ""


@cache
def library() -> ctypes.CDLL | None:
    """Return the library, None where it is not used; opened at the first call."""
    return _opened()[0]


def is_available() -> bool:
    """Return whether the compiled passes can be called."""
    return library() is not None


def function(name: str) -> Any:
    """Return a function of the library that returns int64; call it only where `is_available`."""
    found = library()
    assert found is not None, "the core is not there: call is_available() first"
    call = getattr(found, name)
    call.restype = I64
    return call


def address(array: NDArray[Any] | None) -> ctypes.c_void_p:
    """Return where the elements of an array are, for a call: the caller keeps the array. None = a null pointer.

    `array.ctypes` imports a module at every use, which costs microseconds while Qt watches imports.
    """
    return POINTER(None if array is None else array.__array_interface__["data"][0])


def describe() -> str:
    """Return in words whether the core is used, for `satview --version --verbose`."""
    found, reason = _opened()
    return f"compiled ({LIBRARY.name})" if found is not None else f"numpy ({reason})"


@cache
def _opened() -> tuple[ctypes.CDLL | None, str]:
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "no"):
        return None, f"{SWITCH} is set to off"
    if not LIBRARY.exists():
        return None, "the library was not built: there was no C compiler"
    try:
        found = ctypes.CDLL(str(LIBRARY))
        found.satview_source.restype = ctypes.c_char_p
        built_from = found.satview_source().decode("ascii")
    except (OSError, AttributeError) as error:
        return None, f"{LIBRARY.name} cannot be used: {error}"
    if source_digest(FOLDER) not in ("", built_from):
        return None, f"{LIBRARY.name} is older than its source"
    return found, ""

"""Opens the compiled library as this module is imported."""

from __future__ import annotations

import ctypes
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satview.core import CoreError

if TYPE_CHECKING:  # start-up has no need of numpy
    from numpy.typing import NDArray

FOLDER: Final = Path(__file__).parent
_SUFFIX: Final = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY: Final = Path(__file__).with_name(f"_passes{_SUFFIX}")
_REMEDY: Final = "install satview again, or in a checkout run `python tools/build_core.py`"
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


def _opened() -> ctypes.CDLL:
    """Return the library.

    Raises:
        CoreError: There is none that fits.
    """
    if not LIBRARY.exists():
        raise CoreError(f"{LIBRARY}: the compiled core is missing; {_REMEDY}")
    try:
        opened = ctypes.CDLL(str(LIBRARY))
        opened.satview_source.restype = ctypes.c_char_p
        built_from = opened.satview_source().decode("ascii")
    except (OSError, AttributeError) as error:
        raise CoreError(f"{LIBRARY}: the compiled core cannot be loaded ({error}); {_REMEDY}") from error
    if source_digest(FOLDER) not in ("", built_from):
        raise CoreError(f"{LIBRARY}: the compiled core is older than its sources; {_REMEDY}")
    return opened


_OPENED: Final = _opened()


def function(name: str) -> Any:
    """Return a function of the library that returns int64."""
    call = getattr(_OPENED, name)
    call.restype = I64
    return call


def address(array: NDArray[Any] | None) -> ctypes.c_void_p:
    """Return where the elements of an array are, for a call: the caller keeps the array. None = a null pointer.

    `array.ctypes` imports a module at every use, which costs microseconds while Qt watches imports.
    """
    return POINTER(None if array is None else array.__array_interface__["data"][0])


def describe() -> str:
    """Return in words which core runs, for `satview --version --verbose`."""
    return f"compiled ({LIBRARY.name})"

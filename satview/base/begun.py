"""Functions that run in a thread beside the one that starts them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

_Made = TypeVar("_Made")


class Begun(Generic[_Made]):
    """A function that runs in a thread of its own from now on, and what it returns.

    Worth it for what does not hold the interpreter: reading files, the compiled core, numpy on large arrays.

    Args:
        make: The function.
        name: Of the thread.
    """

    def __init__(self, make: Callable[[], _Made], name: str) -> None:
        self._made: _Made
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(make,), name=name, daemon=True)
        self._thread.start()

    def _run(self, make: Callable[[], _Made]) -> None:
        try:
            self._made = make()
        except BaseException as error:  # noqa: BLE001 - raised where the result is taken
            self._error = error

    @property
    def is_done(self) -> bool:
        """Whether `result` answers at once."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Return when it is done, however it ended."""
        self._thread.join()

    def result(self) -> _Made:
        """Return what the function returns, when it does; raise what it raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made

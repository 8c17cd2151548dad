"""How the payloads of a trace are read; each format brings its own source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Payload
from satview.events.user_events import UserEvent


class PayloadSource(Protocol):
    """Where the payloads of a trace come from; each format brings its own."""

    @property
    def described(self) -> dict[int, UserEvent]:
        """Descriptions of events beside what the tables know, by code; `arguments.describe_events` puts them there."""

    @property
    def check(self) -> Callable[[], None]:
        """What raises SourceChangedError if the file is not the one that was opened any more."""

    def close(self) -> None:
        """Close the file, if there is one: arguments cannot be read any more."""

    def tolerate_loss(self) -> None:
        """Let `decode` report a file that has changed instead of arguments, from now on; else it raises."""

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return all payload words of one event in host order, padding included.

        Returns:
            uint32 (words,).
        """

    def raw(self, event: int) -> bytes:
        """Return the payload bytes of one event as they are in the file."""

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the named arguments of one event.

        Args:
            event: Row of the event table.
            most: Words that belong to no known argument are spelled out up to so many, a text up to so many bytes; the
                last argument, or the note of the text, says how much more there is. None = all.
        """

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events, shape (len(events),); 0 where an event is shorter."""

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the payload words `word` and `word` + 1 of many events, as `column`; one read if `word` is even.

        Returns:
            Two of uint32 (len(events),).
        """

    def block(self, events: NDArray[np.integer], count: int) -> NDArray[np.uint32]:
        """Return the first `count` payload words of many events, shape (len(events), count); 0 where one is shorter."""

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:
        """Prepare for many questions about the words of some events while in the context.

        Args:
            events: uint32 (n,), rows of the event table, ascending.
        """

    def headers(self) -> NDArray[np.uint32] | None:
        """Return the header word of the first slot of every event, uint32 (events,); None where there are no slots."""

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the payload words of many events, padding included.

        Returns:
            int64 (len(events),).
        """

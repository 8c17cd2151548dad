"""Payloads for formats whose events are not slots: a few numbers per event, held in memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events.user_events import UserEvent
from satview.store.trace import PayloadSource


@dataclass(frozen=True, slots=True)
class NumberPayloads(PayloadSource):
    """Implements `store.trace.PayloadSource` except `decode`; a number has two payload words, the low word first.

    Attributes:
        arguments: The numbers, (n,) each, in the narrowest signed type.
    """

    arguments: tuple[NDArray[np.signedinteger], ...]

    def values(self, event: int) -> tuple[int, ...]:
        """Return the numbers of one event."""
        return tuple(int(column[event]) for column in self.arguments)

    @property
    def described(self) -> dict[int, UserEvent]:
        """Empty: only QNX events can have descriptions."""
        return {}

    def check(self) -> None:
        """Do nothing: all records are in memory."""

    def close(self) -> None:
        """Do nothing: no file is open."""

    def tolerate_loss(self) -> None:
        """Do nothing: memory does not change."""

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return the numbers as payload words.

        Returns:
            uint32 (words,).
        """
        return np.array(self.values(event), "<i8").view("<u4").astype(np.uint32)

    def raw(self, event: int) -> bytes:
        """Return the arguments as bytes, eight each, little-endian."""
        return np.array(self.values(event), "<i8").tobytes()

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events: the low or high half of argument `word // 2`.

        Returns:
            uint32 (len(events),).
        """
        if not 0 <= word < 2 * len(self.arguments):
            return np.zeros(len(events), np.uint32)
        values = self.arguments[word // 2][events].astype(np.int64)
        return np.asarray(values >> 32 * (word % 2) & 0xFFFFFFFF, np.uint32)

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: all arguments are in memory."""
        return nullcontext()

    def headers(self) -> None:
        """Return None: these events have no slots."""

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of payload words of many events: the same for all.

        Returns:
            int64 (len(events),).
        """
        return np.full(len(events), 2 * len(self.arguments), np.int64)

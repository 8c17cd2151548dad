"""The arguments of events of several files: each file's own, with the pids and partitions of the axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SourceChangedError
from satview.events.spec import Argument, Payload
from satview.events.user_events import UserEvent
from satview.events.wire import CLASS_SHIFT, WireClass
from satview.store.arguments import is_partition, is_pid
from satview.store.axis import FileAxis, Part

# Which payload word is a pid where programs look at words: that of THREAD, PROCESS and COMM events. Arguments are
# requested by name, and have all others.
_PID_WORD_OF_CLASS: Final[dict[int, int]] = {WireClass.PR_TH: 0, WireClass.COMM: 1}
Words = NDArray[np.uint32]


class AxisPayloads:
    """Implements `store.payload_source.PayloadSource` for a trace of several files.

    Args:
        axis: The files.
        codes: uint16, (events,), codes of the axis.
    """

    def __init__(self, axis: FileAxis, codes: NDArray[np.uint16]) -> None:
        self._axis, self._codes = axis, codes

    @property
    def described(self) -> dict[int, UserEvent]:
        """Descriptions of events, by code; those of all files are the same."""
        return self._axis.parts[0].trace.payloads.described

    @property
    def check(self) -> Callable[[], None]:
        """What raises SourceChangedError if a file is not the one that was opened any more."""
        return self._check

    def _check(self) -> None:
        for part in self._axis.parts:
            try:
                part.trace.payloads.check()
            except SourceChangedError as error:
                raise SourceChangedError(error.path, error.offset, f"{part.name}: {error.what}", error.remedy) from None

    def close(self) -> None:
        """Close all files: arguments cannot be read any more."""
        for part in self._axis.parts:
            part.trace.payloads.close()

    def tolerate_loss(self) -> None:
        """Let `decode` report a file that has changed instead of arguments, from now on; else it raises."""
        for part in self._axis.parts:
            part.trace.payloads.tolerate_loss()

    def words(self, event: int) -> Words:
        """Return all payload words of one event.

        Returns:
            uint32 (words,).
        """
        part, own = self._of(event)
        words = part.trace.payloads.words(own).copy()
        word = _PID_WORD_OF_CLASS.get(int(self._codes[event]) >> CLASS_SHIFT)
        if word is not None and word < len(words):
            words[word] = _axis_pids(part, words[word : word + 1])[0]
        return words

    def raw(self, event: int) -> bytes:
        """Return the payload bytes of one event as they are in its file."""
        part, own = self._of(event)
        return part.trace.payloads.raw(own)

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the named arguments of one event, its pids as those of the axis with the file's beside them."""
        part, own = self._of(event)
        found = part.trace.payloads.decode(own, most)
        return replace(found, arguments=tuple(_with_axis_number(part, each) for each in found.arguments))

    def column(self, events: NDArray[np.integer], word: int) -> Words:
        """Return payload word number `word` of many events, uint32 (len(events),); 0 where an event is shorter."""
        out = np.zeros(len(events), np.uint32)
        for part, at, own in self._axis.split(events):
            out[at] = self._with_pids(part, events[at], word, part.trace.payloads.column(own, word))
        return out

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[Words, Words]:
        """Return the payload words `word` and `word` + 1 of many events.

        Returns:
            Two of uint32 (len(events),).
        """
        first, second = np.zeros(len(events), np.uint32), np.zeros(len(events), np.uint32)
        for part, at, own in self._axis.split(events):
            one, other = part.trace.payloads.pair(own, word)
            first[at] = self._with_pids(part, events[at], word, one)
            second[at] = self._with_pids(part, events[at], word + 1, other)
        return first, second

    def block(self, events: NDArray[np.integer], count: int) -> Words:
        """Return the first words of many events.

        Returns:
            uint32 (len(events), count).
        """
        out = np.zeros((len(events), count), np.uint32)
        for part, at, own in self._axis.split(events):
            out[at] = part.trace.payloads.block(own, count)
            for word in set(_PID_WORD_OF_CLASS.values()):
                if word < count:
                    out[at, word] = self._with_pids(part, events[at], word, out[at, word])
        return out

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:
        """Prepare for many questions about the words of some events while in the context."""
        return self._reading_ahead(events)

    @contextmanager
    def _reading_ahead(self, events: NDArray[np.uint32]) -> Iterator[None]:
        with ExitStack() as stack:
            for part, _, own in self._axis.split(events):
                stack.enter_context(part.trace.payloads.reading_ahead(own))
            yield

    def headers(self) -> None:
        """Return None: slots are those of several targets."""

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the payload words of many events, padding included.

        Returns:
            int64 (len(events),).
        """
        out = np.zeros(len(events), np.int64)
        for part, at, own in self._axis.split(events):
            out[at] = part.trace.payloads.word_counts(own)
        return out

    def _of(self, event: int) -> tuple[Part, int]:
        return self._axis.parts[int(self._axis.part_of[event])], int(self._axis.own_row[event])

    def _with_pids(self, part: Part, events: NDArray[np.integer], word: int, values: Words) -> Words:
        classes = [number for number, its in _PID_WORD_OF_CLASS.items() if its == word]
        if not classes:
            return values
        at = np.flatnonzero(np.isin(self._codes[events] >> CLASS_SHIFT, classes))
        values = values.copy()
        values[at] = _axis_pids(part, values[at])
        return values


def _axis_pids(part: Part, words: Words) -> Words:
    return part.axis_pids(words.view(np.int32).astype(np.int64)).astype(np.int32).view(np.uint32)


def _with_axis_number(part: Part, argument: Argument) -> Argument:
    if not isinstance(argument.value, int) or not (is_pid(argument.name) or is_partition(argument.name)):
        return argument
    numbers = part.axis_pids if is_pid(argument.name) else part.axis_partitions
    number = int(numbers(np.array([argument.value], np.int64))[0])
    if number in (argument.value, -1):
        return argument
    note = f"{argument.text} in {part.name}" + (f"; {argument.note}" if argument.note else "")
    return replace(argument, value=number, text=str(number), note=note)

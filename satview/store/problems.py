"""Problems of a trace: kinds, positions and counts. Readers add problems to a list instead of raising errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One kind of damage or doubt.

    Attributes:
        slug: Stable short name, used in `--json` and in the docs.
        title: A few words, for lists.
        meaning: Consequence for the user, and the remedy.
        costs_data: Whether events are missing or may be wrong because of the problem; commands then exit with 1.
    """

    slug: str
    title: str
    meaning: str
    costs_data: bool


_KINDS: Final = (
    ProblemKind(
        "partial-slot",
        "Last slot cut short",
        "The file ends inside a 16-byte slot: a size limit, a full disk or an interrupted copy.",
        True,
    ),
    ProblemKind(
        "shifted-slots",
        "Slots shifted",
        "Bytes are missing or were added, not a whole number of slots: a bad copy. Slots behind that place are read; "
        "those around it may be missing.",
        True,
    ),
    ProblemKind(
        "empty-slots",
        "Empty slots",
        "Slots of zero bytes: the logger died before it wrote them. They are skipped.",
        True,
    ),
    ProblemKind(
        "orphan-slots",
        "Slots without their beginning",
        "Continuation slots whose first slot was lost with an earlier buffer. They make no event.",
        True,
    ),
    ProblemKind(
        "unfinished-events",
        "Events without their end",
        "The last slots of these events never came; they are shown and flagged as truncated.",
        True,
    ),
    ProblemKind(
        "lost-buffers",
        "Lost buffers",
        "Numbers are missing in the sequence of kernel buffers: the logger was too slow. What happened in the "
        "gap is unknown; capture fewer events, or more and larger buffers.",
        True,
    ),
    ProblemKind(
        "lost-events", "Events dropped by the kernel", "The kernel dropped events while no buffer was free.", True
    ),
    ProblemKind(
        "buffer-order",
        "Buffers out of order",
        "A buffer's number is not larger than the one before it. Times still position its events.",
        False,
    ),
    ProblemKind(
        "buffer-length",
        "Buffer of unexpected length",
        "A buffer holds fewer or more slots than it announces: the file was cut or spliced there.",
        True,
    ),
    ProblemKind(
        "buffer-end",
        "Damaged end of buffer",
        "The mark that ends a buffer is not intact; the slots before it may be damaged.",
        True,
    ),
    ProblemKind(
        "unknown-events",
        "Events of unknown kind",
        "Class or event number is in no table of this release. Raw words are shown.",
        False,
    ),
    ProblemKind(
        "clock-step",
        "Clock stepped back",
        "The clock of a CPU went back by a rollover of the counter or more. Times after it follow the new value.",
        False,
    ),
    ProblemKind(
        "clock-damaged",
        "Damaged times",
        "TIME events or stamps that contradict those around them. Such TIME events are ignored, and an event with such "
        "a stamp shows between its neighbours.",
        True,
    ),
    ProblemKind(
        "clock-unproven",
        "Late TIME event without proof",
        "Too few TIME events are before or after it to show whether the target was silent for so long or this one is "
        "damaged: five or fewer, or twelve where the events before it follow closely. The first view is without the "
        "shorter side; Show everything (0) shows it.",
        False,
    ),
    ProblemKind(
        "clock-doubt",
        "Times in doubt",
        "TIME events contradict each other, and neither other CPUs nor stamps nor the header settle which are right. "
        "Events are where most of that puts them, and may be off by as much as is reported.",
        True,
    ),
    ProblemKind(
        "clock-unknown",
        "Upper half of the clock unknown",
        "There is no TIME event, so times are relative to the first event.",
        False,
    ),
    ProblemKind(
        "clock-seed",
        "Clock of a CPU placed late",
        "The first TIME event of a CPU contradicts where its earlier events were placed.",
        False,
    ),
    ProblemKind(
        "clock-skew",
        "Clocks of the CPUs may differ",
        "The target does not say that its CPUs share one clock, so the order of events on different CPUs is only as "
        "good as their counters agree. On one CPU times are right.",
        False,
    ),
    ProblemKind(
        "clock-rate",
        "Clock rate missing",
        "The header gives no usable rate; 1 GHz is assumed, so a cycle shows as a nanosecond.",
        False,
    ),
    ProblemKind(
        "release-assumed",
        "Release not given",
        "The header does not show the release, so names and lists may be those of another one.",
        False,
    ),
    ProblemKind(
        "byte-order",
        "Byte order not given",
        "The keys for the byte order are missing or contradict each other; the data decided.",
        False,
    ),
    ProblemKind("header", "Header incomplete", "Parts of the header are missing or cannot be read.", False),
    ProblemKind(
        "syspage",
        "System page unusable",
        "The system page is cut short or contradicts itself; what it would show is left out.",
        False,
    ),
    ProblemKind(
        "ring-tail",
        "Events after the capture",
        "A ring capture has slots that were written while it was saved, after a pause.",
        False,
    ),
    ProblemKind(
        "contradiction",
        "Events that contradict each other",
        "A CPU does what it cannot do after its last events: one is damaged or missing. What no event supports is "
        "unknown.",
        True,
    ),
    ProblemKind(
        "other-name",
        "Other name in the text of pidin",
        "The trace and a text of pidin give a process different names: the text is of another moment, or of another "
        "target. The name of the trace counts.",
        False,
    ),
    ProblemKind(
        "ring-names",
        "Names after the capture",
        "The kernel reported the names of processes and threads after the capture. They have these names; the pause "
        "is not counted.",
        False,
    ),
    ProblemKind(
        "injected-struct", "Event too long", "An event claims more slots than any event has; the rest was cut.", True
    ),
    ProblemKind(
        "unlisted-line",
        "Line that fits no row",
        "An event of a listing has other arguments than the catalogue knows, or is in no table. It has the arguments "
        "that its line shows; `satview catalogue learn` proposes rows.",
        False,
    ),
    ProblemKind("bad-line", "Line not understood", "A line of a listing fits no known layout; it was left out.", True),
    ProblemKind(
        "missing-file",
        "File of a set not read",
        "A file of the set is empty or cannot be read: what its LWP did is missing.",
        True,
    ),
    ProblemKind(
        "section-cut",
        "Part of the file missing or not known",
        "A section is shorter than it announces, or not valid: the file was cut short or damaged there. Complete parts "
        "are shown.",
        True,
    ),
    ProblemKind(
        "foreign",
        "Trace of another system",
        "This is not a trace of QNX. Threads, states and events are those of the system that is named; analyses of "
        "kernel calls, messages or interrupts of QNX have no data.",
        False,
    ),
    ProblemKind(
        "clock-set-back",
        "Clock set back",
        "A record is older than the one before it in its file: somebody set the clock. The order of the file counts.",
        False,
    ),
    ProblemKind(
        "unfinished-calls",
        "Calls with one record of two",
        "The other record of these calls is missing, so it is not known when they ended or whether they waited.",
        False,
    ),
    ProblemKind(
        "lwp-lanes",
        "More LWPs than lanes",
        "There is room for 256 LWP lanes; the last one shows all LWPs beyond. Thread lanes are complete.",
        False,
    ),
    ProblemKind(
        "foreign-line",
        "Lines of something else in a listing",
        "A prompt, a console message or another line that is not part of a listing. It is left out, no event with it.",
        False,
    ),
    ProblemKind(
        "cut-listing",
        "Listing with gaps",
        "Lines of single dots say that somebody left lines out of the listing.",
        False,
    ),
    ProblemKind(
        "listing-digits",
        "Damaged number in a listing",
        "A number of a listing has lost digits; the value shown is the nearest that fits.",
        False,
    ),
    ProblemKind(
        "no-overlap",
        "Files that do not overlap",
        "On the axis that it shares with others, a file has no moment in common with the first one. If they ran at the "
        "same time, its offset is wrong: find it from an event that both have, or type it.",
        False,
    ),
    ProblemKind(
        "scaled-clock",
        "Times scaled to another clock",
        "The clock of a file is coarser than that of the axis. Its times are scaled and rounded down, by less than a "
        "cycle of the axis.",
        False,
    ),
)
KINDS: Final = {kind.slug: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of damage to a trace, with its first occurrence and the number of occurrences.

    Attributes:
        kind: Kind of damage.
        detail: Details, one sentence.
        offset: Byte offset of the first occurrence in the file; None if not known.
        count: Number of slots, events or buffers, depending on the kind.
        time_cycles: Time in cycles of the trace's clock; None if not known.
        line: Line number from 1 in a text file, else None.
        file: Name of the file if a trace has several, else empty.
    """

    kind: ProblemKind
    detail: str
    offset: int | None = None
    count: int = 1
    time_cycles: int | None = None
    line: int | None = None
    file: str = ""


@dataclass(slots=True)
class Problems:
    """All problems of one trace, in the order found.

    At most `limit` problems of each kind are listed and the others only counted, in `suppressed`, so that a damaged
    file does not fill the memory.
    """

    limit: int = 1000
    rows: list[Problem] = field(default_factory=list)
    suppressed: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _listed: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        slug: str,
        detail: str,
        offset: int | None = None,
        count: int = 1,
        time_cycles: int | None = None,
        line: int | None = None,
        file: str = "",
    ) -> None:
        """Add a problem; `slug` must be one of `KINDS`, the other arguments are the attributes of `Problem`."""
        kind = KINDS[slug]
        self._counts[slug] = self._counts.get(slug, 0) + count
        if self._listed.get(slug, 0) >= self.limit:
            self.suppressed[slug] = self.suppressed.get(slug, 0) + 1
            return
        self._listed[slug] = self._listed.get(slug, 0) + 1
        self.rows.append(Problem(kind, detail, offset, count, time_cycles, line, file))

    def add_rest(self, slug: str, rows: int, count: int) -> None:
        """Count `rows` further problems of a kind without listing them; `count` is the sum of their counts."""
        if rows:
            self._counts[slug] = self._counts.get(slug, 0) + count
            self.suppressed[slug] = self.suppressed.get(slug, 0) + rows

    def values(self) -> dict[str, Any]:
        """Return all problems as values for JSON."""
        rows = [[p.kind.slug, p.detail, p.offset, p.count, p.time_cycles, p.line, p.file] for p in self.rows]
        return {"limit": self.limit, "rows": rows, "suppressed": self.suppressed, "counts": self._counts}

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> Problems:
        """Return the problems from the result of `values`.

        Raises:
            KeyError, TypeError, ValueError: The values have another form.
        """
        rows = [Problem(KINDS[slug], str(detail), offset, int(count), time_cycles, line, str(file))
                for slug, detail, offset, count, time_cycles, line, file in values["rows"]]  # fmt: skip
        for row in rows:
            for number in (row.offset, row.time_cycles, row.line):
                if not isinstance(number, int | None):
                    raise TypeError("a position of a problem is not a number")
        counts, suppressed = ({str(slug): int(count) for slug, count in values[name].items()}
                              for name in ("counts", "suppressed"))  # fmt: skip
        if not {*counts, *suppressed} <= KINDS.keys():
            raise ValueError("a kind of problem is not known")
        return cls(int(values["limit"]), rows, suppressed, counts, dict(Counter(row.kind.slug for row in rows)))

    def counts(self) -> dict[str, int]:
        """Return the total count of each kind by slug, in the order in which the kinds first appeared."""
        return dict(self._counts)

    @property
    def cost_data(self) -> bool:
        """Whether any problem costs data."""
        return any(KINDS[slug].costs_data for slug in self._counts)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.rows)

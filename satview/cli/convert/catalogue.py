"""`satview catalogue learn LISTING`: print catalogue rows that a user's listing confirms or corrects."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from satview.base.errors import SatviewError, TraceFormatError, reading_fault
from satview.base.process import BAD_USE, FINE
from satview.cli.shared.files import InputFile
from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Field, Show
from satview.formats.listing.model import Listing
from satview.formats.listing.reader import read_listing
from satview.store.problems import Problems

# Proposes rows for the catalogue from the notations in a listing. A `?` marks a notation that no listing has confirmed.


_SHOWN_AS = {"%d": Show.DEC}  # every other template is hexadecimal
_NUMBERS = (Show.DEC, Show.HEX, Show.POINTER, Show.UNKNOWN)


def proposed_rows(listing: Listing) -> Iterator[tuple[str, str]]:
    """Yield (class name, new row) for each event whose row in the catalogue a listing confirms or corrects.

    In a row, `?` after an argument means that its notation was inferred. An argument that the listing prints in the
    notation of the catalogue loses its `?`; one printed in another notation gets that notation.
    """
    names = catalogue(listing.release)
    seen = sorted({*listing.proven, *listing.notations}, key=lambda key: key[:2])
    for class_name, event in dict.fromkeys(key[:2] for key in seen):
        for code in names.find(f"{class_name}/{event}"):
            spec = names.spec(code)
            fast, wide = (_corrected(spec, fields, listing) for fields in (spec.fast, spec.wide))
            if (fast, wide) != (spec.fast, spec.wide):
                key = f"{event}/64" if spec.is_64bit else event
                yield class_name, f"{key}: {_text(fast)}" + (f" | {_text(wide)}" if wide != fast else "")


def unlisted_rows(listing: Listing) -> Iterator[tuple[str, str, int]]:
    """Yield class, new row and number of lines of printed events that no row describes, the most frequent first.

    Lines that differ only in how their arguments are written are one kind; the row has the arguments as written last.
    """
    kinds: dict[tuple[str, str, tuple[str, ...]], tuple[tuple[str, ...], int]] = {}
    for (class_name, event, arguments), count in listing.unlisted.items():
        key = class_name, event, tuple(name for name, _ in arguments)
        kinds[key] = tuple(kind for _, kind in arguments), kinds.get(key, ((), 0))[1] + count
    for (class_name, event, names), (notations, count) in sorted(kinds.items(), key=lambda kind: -kind[1][1]):
        row = ", ".join(f"{name} {notation}?" for name, notation in zip(names, notations, strict=True))
        yield class_name, f"{event}: {row or '-'}", count


def _corrected(spec: EventSpec, fields: tuple[Field, ...] | None, listing: Listing) -> tuple[Field, ...] | None:
    return fields and tuple(_field(spec, field, listing) for field in fields)


def _field(spec: EventSpec, field: Field, listing: Listing) -> Field:
    key = spec.class_name, spec.name, field.name
    template = listing.notations.get(key) or listing.proven.get(key)
    if field.show not in _NUMBERS or template is None:
        return field
    # An address may be printed without `0x`: digits alone do not make it decimal.
    show = field.show if field.show is Show.POINTER else _SHOWN_AS.get(template, Show.HEX)
    return replace(field, show=show, is_sure=True)


def _text(fields: tuple[Field, ...] | None) -> str:
    if fields is None:
        return "-"
    return ", ".join(
        f"{field.name} {field.show.value}{'64' if field.words == 2 else ''}{'' if field.is_sure else '?'}"
        for field in fields
    )


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command `catalogue` to `subparsers`, argparse's group of commands."""
    parser = subparsers.add_parser("catalogue", help="learn event formats from a vendor's listing")
    actions = parser.add_subparsers(dest="action", required=True)
    learn = actions.add_parser(
        "learn",
        help="print corrected rows",
        description="Print the catalogue rows that a listing corrects or confirms, by class and in the format of "
        "resources/events, and suggest rows for lines that match none. A ? marks a notation that no real listing "
        "has confirmed.",
    )
    learn.add_argument("listing", metavar="LISTING", type=InputFile, help="text printed by the vendor's traceprinter")


def run(args: argparse.Namespace) -> int:
    """Print catalogue rows that a listing confirms, corrects or lacks; return 0, or 2 if the listing cannot be read."""
    path = Path(args.listing)
    try:
        with path.open("rb") as file:
            listing = read_listing(file, Problems())
        if not listing.events:
            raise TraceFormatError(path, 0, "it has no line with an event", "give a listing printed by traceprinter")
    except SatviewError as error:
        print(f"satview: {error}", file=sys.stderr)
        return BAD_USE
    except OSError as error:
        print(f"satview: {args.listing}: {reading_fault(error)}", file=sys.stderr)
        return BAD_USE
    shown = ""
    for class_name, row in proposed_rows(listing):
        if class_name != shown:
            print(f"# {class_name}, {listing.release}")
            shown = class_name
        print(row)
    unlisted = list(unlisted_rows(listing))
    for class_name, row, count in unlisted:
        print(f"# {class_name}, {listing.release}: {count:,} line{'s' * (count != 1)} like this match no row")
        print(row)
    if not shown and not unlisted:
        print(f"# {path.name} changes nothing: the {listing.release} catalogue already has all its notations")
    return FINE

"""`satview catalogue learn LISTING`: rows of the catalogue as a user's listing proves or corrects them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from satview.base.errors import SatviewError, TraceFormatError
from satview.base.process import BAD_USE, FINE
from satview.cli.shared.files import InputFile
from satview.formats.listing.learn import proposed_rows, unlisted_rows
from satview.formats.listing.reader import read_listing
from satview.store.problems import Problems

PURPOSE = "convert"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("catalogue", help="learn notations from a vendor's listing")
    actions = parser.add_subparsers(dest="action", required=True)
    learn = actions.add_parser(
        "learn",
        help="print corrected rows",
        description="Prints the rows of the catalogue that a listing corrects or proves, by class, as resources/events "
        "holds them, and rows for lines that fit none. A ? marks notations that no real listing has proven.",
    )
    learn.add_argument("listing", metavar="LISTING", type=InputFile, help="text printed by the vendor's traceprinter")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the rows; return 0, or 2 if the listing cannot be read."""
    path = Path(args.listing)
    try:
        with path.open("rb") as file:
            listing = read_listing(file, Problems())
        if not listing.events:
            raise TraceFormatError(
                path, 0, "no line of it is an event of a listing", "give text printed by traceprinter"
            )
    except SatviewError as error:
        print(f"satview: {error}", file=sys.stderr)
        return BAD_USE
    except OSError as error:
        print(f"satview: {args.listing}: {error.strerror or error}", file=sys.stderr)
        return BAD_USE
    shown = ""
    for class_name, row in proposed_rows(listing):
        if class_name != shown:
            print(f"# {class_name}, {listing.release}")
            shown = class_name
        print(row)
    unlisted = list(unlisted_rows(listing))
    for class_name, row, count in unlisted:
        print(f"# {class_name}, {listing.release}: {count:,} line{'s' * (count != 1)} like this fit no row")
        print(row)
    if not shown and not unlisted:
        print(f"# {path.name} changes nothing: the catalogue of {listing.release} has all its notations")
    return FINE

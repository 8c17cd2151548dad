"""Reads the tables under `resources/events`: TOML files whose values are blocks of rows.

A block is a literal string with one row per line, which is readable in columns and fast to load: Python's TOML parser
skips a string in one step, so that reading all names takes milliseconds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache

from satview.base.named_files import resource_path
from satview.events.spec import Field, Release, Show

RELEASE_ORDER: tuple[Release, ...] = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
Lists = tuple[tuple[Field, ...] | None, tuple[Field, ...] | None]  # arguments in fast mode, in wide mode


@cache
def blocks(file: str) -> dict[str, str]:
    """Return the content of a TOML file under `resources/events`: for each key a text with one table row per line."""
    with resource_path(f"events/{file}.toml").open("rb") as stream:
        return tomllib.load(stream)  # every value of these files is text


def is_there(file: str) -> bool:
    """Return whether there is a file of that name under `resources/events`."""
    try:
        resource_path(f"events/{file}.toml")
    except FileNotFoundError:
        return False
    return True


def lines(file: str, key: str) -> Iterator[str]:
    """Yield the rows of a block without comments and blank lines; none if there is no such block."""
    for line in blocks(file).get(key, "").splitlines():
        text = line.strip()
        if text and not text.startswith("#"):
            yield text


def columns(file: str, key: str) -> Iterator[list[str]]:
    """Yield the rows of a block of a file under `resources/events`, each split into words."""
    return (line.split() for line in lines(file, key))


def texts(file: str, key: str) -> dict[str, tuple[str, ...]]:
    """Return the texts of each name, in order, from a block of `NAME NAME ...: text` rows."""
    texts_of_name: dict[str, tuple[str, ...]] = {}
    for line in lines(file, key):
        names, _, text = line.partition(": ")
        for name in names.split():
            texts_of_name[name] = (*texts_of_name.get(name, ()), text)
    return texts_of_name


def admits(releases: str, release: Release) -> bool:
    """Return whether a range, `all`, `6.x`, `7.x-` (7.x and later) or `-7.x` (up to 7.x), includes a release."""
    if releases == "all":
        return True
    rank = RELEASE_ORDER.index(release)
    if releases.endswith("-"):
        return rank >= RELEASE_ORDER.index(Release(releases[:-1]))
    if releases.startswith("-"):
        return rank <= RELEASE_ORDER.index(Release(releases[1:]))
    return release == releases


@cache
def field(text: str) -> Field:
    """Return the argument that a text such as `coid hex` or `itime->nsec dec64?` describes."""
    name, _, notation = text.strip().rpartition(" ")
    is_sure = not notation.endswith("?")
    kind = notation.rstrip("?")
    wide = kind.endswith("64")
    show = Show(kind.removesuffix("64"))
    words = 0 if show in (Show.STRING, Show.STRUCT) else 2 if wide else 1
    return Field(name, words, show, is_sure)


def fields(text: str) -> tuple[Field, ...] | None:
    """Return the arguments of a list such as `coid hex, msg[0] msg`; None for a dash."""
    text = text.strip()
    return None if text == "-" else tuple(field(part) for part in text.split(", "))


@cache
def lists(file: str, key: str) -> dict[str, Lists]:
    """Return the argument lists in a block of `NAME: fast | wide` rows, by name."""
    lists_of_name: dict[str, Lists] = {}
    for line in lines(file, key):
        name, _, rest = line.partition(": ")
        fast, bar, wide = rest.partition(" | ")
        lists_of_name[name] = (fields(fast), fields(wide if bar else fast))
    return lists_of_name


@cache
def marked_lists(file: str, key: str) -> dict[str, Lists]:
    """Return the argument lists in a block of `NAME words words: list` rows, by name; `*` marks fast arguments."""
    lists_of_name: dict[str, Lists] = {}
    for line in lines(file, key):
        head, _, rest = line.partition(": ")
        parts = rest.split(", ")
        fast = tuple(field(part[:-1]) for part in parts if part.endswith("*"))
        lists_of_name[head.split()[0]] = (fast, tuple(field(part.removesuffix("*")) for part in parts))
    return lists_of_name


@cache
def word_counts(file: str, key: str) -> dict[str, tuple[int | None, int | None]]:
    """Return the numbers of payload words in fast and wide mode, by name, from `marked_lists` rows; None = varies."""
    counts_of_name: dict[str, tuple[int | None, int | None]] = {}
    for line in lines(file, key):
        name, fast, wide = line.partition(":")[0].split()
        counts_of_name[name] = (None if fast == "-" else int(fast), None if wide == "-" else int(wide))
    return counts_of_name


def numbers(file: str, key: str) -> dict[int, str]:
    """Return the names by number from a block of `number name` rows; numbers may be hexadecimal."""
    return {int(row[0], 0): row[1] for row in columns(file, key)}

"""What fits at the cursor of a query: tables, views, columns of the tables that it mentions, words of SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from satview.filters.expressions.complete import Completion
from satview.tables.schema import SCHEMAS

_WORD: Final = re.compile(r"[A-Za-z_]\w*$")
_OWNER: Final = re.compile(r"([A-Za-z_]\w*)\.$")
_ALIAS: Final = re.compile(r"\b(?:from|join)\s+(\w+)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE)
_AFTER_SOURCE: Final = re.compile(r"\b(?:from|join)\s+$", re.IGNORECASE)
_TEXT: Final = re.compile(r"'(?:[^']|'')*$")
_MOST: Final = 60
_KEYWORDS: Final = (
    "select", "from", "where", "group by", "order by", "limit", "join", "using", "left join", "having", "distinct",
    "and", "or", "not", "in", "between", "like", "is null", "as", "asc", "desc", "case", "when", "then", "else", "end",
    "with", "union all", "over", "partition by", "describe", "summarize", "count", "sum", "min", "max", "avg",
    "quantile_disc", "median", "first", "last", "coalesce", "cast",
)  # fmt: skip


def sql_completions(
    text: str, position: int, more: Callable[[], Iterable[tuple[str, str]]] = tuple
) -> list[Completion]:
    """Return what fits at the cursor, the likeliest first; none within a text.

    Args:
        text: The query, finished or not.
        position: Cursor, 0 to len(text).
        more: Returns names of more tables, with what they hold.
    """
    before = text[:position]
    if _TEXT.search(re.sub(r"'(?:[^']|'')*'", "0", before)):
        return []
    begun = _WORD.search(before)
    start = begun.start() if begun else position
    word, head = before[start:].lower(), before[:start]
    if owner := _OWNER.search(head):
        found = _columns(_sources(text).get(owner[1].lower(), owner[1].lower()))
    elif _AFTER_SOURCE.search(head):
        found = [*_tables(), *more()]
    else:
        names = dict.fromkeys(_sources(text).values())
        found = [pair for name in names for pair in _columns(name)]
        found += [*_tables(), *more()] if word else []
        found += [(keyword, "") for keyword in _KEYWORDS] if word else []
    fits = {name: says for name, says in reversed(found) if name.lower().startswith(word) and name.lower() != word}
    fitting = [name for name, _ in dict.fromkeys(found) if name in fits]
    return [Completion(name, start, position, fits[name].replace("`", "")) for name in dict.fromkeys(fitting)][:_MOST]


def _sources(text: str) -> dict[str, str]:
    """Return the tables and views that a query names, by their names and by the short ones that it gives them."""
    found = {}
    for name, alias in _ALIAS.findall(text):
        found[name.lower()] = name.lower()
        if alias and alias.lower() not in (word.split()[0] for word in _KEYWORDS):
            found[alias.lower()] = name.lower()
    return found


def _columns(name: str) -> list[tuple[str, str]]:
    from satview.tables.views import views  # as of `_tables`

    if name in SCHEMAS:
        return [(column.name, column.meaning) for column in SCHEMAS[name].columns]
    return [(column, "") for column in views()[name].columns] if name in views() else []


def _tables() -> list[tuple[str, str]]:
    from satview.tables.views import views  # with the first letter: reads a file

    tables = [(schema.name, schema.meaning) for schema in SCHEMAS.values()]
    return [*tables, *((view.usage, view.says) for view in views().values())]

"""The views of a metastore that name a table: Hive's, Spark's, Trino's and Iceberg's.

A view's text is not parsed by each engine's grammar: names are found among its words, outside of
literals and comments. So a view may be reported that only names a column so, and none is missed
that spells the name out.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.report.finding import Finding, note, warning

_MATERIALIZED: Final = "MATERIALIZED_VIEW"
_KINDS: Final = ("VIRTUAL_VIEW", _MATERIALIZED)
_TRINO: Final = re.compile(r"\s*/\* Presto (?:Materialized )?View: (\S+) \*/\s*")
_SPARK_NAMESPACE: Final = "view.catalogAndNamespace.part.1"
_TOKENS: Final = re.compile(
    r"--[^\n]*|/\*.*?\*/"
    r"|'(?:[^'\\]|\\.)*'"
    r'|(?P<quoted>`(?:[^`]|``)+`|"(?:[^"\\]|\\.)+")'
    r"|(?P<word>\w+)|(?P<dot>\.)|(?P<other>\S)",
    re.DOTALL,
)
_OPENS: Final = frozenset({"from", "join"})
_CLOSES: Final = frozenset({"where", "group", "having", "order", "union", "select", "on", "limit"})


@dataclass(frozen=True, slots=True)
class _Reader:
    name: str
    materialized: bool


class ViewReferences:
    """The views of one metastore, read immediately, by the tables that they name."""

    def __init__(self, client: HiveClient) -> None:
        self._readers: defaultdict[tuple[str, str], list[_Reader]] = defaultdict(list)
        names: defaultdict[str, list[str]] = defaultdict(list)
        for database, name in client.names_of_types(_KINDS):
            names[database].append(name)
        for database, views in names.items():
            for view in client.tables(database, views):
                reader = _Reader(view.full_name, view.table_type == _MATERIALIZED)
                for place in sorted(named_tables(view)):
                    self._readers[place].append(reader)

    def findings(self, table: HiveTable) -> Iterator[Finding]:
        """Yield the finding about the views that name a table."""
        found = self._readers.get((table.database.lower(), table.name.lower()), [])
        if not found:
            return
        names = tuple(sorted(one.name for one in found))
        stored = tuple(sorted(one.name for one in found if one.materialized))
        if not stored:
            yield note(
                "views-on-it",
                f"{len(names)} views name the table",
                "each works on where the engine that runs it reads Iceberg tables by this name",
                names,
            )
            return
        yield warning(
            "views-on-it",
            f"{len(names)} views name the table, {len(stored)} of them materialized",
            "rebuild materialized views after apply, and after a revert: Hive does not see what "
            "is written to an Iceberg table",
            (*stored, *(name for name in names if name not in stored)),
        )


def named_tables(view: HiveTable) -> set[tuple[str, str]]:
    """Return the (database, table) pairs that a view's text may mean, in lower case."""
    text = view.view_expanded_text or view.view_original_text or ""
    default = view.parameters.get(_SPARK_NAMESPACE, view.database)
    trino = _TRINO.fullmatch(view.view_original_text or "")
    if trino is not None:
        text, default = _of_trino(trino[1], default)
    found = set()
    for parts, is_table in _names(text):
        if len(parts) > 1:
            found.add((parts[-2], parts[-1]))
        elif is_table:
            found.add((default.lower(), parts[0]))
    return found


def _of_trino(encoded: str, default: str) -> tuple[str, str]:
    try:
        raw = json.loads(base64.b64decode(encoded))
        return str(raw["originalSql"]), str(raw.get("schema") or default)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        return "", default


def _names(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the dotted names in a text, each with whether it is at the position of a table."""
    parts: list[str] = []
    dotted = inside = expected = False
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind in {"word", "quoted"}:
            plain = token[0] if kind == "word" else token[0][1:-1].replace("``", "`")
            word = plain.lower()
            if dotted:
                parts.append(word)
                dotted = False
                continue
            if parts:
                yield parts, expected
                parts, expected = [], False
            if kind == "word" and word in _OPENS:
                inside = expected = True
            elif kind == "word" and word in _CLOSES:
                inside = expected = False
            else:
                parts = [word]
        elif kind == "dot":
            dotted = bool(parts)
        elif kind == "other":
            if parts:
                yield parts, expected
                parts = []
            expected = inside and token[0] in ",("
            dotted = False
    if parts:
        yield parts, expected

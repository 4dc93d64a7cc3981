"""Texts that are longer than the columns of the metastore's own database.

The limits are those of Hive's schema scripts (``hive-schema-*.sql``); databases differ, so nothing
is refused before the server has answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from icecomb.catalog.hive.thrift.entity import HiveDatabase, HiveTable
from icecomb.catalog.hive.thrift.failure import RefusedError

_NAME: Final = 128
_COMMENT: Final = 256
_COLUMN_NAME: Final = 767
_KEY: Final = 256
_TEXT: Final = 4000
"""What types, values and views may always have; most databases hold 32,672 or more."""
_SHOWN: Final = 80
_LOCK_FAILED: Final = "Internal error processing lock"
_INSERTED: Final = re.compile(r"(?:INSERT INTO|UPDATE) [\"`]?(?P<table>\w+)")
_NAMED_LIMITS: Final = (
    "that has maximum length of",
    "value too long for type",
    "Data too long for column",
    "value too large for column",
)
"""The words of DataNucleus, Postgres, MySQL and Oracle."""


def is_too_long(answer: str) -> bool:
    """Return whether an answer proves that a text did not fit, at this or any other attempt."""
    return any(words in answer for words in _NAMED_LIMITS)


@contextmanager
def named_limits(entity: HiveTable | HiveDatabase) -> Iterator[None]:
    """Name in a refusal what of the sent entity is longer than the metastore's columns."""
    try:
        yield
    except RefusedError as error:
        inserted = _INSERTED.search(error.answer)
        if inserted is None and not is_too_long(error.answer):
            raise
        kept = set() if inserted is None else {inserted["table"].upper()}
        found = [
            (what, len(text), limit)
            for table, what, text, limit in _texts(entity)
            if len(text) > limit and (not kept or table in kept)
        ]
        if not found:
            raise
        parts = "; ".join(
            f"{what} has {length:,} characters, and Hive's schema holds {limit:,}"
            f"{' (some databases more)' if limit == _TEXT else ''}"
            for what, length, limit in found[:3]
        )
        raise _told(error, f"{parts}{'; …' if found[3:] else ''}") from None


@contextmanager
def named_lock_limits(database: str, table: str) -> Iterator[None]:
    """Name in a refused lock that a name is longer than the table of locks holds."""
    try:
        yield
    except RefusedError as error:
        name = max(database, table, key=len)
        if _LOCK_FAILED not in error.answer or len(name) <= _NAME:
            raise
        told = f"a name has {len(name):,} characters, and its table of locks holds {_NAME}"
        raise _told(error, told) from None


def _told(error: RefusedError, what: str) -> RefusedError:
    method = error.context.get("call")
    return RefusedError(
        f"The metastore {error.context.get('uri')} refused {method}: {what}",
        kind=error.kind,
        answer=error.answer,
        hint="Shorten it; what a metastore cannot hold, a table in a folder can (type='hadoop')",
        **error.context,
    )


def _texts(entity: HiveTable | HiveDatabase) -> Iterator[tuple[str, str, str, int]]:
    """Yield the SQL table, a description, the text and its limit of all that is stored."""
    if isinstance(entity, HiveDatabase):
        yield "DBS", "the namespace's name", entity.name, _NAME
        yield "DBS", "the namespace's comment", entity.description or "", _TEXT
        yield "DBS", "the namespace's location", entity.location or "", _TEXT
        yield from _parameters("DATABASE_PARAMS", entity.parameters)
        return
    stored = {"COLUMNS_V2": entity.storage.columns, "PARTITION_KEYS": entity.partition_keys}
    for table, columns in stored.items():
        for column in columns:
            of = f"of column {_short(column.name)}"
            yield table, f"the name {of}", column.name, _COLUMN_NAME
            yield table, f"the comment {of}", column.comment or "", _COMMENT
            yield table, f"the type {of}", column.type, _TEXT
    yield "TBLS", "the name", entity.name, 2 * _NAME
    yield "TBLS", "the owner's name", entity.owner or "", _COLUMN_NAME
    yield "TBLS", "the view's SQL", entity.view_original_text or "", _TEXT
    yield "TBLS", "the view's SQL, expanded,", entity.view_expanded_text or "", _TEXT
    yield "SDS", "the location", entity.storage.location or "", _TEXT
    yield from _parameters("TABLE_PARAMS", entity.parameters)


def _parameters(stored: str, parameters: Mapping[str, str]) -> Iterator[tuple[str, str, str, int]]:
    for key, value in parameters.items():
        yield stored, f"the name of property {_short(key)}", key, _KEY
        yield stored, f"property {_short(key)}", value, _TEXT


def _short(name: str) -> str:
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"

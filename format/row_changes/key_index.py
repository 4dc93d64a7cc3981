"""Lookup of rows by key, a batch at a time: keys become codes, which are looked up in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import internal_array
from icecomb.format.arrow.row_selection import RowNumbers
from icecomb.format.arrow.value_codes import ValueCodes
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.expressions.expression import (
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    conjunction,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    DoubleType,
    FixedType,
    FloatType,
    NestedField,
    UnknownType,
    UUIDType,
)
from icecomb.format.spec.values.temporal import human_date, iso_timestamp, iso_timestamp_ns


class KeyIndex:
    """An index of the rows of a table by key, without nulls.

    Attributes:
        duplicate: A row whose key another row also has; None if all keys are different.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._values = [ValueCodes(_plain(c).unique()) for c in columns]
        self._levels: list[RowNumbers] = []
        codes = self._values[0].of(_plain(columns[0]))
        for column, values in zip(columns[1:], self._values[1:], strict=True):
            pairs = codes * values.count + values.of(_plain(column))
            level, codes = np.unique(pairs, return_inverse=True)
            self._levels.append(level)
            codes = codes.reshape(-1)
        self._key_of_row = codes
        present, rows = np.unique(codes, return_index=True)
        self._rows = rows.astype(np.int64)
        self.duplicate: int | None = None
        if len(present) < len(codes):
            once = np.zeros(len(codes), np.bool_)
            once[rows] = True
            self.duplicate = int(np.flatnonzero(~once)[0])

    def find(self, columns: Sequence[pa.Array]) -> RowNumbers:
        """Return the row that has each key, -1 if none has; no row has a key with a null."""
        codes = self._values[0].of(_plain(columns[0]))
        found = codes >= 0
        rest = zip(columns[1:], self._values[1:], self._levels, strict=True)
        for column, values, level in rest:
            inner = values.of(_plain(column))
            pairs = codes * values.count + inner
            codes = np.minimum(np.searchsorted(level, pairs), len(level) - 1)
            found &= (inner >= 0) & (level[codes] == pairs)
        return np.where(found, self._rows[np.where(found, codes, 0)], -1)

    def same_key(self, rows: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
        """Return pairs of an index in `rows` (none -1) and a row with the same key, for all."""
        order, starts = self._by_key
        codes = self._key_of_row[rows]
        counts = starts[codes + 1] - starts[codes]
        places = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        within = np.arange(len(places)) - first[places]
        return places, order[starts[codes][places] + within]

    def key_counts(self, rows: RowNumbers) -> RowNumbers:
        """Return how many rows have the key of each of some rows that `find` returned."""
        _, starts = self._by_key
        codes = self._key_of_row[rows]
        counts: RowNumbers = starts[codes + 1] - starts[codes]
        return counts

    @cached_property
    def _by_key(self) -> tuple[RowNumbers, RowNumbers]:
        """The rows ordered by key, and the start of each key's rows."""
        order = np.argsort(self._key_of_row, kind="stable").astype(np.int64)
        counts = np.bincount(self._key_of_row, minlength=len(self._rows))
        return order, np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


KEY_BATCH_ROWS = 1 << 20
"""The number of keys to look up in a batch: each batch builds a hash table of the keys once."""
_UNFIT = (FloatType, DoubleType, UnknownType)
_LISTED_KEYS = 200
"""The most values of a key column to list in a filter; more are looked for by their range."""


def key_field(schema: Schema, name: str, *, case_sensitive: bool = True) -> NestedField:
    """Return the column of a name, after checking that it can be a key."""
    found = schema.find_field(name, case_sensitive)
    kind = found.field_type
    if isinstance(kind, OPAQUE_TYPES):
        raise UnsupportedError(
            f"Column {found.name!r} of type {kind} cannot be a key: such values cannot be compared",
            hint="Find rows by other columns.",
            column=found.name,
        )
    unfit = isinstance(kind, _UNFIT) or not kind.is_primitive
    if unfit or found not in schema.fields:
        raise ValidationError(
            f"Column {found.name!r} ({kind}) cannot be a key: a key is a top-level column "
            "whose values are either exactly equal or not",
            hint="Choose a top-level column of integers, decimals, strings, dates or the like.",
            column=found.name,
        )
    return found


def key_text(fields: Sequence[NestedField], values: Sequence[pa.Scalar]) -> str:
    """Return a key as text for messages."""
    parts = zip(fields, values, strict=True)
    return ", ".join(f"{field.name}={_shown(value)}" for field, value in parts)


def _shown(value: pa.Scalar) -> str:
    # Python has no nanoseconds, and no years after 9999 or before 1
    if pa.types.is_timestamp(value.type) and value.type.unit == "ns" and value.is_valid:
        return repr(iso_timestamp_ns(value.value))
    try:
        return repr(value.as_py())
    except (OverflowError, ValueError):
        is_date = pa.types.is_date(value.type)
        return repr((human_date if is_date else iso_timestamp)(value.value))


def key_filter(fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> BooleanExpression:
    """Return a filter that all rows with one of some keys, without nulls, match, and few others."""
    parts = zip(fields, columns, strict=True)
    return conjunction(part for f, column in parts for part in _among(f, column))


def _among(field: NestedField, column: pa.Array) -> list[BooleanExpression]:
    """Return conditions that the values of a key column match."""
    values = internal_array(column).unique()
    if len(values) <= _LISTED_KEYS:
        return [In(field.name, values.to_pylist())]
    if isinstance(field.field_type, UUIDType | FixedType):
        return []
    ends = pc.min_max(values).as_py()
    return [
        GreaterThanOrEqual(field.name, ends["min"]),
        LessThanOrEqual(field.name, ends["max"]),
    ]

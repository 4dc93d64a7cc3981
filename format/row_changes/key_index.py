"""Lookup of rows by key, a batch at a time: keys become codes, which are looked up in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.value_codes import ValueCodes

Rows = npt.NDArray[np.int64]


class KeyIndex:
    """An index of the rows of a table by key, without nulls.

    Attributes:
        duplicate: A row whose key another row also has; None if all keys are different.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._values = [ValueCodes(_plain(c).unique()) for c in columns]
        self._levels: list[Rows] = []
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

    def find(self, columns: Sequence[pa.Array]) -> Rows:
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

    def same_key(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return pairs of an index in `rows` (none -1) and a row with the same key, for all."""
        order, starts = self._by_key
        codes = self._key_of_row[rows]
        counts = starts[codes + 1] - starts[codes]
        places = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        within = np.arange(len(places)) - first[places]
        return places, order[starts[codes][places] + within]

    def key_counts(self, rows: Rows) -> Rows:
        """Return how many rows have the key of each of some rows that `find` returned."""
        _, starts = self._by_key
        codes = self._key_of_row[rows]
        counts: Rows = starts[codes + 1] - starts[codes]
        return counts

    @cached_property
    def _by_key(self) -> tuple[Rows, Rows]:
        """The rows ordered by key, and the start of each key's rows."""
        order = np.argsort(self._key_of_row, kind="stable").astype(np.int64)
        counts = np.bincount(self._key_of_row, minlength=len(self._rows))
        return order, np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array

"""SQL expressions on rows of several sides (`s.amount + t.amount`), computed by DuckDB.

For DuckDB, the names before the dot are struct columns, so that every side has its own columns and
expressions can name nothing else: neither other tables nor files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from icecomb.format.errors import ExpressionError, UnsupportedError
from icecomb.format.optional_library import optional_library
from icecomb.format.spec.arrow_schema import child_fields

if TYPE_CHECKING:
    import duckdb

Sides: TypeAlias = Mapping[str, pa.RecordBatch]
"""Batches of equal length, by their names in expressions."""

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    # by default rows go to `.tmp` in the working directory, which another user may have made
    "temp_directory": "",
}
_PLACE: Final = "place of the row"
"""The column of the rows' places, by a name that no expression has."""


class RowExpressions:
    """An evaluator of expressions; DuckDB is needed, and started, only for the first one."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None

    def close(self) -> None:
        """Release the resources of DuckDB."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def compute(self, texts: Sequence[str], sides: Sides) -> list[pa.Array]:
        """Compute expressions in DuckDB's SQL, and return an array with a value per row for each.

        Columns are qualified with the name of their side.
        """
        return [self._computed(text, sides) for text in texts]

    def _computed(self, text: str, sides: Sides) -> pa.Array:
        duckdb = _duckdb()
        _check_cases(text, sides)
        _check_zoned(text, sides)
        columns = {name: _as_struct(batch) for name, batch in sides.items()}
        places = pa.array(np.arange(len(next(iter(columns.values())))))
        rows = pa.table({**columns, _PLACE: places})
        try:
            expression = duckdb.SQLExpression(text)
            relation = self._open().from_arrow(rows)
            # a filter takes no aggregate, window function or unnest: none is of one row alone
            relation.filter(expression.isnull())
            value = expression.alias("value")
            found = relation.select(value, duckdb.ColumnExpression(_PLACE)).to_arrow_table()
        except duckdb.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise ExpressionError(
                f"Cannot compute {text!r}: {reason}",
                hint=f"Columns are written as {', '.join(f'{name}.column' for name in sides)}; "
                "expressions are DuckDB's SQL, without aggregates, window functions and unnest.",
                predicate=text,
            ) from error
        is_one = found.column_names == ["value", _PLACE]
        if is_one and not found.column(_PLACE).equals(rows.column(_PLACE)):
            # subqueries become joins, which keep no order
            found = found.sort_by(_PLACE)
        if not is_one or not found.column(_PLACE).equals(rows.column(_PLACE)):
            raise ExpressionError(
                f"{text!r} is not one value per row",
                hint="Write an expression of single columns: s.column rather than COLUMNS(*).",
                predicate=text,
            )
        return _whole(found.column(0))

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = _duckdb().connect(":memory:", config=dict(_SETTINGS))
            # Days and hours of a timestamp are in UTC, as in partition transforms.
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET python_enable_replacements = false")
            self._connection = connection
        return self._connection


def may_name(text: str, column: str) -> bool:
    """Return whether an expression contains a column's name as a whole word, in any case."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text, re.IGNORECASE) is not None


def _duckdb() -> Any:
    purpose = "conditions and values given as SQL need DuckDB"
    return optional_library("duckdb", purpose, "icecomb[duckdb]")


def _check_cases(text: str, sides: Sides) -> None:
    """Reject names that differ in case only: DuckDB takes them for one."""
    sets = [list(sides), *(names for side in sides.values() for names in _names(side.schema))]
    for names in sets:
        counts = Counter(map(str.lower, names))
        alike = [name for name in names if counts[name.lower()] > 1 and may_name(text, name)]
        if alike:
            raise ExpressionError(
                f"Cannot compute {text!r}: {', '.join(map(repr, alike))} differ in case only, and "
                "DuckDB takes them for one",
                hint="Use such columns as plain values s.column only, or rename one of them.",
                predicate=text,
            )


def _names(fields: pa.Schema | Sequence[pa.Field]) -> Iterator[list[str]]:
    """Yield the names that stand side by side, at every depth."""
    yield [field.name for field in fields]
    for field in fields:
        yield from _names(child_fields(field.type))


def _check_zoned(text: str, sides: Sides) -> None:
    """Reject columns that DuckDB would cut to microseconds."""
    for field in (f for side in sides.values() for f in side.schema if _is_cut(f.type)):
        if may_name(text, field.name):
            raise UnsupportedError(
                f"Cannot compute {text!r}: DuckDB would cut column {field.name!r} of {field.type} "
                "to microseconds",
                hint="Use the column in ON t.x = s.x or as a plain value s.x only.",
                predicate=text,
                column=field.name,
            )


def _is_cut(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.unit == "ns" and kind.tz is not None
    return any(_is_cut(f.type) for f in child_fields(kind))


def _as_struct(batch: pa.RecordBatch) -> pa.StructArray:
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)

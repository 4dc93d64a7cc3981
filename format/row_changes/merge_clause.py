"""The condition and the clauses of a merge, which are checked before any row is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.argument import checked_members
from icecomb.format.errors import ExpressionError, SchemaError, ValidationError
from icecomb.format.expressions.sql.parser import Token, TokenKind, tokens
from icecomb.format.row_changes.row_expression import RowExpressions, Sides
from icecomb.format.rows.write.data_writer import frame_projection
from icecomb.format.spec.arrow_schema import schema_to_pyarrow, type_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, UUIDType

Mask: TypeAlias = npt.NDArray[np.bool_]
_Value: TypeAlias = Callable[[Sides], pa.Array]
_NAMES = (TokenKind.WORD, TokenKind.NAME)


@dataclass(frozen=True, slots=True)
class MergeCondition:
    """Columns that must be equal, and further conditions, as SQL text, that must be true."""

    keys: tuple[tuple[str, str], ...]
    rest: str | None = None


def merge_condition(
    on: str | Sequence[str], target_alias: str = "t", source_alias: str = "s"
) -> MergeCondition:
    """Parse the condition of a merge.

    Args:
        on: Columns that both sides have, or SQL text: conditions joined by AND, of which at
            least one says that a column of the table equals one of the source.
    """
    if not isinstance(on, str):
        names = dict.fromkeys(checked_members("columns of a merge", on, str))
        keys = tuple((name, name) for name in names)
        if not keys:
            raise ExpressionError("A merge needs columns to find rows by", hint="Give on=['id'].")
        return MergeCondition(keys)
    found: list[tuple[str, str]] = []
    rest: list[str] = []
    for part in _parts(list(tokens(on))[:-1]):
        pair = _equality(part, target_alias, source_alias)
        if pair is None:
            rest.append(on[part[0].start : part[-1].end] if part else "")
        else:
            found.append(pair)
    if not found or "" in rest:
        raise ExpressionError(
            f"Cannot find rows by {on!r}: it does not say that one column equals another",
            hint=f"Begin with an equality: {target_alias}.id = {source_alias}.id AND ...",
            predicate=on,
        )
    return MergeCondition(
        tuple(dict.fromkeys(found)), " AND ".join(f"({text})" for text in rest) or None
    )


def _parts(given: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the parts joined by AND, outside of brackets, `BETWEEN ... AND` and `CASE ... END`.

    If there is an OR, the whole text is one part.
    """
    depth = ranges = 0
    part: list[Token] = []
    parts = [part]
    for token in given:
        opens = token.is_sign("(", "[") or token.is_word("CASE")
        closes = token.is_sign(")", "]") or token.is_word("END")
        depth += opens - closes
        if depth == 0 and token.is_word("OR"):
            yield list(given)
            return
        if depth == 0 and token.is_word("BETWEEN"):
            ranges += 1
        if depth == 0 and token.is_word("AND"):
            if not ranges:
                part = []
                parts.append(part)
                continue
            ranges -= 1
        part.append(token)
    yield from parts


def _equality(
    part: Sequence[Token], target_alias: str, source_alias: str
) -> tuple[str, str] | None:
    """Return the columns of the table and of the source that a part says are equal."""
    if len(part) != 7 or not part[3].is_sign("=", "=="):
        return None
    left, right = _column(part[:3]), _column(part[4:])
    if left is None or right is None:
        return None
    sides = {left[0]: left[1], right[0]: right[1]}
    if sides.keys() != {target_alias, source_alias}:
        return None
    return sides[target_alias], sides[source_alias]


def _column(part: Sequence[Token]) -> tuple[str, str] | None:
    side, dot, name = part
    if side.kind not in _NAMES or not dot.is_sign(".") or name.kind not in _NAMES:
        return None
    return side.value, name.value


class Action(Enum):
    """The action of a clause on a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause `WHEN ... [AND condition] THEN action`, whose condition is None for all rows.

    Attributes:
        values: The new values of columns, as SQL text; None for the columns of the source with
            the same names.
        kept: Columns of the table that `values=None` leaves out.
    """

    action: Action
    condition: str | None = None
    values: Mapping[str, str] | None = None
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """All clauses of a merge; for each row, the first of its kind with a true condition applies.

    Attributes:
        is_upsert: Whether keys must be unique, and only rows that differ are updated.
    """

    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()
    is_upsert: bool = False

    def check(self) -> None:
        """Refuse clauses without effect: none at all, or one after a clause for all rows."""
        kinds = (self.matched, self.not_matched, self.not_matched_by_source)
        if not any(kinds):
            raise ValidationError(
                "A merge without clauses does nothing",
                hint="Add when_matched_update_all(), when_not_matched_insert_all() or others.",
            )
        for clauses in kinds:
            if any(clause.condition is None for clause in clauses[:-1]):
                raise ValidationError(
                    "No row reaches a clause after one without a condition",
                    hint="Put the clause without a condition last.",
                )

    @property
    def one_row_decides(self) -> bool:
        """Whether it matters which row of the source matches a row of the table."""
        only_delete = self.matched == (Clause(Action.DELETE),)
        return bool(self.matched) and not only_delete


class PreparedClause:
    """A clause whose columns and expressions are known to exist and to fit.

    Args:
        sides: The columns that expressions may name: an empty batch for each side.
        expressions: The evaluator of expressions other than plain columns.
    """

    def __init__(
        self,
        clause: Clause,
        schema: Schema,
        sides: Sides,
        *,
        target: str,
        source: str,
        expressions: RowExpressions,
    ) -> None:
        self.action = clause.action
        self._condition = clause.condition
        self._sides = sides
        self._target = target
        self._source = source
        self._expressions = expressions
        self._arrow = schema_to_pyarrow(schema, include_field_ids=False)
        self._values = [] if self.action is Action.DELETE else list(self._all(clause, schema))
        if self._condition is not None:
            (found,) = expressions.compute([self._condition], sides)
            if not pa.types.is_boolean(found.type):
                raise ExpressionError(
                    f"Condition {self._condition!r} is a {found.type}, neither true nor false",
                    hint="Write a condition such as s.amount > t.amount.",
                    predicate=self._condition,
                )

    def selected(self, rows: Sides) -> Mask:
        """Return a mask of the rows for which the condition is true, not unknown."""
        if self._condition is None:
            return np.ones(_length(rows), np.bool_)
        (found,) = self._expressions.compute([self._condition], rows)
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)

    def written(self, rows: Sides) -> pa.RecordBatch:
        """Return the new rows, in the table's columns."""
        return pa.record_batch([value(rows) for value in self._values], self._arrow)

    def _all(self, clause: Clause, schema: Schema) -> Iterator[_Value]:
        names = {f.name for f in schema.fields}
        texts = dict(clause.values or {})
        for name in (*texts, *clause.kept):
            if name not in names:
                raise SchemaError(
                    f"A clause sets column {name!r}, which the table does not have",
                    hint=f"Its columns: {', '.join(sorted(names))}.",
                    column=name,
                )
        if clause.values is None:
            there = set(self._sides[self._source].schema.names)
            missing = [n for n in names if n not in there and n not in clause.kept]
            if missing:
                raise SchemaError(
                    f"The source has no column {', '.join(map(repr, sorted(missing)))} to "
                    f"{clause.action.value} all columns of the table with",
                    hint="Name the columns and their values, or leave columns out by except_cols.",
                )
        for f in schema.fields:
            if clause.values is None and f.name not in clause.kept:
                yield self._column(f, self._source, f.name)
            elif f.name in texts:
                yield self._expression(f, texts[f.name])
            elif clause.action is Action.UPDATE:
                yield self._column(f, self._target, f.name)
            else:
                yield self._default(f)

    def _expression(self, field: NestedField, text: str) -> _Value:
        plain = re.fullmatch(r"\s*(\w+)\s*\.\s*(\w+)\s*", text)
        if plain is not None and plain[1] in self._sides:
            side, name = plain.groups()
            if name in self._sides[side].schema.names:
                return self._column(field, side, name)
        if text.strip().upper() == "NULL":
            return lambda rows: pa.nulls(_length(rows), type_to_pyarrow(field.field_type))
        expressions = self._expressions
        (empty,) = expressions.compute([text], self._sides)
        cast = assignment(field, empty.type)
        return lambda rows: cast(expressions.compute([text], rows)[0])

    def _column(self, field: NestedField, side: str, name: str) -> _Value:
        cast = assignment(field, self._sides[side].schema.field(name).type)
        return lambda rows: cast(rows[side].column(name))

    def _default(self, field: NestedField) -> _Value:
        try:
            projection = frame_projection(Schema((field,)), pa.schema([]))
        except SchemaError as error:
            raise SchemaError(
                f"Inserted rows have no value of the required column {field.name!r}",
                hint="Give one among the values of the clause.",
                column=field.name,
            ) from error

        def default(rows: Sides) -> pa.Array:
            count = pa.nulls(_length(rows))
            batch = pa.record_batch([count], ["_"]).select([])
            return projection.apply(batch, 0).column(0)

        return default


def assignment(field: NestedField, source: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Return a function that converts values to a column's type.

    Numbers may be of another type if they fit exactly.
    """
    if source == type_to_pyarrow(field.field_type):
        return lambda array: array
    given = pa.schema([pa.field(field.name, source)])
    # nulls are checked once all columns are there
    schema = Schema((replace(field, required=False),))
    try:
        projection = frame_projection(schema, given)
    except SchemaError:
        wanted = type_to_pyarrow(field.field_type)
        if isinstance(field.field_type, UUIDType) and pa.types.is_string(source):
            return partial(_uuids, field.name)
        if _is_number(source) and _is_number(wanted):
            return partial(_exactly, field.name, wanted)
        raise
    return lambda array: projection.apply(pa.record_batch([array], given), 0).column(0)


def _exactly(name: str, wanted: pa.DataType, array: pa.Array) -> pa.Array:
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"A value for column {name!r} is not of type {wanted}: {error}",
            hint="Round or cast it in the expression.",
            column=name,
        ) from error


def _uuids(name: str, array: pa.Array) -> pa.Array:
    """Convert the strings that DuckDB returns for UUIDs to UUIDs."""
    digits = pc.replace_substring(array, "-", "")
    try:
        values = [None if text is None else bytes.fromhex(text) for text in digits.to_pylist()]
        storage = pa.array(values, pa.binary(16))
    except (ValueError, pa.ArrowInvalid) as error:
        raise SchemaError(
            f"A value for column {name!r} is not a UUID",
            hint="Give strings such as f79c3e09-677c-4bbd-a479-3f349cb785e7.",
            column=name,
        ) from error
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _length(rows: Sides) -> int:
    return len(next(iter(rows.values())))

"""Comparison of columns of internal values with literals, vectorized on Arrow arrays.

Every column is converted to a form whose natural order is Iceberg's: dates and times to integers,
text and UUIDs to bytes, and decimals stored as bytes to bytes that sort like their values. Results
are three-valued: null where the value is null.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import FALSE, ZERO, mask, null, scalar
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTransform,
)
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Junction,
    PredicateOperation,
    folded,
    operands_of,
)
from icecomb.format.spec.promotion import units_per_day
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

_KERNELS: dict[PredicateOperation, Callable[[Any, Any], Any]] = {
    PredicateOperation.LT: pc.less,
    PredicateOperation.LT_EQ: pc.less_equal,
    PredicateOperation.GT: pc.greater,
    PredicateOperation.GT_EQ: pc.greater_equal,
    PredicateOperation.EQ: pc.equal,
    PredicateOperation.NOT_EQ: pc.not_equal,
}
_TRUE_FOR_LESS = (PredicateOperation.LT, PredicateOperation.LT_EQ, PredicateOperation.NOT_EQ)
_DECIMAL_BYTES = 16
_INTEGERS = (IntegerType, LongType, DateType, TimeType, *TIMESTAMP_TYPES)
_SERIALISED: tuple[tuple[tuple[type[IcebergType], ...], dict[int, pa.DataType]], ...] = (
    ((IntegerType, DateType), {4: pa.int32()}),
    # Old files of a column promoted from int or float have bounds of four bytes.
    ((LongType,), {8: pa.int64(), 4: pa.int32()}),
    ((TimeType, TimestamptzType, TimestamptzNanoType), {8: pa.int64()}),
    ((FloatType,), {4: pa.float32()}),
    ((DoubleType,), {8: pa.float64(), 4: pa.float32()}),
)


class ComparableColumn:
    """An Arrow array in the order of its type, comparable with a literal of that type."""

    __slots__ = ("_field_type", "values")

    def __init__(self, values: pa.Array, field_type: IcebergType) -> None:
        self.values = values
        self._field_type = field_type

    def compare(self, operation: PredicateOperation, literal: Any) -> pa.BooleanArray:
        """Return a mask of the values for which a comparison holds; null for null values."""
        if not self._fits(literal):
            above = operation in _TRUE_FOR_LESS if literal > 0 else operation not in _TRUE_FOR_LESS
            holds = operation is PredicateOperation.NOT_EQ or (
                above and operation is not PredicateOperation.EQ
            )
            return _constant(self.values, holds)
        return _KERNELS[operation](self.values, self._scalar(literal))

    def starts_with(self, prefix: Any) -> pa.BooleanArray:
        """Return a mask of the values that begin with a prefix; null for null values."""
        pattern = prefix.encode() if isinstance(prefix, str) else prefix
        return pc.starts_with(self.values, pattern)

    def is_in(self, literals: frozenset[Any]) -> pa.BooleanArray:
        """Return a mask of the values that are among the literals; null for null values."""
        values = self.values
        wanted = [self._scalar(literal) for literal in literals if self._fits(literal)]
        kind = wanted[0].type if wanted else values.type
        value_set = pa.concat_arrays([pa.nulls(0, kind), *(pa.repeat(one, 1) for one in wanted)])
        values = values if values.type == kind else values.cast(kind)
        if pa.types.is_floating(kind):
            # is_in distinguishes -0.0 from 0.0, comparisons do not; adding zero makes them equal.
            zero = scalar(0.0, kind)
            values, value_set = pc.add(values, zero), pc.add(value_set, zero)
        found = pc.is_in(values, value_set=value_set)
        return pc.if_else(self.values.is_valid(), found, null(pa.bool_()))

    def is_nan(self) -> pa.BooleanArray:
        """Return a mask of the values that are NaN; false for null values."""
        if not pa.types.is_floating(self.values.type):
            return mask(len(self.values), value=False)
        return pc.is_nan(self.values).fill_null(FALSE)

    def without(self, dropped: pa.BooleanArray) -> ComparableColumn:
        """Return the same values, null where the mask is true."""
        kept = pc.if_else(dropped, null(self.values.type), self.values)
        return ComparableColumn(kept, self._field_type)

    def _fits(self, literal: Any) -> bool:
        return not pa.types.is_integer(self.values.type) or -(1 << 63) <= literal < 1 << 63

    def _scalar(self, literal: Any) -> pa.Scalar:
        kind = self.values.type
        if pa.types.is_integer(kind):
            return scalar(literal, pa.int64())
        if pa.types.is_floating(kind):
            return scalar(literal, pa.float64())
        if pa.types.is_decimal(kind):
            return pa.scalar(literal, pa.decimal256(76, kind.scale))
        if isinstance(self._field_type, DecimalType):
            return scalar(decimal_key(literal, self._field_type.scale), kind)
        if isinstance(literal, bool):
            return scalar(b"\x01" if literal else b"\x00", kind)
        if isinstance(literal, str):
            return scalar(literal.encode(), kind)
        return scalar(literal.bytes if isinstance(literal, UUID) else literal, kind)


def typed_column(array: pa.Array, field_type: IcebergType) -> ComparableColumn:
    """Return a comparable column of partition values or rows, in the type's own Arrow form."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if isinstance(field_type, _INTEGERS):
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            array = array.view(pa.int32())
        elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
            fine = isinstance(field_type, NANO_TYPES)
            array = array.cast(_in_unit(kind, "ns" if fine else "us")).view(pa.int64())
    elif isinstance(field_type, BooleanType):
        kind = pa.binary()
        array = pc.if_else(array, scalar(b"\x01", kind), scalar(b"\x00", kind))
    elif not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        array = as_binary(array)
    return ComparableColumn(array, field_type)


def bounds_column(array: pa.Array, field_type: IcebergType) -> ComparableColumn:
    """Return a comparable column of serialized values (Appendix D); null where unreadable."""
    array = as_binary(array)
    if isinstance(field_type, (TimestampType, TimestampNanoType)):
        return ComparableColumn(_timestamps(array, field_type), field_type)
    for types, by_width in _SERIALISED:
        if isinstance(field_type, types):
            return ComparableColumn(_fixed_width(array, by_width), field_type)
    if isinstance(field_type, DecimalType):
        return ComparableColumn(_decimal_keys(array), field_type)
    if isinstance(field_type, (BooleanType, UUIDType)):
        width = 1 if isinstance(field_type, BooleanType) else 16
        lengths = pc.binary_length(array)
        fits = pc.equal(lengths, scalar(width, lengths.type))
        array = pc.if_else(fits, array, null(array.type))
    return ComparableColumn(array, field_type)


def known_bounds(
    lower: ComparableColumn, upper: ComparableColumn
) -> tuple[ComparableColumn, ComparableColumn]:
    """Return the bounds of files, without those that cannot be: a lower one above the upper one.

    Which of the two is wrong cannot be told, so neither counts. Bounds with NaN stay.
    """
    reversed_ = pc.greater(lower.values, upper.values).fill_null(FALSE)
    if not reversed_.true_count:
        return lower, upper
    return lower.without(reversed_), upper.without(reversed_)


def evaluate(
    expression: BooleanExpression, column: Callable[[BoundReference], ComparableColumn]
) -> pa.BooleanArray | bool:
    """Evaluate a bound expression; return a mask without nulls, or one bool for all rows."""

    def answer(predicate: BoundPredicate) -> Any:
        if isinstance(predicate.term, BoundTransform):
            raise ExpressionError(
                f"Cannot evaluate {predicate} on values without their type",
                hint="Compare the column itself instead of its transformed value.",
            )
        return _evaluate_predicate(predicate, column(predicate.term))

    result = combine(expression, answer)
    return result if isinstance(result, bool) else result.fill_null(FALSE)


def decimal_key(value: Decimal, scale: int) -> bytes:
    """Return bytes that sort like decimals of one scale."""
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
    unscaled = -unscaled if sign else unscaled
    first = b"\x00" if unscaled < 0 else b"\x01"
    digits_in_order: bytes = unscaled.to_bytes(_DECIMAL_BYTES + 4, "big", signed=True)
    return first + digits_in_order


def as_binary(array: pa.Array) -> pa.Array:
    """Return text or bytes of any Arrow layout as plain binary."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array
    if pa.types.is_large_string(kind):
        return array.view(pa.large_binary())
    if pa.types.is_string(kind):
        return array.view(pa.binary())
    return array.cast(pa.large_binary())


def combine(expression: BooleanExpression, leaf: Callable[[BoundPredicate], Any]) -> Any:
    """Combine predicates' results: a value per row, null if unknown, or a bool for all rows."""

    def answer(node: BooleanExpression, found: list[Any]) -> Any:
        if isinstance(node, Junction):
            return found[0] if found else isinstance(node, And)
        if isinstance(node, BoundPredicate):
            return leaf(node)
        if isinstance(node, (AlwaysTrue, AlwaysFalse)):
            return isinstance(node, AlwaysTrue)
        raise ExpressionError(
            f"Not a bound expression: {node}",
            hint="Bind it to the table's schema with bind() first.",
        )

    return folded(expression, operands_of, answer, _join)


def _join(node: BooleanExpression, before: list[Any], found: Any) -> bool:
    is_and = isinstance(node, And)
    if isinstance(found, bool):
        if found is is_and:
            return False
        before[:] = [found]
        return True
    join = pc.and_kleene if is_and else pc.or_kleene
    before[:] = [join(before[0], found)] if before else [found]
    return False


def _evaluate_predicate(predicate: BoundPredicate, column: ComparableColumn) -> pa.BooleanArray:
    operation = predicate.operation
    if isinstance(predicate, BoundSetPredicate):
        found = column.is_in(predicate.literals)
        return found if operation is PredicateOperation.IN else pc.invert(found)
    if isinstance(predicate, BoundLiteralPredicate):
        if operation is PredicateOperation.STARTS_WITH:
            return column.starts_with(predicate.literal)
        if operation is PredicateOperation.NOT_STARTS_WITH:
            return pc.invert(column.starts_with(predicate.literal))
        return column.compare(operation, predicate.literal)
    if operation is PredicateOperation.IS_NULL:
        return column.values.is_null()
    if operation is PredicateOperation.NOT_NULL:
        return column.values.is_valid()
    if operation is PredicateOperation.IS_NAN:
        return column.is_nan()
    if operation is PredicateOperation.NOT_NAN:
        return pc.invert(column.is_nan())
    raise ExpressionError(
        f"Cannot evaluate {predicate}",
        hint="Build it from the classes of icecomb.format, or give SQL text.",
    )


def _constant(values: pa.Array, holds: bool) -> pa.BooleanArray:  # noqa: FBT001 - the value itself
    return pc.if_else(values.is_valid(), mask(len(values), value=holds), null(pa.bool_()))


def _in_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    return pa.time64(unit) if pa.types.is_time64(kind) else pa.timestamp(unit, kind.tz)


def _fixed_width(array: pa.Array, by_width: dict[int, pa.DataType]) -> pa.Array:
    lengths = pc.binary_length(array)
    parts = []
    for width, kind in by_width.items():
        fits = pc.equal(lengths, scalar(width, lengths.type)).fill_null(FALSE)
        matching = fits.true_count
        if not matching:
            continue
        # Filtering packs the bytes, so that they can be viewed as numbers without a copy.
        packed = array.filter(fits)
        numbers = pa.Array.from_buffers(kind, matching, [None, packed.buffers()[2]])
        if matching == len(array):
            return numbers
        empty = pa.nulls(len(array), kind)
        parts.append(pc.replace_with_mask(empty, fits, numbers))
    if not parts:
        return pa.nulls(len(array), next(iter(by_width.values())))
    widest = next(iter(by_width.values()))
    return pc.coalesce(*(part.cast(widest) for part in parts))


def _timestamps(array: pa.Array, field_type: IcebergType) -> pa.Array:
    """Return the numbers in bounds; those of a column that was a date have four bytes, days."""
    moments = _fixed_width(array, {8: pa.int64()})
    if moments.null_count == array.null_count:
        return moments
    days = _fixed_width(array, {4: pa.int32()}).cast(pa.int64())
    unit = units_per_day(field_type)
    most = scalar(((1 << 63) - 1) // unit, pa.int64())
    fits = pc.less_equal(pc.abs(days), most)
    days = pc.multiply(pc.if_else(fits, days, null(days.type)), scalar(unit, pa.int64()))
    return pc.coalesce(moments, days)


def _decimal_keys(array: pa.Array) -> pa.Array:
    lengths = pc.binary_length(array)
    longest = scalar(_DECIMAL_BYTES + 4, lengths.type)
    fits = pc.and_(pc.greater(lengths, ZERO.cast(lengths.type)), pc.less_equal(lengths, longest))
    array = pc.if_else(fits, array, null(array.type))
    kind = array.type
    negative = pc.greater_equal(pc.binary_slice(array, 0, 1), scalar(b"\x80", kind))
    fill = pc.if_else(negative, scalar(b"\xff", kind), scalar(b"\x00", kind))
    first = pc.if_else(negative, scalar(b"\x00", kind), scalar(b"\x01", kind))
    padding = pc.binary_repeat(fill, pc.subtract(longest, pc.binary_length(array)))
    return pc.binary_join_element_wise(first, padding, array, scalar(b"", kind))

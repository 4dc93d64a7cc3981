"""Casts of Arrow arrays of other types to the Arrow type of an Iceberg type.

There are two policies. *Reading* accepts every physical form in which a value of the column may
have been stored (spec: Schema Evolution, Appendix A): promoted types, narrower integers, INT96 and
other timestamp units, text without its annotation. *Writing* accepts only lossless casts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import of_short_offsets
from icecomb.format.errors import CorruptFileError, SchemaError, UnsupportedError
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.promotion import is_date_promotion
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    ZONED_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
    UUIDType,
)

Cast: TypeAlias = Callable[[pa.Array], pa.Array]

_NARROW_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())


def writing_cast(source: pa.DataType, target: IcebergType, path: str) -> Cast | None:
    """Return the lossless cast to a column's type; None if no cast is needed.

    Values that do not fit (nanoseconds, invalid UTF-8) raise errors when arrays are cast.
    """
    found, cast = _cast(source, target, path, lossless=True)
    if not found:
        raise SchemaError(
            f"{path}: {source} cannot be written as {target}",
            hint="Cast the column first, or change its type in the table.",
        )
    return cast


def reading_cast(source: pa.DataType, target: IcebergType, path: str) -> Cast | None:
    """Return the cast from a data file's type to a column's; None if no cast is needed."""
    found, cast = _cast(source, target, path, lossless=False)
    if not found:
        raise CorruptFileError(
            f"Column {path!r} is {source} in the file and {target} in the table",
            hint="The file was not written for this column; check field ids and name mapping.",
        )
    return cast


def _cast(
    source: pa.DataType, target: IcebergType, path: str, *, lossless: bool
) -> tuple[bool, Cast | None]:
    wanted = type_to_pyarrow(target)
    if source == wanted and pa.types.is_timestamp(wanted) and wanted.unit == "ns":
        # what ORC declares as nanoseconds may come as microseconds
        return True, None if lossless else _timestamp_cast(source, wanted, path, lossless=False)
    if source == wanted:
        return True, _checked_text(path) if lossless and isinstance(target, StringType) else None
    if lossless and pa.types.is_null(source):
        return True, _plain_cast(wanted, path)
    if _is_timestamp(target) and pa.types.is_timestamp(source):
        zoned = isinstance(target, ZONED_TYPES)
        if lossless and zoned is (source.tz is None):
            return False, None
        return True, _timestamp_cast(source, wanted, path, lossless=lossless)
    if isinstance(target, UUIDType) and source == pa.binary(16):
        return True, lambda array: pa.ExtensionArray.from_storage(wanted, array)
    if isinstance(target, UUIDType) and pa.types.is_binary(source) and not lossless:
        # ORC has no fixed-length binary type.
        fixed = _plain_cast(pa.binary(16), path)
        return True, lambda array: pa.ExtensionArray.from_storage(wanted, fixed(array))
    if isinstance(target, FixedType) and source == pa.uuid():
        return target.length == 16, lambda array: array.storage
    allowed = _lossless(source, target) or (not lossless and _stored_as(source, target))
    if not allowed:
        return False, None
    if _needs_text_check(source, target, lossless=lossless):
        cast, check = _plain_cast(wanted, path), _checked_text(path)
        return True, lambda array: check(cast(array))
    return True, _plain_cast(wanted, path)


def _lossless(source: pa.DataType, target: IcebergType) -> bool:
    types = pa.types
    if isinstance(target, IntegerType):
        return bool(source in _NARROW_INTEGERS)
    if isinstance(target, LongType):
        return bool(source in (*_NARROW_INTEGERS, pa.uint32()))
    if isinstance(target, FloatType):
        return bool(types.is_float16(source))
    if isinstance(target, DoubleType):
        return bool(types.is_floating(source))
    if isinstance(target, DecimalType):
        return bool(
            types.is_decimal(source)
            and source.scale == target.scale
            and source.precision <= target.precision
        )
    if isinstance(target, DateType):
        return bool(types.is_date(source))
    if isinstance(target, TimeType):
        return bool(types.is_time(source))
    if isinstance(target, StringType):
        return bool(types.is_large_string(source) or types.is_string_view(source))
    if isinstance(target, (BinaryType, FixedType)):
        return bool(
            types.is_large_binary(source)
            or types.is_binary_view(source)
            or (isinstance(target, FixedType) and types.is_binary(source))
            or (isinstance(target, BinaryType) and types.is_fixed_size_binary(source))
        )
    return False


def _stored_as(source: pa.DataType, target: IcebergType) -> bool:
    """Return whether only a file may have this form: without, or with another, annotation."""
    types = pa.types
    if isinstance(target, BooleanType):
        return False
    if isinstance(target, LongType):
        return bool(source == pa.uint64())
    if isinstance(target, DateType):
        return bool(source == pa.int32())
    if types.is_date32(source):
        # of a column that was a date
        return is_date_promotion(DateType(), target)
    if isinstance(target, TimeType) or _is_timestamp(target):
        return bool(source == pa.int64())
    if isinstance(target, StringType):
        return bool(types.is_binary(source) or types.is_large_binary(source))
    if isinstance(target, BinaryType):
        return bool(types.is_string(source) or types.is_large_string(source))
    return False


def _is_timestamp(target: IcebergType) -> bool:
    return isinstance(target, TIMESTAMP_TYPES)


def _needs_text_check(source: pa.DataType, target: IcebergType, *, lossless: bool) -> bool:
    # The cast from binary checks by itself; between string types Arrow trusts the producer.
    return lossless and isinstance(target, StringType) and not pa.types.is_binary(source)


def _plain_cast(wanted: pa.DataType, path: str) -> Cast:
    def cast(array: pa.Array) -> pa.Array:
        large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        try:
            return of_short_offsets(array, wanted) if large else array.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise _misfit(path, wanted, problem) from problem

    return cast


def _timestamp_cast(source: pa.DataType, wanted: pa.DataType, path: str, *, lossless: bool) -> Cast:
    zoned = source.tz is not None

    def cast(array: pa.Array) -> pa.Array:
        # ORC batches come in the unit that holds their values, not always the declared one.
        unit = array.type.unit
        if unit != source.unit and wanted.unit == "ns":
            raise UnsupportedError(
                f"Column {path!r} cannot be read in nanoseconds: its timestamps in the file, or "
                "those beside them, are out of their range",
                hint="Rewrite the file as Parquet with the engine that wrote it.",
                column=path,
            )
        # Zones only affect printing: the stored number counts from the same epoch.
        plain = array.view(pa.timestamp(unit)) if zoned else array
        if unit == "ns" and wanted.unit == "us" and not lossless:
            plain = pc.floor_temporal(plain, unit="microsecond")
        try:
            return plain.cast(pa.timestamp(wanted.unit)).view(wanted)
        except pa.ArrowInvalid as problem:
            raise _misfit(path, wanted, problem) from problem

    return cast


def _checked_text(path: str) -> Cast:
    def check(array: pa.Array) -> pa.Array:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as problem:
            raise _misfit(path, array.type, problem) from problem
        return array

    return check


def _misfit(path: str, wanted: pa.DataType, problem: Exception) -> SchemaError:
    hint = "Correct the value, or change the type of the column."
    if pa.types.is_timestamp(wanted) and wanted.unit == "ns":
        hint = "Nanoseconds reach from 1677-09-21 to 2262-04-11; a column of microseconds further."
    elif pa.types.is_timestamp(wanted) or pa.types.is_time(wanted):
        hint = (
            "Iceberg counts microseconds: round the values first (pyarrow.compute.floor_temporal)."
        )
    return SchemaError(
        f"Column {path!r}: a value does not fit {wanted}: {problem}", hint=hint, column=path
    )

"""Sort orders of rewrites, in the syntax of Iceberg's procedures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import ExpressionError, ValidationError
from icecomb.format.expressions.sql.parser import Token, TokenKind, tokens
from icecomb.format.rows.write.partition_writer import field_path
from icecomb.format.rows.write.row_key import RowKey, partition_sort_keys, sort_keys, total_order
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    parse_transform,
)
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
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

_HINT: Final = "Write it as 'a, b DESC NULLS LAST, bucket(8, c)' or 'zorder(a, b)'"
_PLURALS: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_UNSORTED: Final = 0


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows by keys, partitions first; its id is 0 if the table does not have it."""

    keys: Sequence[RowKey]
    sort_order_id: int = _UNSORTED


@dataclass(frozen=True, slots=True)
class ZOrder:
    """A z-order of several columns."""

    columns: tuple[str, ...]


def parse_order(text: str, schema: Schema, *, case_sensitive: bool = True) -> SortOrder | ZOrder:
    """Parse a sort order such as `c DESC NULLS LAST, bucket(8, id)` or `zorder(a, b)`."""
    try:
        return _Parser(text, schema, case_sensitive=case_sensitive).order()
    except ExpressionError as error:
        raise _wrong(text, error.message) from error


def row_order(
    metadata: TableMetadata, spec: PartitionSpec, order: SortOrder, name: str
) -> RowOrder:
    """Return the order of rows for a sort order; the name of the table is for messages."""
    keys = sort_keys(metadata.schema(), spec, order)
    if keys is None:
        raise ValidationError(
            f"Cannot sort {name}: it has no sort order that can be followed, and none was given",
            hint="Give sort_order, or set one: ALTER TABLE ... WRITE ORDERED BY.",
        )
    same = (o.order_id for o in metadata.sort_orders if o.fields == order.fields)
    return RowOrder(keys, next(same, _UNSORTED))


def z_order(
    schema: Schema, spec: PartitionSpec, order: ZOrder, *, most_bytes: int, text_bytes: int
) -> RowOrder:
    """Return the order of rows for a z-order.

    Args:
        most_bytes: The maximum number of bytes in a z-value.
        text_bytes: The number of bytes of a string or binary value that count.
    """
    value = ZValue.of(schema, spec, order.columns, most_bytes=most_bytes, text_bytes=text_bytes)
    return RowOrder([*partition_sort_keys(schema, spec), value])


class _Parser:
    def __init__(self, text: str, schema: Schema, *, case_sensitive: bool) -> None:
        self._text = text
        self._schema = schema
        self._case_sensitive = case_sensitive
        self._tokens = list(tokens(text))
        self._at = 0

    def order(self) -> SortOrder | ZOrder:
        first, second = self._peek(), self._peek(1)
        if first.value.lower() == "zorder" and second.is_sign("("):
            self._at += 2
            columns = self._names()
            self._end()
            return ZOrder(tuple(columns))
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        self._end()
        return SortOrder(1, fields)

    def _field(self) -> SortField:
        transform: Transform = IdentityTransform()
        if self._peek(1).is_sign("(") and self._peek().kind is TokenKind.WORD:
            transform, source = self._transform()
        else:
            name = self._name()
            source = self._column(name)
            kind = self._schema.find_type(source)
            if not transform.can_transform(kind):
                raise _wrong(self._text, f"{name} is a {kind}, which has no order")
        direction = SortDirection.ASC
        if self._word("DESC"):
            direction = SortDirection.DESC
        else:
            self._word("ASC")
        nulls = None
        if self._word("NULLS"):
            if self._word("FIRST"):
                nulls = NullOrder.NULLS_FIRST
            elif self._word("LAST"):
                nulls = NullOrder.NULLS_LAST
            else:
                raise _wrong(self._text, "NULLS is followed by FIRST or LAST")
        return SortField(source, transform, direction, nulls)

    def _transform(self) -> tuple[Transform, int]:
        word = self._next().value.lower()
        self._at += 1  # the bracket
        number = name = None
        while True:
            if self._peek().kind is TokenKind.NUMBER and number is None:
                number = self._next().value
            elif name is None:
                name = self._name()
            else:
                raise _wrong(self._text, f"{word}(...) has too many arguments")
            if not self._take(","):
                break
        self._expect(")")
        if name is None:
            raise _wrong(self._text, f"{word}(...) names no column")
        kind = _PLURALS.get(word, word)
        transform = parse_transform(kind if number is None else f"{kind}[{number}]")
        source = self._column(name)
        if isinstance(transform, UnknownTransform):
            raise _wrong(self._text, f"there is no {word}(...), or its number is missing")
        if not transform.can_transform(self._schema.find_type(source)):
            raise _wrong(self._text, f"{word}({name}) does not apply to that column's type")
        return transform, source

    def _names(self) -> list[str]:
        names = [self._name()]
        while self._take(","):
            names.append(self._name())
        self._expect(")")
        for name in names:
            self._column(name)
        return names

    def _column(self, name: str) -> int:
        try:
            field = self._schema.find_field(name, case_sensitive=self._case_sensitive)
        except ValidationError as error:
            raise _wrong(self._text, error.message) from error
        return field.field_id

    def _name(self) -> str:
        parts = []
        while True:
            token = self._next()
            if token.kind not in {TokenKind.WORD, TokenKind.NAME}:
                raise _wrong(self._text, f"a column's name is missing before {token.value!r}")
            parts.append(token.value)
            if not self._take("."):
                return ".".join(parts)

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, sign: str) -> bool:
        found = self._peek().is_sign(sign)
        self._at += found
        return found

    def _word(self, word: str) -> bool:
        found = self._peek().is_word(word)
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise _wrong(self._text, f"{sign!r} is missing")

    def _end(self) -> None:
        if self._peek().kind is not TokenKind.END:
            raise _wrong(self._text, f"{self._peek().value!r} is unexpected")


def _wrong(text: str, why: str) -> ValidationError:
    return ValidationError(f"{text!r} is not an order of rows: {why}", hint=_HINT)


Bytes: TypeAlias = npt.NDArray[np.uint8]
"""An array with one row of bytes per value."""

_WHOLE: Final = (IntegerType, LongType, DateType, TimeType, *TIMESTAMP_TYPES)
_WIDTH: Final = 8
_ROWS: Final = 1 << 16
_SIGN: Final = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class _Column:
    path: tuple[int, ...]
    bytes_of: Callable[[pa.Array, int], Bytes]
    width: int

    def bytes(self, batch: pa.RecordBatch) -> Bytes:
        array = batch.column(self.path[0])
        if len(self.path) > 1:
            array = pc.struct_field(array, list(self.path[1:]))
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        found = self.bytes_of(array, self.width)
        if array.null_count:
            found[np.asarray(array.is_null())] = 0
        return found


class ZValue:
    """A sort key of rows, at most `width` bytes long; see `row_key.RowKey`."""

    descending = False
    nulls_first = True

    def __init__(self, columns: list[_Column], width: int) -> None:
        self._columns = columns
        bits = [column.width * 8 for column in columns]
        starts = np.cumsum([0, *bits[:-1]])
        turns = [
            starts[at] + bit
            for bit in range(max(bits))
            for at in range(len(columns))
            if bit < bits[at]
        ]
        self._turns = np.array(turns[: width * 8])

    @classmethod
    def of(
        cls,
        schema: Schema,
        spec: PartitionSpec,
        names: Iterable[str],
        *,
        most_bytes: int,
        text_bytes: int,
    ) -> ZValue:
        """Return the key for a z-order of columns.

        Args:
            spec: The partition spec of the new files: its identity columns are constant in a
                file.
            most_bytes: The maximum number of bytes in a z-value.
            text_bytes: The number of bytes of a string or binary value that count.
        """
        same = {f.source_id for f in spec.fields if isinstance(f.transform, IdentityTransform)}
        columns = []
        for name in names:
            field = schema.find_field(name)
            if field.field_id in same:
                continue
            found = _bytes_of(field.field_type)
            if found is None:
                raise ValidationError(
                    f"Cannot z-order by column {name}: {field.field_type} has no order",
                    hint="Name columns of numbers, times, strings or bytes.",
                )
            kind, width = found
            path = field_path(schema, field.field_id)
            columns.append(_Column(path, kind, width or text_bytes))
        if not columns:
            raise ValidationError(
                "Cannot z-order only by columns that the table is partitioned by: they are "
                "constant in a file",
                hint="Name other columns.",
            )
        return cls(columns, most_bytes)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the z-value of each row."""
        parts = [self._of(batch.slice(at, _ROWS)) for at in range(0, batch.num_rows, _ROWS)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())

    def _of(self, batch: pa.RecordBatch) -> pa.Array:
        joined = np.concatenate([column.bytes(batch) for column in self._columns], axis=1)
        bits = np.unpackbits(joined, axis=1)[:, self._turns]
        packed = np.packbits(bits, axis=1)
        width = packed.shape[1]
        offsets = np.arange(0, (len(packed) + 1) * width, width, dtype=np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(packed))]
        return pa.Array.from_buffers(pa.binary(), len(packed), buffers)


def _bytes_of(kind: IcebergType) -> tuple[Callable[[pa.Array, int], Bytes], int] | None:
    """Return a function that converts values to bytes, and their number (0 if configurable)."""
    if isinstance(kind, BooleanType):
        return _of_booleans, 1
    if isinstance(kind, _WHOLE):
        return _of_whole, _WIDTH
    if isinstance(kind, FloatType | DoubleType):
        return _of_floating, _WIDTH
    if isinstance(kind, DecimalType):
        return _of_decimals, _WIDTH
    if isinstance(kind, StringType | BinaryType | FixedType | UUIDType):
        return _of_text, 0
    return None


def _of_booleans(array: pa.Array, width: int) -> Bytes:  # noqa: ARG001 - always one byte
    values = np.asarray(pc.fill_null(array, False)).astype(np.uint8)
    scaled: Bytes = (values * np.uint8(255)).reshape(-1, 1)
    return scaled


def _of_whole(array: pa.Array, width: int) -> Bytes:  # noqa: ARG001 - always eight bytes
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return _ordered(array.view(whole).cast(pa.int64()))


def _of_floating(array: pa.Array, width: int) -> Bytes:  # noqa: ARG001 - always eight bytes
    return _ordered(total_order(array.cast(pa.float64())))


def _of_decimals(array: pa.Array, width: int) -> Bytes:
    # precise enough: only the closeness of rows matters
    return _of_floating(array.cast(pa.float64()), width)


def _ordered(array: pa.Array) -> Bytes:
    values = np.asarray(pc.fill_null(array, 0)).astype(np.int64).view(np.uint64) ^ _SIGN
    big_endian: Bytes = values.astype(">u8").view(np.uint8).reshape(-1, _WIDTH)
    return big_endian


def _of_text(array: pa.Array, width: int) -> Bytes:
    plain = pc.fill_null(array.cast(pa.binary()), b"")
    first = pc.binary_slice(plain, 0, width)
    _, places, content = first.buffers()
    offsets = np.frombuffer(places, np.int32)[first.offset : first.offset + len(first) + 1]
    lengths = np.diff(offsets)
    found = np.zeros((len(first), width), np.uint8)
    if content is not None and len(first):
        rows = np.repeat(np.arange(len(first)), lengths)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found[rows, columns] = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    return found

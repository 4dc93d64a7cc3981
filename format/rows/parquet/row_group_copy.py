"""Parquet files made of row groups of other files: pages are copied, footers are rebuilt.

Statistics are kept as the writer of the pages made them, and so is its name: readers know which
statistics of some writers are wrong. The sources' key-value metadata is dropped: it describes them
to the programs that wrote them (`pandas`, `ARROW:schema`), not to readers of an Iceberg table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from icecomb.format.rows.parquet.compact_protocol import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    CompactError,
    Items,
    Struct,
    TruncatedError,
    read_struct,
)
from icecomb.format.rows.parquet.footer import parquet_metrics
from icecomb.format.rows.parquet.raw_footer import (
    BLOOM,
    BLOOM_LENGTH,
    CHUNK_OFFSET,
    COLUMN_INDEX,
    COLUMN_INDEX_LENGTH,
    COLUMN_ORDERS,
    CONVERTED,
    CREATED_BY,
    DATA_PAGE,
    DICTIONARY_PAGE,
    FIELD_ID,
    GROUP_BYTES,
    GROUP_COLUMNS,
    GROUP_OFFSET,
    GROUP_ROWS,
    GROUP_SIZE,
    INDEX_PAGE,
    KEY_VALUES,
    LOGICAL,
    MAGIC,
    META_DATA,
    NAME,
    NUM_CHILDREN,
    NUM_ROWS,
    NUM_VALUES,
    OFFSET_INDEX,
    OFFSET_INDEX_LENGTH,
    ORDINAL,
    PATH,
    REPEATED,
    REPETITION,
    ROW_GROUPS,
    SCHEMA,
    UNCOMPRESSED,
    VERSION,
    Chunk,
    NotCopyableError,
    RawFooter,
    enclosed,
)
from icecomb.format.rows.parquet.writer import ParquetOptions
from icecomb.format.rows.values.arrow_projection import FileField, file_fields
from icecomb.format.rows.values.arrow_values import reading_cast
from icecomb.format.rows.values.data_metrics import Metrics
from icecomb.format.rows.values.statistics import logical_type
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.partition_writer import OpenDataFile, writing
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

MOST_NUMBERED: Final = (1 << 15) - 1
_BLOOM_BYTES: Final = 1
_LONGEST_BLOOM_HEADER: Final = 1 << 10
_WRONG_SIZES: Final = re.compile(r"parquet-mr (version )?1\.([01]\.|2\.[0-8]\b)")
"""Writers that record wrong sizes of column chunks (PARQUET-816)."""


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """A physical column of a file, by its path from the root."""

    path: tuple[bytes, ...]
    repeated: bool


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The properties shared by files whose row groups can be in one file.

    Attributes:
        schema: The encoded elements of the schema, with the table's names and ids.
        column_orders: The encoded orders of bounds; None if not recorded.
    """

    schema: tuple[bytes, ...]
    created_by: str
    column_orders: bytes | None
    version: int

    @classmethod
    def of(
        cls,
        footer: RawFooter,
        schema: Schema,
        name_mapping: NameMapping | None,
        beside: RawFooter | None = None,
    ) -> FileLayout:
        """Return the layout of a file; other columns than the table's raise NotCopyableError.

        Args:
            beside: The footer of a file whose columns are put behind the table's, instead of those
                that the file may have there with the same ids.
        """
        if _WRONG_SIZES.match(footer.created_by):
            raise NotCopyableError(f"{footer.created_by} counts bytes of pages wrongly")
        columns = footer.parsed.schema
        fields = file_fields(columns.to_arrow_schema(), name_mapping, footer.location)
        if beside is None:
            elements = exact_elements(footer.elements, fields, columns, schema)
            orders = footer.column_orders
        else:
            more = beside.elements[1:]
            ids = {element[FIELD_ID] for element in more}
            replaced = sum(f.field_id in ids for f in fields[-len(more) :])
            own = fields[: len(fields) - replaced]
            inside = footer.elements[: len(footer.elements) - replaced]
            elements = [*exact_elements(inside, own, columns, schema), *more]
            elements[0].put(NUM_CHILDREN, I32, len(own) + len(more))
            orders = footer.column_orders
            if orders is not None:
                kept = orders.values[: len(orders.values) - replaced]
                orders = Items(STRUCT, [*kept, *beside.column_orders.values])
        return cls(
            tuple(element.encoded() for element in elements),
            footer.created_by,
            None if orders is None else _list_bytes(orders),
            footer.version,
        )

    def check(self, other: FileLayout) -> None:
        """Reject a file with another layout by NotCopyableError."""
        if other.created_by != self.created_by:
            raise NotCopyableError(
                f"{other.created_by or 'an unnamed writer'} wrote it, "
                f"{self.created_by} the file before"
            )
        if other != self:
            raise NotCopyableError("its columns are written differently from the file before")

    def columns(self) -> list[PhysicalColumn]:
        """Return the physical columns."""
        elements = (read_struct(element)[0] for element in self.schema)
        return list(_physical(next(elements), elements, PhysicalColumn((), repeated=False)))

    def footer(self, rows: int, groups: Sequence[Struct], values: dict[str, str]) -> bytes:
        """Return the encoded footer of a new file with key-value metadata `values`."""
        made = Struct()
        made.put(VERSION, I32, self.version)
        made.put(SCHEMA, LIST, Items(STRUCT, list(self.schema)))
        made.put(NUM_ROWS, I64, rows)
        made.put(ROW_GROUPS, LIST, Items(STRUCT, list(groups)))
        pairs = [
            Struct([(1, (BINARY, key.encode())), (2, (BINARY, value.encode()))]).encoded()
            for key, value in values.items()
        ]
        made.put(KEY_VALUES, LIST, Items(STRUCT, pairs))
        if self.created_by:
            made.put(CREATED_BY, BINARY, self.created_by.encode())
        if self.column_orders is not None:
            wrapped, _ = read_struct(self.column_orders)
            made.put(COLUMN_ORDERS, LIST, wrapped[1])
        return made.encoded()


@dataclass(frozen=True, slots=True)
class CopyOptions(ParquetOptions):
    """Options for writing files of copied row groups; all source files have the layout."""

    layout: FileLayout | None = None

    def open(self, stream: BinaryIO, settings: FileSettings) -> RowGroupCopy:
        """Implement `FileOptions.open`."""
        assert self.layout is not None  # noqa: S101 - has a default only because other fields do
        return RowGroupCopy(stream, settings, self.layout)


@dataclass(slots=True)
class _Indexes:
    """The page indexes of a chunk, which are written at the end of the file."""

    column: bytes | None
    offset: bytes | None


class RowGroupCopy:
    """A writer of one Parquet file made of row groups of others; the caller closes `stream`."""

    def __init__(self, stream: BinaryIO, settings: FileSettings, layout: FileLayout) -> None:
        self._stream = stream
        self._settings = settings
        self._layout = layout
        self._columns = layout.columns()
        self._buffer = PageBuffer()
        self._rows = 0
        self._groups: list[Struct] = []
        self._indexes: list[list[_Indexes]] = []
        stream.write(MAGIC)

    @property
    def bytes_written(self) -> int:
        """The length of the file so far."""
        return self._stream.tell()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Raise an error, as rows cannot be written here; see `copy`."""
        raise TypeError(f"{len(batches)} batches are not row groups")

    def copy(self, footer: RawFooter, number: int, beside: RawFooter | None = None) -> None:
        """Append a row group; unknown fields or pages raise NotCopyableError.

        Args:
            beside: A file of one row group, whose columns are the last ones of the layout.
        """
        group = footer.row_groups[number].copy()
        more = [] if beside is None else list(beside.chunks(beside.row_groups[0]))
        own = list(islice(footer.chunks(group), len(self._columns) - len(more)))
        origins = [*([(footer, number)] * len(own)), *([(beside or footer, 0)] * len(more))]
        chunks = [*own, *more]
        begin = self._stream.tell()
        copied = [
            self._chunk(*origin, column, chunk, group[GROUP_ROWS])
            for column, (origin, chunk) in enumerate(zip(origins, chunks, strict=True))
        ]
        size = sum(chunk.length for chunk in chunks)
        made = []
        for (origin, _), chunk, (metadata, _) in zip(origins, chunks, copied, strict=True):
            self._bloom_filter(origin, chunk, metadata)
            column = Struct()
            column.put(CHUNK_OFFSET, I64, 0)
            column.put(META_DATA, STRUCT, metadata.encoded())
            made.append(column)
        group.put(GROUP_COLUMNS, LIST, Items(STRUCT, made))
        if beside is not None:
            group.put(GROUP_BYTES, I64, sum(chunk.metadata[UNCOMPRESSED] for chunk in chunks))
        group.put(GROUP_OFFSET, I64, begin)
        group.put(GROUP_SIZE, I64, size)
        if len(self._groups) <= MOST_NUMBERED:
            group.put(ORDINAL, I16, len(self._groups))
        else:
            group.drop(ORDINAL)
        self._rows += group[GROUP_ROWS]
        self._groups.append(group)
        self._indexes.append([indexes for _, indexes in copied])

    def close(self) -> Metrics:
        """Write page indexes and footer; return the footer's metrics."""
        self._write_indexes(COLUMN_INDEX, COLUMN_INDEX_LENGTH, "column")
        self._write_indexes(OFFSET_INDEX, OFFSET_INDEX_LENGTH, "offset")
        schema = self._settings.schema
        values = {"iceberg.schema": json.dumps(schema.to_json())}
        content = enclosed(self._layout.footer(self._rows, self._groups, values))
        footer = pq.read_metadata(pa.BufferReader(content))
        self._stream.write(content[len(MAGIC) :])
        fields = file_fields(footer.schema.to_arrow_schema(), None, "the file being written")
        return parquet_metrics(footer, fields, schema, self._settings.metrics)

    def _chunk(
        self, footer: RawFooter, number: int, column: int, chunk: Chunk, rows: int
    ) -> tuple[Struct, _Indexes]:
        where = f"column {column} of row group {number}"
        begin = self._stream.tell()
        pages = copy_pages(footer, chunk, where, self._buffer, self._stream.write)
        found = pages.rows if self._columns[column].repeated else pages.values
        if found is not None and found != rows:
            raise footer.wrong(f"{where} has {found} rows, its row group {rows}")
        by = begin - chunk.start
        metadata = chunk.metadata.copy()
        metadata.put(PATH, LIST, Items(BINARY, list(self._columns[column].path)))
        for place in (DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE):
            if metadata.get(place):
                metadata.put(place, I64, metadata[place] + by)
        return metadata, _indexes(footer, chunk, pages, by)

    def _bloom_filter(self, footer: RawFooter, chunk: Chunk, metadata: Struct) -> None:
        """Copy a bloom filter, if the chunk has one."""
        if not (begin := chunk.metadata.get(BLOOM)):
            metadata.drop(BLOOM, BLOOM_LENGTH)
            return
        head = footer.read_near(begin, _LONGEST_BLOOM_HEADER, "its bloom filter")
        try:
            header, length = read_struct(head)
            length += header[_BLOOM_BYTES]
        except CompactError:
            raise NotCopyableError("its bloom filters cannot be read") from None
        if chunk.metadata.get(BLOOM_LENGTH, length) != length:
            raise NotCopyableError("its bloom filters are not as long as its footer says")
        metadata.put(BLOOM, I64, self._stream.tell())
        metadata.put(BLOOM_LENGTH, I32, length)
        self._stream.write(footer.read(begin, length, "its bloom filter"))

    def _write_indexes(self, place: int, length: int, name: str) -> None:
        for group, indexes in zip(self._groups, self._indexes, strict=True):
            for column, of_chunk in zip(group[GROUP_COLUMNS].values, indexes, strict=True):
                data: bytes | None = getattr(of_chunk, name)
                if data is not None:
                    column.put(place, I64, self._stream.tell())
                    column.put(length, I32, len(data))
                    self._stream.write(data)


class CopiedDataFile(OpenDataFile):
    """A data file of copied row groups, whose settings have `CopyOptions`."""

    def copy(self, footer: RawFooter, number: int, beside: RawFooter | None = None) -> None:
        """Append a row group; see `RowGroupCopy.copy`."""
        assert isinstance(self._writer, RowGroupCopy)  # noqa: S101 - `CopyOptions` open one
        with writing(self._location):
            self._writer.copy(footer, number, beside)


def _indexes(footer: RawFooter, chunk: Chunk, pages: CopiedPages, by: int) -> _Indexes:
    fields = chunk.fields
    column = offset = None
    if OFFSET_INDEX in fields:
        data = footer.read(fields[OFFSET_INDEX], fields[OFFSET_INDEX_LENGTH], "its page index")
        offset = moved_offset_index(data.to_pybytes(), pages, by)
    if COLUMN_INDEX in fields and offset is not None:
        data = footer.read(fields[COLUMN_INDEX], fields[COLUMN_INDEX_LENGTH], "its page index")
        column = data.to_pybytes()
    return _Indexes(column, offset)


def _physical(
    element: Struct, following: Iterator[Struct], above: PhysicalColumn
) -> Iterator[PhysicalColumn]:
    """Yield the physical columns at or below an element of a schema."""
    for _ in range(element.get(NUM_CHILDREN, 0)):
        child = next(following)
        repeated = above.repeated or child.get(REPETITION) == REPEATED
        yield from _physical(child, following, PhysicalColumn((*above.path, child[NAME]), repeated))
    if not element.get(NUM_CHILDREN):
        yield above


def _list_bytes(items: Items) -> bytes:
    wrapped = Struct()
    wrapped.put(1, LIST, items)
    return wrapped.encoded()


_WINDOW: Final = 16 << 20
_LONGEST_HEADER: Final = 16 << 20
"""The maximum length of a header in bytes: it holds at most two bounds."""

_PAGE_TYPE: Final = 1
_PAGE_SIZE: Final = 3
_CRC: Final = 4
_HEADER: Final = 5
_HEADER_V2: Final = 8
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_V2_ROWS: Final = 3
_LOCATIONS: Final = 1
_LOCATION_OFFSET, _LOCATION_SIZE, _LOCATION_ROW = range(1, 4)
_LAST_OF_INDEX: Final = 2


@dataclass(slots=True)
class CopiedPages:
    """The pages found in a chunk.

    Attributes:
        data_pages: Offset and length of each data page in bytes, header included.
        values: The number of values, nulls included.
        rows: The number of rows; None where pages do not record it.
    """

    data_pages: list[tuple[int, int]] = field(default_factory=list)
    values: int = 0
    rows: int | None = None


class PageBuffer:
    """Reusable memory for pages: allocating new memory costs as much as reading them."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def of(self, length: int) -> memoryview:
        """Return a view of `length` bytes, and allocate more memory if needed."""
        if len(self._bytes) < length:
            self._bytes = bytearray(length)
        return memoryview(self._bytes)[:length]


def copy_pages(
    footer: RawFooter,
    chunk: Chunk,
    where: str,
    buffer: PageBuffer,
    write: Callable[[Any], object],
) -> CopiedPages:
    """Copy the pages of a chunk; `write` gets bytes that are overwritten after each call.

    It raises NotCopyableError if there are pages of an unknown kind.
    """
    copied = CopiedPages()
    at, end, window = chunk.start, chunk.start + chunk.length, _WINDOW
    while at < end:
        data = buffer.of(min(window, end - at))
        footer.read_into(data, at, where)
        used = _whole_pages(footer, data, at, where, copied)
        if not used:
            if len(data) == end - at:
                raise footer.wrong(f"{where} ends within a page")
            window *= 2
            continue
        write(data[:used])
        at += used
    if copied.values != chunk.metadata[NUM_VALUES]:
        raise footer.wrong(
            f"{where} has {copied.values} values, its footer says {chunk.metadata[NUM_VALUES]}"
        )
    return copied


def _whole_pages(
    footer: RawFooter, data: memoryview, start: int, where: str, copied: CopiedPages
) -> int:
    """Check the complete pages in the data; return their total length in bytes."""
    at = 0
    while at < len(data):
        try:
            header, body = read_struct(data, at)
            size = header[_PAGE_SIZE]
        except TruncatedError:
            if len(data) - at > _LONGEST_HEADER:
                raise footer.wrong(f"{where} has no page at {start + at}") from None
            break
        except CompactError as problem:
            raise footer.wrong(f"{where} has no page at {start + at}: {problem}") from None
        if not isinstance(size, int) or size < 0:
            raise footer.wrong(f"{where} has a page of {size} bytes at {start + at}")
        if body + size > len(data):
            break
        try:
            _check(header, data[body : body + size])
            _count(header, (start + at, body + size - at), copied)
        except (CompactError, TypeError) as problem:
            raise footer.wrong(f"{where} has a wrong page at {start + at}: {problem}") from None
        at = body + size
    return at


def _check(header: Struct, body: memoryview) -> None:
    crc = header.get(_CRC)
    if crc is not None and isal_zlib.crc32(body) != crc & 0xFFFFFFFF:
        raise CompactError("its checksum is not that of its bytes")


def _count(header: Struct, place: tuple[int, int], copied: CopiedPages) -> None:
    kind = header[_PAGE_TYPE]
    if kind in {_DATA, _DATA_V2}:
        inside = header[_HEADER if kind == _DATA else _HEADER_V2]
        copied.data_pages.append(place)
        copied.values += inside[1]
        if kind == _DATA_V2:
            copied.rows = (copied.rows or 0) + inside[_V2_ROWS]
    elif kind != _DICTIONARY:
        raise NotCopyableError(f"it has a page of kind {kind}, which is not known here")


def moved_offset_index(index: bytes, pages: CopiedPages, by: int) -> bytes:
    """Return the offset index of a chunk that was copied, moved `by` bytes.

    It raises NotCopyableError if the index is not that of these pages.
    """
    try:
        found, _ = read_struct(index)
        locations = found[_LOCATIONS].values
        places = [(one[_LOCATION_OFFSET], one[_LOCATION_SIZE]) for one in locations]
        unknown = any(number > _LAST_OF_INDEX for number in found) or any(
            number > _LOCATION_ROW for one in locations for number in one
        )
    except (CompactError, AttributeError, TypeError):
        raise NotCopyableError("its page index cannot be read") from None
    if unknown or places != pages.data_pages:
        raise NotCopyableError("its page index is not that of its pages")
    for one in locations:
        one.put(_LOCATION_OFFSET, I64, one[_LOCATION_OFFSET] + by)
    return found.encoded()


_REQUIRED, _OPTIONAL = range(2)
_PLAIN: Final[tuple[str, dict[str, Any]]] = ("None", {})
_MICROS: Final = {"timeUnit": "microseconds"}
_NANOS: Final = {"timeUnit": "nanoseconds"}
_FORMS: Final[dict[type[PrimitiveType], tuple[str, tuple[tuple[str, dict[str, Any]], ...]]]] = {
    BooleanType: ("BOOLEAN", (_PLAIN,)),
    IntegerType: ("INT32", (_PLAIN, ("Int", {"bitWidth": 32, "isSigned": True}))),
    LongType: ("INT64", (_PLAIN, ("Int", {"bitWidth": 64, "isSigned": True}))),
    FloatType: ("FLOAT", (_PLAIN,)),
    DoubleType: ("DOUBLE", (_PLAIN,)),
    DateType: ("INT32", (("Date", {}),)),
    TimeType: ("INT64", (("Time", _MICROS),)),
    TimestampType: ("INT64", (("Timestamp", {**_MICROS, "isAdjustedToUTC": False}),)),
    TimestamptzType: ("INT64", (("Timestamp", {**_MICROS, "isAdjustedToUTC": True}),)),
    TimestampNanoType: ("INT64", (("Timestamp", {**_NANOS, "isAdjustedToUTC": False}),)),
    TimestamptzNanoType: ("INT64", (("Timestamp", {**_NANOS, "isAdjustedToUTC": True}),)),
    StringType: ("BYTE_ARRAY", (("String", {}),)),
    UUIDType: ("FIXED_LEN_BYTE_ARRAY", (("UUID", {}),)),
    BinaryType: ("BYTE_ARRAY", (_PLAIN,)),
    FixedType: ("FIXED_LEN_BYTE_ARRAY", (_PLAIN,)),
}
"""The physical type of each type, and its possible annotations (spec: Parquet)."""
_VARIANT_PARTS: Final = ("metadata", "value")
_DECIMALS: Final = frozenset({"INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"})


def exact_elements(
    elements: Sequence[Struct],
    fields: Sequence[FileField],
    columns: pq.ParquetSchema,
    schema: Schema,
) -> list[Struct]:
    """Return the schema of a file, depth-first, with the table's names and field ids.

    It raises NotCopyableError if a column is not exactly the table's.
    """
    return _Comparison(elements, columns).all(fields, schema)


class _Comparison:
    def __init__(self, elements: Sequence[Struct], columns: pq.ParquetSchema) -> None:
        self._elements = elements
        self._columns = columns
        self._at = 0
        self._found: list[Struct] = []

    def all(self, fields: Sequence[FileField], schema: Schema) -> list[Struct]:
        root = self._next("table")
        root.drop(FIELD_ID, REPETITION)
        self._fields(fields, schema.fields, "")
        return self._found

    def _fields(
        self, found: Sequence[FileField], wanted: Sequence[NestedField], before: str
    ) -> None:
        wanted = [f for f in wanted if not isinstance(f.field_type, UnknownType)]
        ids = [f.field_id for f in found]
        if ids != [f.field_id for f in wanted]:
            where = f" in {before.rstrip('.')}" if before else ""
            names = ", ".join(f"{f.name} ({f.field_id})" for f in found)
            raise NotCopyableError(
                f"its columns{where} are not the table's current columns in order: {names}"
            )
        for stored, wished in zip(found, wanted, strict=True):
            self._field(stored, wished, f"{before}{wished.name}")

    def _field(self, found: FileField, field: NestedField, path: str) -> None:
        element = self._next(field.name, field.field_id)
        # Iceberg's writer in Spark makes columns required that cannot be null in a query.
        allowed = {_REQUIRED} if field.required else {_REQUIRED, _OPTIONAL}
        if element.get(REPETITION) not in allowed:
            raise NotCopyableError(f"column {path} is not required in it, or repeated")
        kind = field.field_type
        if isinstance(kind, StructType):
            if element.get(NUM_CHILDREN, 0) != len(found.children) or _annotated(element):
                raise NotCopyableError(f"column {path} is {found.arrow_type} in it")
            self._fields(found.children, kind.fields, f"{path}.")
        elif isinstance(kind, ListType):
            self._repeated(found, "list", 1, path)
            self._field(found.children[0], kind.element_field, f"{path}.element")
        elif isinstance(kind, MapType):
            self._repeated(found, "key_value", 2, path)
            key, value = found.children
            self._field(key, kind.key_field, f"{path}.key")
            self._field(value, kind.value_field, f"{path}.value")
        elif isinstance(kind, VariantType):
            self._variant(found, element, path)
        else:
            if found.children or not isinstance(kind, PrimitiveType):
                raise NotCopyableError(f"column {path} is {found.arrow_type} in it")
            self._value(found, kind, path)

    def _repeated(self, found: FileField, name: str, children: int, path: str) -> None:
        """Match the group that the specification requires between a list or map and its content."""
        outer = self._found[-1]
        element = self._next(name)
        right = (
            outer.get(NUM_CHILDREN) == 1
            and _annotated(outer)
            and element.get(REPETITION) == REPEATED
            and element.get(NUM_CHILDREN) == children
            and self._name == name
            and len(found.children) == children
        )
        if not right:
            raise NotCopyableError(f"column {path} is not nested as Iceberg nests it")
        element.drop(FIELD_ID)

    def _variant(self, found: FileField, element: Struct, path: str) -> None:
        """Match the group of a variant, which must not be shredded: variants are written whole."""
        parts = [child.name for child in found.children]
        if sorted(parts) != list(_VARIANT_PARTS) or not _annotated(element):
            raise NotCopyableError(f"column {path} is shredded in it, or not a variant")
        for child in found.children:
            part = self._next(child.name)
            part.drop(FIELD_ID)
            column = self._columns.column(child.leaves[0])
            if part.get(REPETITION) != _REQUIRED or column.physical_type != "BYTE_ARRAY":
                raise NotCopyableError(f"column {path} is {found.arrow_type} in it")

    def _value(self, found: FileField, kind: PrimitiveType, path: str) -> None:
        reading_cast(found.arrow_type, kind, path)
        column = self._columns.column(found.leaves[0])
        logical = logical_type(column)
        if isinstance(kind, DecimalType):
            exact = (
                column.physical_type in _DECIMALS
                and logical["Type"] == "Decimal"
                and (column.precision, column.scale) == (kind.precision, kind.scale)
            )
        else:
            physical, annotations = _FORMS.get(type(kind), ("", ()))
            exact = column.physical_type == physical and any(
                logical["Type"] == name and more.items() <= logical.items()
                for name, more in annotations
            )
        if isinstance(kind, FixedType):
            exact = exact and column.length == len(kind)
        if not exact:
            raise NotCopyableError(
                f"column {path} is {column.physical_type} {column.logical_type} in it, "
                f"{kind} in the table"
            )

    def _next(self, name: str, field_id: int | None = None) -> Struct:
        """Return the next element, with its name and id in the table."""
        if self._at >= len(self._elements):
            raise NotCopyableError("its schema has fewer columns than the table")
        original = self._elements[self._at]
        self._at += 1
        self._name = original[NAME].decode(errors="replace")
        element = original.copy()
        element.put(NAME, BINARY, name.encode())
        if field_id is not None:
            element.put(FIELD_ID, I32, field_id)
        self._found.append(element)
        return element


def _annotated(element: Struct) -> bool:
    return LOGICAL in element or CONVERTED in element

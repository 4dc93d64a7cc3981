"""Projection of a data file's columns, or of a user's frame, to the columns of a table.

A file's fields form a tree (`FileField`). Fields are found by field id at every depth: in structs,
structs in lists, map keys and values; names never decide where ids exist. A file without any ids
takes them from the table's name mapping (spec: Column Projection). The element of a list and the
key and value of a map are found by position, because some writers give ids only to columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.number_view import array_of
from icecomb.format.arrow.plain_layout import of_short_offsets, plain_batch, plain_type
from icecomb.format.errors import CorruptFileError, SchemaError
from icecomb.format.input_limit import too_large, unpacked_bytes
from icecomb.format.rows.values.arrow_values import Cast, reading_cast
from icecomb.format.rows.values.metadata_columns import LINEAGE_IDS, ROW_ID, ROW_POSITION
from icecomb.format.rows.values.value_array import default_scalar
from icecomb.format.rows.values.variant_column import given_variants, stored_variants
from icecomb.format.spec.arrow_schema import (
    child_fields,
    field_id,
    field_to_pyarrow,
    scalar_to_pyarrow,
    type_to_pyarrow,
)
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UnknownType,
    VariantType,
)

_LATEST: Final[deque[tuple[pa.Schema, NameMapping | None, tuple[FileField, ...]]]] = deque(maxlen=1)
"""The latest result: most files of a table have the same schema."""

CastChooser: TypeAlias = Callable[[pa.DataType, IcebergType, str], Cast | None]


@dataclass(frozen=True, slots=True)
class FileField:
    """A field of a data file.

    Args:
        arrow_type: The type of its values in a plain layout; pyarrow may read another one.
        field_id: Its id, its own or by name mapping; None when it has none.
        leaves: The numbers of its physical columns, counted depth-first over the file.
        by_name: Whether the file's ids come from the name mapping.
    """

    name: str
    arrow_type: pa.DataType
    field_id: int | None
    children: tuple[FileField, ...]
    leaves: tuple[int, ...]
    by_name: bool = False

    def child(self, wanted: int) -> FileField | None:
        """Return the direct child with this field id, or None."""
        return next((c for c in self.children if c.field_id == wanted), None)


def ids_of(fields: Iterable[FileField]) -> Iterator[tuple[int, str]]:
    """Yield the ids of fields and of all fields nested in them, each with the field's name."""
    for f in fields:
        if f.field_id is not None:
            yield f.field_id, f.name
        yield from ids_of(f.children)


def file_fields(
    schema: pa.Schema, name_mapping: NameMapping | None, location: str
) -> tuple[FileField, ...]:
    """Return the tree of a file's fields with their ids.

    The name mapping is used if no field has an id; without either, raise SchemaError.
    """
    if _LATEST:
        known, mapping, fields = _LATEST[0]
        # Ids of all depths are in the schema's metadata.
        if mapping is name_mapping and known.equals(schema, check_metadata=True):
            return fields
    mapped: tuple[MappedField, ...] | None = None
    # a file without columns has nothing to map
    if len(schema) and not any(_any_id(f) for f in schema):
        if name_mapping is None:
            raise SchemaError(
                f"Data file {location} has no field ids and the table has no name mapping",
                hint="Set the table property schema.name-mapping.default.",
                path=location,
            )
        mapped = name_mapping.fields
    leaf = count()
    found = tuple(_file_field(f, f.name, mapped, leaf) for f in schema)
    _LATEST.appendleft((schema, name_mapping, found))
    return found


def names_as_ids(schema: pa.Schema, fields: Sequence[NestedField]) -> tuple[FileField, ...]:
    """Return the tree of a frame's fields, with the ids of the table's fields by name."""
    leaf = count()
    return tuple(_named_field(f, f.name, fields, leaf) for f in schema)


class Projection:
    """A conversion of batches of one file into batches of the wanted columns.

    Args:
        fields: The wanted columns; `_pos` is generated.
        constants: Values by field id that hold for the whole file: identity partition values,
            `_file`, `_spec_id`. A column's constant takes precedence over the file; a field of a
            struct is read if the file has it, as a null constant leaves open if the struct is null.
            Those of row lineage are what rows inherit for which the file states none: the id of
            its first row, the sequence number of the file; null if its rows have no lineage.
        choose: The function that chooses the cast of primitive values.

    Attributes:
        constant_bytes: What constants and defaults take in memory in each row, at least.
    """

    def __init__(
        self,
        fields: Sequence[NestedField],
        source: Sequence[FileField],
        constants: Mapping[int, Any],
        choose: CastChooser = reading_cast,
    ) -> None:
        self._choose = choose
        self._constants = constants
        self.constant_bytes = 0
        self._used: list[int] = []
        by_id = {f.field_id: f for f in source if f.field_id is not None}
        self.schema = pa.schema([field_to_pyarrow(f, include_field_ids=False) for f in fields])
        self._columns = [
            (by_id[f.field_id].name if self._reads(f, by_id) else None, self._column(f, by_id))
            for f in fields
        ]

    @property
    def leaves(self) -> tuple[int, ...]:
        """The numbers of the physical columns that must be read."""
        return tuple(sorted(set(self._used)))

    def apply(self, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        """Convert a batch whose first row is row `position` of the file."""
        batch, rows = plain_batch(batch), batch.num_rows
        arrays = [
            build(None if name is None else batch.column(name), rows, position)
            for name, build in self._columns
        ]
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _reads(self, field: NestedField, by_id: Mapping[int, FileField]) -> bool:
        number = field.field_id
        if number == ROW_POSITION.field_id:
            return False
        if number in self._constants and not self._inherits(number):
            return False
        return number in by_id

    def _inherits(self, number: int) -> bool:
        return number in LINEAGE_IDS and self._constants.get(number) is not None

    def _column(self, field: NestedField, by_id: Mapping[int, FileField]) -> _Build:
        if field.field_id == ROW_POSITION.field_id:
            return lambda _, rows, position: array_of(
                np.arange(position, position + rows, dtype=np.int64)
            )
        found = by_id.get(field.field_id) if self._reads(field, by_id) else None
        if self._inherits(field.field_id):
            return self._lineage(field, found)
        convert = self._field(field, found, field.name)
        if convert is None:
            return lambda array, _, __: array
        return lambda array, rows, _: convert(array, rows)

    def _lineage(self, field: NestedField, found: FileField | None) -> _Build:
        """Return the builder of a column of row lineage (spec: Row Lineage)."""
        inherited: int = self._constants[field.field_id]
        counts = field.field_id == ROW_ID.field_id
        convert = None if found is None else self._field(field, found, field.name)

        def build(array: pa.Array | None, rows: int, position: int) -> pa.Array:
            if array is not None:
                stored = array if convert is None else convert(array, rows)
                if not stored.null_count:
                    return stored
            first = inherited + position if counts else inherited
            own = array_of(np.arange(first, first + rows) if counts else np.full(rows, first))
            return own if array is None else pc.coalesce(stored, own)

        return build

    def _field(self, field: NestedField, found: FileField | None, path: str) -> _Convert | None:
        """Return the conversion of a field; None if the file's array is used unchanged."""
        wanted = type_to_pyarrow(field.field_type, include_field_ids=False)
        if isinstance(field.field_type, UnknownType):
            # files leave it out: values that one has do not count (spec: Primitive Types)
            self._used.extend(() if found is None else found.leaves)
            return self._constant(None, wanted)
        if found is None and field.field_id in self._constants:
            return self._constant(self._constants[field.field_id], wanted)
        if found is not None and pa.types.is_null(found.arrow_type):
            self._used.extend(found.leaves)
            if field.required:
                self._choose(found.arrow_type, field.field_type, path)
            return self._constant(None, wanted)
        if isinstance(field.field_type, StructType):
            return self._struct(field, field.field_type, found, wanted, path)
        if found is None:
            return self._missing(field, wanted, path)
        if isinstance(field.field_type, VariantType):
            return self._variant(found, path)
        if isinstance(field.field_type, ListType):
            return self._list(field.field_type, found, wanted, path)
        if isinstance(field.field_type, MapType):
            return self._map(field.field_type, found, wanted, path)
        self._used.extend(found.leaves)
        if found.children:
            raise CorruptFileError(
                f"Column {path!r} is {found.arrow_type} in the file, "
                f"{field.field_type} in the table",
                hint="Rewrite the file, or change the column's type back.",
            )
        cast = self._choose(found.arrow_type, field.field_type, path)
        return None if cast is None else lambda array, _: cast(array)

    def _constant(self, value: Any, wanted: pa.DataType) -> _Convert:
        if value is None:
            return lambda _, rows: pa.nulls(rows, wanted)
        scalar = scalar_to_pyarrow(value, wanted)
        size = pa.repeat(scalar, 1).nbytes
        self.constant_bytes += size
        reads = self._choose is reading_cast

        def repeated(_: pa.Array | None, rows: int) -> pa.Array:
            # a batch has few rows then, but lists may have many elements
            if reads and rows * size > unpacked_bytes():
                raise CorruptFileError(
                    f"A default or partition value of {size} bytes would be repeated {rows} times: "
                    f"{too_large()}",
                    hint="If the table is sound, set that environment variable to more.",
                )
            return pa.repeat(scalar, rows)

        return repeated

    def _missing(self, field: NestedField, wanted: pa.DataType, path: str) -> _Convert:
        if field.initial_default is None and field.required:
            raise CorruptFileError(
                f"Required column {path!r} (field id {field.field_id}) is not in the file, and has "
                "no initial default",
                hint="Rewrite the file with the column, or make the column optional.",
            )
        if field.initial_default is None:
            return self._constant(None, wanted)
        return self._constant(default_scalar(field.field_type, field.initial_default), wanted)

    def _struct(
        self,
        field: NestedField,
        kind: StructType,
        found: FileField | None,
        wanted: pa.DataType,
        path: str,
    ) -> _Convert | None:
        if found is None:
            return self._missing_struct(field, kind, wanted, path)
        if not pa.types.is_struct(found.arrow_type):
            raise CorruptFileError(
                f"Column {path!r} is {found.arrow_type} in the file, not a struct",
                hint="Rewrite the file, or read an older snapshot.",
            )
        before = len(self._used)
        parts = []
        for f in kind.fields:
            inner = found.child(f.field_id)
            parts.append(
                (None if inner is None else inner.name, self._field(f, inner, f"{path}.{f.name}"))
            )
        if len(self._used) == before:
            # The file has none of the wanted fields; one leaf still tells where the struct is null.
            self._used.append(found.leaves[0])
        same = [c.name for c in found.children] == [n for n, _ in parts]
        if same and all(convert is None for _, convert in parts) and _same(found, wanted):
            return None
        fields = [wanted.field(i) for i in range(wanted.num_fields)]

        def convert_struct(array: pa.Array, _: int) -> pa.Array:
            rows = len(array)
            children = []
            for name, convert in parts:
                child = None if name is None else array.field(name)
                children.append(child if convert is None else convert(child, rows))
            # without children only the mask tells the number of rows
            mask = array.is_null() if array.null_count or not children else None
            return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

        return convert_struct

    def _variant(self, found: FileField, path: str) -> _Convert:
        self._used.extend(found.leaves)
        if self._choose is reading_cast:
            return stored_variants(found.arrow_type, path)
        return given_variants

    def _missing_struct(
        self, field: NestedField, kind: StructType, wanted: pa.DataType, path: str
    ) -> _Convert:
        known = [
            self._constants[f.field_id] for f in _inside(kind) if f.field_id in self._constants
        ]
        told = known and (field.required or any(value is not None for value in known))
        # the default of a struct that is not null is made of those of its fields
        if field.initial_default is None and not told:
            return self._missing(field, wanted, path)
        parts = [self._field(f, None, f"{path}.{f.name}") for f in kind.fields]
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        return lambda _, rows: pa.StructArray.from_arrays(
            [part(None, rows) for part in parts if part is not None], fields=fields
        )

    def _list(
        self, kind: ListType, found: FileField, wanted: pa.DataType, path: str
    ) -> _Convert | None:
        if len(found.children) != 1 or pa.types.is_struct(found.arrow_type):
            raise CorruptFileError(
                f"Column {path!r} is {found.arrow_type} in the file, not a list",
                hint="Rewrite the file, or read an older snapshot.",
            )
        (element,) = found.children
        convert = self._field(kind.element_field, element, f"{path}.element")
        if convert is None and _same(found, wanted):
            return None
        plain = pa.types.is_list(found.arrow_type)

        def convert_list(array: pa.Array, _: int) -> pa.Array:
            if not plain:
                array = _short_list(array, path)
            values = array.values
            if convert is not None:
                values = convert(values, len(values))
            return _rebuilt(wanted, array, values)

        return convert_list

    def _map(
        self, kind: MapType, found: FileField, wanted: pa.DataType, path: str
    ) -> _Convert | None:
        if not pa.types.is_map(found.arrow_type):
            raise CorruptFileError(
                f"Column {path!r} is {found.arrow_type} in the file, not a map",
                hint="Rewrite the file, or read an older snapshot.",
            )
        key, value = found.children
        convert_key = self._field(kind.key_field, key, f"{path}.key")
        convert_value = self._field(kind.value_field, value, f"{path}.value")
        # A map cannot be read without its keys, and reading only keys yields no map around them.
        self._used.extend((*key.leaves, value.leaves[0]))
        if convert_key is None and convert_value is None and _same(found, wanted):
            return None
        fields = [wanted.key_field, wanted.item_field]

        def convert_map(array: pa.Array, _: int) -> pa.Array:
            keys, items = array.keys, array.items
            if convert_key is not None:
                keys = convert_key(keys, len(keys))
            if convert_value is not None:
                items = convert_value(items, len(items))
            entries = pa.StructArray.from_arrays([keys, items], fields=fields)
            return _rebuilt(wanted, array, entries)

        return convert_map


_Convert: TypeAlias = Callable[[pa.Array | None, int], pa.Array]
_Build: TypeAlias = Callable[[pa.Array | None, int, int], pa.Array]


def _rebuilt(wanted: pa.DataType, array: pa.Array, child: pa.Array) -> pa.Array:
    """Return the lists or maps with other contents; share offsets and validity, do not copy."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        wanted, len(array), [validity, offsets], array.null_count, array.offset, [child]
    )


def _short_list(array: pa.LargeListArray, path: str) -> pa.Array:
    try:
        return of_short_offsets(array, pa.list_(array.type.value_field))
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"Column {path!r}: {len(array)} rows have more than 2^31 values: {error}",
            hint="Give the rows in smaller batches.",
            column=path,
        ) from error


def _same(found: FileField, wanted: pa.DataType) -> bool:
    return bool(found.arrow_type == wanted)


def _inside(kind: StructType) -> Iterator[NestedField]:
    for f in kind.fields:
        yield f
        if isinstance(f.field_type, StructType):
            yield from _inside(f.field_type)


def _any_id(field: pa.Field) -> bool:
    return field_id(field) is not None or any(_any_id(f) for f in child_fields(field.type))


def _place_names(kind: pa.DataType, fields: list[pa.Field]) -> list[str]:
    if pa.types.is_struct(kind):
        return [f.name for f in fields]
    return ["key", "value"] if len(fields) == 2 else ["element"][: len(fields)]


def _file_field(
    field: pa.Field, name: str, mapped: tuple[MappedField, ...] | None, leaf: Iterator[int]
) -> FileField:
    own = field_id(field)
    inside: tuple[MappedField, ...] | None = None
    if mapped is not None:
        known = next((m for m in mapped if name in m.names), None)
        own = None if known is None else known.field_id
        inside = () if known is None else known.fields
    parts = child_fields(field.type)
    names = _place_names(field.type, parts)
    children = tuple(_file_field(f, n, inside, leaf) for f, n in zip(parts, names, strict=True))
    leaves = tuple(i for c in children for i in c.leaves) if children else (next(leaf),)
    kind = plain_type(field.type)
    return FileField(field.name, kind, own, children, leaves, mapped is not None)


def _named_field(
    field: pa.Field, name: str, fields: Sequence[NestedField], leaf: Iterator[int]
) -> FileField:
    known = next((f for f in fields if f.name == name), None)
    parts = child_fields(field.type)
    names = _place_names(field.type, parts)
    inside = () if known is None else _children(known.field_type)
    children = tuple(_named_field(f, n, inside, leaf) for f, n in zip(parts, names, strict=True))
    leaves = tuple(i for c in children for i in c.leaves) if children else (next(leaf),)
    own = None if known is None else known.field_id
    return FileField(field.name, plain_type(field.type), own, children, leaves)


def _children(kind: IcebergType) -> tuple[NestedField, ...]:
    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ListType):
        return (kind.element_field,)
    if isinstance(kind, MapType):
        return (kind.key_field, kind.value_field)
    return ()

"""Writing of Arrow data as data files of a table.

Rows are checked against the table, sorted by its sort order, split by its partition spec, and
written to files of about the table's target size. Memory is bounded whatever the length of the
input. When anything fails, every file of the attempt is removed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from icecomb.format.arrow.batch_stream import GivenRows
from icecomb.format.arrow.plain_layout import (
    plain_batch,
    plain_schema,
    without_hidden_nulls,
    without_nulls,
)
from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.property.table_property import DATA_FORMAT, DISTRIBUTION_MODE, TARGET_FILE_BYTES
from icecomb.format.rows.values.arrow_projection import Projection, names_as_ids
from icecomb.format.rows.values.arrow_values import writing_cast
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.values.metadata_columns import with_lineage
from icecomb.format.rows.values.variant_column import is_variant, variant_problem
from icecomb.format.rows.write.file_options import USE_TABLE_LAYOUT, load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import load_location_provider
from icecomb.format.rows.write.partition_writer import PartitionWriter
from icecomb.format.rows.write.row_key import sort_keys
from icecomb.format.rows.write.row_sort import RowSorter
from icecomb.format.spec.arrow_schema import child_fields
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema, children, with_children
from icecomb.format.spec.types import (
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    VariantType,
)
from icecomb.format.storage.file_io import FileIO

PIECE_ROWS = 1 << 18
PIECE_BYTES = 1 << 30
"""Strings and lists in one Arrow array are limited to 2 GiB."""


def write_data(
    io: FileIO,
    metadata: TableMetadata,
    data: GivenRows,
    *,
    options: Mapping[str, str] | None = None,
) -> list[DataFile]:
    """Write rows as data files of a table; the caller commits them.

    Args:
        data: The rows; columns are matched by name. A reader is consumed batch by batch.
        options: Properties that override the table's for this write; see `DataWriter`.
    """
    writer = DataWriter(io, metadata, str(uuid.uuid4()), options=options)
    try:
        writer.write_all(data)
        return writer.close()
    except BaseException as problem:
        writer.abort(problem)
        raise


class DataWriter:
    """A writer of batches into files by the table's partitioning and target size.

    The property `write.format.default` sets the format: `parquet`, `orc` or `avro`. If the table
    has a sort order, all rows of one writer are sorted by it in each partition, and files record it
    (`sort_order_id`); more rows than fit into some 128 MiB are spilled to temporary files on this
    machine. Files of one partition then do not overlap. Every `write.distribution-mode` (`none`,
    `hash`, `range`) requires that of one process.

    Args:
        task_id: The number of this writer among those of the operation.
        options: Properties that override the table's for this write, for example
            `{"write.format.default": "orc"}`. Spark's
            `{"use-table-distribution-and-ordering": "false"}` leaves rows in their order.
        moved: Whether batches may have the columns of row lineage, for rows of other files. Rows
            without them are new.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        operation_id: str,
        task_id: int = 0,
        *,
        options: Mapping[str, str] | None = None,
        moved: bool = False,
    ) -> None:
        properties = {**metadata.properties, **(options or {})}
        schema, order = metadata.schema(), metadata.sort_order()
        DISTRIBUTION_MODE.of(properties)
        ordered = USE_TABLE_LAYOUT.of(properties)
        keys = sort_keys(schema, metadata.spec(), order) if ordered else None
        written = with_lineage(schema) if moved else schema
        settings = FileSettings(
            written,
            load_file_options(DATA_FORMAT.of(properties), properties),
            MetricsConfig.from_properties(properties, schema, order),
            sort_order_id=None if keys is None else order.order_id,
        )
        self._schema = written
        self._sorter = None if keys is None else RowSorter(keys)
        self._files = PartitionWriter(
            io,
            load_location_provider(io, metadata.location, properties),
            settings,
            metadata.spec(),
            target=TARGET_FILE_BYTES.of(properties),
            name=lambda number: f"{0:05d}-{task_id}-{operation_id}-{number:05d}",
        )
        self._projections = FrameProjections(written)

    def write_all(self, data: GivenRows) -> None:
        """Write all rows; a reader is consumed batch by batch."""
        self._projections.of(data.schema)
        for batch in in_pieces(data):
            self.write(batch)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, whose columns are matched by name."""
        if not batch.num_rows:
            return
        fitted = self._projections.of(batch.schema).apply(batch, 0)
        check_required(self._schema, fitted)
        fitted = without_hidden_nulls(fitted)
        if self._sorter is None:
            self._files.write(fitted)
        else:
            self._sorter.add(fitted)

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        if self._sorter is not None:
            with closing(self._sorter.drain()) as batches:
                for batch in batches:
                    self._files.write(batch, clustered=True)
        return self._files.close()

    def abort(self, problem: BaseException) -> None:
        """Remove every file of this writer, finished or not."""
        if self._sorter is not None:
            self._sorter.discard()
        self._files.abort(problem)


class FrameProjections:
    """Cached projections of frames to a table's columns, by schema of the frame."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[pa.Schema, Projection] = {}

    def of(self, frame: pa.Schema) -> Projection:
        """Return the projection for a schema of batches; see `frame_projection`."""
        found = self._known.get(frame)
        if found is None:
            found = self._known[frame] = frame_projection(self._schema, frame)
        return found


def frame_projection(schema: Schema, frame: pa.Schema) -> Projection:
    """Return the projection of a frame's batches to a table's columns, matched by name."""
    check_frame(schema, frame)
    fields = [_written_default(f) for f in schema.fields]
    return Projection(fields, names_as_ids(frame, fields), {}, writing_cast)


def in_pieces(data: pa.Table | Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the data in batches of suitable size, neither copied nor split without need.

    Batches may have different schemas; those of the same schema are joined. Yielded batches have
    plain layouts.
    """
    batches = data.to_batches(max_chunksize=PIECE_ROWS) if isinstance(data, pa.Table) else data
    small: list[pa.RecordBatch] = []
    rows = size = 0
    plain = (
        plain_batch(whole.slice(start, PIECE_ROWS))
        for whole in batches
        for start in range(0, whole.num_rows, PIECE_ROWS)
    )
    for batch in chain.from_iterable(map(_bounded, plain)):
        more = batch.nbytes
        if small and (size + more > PIECE_BYTES or small[0].schema != batch.schema):
            yield _joined(small)
            small, rows, size = [], 0, 0
        small.append(batch)
        rows, size = rows + batch.num_rows, size + more
        if rows >= PIECE_ROWS:
            yield _joined(small)
            small, rows, size = [], 0, 0
    if small:
        yield _joined(small)


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= PIECE_BYTES:
        yield batch
    else:
        half = batch.num_rows // 2
        yield from _bounded(batch.slice(0, half))
        yield from _bounded(batch.slice(half))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _written_default(field: NestedField) -> NestedField:
    """Return the field with write defaults as the values that projections fill in if missing."""
    kind = field.field_type
    if inside := children(kind):
        kind = with_children(kind, map(_written_default, inside))
    return replace(field, field_type=kind, initial_default=field.write_default)


def check_frame(schema: Schema, frame: pa.Schema) -> None:
    """Reject a frame whose columns do not fit the table's; the error lists each on a line.

    Columns are compared by name, at every depth. An optional column may be missing; types may
    differ if the conversion cannot lose any value.
    """
    lines = list(_differences(schema.fields, list(plain_schema(frame)), ""))
    if not lines:
        return
    hint = "Add, rename or cast columns of the data, or change the table's schema first."
    if b"pandas" in (frame.metadata or {}):
        hint += _hint_of_pandas(schema, frame)
    raise SchemaError(
        "The data does not fit the table's columns:\n" + "\n".join(f"  {line}" for line in lines),
        hint=hint,
    )


def missing_in_table(schema: Schema, frame: pa.Schema) -> pa.Schema:
    """Return the columns of a frame that a table lacks or has too narrow, for a union by name.

    Required columns stay required, and new columns are optional: existing rows have no values for
    them.
    """
    known = StructType(schema.fields)
    return pa.schema(list(_aligned(known, pa.struct(list(plain_schema(frame))))))


def check_required(schema: Schema, batch: pa.RecordBatch) -> None:
    """Reject nulls in required columns, and variants without parts, at every depth.

    The columns of `batch` have the schema's order and types.
    """
    for f, array in zip(schema.fields, batch.columns, strict=True):
        _check_nulls(f, array, f.name)


def _hint_of_pandas(schema: Schema, frame: pa.Schema) -> str:
    """Return what to do about columns that pandas added, or made floats of."""
    hint = ""
    columns = {one["field_name"] for one in json.loads(frame.metadata[b"pandas"])["columns"]}
    if not columns.issuperset(frame.names):
        hint += " An index of pandas is among the columns: df.reset_index(drop=True) leaves it out."
    whole = {f.name for f in schema.fields if isinstance(f.field_type, (IntegerType, LongType))}
    floats = [f.name for f in frame if f.name in whole and pa.types.is_floating(f.type)]
    if floats:
        kinds = ", ".join(f"{name!r}: 'Int64'" for name in floats)
        hint += f" pandas makes floats of integers beside nulls: df.astype({{{kinds}}})."
    return hint


def _differences(
    fields: Sequence[NestedField], given: Sequence[pa.Field], prefix: str
) -> Iterator[str]:
    names = [f.name for f in given]
    by_name = {f.name: f for f in given}
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"! {prefix}{name}: more than once in the data"
    for f in fields:
        found = by_name.get(f.name)
        path = f"{prefix}{f.name}"
        if found is not None:
            yield from _type_differences(f.field_type, found.type, path)
        else:
            yield from _unfilled(f, path)
    known = {f.name for f in fields}
    lowered = {f.name.lower(): f.name for f in fields}
    for extra in given:
        if extra.name in known:
            continue
        near = lowered.get(extra.name.lower())
        asked = "" if near is None else f" (did you mean {prefix}{near}?)"
        yield f"+ {prefix}{extra.name}: {extra.type} in the data, not in the table{asked}"


def _unfilled(field: NestedField, path: str) -> Iterator[str]:
    """Yield the required fields for which neither the data nor a default has a value."""
    if field.write_default is None:
        if field.required:
            yield f"- {path}: required {field.field_type} in the table, missing in the data"
    elif isinstance(field.field_type, StructType):
        for inner in field.field_type.fields:
            yield from _unfilled(inner, f"{path}.{inner.name}")


def _type_differences(kind: IcebergType, given: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_null(given):
        return
    if isinstance(kind, VariantType):
        if not is_variant(given):
            made = "icecomb.format.variants_to_arrow makes variants of values"
            yield f"! {path}: {kind} in the table, {given} in the data ({made})"
        return
    inside = child_fields(given)
    if isinstance(kind, StructType) and pa.types.is_struct(given):
        yield from _differences(kind.fields, inside, f"{path}.")
    elif isinstance(kind, ListType) and len(inside) == 1 and not pa.types.is_struct(given):
        yield from _type_differences(kind.element_type, inside[0].type, f"{path}.element")
    elif isinstance(kind, MapType) and pa.types.is_map(given):
        yield from _type_differences(kind.key_type, inside[0].type, f"{path}.key")
        yield from _type_differences(kind.value_type, inside[1].type, f"{path}.value")
    elif not kind.is_primitive or inside or not _castable(given, kind, path):
        yield f"! {path}: {kind} in the table, {given} in the data"


def _aligned(kind: IcebergType, given: pa.DataType) -> pa.DataType:
    """Return the part of a frame's type that does not fit, nullable as the table's type is."""
    inside = child_fields(given)
    if isinstance(kind, StructType) and pa.types.is_struct(given):
        known = {f.name: f for f in kind.fields}
        return pa.struct(
            [
                f.with_nullable(True)
                if f.name not in known
                else pa.field(
                    f.name,
                    _aligned(known[f.name].field_type, f.type),
                    nullable=not known[f.name].required,
                )
                for f in inside
                if f.name not in known
                or any(_type_differences(known[f.name].field_type, f.type, f.name))
            ]
        )
    if isinstance(kind, ListType) and len(inside) == 1 and not pa.types.is_struct(given):
        element = _aligned(kind.element_type, inside[0].type)
        return pa.list_(pa.field("element", element, nullable=not kind.element_required))
    if isinstance(kind, MapType) and pa.types.is_map(given):
        value = _aligned(kind.value_type, inside[1].type)
        return pa.map_(inside[0].type, pa.field("value", value, nullable=not kind.value_required))
    return given


def _castable(given: pa.DataType, kind: IcebergType, path: str) -> bool:
    try:
        writing_cast(given, kind, path)
    except SchemaError:
        return False
    return True


def _check_nulls(field: NestedField, array: pa.Array, path: str) -> None:
    if field.required and array.null_count:
        raise ValidationError(
            f"Column {path!r} is required, and {array.null_count} of {len(array)} values are null",
            hint="Fill the nulls, or make the column optional.",
            column=path,
        )
    kind = field.field_type
    if not _has_required(kind):
        return
    live = without_nulls(array)
    if isinstance(kind, VariantType):
        if problem := variant_problem(live):
            raise SchemaError(
                f"Column {path!r}: {problem}",
                hint="Make variants of values with icecomb.format.variants_to_arrow.",
                column=path,
            )
    elif isinstance(kind, StructType):
        for i, inner in enumerate(kind.fields):
            _check_nulls(inner, live.field(i), f"{path}.{inner.name}")
    elif isinstance(kind, ListType):
        _check_nulls(kind.element_field, live.flatten(), f"{path}.element")
    elif isinstance(kind, MapType):
        _check_nulls(kind.value_field, _live_values(live), f"{path}.value")


def _live_values(array: pa.MapArray) -> pa.Array:
    """Return the values of maps without nulls, only those inside the array's slice."""
    if not len(array):
        return array.items.slice(0, 0)
    begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.items.slice(begin, end - begin)


def _has_required(kind: IcebergType) -> bool:
    if isinstance(kind, StructType):
        return any(f.required or _has_required(f.field_type) for f in kind.fields)
    if isinstance(kind, ListType):
        return kind.element_required or _has_required(kind.element_type)
    if isinstance(kind, MapType):
        return kind.value_required or _has_required(kind.value_type)
    return isinstance(kind, VariantType)

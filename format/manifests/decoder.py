"""Decoding of manifests of any writer to columns (spec: Manifests).

Fields are found by their ids, and only requested ones are decoded. Values that entries inherit from
the manifest are filled in for all rows at once (spec: Sequence Number Inheritance, First Row ID
Inheritance), before any filter leaves entries out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate, chain, repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.avro.container import (
    AvroContainer,
    parse_container,
    plain_form,
    read_header,
)
from icecomb.format.avro.records import fits_exactly, read_tables
from icecomb.format.avro.schema import from_avro, iceberg_type
from icecomb.format.errors import CorruptFileError, IcecombError, SchemaError, reason_of
from icecomb.format.input_limit import bounded_json
from icecomb.format.manifests.columns import (
    ENTRY_COLUMNS,
    FILE_COLUMNS,
    LIST_COLUMNS,
    ManifestColumns,
    PartitionTupleField,
    of_each,
)
from icecomb.format.manifests.manifest import (
    UNASSIGNED_SEQ,
    DataFileContent,
    FileFormat,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.schema import ENTRY_NAMES, EXACT_BOUNDS, STATISTICS
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimeType,
    UUIDType,
)

_FILE: Final = "data_file_"
"""Prefix of the names of a file's fields where they are mixed with those of its entry."""
_MOST_BYTES: Final = 1 << 53
"""A size that no file has, of any store: the sum of a thousand still is a number of 64 bits."""
_REQUIRED: Final = ("file_path", "file_format", "record_count", "file_size_in_bytes")


def decode_manifest(
    data: bytes,
    manifest: ManifestFile,
    statistics: Iterable[str] = STATISTICS,
) -> ManifestColumns:
    """Decode the bytes of a manifest; see `read_manifest_columns`."""
    container = parse_container(data, manifest.manifest_path)
    plain, other = _plain_forms(container)
    if other != plain and not fits_exactly(container, plain):
        plain = other
    return _decoded([(container, manifest)], plain, statistics)[0]


def decode_together(
    files: Sequence[tuple[bytes, ManifestFile]],
    statistics: Iterable[str] = STATISTICS,
) -> dict[int, ManifestColumns]:
    """Decode small manifests, together if they have the same schema, as most cost is per file.

    The result, by index in `files`, lacks manifests that `decode_manifest` has to read, or to
    refuse, one by one. The columns are slices of the same arrays.
    """
    alike: dict[bytes, list[tuple[int, AvroContainer]]] = {}
    for place, (data, manifest) in enumerate(files):
        with suppress(IcecombError):
            container = parse_container(data, manifest.manifest_path)
            alike.setdefault(container.metadata["avro.schema"], []).append((place, container))
    found: dict[int, ManifestColumns] = {}
    for group in alike.values():
        pairs = [(container, files[place][1]) for place, container in group]
        with suppress(IcecombError):
            plain, other = _plain_forms(pairs[0][0])
            if len(pairs) > 1 and other == plain:
                columns = _decoded(pairs, plain, statistics)
                found.update(zip((place for place, _ in group), columns, strict=True))
    return found


def _plain_forms(container: AvroContainer) -> tuple[Any, Any]:
    """Return the layout that a file declares, and the one that Iceberg Java 1.11 writes for it."""
    declared = plain_form(container, ENTRY_NAMES)
    return declared, plain_form(container, ENTRY_NAMES, fixed_as_bytes=True)


def _decoded(
    files: Sequence[tuple[AvroContainer, ManifestFile]],
    plain: Any,
    statistics: Iterable[str],
) -> list[ManifestColumns]:
    containers = [container for container, _ in files]
    location = containers[0].location
    chosen = [name for name in STATISTICS if name in set(statistics)]
    wanted = {_FILE + name for name in (*FILE_COLUMNS, *LIST_COLUMNS, "partition", *chosen)}
    table, starts = read_tables(
        containers, _flat(plain, location), _FILE + "file_path", wanted | set(ENTRY_COLUMNS)
    )
    lengths = [container.record_count for container in containers]
    table = _rows_of(table, starts, lengths)
    file = {
        name.removeprefix(_FILE): _only_chunk(table.column(name))
        for name in table.column_names
        if name in wanted
    }
    try:
        columns = _entry_columns(table, [manifest for _, manifest in files], lengths)
        columns |= _file_columns(file, table.num_rows, location)
        columns["first_row_id"] = _first_row_ids(columns, [m for _, m in files], lengths)
        columns |= {name: _statistic(file, name, table.num_rows) for name in chosen}
        fields, arrays = _partition_arrays(containers[0], file)
        _check_codes(columns, location)
    except (
        pa.ArrowException, SchemaError, ValueError, KeyError, TypeError, AttributeError,
    ) as error:  # fmt: skip
        raise CorruptFileError(
            f"{location} is not a readable manifest: {reason_of(error)}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from error
    exact = [container.text(EXACT_BOUNDS) == "true" for container in containers]
    if len(files) == 1:
        return [ManifestColumns(files[0][1], columns, fields, arrays, has_exact_bounds=exact[0])]
    return [
        ManifestColumns(
            manifest,
            of_each(columns, partial(pa.Array.slice, offset=start, length=length)),
            fields,
            tuple(array.slice(start, length) for array in arrays),
            is_shared=True,
            has_exact_bounds=own,
        )
        for (_, manifest), length, start, own in zip(
            files, lengths, accumulate(lengths[:-1], initial=0), exact, strict=True
        )
    ]


def count_manifest(data: bytes, manifest: ManifestFile) -> ManifestFile:
    """Return a manifest with counts taken from its file, whatever its list states."""
    return counted(manifest, decode_manifest(data, manifest, ()))


def counted(manifest: ManifestFile, columns: ManifestColumns) -> ManifestFile:
    """Return a manifest with the counts of its entries.

    A number of rows below zero is unknown, and counts as none.
    """
    import numpy as np

    statuses = columns.column("status").to_numpy(zero_copy_only=False)
    rows = np.maximum(columns.column("record_count").to_numpy(zero_copy_only=False), 0)
    files = np.bincount(statuses, minlength=3)
    counts = [int(rows[statuses == status].sum()) for status in range(3)]
    existing, added, deleted = (status.value for status in ManifestEntryStatus)
    return replace(
        manifest,
        added_files_count=int(files[added]),
        existing_files_count=int(files[existing]),
        deleted_files_count=int(files[deleted]),
        added_rows_count=counts[added],
        existing_rows_count=counts[existing],
        deleted_rows_count=counts[deleted],
    )


def manifest_schema(data: bytes) -> Schema | None:
    """Return the table schema a manifest was written with; None if missing or unreadable."""
    try:
        metadata, _ = read_header(data)
        return Schema.from_json(bounded_json(metadata["schema"]))
    except (
        IcecombError, ValueError, LookupError, TypeError, AttributeError, OverflowError,
    ):  # fmt: skip
        return None


def _flat(plain: Any, location: str) -> Any:
    """Return the schema with a flat `data_file`, as the reader only skips top-level fields."""
    fields = {field["name"]: field for field in plain["fields"]}
    file = fields["data_file"]["type"] if {"status", "data_file"} <= set(fields) else None
    if not isinstance(file, dict) or file["type"] != "record":
        raise CorruptFileError(
            f"{location} is an Avro file but not a manifest",
            hint="Check that the manifest list names manifests; read an older snapshot.",
            path=location,
        )
    inner = [{**field, "name": _FILE + field["name"]} for field in file["fields"]]
    at = list(fields).index("data_file")
    return {**plain, "fields": [*plain["fields"][:at], *inner, *plain["fields"][at + 1 :]]}


def _rows_of(table: pa.Table, starts: Sequence[int], lengths: Sequence[int]) -> pa.Table:
    parts = [table.slice(start, n) for start, n in zip(starts, lengths, strict=True)]
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks()


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _entry_columns(
    table: pa.Table, manifests: Sequence[ManifestFile], lengths: Sequence[int]
) -> dict[str, pa.Array]:
    from icecomb.format.arrow.array_build import integers, scalar

    def of_manifests(numbers: Sequence[int | None]) -> pa.Array | pa.Scalar:
        if len(numbers) == 1:
            return scalar(numbers[0], pa.int64())
        rows = (repeat(number, length) for number, length in zip(numbers, lengths, strict=True))
        return integers(list(chain.from_iterable(rows)))

    columns = {
        name: (
            _only_chunk(table.column(name)).cast(kind)
            if name in table.column_names
            else pa.nulls(table.num_rows, kind)
        )
        for name, kind in ENTRY_COLUMNS.items()
    }
    if columns["snapshot_id"].null_count:
        added_by = of_manifests([manifest.added_snapshot_id for manifest in manifests])
        columns["snapshot_id"] = pc.coalesce(columns["snapshot_id"], added_by)
    # an existing file must have its own number, unless the manifest predates sequence numbers
    inherits = pc.equal(columns["status"], scalar(ManifestEntryStatus.ADDED.value, pa.int32()))
    for name in ("sequence_number", "file_sequence_number"):
        own = columns[name]
        if own.null_count:
            numbers = of_manifests([manifest.sequence_number for manifest in manifests])
            unnumbered = pc.equal(numbers, scalar(0, pa.int64()))
            fill = pc.and_(pc.or_(inherits, unnumbered), own.is_null())
            columns[name] = pc.if_else(fill, numbers, own)
    return columns


def _file_columns(file: Mapping[str, pa.Array], count: int, location: str) -> dict[str, pa.Array]:
    from icecomb.format.arrow.array_build import scalar

    for name in _REQUIRED:
        if name not in file:
            raise CorruptFileError(
                f"{location} is not a manifest: data_file has no {name}",
                hint="Read an older snapshot, or restore the file from a backup.",
                path=location,
            )
    # columns that a file lacks share one array of nulls
    absent = cache(lambda kind: pa.nulls(count, kind))
    columns = {
        name: file[name].cast(kind) if name in file else absent(kind)
        for name, kind in FILE_COLUMNS.items()
    }
    data = scalar(DataFileContent.DATA.value, pa.int32())
    columns["content"] = columns["content"].fill_null(data)
    for name, item in LIST_COLUMNS.items():
        kind = pa.large_list(pa.type_for_alias(item))
        columns[name] = file[name].cast(kind) if name in file else pa.nulls(count, kind)
    formats = set(pc.unique(columns["file_format"]).to_pylist())
    unknown = sorted(name for name in formats if str(name).upper() not in FileFormat.__members__)
    if unknown:
        raise CorruptFileError(
            f"{location} tracks files of the unknown format {unknown[0]!r}",
            hint=(
                "A newer writer may have made it: use a newer icecomb, or read an older snapshot."
            ),
            path=location,
        )
    largest = pc.max(columns["file_size_in_bytes"]).as_py()
    if largest is not None and largest > _MOST_BYTES:
        raise CorruptFileError(
            f"{location} tracks a file of {largest} bytes, more than any file has",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        )
    return columns


def _first_row_ids(
    columns: Mapping[str, pa.Array], manifests: Sequence[ManifestFile], lengths: Sequence[int]
) -> pa.Array:
    """Return the first row id of each file: its own, else the next one of its manifest.

    A manifest without a first row id predates the upgrade to format version 3: its files have none,
    whatever they state, unless it is not committed yet.
    """
    from icecomb.format.arrow.array_build import ZERO, scalar

    stated = columns["first_row_id"]
    if stated.null_count == len(stated) and all(m.first_row_id is None for m in manifests):
        return stated
    data = pc.equal(columns["content"], scalar(DataFileContent.DATA.value, pa.int32()))
    # deleted entries take no ids, as in Iceberg Java (ManifestReader.idAssigner)
    deleted = scalar(ManifestEntryStatus.DELETED.value, pa.int32())
    live = pc.not_equal(columns["status"], deleted)
    takes = pc.and_(pc.and_(data, live), stated.is_null())
    rows = pc.if_else(takes, pc.max_element_wise(columns["record_count"], ZERO), ZERO)
    ids = []
    for manifest, length, start in zip(
        manifests, lengths, accumulate(lengths[:-1], initial=0), strict=True
    ):
        if manifest.first_row_id is None:
            is_new = manifest.sequence_number == UNASSIGNED_SEQ
            ids.append(stated.slice(start, length) if is_new else pa.nulls(length, pa.int64()))
            continue
        counts = rows.slice(start, length)
        first = scalar(manifest.first_row_id, pa.int64())
        ends = pc.cumulative_sum_checked(counts, first)
        numbered = pc.subtract(ends, counts)
        ids.append(pc.if_else(takes.slice(start, length), numbered, stated.slice(start, length)))
    return pa.concat_arrays(ids)


def _check_codes(columns: Mapping[str, pa.Array], location: str) -> None:
    from icecomb.format.arrow.array_build import scalar

    least, most = scalar(0, pa.int32()), scalar(2, pa.int32())
    for name in ("status", "content"):
        known = pc.and_(pc.greater_equal(columns[name], least), pc.less_equal(columns[name], most))
        if len(known) and not pc.all(known, skip_nulls=False).as_py():
            raise CorruptFileError(
                f"{location} holds an entry of unknown {name}",
                hint=(
                    "A newer writer may have made it: use a newer icecomb, or read an older "
                    "snapshot."
                ),
                path=location,
            )


def _statistic(file: Mapping[str, pa.Array], name: str, count: int) -> pa.Array:
    value = pa.large_binary() if name.endswith("bounds") else pa.int64()
    if name not in file:
        kind = pa.struct([("key", pa.int32()), ("value", value)])
        return pa.nulls(count, pa.large_list(kind))
    lists = file[name]
    pair = lists.type.value_type if pa.types.is_large_list(lists.type) else None
    if pair is None or not pa.types.is_struct(pair) or pair.num_fields != 2:
        raise SchemaError(f"{name} is not a map")
    return lists


def _partition_arrays(
    container: AvroContainer, file: Mapping[str, pa.Array]
) -> tuple[tuple[PartitionTupleField, ...], tuple[pa.Array, ...]]:
    declared = _partition_fields(container.schema)
    if not declared:
        return (), ()
    partition = file["partition"]
    arrays = (
        _typed(column.field_type, partition.field(index)) for index, column in enumerate(declared)
    )
    return tuple(declared), tuple(arrays)


def _partition_fields(schema: Any) -> list[PartitionTupleField]:
    known: dict[str, Any] = {}
    file = _child(_child_records(schema, known), 2, "data_file")
    partition = _child(_child_records(file, known), 102, "partition")
    out = []
    for field in _child_records(partition, known):
        kind = field["type"]
        branches = kind if isinstance(kind, list) else [kind]
        inner = next((branch for branch in branches if branch != "null"), "null")
        if isinstance(inner, dict) and "name" in inner:
            known[inner["name"]] = inner
        elif isinstance(inner, str) and inner in known:
            inner = known[inner]
        out.append(PartitionTupleField(field.get("field-id"), field["name"], iceberg_type(inner)))
    return out


def _child_records(schema: Any, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    branches = schema if isinstance(schema, list) else [schema]
    record = next(known.get(b, b) if isinstance(b, str) else b for b in branches if b != "null")
    return list(record["fields"])


def _child(fields: list[dict[str, Any]], field_id: int, name: str) -> Any:
    for field in fields:
        if field.get("field-id", field_id if field["name"] == name else None) == field_id:
            return field["type"]
    raise SchemaError(f"there is no {name}")


def _typed(field_type: PrimitiveType | None, array: pa.Array) -> pa.Array:
    if isinstance(field_type, (DecimalType, UUIDType)):
        # few values, many files: convert each value once
        encoded = array.dictionary_encode()
        values = [from_avro(field_type, value) for value in encoded.dictionary.to_pylist()]
        if isinstance(field_type, UUIDType):
            kind: pa.DataType = pa.binary(16)
            values = [value.bytes for value in values]
        else:
            kind = pa.decimal128(field_type.precision, field_type.scale)
        return pa.array(values, kind).take(encoded.indices)
    return array if field_type is None else array.cast(_arrow_type(field_type))


def _arrow_type(field_type: PrimitiveType) -> pa.DataType:
    if isinstance(field_type, (IntegerType, DateType)):
        return pa.int32()
    if isinstance(field_type, (LongType, TimeType, *TIMESTAMP_TYPES)):
        return pa.int64()
    if isinstance(field_type, BooleanType):
        return pa.bool_()
    if isinstance(field_type, FloatType):
        return pa.float32()
    if isinstance(field_type, DoubleType):
        return pa.float64()
    if isinstance(field_type, StringType):
        return pa.large_string()
    return pa.binary(len(field_type)) if isinstance(field_type, FixedType) else pa.large_binary()

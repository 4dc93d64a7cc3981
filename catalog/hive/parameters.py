"""A table's entry in the metastore as Iceberg Java writes it: parameters and storage descriptor.

The names and rules are those of HMSTablePropertyHelper and HiveOperationsBase in apache/iceberg.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.commit.version_line import table_folder
from icecomb.catalog.configuration.catalog_property import (
    ENGINE_ENABLED,
    KEEP_STATISTICS,
    PARAMETER_SIZE,
)
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.property.table_property import (
    ENTRY_PROPERTIES,
    EXTERNAL,
    FOLDER_PATHS,
    FORMER_FOLDERS,
    GC_ENABLED,
    HIVE_ENGINE,
)
from icecomb.format.spec.own_folders import confirmed, folders_of, named_folders
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
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

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.view import ViewMetadata


METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_METADATA_LOCATION: Final = "previous_metadata_location"
TABLE_TYPE: Final = "table_type"
ICEBERG: Final = "ICEBERG"
OWNER: Final = "hive.metastore.table.owner"
DO_NOT_UPDATE_STATS: Final = "DO_NOT_UPDATE_STATS"
_NO_RETENTION: Final = 2**31 - 1
_NOT_CARRIED: Final = ENTRY_PROPERTIES | {OWNER, EXTERNAL.key}
_PURGE: Final = "external.table.purge"
_RENAMED: Final = {GC_ENABLED.key: _PURGE}
_OF_ENGINES: Final = re.compile(
    r"(spark\.sql\.|transactional|view_).*|translated_to_external|owner|external\.table\.purge"
    r"|auto\.purge|discover\.partitions|partition\.retention\.period",
    re.IGNORECASE | re.DOTALL,
)
"""Names of parameters by which Hive or Spark treat a table otherwise, or delete its files."""
_STATISTICS: Final = {
    "total-data-files": "numFiles",
    "total-records": "numRows",
    "total-files-size": "totalSize",
}
FOLDERS: Final = (*(each.key for each in FOLDER_PATHS), FORMER_FOLDERS.key)
"""The parameters that name folders of the table."""
_STORAGE_HANDLER: Final = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
_HIVE_ENGINE: Final = StorageDescriptor(
    input_format="org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    output_format="org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    serde="org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)
_OTHER_ENGINES: Final = StorageDescriptor(
    input_format="org.apache.hadoop.mapred.FileInputFormat",
    output_format="org.apache.hadoop.mapred.FileOutputFormat",
    serde="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)


def new_table(
    database: str,
    name: str,
    metadata: TableMetadata,
    location: str,
    settings: Mapping[str, str],
    *,
    owner: str,
) -> HiveTable:
    """Return the entry of a table that is being created, pointing at the file ``location``.

    The owner is ``owner`` unless a property names one.
    """
    now = int(time.time())
    blank = HiveTable(
        database=database,
        name=name,
        owner=metadata.properties.get(OWNER, owner),
        create_time=now,
        last_access_time=now,
        retention=_NO_RETENTION,
        parameters={EXTERNAL.key: "TRUE"},
        table_type="EXTERNAL_TABLE",
    )
    return pointed(blank, None, metadata, location, settings)


def pointed(
    entry: HiveTable,
    base: TableMetadata | None,
    metadata: TableMetadata,
    location: str,
    settings: Mapping[str, str],
) -> HiveTable:
    """Return ``entry`` pointing at the file ``location``; what is not Iceberg's is unchanged.

    Unchanged are other parameters, and the storage descriptor but columns, location and formats.
    The entry describes ``base``, which is None for a new table.
    """
    altered = described(entry, base, metadata, settings)
    parameters = {**altered.parameters, METADATA_LOCATION: location}
    if previous := entry.metadata_location:
        parameters[PREVIOUS_METADATA_LOCATION] = previous
    return replace(altered, parameters=parameters)


def described(
    entry: HiveTable,
    base: TableMetadata | None,
    metadata: TableMetadata,
    settings: Mapping[str, str],
) -> HiveTable:
    """Return ``entry`` describing ``metadata``, with the same pointer; see `pointed`."""
    by_hive = HIVE_ENGINE.of(metadata.properties, default=ENGINE_ENABLED.of(settings))
    parameters = dict(entry.parameters)
    if base is not None:
        for key in base.properties.keys() - metadata.properties.keys() - _NOT_CARRIED:
            parameters.pop(_RENAMED.get(key, key), None)
    if base is not None:
        before = base.properties
    else:
        before = metadata.properties if entry.metadata_location else {}
    for key, value in carried(metadata.properties, before).items():
        parameters[_RENAMED.get(key, key)] = value
    if metadata.table_uuid is not None:
        parameters["uuid"] = str(metadata.table_uuid)
    parameters[TABLE_TYPE] = ICEBERG
    if not KEEP_STATISTICS.of(settings):
        parameters.pop("COLUMN_STATS_ACCURATE", None)
        parameters[DO_NOT_UPDATE_STATS] = "true"
    if by_hive:
        parameters["storage_handler"] = _STORAGE_HANDLER
    else:
        parameters.pop("storage_handler", None)
    _describe(parameters, metadata, settings)
    storage = storage_of(entry.storage, metadata.schema(), metadata.location, by_hive=by_hive)
    altered = replace(entry, parameters=parameters, storage=storage)
    return altered if base is None else vouching(altered, entry, base, metadata, settings)


def keeps_files(entry: HiveTable) -> bool:
    """Return whether an entry says that no maintenance deletes the table's files (gc.enabled)."""
    return entry.parameters.get(_PURGE, "").lower() == "false"


def own_folders(entry: HiveTable) -> list[str]:
    """Return the folders that an entry calls its table's, its location first."""
    location = entry.storage.location or table_folder(entry.metadata_location or "")
    return [location, *folders_of(entry.parameters)]


def naming(entry: HiveTable) -> HiveTable:
    """Return only what names the folders in an entry, which takes little memory."""
    return with_folders_of(
        HiveTable(
            entry.database,
            entry.name,
            parameters={METADATA_LOCATION: entry.metadata_location or ""},
        ),
        entry,
    )


def with_folders_of(entry: HiveTable, other: HiveTable) -> HiveTable:
    """Return an entry with the folders that another one names."""
    named = {key: other.parameters[key] for key in FOLDERS if key in other.parameters}
    kept = {key: value for key, value in entry.parameters.items() if key not in FOLDERS}
    storage = replace(entry.storage, location=other.storage.location)
    return replace(entry, parameters={**kept, **named}, storage=storage)


def vouching(
    altered: HiveTable,
    entry: HiveTable,
    base: TableMetadata | ViewMetadata,
    metadata: TableMetadata | ViewMetadata,
    settings: Mapping[str, str],
) -> HiveTable:
    """Return the altered entry without folders that only the file before named.

    Whoever writes to the metadata folder could otherwise have the next commit vouch for them.
    """
    properties = metadata.properties
    if base.location == metadata.location == entry.storage.location and all(
        properties.get(key) == base.properties.get(key) == entry.parameters.get(key)
        for key in FOLDERS
    ):
        return altered
    given = named_folders(metadata)
    known = own_folders(entry) if entry.storage.location else folders_of(entry.parameters)
    good = confirmed(given, known, named_folders(base), settings)
    parameters = dict(altered.parameters)
    for each in FOLDER_PATHS:
        if (named := each.of(properties)) and named not in good:
            parameters.pop(each.key, None)
            if each.key in entry.parameters:
                parameters[each.key] = entry.parameters[each.key]
    if FORMER_FOLDERS.key in properties:
        former = folders_of({FORMER_FOLDERS.key: properties[FORMER_FOLDERS.key]})
        parameters[FORMER_FOLDERS.key] = json.dumps([one for one in former if one in good])
    storage = altered.storage
    if metadata.location not in good:
        storage = replace(storage, location=entry.storage.location)
    return replace(altered, parameters=parameters, storage=storage)


def carried(properties: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table or view that its entry repeats.

    The pointer, which other writers may have left among them, is not repeated; nor is
    EXTERNAL=FALSE, which makes the metastore treat the table as managed: DROP would delete its
    files. Names of Hive and Spark are repeated only where their values are not those of `before`:
    whoever writes to the metadata folder could otherwise have the next commit put them there.
    """
    return {
        key: value
        for key, value in properties.items()
        if (key not in _NOT_CARRIED or (key == EXTERNAL.key and value.lower() == "true"))
        and (before.get(key) != value or not _is_of_engines(_RENAMED.get(key, key), value))
    }


def _is_of_engines(name: str, value: str) -> bool:
    if name == _PURGE and value.lower() == "false":  # DROP deletes nothing
        return False
    return _OF_ENGINES.fullmatch(name) is not None


def storage_of(
    storage: StorageDescriptor, schema: Schema, location: str, *, by_hive: bool = False
) -> StorageDescriptor:
    """Return the storage descriptor of a table or view; what others keep in it is unchanged.

    The given one is empty for a new entry; ``by_hive`` if Hive reads the table by Iceberg's storage
    handler.
    """
    formats = _HIVE_ENGINE if by_hive else _OTHER_ENGINES
    return replace(
        storage,
        columns=hive_columns(schema),
        location=location,
        input_format=formats.input_format,
        output_format=formats.output_format,
        serde=formats.serde,
    )


def is_read_by_handler(entry: HiveTable) -> bool:
    """Return whether an entry has Iceberg's storage handler and formats, as Hive needs."""
    storage = entry.storage
    formats = (storage.input_format, storage.output_format, storage.serde)
    wanted = (_HIVE_ENGINE.input_format, _HIVE_ENGINE.output_format, _HIVE_ENGINE.serde)
    return entry.parameters.get("storage_handler") == _STORAGE_HANDLER and formats == wanted


def description_of(key: str, value: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return a parameter that describes the metadata, or nothing if it exceeds the size limit."""
    limit = PARAMETER_SIZE.of(settings)
    return {key: value} if 0 < limit >= len(value) else {}


def check_not_encrypted(entry: HiveTable) -> None:
    """Check that icecomb can maintain a table's entry: not if the table is encrypted."""
    if "encryption.key-id" in entry.parameters:
        raise UnsupportedError(
            f"{entry.full_name} is encrypted: icecomb cannot write to it",
            hint="Write to it with Iceberg Java; metadata_hash depends on its serialization.",
            table=entry.full_name,
        )


def _describe(
    parameters: dict[str, str], metadata: TableMetadata, settings: Mapping[str, str]
) -> None:
    """Set the parameters that describe the metadata, except values above the size limit."""
    shown: dict[str, str | None] = {
        "current-schema": _json(metadata.schema().to_json()),
        "default-partition-spec": _json(metadata.spec().to_json())
        if metadata.spec().fields
        else None,
        "default-sort-order": _json(metadata.sort_order().to_json())
        if metadata.sort_order().fields
        else None,
        "current-snapshot-id": None,
        "current-snapshot-timestamp-ms": None,
        "current-snapshot-summary": None,
    }
    snapshot = metadata.current_snapshot()
    if snapshot is not None:
        summary = {key: value for key, value in snapshot.summary.items() if key != "operation"}
        shown["current-snapshot-id"] = str(snapshot.snapshot_id)
        shown["current-snapshot-timestamp-ms"] = str(snapshot.timestamp_ms)
        shown["current-snapshot-summary"] = _json(summary)
        for key, name in _STATISTICS.items():
            if key in summary:
                parameters[name] = summary[key]
    parameters["snapshot-count"] = str(len(metadata.snapshots))
    for key, value in shown.items():
        parameters.pop(key, None)
        if value is not None:
            parameters |= description_of(key, value, settings)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# timestamptz is "timestamp" where the writer has Hive 2 libraries (Spark, Iceberg's own default);
# the other spelling would flip the column type at every commit by another engine.
# Iceberg Java 1.12 commits no nanoseconds, unknown columns or shapes to a metastore; its "unknown"
# for variants is refused by Hive 2.3. A metastore lets "void" become any type later.
_PLAIN: Final[dict[type[IcebergType], str]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "string",
    TimestampType: "timestamp",
    TimestamptzType: "timestamp",
    TimestampNanoType: "timestamp",
    TimestamptzNanoType: "timestamp",
    UnknownType: "void",
    VariantType: "binary",
    GeometryType: "binary",
    GeographyType: "binary",
    StringType: "string",
    UUIDType: "string",
    FixedType: "binary",
    BinaryType: "binary",
}


def hive_columns(schema: Schema) -> tuple[FieldSchema, ...]:
    """Return a schema's columns as Hive sees them; it ignores case, so names must not clash."""
    names: dict[str, str] = {}
    for column in schema.fields:
        other = names.setdefault(column.name.lower(), column.name)
        if other != column.name:
            raise ValidationError(
                f"Columns {other!r} and {column.name!r} are the same to a Hive metastore, which "
                "ignores case",
                hint="Rename one of them, or keep the table in a folder (type='hadoop').",
            )
    return tuple(
        FieldSchema(column.name, hive_type(column.field_type), column.doc)
        for column in schema.fields
    )


def hive_type(iceberg_type: IcebergType) -> str:
    """Return Hive's name of a type, such as ``struct<a:int,b:array<string>>``."""
    plain = _PLAIN.get(type(iceberg_type))
    if plain is not None:
        return plain
    if isinstance(iceberg_type, DecimalType):
        return f"decimal({iceberg_type.precision},{iceberg_type.scale})"
    if isinstance(iceberg_type, StructType):
        inner = ",".join(f"{one.name}:{hive_type(one.field_type)}" for one in iceberg_type.fields)
        return f"struct<{inner}>"
    if isinstance(iceberg_type, ListType):
        return f"array<{hive_type(iceberg_type.element_type)}>"
    if isinstance(iceberg_type, MapType):
        return f"map<{hive_type(iceberg_type.key_type)},{hive_type(iceberg_type.value_type)}>"
    raise UnsupportedError(
        f"Hive has no type for {iceberg_type}", hint="Choose a type that Hive has for the column."
    )

"""Properties of a Hive table that a migration depends on."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfo

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.source.source_files import PartitionFolder
from icecomb.catalog.migrate.source.source_schema import SourceSchema
from icecomb.catalog.report.finding import Finding, blocker
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property.table_property import (
    ENTRY_PROPERTIES,
    PARTITION_OVERWRITE_MODE,
    RESERVED_PROPERTIES,
)
from icecomb.format.rows.write.partition_path import is_plain
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
    ZONED_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)
from icecomb.format.spec.values.decimal_value import rescaled
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO
from icecomb.format.sql_statement import printed_name, printed_text
from icecomb.format.storage.location import plain_texts

_FORMATS: Final = {
    "MapredParquetInputFormat": FileFormat.PARQUET,
    "DeprecatedParquetInputFormat": FileFormat.PARQUET,
    "ParquetInputFormat": FileFormat.PARQUET,
    "OrcInputFormat": FileFormat.ORC,
    "AvroContainerInputFormat": FileFormat.AVRO,
}
"""Classes that read every file of a folder; others, such as Hudi's for Parquet, select files."""
_SERDES: Final = {
    "ParquetHiveSerDe": FileFormat.PARQUET,
    "OrcSerde": FileFormat.ORC,
    "AvroSerDe": FileFormat.AVRO,
}
"""Classes that show rows unchanged from the files."""
_SKIPPED: Final = ("skip.header.line.count", "skip.footer.line.count")
_NOTHING: Final = re.compile(r"[+-]?0+|-[0-9]+")
_HIVE_ONLY: Final = re.compile(
    r"spark\.sql\..*|numFiles|numRows|rawDataSize|totalSize|COLUMN_STATS_ACCURATE|EXTERNAL|transient_lastDdlTime"
    r"|last_modified_(by|time)|bucketing_version|external\.table\.purge|numPartitions|path"
    r"|parquet\.column\.index\.access|DO_NOT_UPDATE_STATS|STATS_GENERATED.*|discover\.partitions"
    r"|serialization\.format|TRANSLATED_TO_EXTERNAL|avro\.schema\..*|orc\..*"
    r"|skip\.(header|footer)\.line\.count"
    r"|uuid|storage_handler|transactional.*"
)
"""Table parameters that describe only the Hive table."""
_NULL_NAME: Final = "hive.exec.default.partition.name"


def table_folder(table: HiveTable) -> PartitionFolder:
    """Return the folder of a table without partitions."""
    return PartitionFolder("", table.storage.location or "", ())


def partition_folder(
    table: HiveTable, partition: HivePartition, converted: SourceSchema, time_zone: str
) -> PartitionFolder:
    """Return the folder of a partition, with its values in Iceberg.

    Args:
        time_zone: Time zone of local timestamps in partition values.
    """
    values = partition_values(
        partition.values,
        converted.spec,
        converted.schema,
        hive_types=[key.type for key in table.partition_keys],
        null_name=null_name(table),
        time_zone=time_zone,
    )
    return PartitionFolder(
        partition_name(table, partition), partition.storage.location or "", values
    )


def null_name(table: HiveTable) -> str:
    """Return the text that stands for null in partition values."""
    return table.parameters.get(_NULL_NAME) or DEFAULT_PARTITION


def partition_name(table: HiveTable, partition: HivePartition) -> str:
    """Return the name of a partition for messages: ``dt=2024-01-01/k=1``, not escaped."""
    pairs = zip(table.partition_keys, partition.values, strict=False)
    return "/".join(f"{key.name}={value}" for key, value in pairs)


def orc_by_position(entry: HiveTable | HivePartition) -> bool:
    """Return whether Hive finds the columns of an entry's ORC files by position."""
    return _says(entry, "orc.force.positional.evolution")


def parquet_by_position(entry: HiveTable | HivePartition) -> bool:
    """Return whether Hive finds the columns of an entry's Parquet files by position."""
    return _says(entry, "parquet.column.index.access")


def skipped_rows(entry: HiveTable | HivePartition) -> str:
    """Return what makes Hive skip the first or last rows of each file, or ""; of any format.

    A value that is not a number counts: Hive cannot read such a table.
    """
    said = said_of(entry)
    found = ((key, said.get(key, "0")) for key in _SKIPPED)
    return next((f"{key}={text}" for key, text in found if not _NOTHING.fullmatch(text)), "")


def format_of(storage: StorageDescriptor) -> FileFormat | None:
    """Return the format of an entry's files, if Hive reads them unchanged.

    None for formats that Iceberg lacks, and where a third-party class takes part: only that knows
    which files count, or what their rows are.
    """
    kind = _FORMATS.get(_class(storage.input_format))
    serde = _class(storage.serde)
    return kind if not serde or _SERDES.get(serde) is kind else None


def classes_of(storage: StorageDescriptor) -> str:
    """Return the classes by which Hive reads an entry's files, for messages."""
    given = [one for one in (storage.input_format, storage.serde) if one]
    plain = format_of(replace(storage, serde=None)) is not None
    return ", ".join(given if plain else given[:1]) or "none"


def said_of(entry: HiveTable | HivePartition) -> dict[str, str]:
    """Return the parameters of an entry, with those of its SerDe as defaults."""
    return {**entry.storage.serde_parameters, **entry.parameters}


def is_transactional(table: HiveTable) -> bool:
    """Return whether Hive's transactions select its files; Hive ignores the key's case."""
    pairs = ((key.lower(), value.lower()) for key, value in table.parameters.items())
    return ("transactional", "true") in pairs


def provider_of(table: HiveTable) -> str:
    """Return the source by which Spark reads a table: ``hive`` for Hive's own."""
    return table.parameters.get("spark.sql.sources.provider", "hive").lower()


def iceberg_properties(table: HiveTable) -> dict[str, str]:
    """Return the properties that the Iceberg table has from a Hive table.

    They are the parameters that do not describe only the Hive table, and how Spark overwrites it.
    """
    mode = "dynamic" if provider_of(table) == "hive" else "static"
    kept = {
        key: value
        for key, value in table.parameters.items()
        if key not in RESERVED_PROPERTIES | ENTRY_PROPERTIES and not _HIVE_ONLY.fullmatch(key)
    }
    return {PARTITION_OVERWRITE_MODE.key: mode, **kept}


def _class(name: str | None) -> str:
    return (name or "").rpartition(".")[2]


def _says(entry: HiveTable | HivePartition, key: str) -> bool:
    """Return whether a parameter of an entry, or else of its SerDe, is true."""
    return said_of(entry).get(key, "").lower() == "true"


DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""The text that Hive stores for null (hive.exec.default.partition.name)."""
_RANGES: Final = {IntegerType: 31, LongType: 63}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SMALL: Final = {"tinyint": 7, "smallint": 15}
_SIZED: Final = re.compile(r"(?:var)?char\((\d+)\)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP: Final = re.compile(rf"({_DATE.pattern}) (\d\d:\d\d:\d\d)(?:\.(\d{{1,9}}))?", re.ASCII)
_NO_EQUAL: Final = "a partition column of type {} cannot be converted"


def partition_values(
    texts: Sequence[str],
    spec: PartitionSpec,
    schema: Schema,
    *,
    hive_types: Sequence[str] = (),
    null_name: str = DEFAULT_PARTITION,
    time_zone: str = "UTC",
) -> tuple[Any, ...]:
    """Return the Iceberg partition tuple of a metastore partition's values.

    Args:
        texts: One per partition column, from the metastore (never from a path).
        spec: The partition spec, identity on each partition column, in the same order.
        hive_types: Hive's types of the columns, which may have a smaller range than Iceberg's.
        null_name: The text that stands for null.
        time_zone: Time zone that local timestamps were written in, for timestamptz.
    """
    if len(texts) != len(spec.fields):
        raise ValidationError(
            f"A partition has {len(texts)} values for {len(spec.fields)} partition columns",
            hint="Repair that partition in Hive, or drop it there.",
        )
    values = []
    kinds = hive_types or [""] * len(texts)
    for text, field, hive_type in zip(texts, spec.fields, kinds, strict=True):
        column = schema.find_field(field.source_id)
        try:
            value = None
            if text != null_name:
                value = convert(text, column.field_type, time_zone=time_zone)
                _check_room(value, hive_type)
            values.append(value)
        except (ValueError, InvalidOperation, OverflowError) as error:
            why = error.message if isinstance(error, ValidationError) else ""
            raise ValidationError(
                f"partition value {text!r} is not a {column.field_type} (column {column.name})"
                + (f": {why}" if why else ""),
                hint="Drop or rename that partition in Hive, or change the column's type there.",
            ) from error
    return tuple(values)


def convert(text: str, field_type: IcebergType, *, time_zone: str = "UTC") -> Any:
    """Convert a text to icecomb's internal value of a type; `ValueError` if it is not exact."""
    if isinstance(field_type, StringType):
        return text
    if not is_plain(text, field_type):
        raise ValidationError("not written as Hive and Spark read it")
    if isinstance(field_type, IntegerType | LongType):
        return _integer(text, _RANGES[type(field_type)])
    if isinstance(field_type, BooleanType):
        return {"true": True, "false": False}[_one_of(text.lower(), ("true", "false"))]
    if isinstance(field_type, FloatType | DoubleType):
        return _float(text, field_type)
    if isinstance(field_type, DecimalType):
        return _decimal(text, field_type)
    if isinstance(field_type, DateType):
        return (_date(text) - _EPOCH.date()).days
    if isinstance(field_type, TIMESTAMP_TYPES):
        zone = ZoneInfo(time_zone) if isinstance(field_type, ZONED_TYPES) else dt.timezone.utc
        found = _nanoseconds(text, zone)
        if isinstance(field_type, NANO_TYPES):
            if not -(1 << 63) <= found < 1 << 63:
                raise ValidationError("out of the range of nanoseconds, 1677-09-21 to 2262-04-11")
            return found
        if found % NANOS_PER_MICRO:
            raise ValidationError("finer than microseconds")
        return found // NANOS_PER_MICRO
    raise ValidationError(_NO_EQUAL.format(field_type))


def _check_room(value: Any, hive_type: str) -> None:
    """Check that a value fits the type in Hive: Hive truncates others, and engines read null."""
    kind = hive_type.lower().replace(" ", "")
    bits, sized = _SMALL.get(kind), _SIZED.fullmatch(kind)
    if bits is not None and not -(1 << bits) <= value < 1 << bits:
        raise ValidationError(f"out of the range of {kind}")
    if sized is not None and len(value) > int(sized[1]):
        raise ValidationError(f"too long for {kind}")


def _integer(text: str, bits: int) -> int:
    value = int(text)
    if not -(1 << bits) <= value < 1 << bits:
        raise ValidationError("out of range")
    return value


def _float(text: str, field_type: FloatType | DoubleType) -> float:
    value = float(text)
    try:
        if isinstance(field_type, FloatType):
            (value,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        value = math.inf
    if math.isinf(value) and not text.endswith("Infinity"):
        raise ValidationError("out of range")
    return value


def _date(text: str) -> dt.date:
    if not _DATE.fullmatch(text):
        raise ValidationError("not a date like 2024-01-31")
    return dt.date.fromisoformat(text)


def _one_of(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValidationError(f"not one of {', '.join(choices)}")
    return text


def _decimal(text: str, field_type: DecimalType) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValidationError("not a finite number")
    try:
        exact = rescaled(value, field_type.scale)
    except ValueError as error:
        raise ValidationError("it does not fit") from error
    if len(exact.as_tuple().digits) > field_type.precision:
        raise ValidationError("it does not fit")
    return exact


def _nanoseconds(text: str, zone: dt.tzinfo) -> int:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        # Hive shortens a midnight to its date.
        day = _date(text)
        moment = dt.datetime(day.year, day.month, day.day, tzinfo=zone)
        return (moment - _EPOCH) // dt.timedelta(microseconds=1) * NANOS_PER_MICRO
    moment = dt.datetime.fromisoformat(f"{match[1]} {match[2]}").replace(tzinfo=zone)
    fraction = (match[3] or "").ljust(9, "0")
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1)
    return seconds * NANOS_PER_MICRO * 1_000_000 + int(fraction)


def mapping_of(schema: Schema, spellings: Iterable[Mapping[int, str]]) -> NameMapping:
    """Return the mapping of a schema's fields, whose first name is the schema's spelling.

    Args:
        spellings: For each file, a mapping of field id to name.
    """
    names: dict[int, dict[str, None]] = {}
    for one in spellings:
        for field_id, name in one.items():
            names.setdefault(field_id, {})[name] = None

    def mapped(field: NestedField) -> MappedField:
        own = {field.name: None, **names.get(field.field_id, {})}
        inner = tuple(mapped(child) for child in children(field.field_type))
        return MappedField(field_id=field.field_id, names=tuple(own), fields=inner)

    return NameMapping(tuple(mapped(field) for field in schema.fields))


_PROVIDER: Final = "spark.sql.partitionProvider"
_BY_METASTORE: Final = "catalog"
_PATH: Final = "path"
_CHOOSING: Final = frozenset(
    option.lower()
    for option in (
        "pathGlobFilter",
        "modifiedBefore",
        "modifiedAfter",
        "avroSchema",
        "avroSchemaUrl",
        "positionalFieldMatching",
    )
)
"""Options by which Spark reads only some of the files, or columns by other rules than names."""


def spark_findings(table: HiveTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield blockers for contradictions between Spark and the metastore.

    Args:
        settings: Properties of the `FileIO`, which name HDFS clusters.
    """
    if provider_of(table) == "hive":
        return
    name = printed_name(table.database, table.name)
    if table.partition_keys and table.parameters.get(_PROVIDER) != _BY_METASTORE:
        yield blocker(
            "spark-partitions",
            "Spark finds its partitions among the folders in its folder, whatever the metastore "
            f"has of them: its parameter {_PROVIDER} is not {_BY_METASTORE}",
            f"MSCK REPAIR TABLE {name} in Spark registers them, and says so in the entry",
        )
    options = {key.lower(): value for key, value in table.storage.serde_parameters.items()}
    path, location = options.get(_PATH, ""), table.storage.location or ""
    # Partitions in the metastore are found by their own folders.
    if path and not table.partition_keys:
        one, other = plain_texts((path.rstrip("/"), location.rstrip("/")), settings)
        if one != other:
            yield blocker(
                "spark-location",
                f"Spark reads {path}, Hive reads {location}",
                f"ALTER TABLE {name} SET LOCATION {printed_text(location)} in Spark, or "
                f"{printed_text(path)} in Hive: both have one folder then",
                (path, location),
            )
    said = {key for key, value in options.items() if value.lower() != "false"}
    if chosen := sorted(said & _CHOOSING):
        yield blocker(
            "spark-options",
            f"Spark reads its files by the options {', '.join(chosen)}, which Iceberg lacks",
            "copy it in Spark: CREATE TABLE ... AS SELECT, then migrate the copy",
            tuple(chosen),
        )

"""Parquet footers of a Hive table's files, compared with the schema the table is to get.

Hive finds columns by name, ignoring case, so each file may spell them its own way: the spellings go
into the table's name mapping, without which a reader that respects case would show nulls
(apache/iceberg#7299).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.migrate.mapping import mapping_of
from icecomb.format.errors import IcecombError, SchemaError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.column_check import UNKNOWN, ColumnCheck, ColumnProblem
from icecomb.format.rows.unread_field import UnreadField
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
_TAIL: Final = 8


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Why a file cannot be taken over as it is.

    Attributes:
        code: the finding's stable name.
        message: what is wrong in this file.
        column: the column concerned, or "".
    """

    code: str
    message: str
    column: str = ""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a footer says about a file.

    Attributes:
        data_file: the file with its metrics, as a manifest tracks it; None when it cannot be taken
            over.
        spellings: field id to the file's own spelling of that field.
        problems: why the file cannot be taken over; empty when it can.
        unread: what the file has and the table does not.
    """

    data_file: DataFile | None
    spellings: Mapping[int, str]
    problems: tuple[FileProblem, ...] = ()
    unread: tuple[UnreadField, ...] = ()


def read_footer(  # noqa: PLR0917 - the file, then what it is compared with
    io: FileIO,
    status: FileStatus,
    schema: Schema,
    spec: PartitionSpec,
    partition: tuple[Any, ...],
    properties: Mapping[str, str],
) -> Footer:
    """Read one file's footer, compare it with a schema, and take its metrics.

    Args:
        io: reads the file.
        status: the file.
        schema: the table's schema to be.
        spec: the table's partition spec to be, identity on each partition column.
        partition: the values of the file's partition.
        properties: the table's properties to be, which say what metrics are kept.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from icecomb.format.rows.data_metrics import MetricsConfig, data_file, parquet_metrics
    from icecomb.format.rows.read.arrow_projection import file_fields
    from icecomb.format.rows.unproven_values import check_values

    try:
        with io.open_input(status.location) as stream:
            if problem := _not_parquet(stream):
                return Footer(None, {}, (problem,))
            stream.seek(0)
            metadata = pq.read_metadata(stream)
            arrow = metadata.schema.to_arrow_schema()
    except (IcecombError, OSError, pa.ArrowException, ValueError) as error:
        return Footer(None, {}, (FileProblem("unreadable-file", str(error).splitlines()[0]),))
    comparison = _Comparison(_physical_types(metadata))
    comparison.struct(schema.as_struct().fields, list(arrow), "")
    mapping = mapping_of(schema, [comparison.spellings])
    fields = file_fields(arrow, mapping, status.location)
    unread = comparison.checked(ColumnCheck(schema).problems(fields, metadata.schema))
    sources = (field.source_id for field in spec.fields)
    comparison.constants(schema, dict(zip(sources, partition, strict=True)), metadata)
    spellings, problems = comparison.spellings, tuple(comparison.problems)
    if problems:
        return Footer(None, spellings, problems)
    try:
        check_values(io, status.location, mapping, schema, fields)
    except SchemaError as error:
        return Footer(None, spellings, (FileProblem("type-differs", error.message),))
    except IcecombError as error:
        return Footer(None, spellings, (FileProblem("unreadable-file", error.message),))
    config = MetricsConfig.from_properties(properties, schema)
    metrics = parquet_metrics(metadata, fields, schema, config)
    return Footer(
        data_file(status.location, status.size, metrics, spec, partition), spellings, unread=unread
    )


def _not_parquet(stream: pa.NativeFile) -> FileProblem | None:
    size = stream.size()
    head = stream.read(len(_MAGIC))
    if size >= _TAIL:
        stream.seek(size - len(_MAGIC))
        tail = stream.read(len(_MAGIC))
        if tail == _ENCRYPTED:
            return FileProblem("encrypted-file", "its footer is encrypted")
        if head == _MAGIC == tail:
            return None
    kind = {b"ORC": "an ORC file", b"Obj": "an Avro file"}.get(
        bytes(head[:3]), "not a Parquet file"
    )
    if head == _MAGIC:
        kind = "a Parquet file that is cut off"
    return FileProblem("not-parquet", f"it is {kind}")


def _physical_types(metadata: pq.FileMetaData) -> dict[str, str]:
    columns = (metadata.schema.column(index) for index in range(metadata.num_columns))
    return {column.path: column.physical_type for column in columns}


class _Comparison:
    def __init__(self, physical: Mapping[str, str]) -> None:
        self.physical = physical
        self.spellings: dict[int, str] = {}
        self.problems: list[FileProblem] = []

    def struct(self, fields: tuple[NestedField, ...], found: list[pa.Field], path: str) -> None:
        by_name = {field.name.lower(): field for field in reversed(found)}
        for field in fields:
            same = by_name.get(field.name.lower())
            if same is not None:
                self.spellings[field.field_id] = same.name
                self._type(field.field_type, same, path + same.name)

    def checked(self, problems: Iterable[ColumnProblem]) -> tuple[UnreadField, ...]:
        """Take what the check of any added file says; what Hive does not read is given back."""
        unread = []
        for problem in problems:
            if problem.code == UNKNOWN:
                unread.append(UnreadField(problem.parent_id, problem.found))
            else:
                # one answer a column is enough
                self.problems = [p for p in self.problems if p.column != problem.column]
                self._problem(problem.code, problem.message, problem.column)
        return tuple(unread)

    def constants(
        self, schema: Schema, constants: Mapping[int, Any], metadata: pq.FileMetaData
    ) -> None:
        for field_id, value in constants.items():
            spelling = self.spellings.get(field_id)
            if spelling is not None and not _always(metadata, spelling, value):
                name = schema.find_field(field_id).name
                self._problem(
                    "partition-column-in-file",
                    f"its own column {spelling} may differ from the partition's value",
                    name,
                )

    def _type(self, expected: IcebergType, found: pa.Field, path: str) -> None:
        import pyarrow as pa

        arrow = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
        if pa.types.is_null(arrow):
            return
        if isinstance(expected, StructType) and pa.types.is_struct(arrow):
            self.struct(expected.fields, list(arrow), f"{path}.")
        elif isinstance(expected, ListType) and (
            pa.types.is_list(arrow) or pa.types.is_large_list(arrow)
        ):
            self._type(expected.element_type, arrow.value_field, f"{path}.{arrow.value_field.name}")
        elif isinstance(expected, MapType) and pa.types.is_map(arrow):
            pairs = zip(children(expected), (arrow.key_field, arrow.item_field), strict=True)
            for field, inner in pairs:
                self._type(field.field_type, inner, f"{path}.{inner.name}")
        elif isinstance(expected, TimestampType | TimestamptzType) and pa.types.is_timestamp(arrow):
            self._timestamp(expected, arrow, path)
        elif not expected.is_primitive or not _fits(expected, arrow):
            self._problem("type-differs", f"it holds {arrow}, the table says {expected}", path)

    def _timestamp(self, expected: IcebergType, arrow: pa.TimestampType, path: str) -> None:
        physical = self.physical.get(path) or next(
            (kind for name, kind in self.physical.items() if _same_leaf(name, path)), ""
        )
        zoned = isinstance(expected, TimestamptzType)
        if physical == "INT96":
            return
        if zoned != (arrow.tz is not None):
            held = "an instant (UTC)" if arrow.tz else "a local time without zone"
            self._problem(
                "timestamp-zone", f"it holds {held}, the table would say {expected}", path
            )

    def _problem(self, code: str, message: str, column: str) -> None:
        self.problems.append(FileProblem(code, message, column))


def _same_leaf(physical: str, path: str) -> bool:
    return physical.rpartition(".")[2] == path.rpartition(".")[2]


def _fits(expected: IcebergType, arrow: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = pa.types
    if isinstance(expected, DecimalType):
        return bool(
            kinds.is_decimal(arrow)
            and arrow.scale == expected.scale
            and arrow.precision <= expected.precision
        )
    checks: dict[type[IcebergType], Iterator[bool] | tuple[bool, ...]] = {
        BooleanType: (kinds.is_boolean(arrow),),
        IntegerType: (kinds.is_signed_integer(arrow) and arrow.bit_width <= 32,),
        LongType: (kinds.is_signed_integer(arrow),),
        FloatType: (kinds.is_float32(arrow),),
        DoubleType: (kinds.is_float32(arrow), kinds.is_float64(arrow)),
        DateType: (kinds.is_date32(arrow),),
        StringType: (
            kinds.is_string(arrow),
            kinds.is_large_string(arrow),
            kinds.is_binary(arrow),
        ),
        BinaryType: (kinds.is_binary(arrow), kinds.is_large_binary(arrow)),
    }
    return any(checks.get(type(expected), ()))


def _always(metadata: pq.FileMetaData, column: str, value: Any) -> bool:
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            if chunk.path_in_schema != column:
                continue
            stats = chunk.statistics
            if value is None:
                if stats is None or stats.null_count != row_group.num_rows:
                    return False
            elif (
                stats is None
                or stats.null_count
                or not stats.has_min_max
                or not stats.min == stats.max == value
            ):
                return False
    return True

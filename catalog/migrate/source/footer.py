"""Footers of a Hive table's files, compared with the future Iceberg schema.

Hive finds columns by name, ignoring case, so each file may spell them its own way: the spellings go
into the table's name mapping, without which a reader that respects case would show nulls
(apache/iceberg#7299). Columns that Hive finds by other rules than names are problems here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.migrate.source.avro_schema import AvroSchema
from icecomb.catalog.migrate.source.hive_type import NarrowType, Path
from icecomb.catalog.migrate.source.source import mapping_of
from icecomb.format.errors import IcecombError, SchemaError
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.rows.avro.reader import AvroHeader
from icecomb.format.rows.files.described_file import (
    VALUES,
    DescribedFile,
    FileDescriber,
    FileProblem,
    UnknownFormatError,
)
from icecomb.format.rows.parquet.footer import ParquetFooter
from icecomb.format.rows.read.data_file_reader import TwoLevelListError
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.column_check import INT96, UNKNOWN
from icecomb.format.rows.values.data_metrics import MetricsConfig, new_data_file
from icecomb.format.rows.values.file_tail import FileTail
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    ZONED_TYPES,
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
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus

if TYPE_CHECKING:
    import pyarrow as pa


DEFAULT: Final = "column-default"
"""Code of columns for which Spark reads a default in files that lack them."""
NARROW: Final = "narrow-type"
"""Code of values that Hive's type does not hold, or may not."""
ORC_CASE: Final = "orc-case"
"""Code of ORC files with upper case letters in names of columns."""
_NONE: Final[Mapping[Path, NarrowType]] = {}
_UTC: Final = frozenset(
    name
    for each in ("UTC", "UCT", "GMT", "GMT0", "Greenwich", "Universal", "Zulu")
    for name in (each, f"Etc/{each}")
) | {"Z", "+00:00"}
"""Java's names of the zone UTC."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The contents of a file's footer.

    Attributes:
        data_file: The file with its metrics, as in a manifest; None if it cannot be taken over.
        spellings: Field id to the file's spelling of that field.
        problems: Why the file cannot be taken over; empty if it can.
        unread: The fields of the file that the table lacks.
        zone: The time zone of the writer that Hive recorded for timestamps that are instants.
        remarks: What Hive may show otherwise than Iceberg: the code of a finding, and a column.
    """

    data_file: DataFile | None
    spellings: Mapping[int, str]
    problems: tuple[FileProblem, ...] = ()
    unread: tuple[UnreadField, ...] = ()
    zone: str = ""
    remarks: tuple[tuple[str, str], ...] = ()


class FooterReader:
    """A reader of footers that compares them with a schema.

    Args:
        properties: The table's future properties, which choose the metrics to keep.
        positions: The columns in Hive's order, by which it finds those of some ORC files.
        avro: The schema that Hive reads Avro files by; None if by name, ignoring case.
        narrow: Hive's types of columns that hold less than those of the schema.
        defaults: Names, in lower case, of columns that files must have: Spark reads a value in
            files that lack them, and the table would not.
        accepted: Codes of problems in spite of which a file is taken over.
    """

    def __init__(
        self,
        io: FileIO,
        schema: Schema,
        properties: Mapping[str, str],
        positions: Sequence[str] = (),
        avro: AvroSchema | None = None,
        *,
        narrow: Mapping[Path, NarrowType] = _NONE,
        defaults: Collection[str] = (),
        accepted: Collection[str] = (),
    ) -> None:
        self._schema = schema
        # of what is accepted, only what a footer depends on
        self._accepted = frozenset((UNKNOWN, *({INT96} & set(accepted))))
        self._positions = positions
        self._avro = avro
        self._narrow = dict(_by_id(schema.fields, (), narrow))
        self._defaults = frozenset(defaults)
        config = MetricsConfig.from_properties(properties, schema)
        self._config = config
        # bounds are written into manifests
        self._describer = FileDescriber(io.to_copy(), schema, config, asked=schema.field_ids)
        self._last: tuple[Mapping[int, str], NameMapping] | None = None

    def read(
        self,
        status: FileStatus,
        spec: PartitionSpec,
        partition: tuple[Any, ...],
        *,
        positional: bool = False,
    ) -> Footer:
        """Read a file's footer, compare it with the schema, and compute metrics.

        Args:
            spec: The table's future partition spec, identity on each partition column.
            positional: Whether Hive finds the columns by position, if it is an ORC file.
        """
        location = status.location
        try:
            tail, size = self._describer.look(location, status.size)
        except UnknownFormatError as error:
            code, what = str(error.context["code"]), error.context["what"]
            return Footer(None, {}, (FileProblem(code, f"it is {what}"),))
        except TwoLevelListError as error:
            return Footer(None, {}, (FileProblem("two-level-lists", error.message),))
        except (IcecombError, OSError, ValueError) as error:
            text = str(error).splitlines()[0]
            return Footer(None, {}, (FileProblem("unreadable-file", text),))
        comparison = _Comparison(tail)
        comparison.rules(self._positions if positional else None, self._avro)
        comparison.defaults(self._defaults)
        comparison.case()
        comparison.struct(self._schema.as_struct().fields, list(tail.schema), "")
        last = self._last
        if last is None or last[0] != comparison.spellings:
            names = comparison.spellings
            last = self._last = (names, mapping_of(self._schema, [names]))
        mapping = last[1]
        file = self._describer.describe(location, tail, mapping)
        comparison.checked(p for p in file.problems if p.code not in self._accepted)
        sources = (field.source_id for field in spec.fields)
        comparison.constants(self._schema, dict(zip(sources, partition, strict=True)), file)
        comparison.narrow(self._narrow, file)
        spellings, problems = comparison.spellings, tuple(comparison.problems)
        if problems:
            return Footer(None, spellings, problems)
        try:
            self._describer.check_values(location, file, mapping)
        except SchemaError as error:
            return Footer(None, spellings, (FileProblem(VALUES, error.message),))
        except IcecombError as error:
            return Footer(None, spellings, (FileProblem("unreadable-file", error.message),))
        made = new_data_file(
            location,
            size,
            self._describer.metrics(file),
            spec,
            partition,
            file_format=tail.file_format,
        )
        remarks = tuple(comparison.remarks)
        return Footer(made, spellings, unread=file.unread, zone=comparison.zone, remarks=remarks)

    def shown(self, location: str) -> Sequence[FileProblem]:
        """Return why Hive or Spark show other values of a file than Iceberg would.

        A file that cannot be read has none: whoever adds it says so.
        """
        try:
            tail, _ = self._describer.look(location)
        except IcecombError:
            return ()
        comparison = _Comparison(tail)
        comparison.defaults(self._defaults)
        comparison.struct(self._schema.as_struct().fields, list(tail.schema), "")
        comparison.problems = [p for p in comparison.problems if p.code == DEFAULT]
        mapping = mapping_of(self._schema, [comparison.spellings])
        comparison.narrow(self._narrow, self._describer.describe(location, tail, mapping))
        return comparison.problems


class _Comparison:
    def __init__(self, tail: FileTail) -> None:
        self.tail = tail
        self.physical = _physical_types(tail)
        self.spellings: dict[int, str] = {}
        self.problems: list[FileProblem] = []
        self.zone = ""
        self.remarks: list[tuple[str, str]] = []

    def rules(self, positions: Sequence[str] | None, avro: AvroSchema | None) -> None:
        """Record columns that Hive does not find by name, ignoring case, as Iceberg will."""
        names = self.tail.schema.names
        kind = self.tail.file_format
        if kind is FileFormat.ORC and positions is not None and not self.tail.numbered:
            pairs = zip(names, positions, strict=False)
            for number, (found, wanted) in enumerate(pairs, 1):
                if found.lower() != wanted.lower():
                    text = (
                        f"Hive reads its column {found!r} as {wanted!r}, both being number {number}"
                    )
                    self._problem("by-position", text, wanted)
        if isinstance(self.tail, AvroHeader) and avro is not None:
            for column, message in avro.differences(self.tail.stated):
                self._problem("avro-schema", message, column)

    def defaults(self, names: Iterable[str]) -> None:
        """Record columns that the file lacks, of these names in lower case."""
        found = {name.lower() for name in self.tail.schema.names}
        for name in sorted(set(names) - found):
            text = "it lacks the column, for which Spark reads the column's default"
            self._problem(DEFAULT, text, name)

    def case(self) -> None:
        """Remark names that Hive 3 does not find in ORC, of which its reader minds the case."""
        if self.tail.file_format is FileFormat.ORC and not self.tail.numbered:
            names = (name for name in self.tail.schema.names if name != name.lower())
            self.remarks += ((ORC_CASE, name) for name in names)

    def struct(self, fields: tuple[NestedField, ...], found: list[pa.Field], path: str) -> None:
        by_name = {field.name.lower(): field for field in reversed(found)}
        for field in fields:
            same = by_name.get(field.name.lower())
            if same is not None:
                self.spellings[field.field_id] = same.name
                self._type(field.field_type, same, path + same.name)

    def checked(self, problems: Iterable[FileProblem]) -> None:
        """Add the problems of the general file check."""
        for problem in problems:
            # One problem for each column is enough.
            self.problems = [p for p in self.problems if p.column != problem.column]
            self.problems.append(problem)

    def constants(self, schema: Schema, constants: Mapping[int, Any], file: DescribedFile) -> None:
        """Check that partition columns in the file have the partition's value."""
        for field_id, value in constants.items():
            spelling = self.spellings.get(field_id)
            if spelling is not None and not _always(file, field_id, value):
                name = schema.find_field(field_id).name
                self._problem(
                    "partition-column-in-file",
                    f"its own column {spelling} may differ from the partition's value",
                    name,
                )

    def narrow(self, kinds: Mapping[int, tuple[str, NarrowType]], file: DescribedFile) -> None:
        """Record values that Hive's types do not hold, or that the footer does not tell.

        Avro files are read by an Avro schema, which has no such types but for what is written.
        """
        if not kinds or self.tail.file_format is FileFormat.AVRO:
            return
        there = {field.field_id: field for field in _all_fields(file.fields)}
        lengths = self.tail.text_lengths(file.fields)
        for number, (name, kind) in kinds.items():
            field, summary = there.get(number), file.columns.get(number)
            values = None if summary is None else summary.values
            if field is None or (values is not None and values.only_nulls):
                continue
            bounds = (None, None) if values is None else (values.lower, values.upper)
            wide = next((b for b in bounds if b is not None and not kind.holds(b)), None)
            if wide is not None:
                shown = "as null" if kind.bits else f"cut to {kind.length} characters"
                text = f"it holds {wide!r}, which Hive shows {shown} ({kind.name})"
                self._problem(NARROW, text, name)
            elif kind.length:
                if not 0 < lengths.get(number, 0) <= kind.length:
                    self.remarks.append((NARROW, f"{name} {kind.name}"))
            elif None in bounds and not _is_integer(field.arrow_type, kind.bits):
                self.remarks.append((NARROW, f"{name} {kind.name}"))

    def _type(self, expected: IcebergType, found: pa.Field, path: str) -> None:
        import pyarrow as pa

        from icecomb.format.arrow.plain_layout import plain_type

        arrow = plain_type(found.type)
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
        elif isinstance(expected, TIMESTAMP_TYPES) and pa.types.is_timestamp(arrow):
            self._timestamp(expected, arrow, path)
        elif not expected.is_primitive or not _fits(expected, arrow):
            self._problem("type-differs", f"it holds {arrow}, the table says {expected}", path)

    def _timestamp(self, expected: IcebergType, arrow: pa.TimestampType, path: str) -> None:
        physical = self.physical.get(path) or next(
            (kind for name, kind in self.physical.items() if _same_leaf(name, path)), ""
        )
        zoned = isinstance(expected, ZONED_TYPES)
        if physical == "INT96":
            tail = self.tail if isinstance(self.tail, ParquetFooter) else None
            if tail is None or tail.writer_zone is None or tail.writer_zone in _UTC:
                return
            if zoned:
                counted = ", as old Java counts" if tail.legacy_zone_conversion else ""
                self.zone = f"{tail.writer_zone}{counted}"
                return
            text = f"Hive shows its times in {tail.writer_zone}, the table would show them in UTC"
            self._problem("writer-zone", text, path)
            return
        if zoned != (arrow.tz is not None):
            held = "an instant (UTC)" if arrow.tz else "a local time without zone"
            self._problem(
                "timestamp-zone", f"it holds {held}, the table would say {expected}", path
            )

    def _problem(self, code: str, message: str, column: str) -> None:
        self.problems.append(FileProblem(code, message, column))


def _by_id(
    fields: Iterable[NestedField], path: Path, narrow: Mapping[Path, NarrowType]
) -> Iterator[tuple[int, tuple[str, NarrowType]]]:
    """Yield the narrow types of fields, with their full names, by field id."""
    for field in fields:
        at = (*path, field.name.lower())
        if at in narrow:
            yield field.field_id, (".".join(at), narrow[at])
        yield from _by_id(children(field.field_type), at, narrow)


def _all_fields(fields: Iterable[FileField]) -> Iterator[FileField]:
    for field in fields:
        yield field
        yield from _all_fields(field.children)


def _is_integer(arrow: pa.DataType, bits: int) -> bool:
    """Return whether a file's type holds only signed integers of at most N bits."""
    import pyarrow as pa

    return bool(pa.types.is_signed_integer(arrow) and arrow.bit_width <= bits)


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


def _always(file: DescribedFile, field_id: int, value: Any) -> bool:
    """Return whether the footer proves that a column has one value in all rows."""
    known = file.columns.get(field_id)
    if known is None or known.values is None:
        return False
    values = known.values
    if value is None:
        return values.only_nulls
    floating = isinstance(known.kind, FloatType | DoubleType)  # bounds do not include NaN
    return values.null_count == 0 and not floating and bool(values.lower == values.upper == value)


def _physical_types(tail: FileTail) -> dict[str, str]:
    if tail.parquet_schema is None:
        return {}
    columns = (tail.parquet_schema.column(n) for n in range(len(tail.parquet_schema.names)))
    return {column.path: column.physical_type for column in columns}

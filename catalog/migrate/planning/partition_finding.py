"""Findings about a Hive table's partitions that differ from the table or each other, or block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from icecomb.catalog.hive.thrift.entity import FieldSchema, HivePartition, HiveTable
from icecomb.catalog.migrate.planning.entry_finding import COLUMN_STATISTICS, lost_statistics
from icecomb.catalog.migrate.planning.obstacle import parquet_positions
from icecomb.catalog.migrate.source.avro_schema import URL, avro_declaration
from icecomb.catalog.migrate.source.copy_statement import copy_remedy
from icecomb.catalog.migrate.source.source import (
    format_of,
    null_name,
    parquet_by_position,
    skipped_rows,
)
from icecomb.catalog.report.finding import Finding, Mentions, blocker, note, warning
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.sql_statement import printed_text


class PartitionNotes:
    """Findings about partitions' entries, collected while read; only differences are kept."""

    def __init__(self, table: HiveTable) -> None:
        self._columns = _plain(table.storage.columns)
        self._by_position = parquet_by_position(table)
        self._formats: Counter[str] = Counter()
        self._schemas = Mentions()
        self._analyzed = Mentions()
        self._positions = Mentions()
        self._skipped = Mentions()
        self._homeless = Mentions()
        self._widened = Mentions()
        self._default = Mentions()
        texts = ("string", "char", "varchar")
        self._text_keys = [
            number
            for number, key in enumerate(table.partition_keys)
            if key.type.lower().startswith(texts)
        ]
        self._null = null_name(table)
        self._table = table
        self._avro = avro_declaration(table)
        self._avro_differs = Mentions()

    def examine(self, name: str, partition: HivePartition) -> None:
        """Examine one partition's entry."""
        storage = partition.storage
        self._formats[_format(storage.input_format)] += 1
        columns = _plain(storage.columns)
        if columns != self._columns:
            self._schemas.add(name)
            if format_of(storage) in {FileFormat.ORC, FileFormat.AVRO} and any(
                (column, "float") in columns for column, kind in self._columns if kind == "double"
            ):
                self._widened.add(name)
        if any(partition.values[number] == self._null for number in self._text_keys):
            self._default.add(name)
        if COLUMN_STATISTICS in partition.parameters.get("COLUMN_STATS_ACCURATE", ""):
            self._analyzed.add(name)
        if parquet_by_position(partition) and not self._by_position:
            self._positions.add(name)
        if skipped := skipped_rows(partition):
            self._skipped.add(f"{name}: {skipped}")
        if not storage.location:
            self._homeless.add(name)
        declared = avro_declaration(partition)
        if declared and declared != self._avro and format_of(storage) is FileFormat.AVRO:
            self._avro_differs.add(name)

    def findings(self) -> Iterable[Finding]:
        """Yield the findings."""
        if self._homeless:
            yield blocker(
                "partition-location",
                f"{len(self._homeless)} partitions have no folder in the metastore",
                "ALTER TABLE ... PARTITION (...) SET LOCATION in Hive, or drop them there",
                self._homeless,
            )
        if self._avro_differs:
            yield blocker(
                "avro-schema",
                f"{len(self._avro_differs)} partitions have an Avro schema of their own, by which "
                "Hive reads their files",
                self._avro_remedy(),
                self._avro_differs,
            )
        if self._positions:
            yield parquet_positions(self._positions)
        if self._skipped:
            yield blocker(
                "skipped-rows",
                f"{len(self._skipped)} partitions say that rows of each file are left out "
                "(skip.header.line.count, skip.footer.line.count), which Iceberg would show",
                "if they are rows: ALTER TABLE ... PARTITION (...) SET SERDEPROPERTIES to '0', or "
                "drop the partition and add it again; if not, copy the table in Hive",
                self._skipped,
            )
        if len(self._formats) > 1:
            counted = tuple(f"{count:,} {kind}" for kind, count in self._formats.most_common())
            yield note(
                "mixed-formats",
                f"its partitions are of {len(counted)} file formats: {', '.join(counted)}",
                "each file is taken over as what it is; new files are Parquet unless the table's "
                "write.format.default says otherwise",
                counted,
            )
        if self._schemas:
            yield warning(
                "mixed-schemas",
                f"{len(self._schemas)} partitions have other columns than the table",
                "Iceberg reads all files by the table's columns, where Hive shows null for what "
                "the partition's entry lacks: compare, or ALTER TABLE ... CASCADE first",
                self._schemas,
            )
        if self._widened:
            yield warning(
                "widened-float",
                f"{len(self._widened)} partitions have float where the table has double: of their "
                "ORC and Avro files Hive shows 1.1 where all readers of Iceberg show "
                "1.100000023841858",
                "both are the same float; ALTER TABLE ... CASCADE shows in Hive what Iceberg will",
                self._widened,
            )
        if self._default:
            yield note(
                "null-partition",
                f"{len(self._default)} partitions are named {self._null}: Hive shows that "
                "text in a column of texts, Iceberg null",
                "conditions on that text become IS NULL",
                self._default,
            )
        if self._analyzed:
            many = f"of {len(self._analyzed)} partitions each" if len(self._analyzed) > 1 else ""
            yield lost_statistics(many or "a partition", self._analyzed)

    def _avro_remedy(self) -> str:
        if self._avro is None:
            return copy_remedy(self._table)
        key, said = self._avro
        pair = f"'{key}'={printed_text(said)}" if key == URL else f"'{key}'='...'"
        return f"ALTER TABLE ... PARTITION (...) SET SERDEPROPERTIES ({pair}) in Hive, as the table"


def outside_findings(names: Collection[str]) -> Iterable[Finding]:
    """Yield the finding about partitions outside the table's folder."""
    if names:
        yield note(
            "outside-folder",
            f"{len(names)} partitions are outside the table's folder",
            "their files are taken over where they are; new ones go to the table's folder",
            names,
        )


def _plain(columns: Iterable[FieldSchema]) -> tuple[tuple[str, str], ...]:
    return tuple((one.name.lower(), one.type.lower().replace(" ", "")) for one in columns)


def _format(input_format: str | None) -> str:
    name = (input_format or "none").rpartition(".")[2]
    for kind in ("parquet", "orc", "avro", "rcfile", "sequencefile", "text", "json"):
        if kind in name.lower():
            return kind
    return name

"""Every reader of a table asked the same question; their answers in one form."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest import DataFile, ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.types import IcebergType, ListType, MapType, StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icecomb.catalog.catalog import Catalog
    from icecomb.format.spec.schema import Schema
    from tests.peers.iceberg_library import Filter, IcebergLibrary, Spec

EPOCH = dt.date(1970, 1, 1)


class Tables:
    """Tables of one namespace, as icecomb in Python and PyIceberg see them."""

    namespace = "interop"

    def __init__(self, catalog: Catalog, pyiceberg: Any) -> None:
        self.catalog = catalog
        self.pyiceberg = pyiceberg
        self._made: list[str] = []

    def own(self, table: str) -> tuple[str, str]:
        """A table that is dropped when the module is done."""
        self._made.append(table)
        return (self.namespace, table)

    def close(self) -> None:
        for table in self._made:
            self.catalog.drop_table((self.namespace, table))

    @staticmethod
    def arrow_rows(table: pa.Table) -> list[list[Any]]:
        """Rows in the form all answers have."""
        return arrow_rows(table)

    def load(self, table: str) -> Any:
        return self.catalog.load_table((self.namespace, table))

    def load_peer(self, table: str) -> Any:
        return self.pyiceberg.load_table((self.namespace, table))

    def python(self, table: str, where: str | None = None, columns: str = "*") -> list[list[Any]]:
        return scanned(self.load(table).scan(where, names(columns)))

    def peer(self, table: str, where: str | None = None, columns: str = "*") -> list[list[Any]]:
        scan = self.load_peer(table).scan(where or "true", names(columns))
        return arrow_rows(scan.to_arrow())

    def plan(self, table: str, where: str | None = None) -> dict[str, list[str]]:
        """The data files that we plan, and the delete files of each."""
        return {
            task.file.file_path: sorted(d.file_path for d in task.delete_files)
            for task in self.load(table).scan(where).plan_files()
        }

    def files(self, table: str) -> list[DataFile]:
        """The live data files with all that their manifests say of them."""
        loaded = self.load(table)
        return [
            entry.data_file
            for manifest in read_manifests(loaded.io, loaded.current_snapshot())
            if manifest.content is ManifestContent.DATA
            for entry in manifest.fetch_manifest_entry(loaded.io)
            if entry.is_live
        ]


class Readers(Tables):
    """Iceberg Java (the reference), icecomb in Python and in Spark, and PyIceberg."""

    def __init__(
        self, catalog: Catalog, spark: SparkSession, iceberg_java: Any, pyiceberg: Any
    ) -> None:
        super().__init__(catalog, pyiceberg)
        self._spark = spark
        self._java = iceberg_java

    def java_sql(self, text: str) -> list[list[Any]]:
        """A statement for Iceberg Java; `{ns}` is the namespace there."""
        return self._java.sql(text.replace("{ns}", f"ice.{self.namespace}"))

    def spark_sql(self, text: str) -> list[list[Any]]:
        """A statement for our Spark; `{ns}` is the namespace there."""
        rows = self._spark.sql(text.replace("{ns}", f"lake.{self.namespace}")).collect()
        return [[plain(value) for value in row] for row in rows]

    def java(self, table: str, where: str | None = None, columns: str = "*") -> list[list[Any]]:
        return ordered(self.java_sql(select(table, where, columns)))

    def spark(self, table: str, where: str | None = None, columns: str = "*") -> list[list[Any]]:
        return ordered(self.spark_sql(select(table, where, columns)))

    def agree(
        self,
        table: str,
        where: str | None = None,
        columns: str = "*",
        but: Iterable[str] = (),
    ) -> list[list[Any]]:
        """The rows that all readers find.

        Args:
            table: Its name.
            where: A filter that means the same in Spark's SQL, in PyIceberg and here.
            columns: Names with commas.
            but: Readers that cannot answer.
        """
        expected = self.java(table, where, columns)
        for reader in (self.python, self.spark, self.peer):
            if reader.__name__ not in but:
                found = reader(table, where, columns)
                assert found == expected, (
                    f"{reader.__name__} reads {table} where {where} otherwise: "
                    f"{difference(found, expected)}"
                )
        return expected

    def java_plan(self, table: str, where: str | None = None) -> dict[str, list[str]]:
        """The data files that Iceberg Java plans, and the delete files of each."""
        return self._java.plan(f"ice.{self.namespace}.{table}", where)


class Library(Tables):
    """Iceberg Java as a library (the reference), icecomb in Python and PyIceberg."""

    namespace = "library"

    def __init__(self, catalog: Catalog, iceberg_library: IcebergLibrary, pyiceberg: Any) -> None:
        super().__init__(catalog, pyiceberg)
        self.iceberg = iceberg_library

    def name(self, table: str) -> str:
        """What Iceberg Java calls a table."""
        return f"{self.namespace}.{table}"

    def create(self, table: str, schema: Schema, spec: Spec = (), properties: Any = None) -> str:
        """A table that Iceberg Java makes; what it calls it."""
        self.own(table)
        self.iceberg.create(self.name(table), schema, spec, properties)
        return self.name(table)

    def java(
        self, table: str, where: Filter = None, columns: str = "*", **options: Any
    ) -> list[list[Any]]:
        if columns != "*":
            options["columns"] = names(columns)
        return ordered(self.iceberg.scan(self.name(table), where, **options))

    def agree(
        self,
        table: str,
        where: str | None = None,
        columns: str = "*",
        but: Iterable[str] = (),
        apart: Collection[str] = (),
    ) -> list[list[Any]]:
        """The rows that all find, in the files with the deletes that Iceberg Java plans.

        Args:
            table: Its name.
            where: A filter.
            columns: Names with commas.
            but: Readers that cannot answer.
            apart: Delete files that need not be planned alike.
        """
        expected = self.java(table, where, columns)
        for reader in (self.python, self.peer):
            if reader.__name__ not in but:
                found = reader(table, where, columns)
                assert found == expected, (
                    f"{reader.__name__} reads {table} where {where} otherwise: "
                    f"{difference(found, expected)}"
                )
        planned, theirs = (
            {
                file: [each for each in deletes if each not in apart]
                for file, deletes in plan.items()
            }
            for plan in (self.plan(table, where), self.iceberg.plan(self.name(table), where))
        )
        assert planned == theirs, (
            f"{table} where {where} is planned otherwise: {planned_apart(planned, theirs)}"
        )
        return expected


def select(table: str, where: str | None, columns: str = "*") -> str:
    return f"SELECT {columns} FROM {{ns}}.{table}" + (f" WHERE {where}" if where else "")


def row_values(row: Any, schema: Schema) -> list[Any]:
    """The values of a row of Python as `IcebergLibrary` takes them."""
    return [given_value(row.get(field.name), field.field_type) for field in schema.fields]


def given_value(value: Any, kind: IcebergType) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return [given_value(value.get(field.name), field.field_type) for field in kind.fields]
    if isinstance(kind, ListType):
        return [given_value(item, kind.element_type) for item in value]
    if isinstance(kind, MapType):
        return [
            [given_value(key, kind.key_type), given_value(item, kind.value_type)]
            for key, item in value
        ]
    return plain(value)


def names(columns: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in columns.split(","))


def scanned(scan: TableScan) -> list[list[Any]]:
    """The rows of a scan; counting them without reading them must come to the same."""
    rows = arrow_rows(scan.to_arrow())
    assert scan.count() == len(rows)
    return rows


def arrow_rows(table: pa.Table) -> list[list[Any]]:
    columns = [
        [arrow_value(value, field.type) for value in table[i].to_pylist(maps_as_pydicts=None)]
        for i, field in enumerate(table.schema)
    ]
    if not columns:
        return []
    return ordered([list(row) for row in zip(*columns, strict=True)])


def arrow_value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return [arrow_value(value[f.name], f.type) for f in kind]
    if pa.types.is_map(kind):
        return {
            str(plain(arrow_value(k, kind.key_type))): arrow_value(v, kind.item_type)
            for k, v in value
        }
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [arrow_value(item, kind.value_type) for item in value]
    return plain(value)


def plain(value: Any) -> Any:
    """A value as the answers of `tests/peers/spark_worker.py` show it."""
    if isinstance(value, dt.datetime):
        return str(
            value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        )
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if "E" in str(value) else str(value)
    if isinstance(value, dt.date | dt.time | uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(plain(k)): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN equals nothing
        return "NaN"
    return value


def ordered(rows: Iterable[Any]) -> list[list[Any]]:
    return sorted(([plain(value) for value in row] for row in rows), key=repr)


def difference(found: list[list[Any]], expected: list[list[Any]]) -> Any:
    """Where two answers differ, briefly."""
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    return [
        (row, place, value, other)
        for row, (left, right) in enumerate(zip(found, expected, strict=True))
        for place, (value, other) in enumerate(zip(left, right, strict=True))
        if value != other
    ][:5]


def planned_apart(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> Any:
    """Data files that only one plans, and delete files that only one plans for them: ours, theirs."""
    paths = sorted(ours.keys() | theirs.keys())
    both = [(path, ours.get(path), theirs.get(path)) for path in paths]
    return [
        (path, "planned by one")
        if mine is None or other is None
        else (path, sorted({*mine} - {*other}), sorted({*other} - {*mine}))
        for path, mine, other in both
        if mine != other
    ]


@pytest.fixture(scope="module")
def readers(
    catalog: Catalog, spark: SparkSession, iceberg_java: Any, pyiceberg: Any
) -> Iterator[Readers]:
    """All readers on one namespace; tables of a module go when it ends."""
    catalog.create_namespace_if_not_exists(Readers.namespace)
    readers = Readers(catalog, spark, iceberg_java, pyiceberg)
    yield readers
    readers.close()


@pytest.fixture(scope="module")
def library(catalog: Catalog, iceberg_library: IcebergLibrary, pyiceberg: Any) -> Iterator[Library]:
    """Iceberg Java, icecomb and PyIceberg on one namespace; tables of a module go when it ends."""
    catalog.create_namespace_if_not_exists(Library.namespace)
    library = Library(catalog, iceberg_library, pyiceberg)
    yield library
    library.close()

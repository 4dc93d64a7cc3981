"""Columns of Spark's own tables with defaults, in files that lack them (`ALTER TABLE ... ADD COLUMN c INT DEFAULT 7`)."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.table import StaticTable

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable
from icecomb.catalog.migrate.applying.existing_files import files_of_hive_table
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.catalog.migrate.conftest import ORC, PARQUET

OLD = pa.table({"id": pa.array([1, 2], pa.int64())})
KINDS = {
    "i": ("integer", "int", "7", 7),
    "l": ("long", "bigint", "7L", 7),
    "s": ("string", "string", "'it''s'", "it's"),
    "d": ("date", "date", "DATE '2024-01-31'", (dt.date(2024, 1, 31) - dt.date(1970, 1, 1)).days),
    "m": ("decimal(5,2)", "decimal(5,2)", "1.50BD", Decimal("1.50")),
    "x": ("double", "double", "1.5D", 1.5),
    "b": ("boolean", "boolean", "true", True),
}


def spark_column(
    name: str, kind: str, read: str | None, written: str | None = None
) -> dict[str, Any]:
    told = {"EXISTS_DEFAULT": read, "CURRENT_DEFAULT": written or read}
    metadata = {key: sql for key, sql in told.items() if sql is not None}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def spark_table(
    folder: Path, columns: dict[str, tuple[Any, ...]], storage: Any = PARQUET
) -> HiveTable:
    """A table of Spark's with a column id, and columns of Spark's type, Hive's type, and defaults."""
    fields = [
        spark_column("id", "long", None),
        *(spark_column(name, kind, *sql) for name, (kind, _, *sql) in columns.items()),
    ]
    hive = [FieldSchema("id", "bigint"), *(FieldSchema(n, c[1]) for n, c in columns.items())]
    schema = json.dumps({"type": "struct", "fields": fields})
    return HiveTable(
        "made",
        "t",
        storage=replace(storage, columns=tuple(hive), location=folder.as_uri()),
        parameters={"spark.sql.sources.provider": "parquet", "spark.sql.sources.schema": schema},
    )


def planned(table: HiveTable, version: int = 2) -> MigrationPlan:
    return plan_source(
        FileIO(), table, [], Choices(), SILENT, properties={"format-version": str(version)}
    )


def codes(plan: MigrationPlan) -> set[str]:
    return {finding.code for finding in plan.blockers}


@pytest.mark.parametrize("storage", [PARQUET, ORC], ids=["Parquet", "ORC"])
def test_a_default_that_files_need_is_kept_by_version_3_and_blocks_others(
    tmp_path: Path, storage: Any
) -> None:
    write = pq.write_table if storage is PARQUET else orc.write_table
    write(OLD, tmp_path / "old")
    columns = {name: (*kinds, sql) for name, (*kinds, sql, _) in KINDS.items()}
    table = spark_table(tmp_path, columns, storage)
    plan = planned(table)
    assert codes(plan) == {"column-default"}
    (found,) = plan.blockers
    assert found.count == len(KINDS)
    assert "--property format-version=3" in found.remedy
    kept = planned(table, 3)
    assert not codes(kept)
    fields = {field.name: field for field in kept.schema.fields}
    assert {name: fields[name].initial_default for name in KINDS} == {
        name: value for name, (*_, value) in KINDS.items()
    }
    assert all(f.write_default == f.initial_default for f in fields.values())
    assert not [f for f in kept.findings if f.code == "column-default"]


def test_a_default_that_no_file_needs_blocks_nothing(tmp_path: Path) -> None:
    pq.write_table(OLD.append_column("C", pa.array([7, None], pa.int32())), tmp_path / "new")
    table = spark_table(tmp_path, {"c": ("integer", "int", "7")})
    plan = planned(table)
    assert not codes(plan)
    (told,) = (f for f in plan.findings if f.code == "column-default")
    assert (told.severity, told.places) == ("warning", ("c",))
    null = spark_table(tmp_path, {"n": ("integer", "int", "CAST(NULL AS INT)", "NULL")})
    assert not [f for f in planned(null).findings if f.code == "column-default"]


def test_a_default_that_is_no_constant_blocks_where_a_file_needs_it(tmp_path: Path) -> None:
    """Spark's text of a timestamp is one of the session's zone."""
    pq.write_table(OLD, tmp_path / "old")
    columns = {
        "a": ("timestamp", "timestamp", "TIMESTAMP '2024-01-31 00:00:00'"),
        "c": ("integer", "int", "7", "year(current_date())"),
    }
    plan = planned(spark_table(tmp_path, columns), 3)
    assert codes(plan) == {"column-default"}
    assert [place.rpartition("/")[2] for place in plan.blockers[0].places] == [
        "old: a: it lacks the column, for which Spark reads the column's default"
    ]
    assert plan.schema.find_field("c").initial_default == 7
    (told,) = (f for f in plan.findings if f.code == "column-default" and f.severity == "warning")
    assert told.places == ("a", "c")


def test_the_default_of_a_partition_column_is_never_read(tmp_path: Path) -> None:
    table = spark_table(tmp_path, {"k": ("integer", "int", "7")})
    *columns, key = table.storage.columns
    storage = replace(table.storage, columns=tuple(columns))
    parted = replace(table, storage=storage, partition_keys=(key,))
    assert not [f for f in planned(parted).findings if f.code == "column-default"]


def test_a_collation_blocks_until_it_is_accepted(tmp_path: Path) -> None:
    pq.write_table(OLD.append_column("c", pa.array(["a", "A"])), tmp_path / "f")
    table = spark_table(tmp_path, {"c": ("string", "string", None)})
    schema = json.loads(table.parameters["spark.sql.sources.schema"])
    for told, found in (
        ({"c": "spark.UTF8_LCASE"}, ("c UTF8_LCASE",)),
        ({"c.element": "icu.UNICODE_CI"}, ("c.element UNICODE_CI",)),
    ):
        schema["fields"][1]["metadata"] = {"__COLLATIONS": told}
        parameters = {**table.parameters, "spark.sql.sources.schema": json.dumps(schema)}
        collated = replace(table, parameters=parameters)
        assert codes(planned(collated)) == {"collation"}
        accepted = plan_source(FileIO(), collated, [], Choices(accept=("collation",)), SILENT)
        assert not accepted.blockers
        (one,) = (f for f in accepted.findings if f.code == "collation")
        assert one.places == found


@pytest.mark.parametrize("aside", [False, True], ids=["in place", "aside"])
def test_a_default_is_in_the_rows_of_old_files_after_the_migration(
    make_hive_table: Any, *, aside: bool
) -> None:
    spark = spark_table(Path("/t"), {"c": ("integer", "int", "7", "8")})
    table = make_hive_table({"id": "bigint", "c": "int"}, rows=OLD, parameters=spark.parameters)
    catalog, name, before = table.catalog, table.name, table.state
    context = MigrationContext(catalog, *name.split("."), SILENT)
    column = NestedField(2, "C", IntegerType(), initial_default=7)
    files_of_hive_table(context, Schema(column), {})
    for other in (replace(column, initial_default=None), replace(column, initial_default=8)):
        with pytest.raises(ValidationError, match="column c: it lacks the column"):
            files_of_hive_table(context, Schema(other), {})
    files_of_hive_table(context, Schema(replace(column, name="other")), {})
    version = {"format-version": "3"}
    for properties in ({}, version):
        plan = migrate.plan(catalog, name, properties=properties)
        assert codes(plan) == (set() if properties else {"column-default"})
    with pytest.raises(MigrationBlockedError, match="reads a default"):
        migrate.apply(catalog, name)
    if aside:
        with pytest.raises(MigrationBlockedError, match="reads a default"):
            migrate.snapshot(catalog, name, f"{name}_new")
        migrate.snapshot(catalog, name, f"{name}_new", properties=version)
        found = catalog.load_table(f"{name}_new")
    else:
        migrate.apply(catalog, name, properties=version)
        found = catalog.load_table(name)
    assert found.schema().find_field("c").write_default == 8
    assert found.scan().to_arrow().to_pylist() == [{"id": 1, "c": 7}, {"id": 2, "c": 7}]
    assert found.scan("c = 7").to_arrow().num_rows == 2
    if aside:
        catalog.drop_table(f"{name}_new")
    else:
        assert migrate.verify(catalog, name).difference_count == 0
        assert migrate.revert(catalog, name, dry_run=False).done
    assert table.state == before


@pytest.mark.full("defaults that icecomb gives itself are read by both in the gate")
def test_iceberg_java_and_pyiceberg_read_the_defaults_of_a_migrated_table(
    make_hive_table: Any, iceberg_library: Any
) -> None:
    columns = {name: (*kinds, sql) for name, (*kinds, sql, _) in KINDS.items()}
    hive = {"id": "bigint", **{name: kinds[1] for name, kinds in columns.items()}}
    parameters = spark_table(Path("/t"), columns).parameters
    table = make_hive_table(hive, rows=OLD, parameters=parameters)
    migrate.apply(table.catalog, table.name, properties={"format-version": "3"})
    loaded = table.catalog.load_table(table.name)
    ours = loaded.scan().to_arrow()
    expected = {name: value for name, (*_, value) in KINDS.items()}
    expected["d"] = dt.date(2024, 1, 31)
    assert ours.to_pylist() == [{"id": number, **expected} for number in (1, 2)]
    theirs = iceberg_library.scan(table.name)
    assert [row[0] for row in theirs] == [1, 2]
    assert [row[1:] for row in theirs] == [[7, 7, "it's", "2024-01-31", "1.50", 1.5, True]] * 2
    assert len(iceberg_library.scan(table.name, "i = 7")) == 2
    peer = StaticTable.from_metadata(loaded.metadata_location).scan().to_arrow()
    assert peer.to_pylist() == ours.to_pylist()

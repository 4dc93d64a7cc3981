"""Which files of a Hive table another table takes in, and with what partition values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying.existing_files import files_of_folder, files_of_hive_table
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.catalog.migrate.conftest import ORC, PARQUET
from tests.catalog.numbered_rows import numbers


def keyed(*names: str) -> Schema:
    return Schema(tuple(NestedField(n, name, StringType()) for n, name in enumerate(names, 1)))


def context_of(table: Any) -> MigrationContext:
    return MigrationContext(table.catalog, *table.name.split("."), SILENT)


@pytest.mark.parametrize(
    "parameter", ["orc.force.positional.evolution", "parquet.column.index.access"]
)
def test_files_whose_columns_hive_finds_by_position_are_not_added_by_name(
    make_hive_table: Any, parameter: str
) -> None:
    table = make_hive_table({"id": "bigint"}, parameters={parameter: "TRUE"})
    context = MigrationContext(table.catalog, *table.name.split("."), SILENT)
    with pytest.raises(ValidationError, match="by position"):
        files_of_hive_table(context, Schema(), {})


@pytest.mark.parametrize("at", ["table", "parameters", "serde"])
def test_positions_are_asked_for_by_a_table_a_partition_or_their_serde(
    make_hive_table: Any, at: str
) -> None:
    said = {"orc.force.positional.evolution": "true"}
    table = make_hive_table(
        {"id": "string", "s": "string"},
        {"k": "int"},
        {(k,): pa.table({"s": ["x"], "id": ["y"]}) for k in ("1", "2")},
        storage=replace(ORC, serde_parameters=said) if at == "table" else ORC,
        write=orc.write_table,
    )
    whole = context_of(table), keyed("k")
    if at == "table":
        entry = table.entry
        assert entry.storage.serde_parameters == said
        assert "orc.force.positional.evolution" not in entry.parameters
        with pytest.raises(ValidationError, match=f"columns of {table.name} by position"):
            files_of_hive_table(*whole, {})
    else:
        _, two = table.partitions
        other = (
            replace(two, parameters=said)
            if at == "parameters"
            else replace(two, storage=replace(two.storage, serde_parameters=said))
        )
        table.catalog.client.partitions.alter(*table.name.split("."), [other])
        with pytest.raises(ValidationError, match=f"partition k=2 of {table.name} by position"):
            files_of_hive_table(*whole, {})
    (found,) = migrate.plan(table.catalog, table.name).blockers
    assert found.code == "by-position"
    concerned = {place.partition(": ")[0].split("/")[-2] for place in found.places}
    assert concerned == ({"p0", "p1"} if at == "table" else {"p1"})


def test_files_of_a_folder_of_two_partitions_are_not_added(
    make_hive_table: Any, tmp_path: Path
) -> None:
    rows = {(k,): numbers(0) for k in ("1", "2", "3")}
    folders = [str(tmp_path / name) for name in ("both", "both", "own")]
    table = make_hive_table({"id": "bigint"}, {"k": "string"}, rows, folders=folders)
    context, schema = context_of(table), keyed("k")
    for wanted in ({}, {"k": "1"}, {"k": "2"}):
        with pytest.raises(ValidationError, match=r"k=1 and k=2 of .* share the folder"):
            files_of_hive_table(context, schema, wanted)
    files = files_of_hive_table(context, schema, {"k": "3"})
    assert [(name.split("/")[-2], given) for name, given in files.items()] == [("own", {"k": "3"})]


def test_partition_values_with_slashes_are_not_mistaken_for_each_other(
    make_hive_table: Any,
) -> None:
    rows = {("1/b=2", "3"): numbers(0), ("1", "2/b=3"): numbers(1)}
    table = make_hive_table({"id": "bigint"}, {"a": "string", "b": "string"}, rows)
    files = files_of_hive_table(context_of(table), keyed("a", "b"), {})
    assert {name.split("/")[-2]: given for name, given in files.items()} == {
        "p0": {"a": "1/b=2", "b": "3"},
        "p1": {"a": "1", "b": "2/b=3"},
    }


def test_files_of_a_partition_without_a_folder_are_asked_for_nowhere(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "string"}, {("1",): numbers(0), ("2",): numbers(1)}
    )
    _, two = table.partitions
    homeless = replace(two, storage=replace(two.storage, location=None))
    table.catalog.client.partitions.alter(*table.name.split("."), [homeless])
    with pytest.raises(ValidationError, match="no folder of partition k=2 of"):
        files_of_hive_table(context_of(table), keyed("k"), {})
    assert len(files_of_hive_table(context_of(table), keyed("k"), {"k": "1"})) == 1


@pytest.mark.parametrize(
    "storage",
    [
        replace(PARQUET, input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat"),
        replace(PARQUET, serde="com.example.MaskingParquetSerDe"),
    ],
)
def test_files_that_count_or_are_read_by_rules_of_others_are_not_added(
    make_hive_table: Any, storage: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), storage=storage)
    with pytest.raises(ValidationError, match="not simply"):
        files_of_hive_table(context_of(table), keyed("id"), {})


def test_what_spark_finds_by_folders_is_not_passed_over(make_hive_table: Any) -> None:
    by_folders = {"spark.sql.sources.provider": "parquet"}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parameters=by_folders)
    with pytest.raises(ValidationError, match="among the folders"):
        files_of_hive_table(context_of(table), keyed("k"), {})


def test_folders_of_columns_whose_names_begin_with_a_line_are_not_hidden(tmp_path: Path) -> None:
    visible = ["_year=2024/f", "_year=2024/_k=1/f", "k=1/f"]
    for name in (*visible, "_year=2024/_SUCCESS", "_temporary/f", ".k=1/f", "_year=1/.f.crc"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    found = files_of_folder(FileIO(), keyed("_year", "_k", "k"), str(tmp_path), {})
    assert sorted(found) == sorted(f"{tmp_path}/{name}" for name in visible)

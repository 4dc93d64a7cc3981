"""The finding `readers` of a plan: who meets what under the table's name once it is an Iceberg table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.planning.planner import (
    overwrite_findings,
    reader_finding,
    version_findings,
)
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import UnsupportedError, ValidationError

HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"


def readers_of(plan: Any) -> Any:
    [found] = [each for each in plan.findings if each.code == "readers"]
    return found


def line_of(finding: Any, who: str) -> str:
    [line] = [place for place in finding.places if place.startswith(f"{who}")]
    return str(line)


@pytest.mark.parametrize(
    ("by_catalog", "by_table", "readable"),
    [
        (None, None, True),
        pytest.param("false", None, False, marks=pytest.mark.full("by the catalog alone")),
        pytest.param("true", None, True, marks=pytest.mark.full("the default, said")),
        ("true", "false", False),
        ("false", "true", True),
    ],
)
def test_what_is_said_of_hive_is_what_the_entry_says_afterwards(
    make_hive_table: Any, metastore: Any, by_catalog: Any, by_table: Any, readable: Any
) -> None:
    """Iceberg Java's HiveTableOperations: Hive reads the table by its storage handler, or not at all."""
    table = make_hive_table(
        {"id": "bigint"},
        rows=pa.table({"id": [1, 2]}),
        parameters={} if by_table is None else {"engine.hive.enabled": by_table},
    )
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    setting = {} if by_catalog is None else {"engine.hive.enabled": by_catalog}
    catalog = HiveCatalog("readers", {**place, **setting})
    try:
        finding = readers_of(migrate.plan(catalog, table.name))
        said = line_of(finding, "Hive: ")
        assert ("as before from version 4 on" in said) == readable
        assert ("not at all, nor older Impalas; `apply --interop hive" in said) == (not readable)
        migrate.apply(catalog, table.name)
        assert (table.entry.parameters.get("storage_handler") == HANDLER) == readable
    finally:
        catalog.close()


def test_it_is_a_note_that_names_the_table_and_what_to_set_and_stops_nothing(
    make_hive_table: Any, metastore: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=pa.table({"id": [1]}))
    plan = migrate.plan(table.catalog, table.name)
    finding = readers_of(plan)
    assert finding.severity is Severity.NOTE
    assert plan.blockers == ()
    assert table.name in finding.message
    assert "spark-conf --session-catalog" in finding.remedy
    assert line_of(finding, "Spark without it").startswith(f"Spark without it: {table.name} fails")
    assert line_of(finding, "Spark with ").endswith(f"{table.name} as before")
    assert len(finding.places) == finding.count
    code = cli.main(["--uri", metastore.uri, "--output", "json", "migrate", "plan", table.name])
    said = json.loads(capfd.readouterr().out)
    assert code == 0
    assert finding.to_json() in said["findings"]


@pytest.mark.parametrize(
    ("columns", "serde", "told"),
    [
        ({"t": "array<timestamp>"}, "avro", True),
        ({"t": "date"}, "avro", False),
        ({"t": "timestamp"}, "orc", False),
    ],
)
def test_the_plan_says_that_an_old_runtime_of_hive_cannot_read_the_times_of_avro(
    columns: Any, serde: Any, told: Any
) -> None:
    storage = StorageDescriptor(
        columns=tuple(FieldSchema(*column) for column in columns.items()),
        input_format={
            "avro": "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
            "orc": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        }[serde],
        serde={
            "avro": "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
            "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
        }[serde],
    )
    table = HiveTable("db", "t", storage=storage)
    said = line_of(reader_finding(table, {}, ("hive",)), "Hive: ")
    assert ("1.4.3" in said) == told
    assert "1.4.3" not in line_of(
        reader_finding(table, {"engine.hive.enabled": "false"}, None), "Hive: "
    )


@pytest.mark.parametrize(
    ("version", "interop", "highest", "told"),
    [
        (
            3,
            None,
            None,
            ("warning", "becomes a table of format version 3, which hive before 4.2 and impala"),
        ),
        (3, ("impala",), None, ("warning", "3, which impala before 5 cannot read")),
        (3, ("spark", "trino"), None, ("note", "db.t becomes a table of format version 3")),
        (3, ("spark",), "2", ("blocker", "the catalog's format-version.max is 2")),
        (3, ("spark",), "3", ("note", "db.t becomes a table of format version 3")),
        (2, None, None, None),
        (1, None, "1", None),
    ],
)
def test_the_plan_names_engines_too_old_for_the_format_version_that_is_asked_for(
    version: int, interop: Any, highest: str | None, told: tuple[str, str] | None
) -> None:
    settings = {} if highest is None else {"format-version.max": highest}
    found = list(version_findings(HiveTable("db", "t"), settings, interop, version))
    assert [(one.code, one.severity.value) for one in found] == (
        [] if told is None else [("format-version", told[0])]
    )
    if told is not None:
        assert told[1] in found[0].message


def test_the_plan_says_of_partitioned_tables_what_an_overwrite_replaces() -> None:
    whole = HiveTable("db", "t")
    assert not list(overwrite_findings(whole))
    hive = replace(whole, partition_keys=(FieldSchema("k", "string"),))
    sparks = replace(hive, parameters={"spark.sql.sources.provider": "parquet"})
    for table, severity, says in (
        (hive, Severity.WARNING, "in Iceberg's own they replace the whole table"),
        (sparks, Severity.NOTE, "follow spark.sql.sources.partitionOverwriteMode, as before"),
    ):
        [found] = overwrite_findings(table)
        assert (found.code, found.severity) == ("overwrite-mode", severity)
        assert says in found.message
        assert "icecomb.partition-overwrite-mode" in found.remedy
        assert "but INSERT OVERWRITE" in line_of(
            reader_finding(table, {}, None), "Spark with icecomb"
        )


@pytest.mark.parametrize(("stated", "version", "told"), [("3", 2, 1), ("3", 3, 0), ("2", 2, 0)])
def test_a_version_that_the_hive_table_itself_states_is_not_passed_over(
    stated: str, version: int, told: int
) -> None:
    table = HiveTable("db", "t", parameters={"format-version": stated})
    found = [f for f in version_findings(table, {}, None, version) if "does not count" in f.message]
    assert len(found) == told
    assert all("version 2: its own parameter format-version=3" in f.message for f in found)
    assert all("property format-version" in f.remedy for f in found)


def test_properties_of_a_plan_are_those_of_an_apply(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=pa.table({"id": [1]}))

    def versions(**options: Any) -> list[str]:
        plans = [
            migrate.plan(table.catalog, table.name, **options),
            *migrate.plan_many(table.catalog, [table.name], **options),
        ]
        return [f.message for one in plans for f in one.findings if f.code == "format-version"]

    assert versions() == []
    first, second = versions(properties={"format-version": "3"}, interop="hive")
    assert first == second
    assert "which hive before 4.2 cannot read" in first
    with pytest.raises(UnsupportedError, match="format version 4"):
        versions(properties={"format-version": "4"})
    with pytest.raises(ValidationError, match=r"icecomb\.interop is set by the migration itself"):
        versions(properties={"icecomb.interop": "hive"})

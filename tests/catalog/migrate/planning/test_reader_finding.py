"""The finding `readers` of a plan: who meets what under the table's name once it is an Iceberg table."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.planning.reader_finding import reader_finding
from icecomb.catalog.report.finding import Severity

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
        assert ("not at all, nor older Impalas; apply --interop hive" in said) == (not readable)
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

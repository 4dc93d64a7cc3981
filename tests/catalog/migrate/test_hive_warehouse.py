"""A warehouse that Hive 3.1 made, transactional tables in it: it plans completely, each blocker's remedy is followed in
Hive, and Hive reads what was migrated by the same names as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.migrate.source.copy_statement import hive_copy_statements
from icecomb.catalog.report.progress import SILENT
from tests.peers.hive import Hive
from tests.peers.hive_metastore import HiveMetastore

pytestmark = [pytest.mark.jvm, pytest.mark.full("needs Hive 3.1")]
DATABASE = "warehouse"
MODE = "SET hive.exec.dynamic.partition.mode"
PLAIN = {
    "by_default": "(id BIGINT, name STRING, price DECIMAL(9,2), day DATE) STORED AS ORC",
    "parted": "(id INT, name VARCHAR(9)) PARTITIONED BY (place STRING, year INT) STORED AS ORC",
    "as_parquet": "(id INT, tags ARRAY<STRING>) STORED AS PARQUET",
    "as_avro": "(id INT, name STRING) STORED AS AVRO",
}
TRANSACTIONAL = {
    "acid": "(id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
    "acid_parted": "(id INT, name STRING) PARTITIONED BY (place STRING) STORED AS ORC "
    "TBLPROPERTIES ('transactional'='true')",
    "only_inserts": "(id INT, name STRING) STORED AS PARQUET "
    "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')",
}
ROWS = (
    "INSERT INTO by_default VALUES (1, 'a', 1.50, '2024-02-29'), (2, NULL, -0.01, '1969-12-31')",
    "INSERT INTO parted PARTITION (place, year) VALUES (1, 'x', 'a/b c', 2024), (2, 'y', 'ü=%', -3)",
    "INSERT INTO as_parquet SELECT id, array(name, 'z') FROM by_default",
    "INSERT INTO as_avro VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO acid VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "UPDATE acid SET name = 'changed' WHERE id = 1",
    "DELETE FROM acid WHERE id = 2",
    "INSERT INTO acid_parted PARTITION (place) VALUES (1, 'a', 'p/q'), (2, 'b', 'r')",
    "DELETE FROM acid_parted WHERE id = 2",
    "INSERT INTO only_inserts VALUES (1, 'a'), (2, 'b')",
)


class Warehouse:
    """Hive, our catalog on its metastore, and what Hive read in each table at first."""

    def __init__(self, hive: Hive, catalog: Any) -> None:
        self.hive = hive
        self.catalog = catalog
        hive.run(f"CREATE DATABASE {DATABASE}")
        hive.run(f"USE {DATABASE}")
        for name, columns in {**PLAIN, **TRANSACTIONAL}.items():
            hive.run(f"CREATE TABLE {name} {columns}")
        hive.run(f"{MODE}=nonstrict")
        for statement in ROWS:
            hive.run(statement)
        hive.run(f"{MODE}=strict")
        hive.run("CREATE VIEW seen AS SELECT id FROM by_default")
        self.before = {name: self.read(name) for name in {**PLAIN, **TRANSACTIONAL}}

    def read(self, table: str) -> list[list[str]]:
        """What Hive reads."""
        return sorted(self.hive.run(f"SELECT * FROM {DATABASE}.{table}"))

    def rows(self, table: str) -> int:
        """How many rows we read."""
        return int(self.catalog.load_table(f"{DATABASE}.{table}").scan().to_arrow().num_rows)


@pytest.fixture(scope="module")
def warehouse(
    hive_server: HiveMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    hive = Hive(hive_server, tmp_path_factory.mktemp("warehouse"))
    try:
        place = str(hive_server.warehouse)
        catalog = load_catalog("hive", uri=hive_server.uri, warehouse=place)
        yield Warehouse(hive, catalog)
        catalog.close()
    finally:
        hive.close()


def test_all_of_it_is_planned_and_blocked_is_what_only_hive_can_read(warehouse: Warehouse) -> None:
    plans = {plan.table: plan for plan in migrate.plan_many(warehouse.catalog, [DATABASE])}
    blockers = {
        name.partition(".")[2]: [one.code for one in plan.blockers] for name, plan in plans.items()
    }
    assert blockers == {
        **{name: [] for name in PLAIN},
        **{name: ["transactional"] for name in TRANSACTIONAL},
    }
    messages = {name: plans[f"{DATABASE}.{name}"].blockers[0].message for name in TRANSACTIONAL}
    assert messages["acid"].endswith("is transactional (ACID): its files hold deltas, not rows")
    assert "insert-only" in messages["only_inserts"]
    views = [f for f in plans[f"{DATABASE}.by_default"].findings if f.code == "views-on-it"]
    assert [DATABASE + ".seen" in str(one.places) for one in views] == [True]


@pytest.mark.parametrize("name", PLAIN)
def test_hive_reads_a_migrated_table_by_its_name_and_gets_it_back(
    warehouse: Warehouse, name: str
) -> None:
    catalog, table, before = warehouse.catalog, f"{DATABASE}.{name}", warehouse.before[name]
    assert len(before) == 2
    migrate.apply(catalog, table)
    assert migrate.verify(catalog, table).difference_count == 0
    assert warehouse.rows(name) == 2
    assert warehouse.read(name) == before
    assert warehouse.hive.run(f"SELECT count(*) FROM {table}") == [["2"]]
    migrate.revert(catalog, table, dry_run=False)
    assert warehouse.read(name) == before


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_the_remedy_of_a_transactional_table_is_followed_in_hive_and_its_copy_migrated(
    warehouse: Warehouse, name: str
) -> None:
    catalog, table, before = warehouse.catalog, f"{DATABASE}.{name}", warehouse.before[name]
    [found] = migrate.plan(catalog, table).blockers
    entry = catalog.client.table(DATABASE, name)
    statements = hive_copy_statements(entry)
    assert found.remedy == (
        f"copy it in Hive: {'; '.join(statements)}; then migrate {table}_external"
    )
    for statement in statements:
        warehouse.hive.run(statement)
    assert migrate.plan(catalog, f"{table}_external").blockers == ()
    migrate.apply(catalog, f"{table}_external", progress=SILENT)
    assert migrate.verify(catalog, f"{table}_external").difference_count == 0
    assert warehouse.rows(f"{name}_external") == len(before) == (1 if name == "acid_parted" else 2)
    assert warehouse.read(f"{name}_external") == before
    assert warehouse.read(name) == before

"""Health of tables of a Hive metastore: locks, migrated tables, and what the metastore is asked."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, migrate
from icecomb.catalog.health import check_health
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import MetastoreError

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture
def table(catalog: Any, namespace: str) -> Any:
    made = catalog.create_table(f"{namespace}.t", ROWS.schema)
    made.append(ROWS)
    return made


@pytest.fixture
def dead_lock(catalog: Any, namespace: str, table: Any) -> int:
    """A lock on the table by a process of this host that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    agent = f"icecomb-0000-pid{process.pid}"
    answer = catalog.client.lock(namespace, "t", user="ann", host=socket.gethostname(), agent=agent)
    found: int = answer.lock_id
    return found


def test_a_lock_of_a_dead_holder_is_a_problem_and_the_printed_command_breaks_it(
    metastore: Any, catalog: Any, namespace: str, table: Any, dead_lock: int, capfd: Any
) -> None:
    (found,) = table.maintenance.health().findings
    assert (found.code, found.severity) == ("stale-lock", Severity.PROBLEM)
    assert found.evidence["lock_id"] == dead_lock
    assert "ann@" in found.evidence["holder"]
    place = ["--uri", metastore.uri, "--warehouse", str(metastore.warehouse)]
    assert cli.main([*place, "health", f"{namespace}.*", "--output", "json"]) == 3
    ((told,),) = [one["findings"] for one in json.loads(capfd.readouterr().out)]
    words = shlex.split(told["command"])
    assert words == ["icecomb", *place, "locks", "break", str(dead_lock), "--yes"]
    assert cli.main(words[1:]) == 0
    assert catalog.client.locks(namespace, "t") == []
    assert table.maintenance.health().findings == ()


def test_a_lock_whose_holder_may_live_is_none(catalog: Any, namespace: str, table: Any) -> None:
    answer = catalog.client.lock(
        namespace, "t", user="ann", host="etl-07", agent="icecomb-0000-pid4711"
    )
    assert table.maintenance.health().findings == ()
    catalog.client.unlock(answer.lock_id)


def test_locks_of_many_tables_are_asked_for_once(
    catalog: Any, namespace: str, dead_lock: int
) -> None:
    for name in ("u", "v", "w"):
        catalog.create_table(f"{namespace}.{name}", ROWS.schema)
    list(check_health(catalog, f"{namespace}.*"))  # what it asks of a server once is known then
    before = Counter(catalog.client.calls)
    found = list(check_health(catalog, f"{namespace}.*"))
    spent = Counter(catalog.client.calls) - before
    codes = [[one.code for one in each.findings] for each in found]
    assert codes == [["stale-lock"], [], [], []]
    tables = {name: count for name, count in spent.items() if count == 4}
    others = {name: count for name, count in spent.items() if count != 4}
    assert len(tables) == 1, spent
    assert others.pop("show_locks") == 1
    assert len(others) == 1, "the list of the tables"
    assert list(others.values()) == [1]
    catalog.client.unlock(dead_lock)


def test_one_table_costs_its_entry_and_its_locks(catalog: Any, namespace: str, table: Any) -> None:
    table.maintenance.health()
    before = Counter(catalog.client.calls)
    (found,) = check_health(catalog, f"{namespace}.t")
    spent = Counter(catalog.client.calls) - before
    assert found.findings == ()
    assert (spent["show_locks"], spent.total()) == (1, 2)


def test_a_metastore_that_tells_no_locks_is_a_note(
    catalog: Any, namespace: str, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise MetastoreError("The metastore keeps no locks", hint="none")

    monkeypatch.setattr(catalog.client, "locks", refuse)
    catalog.create_table(f"{namespace}.u", ROWS.schema)
    found = list(check_health(catalog, f"{namespace}.*"))
    assert [[(f.code, f.severity) for f in one.findings] for one in found] == [
        [("stale-lock", Severity.NOTE)],
        [("stale-lock", Severity.NOTE)],
    ]
    assert not any(one.has_problem for one in found)
    assert "keeps no locks" in table.maintenance.health().findings[0].message


def test_names_are_folded_and_others_than_iceberg_tables_are_not_meant(
    catalog: Any, namespace: str, table: Any
) -> None:
    storage = StorageDescriptor(columns=(FieldSchema("id", "bigint"),))
    catalog.client.create_table(HiveTable(namespace, "hive", storage=storage))
    for pattern in (namespace.upper(), f"{namespace.upper()}.T*", f"{namespace}.*"):
        assert [one.table for one in check_health(catalog, pattern)] == [f"{namespace}.t"]


def test_a_migrated_table_says_that_its_files_have_no_ids(
    catalog: Any, namespace: str, tmp_path: Any
) -> None:
    import pyarrow.parquet as pq

    folder = tmp_path / "old"
    folder.mkdir()
    pq.write_table(ROWS, folder / "000000_0")
    pq.write_table(ROWS, folder / "000001_0")
    catalog.client.create_table(
        HiveTable(
            namespace,
            "old",
            storage=StorageDescriptor(
                columns=(FieldSchema("id", "bigint"),),
                location=f"file:{folder}",
                input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
                output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
                serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            ),
        )
    )
    migrate.apply(catalog, f"{namespace}.old")
    table = catalog.load_table(f"{namespace}.old")
    (found,) = table.maintenance.health().findings
    assert (found.code, found.evidence["files"]) == ("hive-files-without-ids", 2)
    table.append(ROWS)
    (found,) = table.maintenance.health().findings
    assert found.evidence["files"] == 2, "what Iceberg's writers add has ids"


def test_a_table_that_pyiceberg_wrote_is_counted_as_it_counts_it(
    catalog: Any, namespace: str, pyiceberg: Any
) -> None:
    made = pyiceberg.create_table(f"{namespace}.peer", ROWS.schema)
    for _ in range(6):
        made.append(ROWS)
    made.delete("id = 2")
    files = made.inspect.files().to_pylist()
    found = catalog.load_table(f"{namespace}.peer").maintenance.health()
    assert found.facts is not None
    assert found.facts.files == len(files) == 6
    assert found.facts.rows == sum(file["record_count"] for file in files) == 6
    assert found.facts.size == sum(file["file_size_in_bytes"] for file in files)
    manifests = made.inspect.manifests().to_pylist()
    live = [m for m in manifests if m["added_data_files_count"] or m["existing_data_files_count"]]
    assert (len(manifests), found.facts.manifests) == (2, len(live))
    assert found.facts.snapshots == len(made.inspect.snapshots())
    assert [one.code for one in found.findings] == ["small-files"]

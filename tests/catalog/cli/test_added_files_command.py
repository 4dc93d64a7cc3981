"""`icecomb add-files`: files of Hive tables and of folders come into a table, once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from tests.catalog.numbered_rows import numbers

NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def run(icecomb: Any) -> Any:
    """Runs `icecomb add-files ...`: exit code, facts, stderr."""

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        code, out, err = icecomb("add-files", *arguments, form="json")
        return code, json.loads(out) if out else {}, err

    return run


@pytest.fixture
def table(catalog: Any, namespace: str) -> Any:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    made = catalog.create_table(f"{namespace}.target", schema)
    with made.update_spec() as update:
        update.add_identity("k")
    yield made
    catalog.drop_table(made.name())


@pytest.fixture
def hive(catalog: Any, namespace: str, tmp_path: Path) -> Any:
    """A Hive table with partitions a, b/c and null, of one file each."""
    storage = StorageDescriptor(
        columns=(FieldSchema("id", "bigint"),),
        location=f"file:{tmp_path}/hive",
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    )
    entry = HiveTable(
        namespace,
        "source",
        storage=storage,
        partition_keys=(FieldSchema("k", "string"),),
        parameters={"EXTERNAL": "TRUE"},
        table_type="EXTERNAL_TABLE",
    )
    catalog.client.create_table(entry)
    made = []
    for at, value in enumerate(("a", "b/c", NULL)):
        folder = tmp_path / "hive" / f"p{at}"
        folder.mkdir(parents=True)
        pq.write_table(numbers(at), folder / "one.parquet")
        place = replace(storage, location=f"file:{folder}")
        made.append(HivePartition(namespace, "source", (value,), storage=place))
    catalog.client.partitions.add(made)
    yield f"{namespace}.source", tmp_path / "hive"
    catalog.client.drop_table(namespace, "source")


def rows(table: Any) -> list[tuple[int, str | None]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return sorted((row["id"], row["k"]) for row in found)


def test_the_partitions_of_a_hive_table_come_in_once_and_later_ones_when_asked_again(
    run: Any, table: Any, hive: Any
) -> None:
    source, folder = hive
    target = ".".join(table.name())
    code, facts, _ = run(target, "--from", source, "--partition", "K=b/c")
    assert (code, facts["files added"], rows(table)) == (0, 1, [(1, "b/c")])
    code, facts, err = run(target, "--from", source)
    assert (code, facts, rows(table)) == (1, {}, [(1, "b/c")])
    assert "already" in err
    code, facts, err = run(target, "--from", source, "--on-duplicate", "skip", "--dry-run")
    assert (code, facts["files found"], facts["files added"]) == (0, 3, 0)
    assert err == "dry run: leave --dry-run out to do it\n"
    assert rows(table) == [(1, "b/c")]
    code, facts, _ = run(target, "--from", source, "--on-duplicate", "skip")
    assert (code, facts["files added"], facts["rows added"]) == (0, 2, 2)
    assert facts["partitions changed"] == 2
    assert rows(table) == [(0, "a"), (1, "b/c"), (2, None)]
    pq.write_table(numbers(9), folder / "p0" / "later.parquet")
    for added, snapshot in ((1, True), (0, False)):
        code, facts, _ = run(target, "--from", source, "--on-duplicate", "skip", "--jobs", "2")
        assert (code, facts["files added"]) == (0, added)
        assert (facts["snapshot"] is not None) == snapshot
    assert rows(table) == [(0, "a"), (1, "b/c"), (2, None), (9, "a")]


def test_the_files_of_a_folder_come_in_by_the_values_that_its_folders_say(
    run: Any, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, value in enumerate(("x", "y%2Fz")):
        (tmp_path / "files" / f"k={value}").mkdir(parents=True)
        pq.write_table(numbers(at), tmp_path / "files" / f"k={value}" / "f.parquet")
    target = ".".join(table.name())
    monkeypatch.chdir(tmp_path)
    assert run(target, "--from", "./files", "--partition", "k=y/z")[0] == 0
    assert rows(table) == [(1, "y/z")]
    folder = (tmp_path / "files").as_uri()
    assert run(target, "--from", folder, "--on-duplicate", "skip")[1]["files added"] == 1
    assert rows(table) == [(0, "x"), (1, "y/z")]


def test_what_cannot_be_meant_is_refused_and_nothing_is_added(
    run: Any, table: Any, hive: Any, tmp_path: Path
) -> None:
    source, _ = hive
    target = ".".join(table.name())
    for arguments, code, message in (
        ((target, "--from", "nowhere.at_all"), 1, "There is no"),
        ((target, "--from", f"{tmp_path}/nothing"), 1, "There is no folder"),
        ((target, "--from", target), 1, "is an Iceberg table"),
        ((target, "--from", source, "--partition", "k=z"), 1, "has no partitions of"),
        ((target, "--from", source, "--partition", "z=z"), 1, "is not partitioned by z"),
        ((target, "--from", source, "--partition", "k"), 2, "COLUMN=VALUE"),
        ((target, "--from", source, "--partition", "k=a", "--partition", "k=b"), 2, "twice"),
        ((target, "--from", source, "--jobs", "0"), 2, "--jobs"),
        ((target,), 2, "--from"),
    ):
        found, facts, err = run(*arguments)
        assert (found, facts) == (code, {})
        assert message in err
    assert rows(table) == []


def test_rows_that_are_not_simply_in_files_are_refused(
    run: Any, table: Any, catalog: Any, namespace: str, tmp_path: Path
) -> None:
    storage = StorageDescriptor(
        columns=(FieldSchema("id", "bigint"),), location=f"file:{tmp_path}/kept"
    )
    for name, changes in (
        ("handled", {"parameters": {"storage_handler": "org.x.HBase", "EXTERNAL": "TRUE"}}),
        (
            "seen",
            {"table_type": "VIRTUAL_VIEW", "view_original_text": "S", "view_expanded_text": "S"},
        ),
    ):
        catalog.client.create_table(
            HiveTable(
                namespace, name, storage=storage, **{"table_type": "EXTERNAL_TABLE", **changes}
            )
        )
        code, _, err = run(".".join(table.name()), "--from", f"{namespace}.{name}")
        catalog.client.drop_table(namespace, name)
        assert code == 1
        assert "are not simply in files" in err

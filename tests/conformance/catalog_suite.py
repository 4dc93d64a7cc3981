"""What holds for every catalog. A catalog inherits the suite and gives it the fixture ``catalog``."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from operator import methodcaller
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.catalog import Catalog
from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import (
    CommitFailedError,
    IcecombError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    SchemaError,
    TableAlreadyExistsError,
    ValidationError,
)
from icecomb.format.spec.change.update import Changes, RemovePropertiesUpdate, SetPropertiesUpdate
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.peers.child_process import ended
from tests.peers.worker import elsewhere

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
SCHEMA = Schema(
    (NestedField(7, "id", LongType(), required=True), NestedField(9, "s", StringType()))
)
HOSTILE = [
    "../up",
    "a/b",
    "/etc",
    "x\0y",
    "x" * 300,
    "tä'\"b",
    "ta ble",
    "%2e%2e",
    "*",
    "\ud800",
    ":",
    "..",
    "\n",
    "`; drop table t",
]
APPENDING = """
import json, sys, pyarrow as pa
from icecomb.catalog import load_catalog
properties, name, times, row = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
table = load_catalog("peer", **properties).load_table(name)
sys.stdin.readline()
for n in range(times):
    table.append(pa.table({"id": pa.array([row * 1000 + n], pa.int64()), "s": ["x"]}))
"""
CREATING = """
import json, sys, pyarrow as pa
from icecomb.catalog import load_catalog
from icecomb.format.errors import TableAlreadyExistsError
catalog = load_catalog("peer", **json.loads(sys.argv[1]))
sys.stdin.readline()
for n in range(int(sys.argv[3])):
    try:
        print(catalog.create_table(f"{sys.argv[2]}{n}", pa.schema([("id", pa.int64())])).metadata.table_uuid)
    except TableAlreadyExistsError:
        print("lost")
"""


class Properties:
    """A change of a table's properties."""

    writes_files = False

    def __init__(self, updates: Mapping[str, str], removals: tuple[str, ...] = ()) -> None:
        self.updates = (SetPropertiesUpdate(dict(updates)), RemovePropertiesUpdate(removals))

    def apply(self, base: Any) -> Changes:  # noqa: ARG002
        return Changes((), self.updates)

    def clean_up(self, committed: Any) -> None:
        pass


def files_of(table: Any) -> set[str]:
    folder = table.location()
    found = FileIO(table.catalog.properties).list(folder)
    return {each.location.removeprefix(f"{folder}/") for each in found}


def entries_of(catalog: Catalog) -> tuple[list[str], set[str]]:
    """The folders, and all the files, of its warehouse, but for the metastore's own: Derby changes them at any time."""
    warehouse, io = catalog.properties["warehouse"], FileIO(catalog.properties)
    files = {each.location for each in io.list(warehouse)}
    return list(io.folders(warehouse)), {each for each in files if "/.metastore/" not in each}


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def race(*racers: subprocess.Popen[str]) -> list[list[str]]:
    """Lets all go at once; the lines each printed."""
    with ended(*racers):
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        answers = [racer.communicate(timeout=500) for racer in racers]
    assert [errors for _, errors in answers] == [""] * len(racers)
    return [output.split() for output, _ in answers]


class StoreSuite:
    """What depends on how a store makes, lists and deletes files: give a fixture ``catalog``."""

    @pytest.fixture
    def namespace(self, catalog: Catalog) -> Iterator[str]:
        """A namespace of this test."""
        name = f"n{uuid.uuid4().hex[:10]}"
        catalog.create_namespace(name)
        yield name
        for table in catalog.list_tables(name):
            catalog.load_table(table).commit(Properties({"gc.enabled": "true"}))
            catalog.purge_table(table)
        catalog.drop_namespace(name)

    @pytest.fixture
    def table(self, catalog: Catalog, namespace: str) -> Any:
        """A table without rows."""
        return catalog.create_table(f"{namespace}.t", ROWS.schema)

    def test_a_namespace_is_made_listed_and_dropped(self, catalog):
        name = f"n{uuid.uuid4().hex[:10]}"
        catalog.create_namespace(name)
        with pytest.raises(NamespaceAlreadyExistsError, match=name):
            catalog.create_namespace((name,))
        catalog.create_namespace_if_not_exists(name)
        assert (name,) in catalog.list_namespaces()
        assert catalog.list_namespaces((name,)) == []
        assert catalog.list_tables(name) == []
        assert catalog.load_namespace_properties(name)["location"].startswith(
            ("/", "file:", "hdfs:", "s3:", "gs:", "abfss:")
        )
        catalog.drop_namespace(name)
        assert (name,) not in catalog.list_namespaces()
        catalog.create_namespace_if_not_exists(name)
        catalog.drop_namespace(name)

    def test_a_namespace_that_holds_a_table_is_not_dropped(self, catalog, namespace, table):
        with pytest.raises(NamespaceNotEmptyError, match=namespace):
            catalog.drop_namespace(namespace)
        assert catalog.table_exists(table.identifier)

    def test_tables_are_listed_by_name_and_namespace(self, catalog, namespace, table):  # noqa: ARG002
        catalog.create_table(f"{namespace}.a", ROWS.schema)
        assert catalog.list_tables(namespace) == [(namespace, "a"), (namespace, "t")]
        assert catalog.table_exists(f"{namespace}.a")
        assert not catalog.table_exists(f"{namespace}.b")
        assert not catalog.table_exists("nowhere.a")

    def test_a_taken_name_is_left_alone(self, catalog, table):
        with pytest.raises(TableAlreadyExistsError, match=r"\.t exists already"):
            catalog.create_table(table.identifier, ROWS.schema)
        assert catalog.load_table(table.identifier).metadata == table.metadata

    def test_rows_appended_are_there_for_everybody(self, catalog, table):
        table.append(ROWS)
        table.append(ROWS.slice(0, 1), snapshot_properties={"why": "test"})
        other = load_catalog("other", **catalog.properties)
        found = other.load_table(table.identifier)
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 3]
        assert found.metadata == table.metadata
        assert found.current_snapshot().summary["why"] == "test"
        assert [s.summary["operation"] for s in found.snapshots()] == ["append", "append"]
        assert len(found.metadata.metadata_log) == 2
        other.close()

    def test_a_stale_object_commits_on_what_others_did(self, catalog, table):
        other = catalog.load_table(table.identifier)
        table.append(ROWS)
        other.append(ROWS)
        assert len(other.snapshots()) == 2
        assert other.current_snapshot().parent_snapshot_id == table.current_snapshot().snapshot_id
        assert table.refresh().scan().to_arrow().num_rows == 6
        left = [name for name in files_of(table) if name.endswith(".metadata.json")]
        assert len(left) == len(table.metadata.metadata_log) + 1 == 3

    def test_a_refused_change_leaves_nothing_behind(self, catalog, table):
        class Refused:
            writes_files = False

            def __init__(self, append):
                self.append = append

            def apply(self, base):
                changes = self.append.apply(base)
                return Changes((Never(),), changes.updates)

            def clean_up(self, committed):
                self.append.clean_up(committed)

        class Never:
            def check(self, metadata):  # noqa: ARG002
                raise CommitFailedError("never")

        before = files_of(table)
        append = table.new_fast_append()
        with pytest.raises(CommitFailedError):
            table.commit(Refused(append))
        assert files_of(table) == before
        assert catalog.load_pointer(table.identifier) == table.metadata_location

    def test_every_file_left_by_commits_belongs_to_the_table(self, table):
        for _ in range(3):
            table.append(ROWS)
        found = files_of(table)
        metadata = [name for name in found if name.endswith(".metadata.json")]
        assert len(metadata) == 4
        assert sum(name.startswith("data/") for name in found) == 3
        assert sum("/snap-" in name for name in found) == 3
        assert not [name for name in found if name.endswith((".tmp", ".crc"))]

    @pytest.mark.gate("starts processes")
    def test_two_processes_appending_lose_nothing(self, catalog, table):
        arguments = (json.dumps(catalog.properties), ".".join(table.identifier), 6)
        race(*(start(APPENDING, *arguments, row) for row in (1, 2)))
        found = table.refresh().scan().to_arrow()["id"].to_pylist()
        assert sorted(found) == [row * 1000 + n for row in (1, 2) for n in range(6)]
        assert len(table.snapshots()) == 12

    @pytest.mark.gate("starts processes")
    def test_of_two_processes_making_one_table_one_wins(self, catalog, namespace):
        arguments = (json.dumps(catalog.properties), f"{namespace}.t", 6)
        answers = race(start(CREATING, *arguments), start(CREATING, *arguments))
        for number, pair in enumerate(zip(*answers, strict=True)):
            made = [answer for answer in pair if answer != "lost"]
            found = catalog.load_table(f"{namespace}.t{number}")
            assert made == [str(found.metadata.table_uuid)]

    def test_threads_of_one_catalog_all_commit(self, catalog, table):
        errors = []

        def write():
            try:
                mine = catalog.load_table(table.identifier)
                for _ in range(4):
                    mine.append(ROWS)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                errors.append(error)

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(table.refresh().snapshots()) == 16

    def test_a_dropped_table_takes_no_commit_and_its_name_is_free(self, catalog, table):
        catalog.purge_table(table.identifier)
        assert not catalog.table_exists(table.identifier)
        with pytest.raises(NoSuchTableError):
            table.append(ROWS)
        with pytest.raises(NoSuchTableError):
            table.refresh()
        again = catalog.create_table(table.identifier, ROWS.schema)
        assert again.scan().to_arrow().num_rows == 0

    def test_an_object_of_a_dropped_table_does_not_write_to_its_successor(self, catalog, table):
        catalog.purge_table(table.identifier)
        again = catalog.create_table(table.identifier, ROWS.schema)
        again.append(ROWS.slice(0, 1))
        with pytest.raises(CommitFailedError):
            table.append(ROWS)
        assert again.refresh().scan().to_arrow().num_rows == 1
        assert len(again.snapshots()) == 1

    def test_purging_deletes_the_tables_files(self, catalog, table):
        table.append(ROWS)
        table.append(ROWS)
        catalog.purge_table(table.identifier)
        assert files_of(table) == set()

    def test_registering_takes_a_table_in_and_keeps_its_file(self, catalog, namespace, tmp_path):
        # With its scheme: a bare path is another file where the catalog's fs.defaultFS is HDFS.
        elsewhere = load_catalog("elsewhere", type="hadoop", warehouse=tmp_path.as_uri())
        source = elsewhere.create_table("source", ROWS.schema)
        source.append(ROWS)
        taken = catalog.register_table(f"{namespace}.taken", source.metadata_location)
        assert taken.metadata.table_uuid == source.metadata.table_uuid
        assert catalog.load_table(f"{namespace}.taken").metadata == source.metadata
        if isinstance(catalog, HadoopCatalog):
            # its location is the other table's folder, and only the file says so
            with pytest.raises(ValidationError, match="which only its metadata file says"):
                taken.append(ROWS)
        else:
            taken.append(ROWS)
            assert catalog.load_table(f"{namespace}.taken").scan().to_arrow().num_rows == 6
        assert source.refresh().scan().to_arrow().num_rows == 3
        with pytest.raises(TableAlreadyExistsError):
            catalog.register_table(f"{namespace}.taken", source.metadata_location)
        with pytest.raises(NoSuchFileError):
            catalog.register_table(f"{namespace}.third", f"{source.metadata_location}x")
        assert not catalog.table_exists(f"{namespace}.third")
        assert FileIO().exists(source.metadata_location)
        for version in (tmp_path / "source" / "metadata").glob("v*"):
            version.unlink()  # while two tables have these files, a metastore's is not purged


class CatalogSuite(StoreSuite):
    """Inherit as ``Test…`` and give a fixture ``catalog``."""

    @pytest.mark.parametrize("act", [
        lambda c: c.list_tables("nowhere"),
        lambda c: c.list_namespaces("nowhere"),
        lambda c: c.drop_namespace("nowhere"),
        lambda c: c.load_namespace_properties("nowhere"),
        lambda c: c.update_namespace_properties("nowhere", updates={"k": "v"}),
        lambda c: c.create_table("nowhere.t", ROWS.schema),
    ], ids=["tables", "below", "drop", "properties", "update", "create"])  # fmt: skip
    def test_a_missing_namespace_is_named(self, catalog, act):
        with pytest.raises(NoSuchNamespaceError, match="nowhere"):
            act(catalog)

    def test_a_table_is_loaded_as_it_was_made(self, catalog, namespace):
        spec = PartitionSpec(0, (PartitionField(7, 1000, parse_transform("bucket[4]"), "b"),))
        order = SortOrder(
            1,
            (SortField(9, parse_transform("identity"), SortDirection.DESC, NullOrder.NULLS_LAST),),
        )
        made = catalog.create_table(
            (namespace, "t"), SCHEMA, partition_spec=spec, sort_order=order, properties={"k": "v"}
        )
        found = catalog.load_table(f"{namespace}.t")
        assert found.metadata == made.metadata
        assert found.metadata_location == made.metadata_location
        assert catalog.load_pointer(made.identifier) == made.metadata_location
        assert found.name() == (namespace, "t")
        assert [(f.field_id, f.name, f.required) for f in found.schema().columns] == [
            (1, "id", True),
            (2, "s", False),
        ]
        assert found.spec().fields[0].source_id == 1
        assert found.sort_order().fields[0].source_id == 2
        assert found.properties["k"] == "v"
        assert found.current_snapshot() is None
        assert found.scan().to_arrow().num_rows == 0

    @pytest.mark.parametrize("act", [
        lambda c, name: c.load_table(name),
        lambda c, name: c.load_pointer(name),
        lambda c, name: c.drop_table(name),
        lambda c, name: c.purge_table(name),
    ], ids=["load", "pointer", "drop", "purge"])  # fmt: skip
    def test_a_missing_table_is_named(self, catalog, namespace, act):
        with pytest.raises(NoSuchTableError, match=f"There is no table {namespace}.missing"):
            act(catalog, f"{namespace}.missing")

    @pytest.mark.parametrize("name", HOSTILE, ids=[str(n) for n in range(len(HOSTILE))])
    def test_a_hostile_name_stays_in_its_namespace(self, catalog, namespace, name):
        with pytest.raises(NoSuchTableError, match="There is no table"):
            catalog.load_table((namespace, name))
        assert not catalog.table_exists((namespace, name))
        around = entries_of(catalog)
        try:
            made = catalog.create_table((namespace, name), ROWS.schema)
        except IcecombError:
            assert catalog.list_tables(namespace) == []
        else:
            made.append(ROWS)
            assert catalog.load_table((namespace, name)).scan().to_arrow().num_rows == 3
            catalog.purge_table((namespace, name))
        assert entries_of(catalog) == around

    @pytest.mark.parametrize("name", ["", ".", "a.", "..", ()])
    def test_a_name_with_an_empty_part_is_refused(self, catalog, name):
        with pytest.raises((ValidationError, NoSuchTableError)):
            catalog.create_table(name, ROWS.schema)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(name)

    def test_a_schema_that_cannot_be_makes_no_table(self, catalog, namespace):
        with pytest.raises(SchemaError):
            catalog.create_table(
                f"{namespace}.t", pa.schema([("a", pa.int64()), ("a", pa.string())])
            )
        with pytest.raises(IcecombError):
            catalog.create_table(
                f"{namespace}.t",
                ROWS.schema,
                properties={"write.metadata.compression-codec": "zip"},
            )
        assert catalog.list_tables(namespace) == []

    def test_an_object_stays_at_its_version_until_it_is_refreshed(self, catalog, table):
        other = catalog.load_table(table.identifier)
        table.append(ROWS)
        assert other.current_snapshot() is None
        assert other.scan().to_arrow().num_rows == 0
        assert other.refresh() is other
        assert other.scan().to_arrow().num_rows == 3

    def test_properties_are_set_and_removed(self, catalog, table):
        table.commit(Properties({"a": "1", "b": "2"}))
        table.commit(Properties({"c": "3"}, ("a",)))
        found = catalog.load_table(table.identifier).properties
        assert {key: found[key] for key in "bc"} == {"b": "2", "c": "3"}
        assert "a" not in found

    def test_a_change_that_changes_nothing_is_no_commit(self, catalog, table):
        location = table.metadata_location
        table.commit(Properties({}))
        assert table.metadata_location == location == catalog.load_pointer(table.identifier)

    def test_rows_that_do_not_fit_leave_nothing_behind(self, table):
        before = files_of(table)
        with pytest.raises(SchemaError):
            table.append(pa.table({"id": ["not a number"], "other": [1]}))
        assert files_of(table) == before
        assert table.refresh().current_snapshot() is None

    @pytest.mark.gate("starts processes")
    def test_a_pickled_table_works_in_another_process(self, table):
        table.append(ROWS)
        elsewhere(methodcaller("append", ROWS), table)
        assert table.refresh().scan().count() == 2 * ROWS.num_rows

    @pytest.mark.gate("starts processes")
    def test_workers_read_the_tasks_of_a_pickled_scan(self, table):
        for _ in range(2):
            table.append(ROWS)
        scan = table.scan("id > 1", selected_fields=("id",))
        read = [elsewhere(methodcaller("to_arrow", [task]), scan) for task in scan.plan_files()]
        assert [part.column("id").to_pylist() for part in read] == [[2, 3]] * 2

    def test_a_copy_of_a_table_is_the_same_table_and_moves_on_its_own(self, table):
        twin = copy.deepcopy(table)
        twin.append(ROWS)
        assert (table.scan().count(), twin.scan().count()) == (0, ROWS.num_rows)
        assert table.refresh().metadata == twin.metadata

    def test_purging_honours_gc_enabled(self, catalog, namespace):
        table = catalog.create_table(
            f"{namespace}.kept", ROWS.schema, properties={"gc.enabled": "false"}
        )
        table.append(ROWS)
        before = files_of(table)
        with pytest.raises(ValidationError, match=r"gc\.enabled"):
            catalog.purge_table(table.identifier)
        assert files_of(table) == before
        assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3

    def test_properties_of_the_catalog_default_and_override_those_of_a_table(
        self, catalog, namespace
    ):
        strict = load_catalog(
            "strict", **catalog.properties, **{"table-default.a": "1", "table-override.b": "2"}
        )
        table = strict.create_table(f"{namespace}.p", ROWS.schema, properties={"b": "9", "c": "3"})
        assert {key: table.properties[key] for key in "abc"} == {"a": "1", "b": "2", "c": "3"}
        strict.close()

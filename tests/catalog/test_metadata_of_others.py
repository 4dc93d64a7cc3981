"""What another writer says of its files may be wrong: rows are found, counted and deleted all the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField, StringType
from tests.catalog.metadata_of_others import NO_CACHE, again, told_otherwise
from tests.rings import sampled

PATH_ID = 2147483546
BATCHES = [
    pa.table({"p": [name] * 4, "id": pa.array(range(at, at + 4), pa.int64())})
    for name, at in (("a", 0), ("b", 10))
]
SCHEMA = Schema((NestedField(1, "p", StringType()), NestedField(2, "id", LongType())))
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
REWRITE_ALL = {"rewrite-all": "true"}


@pytest.fixture
def make(tmp_path):
    """Makes a table of two partitions with a data file each."""
    catalog = load_catalog("files", type="hadoop", warehouse=f"file:{tmp_path}", **NO_CACHE)
    catalog.create_namespace("db")

    def made(version="2", **properties):
        table = catalog.create_table(
            "db.t",
            SCHEMA,
            partition_spec=SPEC,
            properties={
                "format-version": version,
                "write.delete.mode": "merge-on-read",
                **properties,
            },
        )
        for batch in BATCHES:
            table.append(batch)
        return table

    yield made
    catalog.close()


def ids(table, *args):
    return sorted(again(table).scan(*args).to_arrow()["id"].to_pylist())


def upgrade(table):
    with table.update_properties() as properties:
        properties.set("format-version", "3")


def swapped(record):
    record["lower_bounds"], record["upper_bounds"] = record["upper_bounds"], record["lower_bounds"]


def test_data_files_with_bounds_upside_down_are_read_and_changed(make):
    table = told_otherwise(make(), swapped)
    assert ids(table, "id = 2") == [2]
    assert ids(table, "id > 2 and id < 11") == [3, 10]
    assert ids(table, "id not in (1, 2, 3)") == [0, 10, 11, 12, 13]
    assert table.scan("id >= 1").count() == 7
    table.upsert(pa.table({"p": ["a"], "id": pa.array([2], pa.int64())}), ["id"])
    assert ids(table) == [*range(4), *range(10, 14)]
    again(table).delete("id = 11")
    assert ids(table) == [*range(4), 10, 12, 13]


def test_manifests_with_summaries_upside_down_are_read(make):
    table = make()
    table.maintenance.rewrite_manifests()

    def manifest(record):
        for summary in record["partitions"]:
            summary["lower_bound"], summary["upper_bound"] = (
                summary["upper_bound"],
                summary["lower_bound"],
            )

    table = told_otherwise(table, manifest=manifest)
    assert ids(table, "p = 'a'") == [0, 1, 2, 3]
    again(table).delete("p = 'a'")
    assert ids(table) == [10, 11, 12, 13]


def paths(change):
    """Changes the bounds of the column `file_path`."""

    def file(record):
        if record["content"] == 1:
            lower, upper = change(
                *(record[name][PATH_ID] for name in ("lower_bounds", "upper_bounds"))
            )
            record["referenced_data_file"] = None
            record["lower_bounds"], record["upper_bounds"] = {PATH_ID: lower}, {PATH_ID: upper}

    return file


OF_PATHS = {
    "upside down": lambda lower, _: (b"zzz", lower),
    "truncated without being raised": lambda lower, upper: (lower[:16], upper[:16]),
    "no text": lambda *_: (b"\xff", b"\xfe"),
    "empty": lambda *_: (b"", b""),
}


@pytest.mark.parametrize("change", sampled(OF_PATHS, keep=1))
def test_position_deletes_apply_whatever_their_bounds_of_paths_say(make, change):
    change = OF_PATHS[change]
    table = make()
    table.delete("id in (1, 11)")
    table = told_otherwise(table, paths(change))
    left = [0, 2, 3, 10, 12, 13]
    assert ids(table) == left
    assert table.scan().count() == 6
    found = table.maintenance.rewrite_position_delete_files(options=REWRITE_ALL)
    assert found.rewritten_delete_files_count == 2
    assert ids(table) == left
    told_otherwise(again(table), paths(change)).maintenance.rewrite_data_files(options=REWRITE_ALL)
    assert ids(table) == left


def test_position_deletes_with_bounds_upside_down_become_vectors(make):
    table = make()
    table.delete("id in (1, 11)")
    table = told_otherwise(table, paths(lambda lower, _: (b"zzz", lower)))
    upgrade(table)
    again(table).delete("id in (2, 12)")
    assert ids(table) == [0, 3, 10, 13]


def said(**counts):
    return lambda record: record.update(counts)


@pytest.mark.parametrize("rows", sampled([0, 1, -1], keep=1))
def test_an_upgrade_counts_the_rows_of_manifests_itself(make, rows):
    table = told_otherwise(make(), manifest=said(added_rows_count=rows))
    upgrade(table)
    again(table).append(BATCHES[0])
    found = again(table).scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist()
    assert sorted(found) == list(range(12))


def test_a_file_of_an_unknown_number_of_rows_gets_no_row_ids(make):
    table = told_otherwise(make(), lambda record: record.update(record_count=-1))
    upgrade(table)
    with pytest.raises(ValidationError, match="its number of rows is unknown"):
        again(table).append(BATCHES[0])
    again(table).maintenance.rewrite_data_files(options=REWRITE_ALL)
    again(table).append(BATCHES[0])
    found = again(table).scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist()
    assert len(set(found)) == 12


def test_manifests_are_rewritten_whatever_their_list_counts(make):
    table = make()
    for batch in BATCHES:
        table.append(batch)
    table.maintenance.rewrite_manifests()
    table = told_otherwise(table, manifest=said(existing_files_count=1))
    table.append(BATCHES[0])
    table.maintenance.rewrite_manifests()
    assert len(ids(table)) == 20
    [manifest] = again(table).inspect.manifests().to_pylist()
    assert manifest["existing_data_files_count"] == 5

"""Plans as the bridge gets them, asked over the planner's methods on a table that Python wrote."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.catalog.table.table import Table
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    NoSuchSnapshotError,
    UnsupportedError,
    ValidationError,
)
from icecomb.spark.planner.files import encode_positions
from icecomb.spark.planner.write.write import _only_proven_failures
from tests.spark.planner.protocol import NAMESPACE, Planner, named


@given(st.sets(st.integers(0, 2**40), min_size=1, max_size=200))
def test_positions_travel_as_compressed_differences(positions):
    expected = sorted(positions)
    raw = zlib.decompress(base64.b64decode(encode_positions(np.array(expected, np.int64))))
    assert np.cumsum(np.frombuffer(raw, "<i8")).tolist() == expected


@pytest.fixture(scope="module")
def name(planner, catalog):
    """Two days of rows in two snapshots, partitioned by `day` itself and by `id`."""
    columns = [("id", "long"), ("day", "date"), ("x", "double")]
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns]
    planner.ask(
        "create_table",
        catalog=planner.catalog,
        definition={
            "table": named("t"),
            "schema": {"type": "struct", "fields": fields},
            "partitioning": [
                {"name": "identity", "arguments": [{"column": ["day"]}]},
                {"name": "bucket", "arguments": [{"value": 4}, {"column": ["id"]}]},
            ],
            "properties": {"provider": "iceberg", "owner": "me", "option.a": "b", "a": "b"},
        },
    )
    table = catalog.load_table(("planner_tests", "t"))
    for day in (0, None):
        days = pa.array([day, day], pa.int32()).cast(pa.date32())
        table.append(pa.table({"id": pa.array([1, 1]), "day": days, "x": [0.5, 2.5]}))
    return "t"


def _tasks(plan):
    return [plan["files"][task["file"]] for group in plan["partitions"] for task in group]


def test_a_new_table_keeps_the_user_s_properties_and_not_spark_s(planner, name, catalog):
    properties = catalog.load_table(("planner_tests", name)).properties
    assert (properties["a"], properties["owner"]) == ("b", "me")
    assert not {"provider", "location"} & set(properties)


def test_only_the_files_that_are_named_are_planned_whatever_the_limit(planner, name):
    table = planner.load(name)
    paths = sorted(task["path"] for task in _tasks(planner.plan(table)))
    assert len(paths) == 2
    for named_ones in ([paths[1]], paths, [], ["nowhere"]):
        for limit in (None, 1):
            found = planner.plan(table, files=named_ones, limit=limit)
            expected = sorted({*named_ones} & {*paths})
            assert sorted(task["path"] for task in _tasks(found)) == expected
            assert found["statistics"]["rows"] == 2 * len(expected)


def test_identity_partition_values_come_as_constants_of_the_columns_that_are_read(planner, name):
    table = planner.load(name)
    tasks = _tasks(planner.plan(table))
    assert sorted(str(task["constants"]) for task in tasks) == ["{'2': 0}", "{'2': None}"]
    assert all(task["deletes"] is None and task["entry"] is None for task in tasks)
    only_x = _tasks(planner.plan(table, columns=["x"]))
    assert [task["constants"] for task in only_x] == [{}, {}]
    assert planner.plan(table, columns=[])["statistics"]["rows"] == 4


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        ({"op": "eq", "column": ["DAY"], "type": "date", "value": 0}, 1),
        ({"op": "is_null", "column": ["day"]}, 1),
        ({"op": "gt", "column": ["id"], "type": "long", "value": 1}, 0),
        ({"op": "eq", "column": ["id"], "type": "long", "value": 1}, 2),
        ({"op": "in", "column": ["id"], "type": "long", "values": [7, 9]}, 0),
        ({"op": "lt", "column": ["x"], "type": "double", "value": 0.5}, 0),
        ({"op": "lt_eq", "column": ["x"], "type": "double", "value": 0.5}, 2),
        ({"op": "not", "child": {"op": "not_null", "column": ["day"]}}, 1),
        ({"op": "black magic", "column": ["day"]}, 2),
    ],
)
def test_files_are_left_out_by_partition_and_by_bounds(planner, name, predicate, files):
    assert len(_tasks(planner.plan(planner.load(name), predicate))) == files


def test_a_reference_stays_in_its_state_and_survives_a_restart(planner, name, catalog):
    table = planner.load(name)
    history = catalog.load_table(("planner_tests", name)).snapshots()
    again = Planner.in_folders(catalog)
    assert again.catalog == planner.catalog
    assert len(_tasks(again.plan(table))) == 2
    first = planner.load(name, version=str(history[0].snapshot_id))
    assert len(_tasks(again.plan(first))) == 1
    at = planner.load(name, timestamp_us=history[0].timestamp_ms * 1000)
    assert at["version"] == first["version"]
    assert planner.load(name, version="main")["version"] == table["version"]


@pytest.mark.parametrize(
    "version", [{"version": "nope"}, {"version": "12345"}, {"timestamp_us": 1}]
)
def test_a_version_that_is_not_there_names_the_table(planner, name, version):
    with pytest.raises(NoSuchSnapshotError, match=r"planner_tests\.t"):
        planner.load(name, **version)


def test_a_version_cannot_be_begun_to_write(planner, name):
    table = planner.load(name, version="main")
    with pytest.raises(ValidationError, match="cannot be written to"):
        planner.ask("begin_write", reference=table["reference"], operation="append")


def test_a_write_says_where_and_how_and_a_commit_to_another_table_of_that_name_is_refused(
    planner, name, catalog
):
    table = planner.load(name)
    begun = planner.ask(
        "begin_write",
        reference=table["reference"],
        operation="append",
        options={"compression-codec": "gzip", "snapshot-property.who": "me"},
    )
    location = catalog.load_table(("planner_tests", name)).location()
    assert (begun["location"]["root"], begun["location"]["hashed"]) == (f"{location}/data", False)
    assert begun["files"]["schema"] == table["schema"]
    assert begun["partition"] == [
        {"name": "day", "transform": "identity", "parameter": None, "source": ["day"]},
        {"name": "id_bucket", "transform": "bucket", "parameter": 4, "source": ["id"]},
    ]
    assert begun["distribution"] == table["partitioning"]
    assert (begun["ordering"], begun["fanout"]) == ([], True)
    assert begun["files"]["writer"]["compression"] == "gzip"
    assert begun["files"]["target_bytes"] == 512 << 20
    for options, wrong in (
        ({"compression-codec": "lzma"}, "Property compression-codec cannot be 'lzma'"),
        ({"compression-level": "high"}, "Property compression-level cannot be 'high'"),
        ({"target-file-size-bytes": "0"}, "Property target-file-size-bytes cannot be '0'"),
        ({"distribution-mode": "random"}, "Property distribution-mode cannot be 'random'"),
        ({"fanout-enabled": "maybe"}, "Property fanout-enabled cannot be 'maybe'"),
    ):
        with pytest.raises(ConfigurationError, match=wrong):
            planner.ask(
                "begin_write", reference=table["reference"], operation="append", options=options
            )
    assert planner.ask("commit_write", write=begun["write"], files=[]) == {"metrics": {}}
    counts = {"size": 1, "rows": 1, "split_offsets": [4], "columns": "[]"}
    file = {"path": "/x", "partition": [None, 0], **counts}
    other = begun["write"] | {"uuid": "00000000-0000-0000-0000-000000000000"}
    with pytest.raises(CommitFailedError, match="dropped and re-created"):
        planner.ask("commit_write", write=other, files=[file])


@pytest.mark.parametrize(
    ("surprise", "raised"),
    [(KeyError("x"), CommitStateUnknownError), (CommitFailedError("proven"), CommitFailedError)],
)
def test_a_commit_that_ends_in_a_surprise_never_counts_as_proven_failed(
    planner, name, catalog, monkeypatch, surprise, raised
):
    def surprised(*_):
        raise surprise

    table = planner.load(name)
    definition = {"schema": table["schema"], "partitioning": [], "properties": {}}
    with monkeypatch.context() as patched:
        patched.setattr(HadoopCatalog, "publish", surprised)
        patched.setattr(Table, "commit", surprised)
        for operation, target in (("create", f"{name}_new"), ("replace", name)):
            staged = planner.ask(
                "stage_table",
                catalog=planner.catalog,
                operation=operation,
                definition={"table": named(target), **definition},
            )
            request = {"reference": staged["reference"], "files": []}
            with pytest.raises(raised):
                planner.ask("commit_staged", **request)
            with pytest.raises(CommitFailedError, match="restarted"):
                planner.ask("commit_staged", **request)
        with pytest.raises(raised), _only_proven_failures(("db", "t")):
            Table.commit(None, None)
    after = planner.load(name)
    assert after["reference"] == table["reference"]
    assert not catalog.table_exists((*NAMESPACE, f"{name}_new"))


def test_unknown_changes_are_refused_and_change_nothing(planner, name):
    before = planner.load(name)["reference"]
    changes = [
        {"action": "set_property", "key": "a", "value": "c"},
        {"action": "unknown", "text": "ClusterBy"},
    ]
    identifier = {"catalog": planner.catalog, "table": named(name)}
    with pytest.raises(UnsupportedError, match="cannot do this here: ClusterBy"):
        planner.ask("alter_table", **identifier, changes=changes)
    assert planner.load(name)["reference"] == before

"""What the planner answers before a file is read, on tables in folders: no metastore is needed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ConfigurationError, ValidationError
from tests.spark.planner.protocol import NAMESPACE, Planner

COUNT = ("count", None)
DE = {"op": "eq", "column": ["country"], "type": "string", "value": "de"}
BIG = {"op": "gt", "column": ["id"], "type": "long", "value": 1}


def of(transform, column, kind, value, op="eq"):
    """A partition transform of a column, compared with a value."""
    return {"op": op, "column": [column], "transform": transform, "type": kind, "value": value}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("lake"))
    found = load_catalog("lake", type="hadoop", warehouse=folder)
    found.create_namespace(tuple(NAMESPACE))
    yield found
    found.close()


@pytest.fixture(scope="module")
def local(lake):
    return Planner(type="hadoop", warehouse=lake.properties["warehouse"], python="p")


@pytest.fixture(scope="module")
def sales(lake):
    """Three appends of two rows, by country and bucket of the id."""
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("d", pa.float64())])
    table = lake.create_table((*NAMESPACE, "sales"), schema)
    with table.update_spec() as spec:
        spec.add_identity("country")
    for ids in ([1, 2], [3, 4], [5, 6]):
        rows = {"id": ids, "country": ["de", None], "d": [0.5, 1.5]}
        table.append(pa.table(rows, schema=schema))
    return table


def test_filters_of_partitions_are_told_from_those_of_rows(local, sales):
    table = local.load("sales")
    unknown = {"op": "black magic", "column": ["country"]}
    everything = {"op": "always_true"}
    both = {"op": "and", "children": [DE, BIG]}
    assert local.decide(table, DE, BIG, unknown, everything, both) == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_aggregates_are_answered_with_and_without_filters_and_groups(local, sales):
    table = local.load("sales")
    asked = [COUNT, ("count", "country"), ("min", "id"), ("max", "ID")]
    assert local.aggregate(table, asked) == [[6, 3, 1, 6]]
    assert local.aggregate(table, asked, DE) == [[3, 3, 1, 5]]
    assert local.aggregate(table, asked, BIG) is None
    groups = local.aggregate(table, [COUNT, ("max", "d")], group_by=["country"])
    assert sorted(groups, key=str) == [["de", 3, 0.5], [None, 3, 1.5]]
    assert local.aggregate(table, [("max", "country")]) == [["de"]]


@pytest.mark.parametrize(
    ("functions", "group_by"),
    [([("max", "_file")], []), ([COUNT], ["_file"]), ([COUNT], ["id"]), ([("count", "gone")], [])],
)
def test_what_is_no_column_or_no_partition_is_read(local, sales, functions, group_by):
    assert local.aggregate(local.load("sales"), functions, group_by=group_by) is None


def test_options_go_before_settings_and_both_are_checked(local, sales):
    table = local.load("sales")
    setting = "spark.sql.iceberg.aggregate-push-down.enabled"
    off = {setting: "false"}
    assert local.aggregate(table, [COUNT], settings=off) is None
    option = "aggregate-push-down-enabled"
    assert local.aggregate(table, [COUNT], settings=off, **{option: "true"}) == [[6]]
    assert local.aggregate(table, [COUNT], **{option: "false"}) is None
    with pytest.raises(ConfigurationError, match=setting):
        local.aggregate(table, [COUNT], settings={setting: "perhaps"})


def test_the_state_that_options_choose_is_counted(local, sales):
    first, second, _ = (one.snapshot_id for one in sales.snapshots())
    table = local.load("sales")
    assert local.aggregate(table, [COUNT], **{"snapshot-id": str(first)}) == [[2]]
    assert local.aggregate(table, [("min", "id")], **{"start-snapshot-id": str(second)}) == [[5]]
    assert local.aggregate(local.load("sales", version=str(second)), [COUNT]) == [[4]]
    with pytest.raises(ValidationError, match="only one of the options"):
        local.decide(table, DE, branch="a", tag="b")
    with sales.manage_snapshots() as manage:
        manage.create_branch(first, "audit")
    assert local.aggregate(local.load("sales"), [COUNT], branch="audit") == [[2]]


def test_the_changes_of_a_table_are_not_counted_as_its_rows(local, sales):
    name = {"namespace": [*NAMESPACE, "sales"], "name": "changes"}
    changes = local.ask("load_table", catalog=local.catalog, table=name)
    assert local.aggregate(changes, [COUNT]) is None
    assert local.aggregate(changes, [COUNT], DE) is None
    assert local.decide(changes, DE) == [False]
    assert _files(local.plan(changes, limit=1)) == _files(local.plan(changes)) > 1


def test_columns_that_an_old_snapshot_has_otherwise_are_read(local, lake):
    schema = pa.schema([("id", pa.int32())])
    table = lake.create_table((*NAMESPACE, "promoted"), schema)
    table.append(pa.table({"id": [1, 2]}, schema=schema))
    first = table.snapshots()[0].snapshot_id
    with table.update_schema() as update:
        update.update_column("id", "long")
    loaded = local.load("promoted")
    assert local.aggregate(loaded, [("max", "id")]) == [[2]]
    assert local.aggregate(loaded, [("max", "id")], **{"snapshot-id": str(first)}) is None
    assert local.aggregate(loaded, [COUNT], **{"snapshot-id": str(first)}) == [[2]]


def _files(plan):
    return sum(len(group) for group in plan["partitions"])


def test_a_limit_leaves_out_the_files_behind_enough_rows(local, sales):
    table = local.load("sales")
    assert [_files(local.plan(table, limit=n)) for n in (None, 0, 1, 2, 3, 100)] == [
        6,
        0,
        1,
        2,
        3,
        6,
    ]
    assert _files(local.plan(table, DE, limit=2)) == 2
    # rows that are left out later are not counted on
    assert _files(local.plan(table, BIG, limit=1)) >= 2


def test_the_first_rows_of_an_order_leave_out_the_files_of_later_ones(local, sales):
    table, changes = local.load("sales"), {"namespace": [*NAMESPACE, "sales"], "name": "changes"}
    changes = local.ask("load_table", catalog=local.catalog, table=changes)
    field = {"field_id": sales.schema().find_field("id").field_id, "nulls_first": False}
    first, last = ({**field, "descending": each} for each in (False, True))
    for top in (first, last):
        planned = [_files(local.plan(table, top={**top, "count": n})) for n in (1, 2, 3, 100)]
        assert planned == [1, 2, 3, 6]
        assert _files(local.plan(changes, top={**top, "count": 1})) == 6
    # files of other partitions are not counted on, and no rows that are left out later
    assert _files(local.plan(table, DE, top={**first, "count": 2})) == 2
    assert _files(local.plan(table, BIG, top={**last, "count": 1})) == 5
    names = [file["path"] for file in local.plan(table)["files"]]
    for path in names:
        plan = local.plan(table, files=[path], top={**first, "count": 1})
        assert [file["path"] for file in plan["files"]] == [path]


def test_files_with_deleted_rows_are_all_planned_whatever_the_limit(local, lake):
    schema = pa.schema([("id", pa.int64())])
    table = lake.create_table(
        (*NAMESPACE, "deleted"), schema, properties={"write.delete.mode": "merge-on-read"}
    )
    for ids in ([1, 2], [3, 4]):
        table.append(pa.table({"id": ids}, schema=schema))
    table.delete("id = 1")
    assert _files(local.plan(local.load("deleted"), limit=1)) == 2
    assert local.aggregate(local.load("deleted"), [COUNT]) is None


@pytest.fixture(scope="module")
def flat(lake):
    """A file for each of eleven rows, in no partitions, one every five hours."""
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("s", pa.string())])
    table = lake.create_table((*NAMESPACE, "flat"), schema)
    with table.transaction() as changes:
        for n in range(11):
            time = pa.array([(19_723 * 24 + n * 5) * 3_600_000_000]).cast(pa.timestamp("us"))
            changes.append(pa.table({"id": [n], "ts": time, "s": [f"{'ab'[n % 2]}{n}x"]}, schema))
    return table


@pytest.fixture(scope="module")
def events(lake):
    """A file for each of twelve rows, or nearly: by day, bucket of the id and start of the name."""
    schema = pa.schema(
        [("id", pa.int64()), ("ts", pa.timestamp("us")), ("s", pa.string()), ("u", pa.uuid())]
    )
    table = lake.create_table((*NAMESPACE, "events"), schema)
    with table.update_spec() as spec:
        for field in (("ts", "day"), ("id", "bucket[4]"), ("s", "truncate[2]")):
            spec.add_field(*field)
    hour = 3_600_000_000
    times = pa.array([None, *(19_723 * 24 * hour + n * 5 * hour for n in range(11))], pa.int64())
    rows = {
        "id": [None, *range(11)],
        "ts": times.cast(pa.timestamp("us")),
        "s": [None, *(f"{'ab'[n % 2]}{n}x" for n in range(11))],
        "u": pa.array([None] * 12, pa.binary(16)).cast(pa.uuid()),
    }
    table.append(pa.table(rows, schema=schema))
    return table


@pytest.mark.parametrize(
    ("predicate", "sql", "whole"),
    [
        (of("day", "ts", "date", 19_724), "days(ts) = '2024-01-02'", True),
        (of("day", "ts", "date", 19_724, "lt"), "days(ts) < '2024-01-02'", True),
        (of("hour", "ts", "integer", 19_724 * 24 + 1, "lt_eq"), "hours(ts) <= 473377", False),
        (of("month", "ts", "integer", 648), "months(ts) = 648", True),
        (of("year", "ts", "integer", 54), "years(ts) = 54", True),
        (of("bucket[4]", "id", "integer", 1), "bucket(4, id) = 1", True),
        (of("bucket[8]", "id", "integer", 1), "bucket(8, id) = 1", False),
        (of("truncate[2]", "s", "string", "a2"), "truncate(2, s) = 'a2'", True),
        (of("truncate[1]", "s", "string", "a"), "truncate(1, s) = 'a'", True),
        ({"op": "is_null", "column": ["s"], "transform": "truncate[2]"}, "s is null", True),
        ({"op": "not", "child": of("bucket[4]", "id", "integer", 1)}, "bucket(4, id) != 1", True),
        (
            {k: v for k, v in of("bucket[4]", "id", "integer", 1, "in").items() if k != "value"}
            | {"values": [1, 2]},
            "bucket(4, id) in (1, 2)",
            True,
        ),
    ],
)
def test_functions_leave_out_files_and_decide_as_partitions_do(
    local, events, predicate, sql, whole
):
    table = local.load("events")
    assert local.decide(table, predicate) == [whole]
    expected = list(events.scan(sql).plan_files())
    assert 0 < len(expected) < 12 or "year" in sql or "month" in sql or "bucket(8" in sql
    assert _files(local.plan(table, predicate)) == len(expected)
    rows = events.scan(sql).count()
    counted = local.aggregate(table, [COUNT], predicate)
    assert counted == ([[rows]] if whole else None)
    possible = local.ask("can_delete_where", reference=table["reference"], filters=[predicate])
    assert possible["possible"]


@pytest.mark.parametrize(
    ("predicate", "matches"),
    [
        (of("day", "ts", "date", 19_724), lambda n: n * 5 // 24 == 1),
        (of("day", "ts", "date", 19_724, "lt"), lambda n: n * 5 // 24 < 1),
        (of("hour", "ts", "integer", 19_723 * 24 + 15, "gt_eq"), lambda n: n * 5 >= 15),
        (of("month", "ts", "integer", 649), lambda _: False),
        (of("year", "ts", "integer", 54, "not_eq"), lambda _: False),
        (of("truncate[2]", "s", "string", "a2"), lambda n: n == 2),
        (of("truncate[3]", "id", "long", 3), lambda n: n // 3 == 1),
    ],
)
def test_functions_leave_out_files_by_bounds_where_there_are_no_partitions(
    local, flat, predicate, matches
):
    assert _files(local.plan(local.load("flat"), predicate)) == sum(map(matches, range(11)))


@pytest.mark.parametrize(
    "predicate",
    [
        of("bucket[4]", "u", "integer", 1),  # Spark has uuids as text, which has other buckets
        of("bucket[4]", "id", "long", 1),
        of("mystery[4]", "id", "integer", 1),
    ],
)
def test_functions_that_may_mean_another_thing_leave_nothing_out(local, events, predicate):
    table = local.load("events")
    assert local.decide(table, predicate) == [False]
    assert _files(local.plan(table, predicate)) == _files(local.plan(table))
    possible = local.ask("can_delete_where", reference=table["reference"], filters=[predicate])
    assert not possible["possible"]

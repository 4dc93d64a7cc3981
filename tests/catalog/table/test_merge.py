"""Merges on file-system tables, against a list of rows and against what SQL says of MERGE INTO."""

from __future__ import annotations

import datetime as dt
import math
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from agreed_rows import ordered, plain, rows
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    CommitFailedError,
    ExpressionError,
    MissingDependencyError,
    SchemaError,
    ValidationError,
)
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
CHANGES = pa.schema([*SCHEMA, ("op", pa.string())])
MODES = ("copy-on-write", "merge-on-read")
NAN = float("nan")


@pytest.fixture(params=MODES)
def mode(request):
    return {"write.merge.mode": request.param, "write.delete.mode": request.param}


def frame(*rows, schema=SCHEMA) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def changes(*rows) -> pa.Table:
    return frame(*rows, schema=CHANGES)


def new_table(lake, *parts, properties=None, schema=SCHEMA, partition=()):
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(source, 1000 + i, parse_transform(t), f"p{i}")
            for i, (source, t) in enumerate(partition)
        ),
    )
    table = lake.create_table("db.t", schema, partition_spec=spec, properties=properties or {})
    for part in parts:
        table.append(part)
    return table


def test_the_first_clause_that_is_true_decides_about_a_row(lake, mode):
    table = new_table(
        lake,
        frame((1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)),
        frame((4, "d", 4.0), (5, "e", 5.0), (None, "f", 6.0)),
        properties=mode,
    )
    before = table.current_snapshot().snapshot_id
    result = (
        table.merge(
            changes(
                (1, "A", 10.0, "D"),
                (2, "B", 20.0, "U"),
                (3, "C", 30.0, "?"),
                (6, "F", 60.0, "U"),
                (7, "G", 70.0, "D"),
                (None, "N", 0.0, "U"),
            ),
            "t.id = s.id",
        )
        .when_matched_delete("s.op = 'D'")
        .when_matched_update({"x": "t.x + s.x"}, "s.op = 'U'")
        .when_not_matched_insert_all("s.op = 'U'")
        .when_not_matched_by_source_update({"s": "upper(t.s)"}, "t.id = 4")
        .when_not_matched_by_source_delete("t.id > 4")
        .execute()
    )
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (2, 2, 2)
    assert table.current_snapshot().parent_snapshot_id == before
    assert rows(table) == [
        (2, "b", 22.0),
        (3, "c", 3.0),
        (4, "D", 4.0),
        (6, "F", 60.0),
        (None, "N", 0.0),
        (None, "f", 6.0),
    ]
    assert (result.delete_files_added > 0) == (mode["write.merge.mode"] == "merge-on-read")


def test_a_source_row_may_delete_what_several_match_but_not_update_it(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)), properties=mode)
    twice = frame((1, "x", 1.0), (1, "y", 2.0), (3, "z", 3.0), (3, "z", 4.0))
    before = table.metadata_location, files(table)
    for merge in (
        table.merge(twice, ["id"]).when_matched_update_all(),
        table.merge(twice, ["id"]).when_matched_delete("s.x > 1"),
        table.merge(twice, "t.id = s.id and s.x > 0").when_matched_update_all(),
        table.merge(twice, ["id"]).when_matched_delete("s.x > 9").when_matched_delete(),
    ):
        with pytest.raises(ValidationError, match=r"Several rows of the source .* id=1"):
            merge.when_not_matched_insert_all().execute()
    assert (table.metadata_location, files(table)) == before
    # a condition that tells the two apart settles it, and rows that match nothing may be several
    table.merge(twice, "t.id = s.id and s.x > t.x").when_matched_update_all().execute()
    assert rows(table) == [(1, "y", 2.0), (2, "b", 2.0)]
    result = (
        table.merge(twice, ["id"]).when_matched_delete().when_not_matched_insert_all().execute()
    )
    assert (result.rows_deleted, result.rows_inserted) == (1, 2)
    assert rows(table) == [(2, "b", 2.0), (3, "z", 3.0), (3, "z", 4.0)]


def test_an_insert_alone_leaves_files_as_they_are(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)), properties=mode)
    source = frame((2, "x", 1.0), (3, "c", 3.0), (3, "d", 3.0))
    result = table.merge(source, ["id"]).when_not_matched_insert_all().execute()
    assert (result.rows_inserted, result.data_files_removed, result.data_files_added) == (2, 0, 1)
    assert table.current_snapshot().summary["operation"] == "append"
    assert rows(table) == [(1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0), (3, "d", 3.0)]


def test_a_merge_that_changes_nothing_commits_nothing(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode)
    before = table.metadata_location
    for source in (frame(), frame((None, "x", 1.0)), frame((5, "x", 1.0))):
        result = table.merge(source, ["id"]).when_matched_update_all().execute()
        assert result.rows_updated == 0
    assert table.merge(frame(), ["id"]).when_not_matched_insert_all().execute().rows_inserted == 0
    assert table.metadata_location == before
    result = table.merge(frame(), ["id"]).when_not_matched_by_source_delete().execute()
    assert (result.rows_deleted, rows(table)) == (1, [])


def test_files_without_a_key_of_the_source_are_not_touched(lake, mode):
    parts = [frame(*((100 * i + j, "a", 0.0) for j in range(5))) for i in range(4)]
    table = new_table(lake, *parts, properties=mode)
    result = table.merge(frame((203, "b", 1.0)), ["id"]).when_matched_update_all().execute()
    assert (result.data_files_removed, result.rows_updated) == (
        int(mode["write.merge.mode"] == "copy-on-write"),
        1,
    )
    assert len(rows(table)) == 20


def test_names_of_columns_and_sides_are_what_is_asked_for(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)), properties=mode)
    source = pa.table({"key": [1, 9], "new value": ["A", "I"]})
    (
        table.merge(source, "old.id = new.key", target_alias="old", source_alias="new")
        .when_matched_update({"s": 'new."new value"', "x": "NULL"})
        .when_not_matched_insert({"id": "new.key", "s": "'n' || new.key"})
        .execute()
    )
    assert rows(table) == [(1, "A", None), (2, "b", 2.0), (9, "n9", None)]


def test_values_of_every_type_pass_through_expressions(lake, mode):
    schema = pa.schema(
        [
            pa.field("k", pa.int32(), nullable=False),
            ("u", pa.uuid()),
            ("d", pa.decimal128(9, 2)),
            ("t", pa.timestamp("us")),
            ("z", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("b", pa.binary()),
            ("p", pa.struct([("q", pa.int64())])),
            ("l", pa.list_(pa.string())),
            ("f", pa.float32()),
        ]
    )
    when = dt.datetime(2024, 1, 31, 12, 30)  # noqa: DTZ001 - of a column without zone
    row = {
        "u": bytes(range(16)),
        "d": Decimal("1.25"),
        "t": when,
        "z": when.replace(tzinfo=dt.timezone.utc),
        "day": when.date(),
        "b": b"\x00",
        "p": {"q": 1},
        "l": ["a"],
        "f": 1.5,
    }
    data = pa.Table.from_pylist([{"k": 1, **row}, {"k": 2, **row}], schema)
    table = new_table(lake, data, properties=mode, schema=schema)
    expressions = {
        "u": "coalesce(t.u, s.u)",
        "d": "t.d + 1",
        "t": "t.t + interval 1 day",
        "z": "greatest(t.z, s.z)",
        "day": "case when t.day < date '2030-01-01' then t.day end",
        "b": "t.b || s.b",
        "p": "struct_pack(q := t.p.q + 1)",
        "l": "list_concat(t.l, s.l)",
        "f": "t.f * 2",
    }
    table.merge(data.slice(0, 1), ["k"]).when_matched_update(expressions).execute()
    first, second = table.scan().to_arrow().sort_by("k").to_pylist()
    assert second == data.slice(1).to_pylist()[0]
    old = data.to_pylist()[0]
    assert first == old | {
        "d": Decimal("2.25"),
        "t": when + dt.timedelta(days=1),
        "b": b"\x00\x00",
        "p": {"q": 2},
        "l": ["a", "a"],
        "f": 3.0,
    }


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda m: m, ValidationError, "without clauses"),
        (lambda m: m.when_matched_delete().when_matched_update_all(), ValidationError, "No row reaches"),
        (lambda m: m.when_matched_update({"y": "s.x"}), SchemaError, "'y'.*does not have"),
        (lambda m: m.when_matched_update({"x": "s.y"}), ExpressionError, '"y"'),
        (lambda m: m.when_matched_update({"x": "y"}), ExpressionError, "s.column"),
        (lambda m: m.when_matched_update({"x": "s.s"}), SchemaError, "x: double in the table"),
        (lambda m: m.when_matched_update({"id": "s.x + 0.5"}), SchemaError, "'id'.*int64"),
        (lambda m: m.when_matched_update({"id": "t.id + 9223372036854775807"}), ExpressionError, "verflow"),
        (lambda m: m.when_matched_update({"x": "sum(s.x)"}), ExpressionError, "aggregates"),
        (lambda m: m.when_matched_update({"x": "(select max(s.x))"}), ExpressionError, "aggregates"),
        (lambda m: m.when_matched_update({"x": "sum(s.x) over ()"}), ExpressionError, "window functions"),
        (lambda m: m.when_matched_update({"x": "unnest([s.x, t.x])"}), ExpressionError, "UNNEST"),
        (lambda m: m.when_matched_update({"x": "t.*"}), ExpressionError, "STAR"),
        (lambda m: m.when_matched_update({"x": "columns(*)"}), ExpressionError, "one value per row"),
        (lambda m: m.when_matched_update({"x": "s.x) , (t.x"}), ExpressionError, "syntax"),
        (lambda m: m.when_matched_update_all("s.x"), ExpressionError, "neither true nor false"),
        (lambda m: m.when_matched_delete("read_text('/etc/hostname') = s.s"), ExpressionError, "Cannot compute"),
        (lambda m: m.when_not_matched_insert({"s": "s.s"}), SchemaError, "required column 'id'"),
        (lambda m: m.when_not_matched_insert({"id": "t.id"}), ExpressionError, "t"),
        (lambda m: m.when_not_matched_insert({"id": "nullif(s.id, 7)"}), ValidationError, "'id' is required"),
        (lambda m: m.when_not_matched_insert_all(except_cols=["nope"]), SchemaError, "nope"),
        (lambda m: m.when_not_matched_by_source_update({"x": "s.x"}), ExpressionError, "s"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused_and_leaves_nothing(lake, mode, build, error, message):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]])
    first = frame((1, "a", 1.0), (2, "b", 2.0)).cast(schema)
    table = new_table(lake, first, properties=mode, schema=schema)
    before = table.metadata_location, files(table)
    source = frame((1, "A", 10.0), (7, "N", 70.0))
    with pytest.raises(error, match=message):
        build(table.merge(source, ["id"])).execute()
    assert (table.metadata_location, files(table)) == before


@pytest.mark.parametrize(
    ("source", "on", "message"),
    [
        (pa.table({"id": [1]}), ["id"], "no column 's', 'x'"),
        (pa.table({"key": [1]}), ["id"], "no column 'id', 's', 'x'"),
        (frame((1, "a", 1.0)), "t.id = s.key", "no column 'key' to find rows by"),
        (frame((1, "a", 1.0)), ["x"], "'x' .double. cannot be a key"),
        (frame((1, "a", 1.0)), "t.id = s.s", "id: long in the table, string"),
        (frame((1, "a", 1.0)), ["nope"], "nope"),
        (pa.table([[1], [1]], ["id", "id"]), ["id"], "several columns 'id'"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(lake, source, on, message):
    table = new_table(lake, frame((1, "a", 1.0)))
    with pytest.raises(ValidationError, match=message):
        table.merge(source, on).when_matched_update_all().execute()


def test_without_duckdb_plain_columns_can_be_merged_and_sql_says_what_to_install(
    lake, mode, monkeypatch
):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode)
    source = frame((1, "b", 2.0), (2, "c", 3.0))
    merge = table.merge(source, "t.id = s.id").when_matched_update({"s": "s.s"})
    merge.when_not_matched_insert_all().execute()
    assert rows(table) == [(1, "b", 1.0), (2, "c", 3.0)]
    with pytest.raises(MissingDependencyError, match=r"icecomb\[duckdb\]"):
        table.merge(source, ["id"]).when_matched_delete("s.x > 1").execute()


@pytest.mark.parametrize("by_source", [False, True])
@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_what_others_do_to_the_same_rows_is_a_conflict(lake, mode, level, by_source):
    table = new_table(
        lake,
        frame((1, "a", 1.0), (2, "b", 2.0)),
        properties=mode | {"write.merge.isolation-level": level},
    )

    def merge(pinned):
        found = pinned.merge(frame((1, "m", 9.0), (3, "m", 9.0)), ["id"])
        found.when_matched_update_all().when_not_matched_insert_all()
        if by_source:
            found.when_not_matched_by_source_delete("t.id > 100")
        return found

    def stale():
        return lake.load_table("db.t")

    pinned = stale()
    stale().append(frame((3, "other", 0.0)))
    before = files(table)
    if level == "serializable":
        with pytest.raises(ValidationError):
            merge(pinned).execute()
        assert files(table) == before
    else:
        merge(pinned).execute()
    pinned = stale()
    stale().delete("id = 1")
    with pytest.raises(ValidationError):
        merge(pinned).execute()
    pinned = stale()
    stale().append(frame((500, "far", 0.0)))
    if by_source and level == "serializable":
        with pytest.raises(ValidationError):
            merge(pinned).execute()
    elif level == "serializable":
        merge(pinned).execute()
        assert sum(r[0] == 3 for r in rows(stale())) == 1


def test_two_merges_never_insert_the_same_key(lake, mode):
    table = new_table(lake, properties=mode)
    other = lake.load_table("db.t")
    source = frame((1, "a", 1.0))
    table.merge(source, ["id"]).when_not_matched_insert_all().execute()
    with pytest.raises(ValidationError):
        other.merge(source, ["id"]).when_not_matched_insert_all().execute()
    assert rows(other.refresh()) == [(1, "a", 1.0)]


def test_a_branch_is_merged_into_alone_and_a_transaction_sees_its_merges(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
    merge = table.merge(frame((1, "b", 2.0)), ["id"], branch="b", snapshot_properties={"job": "7"})
    merge.when_matched_update_all().execute()
    assert rows(table) == [(1, "a", 1.0)]
    assert ordered(table.scan().use_ref("b").to_arrow()) == [(1, "b", 2.0)]
    assert table.snapshot_by_name("b").summary["job"] == "7"
    with table.transaction() as transaction:
        transaction.append(frame((2, "c", 3.0)))
        source = frame((1, "T", 1.0), (2, "T", 1.0), (3, "T", 1.0))
        merge = transaction.merge(source, ["id"]).when_matched_update_all()
        assert merge.when_not_matched_insert_all().execute().rows_updated == 2
    assert rows(table) == [(1, "T", 1.0), (2, "T", 1.0), (3, "T", 1.0)]


def test_a_merge_may_be_staged_and_looked_at_before_it_is_published(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode | {"write.wap.enabled": "true"})
    source = frame((1, "b", 2.0), (2, "c", 3.0))
    merge = table.merge(source, ["id"], snapshot_properties={"wap.id": "load-7"})
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == [(1, "a", 1.0)]
    (staged,) = (s for s in table.snapshots() if s.summary.get("wap.id") == "load-7")
    found = table.scan(snapshot_id=staged.snapshot_id).to_arrow()
    assert ordered(found) == [(1, "b", 2.0), (2, "c", 3.0)]


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_rows_that_were_missing_when_they_were_staged_are_not_published_beside_others(
    lake, mode, level
):
    more = {"write.wap.enabled": "true", "write.merge.isolation-level": level}
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode | more)
    for load in ("first", "second"):
        merge = table.merge(frame((2, "b", 2.0)), ["id"], snapshot_properties={"wap.id": load})
        merge.when_not_matched_insert_all().execute()
    table.publish_changes("first")
    if level == "serializable":
        with pytest.raises(ValidationError, match="depend on the rows that the table had when"):
            table.publish_changes("second")
        assert rows(table) == [(1, "a", 1.0), (2, "b", 2.0)]
    else:
        table.publish_changes("second")
        assert rows(table) == [(1, "a", 1.0), (2, "b", 2.0), (2, "b", 2.0)]


def test_rows_that_were_missing_on_a_branch_are_not_picked_beside_others(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "work")
    for branch in ("work", "main"):
        table.upsert(frame((2, "b", 2.0)), ["id"], branch=branch)
    head = table.refs()["work"].snapshot_id
    with pytest.raises(ValidationError, match="depend on the rows that the table had when"):
        table.manage_snapshots().cherry_pick(head).commit()
    assert rows(table) == [(1, "a", 1.0), (2, "b", 2.0)]


def test_rows_that_were_missing_on_a_branch_are_picked_onto_what_it_had(lake, mode):
    table = new_table(lake, frame((1, "a", 1.0)), properties=mode)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "work")
    table.upsert(frame((2, "b", 2.0)), ["id"], branch="work")
    table.manage_snapshots().cherry_pick(table.refs()["work"].snapshot_id).commit()
    assert rows(table) == [(1, "a", 1.0), (2, "b", 2.0)]


@pytest.mark.gate("four writers merge at once")
def test_no_count_is_lost_or_counted_twice_when_many_merge_at_once(lake, mode):
    table = new_table(lake, frame((0, None, 0.0), (1, None, 0.0)), properties=mode)

    def count_up(writer):
        for turn in range(3):
            keys = frame((writer % 2, None, 1.0), (100 + turn, None, 1.0))
            while True:
                merge = lake.load_table("db.t").merge(keys, ["id"])
                merge.when_matched_update({"x": "t.x + s.x"}).when_not_matched_insert_all()
                try:
                    merge.execute()
                    break
                except (ValidationError, CommitFailedError):
                    continue

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(count_up, writer) for writer in range(4)]:
            done.result()
    counted = [(i, None, 6.0) for i in (0, 1)] + [(100 + i, None, 4.0) for i in range(3)]
    assert rows(table.refresh()) == sorted(counted, key=repr)


def files(table) -> set[str]:
    """The Parquet files in the table's folder."""
    folder = Path(table.location().removeprefix("file:"))
    return {str(p) for p in folder.rglob("*.parquet")}


# --- random merges against a list of rows


def _less(a, b):
    """SQL's order with NaN above all, as in Spark and DuckDB; None is unknown."""
    if a is None or b is None:
        return None
    return (
        (math.isnan(a), a) < (math.isnan(b), b) if not (math.isnan(a) and math.isnan(b)) else False
    )


def _equal(a, b):
    return None if a is None or b is None else a == b


CONDITIONS = {
    "s.x > t.x": lambda t, s: _less(t[2], s[2]),
    "s.op = 'D'": lambda _, s: _equal(s[3], "D"),
    "t.s is null or s.op <> 'U'": lambda t, s: t[1] is None or (None if s[3] is None else s[3] != "U"),
    "s.s = t.s": lambda t, s: _equal(s[1], t[1]),
}  # fmt: skip
OF_SOURCE = {"s.op = 'D'": lambda s: _equal(s[3], "D"), "s.x < 1": lambda s: _less(s[2], 1.0)}
OF_TARGET = {
    "t.x < 1": lambda t: _less(t[2], 1.0),
    "t.id > 3": lambda t: None if t[0] is None else t[0] > 3,
}
ON = {
    "id": (["id"], lambda t, s: _equal(t[0], s[0])),
    "two": ("t.id = s.id and s.s = t.s", lambda t, s: _equal(t[0], s[0]) and _equal(t[1], s[1])),
    "rest": ("t.id = s.id and t.x < s.x", lambda t, s: _equal(t[0], s[0]) and _less(t[2], s[2])),
}
ADDED = {"x": "t.x + s.x", "s": "s.op"}
NEW = {"id": "s.id", "s": "'new'"}
GONE = {"s": "'gone'"}

ids = st.none() | st.integers(0, 6)
texts = st.none() | st.sampled_from(["", "a", "é"])
floats = st.none() | st.sampled_from([NAN, -1.0, 0.5, 2.5])
row_lists = st.lists(st.tuples(ids, texts, floats), max_size=8)
sources = st.lists(st.tuples(ids, texts, floats, st.sampled_from(["D", "U", None])), max_size=6)


def chosen(conditions, *actions):
    """Clauses of a kind: pairs of an action and a condition, of which only the last may be none."""
    clause = st.tuples(st.sampled_from(actions), st.sampled_from(list(conditions)))
    last = st.lists(st.tuples(st.sampled_from(actions), st.none()), max_size=1)
    return st.tuples(st.lists(clause, max_size=2), last).map(lambda parts: [*parts[0], *parts[1]])


merges = st.fixed_dictionaries(
    {
        "source": sources,
        "on": st.sampled_from(list(ON)),
        "matched": chosen(CONDITIONS, "all", "add", "delete"),
        "not_matched": chosen(OF_SOURCE, "all", "new"),
        "by_source": st.just([]) | chosen(OF_TARGET, "gone", "delete"),
    }
).filter(lambda m: m["matched"] or m["not_matched"] or m["by_source"])


def merged(model, merge):
    """What MERGE INTO makes of a list of rows; None where it must be refused."""
    belongs = ON[merge["on"]][1]
    source, result, used = merge["source"], [], set()
    counts = {"inserted": 0, "updated": 0, "deleted": 0}
    for t in model:
        partners = [i for i, s in enumerate(source) if belongs(t, s) is True]
        used |= set(partners)
        if len(partners) > 1 and merge["matched"] and merge["matched"] != [("delete", None)]:
            return None
        new = t
        if partners:
            s = source[partners[0]]
            for action, condition in merge["matched"]:
                if condition is None or CONDITIONS[condition](t, s) is True:
                    new = {"all": s[:3], "add": (t[0], s[3], _sum(t[2], s[2])), "delete": None}[
                        action
                    ]
                    counts["deleted" if new is None else "updated"] += 1
                    break
        else:
            for action, condition in merge["by_source"]:
                if condition is None or OF_TARGET[condition](t) is True:
                    new = {"gone": (t[0], "gone", t[2]), "delete": None}[action]
                    counts["deleted" if new is None else "updated"] += 1
                    break
        if new is not None:
            result.append(new)
    for i, s in enumerate(source):
        for action, condition in merge["not_matched"] if i not in used else ():
            if condition is None or OF_SOURCE[condition](s) is True:
                result.append(s[:3] if action == "all" else (s[0], "new", None))
                counts["inserted"] += 1
                break
    return result, counts


def _sum(a, b):
    return None if a is None or b is None else a + b


def described(table, merge):
    found = table.merge(changes(*merge["source"]), ON[merge["on"]][0])
    for action, condition in merge["matched"]:
        if action == "all":
            found.when_matched_update_all(condition)
        elif action == "add":
            found.when_matched_update(ADDED, condition)
        else:
            found.when_matched_delete(condition)
    for action, condition in merge["not_matched"]:
        if action == "all":
            found.when_not_matched_insert_all(condition)
        else:
            found.when_not_matched_insert(NEW, condition)
    for action, condition in merge["by_source"]:
        if action == "gone":
            found.when_not_matched_by_source_update(GONE, condition)
        else:
            found.when_not_matched_by_source_delete(condition)
    return found


@pytest.mark.parametrize("mode_name", MODES)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    partition=st.sampled_from([(), ((2, "identity"),), ((1, "bucket[3]"),), ((1, "truncate[4]"),)]),
    parts=st.lists(row_lists, min_size=1, max_size=3),
    steps=st.lists(merges, min_size=1, max_size=4),
    file_format=st.sampled_from(["parquet", "orc", "avro"]),
)
def test_any_merges_leave_the_rows_that_they_leave_of_a_list(
    mode_name, partition, parts, steps, file_format
):
    with tempfile.TemporaryDirectory() as folder:
        lake = load_catalog("lake", type="hadoop", warehouse=folder)
        lake.create_namespace("db")
        properties = {"write.merge.mode": mode_name, "write.format.default": file_format}
        table = new_table(lake, *map(frame_of, parts), properties=properties, partition=partition)
        model = [row for part in parts for row in part]
        for step in steps:
            expected = merged(model, step)
            if expected is None:
                with pytest.raises(ValidationError, match="Several rows of the source"):
                    described(table, step).execute()
                continue
            model, counts = expected
            result = described(table, step).execute()
            assert counts == {
                "inserted": result.rows_inserted,
                "updated": result.rows_updated,
                "deleted": result.rows_deleted,
            }
            assert ordered(table.scan().to_arrow()) == sorted(
                (tuple(map(plain, row)) for row in model), key=repr
            )
        if file_format == "parquet":  # others it does not read, or not their deletes
            rows(table)
        lake.close()


def frame_of(part) -> pa.Table:
    return frame(*part)

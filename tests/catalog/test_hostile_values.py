"""Values of wrong types at every public entry: refused by name, or written as the spec says.

Python takes any object anywhere. What a commit makes of one is read back by icecomb, and each
member must have the JSON type of the specification (appendix C): Iceberg Java refuses a table for
a single one that has not.
"""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.errors import IcecombError
from icecomb.format.spec.change.update import (
    AddSnapshotUpdate,
    Changes,
    SetLocationUpdate,
    SetPartitionStatisticsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
    UpgradeFormatVersionUpdate,
)
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import SortField, SortOrder
from icecomb.format.spec.transform import BucketTransform
from icecomb.format.spec.types import (
    DecimalType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
LONG = LongType()
VALUES = {
    "None": None,
    "True": True,
    "zero": 0,
    "minus one": -1,
    "five": 5,
    "over an int": 2**40,
    "over a long": 2**70,
    "float": 30 * 86400 * 1e3,
    "fraction": 1.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "decimal": Decimal(5),
    "a number of NumPy": np.int64(5),
    "text": "x",
    "number in text": "5",
    "no text": "",
    "half a character": "\ud800",
    "bytes": b"x",
    "list": [1],
    "empty list": [],
    "dict": {"a": 1},
    "set": {1},
    "type": LONG,
    "object": object(),
}


@pytest.fixture
def table(lake):
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return table


STATISTICS = {
    SetStatisticsUpdate: {
        "snapshot-id": 1,
        "statistics-path": "/s.puffin",
        "file-size-in-bytes": 9,
        "file-footer-size-in-bytes": 3,
        "blob-metadata": [],
    },
    SetPartitionStatisticsUpdate: {
        "snapshot-id": 1,
        "statistics-path": "/s.parquet",
        "file-size-in-bytes": 9,
    },
}


class Commit:
    """A commit of bare updates."""

    writes_files = False

    def __init__(self, *updates):
        self._updates = updates

    def apply(self, base):  # noqa: ARG002
        return Changes((), self._updates)

    def clean_up(self, committed):
        pass


def head(table):
    return table.current_snapshot().snapshot_id


def created(table, *, schema=ROWS.schema, name="db.new", **more):
    table.catalog.create_table(name, schema, **more)


def field(table, **more):
    given = {"field_id": 1, "name": "n", "field_type": LONG, **more}
    created(table, schema=Schema((NestedField(**given),)))


def typed(table, field_type):
    field(table, field_type=field_type)


def partitioned(table, **more):
    given = {"source_id": 1, "field_id": 1000, "transform": BucketTransform(4), "name": "p", **more}
    schema = Schema((NestedField(1, "id", LONG),))
    created(table, schema=schema, partition_spec=PartitionSpec(0, (PartitionField(**given),)))


def ordered(table, **more):
    schema = Schema((NestedField(1, "id", LONG),))
    order = SortOrder(1, (SortField(**{"source_id": 1, **more}),))
    created(table, schema=schema, sort_order=order)


def staged(table, **more):
    snapshot = table.current_snapshot()
    given = {
        "snapshot_id": 77,
        "parent_snapshot_id": snapshot.snapshot_id,
        "sequence_number": 9,
        "timestamp_ms": snapshot.timestamp_ms,
        "manifest_list": snapshot.manifest_list,
        "summary": {"operation": "append"},
        "schema_id": 0,
        **more,
    }
    table.commit(Commit(AddSnapshotUpdate(type(snapshot)(**given))))


def update(name):
    def act(table, call, **options):
        with getattr(table, name)(**options) as change:
            call(change)

    return act


manage, schema, spec, order, properties = (
    update(f"{name}")
    for name in (
        "manage_snapshots",
        "update_schema",
        "update_spec",
        "update_sort_order",
        "update_properties",
    )
)
LAX = {"allow_incompatible_changes": True}

ENTRIES = {
    # branches and tags
    "create_tag: snapshot": lambda t, v: manage(t, lambda m: m.create_tag(v, "x")),
    "create_tag: name": lambda t, v: manage(t, lambda m: m.create_tag(head(t), v)),
    "create_tag: age": lambda t, v: manage(t, lambda m: m.create_tag(head(t), "x", v)),
    "create_branch: ref age": lambda t, v: manage(t, lambda m: m.create_branch(head(t), "x", v)),
    "create_branch: age": lambda t, v: manage(
        t, lambda m: m.create_branch(head(t), "x", max_snapshot_age_ms=v)
    ),
    "create_branch: count": lambda t, v: manage(
        t, lambda m: m.create_branch(head(t), "x", min_snapshots_to_keep=v)
    ),
    "set_max_ref_age_ms": lambda t, v: manage(
        t, lambda m: m.create_tag(head(t), "x").set_max_ref_age_ms("x", v)
    ),
    "set_max_snapshot_age_ms": lambda t, v: manage(
        t, lambda m: m.set_max_snapshot_age_ms("main", v)
    ),
    "set_min_snapshots_to_keep": lambda t, v: manage(
        t, lambda m: m.set_min_snapshots_to_keep("main", v)
    ),
    "replace_tag": lambda t, v: manage(t, lambda m: m.create_tag(head(t), "x").replace_tag(v, "x")),
    "rename_branch": lambda t, v: manage(
        t, lambda m: m.create_branch(head(t), "x").rename_branch("x", v)
    ),
    "remove_tag": lambda t, v: manage(t, lambda m: m.remove_tag(v)),
    "fast_forward": lambda t, v: manage(t, lambda m: m.fast_forward(v, "main")),
    "set_current_snapshot": lambda t, v: manage(t, lambda m: m.set_current_snapshot(v)),
    "set_current_snapshot: ref": lambda t, v: manage(
        t, lambda m: m.set_current_snapshot(ref_name=v)
    ),
    "rollback_to_snapshot": lambda t, v: manage(t, lambda m: m.rollback_to_snapshot(v)),
    "rollback_to_timestamp": lambda t, v: manage(t, lambda m: m.rollback_to_timestamp(v)),
    "cherry_pick": lambda t, v: manage(t, lambda m: m.cherry_pick(v)),
    "append: branch": lambda t, v: t.append(ROWS, branch=v),
    "delete: branch": lambda t, v: t.delete("id = 1", branch=v),
    # expiration
    "expire: older_than": lambda t, v: t.expire_snapshots().older_than(v).commit(),
    "expire: retain_last": lambda t, v: t.expire_snapshots().retain_last(v).commit(),
    "expire: by_id": lambda t, v: t.expire_snapshots().by_id(v).commit(),
    # schemas
    "add_column: name": lambda t, v: schema(t, lambda u: u.add_column(v, LONG)),
    "add_column: path": lambda t, v: schema(t, lambda u: u.add_column((v,), LONG)),
    "add_column: type": lambda t, v: schema(t, lambda u: u.add_column("n", v)),
    "add_column: doc": lambda t, v: schema(t, lambda u: u.add_column("n", LONG, v)),
    "add_column: required": lambda t, v: schema(
        t, lambda u: u.add_column("n", LONG, required=v), **LAX
    ),
    "add_column: default": lambda t, v: schema(
        t, lambda u: u.add_column("n", LONG, None, False, v)
    ),
    "set_default_value": lambda t, v: schema(t, lambda u: u.set_default_value("s", v)),
    "rename_column": lambda t, v: schema(t, lambda u: u.rename_column("s", v)),
    "update_column: doc": lambda t, v: schema(t, lambda u: u.update_column("s", doc=v)),
    "update_column: type": lambda t, v: schema(t, lambda u: u.update_column("s", v)),
    "update_column: required": lambda t, v: schema(
        t, lambda u: u.update_column("s", required=v), **LAX
    ),
    "delete_column": lambda t, v: schema(t, lambda u: u.delete_column(v)),
    "move_after": lambda t, v: schema(t, lambda u: u.move_after("id", v)),
    "set_identifier_fields": lambda t, v: schema(t, lambda u: u.set_identifier_fields(v), **LAX),
    "NestedField: id": lambda t, v: field(t, field_id=v),
    "NestedField: name": lambda t, v: field(t, name=v),
    "NestedField: type": lambda t, v: field(t, field_type=v),
    "NestedField: required": lambda t, v: field(t, required=v),
    "NestedField: doc": lambda t, v: field(t, doc=v),
    "NestedField: default": lambda t, v: field(t, write_default=v),
    "FixedType": lambda t, v: typed(t, FixedType(v)),
    "DecimalType: precision": lambda t, v: typed(t, DecimalType(v, 0)),
    "DecimalType: scale": lambda t, v: typed(t, DecimalType(38, v)),
    "StructType": lambda t, v: typed(t, StructType(v)),
    "StructType: one of them": lambda t, v: typed(t, StructType((v,))),
    "ListType: id": lambda t, v: typed(t, ListType(v, LONG)),
    "ListType: type": lambda t, v: typed(t, ListType(5, v)),
    "ListType: required": lambda t, v: typed(t, ListType(5, LONG, v)),
    "MapType: key id": lambda t, v: typed(t, MapType(v, LONG, 6, LONG)),
    "MapType: key": lambda t, v: typed(t, MapType(5, v, 6, LONG)),
    "MapType: value": lambda t, v: typed(t, MapType(5, LONG, 6, v)),
    "MapType: required": lambda t, v: typed(t, MapType(5, LONG, 6, LONG, v)),
    "Schema": lambda t, v: created(t, schema=Schema(v)),
    "Schema: id": lambda t, v: created(t, schema=Schema((NestedField(1, "id", LONG),), v)),
    "Schema: identifiers": lambda t, v: created(
        t, schema=Schema((NestedField(1, "id", LONG, required=True),), 0, v)
    ),
    # partitions and orders
    "add_field: column": lambda t, v: spec(t, lambda u: u.add_field(v, "identity")),
    "add_field: transform": lambda t, v: spec(t, lambda u: u.add_field("s", v)),
    "add_field: name": lambda t, v: spec(t, lambda u: u.add_field("s", "identity", v)),
    "rename_field": lambda t, v: (
        spec(t, lambda u: u.add_field("s", "identity", "p").commit() or None)
        or spec(t.refresh(), lambda u: u.rename_field("p", v))
    ),
    "PartitionField: source": lambda t, v: partitioned(t, source_id=v),
    "PartitionField: id": lambda t, v: partitioned(t, field_id=v),
    "PartitionField: transform": lambda t, v: partitioned(t, transform=v),
    "PartitionField: name": lambda t, v: partitioned(t, name=v),
    "PartitionSpec: id": lambda t, v: created(t, partition_spec=PartitionSpec(v)),
    "PartitionSpec: fields": lambda t, v: created(t, partition_spec=PartitionSpec(0, v)),
    "BucketTransform": lambda t, v: partitioned(t, transform=BucketTransform(v)),
    "asc: column": lambda t, v: order(t, lambda u: u.asc(v)),
    "asc: transform": lambda t, v: order(t, lambda u: u.asc("s", v)),
    "asc: nulls": lambda t, v: order(t, lambda u: u.asc("s", "identity", v)),
    "SortField: source": lambda t, v: ordered(t, source_id=v),
    "SortField: transform": lambda t, v: ordered(t, transform=v),
    "SortField: direction": lambda t, v: ordered(t, direction=v),
    "SortField: nulls": lambda t, v: ordered(t, null_order=v),
    "SortOrder: id": lambda t, v: created(t, sort_order=SortOrder(v)),
    "SortOrder: fields": lambda t, v: created(t, sort_order=SortOrder(1, v)),
    # properties and places
    "property": lambda t, v: properties(t, lambda u: u.set("k", v)),
    "property: name": lambda t, v: properties(t, lambda u: u.set(v, "x")),
    "property: a size": lambda t, v: properties(
        t, lambda u: u.set("write.target-file-size-bytes", v)
    ),
    "property: format-version": lambda t, v: properties(t, lambda u: u.set("format-version", v)),
    "property: removal": lambda t, v: properties(t, lambda u: u.remove(v)),
    "set_properties": lambda t, v: t.transaction().set_properties(v).commit_transaction(),
    "set_properties: by name": lambda t, v: (
        t.transaction().set_properties(k=v).commit_transaction()
    ),
    "upgrade_table_version": lambda t, v: (
        t.transaction().upgrade_table_version(v).commit_transaction()
    ),
    "update_location": lambda t, v: t.transaction().update_location(v).commit_transaction(),
    "create_table: name": lambda t, v: created(t, name=v),
    "create_table: part of the name": lambda t, v: created(t, name=("db", v)),
    "create_table: schema": lambda t, v: created(t, schema=v),
    "create_table: location": lambda t, v: created(t, location=v),
    "create_table: properties": lambda t, v: created(t, properties=v),
    "create_table: a property": lambda t, v: created(t, properties={"k": v}),
    "create_table: format-version": lambda t, v: created(t, properties={"format-version": v}),
    "replace_table: a property": lambda t, v: t.catalog.replace_table(
        "db.t", ROWS.schema, properties={"k": v}
    ),
    "replace_table: format-version": lambda t, v: t.catalog.replace_table(
        "db.t", ROWS.schema, properties={"format-version": v}
    ),
    "replace_table: location": lambda t, v: t.catalog.replace_table("db.t", ROWS.schema, v),
    # summaries
    "append: summary": lambda t, v: t.append(ROWS, {"batch": v}),
    "append: summaries": lambda t, v: t.append(ROWS, v),
    "overwrite: summary": lambda t, v: t.overwrite(ROWS, snapshot_properties={"batch": v}),
    "delete: summary": lambda t, v: t.delete("id = 1", {"batch": v}),
    "add_files: summary": lambda t, v: t.add_files([], {"batch": v}),
    "rewrite_manifests: summary": lambda t, v: t.rewrite_manifests(snapshot_properties={"b": v}),
    # bare updates, which other programs put together
    "SetSnapshotRefUpdate": lambda t, v: t.commit(
        Commit(SetSnapshotRefUpdate("x", "branch", head(t), v, v, v))
    ),
    "SetSnapshotRefUpdate: type": lambda t, v: t.commit(
        Commit(SetSnapshotRefUpdate("x", v, head(t)))
    ),
    "SetPropertiesUpdate": lambda t, v: t.commit(Commit(SetPropertiesUpdate({"k": v}))),
    "SetLocationUpdate": lambda t, v: t.commit(Commit(SetLocationUpdate(v))),
    "UpgradeFormatVersionUpdate": lambda t, v: t.commit(Commit(UpgradeFormatVersionUpdate(v))),
    **{
        f"{update.__name__}: {member}": lambda t, v, update=update, file=file, member=member: (
            t.commit(Commit(update({**file, member: v})))
        )
        for update, file in STATISTICS.items()
        for member in (*file, "more")
    },
    "Snapshot: operation": lambda t, v: staged(t, summary={"operation": v}),
    "Snapshot: id": lambda t, v: staged(t, snapshot_id=v),
    "Snapshot: parent": lambda t, v: staged(t, parent_snapshot_id=v),
    "Snapshot: number": lambda t, v: staged(t, sequence_number=v),
    "Snapshot: schema": lambda t, v: staged(t, schema_id=v),
    "Snapshot: list": lambda t, v: staged(t, manifest_list=v),
    "Snapshot: summary": lambda t, v: staged(t, summary={"operation": "append", "batch": v}),
}


def whole(bits):
    return lambda value: type(value) is int and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def text(value):
    return type(value) is str


def flag(value):
    return type(value) is bool


def each(kind):
    return lambda value: type(value) is list and all(map(kind, value))


def texts(value):
    return type(value) is dict and all(type(v) is str for v in value.values())


def has(needed=None, **optional):
    """An object with these members, of these types."""

    def fits(value):
        assert type(value) is dict, value
        names = {name.replace("_", "-"): kind for name, kind in {**needed, **optional}.items()}
        for name, kind in names.items():
            if name in value:
                assert kind(value[name]), f"{name} is {value[name]!r}"
            else:
                assert name.replace("-", "_") in optional, f"{name} is missing: {value}"
        return True

    return fits


def a_type(value):
    if type(value) is str:
        return True
    kinds = {
        "struct": has({"fields": each(a_field)}),
        "list": has({"element_id": whole(32), "element": a_type, "element_required": flag}),
        "map": has(
            {
                "key_id": whole(32),
                "key": a_type,
                "value_id": whole(32),
                "value": a_type,
                "value_required": flag,
            }
        ),
    }
    return kinds[value["type"]](value)


a_field = has({"id": whole(32), "name": text, "required": flag, "type": a_type}, doc=text)
a_schema = has(
    {"schema_id": whole(32), "fields": each(a_field)}, identifier_field_ids=each(whole(32))
)
a_spec = has(
    {
        "spec_id": whole(32),
        "fields": each(
            has({"source_id": whole(32), "field_id": whole(32), "name": text, "transform": text})
        ),
    }
)
an_order = has(
    {
        "order_id": whole(32),
        "fields": each(
            has({"source_id": whole(32), "transform": text, "direction": text, "null_order": text})
        ),
    }
)
a_snapshot = has(
    {"snapshot_id": whole(64), "timestamp_ms": whole(64), "manifest_list": text, "summary": texts},
    parent_snapshot_id=whole(64),
    sequence_number=whole(64),
    schema_id=whole(32),
)
a_ref = has(
    {"snapshot_id": whole(64), "type": text},
    min_snapshots_to_keep=whole(32),
    max_snapshot_age_ms=whole(64),
    max_ref_age_ms=whole(64),
)
a_blob = has(
    {
        "type": text,
        "snapshot_id": whole(64),
        "sequence_number": whole(64),
        "fields": each(whole(32)),
    }
)
a_partition_file = {
    "snapshot_id": whole(64),
    "statistics_path": text,
    "file_size_in_bytes": whole(64),
}
a_file = {**a_partition_file, "file_footer_size_in_bytes": whole(64), "blob_metadata": each(a_blob)}
METADATA = has(
    {
        "format_version": whole(32),
        "table_uuid": text,
        "location": text,
        "last_sequence_number": whole(64),
        "last_updated_ms": whole(64),
        "last_column_id": whole(32),
        "current_schema_id": whole(32),
        "schemas": each(a_schema),
        "default_spec_id": whole(32),
        "partition_specs": each(a_spec),
        "last_partition_id": whole(32),
        "default_sort_order_id": whole(32),
        "sort_orders": each(an_order),
        "properties": texts,
        "current_snapshot_id": whole(64),
        "refs": lambda value: all(map(a_ref, value.values())),
        "snapshots": each(a_snapshot),
        "snapshot_log": each(has({"snapshot_id": whole(64), "timestamp_ms": whole(64)})),
        "statistics": each(has(a_file)),
        "partition_statistics": each(has(a_partition_file)),
        "metadata_log": each(has({"metadata_file": text, "timestamp_ms": whole(64)})),
    }
)


def content(table):
    data = Path(table.metadata_location.removeprefix("file:")).read_bytes()
    text = gzip.decompress(data) if table.metadata_location.endswith(".gz.metadata.json") else data
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.gate("makes 120 tables")
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=pytest.mark.full("all values, not a third by turns"))]
)
def test_a_value_of_a_wrong_type_is_refused_or_written_as_the_spec_says(lake, table, entry, every):
    refused, judged = 0, None
    turn = [*ENTRIES].index(entry) % every
    for name, value in [*VALUES.items()][turn::every]:
        before = lake.load_table("db.t").metadata_location
        table.refresh()
        made = lake.list_tables("db")
        try:
            ENTRIES[entry](table, value)
        except IcecombError:
            refused += 1
            assert lake.list_tables("db") == made, name
            if "rename_field" not in entry:
                assert lake.load_table("db.t").metadata_location == before, name
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            pytest.fail(f"{name}: {error!r}")
        for identifier in lake.list_tables("db"):
            loaded = lake.load_table(identifier)
            if identifier == ("db", "t"):
                if loaded.metadata_location == judged:
                    continue
                judged = loaded.metadata_location
            METADATA(content(loaded))
            if "required" not in entry:  # what is required of old rows is not there
                loaded.scan().to_arrow()
        for identifier in lake.list_tables("db"):
            if identifier != ("db", "t"):
                lake.purge_table(identifier)
    assert refused, "nothing was refused at all"

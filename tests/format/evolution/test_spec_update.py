"""Evolution of partition specs, compared with PyIceberg's where both can do the same."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.evolution.spec_update import UpdateSpec
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import BucketTransform, parse_transform
from icecomb.format.spec.types import (
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from tests.format.commit import commit

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "city", StringType()),
        NestedField(4, "place", StructType((NestedField(5, "zip", StringType()),))),
        NestedField(6, "tags", ListType(7, StringType())),
    )
)
BY_DAY = PartitionSpec(
    0,
    (
        PartitionField(2, 1000, parse_transform("day"), "ts_day"),
        PartitionField(3, 1001, parse_transform("identity"), "city"),
    ),
)


def table(version=2, spec=BY_DAY):
    properties = {"format-version": str(version)}
    return new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, "/t", properties)


def evolved(base, *changes):
    for change in changes:
        update = UpdateSpec(base)
        change(update)
        base = commit(base, update)
    return base


def fields(metadata):
    return [(f.source_id, f.field_id, str(f.transform), f.name) for f in metadata.spec().fields]


def peer_fields(base, *changes):
    peer = TableMetadataUtil.parse_raw(base.to_json())
    table = Table(("db", "t"), peer, "/t/m.json", PyArrowFileIO(), NoopCatalog("peer"))
    transaction = table.transaction()
    for change in changes:
        with transaction.update_spec() as update:
            change(update)
    metadata = transaction.table_metadata
    return metadata.default_spec_id, metadata.last_partition_id, fields(metadata)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "changes",
    [
        [lambda u: u.add_field("id", "bucket[16]")],
        [lambda u: u.add_field("city", "truncate[4]").add_field("place.zip", "bucket[8]")],
        [lambda u: u.add_identity("id").add_identity("place.zip")],
        [lambda u: u.add_field("id", "truncate[10]", "tens")],
        [lambda u: u.remove_field("ts_day").add_field("ts", "hour")],
        [lambda u: u.remove_field("ts_day").add_field("ts", "month").add_field("id", "bucket[4]")],
        [lambda u: u.rename_field("ts_day", "day")],
        [
            lambda u: (
                u.rename_field("ts_day", "day").remove_field("city").add_field("ts", "bucket[2]")
            )
        ],
        [lambda u: u.remove_field("city"), lambda u: u.add_field("id", "bucket[2]")],
        [
            lambda u: u.add_field("id", "bucket[16]", "shard"),
            lambda u: u.remove_field("shard"),
            lambda u: u.add_field("id", "bucket[16]", "shard"),
        ],
        [lambda u: u.remove_field("ts_day").remove_field("city")],
        [lambda u: u.remove_field("city"), lambda u: u.rename_field("ts_day", "d")],
    ],
)
def test_the_same_calls_give_the_same_spec_as_pyiceberg(changes, version):
    base = table(version)
    metadata = evolved(base, *changes)
    found = (metadata.default_spec_id, metadata.last_partition_id, fields(metadata))
    assert found == peer_fields(base, *changes)


def test_version_1_keeps_a_removed_field_as_a_void_one():
    metadata = evolved(table(1), lambda u: u.remove_field("ts_day"))
    assert fields(metadata) == [(2, 1000, "void", "ts_day"), (3, 1001, "identity", "city")]


def test_version_1_gives_a_field_that_comes_back_a_new_id_and_its_old_name():
    metadata = evolved(table(1), lambda u: u.remove_field("city"), lambda u: u.add_identity("city"))
    assert fields(metadata) == [
        (2, 1000, "day", "ts_day"),
        (3, 1001, "void", "city_1001"),
        (3, 1002, "identity", "city"),
    ]


def test_version_2_gives_a_field_that_comes_back_its_old_id():
    metadata = evolved(table(2), lambda u: u.remove_field("city"), lambda u: u.add_identity("city"))
    assert fields(metadata) == fields(table(2))
    assert (metadata.default_spec_id, metadata.last_partition_id) == (0, 1001)
    renamed = evolved(
        table(2),
        lambda u: u.remove_field("city"),
        lambda u: u.add_field("city", "identity", "town"),
    )
    assert fields(renamed)[-1] == (3, 1002, "identity", "town")


def test_a_field_removed_and_added_at_once_just_stays():
    base = table()
    assert evolved(base, lambda u: u.remove_field("city").add_identity("city")) is base
    metadata = evolved(base, lambda u: u.remove_field("city").add_field("city", "identity", "town"))
    assert fields(metadata)[-1] == (3, 1001, "identity", "town")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda u: u.add_field("ts", "day"), "'ts_day' already"),
        (
            lambda u: u.remove_field("ts_day").add_field("ts", "hour").add_field("ts", "year"),
            "beside",
        ),
        (lambda u: u.add_field("id", "bucket[4]").add_field("id", "bucket[4]", "b"), "beside"),
        (lambda u: u.add_field("id", "bucket[4]", "x").add_field("id", "bucket[8]", "x"), "two"),
        (lambda u: u.add_field("id", "bucket[4]", "city"), "'city' already"),
        (lambda u: u.add_field("id", "bucket[4]", "id"), "name of a column"),
        (lambda u: u.add_field("nothing", "bucket[4]"), "'nothing'"),
        (lambda u: u.add_field("city", "day"), "day"),
        (lambda u: u.add_field("tags.element", "identity"), "list"),
        (lambda u: u.add_field("place", "identity"), "struct"),
        (lambda u: u.remove_field("nothing"), "none of this name"),
        (lambda u: u.rename_field("nothing", "x"), "none of this name"),
        (lambda u: u.rename_field("city", "ts_day"), "'ts_day' already"),
        (lambda u: u.remove_field("city").rename_field("city", "x"), "at once"),
        (lambda u: u.rename_field("city", "x").remove_field("city"), "at once"),
        (lambda u: u.add_field("id", "bucket[4]").remove_field("id_bucket_4"), "at once"),
        (lambda u: u.add_field("id", "bucket[4]", "x").rename_field("city", "x"), "two"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_by_name(change, message):
    with pytest.raises(ValidationError, match=message):
        evolved(table(), change)


def test_column_names_follow_case_when_told():
    update = UpdateSpec(table(), case_sensitive=False).add_field("ID", BucketTransform(4))
    assert fields(commit(table(), update))[-1] == (1, 1002, "bucket[4]", "id_bucket_4")


def test_a_change_is_made_again_on_a_spec_that_others_changed():
    base = table()
    update = UpdateSpec(base).add_field("id", "bucket[4]")
    newer = evolved(base, lambda u: u.remove_field("city").add_field("city", "truncate[1]"))
    assert fields(commit(newer, update)) == [
        (2, 1000, "day", "ts_day"),
        (3, 1002, "truncate[1]", "city_trunc_1"),
        (1, 1003, "bucket[4]", "id_bucket_4"),
    ]
    with pytest.raises(ValidationError, match="'city'"):
        UpdateSpec(base).remove_field("city").apply(newer)


def test_a_source_column_that_became_another_one_meanwhile_is_not_used():
    base = table()
    update = UpdateSpec(base).add_identity("id")
    swapped = UpdateSchema(base).delete_column("id").add_column("id", StringType())
    newer = commit(base, swapped)
    with pytest.raises(CommitFailedError, match="id"):
        update.apply(newer)


def test_hours_beside_the_days_that_were_there_as_in_iceberg_java():
    # Iceberg Java, TestUpdatePartitionSpec.testAddHourToDay
    metadata = evolved(table(), lambda u: u.add_field("ts", "hour"))
    assert fields(metadata) == [*fields(table()), (2, 1002, "hour", "ts_hour")]
    assert TableMetadata.from_json(metadata.to_json()).spec() == metadata.spec()


def test_no_change_commits_nothing():
    base = table()
    assert commit(base, UpdateSpec(base)) is base

"""Evolution of sort orders, compared with PyIceberg's."""

from __future__ import annotations

import json

import pyiceberg.table.sorting
import pytest
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.transforms import parse_transform as peer_transform

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.evolution.sort_update import UpdateSortOrder
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER, NullOrder
from icecomb.format.spec.types import LongType, NestedField, StringType, StructType
from tests.format.commit import commit

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "city", StringType()),
        NestedField(3, "place", StructType((NestedField(4, "zip", StringType()),))),
    )
)


def table():
    return new_table_metadata(SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "/t", {})


def test_the_same_calls_give_the_same_order_as_pyiceberg():
    calls = [
        ("desc", "id", "identity", NullOrder.NULLS_FIRST),
        ("asc", "city", "truncate[3]", NullOrder.NULLS_LAST),
        ("asc", "place.zip", "bucket[4]", NullOrder.NULLS_FIRST),
    ]
    base = table()
    update = UpdateSortOrder(base)
    peer = Table(
        ("db", "t"),
        TableMetadataUtil.parse_raw(base.to_json()),
        "/t/m.json",
        PyArrowFileIO(),
        NoopCatalog("peer"),
    ).transaction()
    with peer.update_sort_order() as peer_update:
        for call, column, transform, nulls in calls:
            getattr(update, call)(column, transform, nulls)
            peer_nulls = pyiceberg.table.sorting.NullOrder(nulls.value)
            getattr(peer_update, call)(column, peer_transform(transform), peer_nulls)
    metadata = commit(base, update)
    expected = json.loads(peer.table_metadata.sort_order().model_dump_json())
    assert metadata.sort_order().to_json() == expected
    assert metadata.default_sort_order_id == 1


def test_nulls_come_first_upwards_and_last_downwards():
    base = table()
    order = commit(base, UpdateSortOrder(base).asc("id").desc("city")).sort_order()
    assert [f.null_order for f in order.fields] == [NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST]


def test_no_key_at_all_is_unsorted_and_an_order_known_before_is_used_again():
    base = table()
    assert commit(base, UpdateSortOrder(base)) is base
    by_id = commit(base, UpdateSortOrder(base).asc("id"))
    unsorted = commit(by_id, UpdateSortOrder(by_id))
    assert unsorted.sort_order().is_unsorted
    assert unsorted.default_sort_order_id == 0
    again = commit(unsorted, UpdateSortOrder(unsorted).asc("id"))
    assert again.default_sort_order_id == 1
    assert len(again.sort_orders) == 2


def test_a_key_that_cannot_be_sorted_by_is_refused():
    for column, transform in (("nothing", "identity"), ("city", "day"), ("place", "identity")):
        with pytest.raises(ValidationError):
            UpdateSortOrder(table()).asc(column, transform)


def test_a_column_that_became_another_one_meanwhile_is_not_sorted_by():
    base = table()
    update = UpdateSortOrder(base, case_sensitive=False).asc("ID")
    newer = commit(base, UpdateSchema(base).add_column("x", LongType()))
    assert commit(newer, update).sort_order().fields[0].source_id == 1
    newer = commit(base, UpdateSchema(base).delete_column("id").add_column("id", LongType()))
    with pytest.raises(CommitFailedError):
        update.apply(newer)

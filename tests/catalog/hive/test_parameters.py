"""What a commit leaves of an entry that others wrote to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog.hive.parameters import new_table, pointed
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.thrift_codec import (
    decode,
    encode,
    skewed_columns,
    table_from_wire,
    table_to_wire,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField, StringType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
LARGER = Schema(*SCHEMA.fields, NestedField(3, "more", LongType()))
BY_HIVE = {"engine.hive.enabled": "true"}


def metadata_of(schema: Schema = SCHEMA, **properties: str) -> TableMetadata:
    parts = (UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER)
    return new_table_metadata(schema, *parts, "/lake/t", properties)


def marked(entry: HiveTable) -> HiveTable:
    """The entry after others left in its storage descriptor what it can hold."""
    struct: Any = decode(ttypes.Table, table_to_wire(entry))
    struct.sd.parameters = {"catalog.tag": "gold"}
    struct.sd.serdeInfo.name = "theirs"
    struct.sd.serdeInfo.parameters = {"serialization.format": "1", "reader": "tuned"}
    struct.sd.compressed = True
    struct.sd.numBuckets = 4
    struct.sd.bucketCols = ["id"]
    struct.sd.sortCols = [ttypes.Order("s", 1)]
    struct.sd.skewedInfo = ttypes.SkewedInfo(["s"], [["x"]], {})
    struct.sd.storedAsSubDirectories = True
    return table_from_wire(encode(struct))


@pytest.mark.parametrize("before", [{}, BY_HIVE], ids=["before", "before by Hive"])
@pytest.mark.parametrize("after", [{}, BY_HIVE], ids=["after", "after by Hive"])
@pytest.mark.parametrize("schema", [SCHEMA, LARGER], ids=["same", "evolved"])
def test_a_commit_keeps_what_others_put_into_the_storage_descriptor(before, after, schema):
    base, new = metadata_of(**before), metadata_of(schema, **after)
    made = new_table("db", "t", base, "/lake/t/1.metadata.json", {}, owner="ann")
    fresh = new_table("db", "t", new, "/lake/t/2.metadata.json", {}, owner="ann")
    entry = marked(made)
    altered = table_from_wire(
        table_to_wire(pointed(entry, base, new, "/lake/t/2.metadata.json", {}))
    )
    # columns, place and formats are those of a new table, all else is theirs
    own = ("columns", "location", "input_format", "output_format", "serde")
    of_fresh = {name: getattr(fresh.storage, name) for name in own}
    assert altered.storage == replace(entry.storage, **of_fresh)
    assert altered.storage.parameters == {"catalog.tag": "gold"}
    assert altered.storage.serde_parameters == {"serialization.format": "1", "reader": "tuned"}
    assert skewed_columns(altered) == ("s",)
    assert decode(ttypes.Table, altered.wire).sd.storedAsSubDirectories


def test_a_new_entry_has_nothing_of_the_kind():
    made = new_table("db", "t", metadata_of(), "/lake/t/1.metadata.json", {}, owner="ann")
    storage = made.storage
    assert (storage.parameters, storage.serde_parameters, storage.num_buckets) == ({}, {}, 0)


def test_commits_of_all_kinds_keep_it_in_a_metastore(catalog, namespace):
    rows = pa.table({"id": [1, 2], "s": ["a", "b"]})
    name = f"{namespace}.kept"
    table = catalog.create_table(name, rows.schema)
    client = catalog.client
    client.alter_table(namespace, "kept", marked(client.table(namespace, "kept")), {})

    def theirs(table_name: str) -> tuple[Any, ...]:
        entry = client.table(namespace, table_name)
        storage = entry.storage
        return (
            dict(storage.parameters),
            storage.serde_name,
            dict(storage.serde_parameters),
            (storage.compressed, storage.num_buckets, storage.bucket_columns),
            (storage.sort_columns, skewed_columns(entry)),
        )

    wanted = theirs("kept")
    assert wanted[0]["catalog.tag"] == "gold"
    assert wanted[2]["reader"] == "tuned"
    table.append(rows)
    assert theirs("kept") == wanted
    table.update_schema().add_column("more", "long").commit()
    with table.transaction() as change:
        change.set_properties(BY_HIVE)
    assert theirs("kept") == wanted
    assert client.table(namespace, "kept").storage.columns[-1].name == "more"
    replaced = rows.append_column("other", rows["id"])
    catalog.create_or_replace_table(name, replaced.schema).append(replaced)
    assert theirs("kept") == wanted
    catalog.rename_table(name, f"{namespace}.moved")
    catalog.load_table(f"{namespace}.moved").append(replaced)
    assert theirs("moved") == wanted

"""Tables SKEWED BY with values, which Hive's list bucketing leaves in entries, through a real metastore."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.thrift_codec import (
    decode,
    partition_from_wire,
    skewed_columns,
    table_from_wire,
)
from icecomb.format.errors import NoSuchIcebergTableError
from tests.catalog.hive.thrift.test_thrift_codec import Key, encoded
from tests.rings import sampled

PLACES = (b"/lake/t/s=x", b"/lake/t/s=y")


def with_skew(entry: HiveTable | HivePartition) -> Any:
    """An entry as Hive leaves it after rows went into a table SKEWED BY … STORED AS DIRECTORIES."""
    kind, read = (
        (ttypes.Table, table_from_wire)
        if isinstance(entry, HiveTable)
        else (ttypes.Partition, partition_from_wire)
    )
    struct = decode(kind, entry.wire or b"")
    places: Any = {Key(["x"]): "/lake/t/s=x", Key(["y"]): "/lake/t/s=y"}
    struct.sd.skewedInfo = ttypes.SkewedInfo(["s"], [["x"], ["y"]], places)
    return read(encoded(struct))


def wires(table: Any) -> list[bytes]:
    return [table.entry.wire, *(one.wire for one in table.partitions)]


@pytest.mark.parametrize("keys", sampled([{"k": "int"}, {}], keep=1), ids=["partitioned", "plain"])
def test_a_skewed_table_is_read_planned_migrated_and_given_back_exactly(
    make_hive_table: Any, keys: dict[str, str]
) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["x", "y"]})
    given = {"partitions": {("1",): rows, ("2",): rows}} if keys else {"rows": rows}
    table = make_hive_table({"id": "bigint", "s": "string"}, keys, **given)
    catalog, client = table.catalog, table.catalog.client
    names = tuple(table.name.split("."))
    client.alter_table(*names, with_skew(table.entry))
    if keys:
        client.partitions.alter(*names, list(map(with_skew, table.partitions)))
    before = table.state
    assert all(place in wire for wire in wires(table) for place in PLACES)
    assert skewed_columns(table.entry) == ("s",)
    assert client.tables(names[0], [names[1]]) == [table.entry]
    with pytest.raises(NoSuchIcebergTableError):
        catalog.load_table(table.name)
    (plan,) = migrate.plan_many(catalog, [table.name])
    assert plan.verdict == "ready"
    assert "skewed" in {finding.code for finding in plan.findings}
    assert migrate.status(catalog, table.name)["state"] == "never migrated by icecomb"
    migrate.apply(catalog, table.name)
    assert skewed_columns(table.entry) == ("s",)
    assert migrate.verify(catalog, table.name).difference_count == 0
    loaded = catalog.load_table(table.name)
    loaded.append(
        pa.table({"id": [3], "s": ["z"], **dict.fromkeys(keys, pa.array([1], pa.int32()))})
    )
    assert loaded.scan().to_arrow().num_rows == (5 if keys else 3)
    assert migrate.revert(catalog, table.name, dry_run=False, allow_data_loss=True).done
    assert [replace(one, wire=None) for one in (table.entry, *table.partitions)] == [
        replace(one, wire=None) for one in (before[0], *before[1])
    ]
    assert all(place in wire for wire in wires(table) for place in PLACES)

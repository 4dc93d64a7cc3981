"""Tables and partitions of a metastore as JSON for a journal, byte for byte."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.thrift_codec import (
    partition_from_wire,
    partition_to_wire,
    table_from_wire,
    table_to_wire,
)


def table_to_json(table: HiveTable) -> dict[str, Any]:
    """Return a table for a journal; `table_from_json` restores it byte for byte."""
    encoded = base64.b64encode(table_to_wire(table)).decode("ascii")
    return {"database": table.database, "name": table.name, "thrift-binary": encoded}


def table_from_json(value: Mapping[str, Any]) -> HiveTable:
    """Return the table that `table_to_json` wrote."""
    return table_from_wire(base64.b64decode(value["thrift-binary"]))


def partition_to_json(partition: HivePartition) -> dict[str, Any]:
    """Return a partition for a journal; `partition_from_json` restores it byte for byte."""
    encoded = base64.b64encode(partition_to_wire(partition)).decode("ascii")
    return {"values": list(partition.values), "thrift-binary": encoded}


def partition_from_json(value: Mapping[str, Any]) -> HivePartition:
    """Return the partition that `partition_to_json` wrote."""
    return partition_from_wire(base64.b64decode(value["thrift-binary"]))

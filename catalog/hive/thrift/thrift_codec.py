"""Conversion between Thrift objects and icecomb's values, for the client and for journals."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    LockAnswer,
    LockRow,
    LockState,
    StorageDescriptor,
)


def _number(kind: Any, name: str) -> int:
    return next(int(entry[0]) for entry in kind.thrift_spec if entry and entry[2] == name)


def _known(kind: Any) -> frozenset[int]:
    return frozenset(entry[0] for entry in kind.thrift_spec if entry)


_KNOWN: Final = {kind: _known(kind) for kind in (ttypes.Table, ttypes.Partition, ttypes.Database)}

_SKEWED: Final = {
    kind: (_number(kind, "sd"), _number(ttypes.StorageDescriptor, "skewedInfo"))
    for kind in (ttypes.Table, ttypes.Partition)
}
"""The path of field ids of ``SKEWED BY`` in a table or a partition."""


def encode(struct: Any) -> bytes:
    """Return the binary form of a Thrift struct."""
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocolAccelerated(buffer))
    return bytes(buffer.getvalue())


def decode(kind: Any, data: bytes) -> Any:
    """Return a Thrift struct from its binary form, without the values of ``SKEWED BY``.

    They are a map with lists as keys, which no Python dict accepts.
    """
    struct = kind()
    try:
        struct.read(TBinaryProtocolAccelerated(TMemoryBuffer(data)))
    except TypeError:
        plain = wire.without(data, _SKEWED[kind]) if kind in _SKEWED else data
        if plain == data:
            raise
        return decode(kind, plain)
    return struct


def table_from_wire(data: bytes) -> HiveTable:
    """Return a table from its binary form."""
    found = decode(ttypes.Table, data)
    return HiveTable(
        database=found.dbName,
        name=found.tableName,
        owner=found.owner,
        create_time=found.createTime or 0,
        last_access_time=found.lastAccessTime or 0,
        retention=found.retention or 0,
        storage=_storage(found.sd),
        partition_keys=_columns(found.partitionKeys),
        parameters=dict(found.parameters or {}),
        table_type=found.tableType,
        view_original_text=found.viewOriginalText,
        view_expanded_text=found.viewExpandedText,
        wire=data,
    )


def table_to_wire(table: HiveTable) -> bytes:
    """Return the binary form of a table; fields unknown to this client survive."""
    if table.wire is not None and table_from_wire(table.wire) == table:
        return table.wire
    struct = decode(ttypes.Table, table.wire) if table.wire else ttypes.Table()
    struct.dbName = table.database
    struct.tableName = table.name
    struct.owner = table.owner
    struct.createTime = table.create_time
    struct.lastAccessTime = table.last_access_time
    struct.retention = table.retention
    struct.sd = _storage_struct(table.storage, struct.sd)
    struct.partitionKeys = _column_structs(table.partition_keys)
    struct.parameters = dict(table.parameters)
    struct.tableType = table.table_type
    struct.viewOriginalText = table.view_original_text
    struct.viewExpandedText = table.view_expanded_text
    return _kept(encode(struct), table.wire, ttypes.Table)


def skewed_columns(table: HiveTable) -> tuple[str, ...]:
    """Return the columns of ``SKEWED BY`` of a table read from a metastore."""
    data = table.wire or b"\0"
    for number in (*_SKEWED[ttypes.Table], _number(ttypes.SkewedInfo, "skewedColNames")):
        found = wire.find(data, 0, number)
        if found is None:
            return ()
        data = data[found.value : found.end]
    return tuple(name[4:].decode() for name in wire.list_items(data, 0))


def partition_from_wire(data: bytes) -> HivePartition:
    """Return a partition from its binary form."""
    found = decode(ttypes.Partition, data)
    return HivePartition(
        database=found.dbName,
        table=found.tableName,
        values=tuple(found.values or ()),
        create_time=found.createTime or 0,
        last_access_time=found.lastAccessTime or 0,
        storage=_storage(found.sd),
        parameters=dict(found.parameters or {}),
        wire=data,
    )


def partition_to_wire(partition: HivePartition) -> bytes:
    """Return the binary form of a partition."""
    if partition.wire is not None and partition_from_wire(partition.wire) == partition:
        return partition.wire
    struct = decode(ttypes.Partition, partition.wire) if partition.wire else ttypes.Partition()
    struct.values = list(partition.values)
    struct.dbName = partition.database
    struct.tableName = partition.table
    struct.createTime = partition.create_time
    struct.lastAccessTime = partition.last_access_time
    struct.sd = _storage_struct(partition.storage, struct.sd)
    struct.parameters = dict(partition.parameters)
    return _kept(encode(struct), partition.wire, ttypes.Partition)


def _kept(encoded: bytes, original: bytes | None, kind: Any) -> bytes:
    """Return a struct with the fields of the original that are not decoded."""
    if original is None:
        return encoded
    kept = wire.with_field_of(original, encoded, _SKEWED[kind])
    return wire.carry_over(kept, original, _KNOWN[kind])


def database_from_wire(data: bytes) -> HiveDatabase:
    """Return a database from its binary form."""
    found = decode(ttypes.Database, data)
    return HiveDatabase(
        name=found.name,
        description=found.description,
        location=found.locationUri,
        parameters=dict(found.parameters or {}),
        owner=found.ownerName,
        owner_type=ttypes.PrincipalType._VALUES_TO_NAMES.get(found.ownerType),  # noqa: SLF001 - the only way
        wire=data,
    )


def database_to_wire(database: HiveDatabase) -> bytes:
    """Return the binary form of a database."""
    struct = decode(ttypes.Database, database.wire) if database.wire else ttypes.Database()
    struct.name = database.name
    struct.description = database.description
    struct.locationUri = database.location
    struct.parameters = dict(database.parameters)
    struct.ownerName = database.owner
    struct.ownerType = (
        ttypes.PrincipalType._NAMES_TO_VALUES[database.owner_type]  # noqa: SLF001 - the only way
        if database.owner_type
        else None
    )
    return wire.carry_over(encode(struct), database.wire, _KNOWN[ttypes.Database])


def set_facts(found: Any, *names: str) -> Any:
    """Return a Thrift struct in which these members are set; ValueError if one is not.

    Members that an answer must have are set by servers, but checked by no decoder.
    """
    unset = [name for name in names if getattr(found, name, None) is None]
    if unset:
        raise ValueError(f"the reply lacks {', '.join(unset)}")
    return found


def lock_answer(found: Any) -> LockAnswer:
    """Return the answer to a request of a lock, or for its state."""
    set_facts(found, "lockid", "state")
    return LockAnswer(found.lockid, LockState(found.state))


def lock_rows(found: Any) -> list[LockRow]:
    """Return the rows of show_locks."""
    return list(map(_lock_row, found.locks or ()))


def _lock_row(element: Any) -> LockRow:
    set_facts(element, "lockid", "dbname", "state")
    return LockRow(
        lock_id=element.lockid,
        database=element.dbname,
        table=element.tablename,
        state=LockState(element.state),
        exclusive=element.type == ttypes.LockType.EXCLUSIVE,
        user=element.user or "",
        host=element.hostname or "",
        agent=element.agentInfo,
        last_heartbeat_ms=element.lastheartbeat or None,
        acquired_ms=element.acquiredat or None,
    )


def _columns(found: Sequence[Any] | None) -> tuple[FieldSchema, ...]:
    return tuple(FieldSchema(one.name, one.type, one.comment) for one in found or ())


def _column_structs(columns: Sequence[FieldSchema]) -> list[Any]:
    return [ttypes.FieldSchema(one.name, one.type, one.comment) for one in columns]


def _storage(found: Any) -> StorageDescriptor:
    if found is None:
        return StorageDescriptor()
    serde = found.serdeInfo or ttypes.SerDeInfo()
    return StorageDescriptor(
        columns=_columns(found.cols),
        location=found.location,
        input_format=found.inputFormat,
        output_format=found.outputFormat,
        serde=serde.serializationLib,
        serde_name=serde.name,
        serde_parameters=dict(serde.parameters or {}),
        compressed=bool(found.compressed),
        num_buckets=found.numBuckets or 0,
        bucket_columns=tuple(found.bucketCols or ()),
        sort_columns=tuple((one.col, one.order) for one in found.sortCols or ()),
        parameters=dict(found.parameters or {}),
    )


def _storage_struct(storage: StorageDescriptor, original: Any) -> Any:
    struct = original or ttypes.StorageDescriptor(
        skewedInfo=ttypes.SkewedInfo([], [], {}), storedAsSubDirectories=False
    )
    struct.cols = _column_structs(storage.columns)
    struct.location = storage.location
    struct.inputFormat = storage.input_format
    struct.outputFormat = storage.output_format
    struct.serdeInfo = ttypes.SerDeInfo(
        storage.serde_name, storage.serde, dict(storage.serde_parameters)
    )
    struct.compressed = storage.compressed
    struct.numBuckets = storage.num_buckets
    struct.bucketCols = list(storage.bucket_columns)
    struct.sortCols = [ttypes.Order(column, order) for column, order in storage.sort_columns]
    struct.parameters = dict(storage.parameters)
    return struct


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

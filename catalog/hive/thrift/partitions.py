"""The metastore's calls about partitions of Hive tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.answer import missing_table, result_list
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.catalog.hive.thrift.catalog_name import CatalogName
from icecomb.catalog.hive.thrift.entity import HivePartition
from icecomb.catalog.hive.thrift.thrift_codec import (
    encode,
    partition_from_wire,
    partition_to_wire,
)

_PAGE: Final = 500
_CATALOG_FIELD: Final = 9
_ADDITION_CATALOG: Final = 6
_REMOVAL_CATALOG: Final = 9


class Partitions:
    """The partitions of a metastore's tables: `HiveClient.partitions`."""

    def __init__(self, calls: Calls, catalog: CatalogName) -> None:
        self._calls = calls
        self._catalog = catalog

    def names(self, database: str, table: str) -> list[str]:
        """Return the names of all partitions, such as ``dt=2024-01-01/hour=3`` (values escaped)."""
        with missing_table(database, table):
            place = self._catalog.database(database)
            return list(self._calls.read("get_partition_names", place, table, -1))

    def named(self, database: str, table: str, names: Sequence[str]) -> list[HivePartition]:
        """Return the partitions of these names that exist; pass at most some hundreds of names."""
        return list(map(partition_from_wire, self.encoded(database, table, names)))

    def encoded(self, database: str, table: str, names: Sequence[str]) -> list[bytes]:
        """Return the same partitions as `named`, in binary form."""
        with missing_table(database, table):
            found: list[bytes] = self._calls.read(
                "get_partitions_by_names",
                self._catalog.database(database),
                table,
                list(names),
                result=lambda raw: result_list(raw, bytes),
            )
        return found

    def pages(self, database: str, table: str, size: int = _PAGE) -> Iterator[list[HivePartition]]:
        """Yield all partitions in pages, in bounded memory: names first, then each page by name."""
        for page in self.name_pages(database, table, size):
            yield self.named(database, table, page)

    def name_pages(self, database: str, table: str, size: int = _PAGE) -> Iterator[list[str]]:
        """Yield the names of all partitions, in pages that fit one call."""
        names = self.names(database, table)
        for start in range(0, len(names), size):
            yield names[start : start + size]

    def add(self, partitions: Sequence[HivePartition]) -> None:
        """Add the partitions of one table that do not exist yet (all or none)."""
        if not partitions:
            return
        database, table = partitions[0].database, partitions[0].table
        request = ttypes.AddPartitionsRequest(database, table, ifNotExists=True, needResult=False)
        encoded = encode(request)[:-1] + self._field(3, partitions) + b"\0"
        encoded = self._catalog.mark(encoded, _ADDITION_CATALOG)
        with missing_table(database, table):
            self._calls.write_bytes("add_partitions_req", wire.struct_field(1, encoded) + b"\0")

    def alter(self, database: str, table: str, partitions: Sequence[HivePartition]) -> None:
        """Replace everything the server stores about existing partitions (all or none)."""
        encoded = wire.string_field(1, self._catalog.database(database))
        encoded += wire.string_field(2, table) + self._field(3, partitions)
        encoded += wire.struct_field(4, wire.map_field(1, {"DO_NOT_UPDATE_STATS": "true"}) + b"\0")
        with missing_table(database, table):
            self._calls.write_bytes("alter_partitions_with_environment_context", encoded + b"\0")

    def drop(self, database: str, table: str, names: Sequence[str]) -> None:
        """Drop the entries of the partitions of these names that exist; their files stay."""
        request = ttypes.DropPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=ttypes.RequestPartsSpec(names=list(names)),
            deleteData=False,
            ifExists=True,
            needResult=False,
        )
        encoded = self._catalog.mark(encode(request), _REMOVAL_CATALOG)
        with missing_table(database, table):
            self._calls.write_bytes("drop_partitions_req", wire.struct_field(1, encoded) + b"\0")

    def _field(self, field_id: int, partitions: Sequence[HivePartition]) -> bytes:
        return wire.struct_list_field(
            field_id,
            [self._catalog.mark(partition_to_wire(one), _CATALOG_FIELD) for one in partitions],
        )

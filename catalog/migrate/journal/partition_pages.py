"""A Hive table's partitions in the metastore, read once and kept on the local disk.

A plan examines them, the journal records them, and the conversion checks that they are unchanged:
all of that is about one state, and needs no more memory with a million of them than with one page.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.partitions import Partitions
from icecomb.catalog.hive.thrift.thrift_codec import partition_from_wire
from icecomb.catalog.migrate.source.spool import Spool, batch_of

if TYPE_CHECKING:
    from typing_extensions import Self

_PAGES: Final = pa.schema([pa.field("partition", pa.binary(), nullable=False)])


class PartitionPages:
    """The partitions of one table; a context manager that releases the disk space at its end."""

    def __init__(self, partitions: Partitions, table: HiveTable) -> None:
        self._partitions = partitions
        self._table = table
        self._pages = Spool(_PAGES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # an empty spool would look like a table without partitions
        del self._pages

    def read(self) -> Iterator[HivePartition]:
        """Yield the metastore's current partitions, and keep them on the local disk."""
        self._pages = Spool(_PAGES)
        for page in self._asked():
            self._pages.append(batch_of(_PAGES, [(one,) for one in page]))
            yield from map(partition_from_wire, page)

    def kept(self) -> Iterator[HivePartition]:
        """Yield the kept partitions again."""
        for page in self._kept():
            yield from map(partition_from_wire, page)

    def is_current(self) -> bool:
        """Return whether the metastore still has exactly these partitions."""
        return all(
            now is not None
            and then is not None
            and (now == then or _decoded(now) == _decoded(then))
            for now, then in zip_longest(self._asked(), self._kept())
        )

    def _asked(self) -> Iterator[list[bytes]]:
        if self._table.partition_keys:
            database, name = self._table.database, self._table.name
            for names in self._partitions.name_pages(database, name):
                yield self._partitions.encoded(database, name, names)

    def _kept(self) -> Iterator[list[bytes]]:
        for batch in self._pages:
            yield batch.column(0).to_pylist()


def _decoded(page: list[bytes]) -> list[HivePartition]:
    # A server may send the same parameters in another order.
    return list(map(partition_from_wire, page))

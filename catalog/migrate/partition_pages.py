"""A Hive table's partitions in the metastore, read once and kept on the local disk.

A plan examines them, the journal records them, and the conversion checks that they are unchanged:
all of that is about one state, and needs no more memory with a million of them than with one page.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.partitions import Partitions
from icecomb.catalog.hive.thrift.thrift_codec import partition_from_wire

if TYPE_CHECKING:
    from typing_extensions import Self


class PartitionPages:
    """The partitions of one table; a context manager that releases the disk space at its end.

    Args:
        partitions: The metastore's partitions.
        table: The table.
    """

    def __init__(self, partitions: Partitions, table: HiveTable) -> None:
        self._partitions = partitions
        self._table = table
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the block
        self._pages: list[tuple[int, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self) -> Iterator[HivePartition]:
        """Yield the metastore's current partitions, and keep them."""
        self._file.seek(0)
        self._file.truncate()
        self._pages = []
        for page in self._asked():
            self._pages.append(tuple(map(len, page)))
            self._file.write(b"".join(page))
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
        self._file.seek(0)
        for lengths in self._pages:
            yield [self._file.read(length) for length in lengths]


def _decoded(page: list[bytes]) -> list[HivePartition]:
    # A server may send the same parameters in another order.
    return list(map(partition_from_wire, page))

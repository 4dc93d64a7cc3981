"""The old entries of a Hive table as a revert restores them.

They are exactly the journal's, unless Hive changed the files of a folder meanwhile: Hive answers
``count(*)`` from statistics that an entry calls accurate (StatsOptimizer), and Spark's estimates
rely on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.journal.journal import Journal, Step

_ACCURATE: Final = "COLUMN_STATS_ACCURATE"


class RestoredEntries:
    """The entries of one table whose revert has begun."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        changed = (journal.step(Step.REVERTING) or {}).get("changed", ())
        self._changed = frozenset(changed)

    @property
    def table(self) -> HiveTable:
        """The old table."""
        old = self._journal.table
        if not self._changed or old.partition_keys:
            return old
        return replace(old, parameters=_doubted(old.parameters))

    def partitions(self) -> Iterator[HivePartition]:
        """Yield the old partitions."""
        for one in self._journal.partitions():
            if (one.storage.location or "").rstrip("/") in self._changed:
                yield replace(one, parameters=_doubted(one.parameters), wire=None)
            else:
                yield one


def folders_of(locations: Iterable[str]) -> list[str]:
    """Return the folders that files are in, directly or not."""
    found: set[str] = set()
    for location in locations:
        folder = location.rpartition("/")[0]
        while folder not in found and folder.rstrip("/:") == folder and "/" in folder:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)


def _doubted(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key != _ACCURATE}

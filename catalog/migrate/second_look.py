"""Whether a Hive table still is as it was planned: asked just before what was planned is done.

A plan takes its time, and Hive's and Spark's writers go on meanwhile: a table of the files of two
moments would have rows that were never together, and files that are gone.
"""

from __future__ import annotations

from typing import Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.context import Workplace
from icecomb.catalog.migrate.migration_plan import MigrationPlan
from icecomb.catalog.migrate.partition_pages import PartitionPages
from icecomb.catalog.migrate.source_files import look_into
from icecomb.catalog.progress import workers
from icecomb.format.errors import MigrationError

ROUNDS: Final = 3
"""How often a table is planned whose writers do not stop."""


def is_unchanged(
    place: Workplace,
    table: HiveTable,
    plan: MigrationPlan,
    partitions: PartitionPages,
    threads: int,
) -> bool:
    """Look again whether table, partitions and files are as they were.

    Args:
        place: Where.
        table: The Hive table as it was.
        plan: What was seen in its folders.
        partitions: What the metastore said of them.
        threads: How many folders are read at once.
    """
    if place.entry.load() != table:
        return False
    seen = plan.seen
    if seen is None:
        return partitions.is_current()
    # Others wait for the lock: storage is asked while the metastore answers. The metastore's calls
    # stay in this thread, which holds to the server that has the lock.
    listed = look_into(place.io, seen.places, place.progress, threads)
    with workers(1) as other:
        same = other.submit(seen.are, listed)
        return partitions.is_current() and same.result()


def keeps_changing(place: Workplace) -> MigrationError:
    """Return the error after the last round."""
    name = f"{place.database}.{place.name}"
    return MigrationError(
        f"{name} changed during each of {ROUNDS} attempts",
        hint="stop its writers, then try again",
        table=name,
    )

"""The check that a Hive table is unchanged since it was planned, just before the plan is applied.

Planning takes time, and Hive's and Spark's writers continue meanwhile: a table of files of two
moments would have rows that never existed together, and files that are gone.
"""

from __future__ import annotations

from typing import Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.partition_pages import PartitionPages
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
from icecomb.catalog.migrate.source.source_files import folder_listings
from icecomb.catalog.report.progress import workers
from icecomb.format.errors import MigrationError

ROUNDS: Final = 3
"""How often a table is planned while writers keep changing it."""


def is_unchanged(
    context: MigrationContext,
    table: HiveTable,
    plan: MigrationPlan,
    partitions: PartitionPages,
    threads: int,
) -> bool:
    """Return whether table, partitions and files are unchanged since they were planned."""
    if context.entry.load() != table:
        return False
    states = plan.folder_states
    if states is None:
        return partitions.is_current()
    # Others wait for the lock, so storage is listed while the metastore answers. The metastore's
    # calls stay in this thread, which is pinned to the server that granted the lock.
    listed = folder_listings(context.io, states.folders, context.progress, threads)
    with workers(1) as other:
        same = other.submit(states.match, listed)
        return partitions.is_current() and same.result()


def keeps_changing(context: MigrationContext) -> MigrationError:
    """Return the error after the last round."""
    name = f"{context.database}.{context.name}"
    return MigrationError(
        f"{name} changed during each of {ROUNDS} attempts",
        hint="stop its writers, then try again",
        table=name,
    )
